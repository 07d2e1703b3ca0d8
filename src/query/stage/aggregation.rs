//! A parsed pipeline. Consecutive stages that a `find` can do become one find: filter, sort, skip, limit, projection,
//! in this order. The first of these finds reads the collection and is pushed down to buckets; later ones run over
//! rows.

use super::accumulator::Accumulation;
use super::group::GroupSpec;
use super::model::{DocumentSource, Foreign, Others, Out};
use super::optimise::optimise;
use super::parse::{FindPart, PipelineParser};
use super::pipeline::Pipeline;
use super::source::documents;
use super::spec::{
    ShownStep, Step, check_unpacking, hides_order, leave_out_ids, narrow_appended, read_through, wait_for_all,
};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::limits::THRESHOLD_ROWS_MAX;
use crate::listed::IntoList;
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::query::plan::{Demand, FindCommand, NewestBins, Query};
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocBuf, DocWriter, FieldSet};

/// A pipeline: a find, and the steps after it.
pub struct Aggregation {
    /// The first find.
    pub find: FindCommand,
    /// The demand of the steps on its rows.
    pub(super) demand: Demand,
    pub(super) steps: Vec<ShownStep>,
    /// The first stage, if it produces documents of its own.
    pub source: Option<DocumentSource>,
    /// The target collection, if rows are written.
    pub out: Option<Out>,
    /// What its steps need from other collections.
    pub others: Vec<Foreign>,
}

/// A stage as `explain` shows it.
pub struct ShownStage {
    /// The number of its step; `usize::MAX` if it has none.
    pub step: usize,
    /// The stage, in canonical form.
    pub stage: DocBuf,
    /// The place among `Aggregation::others` of what it shows the reading of.
    pub looked_up: Option<usize>,
}

impl Aggregation {
    /// Parses the stages of a pipeline, an array of objects. `time_field` is that of the collection; empty if no field
    /// of the rows is always a date, as for bucket documents.
    ///
    /// Errors: `TypeMismatch` if a stage is not an object; 40323 if it does not have exactly one field; 40324 if it is
    /// unknown; 7183900 if it unpacks measurements; those of the stages.
    pub fn parse(pipeline: Doc<'_>, globals: &Globals, time_field: &str) -> Result<Aggregation> {
        let mut parser = PipelineParser::new(globals);
        parser.begin_find();
        parser.stages(pipeline)?;
        parser.finish(time_field)
    }

    /// The top-level fields of a collection's rows that it reads.
    pub(super) fn fields(&self) -> FieldSet {
        let mut fields = self.find.projection.needed_fields(&self.demand.fields);
        fields.add_all(&self.find.filter.fields());
        SortSpec::parts_of(self.find.sort.as_ref()).iter().for_each(|part| fields.add(part.path.first()));
        fields
    }

    /// A find, and no stages after it.
    pub fn of_find(find: FindCommand) -> Aggregation {
        let (demand, steps, others) = (Demand::default(), Vec::new(), Vec::new());
        Aggregation { find, demand, steps, source: None, out: None, others }
    }

    /// The stages after the find (all stages, if it does not begin with a find). The last stage shown for a step is the
    /// one whose rows the step returns.
    pub fn shown(&self) -> Vec<ShownStage> {
        let mut shown = Vec::new();
        let of = |step: usize, stage: DocBuf| ShownStage { step, stage, looked_up: None };
        if let Some(source) = &self.source {
            let mut stage = DocWriter::new();
            source.write(&mut stage);
            shown.push(of(usize::MAX, stage.finish()));
            shown.extend(self.find.shown().into_iter().map(|stage| of(usize::MAX, stage)));
        }
        for (at, (step, stage)) in self.steps.iter().enumerate() {
            match step {
                Step::Find(find) => shown.extend(find.shown().into_iter().map(|stage| of(at, stage))),
                Step::Other(spec) => {
                    shown.push(ShownStage { looked_up: spec.looked_up(), ..of(at, stage.clone()) });
                }
                _ => shown.push(of(at, stage.clone())),
            }
        }
        shown.extend(self.out.iter().map(|out| of(usize::MAX, out.shown.clone())));
        shown
    }

    /// The documents that it produces itself; `None` if there are none, or if they depend on a collection.
    ///
    /// Errors: 5858203 and 40228 if they are not a list of objects, and those of expressions.
    pub fn own_rows(&self) -> Result<Option<Block>> {
        match &self.source {
            Some(DocumentSource::Documents(list)) => documents(list).map(Some),
            _ => Ok(None),
        }
    }

    /// The first find, and the steps after it, ready to run; `None` if there are none. `others` are the rows that they
    /// need from other collections.
    pub fn into_parts(self, others: &Others) -> (Query, Option<Pipeline>) {
        let pipeline = Pipeline::new(&mut self.steps.iter().map(|(step, _)| step), others);
        (Query { find: self.find, demand: self.demand }, Some(pipeline).filter(|_| !self.steps.is_empty()))
    }

    /// The first find, and the demand of the steps on its rows.
    pub fn into_query(self) -> Query {
        Query { find: self.find, demand: self.demand }
    }

    /// Runs the pipeline over the documents of its source.
    ///
    /// Errors: those of the stages.
    pub fn run_over(&self, rows: Block, others: &Others) -> Result<Block> {
        self.run(FindCommand::clone(&self.find), rows, others)
    }

    /// The same with another first find.
    ///
    /// Errors: those of the stages.
    pub(super) fn run(&self, find: FindCommand, rows: Block, others: &Others) -> Result<Block> {
        let sorts = self.demand.sorts(&find);
        let sort = find.sort.filter(|_| sorts);
        let find = Step::Find(Box::new(FindCommand { sort, ..find }));
        let steps = self.steps.iter().map(|(step, _)| step);
        let mut pipeline = Pipeline::new(&mut std::iter::once(&find).chain(steps), others);
        if rows.rows() > 0 {
            // Whether it has enough does not matter, because no more rows come.
            let _ = pipeline.push(rows)?;
        }
        pipeline.finish()?;
        Ok(pipeline.take(usize::MAX, usize::MAX))
    }
}

impl Foreign {
    /// The pipeline over a collection with this time field.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn parse(&self, time_field: &str) -> Result<Aggregation> {
        let mut parser = PipelineParser::new(&self.globals);
        parser.begin_find();
        parser.stages(self.stages.view())?;
        if !self.filter.is_trivial() {
            let find = parser.find(FindPart::Filter);
            find.filter = Filter::and([std::mem::take(&mut find.filter), self.filter.clone()]);
        }
        let mut parsed = parser.finish_for(time_field, &self.fields)?;
        parsed.find.collation = self.globals.collation().clone();
        Ok(parsed)
    }
}

impl PipelineParser<'_> {
    /// Finishes the pipeline of the added stages; `time_field` as in `Aggregation::parse`.
    ///
    /// Errors: 7183900.
    pub fn finish(self, time_field: &str) -> Result<Aggregation> {
        self.finish_for(time_field, &FieldSet::All)
    }

    /// The same if nobody reads other fields of the result than these.
    ///
    /// Errors: as `finish`.
    fn finish_for(self, time_field: &str, fields: &FieldSet) -> Result<Aggregation> {
        let PipelineParser { mut steps, source, out, mut others, .. } = self;
        optimise(&mut steps, &mut others);
        narrow_appended(&steps, &mut others, fields);
        leave_out_ids(&mut steps, fields);
        let mut steps = steps.into_iter();
        let Some((Step::Find(find), _)) = steps.next() else {
            return Err(Error::internal("A pipeline without a find"));
        };
        let mut steps: Vec<ShownStep> = steps.listed();
        check_unpacking(&mut steps, !time_field.is_empty())?;
        let mut demand = Demand::default();
        if let (Some((step, shown)), true, None) = (steps.first_mut(), find.projection.is_all(), &source)
            && let Some(group) = step.group()
        {
            demand = demand_of(group, &find, shown, time_field);
            demand.newest = newest_bins(&find, &demand, &steps, time_field);
            // Behind a sort, groups may be complete before all rows have come.
            demand.waits_for_all = find.sort.is_none();
        } else if source.is_none() {
            demand.fields = read_through(&steps, fields.clone());
            demand.is_narrowed = find.projection.is_all() && !demand.fields.is_all() && hides_order(&steps);
            demand.waits_for_all = wait_for_all(&steps, false);
        }
        Ok(Aggregation { find: *find, demand, steps, source, out, others })
    }
}

/// The demand of a group on the find before it; adapts the group to it.
fn demand_of(group: &mut GroupSpec, find: &FindCommand, shown: &mut DocBuf, time_field: &str) -> Demand {
    let takes_all = find.skip == 0 && find.limit.is_none();
    let mut demand = Demand::default();
    match &find.sort {
        _ if !takes_all || time_field.is_empty() => {}
        Some(sort) => demand.rows_per_group = group.rows_needed_after(sort, time_field),
        None => {
            group.take_first_or_last(time_field);
            demand.rows_per_group = group.rows_needed(time_field);
        }
    }
    if let Some([by_time, more @ ..]) = find.sort.as_ref().map(SortSpec::parts)
        && by_time.path.as_str() == time_field
    {
        if more.is_empty() && takes_all && group.fields.iter().all(Accumulation::takes_any_order) {
            group.unsorted_by = Some((time_field.into(), by_time.ascending));
            demand.takes_any_order = true;
            demand.rows_per_group = group.rows_needed(time_field);
        } else {
            show_streaming(&group.stream(time_field), shown);
        }
    }
    // Fields that the group does not read are not decoded.
    demand.fields = group.needed_fields();
    demand.is_narrowed = !demand.fields.is_all();
    demand
}

/// The bins of time that matter to the group in front, if only its newest groups are returned.
fn newest_bins(find: &FindCommand, demand: &Demand, steps: &[ShownStep], time_field: &str) -> Option<NewestBins> {
    let [(Step::Group(group), _), (Step::Find(behind), _), ..] = steps else { return None };
    let takes_all = find.skip == 0 && find.limit.is_none() && !demand.sorts(find);
    let sort = behind.sort.as_ref().filter(|_| takes_all && behind.filter.is_trivial())?;
    let count = usize::try_from(behind.limit?.saturating_add(behind.skip)).ok()?;
    let [by_id] = sort.parts() else { return None };
    if by_id.ascending || !(1..=THRESHOLD_ROWS_MAX).contains(&count) {
        return None;
    }
    group.newest_bins(by_id.path.as_str(), count, time_field)
}

/// Shows a streaming `$group`: its groups are returned as soon as these fields of their ids, if any, change.
fn show_streaming(in_order: &[&str], shown: &mut DocBuf) {
    let Some((_, argument)) = shown.view().iter().next().filter(|_| !in_order.is_empty()) else { return };
    let mut stage = DocWriter::new();
    stage.begin_doc("$_internalStreamingGroup");
    argument.as_doc().unwrap_or(Doc::EMPTY).iter().for_each(|(name, value)| {
        stage.value(name, value);
    });
    stage.begin_array("$monotonicIdFields");
    for (place, name) in in_order.iter().enumerate() {
        stage.string(&place.to_string(), name);
    }
    stage.end().end();
    *shown = stage.finish();
}
