//! An open bucket, and the decision whether it takes the next measurements.

use super::measurements::{Addition, BatchRows};
use super::options::CatalogOptions;
use super::rollover::RolloverReason;
use super::size_limit::SizeLimit;
use crate::bucket::{BucketId, Rows, Schema};

/// Estimated memory of an open bucket without fields.
const OPEN_BUCKET_BYTES: usize = 872;

/// A bucket in memory.
#[derive(Debug)]
pub struct OpenBucket {
    pub id: BucketId,
    pub min_time_ms: i64,
    /// Number of measurements, staged and committed.
    pub count: usize,
    /// How many of them the running batch has staged.
    pub staged: usize,
    /// Estimated size of the stored document; 0 until the first measurement.
    pub size_bytes: usize,
    /// What large cells of the running batch add to `size_bytes`, until the commit says how large they are when
    /// compressed.
    pub estimate_bytes: usize,
    /// Why the bucket rolls over as soon as nothing of it is uncommitted.
    pub reason: Option<RolloverReason>,
    /// When it became idle; 0 while it is in use.
    pub idle_since: u64,
    pub memory_bytes: usize,
    /// How many buckets of the catalog were opened before.
    pub number: u64,
    /// True if it was removed, and its place is not cleared yet.
    pub is_gone: bool,
    kept_open: bool,
    /// The hash of the last block whose column names the bucket all knew.
    known_shape: u64,
    /// The hash of the last block whose types fitted the schema.
    known_types: Option<u64>,
    schema: Schema,
}

/// The limits for rows, apart from the bucket's own state.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub options: &'a CatalogOptions,
    pub span_ms: i64,
    pub limit: SizeLimit,
    /// Bytes that the metadata adds to a new bucket.
    pub meta_bytes: usize,
}

/// The outcome of offering a run of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many leading rows the bucket took.
    pub rows: usize,
    /// Why it did not take more.
    pub reason: Option<RolloverReason>,
    /// True when the bucket exceeded its size for large measurements for the first time.
    pub kept_open: bool,
    /// Growth in memory.
    pub memory_bytes: usize,
}

impl OpenBucket {
    /// A bucket without measurements that begins at `min_time_ms`.
    pub fn new(id: BucketId, min_time_ms: i64, meta_bytes: usize) -> OpenBucket {
        OpenBucket {
            id,
            min_time_ms,
            count: 0,
            staged: 0,
            size_bytes: 0,
            estimate_bytes: 0,
            reason: None,
            idle_since: 0,
            memory_bytes: OPEN_BUCKET_BYTES + meta_bytes,
            number: 0,
            is_gone: false,
            kept_open: false,
            known_shape: 0,
            known_types: None,
            schema: Schema::new(),
        }
    }

    /// The same bucket with its stored contents.
    pub fn with_stored(
        mut self,
        count: usize,
        size_bytes: usize,
        mut schema: Schema,
        names: &[Box<str>],
    ) -> OpenBucket {
        for name in names {
            schema.know(name);
            self.memory_bytes += super::measurements::SCHEMA_ELEMENT_BYTES + name.len();
        }
        OpenBucket { count, size_bytes: size_bytes.max(1), schema, ..self }
    }

    /// True if the bucket is open for rows, or marked and may take rows of this time until it rolls over.
    pub fn may_take(&self, time_ms: i64, span_ms: i64) -> bool {
        self.reason.is_none_or(|reason| reason.is_soft() && self.spans(time_ms, span_ms))
    }

    /// True if a measurement of this time lies within the bucket's span.
    fn spans(&self, time_ms: i64, span_ms: i64) -> bool {
        self.min_time_ms <= time_ms && time_ms.saturating_sub(self.min_time_ms) < span_ms
    }

    /// Takes as many of `rows` (their times ascending) as fit, with the same result as checking one after another in
    /// the server's order: time forward, time backward, count, size, schema. The first measurement of a new bucket is
    /// not checked.
    pub fn take(&mut self, measurements: &BatchRows<'_>, rows: &[u32], terms: &Terms<'_>) -> Taken {
        let is_new = self.size_bytes == 0;
        let time = |row: &u32| measurements.time_ms(*row);
        let mut taken = rows.partition_point(|row| time(row).saturating_sub(self.min_time_ms) < terms.span_ms);
        let mut reason = (taken < rows.len()).then_some(RolloverReason::TimeForward);
        if rows.first().is_some_and(|row| time(row) < self.min_time_ms) {
            return Taken { reason: Some(RolloverReason::TimeBackward), ..Taken::default() };
        }
        let room = terms.options.bucket_count_max.saturating_sub(self.count);
        if room < taken {
            (taken, reason) = (room, Some(RolloverReason::Count));
        }
        let run = rows.get(..taken).unwrap_or(rows);
        let knows = |name: &str| self.schema.knows(name);
        let mut additions = measurements.additions(run, self.count, self.known_shape, &knows, terms.options);
        if let Some(first) = additions.first_mut().filter(|_| is_new) {
            first.verified += terms.meta_bytes;
        }
        let mut first_kept = None;
        let mut size = self.size_bytes;
        // If no row adds anything, either all fit, or the present size of the bucket keeps all of them out.
        if !additions.is_empty() || size > terms.limit.effective_bytes {
            for at in 0..run.len() {
                let added = additions.get(at).copied().unwrap_or_default();
                size += added.verified + added.estimate;
                if is_new && at == 0 {
                    continue;
                }
                match terms.limit.check(terms.options, self.count + at, size) {
                    Ok(kept) => first_kept = first_kept.or(kept.then_some(at)),
                    Err(too_large) => {
                        (taken, reason) = (at, Some(too_large));
                        break;
                    }
                }
            }
        }
        let run = rows.get(..taken).unwrap_or(rows);
        if self.known_types.is_none() || self.known_types != measurements.facts.types {
            let fitting = self.schema.fits_run(measurements.block, Rows::List(run), None);
            if fitting < taken {
                (taken, reason) = (fitting, Some(RolloverReason::SchemaChange));
            } else if taken > 0 {
                self.known_types = measurements.facts.types;
            }
        }
        let mut sum = Addition::default();
        for added in additions.iter().take(taken) {
            sum.verified += added.verified;
            sum.estimate += added.estimate;
            sum.memory += added.memory;
        }
        if !additions.is_empty() {
            self.known_shape = measurements.shape_if_known(&|name| self.schema.knows(name));
        }
        self.count += taken;
        self.staged += taken;
        self.size_bytes += sum.verified + sum.estimate;
        self.estimate_bytes += sum.estimate;
        self.memory_bytes += sum.memory;
        // The row that the schema refused had passed the size check.
        let kept_open = !self.kept_open && first_kept.is_some_and(|at| at <= taken);
        self.kept_open |= kept_open;
        Taken { rows: taken, reason, kept_open, memory_bytes: sum.memory }
    }

    /// The staged rows are stored and take `stored_bytes`.
    pub fn commit(&mut self, stored_bytes: usize) {
        self.size_bytes = (self.size_bytes + stored_bytes).saturating_sub(self.estimate_bytes).max(1);
        self.estimate_bytes = 0;
        self.staged = 0;
    }
}
