//! The ids of the buckets in a range.

use super::scan::buckets_of;
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::error::Result;
use crate::storage::KeyRange;

impl Engine {
    /// The ids of all buckets stored in a range, in any order: as memory knows them, or listed in storage.
    ///
    /// Errors: those of storage.
    pub(super) async fn listed(&self, collection: &Collection, range: KeyRange) -> Result<Vec<BucketId>> {
        let (id, epoch) = (collection.id(), collection.journal.epoch());
        let kept = self.buckets.borrow().scan(&id, &range, usize::MAX);
        if let Some((kept, covered)) = kept
            && range.end <= covered.end
        {
            return Ok(kept.into_iter().map(|(id, _)| id).collect());
        }
        let ids = buckets_of(&self.scan_keys(vec![range.clone()]).await?)?;
        let mut cache = self.buckets.borrow_mut();
        // If an earlier scan from the end has come to the start, later ones need no storage.
        if collection.journal.epoch() == epoch && ids.iter().all(|one| cache.get(&id, one).is_some()) {
            cache.cover(&id, &range);
        }
        Ok(ids)
    }
}
