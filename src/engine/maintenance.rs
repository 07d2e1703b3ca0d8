//! Background work apart from any command: folding journals, deleting what has expired; and closing a context.

use super::Engine;
use super::expire::Expired;
use super::find::cursor::Cursors;
use super::store::bucket_cache::BucketCache;
use crate::error::Result;
use crate::listed::IntoList;

impl Engine {
    /// True if `maintain` has work to do: a journal exceeds its limit, or the last pass of retention was more than a
    /// minute ago.
    pub fn maintenance_due(&self) -> bool {
        !self.closed.get() && (self.expiry_due() || self.collections.borrow().values().any(|c| self.fold_due(c)))
    }

    /// Folds the journals that exceed their limit, and deletes what has expired. The caller runs it in the background,
    /// apart from any insert. Returns what has expired, by collection.
    ///
    /// Errors: those of storage; the journals are then unchanged.
    pub async fn maintain(&self) -> Result<Vec<(String, Expired)>> {
        let expired = if self.expiry_due() { self.expire().await } else { Ok(Vec::new()) };
        let due: Vec<_> = self.collections.borrow().values().filter(|c| self.fold_due(c)).cloned().listed();
        for collection in due {
            self.fold_shared(&collection).await?;
        }
        expired
    }

    /// Folds this context's journals in every collection that it has used.
    ///
    /// Errors: those of storage.
    pub async fn flush(&self) -> Result<()> {
        self.ensure_open()?;
        let used: Vec<_> = self.collections.borrow().values().cloned().listed();
        for collection in used {
            self.fold_shared(&collection).await?;
        }
        Ok(())
    }

    /// Folds this context's journals and refuses every further command. A failed fold loses nothing: the context that
    /// opens the database next reads the journals and folds them.
    pub async fn close(&self) {
        if self.closed.get() {
            return;
        }
        let _ = self.flush().await;
        self.closed.set(true);
        self.collections.borrow_mut().clear();
        *self.cursors.borrow_mut() = Cursors::default();
        *self.live.borrow_mut() = None;
        *self.buckets.borrow_mut() = BucketCache::new(0);
    }
}
