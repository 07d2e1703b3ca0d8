//! Runs `$_internalUnpackBucket` and `$_unpackBucket`, which convert bucket documents to measurements.
//!
//! Source: mongodb/mongo src/mongo/db/exec/timeseries/bucket_unpacker.cpp. Buckets may come from anywhere, and may have
//! lost or gained fields on the way: only the fields needed for unpacking are checked.

use std::rc::Rc;

use super::spec::{UnpackSpec, refused};
use crate::block::{Bitmap, Block, Column};
use crate::bucket::{BucketDoc, BucketId, BucketVersion, unpack};
use crate::column;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::BUCKET_ROWS_MAX;
use crate::query::exec::Flow;
use crate::query::stage::running::Stage;
use crate::value::{Doc, DocWriter, FieldSet, Kind, Number, Value};

/// The running stage. Buckets are unpacked one by one when their rows are requested.
pub struct Unpack {
    spec: Rc<UnpackSpec>,
    buckets: Block,
    /// The next bucket to unpack.
    next: usize,
    /// Buckets whose measurements all pass.
    whole: Option<Bitmap>,
}

impl Unpack {
    pub fn new(spec: Rc<UnpackSpec>) -> Unpack {
        Unpack { spec, buckets: Block::default(), next: 0, whole: None }
    }

    fn unpack(&self, row: usize) -> Result<Block> {
        use ErrorCode as E;
        let spec = &self.spec;
        let mut writer = DocWriter::new();
        self.buckets.write_row(row, &mut writer);
        let document = writer.finish();
        let document = document.view();
        if document.is_empty() {
            return Err(refuse(E::Location5346510, "the document is empty"));
        }
        let id = document.get("_id").unwrap_or(Value::NULL);
        let empty = || refuse(E::Location5346509, &format!("'data' of the bucket with _id {id:?} is empty"));
        let data = object(document.get("data"), E::Location10065, "'data' is not an object")?;
        if data.is_empty() {
            return Err(empty());
        }
        let time_field = &spec.options.time_field;
        let times = data.get(time_field).ok_or_else(|| refuse(E::Location5346700, "it has no time column"))?;
        let meta = document.get("meta");
        match (&spec.options.meta_field, meta.map(Value::kind)) {
            (Some(_), Some(Kind::Undefined)) => return Err(refuse(E::Location5369600, "'meta' is undefined")),
            (None, Some(_)) => {
                return Err(refuse(E::Location5369601, "it has metadata, but the collection has no metaField"));
            }
            _ => {}
        }
        let control = object(document.get("control"), E::Location5857902, "'control' is not an object")?;
        let sides = [("min", E::Location6460203, E::Location6460204), ("max", E::Location6460205, E::Location6460206)];
        // The summaries are not used for the measurements, but they must exist.
        for ((side, no_object, no_date), _) in sides.into_iter().zip(spec.summaries).filter(|(_, is_asked)| *is_asked) {
            let summary = object(control.get(side), no_object, "'control' has no 'min' or no 'max'")?;
            let time = summary.get(time_field).and_then(Value::as_date_ms);
            time.ok_or_else(|| refuse(no_date, "'control' has no minimum or maximum time"))?;
        }
        let number = |name: &str| control.get(name).and_then(Number::of);
        let version = number("version").ok_or_else(|| refuse(E::Location5857903, "'control.version' is missing"))?;
        let version = version.truncated().and_then(BucketVersion::from_number);
        let version = version.ok_or_else(|| refuse(E::Location5857900, "'control.version' is unknown"))?;
        let count = match number("count").filter(|_| version != BucketVersion::Uncompressed) {
            None => None,
            Some(count) => match count.truncated().and_then(|count| usize::try_from(count).ok()).unwrap_or_default() {
                0 => return Err(empty()),
                count if count > BUCKET_ROWS_MAX => return Err(too_short()),
                count => Some(count),
            },
        };
        let id = id.as_object_id().map_or(BucketId::MIN, BucketId::from_bytes);
        let bucket = BucketDoc::of_columns(id, version, data, times, count);
        let wanted = spec.wanted(data);
        let unpacked = unpack(&bucket, &wanted, &spec.options);
        let mut rows = unpacked.map_err(|why| if is_too_short(&bucket, &wanted) { too_short() } else { why })?;
        if rows.rows() == 0 {
            return Err(empty());
        }
        let time = if spec.gives_time { rows.remove_column(&spec.options.time_field) } else { None };
        let mut constant = |name: &str, value: Value<'_>, is_first| {
            let column = Column::constant(value, rows.rows());
            if is_first { rows.set_first_column(name, column) } else { rows.set_column(name, column) }
        };
        if let (Some(name), Some(value)) = (&spec.gives_meta, meta) {
            constant(name, value, true);
        }
        for name in spec.computed() {
            if let Some(value) = document.get(name) {
                constant(name, value, false);
            }
        }
        if let Some(time) = time {
            rows.set_first_column(&spec.options.time_field, time);
        }
        let passes = self.whole.as_ref().is_some_and(|whole| whole.get(row));
        let Some(filter) = spec.event.as_ref().filter(|_| !passes) else { return Ok(rows) };
        let selected = filter.select(&rows)?;
        Ok(if selected.all() { rows } else { rows.gather(&selected.to_rows()) })
    }
}

fn refuse(code: ErrorCode, what: &str) -> Error {
    refused("A bucket cannot be unpacked", code, what)
}

fn too_short() -> Error {
    refuse(ErrorCode::Location6067601, "a column has fewer values than 'control.count'")
}

fn object<'a>(value: Option<Value<'a>>, code: ErrorCode, what: &str) -> Result<Doc<'a>> {
    value.and_then(Value::as_doc).ok_or_else(|| refuse(code, what))
}

/// True if one of the columns has fewer elements than the bucket has rows.
fn is_too_short(bucket: &BucketDoc<'_>, wanted: &FieldSet) -> bool {
    let Ok(rows) = bucket.count() else { return false };
    bucket.data().iter().filter(|(name, _)| wanted.contains(name)).any(|(_, value)| {
        let elements = value.as_binary().map(|(_, bytes)| column::count(bytes, BUCKET_ROWS_MAX));
        matches!(elements, Some(Ok(elements)) if elements < rows)
    })
}

impl Stage for Unpack {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.whole = match &self.spec.whole {
            Some(whole) => Some(whole.select(&rows)?),
            None => None,
        };
        (self.buckets, self.next) = (rows, 0);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        // Remaining buckets are not needed any more.
        self.buckets = Block::default();
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        while self.next < self.buckets.rows() {
            self.next += 1;
            let rows = self.unpack(self.next - 1)?;
            if rows.rows() > 0 {
                return Ok(Some(rows));
            }
        }
        self.buckets = Block::default();
        Ok(None)
    }
}
