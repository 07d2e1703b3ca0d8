//! Pipeline stages, each with its rows in the journal and in buckets.

mod buckets;
mod decimals;
mod downsample;
mod explained;
mod facets;
mod gaps;
mod lookups;
mod others;
mod refused;
mod small_buckets;
mod sources;
mod spread;
mod unpack;
mod unwound;
mod variables;
mod windows;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;

use crate::support::Db;
use crate::support::pipelines::{code, run, run_in};
use crate::support::weather::{database, weather};

/// Calls `check` with a collection of `rows`, first in the journal and then in buckets.
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

/// The values of a field; undefined if it is missing.
fn values(rows: &[Document], field: &str) -> Vec<Bson> {
    rows.iter().map(|row| row.get(field).cloned().unwrap_or(Bson::Undefined)).collect()
}

/// Bson values of a list.
macro_rules! list {
    ($($value:expr),* $(,)?) => { vec![$(bson::Bson::from($value)),*] };
}
pub(crate) use list;
