//! Commands end to end over memory storage: replies, error codes, what is stored.

use std::cell::Cell;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::block::{Block, Column, ColumnData};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::weather::{database, reading, weather};
use crate::support::{Db, TestEnv, multiset};

/// Counts what reaches storage.
struct Counting {
    inner: MemoryStorage,
    commits: Cell<usize>,
    puts: Cell<usize>,
    bytes_written: Cell<usize>,
    entries_read: Cell<usize>,
}

impl Counting {
    fn new() -> Rc<Counting> {
        Rc::new(Counting {
            inner: MemoryStorage::new(),
            commits: Cell::default(),
            puts: Cell::default(),
            bytes_written: Cell::default(),
            entries_read: Cell::default(),
        })
    }
}

fn add(counter: &Cell<usize>, n: usize) {
    counter.set(counter.get() + n);
}

impl Storage for Counting {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let found = self.inner.get_many(keys).await?;
            add(&self.entries_read, found.iter().flatten().count());
            Ok(found)
        })
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let found = self.inner.scan(ranges, page).await?;
            if !page.keys_only {
                add(&self.entries_read, found.len());
            }
            Ok(found)
        })
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        add(&self.commits, 1);
        for change in changes.changes() {
            if let Change::Put(key, value) | Change::Insert(key, value) = change {
                add(&self.puts, 1);
                add(&self.bytes_written, key.len() + value.len());
            }
        }
        self.inner.commit(changes)
    }
}

#[test]
fn inserted_measurements_are_found_before_and_after_a_fold() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let docs = [reading(1000, "a", 1.0), reading(2000, "b", 2.0), reading(500, "a", 3.0)];
        assert_eq!(db.insert("weather", &docs).await.get_i32("n").ok(), Some(3));
        let expected: Vec<Document> = docs.iter().map(|d| Document::try_from(d).unwrap()).collect();
        for _ in 0..2 {
            let found = db.find(rawdoc! { "find": "weather", "sort": { "at": 1 } }).await;
            assert_eq!(multiset(&found), multiset(&expected));
            assert_eq!(found[0].get_f64("temp").ok(), Some(3.0));
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

#[test]
fn fields_of_a_measurement_come_back_as_time_then_metadata_then_columns() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let doc = rawdoc! { "temp": 1.0, "station": "a", "at": DateTime::from_millis(7), "wind": 2 };
        db.insert("weather", &[doc]).await;
        for _ in 0..2 {
            let found = db.find(rawdoc! { "find": "weather" }).await;
            assert_eq!(found[0].keys().collect::<Vec<_>>(), ["at", "station", "temp", "wind"]);
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

#[test]
fn a_measurement_without_a_valid_time_is_a_write_error_with_its_index() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let bad: Vec<RawDocumentBuf> = vec![
            rawdoc! { "station": "a" },
            rawdoc! { "at": "2020-01-01", "station": "a" },
            rawdoc! { "at": 5, "station": "a" },
            rawdoc! { "at": [DateTime::from_millis(1)], "station": "a" },
        ];
        let mut docs = vec![reading(1, "a", 1.0)];
        docs.extend(bad);
        docs.push(reading(2, "a", 2.0));
        let reply = db.insert("weather", &docs).await;
        assert_eq!(reply.get_i32("n").ok(), Some(2));
        let errors = reply.get_array("writeErrors").unwrap();
        let of = |key: &str| errors.iter().map(|e| e.as_document().unwrap().get_i32(key).unwrap()).collect::<Vec<_>>();
        assert_eq!(of("index"), [1, 2, 3, 4]);
        assert_eq!(of("code"), [2; 4]);
        assert!(errors[0].as_document().unwrap().get_str("errmsg").unwrap().starts_with("'at' must be present"));
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 2);
    });
}

#[test]
fn an_ordered_insert_stores_the_measurements_before_the_first_error() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let docs: bson::RawArrayBuf =
            [reading(1, "a", 1.0), rawdoc! { "at": 1 }, rawdoc! {}, reading(2, "a", 2.0)].into_iter().collect();
        let reply = db.ok(rawdoc! { "insert": "weather", "documents": docs }).await;
        assert_eq!(reply.get_i32("n").ok(), Some(1));
        assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 1);
    });
}

#[test]
fn a_hundred_inserts_at_once_are_one_commit() {
    let storage = Counting::new();
    let db = Db::open(storage.clone(), TestEnv::new(1));
    block_on(weather(&db));
    let before = storage.commits.get();
    let mut pool = LocalPool::new();
    for i in 0..100 {
        let db = db.clone();
        let insert =
            async move { assert_eq!(db.insert("weather", &[reading(i, "a", 1.0)]).await.get_i32("n").ok(), Some(1)) };
        pool.spawner().spawn_local(insert).unwrap();
    }
    pool.run();
    assert_eq!(storage.commits.get() - before, 1);
    assert_eq!(block_on(db.find(rawdoc! { "find": "weather" })).len(), 100);
}

#[test]
fn a_commit_over_many_series_is_one_journal_record() {
    let storage = Counting::new();
    let db = Db::open(storage.clone(), TestEnv::new(1));
    block_on(async {
        weather(&db).await;
        let (commits, puts) = (storage.commits.get(), storage.puts.get());
        let docs: Vec<_> = (0..500).map(|i| reading(i, &format!("s{i}"), 1.0)).collect();
        db.insert("weather", &docs).await;
        assert_eq!((storage.commits.get() - commits, storage.puts.get() - puts), (1, 1));
        let bytes = storage.bytes_written.get();
        db.insert("weather", &[reading(600, "s7", 1.0)]).await;
        assert!(storage.bytes_written.get() - bytes <= 400, "{} bytes", storage.bytes_written.get() - bytes);
    });
}

#[test]
fn a_query_for_one_series_reads_the_buckets_of_that_series_only() {
    let storage = Counting::new();
    let db = Db::open(storage.clone(), TestEnv::new(1));
    block_on(async {
        weather(&db).await;
        let docs: Vec<_> = (0..400).map(|i| reading(i * 600_000, &format!("s{}", i % 20), i as f64)).collect();
        db.insert("weather", &docs).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let env = TestEnv::new(2);
        let whole = rawdoc! { "find": "weather", "filter": { "station": "s3" } };
        let bound = DateTime::from_millis(200 * 600_000);
        let half = rawdoc! { "find": "weather", "filter": { "station": "s3", "at": { "$lt": bound } } };
        for (query, rows, entries_max) in [(&whole, 20, 22), (&half, 10, 13)] {
            // A new context has nothing in memory; besides the buckets it reads the options of the collection.
            let other = Db::open(storage.clone(), Rc::clone(&env));
            let read = storage.entries_read.get();
            assert_eq!(other.find(query.clone()).await.len(), rows);
            let entries = storage.entries_read.get() - read;
            assert!(rows <= entries && entries <= entries_max, "{entries} entries");
            // Recently read buckets come from memory.
            let read = storage.entries_read.get();
            assert_eq!(other.find(query.clone()).await.len(), rows);
            assert_eq!(storage.entries_read.get() - read, 0);
        }
    });
}

#[test]
fn a_query_by_time_reads_the_buckets_of_that_time_only() {
    let storage = Counting::new();
    let db = Db::open(storage.clone(), TestEnv::new(1));
    block_on(async {
        weather(&db).await;
        let docs: Vec<_> = (0..100).map(|i| reading(i * 3_600_000, "a", i as f64)).collect();
        db.insert("weather", &docs).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let read = storage.entries_read.get();
        let at = |i: i64| DateTime::from_millis(i * 3_600_000);
        let found = db.find(rawdoc! { "find": "weather", "filter": { "at": { "$gte": at(50), "$lt": at(53) } } }).await;
        assert_eq!(found.len(), 3);
        assert!(storage.entries_read.get() - read <= 6, "{}", storage.entries_read.get() - read);
    });
}

#[test]
fn columns_are_inserted_with_numeric_times_and_one_metadata_value() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let mut block = Block::new(3);
        block.set_column("at", Column::new(ColumnData::F64(vec![1000.0, 2000.9, 3000.0]), None));
        block.set_column("rpm", Column::new(ColumnData::I32(vec![7, 8, 9]), None));
        let command = rawdoc! { "insert": "weather", "columns": true, "meta": { "id": 7 }, "timeUnit": "ms" };
        let reply = db.command_with(command.clone(), Some(&block)).await;
        assert_eq!(reply.get_i32("n").ok(), Some(3), "{reply}");
        let found = db.find(rawdoc! { "find": "weather", "sort": { "at": -1 } }).await;
        assert_eq!(found[1], doc! { "at": DateTime::from_millis(2000), "station": { "id": 7 }, "rpm": 8 });
        block.set_column("at", Column::new(ColumnData::F64(vec![1.0, f64::NAN, 2.0]), None));
        let reply = db.command_with(command.clone(), Some(&block)).await;
        assert_eq!(reply.get_i32("code").ok(), Some(2));
        // If metadata were given twice, one of them would be lost.
        block.set_column("at", Column::new(ColumnData::F64(vec![1.0, 2.0, 3.0]), None));
        block.set_column("station", Column::new(ColumnData::I32(vec![1, 2, 3]), None));
        let reply = db.command_with(command, Some(&block)).await;
        assert_eq!(reply.get_i32("code").ok(), Some(2));
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 3);
    });
}

#[test]
fn columns_may_have_null_as_their_metadata() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let mut block = Block::new(2);
        block.set_column("at", Column::new(ColumnData::Date(vec![1000, 2000]), None));
        let command = rawdoc! { "insert": "weather", "columns": true, "meta": null };
        assert_eq!(db.command_with(command.clone(), Some(&block)).await.get_i32("n").ok(), Some(2));
        let found = db.find(rawdoc! { "find": "weather", "filter": { "station": { "$type": "null" } } }).await;
        assert_eq!(found[0], doc! { "at": DateTime::from_millis(1000), "station": Bson::Null });
        assert_eq!(found.len(), 2);
        // Nor is it lost where there is no metaField.
        db.ok(rawdoc! { "create": "plain", "timeseries": { "timeField": "at" } }).await;
        let command = rawdoc! { "insert": "plain", "columns": true, "meta": null };
        assert_eq!(db.command_with(command, Some(&block)).await.get_i32("code").ok(), Some(2));
    });
}

/// The stored milliseconds of times given as numbers, or the error.
async fn times_of(times: ColumnData, unit: Option<&str>) -> Result<Vec<i64>, String> {
    let db = database();
    weather(&db).await;
    let times = Column::new(times, None);
    let mut block = Block::new(times.len());
    block.set_column("at", times);
    let mut command = rawdoc! { "insert": "weather", "columns": true };
    unit.into_iter().for_each(|unit| command.append(bson::cstr!("timeUnit"), unit));
    let reply = db.command_with(command, Some(&block)).await;
    if let Ok(message) = reply.get_str("errmsg") {
        assert_eq!(reply.get_i32("code").ok(), Some(2));
        return Err(message.to_owned());
    }
    let found = db.find(rawdoc! { "find": "weather", "sort": { "at": 1 } }).await;
    Ok(found.iter().map(|row| row.get_datetime("at").unwrap().timestamp_millis()).collect())
}

#[test]
fn times_in_other_units_are_converted() {
    block_on(async {
        let (second, ms) = (1_700_000_000, 1_700_000_000_123_i64);
        let seconds = times_of(ColumnData::F64(vec![-1.5, f64::from(second), 1_700_000_000.123]), Some("s")).await;
        assert_eq!(seconds, Ok(vec![-1500, i64::from(second) * 1000, ms]));
        assert_eq!(
            times_of(ColumnData::I32(vec![5, second]), Some("s")).await,
            Ok(vec![5000, i64::from(second) * 1000])
        );
        assert_eq!(times_of(ColumnData::I64(vec![ms * 1000 + 999]), Some("us")).await, Ok(vec![ms]));
        assert_eq!(times_of(ColumnData::I64(vec![ms * 1_000_000 + 999_999]), Some("ns")).await, Ok(vec![ms]));
        // Doubles do not hold nanoseconds exactly: an eighth of these were a millisecond too early.
        for ms in 1_700_000_000_000_i64..1_700_000_000_050 {
            #[allow(clippy::cast_precision_loss)]
            let nanoseconds = (ms * 1_000_000) as f64;
            assert_eq!(times_of(ColumnData::F64(vec![nanoseconds]), Some("ns")).await, Ok(vec![ms]));
        }
        assert_eq!(times_of(ColumnData::I64(vec![-1, 0, ms]), Some("ms")).await, Ok(vec![-1, 0, ms]));
        assert!(
            times_of(ColumnData::I64(vec![i64::MAX]), Some("s")).await.is_err_and(|e| e.contains("not a valid time"))
        );
        assert!(
            times_of(ColumnData::F64(vec![f64::NAN]), Some("s")).await.is_err_and(|e| e.contains("not a valid time"))
        );
        assert!(times_of(ColumnData::I64(vec![ms]), Some("minutes")).await.is_err_and(|e| e.contains("not 'minutes'")));
    });
}

#[test]
fn times_before_1971_are_refused_unless_a_unit_is_named() {
    block_on(async {
        for times in [ColumnData::F64(vec![1.7e12, 1.7e9]), ColumnData::I64(vec![1_700_000_000_000, 1_700_000_000])] {
            let error = times_of(times, None).await.unwrap_err();
            assert!(error.contains("'at' at row 1 is 1700000000") && error.contains("timeUnit: \"s\""), "{error}");
        }
        assert_eq!(times_of(ColumnData::I64(vec![31_536_000_000]), None).await, Ok(vec![31_536_000_000]));
        assert!(times_of(ColumnData::I64(vec![31_535_999_999]), None).await.is_err());
        // Dates have no unit.
        assert_eq!(times_of(ColumnData::Date(vec![-1]), None).await, Ok(vec![-1]));
    });
}

#[test]
fn creating_again_succeeds_with_equal_options_and_fails_with_others() {
    block_on(async {
        let db = database();
        weather(&db).await;
        weather(&db).await;
        let other = rawdoc! { "create": "weather", "timeseries": { "timeField": "at" } };
        assert_eq!(db.fails(other).await, (48, "NamespaceExists".into()));
    });
}

#[test]
fn invalid_input_is_refused_with_the_servers_code_and_the_database_stays_usable() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let name = |n: &str| n.to_owned();
        let cases: Vec<(RawDocumentBuf, i32, String)> = vec![
            (rawdoc! { "frobnicate": 1 }, 59, name("CommandNotFound")),
            (rawdoc! {}, 9, name("FailedToParse")),
            (rawdoc! { "find": 7 }, 73, name("InvalidNamespace")),
            (rawdoc! { "find": "weather", "filter": { "a": { "$frob": 1 } } }, 2, name("BadValue")),
            (rawdoc! { "find": "weather", "filter": 7 }, 14, name("TypeMismatch")),
            (rawdoc! { "find": "weather", "nonsense": 7 }, 40415, name("IDLUnknownField")),
            (rawdoc! { "find": "weather", "limit": -1 }, 51024, name("Location51024")),
            (rawdoc! { "find": "weather", "showRecordId": true }, 168, name("InvalidPipelineOperator")),
            (rawdoc! { "insert": "weather" }, 40414, name("IDLFailedToParse")),
            (rawdoc! { "insert": "weather", "documents": [] }, 16, name("InvalidLength")),
            (rawdoc! { "insert": "absent", "documents": [{}] }, 26, name("NamespaceNotFound")),
            (rawdoc! { "collStats": "absent" }, 26, name("NamespaceNotFound")),
            (rawdoc! { "getMore": 5_i64, "collection": "weather" }, 43, name("CursorNotFound")),
            (rawdoc! { "create": "x", "timeseries": { "timeField": "a.b" } }, 72, name("InvalidOptions")),
            (rawdoc! { "create": "x", "timeseries": {} }, 40414, name("IDLFailedToParse")),
        ];
        for (command, code, code_name) in cases {
            assert_eq!(db.fails(command.clone()).await, (code, code_name), "{command:?}");
        }
        let reply = timepail::command::run(&db.engine, b"not bson", None).await.document;
        assert_eq!(reply.view().get("code").unwrap().as_integer(), Some(22));
        let insert = rawdoc! { "insert": "weather" };
        let reply = timepail::command::run(&db.engine, insert.as_bytes(), Some(b"TPB1 not a block")).await.document;
        assert_eq!(reply.view().get("code").unwrap().as_integer(), Some(2));
        assert_eq!(db.insert("weather", &[reading(1, "a", 1.0)]).await.get_i32("n").ok(), Some(1));
    });
}

#[test]
fn cursors_give_every_row_once_and_die_when_done_or_killed() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let docs: Vec<_> = (0..300).map(|i| reading(i * 60_000, "a", i as f64)).collect();
        db.insert("weather", &docs).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let reply = db.ok(rawdoc! { "find": "weather" }).await;
        let cursor = reply.get_document("cursor").unwrap();
        assert_eq!(cursor.get_array("firstBatch").unwrap().len(), 101);
        let id = cursor.get_i64("id").unwrap();
        assert_ne!(id, 0);
        assert_eq!(db.fails(rawdoc! { "getMore": id, "collection": "other" }).await.0, 13);
        let more = db.ok(rawdoc! { "getMore": id, "collection": "weather" }).await;
        let cursor = more.get_document("cursor").unwrap();
        assert_eq!((cursor.get_array("nextBatch").unwrap().len(), cursor.get_i64("id").unwrap()), (199, 0));
        assert_eq!(db.fails(rawdoc! { "getMore": id, "collection": "weather" }).await.0, 43);

        let reply = db.ok(rawdoc! { "find": "weather", "batchSize": 0 }).await;
        let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
        let killed = db.ok(rawdoc! { "killCursors": "weather", "cursors": [id, 99_i64] }).await;
        assert_eq!(killed.get_array("cursorsKilled").unwrap(), &[Bson::Int64(id)]);
        assert_eq!(killed.get_array("cursorsNotFound").unwrap(), &[Bson::Int64(99)]);
        assert_eq!(db.fails(rawdoc! { "getMore": id, "collection": "weather" }).await.0, 43);
    });
}

// A regression: getMore finished the sort a second time, which restarted its result.
#[test]
fn a_sorted_query_continues_after_its_last_batch() {
    block_on(async {
        let db = database();
        weather(&db).await;
        db.insert("weather", &(0..20).map(|i| reading(i * 60_000, "a", i as f64)).collect::<Vec<_>>()).await;
        let found = db.find(rawdoc! { "find": "weather", "sort": { "temp": -1 }, "batchSize": 3 }).await;
        let temps: Vec<f64> = found.iter().map(|d| d.get_f64("temp").unwrap()).collect();
        assert_eq!(temps, (0..20).rev().map(f64::from).collect::<Vec<_>>());
    });
}

#[test]
fn a_context_that_missed_a_drop_cannot_write_into_the_recreated_collection() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let (one, two) = (Db::open(storage.clone(), env.clone()), Db::open(storage, env));
        weather(&one).await;
        two.insert("weather", &[reading(1, "a", 1.0)]).await;
        one.ok(rawdoc! { "drop": "weather" }).await;
        let reply = two.insert("weather", &[reading(2, "a", 1.0)]).await;
        assert_eq!(reply.get_i32("code").ok(), Some(26));
        weather(&one).await;
        assert_eq!(two.find(rawdoc! { "find": "weather" }).await.len(), 0);
        assert_eq!(two.insert("weather", &[reading(3, "a", 1.0)]).await.get_i32("n").ok(), Some(1));
        assert_eq!(one.find(rawdoc! { "find": "weather" }).await.len(), 1);
    });
}

#[test]
fn dates_outside_1970_to_2038_are_found_by_time() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let times = [-5_000_000_000_i64, -1, 0, 4_000_000_000_000];
        db.insert("weather", &times.map(|ms| reading(ms, "a", 1.0))).await;
        for _ in 0..2 {
            for bound in times {
                let at = DateTime::from_millis(bound);
                let below = db.find(rawdoc! { "find": "weather", "filter": { "at": { "$lt": at } } }).await.len();
                let above = db.find(rawdoc! { "find": "weather", "filter": { "at": { "$gte": at } } }).await.len();
                assert_eq!(below, times.iter().filter(|t| **t < bound).count());
                assert_eq!(above, times.iter().filter(|t| **t >= bound).count());
            }
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

#[test]
fn deletes_remove_whole_buckets_and_rewrite_others() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let docs: Vec<_> = (0..10).map(|i| reading(i * 1_800_000, "a", i as f64)).collect();
        db.insert("weather", &docs).await;
        let bound = DateTime::from_millis(5 * 1_800_000);
        let delete =
            |q: RawDocumentBuf, limit: i32| rawdoc! { "delete": "weather", "deletes": [{ "q": q, "limit": limit }] };
        let n = db.ok(delete(rawdoc! { "at": { "$lt": bound } }, 0)).await;
        assert_eq!(n.get_i32("n").ok(), Some(5));
        let buckets = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
        assert_eq!(buckets.len(), 3);
        // The rewritten bucket keeps its start.
        let min = buckets[0].get_document("control").unwrap().get_document("min").unwrap();
        assert_eq!(min.get_datetime("at").ok(), Some(&DateTime::from_millis(4 * 1_800_000)));
        assert_eq!(db.ok(delete(rawdoc! { "temp": { "$gte": 5.0 } }, 1)).await.get_i32("n").ok(), Some(1));
        assert_eq!(db.find(rawdoc! { "find": "weather" }).await.len(), 4);
        assert_eq!(db.fails(rawdoc! { "delete": "weather", "deletes": [] }).await.0, 16);
    });
}

#[test]
fn a_closed_database_refuses_commands_and_keeps_acknowledged_writes() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let db = Db::open(storage.clone(), env.clone());
        weather(&db).await;
        db.insert("weather", &[reading(1, "a", 1.0)]).await;
        db.engine.close().await;
        assert_eq!(db.fails(rawdoc! { "ping": 1 }).await, (11600, "InterruptedAtShutdown".into()));
        assert_eq!(Db::open(storage, env).find(rawdoc! { "find": "weather" }).await.len(), 1);
    });
}

#[test]
fn a_damaged_bucket_is_an_error_naming_it_and_affects_nothing_else() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let db = Db::open(storage.clone(), Rc::clone(&env));
        weather(&db).await;
        db.insert("weather", &[reading(1, "a", 1.0), reading(2, "b", 2.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
        let page = Page { entries_max: 10, keys_only: false };
        let entries = storage.scan(std::slice::from_ref(&all), page).await.unwrap();
        let mut damaged = entries[0].value.clone();
        let at = damaged.len() / 2;
        damaged.truncate(at);
        let mut changes = Changeset::new();
        changes.put(entries[0].key.clone(), damaged);
        storage.commit(changes).await.unwrap();
        // The context that wrote the buckets has them in memory.
        let db = Db::open(storage, env);
        assert_eq!(db.fails(rawdoc! { "find": "weather" }).await.1, "DataCorruptionDetected");
        // The other series is still served, through the index.
        let of =
            async |station: &str| db.command(rawdoc! { "find": "weather", "filter": { "station": station } }).await;
        let served =
            [of("a").await, of("b").await].iter().filter(|reply| reply.get_f64("ok").ok() == Some(1.0)).count();
        assert_eq!(served, 1);
        assert_eq!(db.insert("weather", &[reading(3, "c", 1.0)]).await.get_i32("n").ok(), Some(1));
    });
}

#[test]
fn collections_are_listed_with_their_options() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let reply = db.ok(rawdoc! { "listCollections": 1, "filter": { "type": "timeseries" } }).await;
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(batch.len(), 1);
        let entry = batch[0].as_document().unwrap();
        assert_eq!(entry.get_str("name").ok(), Some("weather"));
        let timeseries = entry.get_document("options").unwrap().get_document("timeseries").unwrap();
        assert_eq!(timeseries.get_str("granularity").ok(), Some("seconds"));
    });
}

#[test]
fn statistics_count_buckets_measurements_and_bytes() {
    block_on(async {
        let db = database();
        weather(&db).await;
        db.insert("weather", &(0..50).map(|i| reading(i * 600_000, "a", 1.0)).collect::<Vec<_>>()).await;
        let before = db.ok(rawdoc! { "collStats": "weather" }).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let after = db.ok(rawdoc! { "collStats": "weather" }).await;
        for stats in [&before, &after] {
            let timeseries = stats.get_document("timeseries").unwrap();
            assert_eq!(timeseries.get_i64("numMeasurements").ok(), Some(50));
            assert_eq!(timeseries.get_i64("bucketCount").ok(), Some(9));
        }
        assert!(before.get_i64("journalSize").unwrap() > 0);
        assert_eq!(after.get_i64("journalSize").ok(), Some(0));
        assert!(after.get_i64("size").unwrap() > 0);
    });
}

#[test]
fn a_projection_computes_fields_in_every_form_and_after_a_sort() {
    block_on(async {
        let db = database();
        weather(&db).await;
        db.insert("weather", &[reading(1000, "a", 1.5), reading(2000, "b", 2.0), reading(500, "a", 3.0)]).await;
        for _ in 0..2 {
            let projection = rawdoc! {
                "_id": 0, "station": 1, "warm": { "$gte": ["$temp", 2] }, "name": { "$concat": ["$station", "!"] }, "at": "$none",
            };
            let find = rawdoc! { "find": "weather", "projection": projection, "sort": { "temp": -1 }, "batchSize": 2 };
            let expected = [("a", true, "a!"), ("b", true, "b!"), ("a", false, "a!")];
            let expected =
                expected.map(|(station, warm, name)| doc! { "station": station, "warm": warm, "name": name });
            assert_eq!(db.find(find).await, expected);
            let whole = rawdoc! { "find": "weather", "projection": { "_id": 0, "all": "$$ROOT" }, "limit": 1 };
            assert_eq!(db.find(whole).await[0].get_document("all").unwrap().len(), 3);
            let broken = rawdoc! { "find": "weather", "projection": { "x": { "$add": ["$station", 1] } } };
            assert_eq!(db.fails(broken).await.0, 14);
            let with_let = rawdoc! {
                "find": "weather", "let": { "k": 10 }, "sort": { "at": 1 }, "limit": 1,
                "projection": { "_id": 0, "x": { "$multiply": ["$temp", "$$k"] } },
            };
            assert_eq!(db.find(with_let).await, [doc! { "x": 30.0 }]);
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}
