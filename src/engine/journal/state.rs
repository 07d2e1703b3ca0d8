//! The journal of a collection as this context knows it: which records exist, and their contents by bucket.
//!
//! **Invariant I22**: storage says which records exist; this is a cache of that. As long as the epoch stands and no
//! commit is doubtful, it holds all of this context's own records. As long as the epoch stands, it holds all records of
//! another context up to the last one it knows: a context writes its records in order, and removing one moves
//! the epoch on.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{JournalEntry, RecordKey};
use super::record::Record;
use super::sections::ByBucket;
use crate::bucket::BucketId;
use crate::engine::store::keyspace::ContextId;
use crate::engine::store::sorted_map::SortedMap;
use crate::limits::{
    FOLD_BYTES_A_ROW_MAX, FOLD_FACTOR_OF_MANY, JOURNAL_BACKPRESSURE_FACTOR, JOURNAL_RECORDS_MANY, JOURNAL_RECORDS_MAX,
    JOURNAL_SIZE_BYTES_MAX,
};
use crate::value::sort_by;

/// The unfolded commits of a collection, of every context.
pub struct Journal {
    pub(super) context: ContextId,
    pub(super) state: RefCell<State>,
}

/// The mutable state of a journal.
#[derive(Default)]
pub(super) struct State {
    /// Everything in memory is at least as new as this epoch.
    pub(super) epoch: u64,
    /// How many commits of this context have failed: their records may be in storage.
    pub(super) doubtful_commits: u64,
    /// How many of these had failed before all records were last listed: what became of them is known.
    pub(super) resolved_commits: u64,
    pub(super) records: SortedMap<RecordKey, Rc<JournalEntry>>,
    /// How often records of others were added or removed, or those of this context's failed commits were found.
    pub(super) others_changes: u64,
    /// How many commits of this context were answered. Those of inserts and those that move rows run side by side, so
    /// the answers may come in another order than that of their seqs.
    pub(super) answers: u64,
    /// From this answer on, this context's commits were answered after others had moved the epoch on. The next refresh
    /// shows whether their records still exist.
    pub(super) unconfirmed_from: Option<u64>,
    /// Records of this context that were found and removed before their commit was answered.
    gone_early: Vec<u64>,
    own_totals: RecordTotals,
    /// The span of windows, if rows are addressed to windows.
    window_ms: Option<i64>,
    /// The number of records that are addressed to buckets.
    by_bucket_records: usize,
    /// When this context has this many records, check whether a fold is worthwhile.
    fold_check_at: usize,
    by_bucket: Rc<ByBucket>,
    /// Records that `by_bucket` lacks. If some that it has are gone, it is built again.
    unsorted: Vec<Rc<JournalEntry>>,
    some_went: bool,
    /// How many records were ever added, and how many of these have gone.
    pub(super) added: u64,
    went: u64,
    /// Records of this context before this seq may have been folded by others before their commits were answered.
    pub(super) overtaken_end: u64,
    /// The records added last, if live queries need them.
    pub(super) log: Option<Log>,
}

/// The records that were added last.
#[derive(Default)]
pub(super) struct Log {
    pub entries: Vec<Rc<JournalEntry>>,
    /// Bytes of these records.
    pub size_bytes: usize,
}

/// A moment in the life of a journal: what was known of it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalMark {
    /// The epoch.
    pub epoch: u64,
    /// How many records were ever added.
    pub added: u64,
    /// How many of these have gone.
    pub went: u64,
    /// Records of this context before this seq may be in buckets although they are not known yet.
    pub overtaken_end: u64,
}

/// Records in numbers.
#[derive(Clone, Copy, Default)]
struct RecordTotals {
    records: usize,
    rows: usize,
    size_bytes: usize,
}

impl RecordTotals {
    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.rows += record.rows.rows();
        self.size_bytes += record.size_bytes();
    }
}

impl Journal {
    /// A journal of which nothing is known.
    pub fn new(context: ContextId) -> Journal {
        let state = State { fold_check_at: JOURNAL_RECORDS_MAX, ..State::default() };
        Journal { context, state: RefCell::new(state) }
    }

    /// The epoch that memory is at least as new as; see `bucket_cache`.
    pub fn epoch(&self) -> u64 {
        self.state.borrow().epoch
    }

    /// Adds records that this context has committed.
    pub fn committed(&self, entries: Vec<JournalEntry>) {
        let state = &mut *self.state.borrow_mut();
        for entry in entries {
            state.answers += 1;
            // Somebody may have folded or deleted it before the answer to its commit arrived.
            if let Some(at) = state.gone_early.iter().position(|seq| *seq == entry.seq) {
                state.gone_early.swap_remove(at);
                continue;
            }
            let key = entry.key();
            if entry.seq < state.overtaken_end && !state.records.contains_key(&key) {
                state.unconfirmed_from.get_or_insert(state.answers);
            }
            state.add(self.context, entry);
            state.records.get(&key).into_iter().for_each(|entry| entry.answer.set(state.answers));
        }
    }

    /// Records that a commit of this context has failed, although it may have taken place.
    pub fn doubtful(&self) {
        self.state.borrow_mut().doubtful_commits += 1;
    }

    /// Drops records that this context has removed from storage: their rows are in buckets, or deleted.
    pub fn folded(&self, keys: &[RecordKey]) {
        let mut keys = keys.to_vec();
        sort_by(&mut keys, Ord::cmp);
        self.state.borrow_mut().retain(self.context, &|entry| keys.binary_search(&entry.key()).is_err());
    }

    /// Records that this context has created the collection at that epoch, so that memory knows all of it.
    pub fn created(&self, epoch: u64) {
        let mut state = self.state.borrow_mut();
        state.epoch = state.epoch.max(epoch);
    }

    /// Records that this context has moved the epoch on from `before` to `next`. False if somebody else has moved it
    /// since: what memory holds of the changed buckets may then be outdated.
    pub fn epoch_moved(&self, before: u64, next: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let stands = state.epoch == before;
        if stands {
            state.epoch = next;
        }
        stands
    }

    /// All known records, by bucket.
    pub fn by_bucket(&self) -> Rc<ByBucket> {
        self.sort_some(usize::MAX);
        Rc::clone(&self.state.borrow().by_bucket)
    }

    /// Sorts records into buckets until they have so many sections; true if none is left. `by_bucket` sorts the others.
    pub fn sort_some(&self, sections_max: usize) -> bool {
        let state = &mut *self.state.borrow_mut();
        if std::mem::take(&mut state.some_went) {
            state.by_bucket = Rc::new(state.by_bucket.without_gone());
        }
        if state.unsorted.is_empty() {
            return true;
        }
        let mut sections = 0;
        let mut is_one_more = |entry: &Rc<JournalEntry>| {
            let is_one_more = sections < sections_max;
            sections = sections.saturating_add(entry.record.sections.len());
            is_one_more
        };
        let count = state.unsorted.iter().take_while(|entry| is_one_more(entry)).count();
        // If somebody still reads the old one, this copies the groups that grow, but not their rows.
        let by_bucket = Rc::make_mut(&mut state.by_bucket);
        state.unsorted.drain(..count).filter(|entry| !entry.is_gone()).for_each(|entry| by_bucket.push(&entry));
        state.unsorted.is_empty()
    }

    /// The present moment.
    pub fn mark(&self) -> JournalMark {
        let State { epoch, added, went, overtaken_end, .. } = *self.state.borrow();
        JournalMark { epoch, added, went, overtaken_end }
    }

    /// Notes that others have moved the epoch on, when `next_seq` was the seq of this context's next record.
    pub fn overtaken(&self, next_seq: u64) {
        self.state.borrow_mut().overtaken_end = next_seq;
    }

    /// All known records, grouped by context and ordered by seq.
    pub fn entries(&self) -> Vec<Rc<JournalEntry>> {
        self.state.borrow().records.values().cloned().collect()
    }

    /// Sets the span of windows, if rows are addressed to windows. Records of shorter windows are read again, because their
    /// rows belong to the longer ones now.
    pub fn use_windows(&self, window_ms: Option<i64>) {
        let state = &mut *self.state.borrow_mut();
        if std::mem::replace(&mut state.window_ms, window_ms) != window_ms && state.records.len() > 0 {
            state.retain(self.context, &|_| false);
            // The next refresh lists all records.
            state.doubtful_commits += 1;
        }
    }

    /// True if it is a known record.
    pub fn holds(&self, key: &RecordKey) -> bool {
        self.state.borrow().records.contains_key(key)
    }

    /// True if a known record is addressed to buckets, as those of collections without `dedupe` are.
    pub fn is_any_by_bucket(&self) -> bool {
        self.state.borrow().by_bucket_records > 0
    }

    /// True if the last refresh confirmed that the record exists.
    pub fn is_confirmed(&self, entry: &JournalEntry) -> bool {
        self.state.borrow().unconfirmed_from.is_none_or(|from| entry.answer.get() < from)
    }

    /// Records that a fold has failed: the next one is due after a quarter more records.
    pub fn fold_failed(&self) {
        let mut state = self.state.borrow_mut();
        state.fold_check_at = state.own_totals.records + state.own_totals.records / 4;
    }

    /// Bytes of the stored forms of all known records.
    pub fn stored_bytes(&self) -> u64 {
        self.state.borrow().records.values().map(|entry| entry.record.stored_bytes as u64).sum()
    }

    /// True if a record of this context before `seq` is left.
    pub fn has_own_before(&self, seq: u64) -> bool {
        let state = self.state.borrow();
        let first = state.records.first_from(&(self.context, 0));
        first.is_some_and(|(context, first)| *context == self.context && *first < seq)
    }

    /// True if inserts are so far ahead of the fold that the next one must wait.
    pub fn is_congested(&self) -> bool {
        self.state.borrow().own_totals.size_bytes > JOURNAL_BACKPRESSURE_FACTOR * JOURNAL_SIZE_BYTES_MAX
    }

    /// True if this context's records should be folded: they exceed their limit in bytes, or they exceed it in number
    /// and a fold would rewrite few enough bytes per row. `stored_bytes` gives the size of a bucket that would be
    /// rewritten.
    pub fn fold_due(&self, stored_bytes: &dyn Fn(&BucketId) -> usize) -> bool {
        let own_totals = self.state.borrow().own_totals;
        if own_totals.size_bytes > JOURNAL_SIZE_BYTES_MAX {
            return true;
        }
        if own_totals.records < self.state.borrow().fold_check_at {
            return false;
        }
        let written: usize = self.by_bucket().groups().iter().map(|group| stored_bytes(&group.bucket)).sum();
        let factor = if own_totals.records < JOURNAL_RECORDS_MANY { 1 } else { FOLD_FACTOR_OF_MANY };
        let is_cheap = written <= factor * FOLD_BYTES_A_ROW_MAX * own_totals.rows;
        if !is_cheap {
            self.state.borrow_mut().fold_check_at = own_totals.records + own_totals.records / 4;
        }
        is_cheap
    }
}

impl State {
    /// Adds a record unless it is known: another reader here may have fetched it at the same time.
    pub(super) fn add(&mut self, context: ContextId, mut entry: JournalEntry) {
        if self.records.contains_key(&entry.key()) {
            return;
        }
        match entry.context == context {
            true => self.own_totals.add(&entry.record),
            false => self.others_changes += 1,
        }
        match self.window_ms {
            Some(window_ms) if entry.record.order.is_by_window() => entry.address_to_windows(window_ms),
            _ => {}
        }
        self.by_bucket_records += usize::from(!entry.record.order.is_by_window());
        let entry = Rc::new(entry);
        self.added += 1;
        if let Some(log) = &mut self.log {
            log.size_bytes += entry.record.size_bytes();
            log.entries.push(Rc::clone(&entry));
            if log.size_bytes > JOURNAL_SIZE_BYTES_MAX {
                *log = Log::default();
            }
        }
        self.unsorted.push(Rc::clone(&entry));
        self.records.insert(entry.key(), entry);
    }

    /// Drops the records that are not kept.
    pub(super) fn retain(&mut self, context: ContextId, is_kept: &dyn Fn(&JournalEntry) -> bool) {
        let before = self.records.len();
        let (mut own_totals, mut others_went, mut by_bucket_records) = (RecordTotals::default(), false, 0);
        let gone_early = &mut self.gone_early;
        self.records.retain(|key, entry| {
            let kept = is_kept(entry);
            entry.set_gone(!kept);
            by_bucket_records += usize::from(kept && !entry.record.order.is_by_window());
            match (kept, key.0 == context) {
                (true, true) => own_totals.add(&entry.record),
                (false, true) if entry.answer.get() == 0 => gone_early.push(key.1),
                (false, false) => others_went = true,
                _ => {}
            }
            kept
        });
        self.others_changes += u64::from(others_went);
        if own_totals.records < self.own_totals.records {
            self.fold_check_at = JOURNAL_RECORDS_MAX;
        }
        self.own_totals = own_totals;
        self.by_bucket_records = by_bucket_records;
        self.went += (before - self.records.len()) as u64;
        self.some_went |= self.records.len() < before;
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::entry;
    use super::*;

    const OWN: ContextId = [5; 8];

    /// A journal with this many records of two series.
    fn journal(records: u64) -> Journal {
        let journal = Journal::new(OWN);
        (0..records).for_each(|seq| journal.committed(vec![entry(5, seq, &[(1, &[1]), (2, &[2])])]));
        journal
    }

    #[test]
    fn a_fold_is_due_by_the_number_of_own_records_if_it_writes_few_bytes_per_row() {
        let max = JOURNAL_RECORDS_MAX as u64;
        assert!(!journal(max - 1).fold_due(&|_| 0));
        assert!(journal(max).fold_due(&|_| FOLD_BYTES_A_ROW_MAX * JOURNAL_RECORDS_MAX));
        let journal = journal(max);
        let dear = |_: &BucketId| FOLD_BYTES_A_ROW_MAX * JOURNAL_RECORDS_MAX + 1;
        assert!(!journal.fold_due(&dear));
        // It is checked again after a quarter more records.
        journal.committed(vec![entry(5, max, &[(1, &[1])])]);
        assert!(!journal.fold_due(&|_| 0));
        (max + 1..max + max / 4).for_each(|seq| journal.committed(vec![entry(5, seq, &[(1, &[1]), (2, &[2])])]));
        assert!(journal.fold_due(&dear));
        journal.folded(&[(OWN, 0)]);
        assert!(journal.fold_due(&|_| 0));
    }

    #[test]
    fn records_of_others_do_not_make_a_fold_due() {
        let journal = Journal::new(OWN);
        let mut state = journal.state.borrow_mut();
        (0..2 * JOURNAL_RECORDS_MAX as u64).for_each(|seq| state.add(OWN, entry(7, seq, &[(1, &[1])])));
        drop(state);
        assert!(!journal.fold_due(&|_| 0) && !journal.has_own_before(u64::MAX));
    }

    #[test]
    fn folded_records_are_removed_and_readers_keep_their_snapshot() {
        let journal = journal(3);
        let before = journal.by_bucket();
        journal.folded(&[(OWN, 1), (OWN, 0)]);
        assert_eq!(journal.by_bucket().groups().iter().map(|group| group.rows).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(before.groups()[0].rows, 3);
        assert!(!journal.has_own_before(2) && journal.has_own_before(3));
        journal.folded(&[(OWN, 2)]);
        assert!(journal.by_bucket().groups().is_empty() && journal.stored_bytes() == 0);
    }

    #[test]
    fn after_a_removal_the_groups_are_those_of_the_remaining_records() {
        let of = |commits: &[u64]| {
            let journal = Journal::new(OWN);
            let sections: [&[(u8, &[i64])]; 4] =
                [&[(1, &[1]), (2, &[2])], &[(2, &[9, 3])], &[(1, &[4])], &[(3, &[5]), (1, &[6])]];
            commits.iter().for_each(|seq| journal.committed(vec![entry(5, *seq, sections[*seq as usize])]));
            journal
        };
        let seen = |journal: &Journal| {
            let by_bucket = journal.by_bucket();
            let options = super::super::samples::options();
            let groups = by_bucket.groups().iter().map(|group| {
                let tail = by_bucket.tail(group, &options).unwrap();
                (group.bucket, group.rows, group.first_ms, group.last_ms, tail.rows().clone(), tail.sections())
            });
            groups.collect::<Vec<_>>()
        };
        for gone in 0..16_u64 {
            let all: Vec<u64> = (0..4).collect();
            let (went, left): (Vec<u64>, Vec<u64>) = all.iter().partition(|seq| gone & (1 << *seq) > 0);
            for looked_before in [false, true] {
                let journal = of(&all);
                if looked_before {
                    seen(&journal);
                }
                journal.folded(&went.iter().map(|seq| (OWN, *seq)).collect::<Vec<_>>());
                let (mut found, mut expected) = (seen(&journal), seen(&of(&left)));
                // Groups keep the order of their first commits, even if these were removed.
                found.sort_by_key(|group| group.0);
                expected.sort_by_key(|group| group.0);
                assert_eq!(found, expected, "without {went:?}");
            }
        }
    }

    #[test]
    fn a_known_record_is_not_added_again() {
        let journal = journal(2);
        journal.committed(vec![entry(5, 1, &[(1, &[1]), (2, &[2])])]);
        assert_eq!((journal.entries().len(), journal.by_bucket().groups()[0].rows), (2, 2));
    }
}
