//! The records added to a journal since an earlier moment, for live queries that continue from there.

// Loaded later.

use std::rc::Rc;

use super::entry::JournalEntry;
use super::state::{Journal, JournalMark};
use crate::engine::store::keyspace::folded_between;

impl Journal {
    /// Keeps the records that are added from now on, or no longer.
    pub fn keep_log(&self, is_kept: bool) {
        let log = &mut self.state.borrow_mut().log;
        if !is_kept {
            *log = None;
        } else if log.is_none() {
            *log = Some(super::state::Log::default());
        }
    }

    /// Forgets the records that were added until then.
    pub fn forget_log(&self, until: u64) {
        let state = &mut *self.state.borrow_mut();
        let kept = usize::try_from(state.added.saturating_sub(until)).unwrap_or(usize::MAX);
        if let Some(log) = &mut state.log {
            let gone = log.entries.len().saturating_sub(kept);
            log.entries.drain(..gone).for_each(|entry| log.size_bytes -= entry.record.size_bytes());
        }
    }

    /// The records that were added since a moment, if the collection has all measurements that it had then, these, and
    /// no others; `None` if that is not certain.
    ///
    /// **Invariant I40**: between the two epochs are folds only, and these have folded as many records as this context
    /// knew and lost. So no record was folded that it has never seen.
    pub fn additions_since(&self, before: &JournalMark) -> Option<Vec<Rc<JournalEntry>>> {
        let now = self.mark();
        if folded_between(before.epoch, now.epoch)? != now.went - before.went {
            return None;
        }
        let state = self.state.borrow();
        let count = usize::try_from(now.added - before.added).ok()?;
        let entries = &state.log.as_ref()?.entries;
        let added = entries.get(entries.len().checked_sub(count)?..)?;
        // Others may have folded it before its commit was reported; its rows were then in a bucket at that moment.
        let is_doubtful = |entry: &Rc<JournalEntry>| entry.context == self.context && entry.seq < before.overtaken_end;
        (!added.iter().any(is_doubtful)).then(|| added.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::RecordKey;
    use super::super::samples::entry;
    use super::super::snapshot::RefreshOutcome;
    use super::*;
    use crate::engine::store::keyspace::{ContextId, FIRST_EPOCH, next_epoch};

    const OWN: ContextId = [5; 8];

    fn journal() -> Journal {
        let journal = Journal::new(OWN);
        journal.created(FIRST_EPOCH);
        journal.keep_log(true);
        commit(&journal, 0);
        journal
    }

    fn commit(journal: &Journal, seq: u64) {
        journal.committed(vec![entry(5, seq, &[(1, &[1])])]);
    }

    /// The epoch after a fold of so many records, or after another change.
    fn after(epoch: u64, folded: Option<usize>) -> u64 {
        next_epoch(&[9; 8], epoch, folded).epoch
    }

    /// The seqs that were added since.
    fn added(journal: &Journal, mark: &JournalMark) -> Option<Vec<u64>> {
        Some(journal.additions_since(mark)?.iter().map(|entry| entry.seq).collect())
    }

    /// Others have moved the epoch on and left these records of this context.
    fn others_moved(journal: &Journal, epoch: u64, left: &[u64], next_seq: u64) {
        let refresh = journal.begin_refresh(true);
        let listed: Vec<RecordKey> = left.iter().map(|seq| (OWN, *seq)).collect();
        assert!(matches!(journal.learn(&refresh, epoch, &listed), RefreshOutcome::Known { moved: true, .. }));
        journal.overtaken(next_seq);
        assert!(journal.end_refresh(&refresh, epoch));
    }

    #[test]
    fn additions_are_known_through_folds_of_known_records_and_through_nothing_else() {
        let journal = journal();
        let mark = journal.mark();
        assert_eq!(added(&journal, &mark), Some(vec![]));
        commit(&journal, 1);
        assert_eq!(added(&journal, &mark), Some(vec![1]));
        // This context folds both.
        let folded = after(FIRST_EPOCH, Some(2));
        assert!(journal.epoch_moved(FIRST_EPOCH, folded));
        assert_eq!(added(&journal, &mark), None, "it has not yet lost them");
        journal.folded(&[(OWN, 0), (OWN, 1)]);
        assert_eq!(added(&journal, &mark), Some(vec![1]));
        commit(&journal, 2);
        let later = journal.mark();
        assert_eq!(added(&journal, &mark), Some(vec![1, 2]));
        assert!(journal.epoch_moved(folded, after(folded, None)));
        assert_eq!((added(&journal, &mark), added(&journal, &later)), (None, None));
    }

    #[test]
    fn records_of_others_that_were_folded_without_being_seen_are_noticed() {
        let journal = journal();
        let mark = journal.mark();
        others_moved(&journal, after(FIRST_EPOCH, Some(2)), &[], 1);
        assert_eq!(added(&journal, &mark), None, "two records were folded, and one of them was known");
        let mark = journal.mark();
        commit(&journal, 1);
        assert_eq!(added(&journal, &mark), Some(vec![1]));
    }

    #[test]
    fn an_own_record_that_others_may_have_folded_before_its_commit_was_reported_is_no_addition() {
        let journal = journal();
        // Others have folded record 1, whose commit is still to be reported.
        others_moved(&journal, after(FIRST_EPOCH, Some(1)), &[0], 2);
        let mark = journal.mark();
        commit(&journal, 1);
        assert_eq!(added(&journal, &mark), None);
        let mark = journal.mark();
        commit(&journal, 2);
        assert_eq!(added(&journal, &mark), Some(vec![2]));
    }

    #[test]
    fn what_was_forgotten_is_not_known() {
        let journal = journal();
        let mark = journal.mark();
        commit(&journal, 1);
        let later = journal.mark();
        commit(&journal, 2);
        journal.forget_log(later.added);
        assert_eq!((added(&journal, &mark), added(&journal, &later)), (None, Some(vec![2])));
        journal.keep_log(false);
        assert_eq!(added(&journal, &later), None);
        journal.keep_log(true);
        assert_eq!(added(&journal, &later), None);
    }
}
