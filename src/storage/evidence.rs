//! Finds out whether a commit whose answer was lost has taken place (I33).

use super::sorted_parts::SortedParts;
use super::{Bytes, Change, Changeset, Storage, memory};
use crate::error::Result;

/// True if `storage` shows what `changes` inserts: every inserted key with its value after the changeset.
pub(super) async fn holds(storage: &dyn Storage, changes: &Changeset) -> Result<bool> {
    let (keys, values) = evidence(changes);
    if keys.is_empty() {
        return Ok(false);
    }
    Ok(storage.get_many(&keys).await? == values)
}

/// The keys that `changes` inserts, and their values after it.
fn evidence(changes: &Changeset) -> (Vec<Bytes>, Vec<Option<Bytes>>) {
    let mut after = SortedParts::default();
    changes.changes().iter().for_each(|change| memory::apply(&mut after, change.clone()));
    let inserted = changes.changes().iter().filter_map(Change::inserted_key);
    // A key that is absent afterwards proves nothing, because it was absent before.
    inserted.filter_map(|key| Some((key.to_vec(), Some(memory::get(&after, key)?.clone())))).unzip()
}
