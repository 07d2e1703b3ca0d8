//! `findAndModify`: removes and returns one measurement.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv, raw};

fn row(n: i32, series: &str, x: f64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(i64::from(n) * 1000), "m": series, "n": n, "x": x }
}

fn rows() -> Vec<RawDocumentBuf> {
    (1..=6).map(|n| row(n, if n % 2 == 0 { "a" } else { "b" }, f64::from(7 - n))).collect()
}

async fn filled(folds: bool, format: BucketFormat) -> Db {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let db = Db::open_as(format, storage, TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db.insert("c", &rows()).await;
    if folds {
        db.ok(rawdoc! { "flush": 1 }).await;
    }
    db
}

fn removing(more: Document) -> RawDocumentBuf {
    raw(&doc! { "findAndModify": "c", "remove": true }.into_iter().chain(more).collect())
}

async fn left(db: &Db) -> Vec<i32> {
    let rows = db.find(rawdoc! { "find": "c", "sort": { "n": 1 } }).await;
    rows.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

#[test]
fn the_found_measurement_is_returned_and_removed() {
    block_on(async {
        for (folds, format) in
            [(false, BucketFormat::Compressed), (true, BucketFormat::Compressed), (true, BucketFormat::Uncompressed)]
        {
            let db = filled(folds, format).await;
            let reply = db.ok(removing(doc! { "query": { "n": 3 } })).await;
            assert_eq!(reply.get_document("lastErrorObject").ok(), Some(&doc! { "n": 1 }));
            let mut value: Vec<_> = reply.get_document("value").unwrap().clone().into_iter().collect();
            value.sort_by(|a, b| a.0.cmp(&b.0));
            let expected = doc! { "m": "b", "n": 3, "t": DateTime::from_millis(3000), "x": 4.0 };
            assert_eq!(value, expected.into_iter().collect::<Vec<_>>());
            assert_eq!(left(&db).await, [1, 2, 4, 5, 6]);
            for (more, n) in [
                (doc! { "sort": { "x": 1 } }, 6),
                (doc! { "sort": { "m": 1, "t": -1 }, "hint": "m_1_t_1" }, 4),
                (doc! { "query": { "$expr": { "$eq": ["$n", "$$one"] } }, "let": { "one": 1 } }, 1),
                (
                    doc! { "query": { "m": "B" }, "collation": { "locale": "en", "strength": 1 }, "fields": { "n": 1 } },
                    5,
                ),
            ] {
                let reply = db.ok(removing(more)).await;
                assert_eq!(reply.get_document("value").unwrap().get_i32("n").ok(), Some(n), "{reply}");
            }
            assert_eq!(left(&db).await, [2]);
            let reply = db.ok(removing(doc! { "query": { "n": 9 } })).await;
            assert_eq!(
                (reply.get_document("lastErrorObject").ok(), reply.get("value")),
                (Some(&doc! { "n": 0 }), Some(&bson!(null)))
            );
        }
    });
}

#[test]
fn fields_project_the_reply_and_a_failing_projection_removes_nothing() {
    block_on(async {
        let db = filled(true, BucketFormat::Compressed).await;
        let reply =
            db.ok(removing(doc! { "query": { "n": 2 }, "fields": { "x": 1, "y": { "$add": ["$n", 1] } } })).await;
        assert_eq!(reply.get_document("value").ok(), Some(&doc! { "x": 5.0, "y": 3 }));
        let (code, _) = db.fails(removing(doc! { "fields": { "y": { "$add": ["$m", 1] } } })).await;
        assert_eq!((code, left(&db).await), (14, vec![1, 3, 4, 5, 6]));
    });
}

#[test]
fn of_equal_measurements_one_is_removed() {
    block_on(async {
        let db = filled(false, BucketFormat::Compressed).await;
        db.insert("c", &rows()).await;
        db.ok(removing(doc! { "query": { "n": 4 } })).await;
        assert_eq!(left(&db).await, [1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6]);
    });
}

#[test]
fn updates_and_contradictory_options_are_refused() {
    block_on(async {
        let db = filled(true, BucketFormat::Compressed).await;
        let modifying =
            |more: Document| raw(&doc! { "findAndModify": "c", "query": {} }.into_iter().chain(more).collect());
        for (more, code) in [
            (doc! { "update": { "$set": { "m": 1 } } }, 72),
            (doc! { "update": { "$set": { "m": 1 } }, "remove": true }, 9),
            (doc! { "new": true, "remove": true }, 9),
            (doc! {}, 9),
            (doc! { "remove": true, "txnNumber": 1_i64 }, 7314600),
            (doc! { "remove": true, "nonsense": 1 }, 40415),
            (doc! { "remove": true, "hint": "nonsense" }, 2),
            (doc! { "remove": true, "query": { "$nonsense": 1 } }, 2),
        ] {
            assert_eq!(db.fails(modifying(more.clone())).await.0, code, "{more}");
        }
        assert_eq!(left(&db).await.len(), 6);
        let missing = db.ok(rawdoc! { "findAndModify": "missing", "remove": true }).await;
        assert_eq!(missing.get_document("lastErrorObject").ok(), Some(&doc! { "n": 0 }));
    });
}
