//! Finds the first or the last rows of each series without reading all of its buckets: it reads the last ones, and then
//! backwards as long as an earlier bucket may hold a later row. Rows that are not folded yet are always examined.
//!
//! This only chooses buckets. Their rows are then read in the same order as without it, so that the same rows win a
//! tie.

// Loaded later.

use std::rc::Rc;

use super::series::{Chosen, Series};
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::collections::directory::{Directory, Listed, series_key};
use crate::engine::journal::SectionGroup;
use crate::engine::read::scan::{Scan, in_order};
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::limits::{
    LISTED_KEYS_A_BUCKET, NEWEST_DEPTH_MAX, NEWEST_SIZE_BYTES_MAX, SCAN_PAGE_BUCKETS, UNLISTED_BUCKETS_MAX,
};
use crate::listed::IntoList;
use crate::query::{Ends, ReadAccess, ReadPlan};
use crate::storage::LocalFuture;
use crate::value::{Interner, Kind, sort_by};

/// A look at a bucket takes as long as the rows of so many small ones in runs.
const RUN_BUCKETS_A_LOOK: usize = 16;

/// The buckets of one series (or of all series together) that were not examined yet, and the best rows of the others.
struct SeriesSearch {
    /// The remaining range of positions in `Search::order`.
    from: usize,
    to: usize,
    /// The places of the best rows; see `Times`.
    best: Vec<i64>,
    /// True if every bucket must be examined.
    takes_all: bool,
}

/// The buckets that may hold what a plan looks for.
struct Search<'a> {
    ends: &'a Ends,
    plan: &'a ReadPlan,
    collection: &'a Collection,
    directory: Rc<Directory>,
    span_ms: i64,
    /// Positions in the directory, grouped by series.
    order: Vec<usize>,
    series: Vec<SeriesSearch>,
    /// What is known of the metadata of series.
    known: Rc<Series>,
    /// Series that are not among `chosen`; they come after them in `series`.
    others: Interner,
    /// The series of the directory that the filter on metadata does not exclude, in ascending order. The first of `series`
    /// are theirs.
    chosen: Vec<Chosen>,
    /// The key shared by missing metadata and values that compare equal to it: both are one series in the directory.
    /// Empty without a meta field.
    unsure: Vec<u8>,
    /// How many buckets of a series without a match are examined next.
    depth: usize,
    /// Buckets with matching rows, with their series and the place of their best row.
    found: Vec<(Unit, usize, i64)>,
    size_bytes: usize,
    /// True if the rows of a bucket are in part both stored and in journals.
    is_half_folded: bool,
    /// True if all buckets should be read instead, page by page.
    gives_up: bool,
}

impl<'a> Search<'a> {
    fn new(
        ends: &'a Ends,
        plan: &'a ReadPlan,
        collection: &'a Collection,
        directory: Rc<Directory>,
        known: Rc<Series>,
    ) -> Search<'a> {
        Search {
            ends,
            plan,
            collection,
            directory,
            known,
            span_ms: collection.entry().options.timeseries.span_ms(),
            order: Vec::new(),
            series: Vec::new(),
            others: Interner::default(),
            chosen: Vec::new(),
            unsure: series_key(&collection.entry().options.timeseries, None),
            depth: 1,
            found: Vec::new(),
            size_bytes: 0,
            is_half_folded: false,
            gives_up: false,
        }
    }

    /// Sets the buckets to examine: those in a range of ids, or those named by an index, without series whose metadata is
    /// known not to match.
    ///
    /// Errors: those of the filter.
    fn aim(&mut self, named: Option<&[BucketId]>) -> Result<()> {
        let directory = Rc::clone(&self.directory);
        let listed = directory.buckets();
        let mut wanted: Vec<BucketId> = named.unwrap_or_default().to_vec();
        sort_by(&mut wanted, Ord::cmp);
        let (low, high) = match &self.plan.access {
            ReadAccess::Buckets { low, high } => (*low, *high),
            _ => (BucketId::MIN, BucketId::MAX),
        };
        self.chosen = match self.plan.metadata_filter() {
            Some(filter) => self.known.choose(filter, directory.count())?,
            None => (0..directory.count()).map(|number| Chosen::new(number, None)).listed(),
        };
        let takes_all = (low, high) == (BucketId::MIN, BucketId::MAX);
        let is_wanted = |place: &usize| {
            listed.get(*place).is_some_and(|Listed { id, .. }| match named {
                Some(_) => wanted.binary_search(id).is_ok(),
                None => takes_all || low <= *id && *id <= high,
            })
        };
        let unsure = directory.number(&self.unsure).filter(|_| !self.unsure.is_empty());
        self.series.reserve(self.chosen.len());
        for chosen in &self.chosen {
            let from = self.order.len();
            let buckets = directory.places_of(chosen.number);
            self.order.extend(buckets.filter(is_wanted));
            let takes_all = unsure == Some(chosen.number as usize);
            self.series.push(SeriesSearch { from, to: self.order.len(), best: Vec::new(), takes_all });
        }
        if self.ends.as_one {
            let ids = self.order.iter().filter_map(|place| Some((listed.get(*place)?.id, *place)));
            let mut by_id: Vec<(BucketId, usize)> = ids.listed();
            sort_by(&mut by_id, Ord::cmp);
            self.order = by_id.into_iter().map(|(_, place)| place).listed();
            self.series = vec![SeriesSearch { from: 0, to: self.order.len(), best: Vec::new(), takes_all: false }];
        }
        Ok(())
    }

    /// Positions in the directory of the buckets to examine next. Empty if no other bucket can matter, or if the search
    /// gives up.
    fn next(&mut self) -> Vec<usize> {
        let (mut next, mut starved) = (Vec::new(), 0);
        let (ends, listed) = (self.ends, self.directory.buckets());
        for series in self.series.iter_mut().filter(|series| series.from < series.to) {
            let worst = series.best.get(ends.count - 1).copied().filter(|_| !series.takes_all);
            let room = if worst.is_some() || series.takes_all { usize::MAX } else { self.depth };
            let mut taken = 0;
            while series.from < series.to && taken < room {
                let at = if ends.is_last { series.to - 1 } else { series.from };
                let Some((place, bucket)) = self.order.get(at).and_then(|place| Some((*place, listed.get(*place)?)))
                else {
                    break;
                };
                let start_ms = i64::from(bucket.id.time_seconds()) * 1000;
                if worst.is_some_and(|worst| ends.best_place(start_ms, self.span_ms) > worst) {
                    // Nor can the ones after it.
                    series.from = series.to;
                    break;
                }
                if ends.is_last {
                    series.to -= 1
                } else {
                    series.from += 1
                };
                let is_excluded =
                    chosen_at(&self.chosen, bucket.series).and_then(|at| self.chosen.get(at)?.matches) == Some(false);
                let is_worse = |worst: i64| ends.is_last && ends.place(bucket.last_ms.get()) > worst;
                if is_excluded || worst.is_some_and(is_worse) {
                    continue;
                }
                next.push(place);
                taken += 1;
            }
            if worst.is_none() {
                starved += series.to - series.from;
            }
        }
        self.gives_up |= self.depth > NEWEST_DEPTH_MAX && starved > SCAN_PAGE_BUCKETS;
        self.depth *= 2;
        if self.gives_up { Vec::new() } else { next }
    }

    /// Records the latest time of a stored bucket.
    fn note(&self, place: usize, stored: Option<&StoredBucket>) -> Result<()> {
        if let Some(stored) = stored.filter(|_| self.ends.is_last)
            && let Some(listed) = self.directory.buckets().get(place)
        {
            let entry = self.collection.entry();
            let view = stored.view(&entry.options.timeseries)?;
            listed.last_ms.set(view.max_time_ms());
        }
        Ok(())
    }

    /// Examines some buckets.
    ///
    /// Errors: as `examine`.
    fn examine_all(&mut self, units: Vec<Unit>) -> Result<()> {
        for unit in units {
            self.is_half_folded |= unit.half_folded;
            self.examine(unit)?;
        }
        self.gives_up |= self.size_bytes > NEWEST_SIZE_BYTES_MAX;
        Ok(())
    }

    /// Examines a bucket and its rows that are not folded yet.
    ///
    /// Errors: those of filters; `DataCorruptionDetected`.
    fn examine(&mut self, unit: Unit) -> Result<()> {
        let (ends, plan) = (self.ends, self.plan);
        let entry = self.collection.entry();
        let options = &entry.options.timeseries;
        let view = unit.stored.as_ref().map(|stored| stored.view(options)).transpose()?;
        let meta = match &view {
            Some(view) => view.meta(),
            None => unit.unfolded().and_then(SectionGroup::meta),
        };
        let (key, series_number) = match self.known.number(meta) {
            Some(number) => (Vec::new(), Some(number)),
            None => {
                let key = series_key(options, meta);
                let number = self.directory.number(&key);
                number.iter().for_each(|number| self.known.note(*number, meta));
                (key, number)
            }
        };
        // Missing metadata and values that compare equal to it are one series, but need not both match.
        let is_object = meta.is_some_and(|meta| meta.kind() == Kind::Object);
        let at = series_number.and_then(|number| chosen_at(&self.chosen, u32::try_from(number).ok()?));
        let chosen = at.and_then(|at| self.chosen.get_mut(at));
        if series_number.is_some() && chosen.is_none() && is_object {
            return Ok(());
        }
        let mut matches = chosen.as_ref().and_then(|chosen| chosen.matches).filter(|_| is_object);
        if matches.is_none() {
            matches = ends.matches(plan, meta)?;
            let known = chosen.into_iter().filter(|_| is_object || matches == Some(false));
            known.for_each(|chosen| chosen.matches = matches);
        }
        if matches == Some(false) {
            return Ok(());
        }
        let mut best = Vec::new();
        if let Some(view) = view.as_ref()
            && plan.may_match_with(view, matches)?
        {
            ends.add_bucket(&mut best, plan, view, options)?;
        }
        if let Some(group) = unit.unfolded()
            && plan.may_match_rows(group.meta(), group.times().0, group.times().1)?
        {
            if ends.count == 1 && plan.plan.residual.is_trivial() {
                let ms = match (unit.is_partly_stored(group), ends.is_last) {
                    (true, is_last) => unit.tail(group, options)?.first_or_last_ms(is_last),
                    (false, true) => group.times().1,
                    (false, false) => group.times().0,
                };
                ends.add(&mut best, ends.place(ms));
            } else {
                let tail = unit.tail(group, options)?;
                let rows = tail.rows().slice_columns(0..tail.rows().rows(), |name| ends.columns().contains(name));
                ends.add_rows(&mut best, plan, &rows, group.meta(), false)?;
            }
        }
        let Some(first) = best.first().copied() else { return Ok(()) };
        let number = match at {
            _ if ends.as_one => 0,
            Some(at) => at,
            None => self.chosen.len() + self.others.add(&key).0,
        };
        while self.series.len() <= number {
            self.series.push(SeriesSearch {
                from: 0,
                to: 0,
                best: Vec::new(),
                takes_all: !key.is_empty() && self.unsure == key,
            });
        }
        if let Some(series) = self.series.get_mut(number) {
            if series.best.is_empty() {
                series.best = best;
            } else {
                best.into_iter().for_each(|place| ends.add(&mut series.best, place));
            }
        }
        self.size_bytes += unit.stored.as_ref().map_or(0, |stored| stored.size_bytes());
        self.found.push((unit, number, first));
        Ok(())
    }

    /// The chosen buckets, in the order in which a full scan would give them; `named` as in `aim`.
    fn into_units(self, named: Option<&[BucketId]>) -> Vec<Unit> {
        let worst = |number: usize| {
            self.series.get(number).filter(|s| !s.takes_all).and_then(|s| s.best.get(self.ends.count - 1))
        };
        let matters = |number: usize, place: i64| worst(number).is_none_or(|worst| place <= *worst);
        let matter: Vec<bool> = self.found.iter().map(|(_, number, place)| matters(*number, *place)).listed();
        let found = self.found.into_iter().zip(matter).filter(|(_, matters)| *matters);
        let mut units: Vec<Unit> = found.map(|((unit, ..), _)| unit).listed();
        put_in_order(&mut units, self.plan.order, named);
        units
    }
}

impl Engine {
    /// Limits a scan to the units that hold what `plan` looks for at the ends of series, and returns the number of
    /// buckets requested. If all buckets must be read, the scan stays unchanged, and the result is `None`.
    ///
    /// Errors: those of storage and of filters; `DataCorruptionDetected`.
    pub(super) fn pick_ends<'a>(&'a self, scan: &'a mut Scan, plan: &'a ReadPlan) -> LocalFuture<'a, Option<usize>> {
        Box::pin(async move {
            let Some(ends) = Ends::of(plan) else { return Ok(None) };
            let collection = Rc::clone(scan.collection());
            let named = scan.named();
            // Listing the buckets of all series takes longer than reading those of a few.
            let keys_max = match &named {
                Some(named) if named.len() > UNLISTED_BUCKETS_MAX => LISTED_KEYS_A_BUCKET * named.len(),
                Some(_) => 0,
                None => usize::MAX,
            };
            let Some(directory) = self.directory(&collection, scan.epoch(), keys_max).await? else { return Ok(None) };
            let known = self.series_of(&directory);
            // Of the groups of a series in journals, only those that reach its end matter, if all of their rows match.
            let mut only_ends = ends.count == 1 && plan.plan.residual.is_trivial() && !collection.dedupes();
            let (search, asked) = loop {
                if only_ends {
                    scan.leave_out_groups(ends.is_last);
                }
                let (directory, known) = (Rc::clone(&directory), Rc::clone(&known));
                let mut search = Search::new(&ends, plan, &collection, directory, known);
                search.aim(named.as_deref())?;
                // Runs of small buckets take less time than a look at several of each series, unless there are many.
                let depth = ends.count.saturating_add(usize::from(!plan.plan.residual.is_trivial()));
                let wanted = depth.saturating_mul(search.series.len());
                let are_many = search.order.len() / RUN_BUCKETS_A_LOOK > wanted;
                let has_runs = || self.has_runs(scan, wanted, &plan.columns);
                if depth > 1 && (!are_many && self.prefers_runs(scan, wanted, false) || has_runs()) {
                    scan.begin_again();
                    return Ok(None);
                }
                let asked = self.search(scan, &mut search).await?;
                // Of rows that a stored bucket holds as well, some may be deleted there.
                if !(only_ends && search.is_half_folded) {
                    break (search, asked);
                }
                only_ends = false;
                scan.begin_again();
            };
            if search.gives_up {
                scan.begin_again();
                return Ok(None);
            }
            scan.give(search.into_units(named.as_deref()));
            Ok(Some(asked))
        })
    }

    /// Examines buckets until no other one can matter, or the search gives up. Returns the number of buckets requested.
    async fn search(&self, scan: &mut Scan, search: &mut Search<'_>) -> Result<usize> {
        // Which of their rows are also journal rows, only the stored buckets can tell.
        let mut journalled: Vec<BucketId> = scan.groups().map(|group| group.bucket).listed();
        sort_by(&mut journalled, Ord::cmp);
        journalled.dedup();
        // Buckets, and their places in the directory.
        let mut next: Vec<(BucketId, usize)> = journalled.iter().map(|id| (*id, usize::MAX)).listed();
        let (mut asked, mut rounds) = (0, 0);
        loop {
            for page in next.chunks(SCAN_PAGE_BUCKETS) {
                let ids: Vec<BucketId> = page.iter().map(|(id, _)| *id).listed();
                let found = self.fetch(search.collection, &ids).await?;
                // The last bucket of a series is examined every time.
                for ((_, place), stored) in page.iter().zip(&found).filter(|_| rounds > 1) {
                    search.note(*place, stored.as_deref())?;
                }
                search.examine_all(scan.units(ids.into_iter().zip(found).listed())?)?;
            }
            if rounds == 0 {
                search.examine_all(scan.unmet())?;
            }
            let places = search.next();
            if places.is_empty() {
                return Ok(asked);
            }
            asked += places.len();
            let listed =
                places.into_iter().filter_map(|place| Some((search.directory.buckets().get(place)?.id, place)));
            next = listed.filter(|(id, _)| journalled.binary_search(id).is_err()).listed();
            // Storage reads neighbours together.
            sort_by(&mut next, Ord::cmp);
            rounds += 1;
        }
    }
}

/// The place of a series among `chosen`.
fn chosen_at(chosen: &[Chosen], number: u32) -> Option<usize> {
    // Without a filter, all are chosen.
    let all = chosen.get(number as usize).filter(|one| one.number == number).map(|_| number as usize);
    all.or_else(|| chosen.binary_search_by(|one| one.number.cmp(&number)).ok())
}

/// The order of a full scan: by id, or by index entry if an index has named the buckets; then those that only the
/// journals have.
fn put_in_order(units: &mut [Unit], order: Option<bool>, named: Option<&[BucketId]>) {
    let mut places: Vec<(BucketId, usize)> = named.unwrap_or_default().iter().copied().zip(0..).listed();
    sort_by(&mut places, Ord::cmp);
    let place = |id: &BucketId| {
        let at = places.binary_search_by(|(known, _)| known.cmp(id)).ok();
        at.and_then(|at| places.get(at)).map_or(usize::MAX, |(_, place)| *place)
    };
    sort_by(units, |a, b| match order {
        Some(ascending) => in_order(ascending, &a.id, &b.id),
        None => match (a.is_stored(), b.is_stored()) {
            (true, true) if named.is_some() => place(&a.id).cmp(&place(&b.id)),
            (true, true) => a.id.cmp(&b.id),
            (a, b) => b.cmp(&a),
        },
    });
}
