//! Index specifications: parsed from a user's request, kept in the catalog entry, and shown again.
//!
//! Source: mongodb/mongo src/mongo/db/timeseries/timeseries_index_schema_conversion_functions.cpp. A user names fields
//! of measurements; the index covers buckets, by their metadata and by the extremes in their `control`.

use super::meta_time::META_TIME_INDEX;
use super::part::{KeyPart, PartKind, Source, parts_of};
use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::TTL_SECONDS_MAX;
use crate::value::{Doc, DocBuf, DocWriter, Number, OwnedValue, Path, Value, equal};

/// The fields of a specification, their types, and whether they are shown as given.
const FIELDS: [(&str, &str, bool); 20] = [
    ("key", "an object", true),
    ("name", "a string", true),
    ("sparse", "a bool", true),
    ("partialFilterExpression", "an object", true),
    ("collation", "an object", true),
    ("background", "", true),
    ("storageEngine", "", true),
    ("2dsphereIndexVersion", "a number", true),
    ("finestIndexedLevel", "a number", true),
    ("coarsestIndexedLevel", "a number", true),
    ("bits", "a number", true),
    ("min", "a number", true),
    ("max", "a number", true),
    ("hidden", "a bool", false),
    ("unique", "a bool", false),
    ("prepareUnique", "a bool", false),
    ("expireAfterSeconds", "", false),
    ("v", "", false),
    ("originalSpec", "an object", false),
    ("wildcardProjection", "an object", false),
];
/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    /// Its number in the key space.
    pub number: u16,
    /// The version of the catalog entry in which it was created. It distinguishes the index from later ones with the same
    /// number.
    pub born: u64,
    /// When its build began; unused once it is ready.
    pub begun_ms: i64,
    /// Its name.
    pub name: Box<str>,
    /// The user's specification without `hidden` and `expireAfterSeconds`.
    spec: DocBuf,
    /// Its key.
    pub parts: Vec<KeyPart>,
    /// True if it leaves out buckets that have none of its parts.
    pub sparse: bool,
    /// True if queries do not use it.
    pub hidden: bool,
    /// True once all buckets that existed when it was created are in it.
    pub ready: bool,
    /// The age at which buckets in it are deleted.
    pub expire_after_seconds: Option<i64>,
    /// The filter of a partial index: it contains only buckets in which a measurement may match.
    pub partial: Option<DocBuf>,
    /// The bucket span when it was created, by which `partial` bounds times.
    pub span_seconds: i64,
}

impl IndexSpec {
    /// The index that a collection with a meta field starts with.
    pub fn default_of(options: &TimeseriesOptions) -> Option<IndexSpec> {
        let (time, meta) = (&options.time_field, options.meta_field.as_deref()?);
        let mut spec = DocWriter::new();
        spec.int32("v", 2)
            .begin_doc("key")
            .int32(meta, 1)
            .int32(time, 1)
            .end()
            .string("name", &[meta, "_1_", time, "_1"].concat());
        let part = |prefix: &str, source, path: &str| {
            // The options of the collection have checked both names.
            let path = Path::parse(path).ok()?;
            let name = [prefix, path.as_str()].concat();
            Some(KeyPart { name: name.into(), source, path, direction: OwnedValue::int32(1) })
        };
        let parts = vec![
            part("", Source::Meta, "meta")?,
            part("control.min.", Source::Min, time)?,
            part("control.max.", Source::Max, time)?,
        ];
        Some(IndexSpec {
            number: META_TIME_INDEX,
            born: 0,
            begun_ms: 0,
            name: [meta, "_1_", time, "_1"].concat().into(),
            spec: spec.finish(),
            parts,
            sparse: false,
            hidden: false,
            ready: true,
            expire_after_seconds: None,
            partial: None,
            span_seconds: options.span_seconds,
        })
    }

    /// This specification as stored, whether hidden or not; `None` if `stored` is a different one.
    pub fn as_stored(&self, stored: Doc<'_>) -> Option<IndexSpec> {
        let number = stored.get("number").and_then(Value::as_integer);
        let is_same =
            number == Some(META_TIME_INDEX.into()) && stored.get("ready").and_then(Value::as_bool) == Some(true);
        [false, true].into_iter().filter(|_| is_same).find_map(|hidden| {
            let span_seconds = stored.get("span").and_then(Value::as_integer)?;
            let born = stored.get("born").and_then(Value::as_integer)?.cast_unsigned();
            let index = IndexSpec { hidden, span_seconds, born, ..self.clone() };
            (stored.get("spec")?.as_doc()?.as_bytes() == index.shown().view().as_bytes()).then_some(index)
        })
    }

    /// Parses a specification from `createIndexes`, or one that `to_doc` has written.
    ///
    /// Errors: `FailedToParse` without key or name, `CannotCreateIndex`, `InvalidOptions`, `IndexOptionsConflict`,
    /// `InvalidIndexSpecificationOption`, `TypeMismatch`, `BadValue`, 10065.
    pub fn parse(document: Doc<'_>, options: &TimeseriesOptions) -> Result<IndexSpec> {
        let mut spec = DocWriter::new();
        spec.int32("v", 2);
        for (field, value) in document {
            let Some((_, wanted, is_kept)) = FIELDS.iter().find(|(name, ..)| *name == field) else {
                let message = ["The field '", field, "' is not valid for an index specification"].concat();
                return Err(Error::new(ErrorCode::InvalidIndexSpecificationOption, message));
            };
            let fits = match *wanted {
                "an object" => value.as_doc().is_some(),
                "a string" => value.as_str().is_some(),
                "a bool" => value.as_truthy().is_some(),
                "a number" => value.kind().is_number(),
                _ => true,
            };
            if !fits {
                let code = match field {
                    "partialFilterExpression" => ErrorCode::Location10065,
                    _ => ErrorCode::TypeMismatch,
                };
                return Err(Error::new(
                    code,
                    format!("The field '{field}' of an index must be {wanted}, not {value:?}"),
                ));
            }
            if *is_kept {
                spec.value(field, value);
            }
        }
        let flag = |name: &str| document.get(name).and_then(Value::as_truthy) == Some(true);
        let (Some(key), Some(name)) =
            (document.get("key").and_then(Value::as_doc), document.get("name").and_then(Value::as_str))
        else {
            return Err(Error::new(ErrorCode::FailedToParse, "An index needs the fields 'key' and 'name'"));
        };
        let partial = document.get("partialFilterExpression").and_then(Value::as_doc).map(Doc::to_owned);
        if partial.is_some() && document.get("collation").is_some() {
            let message = "An index cannot have both a collation and a partialFilterExpression";
            return Err(Error::new(ErrorCode::IndexOptionsConflict, message));
        }
        if flag("unique") || flag("prepareUnique") {
            return Err(Error::invalid_options("Unique indexes are not supported on a time-series collection"));
        }
        let parts = parts_of(key, options).map_err(cannot_create)?;
        if document.get("wildcardProjection").is_some() {
            // Only for a key over everything, which does not exist here.
            let is_wildcard = parts.iter().any(|part| part.kind() == PartKind::Wildcard);
            let code = if is_wildcard { ErrorCode::FailedToParse } else { ErrorCode::BadValue };
            return Err(Error::new(code, "The field 'wildcardProjection' needs an index over '$**'"));
        }
        if parts.iter().any(|part| part.kind() == PartKind::Plane) {
            let number = |field: &str, otherwise: f64| {
                document.get(field).and_then(Number::of).map_or(otherwise, Number::near_double)
            };
            let (min, max) = (number("min", -180.0), number("max", 180.0));
            if !(1.0..=32.0).contains(&number("bits", 26.0)) || !(max - min).is_finite() || min >= max {
                return Err(Error::invalid_options("A 2d index needs 'bits' from 1 to 32, and a 'min' below 'max'"));
            }
        }
        match name {
            "" => return Err(cannot_create(Error::bad_value("'name' is empty"))),
            "*" => return Err(Error::bad_value("The index name '*' is not valid")),
            _ => {}
        }
        let sparse = flag("sparse");
        if sparse && parts.iter().any(|part| part.source != Source::Meta && part.path.as_str() != options.time_field) {
            return Err(Error::invalid_options("Sparse indexes are not supported on measurements"));
        }
        if sparse && partial.is_some() {
            return Err(cannot_create(Error::bad_value("'sparse' and 'partialFilterExpression' exclude each other")));
        }
        let mut index = IndexSpec {
            number: 0,
            born: 0,
            begun_ms: 0,
            name: name.into(),
            spec: spec.finish(),
            parts,
            sparse,
            hidden: flag("hidden"),
            ready: false,
            expire_after_seconds: document.get("expireAfterSeconds").map(ttl_seconds).transpose()?,
            partial,
            span_seconds: options.span_seconds,
        };
        if index.expire_after_seconds.is_some() {
            index.check_ttl(key, options)?;
        }
        Ok(index)
    }

    /// An index with expiry must be over the time alone and partial by metadata.
    fn check_ttl(&mut self, key: Doc<'_>, options: &TimeseriesOptions) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid_options(message));
        let is_meta = |name: &str| {
            let path = options.meta_field.as_deref().and_then(|meta| name.strip_prefix(meta));
            path.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let Some(filter) = &self.partial else {
            return refuse(
                "TTL indexes are not supported on a time-series collection without a filter on the metaField",
            );
        };
        if !reads_only(filter.view(), &is_meta) {
            return refuse("The filter of a TTL index on a time-series collection must be on the metaField alone");
        }
        if key.iter().count() > 1 {
            return Err(cannot_create(Error::bad_value("TTL indexes are single-field indexes")));
        }
        if key.get(&options.time_field).is_none() {
            return refuse("TTL indexes on a time-series collection must be on the timeField");
        }
        self.parts.retain(|part| part.source == Source::Min);
        Ok(())
    }

    /// True if it leaves out buckets that have none of its parts.
    pub fn is_sparse(&self) -> bool {
        self.sparse || self.parts.iter().any(|part| part.kind() == PartKind::Wildcard || part.kind().is_geo())
    }

    /// A numeric option.
    pub fn option(&self, name: &str) -> Option<f64> {
        self.spec.view().get(name).and_then(Number::of).map(Number::near_double)
    }

    /// The same specification with a number, created in that version of the catalog entry.
    pub fn numbered(&self, number: u16, born: u64, begun_ms: i64) -> IndexSpec {
        IndexSpec { number, born, begun_ms, ..self.clone() }
    }

    /// The specification as users see it.
    pub fn shown(&self) -> DocBuf {
        let mut writer = DocWriter::new();
        for (name, value) in self.spec.view() {
            writer.value(name, value);
        }
        if let Some(seconds) = self.expire_after_seconds {
            writer.int64("expireAfterSeconds", seconds);
        }
        if self.hidden {
            writer.bool("hidden", true);
        }
        writer.finish()
    }

    /// The key as users see it.
    pub fn key(&self) -> Doc<'_> {
        self.spec.view().get("key").and_then(Value::as_doc).unwrap_or(Doc::EMPTY)
    }

    /// The key in terms of buckets.
    pub fn bucket_key(&self) -> DocBuf {
        let mut writer = DocWriter::new();
        for part in &self.parts {
            writer.value(&part.name, part.direction.view());
        }
        writer.finish()
    }

    /// Writes what the catalog entry keeps.
    pub fn write(&self, writer: &mut DocWriter) {
        writer.int32("number", self.number.into()).bool("ready", self.ready).int64("span", self.span_seconds);
        writer.int64("born", self.born.cast_signed()).int64("begun", self.begun_ms);
        writer.doc("spec", self.shown().view());
    }

    /// Reads what `write` has written.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn read(stored: Doc<'_>, options: &TimeseriesOptions) -> Result<IndexSpec> {
        let corrupt = || Error::corrupt("A catalog entry has a damaged index");
        let spec = stored.get("spec").and_then(Value::as_doc).ok_or_else(corrupt)?;
        let number = stored.get("number").and_then(Value::as_integer).and_then(|n| u16::try_from(n).ok());
        let span_seconds = stored.get("span").and_then(Value::as_integer).ok_or_else(corrupt)?;
        let integer = |name: &str| stored.get(name).and_then(Value::as_integer).unwrap_or_default();
        let (born, begun_ms) = (integer("born").cast_unsigned(), integer("begun"));
        let ready = stored.get("ready").and_then(Value::as_truthy).ok_or_else(corrupt)?;
        let index = IndexSpec::parse(spec, options).map_err(|_| corrupt())?;
        Ok(IndexSpec { number: number.ok_or_else(corrupt)?, born, begun_ms, span_seconds, ready, ..index })
    }

    /// Compares by name, then by content; true if it is the same index. Errors: `IndexKeySpecsConflict` if the name is
    /// taken by another key, `IndexOptionsConflict` if the same index exists with other options.
    pub fn is_same_as(&self, other: &IndexSpec) -> Result<bool> {
        // By value: a shell writes 1 as a double, and so does JavaScript.
        let same = |field: &str| match (self.spec.view().get(field), other.spec.view().get(field)) {
            (Some(this), Some(other)) => equal(this, other),
            (this, other) => this.is_none() && other.is_none(),
        };
        let key = equal(self.bucket_key().view().as_value(), other.bucket_key().view().as_value())
            && same("collation")
            && same("partialFilterExpression");
        let options = self.sparse == other.sparse && self.expire_after_seconds == other.expire_after_seconds;
        let code = match (self.name == other.name, key) {
            (true, true) if options => return Ok(true),
            (false, false) => return Ok(false),
            (true, false) => ErrorCode::IndexKeySpecsConflict,
            (_, true) => ErrorCode::IndexOptionsConflict,
        };
        let message = "An index with the same name and another key, or the same key and another name or options, already exists: ";
        Err(Error::new(code, format!("{message}{:?}", other.shown().view())))
    }

    /// True if the user's key is this one.
    pub fn has_key(&self, key: Doc<'_>) -> bool {
        equal(self.key().as_value(), key.as_value())
    }
}

/// Checks the key, with the errors of `createIndexes`.
fn cannot_create(error: Error) -> Error {
    match error.code {
        ErrorCode::BadValue => {
            Error::new(ErrorCode::CannotCreateIndex, ["Cannot create the index: ", &error.message].concat())
        }
        _ => error,
    }
}

fn ttl_seconds(value: Value<'_>) -> Result<i64> {
    let seconds = value.as_integer().filter(|seconds| (0..=TTL_SECONDS_MAX).contains(seconds));
    seconds
        .ok_or_else(|| cannot_create(Error::bad_value("'expireAfterSeconds' must be an integer from 0 to 2147483647")))
}

/// True if `check` accepts every path of a filter.
fn reads_only(filter: Doc<'_>, passes: &dyn Fn(&str) -> bool) -> bool {
    filter.iter().all(|(name, value)| match (name.starts_with('$'), value.as_array()) {
        (true, Some(arms)) => arms.iter().all(|(_, arm)| arm.as_doc().is_some_and(|arm| reads_only(arm, passes))),
        (true, None) => false,
        (false, _) => passes(name),
    })
}
