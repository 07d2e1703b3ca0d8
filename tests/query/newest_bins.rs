//! Groups by time of which only the newest are returned: rows in older bins are not read.

use bson::{Bson, Document, bson, doc, rawdoc};
use futures::executor::block_on;

use crate::streamed_groups::{MINUTE_MS, explained, insert, stored, trunc};
use crate::support::pipelines::run_in;
use crate::support::{Db, Random};

/// The first stages, a `$group`, and what returns the newest of its groups.
fn newest(stages: Vec<Document>, group: Document, limit: i32) -> Vec<Document> {
    newest_by("_id", stages, group, limit)
}

fn newest_by(path: &str, mut stages: Vec<Document>, group: Document, limit: i32) -> Vec<Document> {
    stages.extend([doc! { "$group": group }, doc! { "$sort": { path: -1 } }, doc! { "$limit": limit }]);
    stages
}

#[test]
fn the_newest_groups_equal_those_of_all_rows() {
    let mut compared = 0;
    for seed in 0..60 {
        let random = Random::new(seed);
        // Sometimes around a clock change in St. John's.
        let start_ms = [0, 1_289_090_400_000][random.below(2) as usize];
        let keys = [
            bson!("$at"),
            trunc("minute", 1, "UTC"),
            trunc("hour", 1, "UTC"),
            trunc("minute", 90, "America/St_Johns"),
            trunc("day", 1, "America/St_Johns"),
            trunc("week", 2, "+05:45"),
            bson!({ "$add": ["$at", 100_000] }),
            bson!({ "$subtract": ["$at", 100_000] }),
            bson!({ "$hour": "$at" }),
            bson!({ "hour": trunc("hour", 1, "UTC"), "m": "$m" }),
            bson!({ "hour": trunc("hour", 1, "UTC") }),
        ];
        let path = if random.chance(50) { "_id" } else { "_id.hour" };
        let mut group = doc! { "_id": keys[random.below(keys.len() as u64) as usize].clone() };
        for (name, operator) in [("sum", "$sum"), ("high", "$max"), ("low", "$min"), ("mean", "$avg")] {
            if random.chance(50) {
                group.insert(name, doc! { operator: "$n" });
            }
        }
        if random.chance(30) {
            group.insert("count", doc! { "$sum": 1 });
        }
        let mut stages = Vec::new();
        match random.below(5) {
            0 => stages.push(doc! { "$match": { "n": { "$gte": random.below(3000) as i64 } } }),
            1 => stages.push(doc! { "$match": { "m": 1, "n": { "$mod": [3, 1] } } }),
            2 => stages.push(doc! { "$sort": { "at": 1 } }),
            _ => {}
        }
        let is_part = group.get_document("_id").is_ok_and(|id| id.len() == 1 && id.contains_key("hour"));
        let path = if is_part { path } else { "_id" };
        let mut pipeline = newest_by(path, stages, group, 1 + random.below(40) as i32);
        if random.chance(30) {
            pipeline.insert(pipeline.len() - 1, doc! { "$skip": random.below(5) as i32 });
        }
        block_on(async {
            let db = stored(&random, 1 + random.below(5000) as i64, start_ms, MINUTE_MS / 2).await;
            let mut apart = pipeline.clone();
            let behind_group = apart.iter().position(|stage| stage.contains_key("$group")).unwrap() + 1;
            apart.insert(behind_group, doc! { "$_internalInhibitOptimization": {} });
            let wanted = run_in(&db, apart, 1000).await;
            for batch in [3, 1000] {
                assert_eq!(run_in(&db, pipeline.clone(), batch).await, wanted, "seed {seed}: {pipeline:?}");
            }
            compared += wanted.len();
        });
    }
    assert!(compared > 500, "{compared}");
}

/// The buckets read and unpacked, and the measurements examined.
async fn counts(db: &Db, pipeline: Vec<Document>) -> (i64, i64, i64) {
    let [read, _, unpacked, measurements] = explained(db, pipeline).await.counts();
    (read, unpacked, measurements)
}

#[test]
fn buckets_in_older_bins_are_neither_read_nor_unpacked() {
    block_on(async {
        let db = stored(&Random::new(2), 1, 0, MINUTE_MS).await;
        for series in 1..=3 {
            insert(&db, series, (0..100_000).map(|n| (i64::from(n) * MINUTE_MS, n)).collect()).await;
        }
        db.ok(rawdoc! { "flush": 1 }).await;
        let group = |key: Bson, operator: &str| doc! { "_id": key, "sum": { operator: "$n" } };
        let hours = trunc("hour", 1, "UTC");
        let all = counts(&db, vec![doc! { "$group": group(hours.clone(), "$sum") }]).await;
        assert!(all.0 > 300 && all.1 > 300 && all.2 > 300_000, "{all:?}");
        let few = counts(&db, newest(vec![], group(hours.clone(), "$sum"), 24)).await;
        assert!(few.0 < 300 && few.1 < 80, "{few:?}");
        let by_part = bson!({ "hour": hours.clone() });
        for path in ["_id", "_id.hour"] {
            assert_eq!(counts(&db, newest_by(path, vec![], group(by_part.clone(), "$sum"), 24)).await, few);
        }
        // In a zone whose clocks change, rows of one more day are read.
        let days = counts(&db, newest(vec![], group(trunc("day", 1, "Europe/London"), "$sum"), 2)).await;
        assert!(days.0 < 600 && (72 * 2..72 * 4 + 1).contains(&days.1), "{days:?}");
        // A filter that may fail on a row, an order that matters, and keys that are no bins.
        let failing = doc! { "$match": { "$expr": { "$gt": [{ "$add": ["$n", 1] }, 0] } } };
        let in_order = bson!({ "$subtract": ["$at", 1] });
        for others in [
            newest(vec![failing], group(hours.clone(), "$sum"), 24),
            newest(vec![], group(hours.clone(), "$push"), 24),
            newest(vec![], group(in_order, "$sum"), 24),
            newest_by("_id.other", vec![], group(by_part.clone(), "$sum"), 24),
            newest_by("_id.hour", vec![], group(bson!({ "hour": hours.clone(), "m": "$m" }), "$sum"), 24),
            newest(vec![doc! { "$limit": 400_000 }], group(hours.clone(), "$sum"), 24),
            vec![
                doc! { "$group": group(hours.clone(), "$sum") },
                doc! { "$sort": { "_id": 1 } },
                doc! { "$limit": 24 },
            ],
            vec![doc! { "$group": group(hours, "$sum") }, doc! { "$sort": { "sum": -1 } }, doc! { "$limit": 24 }],
        ] {
            assert_eq!(counts(&db, others.clone()).await.1, all.1, "{others:?}");
        }
    });
}
