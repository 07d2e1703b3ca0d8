//! Pipelines over the collection `weather`.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;

use super::weather::{database, reading, weather};
use super::{Db, take_rows};

const HOUR_MS: i64 = 3_600_000;

/// Runs a pipeline to its end, in batches of `batch`.
pub async fn run_in(db: &Db, pipeline: Vec<Document>, batch: i32) -> Vec<Document> {
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

pub async fn run(db: &Db, pipeline: Vec<Document>) -> Vec<Document> {
    let rows = run_in(db, pipeline.clone(), 101).await;
    assert_eq!(run_in(db, pipeline, 2).await, rows, "in other batches");
    rows
}

/// The error code of a pipeline of one stage.
pub async fn code(db: &Db, stage: Document) -> i32 {
    let command = doc! { "aggregate": "weather", "pipeline": [stage], "cursor": {} };
    db.fails(RawDocumentBuf::try_from(&command).unwrap()).await.0
}

/// Readings of two stations, four per hour; `check` runs with them in the journal and in buckets.
pub fn with_readings(check: impl AsyncFn(&Db)) {
    block_on(async {
        let db = database();
        weather(&db).await;
        let readings: Vec<RawDocumentBuf> = (0..24)
            .map(|n| reading(n / 2 * HOUR_MS / 4, if n % 2 == 0 { "a" } else { "b" }, f64::from(n as i32)))
            .collect();
        db.insert("weather", &readings).await;
        for _ in 0..2 {
            check(&db).await;
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

/// A row for each of the values, as `v` with its number as `n`, and one without `v`.
pub async fn with_values(values: &[Bson]) -> Db {
    let db = database();
    weather(&db).await;
    let at = DateTime::from_millis(0);
    let mut rows: Vec<Document> = values.iter().map(|value| doc! { "at": at, "v": value }).collect();
    rows.push(doc! { "at": at });
    for (n, row) in (0..).zip(&mut rows) {
        row.insert("n", n);
    }
    db.insert("weather", &rows.iter().map(|row| RawDocumentBuf::try_from(row).unwrap()).collect::<Vec<_>>()).await;
    db
}
