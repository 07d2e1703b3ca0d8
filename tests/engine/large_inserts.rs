//! Inserts of many rows, and journals of many records: the event loop has turns while they are worked on, and whoever runs then
//! finds all or nothing of them.

use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, doc, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::engine::signal::yield_now;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::{ALWAYS_MS, Db, TestEnv, raw};

const SERIES: i64 = 3;
/// More than get their buckets, and more than one record takes, without a turn.
const MANY: i64 = 9000;
const EARLIER: i64 = 300;

/// A measurement with a value that does not compress.
fn row(n: i64) -> RawDocumentBuf {
    let noise = (n.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 12) as f64 * 1e-16;
    rawdoc! { "t": DateTime::from_millis(n * 100), "m": n % SERIES, "n": n, "x": noise }
}

fn rows(range: std::ops::Range<i64>) -> Vec<RawDocumentBuf> {
    range.map(row).collect()
}

/// A context on a storage, with two collections, whose engine gives turns wherever it may.
async fn world() -> (Rc<dyn Storage>, Db) {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(1);
    env.look_ms.set(ALWAYS_MS);
    let db = Db::open(Rc::clone(&storage), env);
    for name in ["c", "d"] {
        db.ok(rawdoc! { "create": name, "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    }
    (storage, db)
}

async fn stored(db: &Db) -> Vec<i64> {
    let find = rawdoc! { "find": "c", "projection": { "n": 1 }, "batchSize": 100_000 };
    let mut found: Vec<i64> = db.find(find).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
    found.sort_unstable();
    found
}

/// Runs `work` after so many turns.
fn spawn(pool: &LocalPool, turns: usize, work: impl Future<Output = ()> + 'static) {
    let later = async move {
        for _ in 0..turns {
            yield_now().await;
        }
        work.await;
    };
    pool.spawner().spawn_local(later).unwrap();
}

#[test]
fn while_a_large_insert_has_its_turns_others_change_its_buckets_and_take_places_in_the_journal() {
    for turns in [0, 1, 2, 3, 5, 8] {
        let (storage, db) = block_on(world());
        block_on(async {
            db.insert("c", &rows(0..EARLIER)).await;
            db.ok(rawdoc! { "flush": 1 }).await;
        });
        let mut pool = LocalPool::new();
        let large = db.clone();
        spawn(&pool, 0, async move {
            let reply = large.insert("c", &rows(EARLIER..EARLIER + MANY)).await;
            assert_eq!(reply.get_i32("n").ok(), i32::try_from(MANY).ok(), "{reply}");
        });
        let (other, reader) = (db.clone(), Db::open(Rc::clone(&storage), TestEnv::new(2)));
        spawn(&pool, turns, async move {
            let deleted = doc! { "delete": "c", "deletes": [{ "q": { "n": { "$lt": 100 } }, "limit": 0 }] };
            assert_eq!(other.ok(raw(&deleted)).await.get_i32("n").unwrap(), 100);
            other.insert("d", &rows(0..10)).await;
            let found = stored(&reader).await;
            let before: Vec<i64> = (100..EARLIER).collect();
            assert!(found == before || found == (100..EARLIER + MANY).collect::<Vec<_>>(), "{} rows", found.len());
            other.ok(rawdoc! { "flush": 1 }).await;
            other.insert("c", &rows(EARLIER + MANY..EARLIER + MANY + 10)).await;
        });
        pool.run();
        let all: Vec<i64> = (100..EARLIER + MANY + 10).collect();
        let newcomer = Db::open(storage, TestEnv::new(3));
        block_on(async {
            assert_eq!(stored(&db).await, all, "after {turns} turns");
            assert_eq!(stored(&newcomer).await, all);
            db.ok(rawdoc! { "flush": 1 }).await;
            newcomer.ok(rawdoc! { "foldJournals": 1 }).await;
            assert_eq!(stored(&newcomer).await, all);
            let valid = newcomer.ok(rawdoc! { "validate": "c", "full": true }).await;
            assert!(valid.get_bool("valid").unwrap(), "{valid}");
        });
    }
}

#[test]
fn a_large_insert_is_given_up_as_a_whole_if_its_collection_is_dropped_meanwhile() {
    for turns in [1, 3, 5] {
        let (storage, db) = block_on(world());
        let mut pool = LocalPool::new();
        let large = db.clone();
        spawn(&pool, 0, async move {
            let reply = large.insert("c", &rows(0..MANY)).await;
            let is_stored = reply.get_f64("ok").ok() == Some(1.0);
            assert!(is_stored || reply.get_i32("code").ok() == Some(26), "{reply}");
        });
        let other = Db::open(Rc::clone(&storage), TestEnv::new(2));
        spawn(&pool, turns, async move {
            other.ok(rawdoc! { "drop": "c" }).await;
            other.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        });
        pool.run();
        let found = block_on(stored(&Db::open(storage, TestEnv::new(3)))).len();
        assert!(found == 0 || found as i64 == MANY, "{found} rows");
    }
}

#[test]
fn while_the_journal_of_another_context_is_read_that_context_goes_on() {
    for turns in [0, 1, 2, 4, 8] {
        let (storage, db) = block_on(world());
        block_on(async {
            db.insert("c", &rows(0..MANY)).await;
            // Sections by the thousand.
            let series: Vec<_> = (MANY..MANY + 9000)
                .map(|n| rawdoc! { "t": DateTime::from_millis(n * 100), "m": 1000 + n, "n": n })
                .collect();
            db.insert("c", &series).await;
        });
        let env = TestEnv::new(2);
        env.look_ms.set(ALWAYS_MS);
        let reader = Db::open(Rc::clone(&storage), env);
        let mut pool = LocalPool::new();
        let writer = db.clone();
        spawn(&pool, turns, async move {
            writer.insert("c", &rows(MANY + 9000..MANY + 9010)).await;
            writer.ok(rawdoc! { "flush": 1 }).await;
        });
        let (one, two) = (reader.clone(), reader.clone());
        for db in [one, two] {
            spawn(&pool, 0, async move {
                let found = stored(&db).await;
                let (few, all) = (MANY + 9000, MANY + 9010);
                assert!(found == (0..few).collect::<Vec<_>>() || found == (0..all).collect::<Vec<_>>());
            });
        }
        pool.run();
        assert_eq!(block_on(stored(&reader)).len() as i64, MANY + 9010);
    }
}
