//! `aggregate`: reads what a pipeline needs of other collections, then runs it.

use std::cell::RefCell;
use std::rc::Rc;

use super::Engine;
use super::collections::collection::Collection;
use super::find::find_cursor::FindCursor;
use super::find::planned::{Defaults, ParsePipeline, PlannedQuery};
use super::find::queries::{CursorBatch, batch_size_of, ns_of};
use crate::block::Block;
use crate::bucket::BUCKETS_PREFIX;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{FORGOTTEN_BATCH_ROWS, STAGE_SIZE_BYTES_MAX};
use crate::query::{Aggregation, DocumentSource, FindCommand, Foreign, Others, join_blocks};
use crate::storage::LocalFuture;
use crate::value::Collation;

/// A started pipeline.
enum Opened {
    /// A pipeline over a collection.
    Cursor(Box<FindCursor>, Box<FindCommand>),
    /// The complete result of a pipeline that reads no collection, and how many rows a batch has.
    Rows(Block, usize),
}

impl Engine {
    /// The first batch of a pipeline over `name`, or over its bucket documents if `raw`. `parse` is called like
    /// `options` of `find`.
    ///
    /// A missing collection counts as empty. Errors: as `find`, and those of the stages.
    pub async fn aggregate(&self, name: &str, raw: bool, parse: &ParsePipeline<'_>) -> Result<CursorBatch> {
        self.buckets.borrow().begin_query();
        let (mut cursor, options) = match self.open_pipeline(name, raw, parse).await? {
            Opened::Cursor(cursor, options) => (cursor, options),
            Opened::Rows(rows, batch_size) => return Ok(self.list(&ns_of(name, raw), rows, batch_size)),
        };
        let rows = self.next_batch(&mut cursor, batch_size_of(&options)).await?;
        let cursor_id = if cursor.is_done() { 0 } else { self.keep_cursor(&ns_of(name, raw), *cursor) };
        Ok(CursorBatch { rows, cursor_id })
    }

    /// Runs a pipeline to its end and discards the result.
    ///
    /// Errors: as `aggregate`.
    pub async fn try_aggregate(
        &self,
        name: &str,
        raw: bool,
        parse: &ParsePipeline<'_>,
    ) -> Result<Option<PlannedQuery>> {
        let Opened::Cursor(mut cursor, _) = self.open_pipeline(name, raw, parse).await? else { return Ok(None) };
        while !cursor.is_done() {
            self.next_batch(&mut cursor, FORGOTTEN_BATCH_ROWS).await?;
        }
        Ok(Some(cursor.into_planned()))
    }

    /// Inserts the result of a pipeline into a collection, after `check` has converted it to measurements.
    ///
    /// Errors: as `aggregate` and `insert`, and those of `check`.
    pub(super) async fn insert_result(
        &self,
        (name, raw): (&str, bool),
        parse: &ParsePipeline<'_>,
        into: &Rc<Collection>,
        check: &dyn Fn(&Collection, Block) -> Result<Block>,
    ) -> Result<()> {
        let (mut cursor, mut rows) = match self.open_pipeline(name, raw, parse).await? {
            Opened::Cursor(cursor, _) => (Some(cursor), Block::default()),
            Opened::Rows(rows, _) => (None, rows),
        };
        loop {
            // In pieces, each of which is a changeset.
            for start in (0..rows.rows()).step_by(FORGOTTEN_BATCH_ROWS) {
                let piece = rows.slice(start..rows.rows().min(start + FORGOTTEN_BATCH_ROWS));
                self.insert(into, check(into, piece)?).await?;
            }
            match &mut cursor {
                Some(cursor) if !cursor.is_done() => rows = self.next_batch(cursor, FORGOTTEN_BATCH_ROWS).await?,
                _ => return Ok(()),
            }
        }
    }

    async fn open_pipeline(&self, name: &str, raw: bool, parse: &ParsePipeline<'_>) -> Result<Opened> {
        let nothing = Collation::default();
        let collection = self.collection(name).await?;
        let first = match &collection {
            Some(collection) => parse(collection.defaults(raw))?,
            None => parse(Defaults::of_nothing(&nothing))?,
        };
        let others: Others = self.read_others(&first.others).await?.into();
        let source = match &first.source {
            Some(DocumentSource::IndexStats) => Some(self.index_stats(name, raw).await?),
            Some(DocumentSource::CollStats(asked)) => Some(self.coll_stats(name, raw, *asked).await?),
            Some(DocumentSource::Documents(_)) | None => first.own_rows()?,
        };
        let batch_size = batch_size_of(&first.find);
        if let Some(rows) = source {
            return first.run_over(rows, &others).map(|rows| Opened::Rows(rows, batch_size));
        }
        let collation = collection.as_ref().map(|known| known.collation());
        let (first, pipeline) = (RefCell::new(Some(first)), RefCell::new(None));
        let options = |defaults: Defaults<'_>| {
            // Another collection, with a collation of its own, may have replaced the one in memory.
            let is_same = collation.is_some_and(|known| std::ptr::eq(known, defaults.collation));
            let parsed = match first.take().filter(|_| is_same) {
                Some(parsed) => parsed,
                None => parse(defaults)?,
            };
            let (find, stages) = parsed.into_parts(&others);
            pipeline.replace(stages);
            Ok(find)
        };
        match self.open_cursor(name, raw, &options, Some(usize::MAX)).await? {
            Some((mut cursor, options)) => {
                cursor.run_through(pipeline.take());
                Ok(Opened::Cursor(Box::new(cursor), Box::new(options)))
            }
            None => {
                let empty = parse(Defaults::of_nothing(&nothing))?.run_over(Block::new(0), &others);
                empty.map(|rows| Opened::Rows(rows, batch_size))
            }
        }
    }

    /// The rows that stages need of other collections, in the order in which they are requested. Boxed, because reading
    /// them may need further collections.
    fn read_others<'a>(&'a self, needed: &'a [Foreign]) -> LocalFuture<'a, Vec<Block>> {
        Box::pin(async move {
            let (mut all, mut size_bytes) = (Vec::new(), 0);
            for other in needed {
                let (name, raw) = match other.collection.strip_prefix(BUCKETS_PREFIX) {
                    Some(name) => (name, true),
                    None => (&*other.collection, false),
                };
                let parse = |defaults: Defaults<'_>| -> Result<Aggregation> { other.parse(defaults.time_field) };
                let mut rows = Vec::new();
                match self.open_pipeline(name, raw, &parse).await? {
                    Opened::Rows(made, _) => rows.push(made),
                    Opened::Cursor(mut cursor, _) => {
                        while !cursor.is_done() && size_bytes <= STAGE_SIZE_BYTES_MAX {
                            let batch = self.next_batch(&mut cursor, FORGOTTEN_BATCH_ROWS).await?;
                            size_bytes += batch.size_bytes();
                            rows.push(batch);
                        }
                    }
                }
                if size_bytes > STAGE_SIZE_BYTES_MAX {
                    return Err(Error::new(
                        ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                        format!("The rows that a stage reads from '{}' exceed the memory limit", other.collection),
                    ));
                }
                rows.retain(|rows| rows.rows() > 0);
                all.push(join_blocks(rows));
            }
            Ok(all)
        })
    }
}
