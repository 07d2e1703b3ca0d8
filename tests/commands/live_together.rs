//! Live queries that are brought up to date by one command: what it says of each, and what that costs storage.

use std::cell::Cell;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::engine::signal::yield_now;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{ALWAYS_MS, Db, TestEnv, multiset, raw, rows_of, take_rows};

const MINUTE_MS: i64 = 60_000;

/// Counts calls that read, and refuses them if it should.
struct Metered {
    inner: MemoryStorage,
    reads: Cell<usize>,
    fails: Cell<bool>,
}

impl Metered {
    fn count(&self) -> timepail::error::Result<()> {
        self.reads.set(self.reads.get() + 1);
        match self.fails.get() {
            true => Err(timepail::error::Error::new(timepail::error::ErrorCode::InternalError, "out of order")),
            false => Ok(()),
        }
    }
}

impl Storage for Metered {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            self.count()?;
            self.inner.get_many(keys).await
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            self.count()?;
            self.inner.scan(ranges, page).await
        })
    }

    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        ahead: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            self.count()?;
            self.inner.scan_ahead(ranges, entries_max, ahead).await
        })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.inner.commit(changes)
    }
}

struct World {
    storage: Rc<Metered>,
    env: Rc<TestEnv>,
    db: Db,
}

async fn world() -> World {
    let storage = Rc::new(Metered { inner: MemoryStorage::new(), reads: Cell::default(), fails: Cell::default() });
    let env = TestEnv::new(1);
    let db = Db::open(Rc::clone(&storage) as Rc<dyn Storage>, Rc::clone(&env));
    for name in ["c", "d"] {
        let create = rawdoc! { "create": name, "timeseries": { "timeField": "t", "metaField": "m" } };
        db.ok(create).await;
    }
    let world = World { storage, env, db };
    world.add("c", &[("a", 0), ("b", 1), ("a", 2)]).await;
    world.add("d", &[("a", 0)]).await;
    world
}

impl World {
    /// Inserts a row of each series, with this number, at this minute.
    async fn add(&self, name: &str, rows: &[(&str, i64)]) {
        let row =
            |(series, n): &(&str, i64)| rawdoc! { "t": DateTime::from_millis(n * MINUTE_MS), "m": *series, "n": *n };
        let rows: Vec<RawDocumentBuf> = rows.iter().map(row).collect();
        assert_eq!(self.db.insert(name, &rows).await.get_i32("n").unwrap() as usize, rows.len());
    }

    /// Opens a live query, and reads its first result.
    async fn open(&self, query: Document) -> i64 {
        let id = self.db.ok(rawdoc! { "liveQuery": 1, "query": raw(&query) }).await.get_i32("id").unwrap();
        self.db.ok(rawdoc! { "liveRefresh": id }).await;
        id.into()
    }

    /// The news of these queries.
    async fn news(&self, ids: &[i64]) -> Vec<Document> {
        let ids: Vec<Bson> = ids.iter().map(|id| (*id).into()).collect();
        let reply = self.db.ok(raw(&doc! { "liveRefresh": ids })).await;
        reply.get_array("live").unwrap().iter().map(|told| told.as_document().unwrap().clone()).collect()
    }

    /// The result of a fresh query.
    async fn fresh(&self, query: &Document) -> Vec<Document> {
        let mut reply = self.db.ok(raw(query)).await;
        take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch")
    }
}

fn newest(name: &str, series: &str) -> Document {
    doc! { "find": name, "filter": { "m": series }, "sort": { "t": -1 }, "limit": 3 }
}

fn total(name: &str) -> Document {
    doc! { "aggregate": name, "pipeline": [{ "$group": { "_id": "$m", "n": { "$sum": "$n" } } }], "cursor": {} }
}

/// What runs again with each change.
fn pushed() -> Document {
    doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": null, "all": { "$push": "$n" } } }], "cursor": {} }
}

/// The rows of what was told of a query.
fn rows_told(told: &Document) -> Vec<Document> {
    assert_eq!(told.get_document("cursor").unwrap().get_i64("id").unwrap(), 0, "{told}");
    rows_of(&timepail::block::decode(told.get_binary_generic("block").unwrap()).unwrap())
}

/// True if a query was left for itself.
fn is_alone(told: &Document) -> bool {
    !told.contains_key("cursor")
}

fn told_of(news: &[Document], id: i64) -> Option<&Document> {
    news.iter().find(|told| told.get_i64("id").unwrap() == id)
}

#[test]
fn news_are_not_lost_when_the_command_that_tells_them_is_killed() {
    block_on(async {
        for yields in 0..12 {
            let world = world().await;
            let queries = [newest("c", "a"), total("c"), newest("d", "a")];
            let mut ids = Vec::new();
            for query in &queries {
                ids.push(world.open(query.clone()).await);
            }
            world.add("c", &[("a", 7)]).await;
            world.add("d", &[("a", 8)]).await;
            world.env.look_ms.set(ALWAYS_MS);
            let kill = async {
                for _ in 0..yields {
                    yield_now().await;
                }
                world.db.ok(rawdoc! { "killOp": 1, "op": 7 }).await
            };
            let refresh = raw(&doc! { "liveRefresh": ids.clone(), "opKey": 7 });
            let (reply, _) = join(world.db.command(refresh), kill).await;
            let mut news: Vec<Document> = reply
                .get_array("live")
                .map_or(Vec::new(), |live| live.iter().map(|told| told.as_document().unwrap().clone()).collect());
            news.extend(world.news(&ids).await);
            for (id, query) in ids.iter().zip(&queries) {
                let told =
                    told_of(&news, *id).unwrap_or_else(|| panic!("nobody was told of {query} after {yields} yields"));
                if !is_alone(told) {
                    assert_eq!(multiset(&rows_told(told)), multiset(&world.fresh(query).await), "{query}");
                }
            }
        }
    });
}

#[test]
fn queries_of_one_collection_share_one_look_at_storage() {
    block_on(async {
        let world = world().await;
        let queries = [newest("c", "a"), newest("c", "b"), total("c"), newest("d", "a")];
        let mut ids = Vec::new();
        for query in &queries {
            ids.push(world.open(query.clone()).await);
        }
        world.storage.reads.set(0);
        assert_eq!(world.news(&ids).await, [], "all results hold");
        assert_eq!(world.storage.reads.get(), 2, "one look at each collection");
        for (round, gives_turns) in [(1, false), (2, true)] {
            world.env.look_ms.set(if gives_turns { ALWAYS_MS } else { 0.0 });
            world.add("c", &[("a", 10 * round), ("a", 10 * round + 1)]).await;
            world.storage.reads.set(0);
            let news = world.news(&ids).await;
            assert_eq!(world.storage.reads.get(), 2);
            assert_eq!(news.len(), 2, "the other series and the other collection have no news: {news:?}");
            assert_eq!(rows_told(told_of(&news, ids[0]).unwrap()), world.fresh(&queries[0]).await);
            assert_eq!(
                multiset(&rows_told(told_of(&news, ids[2]).unwrap())),
                multiset(&world.fresh(&queries[2]).await)
            );
            assert_eq!(world.news(&ids).await, []);
        }
    });
}

#[test]
fn a_query_that_must_run_again_is_left_for_itself_and_keeps_no_other_waiting() {
    block_on(async {
        let world = world().await;
        let (follows, again) = (world.open(newest("c", "a")).await, world.open(pushed()).await);
        let clock = doc! { "aggregate": "c", "pipeline": [{ "$project": { "now": "$$NOW" } }], "cursor": {} };
        let clock = world.open(clock).await;
        let named_twice = [follows, again, clock, follows];
        world.add("c", &[("a", 7)]).await;
        world.storage.reads.set(0);
        let news = world.news(&named_twice).await;
        assert_eq!(world.storage.reads.get(), 1);
        let alone = |id: i64| -> Vec<bool> {
            let mut alone: Vec<bool> =
                news.iter().filter(|told| told.get_i64("id").unwrap() == id).map(is_alone).collect();
            alone.sort_unstable();
            alone
        };
        assert_eq!(alone(follows), [false, true], "the second one would meet the first");
        assert_eq!((alone(again), alone(clock)), (vec![true], vec![true]));
        let mut alone = world.db.ok(rawdoc! { "liveRefresh": again }).await;
        assert_eq!(alone.get_document("live").unwrap(), &doc! { "changed": true, "how": "fresh" });
        let rows = take_rows(alone.get_document_mut("cursor").unwrap(), "firstBatch");
        assert_eq!(rows, world.fresh(&pushed()).await);
        assert_eq!(world.news(&[follows, again]).await, []);
    });
}

#[test]
fn a_query_of_which_something_is_wrong_is_left_for_itself_and_says_so_then() {
    block_on(async {
        let world = world().await;
        let (of_c, of_d) = (world.open(newest("c", "a")).await, world.open(newest("d", "a")).await);
        world.add("c", &[("a", 8)]).await;
        let unknown = of_d + 1;
        let news = world.news(&[unknown, of_c]).await;
        assert!(is_alone(told_of(&news, unknown).unwrap()));
        assert_eq!(world.db.fails(rawdoc! { "liveRefresh": unknown }).await, (43, "CursorNotFound".to_owned()));
        assert_eq!(rows_told(told_of(&news, of_c).unwrap()), world.fresh(&newest("c", "a")).await);
        world.storage.fails.set(true);
        let news = world.news(&[of_c, of_d]).await;
        assert_eq!(news.iter().map(is_alone).collect::<Vec<_>>(), [true, true]);
        assert_eq!(world.db.fails(rawdoc! { "liveRefresh": of_c }).await.0, 1);
        world.storage.fails.set(false);
        // What was not read changes nothing.
        world.add("c", &[("a", 9)]).await;
        let news = world.news(&[of_c, of_d]).await;
        assert_eq!(news.len(), 1);
        assert_eq!(rows_told(&news[0]), world.fresh(&newest("c", "a")).await);
        let bad = world.db.fails(rawdoc! { "liveRefresh": ["one"] }).await;
        assert_eq!(bad, (14, "TypeMismatch".to_owned()));
        assert_eq!(world.db.ok(rawdoc! { "liveRefresh": [] }).await.get_array("live").unwrap().len(), 0);
    });
}

#[test]
fn a_collection_that_others_have_dropped_leaves_its_queries_for_themselves() {
    block_on(async {
        let world = world().await;
        let (of_c, of_d) = (world.open(newest("c", "a")).await, world.open(newest("d", "a")).await);
        let other = Db::open(Rc::clone(&world.storage) as Rc<dyn Storage>, TestEnv::new(2));
        other.ok(rawdoc! { "drop": "c" }).await;
        let news = world.news(&[of_c, of_d]).await;
        assert!(news.len() == 1 && is_alone(told_of(&news, of_c).unwrap()));
        let mut alone = world.db.ok(rawdoc! { "liveRefresh": of_c }).await;
        assert_eq!(take_rows(alone.get_document_mut("cursor").unwrap(), "firstBatch"), [] as [Document; 0]);
        // Of a collection that does not exist, nothing is new.
        assert_eq!(world.news(&[of_c, of_d]).await, []);
        other.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        world.add("c", &[("a", 1)]).await;
        let news = world.news(&[of_c]).await;
        assert!(is_alone(&news[0]));
    });
}
