//! A pipeline, parsed. What stands together like the parts of a `find` becomes one: filter, sort, skip, limit, projection, in this
//! order. The first of these finds reads the collection, so that all of it is pushed down to buckets; the others run over rows.

use std::vec::IntoIter;

use super::Stage;
use super::accumulator::Accumulation;
use super::bucket::BucketAuto;
use super::densify::{Densify, DensifySpec};
use super::facet::{Branches, Facet};
use super::foreign::{Foreign, Split, foreign_of};
use super::granularity::Series;
use super::graph_lookup::{GraphLookup, GraphSpec};
use super::group::{Group, GroupSpec};
use super::lookup::{Lookup, LookupSpec};
use super::near::{NearSpec, Nearest};
use super::out::Out;
use super::parse::Parser;
use super::pipeline::Pipeline;
use super::reads::reads;
use super::redact::Redact;
use super::reshape::{ReplaceRoot, Unwind, UnwindSpec};
use super::sample::Sample;
use super::source::{DocumentSource, documents};
use super::union::Union;
use super::unpack::{Unpack, settle};
use super::unpack_spec::UnpackSpec;
use super::window::{WindowSpec, Windows};
use crate::block::Block;
use crate::bucket::WEIGHT;
use crate::error::{Error, Result};
use crate::query::exec::Exec;
use crate::query::expr::{BoundExpr, Globals};
use crate::query::find_options::FindOptions;
use crate::query::plan::{CollectionFacts, Plan};
use crate::query::projection::{Needed, Projection};
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocBuf, DocWriter};

/// A pipeline: what is found first, and what becomes of it.
#[derive(Clone)]
pub struct Aggregation {
    /// The find in front.
    pub find: FindOptions,
    steps: Vec<Shown>,
    /// True where the projection of the find only says what the first step reads.
    is_narrowed: bool,
    /// The stage in front that gives documents of its own, if there is one.
    pub source: Option<DocumentSource>,
    /// Where its rows go, if they are written.
    pub out: Option<Out>,
}

/// A step, and the stage that `explain` shows for it; finds show themselves.
pub(super) type Shown = (Step, DocBuf);

/// A step behind the first find.
#[derive(Clone)]
pub(super) enum Step {
    Find(Box<FindOptions>),
    Group(GroupSpec),
    Unwind(UnwindSpec),
    ReplaceRoot(BoundExpr),
    Windows(WindowSpec),
    BucketAuto(GroupSpec, usize, Option<Series>),
    Densify(DensifySpec),
    Facet(Branches<Vec<Shown>>),
    Sample(usize, BoundExpr),
    Lookup(Box<LookupSpec>),
    Near(Box<NearSpec>),
    Union(Box<Split>),
    Graph(Box<GraphSpec>),
    Redact(BoundExpr),
    Unpack(Box<UnpackSpec>),
}

impl Aggregation {
    /// Parses the stages of a pipeline, an array of objects. `time_field` is that of the collection; empty where rows have none that is always
    /// a date, as bucket documents.
    ///
    /// Errors: `TypeMismatch` where a stage is no object, 40323 for one without exactly one field, 40324 for an unknown one, 7183900 for one
    /// that unpacks measurements, and those of the stages.
    pub fn parse(pipeline: Doc<'_>, globals: &Globals, time_field: &str) -> Result<Aggregation> {
        Aggregation::parse_with(Parser::new(globals, false), pipeline, time_field)
    }

    /// The same of stages that run for one row of another pipeline, whose values are among the variables; what they read of other
    /// collections is to be the same for all rows.
    ///
    /// Errors: as `parse`.
    pub(super) fn parse_for_row(pipeline: Doc<'_>, globals: &Globals) -> Result<Aggregation> {
        Aggregation::parse_with(Parser::new(globals, true), pipeline, "")
    }

    fn parse_with(mut parser: Parser<'_>, pipeline: Doc<'_>, time_field: &str) -> Result<Aggregation> {
        parser.begin_find();
        let source = parser.stages(pipeline)?;
        let out = parser.out.take();
        let mut steps = parser.steps.into_iter();
        let Some((Step::Find(mut find), _)) = steps.next() else {
            return Err(Error::internal("A pipeline without a find"));
        };
        let mut steps: Vec<Shown> = steps.collect();
        settle(&mut steps, !time_field.is_empty())?;
        let mut is_narrowed = false;
        if let (Some((Step::Group(group), shown)), true, None) = (steps.first_mut(), find.projection.is_all(), &source)
        {
            is_narrowed = serve(&mut find, group, shown, time_field);
        } else if source.is_none() {
            find.reads = reads(&steps);
        }
        Ok(Aggregation { find: *find, steps, is_narrowed, source, out })
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

    /// True where the projection of the find only says what the first step reads.
    pub fn is_narrowed(&self) -> bool {
        self.is_narrowed
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

    /// What its steps need of other collections.
    pub fn foreign(&self) -> Vec<Foreign> {
        let mut needed = Vec::new();
        foreign_of(&self.steps, &mut needed);
        needed
    }

    /// The find in front, and the steps behind it, ready to run; `None` where there are none. `others` are the rows of what they need.
    pub fn into_parts(self, others: Vec<Block>) -> (FindOptions, Option<Pipeline>) {
        let is_empty = self.steps.is_empty();
        (self.find, Some(pipeline(self.steps, &mut others.into_iter())).filter(|_| !is_empty))
    }

    /// What becomes of documents that its source has given.
    ///
    /// Errors: those of the stages.
    pub fn run_over(mut self, rows: Block, others: Vec<Block>) -> Result<Block> {
        let find = Step::Find(Box::new(std::mem::take(&mut self.find)));
        self.steps.insert(0, (find, DocWriter::new().finish()));
        let (_, pipeline) = self.into_parts(others);
        let Some(mut pipeline) = pipeline else { return Ok(rows) };
        if rows.rows() > 0 {
            // Whether it has enough does not matter: there is no more.
            let _ = pipeline.push(rows)?;
        }
        pipeline.finish()?;
        Ok(pipeline.take(usize::MAX, usize::MAX))
    }
}

/// Has a find give no more than the group behind it needs, and the group take what it gives. True where the projection of the find only says
/// what the group reads.
fn serve(find: &mut FindOptions, group: &mut GroupSpec, shown: &mut DocBuf, time_field: &str) -> bool {
    let takes_all = find.skip == 0 && find.limit.is_none();
    match &find.sort {
        _ if !takes_all || time_field.is_empty() => {}
        Some(sort) => find.edge = group.edge_behind(sort, time_field),
        None => {
            group.take_edges(time_field);
            find.edge = group.edge(time_field);
        }
    }
    if let Some([by_time, more @ ..]) = find.sort.as_ref().map(SortSpec::parts)
        && by_time.path.as_str() == time_field
    {
        if more.is_empty() && takes_all && group.fields.iter().all(Accumulation::takes_any_order) {
            group.unsorted_by = Some((time_field.into(), by_time.ascending));
            find.sort = None;
            find.edge = group.edge(time_field);
        } else {
            show_streaming(&group.stream(time_field), shown);
        }
    }
    // What the group does not read is not decoded.
    let mut needed = group.needed_fields();
    if find.edge.is_some() && group.counts() {
        needed.add_path(WEIGHT);
    }
    let Needed::Roots(roots) = needed else { return false };
    find.projection = Projection::of_roots(&roots);
    true
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

fn pipeline(steps: Vec<Shown>, others: &mut IntoIter<Block>) -> Pipeline {
    Pipeline::new(steps.into_iter().map(|(step, _)| step.start(others)).collect())
}

impl Step {
    /// The stage at work.
    fn start(self, others: &mut IntoIter<Block>) -> Box<dyn Stage> {
        match self {
            Step::Find(find) => {
                // Rows, of which nobody knows where they come from.
                let facts = CollectionFacts { time_field: "", meta_field: None };
                Box::new(Exec::new(Plan::new(*find, &facts)))
            }
            Step::Group(spec) => Box::new(Group::new(spec)),
            Step::Unwind(spec) => Box::new(Unwind::new(spec)),
            Step::ReplaceRoot(expr) => Box::new(ReplaceRoot::new(expr)),
            Step::BucketAuto(spec, buckets, series) => Box::new(BucketAuto::new(spec, buckets, series)),
            Step::Densify(spec) => Box::new(Densify::new(spec)),
            Step::Facet(branches) => {
                let branch = |(name, steps): (Box<str>, Vec<Shown>)| (name, pipeline(steps, others));
                Box::new(Facet::new(branches.into_iter().map(branch).collect()))
            }
            Step::Sample(size, chance) => Box::new(Sample::new(size, chance)),
            Step::Lookup(spec) => {
                let first = others.next().unwrap_or_default();
                let nested = others.take(spec.split.nested.len()).collect();
                Box::new(Lookup::new(*spec, first, nested))
            }
            Step::Graph(spec) => {
                let first = others.next().unwrap_or_default();
                let nested = others.take(spec.split.nested.len()).collect();
                Box::new(GraphLookup::new(*spec, first, nested))
            }
            Step::Near(spec) => Box::new(Nearest::new(*spec)),
            Step::Redact(expr) => Box::new(Redact::new(expr)),
            Step::Union(split) => {
                let first = others.next().unwrap_or_default();
                let nested = others.take(split.nested.len()).collect();
                Box::new(Union::new(*split, first, nested))
            }
            Step::Unpack(spec) => Box::new(Unpack::new(*spec)),
            Step::Windows(spec) => Box::new(Windows::new(spec)),
        }
    }
}
