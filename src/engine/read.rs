//! A scan over a collection: stored buckets, page by page, and the journal rows that they do not hold yet.
//!
//! **Invariant**: the journals are read first. A bucket read afterwards either covers a journal record, and its rows are
//! dropped here, or does not, and they are rows like any other. So a fold in the middle of a scan neither hides nor doubles a row.

use std::collections::{HashMap, VecDeque};
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
use crate::storage::{KeyRange, Page};

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

/// What a scan answers: a bucket, or rows of a bucket that is not stored yet (or was not reached).
pub struct Unit {
    /// The bucket.
    pub id: BucketId,
    /// Its stored form and generation.
    pub stored: Option<(StoredBucket, u32)>,
    /// Journal rows that the stored form does not hold, in commit order.
    pub sections: Vec<SectionRef>,
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
    /// Journal sections by bucket, in commit order; a bucket is taken out when it is met.
    journal: HashMap<BucketId, Vec<SectionRef>>,
    /// The buckets of `journal`, in the order of their first commit.
    journal_order: Vec<BucketId>,
}

impl Scan {
    /// The collection under scan.
    pub fn collection(&self) -> &Rc<Collection> {
        &self.collection
    }

    fn take_sections(&mut self, id: &BucketId) -> Vec<SectionRef> {
        self.journal.remove(id).unwrap_or_default()
    }
}

/// A stored bucket; an error names the bucket.
pub(super) fn decode_stored(bucket: &BucketId, value: Vec<u8>) -> Result<StoredBucket> {
    StoredBucket::decode(value).map_err(|e| Error::new(e.code, format!("Bucket {bucket:?}: {}", e.message)))
}

impl Engine {
    /// Begins a scan: reads the journals, then asks `access` which buckets to fetch (it may depend on what the journals
    /// have told about the collection).
    ///
    /// Errors: as `journal_snapshot`, and those of `access`.
    pub(super) async fn begin_scan(&self, collection: &Rc<Collection>) -> Result<Scan> {
        let mut journal: HashMap<BucketId, Vec<SectionRef>> = HashMap::new();
        let mut journal_order = Vec::new();
        for entry in self.journal_snapshot(collection).await? {
            for section in SectionRef::of_record(entry.context, entry.seq, &entry.record) {
                let Some(id) = section.section().map(|s| s.bucket) else { continue };
                let of_bucket = journal.entry(id).or_default();
                if of_bucket.is_empty() {
                    journal_order.push(id);
                }
                of_bucket.push(section);
            }
        }
        Ok(Scan { collection: Rc::clone(collection), rest: Rest::Done, journal, journal_order })
    }

    /// Says which buckets the scan fetches. Called once, after `begin_scan`.
    pub(super) fn aim_scan(&self, scan: &mut Scan, access: Access) {
        scan.rest = match access {
            Access::Range(low, high) => Rest::Range(keyspace::buckets(&scan.collection.id(), &low, &high)),
            Access::Ids(ids) => Rest::Ids(ids.into()),
        };
    }

    /// The next page; `None` after the last. The last page holds the journal rows of buckets that were not met.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn next_page(&self, scan: &mut Scan) -> Result<Option<Vec<Unit>>> {
        let id = scan.collection.id();
        let page = Page { entries_max: SCAN_PAGE_BUCKETS, keys_only: false };
        let ranges = match &mut scan.rest {
            Rest::Range(range) => vec![range.clone()],
            Rest::Ids(ids) => {
                let count = ids.len().min(SCAN_PAGE_BUCKETS);
                ids.drain(..count).map(|bucket| keyspace::bucket_generations(&id, &bucket)).collect()
            }
            Rest::Done => {
                let order = std::mem::take(&mut scan.journal_order);
                if order.is_empty() {
                    return Ok(None);
                }
                let left = order.into_iter().map(|id| Unit { id, stored: None, sections: scan.take_sections(&id) });
                return Ok(Some(left.filter(|unit| !unit.sections.is_empty()).collect()));
            }
        };
        let entries = self.storage.scan(&ranges, page).await?;
        let full = entries.len() >= page.entries_max;
        let mut units: Vec<Unit> = Vec::with_capacity(entries.len());
        for entry in entries {
            let (bucket, generation) = keyspace::bucket_parts(&entry.key)?;
            let stored = decode_stored(&bucket, entry.value)?;
            let sections = scan.take_sections(&bucket);
            let uncovered = sections.into_iter().filter(|s| !stored.coverage.covers(&s.context, s.seq)).collect();
            units.push(Unit { id: bucket, stored: Some((stored, generation)), sections: uncovered });
        }
        match &mut scan.rest {
            // Behind every generation of the last bucket: a fold between two pages must not show it a second time.
            Rest::Range(range) if full => {
                if let Some(last) = units.last() {
                    range.start = keyspace::bucket_generations(&id, &last.id).end;
                }
            }
            Rest::Ids(ids) if !ids.is_empty() => {}
            rest => *rest = Rest::Done,
        }
        Ok(Some(units))
    }

    /// The buckets in the entries of an index range, in index order, each once.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn scan_index(&self, mut range: KeyRange) -> Result<Vec<BucketId>> {
        let page = Page { entries_max: 4096, keys_only: true };
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        loop {
            let entries = self.storage.scan(std::slice::from_ref(&range), page).await?;
            let done = entries.len() < page.entries_max;
            if let Some(last) = entries.last() {
                range.start = [&last.key[..], &[0]].concat();
            }
            for entry in entries {
                let id = keyspace::index_entry_bucket(&entry.key)?;
                if seen.insert(id) {
                    found.push(id);
                }
            }
            if done {
                return Ok(found);
            }
        }
    }
}
