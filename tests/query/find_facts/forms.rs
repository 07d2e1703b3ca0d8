//! The same measurements in every stored form, all of which must answer alike.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::{Explained, explain};
use crate::support::{Db, TestEnv, canonical, checks, multiset};

/// Midnight of a day in 2021.
pub const DAY_MS: i64 = 1_612_137_600_000;

/// A number of milliseconds after that midnight.
pub fn at(ms: i64) -> DateTime {
    DateTime::from_millis(DAY_MS + ms)
}

/// Measurements of one series, a second apart; `n` counts them from 1.
pub fn series(documents: &[RawDocumentBuf]) -> Vec<RawDocumentBuf> {
    (1..)
        .zip(documents)
        .map(|(n, document)| joined(&[&rawdoc! { "time": at(1000 * i64::from(n)), "n": n }, document]))
        .collect()
}

/// A document with the fields of several.
pub fn joined(documents: &[&RawDocumentBuf]) -> RawDocumentBuf {
    let mut all = RawDocumentBuf::new();
    for field in documents.iter().flat_map(|document| document.iter_elements()) {
        let field = field.unwrap();
        all.append(field.key(), field.value().unwrap());
    }
    all
}

/// The `n` of measurements.
pub fn numbers(rows: &[Document]) -> Vec<i32> {
    rows.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

/// A collection `c`, several times.
pub struct Forms(Vec<(&'static str, Db)>);

impl Forms {
    /// With `timeField: "time"`, `metaField: "m"` and buckets of an hour.
    pub fn of(rows: &[RawDocumentBuf]) -> Forms {
        Forms::with(&rawdoc! { "timeField": "time", "metaField": "m" }, rows)
    }

    pub fn with(timeseries: &RawDocumentBuf, rows: &[RawDocumentBuf]) -> Forms {
        block_on(Forms::stored(timeseries, rows))
    }

    async fn stored(timeseries: &RawDocumentBuf, rows: &[RawDocumentBuf]) -> Forms {
        let fresh = async |format| {
            let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
            let db = Db::open_as(format, Rc::clone(&storage), TestEnv::new(1));
            db.ok(rawdoc! { "create": "c", "timeseries": timeseries.clone() }).await;
            (storage, db)
        };
        let (journals, journal) = fresh(BucketFormat::Compressed).await;
        insert(&journal, rows).await;
        let unfolded = Db::open(journals, TestEnv::new(2));
        let (folded, buckets) = fresh(BucketFormat::Compressed).await;
        insert(&buckets, rows).await;
        fold(&buckets).await;
        let reopened = Db::open(folded, TestEnv::new(2));
        let (_, plain) = fresh(BucketFormat::Uncompressed).await;
        insert(&plain, rows).await;
        fold(&plain).await;
        // Each measurement is inserted before an earlier one, so the buckets are of version 3.
        let (_, backward) = fresh(BucketFormat::Compressed).await;
        for row in rows.iter().rev() {
            insert(&backward, std::slice::from_ref(row)).await;
            fold(&backward).await;
        }
        let (storage, crowded) = fresh(BucketFormat::Compressed).await;
        crowd(BucketFormat::Compressed, &storage, &crowded, rows).await;
        let (storage, crowded_plain) = fresh(BucketFormat::Uncompressed).await;
        crowd(BucketFormat::Uncompressed, &storage, &crowded_plain, rows).await;
        Forms(vec![
            ("buckets", buckets),
            ("journal", journal),
            ("journal of a closed context", unfolded),
            ("buckets opened again", reopened),
            ("buckets of version 1", plain),
            ("buckets filled backward", backward),
            ("buckets of mixed types", crowded),
            ("buckets of version 1 and mixed types", crowded_plain),
        ])
    }

    /// Asserts that a filter finds exactly these measurements, and that `count` agrees.
    #[track_caller]
    pub fn finds(&self, filter: RawDocumentBuf, expected: &[i32]) {
        for (form, db) in &self.0 {
            let mut found = numbers(&block_on(db.find(rawdoc! { "find": "c", "filter": filter.clone() })));
            found.sort_unstable();
            assert_eq!(found, expected, "{form}: {filter:?}");
            let counted = block_on(db.ok(rawdoc! { "count": "c", "query": filter.clone() }));
            assert_eq!(counted.get_i32("n").unwrap() as usize, expected.len(), "{form}: count of {filter:?}");
        }
    }

    /// The rows of a command; every form must return them in the same order.
    #[track_caller]
    pub fn sorted(&self, find: RawDocumentBuf) -> Vec<Document> {
        let mut answers = self.0.iter().map(|(form, db)| (*form, block_on(db.find(find.clone()))));
        let (_, first) = answers.next().unwrap();
        let canon = |rows: &[Document]| rows.iter().map(canonical).collect::<Vec<_>>();
        for (form, other) in answers {
            assert!(canon(&other) == canon(&first), "{form}: {find:?} finds {other:?}, not {first:?}");
        }
        first
    }

    /// The rows of a command, in any order.
    #[track_caller]
    pub fn unsorted(&self, find: RawDocumentBuf) -> Vec<Document> {
        let mut answers = self.0.iter().map(|(form, db)| (*form, block_on(db.find(find.clone()))));
        let (_, first) = answers.next().unwrap();
        for (form, other) in answers {
            assert!(multiset(&other) == multiset(&first), "{form}: {find:?} finds {other:?}, not {first:?}");
        }
        first
    }

    /// Asserts that a command fails with that code.
    #[track_caller]
    pub fn refuses(&self, command: &RawDocumentBuf, code: i32) {
        for (form, db) in &self.0 {
            assert_eq!(block_on(db.fails(command.clone())).0, code, "{form}: {command:?}");
        }
    }

    /// Every form with its name.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Db)> {
        self.0.iter().map(|(form, db)| (*form, db))
    }

    /// The `explain` of a command on the form with all measurements in buckets.
    pub fn explained(&self, command: RawDocumentBuf) -> Explained {
        block_on(explain(&self.0[0].1, command))
    }

    /// The same for a filter.
    pub fn explained_filter(&self, filter: RawDocumentBuf) -> Explained {
        self.explained(rawdoc! { "find": "c", "filter": filter })
    }

    /// The number of buckets in each form.
    pub fn bucket_counts(&self) -> Vec<usize> {
        self.0.iter().map(|(_, db)| block_on(checks::buckets(db, "c")).len()).collect()
    }
}

async fn insert(db: &Db, rows: &[RawDocumentBuf]) {
    let reply = db.insert("c", rows).await;
    assert!(!reply.contains_key("writeErrors") && reply.get_i32("n").ok() == Some(rows.len() as i32), "{reply}");
}

async fn fold(db: &Db) {
    db.ok(rawdoc! { "flush": 1 }).await;
    db.ok(rawdoc! { "foldJournals": 1 }).await;
}

/// Stores measurements of different types in the same buckets, as contexts do that reopen them at the same time.
async fn crowd(format: BucketFormat, storage: &Rc<dyn Storage>, db: &Db, rows: &[RawDocumentBuf]) {
    let meta_field = checks::options_of(db, "c").await.meta_field;
    let seed = |row: &RawDocumentBuf| {
        let mut seed = rawdoc! { "seed": true };
        for field in row.iter_elements().map(Result::unwrap) {
            if field.key() == "time" || Some(field.key().as_str()) == meta_field.as_deref() {
                seed.append(field.key(), field.value().unwrap());
            }
        }
        seed
    };
    insert(db, &rows.iter().map(seed).collect::<Vec<_>>()).await;
    fold(db).await;
    let open = |n| Db::open_as(format, Rc::clone(storage), TestEnv::new(n));
    let contexts: Vec<Db> = (2..).map(open).take(rows.len()).collect();
    for (context, row) in contexts.iter().zip(rows) {
        // A context does not reopen a bucket of which others have rows in their journals.
        insert(context, &[seed(row)]).await;
        fold(context).await;
    }
    for (context, row) in contexts.iter().zip(rows) {
        insert(context, std::slice::from_ref(row)).await;
    }
    for context in &contexts {
        context.engine.close().await;
    }
    fold(db).await;
    db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "seed": true }, "limit": 0 }] }).await;
}
