//! A small collection that many tests begin with: temperatures of stations.

use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use timepail::storage::memory::MemoryStorage;

use super::{Db, TestEnv};

/// A database in memory.
pub fn database() -> Db {
    Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1))
}

/// Creates the collection.
pub async fn weather(db: &Db) {
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } }).await;
}

/// A measurement of it.
pub fn reading(ms: i64, station: &str, temp: f64) -> RawDocumentBuf {
    rawdoc! { "at": DateTime::from_millis(ms), "station": station, "temp": temp }
}
