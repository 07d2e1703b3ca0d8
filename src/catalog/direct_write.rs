//! Direct writes: changes of stored buckets by deletes, updates, retention and other contexts (I27).
//!
//! A change of a stored bucket is announced before and after it. In between no insert gets the bucket, neither from
//! memory nor from storage, and buckets fetched in the meantime are fetched again.

use super::registry::BucketState;
use super::state::Catalog;
use super::stats::Counter;
use crate::bucket::BucketId;
use crate::error::{Error, Result};

/// Ids with equal remainders of their counters are looked up alike.
const SIEVE_LEN: usize = 4096;

impl Catalog {
    /// Announces a change of stored buckets: of all `ids`, or of none if this fails.
    ///
    /// Every start needs a `direct_write_finish` of the same ids, however the write ends. Direct writes nest. Rows that
    /// are staged for one of these buckets but not yet being committed get another bucket.
    ///
    /// Errors: `WriteConflict` if rows of such a bucket are being committed; repeat the call once they are.
    pub fn direct_write_start(&mut self, ids: &[BucketId]) -> Result<()> {
        if self.is_committing(ids) {
            return Err(Error::write_conflict("An insert is writing rows of the bucket"));
        }
        self.take_from_inserts(ids);
        Ok(())
    }

    /// The change of these buckets has ended, whether it succeeded or not.
    pub fn direct_write_finish(&mut self, ids: &[BucketId]) {
        let mut changed = false;
        for id in ids {
            changed |= self.registry.finish(*id);
        }
        if changed {
            self.next_era();
        }
    }

    /// Drops a bucket that was changed in storage. Rows of it that are being committed go through, but it takes no
    /// more.
    pub fn clear_bucket(&mut self, id: BucketId) {
        self.take_from_inserts(&[id]);
        self.direct_write_finish(&[id]);
    }

    /// Never opens or reopens the bucket of this id again, because its stored form is damaged.
    pub fn freeze(&mut self, id: BucketId) {
        if self.registry.freeze(id) {
            self.stats[Counter::Frozen] += 1;
            self.close_conflicting(&[id]);
            let archived = self.archive.forget(id);
            self.drop_archived(archived);
        }
    }

    /// True if the bucket was frozen.
    pub fn is_frozen(&self, id: BucketId) -> bool {
        self.registry.state(id) == Some(BucketState::Frozen)
    }

    /// True if rows of one of these buckets are being committed.
    pub fn is_committing(&self, ids: &[BucketId]) -> bool {
        self.prepared && self.staged.iter().any(|part| ids.contains(&part.id))
    }

    /// As `direct_write_start`, but does not fail: a commit under way goes through, and its buckets take nothing more.
    pub fn take_from_inserts(&mut self, ids: &[BucketId]) {
        let mut first = false;
        for id in ids {
            first |= self.registry.start(*id);
        }
        if first {
            self.next_era();
            self.close_conflicting(ids);
        }
    }

    /// Closes those of the buckets `ids`, which inserts must not use, that are open.
    fn close_conflicting(&mut self, ids: &[BucketId]) {
        // A delete announces many buckets, page by page, and there may be as many open ones. Few of these pass the sieve.
        let mut sieve = [false; SIEVE_LEN];
        let hole = |id: BucketId| id.counter() as usize % SIEVE_LEN;
        for id in ids {
            sieve.get_mut(hole(*id)).into_iter().for_each(|passes| *passes = true);
        }
        for slot in 0..self.series.len() {
            let (mut index, mut closed) = (0, false);
            while let Some(bucket) = self.bucket(slot, index) {
                let (id, staged) = (bucket.id, bucket.staged);
                if sieve.get(hole(id)) == Some(&true) && self.registry.state(id).is_some() {
                    if staged > 0 && !self.prepared {
                        self.round += 1;
                    }
                    self.close(slot, index);
                    closed = true;
                }
                index += 1;
            }
            if closed {
                self.sweep(slot);
            }
        }
    }

    /// Begins a new era: buckets fetched before it may be stale.
    pub(super) fn next_era(&mut self) {
        let era = self.totals.era.get() + 1;
        self.totals.era.set(era);
        self.registry.era = era;
    }
}
