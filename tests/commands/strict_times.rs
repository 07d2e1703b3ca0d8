//! A database opened with `strict`: what it refuses and what it still allows.

use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::engine::Engine;
use timepail::storage::memory::MemoryStorage;

use crate::support::weather::{database, reading, weather};
use crate::support::{Db, TestEnv};

/// Three readings, ten minutes apart.
async fn strict() -> Db {
    let engine = Engine::new("test", Rc::new(MemoryStorage::new()), TestEnv::new(1), [1; 8]).with_strict(true);
    let db = Db { engine: Rc::new(engine) };
    weather(&db).await;
    let readings: Vec<_> = (0..3).map(|i| reading(i * 600_000, "a", 1.0)).collect();
    db.insert("weather", &readings).await;
    db
}

/// Commands that compare the time with a number or a string.
fn wrong() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! { "find": "weather", "filter": { "at": 5 } },
        rawdoc! { "find": "weather", "filter": { "at": { "$gte": "2024-01-01" } } },
        rawdoc! { "find": "weather", "filter": { "at": { "$not": { "$lt": 5_i64 } } } },
        rawdoc! { "find": "weather", "filter": { "$and": [{ "$or": [{ "at": { "$in": [DateTime::from_millis(0), 5.0] } }] }] } },
        rawdoc! { "count": "weather", "query": { "at": { "$ne": 5 } } },
        rawdoc! { "distinct": "weather", "key": "rpm", "query": { "at": { "$lte": 5 } } },
        rawdoc! { "delete": "weather", "deletes": [{ "q": { "temp": 1 }, "limit": 0 }, { "q": { "at": { "$lt": 5 } }, "limit": 0 }] },
        rawdoc! { "findAndModify": "weather", "query": { "at": 5 }, "remove": true },
        rawdoc! { "aggregate": "weather", "pipeline": [{ "$sort": { "at": 1 } }, { "$match": { "at": { "$gt": "x" } } }], "cursor": {} },
        rawdoc! { "aggregate": "weather", "pipeline": [
            { "$downsample": { "field": "temp", "points": 3, "sortBy": { "at": 1 } } }, { "$match": { "at": { "$gt": 5 } } },
        ], "cursor": {} },
    ]
}

#[test]
fn strict_refuses_to_compare_the_time_with_a_number_or_a_string() {
    block_on(async {
        let db = strict().await;
        for command in wrong() {
            let reply = db.command(command.clone()).await;
            assert_eq!(reply.get_i32("code").ok(), Some(2), "{command:?}");
            let message = reply.get_str("errmsg").unwrap();
            assert!(message.starts_with("'at' is compared with the ") && message.ends_with("pass a Date"), "{message}");
        }
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 3, "nothing was deleted");
    });
}

#[test]
fn strict_allows_everything_but_such_comparisons() {
    block_on(async {
        let db = strict().await;
        let since = DateTime::from_millis(600_000);
        let find = |filter: RawDocumentBuf| db.find(rawdoc! { "find": "weather", "filter": filter });
        assert_eq!(find(rawdoc! { "at": { "$gte": since, "$type": "date" }, "temp": { "$lt": 5 } }).await.len(), 2);
        assert_eq!(find(rawdoc! { "at": { "$exists": true, "$ne": null } }).await.len(), 3);
        assert_eq!(find(rawdoc! { "station.at": 5 }).await.len(), 0);
        db.ok(rawdoc! { "find": "absent", "filter": { "at": 5 } }).await;
        // In a group, the field of that name is not the time.
        let group = rawdoc! { "$group": { "_id": null, "at": { "$sum": 1 } } };
        let reply = db
            .ok(rawdoc! { "aggregate": "weather", "pipeline": [group, { "$match": { "at": 3 } }], "cursor": {} })
            .await;
        assert_eq!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 1);
    });
}

#[test]
fn without_strict_such_a_comparison_matches_nothing_as_on_the_server() {
    block_on(async {
        let db = database();
        weather(&db).await;
        db.insert("weather", &[reading(1, "a", 2.0)]).await;
        for command in wrong() {
            db.ok(command).await;
        }
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 1);
    });
}
