//! `collMod`: changed options of a collection, and contexts that still know the old ones.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, checks, raw};

const HOUR_MS: i64 = 3_600_000;

fn row(ms: i64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "n": ms }
}

async fn two(timeseries: Document) -> (Rc<dyn Storage>, Db, Db) {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(1);
    let (a, b) = (Db::open(Rc::clone(&storage), Rc::clone(&env)), Db::open(Rc::clone(&storage), env));
    a.ok(raw(&doc! { "create": "c", "timeseries": timeseries })).await;
    (storage, a, b)
}

fn seconds() -> Document {
    doc! { "timeField": "t", "metaField": "m" }
}

fn modifying(more: Document) -> RawDocumentBuf {
    raw(&doc! { "collMod": "c" }.into_iter().chain(more).collect())
}

async fn options(db: &Db) -> Document {
    let listed = db.ok(rawdoc! { "listCollections": 1, "filter": { "name": "c" } }).await;
    let first = &listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0];
    first.as_document().unwrap().get_document("options").unwrap().clone()
}

#[test]
fn listed_options_change_at_once_and_custom_spans_remove_the_granularity() {
    block_on(async {
        let (_, a, b) = two(seconds()).await;
        b.ok(rawdoc! { "find": "c" }).await;
        a.ok(modifying(doc! { "timeseries": { "granularity": "hours" } })).await;
        let hours =
            doc! { "timeField": "t", "metaField": "m", "granularity": "hours", "bucketMaxSpanSeconds": 2_592_000 };
        assert_eq!(options(&b).await, doc! { "timeseries": hours });
        b.ok(modifying(
            doc! { "timeseries": { "bucketMaxSpanSeconds": 2_592_001, "bucketRoundingSeconds": 2_592_001 } },
        ))
        .await;
        let custom = doc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 2_592_001, "bucketRoundingSeconds": 2_592_001 };
        assert_eq!(options(&a).await, doc! { "timeseries": custom.clone() });
        for no_change in [doc! {}, doc! { "timeseries": {} }, doc! { "timeseriesBucketsMayHaveMixedSchemaData": true }]
        {
            a.ok(modifying(no_change)).await;
        }
        a.ok(modifying(doc! { "expireAfterSeconds": 10 })).await;
        assert_eq!(options(&b).await, doc! { "timeseries": custom.clone(), "expireAfterSeconds": 10_i64 });
        a.ok(modifying(doc! { "expireAfterSeconds": "off" })).await;
        assert_eq!(options(&b).await, doc! { "timeseries": custom });
    });
}

#[test]
fn the_name_of_the_buckets_has_no_options_of_measurements() {
    block_on(async {
        let (_, db, _) = two(seconds()).await;
        let before = options(&db).await;
        let raw_name =
            |more: Document| raw(&doc! { "collMod": "system.buckets.c" }.into_iter().chain(more).collect::<Document>());
        let refused = [
            doc! { "timeseries": { "granularity": "hours" } },
            doc! { "timeseries": {} },
            doc! { "expireAfterSeconds": 10 },
            doc! { "expireAfterSeconds": "off" },
            doc! { "maxBytes": 1000 },
        ];
        for more in refused {
            assert_eq!(db.fails(raw_name(more)).await, (73, "InvalidNamespace".to_owned()));
        }
        assert_eq!(db.fails(raw_name(doc! { "validator": {} })).await.0, 72);
        db.ok(raw_name(doc! {})).await;
        db.ok(raw_name(doc! { "timeseriesBucketsMayHaveMixedSchemaData": true })).await;
        db.ok(raw_name(doc! { "index": { "name": "m_1_t_1", "hidden": false } })).await;
        assert_eq!(options(&db).await, before);
    });
}

#[test]
fn buckets_of_mixed_types_may_be_stored_once_the_collection_says_so() {
    block_on(async {
        let (storage, a, b) = two(seconds()).await;
        a.insert("c", &[rawdoc! { "t": DateTime::from_millis(0), "m": "a", "x": 1 }]).await;
        a.ok(rawdoc! { "flush": 1 }).await;
        let mut bucket = checks::buckets(&a, "c").await.remove(0);
        a.ok(rawdoc! { "create": "d", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        // As a server from before 5.2 has written them.
        let at = |second: i64| DateTime::from_millis(second * 1000);
        bucket
            .insert("control", doc! { "version": 1, "min": { "t": at(0), "x": 1 }, "max": { "t": at(1), "x": "one" } });
        bucket.insert("data", doc! { "t": { "0": at(0), "1": at(1) }, "x": { "0": 1, "1": "one" } });
        let insert = doc! { "insert": "system.buckets.d", "documents": [bucket], "unsafeBucketWrites": true };
        let stored = async |db: &Db| db.ok(raw(&insert)).await;
        let code = |reply: &Document| {
            let first = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
            first.get_i32("code").unwrap()
        };
        assert_eq!(code(&stored(&a).await), 408);
        let mixed = |mixed: bool| rawdoc! { "collMod": "d", "timeseriesBucketsMayHaveMixedSchemaData": mixed };
        a.ok(mixed(true)).await;
        // Other contexts, and this one after it was opened again, know of it.
        assert!(!stored(&b).await.contains_key("writeErrors"));
        let again = Db::open(Rc::clone(&storage), TestEnv::new(2));
        assert_eq!(code(&stored(&again).await), 11000);
        for filter in [doc! { "x": 1 }, doc! { "x": "one" }, doc! { "x": { "$type": "string" } }] {
            let found = again.find(raw(&doc! { "find": "d", "filter": filter.clone() })).await;
            assert_eq!(found.len(), 1, "{filter}");
        }
        // What is there stays, and no more comes.
        a.ok(mixed(false)).await;
        a.ok(
            rawdoc! { "delete": "system.buckets.d", "deletes": [{ "q": {}, "limit": 0 }], "unsafeBucketWrites": true },
        )
        .await;
        assert_eq!(code(&stored(&b).await), 408);
    });
}

#[test]
fn whether_buckets_may_be_mixed_is_changed_alone() {
    block_on(async {
        let (_, db, _) = two(seconds()).await;
        for other in [doc! { "expireAfterSeconds": 1 }, doc! { "timeseries": {} }, doc! { "what": 1 }] {
            let both = doc! { "timeseriesBucketsMayHaveMixedSchemaData": true }.into_iter().chain(other).collect();
            assert_eq!(db.fails(modifying(both)).await, (72, "InvalidOptions".to_owned()));
        }
        let wrong = modifying(doc! { "timeseriesBucketsMayHaveMixedSchemaData": "yes" });
        assert_eq!(db.fails(wrong).await.0, 14);
        let create = rawdoc! { "create": "d", "timeseries": { "timeField": "t" }, "timeseriesBucketsMayHaveMixedSchemaData": true };
        assert_eq!(db.fails(create).await.0, 40415);
    });
}

#[test]
fn a_change_of_granularity_keeps_open_buckets_open() {
    block_on(async {
        let (storage, a, b) = two(seconds()).await;
        let mut documents = Vec::new();
        for db in [&a, &b] {
            db.insert("c", &[row(60_000)]).await;
        }
        a.ok(modifying(doc! { "timeseries": { "granularity": "hours" } })).await;
        // The other one learns of it by a read. Beyond the earlier span, and still in the buckets that begin at 60 s.
        b.ok(rawdoc! { "find": "c" }).await;
        for db in [&a, &b] {
            db.insert("c", &[row(5 * HOUR_MS), row(24 * HOUR_MS)]).await;
            let stats = db.ok(rawdoc! { "collStats": "c" }).await;
            let of = |field: &str| stats.get_document("timeseries").unwrap().get_i64(field).unwrap();
            assert_eq!([of("numBucketInserts"), of("numBucketsClosedDueToTimeForward")], [1, 0]);
            assert_eq!(of("numBucketsReopened"), 0);
            documents = checks::buckets(db, "c").await;
        }
        let starts: Vec<i64> = documents
            .iter()
            .map(|bucket| {
                bucket.get_document("control").unwrap().get_document("min").unwrap().get_datetime("t").unwrap()
            })
            .map(|start| start.timestamp_millis())
            .collect();
        assert_eq!(starts, [60_000; 2]);
        checks::sound_when_folded(&*storage, &a, "c", Writers::Several).await;
    });
}

#[test]
fn immutable_options_are_refused_and_nothing_changes() {
    block_on(async {
        let (_, db, _) = two(seconds()).await;
        let before = options(&db).await;
        for (more, code) in [
            (doc! { "validator": {} }, 72),
            (doc! { "validationLevel": "off" }, 72),
            (doc! { "validationAction": "warn" }, 72),
            (doc! { "viewOn": "x", "pipeline": [] }, 72),
            (doc! { "changeStreamPreAndPostImages": { "enabled": true } }, 72),
            (doc! { "cappedSize": 1 }, 72),
            (doc! { "timeseries": { "granularity": "minutes" }, "expireAfterSeconds": 1 }, 72),
            (doc! { "timeseries": { "bucketMaxSpanSeconds": 3599, "bucketRoundingSeconds": 3599 } }, 72),
            (doc! { "timeseries": { "granularity": "days" } }, 2),
            (doc! { "timeseries": 1 }, 14),
            (doc! { "expireAfterSeconds": "10" }, 72),
            (doc! { "expireAfterSeconds": {} }, 14),
            (doc! { "expireAfterSeconds": -10 }, 72),
            (doc! { "nonsense": 1 }, 40415),
        ] {
            assert_eq!(db.fails(modifying(more.clone())).await.0, code, "{more}");
        }
        assert_eq!(options(&db).await, before);
        assert_eq!(db.fails(rawdoc! { "collMod": "missing" }).await.0, 26);
    });
}

#[test]
fn contexts_that_know_the_old_options_find_buckets_of_both() {
    block_on(async {
        let (storage, a, b) = two(seconds()).await;
        let times = |hours: std::ops::Range<i64>| hours.map(|hour| hour * HOUR_MS + 60_000).collect::<Vec<_>>();
        for ms in times(0..4) {
            a.insert("c", &[row(ms)]).await;
        }
        a.ok(rawdoc! { "flush": 1 }).await;
        // This context still plans for buckets of an hour.
        assert_eq!(b.find(rawdoc! { "find": "c", "filter": { "m": "a" } }).await.len(), 4);
        a.ok(modifying(doc! { "timeseries": { "granularity": "minutes" } })).await;
        for ms in times(24..34) {
            a.insert("c", &[row(ms)]).await;
        }
        a.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(checks::buckets(&b, "c").await.len(), 5, "the later ones lie in one bucket of a day");
        for db in [&a, &b] {
            let at = DateTime::from_millis(33 * HOUR_MS + 60_000);
            for filter in [doc! { "t": at }, doc! { "m": "a", "t": at }, doc! { "t": { "$gte": at } }] {
                assert_eq!(db.find(rawdoc! { "find": "c", "filter": raw(&filter) }).await.len(), 1, "{filter}");
            }
        }
        checks::sound_when_folded(&*storage, &b, "c", Writers::Several).await;
    });
}

#[test]
fn retention_set_by_coll_mod_takes_effect() {
    block_on(async {
        let (_, a, b) = two(seconds()).await;
        a.insert("c", &[row(1_800_000_000_000 - 100 * HOUR_MS), row(1_800_000_000_000)]).await;
        b.ok(rawdoc! { "find": "c" }).await;
        b.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(b.find(rawdoc! { "find": "c" }).await.len(), 2);
        a.ok(modifying(doc! { "expireAfterSeconds": 3600 })).await;
        b.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(b.find(rawdoc! { "find": "c" }).await.len(), 1);
    });
}

#[test]
fn buckets_are_not_fixed_after_their_options_changed() {
    block_on(async {
        let fixed =
            doc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 3600, "bucketRoundingSeconds": 3600 };
        let (_, a, b) = two(fixed).await;
        a.insert("c", &[row(HOUR_MS), row(HOUR_MS + 1)]).await;
        let explained = async |db: &Db| {
            let find = rawdoc! { "find": "c", "filter": { "t": { "$gte": DateTime::from_millis(HOUR_MS) } } };
            db.ok(rawdoc! { "explain": find, "verbosity": "queryPlanner" }).await.to_string()
        };
        assert!(explained(&a).await.contains("fixedBuckets") && explained(&b).await.contains("fixedBuckets"));
        a.ok(modifying(doc! { "timeseries": { "bucketMaxSpanSeconds": 7200, "bucketRoundingSeconds": 7200 } })).await;
        b.ok(rawdoc! { "find": "c" }).await;
        assert!(!explained(&a).await.contains("fixedBuckets") && !explained(&b).await.contains("fixedBuckets"));
    });
}

#[test]
fn a_cursor_planned_for_fixed_buckets_filters_longer_ones() {
    block_on(async {
        let hour = |hours: i64| DateTime::from_millis(hours * HOUR_MS);
        for (filter, expected) in [
            (doc! { "t": { "$lt": hour(3) } }, 0..6),
            (doc! { "t": { "$gte": hour(1), "$lt": hour(3) } }, 2..6),
            (doc! { "t": { "$gte": hour(3) } }, 6..10),
        ] {
            let fixed = doc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 3600, "bucketRoundingSeconds": 3600 };
            let (storage, a, b) = two(fixed).await;
            let half_hours: Vec<i64> = (0..10).map(|n| n * HOUR_MS / 2).collect();
            a.insert("c", &half_hours.iter().map(|ms| row(*ms)).collect::<Vec<_>>()).await;
            a.ok(rawdoc! { "flush": 1 }).await;
            let reader = Db::open(storage, TestEnv::new(9));
            let mut reply = reader.ok(raw(&doc! { "find": "c", "filter": filter.clone(), "batchSize": 0 })).await;
            let id = reply.get_document_mut("cursor").unwrap().get_i64("id").unwrap();
            let timeseries = doc! { "bucketMaxSpanSeconds": 4 * 3600, "bucketRoundingSeconds": 4 * 3600 };
            a.ok(modifying(doc! { "timeseries": timeseries })).await;
            // Into buckets of four hours, and into those of an hour, which may now become longer.
            for db in [&a, &b] {
                for hours in 0..5 {
                    db.insert("c", &[row(hours * HOUR_MS + 60_000), row(hours * HOUR_MS + 120_000)]).await;
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
            }
            let mut rest = reader.ok(rawdoc! { "getMore": id, "collection": "c" }).await;
            let found = crate::support::take_rows(rest.get_document_mut("cursor").unwrap(), "nextBatch");
            let times: Vec<i64> = found.iter().map(|row| row.get_i64("n").unwrap()).collect();
            let matching = reader.find(raw(&doc! { "find": "c", "filter": filter.clone() })).await;
            let matching: Vec<i64> = matching.iter().map(|row| row.get_i64("n").unwrap()).collect();
            assert!(times.iter().all(|n| matching.contains(n)), "{filter}: {times:?}");
            let before: Vec<i64> = expected.map(|n| half_hours[n]).collect();
            for ms in before {
                assert_eq!(times.iter().filter(|n| **n == ms).count(), 1, "{filter}: {times:?}");
            }
        }
    });
}
