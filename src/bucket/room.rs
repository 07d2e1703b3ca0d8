//! The memory that kept columns share.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use super::kept::BucketColumns;

/// A column evicts older ones that are in use only each time that so many found no room.
const REFUSED_COUNT: u32 = 8;
/// A column is in use as long as so few queries after the last one that read it have kept, or tried to keep, others. It is more than
/// a dashboard asks in turns, so that its queries do not evict each other's columns if all of them do not fit.
pub(super) const QUERIES_IN_USE: u32 = 16;
/// So many owners without an unused column are met before a search for one ends. The next search goes on behind them.
const OWNERS_MET: usize = 4;

/// The memory that the kept columns of many buckets share.
pub struct ColumnRoom {
    size_bytes_max: usize,
    /// Only the second half of the module knows its type, `MemoryRoom`, and has the code that drops it.
    memory: OnceCell<Rc<dyn Any>>,
    has_begun: Rc<Cell<bool>>,
}

impl ColumnRoom {
    /// Room for columns of about so many bytes.
    pub fn new(size_bytes_max: usize) -> ColumnRoom {
        ColumnRoom { size_bytes_max, memory: OnceCell::new(), has_begun: Rc::default() }
    }

    /// Notes that a query begins.
    pub fn begin_query(&self) {
        self.has_begun.set(true);
    }

    pub(super) fn memory(&self) -> Option<Rc<MemoryRoom>> {
        let (size_bytes_max, has_begun) = (self.size_bytes_max, &self.has_begun);
        shared(&self.memory, || MemoryRoom { size_bytes_max, has_begun: Rc::clone(has_begun), ..MemoryRoom::default() })
    }
}

/// What a cell holds, made on first use.
pub(super) fn shared<T: 'static>(cell: &OnceCell<Rc<dyn Any>>, make: impl FnOnce() -> T) -> Option<Rc<T>> {
    Rc::clone(cell.get_or_init(|| Rc::new(make()))).downcast().ok()
}

#[derive(Default)]
pub(super) struct MemoryRoom {
    size_bytes_max: usize,
    pub(super) size_bytes: Cell<usize>,
    refused: Cell<u32>,
    /// Whether a query has begun that has neither kept nor tried to keep a column.
    has_begun: Rc<Cell<bool>>,
    /// How many queries have done so.
    queries: Cell<u32>,
    /// Those that keep a column, oldest first; some of them may be gone.
    pub(super) owners: RefCell<VecDeque<Weak<BucketColumns>>>,
}

impl MemoryRoom {
    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes.get()
    }

    /// True if that many bytes more need not take the room of columns that are in use. Others make room for them.
    pub(super) fn fits(&self, size_bytes: usize) -> bool {
        let is_full = || self.size_bytes.get() + size_bytes > self.size_bytes_max;
        let mut met = 0;
        while size_bytes <= self.size_bytes_max && is_full() && met < OWNERS_MET {
            let Some(oldest) = self.owners.borrow_mut().pop_front() else { break };
            let Some(owner) = oldest.upgrade() else { continue };
            let before = self.size_bytes.get();
            owner.drop_unused();
            met = if self.size_bytes.get() < before { 0 } else { met + 1 };
            if owner.size_bytes.get() > 0 {
                self.owners.borrow_mut().push_back(oldest);
            }
        }
        !is_full()
    }

    /// The number of the last query, for what it reads.
    pub(super) fn used(&self) -> u32 {
        self.queries.get()
    }

    pub(super) fn is_in_use(&self, used: u32) -> bool {
        self.used().wrapping_sub(used) < QUERIES_IN_USE
    }

    /// Takes that many bytes for a column of `owner`, perhaps in place of older columns; false if there is no room.
    pub(super) fn takes(&self, owner: &Rc<BucketColumns>, size_bytes: usize, may_evict: bool) -> bool {
        if self.has_begun.take() {
            self.queries.set(self.used().wrapping_add(1));
        }
        if size_bytes > self.size_bytes_max / 8 {
            return false;
        }
        if may_evict && !self.fits(size_bytes) {
            self.refused.set((self.refused.get() + 1) % REFUSED_COUNT);
            while self.refused.get() == 0 && !self.fits(size_bytes) {
                let Some(oldest) = self.owners.borrow_mut().pop_front() else { break };
                oldest.upgrade().inspect(|oldest| oldest.clear());
            }
        }
        if !self.fits(size_bytes) {
            return false;
        }
        if owner.size_bytes.get() == 0 {
            let mut owners = self.owners.borrow_mut();
            if owners.len() == owners.capacity() {
                owners.retain(|owner| owner.strong_count() > 0);
                let count = owners.len();
                owners.reserve(count + 1);
            }
            owners.push_back(Rc::downgrade(owner));
        }
        self.size_bytes.set(self.size_bytes.get() + size_bytes);
        owner.size_bytes.set(owner.size_bytes.get() + size_bytes);
        true
    }
}
