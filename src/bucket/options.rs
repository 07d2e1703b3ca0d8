//! The `timeseries` options: the time field, the meta field, and how long a bucket may be.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::BUCKET_SPAN_SECONDS_MAX;
use crate::value::{Collation, Doc, DocWriter, Kind, Value};

/// A preset of span and rounding, named after the distance between measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Granularity {
    /// Buckets of an hour, rounded to minutes.
    Seconds,
    /// Buckets of a day, rounded to hours.
    Minutes,
    /// Buckets of thirty days, rounded to days.
    Hours,
}

impl Granularity {
    /// The granularity called `name` in options.
    pub fn from_name(name: &str) -> Option<Granularity> {
        Some(match name {
            "seconds" => Granularity::Seconds,
            "minutes" => Granularity::Minutes,
            "hours" => Granularity::Hours,
            _ => return None,
        })
    }

    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            Granularity::Seconds => "seconds",
            Granularity::Minutes => "minutes",
            Granularity::Hours => "hours",
        }
    }

    /// Maximum span of a bucket.
    pub fn span_seconds(self) -> i64 {
        match self {
            Granularity::Seconds => 3_600,
            Granularity::Minutes => 86_400,
            Granularity::Hours => 2_592_000,
        }
    }

    /// The start of a bucket is a multiple of this.
    pub fn rounding_seconds(self) -> i64 {
        match self {
            Granularity::Seconds => 60,
            Granularity::Minutes => 3_600,
            Granularity::Hours => 86_400,
        }
    }
}

/// The options of a time-series collection, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeseriesOptions {
    /// Name of the field that holds a measurement's time.
    pub time_field: String,
    /// Name of the field that identifies the series. It may be the empty string.
    pub meta_field: Option<String>,
    /// The preset; absent if the user gave span and rounding.
    pub granularity: Option<Granularity>,
    /// Maximum span of a bucket (`bucketMaxSpanSeconds`).
    pub span_seconds: i64,
    /// The start of a bucket is a multiple of this, if the user gave it (`bucketRoundingSeconds`).
    pub rounding_seconds: Option<i64>,
    /// True once span or rounding were changed: older buckets then have the earlier values.
    pub rebucketed: bool,
    /// How strings compare in summaries, and in queries without a collation of their own.
    pub collation: Collation,
}

impl TimeseriesOptions {
    /// The start of a bucket is a multiple of this.
    pub fn effective_rounding_seconds(&self) -> i64 {
        match self.granularity {
            Some(granularity) => granularity.rounding_seconds(),
            None => self.rounding_seconds.unwrap_or(60),
        }
    }

    /// Maximum span of a bucket, in milliseconds.
    pub fn span_ms(&self) -> i64 {
        self.span_seconds.saturating_mul(1000)
    }

    /// True if the user gave span and rounding (which are then equal) and never changed them: bucket boundaries are
    /// then known.
    pub fn is_fixed(&self) -> bool {
        !self.rebucketed && self.granularity.is_none() && self.rounding_seconds == Some(self.span_seconds)
    }

    /// True if both mean the same fields and the same buckets.
    pub fn same_as(&self, other: &TimeseriesOptions) -> bool {
        let shape = |o: &TimeseriesOptions| {
            let granularity = o.granularity.unwrap_or(Granularity::Seconds);
            (granularity, o.span_seconds, o.effective_rounding_seconds())
        };
        self.time_field == other.time_field && self.meta_field == other.meta_field && shape(self) == shape(other)
    }

    /// These options with the bucketing of a `collMod`.
    ///
    /// Spans may only grow and rounding may only get coarser, so that everything found by the earlier span stays within
    /// reach.
    ///
    /// Errors: `InvalidOptions` for contradictions, for a shorter span and for a finer rounding.
    pub(super) fn modified(&self, arguments: TimeseriesArguments) -> Result<TimeseriesOptions> {
        let mut new = self.clone();
        if arguments.granularity.is_none() && arguments.span_seconds.is_none() && arguments.rounding_seconds.is_none() {
            return Ok(new);
        }
        (new.granularity, new.span_seconds, new.rounding_seconds) =
            bucketing(arguments.granularity, arguments.span_seconds, arguments.rounding_seconds)?;
        let shape = |options: &TimeseriesOptions| (options.span_seconds, options.effective_rounding_seconds());
        let (before, after) = (shape(self), shape(&new));
        if before == after {
            return Ok(self.clone());
        }
        if before.0 > after.0 || before.1 > after.1 {
            return Err(Error::invalid_options(
                "Cannot decrease 'bucketMaxSpanSeconds' or 'bucketRoundingSeconds', or choose a finer granularity",
            ));
        }
        new.rebucketed = true;
        Ok(new)
    }

    /// The options as `listCollections` shows them.
    pub fn write(&self, writer: &mut DocWriter) {
        writer.string("timeField", &self.time_field);
        if let Some(meta_field) = &self.meta_field {
            writer.string("metaField", meta_field);
        }
        if let Some(granularity) = self.granularity {
            writer.string("granularity", granularity.name());
        }
        // At most a year, so they fit.
        let seconds = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
        writer.int32("bucketMaxSpanSeconds", seconds(self.span_seconds));
        if let Some(rounding_seconds) = self.rounding_seconds {
            writer.int32("bucketRoundingSeconds", seconds(rounding_seconds));
        }
    }
}

/// The `timeseries` document with only its types checked.
#[derive(Debug, Default)]
pub(super) struct TimeseriesArguments {
    time_field: Option<String>,
    meta_field: Option<String>,
    granularity: Option<Granularity>,
    span_seconds: Option<i64>,
    rounding_seconds: Option<i64>,
}

impl TimeseriesArguments {
    /// Reads types, ranges and names, in the order of the fields.
    ///
    /// Errors: 14 for a type; 2 for a range, a NUL or an unknown granularity; 40415 for an unknown field; 40414 for a
    /// duplicate field, or a missing `timeField` if `is_new`. For an existing collection, the field names are not
    /// options.
    pub(super) fn parse(doc: Doc<'_>, is_new: bool) -> Result<TimeseriesArguments> {
        let mut arguments = TimeseriesArguments::default();
        for (at, (name, value)) in doc.iter().enumerate() {
            if doc.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(missing(format!("BSON field 'timeseries.{name}' is given more than once")));
            }
            if is_nothing(value) {
                continue;
            }
            match name {
                "timeField" | "metaField" if !is_new => return Err(Error::unknown_field("timeseries", name)),
                "timeField" => arguments.time_field = Some(field_name(name, value)?),
                "metaField" => arguments.meta_field = Some(field_name(name, value)?),
                "granularity" => {
                    let text = value.as_str().ok_or_else(|| wrong_type("timeseries.granularity", value, "string"))?;
                    arguments.granularity = Some(Granularity::from_name(text).ok_or_else(|| {
                        Error::bad_value(format!(
                            "Enumeration value '{text}' for field 'timeseries.granularity' is not a valid value"
                        ))
                    })?);
                }
                "bucketMaxSpanSeconds" => arguments.span_seconds = Some(seconds(name, value)?),
                "bucketRoundingSeconds" => arguments.rounding_seconds = Some(seconds(name, value)?),
                _ => return Err(Error::unknown_field("timeseries", name)),
            }
        }
        if is_new && arguments.time_field.is_none() {
            return Err(missing("BSON field 'timeseries.timeField' is missing but a required field"));
        }
        Ok(arguments)
    }

    /// Checks the fields together and fills in defaults.
    ///
    /// Errors: `InvalidOptions`.
    pub(super) fn resolve(self) -> Result<TimeseriesOptions> {
        let time_field = self.time_field.unwrap_or_default();
        check_top_level("timeField", &time_field)?;
        if time_field.is_empty() {
            return Err(Error::invalid_options("'timeField' must not be empty"));
        }
        if let Some(meta_field) = &self.meta_field {
            if meta_field == "_id" {
                return Err(Error::invalid_options("'metaField' must not be \"_id\""));
            }
            if *meta_field == time_field {
                return Err(Error::invalid_options(format!(
                    "'metaField' and 'timeField' must differ, both are '{time_field}'"
                )));
            }
            check_top_level("metaField", meta_field)?;
        }
        let (granularity, span_seconds, rounding_seconds) =
            bucketing(self.granularity, self.span_seconds, self.rounding_seconds)?;
        Ok(TimeseriesOptions {
            time_field,
            meta_field: self.meta_field,
            granularity,
            span_seconds,
            rounding_seconds,
            rebucketed: false,
            collation: Collation::default(),
        })
    }
}

type Bucketing = (Option<Granularity>, i64, Option<i64>);

/// Granularity, span and rounding that match.
fn bucketing(granularity: Option<Granularity>, span: Option<i64>, rounding: Option<i64>) -> Result<Bucketing> {
    match (granularity, span, rounding) {
        (Some(g), None, None) => Ok((Some(g), g.span_seconds(), None)),
        (Some(g), Some(span), None) if span == g.span_seconds() => Ok((Some(g), span, None)),
        (Some(g), Some(span), _) if span != g.span_seconds() => Err(Error::invalid_options(format!(
            "'bucketMaxSpanSeconds' of {span} contradicts granularity \"{}\", whose span is {}",
            g.name(),
            g.span_seconds()
        ))),
        (Some(g), _, _) => Err(Error::invalid_options(format!(
            "'bucketRoundingSeconds' cannot be set together with granularity \"{}\"",
            g.name()
        ))),
        (None, None, None) => Ok((Some(Granularity::Seconds), Granularity::Seconds.span_seconds(), None)),
        (None, Some(span), Some(rounding)) if span == rounding => Ok((None, span, Some(rounding))),
        (None, Some(span), Some(rounding)) => Err(Error::invalid_options(format!(
            "'bucketMaxSpanSeconds' of {span} and 'bucketRoundingSeconds' of {rounding} must be equal"
        ))),
        (None, _, _) => Err(Error::invalid_options(
            "'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must both be set, to the same value",
        )),
    }
}

/// A leading `$` would read as an expression elsewhere. The server accepts it; this engine does not.
fn check_top_level(option: &str, name: &str) -> Result<()> {
    if name.contains('.') {
        return Err(Error::invalid_options(format!("'{option}' must be a top-level field, without a '.': '{name}'")));
    }
    if name.starts_with('$') {
        return Err(Error::invalid_options(format!("'{option}' must not begin with a '$': '{name}'")));
    }
    Ok(())
}

fn field_name(option: &str, value: Value<'_>) -> Result<String> {
    let text = value.as_str().ok_or_else(|| wrong_type(&format!("timeseries.{option}"), value, "string"))?;
    if text.contains('\0') {
        return Err(Error::bad_value(format!("'{option}' must not contain a NUL byte")));
    }
    Ok(text.to_owned())
}

fn seconds(option: &str, value: Value<'_>) -> Result<i64> {
    let n = safe_integer(value).ok_or_else(|| wrong_type(&format!("timeseries.{option}"), value, "number"))?;
    if (1..=BUCKET_SPAN_SECONDS_MAX).contains(&n) {
        Ok(n)
    } else {
        let bounds = format!("from 1 to {BUCKET_SPAN_SECONDS_MAX}");
        Err(Error::bad_value(format!("BSON field 'timeseries.{option}' must be {bounds}, actual value '{n}'")))
    }
}

/// A numeric argument of a command: fractions are cut off, numbers that are too large become the maximum.
pub(crate) fn safe_integer(value: Value<'_>) -> Option<i64> {
    match value.kind() {
        // A saturating cast; NaN becomes zero, as on the server.
        #[allow(clippy::cast_possible_truncation)]
        Kind::Double => value.as_f64().map(|x| x as i64),
        _ => value.as_integer(),
    }
}

/// A null or undefined argument counts as missing.
pub(super) fn is_nothing(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Null | Kind::Undefined)
}

pub(super) fn wrong_type(field: &str, value: Value<'_>, expected: &str) -> Error {
    let actual = value.kind().alias();
    Error::type_mismatch(format!("BSON field '{field}' is the wrong type '{actual}', expected type '{expected}'"))
}

fn missing(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::IDLFailedToParse, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawDocumentBuf, rawdoc};

    fn parse(doc: &RawDocumentBuf) -> Result<TimeseriesOptions> {
        TimeseriesArguments::parse(Doc::parse(doc.as_bytes()).unwrap(), true)?.resolve()
    }

    fn code(doc: RawDocumentBuf) -> ErrorCode {
        parse(&doc).unwrap_err().code
    }

    fn bucketing_of(granularity: Option<&str>, span: Option<i32>, rounding: Option<i32>) -> Result<Bucketing> {
        let mut doc = rawdoc! { "timeField": "t" };
        granularity.inspect(|g| doc.append(bson::cstr!("granularity"), *g));
        span.inspect(|s| doc.append(bson::cstr!("bucketMaxSpanSeconds"), *s));
        rounding.inspect(|r| doc.append(bson::cstr!("bucketRoundingSeconds"), *r));
        parse(&doc).map(|o| (o.granularity, o.span_seconds, o.rounding_seconds))
    }

    #[test]
    fn missing_options_come_from_the_granularity() {
        use Granularity::{Hours, Minutes, Seconds};
        assert_eq!(bucketing_of(None, None, None), Ok((Some(Seconds), 3_600, None)));
        assert_eq!(bucketing_of(Some("seconds"), None, None), Ok((Some(Seconds), 3_600, None)));
        assert_eq!(bucketing_of(Some("minutes"), None, None), Ok((Some(Minutes), 86_400, None)));
        assert_eq!(bucketing_of(Some("hours"), None, None), Ok((Some(Hours), 2_592_000, None)));
        assert_eq!(bucketing_of(Some("hours"), Some(2_592_000), None), Ok((Some(Hours), 2_592_000, None)));
    }

    #[test]
    fn a_granularity_cannot_be_combined_with_another_span_or_a_rounding() {
        for (span, rounding) in
            [(Some(3_601), None), (Some(3_601), Some(60)), (None, Some(60)), (Some(3_600), Some(60))]
        {
            let error = bucketing_of(Some("seconds"), span, rounding).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidOptions, "{span:?} {rounding:?}");
        }
    }

    #[test]
    fn span_and_rounding_must_be_given_together_and_equal() {
        assert_eq!(bucketing_of(None, Some(900), Some(900)), Ok((None, 900, Some(900))));
        for (span, rounding) in [(Some(3_600), None), (None, Some(60)), (Some(3_600), Some(60))] {
            assert_eq!(bucketing_of(None, span, rounding).unwrap_err().code, ErrorCode::InvalidOptions);
        }
    }

    #[test]
    fn seconds_beyond_a_year_are_refused_first() {
        for n in [0, -1, 31_536_001] {
            let doc = rawdoc! { "timeField": "a.b", "bucketMaxSpanSeconds": n, "bucketRoundingSeconds": n };
            assert_eq!(code(doc), ErrorCode::BadValue);
        }
        assert_eq!(bucketing_of(None, Some(31_536_000), Some(31_536_000)).unwrap().1, 31_536_000);
    }

    #[test]
    fn numbers_may_be_doubles_as_javascript_sends_them() {
        let doc = rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": 900.0, "bucketRoundingSeconds": 900_i64 };
        assert!(parse(&doc).unwrap().is_fixed());
    }

    #[test]
    fn wrong_types_unknown_fields_and_absent_time_field_have_the_servers_codes() {
        assert_eq!(code(rawdoc! { "timeField": 100 }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "timeField": "t", "metaField": true }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "timeField": "t", "granularity": 1 }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "timeField": "t", "granularity": "days" }), ErrorCode::BadValue);
        assert_eq!(code(rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": "1" }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": true }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "timeField": "t", "nope": 1 }), ErrorCode::IDLUnknownField);
        assert_eq!(code(rawdoc! { "metaField": "m" }), ErrorCode::IDLFailedToParse);
        assert_eq!(code(rawdoc! { "timeField": null }), ErrorCode::IDLFailedToParse);
    }

    #[test]
    fn field_names_must_be_top_level_distinct_and_without_nul() {
        for (time, meta, expected) in [
            ("a.b", "m", ErrorCode::InvalidOptions),
            ("t", "a.b", ErrorCode::InvalidOptions),
            ("t", "_id", ErrorCode::InvalidOptions),
            ("t", "t", ErrorCode::InvalidOptions),
            ("", "m", ErrorCode::InvalidOptions),
            ("$t", "m", ErrorCode::InvalidOptions),
            ("t", "$m", ErrorCode::InvalidOptions),
            ("t\0", "m", ErrorCode::BadValue),
            ("t", "\0", ErrorCode::BadValue),
        ] {
            assert_eq!(code(rawdoc! { "timeField": time, "metaField": meta }), expected, "{time:?} {meta:?}");
        }
        assert_eq!(parse(&rawdoc! { "timeField": "t", "metaField": "" }).unwrap().meta_field.as_deref(), Some(""));
        assert_eq!(parse(&rawdoc! { "timeField": "_id" }).unwrap().time_field, "_id");
    }

    #[test]
    fn spans_and_granularities_can_only_grow() {
        let presets = [("seconds", 3_600, 60), ("minutes", 86_400, 3_600), ("hours", 2_592_000, 86_400)];
        let preset = |name: &str| rawdoc! { "granularity": name };
        let custom = |n: i32| rawdoc! { "bucketMaxSpanSeconds": n, "bucketRoundingSeconds": n };
        let modified = |from: &RawDocumentBuf, to: &RawDocumentBuf| {
            let mut create = rawdoc! { "timeField": "t" };
            from.iter_elements().flatten().for_each(|field| create.append(field.key(), field.value().unwrap()));
            let before = parse(&create).unwrap();
            TimeseriesArguments::parse(Doc::parse(to.as_bytes()).unwrap(), false)
                .and_then(|arguments| before.modified(arguments))
                .map(|after| (after == before, after.rebucketed))
        };
        let (changed, same) = (Ok((false, true)), Ok((true, false)));
        let code = |outcome: Result<(bool, bool)>| outcome.map_err(|error| error.code);
        for (from, (name, span, rounding)) in presets.into_iter().enumerate() {
            for (to, (other, ..)) in presets.into_iter().enumerate() {
                let expected = match from.cmp(&to) {
                    std::cmp::Ordering::Less => changed,
                    std::cmp::Ordering::Equal => same,
                    std::cmp::Ordering::Greater => Err(ErrorCode::InvalidOptions),
                };
                assert_eq!(code(modified(&preset(name), &preset(other))), expected, "{name} to {other}");
            }
            assert_eq!(code(modified(&preset(name), &custom(span))), Ok((false, true)));
            assert_eq!(code(modified(&preset(name), &custom(span - 1))), Err(ErrorCode::InvalidOptions));
            assert_eq!(code(modified(&custom(rounding), &preset(name))), Ok((false, true)));
            assert_eq!(code(modified(&custom(rounding + 1), &preset(name))), Err(ErrorCode::InvalidOptions));
            let spelled = rawdoc! { "granularity": name, "bucketMaxSpanSeconds": span };
            assert_eq!(code(modified(&preset(name), &spelled)), Ok((true, false)));
        }
        assert_eq!(code(modified(&custom(900), &custom(900))), Ok((true, false)));
        assert_eq!(code(modified(&custom(900), &custom(901))), Ok((false, true)));
        assert_eq!(code(modified(&custom(900), &custom(899))), Err(ErrorCode::InvalidOptions));
        assert_eq!(code(modified(&custom(900), &rawdoc! {})), Ok((true, false)));
        for (wrong, expected) in [
            (rawdoc! { "bucketMaxSpanSeconds": 9000 }, ErrorCode::InvalidOptions),
            (rawdoc! { "bucketMaxSpanSeconds": 9000, "bucketRoundingSeconds": 9001 }, ErrorCode::InvalidOptions),
            (rawdoc! { "granularity": "seconds", "bucketRoundingSeconds": 60 }, ErrorCode::InvalidOptions),
            (rawdoc! { "bucketMaxSpanSeconds": 31_536_001 }, ErrorCode::BadValue),
            (rawdoc! { "granularity": "days" }, ErrorCode::BadValue),
            (rawdoc! { "timeField": "t" }, ErrorCode::IDLUnknownField),
            (rawdoc! { "other": 1 }, ErrorCode::IDLUnknownField),
        ] {
            assert_eq!(code(modified(&custom(900), &wrong)), Err(expected), "{wrong:?}");
        }
    }

    #[test]
    fn options_that_make_the_same_buckets_are_equal() {
        let seconds = parse(&rawdoc! { "timeField": "t" }).unwrap();
        let spelled =
            parse(&rawdoc! { "timeField": "t", "granularity": "seconds", "bucketMaxSpanSeconds": 3600 }).unwrap();
        assert!(seconds.same_as(&spelled));
        for other in [
            rawdoc! { "timeField": "t", "granularity": "minutes" },
            rawdoc! { "timeField": "t", "metaField": "" },
            rawdoc! { "timeField": "u" },
            rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": 3600, "bucketRoundingSeconds": 3600 },
        ] {
            assert!(!seconds.same_as(&parse(&other).unwrap()));
        }
    }
}
