//! Stages one behind the other.

use super::model::Others;
use super::running::Stage;
use super::spec::Step;
use crate::block::Block;
use crate::error::Result;
use crate::query::exec::{Exec, Flow, Queue, Sink};

/// Runs rows through stages.
pub struct Pipeline {
    stages: Vec<Box<dyn Stage>>,
    /// How many rows came out of each.
    given: Vec<u64>,
    ready: Queue,
}

impl Pipeline {
    /// The steps at work; `others` are the rows of what they need of other collections.
    pub(super) fn new(steps: &mut dyn Iterator<Item = &Step>, others: &Others) -> Pipeline {
        let stages: Vec<Box<dyn Stage>> = steps.map(|step| step.start(others)).collect();
        Pipeline { given: vec![0; stages.len()], stages, ready: Queue::default() }
    }

    /// Takes rows.
    ///
    /// Errors: those of the stages.
    pub fn push(&mut self, rows: Block) -> Result<Flow> {
        self.feed(0, rows)
    }

    /// No more rows come.
    ///
    /// Errors: those of the stages.
    pub fn finish(&mut self) -> Result<()> {
        for at in 0..self.stages.len() {
            if let Some(stage) = self.stages.get_mut(at) {
                stage.finish()?;
            }
            // Whether the next one has enough does not matter any more.
            let _ = self.hand_on(at)?;
        }
        Ok(())
    }

    /// How many rows came out of each stage.
    pub fn given(&self) -> &[u64] {
        &self.given
    }

    /// Rows that `take` can give now.
    pub fn ready(&self) -> usize {
        self.ready.rows()
    }

    /// The next batch: at most `rows_max` rows, and about `bytes_max` bytes but at least one row where one is ready.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Block {
        self.ready.take(rows_max, bytes_max)
    }

    /// Gives rows to the stage number `at`, or makes them ready behind the last.
    fn feed(&mut self, at: usize, rows: Block) -> Result<Flow> {
        let Some(stage) = self.stages.get_mut(at) else {
            self.ready.push(rows);
            return Ok(Flow::Continue);
        };
        let flow = stage.push(rows)?;
        Ok(if self.hand_on(at)? == Flow::Enough { Flow::Enough } else { flow })
    }

    /// Gives what a stage has ready to the next one.
    fn hand_on(&mut self, at: usize) -> Result<Flow> {
        while let Some(rows) = self.stages.get_mut(at).map_or(Ok(None), |stage| stage.take())? {
            if let Some(given) = self.given.get_mut(at) {
                *given += rows.rows() as u64;
            }
            if self.feed(at + 1, rows)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::Continue)
    }
}

/// What a find does, in the middle of a pipeline: filter, sort, skip, limit, projection.
impl Stage for Exec {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        Sink::push(self, rows, None, false)
    }

    fn finish(&mut self) -> Result<()> {
        Exec::finish(self)
    }

    fn take(&mut self) -> Result<Option<Block>> {
        if self.ready() == 0 { Ok(None) } else { Exec::take(self, usize::MAX, usize::MAX).map(Some) }
    }
}
