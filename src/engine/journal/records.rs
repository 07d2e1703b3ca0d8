//! The records of journals in the order in which they came, and runs of them: neighbouring records, whose rows are taken at once.
//!
//! Groups grow with every commit, but records stay as they are. So what is known of a run is known for as long as its records are
//! not folded.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::entry::{JournalEntry, RecordKey};
use crate::block::{Block, common_order};
use crate::bucket::KeptColumns;
use crate::catalog::Section;
use crate::engine::store::stored_bucket::Coverage;
use crate::limits::{ROWS_TOGETHER, RUN_BUCKETS_MAX};
use crate::listed::IntoList;

/// With so many lists of columns, their order is not compared.
const SHAPES_MAX: usize = 64;

/// Records, with the groups of their sections.
#[derive(Clone, Default)]
pub struct Records {
    entries: Vec<Rc<JournalEntry>>,
    /// The number of the group of each section.
    groups: Vec<u32>,
    /// The place of the first section of each record among these.
    starts: Vec<usize>,
    /// The first record of each context.
    firsts: Vec<RecordKey>,
    shapes: RefCell<Shapes>,
    /// Runs, from the first record on, as far as somebody has asked for them.
    runs: RefCell<Vec<Rc<RecordRun>>>,
}

/// The columns that records have, without rows, each list once, up to `SHAPES_MAX` of them.
#[derive(Clone, Default)]
struct Shapes {
    /// Of how many records they are known.
    records: usize,
    lists: Vec<Block>,
}

/// Neighbouring records.
pub struct RecordRun {
    /// Their positions.
    pub records: Range<usize>,
    /// How many rows they have together.
    pub rows: usize,
    /// The times of the first and of the last of these.
    pub times: (i64, i64),
    /// Their joined columns.
    pub kept: KeptColumns,
}

impl Records {
    /// Adds a record, without its sections.
    pub(super) fn push(&mut self, entry: &Rc<JournalEntry>) {
        let (context, seq) = entry.key();
        match self.firsts.iter_mut().find(|(known, _)| *known == context) {
            Some((_, first)) => *first = seq.min(*first),
            None => self.firsts.push((context, seq)),
        }
        self.starts.push(self.groups.len());
        self.entries.push(Rc::clone(entry));
    }

    /// Adds the next section of the last record, which is of that group.
    pub(super) fn push_section(&mut self, group: usize) {
        self.groups.push(u32::try_from(group).unwrap_or(u32::MAX));
    }

    /// What is left without dropped records, given the new numbers of groups.
    pub(super) fn without_gone(&self, numbers: &[usize]) -> Records {
        let mut left = Records::default();
        for (at, entry) in self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_gone()) {
            left.push(entry);
            let groups = self.groups_of(at).iter();
            groups.filter_map(|group| numbers.get(*group as usize)).for_each(|number| left.push_section(*number));
        }
        left
    }

    fn groups_of(&self, at: usize) -> &[u32] {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.groups.len());
        self.starts.get(at).and_then(|start| self.groups.get(*start..end)).unwrap_or_default()
    }

    /// All records.
    pub fn entries(&self) -> &[Rc<JournalEntry>] {
        &self.entries
    }

    /// The sections of a run in the order of its rows, and the numbers of their groups.
    pub fn sections<'a>(&'a self, run: &RecordRun) -> impl Iterator<Item = (&'a Section, usize)> {
        let records = self.entries.iter().enumerate().take(run.records.end).skip(run.records.start);
        records.flat_map(|(at, entry)| {
            entry.record.sections.iter().zip(self.groups_of(at)).map(|(section, group)| (section, *group as usize))
        })
    }

    /// True if all records can show these columns in one order.
    // Loaded later.
    #[inline(never)]
    pub fn have_one_order(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        let Shapes { records, lists } = &mut *self.shapes.borrow_mut();
        for entry in self.entries.iter().skip(*records) {
            let rows = &entry.record.rows;
            if lists.len() < SHAPES_MAX && !lists.iter().rev().any(|known| known.has_fields_of(rows)) {
                lists.push(rows.slice(0..0));
            }
        }
        *records = self.entries.len();
        let wanted: Vec<Block> = lists.iter().map(|rows| rows.slice_columns(0..0, is_wanted)).listed();
        lists.len() < SHAPES_MAX && common_order(&mut wanted.iter()).is_some()
    }

    /// True if a bucket with this coverage may hold rows of a record.
    pub fn are_reached(&self, coverage: &Coverage) -> bool {
        self.firsts.iter().any(|first| coverage.reaches(first))
    }

    /// The run at that place; those before it must be known. None behind the last record.
    // Loaded later.
    #[inline(never)]
    pub fn run(&self, at: usize) -> Option<Rc<RecordRun>> {
        let runs = &mut *self.runs.borrow_mut();
        let all = self.entries.len();
        // The last one grows until it is full.
        let known = runs.get(at).filter(|run| run.is_full() || run.records.end == all);
        if let Some(known) = known {
            return Some(Rc::clone(known));
        }
        runs.truncate(at);
        let first = runs.last().map_or(0, |run| run.records.end);
        let mut run =
            RecordRun { records: first..first, rows: 0, times: (i64::MAX, i64::MIN), kept: KeptColumns::default() };
        for entry in self.entries.get(first..)? {
            if run.is_full() {
                break;
            }
            run.records.end += 1;
            run.rows += entry.record.rows.rows();
            run.times = (run.times.0.min(entry.times.0), run.times.1.max(entry.times.1));
        }
        if run.records.is_empty() {
            return None;
        }
        let run = Rc::new(run);
        runs.push(Rc::clone(&run));
        Some(run)
    }
}

impl RecordRun {
    fn is_full(&self) -> bool {
        self.rows >= ROWS_TOGETHER || self.records.len() >= RUN_BUCKETS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::shared;
    use super::super::sections::ByBucket;
    use super::*;
    use crate::block::ColumnBuilder;

    fn run(by_bucket: &ByBucket, at: usize) -> Option<(Range<usize>, usize, (i64, i64))> {
        by_bucket.records().run(at).map(|run| (run.records.clone(), run.rows, run.times))
    }

    #[test]
    fn a_run_stays_until_it_is_full_and_its_records_are_those_of_the_journal() {
        let mut by_bucket = ByBucket::default();
        assert!(run(&by_bucket, 0).is_none());
        let many: Vec<i64> = (0..ROWS_TOGETHER as i64).collect();
        by_bucket.push(&shared(1, 0, &[(1, &[5]), (2, &[9, 7])]));
        let first = by_bucket.records().run(0).unwrap();
        assert_eq!(run(&by_bucket, 0), Some((0..1, 3, (5, 9))));
        assert!(Rc::ptr_eq(&first, &by_bucket.records().run(0).unwrap()) && run(&by_bucket, 1).is_none());
        let before = by_bucket.clone();
        by_bucket.push(&shared(1, 1, &[(2, &many)]));
        by_bucket.push(&shared(3, 8, &[(4, &[1])]));
        assert_eq!(run(&by_bucket, 0), Some((0..2, 3 + many.len(), (0, many.len() as i64 - 1))));
        assert_eq!((run(&by_bucket, 1), run(&by_bucket, 2)), (Some((2..3, 1, (1, 1))), None));
        // Whoever reads the old journals finds their rows.
        assert_eq!(run(&before, 0), Some((0..1, 3, (5, 9))));
    }

    #[test]
    fn sections_come_with_the_numbers_of_their_groups_also_when_records_are_gone() {
        let entries = [
            shared(1, 0, &[(1, &[5]), (2, &[9, 7])]),
            shared(1, 1, &[(3, &[1]), (2, &[4])]),
            shared(2, 0, &[(3, &[2, 6]), (1, &[8])]),
        ];
        let mut by_bucket = ByBucket::of(entries.iter());
        let told = |by_bucket: &ByBucket| {
            let run = by_bucket.records().run(0).unwrap();
            by_bucket.records().sections(&run).map(|(section, group)| (section.rows, group)).collect::<Vec<_>>()
        };
        assert_eq!(told(&by_bucket), [(1, 0), (2, 1), (1, 2), (1, 1), (2, 2), (1, 0)]);
        entries[0].set_gone(true);
        by_bucket = by_bucket.without_gone();
        let buckets: Vec<u8> = by_bucket.groups().iter().map(|group| group.bucket.as_bytes()[0]).collect();
        assert_eq!((buckets, told(&by_bucket)), (vec![1, 2, 3], vec![(1, 2), (1, 1), (2, 2), (1, 0)]));
        entries[2].set_gone(true);
        by_bucket = by_bucket.without_gone();
        let buckets: Vec<u8> = by_bucket.groups().iter().map(|group| group.bucket.as_bytes()[0]).collect();
        assert_eq!((buckets, told(&by_bucket)), (vec![2, 3], vec![(1, 1), (1, 0)]));
    }

    #[test]
    fn records_have_one_order_if_no_two_disagree() {
        let of = |all: &[&[&str]]| {
            let records = Records::default();
            let list = |names: &&[&str]| {
                let mut rows = Block::new(0);
                names.iter().for_each(|name| rows.set_column(name, ColumnBuilder::new().finish()));
                rows
            };
            records.shapes.borrow_mut().lists = all.iter().map(list).collect();
            move |wanted: &str| records.have_one_order(&|name| wanted.contains(name))
        };
        let alike = of(&[&["a", "b"], &["a"], &["a", "b", "c"]]);
        assert!(alike("abc") && alike("b") && alike("bc") && alike("ac") && alike(""));
        let others = of(&[&["a", "b", "c"], &["b", "a", "c"]]);
        assert!(others("ac") && others("bc") && others("c") && !others("ab"));
        let parts = of(&[&["b"], &["a", "b"], &["a", "c"], &["b", "c"]]);
        assert!(parts("b") && parts("ab") && parts("abc"));
        let circle = of(&[&["a", "b"], &["b", "c"], &["c", "a"]]);
        assert!(circle("ab") && !circle("abc"));
        assert!(!of(&vec![&["a"][..]; SHAPES_MAX])("a"));
    }

    #[test]
    fn a_bucket_reaches_journals_if_it_covers_the_first_record_of_a_context() {
        let by_bucket = ByBucket::of([shared(1, 4, &[(1, &[1])]), shared(1, 5, &[(1, &[2])])].iter());
        let reached = |commits: &[(u8, u64)]| {
            let mut all = Coverage::default();
            for (context, seq) in commits {
                let mut coverage = Coverage::default();
                coverage.cover(([*context; 8], *seq), 0);
                coverage.came_from(([1; 8], 9), 0);
                all.join(&coverage);
            }
            by_bucket.records().are_reached(&all)
        };
        assert!(reached(&[(1, 4)]) && reached(&[(1, 2), (1, 7), (2, 1)]));
        assert!(!reached(&[(1, 3)]) && !reached(&[(2, 9), (1, 1)]) && !reached(&[]));
    }
}
