//! Sorts by time and by metadata stream bucket by bucket: the first rows come before all buckets are read.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bson::{DateTime, Document, RawBson, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

use crate::support::{ALWAYS_MS, Db, TestEnv, raw};

const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 100;

/// Two series with a bucket per hour, each with two measurements in the middle of the hour.
async fn stored() -> Rc<MemoryStorage> {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let readings: Vec<RawDocumentBuf> = (0..4 * HOURS)
        .map(|n| {
            let at = DateTime::from_millis(n / 4 * HOUR_MS + HOUR_MS / 2 + n % 2);
            rawdoc! { "t": at, "m": if n / 2 % 2 == 0 { "a" } else { "b" }, "n": n }
        })
        .collect();
    db.insert("c", &readings).await;
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

fn numbers(rows: &[Document]) -> Vec<i64> {
    rows.iter().map(|row| row.get_i64("n").unwrap()).collect()
}

#[test]
fn the_newest_measurement_of_a_series_is_found_without_reading_older_buckets() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, HOURS - 4..HOURS).await;
        let db = Db::open(storage, TestEnv::new(2));
        let newest = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "t": -1 }, "limit": 1 };
        assert_eq!(numbers(&db.find(newest).await), [4 * HOURS - 3]);
        let more = rawdoc! { "find": "c", "filter": { "m": "b" }, "sort": { "t": -1 }, "skip": 1, "limit": 4 };
        assert_eq!(numbers(&db.find(more).await), [4 * HOURS - 2, 4 * HOURS - 5, 4 * HOURS - 6, 4 * HOURS - 9]);
        let all = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "t": -1 } };
        assert_eq!(db.fails(all).await.0, 246);
    });
}

#[test]
fn the_oldest_measurements_are_found_without_reading_later_buckets() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, 0..40).await;
        let db = Db::open(storage, TestEnv::new(2));
        let of_one = rawdoc! { "find": "c", "filter": { "m": "b" }, "sort": { "t": 1 }, "limit": 2 };
        assert_eq!(numbers(&db.find(of_one).await), [2, 3]);
        let of_all = rawdoc! { "find": "c", "sort": { "t": 1 }, "limit": 3 };
        assert_eq!(numbers(&db.find(of_all).await).len(), 3);
    });
}

/// Of rows of the same time, those that came first stay in front, also where only the ends of buckets are decoded.
#[test]
fn a_limit_returns_the_first_rows_of_the_whole_sort_where_many_have_the_same_time() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = Db::open(storage, TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        // Runs of one to six rows of a time, in buckets of two series, with a field that only some have.
        let times = (0..60).flat_map(|n| std::iter::repeat_n(n, n as usize % 7 % 6 + 1));
        let row = |(n, at): (i64, i64)| {
            let mut row = doc! { "t": DateTime::from_millis(at * 150_000), "m": n % 2, "n": n };
            if n % 3 == 0 {
                row.insert("x", "text");
            }
            raw(&row)
        };
        db.insert("c", &(0..).zip(times).map(row).collect::<Vec<_>>()).await;
        for is_folded in [false, true] {
            if is_folded {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            for filter in [rawdoc! {}, rawdoc! { "m": 1_i64 }, rawdoc! { "n": { "$mod": [5, 2] } }] {
                for sort in [rawdoc! { "t": 1 }, rawdoc! { "t": -1 }, rawdoc! { "m": 1, "t": -1 }] {
                    for fields in [rawdoc! {}, rawdoc! { "n": 1 }] {
                        let find = async |skip: i64, limit: i64| {
                            let (filter, sort, fields) = (filter.clone(), sort.clone(), fields.clone());
                            let command = rawdoc! { "find": "c", "filter": filter, "sort": sort, "projection": fields, "skip": skip, "limit": limit };
                            db.find(command).await
                        };
                        let all = find(0, 0).await;
                        for (skip, limit) in [(0, 1), (0, 2), (0, 3), (0, 7), (1, 1), (3, 4), (0, 20), (30, 90)] {
                            let (from, end) = (skip.min(all.len()), (skip + limit).min(all.len()));
                            let found = find(skip as i64, limit as i64).await;
                            assert_eq!(found, all[from..end], "{is_folded} {filter:?} {sort:?} {skip} {limit}");
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn streaming_sorts_include_newer_journal_rows_and_apply_other_filters() {
    block_on(async {
        let storage = stored().await;
        let db = Db::open(storage, TestEnv::new(2));
        let late = rawdoc! { "t": DateTime::from_millis(HOURS * HOUR_MS), "m": "a", "n": 1000_i64 };
        db.insert("c", &[late, rawdoc! { "t": DateTime::from_millis(5), "m": "a", "n": 1001_i64 }]).await;
        let ask = async |filter: RawDocumentBuf, direction: i32, batch: i32| {
            let find =
                rawdoc! { "find": "c", "filter": filter, "sort": { "t": direction }, "limit": 2, "batchSize": batch };
            numbers(&db.find(find).await)
        };
        for batch in [0, 1, 5] {
            assert_eq!(ask(rawdoc! { "m": "a" }, -1, batch).await, [1000, 4 * HOURS - 3]);
            assert_eq!(ask(rawdoc! { "m": "a" }, 1, batch).await, [1001, 0]);
            assert_eq!(ask(rawdoc! { "m": "a", "n": { "$lt": 10 } }, -1, batch).await, [9, 8]);
            assert_eq!(ask(rawdoc! { "m": "b", "n": { "$gt": 390 } }, 1, batch).await, [391, 394]);
        }
    });
}

#[test]
fn all_buckets_with_the_same_start_are_read_over_several_pages() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        // The buckets created last have the earliest measurements.
        let readings: Vec<RawDocumentBuf> =
            (0..200_i64).map(|n| rawdoc! { "t": DateTime::from_millis(HOUR_MS + 200 - n), "m": n, "n": n }).collect();
        db.insert("c", &readings).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let first = db.find(rawdoc! { "find": "c", "sort": { "t": 1 }, "limit": 3 }).await;
        assert_eq!(numbers(&first), [199, 198, 197]);
    });
}

#[test]
fn the_newest_of_all_series_are_found_without_a_scan() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, HOURS - 4..HOURS).await;
        let db = Db::open(storage, TestEnv::new(2));
        let newest = rawdoc! { "find": "c", "sort": { "t": -1 }, "limit": 1 };
        assert_eq!(numbers(&db.find(newest).await), [4 * HOURS - 1]);
        let filtered = rawdoc! { "find": "c", "filter": { "n": { "$mod": [2, 0] } }, "sort": { "t": -1 }, "limit": 1 };
        assert!([4 * HOURS - 2, 4 * HOURS - 4].contains(&numbers(&db.find(filtered).await)[0]));
    });
}

#[test]
fn a_sort_with_a_small_limit_returns_whole_rows_of_many_series() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        // Series take turns, so the first rows of any order are of many of them.
        let (row_count, series) = (600_i64, 30);
        let text = |n: i64| format!("row {n}");
        let rows: Vec<RawDocumentBuf> = (0..row_count)
            .map(|n| rawdoc! { "t": DateTime::from_millis(1000 * n), "m": n % series, "v": n * 7919 % row_count, "n": n, "s": text(n) })
            .collect();
        db.insert("c", &rows).await;
        for folded in [false, true] {
            if folded {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            for (name, up) in [("t", true), ("t", false), ("v", true), ("v", false)] {
                let key = |n: &i64| if name == "t" { *n } else { n * 7919 % row_count };
                let mut expected: Vec<i64> = (0..row_count).collect();
                expected.sort_by_key(|n| if up { key(n) } else { -key(n) });
                for (skip, limit) in [(0, 1), (3, 20), (0, 25), (50, 70)] {
                    let sort = raw(&doc! { name: if up { 1 } else { -1 } });
                    let find = rawdoc! { "find": "c", "sort": sort, "skip": skip as i64, "limit": limit as i64, "batchSize": 7 };
                    let found = db.find(find).await;
                    assert_eq!(numbers(&found), expected[skip..skip + limit], "{name} {up} {skip} {limit} {folded}");
                    for row in &found {
                        let n = row.get_i64("n").unwrap();
                        assert_eq!((row.get_str("s").unwrap(), row.get_i64("m").unwrap()), (&*text(n), n % series));
                    }
                }
            }
        }
    });
}

#[test]
fn an_insert_outside_the_usual_years_beside_a_limited_sort_neither_stops_nor_disturbs_it() {
    // Such a measurement ends the streaming of sorts by time. A query that was then decoding what its first rows lack waited for itself for ever.
    const ROW_COUNT: i64 = 240;
    const LIMIT: usize = 40;
    let row = |n: i64| rawdoc! { "t": DateTime::from_millis(1000 * n), "m": n % 24, "n": n, "s": format!("row {n}") };
    let far = 9_000_000_000_000;
    for turn in 1.. {
        let env = TestEnv::new(1);
        let (rows, was_disturbed) = block_on(async {
            let db = Db::open(Rc::new(MemoryStorage::new()), Rc::clone(&env));
            db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            db.insert("c", &(0..ROW_COUNT).map(row).collect::<Vec<_>>()).await;
            db.ok(rawdoc! { "flush": 1 }).await;
            env.look_ms.set(ALWAYS_MS);
            env.turns.set(0);
            let find = db.find(rawdoc! { "find": "c", "sort": { "t": -1 }, "limit": LIMIT as i64, "batchSize": 7 });
            let mut find = pin!(find);
            let mut polls = 0;
            while env.turns.get() < turn {
                if let Poll::Ready(rows) = poll_fn(|context| Poll::Ready(find.as_mut().poll(context))).await {
                    return (rows, false);
                }
            }
            db.insert("c", &[row(far / 1000)]).await;
            loop {
                polls += 1;
                assert!(polls < 100_000, "the query goes on for ever after turn {turn}");
                if let Poll::Ready(rows) = poll_fn(|context| Poll::Ready(find.as_mut().poll(context))).await {
                    return (rows, true);
                }
            }
        });
        let mut wanted: Vec<i64> = (0..ROW_COUNT).rev().take(LIMIT).collect();
        let numbers = numbers(&rows);
        if numbers.first() == Some(&(far / 1000)) {
            wanted.insert(0, far / 1000);
            wanted.pop();
        }
        assert_eq!(numbers, wanted, "after turn {turn}");
        assert!(rows.iter().all(|row| row.get_str("s").unwrap() == format!("row {}", row.get_i64("n").unwrap())));
        if !was_disturbed {
            assert!(turn > 10, "only {turn} turns were given");
            return;
        }
    }
}

#[test]
fn a_sort_by_time_returns_first_batches_before_later_buckets_are_read() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, 0..HOURS / 2).await;
        let db = Db::open(storage, TestEnv::new(2));
        let first = db.ok(rawdoc! { "find": "c", "sort": { "t": 1 }, "batchSize": 10 }).await;
        let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
        assert_ne!(id, 0);
        let mut more = 0;
        let broken = loop {
            let reply = db.command(rawdoc! { "getMore": id, "collection": "c", "batchSize": 10 }).await;
            if reply.get_f64("ok").unwrap() == 0.0 {
                break reply;
            }
            more += 1;
        };
        assert_eq!(broken.get_i32("code").unwrap(), 246);
        assert!(more >= 3, "{more} batches before the damage");
    });
}

/// Metadata code and number of every row of a sort, in batches of `batch`.
async fn sorted(db: &Db, sort: RawDocumentBuf, batch: i32) -> Vec<(String, i64)> {
    let rows = db.find(rawdoc! { "find": "c", "sort": sort, "batchSize": batch }).await;
    rows.iter().map(|row| (row.get_str("m").unwrap().to_owned(), row.get_i64("n").unwrap())).collect()
}

#[test]
fn a_sort_on_metadata_unpacks_no_bucket_beyond_its_limit() {
    block_on(async {
        let storage = stored().await;
        // The columns of series b are unreadable; ids and metadata are not.
        let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
        let mut changes = Changeset::new();
        for entry in
            storage.scan(std::slice::from_ref(&all), Page { entries_max: 1000, keys_only: false }).await.unwrap()
        {
            let mut value = entry.value;
            let is_of = |series: &[u8]| value.windows(series.len()).any(|bytes| bytes == series);
            if is_of(b"\x02meta\0\x02\0\0\0b\0") {
                let name = value.windows(3).rposition(|bytes| bytes == b"\x05n\0").unwrap();
                value[name + 3 + 5] = 0xFF;
                changes.put(entry.key, value);
            }
        }
        storage.commit(changes).await.unwrap();
        let db = Db::open(storage, TestEnv::new(2));
        let few = db.find(rawdoc! { "find": "c", "sort": { "m": 1 }, "limit": 2 * HOURS }).await;
        assert!(few.len() == 2 * HOURS as usize && few.iter().all(|row| row.get_str("m").unwrap() == "a"));
        let newest = db.find(rawdoc! { "find": "c", "sort": { "m": 1, "t": -1 }, "limit": 3 }).await;
        assert_eq!(numbers(&newest), [4 * HOURS - 3, 4 * HOURS - 4, 4 * HOURS - 7]);
        let first_b = rawdoc! { "find": "c", "sort": { "m": -1 }, "limit": 1 };
        assert_eq!(db.fails(first_b).await.0, 246);
    });
}

#[test]
fn a_sort_on_metadata_then_time_or_a_field_orders_each_series() {
    block_on(async {
        let db = Db::open(stored().await, TestEnv::new(2));
        let of = |series: &str, wanted: fn(i64) -> bool| -> Vec<(String, i64)> {
            (0..4 * HOURS).filter(|n| wanted(*n)).map(|n| (series.to_owned(), n)).collect()
        };
        let (a, b) = (of("a", |n| n % 4 < 2), of("b", |n| n % 4 > 1));
        let backward = |rows: &[(String, i64)]| rows.iter().rev().cloned().collect::<Vec<_>>();
        // Each series has a measurement at the same time.
        let mut by_time = [&a[..], &b[..]].concat();
        by_time.sort_by_key(|(_, n)| (-(n / 4 * 2 + n % 2), *n));
        for batch in [1, 7, 1000] {
            assert_eq!(sorted(&db, rawdoc! { "m": 1, "t": 1 }, batch).await, [&a[..], &b[..]].concat());
            assert_eq!(sorted(&db, rawdoc! { "m": 1, "t": -1 }, batch).await, [backward(&a), backward(&b)].concat());
            assert_eq!(sorted(&db, rawdoc! { "m": -1, "n": 1 }, batch).await, [&b[..], &a[..]].concat());
            assert_eq!(sorted(&db, rawdoc! { "t": -1, "n": 1 }, batch).await, by_time);
        }
    });
}

#[test]
fn metadata_with_parallel_arrays_is_refused_only_if_a_measurement_matches() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let at = DateTime::from_millis(HOUR_MS);
        db.insert(
            "c",
            &[
                rawdoc! { "t": at, "m": { "x": [1, 2], "y": [3, 4] }, "n": 1_i64 },
                rawdoc! { "t": at, "m": { "x": 1, "y": [3, 4] }, "n": 2_i64 },
            ],
        )
        .await;
        let sort = rawdoc! { "m.x": 1, "m.y": 1 };
        assert_eq!(db.fails(rawdoc! { "find": "c", "sort": sort.clone() }).await.0, 2);
        let other = db.find(rawdoc! { "find": "c", "filter": { "n": { "$gt": 1 } }, "sort": sort }).await;
        assert_eq!(numbers(&other), [2]);
    });
}

#[test]
fn parallel_arrays_after_the_time_are_refused_in_every_row() {
    block_on(async {
        let db = Db::open(stored().await, TestEnv::new(2));
        // It is the last row: a scan that ends early would miss it.
        let at = DateTime::from_millis(HOURS * HOUR_MS);
        db.insert("c", &[rawdoc! { "t": at, "m": "a", "n": 1000_i64, "x": [1, 2], "y": [3] }]).await;
        let both = rawdoc! { "find": "c", "sort": { "t": 1, "x": 1, "y": 1 }, "limit": 1 };
        assert_eq!(db.fails(both).await.0, 2);
        let one = rawdoc! { "find": "c", "sort": { "t": 1, "x": 1 }, "limit": 1 };
        assert_eq!(db.find(one).await.len(), 1);
    });
}

#[test]
fn extended_dates_are_sorted_correctly() {
    block_on(async {
        let db = Db::open(stored().await, TestEnv::new(2));
        let far = |ms: i64, n: i64| rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "n": n };
        db.insert("c", &[far(-5, -1), far(5_000_000_000_000, 1000)]).await;
        for fold in [false, true] {
            if fold {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            let ends = async |direction: i32| {
                numbers(&db.find(rawdoc! { "find": "c", "sort": { "t": direction }, "limit": 2 }).await)
            };
            assert_eq!(ends(1).await, [-1, 0]);
            assert_eq!(ends(-1).await, [1000, 4 * HOURS - 1]);
            let all = sorted(&db, rawdoc! { "m": 1, "t": -1 }, 10).await;
            assert!(all[0].1 == 1000 && all[1].1 == 4 * HOURS - 3 && all[2 * HOURS as usize + 1].1 == -1);
        }
    });
}

#[test]
fn a_natural_hint_sets_the_direction_in_which_buckets_are_read() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, HOURS - 4..HOURS).await;
        let db = Db::open(storage, TestEnv::new(2));
        let last = db.find(rawdoc! { "find": "c", "hint": { "$natural": -1 }, "limit": 2 }).await;
        assert!(numbers(&last).iter().all(|n| *n >= 4 * HOURS - 4), "{last:?}");
        assert_eq!(db.fails(rawdoc! { "find": "c", "hint": { "$natural": 1 }, "limit": 2 }).await.0, 246);
        // It also prevents the use of the index.
        let one = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "n": 1 }, "hint": { "$natural": 1 } };
        assert_eq!(db.fails(one).await.0, 246);
    });
}

#[test]
fn a_natural_hint_orders_journal_buckets_among_stored_ones() {
    // A regression: forward, they came after all stored ones.
    block_on(async {
        let db = Db::open(stored().await, TestEnv::new(2));
        let reading = |hour: i64, n: i64| rawdoc! { "t": DateTime::from_millis(hour * HOUR_MS), "m": n, "n": n };
        db.insert("c", &[reading(3, 1001), reading(50, 1000), reading(40, 1002)]).await;
        for direction in [1, -1] {
            let find = rawdoc! { "find": "c", "hint": { "$natural": direction }, "projection": { "t": 1 } };
            let hours = db.find(find).await.into_iter().map(|row| {
                i64::from(direction) * row.get_datetime("t").unwrap().timestamp_millis().div_euclid(HOUR_MS)
            });
            assert!(hours.is_sorted(), "{direction}");
        }
    });
}

#[test]
fn a_hint_names_the_index_or_its_keys_and_any_other_is_refused() {
    block_on(async {
        let db = Db::open(stored().await, TestEnv::new(2));
        for hint in
            [RawBson::String("m_1_t_1".into()), rawdoc! { "m": 1, "t": 1 }.into(), rawdoc! { "$natural": -1 }.into()]
        {
            let found = db.find(rawdoc! { "find": "c", "filter": { "m": "a" }, "hint": hint.clone() }).await;
            assert_eq!(found.len(), 2 * HOURS as usize);
            assert_eq!(
                db.ok(rawdoc! { "count": "c", "hint": hint.clone() }).await.get_i32("n").unwrap(),
                4 * HOURS as i32
            );
            db.ok(rawdoc! { "distinct": "c", "key": "m", "hint": hint }).await;
        }
        for hint in [RawBson::String("_id_".into()), rawdoc! { "m": 1 }.into(), rawdoc! { "t": 1, "m": 1 }.into()] {
            for command in [rawdoc! { "find": "c" }, rawdoc! { "count": "c" }, rawdoc! { "distinct": "c", "key": "m" }]
            {
                let mut command = command;
                command.append(bson::cstr!("hint"), hint.clone());
                assert_eq!(db.fails(command).await, (2, "BadValue".to_owned()));
            }
        }
    });
}

#[test]
fn folds_and_deletes_under_a_streaming_cursor_cause_no_duplicates_or_errors() {
    // Another context writes; or the one that reads, which knows all stored buckets.
    block_on(async {
        write_under_cursors(false).await;
        write_under_cursors(true).await;
    });
}

async fn write_under_cursors(is_own: bool) {
    let storage = stored().await;
    let (reader, other) = (Db::open(storage.clone(), TestEnv::new(2)), Db::open(storage, TestEnv::new(3)));
    let writer = if is_own { &reader } else { &other };
    for direction in [1, -1, -1] {
        let all = rawdoc! { "find": "c", "sort": { "t": direction }, "batchSize": 1000 };
        assert!(!is_own || reader.find(all).await.len() == 4 * HOURS as usize);
    }
    let late = |n: i64| rawdoc! { "t": DateTime::from_millis(n * HOUR_MS), "m": "late", "n": 10_000 + n };
    writer.insert("c", &(0..HOURS).map(late).collect::<Vec<_>>()).await;
    for sort in [rawdoc! { "t": -1 }, rawdoc! { "t": 1 }, rawdoc! { "m": -1, "t": 1 }] {
        let reply = reader.ok(rawdoc! { "find": "c", "sort": sort.clone(), "batchSize": 3 }).await;
        let mut cursor = reply.get_document("cursor").unwrap().clone();
        let mut found = numbers(&crate::support::take_rows(&mut cursor, "firstBatch"));
        writer.ok(rawdoc! { "flush": 1 }).await;
        while cursor.get_i64("id").unwrap() != 0 {
            let id = cursor.get_i64("id").unwrap();
            let reply = reader.ok(rawdoc! { "getMore": id, "collection": "c", "batchSize": 50 }).await;
            cursor = reply.get_document("cursor").unwrap().clone();
            found.extend(numbers(&crate::support::take_rows(&mut cursor, "nextBatch")));
            let some = rawdoc! { "n": { "$gte": 50, "$lt": 60 } };
            writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": some, "limit": 0 }] }).await;
        }
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(count, found.len(), "{is_own} {sort:?}");
        assert!(
            count >= 4 * HOURS as usize - 10 + HOURS as usize && found.contains(&(10_000 + HOURS - 1)),
            "{is_own} {sort:?} {count}"
        );
    }
}
