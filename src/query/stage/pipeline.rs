//! Runs stages one after another.

use super::model::Others;
use super::running::Stage;
use super::spec::Step;
use crate::block::Block;
use crate::error::Result;
use crate::limits::{ROWS_TOGETHER, ROWS_TOGETHER_SIZE_BYTES_MAX};
use crate::listed::IntoList;
use crate::query::exec::{Exec, Flow, Queue, Sink};

/// Passes rows through stages.
pub struct Pipeline {
    stages: Vec<PipelineStage>,
    ready: Queue,
    /// Whether it may return in the middle of its work; otherwise, that is done before it returns.
    may_pause: bool,
    is_paused: bool,
}

/// A stage of a pipeline.
struct PipelineStage {
    stage: Box<dyn Stage>,
    /// Rows that wait for more: a stage takes as long for the few rows of a bucket as for some hundred more.
    waiting: Queue,
    /// How many rows it is given at once. It grows, for a stage may have enough with the first rows.
    together: usize,
    /// The number of rows that it has returned.
    rows_returned: u64,
}

impl PipelineStage {
    fn new(stage: Box<dyn Stage>) -> PipelineStage {
        PipelineStage { stage, waiting: Queue::default(), together: 1, rows_returned: 0 }
    }

    /// True if there are enough rows to take them.
    fn is_due(&mut self) -> bool {
        let rows = self.waiting.rows();
        if rows < self.together && self.waiting.size_bytes() < ROWS_TOGETHER_SIZE_BYTES_MAX {
            return false;
        }
        self.together = (2 * rows).clamp(self.together, ROWS_TOGETHER);
        true
    }
}

impl Pipeline {
    /// The running steps; `others` are the rows that they need from other collections.
    pub(super) fn new(steps: &mut dyn Iterator<Item = &Step>, others: &Others) -> Pipeline {
        let stages = steps.map(|step| PipelineStage::new(step.start(others))).listed();
        Pipeline { stages, ready: Queue::default(), may_pause: false, is_paused: false }
    }

    /// Lets `push` and `finish_stage` return while there is more to do: whoever calls them has to `resume` it.
    pub fn allow_pauses(&mut self) {
        self.may_pause = true;
    }

    /// True if `resume` must be called, and nothing else.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Goes on after a pause, until the next one or the end of what was begun.
    ///
    /// Errors: those of the stages.
    pub fn resume(&mut self) -> Result<Flow> {
        self.is_paused = false;
        // What the later stages have was there first.
        for at in (0..self.stages.len()).rev() {
            if self.hand_on(at)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
            if self.is_paused {
                break;
            }
        }
        Ok(Flow::Continue)
    }

    /// Takes rows, which may wait for more or for the end.
    ///
    /// Errors: those of the stages.
    pub fn push(&mut self, rows: Block) -> Result<Flow> {
        self.feed(0, rows)
    }

    /// Says that no more rows come.
    ///
    /// Errors: those of the stages.
    pub fn finish(&mut self) -> Result<()> {
        (0..)
            .map(|step| self.finish_stage(step))
            .find(|goes_on| *goes_on != Ok(true))
            .map_or(Ok(()), |end| end.map(drop))
    }

    /// As `finish`, in two steps for each stage: called with 0, 1, and so on, as long as it is true.
    ///
    /// Errors: those of the stages.
    pub fn finish_stage(&mut self, step: usize) -> Result<bool> {
        let at = step / 2;
        // Whether a stage has enough does not matter any more.
        let _ = if step.is_multiple_of(2) {
            self.feed_waiting(at)?
        } else {
            self.stages.get_mut(at).map_or(Ok(()), |state| state.stage.finish())?;
            self.hand_on(at)?
        };
        Ok(step + 1 < 2 * self.stages.len())
    }

    /// The number of rows that each stage has returned.
    pub fn rows_returned(&self) -> Vec<u64> {
        self.stages.iter().map(|state| state.rows_returned).listed()
    }

    /// The number of rows that `take` can return now.
    pub fn ready(&self) -> usize {
        self.ready.rows()
    }

    /// The next batch: at most `rows_max` rows and about `bytes_max` bytes, but at least one row if one is ready.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Block {
        self.ready.take(rows_max, bytes_max)
    }

    /// Lets rows wait for stage number `at`, or makes them ready after the last stage.
    fn feed(&mut self, at: usize, rows: Block) -> Result<Flow> {
        // The order of fields, which whole documents show, must not depend on which rows are filtered together.
        let suits = self.stages.get(at).is_none_or(|state| state.waiting.suits(&rows));
        // Joining many rows costs more than it saves.
        let is_large = rows.rows() >= ROWS_TOGETHER / 2 || rows.stands_alone();
        if (is_large || !suits) && self.feed_waiting(at)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
        let Some(state) = self.stages.get_mut(at) else {
            self.ready.push(rows);
            return Ok(Flow::Continue);
        };
        state.waiting.push(rows);
        if self.is_paused || !(is_large || state.is_due()) { Ok(Flow::Continue) } else { self.feed_waiting(at) }
    }

    /// Passes the rows that wait for a stage to it.
    fn feed_waiting(&mut self, at: usize) -> Result<Flow> {
        let Some(state) = self.stages.get_mut(at).filter(|state| state.waiting.rows() > 0) else {
            return Ok(Flow::Continue);
        };
        let flow = state.stage.push(state.waiting.take(usize::MAX, usize::MAX))?;
        Ok(if self.hand_on(at)? == Flow::Enough { Flow::Enough } else { flow })
    }

    /// Passes what a stage has ready to the next one.
    fn hand_on(&mut self, at: usize) -> Result<Flow> {
        while let Some(state) = self.stages.get_mut(at) {
            let Some(rows) = state.stage.take()? else { break };
            if rows.rows() == 0 {
                self.is_paused = self.may_pause;
            }
            state.rows_returned += rows.rows() as u64;
            if rows.rows() > 0 && self.feed(at + 1, rows)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
            if self.is_paused {
                break;
            }
        }
        Ok(Flow::Continue)
    }
}

/// A find in the middle of a pipeline: filter, sort, skip, limit, projection.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Column, ColumnData};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Passes rows on, up to a limit, and notes how many come at once.
    struct Noting {
        limit: usize,
        taken: Rc<RefCell<Vec<usize>>>,
        ready: Option<Block>,
    }

    impl Stage for Noting {
        fn push(&mut self, rows: Block) -> Result<Flow> {
            let mut taken = self.taken.borrow_mut();
            taken.push(rows.rows());
            self.ready = Some(rows);
            Ok(if taken.iter().sum::<usize>() >= self.limit { Flow::Enough } else { Flow::Continue })
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }

        fn take(&mut self) -> Result<Option<Block>> {
            Ok(self.ready.take())
        }
    }

    fn pipeline(limit: usize) -> (Pipeline, Rc<RefCell<Vec<usize>>>) {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let stage = Noting { limit, taken: Rc::clone(&taken), ready: None };
        let mut pipeline = Pipeline::new(&mut std::iter::empty(), &Others::default());
        pipeline.stages.push(PipelineStage::new(Box::new(stage)));
        (pipeline, taken)
    }

    fn block(rows: std::ops::Range<i64>) -> Block {
        let mut block = Block::new(rows.clone().count());
        block.set_column("n", Column::new(ColumnData::I64(rows.collect()), None));
        block
    }

    #[test]
    fn the_rows_of_more_and_more_buckets_are_passed_on_together_and_all_of_them_at_the_end() {
        let (mut pipeline, taken) = pipeline(usize::MAX);
        for bucket in 0..100 {
            assert_eq!(pipeline.push(block(100 * bucket..100 * (bucket + 1))), Ok(Flow::Continue));
        }
        pipeline.finish().unwrap();
        assert_eq!(*taken.borrow(), [100, 200, 400, 800, 1600, 3200, 3700]);
        let all = pipeline.take(usize::MAX, usize::MAX);
        assert_eq!(all, block(0..10_000));
        assert_eq!(pipeline.rows_returned(), [10_000]);
    }

    #[test]
    fn a_stage_with_enough_rows_stops_those_that_wait_behind_it() {
        let (mut pipeline, taken) = pipeline(3);
        assert_eq!(pipeline.push(block(0..2)), Ok(Flow::Continue));
        assert_eq!(pipeline.push(block(2..4)), Ok(Flow::Continue));
        assert_eq!(pipeline.push(block(4..6)), Ok(Flow::Enough));
        pipeline.finish().unwrap();
        assert_eq!(*taken.borrow(), [2, 4]);
    }

    #[test]
    fn the_few_rows_that_a_stage_returns_at_once_wait_for_more_before_the_next_stage() {
        let (mut pipeline, _) = pipeline(usize::MAX);
        let taken = Rc::new(RefCell::new(Vec::new()));
        let next = Noting { limit: 10_000, taken: Rc::clone(&taken), ready: None };
        pipeline.stages.push(PipelineStage::new(Box::new(next)));
        // As a stage that is given many rows, but returns few.
        let mut flow = Flow::Continue;
        for part in 0..100 {
            flow = pipeline.feed(1, block(100 * part..100 * (part + 1))).unwrap();
        }
        assert_eq!((flow, taken.borrow().as_slice()), (Flow::Continue, &[100, 200, 400, 800, 1600, 3200][..]));
        pipeline.finish().unwrap();
        assert_eq!(taken.borrow().last(), Some(&3700));
        assert_eq!(pipeline.take(usize::MAX, usize::MAX), block(0..10_000));
        assert_eq!(pipeline.rows_returned(), [0, 10_000]);
    }

    #[test]
    fn rows_with_other_fields_or_in_another_order_are_not_joined() {
        let (mut pipeline, taken) = pipeline(usize::MAX);
        let with = |names: &[&str]| {
            let mut block = block(0..3);
            names.iter().for_each(|name| block.set_column(name, Column::new(ColumnData::I64(vec![1, 2, 3]), None)));
            block
        };
        for names in [&["a", "b"][..], &["a"], &["a"], &["a", "b"], &["b", "a"], &["b", "a"], &["b", "a"], &["b"]] {
            assert_eq!(pipeline.push(with(names)), Ok(Flow::Continue));
        }
        pipeline.finish().unwrap();
        assert_eq!(*taken.borrow(), [3, 6, 3, 9, 3]);
        assert_eq!(pipeline.take(usize::MAX, usize::MAX).rows(), 24);
    }

    #[test]
    fn large_rows_do_not_wait_for_many() {
        let (mut pipeline, taken) = pipeline(usize::MAX);
        let text = "x".repeat(ROWS_TOGETHER_SIZE_BYTES_MAX / 4);
        for _ in 0..9 {
            let mut texts = crate::block::VarData::default();
            texts.push(text.as_bytes());
            let mut row = Block::new(1);
            row.set_column("text", Column::new(ColumnData::String(texts), None));
            let _ = pipeline.push(row).unwrap();
        }
        pipeline.finish().unwrap();
        assert!(taken.borrow().iter().all(|rows| *rows <= 4), "{taken:?}");
    }
}
