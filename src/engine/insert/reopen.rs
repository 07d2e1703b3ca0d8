//! Finds buckets, stored or in journals only, that could take the measurements of an insert.
//!
//! What was fetched may be stale when it is used: others write meanwhile, and their rows and ours end up in one bucket,
//! which the next fold merges. Correctness depends only on the start and the series of a bucket, which never change. An
//! outdated count or schema makes a bucket a little larger, or closes it a little earlier.

use std::rc::Rc;

use crate::bucket::{BucketDoc, BucketId, BucketVersion, Rows, Schema, unpack};
use crate::catalog::{Offer, ReopenFailure, ReopenRequest, Reopened};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{ByBucket, SectionRef};
use crate::engine::store::keyspace;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::index;
use crate::limits::REOPEN_CANDIDATES_MAX;
use crate::listed::IntoList;
use crate::storage::{Bytes, KeyRange, Page};
use crate::value::{FieldSet, OwnedValue, Value, sort_by};

/// Up to this many requests are sent to storage without checking first whether there is anything to find.
const REQUESTS_WITHOUT_A_LOOK: usize = 8;

/// What is known of a bucket: its stored form, journal rows outside of it, or both.
struct Candidate {
    id: BucketId,
    stored: Option<Rc<StoredBucket>>,
    sections: Vec<SectionRef>,
}

impl Engine {
    /// Answers every request of a batch to the catalog of `collection`.
    ///
    /// Errors: those of storage; `NamespaceNotFound` if the collection was dropped; `DataCorruptionDetected` if a
    /// journal or a key is damaged. The batch must not be staged again then. A damaged bucket is not an error but an
    /// answer.
    pub(in crate::engine) async fn reopen(
        &self,
        collection: &Rc<Collection>,
        requests: &[ReopenRequest],
    ) -> Result<()> {
        let known = collection.journal.by_bucket();
        let requests: Vec<&ReopenRequest> =
            requests.iter().filter(|request| !self.reopen_known(collection, &known, request)).listed();
        drop(known);
        if requests.is_empty() {
            return Ok(());
        }
        let mut ranges: Vec<KeyRange> = requests.iter().map(|request| range_of(collection, request)).listed();
        if requests.len() > REQUESTS_WITHOUT_A_LOOK && !self.has_buckets(collection).await? {
            ranges.clear();
        }
        let snapshot = self.journal_snapshot(collection, &ranges).await?;
        let refs = refs_of(snapshot.also, &ranges)?;
        let wanted: Vec<BucketId> = refs.iter().flatten().copied().listed();
        let stored = self.fetch(collection, &wanted).await?;
        let stored_of = |id: &BucketId| {
            let at = wanted.iter().position(|wanted| wanted == id)?;
            stored.get(at).cloned().flatten()
        };
        let journal = snapshot.journal;
        for (number, request) in requests.iter().enumerate() {
            let mut ids: Vec<BucketId> = refs.get(number).cloned().unwrap_or_default();
            match request.archived {
                Some(id) => ids = vec![id],
                None => ids.extend(journal.buckets_of(request.meta.as_ref(), request.time_ms)),
            }
            ids.dedup();
            // A bucket with unfolded rows of others may be open elsewhere; two contexts filling it at once would fill
            // it twice. The next context folds the journals of contexts that are gone.
            let is_ours = |id: &BucketId| {
                request.archived.is_some() || journal.sections_of(id).iter().all(|s| s.commit().0 == self.context)
            };
            let candidates = ids.into_iter().filter(is_ours).map(|id| Candidate {
                id,
                stored: stored_of(&id),
                sections: journal.sections_of(&id),
            });
            let offer = choose(collection, request, candidates);
            collection.catalog.borrow_mut().offer(request, offer);
        }
        Ok(())
    }

    /// Answers a request from memory: most late measurements belong to a bucket that this context has just written, and
    /// storage need not be asked. False if there is none.
    fn reopen_known(&self, collection: &Collection, journal: &ByBucket, request: &ReopenRequest) -> bool {
        let ids: Vec<BucketId> = match request.archived {
            Some(id) => vec![id],
            None => journal.buckets_of(request.meta.as_ref(), request.time_ms).listed(),
        };
        for id in ids {
            let sections = journal.sections_of(&id);
            let Some(stored) = self.buckets.borrow().get(&collection.id(), &id) else { continue };
            if sections.iter().any(|section| section.commit().0 != self.context) {
                continue;
            }
            if let Ok(Some(reopened)) = judge(collection, request, &Candidate { id, stored, sections }) {
                collection.catalog.borrow_mut().offer(request, Offer::Found(reopened));
                return true;
            }
        }
        false
    }

    /// False if nothing was ever folded, so that no stored bucket can exist.
    async fn has_buckets(&self, collection: &Collection) -> Result<bool> {
        let all = keyspace::buckets(&collection.id(), &BucketId::MIN, &BucketId::MAX);
        Ok(!self.storage.scan(&[all], Page { entries_max: 1, keys_only: true }).await?.is_empty())
    }
}

/// The range of keys that lead to the buckets of a request.
fn range_of(collection: &Collection, request: &ReopenRequest) -> KeyRange {
    let id = collection.id();
    let span_ms = collection.entry().options.timeseries.span_ms();
    let first_ms = request.time_ms.saturating_sub(span_ms);
    if let Some(bucket) = request.archived {
        return keyspace::buckets(&id, &bucket, &bucket);
    }
    if collection.meta_field().is_none() {
        // Ids begin with the time. For dates outside the standard range this finds some buckets, not all.
        return keyspace::buckets(&id, &BucketId::lowest_at(first_ms), &BucketId::highest_at(request.time_ms));
    }
    // The range starts at the first bucket that may hold the time, and no bucket that begins after it can.
    let meta = request.meta.as_ref().map(OwnedValue::view);
    let (start, end) = index::range(meta, span_ms, Some(request.time_ms), Some(request.time_ms));
    let prefix = keyspace::index_prefix(&id, index::META_TIME_INDEX);
    KeyRange { start: [&prefix[..], &start].concat(), end: [&prefix[..], &end].concat() }
}

/// The buckets that `keys` lead to, for each range; at most `REOPEN_CANDIDATES_MAX` each. Ranges may overlap: equal
/// numbers of two types are two series with one range.
fn refs_of(mut keys: Vec<Bytes>, ranges: &[KeyRange]) -> Result<Vec<Vec<BucketId>>> {
    sort_by(&mut keys, Ord::cmp);
    keys.dedup();
    let within = |range: &KeyRange| {
        let first = keys.partition_point(|key| *key < range.start);
        let found = keys.iter().skip(first).take_while(|key| **key < range.end);
        found.take(REOPEN_CANDIDATES_MAX).map(|key| keyspace::bucket_id(key)).try_listed()
    };
    ranges.iter().map(within).try_listed()
}

/// The first candidate that takes the measurements of the request. If none does, the reason of the last one of its
/// series and time. Freezes damaged and closed buckets on the way.
fn choose(collection: &Collection, request: &ReopenRequest, candidates: impl Iterator<Item = Candidate>) -> Offer {
    let mut failed = None;
    let mut chosen = None;
    for candidate in candidates {
        match judge(collection, request, &candidate) {
            Ok(None) => {}
            Ok(found) => {
                chosen = found;
                break;
            }
            Err(failure) => {
                let mut catalog = collection.catalog.borrow_mut();
                catalog.count_failure(failed.replace(failure));
                if failure.freezes() {
                    catalog.freeze(candidate.id);
                }
            }
        }
    }
    match chosen {
        Some(found) => {
            collection.catalog.borrow_mut().count_failure(failed);
            Offer::Found(found)
        }
        // The catalog counts the last failure itself.
        None => failed.map_or(Offer::NotFound, Offer::Failed),
    }
}

/// What the catalog needs to know of a candidate; `None` if the bucket is of another series or time, or full.
fn judge(
    collection: &Collection,
    request: &ReopenRequest,
    candidate: &Candidate,
) -> Result<Option<Reopened>, ReopenFailure> {
    let options = &collection.entry().options.timeseries;
    let catalog = collection.catalog.borrow();
    let frozen = || catalog.is_frozen(candidate.id).then_some(ReopenFailure::MarkedFrozen).map_or(Ok(()), Err);
    // Rows with other metadata go to a bucket of their own.
    let comes = |section: &&SectionRef| {
        let covered = candidate.stored.as_ref().is_some_and(|stored| stored.coverage.covers(section.commit()));
        !covered && section.section().is_some_and(|of| of.meta == request.meta)
    };
    let sections: Vec<&SectionRef> = candidate.sections.iter().filter(comes).listed();
    let journalled: usize = sections.iter().map(|section| section.rows().1.len()).sum();
    let in_time = |min_time_ms: i64| (0..options.span_ms()).contains(&request.time_ms.saturating_sub(min_time_ms));
    let has_room = |count: usize, size_bytes: usize| match request.archived {
        // An archived bucket is taken unless it is full; otherwise it says why not.
        Some(_) => count < catalog.options().bucket_count_max,
        None => catalog.may_reopen(count, size_bytes),
    };
    let mut reopened = match &candidate.stored {
        Some(stored) => {
            let document = stored.document.view();
            if document.get("_id").and_then(Value::as_object_id) != Some(*candidate.id.as_bytes()) {
                return Err(ReopenFailure::MalformedIdField);
            }
            // The index finds values that are equal in BSON order: a double finds an int32 of the same value.
            if document.get("meta") != request.meta.as_ref().map(OwnedValue::view) {
                return Err(ReopenFailure::HashCollision);
            }
            frozen()?;
            let bucket = BucketDoc::parse(document, options).map_err(|_| ReopenFailure::Validator)?;
            if bucket.closed() {
                return Err(ReopenFailure::MarkedClosed);
            }
            let schema = Schema::from_control(bucket.control_min(), bucket.control_max());
            let schema = schema.map_err(|_| ReopenFailure::SchemaGeneration)?;
            let times = document.get("data").and_then(Value::as_doc).and_then(|data| data.get(&options.time_field));
            if bucket.version() != BucketVersion::Uncompressed && times.and_then(Value::as_binary).is_none() {
                return Err(ReopenFailure::UncompressedTimeColumn);
            }
            let size_bytes = document.as_bytes().len();
            // Most buckets found are full or of another time, which shows without reading their columns.
            let may_take = |rows| in_time(bucket.min_time_ms()) && has_room(rows + journalled, size_bytes);
            if request.archived.is_none() && bucket.count().is_ok_and(|rows| !may_take(rows)) {
                return Ok(None);
            }
            // Rows must not go to a bucket that can no longer be folded.
            let rows = match stored.checked_rows.get() {
                Some(rows) => rows,
                None => {
                    let unpacked = unpack(&bucket, &FieldSet::All, options);
                    unpacked.map_err(|_| ReopenFailure::CompressionFailure)?.rows()
                }
            };
            stored.checked_rows.set(Some(rows));
            Reopened {
                id: candidate.id,
                min_time_ms: bucket.min_time_ms(),
                count: rows,
                size_bytes,
                schema,
                field_names: bucket.data().iter().map(|(name, _)| name.into()).listed(),
            }
        }
        None => {
            let Some(section) = sections.first().and_then(|section| section.section()) else { return Ok(None) };
            frozen()?;
            Reopened {
                id: candidate.id,
                min_time_ms: section.min_time_ms,
                count: 0,
                size_bytes: 0,
                schema: Schema::new(),
                field_names: Vec::new(),
            }
        }
    };
    let takes = in_time(reopened.min_time_ms) && has_room(reopened.count + journalled, reopened.size_bytes);
    if request.archived.is_none() && !takes {
        return Ok(None);
    }
    reopened.count += journalled;
    let mut known_types = None;
    for section in sections {
        let (block, rows) = section.rows();
        if known_types.is_some() && known_types == section.types() {
            continue;
        }
        if reopened.schema.fits_run(block, Rows::from(rows.clone()), None) < rows.len() {
            return Err(ReopenFailure::SchemaGeneration);
        }
        known_types = section.types();
        for (name, _) in block.columns() {
            if !reopened.field_names.contains(name) {
                reopened.field_names.push(name.clone());
            }
        }
    }
    Ok(takes.then_some(reopened))
}
