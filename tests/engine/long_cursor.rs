//! A cursor that is used from time to time lives for half an hour, while others fold, unless its collection is dropped.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv, take_rows};

const MINUTE_MS: i64 = 60_000;

/// One measurement of each of more series than a page of a scan has buckets.
fn readings(n: i64, minute: i64) -> Vec<RawDocumentBuf> {
    (0..100)
        .map(|series| {
            let at = DateTime::from_millis(minute * MINUTE_MS);
            rawdoc! { "t": at, "m": format!("s{series:03}"), "n": n * 1000 + series }
        })
        .collect()
}

#[test]
fn a_long_lived_cursor_finds_nothing_twice_and_ends_after_half_an_hour() {
    block_on(async {
        let (storage, env) = (Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let [writer, other, reader] = [1, 2, 3].map(|_| Db::open(storage.clone(), Rc::clone(&env)));
        writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        writer.insert("c", &readings(1, 1)).await;
        writer.ok(rawdoc! { "flush": 1 }).await;
        // The journal is folded as soon as the reader has begun.
        writer.insert("c", &readings(2, 2)).await;
        let reply = reader.ok(rawdoc! { "find": "c", "batchSize": 1 }).await;
        let mut cursor = reply.get_document("cursor").unwrap().clone();
        let mut rows: Vec<Document> = take_rows(&mut cursor, "firstBatch");
        writer.ok(rawdoc! { "flush": 1 }).await;
        let mut minutes = 0;
        while cursor.get_i64("id").unwrap() != 0 {
            minutes += 9;
            env.now_ms.set(env.now_ms.get() + 9 * MINUTE_MS);
            other.insert("c", &readings(2 + minutes, 3)).await;
            other.ok(rawdoc! { "flush": 1 }).await;
            let id = cursor.get_i64("id").unwrap();
            let more = rawdoc! { "getMore": id, "collection": "c", "batchSize": 20 };
            if minutes > 30 {
                assert_eq!(reader.fails(more).await.0, 43);
                break;
            }
            let reply = reader.ok(more).await;
            cursor = reply.get_document("cursor").unwrap().clone();
            rows.extend(take_rows(&mut cursor, "nextBatch"));
        }
        let mut numbers: Vec<i64> = rows.iter().map(|row| row.get_i64("n").unwrap()).collect();
        numbers.sort_unstable();
        let found = numbers.len();
        numbers.dedup();
        assert_eq!(found, numbers.len(), "after {minutes} minutes");
        assert_eq!((found, minutes), (61, 36));
    });
}

#[test]
fn a_cursor_over_a_dropped_collection_fails_instead_of_ending_early() {
    // It ended as if the buckets that it had not read yet had been deleted, with a part of the rows and no error.
    block_on(async {
        let sorts =
            [rawdoc! {}, rawdoc! { "t": 1 }, rawdoc! { "t": -1 }, rawdoc! { "n": 1 }, rawdoc! { "m": 1, "t": 1 }];
        for (sort, by_other) in sorts.iter().flat_map(|sort| [(sort, false), (sort, true)]) {
            for again in [false, true] {
                let (storage, env) = (Rc::new(MemoryStorage::new()), TestEnv::new(1));
                let [other, reader] = [1, 2].map(|_| Db::open(storage.clone(), Rc::clone(&env)));
                let create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
                other.ok(create.clone()).await;
                for day in 0..8 {
                    other.insert("c", &readings(day, 24 * 60 * day)).await;
                }
                other.ok(rawdoc! { "flush": 1 }).await;
                let mut find = rawdoc! { "find": "c", "batchSize": 1 };
                if !sort.is_empty() {
                    find.append(bson::cstr!("sort"), sort.clone());
                }
                let reply = reader.ok(find).await;
                let mut cursor = reply.get_document("cursor").unwrap().clone();
                let mut found = take_rows(&mut cursor, "firstBatch").len();
                let dropper = if by_other { &other } else { &reader };
                dropper.ok(rawdoc! { "drop": "c" }).await;
                if again {
                    dropper.ok(create).await;
                }
                let outcome = loop {
                    let id = cursor.get_i64("id").unwrap();
                    if id == 0 {
                        break Ok(());
                    }
                    let more = rawdoc! { "getMore": id, "collection": "c", "batchSize": 100 };
                    let reply = reader.command(more).await;
                    if let Ok(code) = reply.get_i32("code") {
                        break Err(code);
                    }
                    cursor = reply.get_document("cursor").unwrap().clone();
                    found += take_rows(&mut cursor, "nextBatch").len();
                };
                // A sort by a field holds all rows, and one by metadata all buckets.
                let is_held = ["n", "m"].iter().any(|key| sort.get(key).unwrap().is_some());
                let wanted = if is_held { Ok(()) } else { Err(175) };
                assert_eq!(outcome, wanted, "{sort:?}");
                assert_eq!(found == 800, is_held, "{sort:?}");
                assert!(reader.find(rawdoc! { "find": "c" }).await.is_empty());
            }
        }
    });
}
