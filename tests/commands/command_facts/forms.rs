//! One collection in every stored form, and the commands that most facts need.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};

use timepail::bucket::BucketFormat;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, checks, multiset, raw};

/// The forms of stored rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// In the journal.
    Journal,
    /// In buckets of a version.
    Buckets(u8),
    /// The first half in buckets, the others in the journal.
    Both,
}

pub const FORMS: [Form; 5] = [Form::Journal, Form::Buckets(1), Form::Buckets(2), Form::Buckets(3), Form::Both];

/// A collection `c`, the context that has filled it, and one that has not.
pub struct Filled {
    pub storage: Rc<dyn Storage>,
    pub db: Db,
    pub other: Db,
    pub form: Form,
}

pub fn at(ms: i64) -> DateTime {
    DateTime::from_millis(ms)
}

/// The options of most facts.
pub fn tagged() -> Document {
    doc! { "timeField": "t", "metaField": "tag" }
}

impl Filled {
    pub async fn new(form: Form, create: Document, rows: &[Document]) -> Filled {
        let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let format = if form == Form::Buckets(1) { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let db = Db::open_as(format, Rc::clone(&storage), Rc::clone(&env));
        let other = Db::open_as(format, Rc::clone(&storage), env);
        db.ok(raw(&doc! { "create": "c" }.into_iter().chain(create).collect())).await;
        let filled = Filled { storage, db, other, form };
        let (first, second) = rows.split_at(rows.len().div_ceil(2));
        match form {
            // The first measurement of each series opens its bucket; of the others, later ones are folded before earlier ones.
            Form::Buckets(3) => {
                let is_first = |at: usize| rows[..at].iter().all(|row| row.get("tag") != rows[at].get("tag"));
                let (opening, rest): (Vec<_>, Vec<_>) =
                    rows.iter().cloned().enumerate().partition(|(at, _)| is_first(*at));
                let (earlier, later) = rest.split_at(rest.len() / 2);
                for part in [&opening[..], later, earlier] {
                    let part: Vec<Document> = part.iter().map(|(_, row)| row.clone()).collect();
                    filled.insert(&part).await;
                    filled.flush().await;
                }
            }
            Form::Both => {
                filled.insert(first).await;
                filled.flush().await;
                filled.insert(second).await;
            }
            _ => filled.insert(rows).await,
        }
        if matches!(form, Form::Buckets(_)) {
            filled.flush().await;
        }
        filled
    }

    /// A collection with a metaField `tag`, in each form.
    pub async fn each(rows: &[Document]) -> Vec<Filled> {
        let mut all = Vec::new();
        for form in FORMS {
            all.push(Filled::new(form, doc! { "timeseries": tagged() }, rows).await);
        }
        all
    }

    pub async fn insert(&self, rows: &[Document]) {
        if !rows.is_empty() {
            let reply = self.db.insert("c", &rows.iter().map(raw).collect::<Vec<_>>()).await;
            assert!(!reply.contains_key("writeErrors"), "{reply}");
        }
    }

    pub async fn flush(&self) {
        self.db.ok(rawdoc! { "flush": 1 }).await;
    }

    pub async fn ok(&self, command: Document) -> Document {
        self.db.ok(raw(&command)).await
    }

    pub async fn fails(&self, command: Document) -> i32 {
        self.db.fails(raw(&command)).await.0
    }

    pub async fn index(&self, key: Document, more: Document) {
        let name = name_of(&key);
        let spec: Document = doc! { "key": key, "name": name }.into_iter().chain(more).collect();
        self.ok(doc! { "createIndexes": "c", "indexes": [spec] }).await;
    }

    /// The error code of a refused index.
    pub async fn refused(&self, key: Document, more: Document) -> i32 {
        let spec: Document = doc! { "key": key, "name": "refused" }.into_iter().chain(more).collect();
        self.fails(doc! { "createIndexes": "c", "indexes": [spec] }).await
    }

    /// The indexes listed for a name: `c`, or that of its buckets.
    pub async fn listed(&self, name: &str) -> Vec<Document> {
        let reply = self.ok(doc! { "listIndexes": name }).await;
        let cursor = reply.get_document("cursor").unwrap();
        assert_eq!(cursor.get_str("ns").unwrap(), format!("test.{name}"));
        cursor.get_array("firstBatch").unwrap().iter().map(|spec| spec.as_document().unwrap().clone()).collect()
    }

    /// The `_id`s that a find returns, equal in both contexts.
    pub async fn ids(&self, more: Document) -> Vec<i32> {
        let find: Document = doc! { "find": "c" }.into_iter().chain(more).collect();
        let mut answers = Vec::new();
        for db in [&self.db, &self.other] {
            let rows = db.find(raw(&find)).await;
            let mut ids: Vec<i32> = rows.iter().map(|row| row.get_i32("_id").unwrap()).collect();
            ids.sort_unstable();
            answers.push(ids);
        }
        assert_eq!(answers[0], answers[1], "{find} in {:?}", self.form);
        answers.swap_remove(0)
    }

    pub async fn all(&self) -> Vec<i32> {
        self.ids(doc! {}).await
    }

    /// How many measurements a delete removes.
    pub async fn delete(&self, q: Document, limit: i32) -> i32 {
        let reply = self.ok(doc! { "delete": "c", "deletes": [{ "q": q, "limit": limit }] }).await;
        assert!(!reply.contains_key("writeErrors"), "{reply}");
        reply.get_i32("n").unwrap()
    }

    /// How many measurements an update has matched and modified.
    pub async fn update(&self, q: Document, u: Document, more: Document) -> (i32, i32) {
        let statement: Document = doc! { "q": q, "u": u, "multi": true }.into_iter().chain(more).collect();
        let reply = self.ok(doc! { "update": "c", "updates": [statement] }).await;
        assert!(!reply.contains_key("writeErrors"), "{reply}");
        (reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap())
    }

    /// The metadata of measurements, in order of their `_id`.
    pub async fn tags(&self) -> Vec<Option<Bson>> {
        let rows = self.other.find(rawdoc! { "find": "c", "sort": { "_id": 1 } }).await;
        rows.iter().map(|row| row.get("tag").cloned()).collect()
    }

    /// Closes the buckets of a series, after a fold.
    pub async fn close(&self, tag: impl Into<Bson>) {
        let filter = doc! { "meta": tag.into() };
        let raw_name = "system.buckets.c";
        let mut buckets = self.db.find(raw(&doc! { "find": raw_name, "filter": filter.clone() })).await;
        let deletes = vec![doc! { "q": filter, "limit": 0 }];
        self.ok(doc! { "delete": raw_name, "deletes": deletes, "unsafeBucketWrites": true }).await;
        for bucket in &mut buckets {
            bucket.get_document_mut("control").unwrap().insert("closed", true);
        }
        let reply = self.ok(doc! { "insert": raw_name, "documents": buckets, "unsafeBucketWrites": true }).await;
        assert!(!reply.contains_key("writeErrors"), "{reply}");
    }

    /// Asserts that the collection is consistent, now and after a fold.
    pub async fn sound(&self) {
        let before = checks::sound(&self.other, "c", Writers::Several).await;
        let after = checks::sound_when_folded(&*self.storage, &self.other, "c", Writers::Several).await;
        assert_eq!(multiset(&before), multiset(&after));
    }
}

/// The default name of an index, as drivers build it.
pub fn name_of(key: &Document) -> String {
    let parts: Vec<String> = key
        .iter()
        .map(|(name, value)| match value {
            Bson::String(kind) => format!("{name}_{kind}"),
            value => format!("{name}_{value}"),
        })
        .collect();
    parts.join("_")
}
