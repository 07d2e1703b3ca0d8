//! Requests stored buckets that measurements could go to, and reopens them.

use super::offer::{Offer, OfferAnswer, ReopenFailure, ReopenRequest, Reopened};
use super::open_bucket::OpenBucket;
use super::registry::BucketState;
use super::rollover::RolloverReason;
use super::series::BatchSeries;
use super::size_limit::SizeLimit;
use super::state::Catalog;
use super::stats::Counter;
use crate::bucket::BucketId;

impl Catalog {
    /// The stored bucket to look for before a new one is opened for a row at `time_ms`; `Some(None)` means any.
    pub(super) fn stored_candidate(&self, series: &BatchSeries, time_ms: i64) -> Option<Option<BucketId>> {
        if !self.options.reopening {
            return None;
        }
        let hash = self.series.get(series.slot)?.hash;
        match self.archive.candidate(hash, time_ms, self.timeseries.span_ms()) {
            Some(archived) => Some(Some(archived)),
            None => (!series.search.query_forbidden).then_some(None),
        }
    }

    /// True if a stored bucket of this many measurements and bytes is worth reopening.
    pub fn may_reopen(&self, count: usize, size_bytes: usize) -> bool {
        let limit = SizeLimit::new(&self.options, self.totals.active.get());
        count < self.options.bucket_count_max && size_bytes < limit.effective_bytes
    }

    /// Counts why a stored bucket was passed over, if one was.
    pub fn count_failure(&mut self, failure: Option<ReopenFailure>) {
        if let Some(failure) = failure {
            self.stats[failure] += 1;
        }
    }

    /// Takes the answer to a request. Stage the batch again when all of its requests are answered. It asks only once
    /// for the same row, except after a conflict.
    pub fn offer(&mut self, request: &ReopenRequest, offer: Offer) {
        let failure = match &offer {
            _ if request.era != self.registry.era => Some(ReopenFailure::EraMismatch),
            Offer::Found(found) => match self.registry.state(found.id) {
                Some(BucketState::Frozen) => Some(ReopenFailure::MarkedFrozen),
                Some(BucketState::DirectWrite(_)) => Some(ReopenFailure::WriteConflict),
                None => None,
            },
            Offer::Failed(failure) => Some(*failure),
            Offer::NotFound => None,
        };
        let stats = &mut self.stats;
        let fetched = !matches!(offer, Offer::NotFound);
        stats[match (request.archived.is_some(), fetched) {
            (true, true) => Counter::Fetched,
            (true, false) => Counter::FetchesFailed,
            (false, true) => Counter::Queried,
            (false, false) => Counter::QueriesFailed,
        }] += 1;
        if let Some(failure) = failure {
            stats[failure] += u64::from(fetched);
            if failure.is_conflict() {
                return;
            }
        }
        let installed = match offer {
            Offer::Found(found) if failure.is_none() => self.install(request, found),
            _ => None,
        };
        self.answers.push((request.series, OfferAnswer { installed, fetched }));
    }

    /// Reopens a stored bucket, in place of the open bucket that takes rows of its series.
    fn install(&mut self, request: &ReopenRequest, found: Reopened) -> Option<(i64, BucketId)> {
        let slot = self.slot(request.meta.as_ref());
        if self.index_of(slot, found.min_time_ms, found.id).is_some() {
            self.stats[Counter::DuplicateReopened] += 1;
            return None;
        }
        self.expire();
        let hash = self.series.get(slot)?.hash;
        if self.archive.remove(hash, found.min_time_ms, found.id) {
            self.drop_archived(1);
        }
        let series = self.series.get_mut(slot)?;
        if let Some(index) = series.current() {
            if series.buckets().get(index).is_some_and(|bucket| bucket.staged > 0) {
                series.change(index, |bucket| bucket.reason = Some(RolloverReason::TimeForward));
            } else {
                self.stats[Counter::ClosedDueToReopening] += 1;
                self.close(slot, index);
                self.sweep(slot);
            }
        }
        let bucket = OpenBucket::new(found.id, found.min_time_ms, super::state::meta_bytes(request.meta.as_ref()));
        self.open(slot, bucket.with_stored(found.count, found.size_bytes, found.schema, &found.field_names));
        self.stats[Counter::Reopened] += 1;
        Some((found.min_time_ms, found.id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;

    fn id(n: u8) -> BucketId {
        BucketId::from_bytes([n; 12])
    }

    #[test]
    fn a_new_series_asks_once_and_then_opens_a_bucket() {
        let mut catalog = reopening_catalog();
        let mut asked = Vec::new();
        let answer = &mut |request: &ReopenRequest| {
            asked.push((request.time_ms, request.archived));
            Offer::NotFound
        };
        stage_answering(&mut catalog, &[at(7), at(8), at(3 * HOUR)], answer);
        catalog.finish(0);
        assert_eq!(asked, [(7, None)]);
        let stats = catalog.stats();
        assert_eq!(
            (stats[Counter::QueriesFailed], stats[Counter::Queried], stats[Counter::OpenedDueToMetadata]),
            (1, 0, 1)
        );
    }

    #[test]
    fn a_stored_bucket_is_reopened_once_and_then_stays_open() {
        let mut catalog = reopening_catalog();
        let sections = stage_answering(&mut catalog, &[at(7)], &mut |_| Offer::Found(stored(id(1), 0))).sections;
        catalog.finish(0);
        assert_eq!(sections[0].bucket, id(1));
        let more = stage_answering(&mut catalog, &[at(8)], &mut |_| unreachable!()).sections;
        catalog.finish(0);
        assert_eq!(more[0].bucket, id(1));
        let stats = catalog.stats();
        assert_eq!((stats[Counter::Reopened], stats[Counter::Queried], stats[Counter::OpenedDueToMetadata]), (1, 1, 0));
        assert_eq!((stats[Counter::BucketInserts], stats[Counter::BucketUpdates], stats.active), (0, 2, 1));
    }

    #[test]
    fn a_measurement_in_the_span_of_an_archived_bucket_reopens_it() {
        let mut catalog = reopening_catalog();
        let first = insert(&mut catalog, &[at(1000 * HOUR)]);
        let second = insert(&mut catalog, &[at(0)]);
        assert_eq!((catalog.stats()[Counter::ArchivedDueToTimeBackward], catalog.archive.len()), (1, 1));
        let mut asked = Vec::new();
        let answer = &mut |request: &ReopenRequest| {
            asked.push(request.archived);
            Offer::Found(stored(first[0].bucket, 1000 * HOUR))
        };
        let third = stage_answering(&mut catalog, &[at(1000 * HOUR + MINUTE)], answer).sections;
        catalog.finish(0);
        assert_eq!(asked, [Some(first[0].bucket)]);
        assert_eq!(third[0].bucket, first[0].bucket);
        assert_ne!(second[0].bucket, first[0].bucket);
        let stats = catalog.stats();
        assert_eq!((stats[Counter::Fetched], stats[Counter::Reopened], catalog.archive.len()), (1, 1, 0));
        // The bucket at 0 was marked, not replaced; it is closed the next time it is examined.
        assert_eq!(
            (stats[Counter::ClosedDueToReopening], stats[Counter::ClosedDueToTimeForward], stats.active),
            (0, 0, 2)
        );
    }

    #[test]
    fn a_late_measurement_reopens_the_first_bucket_after_two_months() {
        let mut catalog = reopening_catalog();
        let first = insert(&mut catalog, &[at(0)]);
        let second = insert(&mut catalog, &[at(1440 * HOUR)]);
        assert_eq!((catalog.stats()[Counter::ClosedDueToTimeForward], catalog.stats().active), (1, 1));
        let mut asked = Vec::new();
        let answer = &mut |request: &ReopenRequest| {
            asked.push(request.archived);
            Offer::Found(stored(first[0].bucket, 0))
        };
        let third = stage_answering(&mut catalog, &[at(MINUTE)], answer).sections;
        assert_eq!((asked, third[0].bucket), (vec![None], first[0].bucket));
        assert_ne!(second[0].bucket, first[0].bucket);
    }

    #[test]
    fn a_reopened_bucket_displaces_another_which_is_closed_or_marked_if_it_has_uncommitted_rows() {
        for staged in [0, 1] {
            let mut catalog = reopening_catalog();
            insert(&mut catalog, &[at(5 * HOUR)]);
            let sections = stage_answering(&mut catalog, &[at(7)], &mut |_| Offer::Found(stored(id(1), 0))).sections;
            assert_eq!(sections[0].bucket, id(1));
            catalog.finish(0);
            catalog.series[0].change(1, |bucket| bucket.staged = staged);
            let request = ReopenRequest {
                meta: sections[0].meta.clone(),
                time_ms: 7,
                archived: None,
                era: catalog.registry.era,
                series: 0,
            };
            // The bucket at five hours was marked for archiving; id 1 takes the rows.
            catalog.series[0].change(0, |bucket| bucket.reason = Some(RolloverReason::TimeForward));
            catalog.series[0].change(1, |bucket| bucket.reason = None);
            catalog.offer(&request, Offer::Found(stored(id(2), 0)));
            let buckets: Vec<_> = catalog.series[0].buckets().iter().map(|b| (b.id, b.reason)).collect();
            assert!(buckets.contains(&(id(2), None)));
            assert_eq!(buckets.iter().filter(|(_, reason)| reason.is_none()).count(), 1);
            assert_eq!(
                (buckets.len(), catalog.stats()[Counter::ClosedDueToReopening]),
                (2 + staged, 1 - staged as u64)
            );
        }
    }

    #[test]
    fn an_unusable_stored_bucket_is_counted_and_a_new_one_is_opened() {
        use ReopenFailure::*;
        let failures = [
            MalformedIdField,
            HashCollision,
            MarkedFrozen,
            Validator,
            MarkedClosed,
            MinMaxCalculation,
            SchemaGeneration,
            UncompressedTimeColumn,
            CompressionFailure,
        ];
        for failure in failures {
            let mut catalog = reopening_catalog();
            let mut asked = 0;
            let answer = &mut |_: &ReopenRequest| {
                asked += 1;
                Offer::Failed(failure)
            };
            stage_answering(&mut catalog, &[at(0)], answer);
            catalog.finish(0);
            let stats = catalog.stats();
            assert_eq!((asked, stats[failure], stats[Counter::BucketInserts]), (1, 1, 1));
            assert_eq!((stats[Counter::Queried], stats[Counter::OpenedDueToMetadata]), (1, 0));
        }
    }

    #[test]
    fn a_conflict_is_retried_a_limited_number_of_times() {
        let mut catalog = reopening_catalog();
        let mut asked = 0;
        let answer = &mut |_: &ReopenRequest| {
            asked += 1;
            Offer::Failed(ReopenFailure::WriteConflict)
        };
        assert_eq!(stage_answering(&mut catalog, &[at(0)], answer).sections.len(), 1);
        assert_eq!(asked, 16);
    }

    #[test]
    fn an_open_bucket_is_not_opened_a_second_time() {
        let mut catalog = reopening_catalog();
        let open = insert(&mut catalog, &[at(HOUR)])[0].bucket;
        let sections = stage_answering(&mut catalog, &[at(0)], &mut |_| Offer::Found(stored(open, HOUR))).sections;
        assert_ne!(sections[0].bucket, open);
        assert_eq!((catalog.stats()[Counter::DuplicateReopened], catalog.stats()[Counter::Reopened]), (1, 0));
    }

    #[test]
    fn a_frozen_bucket_is_not_reopened() {
        let mut catalog = reopening_catalog();
        catalog.freeze(id(1));
        let sections = stage_answering(&mut catalog, &[at(0)], &mut |_| Offer::Found(stored(id(1), 0))).sections;
        assert_ne!(sections[0].bucket, id(1));
        assert_eq!(catalog.stats()[ReopenFailure::MarkedFrozen], 1);
    }

    #[test]
    fn a_stored_bucket_that_does_not_fit_is_marked_with_the_reason_and_a_new_one_is_opened() {
        let mut catalog = reopening_catalog();
        let answer = &mut |_: &ReopenRequest| Offer::Found(stored(id(1), 0));
        let sections = stage_answering(&mut catalog, &[text_at(0, "x")], answer).sections;
        assert_ne!(sections[0].bucket, id(1));
        let stats = catalog.stats();
        assert_eq!((stats[Counter::Reopened], stats[Counter::ClosedDueToSchemaChange], stats.active), (1, 1, 1));
    }

    #[test]
    fn stored_buckets_are_requested_only_for_a_measurement_before_the_open_bucket() {
        let full: Vec<_> = (0..1000).map(at).collect();
        for (before, then, asks) in [
            (vec![at(0)], at(HOUR), false),
            (vec![at(0)], text_at(0, "x"), false),
            (full, at(0), false),
            (vec![at(HOUR)], at(0), true),
            (vec![at(0)], at(1), false),
        ] {
            let mut catalog = reopening_catalog();
            insert(&mut catalog, &before);
            let queries = catalog.stats()[Counter::QueriesFailed];
            insert(&mut catalog, std::slice::from_ref(&then));
            assert_eq!(catalog.stats()[Counter::QueriesFailed] - queries, u64::from(asks), "{then:?}");
        }
    }

    #[test]
    fn stored_buckets_are_not_requested_if_reopening_is_off() {
        let mut catalog = catalog();
        insert(&mut catalog, &[at(HOUR)]);
        stage_answering(&mut catalog, &[at(0), at(HOUR)], &mut |_| unreachable!());
    }
}
