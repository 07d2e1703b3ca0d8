//! `listCollections` and `listIndexes`: what they show, and in what batches; likewise pipelines that read no collection.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv, raw, take_rows};

fn open() -> Db {
    Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1))
}

/// All rows of a command, in batches as it says, and the sizes of these batches.
async fn listed(db: &Db, command: RawDocumentBuf) -> (Vec<Document>, Vec<usize>) {
    let mut reply = db.ok(command).await;
    let cursor = reply.get_document_mut("cursor").unwrap();
    let ns = cursor.get_str("ns").unwrap().strip_prefix("test.").unwrap().to_owned();
    let mut id = cursor.get_i64("id").unwrap();
    let mut rows = take_rows(cursor, "firstBatch");
    let mut sizes = vec![rows.len()];
    while id != 0 {
        let mut reply = db.ok(rawdoc! { "getMore": id, "collection": ns.as_str(), "batchSize": 2 }).await;
        let cursor = reply.get_document_mut("cursor").unwrap();
        let batch = take_rows(cursor, "nextBatch");
        sizes.push(batch.len());
        rows.extend(batch);
        id = cursor.get_i64("id").unwrap();
    }
    (rows, sizes)
}

async fn collection(db: &Db, name: &str) -> Document {
    let (mut rows, _) = listed(db, rawdoc! { "listCollections": 1, "filter": { "name": name } }).await;
    rows.remove(0)
}

#[test]
fn the_collection_of_buckets_shows_that_it_is_clustered_and_what_a_bucket_must_be() {
    block_on(async {
        let db = open();
        let create =
            rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" }, "expireAfterSeconds": 90 };
        db.ok(create).await;
        let (own, raw_one) = (collection(&db, "c").await, collection(&db, "system.buckets.c").await);
        let mut options = raw_one.get_document("options").unwrap().clone();
        let validator = options.remove("validator").unwrap();
        assert_eq!(options.remove("clusteredIndex"), Some(Bson::Boolean(true)));
        assert_eq!(&options, own.get_document("options").unwrap());
        let [own, info] = [&own, &raw_one].map(|of| of.get_document("info").unwrap().clone());
        assert_eq!(own, doc! { "readOnly": false });
        assert!(matches!(info.get("uuid"), Some(Bson::Binary(uuid)) if uuid.bytes.len() == 16));

        db.insert(
            "c",
            &[rawdoc! { "at": DateTime::from_millis(0), "m": 1, "x": 1 }, rawdoc! { "at": DateTime::from_millis(1) }],
        )
        .await;
        let matching =
            async |filter: Document| db.find(raw(&doc! { "find": "system.buckets.c", "filter": filter })).await.len();
        assert_eq!(matching(validator.as_document().unwrap().clone()).await, 2);
        // A validator of another collection is about another time field.
        db.ok(rawdoc! { "create": "d", "timeseries": { "timeField": "other" } }).await;
        let other = collection(&db, "system.buckets.d").await;
        let other = other.get_document("options").unwrap().get_document("validator").unwrap().clone();
        assert_eq!(matching(other).await, 0);
    });
}

#[test]
fn lists_come_in_batches_of_the_size_that_the_cursor_has() {
    block_on(async {
        let db = open();
        for name in ["a", "b", "c"] {
            db.ok(rawdoc! { "create": name, "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        }
        db.ok(rawdoc! { "createIndexes": "a", "indexes": [{ "key": { "m.x": 1 }, "name": "x" }, { "key": { "m.y": 1 }, "name": "y" }] }).await;
        let all = listed(&db, rawdoc! { "listCollections": 1 }).await.0;
        for (command, expected) in [
            (rawdoc! { "listCollections": 1 }, 6),
            (rawdoc! { "listIndexes": "a" }, 3),
            (rawdoc! { "listIndexes": "system.buckets.a" }, 3),
        ] {
            for (batch_size, sizes) in [
                (None, vec![expected]),
                (Some(0), vec![0, 2, 2, 2]),
                (Some(1), vec![1, 2, 2, 1]),
                (Some(100), vec![expected]),
            ] {
                let mut command = command.clone();
                if let Some(batch_size) = batch_size {
                    command.append(bson::cstr!("cursor"), rawdoc! { "batchSize": batch_size });
                } else {
                    command.append(bson::cstr!("cursor"), rawdoc! {});
                }
                let (rows, found) = listed(&db, command).await;
                assert_eq!(rows.len(), expected);
                let most = sizes.iter().scan(0, |sum, size| {
                    *sum += size;
                    Some((*sum).min(expected) - (*sum - size).min(expected))
                });
                assert_eq!(
                    found,
                    most.filter({
                        let mut first = true;
                        move |size| std::mem::take(&mut first) || *size > 0
                    })
                    .collect::<Vec<_>>(),
                    "{batch_size:?}"
                );
            }
        }
        let names =
            listed(&db, rawdoc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 1 } }).await.0;
        let of = |rows: &[Document]| rows.iter().map(|row| row.get_str("name").unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(of(&names), of(&all));
    });
}

#[test]
fn pipelines_over_documents_and_statistics_come_in_batches_of_the_size_that_the_cursor_has() {
    block_on(async {
        let db = open();
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
        let indexes = [rawdoc! { "key": { "m.a": 1 }, "name": "a" }, rawdoc! { "key": { "m.b": 1 }, "name": "b" }];
        db.ok(rawdoc! { "createIndexes": "c", "indexes": [indexes[0].clone(), indexes[1].clone()] }).await;
        let documents = || doc! { "$documents": [{ "n": 1 }, { "n": 2 }, { "n": 3 }, { "n": 4 }, { "n": 5 }] };
        let run = async |target: Bson, stages: &[Document], cursor: Document| {
            listed(&db, raw(&doc! { "aggregate": target, "pipeline": stages, "cursor": cursor })).await
        };
        let none = || Bson::Int32(1);
        let of = |name: &str| Bson::String(name.to_owned());
        for (cursor, sizes) in [
            (doc! {}, vec![5]),
            (doc! { "batchSize": 0 }, vec![0, 2, 2, 1]),
            (doc! { "batchSize": 3 }, vec![3, 2]),
            (doc! { "batchSize": 5 }, vec![5]),
        ] {
            let (rows, batches) = run(none(), &[documents()], cursor).await;
            assert_eq!(rows.iter().map(|row| row.get_i32("n").unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
            assert_eq!(batches, sizes);
        }
        // Stages behind it count, not the documents before them.
        let (_, batches) =
            run(none(), &[documents(), doc! { "$match": { "n": { "$gt": 2 } } }], doc! { "batchSize": 2 }).await;
        assert_eq!(batches, [2, 1]);
        for name in ["c", "system.buckets.c"] {
            let (shown, batches) = run(of(name), &[doc! { "$indexStats": {} }], doc! { "batchSize": 1 }).await;
            assert_eq!((shown.len(), batches[0]), (batches.iter().sum(), 1), "{name}");
            assert!(shown.len() > 1);
            let (_, batches) = run(of(name), &[doc! { "$collStats": { "count": {} } }], doc! { "batchSize": 0 }).await;
            assert_eq!(batches, [0, 1], "{name}");
        }
        // Without rows there is nothing to come back for.
        let (_, batches) = run(of("absent"), &[doc! { "$match": {} }], doc! { "batchSize": 0 }).await;
        assert_eq!(batches, [0]);
    });
}

#[test]
fn cursors_of_lists_are_those_of_their_namespaces_and_are_killed_as_others() {
    block_on(async {
        let db = open();
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        for (command, ns) in [
            (rawdoc! { "listCollections": 1, "cursor": { "batchSize": 0 } }, "$cmd.listCollections"),
            (rawdoc! { "listIndexes": "c", "cursor": { "batchSize": 0 } }, "c"),
        ] {
            let id = db.ok(command).await.get_document("cursor").unwrap().get_i64("id").unwrap();
            assert_eq!(db.fails(rawdoc! { "getMore": id, "collection": "other" }).await.0, 13);
            let killed = db.ok(rawdoc! { "killCursors": ns, "cursors": [id] }).await;
            assert_eq!(killed.get_array("cursorsKilled").unwrap(), &vec![Bson::Int64(id)]);
            assert_eq!(db.fails(rawdoc! { "getMore": id, "collection": ns }).await.0, 43);
        }
        for (cursor, code) in
            [(doc! { "batchSize": -1 }, 51024), (doc! { "batchSize": "x" }, 14), (doc! { "what": 1 }, 40415)]
        {
            for command in [doc! { "listCollections": 1 }, doc! { "listIndexes": "c" }] {
                let command: Document = command.into_iter().chain(doc! { "cursor": cursor.clone() }).collect();
                assert_eq!(db.fails(raw(&command)).await.0, code, "{command}");
            }
        }
        assert_eq!(db.fails(rawdoc! { "listIndexes": "c", "cursor": 1 }).await.0, 14);
    });
}

/// The collation of each index by its name, over measurements and over buckets, and those of `originalSpec`.
async fn collations(db: &Db, name: &str) -> Vec<(String, Option<Document>)> {
    let mut found = Vec::new();
    for name in [name.to_owned(), format!("system.buckets.{name}")] {
        for index in listed(db, rawdoc! { "listIndexes": name.as_str() }).await.0 {
            let own = index.get_document("collation").ok().cloned();
            if let Ok(original) = index.get_document("originalSpec") {
                assert_eq!(original.get_document("collation").ok().cloned(), own);
            }
            found.push((index.get_str("name").unwrap().to_owned(), own));
        }
    }
    let (own, of_buckets) = found.split_at(found.len() / 2);
    assert_eq!(own, of_buckets);
    own.to_vec()
}

#[test]
fn every_index_shows_its_collation_complete() {
    block_on(async {
        let db = open();
        let create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "collation": { "locale": "fr" } };
        db.ok(create).await;
        let options = collection(&db, "c").await;
        let french = options.get_document("options").unwrap().get_document("collation").unwrap().clone();
        assert!(french.get_i32("strength").is_ok(), "{french}");
        let simple = doc! { "locale": "simple" };
        let indexes = doc! { "createIndexes": "c", "indexes": [
            { "key": { "m.a": 1 }, "name": "default" },
            { "key": { "m.b": 1 }, "name": "named", "collation": { "locale": "fr" } },
            { "key": { "m.c": 1 }, "name": "simple", "collation": simple.clone() },
            { "key": { "m.d": 1 }, "name": "weak", "collation": { "locale": "fr", "strength": 1 } },
            { "key": { "x": 1 }, "name": "partial", "partialFilterExpression": { "m": 1 } },
        ] };
        db.ok(raw(&indexes)).await;
        let weak: Document = french
            .clone()
            .into_iter()
            .map(|(name, value)| match &*name {
                "strength" => (name, Bson::Int32(1)),
                _ => (name, value),
            })
            .collect();
        let named = |name: &str, collation: &Document| (name.to_owned(), Some(collation.clone()));
        let expected = [
            named("m_1_t_1", &french),
            named("default", &french),
            named("named", &french),
            named("simple", &simple),
            named("weak", &weak),
            named("partial", &french),
        ];
        assert_eq!(collations(&db, "c").await, expected);
        // What is listed is what is there: to create it again changes nothing.
        for index in listed(&db, rawdoc! { "listIndexes": "c" }).await.0 {
            if index.get_str("name").unwrap() != "partial" {
                let reply = db.ok(raw(&doc! { "createIndexes": "c", "indexes": [index] })).await;
                assert_eq!(reply.get_i32("numIndexesBefore").unwrap(), reply.get_i32("numIndexesAfter").unwrap());
            }
        }
        // Another collation of the same key is another index, which needs another name.
        let other =
            doc! { "createIndexes": "c", "indexes": [{ "key": { "m.a": 1 }, "name": "default", "collation": simple }] };
        assert_eq!(db.fails(raw(&other)).await.0, 86);
        let unknown = doc! { "createIndexes": "c", "indexes": [{ "key": { "m.e": 1 }, "name": "e", "collation": { "locale": "xx" } }] };
        assert_eq!(db.fails(raw(&unknown)).await.0, 2);
    });
}

#[test]
fn an_index_without_a_collation_in_a_collection_without_one_shows_none() {
    block_on(async {
        let db = open();
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let index = doc! { "key": { "m.a": 1 }, "name": "a", "collation": { "locale": "simple" } };
        db.ok(raw(&doc! { "createIndexes": "c", "indexes": [index] })).await;
        assert!(collations(&db, "c").await.iter().all(|(_, collation)| collation.is_none()));
    });
}

#[test]
fn what_was_asked_for_at_first_may_name_the_collation_of_the_collection_or_leave_it_out() {
    block_on(async {
        let db = open();
        let create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "collation": { "locale": "fr" } };
        db.ok(create).await;
        let options = collection(&db, "c").await;
        let french = options.get_document("options").unwrap().get_document("collation").unwrap().clone();
        let short = doc! { "locale": "fr" };
        for (n, (own, original, fits)) in [
            (None, None, true),
            (None, Some(&french), true),
            (None, Some(&short), true),
            (Some(&short), None, true),
            (Some(&short), Some(&french), true),
            (Some(&french), Some(&short), true),
            (None, Some(&doc! { "locale": "simple" }), false),
            (None, Some(&doc! { "locale": "fr", "strength": 1 }), false),
            (Some(&doc! { "locale": "simple" }), None, false),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("i{n}");
            let with = |collation: Option<&Document>| {
                let mut spec = doc! { "key": { format!("m.f{n}"): 1 }, "name": &name };
                spec.extend(collation.map(|collation| ("collation".to_owned(), Bson::Document(collation.clone()))));
                spec
            };
            let mut spec = with(own);
            spec.insert("originalSpec", with(original));
            let command = raw(&doc! { "createIndexes": "c", "indexes": [spec] });
            if fits {
                db.ok(command).await;
            } else {
                assert_eq!(db.fails(command).await.0, 197, "{own:?} {original:?}");
            }
        }
    });
}
