//! Lists the buckets of a range, or of a series, from its end. Storage is only read forwards, and the last of many buckets
//! often suffice: so they are listed in parts, the newest one first.

use std::rc::Rc;

use super::scan::{Rest, Scan};
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::store::keyspace::{self, CollectionId};
use crate::error::Result;
use crate::index;
use crate::limits::{DECODED_BUCKETS_MIN, FIRST_PART_SPANS, KEYS_A_MISS, MISSED_BUCKETS_MIN};

use crate::listed::IntoList;
use crate::query::{Counters, ReadAccess};
use crate::storage::{Bytes, KeyRange};
use crate::value::{Interner, OwnedValue, sort_by};

/// Buckets that are not listed yet, and how many parts of them were listed.
pub(in crate::engine) enum Older {
    /// Those of a range.
    Range(KeyRange, u32),
    /// Those of a series with ids below this one.
    Entries(ReadAccess, BucketId, u32),
}

impl Older {
    /// An id that none of its buckets exceeds.
    pub fn highest(&self) -> Option<BucketId> {
        match self {
            Older::Range(range, _) => keyspace::highest_bucket(range),
            Older::Entries(_, end, _) => Some(*end),
        }
    }

    /// The access to the buckets of a series that begin at `start_ms` or later, and what is left. Buckets are told apart by
    /// their ids, which hold their starts.
    pub fn split(series: &ReadAccess, (start_ms, span_ms): (i64, i64), parts: u32) -> (ReadAccess, Option<Older>) {
        let ReadAccess::Series { points, first_ms, last_ms } = series else { return (series.clone(), None) };
        if start_ms <= 0 || first_ms.is_some_and(|first_ms| first_ms > start_ms) {
            return (series.clone(), None);
        }
        let access = |first_ms, last_ms| ReadAccess::Series { points: points.clone(), first_ms, last_ms };
        // The time in an entry may differ from that of the id, but not by a whole span.
        let [from_ms, end_ms] = [-span_ms, span_ms].map(|by_ms| start_ms.saturating_add(by_ms));
        let older = access(*first_ms, Some(last_ms.map_or(end_ms, |last_ms| last_ms.min(end_ms))));
        let older = Older::Entries(older, BucketId::lowest_at(start_ms), parts);
        (access(Some(from_ms.max(first_ms.unwrap_or(i64::MIN))), *last_ms), Some(older))
    }

    /// True if a bucket is none of these.
    pub fn is_newer(older: Option<&Older>, id: &BucketId) -> bool {
        older.and_then(Older::highest).is_none_or(|end| *id >= end)
    }
}

impl Scan {
    /// The buckets named by an index; `None` if a whole range is fetched.
    pub(in crate::engine) fn named(&self) -> Option<Vec<BucketId>> {
        match &self.rest {
            Rest::Ids(ids) => Some(ids.iter().rev().copied().listed()),
            _ => None,
        }
    }

    /// How many buckets named by an index are still to be fetched.
    pub(in crate::engine) fn entries(&self) -> usize {
        if let Rest::Ids(ids) = &self.rest { ids.len() } else { 0 }
    }

    /// How many index entries were read after those that it was aimed at.
    pub(in crate::engine) fn entries_listed(&self) -> usize {
        self.entries_listed
    }
}

impl Engine {
    /// Notes what a query has done that the second half of the module would spare later ones.
    pub(in crate::engine) fn note_work(&self, done: &Counters) {
        let is_long = done.buckets_unpacked >= DECODED_BUCKETS_MIN;
        let missed = if is_long && self.has_decoded.replace(is_long) { MISSED_BUCKETS_MIN } else { 0 };
        self.note_missed(done.buckets_missed.max(missed));
    }

    /// Notes the buckets that a query has read in vain.
    fn note_missed(&self, buckets: u64) {
        self.missed_buckets.set(self.missed_buckets.get().map(|most| most.max(buckets)));
    }

    /// The time at which data probably ends. Most ends about now.
    pub(in crate::engine) fn last_ms(&self, collection: &Collection) -> i64 {
        match collection.known.last_start.get() {
            (epoch, last_ms) if epoch == collection.journal.epoch() => last_ms,
            _ => self.env.now_ms(),
        }
    }

    /// Lists buckets of a scan from its end, until there are some, or none are left.
    ///
    /// Errors: those of storage.
    pub(super) async fn list_older(&self, scan: &mut Scan) -> Result<()> {
        let collection = Rc::clone(scan.collection());
        let (id, epoch) = (collection.id(), collection.journal.epoch());
        while matches!(&scan.rest, Rest::Ids(ids) if ids.is_empty())
            && let Some(older) = scan.older.take()
        {
            let end = older.highest().unwrap_or(BucketId::MAX);
            let (Older::Range(_, parts) | Older::Entries(_, _, parts)) = older;
            let span_ms = collection.entry().options.timeseries.span_ms();
            // Each part reaches further back than the one before.
            let back_ms = span_ms.saturating_mul(FIRST_PART_SPANS << (3 * parts).min(30));
            let end_ms = i64::from(end.time_seconds()) * 1000;
            let start_ms = self.last_ms(&collection).min(end_ms).saturating_sub(back_ms);
            let range = match older {
                Older::Range(range, _) => range,
                Older::Entries(series, ..) => {
                    let (part, older) = Older::split(&series, (start_ms, span_ms), parts + 1);
                    let mut ids = buckets_of(&self.scan_keys(index_ranges(&collection, &part)).await?)?;
                    ids.retain(|id| *id < end && Older::is_newer(older.as_ref(), id));
                    scan.entries_listed += ids.len();
                    sort_by(&mut ids, Ord::cmp);
                    (scan.rest, scan.older) = (Rest::Ids(ids), older);
                    continue;
                }
            };
            let in_memory = self.buckets.borrow().scan_end(&id, &range, scan.page_max);
            let is_listed = in_memory.is_none();
            let (ids, start) = match in_memory {
                Some(found) => found,
                None => {
                    let start = keyspace::bucket(&id, &BucketId::lowest_at(start_ms)).max(range.start.clone());
                    let part = KeyRange { start: start.clone(), end: range.end };
                    let ids = buckets_of(&self.scan_keys(vec![part.clone()]).await?)?;
                    // The second half of the module would have found the end with fewer keys.
                    self.note_missed(ids.len() as u64 / KEYS_A_MISS);
                    if collection.journal.epoch() == epoch {
                        self.cover_end(&id, part, &ids);
                    }
                    (ids, start)
                }
            };
            scan.rest = Rest::Ids(ids);
            let left = KeyRange { start: range.start, end: start };
            scan.older = (!left.is_empty()).then_some(Older::Range(left, parts + u32::from(is_listed)));
        }
        scan.lacks |= scan.older.is_none() && matches!(&scan.rest, Rest::Ids(ids) if ids.is_empty());
        Ok(())
    }

    /// Notes that earlier scans have fetched the last of these buckets, which are all of `part`: later scans of its end need no storage.
    fn cover_end(&self, collection: &CollectionId, part: KeyRange, ids: &[BucketId]) {
        let mut cache = self.buckets.borrow_mut();
        let is_missing = |one: &BucketId| cache.get(collection, one).flatten().is_none();
        match ids.iter().rposition(is_missing).and_then(|at| ids.get(at)) {
            None => cache.cover(collection, &part),
            Some(last) if Some(last) != ids.last() => {
                let start = keyspace::buckets(collection, last, last).end;
                cache.cover(collection, &KeyRange { start, end: part.end });
            }
            Some(_) => {}
        }
    }
}

/// The ranges of index entries, or of buckets in a union, that an access reads; ascending and disjoint.
pub(in crate::engine) fn index_ranges(collection: &Collection, access: &ReadAccess) -> Vec<KeyRange> {
    let id = collection.id();
    let mut ranges: Vec<KeyRange> = Vec::new();
    for branch in access.branches() {
        let prefix = branch.index().map(|index| keyspace::index_prefix(&id, index)).unwrap_or_default();
        let behind = |key: &[u8]| [&prefix[..], key].concat();
        let mut add = |(start, end): (Vec<u8>, Vec<u8>)| ranges.push(KeyRange { start, end });
        match branch {
            ReadAccess::Series { .. } => {
                series_ranges(collection, branch).iter().for_each(|(start, end)| add((behind(start), behind(end))));
            }
            ReadAccess::Index(access) => {
                access.ranges.iter().for_each(|(low, high)| add((behind(low), KeyRange::prefix(&behind(high)).end)));
            }
            ReadAccess::Buckets { low, high } if matches!(access, ReadAccess::Union(_)) => {
                let range = keyspace::buckets(&id, low, high);
                add((range.start, range.end));
            }
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => {}
        }
    }
    index::apart(ranges)
}

/// The ranges of entries in the default index that a plan reads.
pub(in crate::engine) fn series_ranges(collection: &Collection, access: &ReadAccess) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ReadAccess::Series { points, first_ms, last_ms } = access else { return Vec::new() };
    let span_ms = collection.entry().options.timeseries.span_ms();
    let range = |value: &OwnedValue| index::range(Some(value.view()), span_ms, *first_ms, *last_ms);
    points.values.values().iter().map(range).chain(points.texts.iter().map(|_| index::texts())).collect()
}

/// The buckets at the ends of index entries, each once.
pub(in crate::engine) fn buckets_of(entries: &[Bytes]) -> Result<Vec<BucketId>> {
    let mut seen = Interner::default();
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let bucket = keyspace::bucket_id(entry)?;
        if seen.add(bucket.as_bytes()).1 {
            found.push(bucket);
        }
    }
    Ok(found)
}
