//! Closed buckets, as a server leaves them behind.

use bson::Document;
use timepail::engine::stored_bucket::StoredBucket;
use timepail::storage::{Changeset, KeyRange, Page, Storage};
use timepail::value::DocBuf;

use super::raw;

/// Marks the buckets selected by `which` as closed. Only contexts opened afterwards know.
pub async fn close_buckets(storage: &dyn Storage, which: &dyn Fn() -> bool) {
    let range = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    for entry in storage.scan(&[range], Page { entries_max: 10_000, keys_only: false }).await.unwrap() {
        if !which() {
            continue;
        }
        let stored = StoredBucket::decode(entry.value).unwrap();
        let mut document = Document::from_reader(stored.document.view().as_bytes()).unwrap();
        document.get_document_mut("control").unwrap().insert("closed", true);
        let document = DocBuf::parse(raw(&document).into_bytes()).unwrap();
        let mut changes = Changeset::new();
        changes.put(entry.key, StoredBucket::encode(&stored.coverage, document.view()));
        storage.commit(changes).await.unwrap();
    }
}
