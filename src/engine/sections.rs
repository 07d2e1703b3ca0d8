//! What the journals of a collection hold, by bucket and by series.

use std::rc::Rc;

use super::collection::Collection;
use super::journal::JournalEntry;
use super::keyspace::ContextId;
use super::record::Record;
use crate::block::Block;
use crate::bucket::BucketId;
use crate::catalog::Section;
use crate::value::{Numbers, OwnedValue, Value};

/// One section of a journal record. There are as many as series times commits: it is kept small.
#[derive(Clone)]
pub struct SectionRef {
    entry: Rc<JournalEntry>,
    at: u32,
    first_row: u32,
}

impl SectionRef {
    /// Whose commit it was, and its place in that context's journal.
    pub fn commit(&self) -> (ContextId, u64) {
        (self.entry.context, self.entry.seq)
    }

    /// Bucket, metadata, bounds.
    pub fn section(&self) -> Option<&Section> {
        self.entry.record.sections.get(self.at as usize)
    }

    /// The metadata of its rows.
    pub fn meta(&self) -> Option<Value<'_>> {
        self.section().and_then(|section| section.meta.as_ref()).map(OwnedValue::view)
    }

    /// What stands for the names and types of the rows, where they have one each.
    pub fn types(&self) -> Option<u64> {
        self.entry.record.types
    }

    /// The block that holds the rows, and which of them.
    pub fn rows(&self) -> (&Block, std::ops::Range<usize>) {
        let start = self.first_row as usize;
        let count = self.section().map_or(0, |s| s.rows);
        (&self.entry.record.rows, start..start + count)
    }

    /// Every section of a record.
    fn of_record(entry: &JournalEntry) -> impl Iterator<Item = SectionRef> {
        let (entry, mut first_row) = (Rc::new(entry.clone()), 0);
        // A record has fewer rows than that.
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (0..entry.record.sections.len()).map(move |at| {
            let section = SectionRef { entry: Rc::clone(&entry), at: short(at), first_row: short(first_row) };
            first_row += section.section().map_or(0, |s| s.rows);
            section
        })
    }
}

/// Sections by bucket, in commit order of each context inside it; buckets in the order of their first commit.
///
/// All sections of a group have one metadata. A bucket has several groups where an update has changed its metadata, and a context
/// that did not know went on with it.
#[derive(Clone, Default)]
pub struct ByBucket {
    numbers: Numbers,
    buckets: Vec<(BucketId, Vec<SectionRef>)>,
    /// The groups that are not the first ones of their buckets.
    others: Vec<usize>,
    series: Numbers,
    /// The buckets of each series, and where they begin.
    buckets_of_series: Vec<Vec<(BucketId, i64)>>,
}

impl ByBucket {
    /// The sections of some records.
    pub fn of<'a>(entries: impl Iterator<Item = &'a JournalEntry>) -> ByBucket {
        let mut by_bucket = ByBucket::default();
        entries.for_each(|entry| by_bucket.push(entry));
        by_bucket
    }

    /// Adds the sections of a record.
    fn push(&mut self, entry: &JournalEntry) {
        let mut next = 0;
        for section in SectionRef::of_record(entry) {
            let Some(of) = section.section() else { continue };
            let bucket = of.bucket;
            // Commits of many series mostly name the same buckets in the same order.
            let (number, new) = match self.buckets.get(next) {
                Some((expected, _)) if *expected == bucket => (next, false),
                _ => self.numbers.add(bucket.as_bytes()),
            };
            let (number, new) = if new { (number, new) } else { self.group_of(number, of) };
            next = number + 1;
            if new {
                self.buckets.push((bucket, Vec::new()));
                let (series, new) = self.series.add(tagged(of.meta.as_ref()));
                if new {
                    self.buckets_of_series.push(Vec::new());
                }
                if let Some(buckets) = self.buckets_of_series.get_mut(series) {
                    buckets.push((bucket, of.min_time_ms));
                }
            }
            if let Some((_, sections)) = self.buckets.get_mut(number) {
                sections.push(section);
            }
        }
    }

    /// The group of a section, given one of its bucket; true for a new one.
    fn group_of(&mut self, known: usize, section: &Section) -> (usize, bool) {
        let first = |number: usize| self.sections(number).first().and_then(SectionRef::section);
        let is_of = |number: usize| first(number).is_some_and(|first| first.meta == section.meta);
        if is_of(known) {
            return (known, false);
        }
        let found = self.groups_of(&section.bucket).into_iter().find(|number| is_of(*number));
        match found {
            Some(number) => (number, false),
            None => {
                let key = [section.bucket.as_bytes(), &[0][..], tagged(section.meta.as_ref())].concat();
                self.others.push(self.buckets.len());
                self.numbers.add(&key)
            }
        }
    }

    /// The groups of a bucket, by their places in `buckets`.
    #[inline(never)]
    pub fn groups_of(&self, bucket: &BucketId) -> Vec<usize> {
        let mut groups = Vec::new();
        groups.extend(self.numbers.get(bucket.as_bytes()));
        for number in &self.others {
            if self.buckets.get(*number).is_some_and(|(id, _)| id == bucket) {
                groups.push(*number);
            }
        }
        groups
    }

    /// The sections of a group.
    pub fn sections(&self, number: usize) -> &[SectionRef] {
        self.buckets.get(number).map_or(&[], |(_, sections)| sections)
    }

    /// The sections of a bucket, whatever their metadata.
    pub fn sections_of(&self, bucket: &BucketId) -> Vec<SectionRef> {
        let mut all = Vec::new();
        for number in self.groups_of(bucket) {
            all.extend_from_slice(self.sections(number));
        }
        all
    }

    /// Every group, with its bucket.
    pub fn buckets(&self) -> &[(BucketId, Vec<SectionRef>)] {
        &self.buckets
    }

    /// The buckets of a series that begin at `time_ms` or earlier.
    pub fn buckets_of(&self, meta: Option<&OwnedValue>, time_ms: i64) -> impl Iterator<Item = BucketId> {
        let series = self.series.get(tagged(meta)).and_then(|number| self.buckets_of_series.get(number));
        let buckets = series.into_iter().flatten();
        buckets.filter(move |(_, min_time_ms)| *min_time_ms <= time_ms).map(|(id, _)| *id)
    }
}

/// The bytes that tell one series from every other; none for the one without metadata.
fn tagged(meta: Option<&OwnedValue>) -> &[u8] {
    meta.map_or(&[], OwnedValue::tagged)
}

/// What was sorted by bucket last: the next look at the journals adds what is new.
#[derive(Default)]
pub struct View {
    /// Which records, ascending.
    records: Vec<(ContextId, u64)>,
    by_bucket: Rc<ByBucket>,
}

impl Collection {
    /// The sections of `journal`, which ascends, by bucket.
    pub(super) fn by_bucket(&self, journal: &[JournalEntry]) -> Rc<ByBucket> {
        let mut view = self.view.borrow_mut();
        let new: Vec<&JournalEntry> =
            journal.iter().filter(|e| view.records.binary_search(&(e.context, e.seq)).is_err()).collect();
        let some_went = view.records.len() + new.len() > journal.len();
        if some_went {
            view.by_bucket = Rc::new(ByBucket::of(journal.iter()));
        } else if !new.is_empty() {
            let by_bucket = Rc::make_mut(&mut view.by_bucket);
            new.iter().for_each(|entry| by_bucket.push(entry));
        }
        if some_went || !new.is_empty() {
            view.records = journal.iter().map(|e| (e.context, e.seq)).collect();
        }
        Rc::clone(&view.by_bucket)
    }

    /// The journal records that memory knows, ascending. Others may have folded some of them.
    pub(super) fn known_journal(&self) -> Vec<JournalEntry> {
        let entry = |(context, seq): &(ContextId, u64), record: &Rc<Record>| JournalEntry {
            context: *context,
            seq: *seq,
            record: Rc::clone(record),
        };
        self.records.borrow().iter().map(|(key, record)| entry(key, record)).collect()
    }

    /// Adds a record of this context that was just committed, so that the next look finds it sorted already.
    pub(super) fn note_record(&self, entry: &JournalEntry) {
        let view = &mut *self.view.borrow_mut();
        // Somebody may still read what is there; the next look then sorts this one.
        if let Some(by_bucket) = Rc::get_mut(&mut view.by_bucket)
            && let Err(at) = view.records.binary_search(&(entry.context, entry.seq))
        {
            by_bucket.push(entry);
            view.records.insert(at, (entry.context, entry.seq));
        }
    }

    /// Gives up what was sorted, because much of it was folded.
    pub(super) fn forget_view(&self) {
        *self.view.borrow_mut() = View::default();
    }
}
