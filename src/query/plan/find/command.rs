//! The `find` command.

use super::arguments::{Hint, check_generic, count, filter, flag, is_given, object};
use crate::bucket::BUCKETS_PREFIX;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::query::plan::Projection;
use crate::query::sort::SortSpec;
use crate::value::{Collation, Doc};

/// The arguments of a `find`.
#[derive(Clone, Debug, PartialEq)]
pub struct FindCommand {
    /// Selects the measurements.
    pub filter: Filter,
    /// Selects their fields.
    pub projection: Projection,
    /// Their order; `None` for any.
    pub sort: Option<SortSpec>,
    /// Number of matches to skip.
    pub skip: u64,
    /// Maximum number of measurements returned; `None` for all.
    pub limit: Option<u64>,
    /// Maximum number of measurements in the first batch; `None` for the default, 0 for an empty batch.
    pub batch_size: Option<u64>,
    /// True if the first batch is the only one.
    pub single_batch: bool,
    /// The scan that the caller asks for.
    pub hint: Option<Hint>,
    /// How strings compare.
    pub collation: Collation,
}

impl Default for FindCommand {
    fn default() -> Self {
        FindCommand {
            filter: Filter::all(),
            projection: Projection::all(),
            sort: None,
            skip: 0,
            limit: None,
            batch_size: None,
            single_batch: false,
            hint: None,
            collation: Collation::default(),
        }
    }
}

impl FindCommand {
    /// Parses `{find: <collection>, filter: …, …}`; the caller handles the value of the first field. A null argument
    /// counts as missing.
    ///
    /// Errors: `TypeMismatch`; 51024 for negative numbers; 168 for what time-series collections do not support; 40415
    /// for unknown arguments; those of filters, projections and sorts.
    pub fn parse(command: Doc<'_>, globals: &Globals) -> Result<FindCommand> {
        let mut options = FindCommand::default();
        let mut globals = globals.clone();
        if let Some(variables) = command.get("let").filter(|value| is_given(*value)) {
            globals = globals.with_variables(object("let", variables)?)?;
        }
        options.collation = globals.collation().clone();
        let of_buckets = command.iter().next().and_then(|(_, name)| name.as_str());
        let of_buckets = of_buckets.is_some_and(|name| name.starts_with(BUCKETS_PREFIX));
        let mut natural = None;
        for (name, value) in command.iter().skip(1).filter(|(_, value)| is_given(*value)) {
            match name {
                "filter" => options.filter = filter(name, value, &globals)?,
                "projection" => options.projection = Projection::parse(object(name, value)?, &globals)?,
                "sort" => {
                    let sort = object(name, value)?;
                    // Bucket documents have an order of their own.
                    natural = Some(value).filter(|_| of_buckets && sort.get("$natural").is_some());
                    let is_none = sort.is_empty() || natural.is_some();
                    options.sort = if is_none { None } else { Some(SortSpec::parse(value, globals.collation())?) };
                }
                "skip" => options.skip = count(name, value)?,
                "limit" => options.limit = Some(count(name, value)?).filter(|limit| *limit > 0),
                "batchSize" => options.batch_size = Some(count(name, value)?),
                "singleBatch" => options.single_batch = flag(name, value)?,
                "hint" => options.hint = Hint::parse(value)?,
                // Read above, or by the caller, who knows the collection's collation.
                "let" | "collation" => {}
                "allowDiskUse" | "noCursorTimeout" | "allowPartialResults" | "oplogReplay" => {
                    flag(name, value)?;
                }
                "min" | "max" if object(name, value)?.is_empty() => {}
                "returnKey" | "showRecordId" | "tailable" | "awaitData" if !flag(name, value)? => {}
                "min" | "max" | "returnKey" | "showRecordId" | "tailable" | "awaitData" => {
                    return Err(Error::new(
                        ErrorCode::InvalidPipelineOperator,
                        format!("Option '{name}' is not supported on a time-series collection"),
                    ));
                }
                _ if check_generic(name, value)? => {}
                _ => return Err(Error::unknown_field("find", name)),
            }
        }
        if let Some(natural) = natural {
            let natural = Hint::parse(natural)?;
            if options.hint.is_some() && options.hint != natural {
                return Err(Error::bad_value("A sort by $natural cannot be combined with another hint"));
            }
            options.hint = natural;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn parse(command: &RawDocumentBuf) -> Result<FindCommand> {
        FindCommand::parse(Doc::parse(command.as_bytes()).unwrap(), &globals())
    }

    /// The error code of a find with one more argument.
    fn code(name: &str, value: impl Into<RawBson>) -> ErrorCode {
        let mut command = rawdoc! { "find": "c" };
        command.append(<&bson::raw::CStr>::try_from(name).unwrap(), value.into());
        parse(&command).unwrap_err().code
    }

    #[test]
    fn a_find_without_arguments_returns_everything() {
        assert_eq!(parse(&rawdoc! { "find": "c" }).unwrap(), FindCommand::default());
        let nothing = rawdoc! { "find": "c", "sort": {}, "limit": 0, "projection": {}, "filter": {}, "hint": {},
        "min": {}, "tailable": false, "skip": RawBson::Null, "collation": {} };
        assert_eq!(parse(&nothing).unwrap(), FindCommand::default());
    }

    #[test]
    fn every_argument_is_read() {
        let options = parse(&rawdoc! {
            "find": "c", "filter": { "a": 1 }, "projection": { "a": 1 }, "sort": { "t": -1 }, "skip": 2.0,
            "limit": 3_i64, "batchSize": 4, "singleBatch": true, "hint": "t_1", "collation": { "locale": "simple" },
        })
        .unwrap();
        assert!(!options.filter.is_trivial() && !options.projection.is_all());
        assert_eq!(options.sort.unwrap().parts()[0].path.as_str(), "t");
        assert_eq!((options.skip, options.limit, options.batch_size), (2, Some(3), Some(4)));
        assert!(options.single_batch);
        assert_eq!(options.hint, Some(Hint::Name("t_1".into())));
    }

    #[test]
    fn a_hint_is_a_name_a_key_pattern_or_natural() {
        let hint = |hint: RawBson| parse(&rawdoc! { "find": "c", "hint": hint }).map(|options| options.hint);
        let natural = |n: i32| RawBson::Document(rawdoc! { "$natural": n });
        assert_eq!(hint(natural(1)).unwrap(), Some(Hint::Natural { ascending: true }));
        assert_eq!(hint(natural(-1)).unwrap(), Some(Hint::Natural { ascending: false }));
        assert!(matches!(hint(RawBson::Document(rawdoc! { "m": 1, "t": -1 })).unwrap(), Some(Hint::Keys(_))));
        assert_eq!(hint(natural(2)).unwrap_err().code, ErrorCode::BadValue);
        assert_eq!(hint(RawBson::Int32(1)).unwrap_err().code, ErrorCode::FailedToParse);
    }

    #[test]
    fn generic_arguments_are_accepted() {
        let command = rawdoc! {
            "find": "c", "comment": [1], "allowDiskUse": true, "maxTimeMS": 5, "readConcern": {}, "$db": "d", "lsid": {},
            "let": {}, "noCursorTimeout": true, "$readPreference": {}, "apiVersion": "1", "apiStrict": false,
        };
        assert_eq!(parse(&command).unwrap(), FindCommand::default());
    }

    #[test]
    fn wrong_types_are_refused() {
        for name in ["filter", "projection", "sort", "let", "readConcern", "min"] {
            assert_eq!(code(name, 1), ErrorCode::TypeMismatch, "{name}");
        }
        for name in ["skip", "limit", "batchSize", "singleBatch", "allowDiskUse", "txnNumber", "tailable", "$db"] {
            assert_eq!(code(name, rawdoc! {}), ErrorCode::TypeMismatch, "{name}");
        }
    }

    #[test]
    fn negative_numbers_are_refused_and_fractions_truncated() {
        for name in ["skip", "limit", "batchSize"] {
            assert_eq!(code(name, -1), ErrorCode::Location51024);
            assert_eq!(code(name, -1.0), ErrorCode::Location51024);
        }
        assert_eq!(parse(&rawdoc! { "find": "c", "skip": 1.9, "limit": 1e300 }).unwrap().skip, 1);
    }

    #[test]
    fn numbers_of_any_type_are_cast_as_the_server_casts_them_and_other_types_are_refused() {
        let decimal = |text: &str| RawBson::Decimal128(text.parse().unwrap());
        let numbers = [RawBson::Double(f64::NAN), decimal("NaN"), decimal("2.9"), decimal("1E+100"), 1e300.into()];
        let read = numbers.map(|number| {
            let all = rawdoc! { "find": "c", "skip": number.clone(), "limit": number.clone(), "batchSize": number };
            let find = parse(&all).unwrap();
            (find.skip, find.limit, find.batch_size)
        });
        let most = i64::MAX as u64;
        let largest = (most, Some(most), Some(most));
        assert_eq!(read, [(0, None, Some(0)), (0, None, Some(0)), (2, Some(2), Some(2)), largest, largest]);
        for name in ["skip", "limit", "batchSize"] {
            for value in [
                RawBson::String("x".into()),
                RawBson::Boolean(true),
                RawBson::Array(bson::rawbson!([1]).as_array().unwrap().to_owned()),
            ] {
                assert_eq!(code(name, value), ErrorCode::TypeMismatch, "{name}");
            }
        }
    }

    #[test]
    fn options_that_a_time_series_collection_does_not_support_are_refused() {
        for name in ["returnKey", "showRecordId", "tailable", "awaitData"] {
            assert_eq!(code(name, true), ErrorCode::InvalidPipelineOperator);
        }
        assert_eq!(code("min", rawdoc! { "a": 1 }), ErrorCode::InvalidPipelineOperator);
        assert_eq!(code("max", rawdoc! { "a": 1 }), ErrorCode::InvalidPipelineOperator);
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert_eq!(code("fliter", rawdoc! {}), ErrorCode::IDLUnknownField);
        assert_eq!(code("sort", rawdoc! { "a": 2 }), ErrorCode::Location15975);
        assert_eq!(code("projection", rawdoc! { "a": 1, "b": 0 }), ErrorCode::Location31254);
    }
}
