//! Collations: what they apply to, which one a query uses, and which ones exist.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawBson, RawDocumentBuf, doc, rawbson, rawdoc};
use futures::executor::block_on;
use proptest::prelude::*;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;
use timepail::value::{Collation, Doc};

use crate::support::checks::sound_when_folded;
use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, raw, take_rows};

fn strength(n: i32) -> RawDocumentBuf {
    rawdoc! { "locale": "fr", "strength": n }
}

/// Measurements of one series, with `n` ascending in time order.
fn rows_of(field: &str, values: &[RawBson]) -> Vec<RawDocumentBuf> {
    let row = |(n, value): (usize, &RawBson)| {
        let mut row = rawdoc! { "at": DateTime::from_millis(n as i64 * 1000), "n": n as i32 };
        row.append(bson::raw::CString::try_from(field).unwrap(), value.clone());
        row
    };
    values.iter().enumerate().map(row).collect()
}

fn texts(values: &[&str]) -> Vec<RawBson> {
    values.iter().map(|text| RawBson::String((*text).to_owned())).collect()
}

/// A collection `c` in each stored form: in the journal, in buckets of version 1, 2 and 3, and read by
/// a context that was opened later.
async fn in_every_form(collation: Option<RawDocumentBuf>, rows: &[RawDocumentBuf], check: impl AsyncFn(&Db, &str)) {
    for form in ["journal", "version 1", "version 2", "version 3", "reopened"] {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let format = if form == "version 1" { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let mut db = Db::open_as(format, storage.clone(), env.clone());
        let mut create = rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" } };
        if let Some(collation) = &collation {
            create.append(bson::cstr!("collation"), collation.clone());
        }
        db.ok(create).await;
        if form == "version 3" {
            // Later rows first, with a fold after each.
            for row in rows.iter().rev() {
                db.insert("c", std::slice::from_ref(row)).await;
                db.ok(rawdoc! { "flush": 1 }).await;
            }
        } else {
            assert_eq!(db.insert("c", rows).await.get_i32("n").unwrap() as usize, rows.len());
        }
        if form != "journal" {
            db.ok(rawdoc! { "flush": 1 }).await;
            sound_when_folded(&*storage, &db, "c", Writers::One).await;
        }
        if form == "reopened" {
            db = Db::open(storage, env);
        }
        check(&db, form).await;
    }
}

/// The `n` of every match, in order of time.
async fn found(db: &Db, filter: RawDocumentBuf, collation: Option<RawDocumentBuf>) -> Vec<i32> {
    let mut command = rawdoc! { "find": "c", "filter": filter, "sort": { "at": 1 } };
    if let Some(collation) = collation {
        command.append(bson::cstr!("collation"), collation);
    }
    db.find(command).await.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

#[test]
fn the_strength_of_a_collation_decides_what_is_equal() {
    let rows = rows_of("tag", &texts(&["café", "cafe", "cafE", "tea", "CAFÉ"]));
    block_on(in_every_form(None, &rows, async |db, form| {
        for (level, expected) in [(1, vec![0, 1, 2, 4]), (2, vec![1, 2]), (3, vec![1]), (4, vec![1]), (5, vec![1])] {
            let of = |filter| found(db, filter, Some(strength(level)));
            assert_eq!(of(rawdoc! { "tag": "cafe" }).await, expected, "{form}, {level}");
            let others: Vec<i32> = (0..5).filter(|n| !expected.contains(n)).collect();
            assert_eq!(of(rawdoc! { "tag": { "$ne": "cafe" } }).await, others, "{form}, {level}");
            assert_eq!(of(rawdoc! { "tag": { "$nin": ["cafe", 1] } }).await, others, "{form}, {level}");
            assert_eq!(of(rawdoc! { "tag": { "$in": ["cafe", "x"] } }).await, expected, "{form}, {level}");
            let count = rawdoc! { "count": "c", "query": { "tag": "cafe" }, "collation": strength(level) };
            assert_eq!(db.ok(count).await.get_i32("n").unwrap() as usize, expected.len(), "{form}, {level}");
        }
        assert_eq!(found(db, rawdoc! { "tag": "cafe" }, None).await, [1], "{form}");
        let cases = rawdoc! { "locale": "fr", "strength": 1, "caseLevel": true };
        assert_eq!(found(db, rawdoc! { "tag": "cafe" }, Some(cases)).await, [0, 1], "{form}");
        // Patterns ignore the collation.
        let regex = rawdoc! { "tag": { "$regex": "^cafe$" } };
        assert_eq!(found(db, regex, Some(strength(1))).await, [1], "{form}");
        let schema = rawdoc! { "$jsonSchema": { "properties": { "tag": { "enum": ["cafe"] } } } };
        assert_eq!(found(db, schema, Some(strength(1))).await, [1], "{form}");
    }));
}

#[test]
fn ranges_and_sorts_use_the_collation() {
    let rows = rows_of("s", &texts(&["a10", "a2", "A2", "b1", "a1", "Z"]));
    block_on(in_every_form(None, &rows, async |db, form| {
        let numeric = || Some(rawdoc! { "locale": "en", "numericOrdering": true });
        assert_eq!(found(db, rawdoc! { "s": { "$gt": "a2" } }, numeric()).await, [0, 2, 3, 5], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$lte": "A2" } }, numeric()).await, [1, 2, 4], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$lt": "a10", "$gte": "a2" } }, numeric()).await, [1, 2], "{form}");
        let sorted = async |collation: RawDocumentBuf, direction: i32| {
            let sort = rawdoc! { "s": direction, "n": 1 };
            let find = rawdoc! { "find": "c", "sort": sort, "collation": collation };
            let rows = db.find(find).await;
            rows.iter().map(|row| row.get_str("s").unwrap().to_owned()).collect::<Vec<_>>()
        };
        let numeric = numeric().unwrap();
        assert_eq!(sorted(numeric.clone(), 1).await, ["a1", "a2", "A2", "a10", "b1", "Z"], "{form}");
        assert_eq!(sorted(numeric, -1).await, ["Z", "b1", "a10", "A2", "a2", "a1"], "{form}");
        let upper = rawdoc! { "locale": "en", "caseFirst": "upper" };
        assert_eq!(sorted(upper, 1).await, ["a1", "a10", "A2", "a2", "b1", "Z"], "{form}");
        assert_eq!(sorted(rawdoc! { "locale": "simple" }, 1).await, ["A2", "Z", "a1", "a10", "a2", "b1"], "{form}");
        // Equal ones are ordered by the next key.
        let base = rawdoc! { "locale": "en", "strength": 1 };
        assert_eq!(sorted(base, -1).await, ["Z", "b1", "a2", "A2", "a10", "a1"], "{form}");
    }));
}

#[test]
fn nested_strings_compare_by_the_collation_and_field_names_do_not() {
    let values = [
        rawbson!(["x", "CAFE"]),
        rawbson!({ "k": "Café", "l": ["É"] }),
        rawbson!({ "K": "café", "l": ["e"] }),
        rawbson!([{ "k": "cafe" }, "e"]),
        rawbson!(["cafe", "e"]),
    ];
    let rows = rows_of("v", &values);
    block_on(in_every_form(None, &rows, async |db, form| {
        let of = |filter| found(db, filter, Some(strength(1)));
        assert_eq!(of(rawdoc! { "v": "café" }).await, [0, 4], "{form}");
        assert_eq!(of(rawdoc! { "v.k": "CAFE" }).await, [1, 3], "{form}");
        assert_eq!(of(rawdoc! { "v": { "k": "cafe", "l": ["e"] } }).await, [1], "{form}");
        assert_eq!(of(rawdoc! { "v": ["CAFÉ", "É"] }).await, [4], "{form}");
        assert_eq!(of(rawdoc! { "v": { "$all": ["CAFÉ", "É"] } }).await, [4], "{form}");
        assert_eq!(of(rawdoc! { "v": { "$elemMatch": { "k": "CAFÉ" } } }).await, [3], "{form}");
        assert_eq!(of(rawdoc! { "v": { "$in": [["CAFÉ", "É"], "X"] } }).await, [0, 4], "{form}");
        let sort = rawdoc! { "find": "c", "sort": { "v": 1, "n": 1 }, "collation": strength(1) };
        let order: Vec<i32> = db.find(sort).await.iter().map(|row| row.get_i32("n").unwrap()).collect();
        // Arrays sort by their least element, "cafe", "CAFE" or "e", and objects by their first name.
        assert_eq!(order, [0, 4, 3, 2, 1], "{form}");
    }));
}

#[test]
fn expressions_compare_by_the_collation() {
    let rows = rows_of("s", &texts(&["a", "A", "b", "B", "á"]));
    block_on(in_every_form(None, &rows, async |db, form| {
        let of = |expression: RawBson| {
            found(db, rawdoc! { "$expr": expression }, Some(rawdoc! { "locale": "en", "strength": 2 }))
        };
        assert_eq!(of(rawbson!({ "$eq": ["$s", "A"] })).await, [0, 1], "{form}");
        assert_eq!(of(rawbson!({ "$ne": ["$s", "A"] })).await, [2, 3, 4], "{form}");
        assert_eq!(of(rawbson!({ "$gt": ["$s", "a"] })).await, [2, 3, 4], "{form}");
        assert_eq!(of(rawbson!({ "$lte": ["B", "$s"] })).await, [2, 3], "{form}");
        assert_eq!(of(rawbson!({ "$in": ["$s", ["B", "x"]] })).await, [2, 3], "{form}");
        assert_eq!(of(rawbson!({ "$eq": [{ "$cmp": ["$s", { "$concat": ["", "b"] }] }, 0] })).await, [2, 3], "{form}");
        // Folded when parsed.
        assert_eq!(of(rawbson!({ "$eq": ["x", "X"] })).await.len(), 5, "{form}");
        let find = rawdoc! { "find": "c", "filter": { "$expr": "$$same" }, "let": { "same": { "$eq": ["x", "X"] } } };
        assert_eq!(db.find(find.clone()).await.len(), 0, "{form}");
        let mut find = find;
        find.append(bson::cstr!("collation"), strength(1));
        assert_eq!(db.find(find).await.len(), 5, "{form}");
    }));
}

#[test]
fn distinct_gives_the_first_of_equal_values() {
    let rows = rows_of("s", &[texts(&["b", "A", "a", "B"]), vec![rawbson!(["C", "c", 1]), rawbson!(1.0)]].concat());
    block_on(in_every_form(None, &rows, async |db, form| {
        let ask = async |collation: RawDocumentBuf| {
            let command = rawdoc! { "distinct": "c", "key": "s", "collation": collation };
            let values = db.ok(command).await.get_array("values").unwrap().clone();
            values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>()
        };
        let folded = ask(rawdoc! { "locale": "en", "strength": 2 }).await;
        // Rows of version 3 are in the order of arrival.
        let first =
            if form == "version 3" { ["1", "\"C\"", "\"B\"", "\"a\""] } else { ["\"b\"", "\"A\"", "\"C\"", "1"] };
        assert_eq!(folded, first, "{form}");
        assert_eq!(ask(rawdoc! { "locale": "simple" }).await.len(), 7, "{form}");
    }));
}

#[test]
fn series_are_told_apart_by_bytes_and_filtered_by_the_collation() {
    let rows: Vec<RawDocumentBuf> = ["Oslo", "oslo", "OSLO", "Bergen", "øslo"]
        .iter()
        .enumerate()
        .map(|(n, city)| rawdoc! { "at": DateTime::from_millis(n as i64), "m": *city, "n": n as i32 })
        .collect();
    let folded = || rawdoc! { "locale": "en", "strength": 2 };
    for default in [None, Some(folded())] {
        block_on(in_every_form(default.clone(), &rows, async |db, form| {
            assert_eq!(db.find(rawdoc! { "find": "system.buckets.c" }).await.len(), 5, "{form}");
            let own = if default.is_some() { None } else { Some(folded()) };
            assert_eq!(found(db, rawdoc! { "m": "OSLO" }, own.clone()).await, [0, 1, 2], "{form}");
            assert_eq!(found(db, rawdoc! { "m": { "$gte": "OSLO" } }, own).await, [0, 1, 2, 4], "{form}");
            let simple = rawdoc! { "locale": "simple" };
            assert_eq!(found(db, rawdoc! { "m": "OSLO" }, Some(simple)).await, [2], "{form}");
            let distinct = rawdoc! { "distinct": "c", "key": "m", "collation": folded() };
            assert_eq!(db.ok(distinct).await.get_array("values").unwrap().len(), 3, "{form}");
            let count = rawdoc! { "count": "c", "query": { "m": "oslo" }, "collation": folded() };
            assert_eq!(db.ok(count).await.get_i32("n").ok(), Some(3), "{form}");
        }));
    }
}

#[test]
fn a_sort_by_metadata_merges_series_that_are_equal_by_the_collation() {
    let rows: Vec<RawDocumentBuf> = (0..60)
        .map(|n| {
            let series = ["b", "A", "a", "B", "á"][n as usize % 5];
            rawdoc! { "at": DateTime::from_millis(i64::from(n) * 90_000), "m": series, "n": n }
        })
        .collect();
    block_on(in_every_form(None, &rows, async |db, form| {
        let folded = rawdoc! { "locale": "en", "strength": 2 };
        for (sort, key) in [(rawdoc! { "m": 1, "at": 1 }, 1), (rawdoc! { "m": 1, "at": -1 }, -1)] {
            let find = rawdoc! { "find": "c", "sort": sort, "batchSize": 4, "collation": folded.clone() };
            let got: Vec<i32> = db.find(find).await.iter().map(|row| row.get_i32("n").unwrap()).collect();
            let mut expected: Vec<i32> = (0..60).collect();
            // "a" and "A" are equal, "á" follows, then "b" and "B".
            expected.sort_by_key(|n| ([2, 0, 0, 2, 1][*n as usize % 5], n * key));
            assert_eq!(got, expected, "{form}");
        }
    }));
}

#[test]
fn a_delete_has_a_collation_of_its_own() {
    let rows = rows_of("name", &texts(&["Günter", "Gunter", "Gustav"]));
    block_on(in_every_form(None, &rows, async |db, form| {
        let delete = |collation: RawDocumentBuf| {
            let statement = rawdoc! { "q": { "name": { "$lt": "Gunter" } }, "limit": 0, "collation": collation };
            rawdoc! { "delete": "c", "deletes": [statement] }
        };
        assert_eq!(db.ok(delete(rawdoc! { "locale": "de" })).await.get_i32("n").ok(), Some(0), "{form}");
        let phonebook = rawdoc! { "locale": "de@collation=phonebook" };
        assert_eq!(db.ok(delete(phonebook)).await.get_i32("n").ok(), Some(1), "{form}");
        assert_eq!(found(db, rawdoc! {}, None).await, [1, 2], "{form}");
        let bad = db.ok(delete(rawdoc! { "locale": "xx" })).await;
        assert_eq!(
            bad.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("code").ok(),
            Some(2),
            "{form}"
        );
    }));
}

#[test]
fn queries_inherit_the_collation_of_the_collection() {
    let rows = rows_of("s", &texts(&["a", "A", "b", "B"]));
    block_on(in_every_form(Some(rawdoc! { "locale": "en", "strength": 2 }), &rows, async |db, form| {
        assert_eq!(found(db, rawdoc! { "s": "A" }, None).await, [0, 1], "{form}");
        assert_eq!(found(db, rawdoc! { "s": "A" }, Some(rawdoc! {})).await, [0, 1], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$gt": "A" } }, None).await, [2, 3], "{form}");
        let (simple, cased) = (rawdoc! { "locale": "simple" }, rawdoc! { "locale": "en" });
        assert_eq!(found(db, rawdoc! { "s": "A" }, Some(simple.clone())).await, [1], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$lt": "a" } }, Some(simple.clone())).await, [1, 3], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$gt": "a" } }, Some(cased)).await, [1, 2, 3], "{form}");
        assert_eq!(db.ok(rawdoc! { "count": "c", "query": { "s": "B" } }).await.get_i32("n").ok(), Some(2), "{form}");
        let distinct = rawdoc! { "distinct": "c", "key": "s" };
        assert_eq!(db.ok(distinct.clone()).await.get_array("values").unwrap().len(), 2, "{form}");
        let delete = |q: RawDocumentBuf| rawdoc! { "delete": "c", "deletes": [{ "q": q, "limit": 0 }] };
        assert_eq!(db.ok(delete(rawdoc! { "s": "B" })).await.get_i32("n").ok(), Some(2), "{form}");
        assert_eq!(found(db, rawdoc! {}, Some(simple)).await, [0, 1], "{form}");
    }));
}

#[test]
fn a_context_that_remembers_a_dropped_collection_does_not_use_its_collation() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let [one, other] = [1, 2].map(|_| Db::open(storage.clone(), env.clone()));
        let create = |collation: RawDocumentBuf| {
            rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" }, "collation": collation }
        };
        let rows = rows_of("s", &texts(&["a", "A"]));
        one.ok(create(rawdoc! { "locale": "en", "strength": 2 })).await;
        for command in ["find", "count", "delete"] {
            assert_eq!(found(&one, rawdoc! {}, None).await.len(), 0);
            other.ok(rawdoc! { "drop": "c" }).await;
            other.ok(create(rawdoc! { "locale": "en" })).await;
            other.insert("c", &rows).await;
            let n = match command {
                "find" => found(&one, rawdoc! { "s": "A" }, None).await.len() as i32,
                "count" => one.ok(rawdoc! { "count": "c", "query": { "s": "A" } }).await.get_i32("n").unwrap(),
                _ => {
                    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "s": "A" }, "limit": 0 }] };
                    one.ok(delete).await.get_i32("n").unwrap()
                }
            };
            assert_eq!(n, 1, "{command}");
            one.ok(rawdoc! { "drop": "c" }).await;
            one.ok(create(rawdoc! { "locale": "en", "strength": 2 })).await;
        }
    });
}

#[test]
fn the_summaries_of_a_bucket_are_those_of_the_collection() {
    for (case_first, min, max) in [("lower", "a", "A"), ("upper", "A", "a"), ("off", "a", "A")] {
        let rows = rows_of("s", &texts(&["a", "A"]));
        let collation = rawdoc! { "locale": "en", "caseFirst": case_first };
        block_on(in_every_form(Some(collation), &rows, async |db, form| {
            let buckets = db.find(rawdoc! { "find": "system.buckets.c" }).await;
            let control = buckets[0].get_document("control").unwrap();
            let side = |name: &str| control.get_document(name).unwrap().get_str("s").unwrap().to_owned();
            assert_eq!((side("min").as_str(), side("max").as_str()), (min, max), "{form}");
        }));
    }
}

#[test]
fn create_stores_the_full_collation_and_compares_it() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let create = |collation: RawDocumentBuf| {
            rawdoc! { "create": "c", "timeseries": { "timeField": "at" }, "collation": collation }
        };
        db.ok(create(rawdoc! { "locale": "da", "version": "57.1" })).await;
        db.ok(create(rawdoc! { "locale": "da", "strength": 3.0, "caseFirst": "upper" })).await;
        for other in
            [rawdoc! { "locale": "da", "strength": 4 }, rawdoc! { "locale": "simple" }, rawdoc! { "locale": "de" }]
        {
            assert_eq!(db.fails(create(other)).await.0, 48);
        }
        // The full collation would have `caseFirst: "upper"`, which is invalid at this strength and could not be parsed again.
        assert_eq!(db.fails(create(rawdoc! { "locale": "da", "strength": 1 })).await.0, 2);
        let mut reply = db.ok(rawdoc! { "listCollections": 1 }).await;
        let listed = take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch");
        let complete = doc! {
            "locale": "da", "caseLevel": false, "caseFirst": "upper", "strength": 3, "numericOrdering": false,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false,
        };
        for collection in &listed {
            assert_eq!(collection.get_document("options").unwrap().get_document("collation").unwrap(), &complete);
        }
        let mut plain = create(rawdoc! { "locale": "simple" });
        plain = raw(&{
            let mut document: Document = (&plain).try_into().unwrap();
            document.insert("create", "plain");
            document
        });
        db.ok(plain).await;
        db.ok(rawdoc! { "create": "plain", "timeseries": { "timeField": "at" } }).await;
    });
}

#[test]
fn invalid_collations_are_refused_with_the_servers_code() {
    let name = String::from;
    let cases: Vec<(RawBson, i32, &str)> = vec![
        (rawbson!("de"), 14, "TypeMismatch"),
        (rawbson!({ "strength": 1 }), 40414, "IDLFailedToParse"),
        (rawbson!({ "locale": 1 }), 14, "TypeMismatch"),
        (rawbson!({ "locale": "de", "strong": 1 }), 40415, "IDLUnknownField"),
        (rawbson!({ "locale": "de", "strength": "1" }), 14, "TypeMismatch"),
        (rawbson!({ "locale": "de", "strength": 0 }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "strength": 6 }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "caseLevel": "yes" }), 14, "TypeMismatch"),
        (rawbson!({ "locale": "de", "caseFirst": true }), 14, "TypeMismatch"),
        (rawbson!({ "locale": "de", "caseFirst": "Upper" }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "alternate": "skip" }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "maxVariable": "symbol" }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "version": 57 }), 14, "TypeMismatch"),
        (rawbson!({ "locale": "simple", "strength": 1 }), 9, "FailedToParse"),
        (rawbson!({ "locale": "" }), 2, "BadValue"),
        (rawbson!({ "locale": "xx" }), 2, "BadValue"),
        (rawbson!({ "locale": "en-US" }), 2, "BadValue"),
        (rawbson!({ "locale": "de@collation=unheard" }), 2, "BadValue"),
        (rawbson!({ "locale": "de@strength=1" }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "strength": 1, "backwards": true }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "strength": 2, "caseFirst": "upper" }), 2, "BadValue"),
        // Options that hosts do not support.
        (rawbson!({ "locale": "de", "strength": 2, "caseLevel": true }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "caseLevel": true }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "backwards": true }), 2, "BadValue"),
        (rawbson!({ "locale": "fr_CA", "backwards": false }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "alternate": "shifted", "strength": 4 }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "alternate": "shifted", "strength": 5 }), 2, "BadValue"),
        (rawbson!({ "locale": "de", "alternate": "shifted", "maxVariable": "space" }), 2, "BadValue"),
    ];
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "at" } }).await;
        for (collation, code, code_name) in cases {
            for command in [
                rawdoc! { "find": "c", "collation": collation.clone() },
                rawdoc! { "count": "absent", "collation": collation.clone() },
                rawdoc! { "distinct": "c", "key": "a", "collation": collation.clone() },
                rawdoc! { "create": "d", "timeseries": { "timeField": "at" }, "collation": collation.clone() },
            ] {
                assert_eq!(db.fails(command.clone()).await, (code, name(code_name)), "{command:?}");
            }
        }
        for fine in [
            rawdoc! { "locale": "en_US", "strength": 5_i64, "alternate": "non-ignorable" },
            rawdoc! { "locale": "zh_Hans", "normalization": true },
            rawdoc! { "locale": "de", "maxVariable": "space", "caseLevel": 0 },
            rawdoc! { "locale": "fr_CA", "backwards": true },
            rawdoc! { "locale": "es@collation=traditional", "backwards": false },
        ] {
            db.ok(rawdoc! { "find": "c", "collation": fine }).await;
        }
    });
}

#[test]
fn locale_options_besides_the_strength_are_applied() {
    let rows = rows_of("s", &texts(&["black-bird", "blackbird", "cote", "côte", "coté", "ca", "cu", "ch", "d"]));
    block_on(in_every_form(None, &rows, async |db, form| {
        let shifted = rawdoc! { "locale": "en", "alternate": "shifted" };
        assert_eq!(found(db, rawdoc! { "s": "blackbird" }, Some(shifted)).await, [0, 1], "{form}");
        let accents = |locale: &str| Some(rawdoc! { "locale": locale });
        assert_eq!(found(db, rawdoc! { "s": { "$gt": "coté", "$lt": "d" } }, accents("fr")).await, [3, 6], "{form}");
        assert_eq!(found(db, rawdoc! { "s": { "$gt": "coté", "$lt": "d" } }, accents("fr_CA")).await, [6], "{form}");
        let range = || rawdoc! { "s": { "$gt": "cu", "$lt": "d" } };
        assert_eq!(found(db, range(), accents("es@collation=traditional")).await, [7], "{form}");
        assert_eq!(found(db, range(), accents("es")).await, [0; 0], "{form}");
        // Equal for the locale, so ordered by their code points.
        let identical = Some(rawdoc! { "locale": "en", "strength": 5 });
        assert_eq!(found(db, rawdoc! { "s": "cot\u{0}é" }, accents("en")).await, [4], "{form}");
        assert_eq!(found(db, rawdoc! { "s": "cot\u{0}é" }, identical).await, [0; 0], "{form}");
    }));
}

fn any_text() -> impl Strategy<Value = String> {
    "[abAB1-2éÉ -]{0,3}"
}

fn any_collation() -> impl Strategy<Value = Option<Document>> {
    let of = |document| Just(Some(document));
    prop_oneof![
        Just(None),
        of(doc! { "locale": "simple" }),
        of(doc! { "locale": "en", "strength": 1 }),
        of(doc! { "locale": "en", "strength": 2 }),
        of(doc! { "locale": "fr", "strength": 1, "caseLevel": true }),
        of(doc! { "locale": "en", "numericOrdering": true }),
        of(doc! { "locale": "en", "caseFirst": "upper" }),
        of(doc! { "locale": "en", "alternate": "shifted" }),
        of(doc! { "locale": "en", "strength": 5 }),
    ]
}

fn collation_of(document: &Option<Document>) -> Collation {
    let document = document.clone().unwrap_or(doc! { "locale": "simple" });
    Collation::parse(Doc::parse(raw(&document).as_bytes()).unwrap(), &*TestEnv::new(1)).unwrap()
}

/// The strings that match a filter `{field: {op: operand}}`, compared one by one.
fn passes(op: &str, operand: &[String], text: &str, collation: &Collation) -> bool {
    let order = |one: &str| collation.compare_texts(text.as_bytes(), one.as_bytes());
    match op {
        "$eq" => order(&operand[0]).is_eq(),
        "$ne" => order(&operand[0]).is_ne(),
        "$gt" => order(&operand[0]).is_gt(),
        "$gte" => order(&operand[0]).is_ge(),
        "$lt" => order(&operand[0]).is_lt(),
        "$lte" => order(&operand[0]).is_le(),
        "$in" => operand.iter().any(|one| order(one).is_eq()),
        _ => !operand.iter().any(|one| order(one).is_eq()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_filters_find_the_same_as_a_plain_list(
        values in proptest::collection::vec((any_text(), any_text()), 1..24),
        default in any_collation(),
        queries in proptest::collection::vec((
            prop_oneof![Just("s"), Just("m"), Just("o.p")],
            proptest::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin"]),
            proptest::collection::vec(any_text(), 2),
            any_collation(),
        ), 8),
        seed in any::<u64>(),
    ) {
        let rows: Vec<RawDocumentBuf> = values.iter().enumerate().map(|(n, (s, m))| {
            let at = DateTime::from_millis((seed >> (n % 60)) as i64 & 0xFFFF);
            rawdoc! { "at": at, "n": n as i32, "m": m.as_str(), "s": s.as_str(), "o": { "p": s.as_str() } }
        }).collect();
        block_on(in_every_form(default.as_ref().map(raw), &rows, async |db, form| {
            for (field, op, operand, own) in &queries {
                let collation = collation_of(if own.is_some() { own } else { &default });
                let given = match *op {
                    "$in" | "$nin" => Bson::from(operand.clone()),
                    _ => Bson::from(operand[0].as_str()),
                };
                let filter = raw(&doc! { *field: { *op: given } });
                let mut got = found(db, filter.clone(), own.as_ref().map(raw)).await;
                got.sort();
                let is_wanted = |(_, (s, m)): &(usize, &(String, String))| {
                    passes(op, operand, if *field == "m" { m } else { s }, &collation)
                };
                let expected: Vec<i32> =
                    values.iter().enumerate().filter(is_wanted).map(|(n, _)| n as i32).collect();
                assert_eq!(got, expected, "{form}: {filter:?} by {own:?}, {default:?}");
            }
        }));
    }
}
