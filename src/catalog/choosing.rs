//! Chooses the bucket of a series that takes the next rows.

use super::measurements::BatchRows;
use super::open_bucket::{OpenBucket, Taken, Terms};
use super::rollover::RolloverReason;
use super::series::BatchSeries;
use super::size_limit::SizeLimit;
use super::state::{Catalog, meta_bytes};
use super::stats::Counter;
use crate::bucket::bucket_start_ms;
use crate::error::{Error, ErrorCode, Result};
use crate::value::sort_by;

impl Catalog {
    /// Finds an open bucket for rows of a series, and how many of them it took. Full buckets roll over on the way.
    pub(super) fn find_open(
        &mut self,
        series: &mut BatchSeries,
        measurements: &BatchRows<'_>,
    ) -> Option<(usize, Taken)> {
        let slot = series.slot;
        let time_ms = measurements.next_ms(series);
        let span_ms = self.timeseries.span_ms();
        let of_slot = self.series.get(slot)?;
        series.search.saw_bucket |= of_slot.len() > 0;
        series.search.query_forbidden |= of_slot.forbids_query();
        if of_slot.has_due() {
            for index in 0..of_slot.buckets().len() {
                if self.bucket(slot, index).is_some_and(|bucket| !bucket.may_take(time_ms, span_ms)) {
                    self.roll_over(slot, index);
                }
            }
            self.sweep(slot);
        }
        let of_slot = self.series.get(slot)?;
        // Class, number of measurements, order of opening, position.
        let mut candidates: Vec<(u8, usize, u64, usize)> = Vec::new();
        for index in of_slot.spanning(time_ms, span_ms) {
            let Some(bucket) = of_slot.buckets().get(index) else { continue };
            let class = match bucket.reason {
                Some(RolloverReason::TimeForward) => 1,
                Some(RolloverReason::TimeBackward) => 2,
                _ => continue,
            };
            candidates.push((class, bucket.count, bucket.number, index));
        }
        candidates.extend(of_slot.current().map(|index| (3, 0, 0, index)));
        sort_by(&mut candidates, |a, b| a.cmp(b));
        candidates.into_iter().find_map(|(.., index)| Some((index, self.offer_rows(series, index, measurements)?)))
    }

    /// Offers rows to one open bucket. If it takes none, it is marked with the reason.
    pub(super) fn offer_rows(
        &mut self,
        series: &mut BatchSeries,
        index: usize,
        measurements: &BatchRows<'_>,
    ) -> Option<Taken> {
        self.make_busy(series.slot, index);
        let terms = Terms {
            options: &self.options,
            span_ms: self.timeseries.span_ms(),
            limit: SizeLimit::new(&self.options, self.totals.active.get()),
            meta_bytes: meta_bytes(series.meta.as_ref()),
        };
        let taken = self.series.get_mut(series.slot)?.change(index, |bucket| {
            let taken = bucket.take(measurements, measurements.left(series), &terms);
            if taken.reason.is_some() {
                bucket.reason = taken.reason;
            }
            taken
        })?;
        self.stats[Counter::KeptOpenDueToLargeMeasurements] += u64::from(taken.kept_open);
        self.count_memory(taken.memory_bytes.cast_signed());
        if taken.rows == 0 {
            series.search.query_forbidden |= taken.reason != Some(RolloverReason::TimeBackward);
            return None;
        }
        Some(taken)
    }

    /// Rolls over a marked bucket: closes or archives it, unless rows of it are uncommitted. True if it is gone;
    /// `OpenSeries::sweep` must follow.
    pub(super) fn roll_over(&mut self, slot: usize, index: usize) -> bool {
        let Some(bucket) = self.bucket(slot, index) else { return false };
        let Some(reason) = bucket.reason.filter(|_| bucket.staged == 0) else { return false };
        let counter = match reason {
            RolloverReason::TimeForward => Counter::ClosedDueToTimeForward,
            RolloverReason::TimeBackward => Counter::ArchivedDueToTimeBackward,
            RolloverReason::Count => Counter::ClosedDueToCount,
            RolloverReason::Size => Counter::ClosedDueToSize,
            RolloverReason::CachePressure => Counter::ClosedDueToCachePressure,
            RolloverReason::SchemaChange => Counter::ClosedDueToSchemaChange,
        };
        self.stats[counter] += 1;
        match reason {
            RolloverReason::TimeBackward => self.put_aside(slot, index),
            _ => self.close(slot, index),
        }
        true
    }

    /// Opens a bucket for the next row of a series and the following ones that fit. Returns its position.
    ///
    /// Errors: `Location6130900` if every id drawn was already taken.
    pub(super) fn allocate(
        &mut self,
        series: &mut BatchSeries,
        measurements: &BatchRows<'_>,
    ) -> Result<(usize, Taken)> {
        self.expire();
        let min_time_ms = bucket_start_ms(measurements.next_ms(series), self.timeseries.effective_rounding_seconds());
        let mut id = self.ids.next(min_time_ms);
        let mut left = self.options.duplicate_retries_max;
        while self.registry.state(id).is_some() || self.index_of(series.slot, min_time_ms, id).is_some() {
            if left == 0 {
                return Err(Error::new(ErrorCode::Location6130900, "Found no free id for a new bucket"));
            }
            left -= 1;
            // As good as random bits: far away, and different from where another context goes after the same collision.
            let [_, _, _, _, counter @ ..] = *id.as_bytes();
            let counter = u64::from_be_bytes(counter);
            self.ids.reseed((counter ^ counter >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            id = self.ids.next(min_time_ms);
        }
        let bucket_meta = meta_bytes(series.meta.as_ref());
        let index = self.open(series.slot, OpenBucket::new(id, min_time_ms, bucket_meta));
        let taken = self.offer_rows(series, index, measurements);
        let taken = taken.ok_or_else(|| Error::internal("A new bucket did not take its first measurement"))?;
        Ok((index, taken))
    }
}

#[cfg(test)]
mod tests {
    use super::super::CatalogOptions;
    use super::super::samples::*;
    use super::*;

    #[test]
    fn a_measurement_before_the_start_of_the_bucket_archives_it_and_opens_another() {
        let mut catalog = catalog();
        insert(&mut catalog, &[at(2 * HOUR)]);
        assert_eq!(shape(&insert(&mut catalog, &[at(119 * MINUTE)])), [(119 * MINUTE, 1)]);
        let stats = catalog.stats();
        assert_eq!((stats[Counter::ArchivedDueToTimeBackward], stats.active, stats.open_series), (1, 2, 1));
        assert_eq!(stats.archived(), 1);
    }

    #[test]
    fn each_reason_counts_one_rollover_when_it_is_performed() {
        let counts = |catalog: &Catalog| {
            let s = catalog.stats();
            let closed =
                [s[Counter::ClosedDueToTimeForward], s[Counter::ClosedDueToCount], s[Counter::ClosedDueToSize]];
            let rest = [
                s[Counter::ClosedDueToSchemaChange],
                s[Counter::ClosedDueToCachePressure],
                s[Counter::ArchivedDueToTimeBackward],
            ];
            [closed, rest].concat()
        };
        let reasons = [
            RolloverReason::TimeForward,
            RolloverReason::Count,
            RolloverReason::Size,
            RolloverReason::SchemaChange,
            RolloverReason::CachePressure,
            RolloverReason::TimeBackward,
        ];
        for (place, reason) in reasons.into_iter().enumerate() {
            let mut catalog = catalog();
            insert(&mut catalog, &[at(0)]);
            catalog.series[0].change(0, |bucket| bucket.reason = Some(reason));
            assert!(catalog.roll_over(0, 0));
            let mut expected = [0; 6];
            expected[place] = 1;
            assert_eq!(counts(&catalog), expected, "{reason:?}");
            let archived = reason == RolloverReason::TimeBackward;
            assert_eq!((catalog.archive.len(), catalog.stats().active), (usize::from(archived), usize::from(archived)));
        }
    }

    /// A catalog with buckets of the series of `at`, all starting at time 0, each given by its rollover reason and number of
    /// staged rows.
    fn with_buckets(marked: &[(Option<RolloverReason>, usize)]) -> (Catalog, Vec<crate::bucket::BucketId>) {
        let mut catalog = catalog();
        catalog.begin_with_slot();
        let mut ids = Vec::new();
        for (reason, count) in marked {
            let mut bucket = OpenBucket::new(catalog.ids.next(0), 0, 0);
            (bucket.reason, bucket.count, bucket.staged, bucket.size_bytes) = (*reason, *count, *count, 100);
            ids.push(bucket.id);
            catalog.open(0, bucket);
        }
        (catalog, ids)
    }

    impl Catalog {
        fn begin_with_slot(&mut self) {
            self.slot(Some(&crate::value::OwnedValue::string("a")));
        }
    }

    #[test]
    fn candidates_are_soft_closed_then_archived_then_current_buckets_with_emptier_ones_first() {
        use RolloverReason::{TimeBackward, TimeForward};
        let mut marked = vec![
            (None, 0),
            (Some(TimeBackward), 3),
            (Some(TimeForward), 9),
            (Some(TimeBackward), 2),
            (Some(TimeForward), 5),
        ];
        for expected in [5, 9, 2, 3, 0] {
            let (mut catalog, ids) = with_buckets(&marked);
            let place = marked.iter().position(|(_, count)| *count == expected).unwrap();
            assert_eq!(stage(&mut catalog, &[at(5)])[0].bucket, ids[place], "{marked:?}");
            marked.remove(place);
        }
    }

    #[test]
    fn a_soft_closed_bucket_with_uncommitted_rows_takes_rows_in_its_span_and_a_hard_closed_one_none() {
        for (reason, taken) in [(RolloverReason::TimeForward, true), (RolloverReason::Count, false)] {
            let (mut catalog, ids) = with_buckets(&[(Some(reason), 1)]);
            assert_eq!(stage(&mut catalog, &[at(5)])[0].bucket == ids[0], taken);
            let (mut catalog, ids) = with_buckets(&[(Some(reason), 1)]);
            assert_ne!(stage(&mut catalog, &[at(HOUR)])[0].bucket, ids[0]);
        }
    }

    #[test]
    fn a_frozen_bucket_id_is_skipped() {
        let mut catalog = catalog();
        let next = catalog.ids.clone().next(0);
        catalog.freeze(next);
        let sections = insert(&mut catalog, &[at(0)]);
        assert_ne!(sections[0].bucket, next);
        assert_eq!((catalog.stats().active, catalog.stats()[Counter::Frozen]), (1, 1));
        catalog.freeze(sections[0].bucket);
        assert_eq!((catalog.stats().active, catalog.stats()[Counter::Frozen]), (0, 2));
        assert_ne!(insert(&mut catalog, &[at(0)])[0].bucket, sections[0].bucket);
    }

    #[test]
    fn running_out_of_bucket_ids_is_an_error() {
        let mut catalog =
            catalog_with(CatalogOptions { duplicate_retries_max: 0, reopening: false, ..CatalogOptions::default() });
        let next = catalog.ids.clone().next(0);
        catalog.freeze(next);
        let mut batch = catalog.batch(block(&[at(0)]));
        assert_eq!(catalog.stage(&mut batch).unwrap_err().code, ErrorCode::Location6130900);
        assert_eq!(catalog.stats().active, 0);
    }

    #[test]
    fn the_share_of_the_cache_closes_buckets_early() {
        let options = CatalogOptions { cache_bytes: 0, reopening: false, ..CatalogOptions::default() };
        let mut catalog = catalog_with(options);
        let docs: Vec<_> = (0..11).map(at).collect();
        insert_as(&mut catalog, &docs, 6000);
        assert_eq!(shape(&insert(&mut catalog, &[at(12)])), [(0, 1)]);
        assert_eq!(catalog.stats()[Counter::ClosedDueToCachePressure], 1);
    }

    #[test]
    fn large_measurements_close_a_bucket_by_size_only_above_the_minimum_count() {
        let mut catalog = catalog();
        let docs: Vec<_> = (0..25).map(|ms| text_at(ms, &"y".repeat(40_000))).collect();
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 10), (0, 10), (0, 5)]);
        let stats = catalog.stats();
        assert_eq!((stats[Counter::ClosedDueToSize], stats[Counter::KeptOpenDueToLargeMeasurements]), (2, 3));
    }

    #[test]
    fn a_bucket_kept_open_for_large_measurements_still_refuses_other_types() {
        let mut catalog = catalog();
        let mut docs: Vec<_> = (0..4).map(|ms| text_at(ms, &"y".repeat(40_000))).collect();
        docs.push(at(5));
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 4), (0, 1)]);
        assert_eq!(catalog.stats()[Counter::ClosedDueToSchemaChange], 1);
        assert_eq!(catalog.stats()[Counter::KeptOpenDueToLargeMeasurements], 1);
    }
}
