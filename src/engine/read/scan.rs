//! A scan over a collection: stored buckets page by page, and the journal rows that they do not hold yet.
//!
//! **Invariant I21**: the journals are read first. A bucket read afterwards either covers a journal record, whose rows
//! are then skipped here, or it does not, and they are rows like any others. So a fold during a scan neither hides nor
//! doubles a row.

use std::cmp::Ordering;
use std::rc::Rc;

use super::listed::Older;
use super::unit::Unit;
use super::windows::KnownRows;
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{ByBucket, JournalMark, SectionGroup, SectionRef};
use crate::engine::store::{keyspace, stored_bucket::StoredBucket};
use crate::error::Result;
use crate::limits::{FIRST_PAGE_BUCKETS, SCAN_PAGE_BUCKETS, scan_cache_bytes};
use crate::listed::IntoList;
use crate::query::ReadPlan;
use crate::storage::{Bytes, KeyRange, Page};
use crate::value::sort_by;

/// The buckets to fetch.
pub enum Access {
    /// All buckets with ids in `[low, high]`.
    Range(BucketId, BucketId),
    /// These buckets, in this order.
    Ids(Vec<BucketId>),
}

pub(super) enum Rest {
    Range(KeyRange),
    /// In reverse order. Those of a range that is listed from its end come before what is left of it (`older`).
    Ids(Vec<BucketId>),
    /// These units, which were already fetched.
    Units(Vec<Unit>),
    Done,
}

/// The state of a scan between two pages. It owns everything it holds: no transaction lives between pages.
pub struct Scan {
    collection: Rc<Collection>,
    pub(super) rest: Rest,
    pub(in crate::engine) older: Option<Older>,
    /// How many index entries were read for it.
    pub(super) entries_listed: usize,
    /// The journals when the scan began.
    journal: Rc<ByBucket>,
    /// Which groups of the journals have been returned, by number.
    pub(super) met: Vec<bool>,
    /// Which groups count as returned from the start.
    pub(super) left_out: Vec<bool>,
    /// True if groups of which no stored bucket holds rows are not returned with their buckets.
    pub(super) leaves_groups: bool,
    /// The range that the last page covered: its units are all buckets stored there.
    pub(super) covered: Option<KeyRange>,
    /// True if the last page came from the cache.
    pub(super) is_cached: bool,
    /// True if the next page comes from storage in any case.
    pub(super) skips_cache: bool,
    /// The epoch of the buckets of the last page, if it is known.
    pub(super) page_epoch: Option<u64>,
    /// Stored buckets of a page from the cache, if these are more than `page_max`.
    pub(super) cached_page_max: usize,
    /// The epoch at which the journals were read.
    epoch: u64,
    /// The moment at which they were read.
    mark: JournalMark,
    /// True if storage had no more buckets: these are all, or the others were dropped with the collection.
    pub(super) lacks: bool,
    /// Maximum number of stored buckets on the next page.
    pub(super) page_max: usize,
    /// Set if the order of units matters.
    order: Option<InOrder>,
    /// Number of stored buckets read.
    pub(super) examined: usize,
    /// How many more bytes of buckets the scan may put into the cache.
    may_keep_bytes: usize,
    /// What is known of measurements, if the collection has `dedupe`.
    windows: Option<KnownRows>,
}

/// A scan in the order of bucket ids. Buckets that exist only in journals come in their place, not at the end.
struct InOrder {
    ascending: bool,
    /// The buckets of the journals with their numbers, in reverse order.
    journal: Vec<(BucketId, usize)>,
}

impl Scan {
    /// The scanned collection.
    pub fn collection(&self) -> &Rc<Collection> {
        &self.collection
    }

    /// The journals when the scan began.
    pub(in crate::engine) fn journal(&self) -> &ByBucket {
        &self.journal
    }

    /// True if the order of units matters.
    pub(super) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Leaves out journal groups that are not `wanted`, because no row of them can match.
    pub(in crate::engine) fn keep_groups(&mut self, wanted: &dyn Fn(usize, &SectionGroup) -> bool) {
        for (number, (group, met)) in self.journal.groups().iter().zip(&mut self.met).enumerate() {
            *met = *met || !wanted(number, group);
        }
        self.left_out.clone_from(&self.met);
    }

    /// Leaves out journal groups whose buckets have other ids than these, and those of which no row can match.
    pub(in crate::engine) fn keep_matching_groups(&mut self, plan: &ReadPlan, (low, high): (BucketId, BucketId)) {
        let takes_all_ids = (low, high) == (BucketId::MIN, BucketId::MAX);
        if takes_all_ids && !plan.asks_metadata() && !self.collection.known.extended_range.get() {
            return;
        }
        // It is the same for all groups of a series. An expression that fails here fails again on the rows, which raises the error.
        let mut metadata_matches = vec![None; self.journal.series_count()];
        for (number, (group, met)) in self.journal.groups().iter().zip(&mut self.met).enumerate() {
            *met = *met
                || !plan.may_match_times(group.first_ms, group.last_ms)
                || !(takes_all_ids || (low..=high).contains(&group.bucket))
                || metadata_matches.get_mut(self.journal.series_of(number)).is_some_and(|known| {
                    !*known.get_or_insert_with(|| plan.metadata_matches(group.meta()).unwrap_or(true))
                });
        }
        self.left_out.clone_from(&self.met);
    }

    /// The range in which the last page has all stored buckets; `None` if it was picked from an index.
    pub(in crate::engine) fn covered(&self) -> Option<&KeyRange> {
        self.covered.as_ref()
    }

    /// The epoch at which the journals were read. Whatever is read later is of that epoch, or a commit that requires
    /// the epoch fails.
    pub(in crate::engine) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The moment at which the journals were read.
    pub(in crate::engine) fn mark(&self) -> JournalMark {
        self.mark
    }

    /// Records that the caller has moved the epoch on itself.
    pub(in crate::engine) fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// The next bucket of an ordered scan: no remaining bucket comes before it.
    pub(in crate::engine) fn next_bucket(&self) -> Option<BucketId> {
        let order = self.order.as_ref()?;
        let stored = match &self.rest {
            Rest::Range(range) => keyspace::lowest_bucket(range),
            Rest::Ids(ids) => ids.last().copied().or_else(|| self.older.as_ref().and_then(Older::highest)),
            Rest::Units(_) | Rest::Done => None,
        };
        let unmet = order.journal.iter().rev().find(|(_, number)| self.met.get(*number) == Some(&false));
        let both = stored.into_iter().chain(unmet.map(|(id, _)| *id));
        if order.ascending { both.min() } else { both.max() }
    }

    /// The range of buckets to fetch; `None` if they are named.
    pub(in crate::engine) fn range(&self) -> Option<&KeyRange> {
        if let Rest::Range(range) = &self.rest { Some(range) } else { None }
    }

    /// The groups of the journals that were neither met nor left out.
    pub(in crate::engine) fn groups(&self) -> impl Iterator<Item = &SectionGroup> {
        self.open_groups().map(|(_, group)| &**group)
    }

    /// As `groups`, with their numbers.
    pub(in crate::engine) fn open_groups(&self) -> impl Iterator<Item = (usize, &Rc<SectionGroup>)> {
        let left = self.journal.groups().iter().enumerate().zip(&self.met).filter(|(_, met)| !**met);
        left.map(|(numbered, _)| numbered)
    }

    /// Sets what is known of the measurements of its groups.
    pub(super) fn set_windows(&mut self, windows: KnownRows) {
        self.windows = Some(windows);
    }

    /// The journal rows of buckets that were not returned.
    pub(in crate::engine) fn unmet(&self) -> Vec<Unit> {
        let left = self.journal.groups().iter().zip(&self.met).zip(0..).filter(|((_, met), _)| !**met);
        left.map(|((group, _), number)| Unit::of_journal(group.bucket, number, &self.journal)).listed()
    }

    /// Leaves out groups as `ByBucket::at_ends` says, until the scan begins again.
    pub(in crate::engine) fn leave_out_groups(&mut self, is_last: bool) {
        let at_ends = self.journal.at_ends(&self.met, is_last);
        self.met.iter_mut().zip(at_ends).for_each(|(met, is_at_end)| *met |= !is_at_end);
    }

    /// Makes the scan return these units and nothing else.
    pub(in crate::engine) fn give(&mut self, units: Vec<Unit>) {
        self.rest = Rest::Units(units);
        self.met.fill(true);
    }

    /// Forgets which buckets were returned.
    pub(in crate::engine) fn begin_again(&mut self) {
        self.met.clone_from(&self.left_out);
        self.examined = 0;
    }

    /// How many stored buckets were read so far.
    pub(in crate::engine) fn examined(&self) -> usize {
        self.examined
    }

    /// Expects that the first buckets will suffice: fetches few at first, then more and more.
    pub(in crate::engine) fn expect_few(&mut self) {
        self.page_max = FIRST_PAGE_BUCKETS;
    }

    /// Sets the buckets to fetch. Called before the first page.
    pub(in crate::engine) fn aim(&mut self, access: Access) {
        self.rest = match access {
            Access::Range(low, high) => Rest::Range(keyspace::buckets(&self.collection.id(), &low, &high)),
            Access::Ids(mut buckets) => {
                buckets.reverse();
                Rest::Ids(buckets)
            }
        };
    }
}

impl Engine {
    /// Begins a scan: reads the journals and, at the same moment, the index entries in some ranges.
    ///
    /// Errors: as `journal_snapshot`.
    pub(in crate::engine) async fn begin_scan(
        &self,
        collection: &Rc<Collection>,
        index: &[KeyRange],
    ) -> Result<(Scan, Vec<Bytes>)> {
        let snapshot = self.journal_snapshot(collection, index).await?;
        let journal = snapshot.journal;
        let (epoch, met) = (snapshot.epoch, vec![false; journal.groups().len()]);
        let scan = Scan {
            collection: Rc::clone(collection),
            rest: Rest::Done,
            older: None,
            entries_listed: 0,
            journal,
            left_out: met.clone(),
            leaves_groups: false,
            met,
            covered: None,
            is_cached: false,
            skips_cache: false,
            page_epoch: None,
            cached_page_max: 0,
            epoch,
            mark: snapshot.mark,
            lacks: false,
            page_max: SCAN_PAGE_BUCKETS,
            order: None,
            examined: 0,
            may_keep_bytes: scan_cache_bytes(self.catalog_options.read_cache_bytes),
            windows: None,
        };
        Ok((scan, snapshot.also))
    }

    /// Puts an aimed scan in the order of bucket ids.
    pub(in crate::engine) fn order_scan(&self, scan: &mut Scan, ascending: bool) {
        let rest = std::mem::replace(&mut scan.rest, Rest::Done);
        scan.rest = match rest {
            Rest::Range(range) if !ascending => {
                scan.older = Some(Older::Range(range, 0));
                Rest::Ids(Vec::new())
            }
            rest => rest,
        };
        let ordered = scan.journal.in_order(scan.collection.dedupes());
        let open = ordered.iter().filter(|(_, number)| scan.met.get(*number) == Some(&false));
        let mut journal: Vec<(BucketId, usize)> = open.copied().listed();
        if ascending {
            journal.reverse();
        }
        if let Rest::Ids(ids) = &mut scan.rest {
            sort_by(ids, |a, b| in_order(!ascending, a, b));
        }
        scan.order = Some(InOrder { ascending, journal });
    }

    /// The next page; `None` after the last. The last page holds the journal rows of buckets that were not returned.
    ///
    /// Errors: `NamespaceNotFound` if the collection was dropped; those of storage; `DataCorruptionDetected`.
    pub(in crate::engine) async fn next_page(&self, scan: &mut Scan) -> Result<Option<Vec<Unit>>> {
        if std::mem::take(&mut scan.lacks) {
            self.refresh(&scan.collection).await?;
        }
        scan.covered = None;
        let page = Page { entries_max: scan.page_max, keys_only: false };
        scan.page_max = (2 * scan.page_max).min(scan.page_max.max(SCAN_PAGE_BUCKETS));
        self.list_older(scan).await?;
        match &mut scan.rest {
            Rest::Range(_) => {}
            Rest::Units(units) => {
                let units = std::mem::take(units);
                scan.rest = Rest::Done;
                return Ok(Some(units));
            }
            Rest::Ids(buckets) => {
                let mut page = buckets.split_off(buckets.len().saturating_sub(page.entries_max));
                page.reverse();
                if buckets.is_empty() && scan.older.is_none() {
                    scan.rest = Rest::Done;
                }
                let found = self.fetch(&scan.collection, &page).await?;
                scan.lacks |= found.iter().any(Option::is_none);
                let last = page.last().copied();
                let units = scan.units(page.into_iter().zip(found).listed())?;
                return Ok(Some(scan.with_journal(units, last)));
            }
            Rest::Done if scan.order.is_some() => {
                let units = scan.with_journal(Vec::new(), None);
                return Ok((!units.is_empty()).then_some(units));
            }
            Rest::Done => {
                let units = scan.unmet();
                let is_first = !std::mem::take(&mut scan.journal).groups().is_empty();
                return Ok(is_first.then_some(units));
            }
        }
        let mut found = Vec::new();
        // A page without a bucket would not tell how far it went.
        while let (true, Rest::Range(range)) = (found.is_empty(), &mut scan.rest) {
            let count = page.entries_max.max(scan.cached_page_max);
            let may_be_kept = !std::mem::take(&mut scan.skips_cache);
            let kept = may_be_kept.then(|| self.buckets.borrow().scan(&scan.collection.id(), range, count)).flatten();
            scan.is_cached = kept.is_some();
            let covered;
            (found, covered) = match kept {
                Some(kept) => {
                    let size_bytes = kept.0.iter().map(|(_, stored)| stored.size_bytes()).sum();
                    scan.may_keep_bytes = scan.may_keep_bytes.saturating_sub(size_bytes);
                    scan.page_epoch = Some(scan.collection.journal.epoch());
                    kept
                }
                None => {
                    let (asks_epoch, may_keep_bytes) = (scan.cached_page_max > 0, &mut scan.may_keep_bytes);
                    let read = self.read_page(&scan.collection, range, page, may_keep_bytes, asks_epoch).await?;
                    (scan.lacks, scan.page_epoch) = (read.found.is_empty(), read.epoch);
                    (read.found, read.covered)
                }
            };
            range.start.clone_from(&covered.end);
            if range.is_empty() {
                scan.rest = Rest::Done;
            }
            scan.covered = Some(covered);
        }
        let last = found.last().map(|(id, _)| *id);
        let units = scan.units(found.into_iter().map(|(id, stored)| (id, Some(stored))).listed())?;
        Ok(Some(scan.with_journal(units, last)))
    }
}

impl Scan {
    /// These buckets with the journal rows that they do not hold; marks them as returned.
    ///
    /// Errors: `DataCorruptionDetected`, in collections with `dedupe`.
    #[inline(never)]
    pub(in crate::engine) fn units(&mut self, found: Vec<(BucketId, Option<Rc<StoredBucket>>)>) -> Result<Vec<Unit>> {
        let mut units = Vec::with_capacity(found.len());
        let dedupes = self.collection.dedupes() && !self.journal.groups().is_empty();
        for (id, stored) in found {
            let Some(stored) = stored else { continue };
            self.examined += 1;
            if dedupes {
                // Loaded by now: `CollectionEntry::prepare` loads it for collections with `dedupe`.
                units.extend(self.unit_of_window(id, stored)?);
                continue;
            }
            // These rows also belong to a record here, under the bucket that they came from.
            if stored.coverage.origins().any(|origin| self.journal.holds(origin)) {
                continue;
            }
            let mut main = self.stored_unit(id, &stored);
            for number in self.journal.groups_of(&id) {
                let Some(group) = self.journal.groups().get(number) else { continue };
                let is_covered = group.is_covered(&stored.coverage);
                if self.leaves_groups && !is_covered {
                    continue;
                }
                let is_left = |section: &SectionRef| !stored.coverage.covers(section.commit());
                let holds_all = self.leaves_groups && !group.sections().iter().any(is_left);
                self.met.iter_mut().skip(number).take(1).for_each(|met| *met = true);
                main.half_folded |= is_covered;
                if holds_all {
                    continue;
                }
                if group.meta() == stored.document.view().get("meta") {
                    main.number = Some(number);
                } else {
                    let other = Unit { number: Some(number), ..self.stored_unit(id, &stored) };
                    units.extend(Some(other).filter(|unit| unit.unfolded().is_some()));
                }
            }
            main.stored = Some(stored);
            units.push(main);
        }
        Ok(units)
    }

    /// The unit of a stored bucket, so far without any rows.
    pub(super) fn stored_unit(&self, id: BucketId, stored: &Rc<StoredBucket>) -> Unit {
        Unit {
            id,
            half_folded: false,
            holder: Some(Rc::clone(stored)),
            journal: Rc::clone(&self.journal),
            number: None,
            stored: None,
        }
    }

    /// What is known of measurements, the journals, and which of their groups were left out.
    pub(super) fn windows(&self) -> (Option<&KnownRows>, &ByBucket, &[bool]) {
        (self.windows.as_ref(), &self.journal, &self.left_out)
    }
}

impl Scan {
    /// The units of a page that ends with the bucket `last`. An ordered scan adds the earlier buckets that exist only
    /// in journals.
    fn with_journal(&mut self, mut units: Vec<Unit>, last: Option<BucketId>) -> Vec<Unit> {
        let Some(order) = &mut self.order else { return units };
        let last = last.filter(|_| !matches!(self.rest, Rest::Done));
        while let Some((id, number)) = order.journal.pop() {
            if last.is_some_and(|last| in_order(order.ascending, &last, &id).is_lt()) {
                order.journal.push((id, number));
                break;
            }
            if let Some(met) = self.met.get_mut(number).filter(|met| !**met) {
                *met = true;
                units.push(Unit::of_journal(id, number, &self.journal));
            }
        }
        let ascending = order.ascending;
        sort_by(&mut units, |a, b| in_order(ascending, &a.id, &b.id));
        units
    }
}

/// The order of two buckets.
pub(in crate::engine) fn in_order(ascending: bool, a: &BucketId, b: &BucketId) -> Ordering {
    if ascending { a.cmp(b) } else { b.cmp(a) }
}
