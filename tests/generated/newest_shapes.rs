//! Every kind of pipeline for the first and the last rows of each series, compared with the same pipeline without optimisation: whatever
//! was inserted late, deleted or updated, by which context, and in which stored form.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

use crate::support::explained::Explained;
use crate::support::pipelines::run;
use crate::support::progress::progress;
use crate::support::{Db, Random, TestEnv, raw, take_rows};

/// The default number of cases.
const CASES: u64 = 20;
const HOUR_MS: i64 = 3_600_000;

fn pick(random: &Random, from: &[Bson]) -> Bson {
    from[random.below(from.len() as u64) as usize].clone()
}

/// Metadata of which some values differ but compare equal, and a few are arrays or missing.
fn meta(random: &Random, hostile: bool) -> Option<Bson> {
    let id = pick(random, &[bson!(1), bson!(1.0), bson!(2), "x".into(), "X".into()]);
    Some(match random.below(if hostile { 12 } else { 9 }) {
        9 => bson!([id, 2]),
        10 => return None,
        11 => bson!([{ "id": id }, {}]),
        0 => bson!({ "site": "b" }),
        _ => bson!({ "id": id, "site": pick(random, &["a".into(), "b".into()]) }),
    })
}

/// The next rows, most of them later than those before. Unless `ties`, all times differ.
fn rows(random: &Random, from: &mut i64, hostile: bool, ties: bool) -> Vec<Document> {
    let count = 1 + random.below(30) as i64;
    let made = (0..count).map(|_| {
        *from += 1;
        let n = *from;
        let late = if random.chance(20) { random.below(200) as i64 } else { 0 };
        let spread = if ties { n / 4 } else { n * 7 };
        let ms = ((spread - late) * HOUR_MS / 16).max(0) / 1000 * 1000 + if ties { 0 } else { n % 1000 };
        let mut row = doc! { "at": DateTime::from_millis(ms), "n": n, "v": random.below(5) as i32 };
        if let Some(meta) = meta(random, hostile) {
            row.insert("m", meta);
        }
        if random.chance(10) {
            row.insert("rare", random.below(3) as i32);
        }
        row
    });
    made.collect()
}

/// An operation on the collection.
async fn change(db: &Db, random: &Random, from: &mut i64, (hostile, ties, once): (bool, bool, bool)) {
    match random.below(10) {
        0 => drop(db.ok(rawdoc! { "flush": 1 }).await),
        1 => {
            let filter = match random.below(3) {
                0 => doc! { "m.id": 1 },
                1 => doc! { "at": { "$gte": DateTime::from_millis((*from - 6) * 7 * HOUR_MS / 16) } },
                _ => doc! { "n": { "$mod": [3, 1] }, "m.site": "a" },
            };
            db.ok(raw(&doc! { "delete": "weather", "deletes": [{ "q": filter, "limit": 0 }] })).await;
        }
        2 => {
            let update = doc! { "q": { "m.site": "a", "m.id": 2 }, "u": { "$set": { "m.id": pick(random, &["x".into(), bson!(1)]) } }, "multi": true };
            db.command(raw(&doc! { "update": "weather", "updates": [update] })).await;
        }
        _ => {
            let mut rows = rows(random, from, hostile, ties);
            if once {
                let again: Vec<Document> = rows.iter().filter(|_| random.chance(30)).cloned().collect();
                rows.extend(again.into_iter().map(|mut row| {
                    row.insert("v", 7);
                    row
                }));
            }
            db.insert("weather", &rows.iter().map(raw).collect::<Vec<_>>()).await;
            if random.chance(40) {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
        }
    }
}

/// Stages that need the first or last rows of each series. Of tied rows any may come, so with `ties` only times are compared.
fn pipeline(random: &Random, from: i64, ties: bool) -> Vec<Document> {
    let ascending = random.chance(50);
    let direction = if ascending { 1 } else { -1 };
    let key = pick(
        random,
        &[
            "$m".into(),
            "$m.id".into(),
            "$m.site".into(),
            Bson::Null,
            bson!({ "id": "$m.id" }),
            bson!({ "id": "$m.id", "site": "$m.site", "one": { "$const": 1 } }),
            bson!({ "$type": "$m.id" }),
            "$v".into(),
        ],
    );
    let sorted = random.chance(65);
    let what = if ties { bson!("$at") } else { pick(random, &["$n".into(), "$$ROOT".into(), bson!(["$n", "$v"])]) };
    let n = 1 + random.below(4) as i32;
    let sort_by = doc! { "at": direction };
    let mut group = doc! { "_id": key };
    let is_front = random.chance(50);
    for name in ["a", "b"].iter().take(1 + random.below(2) as usize) {
        let accumulator = match (sorted, is_front, random.below(3)) {
            (true, true, 0) => doc! { "$firstN": { "n": n, "input": what.clone() } },
            (true, true, _) => doc! { "$first": what.clone() },
            (true, false, 0) => doc! { "$lastN": { "n": n, "input": what.clone() } },
            (true, false, _) => doc! { "$last": what.clone() },
            (false, true, 0) => doc! { "$topN": { "n": n, "sortBy": sort_by.clone(), "output": what.clone() } },
            (false, true, 1) => doc! { "$bottom": { "sortBy": { "at": -direction }, "output": what.clone() } },
            (false, true, _) => doc! { "$top": { "sortBy": sort_by.clone(), "output": what.clone() } },
            (false, false, 0) => doc! { "$bottomN": { "n": n, "sortBy": sort_by.clone(), "output": what.clone() } },
            (false, false, _) => doc! { "$bottom": { "sortBy": sort_by.clone(), "output": what.clone() } },
        };
        group.insert(*name, accumulator);
    }
    if random.chance(20) {
        let is_last = is_front != ascending;
        group.insert(
            "c",
            if is_last {
                doc! { "$max": "$at" }
            } else {
                doc! { "$min": "$at" }
            },
        );
    }
    let mut stages = Vec::new();
    let at = DateTime::from_millis(random.below(from.max(1) as u64) as i64 * 7 * HOUR_MS / 16);
    match random.below(12) {
        0 => stages.push(doc! { "at": { "$gte": at } }),
        1 => stages.push(doc! { "at": { "$lt": at } }),
        2 => stages.push(doc! { "m.site": "a" }),
        3 => stages.push(doc! { "m.id": { "$type": "int" } }),
        4 => stages.push(doc! { "m": { "id": 1, "site": "a" } }),
        5 => stages.push(doc! { "v": { "$gte": 3 } }),
        6 => stages.push(doc! { "rare": 1 }),
        7 => stages.push(doc! { "at": { "$gte": at }, "m.id": { "$in": [1, "x"] }, "v": { "$lt": 4 } }),
        8 => stages.push(doc! { "$expr": { "$eq": ["$m.site", "b"] } }),
        _ => {}
    }
    let mut stages: Vec<Document> = stages.into_iter().map(|filter| doc! { "$match": filter }).collect();
    if sorted {
        let mut sort = Document::new();
        for path in ["m.id", "m.site", "m"].iter().filter(|_| random.chance(30)) {
            if *path != "m" || sort.is_empty() {
                sort.insert(*path, if random.chance(70) { 1 } else { -1 });
            }
        }
        sort.insert("at", direction);
        stages.push(doc! { "$sort": sort });
    }
    stages.push(doc! { "$group": group });
    stages
}

/// A measurement, or a list of them, with its fields by name. The order in which a plan shows them depends on which rows it holds together.
fn by_name(value: Bson) -> Bson {
    match value {
        Bson::Array(values) => Bson::Array(values.into_iter().map(by_name).collect()),
        Bson::Document(row) => {
            let mut fields: Vec<(String, Bson)> = row.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Bson::Document(fields.into_iter().collect())
        }
        other => other,
    }
}

/// The rows as a multiset. Of keys that compare equal, any may be shown.
fn told(rows: &[Document]) -> Vec<String> {
    let number = |text: String| text.replace("Int32(1)", "1").replace("Double(1.0)", "1");
    let mut told: Vec<String> = rows
        .iter()
        .map(|row| {
            let mut row = row.clone();
            let id = row.remove("_id").unwrap();
            let values: Vec<(String, Bson)> = row.into_iter().map(|(name, value)| (name, by_name(value))).collect();
            format!("{} {values:?}", number(format!("{id:?}")))
        })
        .collect();
    told.sort();
    told
}

/// The result of a pipeline, or its error code.
async fn answers(db: &Db, pipeline: &[Document]) -> Result<Vec<String>, i32> {
    let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": { "batchSize": 10_000 } };
    let reply = db.command(raw(&command)).await;
    match reply.get_i32("code") {
        Ok(code) => Err(code),
        Err(_) => Ok(told(&take_rows(&mut reply.get_document("cursor").unwrap().clone(), "firstBatch"))),
    }
}

/// The same pipeline without optimisation.
fn apart(pipeline: &[Document]) -> Vec<Document> {
    pipeline.iter().flat_map(|stage| [doc! { "$_internalInhibitOptimization": {} }, stage.clone()]).collect()
}

#[test]
fn pipelines_for_first_and_last_rows_equal_the_same_without_optimisation() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("CASE");
    let cases = number("CASES").unwrap_or(if first.is_some() { 1 } else { CASES });
    let first = first.unwrap_or_default();
    let mut nonempty = 0;
    for seed in first..first + cases {
        progress("first and last rows", seed - first, cases);
        let random = Random::new(seed);
        let (hostile, ties) = (random.chance(25), random.chance(25));
        let format = [BucketFormat::Uncompressed, BucketFormat::Compressed][random.below(2) as usize];
        block_on(async {
            let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
            let env = TestEnv::new(seed);
            let open = || Db::open_as(format, Rc::clone(&storage), Rc::clone(&env));
            let mut contexts = [open(), open()];
            let mut options = doc! { "timeField": "at" };
            if !random.chance(10) {
                options.insert("metaField", "m");
            }
            let mut create = doc! { "create": "weather", "timeseries": options };
            let once = seed % 4 == 3;
            if once {
                create.insert(
                    "dedupe",
                    if ties {
                        doc! { "by": ["n"] }
                    } else {
                        doc! {}
                    },
                );
            }
            contexts[0].ok(raw(&create)).await;
            if random.chance(20) {
                let index =
                    doc! { "createIndexes": "weather", "indexes": [{ "key": { "m.id": 1, "at": 1 }, "name": "i" }] };
                contexts[0].ok(raw(&index)).await;
            }
            let mut from = 0;
            for step in 0..12 {
                let db = contexts[random.below(2) as usize].clone();
                change(&db, &random, &mut from, (hostile, ties, once)).await;
                if random.chance(5) {
                    contexts[1] = open();
                }
                for _ in 0..3 {
                    let pipeline = pipeline(&random, from, ties);
                    let db = &contexts[random.below(2) as usize];
                    let expected = answers(db, &apart(&pipeline)).await;
                    let found = answers(db, &pipeline).await;
                    assert_eq!(found, expected, "seed {seed}, step {step}: {}", bson!(pipeline));
                    nonempty += usize::from(expected.is_ok_and(|rows| !rows.is_empty()));
                }
            }
        });
    }
    assert!(nonempty > 20 || cases < 10, "hardly any rows: {nonempty}");
}

/// Three series with a bucket per hour, with rows in the middle of the hour in the first ones.
async fn stored(hours: i64) -> Rc<MemoryStorage> {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
    let row = |n: i64| {
        let at = DateTime::from_millis(n / 6 * HOUR_MS + HOUR_MS / 2 + n % 2 * 1000);
        raw(&doc! { "at": at, "m": { "id": n / 2 % 3, "site": "a" }, "n": n })
    };
    db.insert("weather", &(0..6 * hours).map(row).collect::<Vec<_>>()).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    storage
}

/// Truncates the columns of every stored bucket that does not begin in one of `hours`.
async fn damage_all_but(storage: &MemoryStorage, hours: std::ops::Range<i64>) {
    let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    let mut changes = Changeset::new();
    for entry in storage.scan(std::slice::from_ref(&all), Page { entries_max: 1000, keys_only: false }).await.unwrap() {
        let id = entry.key[entry.key.len() - 12..].first_chunk::<4>().unwrap();
        if !hours.contains(&(i64::from(u32::from_be_bytes(*id)) / 3600)) {
            changes.put(entry.key, entry.value[..entry.value.len() / 2].to_vec());
        }
    }
    storage.commit(changes).await.unwrap();
}

fn first_behind(sort: Document, key: &str) -> Vec<Document> {
    vec![doc! { "$sort": sort }, doc! { "$group": { "_id": key, "n": { "$first": "$n" } } }]
}

#[test]
fn the_newest_rows_are_found_without_reading_older_buckets() {
    block_on(async {
        let hours = 30;
        let storage = stored(hours).await;
        damage_all_but(&storage, hours - 3..hours).await;
        let db = Db::open(storage.clone(), TestEnv::new(2));
        let top = |n: i32| {
            let list = doc! { "$topN": { "n": n, "sortBy": { "at": -1 }, "output": "$n" } };
            vec![doc! { "$group": { "_id": "$m.id", "n": list } }]
        };
        let root = doc! { "$top": { "sortBy": { "at": -1 }, "output": "$$ROOT" } };
        let shapes = [
            first_behind(doc! { "m.id": 1, "at": -1 }, "$m.id"),
            first_behind(doc! { "m": 1, "at": -1 }, "$m"),
            first_behind(doc! { "at": -1 }, "$m.id"),
            vec![
                doc! { "$sort": { "m.id": -1, "at": 1 } },
                doc! { "$group": { "_id": { "id": "$m.id" }, "n": { "$last": "$n" } } },
            ],
            vec![
                doc! { "$sort": { "at": -1 } },
                doc! { "$group": { "_id": "$m.id", "n": { "$firstN": { "n": 3, "input": "$n" } } } },
            ],
            vec![doc! { "$group": { "_id": "$m.id", "r": root, "at": { "$max": "$at" } } }],
            top(1),
            top(3),
        ];
        for shape in shapes {
            assert_eq!(run(&db, shape.clone()).await.len(), 3, "{}", bson!(shape));
        }
        let one =
            vec![doc! { "$sort": { "at": -1 } }, doc! { "$group": { "_id": Bson::Null, "n": { "$first": "$n" } } }];
        assert_eq!(run(&db, one).await.len(), 1);
        let narrow = doc! { "$match": { "m.id": { "$in": [0, 2] } } };
        let some = [vec![narrow], first_behind(doc! { "m.id": 1, "at": -1 }, "$m.id")].concat();
        assert_eq!(run(&db, some).await.len(), 2);
        // Rows that are not folded yet, and a series without any folded row.
        let late =
            [0, 7].map(|id| raw(&doc! { "at": DateTime::from_millis(hours * HOUR_MS), "m": { "id": id }, "n": id }));
        db.insert("weather", &late).await;
        assert_eq!(run(&db, first_behind(doc! { "at": -1 }, "$m.id")).await.len(), 4);
    });
}

#[test]
fn the_oldest_rows_are_found_without_reading_later_buckets() {
    block_on(async {
        let storage = stored(30).await;
        damage_all_but(&storage, 0..2).await;
        let db = Db::open(storage.clone(), TestEnv::new(2));
        let oldest = first_behind(doc! { "m.id": 1, "at": 1 }, "$m.id");
        let mut numbers: Vec<i64> = run(&db, oldest).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 2, 4]);
    });
}

#[test]
fn a_selective_filter_falls_back_to_a_scan_of_all_buckets() {
    block_on(async {
        let db = Db::open(stored(200).await, TestEnv::new(2));
        let by =
            |filter: Document| [vec![doc! { "$match": filter }], first_behind(doc! { "at": -1 }, "$m.id")].concat();
        let found = run(&db, by(doc! { "n": { "$lt": 5 } })).await;
        let mut numbers: Vec<i64> = found.iter().map(|row| row.get_i64("n").unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 3, 4]);
        assert!(run(&db, by(doc! { "n": -1 })).await.is_empty());
    });
}

async fn explained(db: &Db, pipeline: Vec<Document>) -> Explained {
    let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
    Explained(db.ok(raw(&doc! { "explain": command, "verbosity": "executionStats" })).await)
}

#[test]
fn explain_shows_a_scan_of_the_ends_of_series_and_how_few_buckets_it_examined() {
    block_on(async {
        let db = Db::open(stored(30).await, TestEnv::new(2));
        let shown = async |pipeline: Vec<Document>| {
            let found = explained(&db, pipeline).await;
            let plan = found.plan();
            let input = plan.get_document("inputStage").cloned().unwrap_or_default();
            let stage = input.get_str("stage").or(plan.get_str("stage")).unwrap().to_owned();
            let direction = input.get_str("direction").or(plan.get_str("direction")).unwrap().to_owned();
            let [examined, _, unpacked, rows] = found.counts();
            (stage, direction, examined, unpacked, rows)
        };
        let newest = shown(first_behind(doc! { "m.id": 1, "at": -1 }, "$m.id")).await;
        // By its id, a bucket of the hour before may contain times after the start of the last one.
        assert_eq!((&*newest.0, &*newest.1, newest.3, newest.4), ("DISTINCT_SCAN", "backward", 3, 3));
        assert!(newest.2 <= 6, "{newest:?}");
        let oldest = shown(first_behind(doc! { "at": 1 }, "$m.id")).await;
        assert_eq!((&*oldest.0, &*oldest.1, oldest.2, oldest.3), ("DISTINCT_SCAN", "forward", 3, 3));
        let later = doc! { "$match": { "at": { "$lt": DateTime::from_millis(10 * HOUR_MS) } } };
        let bounded = shown([vec![later], first_behind(doc! { "at": -1 }, "$m.id")].concat()).await;
        assert!(bounded.0 == "DISTINCT_SCAN" && bounded.2 <= 6, "{bounded:?}");
        let by_type = doc! { "$group": { "_id": { "$type": "$m.id" }, "n": { "$last": "$n" } } };
        let all = shown(vec![doc! { "$sort": { "at": 1 } }, by_type]).await;
        assert_eq!((&*all.0, all.2), ("COLLSCAN", 90));
        db.ok(rawdoc! { "dropIndexes": "weather", "index": "m_1_at_1" }).await;
        let dropped = shown(first_behind(doc! { "at": -1 }, "$m.id")).await;
        assert_eq!((&*dropped.0, dropped.2), ("COLLSCAN", 90));
    });
}

#[test]
fn explain_shows_the_group_that_leaves_one_bucket_of_each_series_before_the_unpacking() {
    block_on(async {
        let db = Db::open(stored(30).await, TestEnv::new(2));
        let names = async |pipeline: Vec<Document>| {
            let found = explained(&db, pipeline).await;
            found.stages().into_iter().cloned().collect::<Vec<Document>>()
        };
        let name = |stage: &Document| stage.keys().next().unwrap().clone();
        let newest = names(first_behind(doc! { "at": -1 }, "$m.id")).await;
        let order: Vec<String> = newest.iter().map(name).collect();
        assert_eq!(order, ["$cursor", "$group", "$_internalUnpackBucket", "$group"]);
        let first = |field: &str| doc! { "$first": format!("${field}") };
        let of_buckets =
            doc! { "_id": "$meta", "meta": first("meta"), "control": first("control"), "data": first("data") };
        assert_eq!(newest[1].get_document("$group").unwrap(), &of_buckets);
        assert_eq!(newest[1].get_i64("nReturned").unwrap(), 3);
        let one =
            names(vec![doc! { "$sort": { "at": -1 } }, doc! { "$group": { "_id": null, "n": { "$first": "$n" } } }])
                .await;
        assert_eq!(one[1].get_document("$group").unwrap().get("_id"), Some(&bson::Bson::Null));
        // Three rows may be in several buckets; a row that matches may be in any.
        let three =
            doc! { "$group": { "_id": "$m.id", "n": { "$topN": { "n": 3, "sortBy": { "at": -1 }, "output": "$n" } } } };
        assert_eq!(name(&names(vec![three]).await[1]), "$_internalUnpackBucket");
        let some = [vec![doc! { "$match": { "n": { "$gt": 1 } } }], first_behind(doc! { "at": -1 }, "$m.id")].concat();
        assert_eq!(name(&names(some).await[1]), "$_internalUnpackBucket");
    });
}

#[test]
fn explain_shows_a_scan_of_all_buckets_if_the_search_for_the_ends_of_series_gave_up() {
    block_on(async {
        let stage = async |hours: i64, pipeline: &[Document], verbosity: &str| {
            let db = Db::open(stored(hours).await, TestEnv::new(2));
            let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
            let found = Explained(db.ok(raw(&doc! { "explain": command, "verbosity": verbosity })).await);
            let plan = found.plan();
            plan.get_document("inputStage").unwrap_or(plan).get_str("stage").unwrap().to_owned()
        };
        let newest = first_behind(doc! { "at": -1 }, "$m.id");
        let rare = [vec![doc! { "$match": { "n": -1 } }], newest.clone()].concat();
        assert_eq!(stage(200, &newest, "executionStats").await, "DISTINCT_SCAN");
        assert_eq!(stage(200, &rare, "executionStats").await, "COLLSCAN");
        // With one bucket per series, there is nothing to choose, but its row is remembered for the next time.
        assert_eq!(stage(1, &newest, "executionStats").await, "DISTINCT_SCAN");
        // Without execution, only the plan is shown.
        assert_eq!(stage(200, &rare, "queryPlanner").await, "DISTINCT_SCAN");
    });
}
