//! `create` of an existing collection with other options.

use bson::{Document, doc};
use futures::executor::block_on;

use crate::support::weather::database;
use crate::support::{Db, raw};

fn asked(timeseries: Document, more: Document) -> Document {
    doc! { "create": "c", "timeseries": timeseries }.into_iter().chain(more).collect()
}

async fn created(timeseries: Document, more: Document) -> Db {
    let db = database();
    db.ok(raw(&asked(timeseries, more))).await;
    db
}

async fn refused(db: &Db, command: Document) -> String {
    let reply = db.command(raw(&command)).await;
    assert_eq!(reply.get_i32("code").ok(), Some(48), "{reply}");
    reply.get_str("errmsg").unwrap().to_owned()
}

async fn options(db: &Db) -> Document {
    let listed = db.ok(raw(&doc! { "listCollections": 1 })).await;
    let first = &listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0];
    first.as_document().unwrap().get_document("options").unwrap().clone()
}

fn fields() -> Document {
    doc! { "timeField": "t", "metaField": "m" }
}

#[test]
fn the_error_names_what_differs_and_the_command_that_changes_it() {
    block_on(async {
        let db = created(fields(), doc! { "expireAfterSeconds": 60, "maxBytes": 5000 }).await;
        let message = refused(&db, asked(fields(), doc! { "expireAfterSeconds": 90 })).await;
        assert_eq!(
            message,
            "Collection 'test.c' exists already, with other options: expireAfterSeconds is 60, not 90, maxBytes is 5000, not absent. \
             Change that with { collMod: \"c\", expireAfterSeconds: 90, maxBytes: \"off\" }, or create it with ifExists: \"modify\""
        );
        let coarse = doc! { "timeField": "t", "metaField": "m", "granularity": "hours" };
        let message = refused(&db, asked(coarse, doc! { "expireAfterSeconds": 60, "maxBytes": 5000 })).await;
        let command = "{ collMod: \"c\", timeseries: { granularity: \"hours\" } }";
        assert!(
            message.contains("granularity is \"seconds\", not \"hours\"") && message.contains(command),
            "{message}"
        );
    });
}

#[test]
fn the_error_says_what_can_never_be_changed() {
    block_on(async {
        let db = created(fields(), doc! { "expireAfterSeconds": 60 }).await;
        for modify in [doc! {}, doc! { "ifExists": "modify" }] {
            let message = refused(&db, asked(doc! { "timeField": "at" }, modify)).await;
            assert!(message.contains("timeField is \"t\", not \"at\", metaField is \"m\", not absent"), "{message}");
            assert!(message.contains("timeField, metaField cannot be changed: use another name"), "{message}");
        }
        let german = doc! { "expireAfterSeconds": 60, "collation": { "locale": "de" }, "ifExists": "modify" };
        assert!(refused(&db, asked(fields(), german)).await.contains("collation cannot be changed"));
        assert_eq!(options(&db).await.get_i64("expireAfterSeconds").ok(), Some(60), "nothing was changed");
        // Buckets cannot become shorter.
        let db = created(doc! { "timeField": "t", "granularity": "hours" }, doc! {}).await;
        let finer = asked(doc! { "timeField": "t", "granularity": "minutes" }, doc! { "ifExists": "modify" });
        assert!(refused(&db, finer).await.contains("buckets that become shorter cannot be changed"));
    });
}

#[test]
fn if_exists_modify_changes_the_options() {
    block_on(async {
        let db = created(fields(), doc! { "expireAfterSeconds": 60 }).await;
        let coarse = doc! { "timeField": "t", "metaField": "m", "granularity": "minutes" };
        let command = asked(coarse, doc! { "maxBytes": 5000, "ifExists": "modify" });
        db.ok(raw(&command)).await;
        let now = options(&db).await;
        assert_eq!(now.get_document("timeseries").unwrap().get_str("granularity").ok(), Some("minutes"));
        assert_eq!((now.get("expireAfterSeconds"), now.get_i64("maxBytes").ok()), (None, Some(5000)));
        // The second time nothing differs, with or without `ifExists`.
        db.ok(raw(&command)).await;
        let span = doc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 200_000, "bucketRoundingSeconds": 200_000 };
        db.ok(raw(&asked(span, doc! { "maxBytes": 5000, "ifExists": "modify" }))).await;
        assert_eq!(
            options(&db).await.get_document("timeseries").unwrap().get_i32("bucketMaxSpanSeconds").ok(),
            Some(200_000)
        );
    });
}

#[test]
fn a_missing_collection_is_created_with_any_if_exists() {
    block_on(async {
        let db = created(fields(), doc! { "ifExists": "modify" }).await;
        assert_eq!(options(&db).await.get("ifExists"), None);
        assert_eq!(db.fails(raw(&asked(fields(), doc! { "ifExists": "replace" }))).await.0, 2);
    });
}
