//! Region filters: matching measurements, and the buckets that are read for them.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::explain;
use crate::support::{Db, TestEnv, raw};

const FORMATS: [BucketFormat; 2] = [BucketFormat::Uncompressed, BucketFormat::Compressed];

fn point(lng: f64, lat: f64) -> Bson {
    bson!({ "type": "Point", "coordinates": [lng, lat] })
}

/// Ships that stay near their own meridian, with ten measurements each.
async fn ships(format: BucketFormat, place: impl Fn(f64, f64) -> Bson) -> Db {
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "ship" } }).await;
    let rows = (0..100).map(|n| {
        let (ship, step) = (n / 10, f64::from(n % 10) / 100.0);
        let at = DateTime::from_millis(i64::from(n) * 1000);
        raw(&doc! { "t": at, "ship": ship, "n": n, "loc": place(f64::from(ship) * 10.0 + step, step) })
    });
    db.insert("c", &rows.collect::<Vec<_>>()).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db
}

async fn numbers(db: &Db, filter: &Document) -> Vec<i32> {
    let found = db.find(rawdoc! { "find": "c", "filter": raw(filter), "sort": { "n": 1 } }).await;
    found.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

fn around(lng: f64, lat: f64, half: f64) -> Bson {
    let (left, right, low, high) = (lng - half, lng + half, lat - half, lat + half);
    bson!({ "type": "Polygon", "coordinates": [[[left, low], [right, low], [right, high], [left, high], [left, low]]] })
}

#[test]
fn a_region_is_shown_in_the_plan_and_excludes_buckets() {
    block_on(async {
        let pair: fn(f64, f64) -> Bson = |lng, lat| bson!([lng, lat]);
        for (format, place) in [(FORMATS[0], point as fn(f64, f64) -> Bson), (FORMATS[1], point), (FORMATS[1], pair)] {
            let db = ships(format, place).await;
            for region in [
                doc! { "$geometry": around(30.0, 0.0, 1.0) },
                doc! { "$centerSphere": [[30.0, 0.0], 0.01] },
                doc! { "$center": [[30.0, 0.0], 1.0] },
                doc! { "$box": [[29.0, -1.0], [31.0, 1.0]] },
                doc! { "$polygon": [[29.0, -1.0], [31.0, -1.0], [30.0, 2.0]] },
            ] {
                let filter = doc! { "loc": { "$geoWithin": region.clone() } };
                assert_eq!(numbers(&db, &filter).await, (30..40).collect::<Vec<_>>(), "{region}");
                let plan = explain(&db, rawdoc! { "find": "c", "filter": raw(&filter) }).await;
                let shown = doc! { "$_internalBucketGeoWithin": { "withinRegion": region, "field": "loc" } };
                assert_eq!(plan.plan().get_document("filter").unwrap(), &shown);
                assert_eq!(plan.counts(), [10, 1, 1, 10]);
            }
            let touching = doc! { "loc": { "$geoIntersects": { "$geometry": point(30.05, 0.05) } } };
            assert_eq!(numbers(&db, &touching).await, [35]);
            assert_eq!(explain(&db, rawdoc! { "find": "c", "filter": raw(&touching) }).await.counts()[2], 1);
        }
    });
}

#[test]
fn the_filter_of_buckets_that_a_plan_shows_finds_the_buckets_that_it_means() {
    block_on(async {
        for format in FORMATS {
            let db = ships(format, point).await;
            // A value that is no place, in a bucket of its own: its summaries say nothing of places.
            let odd = rawdoc! { "t": DateTime::from_millis(0), "ship": 77, "n": 1000, "loc": "here" };
            let place = rawdoc! { "t": DateTime::from_millis(1), "ship": 77, "n": 1001, "loc": [170.0, 0.0] };
            let none = rawdoc! { "t": DateTime::from_millis(1), "ship": 78, "n": 1002 };
            db.insert("c", &[odd, place, none]).await;
            let ships = async |filter: Document| {
                let found =
                    db.find(raw(&doc! { "find": "system.buckets.c", "filter": filter, "sort": { "meta": 1 } })).await;
                found.iter().map(|bucket| bucket.get_i32("meta").unwrap()).collect::<Vec<_>>()
            };
            for region in [
                doc! { "$geometry": around(30.0, 0.0, 1.0) },
                doc! { "$centerSphere": [[30.0, 0.0], 0.01] },
                doc! { "$center": [[30.0, 0.0], 1.0] },
                doc! { "$box": [[29.0, -1.0], [31.0, 1.0]] },
            ] {
                let shown = doc! { "$_internalBucketGeoWithin": { "withinRegion": region, "field": "loc" } };
                assert_eq!(ships(shown.clone()).await, [3, 77], "{shown}");
                assert_eq!(ships(doc! { "$and": [shown.clone(), { "meta": { "$lt": 70 } }] }).await, [3]);
                assert_eq!(ships(doc! { "$nor": [shown.clone()] }).await.len(), 11);
                // Measurements are no buckets.
                assert_eq!(numbers(&db, &shown).await, [0; 0]);
                let pipeline = rawdoc! { "aggregate": "system.buckets.c", "pipeline": [{ "$match": raw(&shown) }, { "$count": "n" }], "cursor": {} };
                let counted = db.ok(pipeline).await;
                let first = counted.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0]
                    .as_document()
                    .unwrap()
                    .clone();
                assert_eq!(first.get_i32("n").unwrap(), 2);
            }
        }
    });
}

#[test]
fn a_filter_of_buckets_by_a_region_needs_the_region_and_the_field() {
    block_on(async {
        let db = ships(FORMATS[1], point).await;
        let region = doc! { "$box": [[29.0, -1.0], [31.0, 1.0]] };
        for operand in [
            bson!(1),
            bson!({}),
            bson!({ "withinRegion": region.clone() }),
            bson!({ "field": "loc" }),
            bson!({ "withinRegion": region.clone(), "field": 1 }),
            bson!({ "withinRegion": region.clone(), "field": "loc", "more": 1 }),
            bson!({ "withinRegion": { "$what": 1 }, "field": "loc" }),
        ] {
            let filter = doc! { "$_internalBucketGeoWithin": operand };
            let find = doc! { "find": "system.buckets.c", "filter": filter };
            assert_eq!(db.fails(raw(&find)).await.0, 2, "{find}");
        }
    });
}

#[test]
fn a_point_on_a_border_is_within() {
    block_on(async {
        let db = ships(FORMATS[1], point).await;
        for (region, wanted) in [
            (around(30.0, 0.0, 0.02), vec![30, 31, 32]),
            (bson!({ "type": "Polygon", "coordinates": [[[30, 0], [31, -1], [31, 0], [30, 0]]] }), vec![30]),
            (
                bson!({ "type": "MultiPolygon", "coordinates": [[[[20, -1], [20, 1], [19, 0], [20, -1]]], [[[0, 0], [0, 1], [-1, 0], [0, 0]]]] }),
                vec![0, 20],
            ),
        ] {
            for operator in ["$geoWithin", "$geoIntersects"] {
                let filter = doc! { "loc": { operator: { "$geometry": region.clone() } } };
                assert_eq!(numbers(&db, &filter).await, wanted, "{filter}");
            }
        }
    });
}

#[test]
fn buckets_with_mixed_values_are_unpacked_for_a_region() {
    let inside = |n: i32, value: Bson| (doc! { "n": n, "x": { "y": value.clone() }, "a": [0, value] }, true);
    let others = [
        bson!(null),
        bson!([]),
        bson!({}),
        bson!("here"),
        Bson::DateTime(DateTime::from_millis(5)),
        bson!([7]),
        bson!({ "type": "Point", "coordinates": "none" }),
        bson!({ "type": "Polygon", "coordinates": [[[0, 0], [1, 1]]] }),
        point(50.0, 50.0),
        bson!([60, 60]),
    ];
    block_on(async {
        for format in FORMATS {
            for (k, other) in others.iter().enumerate() {
                let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(1));
                db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }).await;
                let rows = [
                    inside(0, point(1.0, 1.0)),
                    (doc! { "n": 1, "x": { "y": other.clone() }, "a": [0, other.clone()] }, false),
                    inside(2, bson!([1, 1])),
                    (doc! { "n": 3, "x": null }, false),
                    (doc! { "n": 4, "x": [{ "y": [1, 1] }], "a": { "1": [1, 1] } }, true),
                    (doc! { "n": 5 }, false),
                    inside(6, bson!({ "lng": 1, "lat": 1 })),
                    inside(7, bson!([[60, 60], [1, 1]])),
                ];
                let wanted: Vec<i32> = rows.iter().filter(|row| row.1).map(|row| row.0.get_i32("n").unwrap()).collect();
                let documents = rows.iter().map(|(row, _)| {
                    let mut row = row.clone();
                    row.insert("t", DateTime::from_millis(1000));
                    raw(&row)
                });
                db.insert("c", &documents.collect::<Vec<RawDocumentBuf>>()).await;
                for folded in [false, true] {
                    if folded {
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                    for (operator, region) in [
                        ("$geoWithin", doc! { "$geometry": around(1.0, 1.0, 1.0) }),
                        ("$geoIntersects", doc! { "$geometry": around(1.0, 1.0, 1.0) }),
                        ("$geoWithin", doc! { "$box": [[0, 0], [2, 2]] }),
                    ] {
                        let test = doc! { operator: region };
                        assert_eq!(numbers(&db, &doc! { "x.y": test.clone() }).await, wanted, "{k} {test}");
                        // A place is found as an array element, but not inside such an element.
                        let by_position: Vec<i32> = wanted.iter().copied().filter(|n| *n != 7).collect();
                        assert_eq!(numbers(&db, &doc! { "a.1": test }).await, by_position, "{k}");
                    }
                }
            }
        }
    });
}

#[test]
fn a_region_on_metadata_is_decided_by_the_bucket() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let rows = (0..40).map(|n| {
            let lng = f64::from(n / 10) * 10.0;
            raw(&doc! { "t": DateTime::from_millis(i64::from(n)), "m": { "at": point(lng, 0.0), "id": n / 10 }, "n": n })
        });
        db.insert("c", &rows.collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let within = doc! { "m.at": { "$geoWithin": { "$geometry": around(20.0, 0.0, 1.0) } } };
        assert_eq!(numbers(&db, &within).await, (20..30).collect::<Vec<_>>());
        let plan = explain(&db, rawdoc! { "find": "c", "filter": raw(&within) }).await;
        let moved = doc! { "meta.at": within.get_document("m.at").unwrap() };
        assert_eq!((plan.plan().get_document("filter").unwrap(), plan.counts()), (&moved, [4, 1, 1, 10]));
        assert_eq!(db.ok(rawdoc! { "count": "c", "query": raw(&within) }).await.get_i32("n").unwrap(), 10);
        let ids =
            db.ok(rawdoc! { "distinct": "c", "key": "m.id", "query": raw(&doc! { "$nor": [within.clone()] }) }).await;
        assert_eq!(ids.get_array("values").unwrap().len(), 3);

        let renamed = rawdoc! { "q": raw(&within), "u": { "$set": { "m.port": "here" } }, "multi": true };
        assert_eq!(db.ok(rawdoc! { "update": "c", "updates": [renamed] }).await.get_i32("n").unwrap(), 10);
        assert_eq!(numbers(&db, &doc! { "m.port": "here" }).await, (20..30).collect::<Vec<_>>());
        let gone = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&within), "limit": 0 }] };
        assert_eq!(db.ok(gone).await.get_i32("n").unwrap(), 10);
        assert_eq!(numbers(&db, &doc! {}).await.len(), 30);
    });
}

#[test]
fn measurements_are_deleted_by_region() {
    block_on(async {
        for folded in [false, true] {
            let db = ships(FORMATS[1], point).await;
            let late = doc! { "t": DateTime::from_millis(500_000), "ship": 3, "n": 500, "loc": point(30.01, 0.0) };
            db.insert("c", &[raw(&late)]).await;
            if folded {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            let near = doc! { "loc": { "$geoWithin": { "$centerSphere": [[30.0, 0.0], 0.001] } } };
            let gone = numbers(&db, &near).await;
            assert!(gone.len() > 2 && gone.contains(&500) && gone.len() < 11);
            let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": raw(&near), "limit": 0 }] }).await;
            assert_eq!(reply.get_i32("n").unwrap() as usize, gone.len());
            let left: Vec<i32> = (0..100).filter(|n| !gone.contains(n)).collect();
            assert_eq!(numbers(&db, &doc! {}).await, left);
        }
    });
}

#[test]
fn near_operators_are_refused_in_filters() {
    block_on(async {
        let db = ships(FORMATS[1], point).await;
        for path in ["loc", "ship", "ship.at"] {
            for operator in ["$near", "$nearSphere", "$geoNear"] {
                let filter = raw(&doc! { path: { operator: { "$geometry": point(0.0, 0.0) } } });
                assert_eq!(
                    db.fails(rawdoc! { "find": "c", "filter": filter }).await,
                    (5_626_500, "Location5626500".into())
                );
            }
        }
    });
}
