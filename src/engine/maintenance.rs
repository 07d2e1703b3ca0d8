//! What is done apart from any command: journals are folded, what has expired is deleted; and the end of a context.

use super::Engine;
use super::expire::Expired;
use super::find::cursor::Cursors;
use super::store::bucket_cache::BucketCache;
use crate::error::Result;

impl Engine {
    /// True if `maintain` has work to do: a journal has passed its bound, or a minute has passed since the last pass of retention.
    pub fn maintenance_due(&self) -> bool {
        !self.closed.get() && (self.expiry_due() || self.collections.borrow().values().any(|c| self.fold_due(c)))
    }

    /// Folds the journals that have passed their bound, and deletes what has expired. Apart from any insert: the caller runs it in
    /// the background. Answers what has expired, by collection.
    ///
    /// Errors: those of storage; the journals are then left as they were.
    pub async fn maintain(&self) -> Result<Vec<(String, Expired)>> {
        let expired = if self.expiry_due() { self.expire().await } else { Ok(Vec::new()) };
        let due: Vec<_> = self.collections.borrow().values().filter(|c| self.fold_due(c)).cloned().collect();
        for collection in due {
            self.fold_shared(&collection).await?;
        }
        expired
    }

    /// Folds what this context has journalled, in every collection that it has used.
    ///
    /// Errors: those of storage.
    pub async fn flush(&self) -> Result<()> {
        self.ensure_open()?;
        let used: Vec<_> = self.collections.borrow().values().cloned().collect();
        for collection in used {
            self.fold_shared(&collection).await?;
        }
        Ok(())
    }

    /// Folds this context's journals and refuses every further command. A failed fold loses nothing: whoever opens the
    /// database next reads the journals, and folds them.
    pub async fn close(&self) {
        if self.closed.get() {
            return;
        }
        let _ = self.flush().await;
        self.closed.set(true);
        self.collections.borrow_mut().clear();
        *self.cursors.borrow_mut() = Cursors::default();
        *self.buckets.borrow_mut() = BucketCache::default();
    }
}
