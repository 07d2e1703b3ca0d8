//! What a scan gives: a bucket with the journal rows that it does not hold.

use std::rc::Rc;

use crate::bucket::{BucketId, TimeseriesOptions};
use crate::engine::journal::{ByBucket, Group, SectionRef, Tail};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;

/// What a scan answers: a bucket, or rows of a bucket that is not stored yet (or was not reached).
pub struct Unit {
    /// The bucket.
    pub id: BucketId,
    /// Its stored form; `None` as well for journal rows whose metadata is another than that of the stored form.
    pub stored: Option<Rc<StoredBucket>>,
    /// The bucket as it is stored, whatever its metadata: says which journal rows are in it.
    pub(super) holder: Option<Rc<StoredBucket>>,
    pub(in crate::engine) journal: Rc<ByBucket>,
    /// Its place in the journals, if it is in them.
    pub(in crate::engine) number: Option<usize>,
    /// True if the stored form holds rows of records that are still there: a fold of them runs, or was broken off.
    pub half_folded: bool,
}

impl Unit {
    /// A bucket of which only journal rows are known.
    pub(super) fn of_journal(id: BucketId, number: usize, journal: &Rc<ByBucket>) -> Unit {
        let journal = Rc::clone(journal);
        Unit { id, stored: None, holder: None, journal, number: Some(number), half_folded: false }
    }

    /// True if it is, or belongs to, a bucket that is stored.
    pub fn is_stored(&self) -> bool {
        self.holder.is_some()
    }

    fn group(&self) -> Option<&Group> {
        self.journal.groups().get(self.number?).map(|group| &**group)
    }

    /// True if the bucket as it is stored holds rows of the group.
    fn is_partly_stored(&self, group: &Group) -> bool {
        self.holder.as_ref().is_some_and(|stored| group.is_covered(&stored.coverage))
    }

    /// Journal rows that no stored form holds, in commit order. All have one metadata, that of the stored form where there is one.
    pub fn sections(&self) -> impl Iterator<Item = &SectionRef> {
        let group = self.group();
        let holder = self.holder.as_ref().filter(|_| group.is_some_and(|group| self.is_partly_stored(group)));
        let all = group.map_or(&[][..], Group::sections);
        all.iter().filter(move |s| !holder.is_some_and(|stored| stored.coverage.covers(s.commit())))
    }

    /// The group of these rows; `None` if there are none.
    pub fn unfolded(&self) -> Option<&Group> {
        self.group().filter(|group| !self.is_partly_stored(group) || self.sections().next().is_some())
    }

    /// How many rows these are.
    pub fn unfolded_rows(&self, group: &Group) -> usize {
        match self.is_partly_stored(group) {
            true => self.sections().map(|section| section.rows().1.len()).sum(),
            false => group.rows,
        }
    }

    /// These rows as columns.
    ///
    /// Errors: `DataCorruptionDetected` if rows have no dates.
    pub fn tail(&self, group: &Group, options: &TimeseriesOptions) -> Result<Rc<Tail>> {
        if self.is_partly_stored(group) {
            // As long as a fold runs, or after one that was broken off.
            return Tail::of(self.sections(), group.min_time_ms, options).map(Rc::new);
        }
        self.journal.tail(group, options)
    }
}
