//! The newest and the oldest measurement of each group, for which a bucket gives at most one row.

use std::collections::BTreeMap;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::Explained;
use crate::support::pipelines::run;
use crate::support::{Db, Random, TestEnv, raw};

const SECOND_MS: i64 = 1000;

/// Rows with distinct times, sorted or not; some lack a field or have it with another type.
fn rows(random: &Random) -> Vec<Document> {
    let count = 1 + random.below(60) as i64;
    let is_in_order = random.chance(50);
    let shuffled = |n: i64| if is_in_order { n } else { (n * 37) % 61 };
    (0..count)
        .map(|n| {
            let at = DateTime::from_millis(shuffled(n) * 40 * SECOND_MS);
            let mut row = doc! { "at": at, "station": random.below(3) as i32, "n": n };
            match random.below(8) {
                0 => {}
                1 => drop(row.insert("a", "text")),
                _ => drop(row.insert("a", random.below(1000) as f64 / 4.0)),
            }
            row
        })
        .collect()
}

async fn database(format: BucketFormat, random: &Random, rows: &[Document]) -> Db {
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(random.next()));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } }).await;
    // Some in stored buckets, some in the journal; some in both parts of one bucket.
    let folded = random.below(rows.len() as u64 + 1) as usize;
    for (part, fold) in [(&rows[..folded], true), (&rows[folded..], random.chance(30))] {
        if !part.is_empty() {
            db.insert("weather", &part.iter().map(raw).collect::<Vec<_>>()).await;
        }
        if fold {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    }
    db
}

/// The last or the first row by `at` of each group, as told apart by `key`.
fn edges<'a>(rows: impl Iterator<Item = &'a Document>, is_last: bool, key: impl Fn(&Document) -> String) -> Vec<Bson> {
    let mut found: BTreeMap<String, &Document> = BTreeMap::new();
    for row in rows {
        let at = |row: &Document| row.get_datetime("at").unwrap().timestamp_millis();
        let known = found.entry(key(row)).or_insert(row);
        if (at(row) > at(known)) == is_last {
            *known = row;
        }
    }
    let mut values: Vec<Bson> = found.values().map(|row| row.get("n").unwrap().clone()).collect();
    values.sort_by_key(|n| n.as_i64());
    values
}

async fn numbers(db: &Db, pipeline: Vec<Document>) -> Vec<Bson> {
    let mut values: Vec<Bson> = run(db, pipeline).await.iter().map(|row| row.get("n").unwrap().clone()).collect();
    values.sort_by_key(|n| n.as_i64());
    values
}

#[test]
fn first_and_last_of_each_group_equal_those_of_a_plain_list_in_every_form() {
    for seed in 0..150 {
        let random = Random::new(seed);
        let rows = rows(&random);
        let format = [BucketFormat::Uncompressed, BucketFormat::Compressed][random.below(2) as usize];
        block_on(async {
            let db = database(format, &random, &rows).await;
            for (direction, operator) in [(1, "$first"), (1, "$last"), (-1, "$first"), (-1, "$last")] {
                let is_last = (direction == 1) == (operator == "$last");
                let by = |filter: Document, key: Bson| {
                    let values = doc! { "_id": key, "n": { operator: "$n" }, "a": { operator: "$a" } };
                    vec![doc! { "$match": filter }, doc! { "$sort": { "at": direction } }, doc! { "$group": values }]
                };
                let station = |row: &Document| row.get("station").unwrap().to_string();
                let of_station = numbers(&db, by(doc! {}, "$station".into())).await;
                assert_eq!(of_station, edges(rows.iter(), is_last, station), "seed {seed} {direction} {operator}");
                let of_all = numbers(&db, by(doc! {}, Bson::Null)).await;
                assert_eq!(of_all, edges(rows.iter(), is_last, |_| String::new()), "seed {seed}, all");
                // Keys that differ within a bucket.
                let parity = |row: &Document| (row.get_i64("n").unwrap() % 2).to_string();
                let by_parity = numbers(&db, by(doc! {}, doc! { "$mod": ["$n", 2] }.into())).await;
                assert_eq!(by_parity, edges(rows.iter(), is_last, parity), "seed {seed}, parity");
                // A filter that some rows of a bucket pass, and one that whole buckets pass.
                let limit = random.below(61) as i64;
                let some = numbers(&db, by(doc! { "n": { "$lt": limit } }, "$station".into())).await;
                let passed = rows.iter().filter(|row| row.get_i64("n").unwrap() < limit);
                assert_eq!(some, edges(passed, is_last, station), "seed {seed}, below {limit}");
            }
        });
    }
}

#[test]
fn top_and_bottom_by_time_equal_first_and_last() {
    for seed in 0..60 {
        let random = Random::new(seed);
        let rows = rows(&random);
        let format = [BucketFormat::Uncompressed, BucketFormat::Compressed][random.below(2) as usize];
        block_on(async {
            let db = database(format, &random, &rows).await;
            for (direction, operator) in [(1, "$top"), (1, "$bottom"), (-1, "$top"), (-1, "$bottom")] {
                let is_last = (direction == 1) == (operator == "$bottom");
                let of = |name: &str, output: Bson| {
                    let mut arguments = doc! { "sortBy": { "at": direction }, "output": output };
                    if name.ends_with('N') {
                        arguments.insert("n", 1);
                    }
                    doc! { name: arguments }
                };
                let group = |more: Document| {
                    let mut group = doc! { "_id": "$station", "n": of(operator, "$n".into()) };
                    group.extend(more);
                    doc! { "$group": group }
                };
                let station = |row: &Document| row.get("station").unwrap().to_string();
                let wanted = edges(rows.iter(), is_last, station);
                let what = format!("seed {seed} {direction} {operator}");
                assert_eq!(numbers(&db, vec![group(doc! {})]).await, wanted, "{what}");
                let list = doc! { "list": of(&format!("{operator}N"), vec!["$n", "$gone"].into()) };
                for row in run(&db, vec![group(list)]).await {
                    let n = row.get("n").unwrap().clone();
                    assert_eq!(row.get("list"), Some(&Bson::from(vec![Bson::from(vec![n, Bson::Null])])), "{what}");
                }
                let object = doc! { "object": of(operator, doc! { "n": "$n", "gone": "$gone" }.into()) };
                for row in run(&db, vec![group(object)]).await {
                    let n = row.get("n").unwrap().clone();
                    assert_eq!(row.get_document("object").unwrap(), &doc! { "n": n }, "{what}");
                }
                // Other accumulators that need all rows, and one that keeps several.
                let more = doc! { "all": { "$sum": 1 }, "a": of(operator, "$a".into()) };
                let found = run(&db, vec![group(more)]).await;
                let count: i32 = found.iter().map(|row| row.get_i32("all").unwrap()).sum();
                assert_eq!(count as usize, rows.len(), "{what}");
                let two = doc! { "$topN": { "n": 2, "sortBy": { "at": direction }, "output": "$n" } };
                let found = run(&db, vec![group(doc! { "two": two })]).await;
                assert_eq!(found.len(), wanted.len(), "{what}");
                let mut by_n: Vec<Bson> = found.iter().map(|row| row.get("n").unwrap().clone()).collect();
                by_n.sort_by_key(|n| n.as_i64());
                assert_eq!(by_n, wanted, "{what}");
            }
        });
    }
}

#[test]
fn groups_that_need_both_ends_or_all_rows_are_correct() {
    for seed in 0..40 {
        let random = Random::new(seed);
        let rows = rows(&random);
        block_on(async {
            let db = database(BucketFormat::Compressed, &random, &rows).await;
            let group =
                doc! { "_id": Bson::Null, "f": { "$first": "$n" }, "l": { "$last": "$n" }, "all": { "$sum": 1 } };
            let found = run(&db, vec![doc! { "$sort": { "at": 1 } }, doc! { "$group": group }]).await;
            let end = |is_last| edges(rows.iter(), is_last, |_| String::new())[0].clone();
            let all = i32::try_from(rows.len()).unwrap();
            assert_eq!(found, [doc! { "_id": Bson::Null, "f": end(false), "l": end(true), "all": all }], "seed {seed}");
        });
    }
}

#[test]
fn rows_kept_with_their_bucket_serve_only_queries_for_as_many_rows_of_the_same_end() {
    block_on(async {
        let row = |n: i64| doc! { "at": DateTime::from_millis(n * SECOND_MS), "station": n % 3, "n": n };
        let rows: Vec<Document> = (0..90).map(row).collect();
        let db = database(BucketFormat::Compressed, &Random::new(1), &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for (count, direction) in [(3, -1), (3, -1), (1, -1), (2, 1), (3, -1), (2, -1), (2, -1), (16, 1), (40, -1)] {
            let list = doc! { "$topN": { "n": count, "sortBy": { "at": direction }, "output": "$n" } };
            let found = run(&db, vec![doc! { "$group": { "_id": "$station", "list": list } }]).await;
            assert_eq!(found.len(), 3);
            for group in found {
                let mut of_group: Vec<&Document> =
                    rows.iter().filter(|row| row.get("station") == group.get("_id")).collect();
                if direction < 0 {
                    of_group.reverse();
                }
                let wanted: Vec<Bson> =
                    of_group.iter().take(count as usize).map(|row| row.get("n").unwrap().clone()).collect();
                assert_eq!(group.get("list"), Some(&Bson::from(wanted)), "{count} {direction}");
            }
        }
    });
}

#[test]
fn an_expression_that_fails_on_an_older_row_still_fails() {
    block_on(async {
        let at = |seconds: i64| DateTime::from_millis(seconds * SECOND_MS);
        let rows = [doc! { "at": at(1), "station": 1, "n": "x" }, doc! { "at": at(2), "station": 1, "n": 2 }];
        let db = database(BucketFormat::Compressed, &Random::new(1), &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let group = doc! { "_id": "$station", "n": { "$last": { "$multiply": ["$n", 2] } } };
        let pipeline = vec![doc! { "$sort": { "at": 1 } }, doc! { "$group": group }];
        let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
        db.fails(raw(&command)).await;
    });
}

#[test]
fn only_one_part_is_read_if_unfolded_rows_are_later_than_their_bucket() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } }).await;
        let insert = async |seconds: std::ops::Range<i64>| {
            let row = |n: i64| doc! { "at": DateTime::from_millis(n * SECOND_MS), "station": n % 3, "n": n };
            db.insert("weather", &seconds.map(|n| raw(&row(n))).collect::<Vec<_>>()).await;
        };
        insert(0..30).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        insert(30..60).await;
        let read = async |direction: i32, filter: Document, found: [i64; 3]| {
            let group = doc! { "_id": "$station", "n": { "$first": "$n" } };
            let pipeline =
                vec![doc! { "$match": filter }, doc! { "$sort": { "at": direction } }, doc! { "$group": group }];
            assert_eq!(numbers(&db, pipeline.clone()).await, found.map(Bson::from));
            let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
            let shown = db.ok(raw(&doc! { "explain": command, "verbosity": "executionStats" })).await;
            Explained(shown).counts()[3]
        };
        assert_eq!(read(-1, doc! {}, [57, 58, 59]).await, 3);
        assert_eq!(read(1, doc! {}, [0, 1, 2]).await, 3);
        // If only some rows of a part match, the other part may hold the wanted row.
        let at = |n: i64| DateTime::from_millis(n * SECOND_MS);
        assert_eq!(read(-1, doc! { "at": { "$lt": at(31) } }, [28, 29, 30]).await, 3 + 10);
        // The start of a bucket is rounded down, so it cannot tell that all rows are late enough.
        assert_eq!(read(1, doc! { "at": { "$gte": at(29) } }, [29, 30, 31]).await, 10 + 30);
        // A late row lies between those of the bucket.
        insert(7..8).await;
        assert_eq!(read(-1, doc! {}, [57, 58, 59]).await, 3 + 1);
    });
}
