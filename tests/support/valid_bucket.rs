//! The rules of a stored bucket, checked on its document alone, and its rows.
//!
//! The rules are those by which a server checks its own buckets (`validate`), with two of ours: limits of count and size.

use bson::spec::BinarySubtype;
use bson::{Bson, Document};
use timepail::bucket::{MinMax, Schema, TimeseriesOptions, bucket_start_ms};
use timepail::column;
use timepail::limits::{
    BUCKET_COUNT_MAX, BUCKET_COUNT_MIN, BUCKET_SIZE_BYTES_MAX, DOCUMENT_SIZE_BYTES_MAX, STANDARD_DATE_MS_MAX,
};
use timepail::value::{Collation, Doc, DocWriter, Value, is_normalized};

use super::raw;

/// Who may have filled a bucket.
#[derive(Clone, Copy, PartialEq)]
pub enum Writers {
    /// One context at a time: it keeps the limits, and the types of fields.
    One,
    /// Several that had it open at once, each counting its own rows and what was stored when it opened it.
    Several,
}

/// The measurements of a bucket in their stored order, metadata included, as a user finds them.
///
/// Errors: which rule the bucket breaks, with the bucket.
pub fn measurements_of_valid(
    bucket: &Document,
    options: &TimeseriesOptions,
    writers: Writers,
) -> Result<Vec<Document>, String> {
    let mut rows = judge(bucket, options, writers).map_err(|what| format!("{what}: {bucket}"))?;
    if let (Some(field), Some(meta)) = (&options.meta_field, bucket.get("meta")) {
        rows.iter_mut().for_each(|row| drop(row.insert(field.clone(), meta.clone())));
    }
    Ok(rows)
}

fn judge(bucket: &Document, options: &TimeseriesOptions, writers: Writers) -> Result<Vec<Document>, String> {
    let time = options.time_field.as_str();
    known_fields(bucket, &["_id", "control", "meta", "data"], "the bucket")?;
    let id = bucket.get_object_id("_id").map_err(|_| "'_id' is no ObjectId")?;
    let control = bucket.get_document("control").map_err(|_| "'control' is no object")?;
    known_fields(control, &["version", "min", "max", "closed", "count"], "'control'")?;
    let data = bucket.get_document("data").map_err(|_| "'data' is no object")?;
    let sides = ["min", "max"].map(|side| control.get_document(side).cloned().unwrap_or_default());
    let bound = |side: &Document| side.get_datetime(time).map(|t| t.timestamp_millis());
    let [min_ms, max_ms] = [bound(&sides[0]), bound(&sides[1])];
    let (min_ms, max_ms) = (min_ms.map_err(|_| "no least time")?, max_ms.map_err(|_| "no greatest time")?);
    let version = control.get_i32("version").map_err(|_| "'control.version' is no int32")?;
    rule((1..=3).contains(&version), || format!("version {version}"))?;
    let seconds = i64::from(u32::from_be_bytes(id.bytes()[..4].try_into().unwrap()));
    let standard = (0..=STANDARD_DATE_MS_MAX).contains(&min_ms);
    rule(!standard || seconds * 1000 == min_ms, || format!("the id says {seconds} s"))?;
    rule(max_ms.saturating_sub(min_ms) < options.span_ms(), || "a span that is too long".to_owned())?;
    let rounding = options.effective_rounding_seconds();
    let rounded = options.rebucketed || bucket_start_ms(min_ms, rounding) == min_ms;
    rule(rounded, || "a start that is not rounded".to_owned())?;
    check_meta(bucket, options)?;

    let rows = rows(data, version, time)?;
    let times: Vec<i64> = rows.iter().map(|row| row.get_datetime(time).unwrap().timestamp_millis()).collect();
    match version {
        1 => rule(!control.contains_key("count"), || "version 1 with a count".to_owned())?,
        _ => rule(control.get_i32("count").ok() == i32::try_from(rows.len()).ok(), || {
            format!("count {:?} of {} rows", control.get("count"), rows.len())
        })?,
    }
    rule(!rows.is_empty(), || "no rows".to_owned())?;
    rule(version != 2 || times.is_sorted(), || "rows of version 2 out of order".to_owned())?;
    rule(version != 3 || !times.is_sorted(), || "rows of version 3 in order".to_owned())?;
    let (first_ms, last_ms) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
    rule(min_ms <= first_ms, || "a row before the start".to_owned())?;
    let last_fits = if first_ms < 0 { max_ms >= last_ms } else { max_ms == last_ms };
    rule(last_fits, || format!("the greatest time is {last_ms}"))?;
    check_summaries(&rows, &sides, data, options)?;

    let size = raw(bucket).as_bytes().len();
    rule(size <= DOCUMENT_SIZE_BYTES_MAX, || format!("{size} bytes"))?;
    if writers == Writers::One {
        check_limits(rows.len(), size)?;
        let [min, max] = sides.map(|side| raw(&side));
        let [min, max] = [&min, &max].map(|side| Doc::parse(side.as_bytes()).unwrap());
        Schema::from_control(min, max).map_err(timepail::error::Error::into_message)?;
    }
    Ok(rows)
}

fn check_limits(rows: usize, size: usize) -> Result<(), String> {
    rule(rows <= BUCKET_COUNT_MAX, || format!("{rows} rows"))?;
    // The limit is one of an estimate: cells of small measurements count once they are compressed, and not at all before.
    rule(rows <= BUCKET_COUNT_MIN || size <= 2 * BUCKET_SIZE_BYTES_MAX, || format!("{size} bytes in {rows} rows"))
}

fn rule(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn known_fields(document: &Document, known: &[&str], of: &str) -> Result<(), String> {
    let mut names: Vec<&str> = document.keys().map(String::as_str).collect();
    rule(names.iter().all(|name| known.contains(name)), || format!("unknown fields in {of}"))?;
    names.sort_unstable();
    rule(names.windows(2).all(|pair| pair[0] != pair[1]), || format!("a field stands twice in {of}"))
}

fn check_meta(bucket: &Document, options: &TimeseriesOptions) -> Result<(), String> {
    let bytes = raw(bucket);
    let Some(meta) = Doc::parse(bytes.as_bytes()).unwrap().get("meta") else { return Ok(()) };
    rule(options.meta_field.is_some(), || "metadata without a metaField".to_owned())?;
    rule(is_normalized(meta), || "metadata that is not normalised".to_owned())
}

/// The rows of `data`: every column decoded, lengths and keys checked.
fn rows(data: &Document, version: i32, time: &str) -> Result<Vec<Document>, String> {
    let count = match data.get(time).ok_or("no time column")? {
        Bson::Document(cells) => cells.len(),
        Bson::Binary(binary) => {
            column::decode(&binary.bytes, 100 * BUCKET_COUNT_MAX).map_err(|e| format!("times: {e:?}"))?.len()
        }
        other => return Err(format!("a time column that is {other}")),
    };
    let mut rows = vec![Document::new(); count];
    for (name, stored) in data {
        let mut last = None;
        let mut put = |row: usize, value: Bson| {
            rule(row < count && last.is_none_or(|last| last < row), || format!("row {row} of '{name}'"))?;
            last = Some(row);
            rows[row].insert(name.clone(), value);
            Ok::<(), String>(())
        };
        match (version, stored) {
            (1, Bson::Document(cells)) => {
                for (key, value) in cells {
                    let row: usize = key.parse().map_err(|_| format!("key '{key}' of '{name}'"))?;
                    rule(row.to_string() == *key, || format!("key '{key}' of '{name}'"))?;
                    put(row, value.clone())?;
                }
            }
            (2 | 3, Bson::Binary(binary)) if binary.subtype == BinarySubtype::Column => {
                let cells = column::decode(&binary.bytes, count).map_err(|e| format!("'{name}': {e:?}"))?;
                rule(cells.len() == count, || format!("'{name}' has {} cells", cells.len()))?;
                let mut scratch = Vec::new();
                for row in 0..count {
                    if let Some(value) = cells.value(row, &mut scratch) {
                        put(row, owned(value))?;
                    }
                }
            }
            _ => return Err(format!("'{name}' is stored as {stored} in version {version}")),
        }
    }
    let dates = rows.iter().all(|row| matches!(row.get(time), Some(Bson::DateTime(_))));
    rule(dates, || "a row without a date".to_owned())?;
    Ok(rows)
}

fn owned(value: Value<'_>) -> Bson {
    let mut writer = DocWriter::new();
    writer.value("v", value);
    let document = Document::from_reader(writer.finish().into_bytes().as_slice()).unwrap();
    document.get("v").unwrap().clone()
}

/// `control.min` and `control.max` are what the rows say, field for field.
fn check_summaries(
    rows: &[Document],
    sides: &[Document; 2],
    data: &Document,
    options: &TimeseriesOptions,
) -> Result<(), String> {
    for (side, name) in sides.iter().zip(["min", "max"]) {
        let all = side.len() == data.len() && data.keys().all(|field| side.contains_key(field));
        rule(all, || format!("the fields of 'control.{name}' are not those of 'data'"))?;
    }
    let mut summary = MinMax::new(&options.collation);
    for row in rows {
        let bytes = raw(row);
        let fields = Doc::parse(bytes.as_bytes()).unwrap().iter().filter(|(field, _)| *field != options.time_field);
        fields.for_each(|(field, value)| summary.update(field, value));
    }
    let computed = [summary.min_doc(), summary.max_doc()];
    for ((stored, computed), name) in sides.iter().zip(computed).zip(["min", "max"]) {
        let computed = Document::from_reader(computed.into_bytes().as_slice()).unwrap();
        let mut stored = stored.clone();
        stored.remove(&options.time_field);
        rule(equal(&stored, &computed, &options.collation), || format!("'control.{name}' should be {computed}"))?;
    }
    Ok(())
}

/// Equal but for the order of fields, the types of numbers and what the collation does not tell apart.
fn equal(one: &Document, other: &Document, collation: &Collation) -> bool {
    let [one, other] = [one, other].map(|document| raw(&sorted(document)));
    let [one, other] = [&one, &other].map(|document| Doc::parse(document.as_bytes()).unwrap());
    collation.equal(one.as_value(), other.as_value())
}

fn sorted(document: &Document) -> Document {
    fn value(of: &Bson) -> Bson {
        match of {
            Bson::Document(inner) => Bson::Document(sorted(inner)),
            Bson::Array(items) => Bson::Array(items.iter().map(value).collect()),
            other => other.clone(),
        }
    }
    let mut fields: Vec<_> = document.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    fields.into_iter().map(|(name, of)| (name.clone(), value(of))).collect()
}

/// Index entries of the default index that a bucket has: one, and one for each different element where its metadata is an array.
pub fn index_entries_of(bucket: &Document, options: &TimeseriesOptions) -> usize {
    if options.meta_field.is_none() {
        return 0;
    }
    match bucket.get("meta") {
        Some(Bson::Array(items)) => {
            let mut keys: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            keys.sort();
            keys.dedup();
            keys.len() + 1
        }
        _ => 1,
    }
}
