//! Inserts that wait for a commit, and the running commit.

use super::signal::Signal;
use crate::block::Block;

/// Inserts that wait for the next commit of a collection.
#[derive(Default)]
pub struct InsertQueue {
    pub(in crate::engine) blocks: Vec<Block>,
    /// Outcome of the commit that will take `blocks`; an insert has claimed it.
    pub(in crate::engine) next: Option<Signal>,
    /// Outcome of the running commit.
    pub(in crate::engine) running: Option<Signal>,
}

impl InsertQueue {
    /// Outcome of the running commit.
    pub(in crate::engine) fn running(&self) -> Option<Signal> {
        self.running.clone()
    }
}
