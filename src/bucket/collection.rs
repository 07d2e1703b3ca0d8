//! The options of a collection: parsing `create`, showing and storing the options, comparing two sets of them.

use super::dedupe::Dedupe;
use super::options::{TimeseriesArguments, TimeseriesOptions, is_nothing, safe_integer, wrong_type};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind, Value};

/// Arguments that any command may carry and that `create` ignores.
const GENERIC_ARGUMENTS: [&str; 14] = [
    "$db",
    "collectionUUID",
    "lsid",
    "txnNumber",
    "$clusterTime",
    "readConcern",
    "writeConcern",
    "$readPreference",
    "maxTimeMS",
    "opKey",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
];

/// Options of other kinds of collections.
const FOREIGN_OPTIONS: [&str; 13] = [
    "capped",
    "autoIndexId",
    "idIndex",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "encryptedFields",
];

/// All options of a time-series collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionOptions {
    /// Fields and bucketing.
    pub timeseries: TimeseriesOptions,
    /// Age at which whole buckets are deleted.
    pub expire_after_seconds: Option<i64>,
    /// Size of all buckets in bytes beyond which the oldest are deleted. Specific to timepail.
    pub max_bytes: Option<i64>,
    /// Which rows are one measurement. Specific to timepail.
    pub dedupe: Option<Dedupe>,
    /// The collation as given; after `collate`, with defaults filled in, or absent if it is the simple one.
    pub collation: Option<DocBuf>,
}

/// The arguments of `create`, with only their types checked.
#[derive(Default)]
struct CreateArguments<'a> {
    timeseries: Option<TimeseriesArguments>,
    expire_after_seconds: Option<(i64, Value<'a>)>,
    /// 0 removes the limit.
    max_bytes: Option<i64>,
    dedupe: Option<Dedupe>,
    collation: Option<DocBuf>,
    foreign: Option<&'a str>,
    /// True if expiry is removed.
    expires_never: bool,
    /// True if `dedupe` is removed.
    dedupes_never: bool,
}

impl<'a> CreateArguments<'a> {
    /// An existing collection's fields are known.
    fn parse(fields: Doc<'a>, first: usize, is_new: bool) -> Result<CreateArguments<'a>> {
        let mut arguments = CreateArguments::default();
        for (name, value) in fields.iter().skip(first) {
            let doc = || value.as_doc().ok_or_else(|| wrong_type(name, value, "object"));
            match name {
                _ if FOREIGN_OPTIONS.contains(&name) => {
                    arguments.foreign.get_or_insert(name);
                }
                _ if GENERIC_ARGUMENTS.contains(&name) || is_nothing(value) && is_known(name) => {}
                "timeseries" => arguments.timeseries = Some(TimeseriesArguments::parse(doc()?, is_new)?),
                "dedupe" if !is_new && value.as_str() == Some("off") => arguments.dedupes_never = true,
                "dedupe" => arguments.dedupe = Some(Dedupe::parse(doc()?)?),
                "collation" => arguments.collation = Some(doc()?.to_owned()),
                "expireAfterSeconds" if !is_new && value.as_str() == Some("off") => arguments.expires_never = true,
                "expireAfterSeconds" if !is_new && value.kind() == Kind::String => {
                    return Err(Error::invalid_options("'expireAfterSeconds' must be a number or 'off'"));
                }
                "expireAfterSeconds" => {
                    let n = safe_integer(value).ok_or_else(|| wrong_type(name, value, "number"))?;
                    arguments.expire_after_seconds = Some((n, value));
                }
                "maxBytes" if !is_new && value.as_str() == Some("off") => arguments.max_bytes = Some(0),
                "maxBytes" => {
                    let refuse =
                        || Error::invalid_options(format!("'maxBytes' must be a number above 0, not {value:?}"));
                    arguments.max_bytes = Some(safe_integer(value).filter(|n| *n > 0).ok_or_else(refuse)?);
                }
                // Accepted, so that commands written for a server run, but ignored and not stored: there is nothing to
                // configure.
                "storageEngine" | "indexOptionDefaults" => {
                    doc()?;
                }
                // What `create` itself looks at.
                "ifExists" if is_new => {}
                "temp" => {
                    value.as_truthy().ok_or_else(|| wrong_type(name, value, "bool"))?;
                }
                "index" | "recordPreImages" | "cappedSize" | "cappedMax" if !is_new => arguments.foreign = Some(name),
                _ => return Err(Error::unknown_field(if is_new { "create" } else { "collMod" }, name)),
            }
        }
        Ok(arguments)
    }

    /// `now_ms` is absent if the options come from storage: by another clock, an age that was valid may reach back
    /// before 1970.
    fn resolve(self, now_ms: Option<i64>) -> Result<CollectionOptions> {
        let Some(timeseries) = self.timeseries else {
            return Err(Error::invalid_options(
                "'timeseries' is missing: only time-series collections can be created here",
            ));
        };
        if let Some(name) = self.foreign {
            return Err(Error::invalid_options(format!("'{name}' is not allowed together with 'timeseries'")));
        }
        let mut timeseries = timeseries.resolve()?;
        // Buckets begin where rows were divided.
        timeseries.rebucketed = self.dedupe.is_some();
        if let Some((seconds, value)) = self.expire_after_seconds {
            check_expire_after(seconds, value, now_ms)?;
        }
        let expire_after_seconds = self.expire_after_seconds.map(|(seconds, _)| seconds);
        if let Some(dedupe) = &self.dedupe {
            dedupe.check(&timeseries.time_field, timeseries.meta_field.as_deref())?;
        }
        let (max_bytes, dedupe, collation) = (self.max_bytes, self.dedupe, self.collation);
        Ok(CollectionOptions { timeseries, expire_after_seconds, max_bytes, dedupe, collation })
    }
}

fn is_known(name: &str) -> bool {
    [
        "timeseries",
        "collation",
        "expireAfterSeconds",
        "maxBytes",
        "dedupe",
        "storageEngine",
        "indexOptionDefaults",
        "temp",
    ]
    .contains(&name)
}

/// A whole number of seconds that, counted back from now, does not reach before the epoch.
fn check_expire_after(seconds: i64, value: Value<'_>, now_ms: Option<i64>) -> Result<()> {
    let refuse = |why: &str| Err(Error::invalid_options(format!("'expireAfterSeconds' {why}: {value:?}")));
    if seconds < 0 {
        return refuse("cannot be less than 0");
    }
    if seconds > i64::MAX / 1000 {
        return refuse("is too large to be counted in milliseconds");
    }
    if now_ms.is_some_and(|now| seconds > now.div_euclid(1000)) {
        return refuse("would reach back before 1970");
    }
    Ok(())
}

impl CollectionOptions {
    /// Parses the options of a `create` command. Ignores the first field, the name of the collection.
    ///
    /// Errors: 14, 2, 40414, 40415 if an argument does not parse; `InvalidOptions` if the arguments contradict each
    /// other, belong to other kinds of collections, or lack `timeseries`.
    pub fn parse_create(command: Doc<'_>, now_ms: i64) -> Result<CollectionOptions> {
        CreateArguments::parse(command, 1, true)?.resolve(Some(now_ms))
    }

    /// The options after a `collMod` command. Ignores the first field, the name of the collection.
    ///
    /// Errors: 14, 2, 40415 if an argument does not parse; `InvalidOptions` if it belongs to other kinds of
    /// collections, or asks for a change that is not possible.
    pub fn modified(&self, command: Doc<'_>, now_ms: i64) -> Result<CollectionOptions> {
        let arguments = CreateArguments::parse(command, 1, false)?;
        if let Some(name) = arguments.foreign.or(arguments.collation.as_ref().map(|_| "collation")) {
            return Err(Error::invalid_options(format!("'{name}' cannot be changed on a time-series collection")));
        }
        let mut new = self.clone();
        if let Some((seconds, value)) = arguments.expire_after_seconds {
            check_expire_after(seconds, value, Some(now_ms))?;
            new.expire_after_seconds = Some(seconds);
        }
        if arguments.expires_never {
            new.expire_after_seconds = None;
        }
        new.max_bytes = arguments.max_bytes.or(new.max_bytes).filter(|bytes| *bytes > 0);
        let changes_others =
            arguments.expires_never || arguments.expire_after_seconds.is_some() || arguments.max_bytes.is_some();
        let changes_dedupe = arguments.dedupes_never || arguments.dedupe.is_some();
        if changes_dedupe {
            if changes_others || arguments.timeseries.is_some() {
                return Err(Error::invalid_options("'dedupe' cannot be combined with other changes"));
            }
            if let Some(dedupe) = &arguments.dedupe {
                dedupe.check(&self.timeseries.time_field, self.timeseries.meta_field.as_deref())?;
            }
            new.dedupe = arguments.dedupe;
            // Buckets begin, or have begun, where rows were divided.
            new.timeseries.rebucketed |= self.dedupe.is_some() || new.dedupe.is_some();
            return Ok(new);
        }
        if let Some(timeseries) = arguments.timeseries {
            if changes_others {
                return Err(Error::invalid_options("'timeseries' cannot be combined with other changes"));
            }
            new.timeseries = self.timeseries.modified(timeseries)?;
            if self.dedupe.is_some() && new.timeseries.span_seconds % self.timeseries.span_seconds != 0 {
                return Err(Error::invalid_options(
                    "With 'dedupe', 'bucketMaxSpanSeconds' can only become a multiple of what it is",
                ));
            }
        }
        Ok(new)
    }

    /// The options as `listCollections` shows them, which is also how they are stored.
    pub fn to_doc(&self) -> DocBuf {
        let mut writer = DocWriter::new();
        writer.begin_doc("timeseries");
        self.timeseries.write(&mut writer);
        writer.end();
        if let Some(seconds) = self.expire_after_seconds {
            writer.int64("expireAfterSeconds", seconds);
        }
        if let Some(bytes) = self.max_bytes {
            writer.int64("maxBytes", bytes);
        }
        if let Some(dedupe) = &self.dedupe {
            dedupe.write(&mut writer);
        }
        if let Some(collation) = &self.collation {
            writer.doc("collation", collation.view());
        }
        writer.finish()
    }

    /// Stored options.
    ///
    /// Errors: `DataCorruptionDetected` if `to_doc` did not write them.
    pub fn from_doc(doc: Doc<'_>) -> Result<CollectionOptions> {
        CreateArguments::parse(doc, 0, true)
            .and_then(|arguments| arguments.resolve(None))
            .map_err(|error| Error::corrupt(format!("Stored collection options are damaged: {}", error.message)))
    }

    /// Fills in the defaults of the collation and builds its collator.
    ///
    /// Errors: as `Collation::parse`.
    pub fn collate(&mut self, env: &dyn Env) -> Result<()> {
        if let Some(collation) = &self.collation {
            // Loaded by now: the door awaits it to create a collection, `CollectionEntry::prepare` to use one.
            let collation = Collation::parse(collation.view(), env)?;
            self.collation = collation.options().map(Doc::to_owned);
            self.timeseries.collation = collation;
        }
        Ok(())
    }

    /// True if creating one over the other changes nothing.
    pub fn same_as(&self, other: &CollectionOptions) -> bool {
        self.timeseries.same_as(&other.timeseries)
            && self.expire_after_seconds == other.expire_after_seconds
            && self.max_bytes == other.max_bytes
            && self.dedupe == other.dedupe
            && self.collation == other.collation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::fixed::FixedEnv;
    use crate::error::ErrorCode;
    use bson::{RawDocumentBuf, rawdoc};

    const NOW_MS: i64 = 1_700_000_000_000;

    fn create(command: &RawDocumentBuf) -> Result<CollectionOptions> {
        let mut options = CollectionOptions::parse_create(Doc::parse(command.as_bytes()).unwrap(), NOW_MS)?;
        options.collate(&FixedEnv::default())?;
        Ok(options)
    }

    fn code(command: RawDocumentBuf) -> ErrorCode {
        create(&command).unwrap_err().code
    }

    fn shown(command: RawDocumentBuf) -> RawDocumentBuf {
        let options = create(&command).unwrap();
        let stored = options.to_doc();
        let mut again = CollectionOptions::from_doc(stored.view()).unwrap();
        again.collate(&FixedEnv::default()).unwrap();
        assert_eq!(again, options);
        RawDocumentBuf::from_bytes(stored.into_bytes()).unwrap()
    }

    #[test]
    fn options_are_listed_with_defaults_and_parse_back_to_the_same() {
        assert_eq!(
            shown(rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "$db": "d" }),
            rawdoc! { "timeseries": { "timeField": "t", "granularity": "seconds", "bucketMaxSpanSeconds": 3600 } }
        );
        assert_eq!(
            shown(
                rawdoc! { "create": "c", "expireAfterSeconds": 60.0, "collation": { "locale": "de" }, "timeseries": {
                "timeField": "t", "metaField": "m", "bucketRoundingSeconds": 900, "bucketMaxSpanSeconds": 900.0 } }
            ),
            rawdoc! {
                "timeseries": {
                    "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 900, "bucketRoundingSeconds": 900
                },
                "expireAfterSeconds": 60_i64,
                "collation": {
                    "locale": "de", "caseLevel": false, "caseFirst": "off", "strength": 3, "numericOrdering": false,
                    "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false,
                },
            }
        );
    }

    #[test]
    fn options_without_effect_and_generic_arguments_are_accepted() {
        let options = create(&rawdoc! {
            "create": "c", "timeseries": { "timeField": "t", "metaField": null }, "storageEngine": {}, "temp": false,
            "indexOptionDefaults": {}, "collation": { "locale": "simple" }, "writeConcern": { "w": 1 }, "comment": 1,
            "maxTimeMS": 5, "lsid": {}, "txnNumber": 1_i64, "$clusterTime": {}, "readConcern": {}, "$readPreference": {},
            "apiVersion": "1", "apiStrict": true, "apiDeprecationErrors": true, "expireAfterSeconds": null, "$db": "d",
        });
        let options = options.unwrap();
        assert_eq!(
            (options.collation, options.expire_after_seconds, options.timeseries.meta_field),
            (None, None, None)
        );
    }

    #[test]
    fn options_of_other_kinds_of_collection_are_refused() {
        for name in FOREIGN_OPTIONS {
            for value in [bson::RawBson::Boolean(true), bson::RawBson::Boolean(false)] {
                let mut command = rawdoc! { "create": "c", "timeseries": { "timeField": "t" } };
                command.append(bson::raw::CString::try_from(name).unwrap(), value);
                assert_eq!(code(command), ErrorCode::InvalidOptions, "{name}");
            }
        }
    }

    #[test]
    fn a_collection_without_timeseries_is_refused() {
        for command in [
            rawdoc! { "create": "c" },
            rawdoc! { "create": "c", "timeseries": null },
            rawdoc! { "create": "c", "viewOn": "d", "pipeline": [] },
            rawdoc! { "create": "c", "expireAfterSeconds": 5 },
        ] {
            let error = create(&command).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidOptions);
            assert!(error.message.contains("only time-series collections"), "{error}");
        }
    }

    #[test]
    fn arguments_of_the_wrong_type_and_unknown_ones_have_the_servers_codes() {
        assert_eq!(code(rawdoc! { "create": "c", "timeseries": "" }), ErrorCode::TypeMismatch);
        let with = |name: &str, value: bson::RawBson| {
            let mut command = rawdoc! { "create": "c", "timeseries": { "timeField": "t" } };
            command.append(bson::raw::CString::try_from(name).unwrap(), value);
            code(command)
        };
        assert_eq!(with("expireAfterSeconds", "".into()), ErrorCode::TypeMismatch);
        assert_eq!(with("collation", 1.into()), ErrorCode::TypeMismatch);
        assert_eq!(with("collation", rawdoc! {}.into()), ErrorCode::IDLFailedToParse);
        assert_eq!(with("collation", rawdoc! { "locale": 1 }.into()), ErrorCode::TypeMismatch);
        assert_eq!(with("storageEngine", 1.into()), ErrorCode::TypeMismatch);
        assert_eq!(with("indexOptionDefaults", "".into()), ErrorCode::TypeMismatch);
        assert_eq!(with("temp", "".into()), ErrorCode::TypeMismatch);
        assert_eq!(with("nope", 1.into()), ErrorCode::IDLUnknownField);
    }

    #[test]
    fn expire_after_seconds_must_be_positive_and_must_not_reach_before_the_epoch() {
        let age = |seconds: bson::RawBson| {
            create(&rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": seconds })
                .map(|options| options.expire_after_seconds)
                .map_err(|error| error.code)
        };
        assert_eq!(age(0.into()), Ok(Some(0)));
        assert_eq!(age((NOW_MS / 1000).into()), Ok(Some(NOW_MS / 1000)));
        for refused in
            [(-10_i64).into(), (1_i64 << 62).into(), (NOW_MS / 1000 + 1).into(), 1e300.into(), i64::MIN.into()]
        {
            assert_eq!(age(refused), Err(ErrorCode::InvalidOptions));
        }
    }

    #[test]
    fn max_bytes_must_be_a_positive_number_and_is_stored() {
        let bound = |bytes: bson::RawBson| {
            let stored = create(&rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "maxBytes": bytes })
                .map_err(|error| error.code)?
                .to_doc();
            Ok(CollectionOptions::from_doc(stored.view()).unwrap().max_bytes)
        };
        assert_eq!(bound(1.into()), Ok(Some(1)));
        assert_eq!(bound(1e9.into()), Ok(Some(1_000_000_000)));
        assert_eq!(bound(bson::RawBson::Null), Ok(None));
        for refused in [0.into(), (-1).into(), 0.5.into(), f64::NAN.into(), "1".into(), true.into()] {
            assert_eq!(bound(refused), Err(ErrorCode::InvalidOptions));
        }
    }

    #[test]
    fn types_are_checked_before_other_options_and_these_before_field_names() {
        assert_eq!(
            code(rawdoc! { "create": "c", "capped": true, "timeseries": { "timeField": 1 } }),
            ErrorCode::TypeMismatch
        );
        let error =
            create(&rawdoc! { "create": "c", "capped": true, "timeseries": { "timeField": "a.b" } }).unwrap_err();
        assert!(error.message.contains("'capped'"), "{error}");
        let error = create(
            &rawdoc! { "create": "c", "expireAfterSeconds": -1, "timeseries": { "timeField": "t", "metaField": "t" } },
        );
        assert!(error.unwrap_err().message.contains("'metaField'"));
    }

    #[test]
    fn the_same_options_again_are_recognised() {
        let one =
            create(&rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": 5 }).unwrap();
        let again = create(&rawdoc! {
        "create": "c", "expireAfterSeconds": 5.0, "timeseries": { "timeField": "t", "granularity": "seconds" } });
        assert!(one.same_as(&again.unwrap()));
        for other in [
            rawdoc! { "create": "c", "timeseries": { "timeField": "t" } },
            rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": 6 },
            rawdoc! { "create": "c", "timeseries": { "timeField": "u" }, "expireAfterSeconds": 5 },
            rawdoc! { "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": 5, "maxBytes": 9 },
            rawdoc! {
                "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": 5, "collation": { "locale": "de" }
            },
        ] {
            assert!(!one.same_as(&create(&other).unwrap()));
        }
    }

    #[test]
    fn damaged_stored_options_are_reported_as_such() {
        for doc in [rawdoc! {}, rawdoc! { "timeseries": { "timeField": 1 } }, rawdoc! { "x": 1 }] {
            let error = CollectionOptions::from_doc(Doc::parse(doc.as_bytes()).unwrap()).unwrap_err();
            assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
        }
    }
}
