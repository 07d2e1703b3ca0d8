//! Disjunctions, sets, types and strings over indexes: their scans, and equal results without indexes.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::{Explained, explain};
use crate::support::{Db, TestEnv, raw};

const MINUTE_MS: i64 = 60_000;

fn at(minute: i64) -> DateTime {
    DateTime::from_millis(minute * MINUTE_MS)
}

async fn collection(collation: Document, indexes: &[(&str, Document)]) -> Db {
    let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
    let timeseries = doc! { "timeField": "t", "metaField": "m" };
    db.ok(raw(&doc! { "create": "c", "timeseries": timeseries, "collation": collation })).await;
    for (name, key) in indexes {
        let spec = doc! { "name": name, "key": key.clone() };
        db.ok(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await;
    }
    db
}

fn simple() -> Document {
    doc! { "locale": "simple" }
}

fn any_case() -> Document {
    doc! { "locale": "en", "strength": 2 }
}

async fn insert(db: &Db, rows: &[Document]) {
    let reply = db.insert("c", &rows.iter().map(raw).collect::<Vec<_>>()).await;
    assert!(reply.get("writeErrors").is_none(), "{reply}");
}

/// A bucket for each of forty series, with a measurement in each of its first two minutes.
async fn forty(indexes: &[(&str, Document)]) -> Db {
    let db = collection(simple(), indexes).await;
    let row = |n: i64| doc! { "t": at(n % 2), "m": { "a": n / 2, "b": n / 2 % 4, "s": format!("s{}", n / 2) }, "x": n / 2, "n": n };
    insert(&db, &(0..80).map(row).collect::<Vec<_>>()).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db
}

async fn shown(db: &Db, filter: &Document) -> Explained {
    explain(db, raw(&doc! { "find": "c", "filter": filter.clone() })).await
}

async fn numbers(db: &Db, filter: &Document, hint: Option<Document>) -> Vec<i64> {
    let mut find = doc! { "find": "c", "filter": filter.clone() };
    find.extend(hint.map(|hint| ("hint".to_owned(), Bson::from(hint))));
    let mut found: Vec<i64> = db.find(raw(&find)).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
    found.sort_unstable();
    found
}

/// The scans below the plan's `FETCH`; none if all buckets are scanned.
fn scans(shown: &Explained) -> Vec<Document> {
    let Ok(input) = shown.plan().get_document("inputStage") else { return Vec::new() };
    match input.get_str("stage").unwrap() {
        "OR" => {
            input.get_array("inputStages").unwrap().iter().map(|scan| scan.as_document().unwrap().clone()).collect()
        }
        _ => vec![input.clone()],
    }
}

/// The bounds of the first key part of each scan.
fn first_bounds(shown: &Explained) -> Vec<Vec<String>> {
    let of = |scan: Document| {
        let bounds = scan.get_document("indexBounds").unwrap();
        let first = bounds.values().next().unwrap().as_array().unwrap();
        first.iter().map(|bound| bound.as_str().unwrap().to_owned()).collect()
    };
    scans(shown).into_iter().map(of).collect()
}

#[test]
fn equalities_of_one_path_in_a_disjunction_are_planned_as_a_set() {
    block_on(async {
        let db = forty(&[("a", doc! { "m.a": 1, "t": 1 })]).await;
        for (set, either) in [
            (doc! { "m.a": { "$in": [3, 5] } }, doc! { "$or": [{ "m.a": 5 }, { "m.a": 3 }] }),
            (doc! { "m.a": { "$in": [3, 5, 7] } }, doc! { "$or": [{ "m.a": { "$in": [7, 5] } }, { "m.a": 3 }] }),
            (
                doc! { "m.a": { "$in": [3, 5] }, "t": { "$gte": at(1) } },
                doc! { "$or": [{ "m.a": 5 }, { "m.a": 3 }, { "m.a": 3.0 }], "t": { "$gte": at(1) } },
            ),
        ] {
            let (by_set, by_either) = (shown(&db, &set).await, shown(&db, &either).await);
            assert_eq!(scans(&by_set), scans(&by_either), "{either}");
            assert_eq!(scans(&by_set).len(), 1);
            assert_eq!(by_either.counts(), by_set.counts());
            assert_eq!(numbers(&db, &set, None).await, numbers(&db, &either, None).await);
        }
        let ranges = doc! { "$or": [{ "m.a": { "$lt": 2 } }, { "m.a": { "$gte": 38, "$lt": 100 } }, { "m.a": 39 }] };
        let ranges = shown(&db, &ranges).await;
        assert_eq!(first_bounds(&ranges), [["[NaN, 2]", "[38, 100]"]]);
        assert_eq!(ranges.counts()[..2], [5, 4]);
    });
}

#[test]
fn a_disjunction_over_two_indexes_is_a_union_of_their_scans() {
    block_on(async {
        let db = forty(&[("a", doc! { "m.a": 1 }), ("s", doc! { "m.s": 1 })]).await;
        let filter = doc! { "$or": [{ "m.a": { "$in": [3, 5] } }, { "m.s": "s5" }, { "m.s": "s7", "x": 7 }] };
        let found = shown(&db, &filter).await;
        let stage = found.plan().get_document("inputStage").unwrap();
        assert_eq!((found.plan().get_str("stage").unwrap(), stage.get_str("stage").unwrap()), ("FETCH", "OR"));
        let names: Vec<String> =
            scans(&found).iter().map(|scan| scan.get_str("indexName").unwrap().to_owned()).collect();
        assert_eq!(names, ["a", "s", "s"]);
        assert_eq!(
            first_bounds(&found),
            [vec!["[3, 3]", "[5, 5]"], vec!["[\"s5\", \"s5\"]"], vec!["[\"s7\", \"s7\"]"]]
        );
        // Two scans find the bucket of 5.
        assert_eq!(found.counts(), [3, 3, 3, 6]);
        assert_eq!(numbers(&db, &filter, None).await, [6, 7, 10, 11, 14, 15]);
        let stats = db.ok(rawdoc! { "aggregate": "c", "pipeline": [{ "$indexStats": {} }], "cursor": {} }).await;
        let batch = stats.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        let ops = |doc: &Bson| doc.as_document().unwrap().get_document("accesses").unwrap().get_i64("ops").unwrap();
        assert_eq!(batch.iter().map(ops).collect::<Vec<_>>(), [0, 2, 2]);
    });
}

#[test]
fn conjunctions_around_and_inside_a_disjunction_bound_each_of_its_scans() {
    block_on(async {
        let db = forty(&[("a", doc! { "m.a": 1, "t": 1 }), ("s", doc! { "m.s": 1, "t": 1 })]).await;
        let filter = doc! {
            "t": { "$lt": at(1) },
            "$or": [{ "m.a": 3 }, { "x": { "$gte": 0 }, "$or": [{ "m.s": "s5" }, { "m.a": 9, "t": { "$gte": at(0) } }] }],
        };
        let found = shown(&db, &filter).await;
        let start = |scan: &Document| {
            scan.get_document("indexBounds").unwrap().get_array("control.min.t").unwrap()[0]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let (open, bounded) = ("[MinKey, new Date(59999)]", "[new Date(-3600000), new Date(59999)]");
        assert_eq!(scans(&found).iter().map(start).collect::<Vec<_>>(), [open, open, bounded]);
        assert_eq!(found.counts(), [3, 3, 3, 6]);
        assert_eq!(numbers(&db, &filter, None).await, [6, 10, 18]);
    });
}

#[test]
fn in_and_or_on_metadata_use_the_default_index() {
    block_on(async {
        let db = forty(&[]).await;
        let meta = |n: i64| doc! { "a": n, "b": n % 4, "s": format!("s{n}") };
        let set = doc! { "m": { "$in": [meta(3), meta(30), meta(77)] } };
        let found = shown(&db, &set).await;
        assert_eq!(scans(&found)[0].get_str("indexName").unwrap(), "m_1_t_1");
        assert_eq!((first_bounds(&found)[0].len(), found.counts()), (3, [2, 2, 2, 4]));
        let either = doc! { "$or": [{ "m": meta(30) }, { "m": meta(3), "m.b": 3 }, { "m": meta(77) }] };
        assert_eq!(scans(&shown(&db, &either).await), scans(&found));
        assert_eq!(numbers(&db, &either, None).await, [6, 7, 60, 61]);
        // Each branch with further conditions.
        let times =
            doc! { "$or": [{ "m": meta(3), "t": { "$lt": at(1) } }, { "m": meta(30), "t": { "$gte": at(1) } }] };
        let found = shown(&db, &times).await;
        assert_eq!((first_bounds(&found)[0].len(), found.counts()), (2, [2, 2, 2, 4]));
        assert_eq!(numbers(&db, &times, None).await, [6, 61]);
        let other = doc! { "$or": [{ "m": meta(3) }, { "x": 4 }] };
        assert_eq!(shown(&db, &other).await.plan().get_str("stage").unwrap(), "COLLSCAN");
        assert_eq!(numbers(&db, &other, None).await, [6, 7, 8, 9]);
    });
}

#[test]
fn a_branch_without_an_index_needs_a_scan_and_one_by_time_an_id_range() {
    block_on(async {
        let db = collection(simple(), &[("a", doc! { "m.a": 1 })]).await;
        let row = |n: i64| doc! { "t": at(n * 120), "m": { "a": n % 20 }, "x": n, "n": n };
        insert(&db, &(0..100).map(row).collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for filter in [
            doc! { "$or": [{ "m.a": 3 }, { "x": 4 }] },
            doc! { "$or": [{ "m.a": 3 }, { "m.a": { "$ne": 7 } }] },
            doc! { "$nor": [{ "m.a": 3 }, { "m.a": 4 }] },
            doc! { "$or": [{ "t": { "$gte": at(98 * 120) } }, { "t": { "$lt": at(120) } }] },
        ] {
            assert_eq!(shown(&db, &filter).await.plan().get_str("stage").unwrap(), "COLLSCAN", "{filter}");
        }
        let filter = doc! { "$or": [{ "m.a": 3 }, { "t": { "$gte": at(98 * 120) } }] };
        let found = shown(&db, &filter).await;
        let stages: Vec<String> = scans(&found).iter().map(|scan| scan.get_str("stage").unwrap().to_owned()).collect();
        assert_eq!(stages, ["IXSCAN", "CLUSTERED_IXSCAN"]);
        assert_eq!(found.counts(), [7, 7, 7, 7]);
        assert_eq!(numbers(&db, &filter, None).await, [3, 23, 43, 63, 83, 98, 99]);
        // If the whole filter has a time bound, an id range is as good as an index range.
        let bounded = doc! { "t": { "$gte": at(98 * 120) }, "$or": [{ "m.a": { "$gt": 3 } }, { "x": 4 }] };
        assert_eq!(shown(&db, &bounded).await.plan().get_str("stage").unwrap(), "CLUSTERED_IXSCAN");
    });
}

#[test]
fn type_and_null_filters_have_index_ranges() {
    block_on(async {
        let db = collection(simple(), &[("a", doc! { "m.a": 1 }), ("x", doc! { "x": 1 })]).await;
        let values: Vec<Bson> = vec![
            1.into(),
            f64::NAN.into(),
            "".into(),
            "text".into(),
            Document::new().into(),
            doc! { "b": 1 }.into(),
            Bson::Array(vec![1.into(), "s".into()]),
            Bson::Null,
            true.into(),
            at(0).into(),
            Bson::MinKey,
            Bson::MaxKey,
        ];
        let mut rows: Vec<Document> =
            values.iter().zip(0_i64..).map(|(a, n)| doc! { "t": at(0), "m": { "a": a }, "x": n, "n": n }).collect();
        rows.push(doc! { "t": at(0), "m": { "b": 1 }, "x": "text", "n": 50_i64 });
        rows.push(doc! { "t": at(0), "n": 51_i64 });
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for (filter, bounds, examined) in [
            (doc! { "m.a": { "$type": "number" } }, vec!["[NaN, \"\"]"], 4),
            (doc! { "m.a": { "$type": "string" } }, vec!["[\"\", {}]"], 4),
            (doc! { "m.a": { "$type": ["string", "object"] } }, vec!["[\"\", []]"], 5),
            (
                doc! { "m.a": { "$type": ["bool", "int", "date"] } },
                vec!["[NaN, \"\"]", "[false, timestamp(8 bytes)]"],
                6,
            ),
            (doc! { "m.a": { "$regex": "^te" } }, vec!["[\"te\", \"tf\"]", "[//, dbPointer(17 bytes)]"], 2),
            (doc! { "m.a": { "$type": "maxKey" } }, vec!["[maxKey(0 bytes), MaxKey]"], 2),
            (doc! { "m.a": Bson::Null }, vec!["[undefined(0 bytes), undefined(0 bytes)]", "[null, null]"], 4),
            (
                doc! { "m.a": { "$in": [Bson::Null, 1] } },
                vec!["[undefined(0 bytes), undefined(0 bytes)]", "[null, null]", "[1, 1]"],
                5,
            ),
            (doc! { "x": { "$type": "string" } }, vec!["[\"\", {}]"], 1),
            (doc! { "x": { "$in": [3_i64, 4] } }, vec!["[MinKey, 4]"], 6),
        ] {
            let found = shown(&db, &filter).await;
            assert_eq!(
                (first_bounds(&found), found.counts()[0]),
                (vec![bounds.into_iter().map(str::to_owned).collect()], examined),
                "{filter}"
            );
            let all = numbers(&db, &filter, Some(doc! { "$natural": 1 })).await;
            assert_eq!(numbers(&db, &filter, None).await, all, "{filter}");
            assert!(!all.is_empty(), "{filter}");
        }
    });
}

#[test]
fn a_sparse_index_is_not_used_for_missing_values() {
    block_on(async {
        let db = collection(simple(), &[]).await;
        let spec = doc! { "name": "a", "key": { "m.a": 1 }, "sparse": true };
        db.ok(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await;
        let row = |n: i64, meta: Document| doc! { "t": at(0), "m": meta, "n": n };
        insert(&db, &[row(1, doc! { "a": 1 }), row(2, doc! { "b": 1 }), row(3, doc! { "a": Bson::Null })]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for (filter, expected) in [
            (doc! { "m.a": { "$gte": Bson::MinKey } }, vec![1, 2, 3]),
            (doc! { "m.a": { "$lt": Bson::MaxKey } }, vec![1, 2, 3]),
            (doc! { "m.a": Bson::Null }, vec![2, 3]),
            (doc! { "m.a": { "$in": [1, Bson::Null] } }, vec![1, 2, 3]),
            (doc! { "m.a": { "$lt": 5 } }, vec![1]),
            (doc! { "$or": [{ "m.a": 1 }, { "m.a": Bson::Null }] }, vec![1, 2, 3]),
        ] {
            assert_eq!(numbers(&db, &filter, None).await, expected, "{filter}");
        }
    });
}

#[test]
fn string_equality_by_a_collation_searches_the_strings_of_an_index() {
    block_on(async {
        let db = collection(any_case(), &[("s", doc! { "m.s": 1, "t": 1 })]).await;
        let row = |n: i64| {
            let name = if n % 2 == 0 { format!("s{}", n % 20) } else { format!("S{}", (n - 1) % 20) };
            doc! { "t": at(n / 20 * 120), "m": { "s": name }, "n": n }
        };
        let mut rows: Vec<Document> = (0..100).map(row).collect();
        rows.push(doc! { "t": at(0), "m": { "s": ["q", "S4"] }, "n": 500_i64 });
        rows.push(doc! { "t": at(0), "m": { "s": 4 }, "n": 501_i64 });
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let filter = doc! { "m.s": "s4" };
        let found = shown(&db, &filter).await;
        assert_eq!(first_bounds(&found), [["[\"\", {}]"]]);
        assert_eq!(found.counts(), [11, 11, 11, 11]);
        for filter in [
            filter,
            doc! { "m.s": { "$in": ["S4", "s6", 4] } },
            doc! { "$or": [{ "m.s": "s4" }, { "m.s": "q" }] },
            doc! { "$or": [{ "m.s": "s4" }, { "m.s": 4 }], "n": { "$gte": 20 } },
        ] {
            let all = numbers(&db, &filter, Some(doc! { "$natural": 1 })).await;
            assert_eq!(numbers(&db, &filter, None).await, all, "{filter}");
            assert!(all.len() > 10 || filter.contains_key("$or"), "{filter}");
            assert_eq!(scans(&shown(&db, &filter).await).len(), 1, "{filter}");
        }
        // A time range is preferred to a search for strings that are equal by a collation.
        let bounded = doc! { "m.s": "s4", "t": { "$gte": at(400) } };
        assert_eq!(shown(&db, &bounded).await.plan().get_str("stage").unwrap(), "CLUSTERED_IXSCAN");
        // With byte comparison, the query has a point.
        let simple = doc! { "find": "c", "filter": { "m.s": "s4" }, "collation": simple() };
        let simple = explain(&db, raw(&simple)).await;
        assert_eq!((first_bounds(&simple), simple.counts()[0]), (vec![vec!["[\"s4\", \"s4\"]".to_owned()]], 6));
    });
}

#[test]
fn metadata_equality_by_a_collation_searches_the_default_index() {
    block_on(async {
        let db = collection(any_case(), &[]).await;
        let metas: Vec<Bson> =
            vec!["a".into(), "A".into(), "b".into(), "\0".into(), 7.into(), Bson::Array(vec!["B".into(), "x".into()])];
        let rows: Vec<Document> =
            (0..60).map(|n| doc! { "t": at(n / 6 * 120), "m": metas[n as usize % 6].clone(), "n": n }).collect();
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for (filter, examined) in [
            (doc! { "m": "A" }, 20),
            (doc! { "m": { "$in": ["B", 7] } }, 30),
            (doc! { "$or": [{ "m": "B" }, { "m": "X" }] }, 20),
            (doc! { "m": "x", "$and": [{ "m": "b" }] }, 10),
            (doc! { "$or": [{ "m": "a", "n": { "$lt": 30 } }, { "m": "X", "n": { "$gte": 30 } }] }, 30),
        ] {
            let found = shown(&db, &filter).await;
            assert!(scans(&found).iter().all(|scan| scan.get_str("indexName").unwrap() == "m_1_t_1"), "{filter}");
            assert_eq!(found.counts()[0], examined, "{filter}");
            let all = numbers(&db, &filter, Some(doc! { "$natural": 1 })).await;
            assert_eq!(numbers(&db, &filter, None).await, all, "{filter}");
            assert!(!all.is_empty());
        }
        let object = doc! { "m": { "s": "a" } };
        assert_eq!(shown(&db, &object).await.plan().get_str("stage").unwrap(), "COLLSCAN");
    });
}

#[test]
fn journal_rows_are_found_beside_a_union_of_indexes() {
    block_on(async {
        let db = forty(&[("a", doc! { "m.a": 1 }), ("s", doc! { "m.s": 1 })]).await;
        let filter = doc! { "$or": [{ "m.a": 3 }, { "m.s": "new" }] };
        let row = |n: i64, meta: Document| doc! { "t": at(2), "m": meta, "n": n };
        // Into a bucket that the scans find, into another one, and into a new one.
        let meta = |n: i64| doc! { "a": n, "b": n % 4, "s": format!("s{n}") };
        insert(&db, &[row(100, meta(3)), row(101, meta(4)), row(102, doc! { "s": "new" })]).await;
        for _ in 0..2 {
            assert_eq!(numbers(&db, &filter, None).await, [6, 7, 100, 102]);
            let sorted = doc! { "find": "c", "filter": filter.clone(), "sort": { "t": -1 }, "limit": 3 };
            let found = db.find(raw(&sorted)).await;
            assert_eq!(found.iter().filter(|row| row.get_i64("n").unwrap() >= 100).count(), 2);
            let delete = doc! { "explain": { "delete": "c", "deletes": [{ "q": filter.clone(), "limit": 0 }] } };
            assert_eq!(db.ok(raw(&delete)).await.get_f64("ok").unwrap(), 1.0);
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        db.ok(raw(&doc! { "delete": "c", "deletes": [{ "q": filter.clone(), "limit": 0 }] })).await;
        assert!(numbers(&db, &filter, None).await.is_empty());
        assert_eq!(numbers(&db, &doc! {}, None).await.len(), 79);
    });
}
