//! Rows waiting to be taken, in order of arrival.

use std::collections::VecDeque;

use super::assemble::{RowRun, assemble};
use crate::block::{Block, common_order};
use crate::limits::BLOCK_ROWS_MAX;

/// A queue of blocks, taken row by row.
#[derive(Default)]
pub struct Queue {
    blocks: VecDeque<Block>,
    /// Rows of the first block that were already taken.
    taken: usize,
    rows: usize,
    /// Of all blocks that came since the queue was empty.
    size_bytes: usize,
    /// About the bytes of a row of the first block as a document, if they were measured.
    row_bytes: Option<usize>,
}

impl Queue {
    /// Appends rows.
    pub fn push(&mut self, block: Block) {
        if block.rows() > 0 {
            self.size_bytes = block.size_bytes() + if self.rows > 0 { self.size_bytes } else { 0 };
            self.rows += block.rows();
            self.blocks.push_back(block);
        }
    }

    /// Number of waiting rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True if no rows wait, or if the last of them have the same fields as `block`, in the same order.
    pub fn suits(&self, block: &Block) -> bool {
        self.blocks.back().is_none_or(|last| last.has_fields_of(block))
    }

    /// About the bytes of all rows that came since there were none.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The next rows, up to those that have some fields in another order.
    pub fn take_alike(&mut self) -> Block {
        let mut names = Vec::new();
        let alike = self.blocks.iter().take_while(|block| block.add_names(&mut names));
        let rows: usize = alike.map(Block::rows).sum();
        self.take(rows - self.taken, usize::MAX)
    }

    /// The same without those that take long to join with others: these come by themselves. Perhaps in any order of fields.
    pub fn take_together(&mut self, in_any_order: bool) -> Block {
        let mut names = Vec::new();
        let agree = in_any_order || common_order(&mut self.blocks.iter()).is_some();
        let suits = |block: &&Block| !block.stands_alone() && (agree || block.add_names(&mut names));
        let together: usize = self.blocks.iter().take_while(suits).map(Block::rows).sum();
        let rows = if together > 0 { together } else { self.blocks.front().map_or(0, Block::rows) };
        self.take((rows - self.taken).min(BLOCK_ROWS_MAX), usize::MAX)
    }

    /// The next rows: at most `rows_max` and about `bytes_max` bytes, but at least one row.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Block {
        // Mostly, the rows of one bucket wait.
        if self.taken == 0 && self.blocks.len() == 1 && self.rows <= rows_max && bytes_max == usize::MAX {
            (self.rows, self.row_bytes) = (0, None);
            return self.blocks.pop_front().unwrap_or_default();
        }
        let mut budget = Budget { rows: rows_max, bytes: bytes_max, used: false };
        let mut taken: Vec<Block> = Vec::new();
        let mut runs = Vec::new();
        let mut partial = false;
        while let Some(block) = self.blocks.front() {
            let left = block.rows() - self.taken;
            let row_bytes =
                if bytes_max < usize::MAX { *self.row_bytes.get_or_insert_with(|| row_bytes_of(block)) } else { 1 };
            let count = budget.spend(left, row_bytes);
            if count == 0 {
                break;
            }
            runs.push(RowRun { block: taken.len(), rows: self.taken..self.taken + count });
            taken.extend(self.blocks.pop_front());
            self.rows -= count;
            partial = count < left;
            self.row_bytes = self.row_bytes.filter(|_| partial);
            self.taken = if partial { self.taken + count } else { 0 };
            if partial {
                break;
            }
        }
        if let ([run], [block]) = (runs.as_slice(), taken.as_slice())
            && run.rows == (0..block.rows())
        {
            // A batch of one whole bucket is returned as that bucket's block.
            return taken.pop().unwrap_or_default();
        }
        let batch = assemble(&taken, &runs);
        if partial && let Some(block) = taken.pop() {
            self.blocks.push_front(block);
        }
        batch
    }
}

/// Average bytes of a row of `block` as a document; never 0.
pub(super) fn row_bytes_of(block: &Block) -> usize {
    block.document_bytes().checked_div(block.rows()).unwrap_or_default().max(1)
}

/// The rows and bytes left in a batch.
pub(super) struct Budget {
    pub rows: usize,
    pub bytes: usize,
    /// True once a row was granted.
    pub used: bool,
}

impl Budget {
    /// How many of `rows` rows fit, given their average bytes. The first row of a batch always fits.
    pub fn spend(&mut self, rows: usize, row_bytes: usize) -> usize {
        let at_least = usize::from(!self.used);
        let count = rows.min(self.rows).min((self.bytes / row_bytes).max(at_least));
        self.rows -= count;
        self.bytes = self.bytes.saturating_sub(count.saturating_mul(row_bytes));
        self.used |= count > 0;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Column, ColumnData};

    fn block(numbers: std::ops::Range<i32>) -> Block {
        let mut block = Block::new(numbers.len());
        block.set_column("n", Column::new(ColumnData::I32(numbers.collect()), None));
        block
    }

    fn numbers(block: &Block) -> Vec<i32> {
        match block.column("n").map(Column::data) {
            Some(ColumnData::I32(v)) => v.clone(),
            _ => Vec::new(),
        }
    }

    fn queue() -> Queue {
        let mut queue = Queue::default();
        [block(0..3), block(3..3), block(3..5), block(5..9)].into_iter().for_each(|b| queue.push(b));
        queue
    }

    #[test]
    fn batches_of_any_size_give_the_rows_in_order() {
        for size in 1..12 {
            let mut queue = queue();
            let mut got = Vec::new();
            while queue.rows() > 0 {
                let batch = numbers(&queue.take(size, usize::MAX));
                assert_eq!(batch.len(), size.min(9 - got.len()));
                got.extend(batch);
            }
            assert_eq!(got, (0..9).collect::<Vec<_>>());
            assert_eq!(queue.take(size, usize::MAX).rows(), 0);
        }
    }

    #[test]
    fn rows_with_fields_in_another_order_are_not_taken_together() {
        let mut queue = Queue::default();
        let with = |name: &str, numbers| {
            let mut block = block(numbers);
            block.set_column(name, Column::new(ColumnData::I32(vec![0, 1]), None));
            block
        };
        let mut other = with("b", 6..8);
        other.begin_with("b", None);
        [block(0..2), with("a", 2..4), with("b", 4..6), other].into_iter().for_each(|b| queue.push(b));
        assert_eq!(queue.take(1, usize::MAX).rows(), 1);
        assert_eq!(numbers(&queue.take_alike()), [1, 2, 3, 4, 5]);
        assert_eq!((numbers(&queue.take_alike()), queue.rows()), (vec![6, 7], 0));
    }

    #[test]
    fn many_rows_with_a_large_dictionary_are_taken_by_themselves() {
        let with_entries = |numbers: std::ops::Range<i32>, rows_each: u32| {
            let (mut block, rows) = (block(numbers.clone()), numbers.len() as u32);
            let values = Column::new(ColumnData::I32((0..=rows / rows_each).map(|entry| entry as i32).collect()), None);
            let index = (0..rows).map(|row| row / rows_each).collect();
            block.set_column("m", Column::new(ColumnData::Dictionary(index, Box::new(values)), None));
            block
        };
        for in_any_order in [false, true] {
            let mut queue = Queue::default();
            for (numbers, rows_each) in
                [(0..5, 1), (5..9, 1), (9..700, 2), (700..1300, 4), (1300..2000, 100), (2000..2003, 1)]
            {
                queue.push(with_entries(numbers, rows_each));
            }
            assert_eq!(queue.take(2, usize::MAX).rows(), 2);
            let mut taken = Vec::new();
            while queue.rows() > 0 {
                taken.push(numbers(&queue.take_together(in_any_order)));
            }
            let starts: Vec<i32> = taken.iter().map(|numbers| numbers[0]).collect();
            assert_eq!((starts, taken.concat()), (vec![2, 9, 700, 1300], (2..2003).collect()));
            assert_eq!(queue.take_together(in_any_order).rows(), 0);
        }
    }

    #[test]
    fn a_block_that_waits_alone_is_taken_whole_if_it_fits() {
        let whole = block(0..3);
        let size_bytes = whole.document_bytes();
        for (rows_max, bytes_max, taken) in [(3, size_bytes, 3), (2, size_bytes, 2), (3, size_bytes - 1, 2)] {
            let mut queue = Queue::default();
            queue.push(whole.clone());
            assert_eq!(queue.take(rows_max, bytes_max).rows(), taken);
            queue.push(block(3..5));
            assert_eq!((queue.rows(), numbers(&queue.take(9, usize::MAX))), (5 - taken, (taken as i32..5).collect()));
        }
    }

    #[test]
    fn a_batch_ends_at_its_size_limit_but_has_at_least_one_row() {
        let mut queue = queue();
        assert_eq!(queue.take(100, 0).rows(), 1);
        let row = row_bytes_of(&block(0..3));
        assert_eq!(queue.take(100, 2 * row).rows(), 2);
        assert_eq!((queue.take(0, 100).rows(), queue.rows()), (0, 6));
    }
}
