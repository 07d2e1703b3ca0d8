//! A view of a stored bucket document whose shape was checked.

use std::ops::Range;

use super::cells::BucketTimes;
use super::id::BucketId;
use super::kept::KeptColumns;
use super::options::TimeseriesOptions;
use super::row_key::ROWS_MAX;
use crate::column;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_SIZE_BYTES_MAX;
use crate::value::{Doc, DocBuf, DocWriter, Kind, Value, hash};

/// The binary subtype of a compressed column.
pub(super) const COLUMN_SUBTYPE: u8 = 7;

/// How a bucket's columns are stored (`control.version`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketVersion {
    /// 1: objects from row number to value.
    Uncompressed,
    /// 2: compressed, rows in time order.
    Sorted,
    /// 3: compressed, rows in order of arrival.
    Unsorted,
}

impl BucketVersion {
    /// The version of that number in `control.version`.
    pub fn from_number(number: i64) -> Option<BucketVersion> {
        match number {
            1 => Some(BucketVersion::Uncompressed),
            2 => Some(BucketVersion::Sorted),
            3 => Some(BucketVersion::Unsorted),
            _ => None,
        }
    }

    /// The number in `control.version`.
    pub fn number(self) -> i32 {
        match self {
            BucketVersion::Uncompressed => 1,
            BucketVersion::Sorted => 2,
            BucketVersion::Unsorted => 3,
        }
    }
}

/// The format in which buckets are written. For reading, each bucket's own version decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketFormat {
    /// Version 1.
    Uncompressed,
    /// Version 2, or 3 if rows came out of order.
    #[default]
    Compressed,
}

/// A bucket document. Its columns have not been checked; `unpack` does that.
#[derive(Clone, Copy, Debug)]
pub struct BucketDoc<'a> {
    pub(super) id: BucketId,
    pub(super) control: Control<'a>,
    pub(super) meta: Option<Value<'a>>,
    pub(super) data: Doc<'a>,
    pub(super) times: Value<'a>,
    pub(super) min_time_ms: i64,
    pub(super) max_time_ms: i64,
    /// Where its columns stand in `data`, if somebody has looked and found each name once.
    pub(super) columns: Option<&'a [ColumnPlace]>,
    /// Where its decoded columns stay, if it stays in memory itself.
    pub(super) kept: Option<&'a KeptColumns>,
}

/// A number below 64. Names with different ones differ, so most columns are passed over without reading their names, which lie far apart.
pub(super) fn name_mark(name: &[u8]) -> u8 {
    hash(0, name) as u8 & 63
}

/// Where a column stands in the columns of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ColumnPlace {
    pub(super) name: Range<u32>,
    /// The `name_mark` of its name.
    pub(super) mark: u8,
    pub(super) kind: Kind,
    pub(super) value: Range<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Control<'a> {
    pub(super) version: BucketVersion,
    pub(super) min: Doc<'a>,
    pub(super) max: Doc<'a>,
    pub(super) closed: bool,
    pub(super) count: Option<usize>,
}

impl<'a> BucketDoc<'a> {
    /// Checks the shape of `document`: its required fields, their types, and that there are no others.
    ///
    /// Errors: `DataCorruptionDetected` naming the bucket and what is wrong with it.
    pub fn parse(document: Doc<'a>, options: &TimeseriesOptions) -> Result<BucketDoc<'a>> {
        let id = document.get("_id").and_then(Value::as_object_id).map(BucketId::from_bytes);
        let id = id.ok_or_else(|| Error::corrupt("The '_id' of a bucket is not an ObjectId"))?;
        BucketDoc::parse_fields(id, document, options).map_err(|what| damaged(&id, what))
    }

    /// A bucket of which only the columns are known, for `unpack`; `count` as in `control`.
    pub fn of_columns(
        id: BucketId,
        version: BucketVersion,
        data: Doc<'a>,
        times: Value<'a>,
        count: Option<usize>,
    ) -> BucketDoc<'a> {
        let control = Control { version, min: Doc::EMPTY, max: Doc::EMPTY, closed: false, count };
        BucketDoc {
            id,
            control,
            meta: None,
            data,
            times,
            min_time_ms: i64::MIN,
            max_time_ms: i64::MAX,
            columns: None,
            kept: None,
        }
    }

    /// A bucket that is not stored, for everything that is asked before columns are decoded. `bounds` are its start and
    /// the time of its latest measurement.
    pub fn of_summary(
        id: BucketId,
        meta: Option<Value<'a>>,
        (min, max): (Doc<'a>, Doc<'a>),
        (min_time_ms, max_time_ms): (i64, i64),
        count: usize,
    ) -> BucketDoc<'a> {
        let control = Control { version: BucketVersion::Sorted, min, max, closed: false, count: Some(count) };
        BucketDoc {
            id,
            control,
            meta,
            data: Doc::EMPTY,
            times: Value::NULL,
            min_time_ms,
            max_time_ms,
            columns: None,
            kept: None,
        }
    }

    fn parse_fields(id: BucketId, document: Doc<'a>, options: &TimeseriesOptions) -> Result<BucketDoc<'a>, String> {
        let (mut control, mut meta, mut data) = (None, None, None);
        for (name, value) in document.fields() {
            let slot = match name {
                b"_id" => continue,
                b"control" => &mut control,
                b"meta" => &mut meta,
                b"data" => &mut data,
                _ => return Err(format!("unknown field '{}'", shown(name))),
            };
            if slot.replace(value).is_some() {
                return Err(format!("'{}' occurs twice", shown(name)));
            }
        }
        let data = data.and_then(Value::as_doc).ok_or("'data' is not an object")?;
        if data.is_empty() {
            return Err("'data' is empty".to_owned());
        }
        let time_field = &options.time_field;
        let times = data.get(time_field).ok_or_else(|| format!("'data' lacks the time column '{time_field}'"))?;
        if let Some(meta) = meta {
            if meta.kind() == Kind::Undefined {
                return Err("'meta' is undefined".to_owned());
            }
            if options.meta_field.is_none() {
                return Err("'meta' is present, but the collection has no metaField".to_owned());
            }
        }
        let control = control.and_then(Value::as_doc).ok_or("'control' is not an object")?;
        let control = Control::parse(control)?;
        let time_of = |side: &str, doc: Doc<'_>| {
            let time = doc.get(time_field).and_then(Value::as_date_ms);
            time.ok_or_else(|| format!("'control.{side}.{time_field}' is not a date"))
        };
        let (min_time_ms, max_time_ms) = (time_of("min", control.min)?, time_of("max", control.max)?);
        Ok(BucketDoc { id, control, meta, data, times, min_time_ms, max_time_ms, columns: None, kept: None })
    }

    /// The same, with a place where decoded columns may stay. It must belong to this bucket alone.
    pub fn with_kept(self, kept: &'a KeptColumns) -> BucketDoc<'a> {
        BucketDoc { kept: Some(kept), ..self }
    }

    /// The same, without such a place.
    pub fn without_kept(self) -> BucketDoc<'a> {
        BucketDoc { kept: None, ..self }
    }

    /// Its `_id`.
    pub fn id(&self) -> BucketId {
        self.id
    }

    /// How its columns are stored.
    pub fn version(&self) -> BucketVersion {
        self.control.version
    }

    /// True if the bucket takes no more measurements.
    pub fn closed(&self) -> bool {
        self.control.closed
    }

    /// The smallest values of its fields; for the time, the bucket's rounded start.
    pub fn control_min(&self) -> Doc<'a> {
        self.control.min
    }

    /// The largest values of its fields.
    pub fn control_max(&self) -> Doc<'a> {
        self.control.max
    }

    /// The metadata of every measurement; absent if the series has none.
    pub fn meta(&self) -> Option<Value<'a>> {
        self.meta
    }

    /// The rounded start.
    pub fn min_time_ms(&self) -> i64 {
        self.min_time_ms
    }

    /// The time of its latest measurement.
    pub fn max_time_ms(&self) -> i64 {
        self.max_time_ms
    }

    /// The columns, by field.
    pub fn data(&self) -> Doc<'a> {
        self.data
    }

    /// The time column.
    pub(super) fn times(&self) -> Value<'a> {
        self.times
    }

    /// `control.count`; absent in version 1.
    pub(super) fn control_count(&self) -> Option<usize> {
        self.control.count
    }

    /// The number of measurements. Decodes the time column only if the bucket does not store the number.
    ///
    /// Errors: as `unpack` if the time column is damaged.
    pub fn count(&self) -> Result<usize> {
        let count = match self.version() {
            BucketVersion::Uncompressed => BucketTimes::read(self.times()).map(|times| times.values.len()),
            BucketVersion::Sorted | BucketVersion::Unsorted => compressed_count(self),
        };
        count.map_err(|what| damaged(&self.id, what))
    }
}

/// The number of rows in the time column of a compressed bucket.
///
/// Errors: what is wrong with the column.
pub(super) fn compressed_count(bucket: &BucketDoc<'_>) -> Result<usize, String> {
    match bucket.control_count() {
        Some(count) => Ok(count),
        None => {
            let times = compressed(bucket.times()).map_err(|what| format!("the time column: {what}"))?;
            column::count(times, ROWS_MAX).map_err(|what| format!("the time column: {what}"))
        }
    }
}

/// The bytes of a compressed column.
///
/// Errors: what the value is instead.
pub(super) fn compressed(value: Value<'_>) -> Result<&[u8], String> {
    match value.as_binary() {
        Some((COLUMN_SUBTYPE, bytes)) => Ok(bytes),
        _ => Err(format!("it is {}, not a compressed column", value.kind().alias())),
    }
}

/// A name in a checked document.
fn shown(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

impl<'a> Control<'a> {
    fn parse(control: Doc<'a>) -> Result<Control<'a>, String> {
        let (mut version, mut min, mut max, mut closed, mut count) = (None, None, None, None, None);
        for (name, value) in control.fields() {
            let slot = match name {
                b"version" => &mut version,
                b"min" => &mut min,
                b"max" => &mut max,
                b"closed" => &mut closed,
                b"count" => &mut count,
                _ => return Err(format!("unknown field 'control.{}'", shown(name))),
            };
            if slot.replace(value).is_some() {
                return Err(format!("'control.{}' occurs twice", shown(name)));
            }
        }
        let version = version.ok_or("'control.version' is missing")?;
        let version = version
            .as_integer()
            .and_then(BucketVersion::from_number)
            .ok_or_else(|| format!("'control.version' is {version:?}, not 1, 2 or 3"))?;
        let min = min.and_then(Value::as_doc).ok_or("'control.min' is not an object")?;
        let max = max.and_then(Value::as_doc).ok_or("'control.max' is not an object")?;
        let closed = match closed {
            None => false,
            Some(closed) => closed.as_bool().ok_or("'control.closed' is not a boolean")?,
        };
        let count = match count {
            None => None,
            Some(count) => {
                let count = count.as_integer().and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| (1..=ROWS_MAX).contains(count));
                Some(count.ok_or_else(|| format!("'control.count' is not a number from 1 to {ROWS_MAX}"))?)
            }
        };
        let count = count.filter(|_| version != BucketVersion::Uncompressed);
        Ok(Control { version, min, max, closed, count })
    }
}

/// The bucket document with different metadata.
///
/// Errors: `BSONObjectTooLarge` beyond 16 MiB.
pub fn with_meta(document: Doc<'_>, meta: Option<Value<'_>>) -> Result<DocBuf> {
    let mut writer = DocWriter::with_capacity(document.as_bytes().len());
    for (name, value) in document.into_iter().filter(|(name, _)| *name != "meta") {
        writer.value(name, value);
        if let Some(meta) = meta.filter(|_| name == "control") {
            writer.value("meta", meta);
        }
    }
    if writer.len() >= DOCUMENT_SIZE_BYTES_MAX {
        let message = format!("A bucket would exceed {DOCUMENT_SIZE_BYTES_MAX} bytes");
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, message));
    }
    Ok(writer.finish())
}

/// A `DataCorruptionDetected` error that names the bucket.
pub(super) fn damaged(id: &BucketId, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("Bucket {id} is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{options, view};
    use super::*;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn date(ms: i64) -> bson::DateTime {
        bson::DateTime::from_millis(ms)
    }

    fn control() -> RawDocumentBuf {
        rawdoc! { "version": 1, "min": { "t": date(60_000), "a": 1 }, "max": { "t": date(61_000), "a": 2 } }
    }

    fn bucket(control: impl Into<RawBson>, data: impl Into<RawBson>) -> RawDocumentBuf {
        let id = bson::oid::ObjectId::from_bytes([0xAB; 12]);
        rawdoc! { "_id": id, "control": control.into(), "meta": 7, "data": data.into() }
    }

    fn data() -> RawDocumentBuf {
        rawdoc! { "t": { "0": date(60_500), "1": date(61_000) }, "a": { "0": 1, "1": 2 } }
    }

    #[test]
    fn the_parts_of_a_bucket_are_found() {
        let document = bucket(control(), data());
        let (options, data) = (options(Some("m")), data());
        let parsed = BucketDoc::parse(view(&document), &options).unwrap();
        assert_eq!(parsed.id(), BucketId::from_bytes([0xAB; 12]));
        assert_eq!((parsed.version(), parsed.closed()), (BucketVersion::Uncompressed, false));
        assert_eq!((parsed.min_time_ms(), parsed.max_time_ms()), (60_000, 61_000));
        assert_eq!(parsed.meta().and_then(|m| m.as_i32()), Some(7));
        assert_eq!(parsed.data(), view(&data));
        assert_eq!(parsed.control_min().get("a").and_then(|a| a.as_i32()), Some(1));
        assert_eq!(parsed.control_max().get("a").and_then(|a| a.as_i32()), Some(2));
        assert_eq!(parsed.count(), Ok(2));
    }

    #[test]
    fn a_malformed_bucket_is_refused_naming_the_field() {
        let with = |name: &str, value: RawBson| {
            let mut changed = RawDocumentBuf::new();
            for (key, old) in control().iter_elements().flatten().map(|e| (e.key(), e.value().unwrap())) {
                let value = if key.as_str() == name { value.clone() } else { old.into() };
                changed.append(key, value);
            }
            if control().get(name).unwrap().is_none() {
                changed.append(bson::raw::CString::try_from(name).unwrap(), value);
            }
            bucket(changed, data())
        };
        let no_time = rawdoc! { "a": 1 };
        let cases = [
            (bucket("x", data()), "'control' is not an object"),
            (bucket(rawdoc! { "min": {}, "max": {} }, data()), "'control.version' is missing"),
            (with("version", "1".into()), "'control.version' is \"1\""),
            (with("version", 4.into()), "'control.version' is 4"),
            (with("min", 1.into()), "'control.min' is not an object"),
            (with("max", 1.into()), "'control.max' is not an object"),
            (with("min", no_time.clone().into()), "'control.min.t' is not a date"),
            (with("max", no_time.into()), "'control.max.t' is not a date"),
            (with("max", rawdoc! { "t": 5 }.into()), "'control.max.t' is not a date"),
            (with("closed", 1.into()), "'control.closed'"),
            (with("count", 0.into()), "'control.count'"),
            (with("extra", 0.into()), "unknown field 'control.extra'"),
            (bucket(control(), 1), "'data' is not an object"),
            (bucket(control(), rawdoc! {}), "'data' is empty"),
            (bucket(control(), rawdoc! { "a": {} }), "lacks the time column 't'"),
        ];
        for (document, message) in cases {
            let error = BucketDoc::parse(view(&document), &options(Some("m"))).unwrap_err();
            assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
            assert!(error.message.contains(message), "{error}");
            assert!(error.message.contains(&"ab".repeat(12)), "{error}");
        }
    }

    #[test]
    fn unknown_and_duplicate_top_level_fields_are_refused() {
        let mut document = bucket(control(), data());
        document.append(bson::cstr!("x"), 1);
        assert!(BucketDoc::parse(view(&document), &options(Some("m"))).is_err());
        let mut document = bucket(control(), data());
        document.append(bson::cstr!("meta"), 1);
        assert!(BucketDoc::parse(view(&document), &options(Some("m"))).is_err());
        let no_id = rawdoc! { "_id": 1, "control": control(), "data": data() };
        assert!(BucketDoc::parse(view(&no_id), &options(Some("m"))).is_err());
    }

    #[test]
    fn replacing_metadata_changes_only_the_meta_field() {
        let (document, options) = (bucket(control(), data()), options(Some("m")));
        let none = with_meta(view(&document), None).unwrap();
        assert_eq!(BucketDoc::parse(none.view(), &options).unwrap().meta(), None);
        assert_eq!(with_meta(none.view(), view(&document).get("meta")).unwrap().view(), view(&document));
    }

    #[test]
    fn metadata_must_be_defined_and_belong_to_a_meta_field() {
        let document = bucket(control(), data());
        let error = BucketDoc::parse(view(&document), &options(None)).unwrap_err();
        assert!(error.message.contains("has no metaField"), "{error}");
        let id = bson::oid::ObjectId::from_bytes([1; 12]);
        let undefined = rawdoc! { "_id": id, "control": control(), "meta": RawBson::Undefined, "data": data() };
        assert!(BucketDoc::parse(view(&undefined), &options(Some("m"))).is_err());
        let none = rawdoc! { "_id": id, "control": control(), "data": data() };
        assert_eq!(BucketDoc::parse(view(&none), &options(Some("m"))).unwrap().meta(), None);
        let null = rawdoc! { "_id": id, "control": control(), "meta": null, "data": data() };
        assert_eq!(BucketDoc::parse(view(&null), &options(Some("m"))).unwrap().meta(), Some(Value::NULL));
    }
}
