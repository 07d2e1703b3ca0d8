//! Changes of stored buckets that do not come from inserts.

use super::collection::Collection;
use crate::bucket::BucketId;

/// Buckets that no insert is given, neither from memory nor from storage, until this is dropped.
pub struct DirectWrites<'a> {
    collection: &'a Collection,
    ids: Vec<BucketId>,
}

impl Collection {
    /// Keeps inserts from these buckets, and waits for the rows of them that are being committed.
    ///
    /// To be held while the buckets are rewritten, whatever comes of it. Where the server tells a writer that meets such a
    /// commit to try again, this one waits: behind inserts that never pause it would try for ever.
    pub async fn direct_writes(&self, ids: Vec<BucketId>) -> DirectWrites<'_> {
        let commit = {
            let mut catalog = self.catalog.borrow_mut();
            let commit = catalog.is_committing(&ids).then(|| self.queue.borrow().running()).flatten();
            catalog.take_from_inserts(&ids);
            commit
        };
        let writes = DirectWrites { collection: self, ids };
        if let Some(commit) = commit {
            // Its outcome is told to the inserts; here only its end matters.
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
