//! `$geoNear`: measurements by their distance from a place.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::pipelines::run;
use crate::support::{Db, TestEnv, raw};

const EARTH_RADIUS_M: f64 = 6_378_100.0;

fn point(lng: f64, lat: f64) -> Bson {
    bson!({ "type": "Point", "coordinates": [lng, lat] })
}

async fn filled(rows: &[Document], folded: bool) -> Db {
    let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let rows = rows.iter().zip(0..).map(|(row, n)| {
        let mut row = row.clone();
        row.insert("t", DateTime::from_millis(n * 1000));
        row.insert("n", n as i32);
        raw(&row)
    });
    db.insert("weather", &rows.collect::<Vec<_>>()).await;
    if folded {
        db.ok(rawdoc! { "flush": 1 }).await;
    }
    db
}

async fn near(db: &Db, options: Document) -> Vec<Document> {
    run(db, vec![doc! { "$geoNear": options }]).await
}

async fn refused(db: &Db, stages: Vec<Document>) -> i32 {
    db.fails(raw(&doc! { "aggregate": "weather", "pipeline": stages, "cursor": {} })).await.0
}

fn numbers(rows: &[Document]) -> Vec<i32> {
    rows.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

fn distances(rows: &[Document]) -> Vec<f64> {
    rows.iter().map(|row| row.get_f64("far").unwrap()).collect()
}

#[test]
fn pairs_are_sorted_by_their_distance_on_the_plane() {
    block_on(async {
        for folded in [false, true] {
            let db = filled(&(0..10).map(|y| doc! { "loc": [0, y] }).collect::<Vec<_>>(), folded).await;
            let found = near(&db, doc! { "near": [180, 0], "key": "loc", "distanceField": "far" }).await;
            assert_eq!((numbers(&found), distances(&found)[0]), ((0..10).collect(), 180.0));
            let options = doc! { "near": [0, 0], "key": "loc", "distanceField": "far", "minDistance": 3, "maxDistance": 6, "distanceMultiplier": 10 };
            assert_eq!(distances(&near(&db, options.clone()).await), [30.0, 40.0, 50.0, 60.0]);
            let limited = run(
                &db,
                vec![doc! { "$geoNear": options }, doc! { "$match": { "n": { "$ne": 4 } } }, doc! { "$limit": 2 }],
            )
            .await;
            assert_eq!(numbers(&limited), [3, 5]);
        }
    });
}

#[test]
fn geojson_is_measured_in_metres_and_pairs_on_the_sphere_in_radians() {
    block_on(async {
        for (value, near_to, unit) in [
            (point as fn(f64, f64) -> Bson, point(0.0, 0.0), EARTH_RADIUS_M),
            (|lng, lat| bson!([lng, lat]), point(0.0, 0.0), EARTH_RADIUS_M),
            (point, bson!([0, 0]), 1.0),
        ] {
            for index in [false, true] {
                let rows: Vec<Document> =
                    (0..60).map(|n| doc! { "m": n, "loc": value(f64::from((n * 37) % 60), 0.0) }).collect();
                let db = filled(&rows, true).await;
                if index {
                    db.ok(rawdoc! { "createIndexes": "weather", "indexes": [{ "key": { "loc": "2dsphere" }, "name": "i" }] })
                        .await;
                }
                let most = 5.5_f64.to_radians() * unit;
                let options = doc! { "near": near_to.clone(), "key": "loc", "distanceField": "far", "maxDistance": most, "spherical": true };
                let found = near(&db, options.clone()).await;
                let wanted: Vec<f64> = (0..6).map(|degree| f64::from(degree).to_radians() * unit).collect();
                assert_eq!(found.len(), 6);
                assert!(distances(&found).iter().zip(&wanted).all(|(far, wanted)| (far - wanted).abs() < 1e-9 * unit));
                let plan = db
                    .ok(raw(
                        &doc! { "explain": { "aggregate": "weather", "pipeline": [{ "$geoNear": options }], "cursor": {} } },
                    ))
                    .await;
                assert_eq!(plan.to_string().contains("IXSCAN"), index, "{plan}");
                assert!(plan.to_string().contains("$_internalBucketGeoWithin"));
            }
        }
    });
}

#[test]
fn a_found_distance_used_as_a_bound_includes_its_place() {
    block_on(async {
        let rows: Vec<Document> = (0..50)
            .map(|n| doc! { "loc": point(10.0 + f64::from(n) * 1e-13, 50.0 + f64::from(n % 7) * 1e-13) })
            .collect();
        let db = filled(&rows, true).await;
        let options = |most: f64, least: f64| doc! { "near": point(9.0, 49.0), "key": "loc", "distanceField": "far", "maxDistance": most, "minDistance": least };
        let all = distances(&near(&db, options(f64::INFINITY, 0.0)).await);
        assert_eq!(all.len(), 50);
        for far in &all {
            let within = distances(&near(&db, options(*far, 0.0)).await);
            assert_eq!(within, all.iter().copied().filter(|other| other <= far).collect::<Vec<_>>());
            let beyond = distances(&near(&db, options(f64::INFINITY, *far)).await);
            assert_eq!(beyond, all.iter().copied().filter(|other| other >= far).collect::<Vec<_>>());
        }
    });
}

#[test]
fn rows_without_a_place_never_appear() {
    block_on(async {
        let places = [point(1.0, 1.0), bson!([2, 2]), bson!(null), bson!("here"), bson!([]), bson!([[3, 3], [1, 0]])];
        let mut rows: Vec<Document> = places.into_iter().map(|place| doc! { "loc": place }).collect();
        rows.push(doc! {});
        rows.push(doc! { "loc": { "type": "LineString", "coordinates": [[0, 4], [4, 4]] } });
        for folded in [false, true] {
            let db = filled(&rows, folded).await;
            let sphere = doc! { "near": point(0.0, 0.0), "key": "loc", "distanceField": "far" };
            assert_eq!(numbers(&near(&db, sphere).await), [5, 0, 1, 7]);
            let flat = doc! { "near": [0, 0], "key": "loc", "distanceField": "far", "includeLocs": "at.loc" };
            let found = near(&db, flat).await;
            assert_eq!(numbers(&found), [5, 0, 1]);
            assert_eq!(found[0].get_document("at").unwrap(), &doc! { "loc": [1, 0] });
        }
        assert_eq!(
            numbers(
                &near(&filled(&[], true).await, doc! { "near": [0, 0], "key": "loc", "distanceField": "far" }).await
            ),
            [0; 0]
        );
    });
}

#[test]
fn geo_near_works_on_metadata_and_can_write_a_nested_distance_field() {
    block_on(async {
        let rows: Vec<Document> = (0..20)
            .map(|n| doc! { "m": { "at": point(f64::from(n % 4) * 10.0, 0.0), "id": n % 4 }, "dist": { "old": n } })
            .collect();
        let db = filled(&rows, true).await;
        let options = doc! { "near": point(10.0, 0.0), "key": "m.at", "distanceField": "dist.calculated", "maxDistance": 1_200_000 };
        let found = near(&db, options).await;
        assert_eq!(found.len(), 15);
        assert!(found[..5].iter().all(|row| row.get_document("m").unwrap().get_i32("id").unwrap() == 1));
        let first = found[0].get_document("dist").unwrap();
        assert_eq!((first.get_i32("old").unwrap(), first.get_f64("calculated").unwrap()), (1, 0.0));
    });
}

#[test]
fn the_place_and_the_distances_may_be_constant_expressions_and_variables() {
    block_on(async {
        let db = filled(&(0..10).map(|y| doc! { "m": y, "loc": [0, y] }).collect::<Vec<_>>(), true).await;
        let run = async |options: Document| {
            let pipeline = vec![doc! { "$geoNear": options }];
            let variables =
                doc! { "here": [0, 0], "x": 0, "least": 3, "most": 6, "point": point(0.0, 0.0), "text": "far" };
            let mut reply = db
                .command(raw(&doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {}, "let": variables }))
                .await;
            match reply.get_document_mut("cursor") {
                Ok(cursor) => Ok(numbers(&crate::support::take_rows(cursor, "firstBatch"))),
                Err(_) => Err(reply.get_i32("code").unwrap()),
            }
        };
        let with = |near: Bson, least: Bson, most: Bson| {
            doc! { "near": near, "key": "loc", "distanceField": "far", "minDistance": least, "maxDistance": most }
        };
        for near in [bson!([0, 0]), bson!("$$here"), bson!(["$$x", { "$subtract": [1, 1] }])] {
            for (least, most) in [
                (bson!("$$least"), bson!("$$most")),
                (bson!({ "$add": [1, 2] }), bson!({ "$multiply": ["$$least", 2] })),
            ] {
                assert_eq!(run(with(near.clone(), least, most)).await, Ok(vec![3, 4, 5, 6]));
            }
        }
        let metres = bson!({ "$multiply": [111_400, 2] });
        for near in [bson!("$$point"), bson!({ "type": "Point", "coordinates": ["$$x", { "$literal": 0 }] })] {
            assert_eq!(run(with(near, bson!(0), metres.clone())).await, Ok(vec![0, 1, 2]));
        }
        let here = || bson!([0, 0]);
        assert_eq!(run(with(here(), bson!("$m"), bson!(6))).await, Err(7_555_701));
        assert_eq!(run(with(here(), bson!({ "$rand": {} }), bson!(6))).await, Err(7_555_701));
        assert_eq!(run(with(here(), bson!(0), bson!({ "$add": ["$m", 1] }))).await, Err(7_555_702));
        assert_eq!(run(with(bson!("$loc"), bson!(0), bson!(6))).await, Err(6_330_900));
        assert_eq!(run(with(bson!(["$m", 0]), bson!(0), bson!(6))).await, Err(6_330_900));
        assert_eq!(run(with(here(), bson!("$$text"), bson!(6))).await, Err(2));
        assert_eq!(run(with(here(), bson!(0), bson!({ "$subtract": [1, 2] }))).await, Err(2));
        assert_eq!(run(with(bson!("$$text"), bson!(0), bson!(6))).await, Err(6_330_900));
        assert_eq!(run(with(bson!("$$unknown"), bson!(0), bson!(6))).await, Err(17276));
    });
}

#[test]
fn invalid_geo_near_arguments_are_refused_with_their_codes() {
    block_on(async {
        let db = filled(&[doc! { "loc": [1, 1] }], true).await;
        let good = doc! { "near": [0, 0], "key": "loc", "distanceField": "far" };
        let with = |name: &str, value: Bson| {
            let mut options = good.clone();
            options.insert(name, value);
            vec![doc! { "$geoNear": options }]
        };
        let without = |name: &str| {
            let mut options = good.clone();
            options.remove(name);
            vec![doc! { "$geoNear": options }]
        };
        for (stages, code) in [
            (without("key"), 5_892_921),
            (without("distanceField"), 5_860_206),
            (without("near"), 6_330_900),
            (with("query", bson!({ "n": 1 })), 5_860_207),
            (with("near", bson!("here")), 6_330_900),
            (with("near", point(0.0, 100.0)), 6_330_900),
            (with("maxDistance", bson!(-1)), 2),
            (with("minDistance", bson!("x")), 2),
            (with("distanceMultiplier", bson!(-1)), 2),
            (with("limit", bson!(5)), 40_415),
            (vec![doc! { "$match": {} }, doc! { "$geoNear": good.clone() }], 40_602),
            (vec![doc! { "$facet": { "a": [{ "$geoNear": good.clone() }] } }], 40_600),
            (vec![doc! { "$geoNear": 1 }], 10_065),
        ] {
            assert_eq!(refused(&db, stages.clone()).await, code, "{stages:?}");
        }
    });
}
