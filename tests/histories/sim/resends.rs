//! Histories of a collection with `dedupe`: devices resend whole batches and parts of them, by any of the contexts.
//! Compared with a map by identity.

use std::collections::BTreeMap;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::{Trouble, check_dropped, ok, open};
use crate::support::faults::{Faulty, Rates};
use crate::support::rows::matching;
use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{Db, Random, TestEnv, checks, multiset, raw, take_rows};

const STEPS: usize = 60;
const MINUTE_MS: i64 = 60_000;

/// The identity of a measurement.
type Identity = Vec<u8>;

/// A cursor that stays open during other operations.
struct Cursor {
    db: Db,
    id: i64,
    /// The measurements that it must find, unless they change meanwhile.
    must: Vec<Identity>,
    /// Those that were deleted meanwhile: they may have been sent again, and then be found again.
    deleted: Vec<Identity>,
    seen: Vec<Identity>,
}

struct World {
    random: Random,
    env: Rc<TestEnv>,
    faulty: Rc<Faulty>,
    storage: Rc<dyn Storage>,
    dbs: Vec<Db>,
    meta_field: Option<&'static str>,
    by: Vec<&'static str>,
    keeps_first: bool,
    model: BTreeMap<Identity, Document>,
    /// The measurements of recent inserts.
    sent: Vec<Vec<Document>>,
    cursors: Vec<Cursor>,
    n: i64,
    /// Later rows are this much later.
    clock_ms: i64,
    trouble: Trouble,
}

/// Panics if a measurement is lost, found twice, or found in a version that is not the one to keep.
pub fn history(seed: u64, trouble: Trouble) {
    block_on(async {
        let mut world = World::new(seed, trouble).await;
        for step in 0..STEPS {
            world.step().await;
            if step % 3 == 2 {
                world.check().await;
            }
        }
        world.faulty.set(Rates::default());
        let db = open(&world.storage, &world.env, &world.random, None);
        world.dbs.push(db.clone());
        world.check_all(&db).await;
        let found = checks::sound_when_folded(&*world.storage, &db, "c", Writers::Several).await;
        assert_eq!(multiset(&found), multiset(world.model.values()));
        world.check_apart(&db).await;
        check_dropped(&db, &*world.storage).await;
    });
}

impl World {
    async fn new(seed: u64, trouble: Trouble) -> World {
        let (random, env) = (Random::new(seed), TestEnv::new(seed));
        let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let faulty = Faulty::new(inner, Random::new(seed + 1), false);
        let storage: Rc<dyn Storage> = faulty.clone();
        let dbs: Vec<Db> = (0..1 + random.below(3)).map(|_| open(&storage, &env, &random, None)).collect();
        let by = match random.below(4) {
            0 => vec!["c"],
            1 => vec!["o.a", "c"],
            _ => Vec::new(),
        };
        let keeps_first = random.chance(40);
        let meta_field = (!random.chance(15)).then_some("m");
        let keep = if keeps_first { "first" } else { "last" };
        let mut timeseries = doc! { "timeField": "t" };
        timeseries.extend(meta_field.map(|name| ("metaField".to_owned(), name.into())));
        let create = doc! { "create": "c", "timeseries": timeseries, "dedupe": { "by": by.clone(), "keep": keep } };
        dbs[0].ok(raw(&create)).await;
        if trouble == Trouble::Faults {
            faulty.set(Rates { refused: 5, ambiguous: 5, cut_off: 5, unread: 2 });
        }
        let (model, sent, cursors) = (BTreeMap::new(), Vec::new(), Vec::new());
        World {
            random,
            env,
            faulty,
            storage,
            dbs,
            meta_field,
            by,
            keeps_first,
            model,
            sent,
            cursors,
            n: 0,
            clock_ms: 0,
            trouble,
        }
    }

    fn below(&self, n: u64) -> i64 {
        self.random.below(n) as i64
    }

    async fn step(&mut self) {
        // Commits of different contexts are ordered by the clock.
        self.env.now_ms.set(self.env.now_ms.get() + 1 + self.below(100));
        let at = self.random.below(self.dbs.len() as u64) as usize;
        let db = self.dbs[at].clone();
        match self.random.below(34) {
            30 => self.insert_buckets(&db).await,
            31 => self.expire(&db).await,
            32..=33 => self.validate(&db).await,
            0..=13 => self.insert(&db).await,
            14..=16 => self.fold(&db, rawdoc! { "flush": 1 }).await,
            17 => self.fold(&db, rawdoc! { "foldJournals": 1 }).await,
            18..=19 => {
                if self.random.chance(30) {
                    db.engine.close().await;
                }
                self.cursors.retain(|cursor| !Rc::ptr_eq(&cursor.db.engine, &db.engine));
                self.dbs[at] = open(&self.storage, &self.env, &self.random, None);
            }
            20..=21 => self.delete(&db).await,
            22 => self.delete_one(&db).await,
            23 => self.update(&db).await,
            24 if self.n % 4 == 0 => self.widen(&db).await,
            24 => self.index(&db).await,
            25..=27 => self.open_cursor(&db).await,
            _ => self.use_cursor().await,
        }
    }

    fn identity(&self, row: &Document) -> Identity {
        let mut identity = doc! { "t": row.get("t").unwrap().clone() };
        if self.meta_field.is_some() {
            identity.insert("m", row.get("m").cloned().map_or(Bson::Array(vec![]), |meta| Bson::Array(vec![meta])));
        }
        for path in &self.by {
            let mut value = Some(Bson::Document(row.clone()));
            for part in path.split('.') {
                value = value.and_then(|value| value.as_document()?.get(part).cloned());
            }
            // 1 and 1.0 are equal.
            let value = value.map_or(Bson::Undefined, |value| value.as_i32().map_or(value, |n| f64::from(n).into()));
            identity.insert(*path, value);
        }
        raw(&identity).into_bytes()
    }

    /// A new measurement, mostly later than all others.
    fn row(&mut self) -> Document {
        self.n += 1;
        self.clock_ms += self.below(4) * 500;
        let late = if self.random.chance(25) { self.below(300) * MINUTE_MS } else { 0 };
        let mut row = doc! { "t": DateTime::from_millis(100 * MINUTE_MS + self.clock_ms - late), "n": self.n };
        if self.random.chance(2) {
            row.insert("t", DateTime::from_millis(-self.below(90) * MINUTE_MS));
        }
        match self.random.below(8) {
            0 => {}
            1 => drop(row.insert("m", doc! { "id": 1 })),
            _ => drop(row.insert("m", format!("s{}", self.below(3)))),
        }
        match self.random.below(6) {
            0 => {}
            1 => drop(row.insert("c", f64::from(self.below(2) as i32))),
            2 => drop(row.insert("c", Bson::Null)),
            _ => drop(row.insert("c", self.below(2) as i32)),
        }
        row.insert("x", self.below(50) as f64);
        if self.random.chance(30) {
            row.insert("o", doc! { "a": self.below(2) as i32 });
        }
        row
    }

    /// A resent measurement: as it was, or corrected.
    fn again(&mut self, row: &Document) -> Document {
        let mut row = row.clone();
        if self.random.chance(50) {
            self.n += 1;
            row.insert("n", self.n);
            row.insert("x", self.below(50) as f64);
            if self.random.chance(10) {
                row.insert("y", "another field");
            }
        }
        row
    }

    async fn insert(&mut self, db: &Db) {
        let count = if self.random.chance(10) { 100 + self.below(100) } else { 1 + self.below(25) };
        let mut rows: Vec<Document> = Vec::new();
        if !self.sent.is_empty() && self.random.chance(50) {
            let earlier = self.sent[self.random.below(self.sent.len() as u64) as usize].clone();
            let part = self.random.chance(50);
            for row in earlier.iter().filter(|_| !part || self.random.chance(50)).cloned().collect::<Vec<_>>() {
                rows.push(self.again(&row));
            }
        }
        if rows.is_empty() || self.random.chance(40) {
            rows.extend((0..count).map(|_| self.row()).collect::<Vec<_>>());
        }
        if self.random.chance(20) {
            let row = rows[self.random.below(rows.len() as u64) as usize].clone();
            let again = self.again(&row);
            rows.push(again);
        }
        let sent: Vec<_> = rows.iter().map(raw).collect();
        loop {
            let reply = db.insert("c", &sent).await;
            assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
            if ok(&reply) {
                assert_eq!(reply.get_i32("n").ok(), Some(rows.len() as i32));
                break;
            }
            // It is unknown what was stored, which does not matter if the rows are sent again.
            self.env.now_ms.set(self.env.now_ms.get() + 1);
        }
        for row in &rows {
            let identity = self.identity(row);
            let is_known = self.model.contains_key(&identity);
            if !(self.keeps_first && is_known) {
                self.model.insert(identity.clone(), row.clone());
            }
        }
        self.sent.push(rows);
        if self.sent.len() > 12 {
            self.sent.remove(0);
        }
    }

    /// A command that may fail without consequences.
    async fn fold(&self, db: &Db, command: bson::RawDocumentBuf) {
        let reply = db.command(command).await;
        assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
    }

    fn filter(&self) -> Document {
        let time = || DateTime::from_millis(self.below(400) * MINUTE_MS - 100 * MINUTE_MS);
        match self.random.below(7) {
            0 => doc! { "t": { "$gte": time(), "$lt": time() } },
            1 if self.meta_field.is_some() => doc! { "m": format!("s{}", self.below(3)) },
            2 => doc! { "m.id": 1, "t": { "$lt": time() } },
            3 => doc! { "x": { "$gt": self.below(50) as f64 } },
            4 => doc! { "c": 1 },
            5 => doc! { "m": "s1", "t": { "$gte": time() }, "x": { "$lt": 25.0 } },
            _ => doc! { "y": { "$exists": true } },
        }
    }

    fn forget(&mut self, gone: &[Identity]) {
        for identity in gone {
            self.model.remove(identity);
        }
        for cursor in &mut self.cursors {
            cursor.must.retain(|identity| !gone.contains(identity));
            cursor.deleted.extend_from_slice(gone);
        }
    }

    fn identities(&self, filter: &Document) -> Vec<Identity> {
        let rows: Vec<Document> = self.model.values().cloned().collect();
        matching(&rows, filter).into_iter().map(|row| self.identity(row)).collect()
    }

    async fn delete(&mut self, db: &Db) {
        let filter = self.filter();
        let gone = self.identities(&filter);
        let command = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] };
        let reply = self.faulty.without(db.command(command)).await;
        assert!(ok(&reply), "{reply}");
        assert_eq!(reply.get_i32("n").ok(), Some(gone.len() as i32), "{filter}");
        self.forget(&gone);
    }

    async fn delete_one(&mut self, db: &Db) {
        let filter = self.filter();
        let before = self.identities(&filter);
        let command = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 1 }] };
        let reply = self.faulty.without(db.command(command)).await;
        assert_eq!(reply.get_i32("n").ok(), Some(i32::from(!before.is_empty())), "{filter}: {reply}");
        let find = rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": 10_000 };
        let left: Vec<Identity> =
            self.faulty.without(db.find(find)).await.iter().map(|row| self.identity(row)).collect();
        let gone: Vec<Identity> = before.into_iter().filter(|identity| !left.contains(identity)).collect();
        assert!(gone.len() <= 1);
        self.forget(&gone);
    }

    /// Inserts the bucket documents of this collection again, as an import does.
    async fn insert_buckets(&mut self, db: &Db) {
        let buckets = self.faulty.without(checks::buckets(db, "c")).await;
        if buckets.is_empty() {
            return;
        }
        let bucket = &buckets[self.random.below(buckets.len() as u64) as usize];
        let command = rawdoc! { "insert": "system.buckets.c", "documents": [raw(bucket)], "unsafeBucketWrites": true };
        let reply = self.faulty.without(db.ok(command)).await;
        assert!(ok(&reply), "{reply}");
        // They are measurements that are known, so nothing changes.
        self.check_all(db).await;
    }

    /// Deletes buckets that are old enough.
    async fn expire(&mut self, db: &Db) {
        if self.random.chance(60) {
            return;
        }
        let bound_ms = 70 * MINUTE_MS + self.below(60) * MINUTE_MS;
        let age_s = (self.env.now_ms.get() - bound_ms) / 1000;
        self.fold(db, raw(&doc! { "collMod": "c", "expireAfterSeconds": age_s })).await;
        let buckets = self.faulty.without(checks::buckets(db, "c")).await;
        let options = checks::options_of(db, "c").await;
        let bound_ms = self.env.now_ms.get() - age_s * 1000;
        let is_extended = self.model.values().any(|row| row.get_datetime("t").unwrap().timestamp_millis() < 0);
        let bound = |bucket: &Document, side: &str| {
            let control = bucket.get_document("control").unwrap().get_document(side).unwrap().clone();
            control.get_datetime("t").unwrap().timestamp_millis()
        };
        if is_extended || buckets.iter().any(|bucket| bound(bucket, "min") < 0) {
            // Retention then goes by other rules, which other histories check.
            self.fold(db, rawdoc! { "collMod": "c", "expireAfterSeconds": "off" }).await;
            return;
        }
        let due = buckets.iter().filter(|bucket| bound(bucket, "min") + options.span_ms() <= bound_ms);
        let rows: Vec<Document> =
            due.flat_map(|bucket| measurements_of_valid(bucket, &options, Writers::Several).unwrap()).collect();
        let gone: Vec<Identity> = rows.iter().map(|row| self.identity(row)).collect();
        let reply = self.faulty.without(db.ok(rawdoc! { "expire": 1 })).await;
        assert_eq!(reply.get_i64("nMeasurements").unwrap() as usize, gone.len(), "{reply}");
        self.forget(&gone);
        self.fold(db, rawdoc! { "collMod": "c", "expireAfterSeconds": "off" }).await;
    }

    async fn validate(&self, db: &Db) {
        let command = rawdoc! { "validate": "c", "full": true, "repair": self.random.chance(50) };
        let reply = self.faulty.without(db.ok(command)).await;
        assert!(reply.get_bool("valid").unwrap() && !reply.get_bool("repaired").unwrap(), "{reply}");
    }

    /// Changes the metadata of a series, perhaps to that of another: both may have the same measurement.
    async fn update(&mut self, db: &Db) {
        if self.meta_field.is_none() {
            return;
        }
        let (from, to) = (format!("s{}", self.below(3)), format!("s{}", self.below(4)));
        let filter = doc! { "m": from.clone() };
        let statement = doc! { "q": filter.clone(), "u": { "$set": { "m": to.clone() } }, "multi": true };
        let command = raw(&doc! { "update": "c", "updates": [statement] });
        let reply = self.faulty.without(db.command(command)).await;
        let changed = self.identities(&filter);
        assert_eq!(reply.get_i32("n").ok(), Some(changed.len() as i32), "{reply}");
        if from == to {
            return;
        }
        let rows: Vec<Document> = changed.iter().map(|identity| self.model[identity].clone()).collect();
        self.forget(&changed);
        let mut touched = Vec::new();
        for mut row in rows {
            row.insert("m", to.clone());
            let identity = self.identity(&row);
            // They count as inserted now.
            if !(self.keeps_first && self.model.contains_key(&identity)) {
                self.model.insert(identity.clone(), row);
            }
            touched.push(identity);
        }
        self.cursors.clear();
    }

    /// Makes windows longer, if they can be.
    async fn widen(&mut self, db: &Db) {
        let granularity = if self.n % 8 == 0 { "minutes" } else { "hours" };
        let reply = db.command(rawdoc! { "collMod": "c", "timeseries": { "granularity": granularity } }).await;
        let is_shorter = reply.get_i32("code").ok() == Some(72);
        assert!(ok(&reply) || is_shorter || self.trouble.excuses(&reply), "{reply}");
        // Cursors that were open may find measurements twice.
        self.cursors.clear();
    }

    async fn index(&mut self, db: &Db) {
        let key = [doc! { "x": 1 }, doc! { "c": 1, "t": -1 }, doc! { "y": 1 }];
        let key = key[self.random.below(3) as usize].clone();
        let name = format!("{key}");
        let command = match self.random.below(3) {
            0 => doc! { "dropIndexes": "c", "index": "*" },
            _ => doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": name }] },
        };
        self.fold(db, raw(&command)).await;
    }

    async fn check(&mut self) {
        let db = self.dbs[self.random.below(self.dbs.len() as u64) as usize].clone();
        if self.random.chance(40) {
            self.check_all(&db).await;
        }
        let filter = if self.random.chance(30) {
            doc! {}
        } else {
            self.filter()
        };
        let rows: Vec<Document> = self.model.values().cloned().collect();
        let expected: Vec<&Document> = matching(&rows, &filter);
        let find = rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": 1 + self.below(60) as i32 };
        let found = self.faulty.without(db.find(find)).await;
        assert_eq!(multiset(&found), multiset(expected.iter().copied()), "{filter}");
        let count = rawdoc! { "count": "c", "query": raw(&filter) };
        let reply = self.faulty.without(db.ok(count)).await;
        assert_eq!(reply.get_i32("n").ok(), Some(expected.len() as i32), "count of {filter}");
        self.check_sorted(&db, &filter, &expected).await;
        self.check_groups(&db, &filter, &expected).await;
    }

    /// The first rows by time.
    async fn check_sorted(&self, db: &Db, filter: &Document, expected: &[&Document]) {
        let (direction, limit) = (if self.random.chance(50) { 1 } else { -1 }, 1 + self.random.below(20) as usize);
        let find = doc! { "find": "c", "filter": filter.clone(), "sort": { "t": direction }, "limit": limit as i32 };
        let found = self.faulty.without(db.find(raw(&find))).await;
        let time = |row: &Document| row.get_datetime("t").unwrap().timestamp_millis() * i64::from(direction);
        let mut times: Vec<i64> = expected.iter().map(|row| time(row)).collect();
        times.sort_unstable();
        times.truncate(limit);
        assert_eq!(found.iter().map(time).collect::<Vec<_>>(), times, "{find}");
    }

    async fn check_groups(&self, db: &Db, filter: &Document, expected: &[&Document]) {
        type Group = (i32, f64, f64, f64, i64, i64);
        let group = doc! { "_id": "$m", "n": { "$sum": 1 }, "sum": { "$sum": "$x" }, "least": { "$min": "$x" },
        "most": { "$max": "$x" }, "first": { "$min": "$t" }, "last": { "$max": "$t" } };
        let pipeline = vec![doc! { "$match": filter.clone() }, doc! { "$group": group }];
        let command = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": { "batchSize": 1000 } };
        let mut reply = self.faulty.without(db.ok(raw(&command))).await;
        let found = take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch");
        let ms = |row: &Document, name: &str| row.get_datetime(name).unwrap().timestamp_millis();
        let of = |group: &Document| -> Group {
            let x = |name: &str| group.get_f64(name).unwrap();
            (group.get_i32("n").unwrap(), x("sum"), x("least"), x("most"), ms(group, "first"), ms(group, "last"))
        };
        let found: BTreeMap<String, Group> =
            found.iter().map(|group| (group.get("_id").unwrap().to_string(), of(group))).collect();
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for row in expected {
            let (x, t) = (row.get_f64("x").unwrap(), ms(row, "t"));
            let group = groups.entry(row.get("m").unwrap_or(&Bson::Null).to_string()).or_insert((0, 0.0, x, x, t, t));
            *group = (group.0 + 1, group.1 + x, group.2.min(x), group.3.max(x), group.4.min(t), group.5.max(t));
        }
        assert_eq!(found, groups, "{command}");
        // The newest of each.
        let newest = doc! { "_id": "$m", "t": { "$first": "$t" } };
        let pipeline =
            vec![doc! { "$match": filter.clone() }, doc! { "$sort": { "m": 1, "t": -1 } }, doc! { "$group": newest }];
        let command = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": { "batchSize": 1000 } };
        let mut reply = self.faulty.without(db.ok(raw(&command))).await;
        let found = take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch");
        let found: BTreeMap<String, i64> =
            found.iter().map(|group| (group.get("_id").unwrap().to_string(), ms(group, "t"))).collect();
        let expected: BTreeMap<String, i64> = groups.into_iter().map(|(meta, group)| (meta, group.5)).collect();
        assert_eq!(found, expected, "{command}");
    }

    async fn check_all(&self, db: &Db) {
        let find = rawdoc! { "find": "c", "batchSize": 10_000 };
        let found = self.faulty.without(db.find(find)).await;
        assert_eq!(multiset(&found), multiset(self.model.values()));
    }

    /// Stored buckets of a series do not overlap, except those for late rows of buckets that are too full.
    async fn check_apart(&self, db: &Db) {
        let mut spans: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
        for bucket in checks::buckets(db, "c").await {
            let control = bucket.get_document("control").unwrap();
            let time = |side: &str| control.get_document(side).unwrap().get_datetime("t").unwrap().timestamp_millis();
            let span = (time("min"), time("max"));
            // A bit of the id marks these. Before 1970 the latest time is rounded.
            if span.0 >= 0 && bucket.get_object_id("_id").unwrap().bytes()[9] < 0x80 {
                spans.entry(bucket.get("meta").unwrap_or(&Bson::Null).to_string()).or_default().push(span);
            }
        }
        for (series, mut spans) in spans {
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(pair[0].1 < pair[1].0, "buckets of {series} overlap: {pair:?}");
            }
        }
    }

    async fn open_cursor(&mut self, db: &Db) {
        let find = rawdoc! { "find": "c", "batchSize": 1 + self.below(5) as i32 };
        let mut reply = self.faulty.without(db.ok(find)).await;
        let must = self.model.keys().cloned().collect();
        let cursor = reply.get_document_mut("cursor").unwrap();
        let seen = take_rows(cursor, "firstBatch").iter().map(|row| self.identity(row)).collect();
        let id = cursor.get_i64("id").unwrap();
        self.cursors.push(Cursor { db: db.clone(), id, must, deleted: Vec::new(), seen });
        self.use_cursor().await;
    }

    /// Reads on, and checks the cursor when it ends.
    async fn use_cursor(&mut self) {
        if self.cursors.is_empty() {
            return;
        }
        let at = self.random.below(self.cursors.len() as u64) as usize;
        let mut cursor = self.cursors.swap_remove(at);
        if cursor.id != 0 {
            let size = if self.random.chance(50) { 10_000 } else { 1 + self.below(30) as i32 };
            let more = rawdoc! { "getMore": cursor.id, "collection": "c", "batchSize": size };
            let mut reply = self.faulty.without(cursor.db.ok(more)).await;
            let batch = reply.get_document_mut("cursor").unwrap();
            cursor.seen.extend(take_rows(batch, "nextBatch").iter().map(|row| self.identity(row)));
            cursor.id = batch.get_i64("id").unwrap();
        }
        if cursor.id != 0 {
            return self.cursors.push(cursor);
        }
        cursor.seen.sort();
        let twice = cursor.seen.windows(2).find(|pair| pair[0] == pair[1] && !cursor.deleted.contains(&pair[0]));
        assert!(twice.is_none(), "a cursor has found {:?} twice", twice.map(|pair| self.model.get(&pair[0])));
        let lost = cursor.must.iter().find(|identity| cursor.seen.binary_search(identity).is_err());
        assert!(lost.is_none(), "a cursor has not found {:?}", lost.map(|identity| self.model.get(identity)));
    }
}
