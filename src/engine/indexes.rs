//! Creates and drops indexes while others write.
//!
//! **Invariant I16**: once an index is in the catalog entry, every changeset that writes a bucket writes its index
//! entries. Changing the catalog entry moves the epoch on, so writes according to the old entry fail. Queries use the
//! index once all earlier buckets have their entries.

use std::rc::Rc;

use super::Engine;
use super::buckets::bucket_changes::index_keys;
use super::collections::collection::Collection;
use super::journal::SectionGroup;
use super::read::scan::Access;
use super::store::entry::CollectionEntry;
use super::store::keyspace;
use crate::block::{Block, DocPivot};
use crate::bucket::BucketId;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{IndexSpec, KeyPart, META_TIME_INDEX, Source, note_arrays};
use crate::limits::{CHANGE_CONFLICTS_MAX, INDEX_BUILD_MS_MAX, INDEXES_MAX, LOOK_WORK};
use crate::listed::IntoList;
use crate::storage::{Changeset, KeyRange};
use crate::value::{Doc, DocWriter, Value, sort_by};

/// Which indexes to drop.
pub enum Dropped<'a> {
    /// All indexes.
    All,
    /// The indexes with these names.
    Names(Vec<&'a str>),
    /// The index over this user key.
    Key(Doc<'a>),
    /// The index with this key over buckets.
    BucketKey(Doc<'a>),
}

impl Engine {
    /// Creates indexes; existing ones stay. Returns the number of indexes before and after. If `raw`, the
    /// specifications are over buckets.
    ///
    /// Errors: `NamespaceNotFound`; those of `IndexSpec::parse`; `IndexOptionsConflict` and `IndexKeySpecsConflict`;
    /// `CannotCreateIndex` for too many; 5930501 for an array on an indexed path. If one index cannot be created, none
    /// is.
    pub async fn create_indexes(&self, name: &str, requested: &[Doc<'_>], raw: bool) -> Result<(usize, usize)> {
        let collection = self.existing_collection(name).await?;
        // Another collection of this name, with other fields, may have taken its place.
        self.refresh(&collection).await?;
        let options = collection.entry().options.timeseries.clone();
        let of_user = |spec: &Doc<'_>| IndexSpec::of_user(*spec, raw, &options, &*self.env);
        let specs = requested.iter().map(of_user).try_listed()?;
        // The numbers of new indexes, and the versions in which they were created.
        let (mut before, mut after, mut new) = (0, 0, Vec::new());
        self.change_entry(&collection, &mut |entry, changes| {
            before = entry.ready_indexes().count();
            new.clear();
            for spec in &specs {
                let mut is_known = false;
                for known in &mut entry.specs {
                    if !spec.is_same_as(known)? {
                        continue;
                    }
                    is_known = true;
                    if !known.ready && !new.contains(&(known.number, known.born)) {
                        // Somebody else builds it, or has begun to. Both write the same entries.
                        new.push((known.number, known.born));
                        *known = Rc::new(known.numbered(known.number, known.born, self.now_ms()));
                    }
                }
                if !is_known {
                    add(entry, spec, &mut new, self.now_ms())?;
                }
            }
            after = before + new.len();
            Ok(remove_abandoned(entry, changes, self.now_ms()) || !new.is_empty())
        })
        .await?;
        let built = match new.is_empty() {
            true => return Ok((before, after)),
            false => self.build(&collection, &new).await,
        };
        self.change_entry(&collection, &mut |entry, changes| {
            let is_new = |spec: &IndexSpec| new.contains(&(spec.number, spec.born));
            if entry.specs.iter().filter(|spec| is_new(spec)).count() < new.len() {
                return Err(Error::write_conflict("Another context dropped or replaced an index while it was built"));
            }
            match &built {
                Ok(()) => {
                    let made = entry.specs.iter_mut().filter(|spec| is_new(spec));
                    made.filter_map(Rc::get_mut).for_each(|spec| spec.ready = true);
                }
                Err(_) => remove(entry, changes, &|spec| is_new(spec) && !spec.ready),
            }
            Ok(true)
        })
        .await?;
        built.map(|()| (before, after))
    }

    /// Hides or unhides an index, and changes its expiry. Returns the previous specification.
    ///
    /// Errors: `NamespaceNotFound`; `IndexNotFound`; `InvalidOptions` for an expiry if the index has none.
    pub async fn change_index(
        &self,
        name: &str,
        which: &Dropped<'_>,
        hidden: Option<bool>,
        expire_after_seconds: Option<i64>,
    ) -> Result<IndexSpec> {
        let collection = self.existing_collection(name).await?;
        let mut before = None;
        self.change_entry(&collection, &mut |entry, _| {
            let numbers = entry.named(which)?;
            let found = entry.specs.iter_mut().find(|spec| numbers.contains(&spec.number)).and_then(Rc::get_mut);
            let spec = found.ok_or_else(|| Error::internal("An index cannot be changed while it is in use"))?;
            if expire_after_seconds.is_some() && spec.expire_after_seconds.is_none() {
                return Err(Error::invalid_options("'expireAfterSeconds' can only be changed on an index that has it"));
            }
            before = Some(spec.numbered(spec.number, spec.born, 0));
            let old = (spec.hidden, spec.expire_after_seconds);
            spec.hidden = hidden.unwrap_or(spec.hidden);
            spec.expire_after_seconds = expire_after_seconds.or(spec.expire_after_seconds);
            Ok(old != (spec.hidden, spec.expire_after_seconds))
        })
        .await?;
        before.ok_or_else(|| Error::internal("No index was changed"))
    }

    /// Drops indexes with all their entries. Returns the number of indexes before.
    ///
    /// Errors: `NamespaceNotFound`; `IndexNotFound`, in which case none is dropped.
    pub async fn drop_indexes(&self, name: &str, which: &Dropped<'_>) -> Result<usize> {
        let collection = self.existing_collection(name).await?;
        let mut before = 0;
        self.change_entry(&collection, &mut |entry, changes| {
            before = entry.ready_indexes().count();
            let goes = entry.named(which)?;
            remove(entry, changes, &|spec| goes.contains(&spec.number));
            Ok(remove_abandoned(entry, changes, self.now_ms()) || !goes.is_empty())
        })
        .await?;
        Ok(before)
    }

    /// Reloads the entry of a collection, and removes indexes whose build was abandoned.
    ///
    /// Errors: `NamespaceNotFound`; those of storage.
    pub async fn end_abandoned_builds(&self, collection: &Rc<Collection>) -> Result<()> {
        let mut end =
            |entry: &mut CollectionEntry, changes: &mut Changeset| Ok(remove_abandoned(entry, changes, self.now_ms()));
        self.change_entry(collection, &mut end).await
    }

    /// One document per index; none for a missing collection.
    ///
    /// Errors: those of storage.
    pub(super) async fn index_stats(&self, name: &str, raw: bool) -> Result<Block> {
        let Some(collection) = self.collection(name).await? else { return Ok(Block::new(0)) };
        self.refresh(&collection).await?;
        let mut pivot = DocPivot::new();
        let entry = collection.entry();
        for index in entry.indexes.iter().filter(|index| index.spec.ready) {
            let (spec, options) = (&index.spec, &entry.options.timeseries);
            let shown = if raw { index.shown_raw(options) } else { spec.shown_in(options) };
            let key = shown.view().get("key").and_then(Value::as_doc).unwrap_or(Doc::EMPTY);
            let mut writer = DocWriter::new();
            writer.string("name", &spec.name).doc("key", key).string("host", &self.name).begin_doc("accesses");
            writer
                .int64("ops", collection.index_uses.of(spec.number))
                .date("since", collection.index_uses.since_ms)
                .end();
            writer.doc("spec", shown.view());
            pivot.push(writer.finish().view())?;
        }
        Ok(pivot.finish())
    }

    /// How many components of each path of an index lead to arrays in present metadata. Empty for paths of
    /// measurements.
    ///
    /// Errors: those of storage.
    pub async fn multikey_depths(
        &self,
        collection: &Rc<Collection>,
        number: u16,
        parts: &[KeyPart],
    ) -> Result<Vec<Vec<usize>>> {
        let mut found = vec![Vec::new(); parts.len()];
        let (mut scan, _) = self.begin_scan(collection, &[]).await?;
        scan.aim(Access::Range(BucketId::MIN, BucketId::MAX));
        let entry = collection.entry();
        let index = entry.indexes.iter().find(|index| index.spec.number == number);
        while let Some(units) = self.next_page(&mut scan).await? {
            for unit in &units {
                let stored = unit.stored.as_ref().and_then(|stored| stored.document.view().get("meta"));
                let meta = stored.or_else(|| unit.unfolded().and_then(SectionGroup::meta));
                let Some(value) = meta.filter(|_| index.is_none_or(|index| index.takes_meta(meta))) else { continue };
                for (part, found) in parts.iter().zip(&mut found) {
                    // A place may be written as an array.
                    if part.source == Source::Meta && !part.kind().is_geo() {
                        note_arrays(value, part.path.rest(), 0, found);
                    }
                }
            }
        }
        found.iter_mut().for_each(|depths| sort_by(depths, Ord::cmp));
        Ok(found)
    }

    /// Writes the entries of new indexes, page by page.
    async fn build(&self, collection: &Rc<Collection>, new: &[(u16, u64)]) -> Result<()> {
        let id = collection.id();
        let (mut from, mut conflicts) = (BucketId::MIN, 0);
        'again: loop {
            let (mut scan, _) = self.begin_scan(collection, &[]).await?;
            for entry in collection.journal.entries() {
                if let Some((_, error)) = collection.index_errors(&entry.record.rows).into_iter().next() {
                    return Err(error);
                }
            }
            for group in scan.journal().groups() {
                collection.check_meta(group.meta())?;
            }
            scan.aim(Access::Range(from, BucketId::MAX));
            while let Some(units) = self.next_page(&mut scan).await? {
                let mut changes = Changeset::new();
                // Guards against changes of buckets since: the entries written belong to the stored buckets.
                changes.require(keyspace::epoch(&id, scan.epoch()));
                for unit in &units {
                    let Some(stored) = &unit.stored else { continue };
                    collection.check_bucket(stored.document.view())?;
                    let prefixes = new.iter().map(|(number, _)| keyspace::index_prefix(&id, *number)).listed();
                    for key in index_keys(collection, &unit.id, stored.document.view())? {
                        if prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                            changes.put(key, Vec::new());
                        }
                    }
                }
                if let Some(turn) = self.turn(LOOK_WORK)? {
                    turn.await?;
                }
                match self.storage.commit(changes).await {
                    Ok(()) => {}
                    Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => {
                        conflicts += 1;
                        from = units.first().map_or(from, |unit| unit.id);
                        continue 'again;
                    }
                    Err(e) => return Err(e),
                }
            }
            return Ok(());
        }
    }
}

impl CollectionEntry {
    /// The indexes visible to users.
    pub fn ready_indexes(&self) -> impl Iterator<Item = &IndexSpec> {
        self.specs.iter().map(|spec| &**spec).filter(|spec| spec.ready)
    }

    /// The numbers of the selected indexes.
    ///
    /// Errors: `IndexNotFound` if one is not there; `AmbiguousIndexKeyPattern`.
    fn named(&self, which: &Dropped<'_>) -> Result<Vec<u16>> {
        let unknown = match which {
            Dropped::All => return Ok(self.specs.iter().map(|spec| spec.number).listed()),
            Dropped::Names(names) => {
                let known = |name: &&&str| self.specs.iter().any(|spec| *spec.name == ***name);
                match names.iter().find(|name| !known(name)) {
                    Some(unknown) => format!("name [{unknown}]"),
                    None => {
                        let named = self.specs.iter().filter(|spec| names.contains(&&*spec.name));
                        return Ok(named.map(|spec| spec.number).listed());
                    }
                }
            }
            Dropped::Key(key) | Dropped::BucketKey(key) => {
                match self.index_of(*key, matches!(which, Dropped::BucketKey(_)))? {
                    Some(spec) => return Ok(vec![spec.number]),
                    None => format!("key {key:?}"),
                }
            }
        };
        Err(Error::new(ErrorCode::IndexNotFound, ["Index not found with ", &unknown].concat()))
    }

    /// The index over a user's key, or over a bucket key if `raw`: the one over the same bucket parts, or else the one
    /// that was asked for by that key.
    ///
    /// Errors: `IndexNotFound` for a key that no index can have; `AmbiguousIndexKeyPattern`.
    pub fn index_of(&self, key: Doc<'_>, raw: bool) -> Result<Option<&IndexSpec>> {
        let mut asked = DocWriter::new();
        asked.doc("key", key).string("name", "key");
        let wanted = match raw {
            true => key.to_owned(),
            false => IndexSpec::parse(asked.finish().view(), &self.options.timeseries)
                .map_err(|error| Error::new(ErrorCode::IndexNotFound, error.into_message()))?
                .bucket_key(),
        };
        let is_over = |spec: &IndexSpec| spec.has_bucket_key(wanted.view());
        let by_parts = self.specs.iter().any(|spec| is_over(spec));
        let mut found =
            self.specs.iter().filter(|spec| if by_parts || raw { is_over(spec) } else { spec.has_key(key) });
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|spec| &**spec)),
            _ => {
                let message = format!("Several indexes have the key {key:?}; select one by name");
                Err(Error::new(ErrorCode::AmbiguousIndexKeyPattern, message))
            }
        }
    }
}

/// Adds an index that is yet to be built.
fn add(entry: &mut CollectionEntry, spec: &IndexSpec, new: &mut Vec<(u16, u64)>, now_ms: i64) -> Result<()> {
    if entry.specs.len() >= INDEXES_MAX {
        let message = format!("A collection can have at most {INDEXES_MAX} indexes");
        return Err(Error::new(ErrorCode::CannotCreateIndex, message));
    }
    let free = |number: &u16| entry.specs.iter().all(|spec| spec.number != *number);
    let is_default = IndexSpec::default_of(&entry.options.timeseries)
        .is_some_and(|default| default.bucket_key() == spec.bucket_key());
    // The entries of the default index always exist.
    let number = if is_default && !spec.sparse && spec.partial.is_none() && free(&META_TIME_INDEX) {
        META_TIME_INDEX
    } else {
        (META_TIME_INDEX + 1..).find(free).unwrap_or(u16::MAX)
    };
    new.push((number, entry.version));
    entry.specs.push(Rc::new(spec.numbered(number, entry.version, now_ms)));
    Ok(())
}

/// Removes indexes whose build has not ended after `INDEX_BUILD_MS_MAX`; true if there were any. A builder that is
/// still alive then finds its index gone.
fn remove_abandoned(entry: &mut CollectionEntry, changes: &mut Changeset, now_ms: i64) -> bool {
    let before = entry.specs.len();
    let age_ms = |spec: &IndexSpec| now_ms.saturating_sub(spec.begun_ms).saturating_abs();
    remove(entry, changes, &|spec| !spec.ready && age_ms(spec) > INDEX_BUILD_MS_MAX);
    entry.specs.len() < before
}

/// Removes indexes and their entries. Entries of the default index stay, because inserts find their buckets by them.
fn remove(entry: &mut CollectionEntry, changes: &mut Changeset, goes: &dyn Fn(&IndexSpec) -> bool) {
    let id = entry.id();
    for spec in entry.specs.iter().filter(|spec| goes(spec) && spec.number != META_TIME_INDEX) {
        changes.delete_range(KeyRange::prefix(&keyspace::index_prefix(&id, spec.number)));
    }
    entry.specs.retain(|spec| !goes(spec));
}
