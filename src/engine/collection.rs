//! A collection as this context knows it: its options, its open buckets, its unfolded commits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::expire::Measured;
use super::keyspace::{CollectionId, ContextId};
use super::own_journal::OwnJournal;
use super::record::Record;
use super::sections::View;
use super::signal::Signal;
use super::sorted_map::SortedMap;
use super::write::Queue;
use crate::bucket::CollectionOptions;
use crate::catalog::{Catalog, CatalogOptions, Counter, Totals};
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{IndexSpec, META_TIME_INDEX};
use crate::limits::{JOURNAL_BACKPRESSURE_FACTOR, JOURNAL_SIZE_BYTES_MAX, RARE_OPERATORS};
use crate::query::{Globals, Index};
use crate::value::{Collation, Doc, DocBuf, DocWriter, Value};

/// What storage holds about a collection: identity and options.
#[derive(Debug)]
pub struct CollectionEntry {
    /// Drawn at random by `create`. Its first eight bytes are the collection's id in the key space.
    pub uuid: [u8; 16],
    /// The options of `create`, normalised.
    pub options: CollectionOptions,
    /// How often the entry was changed.
    pub version: u64,
    /// Its indexes as users have made them, the default one among them.
    pub specs: Vec<Rc<IndexSpec>>,
    /// The same as they are stored, where there are more than the default one and they are not read yet.
    stored: Option<DocBuf>,
    /// The same as `specs`, ready for planning; empty before `prepare`.
    pub indexes: Vec<Index>,
}

impl CollectionEntry {
    /// The prefix of the collection's keys.
    pub fn id(&self) -> CollectionId {
        self.uuid.first_chunk::<8>().copied().unwrap_or_default()
    }

    /// The stored form.
    pub fn encode(&self) -> DocBuf {
        let options = self.options.to_doc();
        let mut writer = DocWriter::new();
        writer.binary("uuid", 4, &self.uuid).doc("options", options.view());
        if self.version > 0 {
            writer.int64("version", self.version.cast_signed());
            writer.bool("rebucketed", self.options.timeseries.rebucketed);
            writer.begin_array("indexes");
            for (place, spec) in self.specs.iter().enumerate() {
                writer.begin_doc(&place.to_string());
                spec.write(&mut writer);
                writer.end();
            }
            writer.end();
        }
        writer.finish()
    }

    /// Reads the stored form.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn decode(bytes: &[u8]) -> Result<CollectionEntry> {
        let corrupt = || Error::corrupt("A catalog entry does not hold a collection");
        let doc = Doc::parse(bytes).map_err(|_| corrupt())?;
        let (_, uuid) = doc.get("uuid").and_then(|v| v.as_binary()).ok_or_else(corrupt)?;
        let options = doc.get("options").and_then(|v| v.as_doc()).ok_or_else(corrupt)?;
        let mut entry =
            CollectionEntry::new(uuid.try_into().map_err(|_| corrupt())?, CollectionOptions::from_doc(options)?);
        entry.options.timeseries.rebucketed = doc.get("rebucketed").and_then(Value::as_bool).unwrap_or_default();
        entry.version = doc.get("version").and_then(Value::as_integer).unwrap_or_default().cast_unsigned();
        if let Some(stored) = doc.get("indexes").and_then(Value::as_array) {
            entry.stored = Some(stored.to_owned());
            let default = entry.specs.pop();
            let known = stored.iter().next().and_then(|(_, spec)| default?.as_stored(spec.as_doc()?));
            entry.specs = known.into_iter().map(Rc::new).collect();
            if entry.specs.len() == stored.iter().count() {
                entry.stored = None;
            }
        }
        Ok(entry)
    }

    /// The entry of a new collection, which has the default index where it has a metaField.
    pub fn new(uuid: [u8; 16], options: CollectionOptions) -> CollectionEntry {
        let specs = IndexSpec::default_of(&options.timeseries).into_iter().map(Rc::new).collect();
        CollectionEntry { uuid, options, version: 0, specs, stored: None, indexes: Vec::new() }
    }

    /// True where there are other indexes than the one over metadata and time.
    pub fn has_more_indexes(&self) -> bool {
        self.stored.is_some() || self.specs.iter().any(|spec| spec.number != META_TIME_INDEX)
    }

    /// Reads the indexes that `decode` has left.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn read_indexes(&mut self) -> Result<()> {
        let Some(stored) = self.stored.take() else { return Ok(()) };
        let read = |(_, spec): (_, Value<'_>)| {
            let spec = spec.as_doc().ok_or_else(|| Error::corrupt("A catalog entry holds a damaged index"))?;
            IndexSpec::read(spec, &self.options.timeseries).map(Rc::new)
        };
        self.specs = stored.view().iter().map(read).collect::<Result<_>>()?;
        Ok(())
    }

    /// Makes ready what it takes to compare strings and to plan.
    ///
    /// Errors: as `CollectionOptions::collate`, `read_indexes` and `Index::new`; `OperationFailed` where code that its indexes need cannot
    /// be had.
    pub async fn prepare(&mut self, env: &dyn Env, globals: &Globals) -> Result<()> {
        self.options.collate(env)?;
        if self.has_more_indexes() {
            self.read_indexes()?;
            if self.specs.iter().any(|spec| is_rare(spec)) {
                env.complete().await.map_err(|why| Error::new(ErrorCode::OperationFailed, why))?;
            }
            return self.prepare_indexes(globals);
        }
        self.indexes = self.specs.iter().map(|spec| Index::plain(Rc::clone(spec))).collect();
        Ok(())
    }

    fn prepare_indexes(&mut self, globals: &Globals) -> Result<()> {
        let timeseries = &self.options.timeseries;
        let globals = globals.with_collation(&timeseries.collation);
        let ready = |spec: &Rc<IndexSpec>| Index::new(Rc::clone(spec), timeseries, &globals);
        self.indexes = self.specs.iter().map(ready).collect::<Result<_>>()?;
        Ok(())
    }
}

/// True where the entries of an index, or its filter, take what comes with `Env::complete`.
fn is_rare(spec: &IndexSpec) -> bool {
    spec.parts.iter().any(|part| part.kind().is_geo())
        || spec.partial.as_ref().is_some_and(|filter| filter.view().mentions(&RARE_OPERATORS))
}

/// A collection in use.
pub struct Collection {
    /// The name that users know.
    pub name: String,
    /// Its entry when this context first saw it: identity, fields and collation, which stay.
    first: Rc<CollectionEntry>,
    /// Its entry as far as this context knows.
    entry: RefCell<Rc<CollectionEntry>>,
    /// Open buckets.
    pub(super) catalog: RefCell<Catalog>,
    /// True once dates outside the standard range are known to be stored.
    pub(super) extended_range: Cell<bool>,
    /// Decoded journal records, of any context. A cache: storage says which of them exist.
    pub(super) records: RefCell<SortedMap<(ContextId, u64), Rc<Record>>>,
    /// The journals by bucket, as they were looked at last.
    pub(super) view: RefCell<View>,
    /// This context's unfolded records: seq and size in memory. They are all that storage has as long as `epoch` is the present one.
    pub(super) own: RefCell<OwnJournal>,
    /// Commits that have failed since all of this context's records were listed: theirs may be in storage, and `own` does not know them.
    pub(super) doubtful_commits: Cell<usize>,
    pub(super) queue: RefCell<Queue>,
    /// What memory holds of its buckets is at least as new as this. See `bucket_cache`.
    pub(super) epoch: Cell<u64>,
    /// The sizes of all stored buckets, in order of their ids, where they are known at `epoch`. Of use with a `maxBytes`.
    pub(super) measured: RefCell<Option<Vec<Measured>>>,
    /// How often queries have gone through which index, by number.
    pub(super) index_uses: RefCell<Vec<(u16, i64)>>,
    /// Since when that is counted.
    pub since_ms: i64,
    /// The fold that runs.
    pub(super) folding: RefCell<Option<Signal>>,
}

impl Collection {
    /// A collection without open buckets. `seed` must be random.
    pub(super) fn new(
        name: &str,
        entry: CollectionEntry,
        catalog_options: CatalogOptions,
        totals: &Rc<Totals>,
        seed: u64,
        since_ms: i64,
    ) -> Collection {
        let options = entry.options.timeseries.clone();
        let entry = Rc::new(entry);
        Collection {
            name: name.to_owned(),
            catalog: RefCell::new(Catalog::new(options, catalog_options, Rc::clone(totals), seed)),
            entry: RefCell::new(Rc::clone(&entry)),
            first: entry,
            extended_range: Cell::new(false),
            records: RefCell::default(),
            view: RefCell::default(),
            own: RefCell::default(),
            doubtful_commits: Cell::new(0),
            queue: RefCell::default(),
            epoch: Cell::new(0),
            measured: RefCell::default(),
            index_uses: RefCell::default(),
            since_ms,
            folding: RefCell::new(None),
        }
    }

    /// Its identity and options. Others may change them: reads, folds and deletes notice it, inserts do not.
    pub fn entry(&self) -> Rc<CollectionEntry> {
        Rc::clone(&self.entry.borrow())
    }

    /// Takes over an entry that storage holds. Rows go to new buckets where these are to be filled in another way.
    pub(super) fn set_entry(&self, entry: CollectionEntry) {
        if entry.options.timeseries != self.entry().options.timeseries {
            self.catalog.borrow_mut().reconfigure(entry.options.timeseries.clone());
        }
        *self.entry.borrow_mut() = Rc::new(entry);
    }

    /// The prefix of its keys.
    pub fn id(&self) -> CollectionId {
        self.first.id()
    }

    /// How strings compare unless a query says otherwise.
    pub fn collation(&self) -> &Collation {
        &self.first.options.timeseries.collation
    }

    /// Name of the time field.
    pub fn time_field(&self) -> &str {
        &self.first.options.timeseries.time_field
    }

    /// Name of the metadata field.
    pub fn meta_field(&self) -> Option<&str> {
        self.first.options.timeseries.meta_field.as_deref()
    }

    /// What the catalog counted in this context.
    pub fn stats(&self) -> crate::catalog::Stats {
        self.catalog.borrow().stats()
    }

    /// Counts what the catalog cannot see itself.
    pub fn count(&self, counter: Counter, n: u64) {
        self.catalog.borrow_mut().count(counter, n);
    }

    /// Counts a query that goes through an index.
    pub(super) fn count_use(&self, number: u16) {
        let mut uses = self.index_uses.borrow_mut();
        match uses.iter_mut().find(|(known, _)| *known == number) {
            Some((_, n)) => *n += 1,
            None => uses.push((number, 1)),
        }
    }

    /// How many queries have gone through an index in this context.
    pub fn uses_of(&self, number: u16) -> i64 {
        self.index_uses.borrow().iter().find(|(known, _)| *known == number).map_or(0, |(_, n)| *n)
    }

    fn journal_size_bytes(&self) -> usize {
        self.own.borrow().size_bytes()
    }

    /// True where this context's journal has passed its bound and nobody folds it yet.
    pub(super) fn fold_due(&self) -> bool {
        self.folding.borrow().is_none() && self.journal_size_bytes() > JOURNAL_SIZE_BYTES_MAX
    }

    /// True where inserts outran the fold so far that the next one has to wait.
    pub(super) fn is_congested(&self) -> bool {
        self.journal_size_bytes() > JOURNAL_BACKPRESSURE_FACTOR * JOURNAL_SIZE_BYTES_MAX
    }
}
