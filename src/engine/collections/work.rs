//! What a context is doing with a collection at the moment.

use std::cell::{Cell, RefCell};

use crate::engine::store::queue::InsertQueue;
use crate::engine::store::signal::Signal;

/// The commands of this context that wait or run.
#[derive(Default)]
pub(in crate::engine) struct Work {
    /// The inserts.
    pub queue: RefCell<InsertQueue>,
    /// The running fold.
    pub folding: RefCell<Option<Signal>>,
    /// The number of buckets that a running command has still to move to windows.
    pub buckets_to_move: Cell<Option<u64>>,
}
