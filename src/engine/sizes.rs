//! Sizes of a collection.

use std::rc::Rc;

use super::Engine;
use super::collections::collection::Collection;
use super::read::scan::Access;
use super::store::keyspace;
use crate::block::{Block, DocPivot};
use crate::bucket::{BUCKETS_PREFIX, BucketDoc, BucketId};
use crate::catalog::{Counter, Stats};
use crate::error::Result;
use crate::limits::LOOK_WORK;
use crate::query::CollStats;
use crate::storage::KeyRange;
use crate::value::DocWriter;

/// The figures of `collStats`. Sizes are those of stored values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Number of buckets, including those that are only in the journal.
    pub buckets: u64,
    /// Number of measurements.
    pub measurements: u64,
    /// Bytes of bucket documents.
    pub bucket_bytes: u64,
    /// Bytes of journal records of all contexts.
    pub journal_bytes: u64,
    /// Names of indexes with the bytes of their entries.
    pub indexes: Vec<(Box<str>, u64)>,
}

impl Engine {
    /// Counts a collection by reading all of it.
    ///
    /// Errors: `NamespaceNotFound`, `DataCorruptionDetected`, those of storage.
    pub async fn sizes(&self, collection: &Rc<Collection>) -> Result<Sizes> {
        let mut sizes = Sizes::default();
        self.journal_snapshot(collection, &[]).await?;
        sizes.journal_bytes = collection.journal.stored_bytes();
        for spec in collection.entry().ready_indexes() {
            let prefix = keyspace::index_prefix(&collection.id(), spec.number);
            let keys = self.scan_keys(vec![KeyRange::prefix(&prefix)]).await?;
            sizes.indexes.push((spec.name.clone(), keys.iter().map(|key| key.len() as u64).sum()));
        }
        let (mut scan, _) = self.begin_scan(collection, &[]).await?;
        scan.aim(Access::Range(BucketId::MIN, BucketId::MAX));
        while let Some(units) = self.next_page(&mut scan).await? {
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
            for unit in units {
                sizes.buckets += 1;
                if let Some(stored) = &unit.stored {
                    let document = stored.document.view();
                    sizes.bucket_bytes += document.as_bytes().len() as u64;
                    sizes.measurements +=
                        BucketDoc::parse(document, &collection.entry().options.timeseries)?.count()? as u64;
                }
                sizes.measurements += unit.unfolded().map_or(0, |group| unit.unfolded_rows(group)) as u64;
            }
        }
        Ok(sizes)
    }

    /// Writes the `collStats` of a collection, with sizes in units of `scale` bytes. With `raw`, it is that of the buckets, which are its documents.
    ///
    /// Errors: `NamespaceNotFound`, those of storage.
    pub async fn write_sizes(
        &self,
        name: &str,
        raw: bool,
        sizes: &Sizes,
        scale: i64,
        writer: &mut DocWriter,
    ) -> Result<()> {
        let collection = self.existing_collection(name).await?;
        if raw {
            let average = sizes.bucket_bytes.checked_div(sizes.buckets).unwrap_or_default();
            writer.int64("count", long(sizes.buckets)).int64("avgObjSize", long(average));
        }
        let stats = collection.stats();
        let size = |n: u64| long(n) / scale;
        writer.int64("size", size(sizes.bucket_bytes));
        writer.int64("storageSize", size(sizes.bucket_bytes + sizes.journal_bytes));
        writer.int64("journalSize", size(sizes.journal_bytes)).int64("scaleFactor", scale);
        writer.begin_doc("timeseries").string("bucketsNs", &[&self.name, ".", BUCKETS_PREFIX, name].concat());
        writer.int64("bucketCount", long(sizes.buckets)).int64("numMeasurements", long(sizes.measurements));
        // Buckets whose rows are in journals count as well, and so do these rows.
        if let Some(average) = (sizes.bucket_bytes + sizes.journal_bytes).checked_div(sizes.buckets) {
            writer.int64("avgBucketSize", long(average));
        }
        // A collection that was not used in this process has no counters.
        if stats != Stats::default() {
            stats.write(writer);
        }
        if collection.dedupes() {
            writer.int64("numDuplicatesRemoved", long(stats[Counter::DuplicatesRemoved]));
            if let Some(left) = collection.work.buckets_to_move.get() {
                writer.int64("numBucketsToMove", long(left));
            }
        }
        writer.end().int32("nindexes", i32::try_from(sizes.indexes.len()).unwrap_or(i32::MAX));
        let index_bytes: u64 = sizes.indexes.iter().map(|(_, bytes)| bytes).sum();
        writer.int64("totalIndexSize", size(index_bytes));
        writer.int64("totalSize", size(index_bytes + sizes.bucket_bytes + sizes.journal_bytes));
        writer.begin_doc("indexSizes");
        for (name, bytes) in &sizes.indexes {
            writer.int64(name, size(*bytes));
        }
        writer.end();
        Ok(())
    }

    /// The document of `$collStats`.
    ///
    /// Errors: as `sizes`.
    pub(super) async fn coll_stats(&self, name: &str, raw: bool, asked: CollStats) -> Result<Block> {
        let sizes = self.sizes(&self.existing_collection(name).await?).await?;
        let mut writer = DocWriter::new();
        let prefix = if raw { BUCKETS_PREFIX } else { "" };
        writer.string("ns", &[&self.name, ".", prefix, name].concat()).string("host", &self.name);
        writer.date("localTime", self.now_ms());
        if let Some(scale) = asked.scale {
            writer.begin_doc("storageStats");
            self.write_sizes(name, raw, &sizes, scale, &mut writer).await?;
            writer.end();
        }
        if asked.count {
            writer.int64("count", long(if raw { sizes.buckets } else { sizes.measurements }));
        }
        let mut pivot = DocPivot::new();
        pivot.push(writer.finish().view())?;
        Ok(pivot.finish())
    }
}

fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
