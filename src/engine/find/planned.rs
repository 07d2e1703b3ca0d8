//! What a query takes from its collection, and how it goes.

use std::rc::Rc;

use crate::engine::collections::collection::Collection;
use crate::engine::read::scan::Scan;
use crate::error::{Error, Result};
use crate::query::indexes::check_hint;
use crate::query::{Aggregation, Counters, FindOptions, ReadAccess, ReadPlan};
use crate::value::Collation;

/// What a command takes from its collection.
#[derive(Clone, Copy)]
pub struct Defaults<'a> {
    /// By which strings are compared where the command does not say.
    pub collation: &'a Collation,
    /// Which field of each row is a date; empty if none is known to be.
    pub time_field: &'a str,
}

impl<'a> Defaults<'a> {
    /// Where there is no collection.
    pub fn of_nothing(collation: &'a Collation) -> Defaults<'a> {
        Defaults { collation, time_field: "" }
    }
}

/// The options of a query over a collection with these defaults: another one may be there in the end than the one that memory knew.
pub type Options<'a> = dyn Fn(Defaults<'_>) -> Result<FindOptions> + 'a;

/// A pipeline over a collection with these defaults.
pub type Parse<'a> = dyn Fn(Defaults<'_>) -> Result<Aggregation> + 'a;

/// How a query goes.
pub struct Planned {
    /// What it is over.
    pub collection: Rc<Collection>,
    /// The plan.
    pub plan: ReadPlan,
    /// Index entries that were looked at.
    pub entries: usize,
    /// Stored buckets that were read.
    pub examined: usize,
    /// What was done with them.
    pub counters: Counters,
    /// How many rows came out of each step of a pipeline.
    pub given: Vec<u64>,
}

impl Planned {
    /// What has become of a scan.
    pub(in crate::engine) fn of(scan: &Scan, plan: ReadPlan, entries: usize, counters: Counters) -> Planned {
        Planned {
            collection: Rc::clone(scan.collection()),
            plan,
            entries,
            examined: scan.examined(),
            counters,
            given: Vec::new(),
        }
    }
}

impl Collection {
    /// What commands over its measurements, or over its bucket documents, take from it.
    pub fn defaults(&self, raw: bool) -> Defaults<'_> {
        Defaults { collation: self.collation(), time_field: if raw { "" } else { self.time_field() } }
    }

    /// The plan of a query over its measurements, or its bucket documents where `raw`, with what is known about them now.
    pub(in crate::engine) fn read_plan(&self, options: FindOptions, raw: bool) -> ReadPlan {
        if raw {
            return ReadPlan::over_buckets(options);
        }
        let entry = self.entry();
        ReadPlan::new(options, &entry.options.timeseries, self.extended_range.get(), &entry.indexes)
    }

    /// Refuses a hint at an index that is not there, or that the plan could not take, as far as is known: what begins a scan learns what
    /// others have made and hidden.
    pub(in crate::engine) fn check_hint(&self, raw: bool, options: &FindOptions, plan: &ReadPlan) -> Result<()> {
        let Some(hint) = &options.hint else { return Ok(()) };
        let depends = check_hint(hint, raw, &self.entry().indexes)?;
        if depends && !matches!(plan.access, ReadAccess::Index(_)) {
            return Err(Error::bad_value("The hint provided names an index that this query cannot use"));
        }
        Ok(())
    }
}
