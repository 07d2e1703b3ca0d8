//! Deletes and updates. A delete removes whole buckets if the bucket alone shows that all rows match; otherwise it
//! rewrites the bucket without the matching rows. An update changes the metadata of whole buckets.
//!
//! **Invariant I20**: a bucket does not change its metadata while journal records are left whose rows it holds, so such
//! a record never has other metadata than its bucket. Later records, from contexts that did not know of the change,
//! keep their own metadata: see `fold`.

use std::cell::RefCell;
use std::rc::Rc;

use super::removal::Doomed;
use crate::block::{Bitmap, Block, Column};
use crate::bucket::{BucketDoc, BucketId, rebuild, unpack, with_meta};
use crate::engine::Engine;
use crate::engine::buckets::bucket_changes::{BucketChanges, ScannedPage};
use crate::engine::collections::collection::Collection;
use crate::engine::find::planned::{Defaults, ParseFind};
use crate::engine::journal::{ByBucket, RecordKey, SectionGroup, SectionRef};
use crate::engine::read::unit::Unit;
use crate::engine::store::entry::CollectionEntry;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, LOOK_WORK, WRITE_CONFLICT_RETRIES_MAX};
use crate::query::{Demand, Filter, FindCommand, Hint, Projection, Query, ReadAccess, ReadPlan, Update};
use crate::value::{Doc, DocBuf, DocWriter, FieldSet, Interner, OwnedValue, Value};

/// A statement of a delete or an update.
pub struct MeasurementChange<'a> {
    /// Selects the measurements.
    pub filter: Filter,
    /// Selects the index.
    pub hint: Option<Hint>,
    /// What happens to the measurements.
    pub kind: ChangeKind<'a>,
    /// True if bucket documents are meant.
    pub raw: bool,
}

/// What a statement does with measurements.
pub enum ChangeKind<'a> {
    /// Deletes all.
    Delete,
    /// Deletes any one.
    DeleteOne,
    /// Deletes one that has exactly the fields of this document, in any order.
    DeleteExactly(Doc<'a>),
    /// Changes the metadata of all. The filter must be on the metadata only, unless buckets are meant.
    Update(Update),
    /// Changes any one bucket.
    UpdateOne(Update),
}

/// The outcome of a statement.
#[derive(Default)]
pub struct Changed {
    /// Measurements that matched and were wanted.
    pub matched: u64,
    /// How many of them got different metadata.
    pub modified: u64,
    /// The last bucket document that was changed, and what became of it: `None` if it was deleted.
    pub bucket: Option<(DocBuf, Option<DocBuf>)>,
    /// Buckets already processed by an update, so that a repetition after a conflict does not change them twice.
    done: Interner,
}

impl Changed {
    fn is_enough_for(&self, change: &MeasurementChange<'_>) -> bool {
        self.matched > 0
            && matches!(change.kind, ChangeKind::DeleteOne | ChangeKind::DeleteExactly(_) | ChangeKind::UpdateOne(_))
    }
}

impl Engine {
    /// Changes the measurements that match.
    ///
    /// Journal rows that may match are folded first, so that all matches acknowledged before the call are in buckets.
    /// Measurements inserted meanwhile stay, and so do closed buckets. If a delete of many measurements
    /// finds no room to write, whatever can be removed without room is removed first: see `removal`.
    ///
    /// `change` is called with the collection, or without it if there is none; then nothing is changed.
    ///
    /// Errors: those of `change`, of filters and updates, and of storage; `BadValue` for a hint that names no index. A
    /// missing collection is not an error. After `OutOfDiskSpace` some measurements may be deleted, as its message
    /// says.
    pub async fn change<'a>(
        &self,
        name: &str,
        change: &dyn Fn(Option<&Collection>) -> Result<MeasurementChange<'a>>,
    ) -> Result<Changed> {
        let mut changed = Changed::default();
        let mut conflicts = 0;
        loop {
            let Some(collection) = self.collection(name).await? else {
                return change(None).map(|_| changed);
            };
            let wanted = change(Some(&collection))?;
            let mut outcome = self.change_pass(&collection, &wanted, conflicts == 0, &mut changed).await;
            let no_room = outcome.as_ref().err().filter(|e| e.code == ErrorCode::OutOfDiskSpace).cloned();
            // Not for a single measurement: if the answer to a commit that writes nothing is lost, it is
            // unknown whether it was removed.
            if let Some(error) = no_room.filter(|_| matches!(wanted.kind, ChangeKind::Delete)) {
                outcome = match self.delete_without_room(&collection, &wanted, &mut changed).await {
                    Ok(true) => continue,
                    Ok(false) => Err(no_room_left(&error, changed.matched)),
                    Err(error) => Err(error),
                };
            }
            match outcome {
                // It was dropped, so memory has forgotten it; storage says whether it was created again.
                Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                other => return other.map(|()| changed),
            }
        }
    }

    /// `is_first`: no conflict has occurred. Otherwise more is folded, because a bucket is not removed as long as records
    /// exist whose rows it holds, even if these rows do not match.
    async fn change_pass(
        &self,
        collection: &Rc<Collection>,
        change: &MeasurementChange<'_>,
        is_first: bool,
        changed: &mut Changed,
    ) -> Result<()> {
        let (filter, hint) = (change.filter.clone(), change.hint.clone());
        let options = FindCommand { filter, hint, ..FindCommand::default() };
        let plan = || collection.read_plan(options.clone().into(), change.raw);
        let (mut scan, mut aimed) = self.aimed_scan(collection, &plan).await?;
        collection.check_hint(change.raw, &options, &aimed)?;
        // Rows that are not folded are in no index.
        let only_indexed = matches!(&aimed.access, ReadAccess::Index(access) if access.only_indexed);
        // A record may hold rows that are one measurement, or of which a stored bucket has an earlier one.
        let may_drop = !change.raw && !only_indexed && !collection.dedupes();
        if matches!(change.kind, ChangeKind::Delete) && may_drop {
            let dropped = self.drop_records(collection, &scan, &aimed).await?;
            if dropped > 0 {
                changed.matched += dropped;
                (scan, aimed) = self.aimed_scan(collection, &plan).await?;
            }
        }
        // An expression that fails here fails again on the bucket.
        let reached = |group: &SectionGroup, aimed: &ReadPlan| {
            aimed.may_match_rows(group.meta(), group.first_ms, group.last_ms).unwrap_or(true)
        };
        let mut records: Vec<RecordKey> = Vec::new();
        let looks_at_rows = is_first && may_drop && !matches!(change.kind, ChangeKind::Update(_));
        for group in scan.journal().groups().iter().filter(|group| reached(group, &aimed)) {
            let all = group.sections();
            let matching = match looks_at_rows {
                true => sections_with_matches(&collection.entry(), scan.journal(), group, &aimed).unwrap_or(all.len()),
                false => all.len(),
            };
            records.extend(all.iter().take(matching).map(SectionRef::commit));
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
        }
        let mut is_wanted = self.fold_records(collection, &records).await?;
        while is_wanted {
            (scan, aimed) = self.aimed_scan(collection, &plan).await?;
            // Others may have moved measurements out of buckets since this began.
            let moved = |group: &SectionGroup| group.is_any_moved() && reached(group, &aimed);
            is_wanted = collection.dedupes() && self.fold_groups(&scan, &moved).await?;
        }
        if matches!(change.kind, ChangeKind::Update(_)) && !change.raw && collection.dedupes() {
            // It is loaded: `CollectionEntry::prepare` loads it for collections with `dedupe`.
            return self.move_measurements(&mut scan, &aimed, change, changed).await;
        }
        while let Some(units) = self.next_page(&mut scan).await? {
            let mut changes = BucketChanges::new(collection);
            let mut page = Changed::default();
            for unit in &units {
                if changed.done.get(unit.id.as_bytes()).is_none() {
                    self.change_unit(collection, &aimed, unit, change, &mut page, &mut changes)?;
                }
                if page.is_enough_for(change) {
                    break;
                }
                if let Some(turn) = self.turn(LOOK_WORK)? {
                    turn.await?;
                }
            }
            let place = ScannedPage::of(&units, scan.covered());
            let epoch = changes.commit(self, scan.epoch(), Vec::new(), place).await?;
            scan.set_epoch(epoch);
            changed.matched += page.matched;
            changed.modified += page.modified;
            changed.bucket = page.bucket.take().or(changed.bucket.take());
            if matches!(change.kind, ChangeKind::Update(_)) {
                for unit in &units {
                    changed.done.add(unit.id.as_bytes());
                }
            }
            if page.is_enough_for(change) {
                return Ok(());
            }
        }
        if collection.dedupes() && !change.raw {
            return self.expect_nothing_moved(&scan).await;
        }
        Ok(())
    }

    /// Deletes what can be removed without a write. False if there is nothing.
    async fn delete_without_room(
        &self,
        collection: &Rc<Collection>,
        change: &MeasurementChange<'_>,
        changed: &mut Changed,
    ) -> Result<bool> {
        let (filter, hint) = (change.filter.clone(), change.hint.clone());
        let options = FindCommand { filter, hint, ..FindCommand::default() };
        let plan = || collection.read_plan(options.clone().into(), change.raw);
        if matches!(&plan().access, ReadAccess::Index(access) if access.only_indexed) {
            // The index does not name everything; folding brings the rest into it.
            return Ok(false);
        }
        let (mut scan, aimed) = self.aimed_scan(collection, &plan).await?;
        let options = &collection.entry().options.timeseries;
        let bucket = |_: &BucketId, document: Doc<'_>, view: &BucketDoc<'_>, _| {
            if change.raw {
                return change.filter.matches_doc(document);
            }
            if view.closed() || !aimed.may_match(view)? {
                return Ok(false);
            }
            if aimed.all_match(view) {
                return Ok(true);
            }
            let rows = unpack(view, &FieldSet::All, options)?;
            Ok(aimed.select(&rows, view.meta())?.count() == rows.rows())
        };
        let rows = |reference: &SectionRef, stored: Option<&BucketDoc<'_>>, _| {
            let (block, range) = reference.rows();
            let stays = change.raw || stored.is_some_and(BucketDoc::closed);
            let Some(section) = reference.section().filter(|_| !stays) else { return Ok(false) };
            if !aimed.may_match_rows(reference.meta(), section.first_ms, section.last_ms)? {
                return Ok(false);
            }
            let rows = block.slice(range);
            Ok(aimed.select(&rows, reference.meta())?.count() == rows.rows())
        };
        let doomed = Doomed { bucket: &bucket, rows: &rows, only_folded: change.raw };
        let removed = self.remove_without_room(&mut scan, &doomed).await?.measurements;
        changed.matched += removed;
        Ok(removed > 0)
    }

    /// Adds the changes to one bucket to `changes`, and counts its measurements in `page`.
    fn change_unit(
        &self,
        collection: &Rc<Collection>,
        plan: &ReadPlan,
        unit: &Unit,
        change: &MeasurementChange<'_>,
        page: &mut Changed,
        changes: &mut BucketChanges<'_>,
    ) -> Result<()> {
        let Some(stored) = &unit.stored else { return Ok(()) };
        if change.raw {
            if change.filter.matches_doc(stored.document.view())? {
                if let ChangeKind::Update(update) | ChangeKind::UpdateOne(update) = &change.kind {
                    let new = collection.stage_update(unit, stored, update, changes)?;
                    page.modified += u64::from(new.view().as_bytes() != stored.document.view().as_bytes());
                    page.bucket = Some((stored.document.clone(), Some(new)));
                } else {
                    changes.remove(unit)?;
                    page.bucket = Some((stored.document.clone(), None));
                }
                page.matched += 1;
            }
            return Ok(());
        }
        let options = &collection.entry().options.timeseries;
        let view = stored.view(options)?;
        if view.closed() || !plan.may_match(&view)? {
            return Ok(());
        }
        let meta = view.meta();
        if let ChangeKind::Update(update) = &change.kind {
            if let Some(new) = collection.changed_meta(unit, &view, change, update, page)? {
                let document = with_meta(stored.document.view(), new.as_ref().map(OwnedValue::view))?;
                changes.write(&unit.id, Some(stored), stored.coverage.clone(), document)?;
            }
            return Ok(());
        }
        if matches!(change.kind, ChangeKind::Delete) && plan.all_match(&view) {
            changes.remove(unit)?;
            page.matched += view.count()? as u64;
            return Ok(());
        }
        let rows = unpack(&view, &FieldSet::All, options)?;
        let mut matching = plan.select(&rows, meta)?;
        let only = match change.kind {
            ChangeKind::DeleteOne => Some(matching.iter().next()),
            ChangeKind::DeleteExactly(document) => {
                let mut whole = rows.clone();
                if let (Some(name), Some(meta)) = (collection.meta_field(), meta) {
                    whole.set_column(name, Column::constant(meta, rows.rows()));
                }
                Some(matching.iter().find(|row| is_row(&whole, *row, document)))
            }
            _ => None,
        };
        if let Some(only) = only {
            matching = Bitmap::from_fn(rows.rows(), |row| Some(row) == only);
        }
        if matching.none() {
            return Ok(());
        }
        let mut keep = matching.clone();
        keep.invert();
        match rebuild(&view, &rows, &keep, self.bucket_format, options)? {
            Some(rest) => changes.write(&unit.id, Some(stored), stored.coverage.clone(), rest)?,
            None => changes.remove(unit)?,
        }
        page.matched += matching.count() as u64;
        Ok(())
    }

    /// Deletes the first measurement of a query and returns it as the query projects it; `None` if there is none.
    ///
    /// Errors: as `find` and `change`; `WriteConflict` if other contexts were faster each time.
    pub async fn remove_one(&self, name: &str, options: &ParseFind<'_>) -> Result<Option<Block>> {
        for _ in 0..WRITE_CONFLICT_RETRIES_MAX {
            let projection = RefCell::new(Projection::all());
            let whole = |defaults: Defaults<'_>| {
                let Query { find, .. } = options(defaults)?;
                projection.replace(find.projection);
                let (projection, limit) = (Projection::all(), Some(1));
                let find = FindCommand { projection, limit, single_batch: true, batch_size: limit, ..find };
                Ok(Query { find, demand: Demand::of_write() })
            };
            let row = self.find(name, false, &whole).await?.rows;
            if row.rows() == 0 {
                return Ok(None);
            }
            let mut writer = DocWriter::new();
            row.write_row(0, &mut writer);
            let document = writer.finish();
            // If this fails, nothing must have been deleted.
            let shown = projection.replace(Projection::all()).apply(row)?;
            let exactly = |collection: Option<&Collection>| {
                let time_field = collection.map_or("", Collection::time_field);
                let time = document.view().get(time_field).unwrap_or(Value::NULL);
                let kind = ChangeKind::DeleteExactly(document.view());
                Ok(MeasurementChange { filter: Filter::equality(time_field, time)?, hint: None, kind, raw: false })
            };
            if self.change(name, &exactly).await?.matched > 0 {
                return Ok(Some(shown));
            }
        }
        Err(Error::write_conflict("Other contexts kept removing the measurement first"))
    }
}

impl Collection {
    /// The new metadata of a bucket; `None` if it stays as it is, or if the bucket does not match. Counts its
    /// measurements in `page`.
    ///
    /// Errors: those of the filter and the update; `WriteConflict` if the bucket is being folded.
    pub(super) fn changed_meta(
        &self,
        unit: &Unit,
        view: &BucketDoc<'_>,
        change: &MeasurementChange<'_>,
        update: &Update,
        page: &mut Changed,
    ) -> Result<Option<Option<OwnedValue>>> {
        let meta = view.meta();
        // What is left for rows is a schema, which names the metadata by the user's field name.
        let mut row = DocWriter::new();
        if let (Some(name), Some(meta)) = (self.meta_field(), meta) {
            row.value(name, meta);
        }
        if !change.filter.matches_doc(row.finish().view())? {
            return Ok(None);
        }
        if unit.half_folded {
            return Err(Error::write_conflict(format!("Bucket {} is being folded", unit.id)));
        }
        let rows = view.count()? as u64;
        page.matched += rows;
        let new = update.apply(meta, &|| change.filter.position(meta))?;
        if new.as_ref().map(OwnedValue::view) == meta {
            return Ok(None);
        }
        page.modified += rows;
        self.check_meta(new.as_ref().map(OwnedValue::view))?;
        Ok(Some(new))
    }
}

/// How many sections of a group, from the first one on, hold all of its matching rows.
///
/// Errors: those of filters; `DataCorruptionDetected`.
fn sections_with_matches(
    entry: &CollectionEntry,
    journal: &ByBucket,
    group: &SectionGroup,
    plan: &ReadPlan,
) -> Result<usize> {
    let sections = group.sections();
    if plan.is_decided_by_metadata() || plan.plan.residual.is_random() {
        return Ok(sections.len());
    }
    let tail = journal.tail(group, &entry.options.timeseries)?;
    if !plan.may_match(&tail.summary(group.bucket, group.meta()))? {
        return Ok(0);
    }
    let Some(last) = plan.select(tail.rows(), group.meta())?.iter().last() else { return Ok(0) };
    let mut rows = 0;
    let is_needed = |section: &&SectionRef| {
        let is_needed = rows <= last;
        rows += section.rows().1.len();
        is_needed
    };
    Ok(sections.iter().take_while(is_needed).count())
}

/// The error of a delete that finds no room for its writes.
fn no_room_left(error: &Error, deleted: u64) -> Error {
    let advice = "deleting the others needs room: delete whole series or time ranges, drop a collection, or free space elsewhere";
    Error::new(
        error.code,
        format!("{}; {deleted} measurements were deleted, those whose removal writes nothing; {advice}", error.message),
    )
}

/// True if the row has exactly the fields of the document.
fn is_row(rows: &Block, row: usize, document: Doc<'_>) -> bool {
    let mut writer = DocWriter::new();
    rows.write_row(row, &mut writer);
    let found = writer.finish();
    let found = found.view();
    found.iter().count() == document.iter().count()
        && document.iter().all(|(name, value)| found.get(name) == Some(value))
}
