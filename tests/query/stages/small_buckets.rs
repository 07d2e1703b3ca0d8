//! Buckets of a few rows, which come about where a field is sometimes null: a null among numbers closes a bucket.

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};

use super::{explained::explain_of, row, run, values, with_rows};
use crate::support::Db;
use crate::support::pipelines::run_in;

const ROWS: i32 = 900;
/// Rows of one insert, which have their fields in the same order.
const ROWS_TOGETHER: usize = 90;

/// Rows of three stations, of which some have a null, and each third one of them its fields in another order.
fn rows(has_nulls: bool) -> Vec<Document> {
    let row_of = |n: i32| {
        let station = ["a", "b", "c"][n as usize % 3];
        let mut more = doc! { "n": n };
        if has_nulls {
            more.insert("sometimes", if n % 5 == 0 { Bson::Null } else { Bson::Int32(n) });
        }
        let number = || if n % 4 == 0 { Bson::Int32(n % 50) } else { Bson::Double(f64::from(n % 50) + 0.5) };
        let fields = if (n as usize / ROWS_TOGETHER).is_multiple_of(3) { ["x", "y"] } else { ["y", "x"] };
        for name in fields.into_iter().filter(|name| *name == "x" || n / 3 % 7 > 0) {
            more.insert(name, number());
        }
        row((n * 37 % ROWS).into(), station, more)
    };
    (0..ROWS).map(row_of).collect()
}

fn of_large_buckets(pipeline: &[Document]) -> Vec<Document> {
    let mut found = Vec::new();
    let found_in = std::cell::RefCell::new(&mut found);
    with_rows(rows(false), async |db| **found_in.borrow_mut() = run(db, pipeline.to_vec()).await);
    found
}

fn pipelines() -> Vec<Vec<Document>> {
    let by_station =
        doc! { "_id": "$station", "mean": { "$avg": "$x" }, "sum": { "$sum": "$y" }, "rows": { "$sum": 1 } };
    let window = doc! { "sum": { "$sum": "$x", "window": { "documents": [-3, 0] } } };
    let set_window = doc! { "partitionBy": "$station", "sortBy": { "at": 1 }, "output": window };
    let computed = doc! { "_id": 0, "n": 1, "z": { "$add": ["$x", { "$ifNull": ["$y", 1] }] }, "y": 1 };
    let extremes = doc! { "_id": "$station", "low": { "$min": "$y" }, "high": { "$max": "$x" } };
    let last = doc! { "_id": "$station", "x": { "$last": "$x" }, "y": { "$first": "$y" } };
    let by_n = doc! { "$sort": { "n": 1 } };
    let by_id = doc! { "$sort": { "_id": 1 } };
    vec![
        vec![doc! { "$group": &by_station }, by_id.clone()],
        vec![doc! { "$match": { "x": { "$gt": 40 } } }, doc! { "$group": by_station }, by_id.clone()],
        vec![
            doc! { "$setWindowFields": set_window },
            doc! { "$project": { "_id": 0, "n": 1, "sum": 1 } },
            by_n.clone(),
        ],
        vec![doc! { "$project": computed }, by_n.clone()],
        vec![doc! { "$group": extremes }, by_id.clone()],
        vec![doc! { "$sort": { "at": 1 } }, doc! { "$group": &last }, by_id.clone()],
        vec![doc! { "$match": { "y": null } }, doc! { "$unset": ["sometimes", "_id"] }, by_n],
        vec![doc! { "$sort": { "x": -1, "n": 1 } }, doc! { "$group": last }, by_id],
    ]
}

async fn insert(db: &Db, rows: &[Document]) {
    let rows: Vec<RawDocumentBuf> = rows.iter().map(|row| RawDocumentBuf::try_from(row).unwrap()).collect();
    db.insert("weather", &rows).await;
}

/// Calls `check` with rows that came in many inserts, first in the journal and then in buckets.
fn with_inserts(check: impl AsyncFn(&Db)) {
    with_rows(Vec::new(), async |db| {
        if run(db, vec![doc! { "$limit": 1 }]).await.is_empty() {
            for together in rows(true).chunks(ROWS_TOGETHER) {
                insert(db, together).await;
            }
        }
        check(db).await;
    });
}

/// Runs a pipeline again and again, because rows that were joined before may be found in memory.
async fn again(db: &Db, pipeline: &[Document]) -> Vec<Document> {
    let first = run(db, pipeline.to_vec()).await;
    for _ in 0..3 {
        assert_eq!(run_in(db, pipeline.to_vec(), 101).await, first, "{pipeline:?}");
    }
    first
}

#[test]
fn many_small_buckets_give_what_a_few_large_ones_do() {
    let expected: Vec<_> = pipelines().iter().map(|pipeline| of_large_buckets(pipeline)).collect();
    with_inserts(async |db| {
        for (pipeline, expected) in pipelines().iter().zip(&expected) {
            assert_eq!(again(db, pipeline).await, *expected, "{pipeline:?}");
        }
    });
}

#[test]
fn rows_of_joined_buckets_show_their_fields_in_the_order_in_which_their_bucket_has_them() {
    let group =
        [doc! { "$group": { "_id": null, "x": { "$max": "$x" }, "y": { "$max": "$y" }, "n": { "$max": "$n" } } }];
    let chosen = doc! { "$project": { "_id": 0, "n": 1, "x": 1, "y": 1 } };
    let shown = doc! { "$group": { "_id": "$n", "rows": { "$push": "$$ROOT" } } };
    let by_id = doc! { "$sort": { "_id": 1 } };
    let joined = [vec![chosen, shown.clone(), by_id.clone()], vec![doc! { "$unset": "z" }, shown, by_id]];
    with_inserts(async |db| {
        again(db, &group).await;
        // Documents are equal whatever the order of their fields.
        let orders = |found: &[Document]| -> Vec<Vec<String>> {
            let rows = found.iter().flat_map(|group| group.get_array("rows").unwrap());
            rows.map(|row| row.as_document().unwrap().keys().cloned().collect()).collect()
        };
        for pipeline in &joined {
            let found = orders(&again(db, pipeline).await);
            // Behind a limit, buckets are taken one by one.
            let one_by_one = [vec![doc! { "$limit": ROWS }], pipeline.clone()].concat();
            assert_eq!(found, orders(&run(db, one_by_one).await), "{pipeline:?}");
            assert!(found.iter().collect::<std::collections::HashSet<_>>().len() > 2);
        }
    });
}

#[test]
fn a_find_gives_the_rows_of_small_buckets_in_the_same_order_in_large_batches_and_in_small_ones() {
    let late = doc! { "$match": { "at": { "$gte": super::at((ROWS / 3).into()) } } };
    let finds = [
        vec![],
        vec![late.clone()],
        vec![doc! { "$match": { "x": { "$gt": 30 } } }, doc! { "$project": { "_id": 0, "n": 1, "x": 1 } }],
        vec![late.clone(), doc! { "$sort": { "at": 1 } }],
        vec![late, doc! { "$sort": { "at": -1 } }, doc! { "$project": { "n": 1, "y": 1 } }],
        vec![doc! { "$sort": { "station": 1, "at": 1 } }],
        vec![doc! { "$sort": { "y": 1, "n": -1 } }],
    ];
    with_inserts(async |db| {
        for find in &finds {
            let expected = run_in(db, find.clone(), 7).await;
            assert!(expected.len() > ROWS as usize / 4);
            for batch in [101, 5000, 5000, 300, 5000] {
                assert_eq!(run_in(db, find.clone(), batch).await, expected, "{find:?} in batches of {batch}");
            }
        }
    });
}

#[test]
fn a_group_by_metadata_joins_all_small_buckets_so_that_filters_on_metadata_take_them_joined() {
    with_inserts(async |db| {
        let group = || doc! { "$group": { "_id": "$station", "rows": { "$sum": 1 } } };
        let examined = async |stages: Vec<Document>| {
            let found = explain_of(db, stages, "executionStats").await;
            let stats = found.stages()[0].get_document("$cursor").unwrap().get_document("executionStats").unwrap();
            stats.get_i64("totalDocsExamined").unwrap()
        };
        let all = examined(vec![group()]).await;
        again(db, &[group()]).await;
        // The first buckets are not answered for themselves, by their `control`.
        let found = explain_of(db, vec![group()], "executionStats").await;
        assert!(found.stages()[1].get_i64("nBucketsUnpacked").unwrap_or(0) >= all, "{:?}", found.0);
        for matching in [doc! { "station": { "$ne": "b" } }, doc! { "station": { "$regex": "^c" } }] {
            assert_eq!(examined(vec![doc! { "$match": matching }, group()]).await, all);
        }
    });
}

#[test]
fn rows_that_come_between_two_queries_are_found_behind_the_joined_ones() {
    let count = [doc! { "$group": { "_id": "$station", "n": { "$max": "$n" }, "rows": { "$sum": 1 } } }];
    let newest = [doc! { "$sort": { "at": -1 } }, doc! { "$group": { "_id": "$station", "n": { "$first": "$n" } } }];
    with_inserts(async |db| {
        for _ in 0..2 {
            let before = again(db, &count).await;
            again(db, &newest).await;
            let greatest = before.iter().map(|row| row.get_i32("n").unwrap()).max().unwrap();
            let more = row((ROWS + greatest).into(), "b", doc! { "n": greatest + 1, "x": 1 });
            insert(db, &[more]).await;
            let rows = |rows: &[Document]| values(rows, "rows").iter().filter_map(Bson::as_i32).sum::<i32>();
            let after = again(db, &count).await;
            assert_eq!(rows(&after), rows(&before) + 1);
            for found in [after, again(db, &newest).await] {
                let of_b = found.iter().find(|row| row.get_str("_id").is_ok_and(|id| id == "b")).unwrap();
                assert_eq!(of_b.get_i32("n").unwrap(), greatest + 1);
            }
        }
    });
}

#[test]
fn a_filter_that_fails_on_a_row_behind_enough_rows_of_small_buckets_is_no_error() {
    let positive = doc! { "$expr": { "$gt": [{ "$divide": [1, { "$subtract": ["$n", ROWS - 1] }] }, -2] } };
    let stages = |limit: i32| vec![doc! { "$match": &positive }, doc! { "$unwind": "$n" }, doc! { "$limit": limit }];
    let mut rows = rows(true);
    (0..).zip(&mut rows).for_each(|(n, row)| _ = row.insert("at", super::at(n)));
    with_rows(rows, async |db| {
        assert_eq!(run(db, stages(ROWS / 2)).await.len(), ROWS as usize / 2);
        let command = doc! { "aggregate": "weather", "pipeline": stages(ROWS), "cursor": { "batchSize": 9000 } };
        db.fails(RawDocumentBuf::try_from(&command).unwrap()).await;
    });
}

#[test]
fn a_batch_of_small_buckets_stays_within_its_bytes_even_if_a_projection_makes_rows_larger() {
    const SIZE_BYTES_MAX: usize = 16 << 20;
    let text = "x".repeat(10_000);
    let long = doc! { "$concat": vec![Bson::from("$text"); 12] };
    let pipeline = vec![doc! { "$project": { "long": long } }];
    let row_of = |n: i32| {
        let sometimes = if n % 2 == 0 { Bson::Null } else { Bson::Int32(n) };
        row(n.into(), "a", doc! { "text": &text, "sometimes": sometimes })
    };
    with_rows((0..450).map(row_of).collect(), async |db| {
        // Rows that are kept share texts that repeat.
        for _ in 0..4 {
            let command = doc! { "aggregate": "weather", "pipeline": &pipeline, "cursor": { "batchSize": 1000 } };
            let reply = db.ok(RawDocumentBuf::try_from(&command).unwrap()).await;
            let cursor = reply.get_document("cursor").unwrap();
            let batch = cursor.get_array("firstBatch").unwrap().len();
            assert!(batch > 50 && batch * text.len() * 12 <= SIZE_BYTES_MAX, "{batch}");
            let id = cursor.get_i64("id").unwrap();
            db.ok(rawdoc! { "killCursors": "weather", "cursors": [id] }).await;
        }
    });
}
