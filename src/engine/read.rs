//! A scan over a collection: stored buckets, page by page, and the journal rows that they do not hold yet.
//!
//! **Invariant**: the journals are read first. A bucket read afterwards either covers a journal record, and its rows are
//! dropped here, or does not, and they are rows like any other. So a fold in the middle of a scan neither hides nor doubles a row.

use std::collections::VecDeque;
use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::keyspace::{self, BucketRef, CollectionId, ContextId};
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
    /// Its stored form and generation.
    pub stored: Option<(Rc<StoredBucket>, u32)>,
    /// Journal rows that the stored form does not hold, in commit order.
    pub sections: Vec<SectionRef>,
}

/// Which buckets to fetch.
pub enum Access {
    /// All whose ids lie in `[low, high]`.
    Range(BucketId, BucketId),
    /// These, in this order.
    Refs(Vec<BucketRef>),
}

enum Rest {
    Range(KeyRange),
    Refs(VecDeque<BucketRef>),
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
    /// Whether buckets may come from memory.
    from_memory: bool,
}

impl Scan {
    /// Has every bucket read from storage, for whoever writes it again: a bucket that others have deleted and made again since the
    /// index was read may have the generation of the one in memory, and what is in it would be lost.
    pub(super) fn read_anew(&mut self) {
        self.from_memory = false;
    }

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

    /// Says which buckets are fetched. Called once, before the first page.
    pub(super) fn aim(&mut self, access: Access) {
        self.rest = match access {
            Access::Range(low, high) => Rest::Range(keyspace::buckets(&self.collection.id(), &low, &high)),
            Access::Refs(buckets) => Rest::Refs(buckets.into()),
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
    ) -> Result<(Scan, Vec<BucketRef>)> {
        let snapshot = self.journal_snapshot(collection, index.as_slice()).await?;
        let mut journal = ByBucket::default();
        for entry in snapshot.journal {
            SectionRef::of_record(entry.context, entry.seq, &entry.record).for_each(|section| journal.push(section));
        }
        let scan =
            Scan { collection: Rc::clone(collection), rest: Rest::Done, journal, covered: None, from_memory: true };
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
            Rest::Refs(buckets) => {
                let count = buckets.len().min(SCAN_PAGE_BUCKETS);
                let page: Vec<BucketRef> = buckets.drain(..count).collect();
                if buckets.is_empty() {
                    scan.rest = Rest::Done;
                }
                let found = self.fetch(&id, &page, scan.from_memory).await?;
                let units = found.into_iter().map(|(id, stored, generation)| scan.unit(id, stored, generation));
                return Ok(Some(units.collect()));
            }
            Rest::Done => {
                let left = std::mem::take(&mut scan.journal).buckets;
                if left.is_empty() {
                    return Ok(None);
                }
                let units = left.into_iter().filter(|(_, sections)| !sections.is_empty());
                return Ok(Some(units.map(|(id, sections)| Unit { id, stored: None, sections }).collect()));
            }
        };
        let entries = self.storage.scan(range, page).await?;
        let full = entries.len() >= page.entries_max;
        let mut units: Vec<Unit> = Vec::with_capacity(entries.len());
        for entry in entries {
            let (bucket, generation) = keyspace::bucket_parts(&entry.key)?;
            let stored = Rc::new(decode_stored(&bucket, entry.value)?);
            units.push(scan.unit(bucket, stored, generation));
        }
        if let Rest::Range(range) = &mut scan.rest {
            let mut covered = range.clone();
            match units.last() {
                // Behind every generation of the last bucket: a fold between two pages must not show it a second time.
                Some(last) if full => {
                    range.start = keyspace::bucket_generations(&id, &last.id).end;
                    covered.end.clone_from(&range.start);
                }
                _ => scan.rest = Rest::Done,
            }
            scan.covered = Some(covered);
        }
        Ok(Some(units))
    }

    /// The stored forms of buckets, as far as they exist, in the same order: from memory, by their keys, or, where somebody has
    /// written a bucket since its index entry was read, by a search for its next generation.
    pub(super) async fn fetch(
        &self,
        collection: &CollectionId,
        buckets: &[BucketRef],
        from_memory: bool,
    ) -> Result<Vec<(BucketId, Rc<StoredBucket>, u32)>> {
        let mut found: Vec<Option<(Rc<StoredBucket>, u32)>> = {
            let cache = self.buckets.borrow();
            let get = |bucket| cache.get(collection, bucket).filter(|_| from_memory);
            buckets.iter().map(|bucket| Some((get(bucket)?, bucket.generation))).collect()
        };
        let missing = |found: &[Option<_>]| -> Vec<(usize, BucketRef)> {
            let all = found.iter().zip(buckets).enumerate();
            all.filter(|(_, (found, _))| found.is_none()).map(|(at, (_, bucket))| (at, *bucket)).collect()
        };
        let put = |found: &mut Vec<_>, at: usize, mut bucket: BucketRef, value: Bytes| -> Result<()> {
            let stored = Rc::new(decode_stored(&bucket.id, value)?);
            bucket.fingerprint = stored.fingerprint;
            self.buckets.borrow_mut().put(collection, bucket, Rc::clone(&stored));
            if let Some(slot) = found.get_mut(at) {
                *slot = Some((stored, bucket.generation));
            }
            Ok(())
        };
        let unknown = missing(&found);
        if !unknown.is_empty() {
            let keys: Vec<Bytes> =
                unknown.iter().map(|(_, b)| keyspace::bucket(collection, &b.id, b.generation)).collect();
            for ((at, bucket), value) in unknown.into_iter().zip(self.storage.get_many(&keys).await?) {
                if let Some(value) = value {
                    put(&mut found, at, bucket, value)?;
                }
            }
        }
        let moved = missing(&found);
        if !moved.is_empty() {
            let ranges: Vec<KeyRange> =
                moved.iter().map(|(_, b)| keyspace::bucket_generations(collection, &b.id)).collect();
            let page = Page { entries_max: ranges.len(), keys_only: false };
            for entry in self.storage.scan(&ranges, page).await? {
                let (id, generation) = keyspace::bucket_parts(&entry.key)?;
                if let Some((at, bucket)) = moved.iter().find(|(_, bucket)| bucket.id == id) {
                    put(&mut found, *at, BucketRef { generation, ..*bucket }, entry.value)?;
                }
            }
        }
        let all = found.into_iter().zip(buckets);
        Ok(all
            .filter_map(|(found, bucket)| found.map(|(stored, generation)| (bucket.id, stored, generation)))
            .collect())
    }
}

impl Scan {
    /// A bucket that was met, with the journal rows that it does not hold.
    fn unit(&mut self, id: BucketId, stored: Rc<StoredBucket>, generation: u32) -> Unit {
        let sections = self.journal.take(&id);
        let uncovered = sections.into_iter().filter(|s| !stored.coverage.covers(&s.context, s.seq)).collect();
        Unit { id, stored: Some((stored, generation)), sections: uncovered }
    }
}

/// The buckets at the end of index entries, each once.
pub(super) fn buckets_of(entries: &[Bytes]) -> Result<Vec<BucketRef>> {
    let mut seen = Numbers::default();
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let bucket = keyspace::index_entry_bucket(entry)?;
        if seen.add(bucket.id.as_bytes()).1 {
            found.push(bucket);
        }
    }
    Ok(found)
}
