//! The contents of a collection's journals, by bucket and by series.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::entry::{JournalEntry, RecordKey, SectionRef};
use super::records::Records;
use super::resolution::Resolution;
use super::tail::Tail;
use crate::bucket::{BucketId, TimeseriesOptions};
use crate::catalog::Section;
use crate::engine::store::stored_bucket::Coverage;
use crate::error::Result;
use crate::index;
use crate::limits::TAILS_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::value::{Interner, OwnedValue, Value, sort_by};

/// The sections of one bucket with the same metadata, in commit order per context. There is at least one.
///
/// A bucket has several groups if an update has changed its metadata and a context that did not know kept adding to it.
/// A window may share its id with others.
#[derive(Clone)]
pub struct SectionGroup {
    /// The bucket.
    pub bucket: BucketId,
    /// The start of the bucket.
    pub min_time_ms: i64,
    /// No row is earlier.
    pub first_ms: i64,
    /// No row is later.
    pub last_ms: i64,
    /// Number of rows.
    pub rows: usize,
    meta: Option<OwnedValue>,
    sections: Vec<SectionRef>,
    /// The first record of each context in the group.
    firsts: Vec<RecordKey>,
    /// The rows as columns, as far as somebody has asked for them.
    tail: RefCell<Option<Rc<Tail>>>,
    /// In a collection with `dedupe`: its measurements, as far as somebody has asked for them.
    resolution: RefCell<Option<Rc<Resolution>>>,
}

impl SectionGroup {
    /// True if some of its rows were measurements in other buckets before.
    pub fn is_any_moved(&self) -> bool {
        self.sections.iter().any(|section| section.entry().record.order.moved)
    }

    fn new(bucket: BucketId, min_time_ms: i64, meta: Option<OwnedValue>) -> SectionGroup {
        SectionGroup {
            bucket,
            min_time_ms,
            first_ms: i64::MAX,
            last_ms: i64::MIN,
            rows: 0,
            meta,
            sections: Vec::new(),
            firsts: Vec::new(),
            tail: RefCell::default(),
            resolution: RefCell::default(),
        }
    }

    /// A group of these rows, which are in no record.
    pub fn of_tail(bucket: BucketId, min_time_ms: i64, meta: Option<OwnedValue>, tail: Tail) -> SectionGroup {
        let mut group = SectionGroup::new(bucket, min_time_ms, meta);
        (group.first_ms, group.last_ms) = (tail.first_or_last_ms(false), tail.first_or_last_ms(true));
        group.rows = tail.rows().rows();
        group.tail = RefCell::new(Some(Rc::new(tail)));
        group
    }

    /// Its measurements, if they are known for all of its sections.
    pub fn resolution(&self) -> Option<Rc<Resolution>> {
        let resolution = self.resolution.borrow();
        resolution.as_ref().filter(|known| known.sections == self.sections.len()).cloned()
    }

    /// What was known of its measurements before.
    pub(super) fn take_resolution(&self) -> Option<Rc<Resolution>> {
        self.resolution.borrow_mut().take()
    }

    /// Keeps what is known of its measurements.
    pub(super) fn set_resolution(&self, resolution: Resolution) {
        *self.resolution.borrow_mut() = Some(Rc::new(resolution));
    }

    /// The times of the first and of the last row that a query finds here.
    pub fn times(&self) -> (i64, i64) {
        match self.resolution() {
            Some(known) => (known.tail.first_or_last_ms(false), known.tail.first_or_last_ms(true)),
            None => (self.first_ms, self.last_ms),
        }
    }

    /// Where its rows stand among buckets that are ordered by their ids. A window begins long before its first unfolded
    /// row.
    pub fn place(&self) -> BucketId {
        match self.resolution() {
            Some(known) if !self.bucket.is_extended() => BucketId::lowest_at(known.tail.first_or_last_ms(false)),
            _ => self.bucket,
        }
    }

    /// The number of rows that a query finds here.
    pub fn row_count(&self) -> usize {
        self.resolution().map_or(self.rows, |known| known.tail.rows().rows())
    }

    fn push(&mut self, section: SectionRef) {
        if let Some(of) = section.section() {
            self.rows += of.rows;
            self.first_ms = self.first_ms.min(of.first_ms);
            self.last_ms = self.last_ms.max(of.last_ms);
        }
        let (context, seq) = section.commit();
        match self.firsts.iter_mut().find(|(known, _)| *known == context) {
            Some((_, first)) => *first = seq.min(*first),
            None => self.firsts.push((context, seq)),
        }
        self.sections.push(section);
    }

    /// True if the bucket with this coverage already holds some of its rows.
    pub fn is_covered(&self, coverage: &Coverage) -> bool {
        // Nearly always the bucket holds only older records.
        self.firsts.iter().any(|first| coverage.reaches(first))
            && self.sections.iter().any(|section| coverage.covers(section.commit()))
    }

    /// The metadata of its rows.
    pub fn meta(&self) -> Option<Value<'_>> {
        self.meta.as_ref().map(OwnedValue::view)
    }

    /// Its tail as it is now, and the sections that are not in it yet.
    pub fn begun(&self) -> (Option<Rc<Tail>>, &[SectionRef]) {
        let tail = self.tail.borrow().clone();
        let new = self.sections.get(tail.as_ref().map_or(0, |tail| tail.sections())..).unwrap_or_default();
        (tail, new)
    }

    /// Its sections.
    pub fn sections(&self) -> &[SectionRef] {
        &self.sections
    }
}

/// Sections grouped by bucket, with buckets in the order of their first commit.
#[derive(Clone, Default)]
pub struct ByBucket {
    /// Lives as long as the positions of groups are valid.
    numbering: Rc<()>,
    numbers: Interner,
    groups: Vec<Rc<SectionGroup>>,
    /// Positions of groups that are not the first ones of their buckets.
    others: Vec<usize>,
    series: Interner,
    /// The number of the series of each group.
    series_of_groups: Vec<usize>,
    /// The buckets of each series, and their starts.
    buckets_of_series: Vec<Vec<(BucketId, i64)>>,
    by_meta: RefCell<ByMeta>,
    /// Bytes of the tails kept.
    tails_size_bytes: Cell<usize>,
    /// Groups in the order of their buckets, as far as somebody has asked for it.
    pub(super) ordered: RefCell<Rc<Vec<(BucketId, usize)>>>,
    /// The records that they are of.
    records: Records,
}

/// Groups by their entries in the default index, as far as somebody has asked for them.
#[derive(Clone, Default)]
struct ByMeta {
    entries: Vec<(Vec<u8>, usize)>,
    /// How many groups it contains so far.
    groups: usize,
}

impl ByBucket {
    /// The sections of some records.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Rc<JournalEntry>>) -> ByBucket {
        let mut by_bucket = ByBucket::default();
        entries.for_each(|entry| by_bucket.push(entry));
        by_bucket
    }

    /// A group that is in no record.
    pub fn of_group(group: SectionGroup) -> ByBucket {
        let mut by_bucket = ByBucket::default();
        by_bucket.adopt(Rc::new(group));
        by_bucket
    }

    /// Adds the sections of a record.
    pub(in crate::engine) fn push(&mut self, entry: &Rc<JournalEntry>) {
        let mut next = 0;
        self.records.push(entry);
        for section in SectionRef::of_record(entry) {
            let Some(of) = section.section() else { continue };
            let bucket = of.bucket;
            // Commits of many series mostly name the same buckets in the same order.
            let (number, new) = match self.groups.get(next) {
                Some(expected) if expected.bucket == bucket => (next, false),
                _ => self.numbers.add(bucket.as_bytes()),
            };
            let (number, new) = if new { (number, new) } else { self.group_of(number, of) };
            next = number + 1;
            if new {
                let group = SectionGroup::new(of.bucket, of.min_time_ms, of.meta.clone());
                self.note_series(&group);
                self.groups.push(Rc::new(group));
            }
            self.records.push_section(number);
            if let Some(group) = self.groups.get_mut(number) {
                Rc::make_mut(group).push(section);
            }
        }
    }

    /// What is left without dropped records. Groups that lost nothing keep their tails.
    pub(super) fn without_gone(&self) -> ByBucket {
        let mut left = ByBucket::default();
        let mut numbers = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            numbers.push(left.groups.len());
            if group.sections.iter().all(|section| !section.is_gone()) {
                left.adopt(Rc::clone(group));
                continue;
            }
            let mut rest = SectionGroup::new(group.bucket, group.min_time_ms, group.meta.clone());
            let sections = group.sections.iter().filter(|section| !section.is_gone());
            sections.for_each(|section| rest.push(section.clone()));
            if !rest.sections.is_empty() {
                left.adopt(Rc::new(rest));
            }
        }
        left.records = self.records.without_gone(&numbers);
        left
    }

    /// Adds a group that does not exist yet.
    fn adopt(&mut self, group: Rc<SectionGroup>) {
        if !self.numbers.add(group.bucket.as_bytes()).1 {
            self.others.push(self.groups.len());
            self.numbers.add(&key_of(&group.bucket, group.min_time_ms, group.meta.as_ref()));
        }
        self.note_series(&group);
        let kept = group.tail.borrow().as_ref().map_or(0, |tail| tail.size_bytes());
        self.tails_size_bytes.set(self.tails_size_bytes.get() + kept);
        self.groups.push(group);
    }

    fn note_series(&mut self, group: &SectionGroup) {
        let (series, new) = self.series.add(tagged(group.meta.as_ref()));
        self.series_of_groups.push(series);
        if new {
            self.buckets_of_series.push(Vec::new());
        }
        if let Some(buckets) = self.buckets_of_series.get_mut(series) {
            buckets.push((group.bucket, group.min_time_ms));
        }
    }

    /// The group of a section, given a group of its bucket; true if it is new.
    fn group_of(&mut self, known: usize, section: &Section) -> (usize, bool) {
        // Windows that begin 2^32 seconds apart may have one id.
        let is_of = |number: usize| {
            let group = self.groups.get(number);
            group.is_some_and(|group| group.min_time_ms == section.min_time_ms && group.meta == section.meta)
        };
        if is_of(known) {
            return (known, false);
        }
        let found = self.groups_of(&section.bucket).into_iter().find(|number| is_of(*number));
        match found {
            Some(number) => (number, false),
            None => {
                self.others.push(self.groups.len());
                self.numbers.add(&key_of(&section.bucket, section.min_time_ms, section.meta.as_ref()))
            }
        }
    }

    /// The groups of a bucket, as positions in `groups`.
    #[inline(never)]
    pub fn groups_of(&self, bucket: &BucketId) -> Vec<usize> {
        let mut groups = Vec::new();
        groups.extend(self.numbers.get(bucket.as_bytes()));
        for number in &self.others {
            if self.groups.get(*number).is_some_and(|group| group.bucket == *bucket) {
                groups.push(*number);
            }
        }
        groups
    }

    /// The groups with entries in `ranges` of the default index, as positions in `groups`, each once.
    #[inline(never)]
    pub fn groups_within(&self, ranges: &[(Vec<u8>, Vec<u8>)]) -> Vec<usize> {
        let by_meta = &mut *self.by_meta.borrow_mut();
        let new = self.groups.iter().enumerate().skip(by_meta.groups);
        if new.len() > 0 {
            for (number, group) in new {
                let keys = index::entries(group.meta(), group.min_time_ms).into_iter();
                by_meta.entries.extend(keys.map(|key| (key, number)));
            }
            by_meta.groups = self.groups.len();
            sort_by(&mut by_meta.entries, Ord::cmp);
        }
        let mut found: Vec<usize> = Vec::new();
        for (start, end) in ranges {
            let from = by_meta.entries.partition_point(|(key, _)| key < start);
            let within = by_meta.entries.iter().skip(from).take_while(|(key, _)| key < end);
            found.extend(within.map(|(_, number)| *number));
        }
        sort_by(&mut found, Ord::cmp);
        found.dedup();
        found
    }

    /// True if it contains rows of that record.
    pub fn holds(&self, commit: RecordKey) -> bool {
        self.groups.iter().any(|group| group.sections.iter().any(|section| section.commit() == commit))
    }

    /// The sections of a bucket, with any metadata.
    pub fn sections_of(&self, bucket: &BucketId) -> Vec<SectionRef> {
        let mut all = Vec::new();
        for number in self.groups_of(bucket) {
            all.extend_from_slice(self.groups.get(number).map_or(&[], |group| &group.sections));
        }
        all
    }

    /// Lives as long as the positions of groups are valid: groups are only added at the end.
    pub fn numbering(&self) -> &Rc<()> {
        &self.numbering
    }

    /// All groups.
    pub fn groups(&self) -> &[Rc<SectionGroup>] {
        &self.groups
    }

    /// The records that they are of.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The position of a group of other journals that has the same bucket and the same metadata.
    pub fn position(&self, other: &SectionGroup) -> Option<usize> {
        let is_it = |group: &SectionGroup| group.min_time_ms == other.min_time_ms && group.meta == other.meta;
        self.groups_of(&other.bucket).into_iter().find(|at| self.groups.get(*at).is_some_and(|group| is_it(group)))
    }

    /// The number of the series of a group.
    pub fn series_of(&self, group: usize) -> usize {
        self.series_of_groups.get(group).copied().unwrap_or_default()
    }

    /// How many series they are of.
    pub fn series_count(&self) -> usize {
        self.series.count()
    }

    /// Which groups, of those that are not `left_out`, have the last row of a series, or tie with it; or the first row if
    /// not `is_last`.
    pub fn at_ends(&self, left_out: &[bool], is_last: bool) -> Vec<bool> {
        let place = |group: &SectionGroup| if is_last { !group.times().1 } else { group.times().0 };
        let mut best = vec![i64::MAX; self.series.count()];
        let groups = || self.groups.iter().zip(&self.series_of_groups).zip(left_out);
        for ((group, series), _) in groups().filter(|(_, left_out)| !**left_out) {
            best.get_mut(*series).into_iter().for_each(|best| *best = place(group).min(*best));
        }
        groups().map(|((group, series), left_out)| !left_out && best.get(*series) == Some(&place(group))).listed()
    }

    /// The buckets of a series that begin at `time_ms` or earlier.
    pub fn buckets_of(&self, meta: Option<&OwnedValue>, time_ms: i64) -> impl Iterator<Item = BucketId> {
        let series = self.series.get(tagged(meta)).and_then(|number| self.buckets_of_series.get(number));
        let buckets = series.into_iter().flatten();
        buckets.filter(move |(_, min_time_ms)| *min_time_ms <= time_ms).map(|(id, _)| *id)
    }

    /// The rows of a group as columns. They are kept up to `TAILS_SIZE_BYTES_MAX` and grow with the group.
    ///
    /// Errors: `DataCorruptionDetected` if the times of the rows are not dates.
    pub fn tail(&self, group: &SectionGroup, options: &TimeseriesOptions) -> Result<Rc<Tail>> {
        if let Some(known) = group.resolution() {
            return Ok(Rc::clone(&known.tail));
        }
        let mut slot = group.tail.borrow_mut();
        if let Some(tail) = slot.as_ref().filter(|tail| tail.sections() == group.sections.len()) {
            return Ok(Rc::clone(tail));
        }
        let tail = match slot.take() {
            Some(tail) => {
                let kept = self.tails_size_bytes.get();
                self.tails_size_bytes.set(kept.saturating_sub(tail.size_bytes()));
                // If somebody still reads it, it is built again.
                Rc::into_inner(tail)
            }
            None => None,
        };
        let mut tail = tail.unwrap_or_else(|| Tail::new(group.min_time_ms, options));
        tail.extend(group.sections.get(tail.sections()..).unwrap_or_default(), options)?;
        let (tail, kept) = (Rc::new(tail), self.tails_size_bytes.get());
        if kept <= TAILS_SIZE_BYTES_MAX {
            self.tails_size_bytes.set(kept + tail.size_bytes());
            *slot = Some(Rc::clone(&tail));
        }
        Ok(tail)
    }
}

/// The key of a group that is not the first one of its bucket.
fn key_of(bucket: &BucketId, min_time_ms: i64, meta: Option<&OwnedValue>) -> Vec<u8> {
    [bucket.as_bytes(), &min_time_ms.to_le_bytes()[..], tagged(meta)].concat()
}

/// The bytes that identify a series; empty without metadata.
fn tagged(meta: Option<&OwnedValue>) -> &[u8] {
    meta.map_or(&[], OwnedValue::tagged)
}

#[cfg(test)]
mod tests {
    use super::super::samples::shared;
    use super::*;

    #[test]
    fn an_index_range_gives_the_groups_of_its_metadata_and_time() {
        let mut by_bucket = ByBucket::default();
        by_bucket.push(&shared(1, 0, &[(4, &[1]), (2, &[1])]));
        let of = |number: i32, last_ms| {
            let meta = OwnedValue::double(f64::from(number));
            index::range(Some(meta.view()), 1000, None, last_ms)
        };
        // The metadata is an int32 that equals the double.
        assert_eq!(by_bucket.groups_within(&[of(2, None)]), [1]);
        assert_eq!(by_bucket.groups_within(&[of(2, Some(-1))]), [0; 0]);
        by_bucket.push(&shared(1, 1, &[(7, &[1]), (2, &[3])]));
        assert_eq!(by_bucket.groups_within(&[of(7, None), of(4, None), of(4, None)]), [0, 2]);
        assert_eq!(by_bucket.groups()[1].rows, 2);
    }

    #[test]
    fn of_each_series_the_groups_with_the_last_or_the_first_row_are_known() {
        let mut by_bucket = ByBucket::default();
        by_bucket.push(&shared(1, 0, &[(1, &[5]), (2, &[9, 1])]));
        let nothing = [false; 2];
        assert_eq!(by_bucket.at_ends(&nothing, true), [true, true]);
        let ends = |is_last, left_out: bool| {
            let mut of_one = ByBucket::default();
            for (number, first_ms, last_ms) in [(1, 3, 7), (2, 1, 7), (3, 1, 4)] {
                let bucket = BucketId::lowest_at(number * 1000);
                let mut group = SectionGroup::new(bucket, 0, Some(OwnedValue::int32(1)));
                (group.first_ms, group.last_ms) = (first_ms, last_ms);
                of_one.adopt(Rc::new(group));
            }
            of_one.at_ends(&[false, left_out, false], is_last)
        };
        assert_eq!(ends(true, false), [true, true, false]);
        assert_eq!(ends(false, false), [false, true, true]);
        assert_eq!(ends(false, true), [false, false, true]);
        assert_eq!(ends(true, true), [true, false, false]);
    }

    #[test]
    fn a_group_is_covered_if_a_bucket_holds_one_of_its_records() {
        let mut by_bucket = ByBucket::default();
        by_bucket.push(&shared(1, 4, &[(2, &[1])]));
        by_bucket.push(&shared(3, 2, &[(2, &[1])]));
        let covered = |commit: (u8, u64)| {
            let mut coverage = Coverage::default();
            coverage.cover(([commit.0; 8], commit.1), 0);
            by_bucket.groups()[0].is_covered(&coverage)
        };
        assert!(covered((1, 4)) && covered((1, 9)) && covered((3, 2)));
        assert!(!covered((1, 3)) && !covered((3, 1)) && !covered((2, 9)));
    }
}
