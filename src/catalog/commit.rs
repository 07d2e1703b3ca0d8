//! Ends a batch: its rows are stored, or never will be.

use super::state::Catalog;
use super::stats::Counter;
use crate::bucket::BucketId;

impl Catalog {
    /// The rows of the batch are durable; they take `stored_bytes`, compressed. Returns the buckets whose first rows
    /// these are.
    ///
    /// Every bucket grows by its share of those bytes. The server measures how much the columns of each bucket grow.
    /// Here a fold encodes them later, so the size of the rows in the journal stands in for it.
    pub fn finish(&mut self, stored_bytes: usize) -> Vec<BucketId> {
        let staged = std::mem::take(&mut self.staged);
        let rows: usize = staged.iter().map(|bucket| bucket.rows).sum();
        let share = |n: usize| (stored_bytes as u64 * n as u64).checked_div(rows as u64).unwrap_or_default();
        let mut begun = Vec::new();
        for part in &staged {
            if part.is_insert {
                begun.push(part.id);
            }
            let stats = &mut self.stats;
            stats[Counter::Commits] += 1;
            stats[Counter::MeasurementsCommitted] += part.rows as u64;
            stats[if part.is_insert { Counter::BucketInserts } else { Counter::BucketUpdates }] += 1;
            stats[Counter::OpenedDueToMetadata] += u64::from(part.opened_due_to_metadata);
            // It may have been dropped meanwhile; its rows are stored all the same.
            let Some(index) = self.index_of(part.slot, part.min_time_ms, part.id) else { continue };
            let Some(series) = self.series.get_mut(part.slot) else { continue };
            series.change(index, |bucket| bucket.commit(usize::try_from(share(part.rows)).unwrap_or(usize::MAX)));
            if !self.roll_over(part.slot, index) {
                self.make_idle(part.slot, index);
            }
        }
        staged.iter().for_each(|part| self.sweep(part.slot));
        self.prepared = false;
        self.round += 1;
        begun
    }

    /// The rows of the batch were not stored. The buckets that took them are dropped, because their counts, sizes and
    /// schemas include rows that do not exist.
    pub fn abort(&mut self) {
        let staged = std::mem::take(&mut self.staged);
        for part in &staged {
            if let Some(index) = self.index_of(part.slot, part.min_time_ms, part.id) {
                self.close(part.slot, index);
            }
        }
        staged.iter().for_each(|part| self.sweep(part.slot));
        self.answers.clear();
        self.prepared = false;
        self.round += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Staging;
    use super::super::samples::*;
    use super::Counter;

    #[test]
    fn an_aborted_commit_leaves_its_bucket_unchanged() {
        let mut catalog = catalog();
        let docs: Vec<_> = (0..600).map(at).collect();
        stage(&mut catalog, &docs);
        catalog.abort();
        assert_eq!((catalog.stats().active, catalog.stats().memory_bytes), (0, 0));
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 600)]);
    }

    #[test]
    fn a_commit_reports_the_buckets_it_opened() {
        let mut catalog = catalog();
        let first = stage(&mut catalog, &[of(0, "a"), of(0, "b")]);
        assert_eq!(catalog.finish(9), [first[0].bucket, first[1].bucket]);
        let second = stage(&mut catalog, &[of(1, "a"), of(1, "c")]);
        assert_eq!(catalog.finish(9), [second[1].bucket]);
    }

    #[test]
    fn a_commit_succeeds_if_its_bucket_is_forgotten_meanwhile() {
        let mut catalog = catalog();
        let first = stage(&mut catalog, &[at(0)]);
        catalog.clear();
        catalog.finish(9);
        let stats = catalog.stats();
        assert_eq!(
            (stats[Counter::Commits], stats[Counter::BucketInserts], stats.active, stats.memory_bytes),
            (1, 1, 0, 0)
        );
        let second = insert(&mut catalog, &[at(1)]);
        assert_ne!(first[0].bucket, second[0].bucket);
    }

    #[test]
    fn a_bucket_forgotten_during_its_commit_is_not_reused_and_others_are() {
        let mut catalog = catalog();
        let first = stage(&mut catalog, &[of(0, "a"), of(0, "b")]);
        catalog.clear_bucket(first[0].bucket);
        catalog.finish(9);
        let second = insert(&mut catalog, &[of(1, "a"), of(1, "b")]);
        assert_ne!(first[0].bucket, second[0].bucket);
        assert_eq!(first[1].bucket, second[1].bucket);
    }

    #[test]
    fn a_batch_starts_over_if_the_catalog_was_cleared() {
        let mut catalog = reopening_catalog();
        insert(&mut catalog, &[of(0, "b")]);
        let mut batch = catalog.batch(block(&[of(1, "b"), of(0, "a")]));
        let Staging::Reopen(requests) = catalog.stage(&mut batch).unwrap() else { panic!("nothing was asked") };
        catalog.clear();
        catalog.offer(&requests[0], super::super::Offer::Found(stored(crate::bucket::BucketId::MIN, 0)));
        assert_eq!(
            (catalog.stats()[super::super::ReopenFailure::EraMismatch], catalog.stats()[Counter::Reopened]),
            (1, 0)
        );
        let Staging::Reopen(requests) = catalog.stage(&mut batch).unwrap() else { panic!("nothing was asked") };
        assert_eq!(requests.len(), 2);
        requests.iter().for_each(|request| catalog.offer(request, super::super::Offer::NotFound));
        let Staging::Staged(staged) = catalog.stage(&mut batch).unwrap() else { panic!("it was asked again") };
        assert_eq!(shape(&staged.sections), [(0, 1), (0, 1)]);
    }

    #[test]
    fn a_marked_bucket_rolls_over_when_its_rows_are_stored() {
        let mut catalog = catalog();
        stage(&mut catalog, &[at(0), at(HOUR)]);
        assert_eq!((catalog.stats()[Counter::ClosedDueToTimeForward], catalog.stats().active), (0, 2));
        catalog.finish(0);
        assert_eq!((catalog.stats()[Counter::ClosedDueToTimeForward], catalog.stats().active), (1, 1));
    }

    #[test]
    fn the_stored_size_replaces_the_estimate_for_large_cells() {
        let mut catalog = catalog();
        let sections = stage(&mut catalog, &[text_at(0, &"y".repeat(1000)), of(0, "b")]);
        let size = |catalog: &super::Catalog, slot: usize| catalog.series[slot].buckets()[0].size_bytes;
        let cell = 1 + 1005 + 1;
        let summary = 35 + (12 + 1 + 2 * (2 + 1 + 1005)) + 11;
        assert_eq!((sections.len(), size(&catalog, 0), size(&catalog, 1)), (2, summary + cell, 81));
        catalog.finish(500);
        assert_eq!((size(&catalog, 0), size(&catalog, 1)), (summary + 250, 81 + 250));
    }
}
