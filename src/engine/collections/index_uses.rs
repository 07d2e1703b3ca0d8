//! Counts the queries of a context that use each index of a collection.

use std::cell::RefCell;

/// How often queries have used each index, by number.
pub(in crate::engine) struct IndexUses {
    counts: RefCell<Vec<(u16, i64)>>,
    /// When the counting began.
    pub since_ms: i64,
}

impl IndexUses {
    pub fn new(since_ms: i64) -> IndexUses {
        IndexUses { counts: RefCell::default(), since_ms }
    }

    /// Counts a query that uses an index.
    pub fn add(&self, number: u16) {
        let mut uses = self.counts.borrow_mut();
        match uses.iter_mut().find(|(known, _)| *known == number) {
            Some((_, n)) => *n += 1,
            None => uses.push((number, 1)),
        }
    }

    /// How many queries have used an index.
    pub fn of(&self, number: u16) -> i64 {
        self.counts.borrow().iter().find(|(known, _)| *known == number).map_or(0, |(_, n)| *n)
    }
}
