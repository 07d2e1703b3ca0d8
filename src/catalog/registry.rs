//! Buckets that inserts must not use: those under a direct write, and damaged ones.

use crate::bucket::BucketId;

/// Why inserts must not use a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketState {
    /// This many direct writes of it have begun and not ended.
    DirectWrite(u32),
    /// Its stored form is damaged. It stays frozen as long as this process lives; direct writes may try to repair it.
    Frozen,
}

/// The server's bucket state registry, without the states that the catalog already knows: a bucket is *normal* while it
/// is open, *prepared* while rows of it are committed, and a *cleared* bucket is removed from the open ones at once.
///
/// Source: mongodb/mongo src/mongo/db/timeseries/bucket_catalog/bucket_state_registry.cpp.
#[derive(Debug, Default)]
pub struct Registry {
    /// Ascending by id.
    states: Vec<(BucketId, BucketState)>,
    /// Counts changes of stored buckets: whatever was fetched in an older era may be stale.
    pub era: u64,
}

impl Registry {
    fn place(&self, id: BucketId) -> Result<usize, usize> {
        self.states.binary_search_by(|(known, _)| known.cmp(&id))
    }

    /// Why inserts must not use a bucket; `None` if they may.
    pub fn state(&self, id: BucketId) -> Option<BucketState> {
        self.states.get(self.place(id).ok()?).map(|(_, state)| *state)
    }

    /// Number of buckets that inserts must not use.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Begins a direct write; true if it is the bucket's only one.
    pub fn start(&mut self, id: BucketId) -> bool {
        let at = match self.place(id) {
            Ok(at) => at,
            Err(at) => {
                self.states.insert(at, (id, BucketState::DirectWrite(0)));
                at
            }
        };
        match self.states.get_mut(at) {
            Some((_, BucketState::DirectWrite(running))) => {
                *running += 1;
                *running == 1
            }
            _ => false,
        }
    }

    /// Ends a direct write; true if it was the bucket's last one.
    pub fn finish(&mut self, id: BucketId) -> bool {
        let Ok(at) = self.place(id) else { return false };
        let last = match self.states.get_mut(at) {
            Some((_, BucketState::DirectWrite(running))) => {
                *running -= 1;
                *running == 0
            }
            _ => false,
        };
        if last {
            self.states.remove(at);
        }
        last
    }

    /// Freezes a bucket for good; false if it was frozen already.
    pub fn freeze(&mut self, id: BucketId) -> bool {
        match self.place(id) {
            Ok(at) => {
                let state = self.states.get_mut(at).map(|(_, state)| std::mem::replace(state, BucketState::Frozen));
                state != Some(BucketState::Frozen)
            }
            Err(at) => {
                self.states.insert(at, (id, BucketState::Frozen));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> BucketId {
        BucketId::from_bytes([n; 12])
    }

    #[test]
    fn direct_writes_nest_and_the_last_to_end_frees_the_bucket() {
        let mut registry = Registry::default();
        assert!(registry.start(id(2)) && registry.start(id(1)) && !registry.start(id(2)));
        assert_eq!(registry.state(id(2)), Some(BucketState::DirectWrite(2)));
        assert!(!registry.finish(id(2)) && registry.state(id(2)) == Some(BucketState::DirectWrite(1)));
        assert!(registry.finish(id(2)) && registry.state(id(2)).is_none());
        assert_eq!((registry.len(), registry.state(id(1))), (1, Some(BucketState::DirectWrite(1))));
    }

    #[test]
    fn direct_writes_do_not_unfreeze_a_bucket() {
        let mut registry = Registry::default();
        assert!(registry.start(id(1)) && registry.freeze(id(1)) && !registry.freeze(id(1)));
        assert!(!registry.start(id(1)) && !registry.finish(id(1)) && !registry.finish(id(1)));
        assert_eq!(registry.state(id(1)), Some(BucketState::Frozen));
        assert!(registry.freeze(id(2)) && !registry.start(id(2)));
    }

    #[test]
    fn ending_a_direct_write_that_never_began_changes_nothing() {
        let mut registry = Registry::default();
        assert!(!registry.finish(id(1)) && registry.len() == 0);
    }
}
