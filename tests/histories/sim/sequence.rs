//! Sequential operations by any of the contexts. Sometimes storage fails, and the outcome is unknown until the next read.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::TimeseriesOptions;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::places::Places;
use super::{FIRST_NOW_MS, Trouble, bucket_rows_max, check_bucket_rows, check_dropped, is_once, ok, open};
use crate::support::faults::{Faulty, Rates};
use crate::support::model::{Model, number};
use crate::support::rows::{a_filter, matching, measurement, numbers_of};
use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{Db, Random, TestEnv, checks, raw, take_rows};

const STEPS: usize = 50;
const HOUR_MS: i64 = 3_600_000;
/// A cursor that is idle for longer may be gone.
const CURSOR_IDLE_MS: i64 = 600_000;

/// A cursor that stays open during other operations.
struct Cursor {
    db: Db,
    id: i64,
    namespace: &'static str,
    filter: Document,
    /// The measurements that it must find, unless they are deleted meanwhile.
    must: Vec<i64>,
    /// The measurements that may have existed when it was opened, and the first number not used then.
    may: Vec<i64>,
    first_later: i64,
    seen: Vec<i64>,
    used_ms: i64,
}

struct World {
    random: Random,
    places: Places,
    env: Rc<TestEnv>,
    faulty: Rc<Faulty>,
    storage: Rc<dyn Storage>,
    dbs: Vec<Db>,
    /// The number of rows that no bucket may exceed, if all contexts agree on one.
    rows_max: Option<usize>,
    /// True if each `n` is one measurement.
    once: bool,
    options: TimeseriesOptions,
    /// True if there are measurements from before 1970.
    extended: bool,
    model: Model,
    cursors: Vec<Cursor>,
    next: i64,
    trouble: Trouble,
    /// Random numbers that decide when there is room, from their own stream.
    room: Random,
}

/// Panics if something is lost, duplicated or invalid.
pub fn history(seed: u64, trouble: Trouble) {
    block_on(async {
        let random = Random::new(seed);
        let mut world = World::new(seed, random).await;
        world.trouble = trouble;
        if trouble == Trouble::Faults {
            world.faulty.set(Rates { refused: 5, ambiguous: 5, cut_off: 5, unread: 2 });
        }
        for step in 0..STEPS {
            world.step().await;
            if step % 10 == 9 {
                world.check().await;
            }
        }
        world.faulty.set(Rates::default());
        world.faulty.set_full(false);
        let db = world.open();
        let found = checks::sound_when_folded(&*world.storage, &db, "c", world.writers()).await;
        world.model.learn(&doc! {}, &found).unwrap();
        check_bucket_rows(&db, world.rows_max).await;
        check_dropped(&db, &*world.storage).await;
    });
}

impl World {
    async fn new(seed: u64, random: Random) -> World {
        let env = TestEnv::new(seed);
        let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let faulty = Faulty::new(inner, Random::new(seed + 1), false);
        let storage: Rc<dyn Storage> = faulty.clone();
        let rows_max = bucket_rows_max(seed);
        let dbs: Vec<Db> = (0..1 + random.below(4)).map(|_| open(&storage, &env, &random, rows_max)).collect();
        let extended = random.chance(15);
        create(&dbs[0], &random, is_once(seed)).await;
        let options = checks::options_of(&dbs[0], "c").await;
        let (model, cursors) = (Model::default(), Vec::new());
        let places = Places::new(seed);
        let (trouble, room) = (Trouble::None, Random::new(seed ^ 0xF011));
        World {
            random,
            places,
            env,
            faulty,
            storage,
            dbs,
            rows_max,
            once: is_once(seed),
            options,
            extended,
            model,
            cursors,
            next: 0,
            trouble,
            room,
        }
    }

    fn open(&self) -> Db {
        open(&self.storage, &self.env, &self.random, self.rows_max)
    }

    fn writers(&self) -> Writers {
        if self.dbs.len() == 1 && !self.once { Writers::One } else { Writers::Several }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.below(n)
    }

    async fn step(&mut self) {
        if self.trouble == Trouble::NoRoom && self.room.chance(25) {
            self.faulty.set_full(!self.faulty.is_full());
        }
        let at = self.below(self.dbs.len() as u64) as usize;
        let db = self.dbs[at].clone();
        match self.below(40) {
            0..=12 => self.insert(&db).await,
            13..=15 => drop(db.command(rawdoc! { "flush": 1 }).await),
            16..=17 => drop(db.command(rawdoc! { "foldJournals": 1 }).await),
            18..=19 => {
                if self.random.chance(30) {
                    db.engine.close().await;
                    self.cursors.retain(|cursor| !Rc::ptr_eq(&cursor.db.engine, &db.engine));
                }
                self.dbs[at] = self.open();
            }
            20..=22 => self.delete(&db).await,
            23 => self.delete_one(&db).await,
            24..=25 => self.expire(&db).await,
            26..=27 => self.env.now_ms.set(self.env.now_ms.get() + self.below(9 * 60_000) as i64),
            28 => self.drop_and_create(&db).await,
            29..=31 => self.find(&db).await,
            32..=34 => self.open_cursor(&db).await,
            35..=36 => self.update(&db).await,
            37..=38 => self.indexes(&db).await,
            _ => self.use_cursor().await,
        }
    }

    /// Creates, drops or hides indexes. No other operation depends on which exist.
    async fn indexes(&mut self, db: &Db) {
        let mut specs = vec![
            doc! { "key": { "n": 1 } },
            doc! { "key": { "o.a": -1, "t": 1 } },
            doc! { "key": { "n": -1 }, "partialFilterExpression": { "n": { "$gt": 40 } } },
        ];
        if self.options.meta_field.is_some() {
            specs.extend([
                doc! { "key": { "m.id": 1, "n": 1 } },
                doc! { "key": { "m.site": 1 }, "sparse": true },
                doc! { "key": { "m": "hashed" }, "partialFilterExpression": { "m.id": { "$exists": true } } },
            ]);
        }
        let at = self.below(specs.len() as u64) as usize;
        let mut spec = specs.swap_remove(at);
        if let Some(other) = self.places.index(self.options.meta_field.is_some()) {
            spec = other;
        }
        let name = format!("{}", spec.get("key").unwrap());
        spec.insert("name", format!("{name}{}", spec.len()));
        let name = spec.get_str("name").unwrap().to_owned();
        let command = match self.below(8) {
            0 => doc! { "dropIndexes": "c", "index": name },
            1 => doc! { "dropIndexes": "c", "index": "*" },
            2 => doc! { "collMod": "c", "index": { "name": name, "hidden": self.random.chance(50) } },
            _ => doc! { "createIndexes": "c", "indexes": [spec] },
        };
        let reply = db.command(raw(&command)).await;
        let is_unknown = reply.get_i32("code").ok() == Some(27);
        assert!(ok(&reply) || is_unknown || self.trouble.excuses(&reply), "{command}: {reply}");
    }

    async fn insert(&mut self, db: &Db) {
        let rows = self.rows();
        let sent: Vec<_> = rows.iter().map(|row| raw(&self.unsorted(row))).collect();
        let reply = db.insert("c", &sent).await;
        if ok(&reply) {
            assert_eq!(reply.get_i32("n").ok(), Some(rows.len() as i32));
        }
        assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
        self.model.insert(rows, ok(&reply));
    }

    /// The measurements of one insert: scattered over the hours, consecutive in one series, many of one time, or large ones.
    fn rows(&mut self) -> Vec<Document> {
        let kind = self.below(20);
        let count = match kind {
            0 => 100 + self.below(200),
            1 => 1 + self.below(12),
            _ => 1 + self.below(30),
        };
        let start = self.below(16 * 60) as i64 * 60_000;
        let series = format!("s{}", self.below(3));
        let rows = (0..count as i64).map(|at| {
            self.next += 1;
            let mut row = measurement(&self.random, self.next);
            if self.extended && self.random.chance(10) {
                row.insert("t", DateTime::from_millis(-(self.below(30 * 3600) as i64) * 1000));
            }
            if kind <= 8 {
                row.insert("t", DateTime::from_millis(start + at * if kind == 0 { 20 } else { 61_000 }));
                row.insert("m", series.clone());
            }
            if kind <= 1 {
                row.insert("x", at as f64);
            }
            if kind == 1 {
                row.insert("text", "large ".repeat(200 + self.random.below(4000) as usize));
            }
            if self.random.chance(2) {
                row.insert("m", vec![1, self.random.below(3) as i32]);
            }
            self.places.put(&mut row);
            row
        });
        rows.collect()
    }

    /// Metadata with its fields in random order; the order does not make another series.
    fn unsorted(&self, row: &Document) -> Document {
        let mut row = row.clone();
        if let (Some(_), Ok(meta)) = (&self.options.meta_field, row.get_document("m"))
            && self.random.chance(30)
        {
            let mut fields: Vec<_> = meta.clone().into_iter().collect();
            fields.reverse();
            row.insert("m", fields.into_iter().collect::<Document>());
        }
        row
    }

    fn filter(&self) -> Document {
        let filter = if self.random.chance(10) {
            doc! { "m": 1 }
        } else {
            a_filter(&self.random)
        };
        self.places.filter().unwrap_or(filter)
    }

    /// Removes the selected measurements from the model, and from what cursors must find.
    fn forget(&mut self, goes: impl Fn(i64) -> bool, acknowledged: bool) {
        let numbers = self.model.entries.iter().map(|entry| entry.number);
        let gone: Vec<i64> = numbers.filter(|n| goes(*n)).collect();
        self.cursors.iter_mut().for_each(|cursor| cursor.must.retain(|n| gone.binary_search(n).is_err()));
        self.model.delete(goes, acknowledged);
    }

    async fn delete(&mut self, db: &Db) {
        let filter = self.filter();
        let (least, most) = self.model.bounds(&filter);
        let reply = db.command(rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] }).await;
        if ok(&reply) {
            let n = reply.get_i32("n").unwrap() as usize;
            assert!((least..=most).contains(&n), "{n} were deleted by {filter}, not {least} to {most}");
        }
        assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
        let gone = self.model.numbers(&filter, false);
        self.forget(|n| gone.binary_search(&n).is_ok(), ok(&reply));
    }

    /// Changes the metadata of a series, possibly to that of another series.
    async fn update(&mut self, db: &Db) {
        if self.options.meta_field.is_none() {
            return;
        }
        let filter = match self.below(6) {
            0 => doc! {},
            1 => doc! { "m.id": 1 },
            2 => doc! { "m": { "$exists": false } },
            _ => doc! { "m": format!("s{}", self.below(3)) },
        };
        let meta = if self.random.chance(20) {
            Bson::Document(doc! { "id": 1, "site": "a" })
        } else {
            Bson::String(format!("s{}", self.below(4)))
        };
        self.look(db, &doc! {}).await;
        let statement = doc! { "q": filter.clone(), "u": { "$set": { "m": meta.clone() } }, "multi": true };
        let reply = self.faulty.without(db.ok(raw(&doc! { "update": "c", "updates": [statement] }))).await;
        assert!(ok(&reply), "{reply}");
        let (changed, same) = self.model.update(&filter, &meta);
        let n = |field: &str| reply.get_i32(field).unwrap() as usize;
        assert_eq!((n("n"), n("nModified")), (changed.len(), changed.len() - same), "{filter}: {meta}");
        for cursor in &mut self.cursors {
            cursor.must.retain(|n| changed.binary_search(n).is_err());
            cursor.may.extend(&changed);
            cursor.may.sort_unstable();
        }
    }

    async fn delete_one(&mut self, db: &Db) {
        let filter = self.filter();
        self.look(db, &filter).await;
        let before = self.model.numbers(&filter, true);
        let reply = db.command(rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 1 }] }).await;
        let find = rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": 10_000 };
        let left: Vec<i64> = self.faulty.without(db.find(find)).await.iter().map(number).collect();
        let gone: Vec<i64> = before.iter().copied().filter(|n| !left.contains(n)).collect();
        let expected = usize::from(!before.is_empty());
        if ok(&reply) {
            assert_eq!(
                (reply.get_i32("n").unwrap() as usize, gone.len()),
                (expected, expected),
                "delete one of {filter}"
            );
        }
        assert!(gone.len() <= expected, "{gone:?} are gone by a delete of one of {filter}");
        self.forget(|n| gone.contains(&n), true);
    }

    /// A find without faults, which settles all unknown outcomes.
    async fn look(&mut self, db: &Db, filter: &Document) {
        let find = rawdoc! { "find": "c", "filter": raw(filter), "batchSize": 10_000 };
        let found = self.faulty.without(db.find(find)).await;
        self.model.learn(filter, &found).unwrap();
    }

    async fn expire(&mut self, db: &Db) {
        let now_ms = self.env.now_ms.get() + self.below(3 * HOUR_MS as u64) as i64;
        self.env.now_ms.set(now_ms);
        let bound_ms = now_ms - FIRST_NOW_MS;
        let is_due = |bucket: &&Document| {
            let bound = |side: &str| bucket.get_document("control").unwrap().get_document(side).unwrap().clone();
            let time = |side: &str| bound(side).get_datetime("t").unwrap().timestamp_millis();
            // The ids of buckets from before 1970 do not contain their start; their latest time decides.
            if time("min") < 0 { time("max") <= bound_ms } else { time("min") + self.options.span_ms() <= bound_ms }
        };
        let buckets = self.faulty.without(checks::buckets(db, "c")).await;
        let mut due: Vec<i64> = buckets.iter().filter(is_due).flat_map(numbers_of).collect();
        due.sort_unstable();
        let reply = db.command(rawdoc! { "expire": 1 }).await;
        // Without room, rows that share a record with others wait for the next pass.
        let all_went = ok(&reply) && !self.faulty.is_full();
        if ok(&reply) {
            let n = reply.get_i64("nMeasurements").unwrap() as usize;
            assert!(n == due.len() || !all_went && n < due.len(), "{reply} of {}", due.len());
        }
        assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
        self.forget(|n| due.binary_search(&n).is_ok(), all_went);
    }

    async fn drop_and_create(&mut self, db: &Db) {
        if self.random.chance(70) {
            return;
        }
        self.faulty.without(db.ok(rawdoc! { "drop": "c" })).await;
        self.faulty.without(create(db, &self.random, self.once)).await;
        self.options = self.faulty.without(checks::options_of(db, "c")).await;
        self.cursors.clear();
        self.model = Model::default();
    }

    async fn find(&mut self, db: &Db) {
        let filter = self.filter();
        let batch = 1 + self.below(200) as i32;
        let reply = db.command(rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": batch }).await;
        let Some((found, false)) = all_batches(db, "c", reply).await else { return };
        self.model.learn(&filter, &found).unwrap();
        let (least, most) = self.model.bounds(&filter);
        let reply = db.command(rawdoc! { "count": "c", "query": raw(&filter) }).await;
        if ok(&reply) {
            assert_eq!((least, most), (found.len(), found.len()));
            assert_eq!(reply.get_i32("n").unwrap() as usize, found.len(), "count {filter}");
        }
    }

    async fn open_cursor(&mut self, db: &Db) {
        let raw_buckets = self.random.chance(25);
        let (namespace, filter) = if raw_buckets { ("system.buckets.c", doc! {}) } else { ("c", self.filter()) };
        let first = self.below(3) as i32;
        let (must, may) = (self.model.numbers(&filter, true), self.model.numbers(&filter, false));
        let reply = db.command(rawdoc! { "find": namespace, "filter": raw(&filter), "batchSize": first }).await;
        let (used_ms, first_later) = (self.env.now_ms.get(), self.next + 1);
        let (db, seen) = (db.clone(), Vec::new());
        let cursor = Cursor { db, id: 0, namespace, filter, must, may, first_later, seen, used_ms };
        self.take_batch(cursor, reply);
    }

    async fn use_cursor(&mut self) {
        if self.cursors.is_empty() {
            return;
        }
        let at = self.below(self.cursors.len() as u64) as usize;
        let mut cursor = self.cursors.swap_remove(at);
        // Bucket documents are returned one by one, measurements in batches.
        let batch = 1 + self.below(if cursor.namespace == "c" { 20 } else { 3 }) as i32;
        let reply = cursor
            .db
            .command(rawdoc! { "getMore": cursor.id, "collection": cursor.namespace, "batchSize": batch })
            .await;
        let now_ms = self.env.now_ms.get();
        let idle_ms = now_ms - std::mem::replace(&mut cursor.used_ms, now_ms);
        if !ok(&reply) && reply.get_str("codeName").unwrap() == "CursorNotFound" {
            assert!(idle_ms > CURSOR_IDLE_MS, "a cursor is gone after {idle_ms} ms");
            return;
        }
        self.take_batch(cursor, reply);
    }

    /// Checks a batch, and keeps the cursor if there is more. A failed cursor has ended.
    fn take_batch(&mut self, mut cursor: Cursor, mut reply: Document) {
        if !ok(&reply) {
            return;
        }
        let batch = reply.get_document_mut("cursor").unwrap();
        let key = if batch.contains_key("firstBatch") { "firstBatch" } else { "nextBatch" };
        let mut rows = take_rows(batch, key);
        if cursor.namespace != "c" {
            let of = |bucket: &Document| measurements_of_valid(bucket, &self.options, self.writers()).unwrap();
            rows = rows.iter().flat_map(of).collect();
        }
        assert_eq!(matching(&rows, &cursor.filter).len(), rows.len(), "a cursor has found what does not match");
        for n in rows.iter().map(number) {
            assert!(!cursor.seen.contains(&n), "measurement {n} was found twice by a cursor of {}", cursor.filter);
            let known = n >= cursor.first_later || cursor.may.binary_search(&n).is_ok();
            assert!(known, "measurement {n}, gone before, was found by a cursor of {}", cursor.filter);
            cursor.seen.push(n);
        }
        cursor.id = batch.get_i64("id").unwrap();
        if cursor.id != 0 {
            return self.cursors.push(cursor);
        }
        let lost = cursor.must.iter().find(|n| !cursor.seen.contains(n));
        assert!(lost.is_none(), "measurement {} was not found by a cursor of {}", lost.unwrap(), cursor.filter);
    }

    /// A full check by any context.
    async fn check(&mut self) {
        let db = self.dbs[self.below(self.dbs.len() as u64) as usize].clone();
        let found = self.faulty.without(checks::sound(&db, "c", self.writers())).await;
        self.model.learn(&doc! {}, &found).unwrap();
    }
}

/// Creates the collection with random options.
async fn create(db: &Db, random: &Random, once: bool) {
    let mut shape = doc! { "timeField": "t" };
    if random.chance(85) {
        shape.insert("metaField", "m");
    }
    match random.below(5) {
        0..=2 => drop(shape.insert("granularity", "seconds")),
        3 => drop(shape.insert("granularity", "minutes")),
        _ => shape.extend(doc! { "bucketMaxSpanSeconds": 1800, "bucketRoundingSeconds": 1800 }),
    }
    let mut options = doc! { "create": "c", "expireAfterSeconds": FIRST_NOW_MS / 1000, "timeseries": shape };
    if once {
        options.insert("dedupe", doc! { "by": ["n"] });
    }
    db.ok(raw(&options)).await;
}

/// All rows of a find, and whether a `getMore` failed; `None` if the find failed.
async fn all_batches(db: &Db, namespace: &str, mut reply: Document) -> Option<(Vec<Document>, bool)> {
    if !ok(&reply) {
        return None;
    }
    let mut rows = Vec::new();
    let mut key = "firstBatch";
    loop {
        let cursor = reply.get_document_mut("cursor").unwrap();
        rows.extend(take_rows(cursor, key));
        let id = cursor.get_i64("id").unwrap();
        if id == 0 {
            return Some((rows, false));
        }
        key = "nextBatch";
        reply = db.command(rawdoc! { "getMore": id, "collection": namespace, "batchSize": 50 }).await;
        if !ok(&reply) {
            return Some((rows, true));
        }
    }
}
