//! Brings the journal up to date: which keys of storage to list, and what they mean.

use super::entry::{JournalEntry, RecordKey};
use super::record::Record;
use super::state::Journal;
use crate::engine::store::keyspace::{self, CollectionId, ContextId};
use crate::error::Result;
use crate::listed::IntoList;
use crate::storage::KeyRange;

/// A refresh of the journal that has begun.
pub struct Refresh {
    /// True if all records are listed, not only those that may be new.
    all: bool,
    /// How many commits of this context were answered before. The listing may lack the records of later ones.
    answers: u64,
    doubtful_commits: u64,
    /// The value of `State::others_changes` when the refresh began.
    others_changes: u64,
}

/// The outcome of a refresh.
pub enum RefreshOutcome {
    /// Others have changed buckets, or a fold has progressed meanwhile: refresh again, with all records if `all`.
    Again {
        /// True to list all records.
        all: bool,
    },
    /// Memory knows which records exist; fetch the missing ones.
    Known {
        /// Records that memory does not hold, ascending.
        missing: Vec<RecordKey>,
        /// True if others have moved the epoch on: whatever else memory holds of buckets is outdated.
        moved: bool,
    },
}

impl Journal {
    /// Begins a refresh. It lists all records if commits are doubtful. It also does so if no record is
    /// known, which costs nothing and saves a second refresh.
    pub fn begin_refresh(&self, all: bool) -> Refresh {
        let state = self.state.borrow();
        Refresh {
            all: all
                || state.doubtful_commits > state.resolved_commits
                || state.unconfirmed_from.is_some()
                || state.records.len() == 0,
            answers: state.answers,
            doubtful_commits: state.doubtful_commits,
            others_changes: state.others_changes,
        }
    }

    /// The ranges of keys to list: all, or those that may have appeared since the last refresh.
    pub fn ranges(&self, id: &CollectionId, refresh: &Refresh) -> Vec<KeyRange> {
        let all = keyspace::journals(id);
        if refresh.all {
            return vec![all];
        }
        let mut known = self.last_keys();
        // This context knows its own records, so none can be new.
        match known.binary_search_by(|(context, _)| context.cmp(&self.context)) {
            Ok(at) => known.iter_mut().skip(at).take(1).for_each(|last| last.1 = u64::MAX),
            Err(at) => known.insert(at, (self.context, u64::MAX)),
        }
        let mut ranges = Vec::with_capacity(known.len() + 1);
        let mut start = all.start;
        for (context, last) in known {
            let listed = keyspace::journal_up_to(id, &context, last);
            ranges.push(KeyRange { start, end: listed.start });
            start = listed.end;
        }
        ranges.push(KeyRange { start, end: all.end });
        ranges.retain(|range| !range.is_empty());
        ranges
    }

    /// Processes a listing: the epoch, and the keys of records, ascending.
    pub fn learn(&self, refresh: &Refresh, epoch: u64, listed: &[RecordKey]) -> RefreshOutcome {
        let state = &mut *self.state.borrow_mut();
        if epoch < state.epoch {
            // This context has moved the epoch on since the keys were read. Some records may be gone, and the keys do
            // not say which buckets hold their rows.
            return RefreshOutcome::Again { all: refresh.all };
        }
        let moved = epoch > state.epoch;
        if moved && !refresh.all {
            // The new epoch is recorded only together with the records that others have left. Readers in between,
            // or after a failure, must not treat the records in memory as complete.
            return RefreshOutcome::Again { all: true };
        }
        if refresh.all && state.others_changes != refresh.others_changes {
            // Another refresh has ended meanwhile and may have listed later; its records must not be taken for removed.
            return RefreshOutcome::Again { all: true };
        }
        state.epoch = epoch;
        if refresh.all {
            let is_new = |entry: &JournalEntry| entry.answer.get() > refresh.answers;
            let is_listed = |key: &RecordKey| listed.binary_search(key).is_ok();
            // Committed while keys were listed, or after others had removed it.
            let is_unsure = |entry: &JournalEntry| {
                is_new(entry) && (moved || entry.seq < state.overtaken_end) && !is_listed(&entry.key())
            };
            state.unconfirmed_from =
                state.records.values().any(|entry| is_unsure(entry)).then_some(refresh.answers + 1);
            // Records that others have folded are gone. Records of commits that ended meanwhile are missing from the
            // listing.
            state.retain(self.context, &|entry| is_new(entry) || is_listed(&entry.key()));
        }
        let missing: Vec<RecordKey> = listed.iter().filter(|key| !state.records.contains_key(*key)).copied().listed();
        // Records of a commit that has failed, although it took place. Whether they arrive now is not known: until a refresh
        // has brought them, each one lists all records.
        let is_own_missing = missing.iter().any(|(context, _)| *context == self.context);
        state.doubtful_commits += u64::from(is_own_missing && state.doubtful_commits == state.resolved_commits);
        RefreshOutcome::Known { missing, moved }
    }

    /// Adds records fetched after `learn` at that epoch, in ascending order of their keys; `before` is the one that was
    /// added before them. False if a record is gone or the epoch has changed, so that another refresh is needed. If only the
    /// first of what is missing have been added, memory knows less, but nothing wrong (I22).
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn add_fetched(
        &self,
        epoch: u64,
        before: Option<RecordKey>,
        keys: &[RecordKey],
        values: impl Iterator<Item = Option<Vec<u8>>>,
    ) -> Result<bool> {
        let state = &mut *self.state.borrow_mut();
        if state.epoch != epoch {
            return Ok(false);
        }
        let mut before = before;
        for (key, value) in keys.iter().zip(values) {
            let Some(bytes) = value else { return Ok(false) };
            if !state.records.contains_key(key) {
                let known = before.and_then(|before| state.records.get(&before));
                let sections = known.map_or(&[][..], |entry| &entry.record.sections);
                let record = Record::decode(&bytes, sections)?;
                // A refresh that has listed earlier must not take it for removed.
                state.others_changes += u64::from(key.0 == self.context);
                state.add(self.context, JournalEntry::new(*key, record));
            }
            before = Some(*key);
        }
        Ok(true)
    }

    /// Ends a refresh after all records have arrived; false if the epoch has changed since it began.
    pub fn end_refresh(&self, refresh: &Refresh, epoch: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let stands = state.epoch == epoch;
        if stands && refresh.all {
            // Commits that failed after the refresh began are resolved by the next one. Another refresh may have resolved
            // the same ones.
            state.resolved_commits = state.resolved_commits.max(refresh.doubtful_commits);
        }
        stands
    }

    /// The last known record of each context.
    fn last_keys(&self) -> Vec<RecordKey> {
        let records = &self.state.borrow().records;
        let mut known = Vec::new();
        let mut next = records.first_from(&(ContextId::default(), 0));
        while let Some((context, _)) = next {
            let end = (*context, u64::MAX);
            known.extend(records.last_up_to(&end));
            next = records.first_from(&end);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::CommitOrder;
    use super::super::samples::entry;
    use super::*;

    const ID: CollectionId = [9; 8];
    const OWN: ContextId = [5; 8];

    /// A journal with this context's records 0 and 1, and record 3 of another context.
    fn journal() -> Journal {
        let journal = Journal::new(OWN);
        journal.committed(vec![entry(5, 0, &[(1, &[1])]), entry(5, 1, &[(1, &[2])])]);
        assert!(fetch(&journal, 0, false, &[(2, 3)]).is_ok());
        journal
    }

    fn keys(of: &[(u8, u64)]) -> Vec<RecordKey> {
        of.iter().map(|(context, seq)| ([*context; 8], *seq)).collect()
    }

    fn known(journal: &Journal) -> Vec<RecordKey> {
        journal.entries().iter().map(|entry| entry.key()).collect()
    }

    /// A refresh that lists these records and fetches the missing ones. Returns those, or whether another refresh must list
    /// all.
    fn fetch(journal: &Journal, epoch: u64, all: bool, listed: &[(u8, u64)]) -> Result<Vec<RecordKey>, bool> {
        let refresh = journal.begin_refresh(all);
        match journal.learn(&refresh, epoch, &keys(listed)) {
            RefreshOutcome::Again { all } => Err(all),
            RefreshOutcome::Known { missing, .. } => {
                let value = |key: &RecordKey| {
                    let entry = entry(key.0[0], key.1, &[(1, &[1])]);
                    Some(Record::encode(entry.record.rows, entry.record.sections, CommitOrder::default()).1)
                };
                assert!(journal.add_fetched(epoch, None, &missing, missing.iter().map(value)).unwrap());
                assert!(journal.end_refresh(&refresh, epoch));
                Ok(missing)
            }
        }
    }

    fn lists(journal: &Journal, all: bool, context: u8, seq: u64) -> bool {
        let key = keyspace::journal(&ID, &[context; 8], seq);
        journal.ranges(&ID, &journal.begin_refresh(all)).iter().any(|range| range.start <= key && key < range.end)
    }

    #[test]
    fn a_refresh_lists_only_what_others_may_have_added() {
        let journal = journal();
        for (context, seq, listed) in [
            (2, 0, false),
            (2, 3, false),
            (2, 4, true),
            (1, 0, true),
            (3, 0, true),
            (7, 1, true),
            (5, 0, false),
            (5, 9, false),
        ] {
            assert_eq!((context, seq, lists(&journal, false, context, seq)), (context, seq, listed));
            assert!(lists(&journal, true, context, seq));
        }
        // Nothing is known of the context, so everything is listed.
        assert!(lists(&Journal::new(OWN), false, 5, 0) && lists(&Journal::new(OWN), false, 4, 0));
    }

    #[test]
    fn records_of_others_are_fetched_once() {
        let journal = journal();
        assert_eq!(fetch(&journal, 0, false, &[(2, 4), (7, 0)]), Ok(keys(&[(2, 4), (7, 0)])));
        assert_eq!(fetch(&journal, 0, false, &[]), Ok(Vec::new()));
        assert_eq!(known(&journal), keys(&[(2, 3), (2, 4), (5, 0), (5, 1), (7, 0)]));
        assert_eq!(journal.by_bucket().groups()[0].rows, 5);
    }

    #[test]
    fn if_others_moved_the_epoch_on_all_records_are_listed_and_removed_ones_are_forgotten() {
        let journal = journal();
        let before = journal.by_bucket();
        assert_eq!(fetch(&journal, 1, false, &[(2, 4)]), Err(true));
        assert_eq!(journal.epoch(), 0);
        assert_eq!(fetch(&journal, 1, true, &[(2, 4), (5, 1)]), Ok(keys(&[(2, 4)])));
        assert_eq!((journal.epoch(), known(&journal)), (1, keys(&[(2, 4), (5, 1)])));
        // A reader keeps its snapshot.
        assert_eq!((before.groups()[0].rows, journal.by_bucket().groups()[0].rows), (3, 2));
    }

    #[test]
    fn a_refresh_that_read_an_older_epoch_is_repeated() {
        let journal = journal();
        assert!(journal.epoch_moved(0, 1) && !journal.epoch_moved(0, 1));
        assert_eq!(fetch(&journal, 0, false, &[]), Err(false));
        assert_eq!(fetch(&journal, 0, true, &[]), Err(true));
        assert_eq!(known(&journal).len(), 3);
        let refresh = journal.begin_refresh(false);
        assert!(journal.end_refresh(&refresh, 1) && !journal.end_refresh(&refresh, 0));
    }

    /// The records of this context of which it is not known whether they still exist.
    fn unconfirmed(journal: &Journal) -> Vec<u64> {
        journal.entries().iter().filter(|entry| !journal.is_confirmed(entry)).map(|entry| entry.seq).collect()
    }

    #[test]
    fn a_record_committed_while_keys_are_listed_stays() {
        let journal = journal();
        let refresh = journal.begin_refresh(true);
        journal.committed(vec![entry(5, 2, &[(1, &[3])])]);
        assert!(matches!(journal.learn(&refresh, 1, &keys(&[(5, 1)])), RefreshOutcome::Known { moved: true, .. }));
        assert_eq!(known(&journal), keys(&[(5, 1), (5, 2)]));
    }

    #[test]
    fn a_commit_that_reported_failure_but_took_place_is_found_by_the_next_refresh() {
        let journal = journal();
        journal.doubtful();
        assert!(lists(&journal, false, 5, 2));
        assert_eq!(fetch(&journal, 0, false, &[(2, 3), (5, 0), (5, 1), (5, 2)]), Ok(keys(&[(5, 2)])));
        assert!(!lists(&journal, false, 5, 2) && journal.has_own_before(1));
        assert_eq!(known(&journal).len(), 4);
    }

    #[test]
    fn a_record_of_this_context_that_was_listed_but_not_fetched_is_listed_again() {
        let journal = journal();
        let refresh = journal.begin_refresh(true);
        let listed = keys(&[(2, 3), (5, 0), (5, 1), (5, 2)]);
        assert!(matches!(journal.learn(&refresh, 1, &listed), RefreshOutcome::Known { moved: true, .. }));
        // Its value could not be read. The epoch is known now.
        assert!(lists(&journal, false, 5, 2));
        assert_eq!(fetch(&journal, 1, false, &[(2, 3), (5, 0), (5, 1), (5, 2)]), Ok(keys(&[(5, 2)])));
        assert!(!lists(&journal, false, 5, 2));
    }

    #[test]
    fn a_commit_that_fails_while_two_refreshes_list_all_records_is_found_by_the_next_one() {
        let journal = journal();
        journal.doubtful();
        let listed = [(2, 3), (5, 0), (5, 1), (5, 2)];
        let refreshes = [journal.begin_refresh(false), journal.begin_refresh(false)];
        let end = |refresh: &Refresh| {
            assert!(matches!(journal.learn(refresh, 0, &keys(&listed)), RefreshOutcome::Known { .. }));
            assert!(journal.end_refresh(refresh, 0));
        };
        end(&refreshes[0]);
        assert!(!lists(&journal, false, 5, 3));
        // Its record is not in the listing of the other one, which began before.
        journal.doubtful();
        end(&refreshes[1]);
        assert!(lists(&journal, false, 5, 3));
    }

    #[test]
    fn the_record_of_a_failed_commit_is_not_forgotten_because_of_an_earlier_listing() {
        let journal = journal();
        journal.doubtful();
        let earlier = journal.begin_refresh(false);
        journal.doubtful();
        assert_eq!(fetch(&journal, 0, false, &[(2, 3), (5, 0), (5, 1), (5, 2)]), Ok(keys(&[(5, 2)])));
        // It has listed before that record was there.
        let listed = keys(&[(2, 3), (5, 0), (5, 1)]);
        assert!(matches!(journal.learn(&earlier, 0, &listed), RefreshOutcome::Again { all: true }));
        assert_eq!(known(&journal), keys(&[(2, 3), (5, 0), (5, 1), (5, 2)]));
    }

    #[test]
    fn a_record_that_disappears_before_it_is_fetched_causes_another_refresh() {
        let journal = journal();
        assert_eq!(journal.add_fetched(0, None, &keys(&[(2, 4)]), [None].into_iter()), Ok(false));
        assert!(journal.add_fetched(0, None, &keys(&[(2, 4)]), [Some(vec![1])].into_iter()).is_err());
        // Records fetched before the epoch moved on may be gone.
        assert_eq!(journal.add_fetched(1, None, &keys(&[(2, 4)]), [Some(vec![1])].into_iter()), Ok(false));
    }

    #[test]
    fn a_full_refresh_that_was_overtaken_removes_no_records() {
        let journal = Journal::new(OWN);
        let slow = journal.begin_refresh(false);
        assert!(slow.all);
        assert_eq!(fetch(&journal, 0, false, &[(2, 1)]), Ok(keys(&[(2, 1)])));
        // It had listed the keys before that record was committed.
        assert!(matches!(journal.learn(&slow, 0, &[]), RefreshOutcome::Again { all: true }));
        assert_eq!(known(&journal), keys(&[(2, 1)]));
    }

    #[test]
    fn a_record_removed_before_its_commit_was_reported_does_not_come_back() {
        let journal = Journal::new(OWN);
        // A refresh with all records finds it; a delete removes it; then the answer to its commit arrives.
        assert_eq!(fetch(&journal, 0, true, &[(5, 0)]), Ok(keys(&[(5, 0)])));
        journal.folded(&keys(&[(5, 0)]));
        journal.committed(vec![entry(5, 0, &[(1, &[1])])]);
        assert_eq!(known(&journal), []);
        journal.committed(vec![entry(5, 1, &[(1, &[1])])]);
        journal.folded(&keys(&[(5, 1)]));
        journal.committed(vec![entry(5, 2, &[(1, &[1])])]);
        assert_eq!(known(&journal), keys(&[(5, 2)]));
    }

    #[test]
    fn a_record_committed_while_others_move_the_epoch_on_is_confirmed_by_the_next_refresh() {
        let journal = journal();
        let refresh = journal.begin_refresh(true);
        journal.committed(vec![entry(5, 2, &[(1, &[3])])]);
        assert!(matches!(journal.learn(&refresh, 1, &keys(&[(5, 1)])), RefreshOutcome::Known { moved: true, .. }));
        assert_eq!(unconfirmed(&journal), [2]);
        // Others had removed it.
        assert_eq!(fetch(&journal, 1, false, &[(5, 1)]), Ok(Vec::new()));
        assert_eq!(known(&journal), keys(&[(5, 1)]));
        assert!(unconfirmed(&journal).is_empty());
    }

    #[test]
    fn a_record_removed_before_its_commit_was_answered_does_not_come_back_if_a_later_one_was_answered_first() {
        let journal = Journal::new(OWN);
        journal.committed(vec![entry(5, 1, &[(1, &[1])])]);
        assert_eq!(fetch(&journal, 0, true, &[(5, 0), (5, 1)]), Ok(keys(&[(5, 0)])));
        journal.folded(&keys(&[(5, 0), (5, 1)]));
        journal.committed(vec![entry(5, 0, &[(1, &[1])])]);
        assert_eq!(known(&journal), []);
    }

    #[test]
    fn a_record_whose_commit_is_answered_while_keys_are_listed_stays_if_a_later_one_was_answered_before() {
        let journal = Journal::new(OWN);
        journal.committed(vec![entry(5, 1, &[(1, &[1])])]);
        let refresh = journal.begin_refresh(true);
        journal.committed(vec![entry(5, 0, &[(1, &[1])])]);
        assert!(matches!(journal.learn(&refresh, 0, &keys(&[(5, 1)])), RefreshOutcome::Known { .. }));
        assert_eq!(known(&journal), keys(&[(5, 0), (5, 1)]));
    }

    #[test]
    fn a_commit_answered_after_others_have_moved_the_epoch_on_is_confirmed_by_the_next_refresh() {
        for exists in [false, true] {
            let journal = journal();
            // Others have folded its record, or another one.
            journal.overtaken(3);
            assert_eq!(fetch(&journal, 1, true, &[(5, 1)]), Ok(Vec::new()));
            journal.committed(vec![entry(5, 2, &[(1, &[3])]), entry(5, 3, &[(1, &[4])])]);
            assert_eq!(unconfirmed(&journal), [2, 3]);
            let listed: &[(u8, u64)] = if exists { &[(5, 1), (5, 2), (5, 3)] } else { &[(5, 1), (5, 3)] };
            assert_eq!(fetch(&journal, 1, false, listed), Ok(Vec::new()));
            assert_eq!(known(&journal), keys(listed));
            assert!(unconfirmed(&journal).is_empty());
        }
    }
}
