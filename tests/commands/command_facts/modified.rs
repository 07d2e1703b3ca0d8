//! Facts 56 to 64: `collMod`, and that a collection cannot be renamed.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{Filled, Form, at, tagged};

async fn of(timeseries: Document) -> Filled {
    let timeseries: Document = doc! { "timeField": "t", "metaField": "tag" }.into_iter().chain(timeseries).collect();
    let rows: Vec<Document> =
        (0..4).map(|id| doc! { "_id": id, "t": at(i64::from(id) * 5_000_000), "tag": 1 }).collect();
    Filled::new(Form::Both, doc! { "timeseries": timeseries }, &rows).await
}

fn granularity(name: &str) -> Document {
    doc! { "granularity": name }
}

fn custom(seconds: i32) -> Document {
    doc! { "bucketMaxSpanSeconds": seconds, "bucketRoundingSeconds": seconds }
}

impl Filled {
    /// The code that a `collMod` fails with, or 0.
    async fn modify(&self, more: Document) -> i32 {
        let command: Document = doc! { "collMod": "c" }.into_iter().chain(more).collect();
        let reply = self.db.command(crate::support::raw(&command)).await;
        reply.get_i32("code").unwrap_or(0)
    }

    async fn options(&self) -> Document {
        let listed = self.ok(doc! { "listCollections": 1, "filter": { "name": "c" } }).await;
        let first = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].clone();
        first.as_document().unwrap().get_document("options").unwrap().clone()
    }
}

#[test]
fn coll_mod_can_only_lengthen_spans() {
    block_on(async {
        for (from, to) in [
            (granularity("seconds"), [Ok(()), Ok(()), Ok(()), Err(3599), Ok(())]),
            (granularity("minutes"), [Err(0), Ok(()), Ok(()), Err(86_399), Ok(())]),
            (granularity("hours"), [Err(0), Err(0), Ok(()), Err(2_591_999), Ok(())]),
        ] {
            let least = [3600, 86_400, 2_592_000][to.iter().take(3).take_while(|to| to.is_err()).count()];
            for (name, expected) in ["seconds", "minutes", "hours"].into_iter().zip(to) {
                let filled = of(from.clone()).await;
                let code = filled.modify(doc! { "timeseries": granularity(name) }).await;
                assert_eq!(code, if expected.is_ok() { 0 } else { 72 }, "{from} {name}");
                let now = if expected.is_ok() { name } else { from.get_str("granularity").unwrap() };
                let shown = filled.options().await;
                assert_eq!(shown.get_document("timeseries").unwrap().get_str("granularity").unwrap(), now);
                assert_eq!(filled.all().await, [0, 1, 2, 3]);
            }
            for (seconds, code) in [(least - 1, 72), (least, 0), (least + 1, 0)] {
                let filled = of(from.clone()).await;
                assert_eq!(filled.modify(doc! { "timeseries": custom(seconds) }).await, code, "{from} {seconds}");
            }
        }
        for (seconds, to, code) in [
            (60, granularity("seconds"), 0),
            (61, granularity("seconds"), 72),
            (200, granularity("minutes"), 0),
            (3600, granularity("seconds"), 72),
            (3600, granularity("minutes"), 0),
            (3601, granularity("minutes"), 72),
            (86_400, granularity("hours"), 0),
            (86_401, granularity("hours"), 72),
            (200, custom(199), 72),
            (200, custom(200), 0),
            (200, custom(201), 0),
            (200, custom(31_536_000), 0),
            (200, custom(31_536_001), 2),
            (200, custom(0), 2),
            (200, doc! {}, 0),
            (200, doc! { "bucketMaxSpanSeconds": 300 }, 72),
            (200, doc! { "bucketRoundingSeconds": 300 }, 72),
            (200, doc! { "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 400 }, 72),
            (200, doc! { "granularity": "hours", "bucketMaxSpanSeconds": 1 }, 72),
            (200, doc! { "granularity": "hours", "bucketMaxSpanSeconds": 2_592_000 }, 0),
            (200, doc! { "granularity": "hours", "bucketRoundingSeconds": 86_400 }, 72),
        ] {
            let filled = of(custom(seconds)).await;
            assert_eq!(filled.modify(doc! { "timeseries": to.clone() }).await, code, "{seconds} {to}");
            assert_eq!(filled.all().await, [0, 1, 2, 3]);
            filled.sound().await;
        }
    });
}

#[test]
fn a_custom_span_after_hours_is_listed_without_a_granularity() {
    block_on(async {
        let filled = of(granularity("hours")).await;
        assert_eq!(
            filled.modify(doc! { "timeseries": { "granularity": "hours", "bucketMaxSpanSeconds": 2_592_000 } }).await,
            0
        );
        assert_eq!(filled.modify(doc! { "timeseries": custom(2_592_001) }).await, 0);
        let expected: Document = tagged().into_iter().chain(custom(2_592_001)).collect();
        assert_eq!(filled.options().await, doc! { "timeseries": expected });
    });
}

#[test]
fn expire_after_seconds_is_a_number_or_off() {
    block_on(async {
        let filled = of(doc! {}).await;
        for (age, code, shown) in [
            (bson!(10), 0, Some(10)),
            (bson!(0), 0, Some(0)),
            (bson!("off"), 0, None),
            (bson!("off"), 0, None),
            (bson!(100.0), 0, Some(100)),
            (bson!("10"), 72, Some(100)),
            (bson!({}), 14, Some(100)),
            (bson!(-10), 72, Some(100)),
        ] {
            assert_eq!(filled.modify(doc! { "expireAfterSeconds": age.clone() }).await, code, "{age}");
            assert_eq!(filled.options().await.get_i64("expireAfterSeconds").ok(), shown);
        }
    });
}

#[test]
fn options_of_other_kinds_of_collection_are_refused_by_coll_mod() {
    block_on(async {
        let filled = of(doc! {}).await;
        let before = filled.options().await;
        for more in [
            doc! { "validator": { "x": 1 } },
            doc! { "validationLevel": "strict" },
            doc! { "validationAction": "error" },
            doc! { "viewOn": "d", "pipeline": [] },
            doc! { "recordPreImages": true },
            doc! { "cappedSize": 1 },
            doc! { "timeseries": granularity("minutes"), "expireAfterSeconds": 1 },
            doc! { "timeseries": granularity("minutes"), "index": { "name": "tag_1_t_1", "hidden": true } },
            doc! { "timeseries": granularity("minutes"), "validator": {} },
        ] {
            assert_eq!(filled.modify(more.clone()).await, 72, "{more}");
        }
        assert_eq!(filled.options().await, before);
        assert_eq!(filled.listed("c").await, [doc! { "v": 2, "key": { "tag": 1, "t": 1 }, "name": "tag_1_t_1" }]);
    });
}

#[test]
fn coll_mod_changes_only_existing_options_of_an_index() {
    block_on(async {
        let filled = of(doc! {}).await;
        filled.index(doc! { "a": 1 }, doc! {}).await;
        let age = doc! { "expireAfterSeconds": 5, "partialFilterExpression": { "tag": 1 } };
        filled.index(doc! { "t": 1 }, age).await;
        let which = || doc! { "keyPattern": { "a": 1 } };
        let with = |more: Document| doc! { "index": which().into_iter().chain(more).collect::<Document>() };
        for (code, more) in [
            (72, with(doc! { "expireAfterSeconds": 1 })),
            (72, with(doc! { "prepareUnique": true })),
            (72, with(doc! { "prepareUnique": false })),
            (72, with(doc! { "unique": true })),
            (72, with(doc! {})),
            (72, doc! { "index": { "hidden": true } }),
            (72, doc! { "index": { "name": "a_1", "keyPattern": { "a": 1 }, "hidden": true } }),
            (0, with(doc! { "hidden": true })),
            (0, with(doc! { "hidden": false })),
            (0, doc! { "index": { "name": "t_1", "expireAfterSeconds": 7 } }),
            (0, doc! { "index": { "keyPattern": { "t": 1 }, "expireAfterSeconds": 8 } }),
            (27, doc! { "index": { "keyPattern": { "a": -1 }, "hidden": true } }),
            (27, doc! { "index": { "keyPattern": { "t": -1 }, "hidden": true } }),
        ] {
            assert_eq!(filled.modify(more.clone()).await, code, "{more}");
        }
        assert_eq!(filled.listed("c").await[2].get_i64("expireAfterSeconds").unwrap(), 8);
        // Over buckets, the original specification is listed as well.
        let raw = filled.listed("system.buckets.c").await.remove(2);
        assert_eq!(raw.get_document("originalSpec").unwrap().get_i64("expireAfterSeconds").unwrap(), 8);
    });
}

#[test]
fn a_collection_keeps_its_name() {
    block_on(async {
        let filled = of(doc! {}).await;
        for (from, to) in [
            ("test.c", "test.d"),
            ("test.c", "test.system.buckets.d"),
            ("test.system.buckets.c", "test.d"),
            ("test.d", "test.system.buckets.c"),
        ] {
            assert_eq!(filled.fails(doc! { "renameCollection": from, "to": to }).await, 166);
        }
        assert_eq!(filled.all().await, [0, 1, 2, 3]);
        assert_eq!(filled.tags().await, vec![Some(Bson::from(1)); 4]);
    });
}
