//! What a context knows of the stored collection, besides its entry and its journals.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::bucket_size::BucketSize;
use super::directory::Directory;

/// What this context has read of a collection, or has written itself.
pub(in crate::engine) struct Knowledge {
    /// True once dates outside the standard range are known to be stored.
    pub extended_range: Cell<bool>,
    /// How often the collection was folded; 0 without `dedupe`.
    pub generation: Cell<u64>,
    /// The time of this context's last commit, with `dedupe`.
    pub last_commit_ms: Cell<i64>,
    /// The sizes of all stored buckets by id, if known at the epoch of the journal. Used for `maxBytes`.
    pub bucket_sizes: RefCell<Option<Vec<BucketSize>>>,
    /// The stored buckets by series, if a query has asked for them.
    pub directory: RefCell<Option<Rc<Directory>>>,
    /// An epoch, and the start of the last stored bucket then, if that is long ago and a query had to search for it.
    pub last_start: Cell<(u64, i64)>,
}

impl Knowledge {
    /// Nothing but the generation.
    pub fn new(generation: u64) -> Knowledge {
        Knowledge {
            extended_range: Cell::new(false),
            generation: Cell::new(generation),
            last_commit_ms: Cell::new(i64::MIN),
            bucket_sizes: RefCell::default(),
            directory: RefCell::default(),
            last_start: Cell::default(),
        }
    }
}
