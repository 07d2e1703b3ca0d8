//! Updates of metadata: refusals, changes in every stored form, and contexts unaware of an update.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawBson, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::closing::close_buckets;
use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, checks, raw};

fn row(n: i64, meta: impl Into<Bson>) -> RawDocumentBuf {
    raw(&doc! { "t": DateTime::from_millis(n * 1000), "m": meta.into(), "n": n })
}

async fn create(db: &Db) {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
}

async fn flush(db: &Db) {
    db.ok(rawdoc! { "flush": 1 }).await;
}

fn statement(query: Document, update: impl Into<Bson>) -> Document {
    doc! { "q": query, "u": update.into(), "multi": true }
}

async fn update(db: &Db, statement: Document) -> Document {
    db.ok(raw(&doc! { "update": "c", "updates": [statement] })).await
}

/// How many measurements matched and how many were changed.
async fn counts(db: &Db, query: Document, change: impl Into<Bson>) -> (i32, i32) {
    let reply = update(db, statement(query, change)).await;
    assert!(!reply.contains_key("writeErrors"), "{reply}");
    (reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap())
}

/// The `n` of the matches of a filter.
async fn found(db: &Db, filter: Document) -> Vec<i64> {
    let rows = db.find(rawdoc! { "find": "c", "filter": raw(&filter), "sort": { "n": 1 } }).await;
    rows.iter().map(|row| row.get_i64("n").unwrap()).collect()
}

/// Two contexts on one storage.
async fn two() -> (Rc<dyn Storage>, Db, Db) {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(1);
    let (a, b) = (Db::open(Rc::clone(&storage), Rc::clone(&env)), Db::open(Rc::clone(&storage), env));
    create(&a).await;
    (storage, a, b)
}

#[test]
fn an_update_changes_the_metadata_in_every_stored_form() {
    block_on(async {
        for (format, folds, backward) in [
            (BucketFormat::Compressed, [false, false], false),
            (BucketFormat::Compressed, [true, true], false),
            (BucketFormat::Compressed, [true, true], true),
            (BucketFormat::Compressed, [true, false], false),
            (BucketFormat::Uncompressed, [true, true], false),
        ] {
            let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
            let env = TestEnv::new(1);
            let db = Db::open_as(format, Rc::clone(&storage), Rc::clone(&env));
            create(&db).await;
            for (half, fold) in folds.into_iter().enumerate() {
                for at in 0..4 {
                    let n = half as i64 * 4 + if backward { 3 - at } else { at };
                    let rows = [row(n, doc! { "b": 1, "a": "x" }), row(n + 100, "y"), row(n + 200, 7)];
                    db.insert("c", &rows).await;
                    if fold {
                        flush(&db).await;
                    }
                }
            }
            let reader = Db::open_as(format, Rc::clone(&storage), env);
            assert_eq!(counts(&db, doc! { "m.b": 1 }, doc! { "$set": { "m.c": { "z": 1, "y": 2 } } }).await, (8, 8));
            assert_eq!(counts(&reader, doc! { "m": { "$in": ["y", 7] } }, doc! { "$set": { "m": 7 } }).await, (16, 8));
            for db in [&db, &reader] {
                let whole = doc! { "a": "x", "b": 1, "c": { "y": 2, "z": 1 } };
                assert_eq!(found(db, doc! { "m": whole }).await, (0..8).collect::<Vec<_>>(), "{format:?} {folds:?}");
                assert_eq!(found(db, doc! { "m": "y" }).await, Vec::<i64>::new());
                assert_eq!(found(db, doc! { "m": 7 }).await, (100..108).chain(200..208).collect::<Vec<_>>());
            }
            checks::sound_when_folded(&*storage, &reader, "c", Writers::Several).await;
            assert_eq!(counts(&db, doc! { "m": 7 }, doc! { "$unset": { "m": "" } }).await, (16, 16));
            assert_eq!(found(&reader, doc! { "m": { "$exists": false } }).await.len(), 16);
            checks::sound_when_folded(&*storage, &db, "c", Writers::Several).await;
        }
    });
}

#[test]
fn an_update_of_other_fields_is_a_write_error_and_changes_nothing() {
    block_on(async {
        let (_, db, _) = two().await;
        db.insert("c", &[row(1, "a")]).await;
        let set = || doc! { "$set": { "m": "b" } };
        let good = || statement(doc! {}, set());
        let with = |more: Document| good().into_iter().chain(more).collect::<Document>();
        for (wrong, code) in [
            (doc! { "q": {}, "u": set() }, 72),
            (doc! { "q": { "x": 1 }, "u": set(), "multi": false }, 72),
            (with(doc! { "upsert": true }), 72),
            (statement(doc! { "n": 1 }, set()), 72),
            (statement(doc! { "$or": [{ "m": "a" }, { "mm": 1 }] }, set()), 72),
            (statement(doc! { "$expr": { "$eq": ["$m", "a"] } }, set()), 72),
            (statement(doc! { "$jsonSchema": { "required": ["n"] } }, set()), 72),
            (statement(doc! {}, bson!([{ "$set": { "m": 1 } }])), 72),
            (statement(doc! {}, doc! {}), 72),
            (statement(doc! {}, doc! { "m": 1 }), 72),
            (statement(doc! {}, doc! { "$set": { "m": 1, "n": 1 } }), 72),
            (statement(doc! {}, doc! { "$rename": { "m": "mm" } }), 72),
            (statement(doc! { "m": { "$nonsense": 1 } }, set()), 2),
            (statement(doc! {}, doc! { "$nonsense": { "m": 1 } }), 9),
            (statement(doc! {}, doc! { "$inc": { "m": 1 } }), 14),
            (statement(doc! {}, doc! { "$set": { "m.x": 1 } }), 28),
            (with(doc! { "hint": "nonsense" }), 2),
            (with(doc! { "arrayFilters": [{ "i": 1 }] }), 9),
        ] {
            let reply = update(&db, wrong.clone()).await;
            let errors = reply.get_array("writeErrors").unwrap_or_else(|_| panic!("{wrong} is fine: {reply}"));
            assert_eq!(errors[0].as_document().unwrap().get_i32("code").ok(), Some(code), "{wrong}: {reply}");
            assert_eq!((reply.get_i32("n").ok(), reply.get_i32("nModified").ok()), (Some(0), Some(0)));
        }
        assert_eq!(found(&db, doc! { "m": "a" }).await, [1]);
        db.ok(rawdoc! { "create": "plain", "timeseries": { "timeField": "t" } }).await;
        let none = db.ok(raw(&doc! { "update": "plain", "updates": [good()] })).await;
        assert_eq!(none.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("code").ok(), Some(72));
        let missing = db.ok(raw(&doc! { "update": "missing", "updates": [good()] })).await;
        assert_eq!((missing.get_i32("n").ok(), missing.contains_key("writeErrors")), (Some(0), false));
    });
}

#[test]
fn ordered_updates_stop_at_the_first_error_and_unordered_ones_continue() {
    block_on(async {
        for (ordered, expected) in [(true, 1), (false, 2)] {
            let (_, db, _) = two().await;
            db.insert("c", &[row(1, 1), row(2, 2)]).await;
            let bad = statement(doc! { "n": 1 }, doc! { "$set": { "m": 5 } });
            let good = |m: i32| statement(doc! { "m": m }, doc! { "$inc": { "m": 10 } });
            let command = doc! { "update": "c", "updates": [good(1), bad, good(2)], "ordered": ordered };
            let reply = db.ok(raw(&command)).await;
            assert_eq!(reply.get_i32("n").ok(), Some(expected), "{reply}");
            assert_eq!(
                reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("index").ok(),
                Some(1)
            );
            assert_eq!(found(&db, doc! { "m": 11 }).await, [1]);
        }
    });
}

#[test]
fn statement_options_select_what_is_updated_and_variables_are_not_used_in_updates() {
    block_on(async {
        let (_, db, _) = two().await;
        db.insert("c", &[row(1, "café"), row(2, "cafe"), row(3, "cafE"), row(4, bson!([1, 5, 9]))]).await;
        let set = || doc! { "$set": { "m": "$$mine" } };
        let collated = statement(doc! { "m": "cafe" }, set())
            .into_iter()
            .chain(doc! { "collation": { "locale": "fr", "strength": 1 } })
            .collect::<Document>();
        let command = doc! { "update": "c", "updates": [collated], "let": { "mine": 1 } };
        assert_eq!(db.ok(raw(&command)).await.get_i32("n").ok(), Some(3));
        assert_eq!(found(&db, doc! { "m": "$$mine" }).await, [1, 2, 3]);
        for hint in [bson!("m_1_t_1"), bson!({ "m": 1, "t": 1 }), bson!({ "$natural": -1 })] {
            let hinted = statement(doc! { "m": "$$mine" }, doc! { "$set": { "m": "$$mine" } });
            let hinted = hinted.into_iter().chain(doc! { "hint": hint }).collect::<Document>();
            assert_eq!(update(&db, hinted).await.get_i32("n").ok(), Some(3));
        }
        let filtered = statement(doc! { "m": 5 }, doc! { "$set": { "m.$[i]": 0 }, "$comment": {} });
        assert_eq!(update(&db, filtered).await.get_array("writeErrors").ok().map(Vec::len), Some(1));
        let filtered = statement(doc! { "m": 5 }, doc! { "$set": { "m.$[i]": 0 } });
        let filtered = filtered.into_iter().chain(doc! { "arrayFilters": [{ "i": { "$gte": 5 } }] }).collect();
        assert_eq!(update(&db, filtered).await.get_i32("nModified").ok(), Some(1));
        assert_eq!(counts(&db, doc! { "m": 1 }, doc! { "$inc": { "m.$": 7 } }).await, (1, 1));
        assert_eq!(found(&db, doc! { "m": [8, 0, 0] }).await, [4]);
        let schema = doc! { "$jsonSchema": { "required": ["m"], "properties": { "m": { "bsonType": "array" } } } };
        assert_eq!(counts(&db, schema, doc! { "$set": { "m": "was an array" } }).await, (1, 1));
    });
}

#[test]
fn measurements_inserted_after_an_update_form_a_separate_series() {
    block_on(async {
        for folds in [false, true] {
            let (storage, db, other) = two().await;
            db.insert("c", &[row(1, "old"), row(2, "new")]).await;
            if folds {
                flush(&db).await;
            }
            assert_eq!(counts(&db, doc! { "m": "old" }, doc! { "$set": { "m": "new" } }).await, (1, 1));
            db.insert("c", &[row(3, "old"), row(4, "new")]).await;
            for db in [&db, &other] {
                assert_eq!(found(db, doc! { "m": "new" }).await, [1, 2, 4]);
                assert_eq!(found(db, doc! { "m": "old" }).await, [3]);
            }
            flush(&db).await;
            checks::sound_when_folded(&*storage, &other, "c", Writers::One).await;
        }
    });
}

/// A context inserts into its open bucket after another context has changed the metadata of that bucket.
async fn overtaken() -> (Rc<dyn Storage>, Db, Db) {
    let (storage, a, b) = two().await;
    a.insert("c", &[row(1, "old"), row(2, "old")]).await;
    flush(&a).await;
    assert_eq!(counts(&b, doc! { "m": "old" }, doc! { "$set": { "m": "new" } }).await, (2, 2));
    a.insert("c", &[row(3, "old")]).await;
    a.insert("c", &[row(4, "old"), row(5, "other")]).await;
    (storage, a, b)
}

#[test]
fn rows_of_a_context_unaware_of_an_update_keep_their_metadata_in_a_separate_bucket() {
    block_on(async {
        for folder in 0..2 {
            let (storage, a, b) = overtaken().await;
            for db in [&a, &b] {
                assert_eq!(found(db, doc! { "m": "new" }).await, [1, 2]);
                assert_eq!(found(db, doc! { "m": "old" }).await, [3, 4]);
                assert_eq!(found(db, doc! {}).await, [1, 2, 3, 4, 5]);
                checks::sound(db, "c", Writers::Several).await;
            }
            let stored = checks::keys(&*storage, b"B").await.len();
            if folder == 0 {
                flush(&a).await;
            } else {
                b.ok(rawdoc! { "foldJournals": 1 }).await;
            }
            assert_eq!(checks::keys(&*storage, b"B").await.len(), stored + 2);
            for db in [&a, &b] {
                assert_eq!(found(db, doc! { "m": "new" }).await, [1, 2]);
                assert_eq!(found(db, doc! { "m": "old" }).await, [3, 4]);
            }
            // If it folded itself, it knows of the update now.
            a.insert("c", &[row(6, "old"), row(7, "new")]).await;
            flush(&a).await;
            assert_eq!(found(&b, doc! { "m": "old" }).await, [3, 4, 6]);
            assert_eq!(found(&b, doc! { "m": "new" }).await, [1, 2, 7]);
            checks::sound_when_folded(&*storage, &b, "c", Writers::Several).await;
        }
    });
}

#[test]
fn a_cursor_from_before_a_fold_finds_rows_moved_to_a_separate_bucket_once() {
    block_on(async {
        for filter in [doc! {}, doc! { "m": "old" }, doc! { "m": { "$in": ["old", "new"] } }] {
            for sort in [doc! {}, doc! { "t": 1 }, doc! { "t": -1 }, doc! { "m": 1, "t": 1 }] {
                let (storage, a, b) = overtaken().await;
                let expected = found(&b, filter.clone()).await;
                // A context that has read the buckets before would read them from memory.
                let reader = Db::open(storage, TestEnv::new(3));
                let mut find = doc! { "find": "c", "filter": filter.clone(), "batchSize": 0 };
                if !sort.is_empty() {
                    find.insert("sort", sort.clone());
                }
                let mut reply = reader.ok(raw(&find)).await;
                let mut seen = crate::support::take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch");
                flush(&a).await;
                a.insert("c", &[row(9, "new")]).await;
                // The bucket now has later rows than those.
                a.ok(rawdoc! { "flush": 1 }).await;
                let mut id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
                while id != 0 {
                    let mut reply = reader.ok(rawdoc! { "getMore": id, "collection": "c", "batchSize": 1 }).await;
                    let cursor = reply.get_document_mut("cursor").unwrap();
                    seen.extend(crate::support::take_rows(cursor, "nextBatch"));
                    id = cursor.get_i64("id").unwrap();
                }
                let mut seen: Vec<i64> = seen.iter().map(|row| row.get_i64("n").unwrap()).filter(|n| *n < 9).collect();
                seen.sort_unstable();
                assert_eq!(seen, expected, "{filter} {sort}");
            }
        }
    });
}

#[test]
fn updating_there_and_back_keeps_rows_of_unaware_contexts_in_their_series() {
    block_on(async {
        let (storage, a, b) = overtaken().await;
        assert_eq!(counts(&b, doc! { "m": "new" }, doc! { "$set": { "m": "old" } }).await, (2, 2));
        assert_eq!(found(&a, doc! { "m": "old" }).await, [1, 2, 3, 4]);
        assert_eq!(counts(&b, doc! { "m": "old" }, doc! { "$set": { "m": "newer" } }).await, (4, 4));
        flush(&a).await;
        assert_eq!(found(&a, doc! { "m": "newer" }).await, [1, 2, 3, 4]);
        checks::sound_when_folded(&*storage, &a, "c", Writers::Several).await;
    });
}

/// Storage in which another context folds before one of the commits.
struct Between {
    inner: Rc<dyn Storage>,
    commits_left: Cell<usize>,
    other: RefCell<Option<Db>>,
}

impl Storage for Between {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.commits_left.set(self.commits_left.get().saturating_sub(1));
        let other = if self.commits_left.get() == 0 { self.other.take() } else { None };
        Box::pin(async move {
            if let Some(other) = other {
                flush(&other).await;
            }
            self.inner.commit(changes).await
        })
    }
}

#[test]
fn an_update_after_a_conflict_applies_once() {
    block_on(async {
        let memory: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let first = Db::open(Rc::clone(&memory), Rc::clone(&env));
        create(&first).await;
        let rows: Vec<_> = (0..600).map(|n| row(n, doc! { "id": n, "x": 0 })).collect();
        first.insert("c", &rows).await;
        flush(&first).await;
        let other = Db::open(Rc::clone(&memory), Rc::clone(&env));
        other.insert("c", &[row(1000, "else")]).await;
        // One of three pages is written before the other context folds.
        let between = Between { inner: memory, commits_left: Cell::new(2), other: RefCell::new(Some(other)) };
        let between = Rc::new(between);
        let db = Db::open(Rc::clone(&between) as Rc<dyn Storage>, env);
        assert_eq!(counts(&db, doc! { "m.x": { "$exists": true } }, doc! { "$inc": { "m.x": 1 } }).await, (600, 600));
        assert!(between.other.borrow().is_none(), "nobody has folded meanwhile");
        assert_eq!(found(&db, doc! { "m.x": 1 }).await.len(), 600);
    });
}

#[test]
fn closed_buckets_are_found_but_not_updated_or_deleted() {
    block_on(async {
        let (storage, a, _) = two().await;
        a.insert("c", &[row(1, "a"), row(2, "b")]).await;
        flush(&a).await;
        close_buckets(&*storage, &|| true).await;
        let db = Db::open(Rc::clone(&storage), TestEnv::new(2));
        assert_eq!(counts(&db, doc! {}, doc! { "$set": { "m": "x" } }).await, (0, 0));
        for limit in [0, 1] {
            let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": limit }] }).await;
            assert_eq!(reply.get_i32("n").ok(), Some(0));
        }
        assert_eq!(found(&db, doc! {}).await, [1, 2]);
        db.insert("c", &[row(3, "a")]).await;
        let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        assert_eq!((reply.get_i32("n").ok(), found(&db, doc! {}).await), (Some(1), vec![1, 2]));
    });
}

#[test]
fn a_delete_takes_a_hint_at_an_existing_index_only() {
    block_on(async {
        let (_, db, _) = two().await;
        let hinted = async |hint: RawBson| {
            db.insert("c", &[row(1, "a")]).await;
            let statement = rawdoc! { "q": { "m": "a" }, "limit": 0, "hint": hint };
            db.ok(rawdoc! { "delete": "c", "deletes": [statement] }).await
        };
        for hint in [rawdoc! { "$natural": 1 }, rawdoc! { "$natural": -1 }, rawdoc! { "m": 1, "t": 1 }] {
            assert_eq!(hinted(hint.into()).await.get_i32("n").ok(), Some(1));
        }
        assert_eq!(hinted("m_1_t_1".into()).await.get_i32("n").ok(), Some(1));
        for hint in ["nonsense".into(), rawdoc! { "n": 1 }.into(), rawdoc! { "$natural": 2 }.into()] {
            let reply = hinted(hint).await;
            let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
            assert_eq!((error.get_i32("code").ok(), reply.get_i32("n").ok()), (Some(2), Some(0)));
        }
        let statement = rawdoc! { "q": {}, "limit": 0, "hint": 1 };
        assert_eq!(db.fails(rawdoc! { "delete": "c", "deletes": [statement] }).await.0, 9);
    });
}
