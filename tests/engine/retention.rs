//! Retention by whole buckets: the age rule for standard and extended dates, `maxBytes`, crashes, and several contexts.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::engine::Engine;
use timepail::env::Env;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Entry, KeyRange, Page, Storage};

use crate::support::faults::{Faulty, Rates};
use crate::support::{Db, Random, TestEnv};

const HOUR_MS: i64 = 3_600_000;
const DAY_SECONDS: i64 = 86_400;
/// A round hour.
const NOW_MS: i64 = 1_800_000_000_000;

struct Setup {
    storage: MemoryStorage,
    env: Rc<TestEnv>,
    db: Db,
}

impl Setup {
    /// A collection `c`, whose buckets last an hour; `options` are added to `create`.
    async fn new(options: RawDocumentBuf) -> Setup {
        let (storage, env) = (MemoryStorage::new(), TestEnv::new(1));
        assert_eq!(env.now_ms.get(), NOW_MS);
        let db = Db::open(Rc::new(storage.clone()), Rc::clone(&env));
        let mut create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        options.iter().for_each(|field| {
            let (name, value) = field.unwrap();
            create.append(bson::raw::CString::try_from(name.as_str()).unwrap(), bson::RawBson::from(value));
        });
        db.ok(create).await;
        Setup { storage, env, db }
    }

    async fn of_a_day() -> Setup {
        Setup::new(rawdoc! { "expireAfterSeconds": DAY_SECONDS }).await
    }

    /// Another context on the same storage and clock.
    fn another(&self) -> Db {
        Db::open(Rc::new(self.storage.clone()), Rc::clone(&self.env))
    }

    async fn insert(&self, times_ms: &[i64]) {
        insert(&self.db, times_ms).await;
    }

    async fn entries(&self, prefix: &[u8]) -> Vec<Entry> {
        let page = Page { entries_max: 10_000, keys_only: false };
        self.storage.scan(&[KeyRange::prefix(prefix)], page).await.unwrap()
    }

    /// Runs a pass and returns the remaining times.
    async fn left_after_a_pass(&self) -> Vec<i64> {
        expire(&self.db).await;
        times(&self.db).await
    }
}

async fn insert(db: &Db, times_ms: &[i64]) {
    let docs: Vec<_> =
        times_ms.iter().map(|ms| rawdoc! { "t": DateTime::from_millis(*ms), "m": "a", "x": *ms as f64 }).collect();
    let reply = db.insert("c", &docs).await;
    assert_eq!(reply.get_i32("n").ok(), Some(docs.len() as i32), "{reply}");
}

/// Buckets, measurements and the whole reply.
async fn expire(db: &Db) -> (i64, i64, Document) {
    let reply = db.ok(rawdoc! { "expire": 1 }).await;
    (reply.get_i64("nBuckets").unwrap(), reply.get_i64("nMeasurements").unwrap(), reply)
}

async fn times(db: &Db) -> Vec<i64> {
    let found = db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await;
    found.iter().map(|d| d.get_datetime("t").unwrap().timestamp_millis()).collect()
}

const EXPIRE_MS: i64 = DAY_SECONDS * 1000;

#[test]
fn a_bucket_expires_exactly_a_span_and_the_age_after_its_start() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let start = NOW_MS - EXPIRE_MS - HOUR_MS;
        // Buckets begin at whole minutes.
        setup.insert(&[start - 60_000]).await;
        setup.insert(&[start + 60 * 60_000]).await;
        assert_eq!(expire(&setup.db).await.0, 1);
        setup.insert(&[start]).await;
        setup.env.now_ms.set(NOW_MS - 1);
        assert_eq!(expire(&setup.db).await.0, 0, "a millisecond early");
        setup.env.now_ms.set(NOW_MS);
        assert_eq!(setup.left_after_a_pass().await, [start + HOUR_MS], "the bound is included");
        setup.env.now_ms.set(NOW_MS + HOUR_MS - 1);
        assert_eq!(expire(&setup.db).await.0, 0);
        setup.env.now_ms.set(NOW_MS + HOUR_MS + 999);
        assert!(setup.left_after_a_pass().await.is_empty());
    });
}

#[test]
fn expired_measurements_are_found_until_their_bucket_expires() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let start = NOW_MS - EXPIRE_MS - HOUR_MS + 60_000;
        setup.insert(&[start, start + 1000]).await;
        assert_eq!(setup.left_after_a_pass().await, [start, start + 1000], "a day and 59 minutes old, and found");
        setup.env.now_ms.set(NOW_MS + 60_000);
        assert!(setup.left_after_a_pass().await.is_empty());
    });
}

#[test]
fn an_expired_bucket_is_deleted_with_its_younger_measurements() {
    block_on(async {
        // The rule uses the span, not the latest measurement, which is at most a span after the start.
        let setup = Setup::of_a_day().await;
        let start = NOW_MS - EXPIRE_MS - HOUR_MS;
        setup.insert(&[start, start + HOUR_MS - 1]).await;
        assert!(setup.left_after_a_pass().await.is_empty());
    });
}

#[test]
fn buckets_expire_alike_in_storage_and_in_the_journal() {
    block_on(async {
        for folded in [false, true] {
            let setup = Setup::of_a_day().await;
            let old = NOW_MS - 3 * EXPIRE_MS;
            setup.insert(&[old, old + 1, old + 5 * HOUR_MS, NOW_MS]).await;
            if folded {
                setup.db.ok(rawdoc! { "flush": 1 }).await;
            }
            let (buckets, measurements, reply) = expire(&setup.db).await;
            assert_eq!((buckets, measurements), (2, 3), "{reply}");
            assert!(reply.get_i64("nBytes").unwrap() > 0);
            let Bson::Document(gone) = &reply.get_array("collections").unwrap()[0] else { panic!("{reply}") };
            assert_eq!((gone.get_str("name").unwrap(), gone.get_i64("nBuckets").unwrap()), ("c", 2));
            assert_eq!(gone.get_datetime("oldest").unwrap().timestamp_millis(), NOW_MS);
            assert_eq!(times(&setup.db).await, [NOW_MS]);
            setup.db.ok(rawdoc! { "flush": 1 }).await;
            assert_eq!((setup.entries(b"B").await.len(), setup.entries(b"I").await.len()), (1, 1));
        }
    });
}

#[test]
fn journal_rows_that_do_not_expire_stay_in_the_journal() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        setup.insert(&[NOW_MS - 3 * EXPIRE_MS]).await;
        setup.insert(&[NOW_MS]).await;
        expire(&setup.db).await;
        assert_eq!((setup.entries(b"J").await.len(), setup.entries(b"B").await.len()), (1, 0));
    });
}

#[test]
fn without_an_age_nothing_expires_and_an_age_of_zero_keeps_the_last_span() {
    block_on(async {
        let setup = Setup::new(rawdoc! {}).await;
        setup.insert(&[0, NOW_MS]).await;
        assert_eq!(setup.left_after_a_pass().await, [0, NOW_MS]);
        let setup = Setup::new(rawdoc! { "expireAfterSeconds": 0 }).await;
        setup.insert(&[NOW_MS - 2 * HOUR_MS]).await;
        setup.insert(&[NOW_MS - HOUR_MS + 60_000]).await;
        assert_eq!(setup.left_after_a_pass().await, [NOW_MS - HOUR_MS + 60_000]);
    });
}

#[test]
fn an_age_reaching_before_the_epoch_expires_nothing() {
    block_on(async {
        let setup = Setup::new(rawdoc! { "expireAfterSeconds": NOW_MS / 1000 }).await;
        setup.insert(&[0, 1000]).await;
        assert_eq!(setup.left_after_a_pass().await, [0, 1000]);
        setup.env.now_ms.set(NOW_MS + HOUR_MS);
        assert!(setup.left_after_a_pass().await.is_empty());
    });
}

#[test]
fn with_extended_dates_the_latest_measurement_must_have_expired_too() {
    block_on(async {
        for folded in [false, true] {
            let setup = Setup::of_a_day().await;
            let bound = NOW_MS - EXPIRE_MS;
            let start = bound - HOUR_MS;
            setup.insert(&[-5 * HOUR_MS]).await;
            setup.insert(&[start, start + 1000]).await;
            setup.insert(&[4_000_000_000_000]).await;
            if folded {
                setup.db.ok(rawdoc! { "flush": 1 }).await;
            }
            let left = setup.left_after_a_pass().await;
            assert_eq!(left, [4_000_000_000_000], "dates before 1970 go, those beyond 2038 stay");
            let year_2262 = 0x2_0000_0000 * 1000;
            setup.insert(&[year_2262]).await;
            // The bucket begins exactly at the bound, and a measurement at the bound has expired.
            setup.insert(&[start, start + HOUR_MS - 1]).await;
            if folded {
                setup.db.ok(rawdoc! { "flush": 1 }).await;
            }
            assert_eq!(setup.left_after_a_pass().await, [4_000_000_000_000, year_2262]);
        }
    });
}

#[test]
fn with_extended_dates_young_journal_rows_keep_a_bucket() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let bound = NOW_MS - EXPIRE_MS;
        // The id of a bucket from before 1970 sorts last; its latest time decides.
        setup.insert(&[-10 * HOUR_MS, -10 * HOUR_MS + 1000]).await;
        setup.db.ok(rawdoc! { "flush": 1 }).await;
        setup.env.now_ms.set(EXPIRE_MS - 10 * HOUR_MS);
        assert_eq!(setup.left_after_a_pass().await.len(), 2, "the later of them is younger than a day");
        setup.insert(&[-10 * HOUR_MS + 60_000]).await;
        setup.env.now_ms.set(EXPIRE_MS - 10 * HOUR_MS + 1000);
        assert_eq!(setup.left_after_a_pass().await.len(), 3, "the one in the journal is younger than a day");
        setup.env.now_ms.set(bound);
        assert!(setup.left_after_a_pass().await.is_empty());
    });
}

#[test]
fn the_oldest_buckets_are_deleted_until_max_bytes_is_met() {
    block_on(async {
        let setup = Setup::new(rawdoc! { "maxBytes": 5000.0 }).await;
        let rows = |hour: i64| (0..60).map(move |minute| NOW_MS + hour * HOUR_MS + minute * 60_000);
        for hour in [3, 1, 0, 2] {
            setup.insert(&rows(hour).collect::<Vec<_>>()).await;
            setup.db.ok(rawdoc! { "flush": 1 }).await;
        }
        let size = |stats: Document| stats.get_i64("size").unwrap();
        let before = size(setup.db.ok(rawdoc! { "collStats": "c" }).await);
        for hour in 4..40 {
            setup.insert(&rows(hour).collect::<Vec<_>>()).await;
        }
        setup.db.ok(rawdoc! { "flush": 1 }).await;
        let full = size(setup.db.ok(rawdoc! { "collStats": "c" }).await);
        assert!(before < 5000 && full > 10_000, "{before} {full}");
        let (buckets, measurements, reply) = expire(&setup.db).await;
        let left = size(setup.db.ok(rawdoc! { "collStats": "c" }).await);
        assert!(left <= 5000 && left > 5000 - full / 30, "{left} of {full}");
        assert_eq!((measurements, reply.get_i64("nBytes").unwrap()), (60 * buckets, full - left));
        let oldest = times(&setup.db).await[0];
        assert_eq!(oldest, NOW_MS + buckets * HOUR_MS, "the oldest are gone");
        let Bson::Document(gone) = &reply.get_array("collections").unwrap()[0] else { panic!("{reply}") };
        assert_eq!(gone.get_datetime("oldest").unwrap().timestamp_millis(), oldest);
        assert_eq!(expire(&setup.db).await.0, 0);
    });
}

#[test]
fn with_extended_dates_the_oldest_by_time_are_deleted_first() {
    block_on(async {
        let setup = Setup::new(rawdoc! { "maxBytes": 1 }).await;
        setup.db.ok(rawdoc! { "create": "big", "timeseries": { "timeField": "t" }, "maxBytes": 1e9 }).await;
        setup.insert(&[-5 * HOUR_MS, 5 * HOUR_MS]).await;
        setup.db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(expire(&setup.db).await.0, 2, "no bucket is small enough");
        let one = Setup::new(rawdoc! { "maxBytes": 300 }).await;
        one.insert(&[-5 * HOUR_MS, 5 * HOUR_MS]).await;
        one.db.ok(rawdoc! { "flush": 1 }).await;
        // A context that has read nothing yet does not know of extended dates.
        assert_eq!(expire(&one.another()).await.0, 1);
        assert_eq!(times(&one.db).await, [5 * HOUR_MS]);
    });
}

#[test]
fn max_bytes_is_listed_and_distinguishes_options() {
    block_on(async {
        let setup = Setup::new(rawdoc! { "maxBytes": 5000 }).await;
        let shown = setup.db.ok(rawdoc! { "listCollections": 1, "filter": { "name": "c" } }).await;
        let cursor = shown.get_document("cursor").unwrap();
        let Bson::Document(first) = &cursor.get_array("firstBatch").unwrap()[0] else { panic!("{shown}") };
        assert_eq!(first.get_document("options").unwrap().get_i64("maxBytes").ok(), Some(5000));
        let create = |bytes: i32| rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "maxBytes": bytes };
        setup.db.ok(create(5000)).await;
        assert_eq!(setup.db.fails(create(5001)).await.1, "NamespaceExists");
        assert_eq!(setup.db.fails(create(0)).await.1, "InvalidOptions");
        setup.db.ok(rawdoc! { "collMod": "c", "maxBytes": "off" }).await;
        setup.db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let off = rawdoc! { "create": "d", "timeseries": { "timeField": "t" }, "maxBytes": "off" };
        assert_eq!(setup.db.fails(off).await.1, "InvalidOptions");
    });
}

#[test]
fn a_commit_that_fails_leaves_every_bucket_whole() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let old: Vec<i64> = (0..20).map(|hour| NOW_MS - 3 * EXPIRE_MS + hour * HOUR_MS).collect();
        setup.insert(&old).await;
        setup.db.ok(rawdoc! { "flush": 1 }).await;
        let inner: Rc<dyn Storage> = Rc::new(setup.storage.clone());
        let faulty = Faulty::new(inner, Random::new(5), true);
        faulty.set(Rates { refused: 100, ..Rates::default() });
        let db = Db::open(faulty.clone(), Rc::clone(&setup.env));
        assert_eq!(db.fails(rawdoc! { "expire": 1 }).await.1, "OperationFailed");
        assert_eq!((setup.entries(b"B").await.len(), setup.entries(b"I").await.len()), (20, 20));
        assert_eq!(times(&db).await, old);
        faulty.set(Rates::default());
        assert_eq!(expire(&db).await.0, 20);
        assert_eq!((setup.entries(b"B").await.len(), setup.entries(b"I").await.len()), (0, 0));
    });
}

#[test]
fn one_context_expires_while_another_inserts() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let old: Vec<i64> = (0..20).map(|hour| NOW_MS - 3 * EXPIRE_MS + hour * HOUR_MS).collect();
        setup.insert(&old).await;
        setup.db.ok(rawdoc! { "flush": 1 }).await;
        let inner: Rc<dyn Storage> = Rc::new(setup.storage.clone());
        let faulty = Faulty::new(inner, Random::new(7), true);
        let (one, other) = (Db::open(faulty.clone(), Rc::clone(&setup.env)), Db::open(faulty, Rc::clone(&setup.env)));
        let writing = async {
            for at in 0..20 {
                insert(&other, &[NOW_MS + at, old[0] + at]).await;
                if at % 5 == 0 {
                    other.ok(rawdoc! { "flush": 1 }).await;
                }
            }
        };
        join(expire(&one), writing).await;
        expire(&one).await;
        assert_eq!(times(&other).await, (0..20).map(|at| NOW_MS + at).collect::<Vec<_>>());
        insert(&other, &[NOW_MS + 20]).await;
        assert_eq!(times(&one).await.len(), 21);
    });
}

#[test]
fn maintenance_runs_a_pass_after_opening_and_then_once_a_minute() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let old = NOW_MS - 3 * EXPIRE_MS;
        setup.insert(&[old]).await;
        for step in 0..3 {
            let db = setup.another();
            assert!(db.engine.maintenance_due(), "after opening");
            db.engine.maintain().await.unwrap();
            assert!(times(&db).await.is_empty());
            insert(&db, &[old + step]).await;
            setup.env.now_ms.set(setup.env.now_ms.get() + 59_999);
            assert!(!db.engine.maintenance_due());
            db.engine.maintain().await.unwrap();
            assert_eq!(times(&db).await.len(), 1);
            setup.env.now_ms.set(setup.env.now_ms.get() + 1);
            assert!(db.engine.maintenance_due());
            db.engine.maintain().await.unwrap();
            assert!(times(&db).await.is_empty());
            setup.env.now_ms.set(setup.env.now_ms.get() - 1_000_000);
            assert!(db.engine.maintenance_due(), "a clock set back does not stop it");
        }
    });
}

#[test]
fn with_manual_retention_nothing_expires_by_itself() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        setup.insert(&[NOW_MS - 3 * EXPIRE_MS]).await;
        let engine = Engine::new("test", Rc::new(setup.storage.clone()), Rc::clone(&setup.env) as Rc<dyn Env>, [7; 8]);
        let db = Db { engine: Rc::new(engine.with_expiry_by_command(true)) };
        assert!(!db.engine.maintenance_due(), "after opening");
        db.ok(rawdoc! { "maintain": 1 }).await;
        assert_eq!(times(&db).await.len(), 1);
        expire(&db).await;
        assert!(times(&db).await.is_empty());
    });
}

#[test]
fn an_expired_open_bucket_takes_no_further_measurement() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        let old = NOW_MS - 3 * EXPIRE_MS;
        setup.insert(&[old]).await;
        let id = |buckets: Vec<Document>| buckets[0].get_object_id("_id").unwrap();
        let first = id(setup.db.find(rawdoc! { "find": "system.buckets.c" }).await);
        expire(&setup.db).await;
        setup.insert(&[old]).await;
        assert_ne!(id(setup.db.find(rawdoc! { "find": "system.buckets.c" }).await), first);
    });
}

#[test]
fn a_collection_dropped_by_another_context_does_not_stop_a_pass() {
    block_on(async {
        let setup = Setup::of_a_day().await;
        setup.insert(&[NOW_MS - 3 * EXPIRE_MS]).await;
        let other = setup.another();
        assert_eq!(times(&other).await.len(), 1);
        setup.db.ok(rawdoc! { "drop": "c" }).await;
        assert_eq!(expire(&other).await.0, 0);
    });
}
