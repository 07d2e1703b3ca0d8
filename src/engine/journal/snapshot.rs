//! How a look at storage brings the journal up to date: which keys to list, and what they tell.

use super::record::Record;
use super::state::{Journal, JournalEntry, RecordKey};
use crate::engine::keyspace::{self, CollectionId, ContextId};
use crate::error::Result;
use crate::storage::KeyRange;

/// A look at the journals that has begun.
pub struct Look {
    /// All records are listed, not only those that may be new.
    all: bool,
    /// This context's records from here on were committed while keys were listed, which need not tell them.
    own_end: u64,
    doubtful_commits: usize,
}

/// What a look has told.
pub enum Learnt {
    /// Others have changed buckets, or a fold has gone on meanwhile: another look is needed, at all records if so said.
    Again {
        /// List all records.
        all: bool,
    },
    /// Memory knows which records there are; these are to be fetched.
    Known {
        /// Records that memory does not hold, ascending.
        missing: Vec<RecordKey>,
        /// Others have moved the epoch on: what else memory holds of buckets is out of date.
        moved: bool,
    },
}

impl Journal {
    /// A look at the journals. Where commits are doubtful, it is one at all records.
    pub fn begin_look(&self, all: bool) -> Look {
        let state = self.state.borrow();
        let own_end = state.records.last_up_to(&(self.context, u64::MAX)).filter(|key| key.0 == self.context);
        Look {
            all: all || state.doubtful_commits > 0,
            own_end: own_end.map_or(0, |(_, last)| last.saturating_add(1)),
            doubtful_commits: state.doubtful_commits,
        }
    }

    /// Where keys lie that have to be listed: all, or what may have come since the last look.
    pub fn ranges(&self, id: &CollectionId, look: &Look) -> Vec<KeyRange> {
        let all = keyspace::journals(id);
        if look.all {
            return vec![all];
        }
        let mut known = self.last_keys();
        // Of this context nothing can be new.
        match known.binary_search_by(|(context, _)| context.cmp(&self.context)) {
            Ok(at) => known.iter_mut().skip(at).take(1).for_each(|own| own.1 = u64::MAX),
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

    /// Takes in what a look has listed: the epoch, and keys of records, ascending.
    pub fn learn(&self, look: &Look, epoch: u64, listed: &[RecordKey]) -> Learnt {
        let state = &mut *self.state.borrow_mut();
        if epoch < state.epoch {
            // This context has moved it on since the keys were read: some of the records may be gone, and the keys do not tell buckets.
            return Learnt::Again { all: look.all };
        }
        let moved = epoch > state.epoch;
        if moved && !look.all {
            // That is noted only together with what others have left of the records: whoever asks meanwhile, or after a failure, must not
            // take those in memory for all there are.
            return Learnt::Again { all: true };
        }
        state.epoch = epoch;
        if look.all {
            // Records that others have folded are gone. Those of commits that ended meanwhile are not among the keys.
            let is_new = |key: &RecordKey| key.0 == self.context && key.1 >= look.own_end;
            state.retain(self.context, &|key| is_new(key) || listed.binary_search(key).is_ok());
        }
        let missing = listed.iter().filter(|key| !state.records.contains_key(*key)).copied().collect();
        Learnt::Known { missing, moved }
    }

    /// Takes in fetched records, in ascending order of their keys; false where one is gone, so that another look is needed.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn add_fetched(&self, keys: &[RecordKey], values: Vec<Option<Vec<u8>>>) -> Result<bool> {
        let state = &mut *self.state.borrow_mut();
        let mut before: Option<RecordKey> = None;
        for (key, value) in keys.iter().zip(values) {
            let Some(bytes) = value else { return Ok(false) };
            if !state.records.contains_key(key) {
                let known = before.and_then(|before| state.records.get(&before));
                let sections = known.map_or(&[][..], |entry| &entry.record.sections);
                let record = Record::decode(&bytes, sections)?;
                state.add(self.context, JournalEntry { context: key.0, seq: key.1, record });
            }
            before = Some(*key);
        }
        Ok(true)
    }

    /// Ends a look whose records are all here; false where the epoch is no longer the one that it met.
    pub fn end_look(&self, look: &Look, epoch: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let stands = state.epoch == epoch;
        if stands && look.all {
            // Commits that have failed since then are looked for the next time.
            state.doubtful_commits = state.doubtful_commits.saturating_sub(look.doubtful_commits);
        }
        stands
    }

    /// The last record of each context of which one is known.
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
