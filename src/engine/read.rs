//! A scan over a collection: stored buckets, page by page, and the journal rows that they do not hold yet.
//!
//! **Invariant**: the journals are read first. A bucket read afterwards either covers a journal record, and its rows are
//! dropped here, or does not, and they are rows like any other. So a fold in the middle of a scan neither hides nor doubles a row.

use std::collections::VecDeque;
use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::keyspace::{self, ContextId};
use super::record::Record;
use super::stored_bucket::StoredBucket;
use crate::block::Block;
use crate::bucket::BucketId;
use crate::catalog::Section;
use crate::error::{Error, Result};
use crate::limits::SCAN_PAGE_BUCKETS;
use crate::storage::{Bytes, KeyRange, Page};
use crate::value::Numbers;

/// One section of a journal record.
#[derive(Clone)]
pub struct SectionRef {
    /// Whose commit it was.
    pub context: ContextId,
    /// Its place in that context's journal.
    pub seq: u64,
    record: Rc<Record>,
    at: usize,
    first_row: usize,
}

impl SectionRef {
    /// Bucket, metadata, bounds.
    pub fn section(&self) -> Option<&Section> {
        self.record.sections.get(self.at)
    }

    /// The block that holds the rows, and which of them.
    pub fn rows(&self) -> (&Block, std::ops::Range<usize>) {
        let count = self.section().map_or(0, |s| s.rows);
        (&self.record.rows, self.first_row..self.first_row + count)
    }

    /// Every section of a record.
    pub fn of_record(context: ContextId, seq: u64, record: &Rc<Record>) -> impl Iterator<Item = SectionRef> {
        let mut first_row = 0;
        let record = Rc::clone(record);
        (0..record.sections.len()).map(move |at| {
            let section = SectionRef { context, seq, record: Rc::clone(&record), at, first_row };
            first_row += section.section().map_or(0, |s| s.rows);
            section
        })
    }
}

/// Sections by bucket, in commit order inside each; buckets in the order of their first commit.
#[derive(Default)]
pub struct ByBucket {
    numbers: Numbers,
    buckets: Vec<(BucketId, Vec<SectionRef>)>,
}

impl ByBucket {
    /// Adds a section.
    pub fn push(&mut self, section: SectionRef) {
        let Some(bucket) = section.section().map(|s| s.bucket) else { return };
        let (number, new) = self.numbers.add(bucket.as_bytes());
        if new {
            self.buckets.push((bucket, Vec::new()));
        }
        if let Some((_, sections)) = self.buckets.get_mut(number) {
            sections.push(section);
        }
    }

    /// The sections of a bucket.
    pub fn sections_of(&self, bucket: &BucketId) -> &[SectionRef] {
        let number = self.numbers.get(bucket.as_bytes());
        number.and_then(|number| self.buckets.get(number)).map_or(&[], |(_, sections)| sections)
    }

    /// Takes out the sections of a bucket.
    pub fn take(&mut self, bucket: &BucketId) -> Vec<SectionRef> {
        let number = self.numbers.get(bucket.as_bytes());
        let found = number.and_then(|number| self.buckets.get_mut(number));
        found.map(|(_, sections)| std::mem::take(sections)).unwrap_or_default()
    }

    /// Every bucket and what is left of its sections.
    pub fn buckets(&self) -> &[(BucketId, Vec<SectionRef>)] {
        &self.buckets
    }
}

/// What a scan answers: a bucket, or rows of a bucket that is not stored yet (or was not reached).
pub struct Unit {
    /// The bucket.
    pub id: BucketId,
    /// Its stored form.
    pub stored: Option<Rc<StoredBucket>>,
    /// Journal rows that the stored form does not hold, in commit order.
    pub sections: Vec<SectionRef>,
    /// True where the stored form holds rows of records that are still there: a fold of them runs, or was broken off.
    pub half_folded: bool,
}

/// Which buckets to fetch.
pub enum Access {
    /// All whose ids lie in `[low, high]`.
    Range(BucketId, BucketId),
    /// These, in this order.
    Ids(Vec<BucketId>),
}

enum Rest {
    Range(KeyRange),
    Ids(VecDeque<BucketId>),
    Done,
}

/// The state of a scan between two pages. Owns all that it holds: no transaction lives between pages.
pub struct Scan {
    collection: Rc<Collection>,
    rest: Rest,
    /// Journal sections; a bucket is taken out when it is met.
    journal: ByBucket,
    /// What the last page covered: its units are all buckets that were stored there.
    covered: Option<KeyRange>,
    /// The epoch at which the journals were read.
    epoch: u64,
}

impl Scan {
    /// The collection under scan.
    pub fn collection(&self) -> &Rc<Collection> {
        &self.collection
    }

    /// Journal rows of buckets that were not met so far.
    pub(super) fn sections(&self) -> impl Iterator<Item = &SectionRef> {
        self.journal.buckets.iter().flat_map(|(_, sections)| sections)
    }

    /// Where the buckets of the last page are all that were stored; `None` where it was picked from an index.
    pub(super) fn covered(&self) -> Option<&KeyRange> {
        self.covered.as_ref()
    }

    /// The epoch at which the journals were read. What is read later is of that epoch, or a commit that requires it fails.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Notes that whoever scans has moved the epoch on himself.
    pub(super) fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Says which buckets are fetched. Called once, before the first page.
    pub(super) fn aim(&mut self, access: Access) {
        self.rest = match access {
            Access::Range(low, high) => Rest::Range(keyspace::buckets(&self.collection.id(), &low, &high)),
            Access::Ids(buckets) => Rest::Ids(buckets.into()),
        };
    }
}

/// A stored bucket; an error names the bucket.
pub(super) fn decode_stored(bucket: &BucketId, value: Vec<u8>) -> Result<StoredBucket> {
    StoredBucket::decode(value).map_err(|e| Error::new(e.code, format!("Bucket {bucket:?}: {}", e.message)))
}

impl Engine {
    /// Begins a scan: reads the journals and, at the same moment, the buckets in the entries of an index range, in index
    /// order, each once.
    ///
    /// Errors: as `journal_snapshot`.
    pub(super) async fn begin_scan(
        &self,
        collection: &Rc<Collection>,
        index: Option<KeyRange>,
    ) -> Result<(Scan, Vec<BucketId>)> {
        let snapshot = self.journal_snapshot(collection, index.as_slice()).await?;
        let mut journal = ByBucket::default();
        for entry in snapshot.journal {
            SectionRef::of_record(entry.context, entry.seq, &entry.record).for_each(|section| journal.push(section));
        }
        let epoch = snapshot.epoch;
        let scan = Scan { collection: Rc::clone(collection), rest: Rest::Done, journal, covered: None, epoch };
        Ok((scan, buckets_of(&snapshot.also)?))
    }

    /// The next page; `None` after the last. The last page holds the journal rows of buckets that were not met.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn next_page(&self, scan: &mut Scan) -> Result<Option<Vec<Unit>>> {
        let id = scan.collection.id();
        scan.covered = None;
        let page = Page { entries_max: SCAN_PAGE_BUCKETS, keys_only: false };
        let range = match &mut scan.rest {
            Rest::Range(range) => std::slice::from_ref(range),
            Rest::Ids(buckets) => {
                let count = buckets.len().min(SCAN_PAGE_BUCKETS);
                let page: Vec<BucketId> = buckets.drain(..count).collect();
                if buckets.is_empty() {
                    scan.rest = Rest::Done;
                }
                let found = self.fetch(&scan.collection, &page).await?;
                let units = page.into_iter().zip(found);
                return Ok(Some(units.filter_map(|(id, stored)| stored.map(|stored| scan.unit(id, stored))).collect()));
            }
            Rest::Done => {
                let left = std::mem::take(&mut scan.journal).buckets;
                if left.is_empty() {
                    return Ok(None);
                }
                let units = left.into_iter().filter(|(_, sections)| !sections.is_empty());
                let unit = |(id, sections)| Unit { id, stored: None, sections, half_folded: false };
                return Ok(Some(units.map(unit).collect()));
            }
        };
        let entries = self.storage.scan(range, page).await?;
        let full = entries.len() >= page.entries_max;
        let mut units: Vec<Unit> = Vec::with_capacity(entries.len());
        for entry in entries {
            let bucket = keyspace::bucket_id(&entry.key)?;
            let stored = Rc::new(decode_stored(&bucket, entry.value)?);
            units.push(scan.unit(bucket, stored));
        }
        if let Rest::Range(range) = &mut scan.rest {
            let mut covered = range.clone();
            match units.last() {
                Some(last) if full => {
                    range.start = keyspace::buckets(&id, &last.id, &last.id).end;
                    covered.end.clone_from(&range.start);
                }
                _ => scan.rest = Rest::Done,
            }
            scan.covered = Some(covered);
        }
        Ok(Some(units))
    }

    /// The stored forms of buckets in the same order, from memory or storage; `None` for one that is not stored.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn fetch(
        &self,
        collection: &Collection,
        buckets: &[BucketId],
    ) -> Result<Vec<Option<Rc<StoredBucket>>>> {
        let id = collection.id();
        let epoch = collection.epoch.get();
        let mut found: Vec<Option<Option<Rc<StoredBucket>>>> = {
            let cache = self.buckets.borrow();
            buckets.iter().map(|bucket| cache.get(&id, bucket)).collect()
        };
        let missing: Vec<Bytes> = buckets
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
            .map(|(bucket, _)| keyspace::bucket(&id, bucket))
            .collect();
        if !missing.is_empty() {
            let values = self.storage.get_many(&missing).await?;
            let slots = found.iter_mut().zip(buckets).filter(|(slot, _)| slot.is_none());
            for ((slot, bucket), value) in slots.zip(values) {
                let Some(value) = value else { continue };
                let stored = Some(Rc::new(decode_stored(bucket, value)?));
                // Where the epoch has moved on meanwhile, this may be older than what memory may hold.
                if collection.epoch.get() == epoch {
                    self.buckets.borrow_mut().put(&id, bucket, stored.clone());
                }
                *slot = Some(stored);
            }
        }
        Ok(found.into_iter().map(Option::flatten).collect())
    }
}

impl Scan {
    /// A bucket that was met, with the journal rows that it does not hold.
    fn unit(&mut self, id: BucketId, stored: Rc<StoredBucket>) -> Unit {
        let mut sections = self.journal.take(&id);
        let all = sections.len();
        sections.retain(|s| !stored.coverage.covers(&s.context, s.seq));
        Unit { id, half_folded: sections.len() < all, stored: Some(stored), sections }
    }
}

/// The buckets at the end of index entries, each once.
pub(super) fn buckets_of(entries: &[Bytes]) -> Result<Vec<BucketId>> {
    let mut seen = Numbers::default();
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let bucket = keyspace::bucket_id(entry)?;
        if seen.add(bucket.as_bytes()).1 {
            found.push(bucket);
        }
    }
    Ok(found)
}
