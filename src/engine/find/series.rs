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
use crate::engine::collections::directory::{Directory, series_key};
use crate::engine::read::scan::{Access, Scan};
use crate::error::Result;
use crate::limits::{KNOWN_SERIES_MAX, LISTED_KEYS_MAX, LISTED_SERIES_MIN, NARROWED_SERIES_MAX};
use crate::query::{Filter, ReadAccess, ReadPlan};
use crate::storage::LocalFuture;
use crate::value::{OwnedValue, Value, sort_by};

/// What is known of the series of one directory.
pub struct Series {
    /// Numbers belong to a directory, and change with it.
    directory: Weak<Directory>,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    /// The metadata of a bucket of each series, by number: `Some(None)` if it has none.
    metas: Vec<Option<Option<OwnedValue>>>,
    /// The last filter, and which series match it.
    filter: Filter,
    matches: Vec<Option<bool>>,
}

impl Series {
    /// True if the series is known to have that metadata, byte for byte.
    pub(super) fn is(&self, number: usize, meta: Option<Value<'_>>) -> bool {
        let known = self.known.borrow();
        known.metas.get(number).and_then(Option::as_ref).is_some_and(|known| match (known, meta) {
            (Some(known), Some(meta)) => {
                let known = known.view();
                known.kind() == meta.kind() && known.bytes() == meta.bytes()
            }
            (known, meta) => known.is_none() && meta.is_none(),
        })
    }

    /// Notes the metadata of a bucket of a series.
    pub(super) fn note(&self, number: usize, meta: Option<Value<'_>>) {
        let metas = &mut self.known.borrow_mut().metas;
        if number >= KNOWN_SERIES_MAX {
            return;
        }
        if metas.len() <= number {
            metas.resize(number + 1, None);
        }
        if let Some(known) = metas.get_mut(number).filter(|known| known.is_none()) {
            *known = Some(meta.map(Value::to_owned));
        }
    }

    /// Whether each of the first `count` series matches a filter that takes metadata that compares equal for the same;
    /// `None` if its metadata is not known.
    ///
    /// Errors: those of the filter.
    pub(super) fn matches(&self, filter: &Filter, count: usize) -> Result<Vec<Option<bool>>> {
        let Known { metas, filter: last, matches } = &mut *self.known.borrow_mut();
        if last != filter {
            *last = filter.clone();
            matches.clear();
        }
        matches.resize(count.max(matches.len()), None);
        for (slot, meta) in matches.iter_mut().zip(metas) {
            if let (None, Some(meta)) = (&slot, meta) {
                *slot = Some(filter.matches_value(meta.as_ref().map(OwnedValue::view))?);
            }
        }
        Ok(matches.clone())
    }

    /// True if nothing is known of the metadata of a series.
    fn is_unknown(&self, number: usize) -> bool {
        self.known.borrow().metas.get(number).is_none_or(Option::is_none)
    }
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
        let collection = Rc::clone(scan.collection());
        // To read a few buckets is faster than to choose among them.
        let series_max = match self.buckets.borrow().count(&collection.id(), range) {
            Some(buckets) => 2 * buckets,
            None => NARROWED_SERIES_MAX,
        };
        let known = collection.directory.borrow().clone();
        let Some(directory) = known.filter(|known| known.epoch() == scan.epoch()) else {
            return Ok(series_max >= LISTED_SERIES_MIN && !self.unlisted.borrow().contains(&collection.id()));
        };
        let count = directory.count();
        if count > series_max || directory.has_arrays() {
            return Ok(false);
        }
        let series = self.series_of(&directory);
        let listed = directory.buckets();
        let place = |number: usize, id: &BucketId| {
            listed.partition_point(|one| (one.series as usize, &one.id) < (number, id))
        };
        for number in (0..count).filter(|number| series.is_unknown(*number)) {
            if let Some(first) = listed.get(place(number, low)) {
                self.note_series(&collection, &directory, &series, number, &first.id)?;
            }
        }
        // Which of their rows are also journal rows, only the stored buckets can tell.
        let mut journalled: Vec<BucketId> = scan.groups().map(|group| group.bucket).collect();
        sort_by(&mut journalled, Ord::cmp);
        let mut wanted = Vec::new();
        for (number, matches) in series.matches(filter, count)?.into_iter().enumerate() {
            let is_out = matches == Some(false);
            if is_out && journalled.is_empty() {
                continue;
            }
            let within = listed.get(place(number, low)..).unwrap_or_default().iter();
            let within = within.take_while(|one| one.series as usize == number && one.id <= *high).map(|one| one.id);
            wanted.extend(within.filter(|id| !is_out || journalled.binary_search(id).is_ok()));
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

    /// Notes the metadata of a series from one of its buckets, if that is in memory.
    fn note_series(
        &self,
        collection: &Collection,
        directory: &Directory,
        series: &Series,
        number: usize,
        bucket: &BucketId,
    ) -> Result<()> {
        let stored = self.buckets.borrow().get(&collection.id(), bucket).flatten();
        if let Some(stored) = stored {
            let entry = collection.entry();
            let view = stored.view(&entry.options.timeseries)?;
            if directory.number(&series_key(&entry.options.timeseries, view.meta())) == Some(number) {
                series.note(number, view.meta());
            }
        }
        Ok(())
    }
}
