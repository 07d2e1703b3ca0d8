//! Lists the buckets of a range, or of a series, from its end. Storage is only read forwards, and the last of many buckets
//! often suffice: so they are listed in parts, the newest one first.

use std::rc::Rc;

use super::scan::{Rest, Scan};
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::limits::{FIRST_PART_SPANS, KEYS_A_MISS};
use crate::storage::{Bytes, KeyRange};
use crate::value::{Interner, sort_by};

/// Buckets that are not listed yet.
pub(in crate::engine) enum Older {
    /// Those of a range, and how many parts of it were listed.
    Range(KeyRange, u32),
    /// Those with entries in these ranges of an index, and ids below this one.
    Entries(Vec<KeyRange>, BucketId),
}

impl Older {
    /// An id that none of its buckets exceeds.
    pub fn highest(&self) -> Option<BucketId> {
        match self {
            Older::Range(range, _) => keyspace::highest_bucket(range),
            Older::Entries(_, end) => Some(*end),
        }
    }
}

impl Scan {
    /// How many index entries were read after those that it was aimed at.
    pub(in crate::engine) fn entries_listed(&self) -> usize {
        self.entries_listed
    }
}

impl Engine {
    /// Notes the buckets that a query has read in vain.
    pub(in crate::engine) fn note_missed(&self, buckets: u64) {
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
            let (range, parts) = match older {
                Older::Range(range, parts) => (range, parts),
                Older::Entries(ranges, end) => {
                    let mut ids = buckets_of(&self.scan_keys(ranges).await?)?;
                    ids.retain(|id| *id < end);
                    scan.entries_listed = ids.len();
                    sort_by(&mut ids, Ord::cmp);
                    scan.rest = Rest::Ids(ids);
                    break;
                }
            };
            let kept = self.buckets.borrow().scan(&id, &range, usize::MAX);
            if let Some((kept, covered)) = kept
                && range.end <= covered.end
            {
                scan.rest = Rest::Ids(kept.into_iter().map(|(id, _)| id).collect());
                break;
            }
            // Each part reaches further back than the one before.
            let end_ms = keyspace::highest_bucket(&range).map_or(0, |id| i64::from(id.time_seconds()) * 1000);
            let spans = FIRST_PART_SPANS << (3 * parts).min(30);
            let back_ms = collection.entry().options.timeseries.span_ms().saturating_mul(spans);
            let start = BucketId::lowest_at(self.last_ms(&collection).min(end_ms).saturating_sub(back_ms));
            let start = keyspace::bucket(&id, &start).max(range.start.clone());
            let part = KeyRange { start: start.clone(), end: range.end };
            let ids = buckets_of(&self.scan_keys(vec![part.clone()]).await?)?;
            // The second half of the module would have found the end with fewer keys.
            self.note_missed(ids.len() as u64 / KEYS_A_MISS);
            let mut cache = self.buckets.borrow_mut();
            // If earlier scans have fetched all of them, later ones need no storage.
            if collection.journal.epoch() == epoch && ids.iter().all(|one| cache.get(&id, one).flatten().is_some()) {
                cache.cover(&id, &part);
            }
            scan.rest = Rest::Ids(ids);
            let left = KeyRange { start: range.start, end: start };
            scan.older = (!left.is_empty()).then_some(Older::Range(left, parts + 1));
        }
        scan.lacks |= scan.older.is_none() && matches!(&scan.rest, Rest::Ids(ids) if ids.is_empty());
        Ok(())
    }
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
