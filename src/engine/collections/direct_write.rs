//! Direct writes: changes of stored buckets that do not come from inserts (I27).

use super::collection::Collection;
use crate::bucket::BucketId;

/// Keeps buckets away from inserts, in memory and in storage, until it is dropped.
pub struct DirectWrites<'a> {
    collection: &'a Collection,
    ids: Vec<BucketId>,
}

impl Collection {
    /// Keeps inserts away from these buckets, and waits for commits of their rows to end.
    ///
    /// Hold the result while the buckets are rewritten, whatever the outcome. The server makes a writer that meets such
    /// a commit retry. This method waits instead: behind inserts that never pause, a writer would retry for ever.
    pub async fn direct_writes(&self, ids: Vec<BucketId>) -> DirectWrites<'_> {
        let commit = {
            let mut catalog = self.catalog.borrow_mut();
            let commit = catalog.is_committing(&ids).then(|| self.work.queue.borrow().running()).flatten();
            catalog.take_from_inserts(&ids);
            commit
        };
        let writes = DirectWrites { collection: self, ids };
        if let Some(commit) = commit {
            // The inserts receive its outcome; here only its end matters.
            let _ = commit.wait().await;
        }
        writes
    }
}

impl Drop for DirectWrites<'_> {
    fn drop(&mut self) {
        self.collection.catalog.borrow_mut().direct_write_finish(&self.ids);
    }
}
