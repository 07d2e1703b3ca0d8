//! The `distinct` command.

use std::rc::Rc;

use bson::{RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

use crate::support::weather::{database, reading, weather};
use crate::support::{Db, TestEnv};

/// Makes the column `temp` of every stored bucket unreadable.
async fn damage_columns(storage: &MemoryStorage) {
    let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    let mut changes = Changeset::new();
    for entry in storage.scan(std::slice::from_ref(&all), Page { entries_max: 10, keys_only: false }).await.unwrap() {
        let mut value = entry.value;
        let name = value.windows(6).rposition(|bytes| bytes == b"\x05temp\0").unwrap();
        // After the name come the length and the subtype.
        value[name + 6 + 5] = 0xFF;
        changes.put(entry.key, value);
    }
    storage.commit(changes).await.unwrap();
}

#[test]
fn distinct_values_are_the_same_in_the_journal_and_in_buckets() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let docs: Vec<RawDocumentBuf> = (0..200)
            .map(|i| {
                let tags = bson::rawbson!([i % 3, "x", [i % 2]]);
                let mut doc = reading(i * 60_000, if i % 2 == 0 { "a" } else { "b" }, f64::from(i as i32 % 4));
                doc.append(bson::cstr!("tags"), tags);
                let speed = (i * 7 % 11) as i32;
                let wind = if i % 5 == 0 {
                    rawdoc! { "speed": speed }
                } else {
                    rawdoc! { "speed": speed, "gust": { "max": speed / 2 } }
                };
                doc.append(bson::cstr!("wind"), wind);
                doc
            })
            .collect();
        db.insert("weather", &docs).await;
        let ask = async |key: &str, query: RawDocumentBuf| {
            let reply = db.ok(rawdoc! { "distinct": "weather", "key": key, "query": query }).await;
            let mut values: Vec<String> =
                reply.get_array("values").unwrap().iter().map(|value| value.to_string()).collect();
            values.sort();
            values
        };
        for round in 0..2 {
            assert_eq!(ask("station", rawdoc! {}).await, ["\"a\"", "\"b\""]);
            assert_eq!(ask("temp", rawdoc! {}).await, ["0", "1", "2", "3"]);
            assert_eq!(ask("temp", rawdoc! { "station": "b" }).await, ["1", "3"]);
            assert_eq!(ask("tags", rawdoc! {}).await, ["\"x\"", "0", "1", "2", "[0]", "[1]"]);
            assert_eq!(ask("none", rawdoc! {}).await, [""; 0]);
            assert_eq!(ask("wind.speed", rawdoc! { "temp": 1 }).await.len(), 11);
            assert_eq!(ask("wind.gust.max", rawdoc! {}).await, ["0", "1", "2", "3", "4", "5"]);
            assert_eq!(ask("wind.gust", rawdoc! {}).await.len(), 6);
            assert_eq!(ask("wind.none", rawdoc! {}).await, [""; 0]);
            assert_eq!(ask("wind.speed.below", rawdoc! {}).await, [""; 0]);
            assert_eq!(ask("at", rawdoc! { "temp": { "$gt": 9 } }).await, [""; 0]);
            assert_eq!(ask("at", rawdoc! {}).await.len(), 200, "round {round}");
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        let raw = db.ok(rawdoc! { "distinct": "system.buckets.weather", "key": "meta" }).await;
        assert_eq!(raw.get_array("values").unwrap().len(), 2);
        let nothing = db.ok(rawdoc! { "distinct": "absent", "key": "a" }).await;
        assert!(nothing.get_array("values").unwrap().is_empty());
    });
}

#[test]
fn distinct_metadata_decodes_no_column() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        weather(&db).await;
        db.insert("weather", &[reading(0, "a", 1.0), reading(1, "b", 2.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        damage_columns(&storage).await;
        let fresh = Db::open(storage.clone(), TestEnv::new(2));
        let reply = fresh.ok(rawdoc! { "distinct": "weather", "key": "station" }).await;
        assert_eq!(reply.get_array("values").unwrap().len(), 2);
        assert_eq!(fresh.fails(rawdoc! { "distinct": "weather", "key": "temp" }).await.0, 246);
    });
}
