//! The keys that a storage call touches: two calls without common keys are independent, and their order makes no difference.

use timepail::storage::{Bytes, Change, Changeset, KeyRange};

/// The keys that a call reads and those that it writes.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    reads: Vec<KeyRange>,
    writes: Vec<KeyRange>,
}

impl Footprint {
    pub fn of_keys(keys: &[Bytes]) -> Footprint {
        Footprint { reads: keys.iter().map(|key| only(key)).collect(), writes: Vec::new() }
    }

    pub fn of_ranges(ranges: &[KeyRange]) -> Footprint {
        Footprint { reads: ranges.to_vec(), writes: Vec::new() }
    }

    pub fn of_changes(changes: &Changeset) -> Footprint {
        let mut footprint = Footprint::default();
        for change in changes.changes() {
            match change {
                Change::Put(key, _) | Change::Delete(key) => footprint.writes.push(only(key)),
                Change::DeleteRange(range) => footprint.writes.push(range.clone()),
                Change::Insert(key, _) => {
                    footprint.reads.push(only(key));
                    footprint.writes.push(only(key));
                }
                Change::Require(key) | Change::Expect(key) => footprint.reads.push(only(key)),
            }
        }
        footprint
    }

    /// True if the order of the two calls can make a difference.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        meet(&self.writes, &other.writes) || meet(&self.writes, &other.reads) || meet(&self.reads, &other.writes)
    }
}

fn only(key: &[u8]) -> KeyRange {
    KeyRange { start: key.to_vec(), end: [key, &[0]].concat() }
}

fn meet(some: &[KeyRange], others: &[KeyRange]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.start < other.end && other.start < one.end))
}
