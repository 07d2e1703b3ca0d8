//! What a query takes from its collection, and its plan with statistics.

use std::rc::Rc;

use crate::engine::collections::collection::Collection;
use crate::engine::read::scan::Scan;
use crate::error::{Error, Result};
use crate::query::{Aggregation, Counters, FindCommand, Query, ReadAccess, ReadPlan, check_hint};
use crate::value::Collation;

/// What a command inherits from its collection.
#[derive(Clone, Copy)]
pub struct Defaults<'a> {
    /// How strings compare if the command does not say.
    pub collation: &'a Collation,
    /// The field that is a date in every row; empty if none is known.
    pub time_field: &'a str,
}

impl<'a> Defaults<'a> {
    /// Defaults without a collection.
    pub fn of_nothing(collation: &'a Collation) -> Defaults<'a> {
        Defaults { collation, time_field: "" }
    }
}

/// Parses the options of a query, given the defaults of its collection. It may be called again, because the collection
/// in storage may not be the one in memory.
pub type ParseFind<'a> = dyn Fn(Defaults<'_>) -> Result<Query> + 'a;

/// Parses a pipeline, given the defaults of its collection.
pub type ParsePipeline<'a> = dyn Fn(Defaults<'_>) -> Result<Aggregation> + 'a;

/// A plan with statistics.
pub struct PlannedQuery {
    /// The collection.
    pub collection: Rc<Collection>,
    /// The plan.
    pub plan: ReadPlan,
    /// Number of index entries read.
    pub entries: usize,
    /// Number of stored buckets read.
    pub examined: usize,
    /// Counters of the execution.
    pub counters: Counters,
    /// Number of rows from each step of a pipeline.
    pub rows_returned: Vec<u64>,
}

impl PlannedQuery {
    /// The plan of a finished scan.
    pub(in crate::engine) fn of(scan: &Scan, plan: ReadPlan, entries: usize, counters: Counters) -> PlannedQuery {
        PlannedQuery {
            collection: Rc::clone(scan.collection()),
            plan,
            entries: entries + scan.entries_listed(),
            examined: scan.examined(),
            counters,
            rows_returned: Vec::new(),
        }
    }
}

impl Collection {
    /// What commands inherit from this collection; `raw` for its bucket documents.
    pub fn defaults(&self, raw: bool) -> Defaults<'_> {
        Defaults { collation: self.collation(), time_field: if raw { "" } else { self.time_field() } }
    }

    /// The plan of a query over its measurements, or over its bucket documents if `raw`, from what is known now.
    pub(in crate::engine) fn read_plan(&self, query: Query, raw: bool) -> ReadPlan {
        if raw {
            return ReadPlan::over_buckets(query, &self.entry().indexes);
        }
        let entry = self.entry();
        ReadPlan::new(query, &entry.options.timeseries, self.known.extended_range.get(), &entry.indexes)
    }

    /// Refuses a hint that names no index, or one that the plan cannot use, as far as this context knows. A scan learns
    /// of indexes that others have created and hidden.
    pub(in crate::engine) fn check_hint(&self, raw: bool, find: &FindCommand, plan: &ReadPlan) -> Result<()> {
        let Some(hint) = &find.hint else { return Ok(()) };
        let depends = check_hint(hint, raw, &self.entry().indexes)?;
        if depends && !matches!(plan.access, ReadAccess::Index(_)) {
            return Err(Error::bad_value("The hint names an index that this query cannot use"));
        }
        Ok(())
    }
}
