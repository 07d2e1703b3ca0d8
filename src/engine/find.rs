//! `find` and `count`: pages of a scan, pushed into the pure executor.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::fold::merge_sections;
use super::keyspace;
use super::read::{Access, Scan, SectionRef, Unit};
use crate::block::{Block, DocPivot};
use crate::bucket::{BucketDoc, BucketId, unpack};
use crate::error::{ErrorCode, Result};
use crate::index;
use crate::limits::BATCH_SIZE_BYTES_MAX;
use crate::query::{Exec, Facts, Flow, Plan, PlanAccess};
use crate::storage::KeyRange;

/// A query between two batches.
pub struct FindCursor {
    scan: Scan,
    plan: Rc<Plan>,
    exec: Exec,
    /// Bucket documents instead of measurements.
    raw: bool,
    scanned: bool,
}

/// One batch and the cursor that gives the next; id 0 where there is none.
pub struct Batch {
    /// The measurements.
    pub rows: Block,
    /// The cursor's id.
    pub cursor_id: i64,
}

impl Collection {
    /// What a plan needs to know.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            options: self.entry.options.timeseries.clone(),
            extended_range: self.extended_range.get(),
        }
    }
}

impl Engine {
    /// The first batch of a query over `name`; `raw` asks for its bucket documents.
    ///
    /// A missing collection is an empty one. Errors: those of storage; `DataCorruptionDetected`.
    pub async fn find(
        &self,
        name: &str,
        raw: bool,
        plan: impl FnOnce(&Facts) -> Result<Plan>,
        batch_size: usize,
        keep_open: bool,
    ) -> Result<Batch> {
        let empty = || Batch { rows: Block::new(0), cursor_id: 0 };
        let Some(collection) = self.collection(name).await? else {
            plan(&Facts::unknown())?;
            return Ok(empty());
        };
        let mut cursor = match self.open_find(&collection, raw, plan).await {
            Err(e) if e.code == ErrorCode::NamespaceNotFound => return Ok(empty()),
            other => other?,
        };
        let rows = self.next_batch(&mut cursor, batch_size).await?;
        let cursor_id = if keep_open && !cursor.is_done() { self.keep_cursor(&ns_of(name, raw), cursor) } else { 0 };
        Ok(Batch { rows, cursor_id })
    }

    /// The next batch of a cursor.
    ///
    /// Errors: `CursorNotFound`, `CursorInUse`; those of storage end the cursor.
    pub async fn get_more(&self, id: i64, ns: &str, batch_size: usize) -> Result<Batch> {
        let mut cursor = self.take_cursor(id, ns)?;
        let rows = self.next_batch(&mut cursor, batch_size).await.inspect_err(|_| self.drop_cursor(id))?;
        if cursor.is_done() {
            self.drop_cursor(id);
            return Ok(Batch { rows, cursor_id: 0 });
        }
        self.put_cursor_back(id, cursor);
        Ok(Batch { rows, cursor_id: id })
    }

    /// How many rows of `name` match, `skip` and `limit` of the plan honoured.
    ///
    /// Errors: as `find`.
    pub async fn count(&self, name: &str, raw: bool, plan: impl FnOnce(&Facts) -> Result<Plan>) -> Result<u64> {
        let Some(collection) = self.collection(name).await? else { return Ok(0) };
        let mut cursor = match self.open_find(&collection, raw, plan).await {
            Err(e) if e.code == ErrorCode::NamespaceNotFound => return Ok(0),
            other => other?,
        };
        self.fill(&mut cursor, usize::MAX).await?;
        Ok(cursor.exec.counted())
    }

    async fn open_find(
        &self,
        collection: &Rc<Collection>,
        raw: bool,
        plan: impl FnOnce(&Facts) -> Result<Plan>,
    ) -> Result<FindCursor> {
        // The journals come first: they also say whether dates lie outside the standard range.
        let mut scan = self.begin_scan(collection).await?;
        let plan = Rc::new(plan(&collection.facts())?);
        let access = self.access(collection, &plan).await?;
        self.aim_scan(&mut scan, access);
        Ok(FindCursor { scan, exec: Exec::new(Rc::clone(&plan)), plan, raw, scanned: false })
    }

    /// Which buckets a plan fetches.
    pub(super) async fn access(&self, collection: &Rc<Collection>, plan: &Plan) -> Result<Access> {
        match plan.access() {
            PlanAccess::BucketScan { low, high } => {
                let low = low.map_or(BucketId::from_bytes([0; 12]), |id| id);
                let high = high.map_or(BucketId::from_bytes([0xFF; 12]), |id| id);
                Ok(Access::Range(low, high))
            }
            PlanAccess::MetaIndex { meta, first_ms, last_ms } => {
                let span_ms = collection.entry.options.timeseries.span_seconds.saturating_mul(1000);
                let (start, end) = index::range(meta.view(), span_ms, first_ms, last_ms);
                let prefix = keyspace::index_prefix(&collection.id(), index::META_TIME_INDEX);
                let range = KeyRange { start: [&prefix[..], &start].concat(), end: [&prefix[..], &end].concat() };
                Ok(Access::Ids(self.scan_index(range).await?))
            }
        }
    }

    async fn next_batch(&self, cursor: &mut FindCursor, batch_size: usize) -> Result<Block> {
        self.fill(cursor, batch_size).await?;
        Ok(cursor.exec.take(batch_size, BATCH_SIZE_BYTES_MAX))
    }

    /// Scans until `rows` rows are ready, or everything was seen.
    async fn fill(&self, cursor: &mut FindCursor, rows: usize) -> Result<()> {
        'scan: while !cursor.scanned && cursor.exec.ready() < rows {
            let Some(units) = self.next_page(&mut cursor.scan).await? else { break };
            for unit in units {
                let flow = if cursor.raw { cursor.push_document(&unit)? } else { cursor.push_unit(&unit)? };
                if flow == Flow::Enough {
                    cursor.scanned = true;
                    break 'scan;
                }
            }
            if cursor.exec.ready() >= rows {
                return Ok(());
            }
        }
        if cursor.scanned || cursor.exec.ready() < rows {
            cursor.scanned = true;
            cursor.exec.finish()?;
        }
        Ok(())
    }
}

impl FindCursor {
    fn is_done(&self) -> bool {
        self.scanned && self.exec.ready() == 0
    }

    /// The matching measurements of one bucket and of its journal rows.
    fn push_unit(&mut self, unit: &Unit) -> Result<Flow> {
        if let Some((stored, _)) = &unit.stored {
            let collection = Rc::clone(self.scan.collection());
            let options = &collection.entry.options.timeseries;
            let view = BucketDoc::parse(stored.document.view(), options)?;
            if self.plan.may_match(&view) {
                let rows = unpack(&view, self.plan.columns(), options)?;
                let flow = self.exec.push(rows, view.meta(), self.plan.all_match(&view))?;
                if flow == Flow::Enough {
                    return Ok(flow);
                }
            }
        }
        for section in &unit.sections {
            if self.push_section(section)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::Continue)
    }

    fn push_section(&mut self, reference: &SectionRef) -> Result<Flow> {
        let Some(section) = reference.section() else { return Ok(Flow::Continue) };
        let meta = section.meta.as_ref().map(|m| m.view());
        if !self.plan.may_match_rows(meta, section.first_ms, section.last_ms) {
            return Ok(Flow::Continue);
        }
        let (block, range) = reference.rows();
        let columns = self.plan.columns();
        self.exec.push(block.slice_columns(range, |name| columns.contains(name)), meta, false)
    }

    /// The bucket document, journal rows merged in, as a row.
    fn push_document(&mut self, unit: &Unit) -> Result<Flow> {
        let stored = unit.stored.as_ref().map(|(stored, _)| stored.document.view());
        let merged;
        let document = match stored {
            Some(document) if unit.sections.is_empty() => document,
            stored => {
                merged = merge_sections(self.scan.collection(), stored, &unit.sections)?;
                merged.view()
            }
        };
        let mut pivot = DocPivot::new();
        pivot.push(document)?;
        self.exec.push(pivot.finish(), None, false)
    }
}

/// The name under which a cursor is kept.
fn ns_of(name: &str, raw: bool) -> String {
    if raw { format!("{}{name}", crate::bucket::BUCKETS_PREFIX) } else { name.to_owned() }
}
