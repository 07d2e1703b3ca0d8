//! Bucket documents from another database or a server, inserted or changed as such (I29).

// Loaded later.

use std::rc::Rc;

use crate::block::{Block, Column};
use crate::bucket::{BucketDoc, BucketId, is_extended_range, unpack, validate};
use crate::engine::Engine;
use crate::engine::buckets::bucket_changes::{BucketChanges, ScannedPage};
use crate::engine::collections::collection::Collection;
use crate::engine::journal::ByBucket;
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::{Coverage, StoredBucket};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::CHANGE_CONFLICTS_MAX;
use crate::listed::IntoList;
use crate::query::Update;
use crate::storage::LocalFuture;
use crate::value::{Doc, DocBuf, FieldSet, Interner, Value};

/// Errors by position of the document, ascending.
type Errors = Vec<(usize, Error)>;

impl Engine {
    /// Stores bucket documents of `name` unchanged, all valid ones in one commit; if `ordered`, only those before the
    /// first invalid one. Returns the errors of the others.
    ///
    /// Errors: `NamespaceNotFound`; those of storage. Nothing is stored then.
    /// Boxed, because it is in the second half of the module.
    pub fn insert_buckets<'a>(
        &'a self,
        name: &'a str,
        documents: &'a [Doc<'a>],
        ordered: bool,
    ) -> LocalFuture<'a, Errors> {
        Box::pin(self.store_buckets(name, documents, ordered))
    }

    async fn store_buckets(&self, name: &str, documents: &[Doc<'_>], ordered: bool) -> Result<Errors> {
        let mut conflicts = 0;
        loop {
            let collection = self.existing_collection(name).await?;
            if collection.dedupes() {
                return self.insert_measurements_of(&collection, documents, ordered).await;
            }
            let snapshot = self.journal_snapshot(&collection, &[]).await?;
            let ids: Vec<BucketId> = documents.iter().map(|document| id_of(*document)).listed();
            let stored = self.fetch(&collection, &ids).await?;
            let taken = taken(&ids, &stored, &snapshot.journal);
            let (changes, errors) = collection.stage_buckets(documents, taken, ordered);
            match changes.commit(self, snapshot.epoch, Vec::new(), ScannedPage::default()).await {
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                outcome => return outcome.map(|_| errors),
            }
        }
    }
}

impl Engine {
    /// Inserts the measurements of bucket documents: in a collection with `dedupe`, others may be stored already.
    async fn insert_measurements_of(
        &self,
        collection: &Rc<Collection>,
        documents: &[Doc<'_>],
        ordered: bool,
    ) -> Result<Errors> {
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        for (at, document) in documents.iter().enumerate() {
            match collection.measurements_of(*document) {
                Ok(measurements) => rows.push(measurements),
                Err(error) => {
                    errors.push((at, error));
                    if ordered {
                        break;
                    }
                }
            }
        }
        self.insert(collection, Block::concat(rows)).await?;
        Ok(errors)
    }
}

/// The ids that are already stored or in a journal.
#[inline(never)]
fn taken(ids: &[BucketId], stored: &[Option<Rc<StoredBucket>>], journal: &ByBucket) -> Interner {
    let mut taken = Interner::default();
    let stored = ids.iter().zip(stored).filter(|(_, stored)| stored.is_some()).map(|(id, _)| id);
    let unfolded = journal.groups().iter().map(|group| &group.bucket);
    for id in stored.chain(unfolded) {
        taken.add(id.as_bytes());
    }
    taken
}

/// The id of a bucket; an arbitrary one if it has none.
fn id_of(document: Doc<'_>) -> BucketId {
    BucketId::from_bytes(document.get("_id").and_then(Value::as_object_id).unwrap_or_default())
}

impl Collection {
    /// The puts of the valid documents, and the errors of the others.
    #[inline(never)]
    fn stage_buckets(&self, documents: &[Doc<'_>], mut taken: Interner, ordered: bool) -> (BucketChanges<'_>, Errors) {
        let (mut changes, mut errors) = (BucketChanges::new(self), Vec::new());
        for (at, document) in documents.iter().enumerate() {
            if let Err(error) = self.stage_bucket(*document, &mut taken, &mut changes) {
                errors.push((at, error));
                if ordered {
                    break;
                }
            }
        }
        (changes, errors)
    }

    fn stage_bucket(&self, document: Doc<'_>, taken: &mut Interner, changes: &mut BucketChanges<'_>) -> Result<()> {
        self.check_raw(document)?;
        let id = id_of(document);
        if !taken.add(id.as_bytes()).1 {
            return Err(Error::new(ErrorCode::DuplicateKey, format!("E11000 duplicate key error, _id: {id}")));
        }
        self.note_extended(document, changes)?;
        changes.write(&id, None, Coverage::default(), document.to_owned())
    }

    /// The measurements of a valid bucket document.
    fn measurements_of(&self, document: Doc<'_>) -> Result<Block> {
        self.check_raw(document)?;
        let entry = self.entry();
        let options = &entry.options.timeseries;
        let view = BucketDoc::parse(document, options)?;
        let mut rows = unpack(&view, &FieldSet::All, options)?;
        if let (Some(name), Some(meta)) = (self.meta_field(), view.meta()) {
            rows.set_column(name, Column::constant(meta, rows.rows()));
        }
        Ok(rows)
    }

    /// Changes a stored bucket document, which must be as valid as one that is inserted. Returns its new form.
    ///
    /// Errors: `WriteConflict` if the bucket is being folded; those of the update and of invalid buckets.
    pub(in crate::engine) fn stage_update(
        &self,
        unit: &Unit,
        stored: &StoredBucket,
        update: &Update,
        changes: &mut BucketChanges<'_>,
    ) -> Result<DocBuf> {
        if unit.half_folded {
            return Err(Error::write_conflict(format!("Bucket {} is being folded", unit.id)));
        }
        if self.dedupes() {
            let message = "Buckets of a collection with 'dedupe' cannot be changed as such: change its measurements";
            return Err(Error::new(ErrorCode::IllegalOperation, message));
        }
        let old = stored.document.view();
        let new = update.apply_whole(old)?;
        if new.view().as_bytes() != old.as_bytes() {
            self.check_raw(new.view())?;
            self.note_extended(new.view(), changes)?;
            changes.write(&unit.id, Some(stored), stored.coverage.clone(), new.clone())?;
        }
        Ok(new)
    }

    fn note_extended(&self, document: Doc<'_>, changes: &mut BucketChanges<'_>) -> Result<()> {
        let view = BucketDoc::parse(document, &self.entry().options.timeseries)?;
        if is_extended_range(view.min_time_ms()) || is_extended_range(view.max_time_ms()) {
            // This context learns of it as others do, by its next refresh.
            changes.mark_extended_range();
        }
        Ok(())
    }

    /// Checks a bucket document by every rule.
    fn check_raw(&self, document: Doc<'_>) -> Result<()> {
        let entry = self.entry();
        let options = &entry.options.timeseries;
        for finding in validate(document, options, true, usize::MAX) {
            let code = match finding.rule.code {
                ErrorCode::CannotInsertTimeseriesBucketsWithMixedSchema if entry.may_be_mixed => continue,
                code @ (ErrorCode::BSONObjectTooLarge | ErrorCode::CannotInsertTimeseriesBucketsWithMixedSchema) => {
                    code
                }
                _ if finding.rule.warns => continue,
                _ => ErrorCode::DocumentValidationFailure,
            };
            let rule = finding.rule;
            let parts = ["Document failed validation at '", &finding.path, "', rule ", rule.name, ": ", rule.text];
            return Err(Error::new(code, [&parts.concat(), ". ", &finding.detail].concat()));
        }
        self.check_bucket(document)
    }
}
