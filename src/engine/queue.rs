//! Inserts that wait for a commit, and the commit that runs.

use super::signal::Signal;
use crate::block::Block;

/// Inserts that wait for the next commit of a collection.
#[derive(Default)]
pub struct Queue {
    pub(super) blocks: Vec<Block>,
    /// Outcome of the commit that will take `blocks`; its maker has claimed it.
    pub(super) next: Option<Signal>,
    /// Outcome of the commit that runs.
    pub(super) running: Option<Signal>,
}

impl Queue {
    /// Outcome of the commit that runs.
    pub(super) fn running(&self) -> Option<Signal> {
        self.running.clone()
    }
}
