//! Geospatial indexes: accepted values, the buckets that they select, and equal answers without them.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::explain;
use crate::support::{Db, TestEnv, raw};

fn point(lng: f64, lat: f64) -> Bson {
    bson!({ "type": "Point", "coordinates": [lng, lat] })
}

async fn collection() -> Db {
    collection_in(Rc::new(MemoryStorage::new())).await
}

async fn collection_in(storage: Rc<MemoryStorage>) -> Db {
    let db = Db::open(storage, TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db
}

async fn create(db: &Db, key: Document, more: Document) {
    let mut spec = doc! { "key": key, "name": "places" };
    spec.extend(more);
    db.ok(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await;
}

async fn refused(db: &Db, key: Document) -> i32 {
    db.fails(raw(&doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": "x" }] })).await.0
}

async fn insert(db: &Db, rows: &[Document]) -> Vec<i32> {
    let reply = db.insert("c", &rows.iter().map(raw).collect::<Vec<_>>()).await;
    let errors = reply.get_array("writeErrors").cloned().unwrap_or_default();
    errors.iter().map(|error| error.as_document().unwrap().get_i32("code").unwrap()).collect()
}

async fn numbers(db: &Db, filter: &Document) -> Vec<i32> {
    let found = db.find(rawdoc! { "find": "c", "filter": raw(filter), "sort": { "n": 1 } }).await;
    found.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

/// A hundred ships on a grid of ten by ten, each with a bucket of its own.
fn ships() -> Vec<Document> {
    (0..100)
        .map(|n| {
            let place = point(f64::from(n % 10) * 20.0 - 90.0, f64::from(n / 10) * 10.0 - 45.0);
            let at = DateTime::from_millis(i64::from(n) * 1000);
            doc! { "t": at, "n": n, "m": { "id": n, "home": place.clone(), "kind": n % 3 }, "loc": place }
        })
        .collect()
}

fn near(lng: f64, lat: f64) -> Document {
    doc! { "$geoWithin": { "$centerSphere": [[lng, lat], 0.05] } }
}

/// The name of the index that a query uses, if any, and the number of buckets that it reads.
async fn plan(db: &Db, filter: &Document) -> (Option<String>, i64) {
    let explained = explain(db, rawdoc! { "find": "c", "filter": raw(filter) }).await;
    let scan = explained.plan().get_document("inputStage").ok();
    (scan.map(|scan| scan.get_str("indexName").unwrap().to_owned()), explained.counts()[0])
}

#[test]
fn a_2dsphere_index_is_used_for_places_of_measurements_and_metadata() {
    block_on(async {
        for (key, path, shown) in [
            (doc! { "loc": "2dsphere" }, "loc", doc! { "data.loc": "2dsphere_bucket" }),
            (doc! { "m.home": "2dsphere" }, "m.home", doc! { "meta.home": "2dsphere" }),
            (doc! { "m.kind": 1, "m.home": "2dsphere" }, "m.home", doc! { "meta.kind": 1, "meta.home": "2dsphere" }),
            (
                doc! { "loc": "2dsphere", "t": 1 },
                "loc",
                doc! { "data.loc": "2dsphere_bucket", "control.min.t": 1, "control.max.t": 1 },
            ),
        ] {
            for before in [true, false] {
                let db = collection().await;
                if before {
                    create(&db, key.clone(), doc! {}).await;
                }
                insert(&db, &ships()).await;
                db.ok(rawdoc! { "flush": 1 }).await;
                if !before {
                    create(&db, key.clone(), doc! {}).await;
                }
                let mut filter = doc! { path: near(30.0, 5.0) };
                assert_eq!(numbers(&db, &filter).await, [56]);
                if shown.contains_key("meta.kind") {
                    // Without a bound on the first part there is no range.
                    assert_eq!(plan(&db, &filter).await, (None, 100));
                    filter.insert("m.kind", 2);
                }
                let (name, read) = plan(&db, &filter).await;
                assert_eq!(name.as_deref(), Some("places"));
                assert!(read < 8, "{read} buckets for {filter}");
                let explained = explain(&db, rawdoc! { "find": "c", "filter": raw(&filter) }).await;
                assert_eq!(
                    explained.plan().get_document("inputStage").unwrap().get_document("keyPattern").unwrap(),
                    &shown
                );
                let listed = db.ok(rawdoc! { "listIndexes": "c" }).await;
                let listed = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
                assert_eq!(listed[1].as_document().unwrap().get_document("key").unwrap(), &key);
            }
        }
    });
}

#[test]
fn only_a_2d_index_is_used_for_plane_shapes() {
    block_on(async {
        let db = collection().await;
        let rows: Vec<Document> = (0..100)
            .map(|n| doc! { "t": DateTime::from_millis(n), "n": n as i32, "m": { "at": [n % 10 * 10, n / 10 * 10] }, "loc": [n % 10 * 10, n / 10 * 5] })
            .collect();
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        create(&db, doc! { "m.at": "2d", "t": 1 }, doc! { "bits": 20, "min": -10, "max": 200 }).await;
        db.ok(rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "loc": "2dsphere" }, "name": "sphere" }] }).await;
        let square = |path: &str| doc! { path: { "$geoWithin": { "$box": [[25, 25], [45, 45]] } } };
        assert_eq!(numbers(&db, &square("m.at")).await, [33, 34, 43, 44]);
        let (name, read) = plan(&db, &square("m.at")).await;
        assert!(name.as_deref() == Some("places") && read < 20, "{name:?} {read}");
        let circle = doc! { "m.at": near(30.0, 30.0) };
        assert_eq!((plan(&db, &circle).await.0, numbers(&db, &circle).await), (None, vec![33]));
        let flat = doc! { "loc": { "$geoWithin": { "$center": [[30, 10], 1] } } };
        assert_eq!((plan(&db, &flat).await.0, numbers(&db, &flat).await), (None, vec![23]));
        assert_eq!(plan(&db, &doc! { "loc": near(30.0, 10.0) }).await.0.as_deref(), Some("sphere"));
        // Nothing lies outside the grid, and inserts there are refused.
        assert_eq!(
            numbers(&db, &doc! { "m.at": { "$geoWithin": { "$box": [[500, 500], [600, 600]] } } }).await,
            [0; 0]
        );
        assert_eq!(
            insert(&db, &[doc! { "t": DateTime::from_millis(1), "n": 1, "m": { "at": [500, 500] } }]).await,
            [13_027]
        );
    });
}

#[test]
fn geospatial_index_keys_are_accepted_or_refused() {
    block_on(async {
        let db = collection().await;
        for (key, code) in [
            (doc! { "loc": "2d" }, 67),
            (doc! { "t": "2d" }, 67),
            (doc! { "t": "2dsphere" }, 67),
            (doc! { "loc": "2dsphere_bucket" }, 67),
            (doc! { "m.a": "2dsphere_bucket" }, 67),
            (doc! { "m.a": "geoHaystack" }, 67),
            (doc! { "m.a": "hashed", "m.b": "2dsphere" }, 67),
            (doc! { "m.a": "2d", "m.b": "2d" }, 16_800),
            (doc! { "m.a": 1, "m.b": "2d" }, 16_801),
        ] {
            assert_eq!(refused(&db, key.clone()).await, code, "{key}");
        }
        for options in [
            doc! { "min": 5, "max": 5 },
            doc! { "min": 9, "max": 3 },
            doc! { "max": f64::NAN },
            doc! { "bits": 0 },
            doc! { "bits": 33 },
        ] {
            let mut spec = doc! { "key": { "m.a": "2d" }, "name": "x" };
            spec.extend(options);
            assert_eq!(db.fails(raw(&doc! { "createIndexes": "c", "indexes": [spec.clone()] })).await.0, 72, "{spec}");
        }
        for key in [
            doc! { "m": "2d" },
            doc! { "m.a": "2d", "m.b": -1 },
            doc! { "m.a": "2dsphere", "m.b": "2dsphere" },
            doc! { "a.b": "2dsphere", "x": 1 },
        ] {
            create(&db, key, doc! {}).await;
            db.ok(rawdoc! { "dropIndexes": "c", "index": "places" }).await;
        }
        db.ok(rawdoc! { "createIndexes": "system.buckets.c", "indexes": [{ "key": { "data.loc": "2dsphere_bucket" }, "name": "raw" }] }).await;
        db.ok(rawdoc! { "dropIndexes": "c", "index": { "loc": "2dsphere" } }).await;
        create(&db, doc! { "loc": "2dsphere" }, doc! { "2dsphereIndexVersion": 3 }).await;
        let listed = db.ok(rawdoc! { "listIndexes": "c" }).await;
        let last = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().last().unwrap().clone();
        assert_eq!(last.as_document().unwrap().get_i32("2dsphereIndexVersion").unwrap(), 3);
    });
}

#[test]
fn invalid_places_are_refused_by_inserts_updates_and_index_builds() {
    let polygon = bson!({ "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]] });
    let broken = bson!({ "type": "Polygon", "coordinates": [[0, 0], [1, 0], [1, 1], [0, 0]] });
    let line = bson!({ "type": "LineString", "coordinates": [[0, 0], [1, 1]] });
    let points = bson!({ "type": "MultiPoint", "coordinates": [[0, 0], [1, 1]] });
    let fine = [point(1.0, 2.0), bson!([3, 4]), bson!({ "lng": 1, "lat": 2 }), bson!(null), bson!({}), bson!([])];
    let on_measurements: Vec<(Bson, i32)> = vec![
        (polygon.clone(), 183_493),
        (line.clone(), 183_493),
        (points, 183_493),
        (broken.clone(), 183_934),
        (bson!("here"), 183_934),
        (bson!([200, 100]), 183_934),
        (bson!([[1, 2], [3, 4]]), 183_934),
    ];
    let on_sphere: Vec<(Bson, i32)> = vec![(broken, 16_755), (bson!("here"), 16_755), (bson!([200, 100]), 16_755)];
    let on_plane: Vec<(Bson, i32)> = vec![
        (bson!([500, 1]), 13_027),
        (bson!([1]), 13_068),
        (bson!([f64::NAN, 1.0]), 13_026),
        (bson!([[1], [2, 3]]), 13_026),
        (bson!([[1, 2], 3]), 16_804),
        (point(1.0, 2.0), 16_804),
    ];
    block_on(async {
        for (key, path, refusals, more) in [
            (doc! { "loc": "2dsphere" }, "loc", on_measurements, vec![]),
            (doc! { "m": "2dsphere" }, "m", on_sphere, vec![polygon, line]),
            (doc! { "m": "2d" }, "m", on_plane, vec![bson!("here"), bson!([[1, 2], [3, 4], []])]),
        ] {
            let row = |n: i32, value: Bson| doc! { "t": DateTime::from_millis(n.into()), "n": n, path: value };
            let db = collection().await;
            create(&db, key.clone(), doc! {}).await;
            let taken: Vec<Bson> = match path {
                "loc" => fine.to_vec(),
                // On the plane, points are pairs.
                _ if key.get_str("m").unwrap() == "2d" => fine[1..].iter().cloned().chain(more).collect(),
                _ => fine.iter().cloned().chain(more).collect(),
            };
            let rows: Vec<Document> = taken.iter().zip(0..).map(|(value, n)| row(n, value.clone())).collect();
            assert_eq!(insert(&db, &rows).await, [0; 0]);
            assert_eq!(insert(&db, &[doc! { "t": DateTime::from_millis(0), "n": 99 }]).await, [0; 0]);
            for (value, code) in &refusals {
                assert_eq!(insert(&db, &[row(1000, value.clone())]).await, [*code], "{value}");
                if path == "m" {
                    let update = doc! { "q": { "m": [3, 4] }, "u": { "$set": { "m": value.clone() } }, "multi": true };
                    let reply = db.command(raw(&doc! { "update": "c", "updates": [update] })).await;
                    let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
                    assert_eq!(error.get_i32("code").unwrap(), *code, "{value}");
                }
            }
            db.ok(rawdoc! { "flush": 1 }).await;
            assert_eq!(numbers(&db, &doc! {}).await.len(), taken.len() + 1);
            assert!(db.ok(rawdoc! { "validate": "c", "full": true }).await.get_bool("valid").unwrap());
            for (value, code) in refusals {
                for folded in [false, true] {
                    let db = collection().await;
                    insert(&db, &[row(0, value.clone())]).await;
                    if folded {
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                    assert_eq!(refused(&db, key.clone()).await, code, "{value}");
                }
            }
        }
    });
}

#[test]
fn large_geometries_that_intersect_are_found_through_the_index() {
    block_on(async {
        let db = collection().await;
        create(&db, doc! { "m.area": "2dsphere" }, doc! {}).await;
        let square = |half: f64| bson!({ "type": "Polygon", "coordinates": [[[-half, -half], [half, -half], [half, half], [-half, half], [-half, -half]]] });
        let rows = [0.5, 5.0, 30.0]
            .map(|half| doc! { "t": DateTime::from_millis(1), "n": half as i32, "m": { "area": square(half) } });
        insert(&db, &rows).await;
        insert(&db, &[doc! { "t": DateTime::from_millis(1), "n": 77, "m": { "area": { "type": "LineString", "coordinates": [[170, 1], [-170, 1]] } } }]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let at = |lng: f64, lat: f64| doc! { "m.area": { "$geoIntersects": { "$geometry": point(lng, lat) } } };
        for (place, found) in [
            (at(0.1, 0.1), vec![0, 5, 30]),
            (at(3.0, 3.0), vec![5, 30]),
            (at(-25.0, 3.0), vec![30]),
            (at(100.0, 3.0), vec![]),
        ] {
            assert_eq!(numbers(&db, &place).await, found);
            assert_eq!(plan(&db, &place).await.0.as_deref(), Some("places"));
        }
        let across = doc! { "m.area": { "$geoIntersects": { "$geometry": { "type": "LineString", "coordinates": [[180, -5], [180, 5]] } } } };
        assert_eq!(numbers(&db, &across).await, [77]);
    });
}

#[test]
fn a_geospatial_index_is_sparse_which_only_a_hint_shows() {
    block_on(async {
        let db = collection().await;
        create(&db, doc! { "m.kind": 1, "m.home": "2dsphere" }, doc! {}).await;
        insert(&db, &ships()).await;
        insert(&db, &[doc! { "t": DateTime::from_millis(1), "n": 500, "m": { "kind": 1 } }]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let kind = doc! { "m.kind": 1 };
        let all = numbers(&db, &kind).await;
        assert!(all.contains(&500) && plan(&db, &kind).await.0.is_none());
        let hinted = db.find(rawdoc! { "find": "c", "filter": raw(&kind), "hint": "places" }).await;
        assert_eq!(hinted.len(), all.len() - 1);
    });
}

#[test]
fn a_partial_index_on_a_region_is_used_for_regions_inside_it() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = collection_in(storage.clone()).await;
        insert(&db, &ships()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let square = |half: f64| bson!({ "type": "Polygon", "coordinates": [[[-half, -half], [half, -half], [half, half], [-half, half], [-half, -half]]] });
        let within = |half: f64| doc! { "loc": { "$geoWithin": { "$geometry": square(half) } } };
        create(&db, doc! { "m.id": 1 }, doc! { "partialFilterExpression": within(40.0) }).await;
        let with_id = |mut filter: Document| {
            filter.insert("m.id", doc! { "$gte": 0 });
            filter
        };
        for (filter, taken) in [
            (within(20.0), true),
            (within(40.0), true),
            (within(60.0), false),
            (doc! { "m.home": within(20.0).get_document("loc").unwrap() }, false),
        ] {
            let filter = with_id(filter);
            assert_eq!(plan(&db, &filter).await.0.is_some(), taken, "{filter}");
            let wanted: Vec<i32> = numbers(&db, &doc! { "$nor": [{ "$nor": [filter.clone()] }] }).await;
            assert_eq!(numbers(&db, &filter).await, wanted);
        }
        // A later context parses the filter from the catalog entry.
        let other = Db::open(storage, TestEnv::new(2));
        assert_eq!(numbers(&other, &with_id(within(20.0))).await, numbers(&db, &with_id(within(20.0))).await);
    });
}
