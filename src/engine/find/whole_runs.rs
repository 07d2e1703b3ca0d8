//! Queries that return all fields: runs give whole rows. If few of their buckets have a row that matches, these are unpacked alone.

// Loaded later.

use std::cell::RefCell;
use std::ops::Range;

use super::find_cursor::FindCursor;
use super::runs::{Among, is_known, named_rows};
use crate::block::Block;
use crate::bucket::{joined_rows, note_rows};
use crate::engine::store::bucket_cache::BucketCache;
use crate::engine::store::bucket_runs::BucketRun;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::Sink;
use crate::value::FieldSet;

/// Buckets are unpacked alone if there are so many times as many.
const MATCHING_SHARE: usize = 2;

impl FindCursor {
    /// The rows of a run with all their fields: at least those of the buckets that have rows which match. None if they cannot be made.
    ///
    /// Errors: those of reads.
    pub(super) fn whole_rows<'a>(
        &mut self,
        run: &'a BucketRun,
        cache: &RefCell<BucketCache>,
    ) -> Result<(Vec<Block>, Among<'a>)> {
        let (fields, parts) = (self.joined_fields(), [(&run.kept, run.rows)]);
        let find = &self.plan.plan;
        if !self.reads_all() && find.decode_first.is_some() && !find.residual.is_random() {
            let known = joined_rows(&parts, &fields, &mut || Ok(Vec::new()))?;
            if !known.is_empty() {
                return Ok((known, Among::Matching(&run.ends)));
            }
            let Some(matching) = self.matching_buckets(run, cache) else { return Ok((Vec::new(), Among::All(0))) };
            let unpacked = run.unpacked.get() + matching.len();
            if matching.len() * MATCHING_SHARE < run.buckets {
                if matching.is_empty() {
                    return Ok((vec![Block::new(0)], Among::All(0)));
                }
                if unpacked <= run.buckets || !run.kept.fits(run.size_bytes) {
                    run.unpacked.set(unpacked);
                    return Ok((self.rows_of_some(run, cache, &matching), Among::All(matching.len())));
                }
                // It would have been cheaper to unpack all of them once. They take no more room than their documents.
                note_rows(&parts, &fields, &|| true);
            }
        }
        let mut made = |columns: &FieldSet, in_any_order| self.made(run, cache, columns, in_any_order);
        Ok((self.kept_rows(&run.kept, run.rows, &mut made)?, Among::Matching(&run.ends)))
    }

    /// The places of those buckets of a run that have rows which match. `None` if the filter fails, or if a bucket is not in memory.
    fn matching_buckets(&mut self, run: &BucketRun, cache: &RefCell<BucketCache>) -> Option<Vec<usize>> {
        let mut made = |columns: &FieldSet, in_any_order| self.made(run, cache, columns, in_any_order);
        let rows = named_rows(&run.kept, run.rows, &self.fields(), &mut made).pop()?;
        let all_match = self.plan.is_decided_by_metadata();
        let before = *self.exec.counters();
        let found = self.plan.of_matching_series(rows);
        let found = found.and_then(|(rows, numbers)| Ok((self.exec.select_complete(&rows, all_match)?, numbers)));
        *self.exec.counters() = before;
        self.exec.has_failed |= found.is_err();
        let (selected, numbers) = found.ok()?;
        Some(places_among(&run.ends, 0..run.rows, numbers.as_deref(), selected.as_deref()))
    }

    /// The rows of those buckets of a run at these places.
    fn rows_of_some(&self, run: &BucketRun, cache: &RefCell<BucketCache>, places: &[usize]) -> Vec<Block> {
        let buckets = Some(()).filter(|()| is_known(run, cache)).and_then(|()| self.buckets_of(run, cache));
        let some = buckets.and_then(|buckets| places.iter().map(|at| buckets.get(*at).cloned()).listed_if_all());
        self.rows_of(&some.unwrap_or_default(), &self.plan.columns, false)
    }
}

/// The places of the buckets of which rows are `selected`, or all `numbers` of rows, or all rows. The rows of the buckets end at `ends`;
/// `rows` are those that have numbers, and of these those that may be selected.
pub(super) fn places_among(
    ends: &[u32],
    rows: Range<usize>,
    numbers: Option<&[u32]>,
    selected: Option<&[u32]>,
) -> Vec<usize> {
    let place = |row: usize| ends.partition_point(|end| *end as usize <= row);
    let Some(first) = selected.or(numbers) else { return (place(rows.start)..place(rows.end.max(1) - 1) + 1).listed() };
    let (mut places, mut end) = (Vec::new(), 0);
    for at in first {
        let at = match (selected, numbers) {
            (Some(_), Some(numbers)) => numbers.get(*at as usize).unwrap_or(at),
            _ => at,
        };
        let row = rows.start + *at as usize;
        if row >= end {
            let place = place(row);
            end = ends.get(place).map_or(usize::MAX, |end| *end as usize);
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_buckets_of_which_a_row_is_selected() {
        let ends = [2, 5, 6, 9];
        let among =
            |rows, numbers: Option<&[u32]>, selected: Option<&[u32]>| places_among(&ends, rows, numbers, selected);
        assert_eq!(among(0..9, None, None), [0, 1, 2, 3]);
        assert_eq!(among(5..6, None, None), [2]);
        assert_eq!(among(0..9, None, Some(&[0, 1, 4, 8])), [0, 1, 3]);
        assert_eq!(among(2..9, None, Some(&[0, 1, 4])), [1, 3]);
        assert_eq!(among(0..9, Some(&[1, 2, 3, 6]), None), [0, 1, 3]);
        assert_eq!(among(0..9, Some(&[1, 2, 3, 6]), Some(&[2, 3])), [1, 3]);
        assert_eq!(among(0..9, None, Some(&[])), [0_usize; 0]);
    }
}
