//! A cursor that is used from time to time lives for half an hour, while others fold.

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
