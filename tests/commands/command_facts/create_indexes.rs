//! Facts 10 to 12, 16 to 19, 21, 29, 31, 32, 66, 67: index specifications that are refused, and their codes.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{Filled, Form, at, tagged};
use crate::support::raw;

async fn empty() -> Filled {
    Filled::new(Form::Journal, doc! { "timeseries": tagged() }, &[]).await
}

#[test]
fn empty_keys_and_unsupported_index_types_are_refused() {
    block_on(async {
        let filled = empty().await;
        for key in [
            doc! {},
            doc! { "$natural": 1 },
            doc! { "$natural": -1 },
            doc! { "$hint": "n" },
            doc! { "loc": "2dsphere_bucket" },
            doc! { "t": "2dsphere_bucket" },
            doc! { "t": "hashed" },
            doc! { "x": "hashed" },
            doc! { "tag": "hashed", "x": "hashed" },
            doc! { "x": "geoHaystack" },
        ] {
            assert_eq!(filled.refused(key.clone(), doc! {}).await, 67, "{key}");
        }
        for key in [doc! { "tag": "text" }, doc! { "x": "text" }, doc! { "t": "text" }, doc! { "x": 1, "tag": "text" }]
        {
            assert_eq!(filled.refused(key.clone(), doc! {}).await, 72, "{key}");
        }
        for key in [doc! { "tag": 1 }, doc! { "x": 1 }, doc! { "t": 1 }] {
            assert_eq!(filled.refused(key.clone(), doc! { "unique": true }).await, 72, "{key}");
        }
        assert_eq!(filled.listed("c").await.len(), 1);
    });
}

#[test]
fn expire_after_seconds_needs_an_index_on_time_with_a_filter_on_metadata() {
    block_on(async {
        for create in [doc! {}, doc! { "expireAfterSeconds": 3600 }] {
            let create = doc! { "timeseries": tagged() }.into_iter().chain(create).collect();
            let filled = Filled::new(Form::Journal, create, &[]).await;
            let age = |filter: Document| {
                let mut more = doc! { "expireAfterSeconds": 400 };
                if !filter.is_empty() {
                    more.insert("partialFilterExpression", filter);
                }
                more
            };
            let meta = || doc! { "tag": { "$gt": 5 } };
            for (code, key, filter) in [
                (72, doc! { "t": 1 }, doc! {}),
                (72, doc! { "tag": 1 }, doc! {}),
                (72, doc! { "x": 1 }, doc! {}),
                (72, doc! { "t": 1 }, doc! { "x": { "$gt": 5 } }),
                (72, doc! { "t": 1 }, doc! { "x": { "$gt": 5 }, "tag": 1 }),
                (72, doc! { "t": 1 }, doc! { "t": { "$gt": at(5) } }),
                (72, doc! { "tag": 1 }, meta()),
                (72, doc! { "x": 1 }, meta()),
                (67, doc! { "t": 1, "tag": 1 }, meta()),
                (67, doc! { "t": 1, "x": 1 }, meta()),
            ] {
                assert_eq!(filled.refused(key.clone(), age(filter.clone())).await, code, "{key} {filter}");
            }
            filled.index(doc! { "t": 1 }, age(meta())).await;
            let shown = filled.listed("c").await.remove(1);
            assert_eq!(
                (shown.get_document("key").unwrap(), shown.get_i64("expireAfterSeconds").unwrap()),
                (&doc! { "t": 1 }, 400)
            );
            // One field of the key is enough to find expired buckets.
            let raw = filled.listed("system.buckets.c").await.remove(1);
            assert_eq!(raw.get_document("key").unwrap(), &doc! { "control.min.t": 1 });
            assert_eq!(raw.get_document("partialFilterExpression").unwrap(), &doc! { "meta": { "$gt": 5 } });
        }
    });
}

#[test]
fn a_sparse_index_on_measurements_is_refused() {
    block_on(async {
        let filled = empty().await;
        let sparse = || doc! { "sparse": true };
        for key in [doc! { "x": 1 }, doc! { "tag": 1, "x": 1 }, doc! { "x": -1, "t": 1 }, doc! { "tagx": 1 }] {
            assert_eq!(filled.refused(key.clone(), sparse()).await, 72, "{key}");
        }
        filled.index(doc! { "x": 1 }, doc! { "sparse": false }).await;
        filled.index(doc! { "tag.x": 1, "t": 1 }, sparse()).await;
    });
}

#[test]
fn a_partial_filter_is_an_object_and_excludes_a_collation() {
    block_on(async {
        let filled = empty().await;
        for locale in ["simple", "fr"] {
            for both in [
                doc! { "partialFilterExpression": { "x": 1 }, "collation": { "locale": locale } },
                doc! { "collation": { "locale": locale }, "partialFilterExpression": { "x": 1 } },
            ] {
                assert_eq!(filled.refused(doc! { "x": 1 }, both).await, 85);
            }
        }
        for filter in [bson!(123), bson!("x"), bson!([]), bson!(true)] {
            assert_eq!(filled.refused(doc! { "x": 1 }, doc! { "partialFilterExpression": filter }).await, 10065);
        }
    });
}

#[test]
fn predicates_that_cannot_apply_to_buckets_are_refused_in_partial_filters() {
    block_on(async {
        let filled = empty().await;
        let pattern =
            |text: &str| Bson::from(bson::Regex { pattern: text.try_into().unwrap(), options: "".try_into().unwrap() });
        for predicate in [
            doc! { "x": {} },
            doc! { "x": { "y": 1 } },
            doc! { "x": [1, 2] },
            doc! { "x": { "$gt": [1] } },
            doc! { "x": { "$lt": { "y": 1 } } },
            doc! { "x": Bson::Null },
            doc! { "x": { "$eq": Bson::Null } },
            doc! { "x": { "$in": [1, Bson::Null] } },
            doc! { "x": { "$in": [1, { "y": 1 }] } },
            doc! { "x": { "$ne": 1 } },
            doc! { "x": { "$nin": [1] } },
            doc! { "x": { "$not": { "$gt": 1 } } },
            doc! { "x": { "$exists": false } },
            doc! { "x": pattern("a") },
            doc! { "x": { "$in": [pattern("a")] } },
            doc! { "t": 1 },
            doc! { "t": { "$lt": "x" } },
            doc! { "t": { "$ne": at(1) } },
        ] {
            let tag = || doc! { "tag": 1 };
            for filter in [
                predicate.clone(),
                doc! { "$and": [tag(), predicate.clone()] },
                doc! { "$or": [tag(), predicate.clone()] },
                doc! { "$and": [{ "$or": [tag(), predicate.clone()] }, { "x": { "$gt": 1 } }] },
            ] {
                let more = doc! { "partialFilterExpression": filter.clone() };
                assert_eq!(filled.refused(doc! { "a": 1 }, more).await, 5_916_301, "{filter}");
            }
        }
        for (n, filter) in [
            doc! { "tag": { "$ne": 1 } },
            doc! { "tag": { "$in": [1, Bson::Null] } },
            doc! { "tag.a": { "$exists": false } },
            doc! { "x": { "$eq": pattern("a") } },
            doc! { "$or": [{ "tag": 1 }, { "x": { "$gt": 1 } }] },
        ]
        .into_iter()
        .enumerate()
        {
            let key = doc! { format!("f{n}"): 1 };
            filled.index(key, doc! { "partialFilterExpression": filter }).await;
        }
    });
}

#[test]
fn metadata_without_a_name_has_indexes_as_any_other() {
    block_on(async {
        let db = crate::support::Db::open(
            std::rc::Rc::new(timepail::storage::memory::MemoryStorage::new()),
            crate::support::TestEnv::new(1),
        );
        db.ok(bson::rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "" } }).await;
        let keys = [
            (doc! { "": 1 }, doc! { "meta": 1 }),
            (doc! { ".a": -1, "t": 1 }, doc! { "meta.a": -1, "control.min.t": 1, "control.max.t": 1 }),
            (doc! { ".b.$**": 1 }, doc! { "meta.b.$**": 1 }),
            (doc! { ".$**": 1 }, doc! { "meta.$**": 1 }),
            (doc! { "x": 1 }, doc! { "control.min.x": 1, "control.max.x": 1 }),
        ];
        for (n, (key, over_buckets)) in keys.into_iter().enumerate() {
            let name = format!("i{n}");
            db.ok(raw(&doc! { "createIndexes": "c", "indexes": [{ "key": key.clone(), "name": &name }] })).await;
            let mut listed = db.ok(bson::rawdoc! { "listIndexes": "system.buckets.c" }).await;
            let listed = crate::support::take_rows(listed.get_document_mut("cursor").unwrap(), "firstBatch");
            let shown = listed.iter().find(|index| index.get_str("name").unwrap() == name).unwrap();
            assert_eq!(shown.get_document("key").unwrap(), &over_buckets);
            let find = doc! { "find": "c", "hint": &name };
            if !key.keys().next().unwrap().ends_with("$**") {
                db.ok(raw(&find)).await;
            }
        }
        for key in [doc! { "..a": 1 }, doc! { ".a.": 1 }, doc! { ".$a": 1 }, doc! { "x.": 1 }] {
            let command = doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": "refused" }] };
            assert_eq!(db.fails(raw(&command)).await.0, 67, "{command}");
        }
        let at = bson::DateTime::from_millis(0);
        db.insert("c", &[bson::rawdoc! { "t": at, "": { "a": 1 } }, bson::rawdoc! { "t": at, "": { "a": 2 } }]).await;
        assert_eq!(db.find(raw(&doc! { "find": "c", "filter": { "": { "a": 2 } }, "hint": "i0" })).await.len(), 1);
    });
}

#[test]
fn the_original_spec_must_have_the_collation_of_the_index() {
    block_on(async {
        let filled = empty().await;
        let original = |collation: Option<&str>| {
            let mut spec = doc! { "key": { "tag": 1 }, "name": "refused" };
            if let Some(locale) = collation {
                spec.insert("collation", doc! { "locale": locale });
            }
            doc! { "originalSpec": spec }
        };
        let with = |more: Document, locale: &str| {
            more.into_iter().chain(doc! { "collation": { "locale": locale } }).collect::<Document>()
        };
        let key = || doc! { "tag.a": 1 };
        assert_eq!(filled.refused(key(), original(Some("fr"))).await, 197);
        assert_eq!(filled.refused(key(), with(original(None), "fr")).await, 197);
        assert_eq!(filled.refused(key(), with(original(Some("de")), "fr")).await, 197);
        filled.index(key(), with(original(Some("fr")), "fr")).await;
        filled.index(doc! { "tag.b": 1 }, original(None)).await;
        assert!(filled.listed("c").await.iter().all(|spec| !spec.contains_key("originalSpec")));
    });
}

#[test]
fn invalid_filters_are_refused_whatever_the_indexes() {
    block_on(async {
        let filled = empty().await;
        for (code, filter) in [
            (5_626_500, doc! { "tag": { "$near": [0, 0] } }),
            (5_626_500, doc! { "x": { "$nearSphere": [0, 0] } }),
            (5_626_500, doc! { "x": { "$geoNear": [0, 0] } }),
            (27, doc! { "$text": { "$search": "x" } }),
            (2, doc! { "$where": "true" }),
        ] {
            assert_eq!(filled.fails(doc! { "find": "c", "filter": filter.clone() }).await, code, "{filter}");
        }
    });
}
