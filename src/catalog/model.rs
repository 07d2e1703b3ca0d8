//! The rules for choosing a bucket, written measurement by measurement. Tests compare the catalog, which works on runs
//! of rows, with this model.

use std::collections::BTreeMap;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use proptest::prelude::*;

use super::rollover::RolloverReason;
use super::samples::*;
use super::{CatalogOptions, Counter, Offer, ReopenFailure, Reopened, Staging, Stats};
use crate::bucket::{BucketId, Schema, bucket_start_ms};
use crate::value::{Doc, digits};

/// The stored buckets: start and measurements of each, by number.
type Store = Vec<(i64, Vec<RawDocumentBuf>)>;

/// The outcome of a search for a stored bucket.
enum ModelSearch {
    Found(usize),
    NotFound,
    Failed,
}

/// The same outcome for model and catalog.
fn search(store: &Store, time: i64, archived: Option<usize>, options: &CatalogOptions) -> ModelSearch {
    let fits = |(min, docs): &(i64, Vec<_>)| {
        *min <= time && time - min < HOUR && !docs.is_empty() && docs.len() < options.bucket_count_max
    };
    match archived.or_else(|| store.iter().position(fits)) {
        Some(_) if time % 7 == 0 => ModelSearch::Failed,
        Some(number) if store[number].1.is_empty() => ModelSearch::NotFound,
        Some(number) => ModelSearch::Found(number),
        None => ModelSearch::NotFound,
    }
}

fn fields(doc: &RawDocumentBuf) -> impl Iterator<Item = (&str, crate::value::Value<'_>)> {
    Doc::parse(doc.as_bytes()).unwrap().iter().filter(|(name, _)| *name != "m")
}

fn fits(schema: &mut Schema, doc: &RawDocumentBuf) -> bool {
    fields(doc).all(|(name, value)| schema.update(name, value))
}

fn reopened(store: &Store, number: usize, id: BucketId) -> Reopened {
    let (min_time_ms, docs) = &store[number];
    let mut schema = Schema::new();
    assert!(docs.iter().all(|doc| fits(&mut schema, doc)));
    let field_names = docs.iter().flat_map(|doc| fields(doc).map(|(name, _)| name.into())).collect();
    let size_bytes = 150 + 10 * docs.len();
    Reopened { id, min_time_ms: *min_time_ms, count: docs.len(), size_bytes, schema, field_names }
}

fn time_of(doc: &RawDocumentBuf) -> i64 {
    doc.get_datetime("t").unwrap().timestamp_millis()
}

#[derive(Default)]
struct ModelBucket {
    number: usize,
    min: i64,
    count: usize,
    staged: usize,
    size: usize,
    estimate: usize,
    kept: bool,
    reason: Option<RolloverReason>,
    schema: Schema,
    names: Vec<String>,
}

/// One series.
struct Model {
    options: CatalogOptions,
    open: Vec<ModelBucket>,
    archived: BTreeMap<i64, usize>,
    /// Number of buckets ever opened.
    opened: usize,
    stats: Stats,
}

impl Model {
    /// The bytes that a measurement adds: the exact part, and the estimate.
    fn sizes(&self, bucket: &ModelBucket, doc: &RawDocumentBuf) -> (usize, usize) {
        // Four bytes for the name, one for the type, and for the string "a" five bytes and the text.
        let (mut verified, mut estimate) = (if bucket.size == 0 { 4 + 1 + 6 } else { 0 }, 0);
        for (name, value) in fields(doc) {
            if !bucket.names.iter().any(|n| n == name) {
                verified += 12 + name.len() + 2 * (1 + name.len() + 1 + value.bytes().len());
            }
            let cell = 1 + value.bytes().len() + digits(bucket.count) + 1;
            if cell > self.options.large_measurement_bytes {
                estimate += cell;
            }
        }
        (verified, estimate)
    }

    /// Why a bucket does not take a measurement.
    fn reason(&mut self, at: usize, doc: &RawDocumentBuf) -> Option<RolloverReason> {
        const CAP: usize = 12_582_912;
        if self.open[at].size == 0 {
            return None;
        }
        let (verified, estimate) = self.sizes(&self.open[at], doc);
        let active = self.open.len() + self.archived.len();
        let derived = (self.options.cache_bytes / (2 * active)).max(self.options.bucket_size_bytes_min);
        let effective = derived.min(self.options.bucket_size_bytes_max);
        let bucket = &mut self.open[at];
        let time = time_of(doc);
        if time - bucket.min >= HOUR {
            return Some(RolloverReason::TimeForward);
        }
        if time < bucket.min {
            return Some(RolloverReason::TimeBackward);
        }
        if bucket.count >= self.options.bucket_count_max {
            return Some(RolloverReason::Count);
        }
        let total = bucket.size + verified + estimate;
        if total > effective {
            if bucket.count < self.options.bucket_count_min {
                if total > CAP.min(derived) {
                    return Some(if derived < CAP { RolloverReason::CachePressure } else { RolloverReason::Size });
                }
                if !bucket.kept {
                    bucket.kept = true;
                    self.stats[Counter::KeptOpenDueToLargeMeasurements] += 1;
                }
            } else if effective == self.options.bucket_size_bytes_max {
                return Some(RolloverReason::Size);
            } else {
                return Some(RolloverReason::CachePressure);
            }
        }
        (!fits(&mut bucket.schema, doc)).then_some(RolloverReason::SchemaChange)
    }

    /// Rolls over a bucket without uncommitted rows; true if it is gone.
    fn roll_over(&mut self, at: usize) -> bool {
        let bucket = &self.open[at];
        let Some(reason) = bucket.reason.filter(|_| bucket.staged == 0) else { return false };
        match reason {
            RolloverReason::TimeForward => self.stats[Counter::ClosedDueToTimeForward] += 1,
            RolloverReason::TimeBackward => self.stats[Counter::ArchivedDueToTimeBackward] += 1,
            RolloverReason::Count => self.stats[Counter::ClosedDueToCount] += 1,
            RolloverReason::Size => self.stats[Counter::ClosedDueToSize] += 1,
            RolloverReason::CachePressure => self.stats[Counter::ClosedDueToCachePressure] += 1,
            RolloverReason::SchemaChange => self.stats[Counter::ClosedDueToSchemaChange] += 1,
        }
        let bucket = self.open.remove(at);
        if reason == RolloverReason::TimeBackward {
            if bucket.count >= self.options.bucket_count_max {
                self.stats[Counter::ClosedDueToCount] += 1;
            } else if bucket.size >= self.options.bucket_size_bytes_max && bucket.count >= self.options.bucket_count_min
            {
                self.stats[Counter::ClosedDueToSize] += 1;
            } else {
                self.archived.entry(bucket.min).or_insert(bucket.number);
            }
        }
        true
    }

    fn find_open(&mut self, doc: &RawDocumentBuf, query_allowed: &mut bool) -> Option<usize> {
        let time = time_of(doc);
        let mut candidates = Vec::new();
        let numbers: Vec<usize> = self.open.iter().map(|b| b.number).collect();
        for number in numbers {
            let at = self.open.iter().position(|b| b.number == number).unwrap();
            let bucket = &self.open[at];
            let in_span = bucket.min <= time && time - bucket.min < HOUR;
            match bucket.reason {
                None => candidates.push((3, bucket.count, number)),
                Some(reason) => {
                    *query_allowed &= reason == RolloverReason::TimeBackward;
                    match reason {
                        RolloverReason::TimeForward if in_span => candidates.push((1, bucket.count, number)),
                        RolloverReason::TimeBackward if in_span => candidates.push((2, bucket.count, number)),
                        _ => drop(self.roll_over(at)),
                    }
                }
            }
        }
        // Stable: buckets with equally many measurements stay in the order in which they were opened.
        candidates.sort_by_key(|(class, count, _)| (*class, *count));
        for (_, _, number) in candidates {
            let at = self.open.iter().position(|b| b.number == number).unwrap();
            match self.reason(at, doc) {
                None => return Some(at),
                Some(reason) => {
                    self.open[at].reason = Some(reason);
                    *query_allowed &= reason == RolloverReason::TimeBackward;
                }
            }
        }
        None
    }

    /// The bucket for a measurement, and whether it was opened because the series had none.
    fn find_bucket(&mut self, doc: &RawDocumentBuf, store: &Store) -> (usize, bool) {
        let time = time_of(doc);
        let mut query_allowed = true;
        let mut by_metadata = self.open.is_empty();
        if let Some(at) = self.find_open(doc, &mut query_allowed) {
            return (at, false);
        }
        let archived = self.archived.range(..=time).next_back().filter(|(min, _)| time - **min < HOUR);
        let archived = archived.map(|(_, number)| *number);
        if archived.is_some() || query_allowed {
            let found = search(store, time, archived, &self.options);
            let missed = matches!(found, ModelSearch::NotFound);
            by_metadata &= missed;
            self.stats[match (archived.is_some(), missed) {
                (true, false) => Counter::Fetched,
                (true, true) => Counter::FetchesFailed,
                (false, false) => Counter::Queried,
                (false, true) => Counter::QueriesFailed,
            }] += 1;
            match found {
                ModelSearch::Failed => self.stats[ReopenFailure::Validator] += 1,
                ModelSearch::Found(number) if self.open.iter().any(|b| b.number == number) => {
                    self.stats[Counter::DuplicateReopened] += 1;
                }
                ModelSearch::Found(number) => {
                    let at = self.install(reopened(store, number, BucketId::MIN), number);
                    match self.reason(at, doc) {
                        None => return (at, false),
                        reason => self.open[at].reason = reason,
                    }
                }
                ModelSearch::NotFound => {}
            }
        }
        if let Some(at) = self.find_open(doc, &mut query_allowed) {
            return (at, false);
        }
        let bucket = ModelBucket { number: self.opened, min: bucket_start_ms(time, 60), ..ModelBucket::default() };
        self.opened += 1;
        self.open.push(bucket);
        (self.open.len() - 1, by_metadata)
    }

    fn install(&mut self, found: Reopened, number: usize) -> usize {
        if self.archived.get(&found.min_time_ms) == Some(&number) {
            self.archived.remove(&found.min_time_ms);
        }
        if let Some(at) = self.open.iter().position(|b| b.reason.is_none()) {
            if self.open[at].staged > 0 {
                self.open[at].reason = Some(RolloverReason::TimeForward);
            } else {
                self.stats[Counter::ClosedDueToReopening] += 1;
                self.open.remove(at);
            }
        }
        self.stats[Counter::Reopened] += 1;
        self.open.push(ModelBucket {
            number,
            min: found.min_time_ms,
            count: found.count,
            size: found.size_bytes,
            schema: found.schema,
            names: found.field_names.iter().map(|name| name.to_string()).collect(),
            ..ModelBucket::default()
        });
        self.open.len() - 1
    }

    /// The bucket of every measurement, and for every bucket whether it was opened because the series had none, in the
    /// order of their first measurements.
    fn stage(&mut self, docs: &[RawDocumentBuf], store: &Store) -> (Vec<usize>, Vec<(usize, bool, bool)>) {
        let (mut taken, mut batches) = (Vec::new(), Vec::<(usize, bool, bool)>::new());
        while taken.len() < docs.len() {
            let (at, by_metadata) = self.find_bucket(&docs[taken.len()], store);
            let number = self.open[at].number;
            if batches.iter().all(|(n, ..)| *n != number) {
                batches.push((number, by_metadata, self.open[at].count == 0));
            }
            while let Some(doc) = docs.get(taken.len()) {
                if let Some(reason) = self.reason(at, doc) {
                    self.open[at].reason = Some(reason);
                    break;
                }
                let (verified, estimate) = self.sizes(&self.open[at], doc);
                let bucket = &mut self.open[at];
                assert!(bucket.size > 0 || fits(&mut bucket.schema, doc));
                bucket.size += verified + estimate;
                bucket.estimate += estimate;
                bucket.count += 1;
                bucket.staged += 1;
                for (name, _) in fields(doc) {
                    if bucket.names.iter().all(|n| n != name) {
                        bucket.names.push(name.to_owned());
                    }
                }
                taken.push(number);
            }
        }
        (taken, batches)
    }

    fn finish(&mut self, batches: &[(usize, bool, bool)], rows: usize, stored_bytes: usize) {
        for (number, by_metadata, is_insert) in batches {
            let at = self.open.iter().position(|b| b.number == *number).unwrap();
            let bucket = &mut self.open[at];
            self.stats[Counter::Commits] += 1;
            self.stats[Counter::MeasurementsCommitted] += bucket.staged as u64;
            self.stats[Counter::BucketInserts] += u64::from(*is_insert);
            self.stats[Counter::BucketUpdates] += u64::from(!*is_insert);
            self.stats[Counter::OpenedDueToMetadata] += u64::from(*by_metadata);
            bucket.size = bucket.size + stored_bytes * bucket.staged / rows - bucket.estimate;
            (bucket.estimate, bucket.staged) = (0, 0);
            self.roll_over(at);
        }
    }

    fn stats(&self) -> Stats {
        let active = self.open.len() + self.archived.len();
        Stats { active, open_series: usize::from(!self.open.is_empty()), ..self.stats }
    }
}

/// A measurement: its minute, and the value of field `x` or of another field.
fn a_measurement() -> impl Strategy<Value = RawDocumentBuf> {
    (0..200_i64, 0..12_usize).prop_map(|(minute, kind)| {
        let t = DateTime::from_millis(minute * MINUTE + 1);
        match kind {
            0 => rawdoc! { "t": t, "m": "a", "x": "text" },
            1 => rawdoc! { "t": t, "m": "a", "x": 1, "large": "y".repeat(150) },
            2 => rawdoc! { "t": t, "m": "a", "y": { "z": 1 } },
            3 => rawdoc! { "t": t, "m": "a", "y": { "z": true } },
            4 => rawdoc! { "t": t, "m": "a", "large": "y".repeat(40) },
            _ => rawdoc! { "t": t, "m": "a", "x": 1 },
        }
    })
}

#[derive(Clone, Debug)]
struct Commit {
    docs: Vec<RawDocumentBuf>,
    stored_bytes: usize,
    fails: bool,
}

fn a_commit() -> impl Strategy<Value = Commit> {
    // Most commits stay within an hour or two, so that buckets fill up.
    let near = (0..180_i64, proptest::collection::vec(a_measurement(), 1..12)).prop_map(|(from, mut docs)| {
        for doc in &mut docs {
            let t = DateTime::from_millis((from + time_of(doc) / MINUTE % 20) * MINUTE + 1);
            let mut moved = rawdoc! { "t": t };
            doc.iter()
                .map(|e| e.unwrap())
                .filter(|(k, _)| *k != "t")
                .for_each(|(k, v)| moved.append(k, bson::RawBson::from(v)));
            *doc = moved;
        }
        docs
    });
    let docs = prop_oneof![1 => proptest::collection::vec(a_measurement(), 1..12), 3 => near];
    (docs, 0..200_usize, 0..12).prop_map(|(mut docs, stored_bytes, fails)| {
        docs.sort_by_key(time_of);
        Commit { docs, stored_bytes, fails: fails == 0 }
    })
}

fn some_options() -> impl Strategy<Value = CatalogOptions> {
    (3..25_usize, 1..6_usize, 300..2000_usize, prop_oneof![Just(2000_usize), Just(6000), Just(1 << 30)]).prop_map(
        |(bucket_count_max, bucket_count_min, bucket_size_bytes_max, cache_bytes)| CatalogOptions {
            bucket_count_max,
            bucket_count_min,
            bucket_size_bytes_max,
            bucket_size_bytes_min: 250,
            cache_bytes,
            memory_bytes_max: usize::MAX,
            ..CatalogOptions::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn runs_of_rows_get_the_same_buckets_as_single_measurements(
        options in some_options(),
        commits in proptest::collection::vec(a_commit(), 1..25),
    ) {
        let mut catalog = catalog_with(options);
        let mut model = Model { options, open: Vec::new(), archived: BTreeMap::new(), opened: 0, stats: Stats::default() };
        let mut store = Store::new();
        let mut ids: Vec<BucketId> = Vec::new();
        for Commit { docs, stored_bytes, fails } in commits {
            let (expected, batches) = model.stage(&docs, &store);
            let mut batch = catalog.batch(block(&docs));
            let staged = loop {
                match catalog.stage(&mut batch).unwrap() {
                    Staging::Staged(staged) => break staged,
                    Staging::Reopen(requests) => for request in &requests {
                        let archived = request.archived.map(|id| ids.iter().position(|known| *known == id).unwrap());
                        catalog.offer(request, match search(&store, request.time_ms, archived, &options) {
                            ModelSearch::Found(number) => Offer::Found(reopened(&store, number, ids[number])),
                            ModelSearch::NotFound => Offer::NotFound,
                            ModelSearch::Failed => Offer::Failed(ReopenFailure::Validator),
                        });
                    },
                }
            };
            let mut found = Vec::new();
            for section in &staged.sections {
                let number = ids.iter().position(|id| *id == section.bucket).unwrap_or_else(|| {
                    ids.push(section.bucket);
                    store.push((section.min_time_ms, Vec::new()));
                    ids.len() - 1
                });
                prop_assert_eq!(store[number].0, section.min_time_ms);
                found.extend(std::iter::repeat_n(number, section.rows));
            }
            prop_assert_eq!(&found, &expected);
            if fails {
                catalog.abort();
                model.open.retain(|b| b.staged == 0);
            } else {
                catalog.finish(stored_bytes);
                model.finish(&batches, docs.len(), stored_bytes);
                docs.iter().zip(&found).for_each(|(doc, number)| store[*number].1.push(doc.clone()));
            }
            let stats = Stats { idle: 0, memory_bytes: 0, ..catalog.stats() };
            prop_assert_eq!(stats, model.stats());
        }
    }
}
