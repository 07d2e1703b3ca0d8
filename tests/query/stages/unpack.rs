//! `$_internalUnpackBucket` and `$_unpackBucket`, over buckets of a collection and over others.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::block::{Column, ColumnBuilder};
use timepail::column;
use timepail::value::Doc;

use super::{at, code, list, row, values, with_rows};
use crate::support::explained::Explained;
use crate::support::weather::database;
use crate::support::{Db, multiset, raw, take_rows};

/// The stage with its required and some more parameters.
fn stage(more: Document) -> Document {
    let mut parameters = doc! { "timeField": "at", "metaField": "station", "bucketMaxSpanSeconds": 3600 };
    parameters.extend(more);
    doc! { "$_internalUnpackBucket": parameters }
}

/// A pipeline over listed documents.
fn over(buckets: &[Document], stages: &[Document]) -> RawDocumentBuf {
    let first = doc! { "$documents": buckets };
    let pipeline: Vec<Document> = [first].into_iter().chain(stages.iter().cloned()).collect();
    raw(&doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {} })
}

async fn rows_of(db: &Db, buckets: &[Document], stages: &[Document]) -> Vec<Document> {
    take_rows(&mut db.ok(over(buckets, stages)).await.get_document("cursor").unwrap().clone(), "firstBatch")
}

/// A pipeline over the buckets of the collection.
fn raw_command(pipeline: &[Document]) -> RawDocumentBuf {
    raw(&doc! { "aggregate": "system.buckets.weather", "pipeline": pipeline, "cursor": { "batchSize": 1000 } })
}

async fn raw_rows(db: &Db, pipeline: &[Document]) -> Vec<Document> {
    take_rows(&mut db.ok(raw_command(pipeline)).await.get_document("cursor").unwrap().clone(), "firstBatch")
}

/// A compressed column; undefined stands for a missing value.
fn compressed(cells: Vec<Bson>) -> Bson {
    let mut builder = ColumnBuilder::new();
    for cell in cells {
        let cell = raw(&doc! { "x": cell });
        match Doc::parse(cell.as_bytes()).unwrap().get("x").filter(|value| value.kind().alias() != "undefined") {
            Some(value) => builder.push(value),
            None => builder.push_absent(1),
        }
    }
    let column: Column = builder.finish();
    Bson::Binary(Binary { subtype: BinarySubtype::Column, bytes: column::encode(&column) })
}

/// A bucket of three measurements, of which the second lacks `a`.
fn bucket(version: i32) -> Document {
    let times = list![at(3), at(5), at(4)];
    let limits = doc! { "at": at(0) };
    let mut control = doc! { "version": version, "min": limits.clone(), "max": limits };
    let data = if version == 1 {
        doc! { "b": { "0": "x", "9": "y", "10": "z" }, "at": { "0": at(3), "9": at(5), "10": at(4) }, "a": { "0": 1, "10": 3 } }
    } else {
        control.insert("count", 3);
        doc! {
            "b": compressed(list!["x", "y", "z"]), "at": compressed(times),
            "a": compressed(list![1, Bson::Undefined, 3]),
        }
    };
    doc! { "_id": 7, "control": control, "meta": { "k": 1 }, "data": data }
}

fn measurement(second: i64, fields: Document) -> Document {
    let mut measurement = doc! { "at": at(second), "station": { "k": 1 } };
    measurement.extend(fields);
    measurement
}

#[test]
fn unpacked_measurements_have_time_then_metadata_then_the_columns() {
    block_on(async {
        let db = database();
        for version in 1..=3 {
            let rows = rows_of(&db, &[bucket(version)], &[stage(doc! {})]).await;
            let wanted = [
                measurement(3, doc! { "b": "x", "a": 1 }),
                measurement(5, doc! { "b": "y" }),
                measurement(4, doc! { "b": "z", "a": 3 }),
            ];
            assert_eq!(rows, wanted, "version {version}");
        }
    });
}

#[test]
fn columns_are_included_or_excluded_by_name() {
    block_on(async {
        let db = database();
        for version in 1..=3 {
            let first = async |more: Document| rows_of(&db, &[bucket(version)], &[stage(more)]).await[0].clone();
            assert_eq!(first(doc! { "include": ["a", "nothing"] }).await, doc! { "a": 1 });
            assert_eq!(
                first(doc! { "include": ["station", "b", "at"] }).await,
                doc! { "at": at(3), "station": { "k": 1 }, "b": "x" }
            );
            assert_eq!(first(doc! { "exclude": ["at", "b"] }).await, doc! { "station": { "k": 1 }, "a": 1 });
            assert_eq!(first(doc! { "exclude": ["station", "_id"] }).await, doc! { "at": at(3), "b": "x", "a": 1 });
            let none = rows_of(&db, &[bucket(version)], &[stage(doc! { "include": [] })]).await;
            assert_eq!(none, [doc! {}, doc! {}, doc! {}]);
        }
    });
}

#[test]
fn unpacked_measurements_have_metadata_if_the_bucket_has_it() {
    block_on(async {
        let db = database();
        let mut null = bucket(2);
        null.insert("meta", Bson::Null);
        let mut none = bucket(2);
        none.remove("meta");
        let rows = rows_of(&db, &[null, none], &[stage(doc! { "include": ["station", "b"] })]).await;
        assert_eq!((rows[0].clone(), rows[3].clone()), (doc! { "station": null, "b": "x" }, doc! { "b": "x" }));
    });
}

#[test]
fn fields_computed_from_metadata_are_added_to_each_measurement() {
    block_on(async {
        let db = database();
        let set = doc! { "$addFields": { "z": "$meta.k", "c": { "$add": ["$meta.k", 1] }, "gone": "$meta.x" } };
        let fields = async |computed: &[&str], more: Document| {
            let mut parameters = doc! { "computedMetaProjFields": computed };
            parameters.extend(more);
            rows_of(&db, &[bucket(2)], &[set.clone(), stage(parameters)]).await[0].clone()
        };
        assert_eq!(
            fields(&["z", "c", "gone"], doc! {}).await,
            measurement(3, doc! { "b": "x", "a": 1, "c": 2, "z": 1 })
        );
        // Only the requested fields.
        assert_eq!(fields(&["z", "c"], doc! { "include": ["a", "c"] }).await, doc! { "a": 1, "c": 2 });
        assert_eq!(
            fields(&["z", "c"], doc! { "exclude": ["c", "b", "at"] }).await,
            doc! { "station": { "k": 1 }, "a": 1, "z": 1 }
        );
        let shadow = async |name: &str| {
            let set = doc! { "$addFields": { name: "new" } };
            rows_of(&db, &[bucket(2)], &[set, stage(doc! { "computedMetaProjFields": [name] })]).await[0].clone()
        };
        assert_eq!(shadow("b").await, measurement(3, doc! { "a": 1, "b": "new" }));
        assert_eq!(shadow("at").await, doc! { "station": { "k": 1 }, "b": "x", "a": 1, "at": "new" });
        assert_eq!(shadow("station").await, doc! { "at": at(3), "b": "x", "a": 1, "station": "new" });
        // If the bucket lacks the computed field, the measurements lack it too, even if there is a column of that name.
        let hidden = rows_of(&db, &[bucket(2)], &[stage(doc! { "computedMetaProjFields": ["a"] })]).await;
        assert_eq!(hidden[0], measurement(3, doc! { "b": "x" }));
    });
}

#[test]
fn the_event_filter_applies_to_each_measurement_unless_the_whole_bucket_passes() {
    block_on(async {
        let db = database();
        let values = async |more: Document| {
            let mut parameters = doc! { "include": ["a", "b"] };
            parameters.extend(more);
            values(&rows_of(&db, &[bucket(2), bucket(1)], &[stage(parameters)]).await, "b")
        };
        let by_a = doc! { "a": { "$gte": 2 } };
        assert_eq!(values(doc! { "eventFilter": by_a.clone() }).await, list!["z", "z"]);
        assert_eq!(values(doc! { "eventFilter": { "a": { "$exists": false } } }).await, list!["y", "y"]);
        // Excluded fields are missing.
        assert_eq!(values(doc! { "eventFilter": { "at": { "$exists": true } } }).await, Vec::<Bson>::new());
        let whole = doc! { "eventFilter": by_a.clone(), "wholeBucketFilter": { "control.version": 1 } };
        assert_eq!(values(whole).await, list!["z", "x", "y", "z"]);
        assert_eq!(values(doc! { "wholeBucketFilter": { "control.version": 7 } }).await.len(), 6);
        let failing = doc! { "eventFilter": { "$expr": { "$divide": ["$a", 0] } } };
        assert_eq!(db.fails(over(&[bucket(2)], &[stage(failing)])).await.0, 2);
        let broken = doc! { "eventFilter": { "a": { "$foo": 1 } } };
        assert_eq!(db.fails(over(&[bucket(2)], &[stage(broken)])).await.0, 2);
    });
}

#[test]
fn a_bucket_without_required_parts_is_refused_with_a_code_for_each() {
    block_on(async {
        let db = database();
        let refused = async |change: &dyn Fn(&mut Document), more: Document| {
            let mut changed = bucket(2);
            change(&mut changed);
            db.fails(over(&[changed], &[stage(more)])).await.0
        };
        fn control(bucket: &mut Document) -> &mut Document {
            bucket.get_document_mut("control").unwrap()
        }
        fn data(bucket: &mut Document) -> &mut Document {
            bucket.get_document_mut("data").unwrap()
        }
        type Change<'a> = &'a dyn Fn(&mut Document);
        let cases: [(Change<'_>, i32); 14] = [
            (&|bucket| *bucket = doc! {}, 5346510),
            (&|bucket| drop(bucket.remove("data")), 10065),
            (&|bucket| drop(bucket.insert("data", doc! {})), 5346509),
            (&|bucket| drop(data(bucket).remove("at")), 5346700),
            (&|bucket| drop(bucket.insert("meta", Bson::Undefined)), 5369600),
            (&|bucket| drop(bucket.insert("control", 1)), 5857902),
            (&|bucket| drop(control(bucket).remove("version")), 5857903),
            (&|bucket| drop(control(bucket).insert("version", "2")), 5857903),
            (&|bucket| drop(control(bucket).insert("version", 4)), 5857900),
            (&|bucket| drop(control(bucket).insert("count", 0)), 5346509),
            (&|bucket| drop(control(bucket).insert("count", 4)), 6067601),
            (&|bucket| drop(control(bucket).insert("count", 1_i64 << 40)), 6067601),
            (&|bucket| drop(data(bucket).insert("a", compressed(list![1, 2]))), 6067601),
            (
                &|bucket| {
                    drop(
                        data(bucket)
                            .insert("a", Bson::Binary(Binary { subtype: BinarySubtype::Column, bytes: vec![7] })),
                    )
                },
                246,
            ),
        ];
        for (at, (change, wanted)) in cases.into_iter().enumerate() {
            assert_eq!(refused(change, doc! {}).await, wanted, "case {at}");
        }
        let empty = |bucket: &mut Document| {
            control(bucket).insert("version", 1);
            bucket.insert("data", doc! { "at": {} });
        };
        assert_eq!(refused(&empty, doc! {}).await, 5346509);
        // That column is not needed.
        let short = |bucket: &mut Document| drop(data(bucket).insert("a", compressed(list![1, 2])));
        let rows = {
            let mut changed = bucket(3);
            short(&mut changed);
            rows_of(&db, &[changed], &[stage(doc! { "exclude": ["a"] })]).await
        };
        assert_eq!(rows.len(), 3);
        let stage = doc! { "$_unpackBucket": { "timeField": "at" } };
        assert_eq!(db.fails(over(&[bucket(2)], &[stage])).await.0, 5369601);
    });
}

#[test]
fn requested_min_and_max_times_must_be_in_the_bucket() {
    block_on(async {
        let db = database();
        let refused = async |side: &str, value: Bson| {
            let mut changed = bucket(2);
            changed.get_document_mut("control").unwrap().insert(side, value);
            let name = if side == "min" { "includeMinTimeAsMetadata" } else { "includeMaxTimeAsMetadata" };
            assert_eq!(rows_of(&db, std::slice::from_ref(&changed), &[stage(doc! { name: false })]).await.len(), 3);
            db.fails(over(&[changed], &[stage(doc! { name: true })])).await.0
        };
        assert_eq!(refused("min", Bson::Int32(1)).await, 6460203);
        assert_eq!(refused("min", doc! { "at": 1 }.into()).await, 6460204);
        assert_eq!(refused("max", Bson::Null).await, 6460205);
        assert_eq!(refused("max", doc! {}.into()).await, 6460206);
        let both = stage(doc! { "includeMinTimeAsMetadata": true, "includeMaxTimeAsMetadata": true });
        assert_eq!(rows_of(&db, &[bucket(2)], &[both]).await[1], measurement(5, doc! { "b": "y" }));
    });
}

#[test]
fn each_unpack_parameter_is_checked_with_its_own_codes() {
    block_on(async {
        let db = database();
        let refused = async |stage: Document| db.fails(over(&[], &[stage])).await.0;
        for (more, wanted) in [
            (doc! { "timeField": 1 }, 5346504),
            (doc! { "timeField": "a\0b" }, 9568701),
            (doc! { "metaField": 1 }, 5346505),
            (doc! { "metaField": "a.b" }, 5545700),
            (doc! { "metaField": "a\0b" }, 9568702),
            (doc! { "include": [], "exclude": [] }, 5408000),
            (doc! { "exclude": [], "include": 1 }, 5408000),
            (doc! { "include": "a" }, 5346501),
            (doc! { "exclude": [1] }, 5346502),
            (doc! { "include": ["a.b"] }, 5346503),
            (doc! { "exclude": ["a\0b"] }, 9568705),
            (doc! { "bucketMaxSpanSeconds": 3600.5 }, 5510600),
            (doc! { "bucketMaxSpanSeconds": 1_i64 << 31 }, 5510600),
            (doc! { "bucketMaxSpanSeconds": 0 }, 5510601),
            (doc! { "assumeNoMixedSchemaData": 1 }, 6067202),
            (doc! { "usesExtendedRange": 1 }, 6646901),
            (doc! { "fixedBuckets": 1 }, 7823300),
            (doc! { "computedMetaProjFields": "a" }, 5509900),
            (doc! { "computedMetaProjFields": [1] }, 5509901),
            (doc! { "computedMetaProjFields": ["a.b"] }, 5509902),
            (doc! { "computedMetaProjFields": ["a\0b"] }, 9568706),
            (doc! { "includeMinTimeAsMetadata": 1 }, 6460208),
            (doc! { "includeMaxTimeAsMetadata": 1 }, 6460209),
            (doc! { "wholeBucketFilter": 1 }, 7026903),
            (doc! { "eventFilter": 1 }, 7026902),
            (doc! { "sample": 1 }, 5346506),
        ] {
            assert_eq!(refused(stage(more.clone())).await, wanted, "{more}");
        }
        assert_eq!(refused(doc! { "$_internalUnpackBucket": [] }).await, 5346500);
        assert_eq!(refused(doc! { "$_internalUnpackBucket": { "bucketMaxSpanSeconds": 1 } }).await, 5346508);
        assert_eq!(refused(doc! { "$_internalUnpackBucket": { "timeField": "t" } }).await, 5510602);
        // In their order.
        assert_eq!(refused(doc! { "$_internalUnpackBucket": { "include": 1, "timeField": 1 } }).await, 5346501);
    });
}

#[test]
fn the_alias_has_fewer_parameters_and_other_codes() {
    block_on(async {
        let db = database();
        let refused = async |parameters: Bson| db.fails(over(&[], &[doc! { "$_unpackBucket": parameters }])).await.0;
        for (parameters, wanted) in [
            (doc! { "timeField": 1 }, 5612401),
            (doc! { "timeField": "a\0b" }, 9568703),
            (doc! { "timeField": "t", "metaField": 1 }, 5612402),
            (doc! { "timeField": "t", "metaField": "a.b" }, 5612403),
            (doc! { "timeField": "t", "metaField": "a\0b" }, 9568704),
            (doc! { "timeField": "t", "assumeNoMixedSchemaData": 1 }, 6067203),
            (doc! { "metaField": "m" }, 5612405),
        ] {
            assert_eq!(refused(parameters.clone().into()).await, wanted, "{parameters}");
        }
        assert_eq!(refused(1.into()).await, 5612400);
        for (name, value) in doc! { "include": [], "exclude": [], "bucketMaxSpanSeconds": 1, "computedMetaProjFields": [],
        "usesExtendedRange": true, "fixedBuckets": true, "eventFilter": {}, "x": 1 }
        {
            assert_eq!(refused(doc! { "timeField": "t", name: value }.into()).await, 5612404);
        }
        let stage =
            doc! { "$_unpackBucket": { "timeField": "at", "metaField": "station", "assumeNoMixedSchemaData": true } };
        assert_eq!(rows_of(&db, &[bucket(2)], &[stage]).await[1], measurement(5, doc! { "b": "y" }));
    });
}

/// Six measurements of three stations.
fn six() -> Vec<Document> {
    (0..6).zip(["a", "b", "c", "a", "b", "c"]).map(|(n, station)| row(n, station, doc! { "n": n })).collect()
}

#[test]
fn unpack_works_before_and_after_other_stages() {
    with_rows(six(), async |db| {
        let found = db.find(rawdoc! { "find": "weather" }).await;
        for unpack in [stage(doc! {}), doc! { "$_unpackBucket": { "timeField": "at", "metaField": "station" } }] {
            let rows = raw_rows(db, std::slice::from_ref(&unpack)).await;
            assert_eq!(multiset(&rows), multiset(&found));
            assert_eq!(rows[0].keys().collect::<Vec<_>>(), ["at", "station", "n"]);
            let of_two = [
                doc! { "$match": { "meta": { "$ne": "b" } } },
                doc! { "$sort": { "meta": -1 } },
                unpack.clone(),
                doc! { "$match": { "n": { "$gt": 0 } } },
            ];
            assert_eq!(values(&raw_rows(db, &of_two).await, "n"), list![2_i64, 5_i64, 3_i64]);
            let sums = [
                doc! { "$sort": { "meta": 1 } },
                doc! { "$limit": 2 },
                unpack.clone(),
                doc! { "$group": { "_id": "$station", "sum": { "$sum": "$n" } } },
            ];
            assert_eq!(
                raw_rows(db, &sums).await,
                [doc! { "_id": "a", "sum": 3_i64 }, doc! { "_id": "b", "sum": 5_i64 }]
            );
            let limited = [doc! { "$sort": { "meta": 1 } }, unpack.clone(), doc! { "$limit": 3 }];
            assert_eq!(values(&raw_rows(db, &limited).await, "n"), list![0_i64, 3_i64, 1_i64]);
            let branches =
                doc! { "$facet": { "n": [unpack.clone(), { "$count": "n" }], "buckets": [{ "$count": "n" }] } };
            assert_eq!(raw_rows(db, &[branches]).await, [doc! { "n": [{ "n": 6 }], "buckets": [{ "n": 3 }] }]);
            let lookup =
                doc! { "from": "system.buckets.weather", "pipeline": [unpack.clone(), { "$count": "n" }], "as": "x" };
            let joined = raw_rows(db, &[doc! { "$limit": 1 }, doc! { "$lookup": lookup }]).await;
            assert_eq!(values(&joined, "x"), list![list![doc! { "n": 6 }]]);
            let union = doc! { "$unionWith": { "coll": "system.buckets.weather", "pipeline": [unpack] } };
            let command = raw(&doc! { "aggregate": "weather", "pipeline": [union, { "$count": "n" }], "cursor": {} });
            let mut cursor = db.ok(command).await.get_document("cursor").unwrap().clone();
            assert_eq!(take_rows(&mut cursor, "firstBatch"), [doc! { "n": 12 }]);
        }
    });
}

#[test]
fn columns_that_the_next_stage_does_not_read_are_not_decoded() {
    block_on(async {
        let db = database();
        let mut damaged = bucket(2);
        let none = Bson::Binary(Binary { subtype: BinarySubtype::Column, bytes: vec![7] });
        damaged.get_document_mut("data").unwrap().insert("b", none);
        let sum = doc! { "$group": { "_id": "$station.k", "sum": { "$sum": "$a" } } };
        let first = async |stages: &[Document]| rows_of(&db, std::slice::from_ref(&damaged), stages).await[0].clone();
        assert_eq!(first(&[stage(doc! {}), sum.clone()]).await, doc! { "_id": 1, "sum": 4 });
        let last = doc! { "$match": { "a": 3 } };
        let project = doc! { "$project": { "at": 1, "_id": 0 } };
        assert_eq!(first(&[stage(doc! {}), last.clone(), project]).await, doc! { "at": at(4) });
        let by_a = stage(doc! { "eventFilter": { "a": { "$gt": 1 } } });
        assert_eq!(first(&[by_a, doc! { "$project": { "at": 1, "_id": 0 } }]).await, doc! { "at": at(4) });
        assert_eq!(first(&[stage(doc! {}), doc! { "$count": "n" }]).await, doc! { "n": 3 });
        for wanted in [last, doc! { "$group": { "_id": "$b" } }, doc! { "$unwind": "$a" }] {
            assert_eq!(db.fails(over(std::slice::from_ref(&damaged), &[stage(doc! {}), wanted])).await.0, 246);
        }
        let by_b = stage(doc! { "eventFilter": { "b": { "$exists": true } } });
        assert_eq!(db.fails(over(&[damaged.clone()], &[by_b, sum])).await.0, 246);
    });
}

#[test]
fn a_limit_ends_the_unpacking() {
    block_on(async {
        let mut damaged = bucket(2);
        damaged.remove("control");
        let stages = [stage(doc! {}), doc! { "$limit": 3 }];
        assert_eq!(rows_of(&database(), &[bucket(2), damaged.clone()], &stages).await.len(), 3);
        assert_eq!(database().fails(over(&[bucket(2), damaged], &stages[..1])).await.0, 5857902);
    });
}

#[test]
fn measurements_are_not_unpacked_and_buckets_only_once() {
    with_rows(six(), async |db| {
        for stage in [stage(doc! {}), doc! { "$_unpackBucket": { "timeField": "at", "metaField": "station" } }] {
            assert_eq!(code(db, stage.clone()).await, 7183900);
            let again = [stage.clone(), doc! { "$limit": 1 }, stage.clone()];
            assert_eq!(db.fails(raw_command(&again)).await.0, 7183900);
            let lookup = |from: &str| doc! { "$lookup": { "from": from, "pipeline": [stage.clone()], "as": "x" } };
            assert_eq!(code(db, lookup("weather")).await, 7183900);
            let both = doc! { "$facet": { "x": [stage.clone(), stage.clone()] } };
            assert_eq!(db.fails(raw_command(&[both])).await.0, 7183900);
        }
        // Without measurements, nothing is refused.
        let missing = doc! { "aggregate": "nothing", "pipeline": [stage(doc! {})], "cursor": {} };
        assert!(
            take_rows(&mut db.ok(raw(&missing)).await.get_document("cursor").unwrap().clone(), "firstBatch").is_empty()
        );
    });
}

#[test]
fn explain_shows_the_parameters_in_the_order_of_the_server() {
    with_rows(six(), async |db| {
        let parameters = doc! {
            "fixedBuckets": true, "eventFilter": { "n": 1 }, "wholeBucketFilter": { "meta": "b" }, "includeMaxTimeAsMetadata": true,
            "includeMinTimeAsMetadata": true, "computedMetaProjFields": ["z", "y", "x"], "usesExtendedRange": true,
            "assumeNoMixedSchemaData": true, "include": ["station", "n", "y", "at", "z"],
        };
        let explain = async |stage: Document, verbosity: &str| {
            let command = doc! { "aggregate": "system.buckets.weather", "pipeline": [stage, { "$match": { "n": { "$lt": 9 } } }], "cursor": {} };
            Explained(db.ok(raw(&doc! { "explain": command, "verbosity": verbosity })).await)
        };
        let found = explain(stage(parameters), "executionStats").await;
        let shown = doc! {
            "include": ["at", "n", "y", "z", "station"], "timeField": "at", "metaField": "station", "bucketMaxSpanSeconds": 3600,
            "assumeNoMixedSchemaData": true, "usesExtendedRange": true, "computedMetaProjFields": ["y", "z"],
            "includeMinTimeAsMetadata": true, "includeMaxTimeAsMetadata": true, "wholeBucketFilter": { "meta": { "$eq": "b" } },
            "eventFilter": { "n": { "$eq": 1 } }, "fixedBuckets": true,
        };
        assert_eq!(found.unpack(), &shown);
        assert_eq!(found.unpack().to_string(), shown.to_string());
        assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$match"]);
        let counts: Vec<i64> = found.stages().iter().map(|stage| stage.get_i64("nReturned").unwrap()).collect();
        assert_eq!(counts, [3, 2, 2]);
        // The shown stage parses to the same.
        let again = explain(doc! { "$_internalUnpackBucket": shown.clone() }, "queryPlanner").await;
        assert_eq!(again.unpack().to_string(), shown.to_string());
        let plain =
            explain(doc! { "$_unpackBucket": { "timeField": "at", "metaField": "station" } }, "queryPlanner").await;
        let shown = doc! { "exclude": [], "timeField": "at", "metaField": "station", "bucketMaxSpanSeconds": 3600 };
        assert_eq!(plain.unpack().to_string(), shown.to_string());
        let without = explain(stage(doc! { "exclude": ["station", "n"] }), "queryPlanner").await;
        assert_eq!(without.unpack().get_array("exclude").unwrap(), &list!["n", "station"]);
    });
}

#[test]
fn the_unpack_stage_shown_by_explain_gives_the_same_rows() {
    with_rows(six(), async |db| {
        for (filter, projection) in [
            (doc! {}, doc! {}),
            (doc! { "n": { "$gte": 2 } }, doc! { "n": 1, "_id": 0 }),
            (doc! { "at": { "$gt": at(1), "$lte": at(4) } }, doc! {}),
            (doc! { "$expr": { "$lt": ["$at", at(3)] }, "n": { "$ne": 1 } }, doc! { "station": 1 }),
            (doc! { "$or": [{ "station": "a" }, { "n": 4 }] }, doc! { "at": 1, "station": 1 }),
        ] {
            let find = doc! { "find": "weather", "filter": filter.clone(), "projection": projection.clone() };
            let found = Explained(db.ok(raw(&doc! { "explain": find.clone() })).await);
            let mut pipeline = vec![doc! { "$_internalUnpackBucket": found.unpack().clone() }];
            if !projection.is_empty() {
                pipeline.push(doc! { "$project": projection });
            }
            assert_eq!(multiset(&raw_rows(db, &pipeline).await), multiset(&db.find(raw(&find)).await), "{filter}");
        }
    });
}
