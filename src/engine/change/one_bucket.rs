//! `findAndModify` of a bucket document.

use std::cell::RefCell;

use super::statements::{ChangeKind, MeasurementChange};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::find::planned::{Defaults, ParseFind};
use crate::error::{Error, Result};
use crate::limits::WRITE_CONFLICT_RETRIES_MAX;
use crate::query::{Filter, FindCommand, Projection, Query, Update};
use crate::value::{DocBuf, DocWriter, Value};

/// A bucket document before a change and after it, and which of its fields are wanted.
pub type ChangedBucket = (DocBuf, Option<DocBuf>, Projection);

impl Engine {
    /// Updates the first bucket document of a query, or removes it without an update; `None` if there is none.
    ///
    /// Errors: as `find` and `change`; `WriteConflict` if other contexts were faster each time.
    pub async fn change_bucket(
        &self,
        name: &str,
        options: &ParseFind<'_>,
        update: &dyn Fn(&Collection) -> Result<Option<Update>>,
    ) -> Result<Option<ChangedBucket>> {
        for _ in 0..WRITE_CONFLICT_RETRIES_MAX {
            let asked = RefCell::new((Filter::all(), Projection::all()));
            let first = |defaults: Defaults<'_>| {
                let Query { find, demand } = options(defaults)?;
                asked.replace((find.filter.clone(), find.projection));
                let (projection, limit) = (Projection::all(), Some(1));
                let find = FindCommand { projection, limit, single_batch: true, batch_size: limit, ..find };
                Ok(Query { find, demand })
            };
            let row = self.find(name, true, &first).await?.rows;
            if row.rows() == 0 {
                return Ok(None);
            }
            let mut writer = DocWriter::new();
            row.write_row(0, &mut writer);
            let found = writer.finish();
            let id = found.view().get("_id").unwrap_or(Value::NULL);
            // It may have changed, so it is asked again.
            let (filter, projection) = asked.into_inner();
            let change = |collection: Option<&Collection>| {
                let update = collection.map(update).transpose()?.flatten();
                let kind = update.map_or(ChangeKind::DeleteOne, ChangeKind::UpdateOne);
                let filter = Filter::and([Filter::equality("_id", id)?, filter.clone()]);
                Ok(MeasurementChange { filter, hint: None, kind, raw: true })
            };
            if let Some((before, after)) = self.change(name, &change).await?.bucket {
                return Ok(Some((before, after, projection)));
            }
        }
        Err(Error::write_conflict("Other contexts kept changing the bucket first"))
    }
}
