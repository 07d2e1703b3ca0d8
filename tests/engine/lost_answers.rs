//! Commits that took place although their answer was lost: afterwards all contexts find the same.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::faults::{Faulty, Rates};
use crate::support::{Db, Random, TestEnv, multiset};

const LOST: Rates = Rates { refused: 0, ambiguous: 100, cut_off: 0, unread: 0 };

fn reading(n: i64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(n * 60_000), "m": "a", "n": n }
}

async fn all(db: &Db) -> Vec<Document> {
    db.find(rawdoc! { "find": "c" }).await
}

/// A context that has inserted three measurements, and its storage.
async fn three_readings() -> (Rc<Faulty>, Db, Db) {
    let faulty = Faulty::new(Rc::new(MemoryStorage::new()), Random::new(1), false);
    let [db, other] = [1, 2].map(|seed| Db::open(faulty.clone(), TestEnv::new(seed)));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db.insert("c", &[reading(1), reading(2)]).await;
    db.insert("c", &[reading(3)]).await;
    (faulty, db, other)
}

/// Asserts that both contexts find the same, before and after a fold.
async fn agree(db: &Db, other: &Db, count: usize) {
    for _ in 0..2 {
        assert_eq!(multiset(&all(db).await), multiset(&all(other).await));
        assert_eq!(all(db).await.len(), count);
        let n = db.ok(rawdoc! { "count": "c", "query": doc_of(doc! { "m": "a" }) }).await.get_i32("n").unwrap();
        assert_eq!(n as usize, count);
        db.ok(rawdoc! { "flush": 1 }).await;
        other.ok(rawdoc! { "foldJournals": 1 }).await;
    }
}

fn doc_of(document: Document) -> RawDocumentBuf {
    crate::support::raw(&document)
}

#[test]
fn a_fold_whose_answer_was_lost_doubles_nothing() {
    block_on(async {
        let (faulty, db, other) = three_readings().await;
        faulty.set(LOST);
        assert_eq!(db.fails(rawdoc! { "flush": 1 }).await.1, "OperationFailed");
        faulty.set(Rates::default());
        agree(&db, &other, 3).await;
    });
}

#[test]
fn an_insert_whose_answer_was_lost_is_stored_once() {
    block_on(async {
        let (faulty, db, other) = three_readings().await;
        faulty.set(LOST);
        assert!(db.insert("c", &[reading(4)]).await.contains_key("errmsg"));
        faulty.set(Rates::default());
        agree(&db, &other, 4).await;
        db.insert("c", &[reading(5)]).await;
        agree(&db, &other, 5).await;
    });
}

#[test]
fn measurements_that_moved_to_other_metadata_are_found_although_the_answer_was_lost() {
    block_on(async {
        let (faulty, db, other) = three_readings().await;
        let series = rawdoc! { "timeField": "t", "metaField": "m" };
        for is_folded in [true, false] {
            db.ok(rawdoc! { "drop": "c" }).await;
            db.ok(rawdoc! { "create": "c", "timeseries": series.clone(), "dedupe": {} }).await;
            db.insert("c", &[reading(1), reading(2), reading(3)]).await;
            if is_folded {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            // A record of another series stays in the journal.
            db.insert("c", &[rawdoc! { "t": DateTime::from_millis(0), "m": "c", "n": 0 }]).await;
            all(&db).await;
            let moved = rawdoc! { "q": { "m": "a" }, "u": { "$set": { "m": "b" } }, "multi": true };
            let back = rawdoc! { "q": { "m": "b" }, "u": { "$set": { "m": "a" } }, "multi": true };
            for update in [moved, back] {
                faulty.set(LOST);
                for _ in 0..2 {
                    db.command(rawdoc! { "update": "c", "updates": [update.clone()] }).await;
                    // The context learns the new epoch, but cannot read the record that began with it.
                    faulty.set_unfetched(true);
                    db.command(rawdoc! { "find": "c" }).await;
                    faulty.set_unfetched(false);
                    assert_eq!(all(&db).await.len(), 4);
                }
                faulty.set(Rates::default());
                db.ok(rawdoc! { "update": "c", "updates": [update] }).await;
            }
            db.ok(rawdoc! { "update": "c", "updates": [{ "q": { "m": "c" }, "u": { "$set": { "m": "a" } }, "multi": true }] }).await;
            agree(&db, &other, 4).await;
            db.insert("c", &[reading(4)]).await;
            agree(&db, &other, 5).await;
        }
    });
}

#[test]
fn a_delete_whose_answer_was_lost_restores_nothing() {
    block_on(async {
        let (faulty, db, other) = three_readings().await;
        db.ok(rawdoc! { "flush": 1 }).await;
        db.insert("c", &[reading(4)]).await;
        all(&db).await;
        faulty.set(LOST);
        for _ in 0..4 {
            let filter = rawdoc! { "t": { "$lt": DateTime::from_millis(150_000) } };
            db.command(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
        }
        faulty.set(Rates::default());
        agree(&db, &other, 2).await;
    });
}
