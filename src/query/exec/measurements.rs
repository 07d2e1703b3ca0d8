//! Completes and filters the decoded rows of one bucket.

use super::ends::several;
use super::sink::Counters;
use crate::block::{Bitmap, Block, Column, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::filter::Filter;
use crate::query::plan::Plan;
use crate::value::Value;

/// Adds metadata to rows and selects those that match.
#[derive(Default)]
pub(super) struct Measurements {
    time_field: Box<str>,
    /// The meta field, if it is read.
    meta_field: Option<Box<str>>,
    residual: Filter,
    pub counters: Counters,
}

impl Measurements {
    pub fn new(plan: &Plan) -> Measurements {
        let meta_field = plan.meta_field.clone().filter(|_| plan.wants_meta);
        Measurements {
            time_field: plan.time_field.clone(),
            meta_field,
            residual: plan.residual.clone(),
            counters: Counters::default(),
        }
    }

    /// The rows with their metadata: the time first, then the metadata, then the other fields.
    pub fn complete(&self, rows: Block, meta: Option<Value<'_>>) -> Block {
        let mut rows = rows;
        let meta = self.meta_field.as_deref().zip(meta);
        let meta = meta.map(|(name, value)| (name, Column::constant(value, rows.rows())));
        rows.begin_with(&self.time_field, meta);
        rows
    }

    /// The rows that match; `None` if all do.
    ///
    /// Errors: those of expressions.
    pub fn select(&mut self, rows: &Block, all_match: bool) -> Result<Option<Bitmap>> {
        let selected = if all_match || self.residual.is_trivial() { None } else { Some(self.residual.select(rows)?) };
        let matched = selected.as_ref().map_or(rows.rows(), Bitmap::count);
        self.counters.measurements_examined += rows.rows() as u64;
        self.counters.measurements_matched += matched as u64;
        Ok(selected.filter(|_| matched < rows.rows()))
    }

    /// Of the matching rows (all if `selected` is `None`), the one with the first or the last time. Of several rows
    /// with the first time it is the first, of several with the last time the last. With a `count`, that many rows and
    /// all that tie with one of them.
    pub fn first_or_last(
        &self,
        rows: &Block,
        selected: Option<Vec<u32>>,
        is_last: bool,
        count: usize,
    ) -> Option<Vec<u32>> {
        let times = rows.column(&self.time_field).map(Column::data);
        let Some(ColumnData::Date(times)) = times else { return selected };
        let selected = selected.unwrap_or_else(|| (0..).take(rows.rows()).collect());
        let time = |row: &&u32| times.get(**row as usize);
        if count > 1 {
            return Some(several(times, &selected, is_last, count));
        }
        let found = if is_last { selected.iter().max_by_key(time) } else { selected.iter().min_by_key(time) };
        Some(found.copied().into_iter().listed())
    }
}
