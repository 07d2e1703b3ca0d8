//! What a scan returns: a bucket with the journal rows that it does not hold.

use std::rc::Rc;

use crate::bucket::{BucketId, TimeseriesOptions};
use crate::engine::journal::{ByBucket, SectionGroup, SectionRef, Tail};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;

/// A bucket with its journal rows, or only journal rows of a bucket that is not stored yet (or was not reached).
pub struct Unit {
    /// The bucket.
    pub id: BucketId,
    /// Its stored form. Also `None` if the metadata of the journal rows differs from that of the stored form.
    pub stored: Option<Rc<StoredBucket>>,
    /// The stored form, whatever its metadata. Its coverage says which journal rows it holds.
    pub(super) holder: Option<Rc<StoredBucket>>,
    pub(in crate::engine) journal: Rc<ByBucket>,
    /// The number of its group in the journals, if it has one.
    pub(in crate::engine) number: Option<usize>,
    /// True if the stored form holds rows of records that still exist, because a fold of them runs or was interrupted.
    pub half_folded: bool,
}

impl Unit {
    /// A bucket of which only journal rows are known.
    pub(in crate::engine) fn of_journal(id: BucketId, number: usize, journal: &Rc<ByBucket>) -> Unit {
        let journal = Rc::clone(journal);
        Unit { id, stored: None, holder: None, journal, number: Some(number), half_folded: false }
    }

    /// True if its bucket is stored.
    pub fn is_stored(&self) -> bool {
        self.holder.is_some()
    }

    fn group(&self) -> Option<&SectionGroup> {
        self.journal.groups().get(self.number?).map(|group| &**group)
    }

    /// True if the stored bucket holds some rows of the group.
    pub fn is_partly_stored(&self, group: &SectionGroup) -> bool {
        self.holder.as_ref().is_some_and(|stored| group.is_covered(&stored.coverage))
    }

    /// Journal rows that no stored form holds, in commit order. All have the same metadata, which is that of the stored
    /// form if there is one.
    pub fn sections(&self) -> impl Iterator<Item = &SectionRef> {
        let group = self.group();
        let holder = self.holder.as_ref().filter(|_| group.is_some_and(|group| self.is_partly_stored(group)));
        let all = group.map_or(&[][..], SectionGroup::sections);
        all.iter().filter(move |s| !holder.is_some_and(|stored| stored.coverage.covers(s.commit())))
    }

    /// The group of these rows; `None` if there are none.
    pub fn unfolded(&self) -> Option<&SectionGroup> {
        self.group().filter(|group| !self.is_partly_stored(group) || self.sections().next().is_some())
    }

    /// The number of these rows.
    pub fn unfolded_rows(&self, group: &SectionGroup) -> usize {
        match self.is_partly_stored(group) {
            true => self.sections().map(|section| section.rows().1.len()).sum(),
            false => group.row_count(),
        }
    }

    /// These rows as columns.
    ///
    /// Errors: `DataCorruptionDetected` if the times of the rows are not dates.
    pub fn tail(&self, group: &SectionGroup, options: &TimeseriesOptions) -> Result<Rc<Tail>> {
        if self.is_partly_stored(group) {
            // While a fold runs, or after an interrupted one.
            return Tail::of(self.sections(), group.min_time_ms, options).map(Rc::new);
        }
        self.journal.tail(group, options)
    }
}
