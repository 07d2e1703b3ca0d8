//! Buckets that are changed by others than inserts: deletes, updates, retention, other contexts.
//!
//! Whoever changes a stored bucket says so before and after. In between no insert is given the bucket, neither from memory nor
//! from storage, and what was fetched in the meantime is asked for again.

use super::registry::State;
use super::state::Catalog;
use super::stats::Counter;
use crate::bucket::BucketId;
use crate::error::{Error, Result};

impl Catalog {
    /// Stored buckets are about to be changed: all of `ids`, or none of them where this fails.
    ///
    /// Every start takes a `direct_write_finish` of the same ids, however the write ends. They stack. Rows that are staged for one
    /// of these buckets and not yet being committed find another one.
    /// Errors: `WriteConflict` if rows of such a bucket are being committed; once they are, the call may be repeated.
    pub fn direct_write_start(&mut self, ids: &[BucketId]) -> Result<()> {
        if self.is_committing(ids) {
            return Err(Error::write_conflict("Rows of a bucket are being committed"));
        }
        self.take_from_inserts(ids);
        Ok(())
    }

    /// The change of these buckets has ended, well or badly.
    pub fn direct_write_finish(&mut self, ids: &[BucketId]) {
        let mut changed = false;
        for id in ids {
            changed |= self.registry.finish(*id);
        }
        if changed {
            self.next_era();
        }
    }

    /// A stored bucket has been changed. Rows of it that are being committed are not called back, but it takes no more of them.
    pub fn clear_bucket(&mut self, id: BucketId) {
        self.take_from_inserts(&[id]);
        self.direct_write_finish(&[id]);
    }

    /// Never opens or reopens a bucket of this id again: its stored form is damaged.
    pub fn freeze(&mut self, id: BucketId) {
        if self.registry.freeze(id) {
            self.stats[Counter::Frozen] += 1;
            self.close_conflicting();
            let archived = self.archive.forget(id);
            self.drop_archived(archived);
        }
    }

    /// True for a bucket that was frozen.
    pub fn is_frozen(&self, id: BucketId) -> bool {
        self.registry.state(id) == Some(State::Frozen)
    }

    /// True if rows of one of these buckets are being committed.
    pub fn is_committing(&self, ids: &[BucketId]) -> bool {
        self.prepared && self.staged.iter().any(|part| ids.contains(&part.id))
    }

    /// As `direct_write_start`, whatever is being committed: that goes through, and its buckets take nothing more.
    pub fn take_from_inserts(&mut self, ids: &[BucketId]) {
        let mut first = false;
        for id in ids {
            first |= self.registry.start(*id);
        }
        if first {
            self.next_era();
            self.close_conflicting();
        }
    }

    /// Closes the open buckets that inserts must leave alone.
    fn close_conflicting(&mut self) {
        for slot in 0..self.series.len() {
            let mut index = 0;
            while let Some(bucket) = self.bucket(slot, index) {
                let (id, staged) = (bucket.id, bucket.staged);
                if self.registry.state(id).is_none() {
                    index += 1;
                    continue;
                }
                if staged > 0 && !self.prepared {
                    self.round += 1;
                }
                self.close(slot, index);
            }
        }
    }

    /// What was fetched so far may be stale.
    pub(super) fn next_era(&mut self) {
        let era = self.totals.era.get() + 1;
        self.totals.era.set(era);
        self.registry.era = era;
    }
}
