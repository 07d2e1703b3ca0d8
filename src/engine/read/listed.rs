//! Lists the buckets of a range from its end. Storage is only read forwards, and the last of many buckets often suffice: so
//! the range is listed in parts, the newest one first.

use std::rc::Rc;

use super::scan::{Rest, Scan, buckets_of};
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::limits::FIRST_PART_SPANS;
use crate::storage::KeyRange;

/// The part of a range that is not listed yet.
pub(super) struct Older {
    range: KeyRange,
    /// How often a part was listed.
    parts: u32,
}

impl Older {
    /// A whole range.
    pub fn new(range: KeyRange) -> Older {
        Older { range, parts: 0 }
    }

    /// An id that none of its buckets exceeds.
    pub fn highest(&self) -> Option<BucketId> {
        keyspace::highest_bucket(&self.range)
    }
}

impl Engine {
    /// Lists buckets of a scan from its end, until there are some, or none are left.
    ///
    /// Errors: those of storage.
    pub(super) async fn list_older(&self, scan: &mut Scan) -> Result<()> {
        let collection = Rc::clone(scan.collection());
        let (id, epoch) = (collection.id(), collection.journal.epoch());
        while matches!(&scan.rest, Rest::Ids(ids) if ids.is_empty())
            && let Some(Older { range, parts }) = scan.older.take()
        {
            let kept = self.buckets.borrow().scan(&id, &range, usize::MAX);
            if let Some((kept, covered)) = kept
                && range.end <= covered.end
            {
                scan.rest = Rest::Ids(kept.into_iter().map(|(id, _)| id).collect());
                break;
            }
            // Each part reaches further back than the one before. Most data ends about now.
            let end_ms = keyspace::highest_bucket(&range).map_or(0, |id| i64::from(id.time_seconds()) * 1000);
            let spans = FIRST_PART_SPANS << (6 * parts).min(30);
            let back_ms = collection.entry().options.timeseries.span_ms().saturating_mul(spans);
            let start = BucketId::lowest_at(self.env.now_ms().min(end_ms).saturating_sub(back_ms));
            let start = keyspace::bucket(&id, &start).max(range.start.clone());
            let part = KeyRange { start: start.clone(), end: range.end };
            let ids = buckets_of(&self.scan_keys(vec![part.clone()]).await?)?;
            let mut cache = self.buckets.borrow_mut();
            // If earlier scans have fetched all of them, later ones need no storage.
            if collection.journal.epoch() == epoch && ids.iter().all(|one| cache.get(&id, one).is_some()) {
                cache.cover(&id, &part);
            }
            scan.rest = Rest::Ids(ids);
            let left = KeyRange { start: range.start, end: start };
            scan.older = (!left.is_empty()).then_some(Older { range: left, parts: parts + 1 });
        }
        Ok(())
    }
}
