//! `insert`: measurements as a block or as documents.

use std::rc::Rc;

use super::find::target;
use super::raw_write;
use super::reply::{Reply, int, write_errors};
use super::request::{Request, check_batch, missing_field, wrong_type};
use crate::block::{Bitmap, Block, Column, ColumnData, DocPivot};
use crate::catalog::Counter;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{DOCUMENT_SIZE_BYTES_MAX, JS_DATE_MS_MAX};
use crate::listed::IntoList;
use crate::value::{DocWriter, Kind, Value, sort_by};

/// Errors of single measurements with their positions, ascending.
type RowErrors = Vec<(usize, Error)>;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>, payload: Option<Block>) -> Result<Reply> {
    if let (name, true) = target(request.collection()?) {
        // Loaded by now: `raw_write::insert` awaits it.
        return raw_write::insert(engine, request, name).await;
    }
    request.allow_fields(&["documents", "ordered", "columns", "meta", "timeUnit"])?;
    let collection = engine.existing_collection(request.collection()?).await?;
    let ordered = request.bool("ordered")?.unwrap_or(true);
    let columns = request.bool("columns")?.unwrap_or(false);
    let (mut rows, mut errors) = match payload {
        Some(block) => (block, RowErrors::new()),
        None => pivot_documents(request)?,
    };
    let count = rows.rows();
    if !columns {
        check_batch(count)?;
    }
    // Null is metadata as well, so it does not count as absent.
    if let Some(meta) = request.doc().get("meta") {
        let field = collection.meta_field().ok_or_else(|| {
            Error::bad_value(format!("'meta' is given, but collection '{}' has no metaField", collection.name))
        })?;
        if rows.column(field).is_some() {
            return Err(Error::bad_value(format!("Metadata is given twice: as 'meta' and as the column '{field}'")));
        }
        rows.set_column(field, Column::constant(meta, count));
    }
    let time_field = collection.time_field();
    if columns {
        convert_numeric_times(&mut rows, time_field, request.string("timeUnit")?)?;
    }
    errors.extend(time_errors(&rows, time_field));
    errors.extend(size_errors(&rows, collection.meta_field()));
    errors.extend(collection.index_errors(&rows));
    sort_by(&mut errors, |(a, _), (b, _)| a.cmp(b));
    errors.dedup_by_key(|(row, _)| *row);
    let stored = if errors.is_empty() {
        rows
    } else {
        if ordered {
            errors.truncate(1);
        }
        let end = if ordered { errors.first().map_or(count, |(row, _)| *row) } else { count };
        let mut keep = Bitmap::from_fn(count, |row| row < end);
        errors.iter().for_each(|(row, _)| keep.set(*row, false));
        let mut kept = rows.gather(&keep.to_rows());
        if let Some(times) = kept.remove_column(time_field) {
            kept.set_first_column(time_field, times.into_plain().narrowed());
        }
        kept
    };
    let too_large = errors.iter().filter(|(_, error)| error.code == ErrorCode::BSONObjectTooLarge).count();
    collection.count(Counter::TooLargeInsert, too_large as u64);
    let n = int(stored.rows());
    engine.insert(&collection, stored).await?;
    let mut reply = DocWriter::new();
    write_errors(reply.int32("n", n), &errors);
    Ok(Reply::ok(reply))
}

fn pivot_documents(request: &Request<'_>) -> Result<(Block, RowErrors)> {
    let documents = request.array("documents")?.ok_or_else(|| missing_field("insert", "documents"))?;
    let mut pivot = DocPivot::new();
    let mut errors = RowErrors::new();
    for value in documents {
        let doc = value.as_doc().ok_or_else(|| wrong_type("insert", "documents", "an array of objects", value))?;
        let row = pivot.rows();
        if let Err(error) = pivot.push(doc) {
            errors.push((row, error));
        }
    }
    Ok((pivot.finish(), errors))
}

/// A smaller number is a time before 1971, or a number of seconds taken for milliseconds.
const YEAR_1971_MS: i64 = 365 * 86_400_000;

/// In columns from typed arrays, a time is a number of `unit`s. Without a unit it counts milliseconds, and must be late enough to be meant so.
fn convert_numeric_times(rows: &mut Block, time_field: &str, unit: Option<&str>) -> Result<()> {
    let (factor, divisor) = match unit {
        None | Some("ms") => (1, 1),
        Some("s") => (1000, 1),
        Some("us") => (1, 1000),
        Some("ns") => (1, 1_000_000),
        Some(unit) => {
            let message = ["'timeUnit' must be 's', 'ms', 'us' or 'ns', not '", unit, "'"].concat();
            return Err(Error::bad_value(message));
        }
    };
    let Some(column) = rows.column(time_field) else { return Ok(()) };
    let mut times = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        let scaled = |number: i64| if divisor == 1 { number.saturating_mul(factor) } else { number / divisor };
        let ms = match column.data() {
            ColumnData::I64(v) => scaled(v.get(row).copied().unwrap_or_default()),
            ColumnData::I32(v) => scaled(i64::from(v.get(row).copied().unwrap_or_default())),
            ColumnData::F64(v) => {
                let number = v.get(row).copied().unwrap_or_default();
                // NaN counts as out of range. A fraction of a millisecond is cut off, as in `new Date`. Doubles do not
                // hold nanoseconds exactly, so the quotient may be the double before a whole number.
                let exact = if divisor > 1000 { 1.0 + f64::EPSILON } else { 1.0 };
                #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                let ms = (number * factor as f64 / divisor as f64 * exact) as i64;
                if number.is_nan() { i64::MAX } else { ms }
            }
            _ => return Ok(()),
        };
        let wrong = if ms.unsigned_abs() > JS_DATE_MS_MAX.unsigned_abs() {
            ", which is not a valid time"
        } else if unit.is_none() && ms < YEAR_1971_MS && column.is_present(row) {
            ", which as milliseconds is before 1971: say timeUnit: \"s\" if it is seconds, or \"ms\" if it is meant so"
        } else {
            times.push(ms);
            continue;
        };
        let mut scratch = Vec::new();
        let shown = column.value(row, &mut scratch).unwrap_or(Value::NULL);
        return Err(Error::bad_value(format!("'{time_field}' at row {row} is {shown:?}{wrong}")));
    }
    let presence = column.presence().cloned();
    rows.set_column(time_field, Column::new(ColumnData::Date(times), presence));
    Ok(())
}

pub(super) fn time_errors(rows: &Block, time_field: &str) -> RowErrors {
    let error = |found: Option<Value<'_>>| {
        let found = found.map_or_else(|| "it is missing".to_owned(), |v| format!("found {} {v:?}", v.kind().alias()));
        Error::bad_value(format!("'{time_field}' must be present and contain a valid BSON UTC datetime value; {found}"))
    };
    match rows.column(time_field) {
        None => (0..rows.rows()).map(|row| (row, error(None))).listed(),
        Some(column) if matches!(column.data(), ColumnData::Date(_)) && column.presence().is_none() => RowErrors::new(),
        Some(column) => {
            let mut scratch = Vec::new();
            (0..rows.rows())
                .filter_map(|row| match column.value(row, &mut scratch) {
                    Some(value) if value.kind() == Kind::Date => None,
                    found => Some((row, error(found))),
                })
                .listed()
        }
    }
}

/// Errors for measurements that no bucket can hold: their values are stored in the columns and twice more, as minimum
/// and maximum.
pub(super) fn size_errors(rows: &Block, meta_field: Option<&str>) -> RowErrors {
    /// Overhead of a bucket: its structure, and its time without the values.
    const FRAME_BYTES: usize = 128;
    /// Overhead of a column with one value.
    const COLUMN_BYTES: usize = 10;
    let bucket_bytes = |value_bytes: &dyn Fn(&Column) -> Option<usize>| {
        let part = |(name, column): &(Box<str>, Column)| match value_bytes(column) {
            None => 0,
            Some(value) if Some(&**name) == meta_field => value,
            Some(value) => 3 * (2 + name.len() + value) + COLUMN_BYTES,
        };
        FRAME_BYTES + rows.columns().iter().map(part).sum::<usize>()
    };
    if bucket_bytes(&|column| Some(column.value_bytes_max())) <= DOCUMENT_SIZE_BYTES_MAX {
        return RowErrors::new();
    }
    let error = |row| {
        let bytes = bucket_bytes(&|column| column.is_present(row).then(|| column.value_bytes(row)));
        let message = || {
            format!(
                "The measurement is too large: its bucket would have {bytes} bytes, and the maximum is {DOCUMENT_SIZE_BYTES_MAX}"
            )
        };
        (bytes > DOCUMENT_SIZE_BYTES_MAX).then(|| (row, Error::new(ErrorCode::BSONObjectTooLarge, message())))
    };
    (0..rows.rows()).filter_map(error).listed()
}
