//! The catalog entry of a collection: identity, options and indexes, as stored and as used.

use std::rc::Rc;

use super::keyspace::CollectionId;
use crate::bucket::CollectionOptions;
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{IndexSpec, META_TIME_INDEX};
use crate::limits::RARE_OPERATORS;
use crate::listed::IntoList;
use crate::query::{Globals, Index};
use crate::value::{Doc, DocBuf, DocWriter, Value};

/// Which buckets of a collection with `dedupe` are still to be moved to windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moving {
    /// None.
    #[default]
    Done,
    /// Those that are not in windows yet.
    Others,
    /// All: those in windows were told apart in another way.
    All,
}

/// The stored identity, options and indexes of a collection.
#[derive(Debug)]
pub struct CollectionEntry {
    /// Random, from `create`. The first eight bytes are the collection's id in the key space.
    pub uuid: [u8; 16],
    /// The normalised options of `create`.
    pub options: CollectionOptions,
    /// True if buckets of several types at one path may be stored as such. Queries expect them in any case.
    pub may_be_mixed: bool,
    /// Which buckets are still to be moved to windows, because the collection did not always have `dedupe`.
    pub moving: Moving,
    /// How often the entry was changed.
    pub version: u64,
    /// Its indexes as specified by users, including the default one.
    pub specs: Vec<Rc<IndexSpec>>,
    /// The stored form of `specs`, if there are more than the default index and they have not been read yet.
    stored: Option<DocBuf>,
    /// `specs`, prepared for planning; empty before `prepare`.
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
            if self.may_be_mixed {
                writer.bool("mixed", true);
            }
            if self.moving != Moving::Done {
                writer.bool("movesAll", self.moving == Moving::All);
            }
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
        let corrupt = || Error::corrupt("A catalog entry is not a collection");
        let doc = Doc::parse(bytes).map_err(|_| corrupt())?;
        let (_, uuid) = doc.get("uuid").and_then(|v| v.as_binary()).ok_or_else(corrupt)?;
        let options = doc.get("options").and_then(|v| v.as_doc()).ok_or_else(corrupt)?;
        let mut entry =
            CollectionEntry::new(uuid.try_into().map_err(|_| corrupt())?, CollectionOptions::from_doc(options)?);
        entry.options.timeseries.rebucketed |= doc.get("rebucketed").and_then(Value::as_bool).unwrap_or_default();
        entry.may_be_mixed |= doc.get("mixed").and_then(Value::as_bool).unwrap_or_default();
        entry.moving = match doc.get("movesAll").and_then(Value::as_bool) {
            None => Moving::Done,
            Some(all) => {
                if all {
                    Moving::All
                } else {
                    Moving::Others
                }
            }
        };
        entry.version = doc.get("version").and_then(Value::as_integer).unwrap_or_default().cast_unsigned();
        if let Some(stored) = doc.get("indexes").and_then(Value::as_array) {
            entry.stored = Some(stored.to_owned());
            let default = entry.specs.pop();
            let known = stored.iter().next().and_then(|(_, spec)| default?.as_stored(spec.as_doc()?));
            entry.specs = known.into_iter().map(Rc::new).listed();
            if entry.specs.len() == stored.iter().count() {
                entry.stored = None;
            }
        }
        Ok(entry)
    }

    /// The entry of a new collection. With a meta field it has the default index.
    pub fn new(uuid: [u8; 16], options: CollectionOptions) -> CollectionEntry {
        let specs = IndexSpec::default_of(&options.timeseries).into_iter().map(Rc::new).listed();
        // With `dedupe`, the time alone decides which bucket takes a row.
        let may_be_mixed = options.dedupe.is_some();
        CollectionEntry {
            uuid,
            options,
            may_be_mixed,
            moving: Moving::Done,
            version: 0,
            specs,
            stored: None,
            indexes: Vec::new(),
        }
    }

    /// True if there are indexes besides the default one.
    pub fn has_more_indexes(&self) -> bool {
        self.stored.is_some() || self.specs.iter().any(|spec| spec.number != META_TIME_INDEX)
    }

    /// Reads the indexes that `decode` did not read.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn read_indexes(&mut self) -> Result<()> {
        let Some(stored) = self.stored.take() else { return Ok(()) };
        let read = |(_, spec): (_, Value<'_>)| {
            let spec = spec.as_doc().ok_or_else(|| Error::corrupt("A catalog entry has a damaged index"))?;
            IndexSpec::read(spec, &self.options.timeseries).map(Rc::new)
        };
        self.specs = stored.view().iter().map(read).try_listed()?;
        Ok(())
    }

    /// Prepares collation and indexes for use.
    ///
    /// Errors: as `CollectionOptions::collate`, `read_indexes` and `Index::new`; `OperationFailed` if code that its
    /// indexes need cannot be loaded.
    pub async fn prepare(&mut self, env: &dyn Env, globals: &Globals) -> Result<()> {
        if self.options.dedupe.is_some() || self.options.collation.is_some() {
            env.complete().await.map_err(|why| Error::new(ErrorCode::OperationFailed, why))?;
        }
        self.options.collate(env)?;
        if self.has_more_indexes() {
            self.read_indexes()?;
            if self.specs.iter().any(|spec| is_rare(spec)) {
                env.complete().await.map_err(|why| Error::new(ErrorCode::OperationFailed, why))?;
            }
            return self.prepare_indexes(globals);
        }
        self.indexes = self.specs.iter().map(|spec| Index::plain(Rc::clone(spec))).listed();
        Ok(())
    }

    fn prepare_indexes(&mut self, globals: &Globals) -> Result<()> {
        let timeseries = &self.options.timeseries;
        let globals = globals.with_collation(&timeseries.collation);
        let ready = |spec: &Rc<IndexSpec>| Index::new(Rc::clone(spec), timeseries, &globals);
        self.indexes = self.specs.iter().map(ready).try_listed()?;
        Ok(())
    }
}

/// True if an index, or its filter, needs `Env::complete`.
fn is_rare(spec: &IndexSpec) -> bool {
    spec.parts.iter().any(|part| part.kind().is_geo())
        || spec.partial.as_ref().is_some_and(|filter| filter.view().mentions(&RARE_OPERATORS))
}
