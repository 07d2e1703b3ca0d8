//! Pipelines that begin with a document source, and `$redact`.

use bson::{Document, bson, doc, rawdoc};

use super::{code, list, row, run, values, with_rows};
use crate::support::explained::Explained;
use crate::support::{Db, raw, take_rows};

async fn rows_of(db: &Db, command: Document) -> Vec<Document> {
    take_rows(&mut db.ok(raw(&command)).await.get_document("cursor").unwrap().clone(), "firstBatch")
}

#[test]
fn documents_stage_needs_no_collection() {
    with_rows(Vec::new(), async |db| {
        let listed = doc! { "$documents": [{ "a": 1 }, { "a": { "$add": [1, 1] } }, { "b": "$$x" }] };
        let command =
            |pipeline: Vec<Document>| doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {}, "let": { "x": 7 } };
        let rows = rows_of(db, command(vec![listed.clone()])).await;
        assert_eq!(rows, [doc! { "a": 1 }, doc! { "a": 2 }, doc! { "b": 7 }]);
        let rows = rows_of(db, command(vec![listed.clone(), doc! { "$match": { "a": { "$gt": 1 } } }])).await;
        assert_eq!(rows, [doc! { "a": 2 }]);
        let reply = db.ok(raw(&command(vec![listed.clone()]))).await;
        assert_eq!(reply.get_document("cursor").unwrap().get_str("ns").unwrap(), "test.$cmd.aggregate");
        let found =
            Explained(db.ok(raw(&doc! { "explain": command(vec![listed.clone(), doc! { "$limit": 1 }]) })).await);
        assert_eq!(found.names(), ["$documents", "$limit"]);
        let refused = async |command: Document| db.fails(raw(&command)).await.0;
        assert_eq!(refused(command(vec![doc! { "$documents": 1 }])).await, 5858203);
        assert_eq!(refused(command(vec![doc! { "$documents": [1] }])).await, 40228);
        assert_eq!(refused(command(vec![doc! { "$limit": 1 }])).await, 73);
        assert_eq!(refused(command(vec![doc! { "$limit": 1 }, listed.clone()])).await, 40602);
        assert_eq!(code(db, doc! { "$documents": [] }).await, 73);
    });
}

#[test]
fn documents_can_be_joined() {
    with_rows(vec![row(0, "a", doc! { "n": 1 }), row(1, "b", doc! { "n": 2 })], async |db| {
        let known = doc! { "$documents": [{ "k": "a", "v": 10 }, { "k": "b", "v": 20 }] };
        let lookup = doc! { "localField": "station", "foreignField": "k", "pipeline": [known.clone()], "as": "x" };
        let rows =
            run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$lookup": lookup }, doc! { "$unwind": "$x" }]).await;
        assert_eq!(values(&rows, "x"), list![doc! { "k": "a", "v": 10 }, doc! { "k": "b", "v": 20 }]);
        let both = run(db, vec![doc! { "$unionWith": { "pipeline": [known] } }, doc! { "$count": "n" }]).await;
        assert_eq!(both, [doc! { "n": 4 }]);
    });
}

#[test]
fn coll_stats_gives_one_row() {
    with_rows((0..3).map(|n| row(n, "a", doc! {})).collect(), async |db| {
        let command = |pipeline: Vec<Document>| doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
        let stats = doc! { "$collStats": { "storageStats": { "scale": 1 }, "count": {} } };
        let rows = rows_of(db, command(vec![stats.clone()])).await;
        assert_eq!(
            (rows.len(), rows[0].get_str("ns").unwrap(), rows[0].get_i64("count").unwrap()),
            (1, "test.weather", 3)
        );
        let mut whole = db.ok(rawdoc! { "collStats": "weather" }).await;
        let _ = ["ns", "ok"].map(|name| whole.remove(name));
        assert_eq!(rows[0].get_document("storageStats").unwrap(), &whole);
        let only = rows_of(db, command(vec![stats.clone(), doc! { "$project": { "_id": 0, "count": 1 } }])).await;
        assert_eq!(only, [doc! { "count": 3_i64 }]);
        for (pipeline, wanted) in [
            (vec![doc! { "$collStats": 1 }], 5447000),
            (vec![doc! { "$collStats": { "count": 1 } }], 40480),
            (vec![doc! { "$collStats": { "storageStats": 1 } }], 40279),
            (vec![doc! { "$collStats": { "other": {} } }], 40168),
            (vec![doc! { "$limit": 1 }, stats.clone()], 40602),
            (vec![doc! { "$facet": { "x": [stats.clone()] } }], 40600),
        ] {
            assert_eq!(db.fails(raw(&command(pipeline))).await.0, wanted);
        }
        let nowhere = doc! { "aggregate": "nowhere", "pipeline": [stats], "cursor": {} };
        assert_eq!(db.fails(raw(&nowhere)).await.0, 26);
    });
}

#[test]
fn redact_descends_where_told_to() {
    let secret = doc! { "level": 9, "text": "secret" };
    let open = doc! { "level": 1, "text": "open" };
    let more =
        doc! { "level": 1, "list": [secret.clone(), open.clone(), 7, [secret.clone()]], "below": secret, "n": 5 };
    with_rows(vec![row(0, "a", more), row(1, "b", doc! { "level": 9 })], async |db| {
        let by_level = |then: &str| {
            doc! { "$redact": { "$cond": [{ "$lte": ["$level", 5] }, format!("$${then}"), "$$PRUNE"] } }
        };
        let rows = run(db, vec![by_level("DESCEND"), doc! { "$project": { "_id": 0, "station": 0, "at": 0 } }]).await;
        assert_eq!(rows, [doc! { "level": 1, "list": [open.clone(), 7, []], "n": 5 }]);
        let rows = run(db, vec![by_level("KEEP"), doc! { "$project": { "_id": 0, "below.level": 1 } }]).await;
        assert_eq!(rows, [doc! { "below": { "level": 9 } }]);
        // A missing value is not true.
        for (condition, then, other) in
            [(bson!("$n"), "$$KEEP", "$$PRUNE"), (bson!({ "$gt": ["$level", 5] }), "$$PRUNE", "$$KEEP")]
        {
            let whole = doc! { "$redact": { "$cond": { "if": condition, "then": then, "else": other } } };
            let rows = run(db, vec![whole, doc! { "$project": { "_id": 0, "below.level": 1 } }]).await;
            assert_eq!(rows, [doc! { "below": { "level": 9 } }], "{then}");
        }
        // The current object differs from the row.
        let of_row = doc! { "$cond": [{ "$eq": ["$level", "$$ROOT.level"] }, "$$DESCEND", "$$PRUNE"] };
        let same = doc! { "$eq": ["$$CURRENT.level", "$level"] };
        let of_row = doc! { "$redact": { "$cond": [same, of_row, "$$PRUNE"] } };
        let rows = run(
            db,
            vec![doc! { "$match": { "n": 5 } }, of_row, doc! { "$project": { "_id": 0, "station": 0, "at": 0 } }],
        )
        .await;
        assert_eq!(rows, [doc! { "level": 1, "list": [open.clone(), 7, []], "n": 5 }]);
        assert_eq!(code(db, doc! { "$redact": "$station" }).await, 17053);
        assert_eq!(code(db, doc! { "$redact": "$$NOTHING" }).await, 17276);
        assert_eq!(code(db, doc! { "$addFields": { "x": "$$KEEP" } }).await, 17276);
    });
}
