//! Builds bucket documents from rows.

use super::document::{BucketVersion, COLUMN_SUBTYPE};
use super::id::BucketId;
use super::min_max::MinMax;
use super::row_key::{CellHead, ROWS_MAX};
use crate::block::{Bitmap, Block, Column, ColumnData};
use crate::column;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{COLUMN_SIZE_BYTES_MAX, DOCUMENT_SIZE_BYTES_MAX};
use crate::listed::IntoList;
use crate::value::{Doc, DocBuf, DocWriter, Kind, Value};

/// Everything in a bucket document besides its rows and summaries.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Its `_id`.
    pub id: BucketId,
    /// The normalised metadata of every row; absent if the series has none.
    pub meta: Option<Value<'a>>,
    /// True if the bucket takes no more rows.
    pub closed: bool,
    /// How the columns are stored. `Sorted` promises rows in order of time.
    pub version: BucketVersion,
}

/// Builds a bucket document. Each column is an object from row number to value (version 1) or a compressed column (2
/// and 3).
///
/// `rows` holds the time column, called `time_field`, and the other fields without the metadata; `summary` has seen
/// exactly these rows. In `data` the time column comes first, then the others in the order of the block.
/// If a column is too large to be decoded again, nothing is compressed and the bucket has version 1.
///
/// Errors: `BSONObjectTooLarge` beyond 16 MiB.
pub fn build(header: &Header<'_>, rows: &Block, summary: &MinMax, time_field: &str) -> Result<DocBuf> {
    let has_cells = |column: &Column| column.presence().is_none_or(|presence| !presence.none());
    let columns = rows.columns().iter().filter(|(_, column)| has_cells(column));
    let columns: Vec<_> = columns.map(|(name, column)| (&**name, column)).listed();
    let (min, max) = (summary.min_doc(), summary.max_doc());
    write(header, rows, &columns, (min.view(), max.view()), time_field)
}

/// As `build`, but keeps `control.min`, `control.max` and the order of the columns.
pub(super) fn rewrite(
    header: &Header<'_>,
    rows: &Block,
    limits: (Doc<'_>, Doc<'_>),
    time_field: &str,
) -> Result<DocBuf> {
    let columns: Vec<_> = rows.columns().iter().map(|(name, column)| (&**name, column)).collect();
    write(header, rows, &columns, limits, time_field)
}

fn write(
    header: &Header<'_>,
    rows: &Block,
    columns: &[(&str, &Column)],
    (min, max): (Doc<'_>, Doc<'_>),
    time_field: &str,
) -> Result<DocBuf> {
    if rows.rows() > ROWS_MAX {
        return Err(too_large(&header.id));
    }
    let compressible = rows.size_bytes() <= COLUMN_SIZE_BYTES_MAX;
    let version = if compressible { header.version } else { BucketVersion::Uncompressed };
    let compressed = version != BucketVersion::Uncompressed;
    let cells_bytes = if compressed { 0 } else { rows.size_bytes() + 8 * rows.columns().len() * rows.rows() };
    let mut writer = DocWriter::with_capacity(min.as_bytes().len() * 2 + cells_bytes + 256);
    writer.object_id("_id", header.id.as_bytes());
    writer.begin_doc("control").int32("version", version.number()).doc("min", min).doc("max", max);
    if header.closed {
        writer.bool("closed", true);
    }
    if compressed {
        // At most `ROWS_MAX`, so it fits.
        writer.int32("count", i32::try_from(rows.rows()).unwrap_or(i32::MAX));
    }
    writer.end();
    if let Some(meta) = header.meta {
        writer.value("meta", meta);
    }
    writer.begin_doc("data");
    let times = columns.iter().filter(|(name, _)| *name == time_field);
    let others = columns.iter().filter(|(name, _)| *name != time_field);
    for (name, column) in times.chain(others) {
        if compressed {
            writer.binary(name, COLUMN_SUBTYPE, &column::encode(column));
        } else {
            writer.begin_doc(name);
            write_column(writer.buffer(), column);
            writer.end();
        }
    }
    writer.end();
    let document = writer.finish();
    if document.view().as_bytes().len() > DOCUMENT_SIZE_BYTES_MAX {
        return Err(too_large(&header.id));
    }
    Ok(document)
}

fn too_large(id: &BucketId) -> Error {
    let message = format!("Bucket {id} would exceed {DOCUMENT_SIZE_BYTES_MAX} bytes");
    Error::new(ErrorCode::BSONObjectTooLarge, message)
}

fn write_column(out: &mut Vec<u8>, column: &Column) {
    let presence = column.presence();
    match column.data() {
        ColumnData::F64(v) => write_fixed(out, Kind::Double, presence, v, |x| x.to_le_bytes()),
        ColumnData::I32(v) => write_fixed(out, Kind::Int32, presence, v, |n| n.to_le_bytes()),
        ColumnData::I64(v) => write_fixed(out, Kind::Int64, presence, v, |n| n.to_le_bytes()),
        ColumnData::Date(v) => write_fixed(out, Kind::Date, presence, v, |n| n.to_le_bytes()),
        ColumnData::Bool(v) => write_fixed(out, Kind::Bool, presence, v, |b| [b]),
        ColumnData::ObjectId(v) => write_fixed(out, Kind::ObjectId, presence, v, |id| id),
        ColumnData::String(_) | ColumnData::Bson(_) | ColumnData::Objects(_) | ColumnData::Dictionary(..) => {
            write_values(out, column);
        }
    }
}

fn write_fixed<T: Copy, const WIDTH: usize>(
    out: &mut Vec<u8>,
    kind: Kind,
    presence: Option<&Bitmap>,
    cells: &[T],
    bytes: impl Fn(T) -> [u8; WIDTH],
) {
    let mut head = CellHead::first(kind);
    for (row, cell) in cells.iter().enumerate() {
        if row > 0 {
            head.advance();
        }
        if presence.is_none_or(|p| p.get(row)) {
            head.write(out);
            out.extend_from_slice(&bytes(*cell));
        }
    }
}

fn write_values(out: &mut Vec<u8>, column: &Column) {
    let mut scratch = Vec::new();
    let mut head = CellHead::first(Kind::Null);
    for row in 0..column.len() {
        if row > 0 {
            head.advance();
        }
        if let Some(value) = column.value(row, &mut scratch) {
            head.with_kind(value.kind()).write(out);
            out.extend_from_slice(value.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Rows;
    use super::super::samples::{self, view};
    use super::*;
    use crate::value::Collation;
    use bson::rawdoc;

    const ID: BucketId = BucketId::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

    const PLAIN: Header<'static> = Header { id: ID, meta: None, closed: false, version: BucketVersion::Uncompressed };

    fn summary(rows: &Block, min_time_ms: i64) -> MinMax {
        let mut summary = MinMax::seed_time("t", min_time_ms, &Collation::default());
        summary.update_rows(rows, Rows::from(0..rows.rows()), None);
        summary
    }

    #[test]
    fn the_document_has_the_servers_layout_and_order_of_fields() {
        let date = bson::DateTime::from_millis;
        let rows = samples::block(&[
            rawdoc! { "b": 2, "t": date(60_007) },
            rawdoc! { "t": date(60_009), "a": "x" },
            rawdoc! { "t": date(60_008), "a": { "y": 1 }, "b": 1 },
        ]);
        let meta = crate::value::OwnedValue::string("m");
        let header = Header { id: ID, meta: Some(meta.view()), closed: false, version: BucketVersion::Uncompressed };
        let built = build(&header, &rows, &summary(&rows, 60_000), "t").unwrap();
        let expected = rawdoc! {
            "_id": bson::oid::ObjectId::from_bytes(*ID.as_bytes()),
            "control": {
                "version": 1,
                "min": { "t": date(60_000), "b": 1, "a": "x" },
                "max": { "t": date(60_009), "b": 2, "a": { "y": 1 } },
            },
            "meta": "m",
            "data": {
                "t": { "0": date(60_007), "1": date(60_009), "2": date(60_008) },
                "b": { "0": 2, "2": 1 },
                "a": { "1": "x", "2": { "y": 1 } },
            },
        };
        assert_eq!(built.view(), view(&expected));
    }

    #[test]
    fn a_bucket_without_metadata_has_no_meta_field_and_a_closed_one_is_marked() {
        let rows = samples::block(&[rawdoc! { "t": bson::DateTime::from_millis(1) }]);
        let header = Header { id: ID, meta: None, closed: true, version: BucketVersion::Uncompressed };
        let built = build(&header, &rows, &summary(&rows, 0), "t").unwrap();
        let names: Vec<_> = built.view().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["_id", "control", "data"]);
        let control = built.view().get("control").and_then(|c| c.as_doc()).unwrap();
        assert_eq!(control.get("closed").and_then(|c| c.as_bool()), Some(true));
    }

    #[test]
    fn a_column_without_cells_is_not_written() {
        let rows = samples::block(&[
            rawdoc! { "t": bson::DateTime::from_millis(1), "a": 1 },
            rawdoc! { "t": bson::DateTime::from_millis(2) },
        ]);
        let rest = rows.slice(1..2);
        let built = build(&PLAIN, &rest, &summary(&rest, 0), "t").unwrap();
        let data = built.view().get("data").and_then(|d| d.as_doc()).unwrap();
        assert_eq!(data.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["t"]);
    }

    #[test]
    fn a_document_beyond_sixteen_mebibytes_is_refused() {
        let text = "x".repeat(6 << 20);
        let rows = samples::block(&[rawdoc! { "t": bson::DateTime::from_millis(1), "a": text }]);
        let error = build(&PLAIN, &rows, &summary(&rows, 0), "t").unwrap_err();
        assert_eq!(error.code, ErrorCode::BSONObjectTooLarge);
    }
}
