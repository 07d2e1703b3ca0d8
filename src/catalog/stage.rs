//! Assigns the rows of a batch to buckets, as sections.

use super::batch::{Batch, Section, Staging, dates};
use super::measurements::BatchRows;
use super::offer::ReopenRequest;
use super::open_bucket::Taken;
use super::series::{BatchSeries, BucketSearch};
use super::state::{Catalog, StagedBucket};
use crate::bucket::BucketId;
use crate::error::Result;
use crate::limits::STAGED_ROWS_MAX;

/// The next step for a series.
enum NextStep {
    /// The open bucket at this position took rows.
    Run(usize, Taken),
    /// Look for a stored bucket first: the archived one with this id, or any.
    Ask(Option<BucketId>),
}

impl Catalog {
    /// Picks or opens buckets for the rows of a batch, or says which stored buckets to look for first.
    ///
    /// Rows count as staged at once. A batch that is given up halfway needs no `abort`: the next batch notices. If the
    /// catalog was cleared meanwhile, this batch starts again.
    ///
    /// Errors: an internal error if the time column is not as it must be; `Location6130900` if no free id was found.
    /// The batch is then given up.
    pub fn stage(&mut self, batch: &mut Batch) -> Result<Staging> {
        if batch.round != self.round {
            self.begin(batch);
        }
        for (series, answer) in std::mem::take(&mut self.answers) {
            if let Some(series) = batch.series.get_mut(series) {
                series.search.saw_bucket |= answer.fetched;
                series.search.answer = Some(answer);
            }
        }
        let mut requests = Vec::new();
        let staged = self.stage_series(batch, &mut requests);
        if staged.is_err() {
            self.abort();
        }
        self.prepared = staged? && requests.is_empty();
        Ok(if self.prepared { Staging::Staged(batch.staged()) } else { Staging::Reopen(requests) })
    }

    fn begin(&mut self, batch: &mut Batch) {
        self.abort();
        self.compact();
        batch.restarts += usize::from(batch.round != 0);
        batch.round = self.round;
        batch.sections.clear();
        for series in &mut batch.series {
            series.next = series.rows.start;
            series.search = BucketSearch::default();
            series.slot = self.slot(series.meta.as_ref());
            if let Some(known) = self.series.get(series.slot) {
                series.meta.clone_from(&known.meta);
            }
        }
    }

    /// False if rows are left that nothing keeps from being staged.
    fn stage_series(&mut self, batch: &mut Batch, requests: &mut Vec<ReopenRequest>) -> Result<bool> {
        let Batch { block, series, order, sections, facts, restarts, .. } = batch;
        let times_ms = dates(block, &self.timeseries.time_field)?;
        let measurements = BatchRows { block, times_ms, order, facts: *facts };
        let mut left = STAGED_ROWS_MAX;
        for (number, series) in series.iter_mut().enumerate() {
            while series.next < series.rows.end {
                if left == 0 {
                    return Ok(false);
                }
                match self.next_run(series, &measurements, *restarts)? {
                    NextStep::Run(index, taken) => {
                        left = left.saturating_sub(taken.rows);
                        sections.extend(self.section(series, index, taken, &measurements).map(|s| (number, s)));
                    }
                    NextStep::Ask(archived) => {
                        let time_ms = measurements.next_ms(series);
                        let meta = series.meta.clone();
                        requests.push(ReopenRequest {
                            meta,
                            time_ms,
                            archived,
                            era: self.registry.era,
                            series: number,
                        });
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    /// The bucket of a series' next rows and how many it took, or the stored bucket to look for first.
    fn next_run(
        &mut self,
        series: &mut BatchSeries,
        measurements: &BatchRows<'_>,
        restarts: usize,
    ) -> Result<NextStep> {
        if series.search.answer.is_none() {
            if let Some((index, taken)) = self.find_open(series, measurements) {
                return Ok(NextStep::Run(index, taken));
            }
            let time_ms = measurements.next_ms(series);
            if series.search.attempts + restarts < self.options.reopening_retries_max
                && let Some(archived) = self.stored_candidate(series, time_ms)
            {
                series.search.attempts += 1;
                return Ok(NextStep::Ask(archived));
            }
        } else if let Some(installed) = series.search.answer.as_ref().and_then(|answer| answer.installed)
            && let (min_time_ms, id) = installed
            && let Some(index) = self.index_of(series.slot, min_time_ms, id)
            && let Some(taken) = self.offer_rows(series, index, measurements)
        {
            return Ok(NextStep::Run(index, taken));
        }
        // A second pass: the bucket that could not take the row rolls over now.
        let (index, taken) = match self.find_open(series, measurements) {
            Some(run) => run,
            None => self.allocate(series, measurements)?,
        };
        Ok(NextStep::Run(index, taken))
    }

    /// Records that a bucket took rows of a series.
    fn section(
        &mut self,
        series: &mut BatchSeries,
        index: usize,
        taken: Taken,
        measurements: &BatchRows<'_>,
    ) -> Option<Section> {
        let search = std::mem::take(&mut series.search);
        let slot = series.slot;
        let bucket = self.series.get(slot)?.buckets().get(index)?;
        let run = measurements.left(series).get(..taken.rows)?;
        series.next += taken.rows;
        // Most buckets get one run per batch, so there is nothing to search.
        let before = (bucket.staged > taken.rows).then(|| self.staged.iter_mut().rev().find(|s| s.id == bucket.id));
        match before.flatten() {
            Some(staged) => staged.rows += taken.rows,
            None => self.staged.push(StagedBucket {
                slot,
                min_time_ms: bucket.min_time_ms,
                id: bucket.id,
                rows: taken.rows,
                is_insert: bucket.count == bucket.staged,
                opened_due_to_metadata: !search.saw_bucket,
            }),
        }
        Some(Section {
            bucket: bucket.id,
            min_time_ms: bucket.min_time_ms,
            meta: series.meta.clone(),
            rows: taken.rows,
            first_ms: measurements.time_ms(*run.first()?),
            last_ms: measurements.time_ms(*run.last()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Counter;
    use super::super::samples::*;
    use super::*;
    use crate::block::{Block, ColumnBuilder, ColumnData};
    use crate::error::ErrorCode;
    use crate::value::OwnedValue;
    use bson::{DateTime, rawdoc};

    #[test]
    fn a_measurement_beyond_the_span_opens_a_second_bucket() {
        let mut catalog = catalog();
        let docs = [at(0), at(HOUR - 1), at(HOUR), at(61 * MINUTE)];
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 2), (HOUR, 2)]);
        assert_eq!(catalog.stats()[Counter::ClosedDueToTimeForward], 1);
    }

    #[test]
    fn a_bucket_takes_a_thousand_measurements_over_several_inserts() {
        let mut catalog = catalog();
        let docs: Vec<_> = (0..700).map(at).collect();
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 700)]);
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 300), (0, 400)]);
        assert_eq!(catalog.stats()[Counter::ClosedDueToCount], 1);
    }

    #[test]
    fn a_field_that_changes_its_type_closes_the_bucket() {
        let mut catalog = catalog();
        let docs = [at(0), at(1), text_at(2, "text"), text_at(3, "text"), at(4)];
        assert_eq!(shape(&insert(&mut catalog, &docs)), [(0, 2), (0, 2), (0, 1)]);
        assert_eq!(catalog.stats()[Counter::ClosedDueToSchemaChange], 2);
    }

    #[test]
    fn missing_metadata_and_other_collections_have_separate_buckets() {
        let (mut one, mut other) = (catalog(), catalog());
        let without = rawdoc! { "t": DateTime::from_millis(0), "x": 1.0 };
        let empty = rawdoc! { "t": DateTime::from_millis(0), "m": {}, "x": 1.0 };
        let sections = insert(&mut one, &[of(0, "123"), empty, without]);
        assert_eq!(sections.iter().map(|s| s.meta.is_some()).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(one.stats().active, 3);
        insert(&mut other, &[of(0, "123")]);
        assert_eq!((one.stats().active, other.stats().active), (3, 1));
    }

    #[test]
    fn two_rows_of_a_series_in_one_commit_are_one_batch() {
        let mut catalog = catalog();
        assert_eq!(shape(&insert(&mut catalog, &[at(1), at(0)])), [(0, 2)]);
        assert_eq!((catalog.stats()[Counter::Commits], catalog.stats()[Counter::MeasurementsCommitted]), (1, 2));
        insert(&mut catalog, &[at(2)]);
        let stats = catalog.stats();
        assert_eq!(
            (stats[Counter::BucketInserts], stats[Counter::BucketUpdates], stats[Counter::OpenedDueToMetadata]),
            (1, 1, 1)
        );
    }

    #[test]
    fn series_are_kept_apart_and_rows_of_one_series_are_sorted_by_time() {
        let mut catalog = catalog();
        let docs = [of(5, "a"), of(1, "b"), of(3, "a"), of(2, "b"), of(4, "a")];
        let staged = stage_answering(&mut catalog, &docs, &mut |_| unreachable!());
        let bounds: Vec<_> = staged.sections.iter().map(|s| (s.rows, s.first_ms, s.last_ms)).collect();
        assert_eq!(bounds, [(3, 3, 5), (2, 1, 2)]);
        assert!(staged.rows.column("m").is_none());
        assert_eq!(staged.rows.column("t").unwrap().data(), &ColumnData::Date(vec![3, 4, 5, 1, 2]));
        assert_ne!(staged.sections[0].bucket, staged.sections[1].bucket);
    }

    #[test]
    fn all_series_request_stored_buckets_at_once_and_waiting_rows_keep_their_order() {
        let mut catalog = reopening_catalog();
        insert(&mut catalog, &[of(0, "b")]);
        let mut asked = Vec::new();
        let docs = [of(2, "a"), of(3, "b"), of(1, "c"), of(4, "a")];
        let mut rounds = Vec::new();
        let mut batch = catalog.batch(block(&docs));
        let staged = loop {
            match catalog.stage(&mut batch).unwrap() {
                Staging::Staged(staged) => break staged,
                Staging::Reopen(requests) => {
                    rounds.push(requests.len());
                    for request in &requests {
                        asked.push(request.meta.clone());
                        catalog.offer(request, super::super::Offer::NotFound);
                    }
                }
            }
        };
        assert_eq!(rounds, [2]);
        assert_eq!(asked, ["a", "c"].map(|m| Some(OwnedValue::string(m))));
        assert_eq!(staged.rows.column("t").unwrap().data(), &ColumnData::Date(vec![2, 4, 3, 1]));
        assert_eq!(staged.sections.iter().map(|s| s.rows).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[test]
    fn dates_outside_the_standard_range_are_noticed() {
        let mut catalog = catalog();
        assert!(!stage_answering(&mut catalog, &[at(0)], &mut |_| unreachable!()).extended_range);
        assert!(stage_answering(&mut catalog, &[at(-1)], &mut |_| unreachable!()).extended_range);
    }

    #[test]
    fn rows_without_a_date_column_are_an_internal_error() {
        let mut rows = Block::new(1);
        let mut builder = ColumnBuilder::new();
        builder.push(OwnedValue::double(1.0).view());
        rows.set_column("t", builder.finish());
        let mut catalog = catalog();
        let mut batch = catalog.batch(rows);
        assert_eq!(catalog.stage(&mut batch).unwrap_err().code, ErrorCode::InternalError);
    }

    #[test]
    fn an_abandoned_batch_leaves_nothing_behind() {
        let mut catalog = reopening_catalog();
        insert(&mut catalog, &[of(0, "b")]);
        let mut batch = catalog.batch(block(&[of(1, "b"), of(0, "a")]));
        assert!(matches!(catalog.stage(&mut batch).unwrap(), Staging::Reopen(_)));
        // The row of b was staged and is never finished.
        let sections = stage(&mut catalog, &[of(2, "b")]);
        assert_eq!(catalog.stats().active, 1);
        assert!(sections.len() == 1 && catalog.staged.len() == 1 && catalog.staged[0].is_insert);
    }

    #[test]
    fn entries_of_abandoned_series_are_removed_and_others_are_still_found() {
        let mut catalog = catalog();
        let kept: Vec<_> = (0..50).map(|n| of(0, &format!("kept{n}"))).collect();
        for round in 0..3 {
            let docs: Vec<_> = (0..600).map(|n| of(0, &format!("gone{round}.{n}"))).collect();
            stage(&mut catalog, &docs);
            catalog.abort();
            insert(&mut catalog, &kept);
        }
        assert!(catalog.series.len() < 1200, "{}", catalog.series.len());
        let stats = catalog.stats();
        assert_eq!((stats.active, stats.open_series, stats.idle), (50, 50, 50));
        assert_eq!((stats[Counter::BucketInserts], stats[Counter::BucketUpdates]), (50, 100));
    }
}
