//! A pipeline, parsed. What stands together like the parts of a `find` becomes one: filter, sort, skip, limit, projection, in this
//! order. The first of these finds reads the collection, so that all of it is pushed down to buckets; the others run over rows.

use super::accumulator::Accumulation;
use super::group::GroupSpec;
use super::model::{DocumentSource, Foreign, Others, Out};
use super::parse::Parser;
use super::pipeline::Pipeline;
use super::source::documents;
use super::spec::{Shown, Step, reads, settle};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::query::expr::Globals;
use crate::query::plan::{Demand, FindCommand, Projection, Query};
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocBuf, DocWriter, FieldSet};

/// A pipeline: what is found first, and what becomes of it.
pub struct Aggregation {
    /// The find in front.
    pub find: FindCommand,
    /// What of its rows the steps want.
    demand: Demand,
    steps: Vec<Shown>,
    /// The stage in front that gives documents of its own, if there is one.
    pub source: Option<DocumentSource>,
    /// Where its rows go, if they are written.
    pub out: Option<Out>,
    /// What its steps need of other collections.
    pub others: Vec<Foreign>,
}

impl Aggregation {
    /// Parses the stages of a pipeline, an array of objects. `time_field` is that of the collection; empty where rows have none that is always
    /// a date, as bucket documents.
    ///
    /// Errors: `TypeMismatch` where a stage is no object, 40323 for one without exactly one field, 40324 for an unknown one, 7183900 for one
    /// that unpacks measurements, and those of the stages.
    pub fn parse(pipeline: Doc<'_>, globals: &Globals, time_field: &str) -> Result<Aggregation> {
        let mut parser = Parser::new(globals);
        parser.begin_find();
        parser.stages(pipeline)?;
        parser.finish(time_field)
    }

    /// The stages behind the find, or where no find is in front all of them, each with its step, whose rows come out of it where no other stage of that step comes behind it.
    pub fn shown(&self) -> Vec<(usize, DocBuf)> {
        let mut shown = Vec::new();
        if let Some(source) = &self.source {
            let mut stage = DocWriter::new();
            source.write(&mut stage);
            shown.push((usize::MAX, stage.finish()));
            shown.extend(self.find.shown().into_iter().map(|stage| (usize::MAX, stage)));
        }
        for (at, (step, stage)) in self.steps.iter().enumerate() {
            match step {
                Step::Find(find) => shown.extend(find.shown().into_iter().map(|stage| (at, stage))),
                _ => shown.push((at, stage.clone())),
            }
        }
        shown.extend(self.out.iter().map(|out| (usize::MAX, out.shown.clone())));
        shown
    }

    /// The documents that it has of itself; `None` where it has none, or has them from a collection.
    ///
    /// Errors: 5858203 and 40228 for what is no list of objects, and those of expressions.
    pub fn own_rows(&self) -> Result<Option<Block>> {
        match &self.source {
            Some(DocumentSource::Documents(list)) => documents(list).map(Some),
            _ => Ok(None),
        }
    }

    /// The find in front, and the steps behind it, ready to run; `None` where there are none. `others` are the rows of what they need.
    pub fn into_parts(self, others: &Others) -> (Query, Option<Pipeline>) {
        let pipeline = Pipeline::new(&mut self.steps.iter().map(|(step, _)| step), others);
        (Query { find: self.find, demand: self.demand }, Some(pipeline).filter(|_| !self.steps.is_empty()))
    }

    /// The find in front, and what the steps behind it want of its rows.
    pub fn into_query(self) -> Query {
        Query { find: self.find, demand: self.demand }
    }

    /// What becomes of documents that its source has given.
    ///
    /// Errors: those of the stages.
    pub fn run_over(&self, rows: Block, others: &Others) -> Result<Block> {
        self.run(FindCommand::clone(&self.find), rows, others)
    }

    /// The same with another find in front.
    ///
    /// Errors: those of the stages.
    pub(super) fn run(&self, find: FindCommand, rows: Block, others: &Others) -> Result<Block> {
        let find = Step::Find(Box::new(find));
        let steps = self.steps.iter().map(|(step, _)| step);
        let mut pipeline = Pipeline::new(&mut std::iter::once(&find).chain(steps), others);
        if rows.rows() > 0 {
            // Whether it has enough does not matter: there is no more.
            let _ = pipeline.push(rows)?;
        }
        pipeline.finish()?;
        Ok(pipeline.take(usize::MAX, usize::MAX))
    }
}

impl Foreign {
    /// The pipeline, over a collection whose rows have this time field.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn parse(&self, time_field: &str) -> Result<Aggregation> {
        let mut parsed = Aggregation::parse(self.stages.view(), &self.globals, time_field)?;
        parsed.find.collation = self.globals.collation().clone();
        Ok(parsed)
    }
}

impl Parser<'_> {
    /// The pipeline of the stages that were added; `time_field` as in `Aggregation::parse`.
    ///
    /// Errors: 7183900.
    pub fn finish(self, time_field: &str) -> Result<Aggregation> {
        let Parser { steps, source, out, others, .. } = self;
        let mut steps = steps.into_iter();
        let Some((Step::Find(mut find), _)) = steps.next() else {
            return Err(Error::internal("A pipeline without a find"));
        };
        let mut steps: Vec<Shown> = steps.collect();
        settle(&mut steps, !time_field.is_empty())?;
        let mut demand = Demand::default();
        if let (Some((Step::Group(group), shown)), true, None) = (steps.first_mut(), find.projection.is_all(), &source)
        {
            demand = serve(&mut find, group, shown, time_field);
        } else if source.is_none() {
            demand.fields = reads(&steps);
        }
        Ok(Aggregation { find: *find, demand, steps, source, out, others })
    }
}

/// What a group wants of the find in front of it, which then gives no more than that; and has the group take what it gives.
fn serve(find: &mut FindCommand, group: &mut GroupSpec, shown: &mut DocBuf, time_field: &str) -> Demand {
    let takes_all = find.skip == 0 && find.limit.is_none();
    let mut demand = Demand::default();
    match &find.sort {
        _ if !takes_all || time_field.is_empty() => {}
        Some(sort) => demand.edge = group.edge_behind(sort, time_field),
        None => {
            group.take_edges(time_field);
            demand.edge = group.edge(time_field);
        }
    }
    if let Some([by_time, more @ ..]) = find.sort.as_ref().map(SortSpec::parts)
        && by_time.path.as_str() == time_field
    {
        if more.is_empty() && takes_all && group.fields.iter().all(Accumulation::takes_any_order) {
            group.unsorted_by = Some((time_field.into(), by_time.ascending));
            find.sort = None;
            demand.edge = group.edge(time_field);
        } else {
            show_streaming(&group.stream(time_field), shown);
        }
    }
    // What the group does not read is not decoded.
    if let FieldSet::Only(names) = group.needed_fields() {
        find.projection = Projection::of_roots(&names);
        demand.is_narrowed = true;
    }
    demand
}

/// Shows a `$group` as one whose groups are given as soon as those fields of their ids, if there are any, have other values.
fn show_streaming(in_order: &[&str], shown: &mut DocBuf) {
    let Some((_, argument)) = shown.view().iter().next().filter(|_| !in_order.is_empty()) else { return };
    let mut stage = DocWriter::new();
    stage.begin_doc("$_internalStreamingGroup");
    argument.as_doc().into_iter().flatten().for_each(|(name, value)| {
        stage.value(name, value);
    });
    stage.begin_array("$monotonicIdFields");
    for (place, name) in in_order.iter().enumerate() {
        stage.string(&place.to_string(), name);
    }
    stage.end().end();
    *shown = stage.finish();
}
