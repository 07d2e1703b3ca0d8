//! The rules of bucket documents, and how a document breaks them (I29).
//!
//! Rules have the names given in COMPAT.md. A bucket of the wrong shape breaks one rule only, because nothing more can
//! be checked.

// Loaded later.

use super::cells::{BucketTimes, read_column};
use super::document::{BucketDoc, BucketVersion, COLUMN_SUBTYPE};
use super::min_max::MinMax;
use super::options::TimeseriesOptions;
use super::row_key::{ROWS_MAX, parse_key};
use super::rows::Rows;
use super::schema::Schema;
use super::time::{bucket_start_ms, is_extended_range};
use crate::block::{Column, ColumnData};
use crate::column;
use crate::error::ErrorCode;
use crate::limits::DOCUMENT_SIZE_BYTES_MAX;
use crate::value::{Doc, Interner, Value, is_normalized, normalize};

/// A rule about a bucket, or about how it is stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The server's code for breaking the rule.
    pub code: ErrorCode,
    /// What is wrong if the rule is broken.
    pub text: &'static str,
    /// True if reads do not rely on the rule: contexts together may break it, and buckets from a server may.
    pub warns: bool,
}

impl Rule {
    /// A rule that reads rely on.
    pub const fn new(name: &'static str, code: ErrorCode, text: &'static str) -> Rule {
        Rule { name, code, text, warns: false }
    }
}

use ErrorCode::BadValue;

static B1: Rule = Rule::new("B1", ErrorCode::DocumentValidationFailure, "not the shape of a bucket");
static B2: Rule = Rule::new("B2", BadValue, "unknown bucket version");
static B3: Rule = Rule::new("B3", ErrorCode::InvalidIdField, "the id does not match the bucket's start");
static B4: Rule = Rule::new("B4", BadValue, "times exceed the maximum span");
static B5: Rule = Rule::new("B5", BadValue, "duplicate field");
static B6: Rule = Rule::new("B6", BadValue, "missing column or summary");
static B7: Rule = Rule::new("B7", BadValue, "no time column");
static B8: Rule = Rule::new("B8", ErrorCode::TypeMismatch, "wrong column type for the bucket version");
static B9: Rule = Rule::new("B9", BadValue, "time keys are not the row numbers");
static B10: Rule = Rule::new("B10", BadValue, "keys are not ascending row numbers");
static B11: Rule = Rule::new("B11", BadValue, "wrong count");
static B12: Rule = Rule::new("B12", BadValue, "a time is not a date");
static B13: Rule = Rule::new("B13", BadValue, "version 2, but rows are not in time order");
static B14: Rule = Rule::new("B14", BadValue, "version 3, but rows are in time order");
static B15: Rule = Rule::new("B15", ErrorCode::InvalidBSON, "cannot be read");
static B16: Rule = Rule::new("B16", BadValue, "does not match the times");
static B17: Rule = Rule::new("B17", BadValue, "does not match the rows");
static B18: Rule = Rule::new("B18", BadValue, "start is not a multiple of the rounding");
/// Buckets may have another rounding only if their collection is marked as such.
pub static B19: Rule = Rule { warns: true, ..Rule::new("B19", BadValue, "start is rounded differently") };
static B21: Rule = Rule::new("B21", ErrorCode::BSONObjectTooLarge, "larger than 16 MiB");
/// A raw bucket that breaks this rule is refused.
pub static B22: Rule = Rule {
    warns: true,
    ..Rule::new("B22", ErrorCode::CannotInsertTimeseriesBucketsWithMixedSchema, "several types at one path")
};
static COUNT: Rule = Rule { warns: true, ..Rule::new("COUNT", BadValue, "too many measurements") };
static META: Rule = Rule { warns: true, ..Rule::new("META", BadValue, "fields of the metadata are not sorted") };

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule.
    pub rule: &'static Rule,
    /// The path in the bucket; empty for the bucket as a whole.
    pub path: String,
    /// Details beyond the text of the rule.
    pub detail: String,
}

/// The rules that `document` breaks. Compressed columns are decoded only if `full`. `count_max` is the target number of
/// measurements.
pub fn validate(document: Doc<'_>, options: &TimeseriesOptions, full: bool, count_max: usize) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.rule(document.as_bytes().len() <= DOCUMENT_SIZE_BYTES_MAX, &B21, "", "");
    match BucketDoc::parse(document, options) {
        Ok(bucket) => findings.judge(document, &bucket, options, full, count_max),
        Err(error) => {
            let version = inner(document, "control").and_then(|control| control.get("version"));
            let version = version.and_then(Value::as_integer).unwrap_or(1);
            let no_times = inner(document, "data").is_some_and(|data| data.get(&options.time_field).is_none());
            let (rule, path) = match (no_times, version) {
                (true, _) => (&B7, "data"),
                (_, 1..=3) => (&B1, ""),
                _ => (&B2, "control.version"),
            };
            findings.0.push(Finding { rule, path: path.to_owned(), detail: error.into_message() });
        }
    }
    findings.0
}

/// The object in a field.
pub(super) fn inner<'a>(document: Doc<'a>, name: &str) -> Option<Doc<'a>> {
    document.get(name).and_then(Value::as_doc)
}

/// The times of a time column, for any bucket version.
pub(super) fn read_times(value: Value<'_>) -> Result<BucketTimes, &'static Rule> {
    let Some(cells) = value.as_doc() else {
        let column = column::decode(compressed(value).ok_or(&B8)?, ROWS_MAX).map_err(|_| &B15)?;
        return match column.data() {
            ColumnData::Date(times) if column.presence().is_none() => Ok(BucketTimes::of(times.clone())),
            _ => Err(&B12),
        };
    };
    let mut times = Vec::new();
    for (key, value) in cells {
        if parse_key(key.as_bytes()) != Some(times.len()) {
            return Err(&B9);
        }
        times.push(value.as_date_ms().ok_or(&B12)?);
    }
    Ok(BucketTimes::of(times))
}

/// A column over the rows of `times`; `None` if it has no cell.
pub(super) fn read_cells(value: Value<'_>, times: &BucketTimes) -> Result<Option<Column>, &'static Rule> {
    let rows = times.values.len();
    let Some(cells) = value.as_doc() else {
        let column = column::decode(compressed(value).ok_or(&B8)?, ROWS_MAX).map_err(|_| &B15)?;
        return if column.len() == rows { Ok(Some(column)) } else { Err(&B11) };
    };
    let mut next = 0;
    for (key, _) in cells {
        match parse_key(key.as_bytes()) {
            Some(row) if row >= next && row < rows => next = row + 1,
            _ => return Err(&B10),
        }
    }
    read_column(cells, rows, times).map_err(|_| &B10)
}

fn compressed(value: Value<'_>) -> Option<&[u8]> {
    value.as_binary().filter(|(subtype, _)| *subtype == COLUMN_SUBTYPE).map(|(_, bytes)| bytes)
}

/// One of the two summaries: the numbers of its fields, and their values.
struct SummarySide<'a> {
    part: &'static str,
    names: Interner,
    values: Vec<Value<'a>>,
}

struct Findings(Vec<Finding>);

impl Findings {
    /// Reports a broken rule at `part` and `name` unless `holds`.
    #[inline(never)]
    fn rule(&mut self, holds: bool, rule: &'static Rule, part: &str, name: &str) {
        if !holds {
            self.0.push(Finding { rule, path: [part, name].concat(), detail: String::new() });
        }
    }

    #[inline(never)]
    fn judge(
        &mut self,
        document: Doc<'_>,
        bucket: &BucketDoc<'_>,
        options: &TimeseriesOptions,
        full: bool,
        count_max: usize,
    ) {
        let (start_ms, max_ms) = (bucket.min_time_ms(), bucket.max_time_ms());
        let names_start =
            is_extended_range(start_ms) || i64::from(bucket.id().time_seconds()).saturating_mul(1000) == start_ms;
        self.rule(names_start, &B3, "_id", "");
        self.rule(max_ms.saturating_sub(start_ms) < options.span_ms(), &B4, "control.max", "");
        let rounding = options.effective_rounding_seconds();
        let on_bound = !options.is_fixed() || bucket_start_ms(start_ms, rounding) == start_ms;
        self.rule(on_bound, &B18, "control.min", "");
        self.rule(bucket.meta().is_none_or(is_normalized), &META, "meta", "");
        let plain = bucket.version() == BucketVersion::Uncompressed;
        // In version 1 the parser accepts one, too.
        let says_count = inner(document, "control").is_some_and(|control| control.get("count").is_some());
        self.rule(says_count != plain, &B11, "control.count", "");
        let one_type = Schema::from_control(bucket.control_min(), bucket.control_max()).is_ok();
        self.rule(one_type, &B22, "control", "");

        let mut columns = Interner::default();
        for (name, value) in bucket.data() {
            self.rule(columns.add(name.as_bytes()).1, &B5, "data.", name);
            let fits = if plain { value.as_doc().is_some() } else { compressed(value).is_some() };
            self.rule(fits, &B8, "data.", name);
        }
        let sides = [("control.min.", bucket.control_min()), ("control.max.", bucket.control_max())];
        let sides = sides.map(|(part, stored)| {
            let mut side = SummarySide { part, names: Interner::default(), values: Vec::new() };
            for (name, value) in stored {
                let new = side.names.add(name.as_bytes()).1;
                self.rule(new, &B5, part, name);
                self.rule(columns.get(name.as_bytes()).is_some(), &B6, part, name);
                if new {
                    side.values.push(value);
                }
            }
            for (name, _) in bucket.data() {
                self.rule(side.names.get(name.as_bytes()).is_some(), &B6, part, name);
            }
            side
        });
        if !plain && !full {
            return;
        }
        let times = match read_times(bucket.times()) {
            Ok(times) => times,
            Err(rule) => return self.rule(rule.name == B8.name, rule, "data.", &options.time_field),
        };
        let rows = times.values.len();
        self.rule(rows > 0, &B7, "data.", &options.time_field);
        self.rule(bucket.control_count().is_none_or(|count| count == rows), &B11, "control.count", "");
        self.rule(rows <= count_max, &COUNT, "control.count", "");
        let sorted = times.values.is_sorted();
        self.rule(sorted || bucket.version() != BucketVersion::Sorted, &B13, "control.version", "");
        self.rule(!sorted || bucket.version() != BucketVersion::Unsorted, &B14, "control.version", "");
        let first_ms = times.values.iter().min().copied().unwrap_or_default();
        let last_ms = times.values.iter().max().copied().unwrap_or_default();
        self.rule(first_ms >= start_ms, &B16, "control.min", "");
        self.rule(max_ms == last_ms || first_ms < 0 && max_ms > last_ms, &B16, "control.max", "");
        let same = bucket_start_ms(first_ms, rounding) >= start_ms || first_ms < start_ms || options.is_fixed();
        self.rule(same, &B19, "control.min", "");
        for (name, value) in bucket.data().iter().filter(|(name, _)| *name != options.time_field) {
            match read_cells(value, &times) {
                Ok(column) => {
                    let mut summary = MinMax::new(&options.collation);
                    if let Some(column) = &column {
                        summary.update_column(name, column, Rows::from(0..rows));
                    }
                    for (side, computed) in sides.iter().zip([summary.min_doc(), summary.max_doc()]) {
                        // Another rule reports a missing one.
                        let stored = side.names.get(name.as_bytes()).and_then(|at| side.values.get(at));
                        let Some(stored) = stored else { continue };
                        // Fields are in the order of the rows, which may have changed.
                        let equal = |found| options.collation.equal(normalize(*stored).view(), normalize(found).view());
                        self.rule(computed.view().get(name).is_some_and(equal), &B17, side.part, name);
                    }
                }
                // A wrong type was already reported.
                Err(rule) => self.rule(rule.name == B8.name, rule, "data.", name),
            }
        }
    }
}
