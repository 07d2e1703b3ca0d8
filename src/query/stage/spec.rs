//! Stage specifications: parsed, but not running.

use std::rc::Rc;

use super::group::{Group, GroupSpec};
use super::model::{Foreign, Others};
use super::running::Stage;
use super::unpack::{Unpack, UnpackSpec, refused};
use crate::error::{ErrorCode, Result};
use crate::query::exec::Exec;
use crate::query::expr::BoundExpr;
use crate::query::filter::Filter;
use crate::query::plan::{CollectionFacts, Demand, FindCommand, Origin, Plan, Query};
use crate::query::sort::SortSpec;
use crate::value::{DocBuf, FieldSet};

/// The specification of a stage. Its parser has already recorded what it needs from other collections (`PipelineParser::split`)
/// and what `explain` shows (`PipelineParser::push`).
pub(super) trait Spec {
    /// The top-level fields that it reads of its rows, given that the fields in `behind` of its result are read.
    fn reads(&self, _behind: FieldSet) -> FieldSet {
        FieldSet::All
    }

    /// Whether filters on fields that come through unchanged may run in front of it, and if so, whether it drops rows.
    fn passes_filters(&self) -> Option<bool> {
        None
    }

    /// Where a top-level field of its result comes from.
    fn origin(&self, _name: &str) -> Origin<'_> {
        Origin::Unknown
    }

    /// Its rows in the others of the pipeline, if its result is the rows that it takes, and then those unchanged.
    fn appended(&self) -> Option<usize> {
        None
    }

    /// True if its result has rows as they came, inside of other rows.
    fn shows_rows(&self) -> bool {
        false
    }

    /// True if it returns nothing before all rows have come, so that it never has enough of them.
    fn waits_for_all(&self) -> bool {
        false
    }

    /// Learns of a filter behind it, which may drop rows of its result: it need not make these.
    fn see_filter(&mut self, _filter: &Filter) {}

    /// What `explain` shows with it, if that is how its rows among the others of the pipeline were read: their place.
    fn looked_up(&self) -> Option<usize> {
        None
    }

    /// The running stage, possibly several in a row; `others` are the rows that the pipeline needs from other
    /// collections.
    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage>;
}

/// A step after the first find. Some are named, because other code must recognise them.
pub(super) enum Step {
    /// Consecutive stages that form a `find`.
    Find(Box<FindCommand>),
    /// A `$group`, whose preceding find is limited to what it needs.
    Group(Rc<GroupSpec>),
    /// A stage that unpacks buckets; at most one per pipeline.
    Unpack(Rc<UnpackSpec>),
    Other(Rc<dyn Spec>),
}

/// A step, and the stage that `explain` shows for it. Finds show themselves.
pub(super) type ShownStep = (Step, DocBuf);

impl Step {
    /// As `Spec::reads`.
    fn reads(&self, behind: FieldSet) -> FieldSet {
        match self {
            // A find without parts is a barrier: steps before it must not depend on those after it.
            Step::Find(find) if find.is_empty() => FieldSet::All,
            Step::Find(find) => {
                let demand = Demand { fields: behind, ..Demand::default() };
                let query = Query { find: FindCommand::clone(find), demand };
                Plan::new(query, &CollectionFacts { time_field: "", meta_field: None }).decode
            }
            Step::Group(group) => group.needed_fields(),
            Step::Unpack(_) => FieldSet::All,
            Step::Other(spec) => spec.reads(behind),
        }
    }

    /// The specification of a group, to be changed. Nothing shares it before the group starts.
    pub fn group(&mut self) -> Option<&mut GroupSpec> {
        if let Step::Group(group) = self { Rc::get_mut(group) } else { None }
    }

    /// As `Spec::start`.
    pub fn start(&self, others: &Others) -> Box<dyn Stage> {
        match self {
            Step::Find(find) => {
                // Rows of unknown origin.
                let facts = CollectionFacts { time_field: "", meta_field: None };
                Box::new(Exec::new(&Plan::new(FindCommand::clone(find).into(), &facts)))
            }
            Step::Group(spec) => Box::new(Group::new(Rc::clone(spec))),
            Step::Unpack(spec) => Box::new(Unpack::new(Rc::clone(spec))),
            Step::Other(spec) => Rc::clone(spec).start(others),
        }
    }
}

/// The top-level fields that are read by the steps and by the consumer of their result, who reads everything. Other
/// columns are not decoded.
pub(super) fn reads(steps: &[ShownStep]) -> FieldSet {
    read_through(steps, FieldSet::All)
}

/// The same if the consumer reads the fields in `behind`.
pub(super) fn read_through(steps: &[ShownStep], behind: FieldSet) -> FieldSet {
    steps.iter().rev().fold(behind, |behind, (step, _)| step.reads(behind))
}

/// True if the order of the fields that the steps read is not seen behind them, because a `$group` takes these by their names.
pub(super) fn hides_order(steps: &[ShownStep]) -> bool {
    let shows_none = |step: &Step| match step {
        Step::Find(_) => true,
        Step::Other(spec) => !spec.shows_rows(),
        Step::Group(_) | Step::Unpack(_) => false,
    };
    let behind = steps.iter().map(|(step, _)| step).find(|step| !shows_none(step));
    matches!(behind, Some(Step::Group(_)))
}

/// True if the steps never have enough before all rows have come. `at_end`: whether a consumer of rows as they come does not, either.
pub(super) fn wait_for_all(steps: &[ShownStep], at_end: bool) -> bool {
    let waits = |(step, _): &ShownStep| match step {
        Step::Group(_) => Some(true),
        Step::Find(find) if find.sort.is_some() => Some(true),
        Step::Find(find) => find.limit.map(|_| false),
        Step::Unpack(_) => None,
        Step::Other(spec) => spec.waits_for_all().then_some(true),
    };
    steps.iter().find_map(waits).unwrap_or(at_end)
}

/// Tells groups whether later steps read their ids, and whether as columns; `behind` as in `read_through`.
pub(super) fn leave_out_ids(steps: &mut [ShownStep], behind: &FieldSet) {
    for at in 0..steps.len() {
        if let Some(([.., (step, _)], later)) = steps.split_at_mut_checked(at + 1)
            && let Some(group) = step.group()
        {
            group.shows_id = read_through(later, behind.clone()).contains("_id");
            // A sort by whole ids compares them as values.
            group.shows_parts = match later.first() {
                Some((Step::Find(find), _)) => {
                    let mut parts = find.sort.iter().flat_map(SortSpec::parts);
                    let sorts_ids = parts.any(|part| part.path.as_str() == "_id");
                    !find.projection.is_all() || !find.filter.is_trivial() || !sorts_ids
                }
                _ => true,
            };
        }
    }
}

/// Tells the pipelines whose rows are appended which fields the next step reads; `behind` as in `read_through`.
pub(super) fn narrow_appended(steps: &[ShownStep], others: &mut [Foreign], behind: &FieldSet) {
    for (at, (step, _)) in steps.iter().enumerate() {
        if let Step::Other(spec) = step
            && let Some(other) = spec.appended().and_then(|place| others.get_mut(place))
        {
            other.fields = read_through(steps.get(at + 1..).unwrap_or_default(), behind.clone());
        }
    }
}

/// Adds the fields that expressions read.
pub(super) fn read_by<'a>(mut needed: FieldSet, exprs: impl IntoIterator<Item = &'a BoundExpr>) -> FieldSet {
    exprs.into_iter().for_each(|expr| needed.add_all(expr.fields()));
    needed
}

/// Checks that at most one stage unpacks buckets (none if `has_measurements`), and tells it which fields the next step
/// reads.
///
/// Errors: 7183900.
pub(super) fn check_unpacking(steps: &mut [ShownStep], has_measurements: bool) -> Result<()> {
    let mut is_done = has_measurements;
    for at in 0..steps.len() {
        let Some([(Step::Unpack(spec), _), behind @ ..]) = steps.get_mut(at..) else { continue };
        if is_done {
            let message = "can be used only once in a pipeline, and only over bucket documents";
            return Err(refused("$_internalUnpackBucket", ErrorCode::Location7183900, message));
        }
        is_done = true;
        if let Some(spec) = Rc::get_mut(spec) {
            spec.narrow(reads(behind));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::query::Aggregation;
    use crate::query::filter::samples::globals;
    use crate::value::Doc;
    use bson::{Bson, RawDocumentBuf, bson, doc};

    fn waits_for_all(stages: Bson) -> bool {
        let pipeline = RawDocumentBuf::try_from(&doc! { "pipeline": stages }).unwrap();
        let pipeline = Doc::parse(pipeline.as_bytes()).unwrap().get("pipeline").unwrap().as_array().unwrap();
        Aggregation::parse(pipeline, &globals(), "at").unwrap().into_query().demand.waits_for_all
    }

    #[test]
    fn stages_wait_for_all_rows_if_one_of_them_does_and_no_limit_comes_before_it() {
        let unwind = bson!({ "$unwind": "$a" });
        let group =
            bson!({ "$group": { "_id": "$b", "top": { "$top": { "sortBy": { "at": -1 }, "output": "$$ROOT" } } } });
        let (sort, limit) = (bson!({ "$sort": { "a": 1 } }), bson!({ "$limit": 3 }));
        let facet = |stages: Bson| bson!({ "$facet": { "few": [limit.clone()], "other": stages } });
        for waiting in [
            bson!([group.clone(), limit.clone()]),
            bson!([unwind.clone(), group.clone()]),
            bson!([unwind.clone(), sort.clone(), limit.clone()]),
            bson!([facet(bson!([{ "$count": "n" }]))]),
            bson!([facet(bson!([unwind.clone()]))]),
        ] {
            assert!(waits_for_all(waiting.clone()), "{waiting}");
        }
        for other in [
            bson!([unwind.clone()]),
            bson!([unwind.clone(), limit.clone(), group.clone()]),
            bson!([{ "$sort": { "at": 1 } }, group]),
            bson!([facet(bson!([unwind, limit.clone()]))]),
        ] {
            assert!(!waits_for_all(other.clone()), "{other}");
        }
    }
}
