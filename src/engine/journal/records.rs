//! The records of journals in the order in which they came, and runs of them: neighbouring records, whose rows are taken at once.
//!
//! Groups grow with every commit, but records stay as they are. So what is known of a run is known for as long as its records are
//! not folded.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::entry::{JournalEntry, RecordKey};
use crate::bucket::KeptColumns;
use crate::catalog::Section;
use crate::engine::store::stored_bucket::Coverage;
use crate::limits::{ROWS_TOGETHER, RUN_BUCKETS_MAX};

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
    /// Runs, from the first record on, as far as somebody has asked for them.
    runs: RefCell<Vec<Rc<RecordRun>>>,
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
