//! The metadata of series, as far as queries have met it: a filter on metadata is asked once per series, and the buckets
//! of series that do not match are not fetched.
//!
//! The directory knows series by the keys of an index, from which no filter can read.

// Loaded later.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::series_fields::{SeriesField, matching as matching_series};
use super::series_groups::GroupSeries;
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::collections::directory::{Directory, Listed, series_key};
use crate::engine::read::scan::{Access, Scan};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::limits::{
    KEYS_PAGE, KNOWN_SERIES_BYTES_MAX, KNOWN_SERIES_MAX, LISTED_KEYS_A_BUCKET, LISTED_KEYS_MAX, LISTED_SERIES_MIN,
    NARROWED_SERIES_MAX, SCAN_PAGE_BUCKETS,
};
use crate::listed::IntoList;
use crate::query::{Filter, ReadAccess, ReadPlan};
use crate::storage::LocalFuture;
use crate::value::{Interner, Kind, OwnedValue, Value, sort_by};

/// What is known of the series of one directory.
pub struct Series {
    /// How long the numbers are valid.
    numbering: Weak<()>,
    known: RefCell<KnownSeries>,
    /// The series of groups of the journals.
    pub(super) groups: RefCell<GroupSeries>,
}

/// A series that a filter on metadata does not exclude.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub number: u32,
    /// Whether its metadata matches; `None` if that is not known.
    pub matches: Option<bool>,
}

#[derive(Default)]
struct KnownSeries {
    /// The metadata of a bucket of each series, by number: `Some(None)` if it has none.
    metas: Vec<Option<Option<OwnedValue>>>,
    /// Of how many series the metadata is known, and its bytes.
    known: usize,
    size_bytes: usize,
    /// The bytes of all objects met as metadata, and the numbers of their series.
    met: Interner,
    numbers: Vec<usize>,
    /// The values of the fields that filters have read last.
    fields: Vec<SeriesField>,
    /// The last filter, of how many series the metadata was known then, and which of them match, in ascending order.
    filter: Filter,
    filtered: usize,
    matching: Vec<usize>,
}

impl Chosen {
    pub(super) fn new(number: usize, matches: Option<bool>) -> Chosen {
        Chosen { number: u32::try_from(number).unwrap_or(u32::MAX), matches }
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
        if number >= KNOWN_SERIES_MAX || self.is_full() {
            return;
        }
        let KnownSeries { metas, known: count, size_bytes, met, numbers, .. } = &mut *self.known.borrow_mut();
        if let Some(bytes) = object_bytes(meta)
            && met.add(bytes).1
        {
            numbers.push(number);
        }
        if metas.len() <= number {
            metas.resize(number + 1, None);
        }
        if let Some(known) = metas.get_mut(number).filter(|known| known.is_none()) {
            *known = Some(meta.map(Value::to_owned));
            *count += 1;
            *size_bytes += meta.map_or(0, |meta| meta.bytes().len());
        }
    }

    /// True if no more is noted.
    fn is_full(&self) -> bool {
        let known = self.known.borrow();
        known.numbers.len() >= KNOWN_SERIES_MAX || known.size_bytes >= KNOWN_SERIES_BYTES_MAX
    }

    /// Those of the first `count` series that may match a filter that takes metadata that compares equal for the same, in
    /// ascending order.
    ///
    /// Errors: those of the filter.
    pub(super) fn choose(&self, filter: &Filter, count: usize) -> Result<Vec<Chosen>> {
        let knows_all = self.knows(count);
        let KnownSeries { metas, known, fields, filter: last, filtered, matching, .. } = &mut *self.known.borrow_mut();
        if (*filtered, &*last) != (*known, filter) {
            *matching = matching_series(fields, metas, *known, filter)?;
            (*filtered, *last) = (*known, filter.clone());
        }
        let matching =
            matching.iter().take_while(|number| **number < count).map(|number| Chosen::new(*number, Some(true)));
        if knows_all {
            return Ok(matching.listed());
        }
        let is_unknown = |number: &usize| metas.get(*number).is_none_or(Option::is_none);
        let unknown = (0..count).filter(is_unknown).map(|number| Chosen::new(number, None));
        let mut chosen: Vec<Chosen> = matching.chain(unknown).listed();
        sort_by(&mut chosen, |a, b| a.number.cmp(&b.number));
        Ok(chosen)
    }

    /// True if the metadata of the first `count` series is known.
    fn knows(&self, count: usize) -> bool {
        let known = &*self.known.borrow();
        match known.metas.get(..count) {
            Some(first) if known.known < known.metas.len() => first.iter().all(Option::is_some),
            first => first.is_some(),
        }
    }

    /// Those of the first `count` series of whose metadata nothing is known.
    fn unknown(&self, count: usize) -> Vec<u32> {
        let known = self.known.borrow();
        let is_unknown = |number: &usize| known.metas.get(*number).is_none_or(Option::is_none);
        (0..count).filter(is_unknown).filter_map(|number| u32::try_from(number).ok()).listed()
    }
}

/// How many keys of the default index are worth listing to choose among the buckets of a range.
fn listed_max(in_memory: Option<usize>) -> usize {
    let for_buckets = in_memory.map_or(0, |buckets| LISTED_KEYS_A_BUCKET * buckets);
    // A collection with more is asked again for twice as many, not for each range that is a little longer.
    for_buckets.next_power_of_two().clamp(LISTED_KEYS_MAX, KEYS_PAGE)
}

fn object_bytes(meta: Option<Value<'_>>) -> Option<&[u8]> {
    meta.filter(|meta| meta.kind() == Kind::Object).map(Value::bytes)
}

impl Engine {
    /// What is known of the series of `directory`.
    pub(super) fn series_of(&self, directory: &Rc<Directory>) -> Rc<Series> {
        let mut all = self.series.borrow_mut();
        all.retain(|series| series.numbering.strong_count() > 0);
        let numbering = Rc::downgrade(directory.numbering());
        if let Some(known) = all.iter().find(|series| series.numbering.ptr_eq(&numbering)) {
            return Rc::clone(known);
        }
        let new = Rc::new(Series { numbering, known: RefCell::default(), groups: RefCell::default() });
        all.push(Rc::clone(&new));
        new
    }

    /// Aims a scan of a range of buckets at those whose metadata may match. True if `prepare` must find something out for
    /// that, which then aims the scan.
    #[inline(never)]
    pub(super) fn narrow_if_loaded(&self, scan: &mut Scan, plan: &ReadPlan) -> bool {
        if (plan.order == Some(false) && self.wants_end(scan)) || self.wants_series(scan, plan) {
            return true;
        }
        if let Some(directory) = known_directory(scan) {
            // The rows raise its errors again.
            let _ = self.try_narrow(scan, plan, &directory);
        }
        false
    }

    /// True if what is known of the series is worth more storage calls.
    fn wants_series(&self, scan: &Scan, plan: &ReadPlan) -> bool {
        if narrowed_range(scan, plan).is_none() {
            return false;
        }
        match known_directory(scan) {
            Some(directory) => !samples(&directory, &self.series_of(&directory)).is_empty(),
            None => self.keys_worth(scan, plan).is_some(),
        }
    }

    /// How many keys of the default index are worth listing for a scan of a range, if any.
    fn keys_worth(&self, scan: &Scan, plan: &ReadPlan) -> Option<usize> {
        let id = scan.collection().id();
        // To read a few buckets is faster than to choose among them.
        let in_memory = self.buckets_in_memory(scan);
        let may_be_many = in_memory.is_none_or(|buckets| 2 * buckets >= LISTED_SERIES_MIN);
        // To read all buckets takes longer than to list them. If many buckets of a range were read before, and still not all
        // are in memory, it is too long to stay there, and would be read from storage each time.
        let (count, is_all) = scan.range().map_or((0, true), |range| self.buckets.borrow().count(&id, range));
        let is_too_long = !is_all && count >= NARROWED_SERIES_MAX;
        let lists_all = reads_all(plan) && (is_whole(plan) || is_too_long);
        let keys_max = if lists_all { usize::MAX } else { listed_max(in_memory) };
        let is_unlisted = self.unlisted.borrow().iter().any(|known| known.0 == id && known.1 >= keys_max);
        (may_be_many && !is_unlisted).then_some(keys_max)
    }

    /// Finds out where the data ends, and lists the buckets of each series, as far as that is worth its storage calls.
    /// Then aims the scan.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) fn prepare<'a>(&'a self, scan: &'a mut Scan, plan: &'a ReadPlan) -> LocalFuture<'a, ()> {
        Box::pin(async move {
            let collection = Rc::clone(scan.collection());
            if plan.order == Some(false) && self.wants_end(scan) {
                self.find_end(&collection).await?;
            }
            if narrowed_range(scan, plan).is_none() {
                return Ok(());
            }
            let mut known = known_directory(scan);
            if known.is_none()
                && let Some(keys_max) = self.keys_worth(scan, plan)
            {
                // One that is too large to be kept serves this scan.
                known = self.directory(&collection, scan.epoch(), keys_max).await?;
                if known.is_none() && keys_max < usize::MAX {
                    self.unlisted.borrow_mut().push((collection.id(), keys_max));
                }
            }
            let Some(directory) = known else { return Ok(()) };
            let series = self.series_of(&directory);
            for page in samples(&directory, &series).chunks(SCAN_PAGE_BUCKETS) {
                let ids: Vec<BucketId> = page.iter().map(|one| one.id).listed();
                for (one, stored) in page.iter().zip(self.fetch(&collection, &ids).await?) {
                    stored.map_or(Ok(()), |stored| learn(&collection, &directory, &series, one, &stored))?;
                }
            }
            // The rows raise its errors again.
            let _ = self.try_narrow(scan, plan, &directory);
            Ok(())
        })
    }

    /// Errors: those of filters; `DataCorruptionDetected`.
    fn try_narrow(&self, scan: &mut Scan, plan: &ReadPlan, directory: &Rc<Directory>) -> Result<()> {
        let (Some((low, high)), Some(filter)) = (narrowed_range(scan, plan), plan.metadata_filter()) else {
            return Ok(());
        };
        let collection = Rc::clone(scan.collection());
        let mut series_max = self.buckets_in_memory(scan).map_or(NARROWED_SERIES_MAX, |buckets| 2 * buckets);
        if reads_all(plan) {
            series_max = series_max.max(directory.buckets().len() / LISTED_KEYS_A_BUCKET);
        }
        if directory.count() > series_max || directory.has_arrays() {
            return Ok(());
        }
        let series = self.series_of(directory);
        if !series.knows(directory.count()) {
            for number in series.unknown(directory.count()) {
                if let Some(first) = directory.buckets_of(number).first()
                    && let Some(stored) = self.buckets.borrow().get(&collection.id(), &first.id).flatten()
                {
                    learn(&collection, directory, &series, first, &stored)?;
                }
            }
        }
        let chosen = series.choose(filter, directory.count())?;
        if is_whole(plan) && scan.expects_runs() {
            let wanted = chosen.iter().map(|chosen| directory.places_of(chosen.number).len()).sum();
            if self.prefers_runs(scan, wanted, true) {
                return Ok(());
            }
        }
        let mut wanted: Vec<BucketId> = Vec::new();
        for chosen in chosen {
            let buckets = directory.buckets_of(chosen.number);
            let from = buckets.partition_point(|one| one.id < low);
            wanted.extend(buckets.iter().skip(from).map(|one| one.id).take_while(|id| *id <= high));
        }
        // Which of their rows are also journal rows, only the stored buckets can tell.
        series.add_listed(scan, directory, &mut wanted);
        if scan.expects_runs() && self.prefers_runs(scan, wanted.len(), true) {
            return Ok(());
        }
        sort_by(&mut wanted, Ord::cmp);
        wanted.dedup();
        scan.aim(Access::Ids(wanted));
        Ok(())
    }

    /// How many buckets of the range that is scanned are in memory, if these are all or many.
    pub(super) fn buckets_in_memory(&self, scan: &Scan) -> Option<usize> {
        let (count, is_all) = self.buckets.borrow().count(&scan.collection().id(), scan.range()?);
        (is_all || 2 * count > NARROWED_SERIES_MAX).then_some(count)
    }
}

/// The range of buckets that a scan reads, if a filter on metadata may leave out some of them.
fn narrowed_range(scan: &Scan, plan: &ReadPlan) -> Option<(BucketId, BucketId)> {
    match (&plan.access, plan.metadata_filter(), scan.range()) {
        (ReadAccess::Buckets { low, high }, Some(_), Some(_)) => Some((*low, *high)),
        _ => None,
    }
}

/// True if a plan needs so many rows that it probably reads most buckets of its range.
fn reads_all(plan: &ReadPlan) -> bool {
    let wanted = plan.plan.limit.map_or(u64::MAX, |limit| limit.saturating_add(plan.plan.skip));
    wanted > SCAN_PAGE_BUCKETS as u64
}

/// True if that range is the whole collection.
pub(super) fn is_whole(plan: &ReadPlan) -> bool {
    matches!(&plan.access, ReadAccess::Buckets { low, high } if (*low, *high) == (BucketId::MIN, BucketId::MAX))
}

/// The directory, if it is in memory and of the epoch of the scan.
fn known_directory(scan: &Scan) -> Option<Rc<Directory>> {
    scan.collection().known.directory.borrow().clone().filter(|known| known.epoch() == scan.epoch())
}

/// A bucket of each series of which nothing is known, if these have many more buckets.
fn samples(directory: &Directory, series: &Series) -> Vec<Listed> {
    let count = directory.count();
    if directory.has_arrays() || count > KNOWN_SERIES_MAX || series.is_full() || series.knows(count) {
        return Vec::new();
    }
    let unknown = series.unknown(count);
    let buckets: usize = unknown.iter().map(|number| directory.places_of(*number).len()).sum();
    if buckets < LISTED_KEYS_A_BUCKET * unknown.len() {
        return Vec::new();
    }
    let mut first = unknown.iter().filter_map(|number| directory.buckets_of(*number).first().cloned()).listed();
    // Storage reads neighbours together.
    sort_by(&mut first, |a, b| a.id.cmp(&b.id));
    first
}

/// Notes the metadata of a series from one of its buckets.
fn learn(
    collection: &Collection,
    directory: &Directory,
    series: &Series,
    one: &Listed,
    stored: &StoredBucket,
) -> Result<()> {
    let entry = collection.entry();
    let meta = stored.view(&entry.options.timeseries)?.meta();
    let number = one.series as usize;
    if directory.number(&series_key(&entry.options.timeseries, meta)) == Some(number) {
        series.note(number, meta);
    }
    Ok(())
}
