//! Filters on metadata: which buckets are read for them, and that what is remembered of series never outlives a change.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::explain;
use crate::support::pipelines::run;
use crate::support::{Db, Random, TestEnv, raw};

const HOUR_MS: i64 = 3_600_000;
const SERIES: i64 = 20;
const HOURS: i64 = 10;

async fn created(storage: &Rc<dyn Storage>, seed: u64) -> Db {
    let db = Db::open(Rc::clone(storage), TestEnv::new(seed));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
    db
}

/// A bucket for each hour of each series.
async fn many_series() -> Db {
    let db = created(&(Rc::new(MemoryStorage::new()) as Rc<dyn Storage>), 1).await;
    let row = |series: i64, hour: i64| {
        let at = DateTime::from_millis(hour * HOUR_MS + series);
        raw(&doc! { "at": at, "m": { "id": series, "kind": series % 2 }, "n": 100 * hour + series })
    };
    let rows: Vec<_> = (0..HOURS).flat_map(|hour| (0..SERIES).map(move |series| row(series, hour))).collect();
    db.insert("weather", &rows).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db
}

async fn buckets_read(db: &Db, pipeline: Vec<Document>) -> i64 {
    let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
    explain(db, raw(&command)).await.counts()[0]
}

#[test]
fn only_buckets_of_series_that_match_are_read() {
    block_on(async {
        let db = many_series().await;
        let pass = || doc! { "$project": { "n": { "$add": ["$n", 1] } } };
        assert_eq!(buckets_read(&db, vec![doc! { "$match": { "m.id": 3 } }, pass()]).await, HOURS);
        let late = doc! { "m.id": { "$in": [3, 4] }, "at": { "$gte": DateTime::from_millis((HOURS - 2) * HOUR_MS) } };
        assert_eq!(buckets_read(&db, vec![doc! { "$match": late }, pass()]).await, 2 * 3);
        // Expressions that only compare, too; others may distinguish values that compare equal, as `$type` does.
        for (expr, buckets) in [
            (doc! { "$eq": ["$m.id", 3] }, HOURS),
            (doc! { "$in": ["$m.id", [3, 4]] }, 2 * HOURS),
            (doc! { "$and": [{ "$lt": ["$m.id", 5] }, { "$ne": ["$m.id", "$m.kind"] }] }, 3 * HOURS),
            (doc! { "$eq": [{ "$toString": "$m.id" }, "3"] }, SERIES * HOURS),
        ] {
            assert_eq!(buckets_read(&db, vec![doc! { "$match": { "$expr": &expr } }, pass()]).await, buckets, "{expr}");
        }
        for command in [
            rawdoc! { "count": "weather", "query": { "m.id": 3 } },
            rawdoc! { "distinct": "weather", "key": "n", "query": { "m.id": 3 } },
        ] {
            assert_eq!(explain(&db, command).await.counts()[0], HOURS);
        }
        let newest = |filter: Document| {
            let group = doc! { "_id": "$m.id", "n": { "$last": "$n" } };
            vec![doc! { "$match": filter }, doc! { "$sort": { "at": 1 } }, doc! { "$group": group }]
        };
        // Series that do not match are met once.
        buckets_read(&db, newest(doc! { "m.kind": 1 })).await;
        assert_eq!(buckets_read(&db, newest(doc! { "m.kind": 1 })).await, SERIES / 2);
        assert_eq!(buckets_read(&db, newest(doc! { "m.id": 7 })).await, 1);
        assert_eq!(buckets_read(&db, newest(doc! { "m.id": -7 })).await, 0);
        // And they stay known when rows are folded into their buckets.
        let later = DateTime::from_millis(2 * HOURS * HOUR_MS);
        let rows: Vec<_> =
            (0..SERIES).map(|id| raw(&doc! { "at": later, "m": { "id": id, "kind": id % 2 }, "n": 0 })).collect();
        db.insert("weather", &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(buckets_read(&db, newest(doc! { "m.kind": 1 })).await, SERIES / 2);
    });
}

#[test]
fn a_group_by_metadata_alone_reads_one_bucket_of_each_series() {
    block_on(async {
        let db = many_series().await;
        let group = |id: Bson| vec![doc! { "$group": { "_id": id } }];
        for (id, groups) in [(Bson::from("$m"), SERIES), ("$m.kind".into(), 2), (bson!({ "id": "$m.id" }), SERIES)] {
            assert_eq!(buckets_read(&db, group(id.clone())).await, SERIES, "{id}");
            assert_eq!(run(&db, group(id)).await.len() as i64, groups);
        }
        let of_some = |fields: Document| {
            let mut group = doc! { "_id": "$m.id" };
            group.extend(fields);
            vec![doc! { "$match": { "m.kind": 1 } }, doc! { "$group": group }]
        };
        // Also of those whose metadata is not known yet.
        assert_eq!(buckets_read(&db, of_some(doc! {})).await, SERIES);
        assert_eq!(run(&db, of_some(doc! {})).await.len() as i64, SERIES / 2);
        // The number of rows, a value, a time and a type need more.
        for fields in [doc! { "n": { "$sum": 1 } }, doc! { "n": { "$max": "$n" } }, doc! { "n": { "$max": "$at" } }] {
            assert_eq!(buckets_read(&db, of_some(fields.clone())).await, SERIES / 2 * HOURS, "{fields}");
        }
        assert_eq!(buckets_read(&db, group(bson!({ "$type": "$m" }))).await, SERIES * HOURS);
        // Rows that are not folded count, in buckets that are read and in others.
        let row = |hour: i64, id: i64| {
            raw(&doc! { "at": DateTime::from_millis(hour * HOUR_MS), "m": { "id": id, "kind": 7 }, "n": 0 })
        };
        db.insert("weather", &[row(0, 3), row(HOURS - 1, 4), row(2 * HOURS, SERIES)]).await;
        assert_eq!(run(&db, group("$m.id".into())).await.len() as i64, SERIES + 1);
        assert_eq!(run(&db, group("$m.kind".into())).await.len(), 3);
    });
}

/// A context that has stored one bucket for each of `series` series, and another one that has not read them yet.
async fn written_and_read(series: i64) -> (Db, Db) {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let writer = created(&storage, 1).await;
    let row = |series: i64| raw(&doc! { "at": DateTime::from_millis(series), "m": { "id": series }, "n": series });
    writer.insert("weather", &(0..series).map(row).collect::<Vec<_>>()).await;
    writer.ok(rawdoc! { "flush": 1 }).await;
    (writer, Db::open(storage, TestEnv::new(2)))
}

#[test]
fn the_series_of_many_buckets_are_listed_if_these_are_in_memory() {
    block_on(async {
        let (writer, db) = written_and_read(5000).await;
        let pipeline = || {
            let pass = doc! { "$project": { "n": { "$add": ["$n", 1] } } };
            vec![doc! { "$match": { "m.id": { "$in": [3, 4000] } } }, pass]
        };
        // Who has folded the rows has the buckets in memory.
        assert_eq!(buckets_read(&writer, pipeline()).await, 2);
        assert_eq!(buckets_read(&db, pipeline()).await, 5000);
        assert_eq!(buckets_read(&db, pipeline()).await, 2);
    });
}

#[test]
fn the_newest_rows_of_a_series_are_read_from_its_buckets_once_all_buckets_were_read() {
    block_on(async {
        let (_, db) = written_and_read(3000).await;
        let newest = || rawdoc! { "find": "weather", "filter": { "m.id": 7 }, "sort": { "at": -1 }, "limit": 1 };
        for buckets in [3000, 1] {
            assert_eq!(explain(&db, newest()).await.counts()[0], buckets);
            assert_eq!(db.find(newest()).await.len(), 1);
        }
    });
}

#[test]
fn what_is_remembered_of_an_expression_is_not_taken_for_the_same_one_with_a_collation() {
    block_on(async {
        let db = created(&(Rc::new(MemoryStorage::new()) as Rc<dyn Storage>), 1).await;
        let row = |n: i64| {
            let name = ["roof", "Roof", "cellar", "garden"][n as usize % 4];
            raw(&doc! { "at": DateTime::from_millis(n * HOUR_MS), "m": { "name": name }, "n": n })
        };
        db.insert("weather", &(0..80).map(row).collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let found = async |strength: Option<i32>| {
            let mut command = doc! { "find": "weather", "filter": { "$expr": { "$eq": ["$m.name", "roof"] } } };
            if let Some(strength) = strength {
                command.insert("collation", doc! { "locale": "en", "strength": strength });
            }
            db.find(raw(&command)).await.len()
        };
        for _ in 0..2 {
            assert_eq!([found(None).await, found(Some(2)).await, found(Some(3)).await], [20, 40, 20]);
        }
    });
}

#[test]
fn metadata_that_is_undefined_is_stored_as_null() {
    block_on(async {
        let db = created(&(Rc::new(MemoryStorage::new()) as Rc<dyn Storage>), 1).await;
        let row = |n: i64, meta: Bson| raw(&doc! { "at": DateTime::from_millis(n), "m": meta, "n": n });
        db.insert("weather", &[row(1, Bson::Undefined), row(2, Bson::Null), row(3, Bson::Int32(3))]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(numbers(&run(&db, vec![doc! { "$match": { "m": Bson::Null } }]).await), [1, 2]);
    });
}

/// The rows of a plain list that match, as the numbers in them.
fn numbers<'a>(rows: impl IntoIterator<Item = &'a Document>) -> Vec<i64> {
    let mut numbers: Vec<i64> = rows.into_iter().map(|row| row.get_i64("n").unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// The last row of each piece of metadata.
fn newest<'a>(rows: impl IntoIterator<Item = &'a Document>) -> Vec<i64> {
    let mut newest: Vec<&Document> = Vec::new();
    for row in rows {
        match newest.iter_mut().find(|known| known.get("m") == row.get("m")) {
            Some(known) if known.get_datetime("at").unwrap() > row.get_datetime("at").unwrap() => {}
            Some(known) => *known = row,
            None => newest.push(row),
        }
    }
    numbers(newest)
}

#[test]
fn what_is_remembered_of_series_follows_every_change_of_either_context() {
    for seed in 0..4 {
        let random = Random::new(seed);
        let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        block_on(async {
            let one = created(&storage, seed).await;
            let other = Db::open(Rc::clone(&storage), TestEnv::new(seed + 1000));
            let (mut list, mut n): (Vec<Document>, i64) = (Vec::new(), 0);
            for step in 0..30 {
                let db = [&one, &other][random.below(2) as usize];
                let id = random.below(5) as i32;
                match random.below(8) {
                    0 => drop(db.ok(rawdoc! { "flush": 1 }).await),
                    1 => {
                        let rename = doc! { "q": { "m.id": id }, "u": { "$set": { "m.id": id + 10 } }, "multi": true };
                        db.ok(raw(&doc! { "update": "weather", "updates": [rename] })).await;
                        for row in list.iter_mut().filter(|row| id_of(row) == Some(id)) {
                            row.insert("m", doc! { "id": id + 10, "kind": "renamed" });
                        }
                    }
                    2 => {
                        let rows = doc! { "q": { "m.id": id }, "limit": 0 };
                        db.ok(raw(&doc! { "delete": "weather", "deletes": [rows] })).await;
                        list.retain(|row| id_of(row) != Some(id));
                    }
                    _ => {
                        let new: Vec<Document> = (0..1 + random.below(30) as i64)
                            .map(|more| {
                                let at = DateTime::from_millis((n + more) * HOUR_MS / 3);
                                let id = random.below(5) as i32;
                                doc! { "at": at, "m": { "id": id, "kind": "renamed" }, "n": n + more, "a": 0.5 * more as f64 }
                            })
                            .collect();
                        n += new.len() as i64;
                        db.insert("weather", &new.iter().map(raw).collect::<Vec<_>>()).await;
                        list.extend(new);
                    }
                }
                let id = random.below(15) as i32;
                let from = DateTime::from_millis(random.below(n as u64 + 1) as i64 * HOUR_MS / 3);
                for (filter, passes) in [
                    (
                        doc! { "m.id": id },
                        Box::new(|row: &&Document| id_of(row) == Some(id)) as Box<dyn Fn(&&Document) -> bool>,
                    ),
                    (doc! { "m.id": { "$lt": id } }, Box::new(|row| id_of(row) < Some(id))),
                    (
                        doc! { "m.id": { "$gte": id }, "at": { "$gte": from } },
                        Box::new(|row| id_of(row) >= Some(id) && row.get_datetime("at").unwrap() >= &from),
                    ),
                    (doc! { "$expr": { "$gt": ["$m.id", id] } }, Box::new(|row| id_of(row) > Some(id))),
                    (
                        doc! { "$expr": { "$in": ["$m.id", [id, 3]] } },
                        Box::new(|row| [Some(id), Some(3)].contains(&id_of(row))),
                    ),
                    (doc! {}, Box::new(|_| true)),
                ] {
                    for (name, db) in [("one", &one), ("other", &other)] {
                        let what = format!("seed {seed}, step {step}, {name}, {filter}");
                        let found = run(db, vec![doc! { "$match": filter.clone() }]).await;
                        assert_eq!(numbers(&found), numbers(list.iter().filter(&passes)), "{what}");
                        let count = db.ok(raw(&doc! { "count": "weather", "query": filter.clone() })).await;
                        assert_eq!(count.get_i32("n").unwrap() as usize, found.len(), "{what}, count");
                        let columns = if random.chance(50) {
                            doc! { "n": { "$first": "$n" } }
                        } else {
                            doc! { "n": { "$first": "$n" }, "a": { "$first": "$a" } }
                        };
                        let mut group = doc! { "_id": "$m" };
                        group.extend(columns);
                        let pipeline = vec![
                            doc! { "$match": filter.clone() },
                            doc! { "$sort": { "m.id": 1, "at": -1 } },
                            doc! { "$group": group },
                        ];
                        let found = run(db, pipeline).await;
                        assert_eq!(numbers(&found), newest(list.iter().filter(&passes)), "{what}, newest");
                    }
                }
            }
        });
    }
}

#[test]
fn rows_of_many_series_that_are_not_folded_are_found_by_their_metadata() {
    for seed in 0..4 {
        let random = Random::new(seed);
        let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        block_on(async {
            let one = created(&storage, seed).await;
            let other = Db::open(Rc::clone(&storage), TestEnv::new(seed + 1000));
            let mut list: Vec<(Option<i32>, Document)> = Vec::new();
            for step in 0..12 {
                let db = [&one, &other][random.below(2) as usize];
                if random.chance(30) {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
                // Later steps add series that no stored bucket has.
                let new = (0..60).map(|_| {
                    let id = random.below(10 + 10 * step) as i32;
                    let at = DateTime::from_millis(random.below(5 * HOUR_MS as u64) as i64);
                    let mut row = doc! { "at": at, "n": random.below(1 << 40) as i64 };
                    match random.below(8) {
                        0 => return (None, row),
                        1 => row.insert("m", Bson::Null),
                        2 => row.insert("m", doc! { "id": format!("{id}") }),
                        3 => row.insert("m", doc! { "id": f64::from(id) }),
                        _ => row.insert("m", doc! { "id": id }),
                    };
                    let id = row.get_document("m").is_ok_and(|m| m.get_str("id").is_err()).then_some(id);
                    (id, row)
                });
                let new: Vec<(Option<i32>, Document)> = new.collect();
                db.insert("weather", &new.iter().map(|(_, row)| raw(row)).collect::<Vec<_>>()).await;
                list.extend(new);
                for _ in 0..3 {
                    let ids: Vec<i32> = (0..3).map(|_| random.below(130) as i32).collect();
                    let filters = [
                        (doc! { "m.id": ids[0] }, vec![ids[0]]),
                        (doc! { "m.id": { "$in": ids.clone() } }, ids.clone()),
                        (doc! { "m.id": { "$lt": ids[0] } }, (0..ids[0]).collect()),
                    ];
                    for (filter, ids) in filters {
                        let wanted = list.iter().filter(|(id, _)| id.is_some_and(|id| ids.contains(&id)));
                        let wanted = numbers(wanted.map(|(_, row)| row));
                        for (name, db) in [("one", &one), ("other", &other)] {
                            let found = run(db, vec![doc! { "$match": filter.clone() }]).await;
                            assert_eq!(numbers(&found), wanted, "seed {seed}, step {step}, {name}, {filter}");
                        }
                    }
                    let wanted = list.iter().filter(|(_, row)| matches!(row.get("m"), None | Some(Bson::Null)));
                    for (name, db) in [("one", &one), ("other", &other)] {
                        let found = run(db, vec![doc! { "$match": { "m": Bson::Null } }]).await;
                        let wanted = numbers(wanted.clone().map(|(_, row)| row));
                        assert_eq!(numbers(&found), wanted, "seed {seed}, step {step}, {name}");
                    }
                }
            }
        });
    }
}

fn id_of(row: &Document) -> Option<i32> {
    row.get_document("m").ok()?.get_i32("id").ok()
}

#[test]
fn metadata_that_compares_equal_is_judged_as_one_series_only_by_filters_that_do_so_too() {
    block_on(async {
        let db = created(&(Rc::new(MemoryStorage::new()) as Rc<dyn Storage>), 1).await;
        let metas =
            [Bson::Int32(1), Bson::Double(1.0), Bson::Int64(1), Bson::Null, Bson::from(vec![1, 2]), Bson::from("1")];
        let rows = (0..600_usize).map(|n| {
            let at = DateTime::from_millis(n as i64 * HOUR_MS);
            raw(&doc! { "at": at, "m": { "id": metas[n % metas.len()].clone() }, "n": n as i64 })
        });
        db.insert("weather", &rows.collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        for _ in 0..2 {
            for (filter, count) in [
                (doc! { "m.id": 1 }, 400),
                (doc! { "m.id": { "$type": "double" } }, 100),
                (doc! { "m.id": { "$type": "int" } }, 200),
                (doc! { "m.id": Bson::Null }, 100),
                (doc! { "m.id": { "$gte": "1" } }, 100),
                (doc! { "m.id": { "$ne": 1 } }, 200),
                (doc! { "$expr": { "$eq": [{ "$type": "$m.id" }, "long"] } }, 100),
            ] {
                let found = run(&db, vec![doc! { "$match": filter.clone() }]).await;
                assert_eq!(found.len(), count, "{filter}");
            }
        }
    });
}
