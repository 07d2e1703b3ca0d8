//! Every rule of a bucket, each with a bucket that breaks only this rule.

use std::rc::Rc;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::{BucketFormat, BucketId, Finding, TimeseriesOptions, salvage, validate};
use timepail::error::ErrorCode;
use timepail::storage::memory::MemoryStorage;
use timepail::value::Doc;

use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{Db, Random, TestEnv, checks, raw};

const COUNT_MAX: usize = 1000;

struct Case {
    options: TimeseriesOptions,
    bucket: Document,
}

impl Case {
    /// A bucket of three measurements.
    fn of(version: i32) -> Case {
        Case::with(version, rawdoc! { "timeField": "t", "metaField": "m" })
    }

    fn with(version: i32, timeseries: RawDocumentBuf) -> Case {
        let format = if version == 1 { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(1));
        block_on(async {
            db.ok(rawdoc! { "create": "c", "timeseries": timeseries }).await;
            let row = |ms: i64, x: f64| {
                rawdoc! { "t": DateTime::from_millis(ms), "m": { "a": 1, "b": 2 }, "x": x, "o": { "i": x, "j": [x] } }
            };
            let (first, second) = if version == 3 { (63_000, 61_000) } else { (61_000, 63_000) };
            for rows in [vec![row(first, 1.5)], vec![row(second, 2.5), row(64_000, -1.0)]] {
                db.insert("c", &rows).await;
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            let bucket = checks::buckets(&db, "c").await.remove(0);
            assert_eq!(bucket.get_document("control").unwrap().get_i32("version").unwrap(), version);
            Case { options: checks::options_of(&db, "c").await, bucket }
        })
    }

    fn part(&mut self, path: &str) -> &mut Document {
        path.split('.').fold(&mut self.bucket, |at, name| at.get_document_mut(name).unwrap())
    }

    /// Sets the value at a path; `None` removes it.
    fn set(mut self, path: &str, value: impl Into<Option<Bson>>) -> Case {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = if parent.is_empty() { &mut self.bucket } else { self.part(parent) };
        match value.into() {
            Some(value) => drop(parent.insert(name, value)),
            None => drop(parent.remove(name)),
        }
        self
    }

    fn findings(&self) -> Vec<Finding> {
        findings(&raw(&self.bucket), &self.options, true)
    }

    /// The rule, code and path of the only finding.
    fn breaks(&self) -> (&'static str, ErrorCode, String) {
        only(self.findings())
    }
}

fn findings(bucket: &RawDocumentBuf, options: &TimeseriesOptions, full: bool) -> Vec<Finding> {
    validate(Doc::parse(bucket.as_bytes()).unwrap(), options, full, COUNT_MAX)
}

fn only(mut findings: Vec<Finding>) -> (&'static str, ErrorCode, String) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    (finding.rule.name, finding.rule.code, finding.path)
}

fn date(ms: i64) -> Bson {
    Bson::DateTime(DateTime::from_millis(ms))
}

fn id_of(seconds: u32) -> Bson {
    let mut bytes = [7; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    Bson::ObjectId(ObjectId::from_bytes(bytes))
}

/// A column whose bytes were changed.
fn column(bucket: &Document, name: &str, change: impl Fn(&mut Vec<u8>)) -> Bson {
    let Bson::Binary(binary) = &bucket.get_document("data").unwrap()[name] else { panic!("{bucket}") };
    let mut bytes = binary.bytes.clone();
    change(&mut bytes);
    Bson::Binary(Binary { subtype: BinarySubtype::Column, bytes })
}

fn broken(rule: &'static str, code: ErrorCode, path: &str) -> (&'static str, ErrorCode, String) {
    (rule, code, path.to_owned())
}

#[test]
fn a_good_bucket_of_each_version_breaks_no_rule() {
    for version in 1..=3 {
        assert_eq!(Case::of(version).findings(), []);
    }
}

#[test]
fn b1_a_bucket_has_exactly_the_fields_of_a_bucket() {
    let cases: [(&str, Option<Bson>); 12] = [
        ("_id", Some(7.into())),
        ("control", None),
        ("control.min", Some(7.into())),
        ("control.max", None),
        ("control.min.t", Some(7.into())),
        ("control.max.t", None),
        ("control.extra", Some(7.into())),
        ("control.closed", Some(1.into())),
        ("control.count", Some(0.into())),
        ("control.version", None),
        ("data", Some(7.into())),
        ("extra", Some(7.into())),
    ];
    for (path, value) in cases {
        for version in 1..=3 {
            let found = Case::of(version).set(path, value.clone()).breaks();
            assert_eq!(found, broken("B1", ErrorCode::DocumentValidationFailure, ""), "{path}");
        }
    }
    let without_meta = Case::with(2, rawdoc! { "timeField": "t" }).set("meta", Bson::from(1));
    assert_eq!(without_meta.breaks().0, "B1");
}

#[test]
fn b2_the_version_is_1_2_or_3() {
    for (version, other) in [(1, 0), (2, 4), (3, -1)] {
        let found = Case::of(version).set("control.version", Bson::from(other)).breaks();
        assert_eq!(found, broken("B2", ErrorCode::BadValue, "control.version"));
    }
}

#[test]
fn b3_the_id_has_the_start_unless_it_is_outside_the_standard_range() {
    for version in 1..=3 {
        assert_eq!(Case::of(version).set("_id", id_of(61)).breaks(), broken("B3", ErrorCode::InvalidIdField, "_id"));
    }
    let mut early = Case::of(1).set("control.min.t", date(-60_000)).set("control.max.t", date(-1000));
    for (row, ms) in [-50_000, -40_000, -1000].into_iter().enumerate() {
        early = early.set(&format!("data.t.{row}"), date(ms));
    }
    assert_eq!(early.findings(), []);
}

#[test]
fn b4_a_bucket_is_no_longer_than_its_span() {
    for version in 1..=3 {
        let mut case = Case::of(version);
        case.options.span_seconds = 5;
        assert_eq!(case.findings(), []);
        case.options.span_seconds = 4;
        assert_eq!(case.breaks(), broken("B4", ErrorCode::BadValue, "control.max"));
    }
}

#[test]
fn b5_no_field_occurs_twice() {
    for (part, path) in [("data", "data.x"), ("min", "control.min.x"), ("max", "control.max.x")] {
        for version in 1..=3 {
            let case = Case::of(version);
            let bytes = twice(&case.bucket, part);
            assert_eq!(only(findings(&bytes, &case.options, true)), broken("B5", ErrorCode::BadValue, path));
        }
    }
}

/// The bucket with the field `x` of one part written twice.
fn twice(bucket: &Document, part: &str) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    for (name, value) in bucket {
        let again = name == part;
        let value = match value {
            Bson::Document(inner) if again || name == "control" => {
                let mut doubled = twice(inner, part);
                if again {
                    doubled.append(bson::cstr!("x"), bson::RawBson::try_from(inner["x"].clone()).unwrap());
                }
                doubled.into()
            }
            other => bson::RawBson::try_from(other.clone()).unwrap(),
        };
        out.append(bson::raw::CString::try_from(name.as_str()).unwrap(), value);
    }
    out
}

#[test]
fn b6_columns_and_summaries_have_the_same_fields() {
    for version in 1..=3 {
        for path in ["control.min.x", "control.max.o"] {
            assert_eq!(Case::of(version).set(path, None).breaks(), broken("B6", ErrorCode::BadValue, path));
        }
        // Without the column, both summaries have a field too many.
        let found = Case::of(version).set("data.x", None).findings();
        let paths: Vec<_> = found.iter().map(|finding| (finding.rule.name, &*finding.path)).collect();
        assert_eq!(paths, [("B6", "control.min.x"), ("B6", "control.max.x")]);
    }
}

#[test]
fn b7_the_time_column_exists_and_is_not_empty() {
    for version in 1..=3 {
        assert_eq!(Case::of(version).set("data.t", None).breaks(), broken("B7", ErrorCode::BadValue, "data"));
    }
    let empty = Case::of(1).set("data", Bson::from(doc! { "t": {} }));
    assert!(empty.findings().iter().any(|finding| finding.rule.name == "B7" && finding.path == "data.t"));
}

#[test]
fn b8_columns_are_objects_in_version_1_and_compressed_in_2_and_3() {
    let plain = Case::of(1);
    let compressed = Case::of(2);
    for name in ["t", "x"] {
        let path = format!("data.{name}");
        let wrong = [
            Case::of(1).set(&path, compressed.bucket.get_document("data").unwrap()[name].clone()),
            Case::of(2).set(&path, plain.bucket.get_document("data").unwrap()[name].clone()),
            Case::of(3).set(&path, Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![0] })),
            Case::of(2).set(&path, Bson::from("text")),
        ];
        for case in wrong {
            assert_eq!(case.breaks(), broken("B8", ErrorCode::TypeMismatch, &path));
        }
    }
}

#[test]
fn b9_the_time_keys_of_version_1_count_from_zero() {
    for keys in [["0", "1", "3"], ["1", "2", "3"], ["0", "2", "1"], ["0", "1", "x"]] {
        let times: Document =
            keys.iter().zip([61_000, 63_000, 64_000]).map(|(k, ms)| (k.to_string(), date(ms))).collect();
        let found = Case::of(1).set("data.t", Bson::from(times)).breaks();
        assert_eq!(found, broken("B9", ErrorCode::BadValue, "data.t"), "{keys:?}");
    }
}

#[test]
fn b10_the_keys_of_other_columns_of_version_1_ascend_and_exist_in_the_time_column() {
    for keys in [["1", "0"], ["0", "3"], ["0", "-1"], ["0", "01"], ["0", "x"]] {
        let cells: Document = keys.iter().map(|k| (k.to_string(), Bson::from(1.0))).collect();
        let found = Case::of(1).set("data.x", Bson::from(cells)).breaks();
        assert_eq!(found, broken("B10", ErrorCode::BadValue, "data.x"), "{keys:?}");
    }
}

#[test]
fn b11_the_count_equals_the_length_of_every_column() {
    assert_eq!(
        Case::of(1).set("control.count", Bson::from(3)).breaks(),
        broken("B11", ErrorCode::BadValue, "control.count")
    );
    for version in [2, 3] {
        for count in [None, Some(Bson::from(2)), Some(Bson::from(4))] {
            let found = Case::of(version).set("control.count", count).breaks();
            assert_eq!(found, broken("B11", ErrorCode::BadValue, "control.count"));
        }
        let case = Case::of(version);
        // Only the literal of the first row, then the end.
        let short = column(&case.bucket, "x", |bytes| {
            bytes.truncate(10);
            bytes.push(0);
        });
        assert_eq!(case.set("data.x", short).breaks(), broken("B11", ErrorCode::BadValue, "data.x"));
    }
}

#[test]
fn b12_every_time_is_a_date() {
    assert_eq!(Case::of(1).set("data.t.1", Bson::from(1)).breaks(), broken("B12", ErrorCode::BadValue, "data.t"));
    for version in [2, 3] {
        let case = Case::of(version);
        let numbers = case.bucket.get_document("data").unwrap()["x"].clone();
        assert_eq!(case.set("data.t", numbers).breaks(), broken("B12", ErrorCode::BadValue, "data.t"));
    }
}

#[test]
fn b13_and_b14_the_version_says_whether_rows_are_in_order() {
    let case = Case::of(3).set("control.version", Bson::from(2));
    assert_eq!(case.breaks(), broken("B13", ErrorCode::BadValue, "control.version"));
    let case = Case::of(2).set("control.version", Bson::from(3));
    assert_eq!(case.breaks(), broken("B14", ErrorCode::BadValue, "control.version"));
}

#[test]
fn b15_columns_decompress() {
    for version in [2, 3] {
        for name in ["t", "x", "o"] {
            let case = Case::of(version);
            let cut = column(&case.bucket, name, |bytes| {
                let _ = bytes.pop();
            });
            let path = format!("data.{name}");
            assert_eq!(case.set(&path, cut).breaks(), broken("B15", ErrorCode::InvalidBSON, &path));
        }
    }
}

#[test]
fn b16_no_measurement_is_before_the_start_and_the_latest_is_the_maximum_time() {
    for version in 1..=3 {
        for ms in [63_999, 64_001] {
            let found = Case::of(version).set("control.max.t", date(ms)).breaks();
            assert_eq!(found, broken("B16", ErrorCode::BadValue, "control.max"));
        }
        let late = Case::of(version).set("control.min.t", date(62_000)).set("_id", id_of(62));
        assert_eq!(late.breaks(), broken("B16", ErrorCode::BadValue, "control.min"));
    }
}

#[test]
fn b17_summaries_match_the_rows() {
    for version in 1..=3 {
        let wrong = [
            ("control.min.x", Bson::from(-1.5)),
            ("control.max.x", Bson::from(2.4)),
            ("control.max.x", Bson::from("text")),
            ("control.min.o", Bson::from(doc! { "i": -1.0 })),
            ("control.max.o", Bson::from(doc! { "i": 2.5, "j": [2.5], "k": 1 })),
        ];
        for (path, value) in wrong {
            let broken_rules: Vec<_> = Case::of(version)
                .set(path, value)
                .findings()
                .into_iter()
                .filter(|finding| finding.rule.name != "B22")
                .map(|finding| (finding.rule.name, finding.path))
                .collect();
            let field = path.splitn(3, '.').take(3).collect::<Vec<_>>().join(".");
            assert_eq!(broken_rules, [("B17", field)]);
        }
        // Another order of fields and another type of an equal number are allowed.
        let same = Case::of(version)
            .set("control.min.x", Bson::from(-1))
            .set("control.max.o", Bson::from(doc! { "j": [2.5], "i": 2.5 }));
        assert_eq!(same.findings(), []);
    }
}

#[test]
fn b18_with_fixed_buckets_the_start_is_a_multiple_of_the_rounding() {
    let fixed = rawdoc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60 };
    for version in 1..=3 {
        assert_eq!(Case::with(version, fixed.clone()).findings(), []);
        let case = Case::with(version, fixed.clone()).set("control.min.t", date(61_000)).set("_id", id_of(61));
        assert_eq!(case.breaks(), broken("B18", ErrorCode::BadValue, "control.min"));
    }
}

#[test]
fn b19_another_rounding_of_the_start_is_a_warning() {
    for version in 1..=3 {
        let case = Case::of(version).set("control.min.t", date(61_000)).set("_id", id_of(61));
        assert!(case.findings()[0].rule.warns);
        assert_eq!(case.breaks(), broken("B19", ErrorCode::BadValue, "control.min"));
    }
}

#[test]
fn b21_a_bucket_fits_into_a_document() {
    let text = "x".repeat(6 << 20);
    let mut case = Case::of(1).set("data.s", Bson::from(doc! { "0": &text }));
    for side in ["min", "max"] {
        case = case.set(&format!("control.{side}.s"), Bson::from(&text));
    }
    assert_eq!(case.breaks(), broken("B21", ErrorCode::BSONObjectTooLarge, ""));
}

#[test]
fn b22_several_types_at_one_path_are_a_warning() {
    let mixed = Case::of(1)
        .set("data.x", Bson::from(doc! { "0": 1, "1": "text" }))
        .set("control.min.x", Bson::from(1))
        .set("control.max.x", Bson::from("text"));
    assert!(mixed.findings()[0].rule.warns);
    assert_eq!(mixed.breaks(), broken("B22", ErrorCode::CannotInsertTimeseriesBucketsWithMixedSchema, "control"));
}

#[test]
fn too_many_measurements_and_unsorted_metadata_are_warnings() {
    for version in 1..=3 {
        let bucket = raw(&Case::of(version).bucket);
        let options = Case::of(version).options;
        let found = validate(Doc::parse(bucket.as_bytes()).unwrap(), &options, true, 2);
        assert!(found[0].rule.warns);
        assert_eq!(only(found).0, "COUNT");
        let case = Case::of(version).set("meta", Bson::from(doc! { "b": 1, "a": 1 }));
        assert!(case.findings()[0].rule.warns);
        assert_eq!(case.breaks(), broken("META", ErrorCode::BadValue, "meta"));
    }
}

#[test]
fn compressed_columns_are_decoded_only_by_a_full_check() {
    let case = Case::of(2);
    let cut = column(&case.bucket, "x", |bytes| {
        let _ = bytes.pop();
    });
    let case = case.set("data.x", cut);
    assert_eq!(findings(&raw(&case.bucket), &case.options, false), []);
    assert_eq!(case.breaks().0, "B15");
    // Uncompressed columns are cheap to check.
    let case = Case::of(1).set("control.min.x", Bson::from(0.0));
    assert_eq!(only(findings(&raw(&case.bucket), &case.options, false)).0, "B17");
}

/// Changes bytes of a bucket, mostly inside its columns. `None` if the result is no document.
fn damaged(bucket: &RawDocumentBuf, random: &Random) -> Option<RawDocumentBuf> {
    let mut bytes = bucket.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = match random.below(3) {
            0 => bytes[at] ^ (1 << random.below(8)),
            1 => bytes[at].wrapping_add(1),
            _ => random.below(256) as u8,
        };
    }
    Doc::parse(&bytes).is_ok().then(|| RawDocumentBuf::from_bytes(bytes).unwrap())
}

#[test]
fn both_checkers_agree_on_damaged_buckets_and_a_repair_is_valid() {
    let (mut judged, mut kept, mut good) = (0, 0, 0);
    for version in 1..=3 {
        let case = Case::of(version);
        let bytes = raw(&case.bucket);
        for seed in 0..20_000 {
            let random = Random::new(seed);
            let Some(bucket) = damaged(&bytes, &random) else { continue };
            judged += 1;
            let found = findings(&bucket, &case.options, true);
            let errors = found.iter().filter(|finding| !finding.rule.warns).count();
            // A bucket with a duplicate field differs after a round trip.
            if let Ok(document) = Document::try_from(&bucket)
                && raw(&document) == bucket
            {
                let other = measurements_of_valid(&document, &case.options, Writers::Several);
                if other.is_ok() {
                    good += 1;
                    assert_eq!(errors, 0, "{other:?} {found:?}");
                }
                if found.is_empty() {
                    assert!(other.is_ok(), "{other:?}");
                }
            }
            let id = BucketId::from_bytes(case.bucket.get_object_id("_id").unwrap().bytes());
            let doc = Doc::parse(bucket.as_bytes()).unwrap();
            for format in [BucketFormat::Uncompressed, BucketFormat::Compressed] {
                let Some(salvaged) = salvage(doc, &id, format, &case.options) else { continue };
                kept += 1;
                let again = validate(salvaged.document.view(), &case.options, true, COUNT_MAX);
                assert!(again.iter().all(|finding| finding.rule.warns), "{again:?} of {found:?}");
                assert!((1..=3).contains(&salvaged.rows) || errors > 0);
            }
        }
    }
    assert!(judged > 10_000 && kept > 10_000 && good > 100, "{judged} {kept} {good}");
}
