//! The metadata of series, as far as queries have met it: a filter on metadata is asked once per series, and the buckets
//! of series that do not match are not fetched.
//!
//! The directory knows series by the keys of an index, from which no filter can read.

// Loaded later.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::collections::directory::{Directory, Listed, series_key};
use crate::engine::read::scan::{Access, Scan};
use crate::error::Result;
use crate::limits::{
    KNOWN_FIELDS_MAX, KNOWN_SERIES_MAX, LISTED_A_SERIES, LISTED_KEYS_MAX, LISTED_SERIES_MIN, NARROWED_SERIES_MAX,
};
use crate::query::{Filter, ReadAccess, ReadPlan};
use crate::storage::LocalFuture;
use crate::value::{Interner, Kind, OwnedValue, Value, sort_by};

/// What is known of the series of one directory.
pub struct Series {
    /// Numbers belong to a directory, and change with it.
    directory: Weak<Directory>,
    known: RefCell<KnownSeries>,
}

#[derive(Default)]
struct KnownSeries {
    /// The metadata of a bucket of each series, by number: `Some(None)` if it has none.
    metas: Vec<Option<Option<OwnedValue>>>,
    /// The bytes of all objects met as metadata, and the numbers of their series.
    met: Interner,
    numbers: Vec<usize>,
    /// The values of the fields that filters have read last.
    fields: Vec<SeriesField>,
    /// The last filter, and which series match it.
    filter: Filter,
    matches: Vec<Option<bool>>,
}

/// The values of one field of the metadata, each once.
#[derive(Default)]
struct SeriesField {
    name: Box<str>,
    /// The numbers of values by their bytes.
    numbers: Interner,
    /// The values by number; one may be that the field is missing.
    values: Vec<Option<OwnedValue>>,
    /// The number of the value that each series has; `None` if its metadata is no object, or not known yet.
    of_series: Vec<Option<usize>>,
}

impl SeriesField {
    /// Learns the values of series whose metadata was not known before.
    fn learn(&mut self, metas: &[Option<Option<OwnedValue>>]) {
        self.of_series.resize(metas.len(), None);
        for (slot, meta) in self.of_series.iter_mut().zip(metas) {
            let meta = meta.as_ref().and_then(Option::as_ref).map(OwnedValue::view);
            if slot.is_none()
                && let Some(meta) = meta.and_then(Value::as_doc)
            {
                let value = meta.get(&self.name).map(Value::to_owned);
                let (number, is_new) = self.numbers.add(value.as_ref().map_or(&[], OwnedValue::tagged));
                self.values.extend(is_new.then_some(value));
                *slot = Some(number);
            }
        }
    }

    /// The field with that name among those that are kept, moved to their end.
    fn named<'a>(fields: &'a mut Vec<SeriesField>, name: &str) -> Option<&'a mut SeriesField> {
        let field = match fields.iter().position(|field| &*field.name == name) {
            Some(at) => fields.remove(at),
            None => SeriesField { name: name.into(), ..SeriesField::default() },
        };
        if fields.len() >= KNOWN_FIELDS_MAX {
            fields.remove(0);
        }
        fields.push(field);
        fields.last_mut()
    }
}

impl Series {
    /// The number of the series with that object as metadata, byte for byte, if it was met before. The key of an object in
    /// an index takes longer to make than to look its bytes up.
    pub(super) fn number(&self, meta: Option<Value<'_>>) -> Option<usize> {
        let known = self.known.borrow();
        known.numbers.get(known.met.get(object_bytes(meta)?)?).copied()
    }

    /// Notes the metadata of a bucket of a series.
    pub(super) fn note(&self, number: usize, meta: Option<Value<'_>>) {
        let known = &mut *self.known.borrow_mut();
        if number >= KNOWN_SERIES_MAX || known.numbers.len() >= KNOWN_SERIES_MAX {
            return;
        }
        if let Some(bytes) = object_bytes(meta)
            && known.met.add(bytes).1
        {
            known.numbers.push(number);
        }
        if known.metas.len() <= number {
            known.metas.resize(number + 1, None);
        }
        if let Some(known) = known.metas.get_mut(number).filter(|known| known.is_none()) {
            *known = Some(meta.map(Value::to_owned));
        }
    }

    /// Whether each of the first `count` series matches a filter that takes metadata that compares equal for the same;
    /// `None` if its metadata is not known.
    ///
    /// Errors: those of the filter.
    pub(super) fn matches(&self, filter: &Filter, count: usize) -> Result<Vec<Option<bool>>> {
        let KnownSeries { metas, fields, filter: last, matches, .. } = &mut *self.known.borrow_mut();
        if last != filter {
            *last = filter.clone();
            matches.clear();
        }
        matches.resize(count.max(matches.len()), None);
        let mut open: Vec<(&mut Option<bool>, &Option<OwnedValue>, usize)> = matches
            .iter_mut()
            .zip(metas.iter())
            .zip(0..)
            .filter_map(|((slot, meta), number)| Some((slot, meta.as_ref()?, number)).filter(|open| open.0.is_none()))
            .collect();
        for conjunct in filter.conjuncts() {
            let mut field = conjunct.field_below().and_then(|name| SeriesField::named(fields, name));
            field.iter_mut().for_each(|field| field.learn(metas));
            // The same value decides for many series, unless only a few are new.
            let field = field.filter(|field| field.values.len() <= 2 * open.len());
            let values = field.as_ref().map_or(&[][..], |field| &field.values);
            let texts = conjunct.texts_below();
            let decide = |value: Option<Value<'_>>| match (&texts, value) {
                (Some(texts), Some(value)) if value.kind() == Kind::String => {
                    Ok(texts.iter().any(|text| text.bytes() == value.bytes()))
                }
                _ => conjunct.matches_field(value),
            };
            let values = values.iter().map(|value| decide(value.as_ref().map(OwnedValue::view)));
            let decided: Vec<bool> = values.collect::<Result<_>>()?;
            let mut left = Vec::with_capacity(open.len());
            for (slot, meta, number) in open {
                let value = field.as_ref().and_then(|field| *field.of_series.get(number)?);
                let matches = match value.and_then(|value| decided.get(value)) {
                    Some(matches) => *matches,
                    None => conjunct.matches_value(meta.as_ref().map(OwnedValue::view))?,
                };
                if matches {
                    left.push((slot, meta, number));
                } else {
                    *slot = Some(false);
                }
            }
            open = left;
        }
        open.into_iter().for_each(|(slot, ..)| *slot = Some(true));
        Ok(matches.clone())
    }

    /// True if the metadata of the first `count` series is known.
    fn knows(&self, count: usize) -> bool {
        self.known.borrow().metas.get(..count).is_some_and(|metas| metas.iter().all(Option::is_some))
    }

    /// True if nothing is known of the metadata of a series.
    fn is_unknown(&self, number: usize) -> bool {
        self.known.borrow().metas.get(number).is_none_or(Option::is_none)
    }
}

fn object_bytes(meta: Option<Value<'_>>) -> Option<&[u8]> {
    meta.filter(|meta| meta.kind() == Kind::Object).map(Value::bytes)
}

impl Engine {
    /// What is known of the series of `directory`.
    pub(super) fn series_of(&self, directory: &Rc<Directory>) -> Rc<Series> {
        let mut all = self.series.borrow_mut();
        all.retain(|series| series.directory.strong_count() > 0);
        let this = Rc::downgrade(directory);
        if let Some(known) = all.iter().find(|series| series.directory.ptr_eq(&this)) {
            return Rc::clone(known);
        }
        let new = Rc::new(Series { directory: this, known: RefCell::default() });
        all.push(Rc::clone(&new));
        new
    }

    /// Aims a scan of a range of buckets at those whose metadata may match. True if the buckets of the collection must be
    /// listed for that first.
    #[inline(never)]
    pub(super) fn narrow_if_loaded(&self, scan: &mut Scan, plan: &ReadPlan) -> bool {
        self.try_narrow(scan, plan).unwrap_or_default()
    }

    /// Errors: those of filters; `DataCorruptionDetected`. The rows raise them again.
    fn try_narrow(&self, scan: &mut Scan, plan: &ReadPlan) -> Result<bool> {
        let (ReadAccess::Buckets { low, high }, Some(filter), Some(range)) =
            (&plan.access, plan.metadata_filter(), scan.range())
        else {
            return Ok(false);
        };
        let collection = scan.collection();
        // To read a few buckets is faster than to choose among them.
        let in_memory = self.buckets.borrow().count(&collection.id(), range);
        let series_max = in_memory.map_or(NARROWED_SERIES_MAX, |buckets| 2 * buckets);
        let known = collection.known.directory.borrow().clone();
        let Some(directory) = known.filter(|known| known.epoch() == scan.epoch()) else {
            return Ok(series_max >= LISTED_SERIES_MIN && !self.unlisted.borrow().contains(&collection.id()));
        };
        let is_long = directory.count() > series_max || directory.buckets().len() > LISTED_A_SERIES * series_max;
        if is_long || directory.has_arrays() {
            return Ok(false);
        }
        let series = self.series_of(&directory);
        let runs = || directory.buckets().chunk_by(|a, b| a.series == b.series);
        if !series.knows(directory.count()) {
            for run in runs() {
                run.first().map_or(Ok(()), |first| self.learn_series(collection, &directory, &series, first))?;
            }
        }
        // Which of their rows are also journal rows, only the stored buckets can tell.
        let mut journalled: Vec<BucketId> = scan.groups().map(|group| group.bucket).collect();
        sort_by(&mut journalled, Ord::cmp);
        let matches = series.matches(filter, directory.count())?;
        let mut wanted: Vec<BucketId> = Vec::new();
        for run in runs() {
            let is_out = run.first().is_some_and(|one| matches.get(one.series as usize) == Some(&Some(false)));
            if is_out && journalled.is_empty() {
                continue;
            }
            let from = run.partition_point(|one| one.id < *low);
            let listed = run.iter().skip(from).map(|one| one.id).take_while(|id| id <= high);
            wanted.extend(listed.filter(|id| !is_out || journalled.binary_search(id).is_ok()));
        }
        sort_by(&mut wanted, Ord::cmp);
        scan.aim(Access::Ids(wanted));
        Ok(false)
    }

    /// Lists the buckets of each series, if they are not too many.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) fn list_series<'a>(&'a self, scan: &'a Scan) -> LocalFuture<'a, ()> {
        Box::pin(async move {
            let collection = scan.collection();
            if self.directory(collection, scan.epoch(), LISTED_KEYS_MAX).await?.is_none() {
                self.unlisted.borrow_mut().push(collection.id());
            }
            Ok(())
        })
    }

    /// Notes the metadata of a series that is not known yet, from one of its buckets, if that is in memory.
    fn learn_series(
        &self,
        collection: &Collection,
        directory: &Directory,
        series: &Series,
        one: &Listed,
    ) -> Result<()> {
        let number = one.series as usize;
        if series.is_unknown(number)
            && let Some(stored) = self.buckets.borrow().get(&collection.id(), &one.id).flatten()
        {
            let entry = collection.entry();
            let meta = stored.view(&entry.options.timeseries)?.meta();
            if directory.number(&series_key(&entry.options.timeseries, meta)) == Some(number) {
                series.note(number, meta);
            }
        }
        Ok(())
    }
}
