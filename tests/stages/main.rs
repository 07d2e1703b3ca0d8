//! Stages of pipelines that have more to them than a few lines, at the command door; each sees its rows in the journal and in buckets.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod buckets;
mod explained;
mod facets;
mod gaps;
mod others;
mod sources;
#[path = "../support/mod.rs"]
mod support;
mod windows;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use support::weather::{database, weather};
use support::{Db, take_rows};

/// Runs a pipeline to its end, in batches of `batch`.
async fn run_in(db: &Db, pipeline: Vec<Document>, batch: i32) -> Vec<Document> {
    let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": { "batchSize": batch } };
    let reply = db.ok(RawDocumentBuf::try_from(&command).unwrap()).await;
    let mut cursor = reply.get_document("cursor").unwrap().clone();
    let mut rows = take_rows(&mut cursor, "firstBatch");
    while cursor.get_i64("id").unwrap() != 0 {
        let id = cursor.get_i64("id").unwrap();
        let more = rawdoc! { "getMore": id, "collection": "weather", "batchSize": batch.max(1) };
        cursor = db.ok(more).await.get_document("cursor").unwrap().clone();
        rows.extend(take_rows(&mut cursor, "nextBatch"));
    }
    rows
}

async fn run(db: &Db, pipeline: Vec<Document>) -> Vec<Document> {
    let rows = run_in(db, pipeline.clone(), 101).await;
    assert_eq!(run_in(db, pipeline, 2).await, rows, "in other batches");
    rows
}

/// The code of a pipeline of one stage that is refused.
async fn code(db: &Db, stage: Document) -> i32 {
    let command = doc! { "aggregate": "weather", "pipeline": [stage], "cursor": {} };
    db.fails(RawDocumentBuf::try_from(&command).unwrap()).await.0
}

/// Shows `check` a collection of `rows`, first in the journal and then in buckets.
fn with_rows(rows: Vec<Document>, check: impl AsyncFn(&Db)) {
    block_on(async {
        let db = database();
        weather(&db).await;
        let rows: Vec<RawDocumentBuf> = rows.iter().map(|row| RawDocumentBuf::try_from(row).unwrap()).collect();
        db.insert("weather", &rows).await;
        for _ in 0..2 {
            check(&db).await;
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

/// A measurement at a second, of a station, with some more fields.
fn row(second: i64, station: &str, more: Document) -> Document {
    let mut row = doc! { "at": at(second), "station": station };
    row.extend(more);
    row
}

fn at(second: i64) -> DateTime {
    DateTime::from_millis(second * 1000)
}

/// The values of a field, missing ones as undefined.
fn values(rows: &[Document], field: &str) -> Vec<Bson> {
    rows.iter().map(|row| row.get(field).cloned().unwrap_or(Bson::Undefined)).collect()
}

/// Bson values of a list.
macro_rules! list {
    ($($value:expr),* $(,)?) => { vec![$(bson::Bson::from($value)),*] };
}
pub(crate) use list;
