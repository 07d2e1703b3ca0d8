//! How much a collection holds.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::keyspace;
use super::read::Access;
use crate::bucket::{BucketDoc, BucketId};
use crate::error::Result;
use crate::storage::KeyRange;

/// What `collStats` reports. Sizes are those of stored values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Buckets, those that are in the journal only included.
    pub buckets: u64,
    /// Measurements.
    pub measurements: u64,
    /// Bytes of bucket documents.
    pub bucket_bytes: u64,
    /// Bytes of journal records, of every context.
    pub journal_bytes: u64,
    /// Names of indexes, and bytes of their entries.
    pub indexes: Vec<(Box<str>, u64)>,
}

impl Engine {
    /// Counts a collection by reading it.
    ///
    /// Errors: `NamespaceNotFound`, `DataCorruptionDetected`, those of storage.
    pub async fn sizes(&self, collection: &Rc<Collection>) -> Result<Sizes> {
        let mut sizes = Sizes::default();
        let snapshot = self.journal_snapshot(collection, &[]).await?;
        sizes.journal_bytes = snapshot.journal.iter().map(|entry| entry.record.stored_bytes as u64).sum();
        for spec in collection.entry().ready_indexes() {
            let prefix = keyspace::index_prefix(&collection.id(), spec.number);
            let keys = self.scan_keys(vec![KeyRange::prefix(&prefix)]).await?;
            sizes.indexes.push((spec.name.clone(), keys.iter().map(|key| key.len() as u64).sum()));
        }
        let (mut scan, _) = self.begin_scan(collection, &[]).await?;
        scan.aim(Access::Range(BucketId::MIN, BucketId::MAX));
        while let Some(units) = self.next_page(&mut scan).await? {
            for unit in units {
                sizes.buckets += 1;
                if let Some(stored) = &unit.stored {
                    let document = stored.document.view();
                    sizes.bucket_bytes += document.as_bytes().len() as u64;
                    sizes.measurements +=
                        BucketDoc::parse(document, &collection.entry().options.timeseries)?.count()? as u64;
                }
                sizes.measurements += unit.sections().map(|s| s.rows().1.len() as u64).sum::<u64>();
            }
        }
        Ok(sizes)
    }
}
