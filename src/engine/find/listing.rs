//! Lists the stored buckets of each series.

use std::rc::Rc;

use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::collections::directory::Directory;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::index::META_TIME_INDEX;
use crate::limits::KEYS_PAGE;
use crate::listed::IntoList;
use crate::storage::{KeyRange, Page};

impl Engine {
    /// The stored buckets by series, at `epoch` or later. `None` if some metadata is an array, or if the directory is
    /// not in memory and would list `keys_max` keys or a full page, unless `keys_max` is `usize::MAX`.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(in crate::engine) async fn directory(
        &self,
        collection: &Rc<Collection>,
        epoch: u64,
        keys_max: usize,
    ) -> Result<Option<Rc<Directory>>> {
        let known = collection.known.directory.borrow().clone().filter(|known| known.epoch() == epoch);
        let directory = match known {
            Some(known) => known,
            None if keys_max == 0 => return Ok(None),
            None => {
                let id = collection.id();
                let has_meta = collection.meta_field().is_some();
                let range = match has_meta {
                    true => KeyRange::prefix(&keyspace::index_prefix(&id, META_TIME_INDEX)),
                    false => keyspace::buckets(&id, &BucketId::MIN, &BucketId::MAX),
                };
                let keys = if keys_max == usize::MAX {
                    self.scan_keys(vec![range]).await?
                } else {
                    let page = Page { entries_max: keys_max.min(KEYS_PAGE), keys_only: true };
                    let entries = self.storage.scan(&[range], page).await?;
                    // A full page may not be the last one.
                    if entries.len() == page.entries_max {
                        return Ok(None);
                    }
                    entries.into_iter().map(|entry| entry.key).listed()
                };
                // Several pages may be of different moments.
                if keys.len() >= KEYS_PAGE && self.journal_snapshot(collection, &[]).await?.epoch != epoch {
                    return Ok(None);
                }
                let listed = Rc::new(Directory::of_keys(epoch, &keys, has_meta)?);
                if listed.is_small() {
                    *collection.known.directory.borrow_mut() = Some(Rc::clone(&listed));
                }
                listed
            }
        };
        Ok(Some(directory).filter(|directory| !directory.has_arrays()))
    }
}
