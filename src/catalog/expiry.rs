//! Memory of idle buckets, and which of them go when there are too many.

use super::archive::ARCHIVED_BUCKET_BYTES;
use super::open_bucket::OpenBucket;
use super::state::Catalog;
use super::stats::Counter;

impl Catalog {
    /// Nothing of the bucket is uncommitted any more, so it may be expired.
    pub(super) fn make_idle(&mut self, slot: usize, index: usize) {
        self.moment += 1;
        let moment = self.moment;
        let Some(series) = self.series.get_mut(slot) else { return };
        if series.set_idle_since(index, moment) == Some(0) {
            self.stats.idle += 1;
        }
        if self.idle.len() > 2 * self.stats.idle + 64 {
            let series = &self.series;
            self.idle.retain(|(slot, moment)| {
                series.get(*slot).is_some_and(|series| series.buckets().iter().any(|b| b.idle_since == *moment))
            });
            self.idle_met = 0;
        }
        self.idle.push((slot, moment));
    }

    /// The bucket is in use, or is being removed.
    pub(super) fn make_busy(&mut self, slot: usize, index: usize) {
        let Some(series) = self.series.get_mut(slot) else { return };
        if series.set_idle_since(index, 0).is_some_and(|moment| moment != 0) {
            self.stats.idle -= 1;
        }
    }

    /// The bucket that has been idle longest.
    fn pop_idle(&mut self) -> Option<(usize, usize)> {
        while let Some((slot, moment)) = self.idle.get(self.idle_met).copied() {
            self.idle_met += 1;
            let series = self.series.get(slot);
            let index = series.and_then(|series| series.buckets().iter().position(|b| b.idle_since == moment));
            if let Some(index) = index {
                return Some((slot, index));
            }
        }
        None
    }

    /// While the catalogs use too much memory: archives the buckets that have been idle longest, then drops archived
    /// ones, a few at a time.
    pub(super) fn expire(&mut self) {
        let mut expired = 0;
        let is_over = |catalog: &Catalog, expired: usize| {
            catalog.totals.memory_bytes.get() > catalog.options.memory_bytes_max
                && expired <= catalog.options.expiry_count_max
        };
        while is_over(self, expired)
            && let Some((slot, index)) = self.pop_idle()
        {
            self.stats[Counter::ArchivedDueToMemoryThreshold] += 1;
            self.put_aside(slot, index);
            self.sweep(slot);
            expired += 1;
        }
        while is_over(self, expired) && self.archive.pop() {
            self.drop_archived(1);
            self.stats[Counter::ClosedDueToMemoryThreshold] += 1;
            expired += 1;
        }
    }

    /// Accounts for this many archived buckets being dropped.
    pub(super) fn drop_archived(&mut self, buckets: usize) {
        self.count_memory(-(buckets * ARCHIVED_BUCKET_BYTES).cast_signed());
        self.count_active(-buckets.cast_signed());
    }

    /// Archives an open bucket, or closes it if it is full or another bucket has its place in the archive.
    /// `OpenSeries::sweep` must follow.
    pub(super) fn put_aside(&mut self, slot: usize, index: usize) {
        let options = self.options;
        let Some(hash) = self.series.get(slot).map(|series| series.hash) else { return };
        let Some(OpenBucket { count, size_bytes, min_time_ms, id, .. }) = self.remove(slot, index) else { return };
        let (count, size_bytes, min_time_ms, id) = (*count, *size_bytes, *min_time_ms, *id);
        if count >= options.bucket_count_max {
            self.stats[Counter::ClosedDueToCount] += 1;
        } else if size_bytes >= options.bucket_size_bytes_max && count >= options.bucket_count_min {
            self.stats[Counter::ClosedDueToSize] += 1;
        } else if self.archive.insert(hash, min_time_ms, id) {
            self.count_memory(ARCHIVED_BUCKET_BYTES.cast_signed());
            return;
        }
        self.count_active(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::CatalogOptions;
    use super::super::samples::*;
    use super::*;

    fn narrow(bytes: usize) -> Catalog {
        catalog_with(CatalogOptions { memory_bytes_max: bytes, reopening: false, ..CatalogOptions::default() })
    }

    #[test]
    fn one_byte_over_the_threshold_archives_a_bucket_and_later_closes_it() {
        let mut catalog = narrow(usize::MAX);
        insert(&mut catalog, &[of(0, "a"), of(0, "b")]);
        catalog.options.memory_bytes_max = catalog.stats().memory_bytes - 1;
        catalog.expire();
        let counted = |catalog: &Catalog| {
            let stats = catalog.stats();
            (
                stats[Counter::ArchivedDueToMemoryThreshold],
                stats[Counter::ClosedDueToMemoryThreshold],
                stats.active,
                stats.idle,
            )
        };
        assert_eq!(counted(&catalog), (1, 0, 2, 1));
        assert_eq!((catalog.stats().archived(), catalog.archive.len()), (1, 1));
        // No idle bucket is left while the other bucket has uncommitted rows.
        stage(&mut catalog, &[of(1, "b")]);
        catalog.options.memory_bytes_max = catalog.stats().memory_bytes - 1;
        catalog.expire();
        assert_eq!(counted(&catalog), (1, 1, 1, 0));
        assert_eq!(catalog.archive.len(), 0);
    }

    #[test]
    fn at_most_four_buckets_are_archived_at_a_time_longest_idle_first() {
        let mut catalog = narrow(usize::MAX);
        for name in ["a", "b", "c", "d", "e", "f"] {
            insert(&mut catalog, &[of(0, name)]);
        }
        // It is used again and becomes the last idle one.
        insert(&mut catalog, &[of(1, "a")]);
        catalog.options.memory_bytes_max = 0;
        catalog.expire();
        assert_eq!(catalog.stats()[Counter::ArchivedDueToMemoryThreshold], 4);
        assert_eq!(catalog.series.iter().map(|s| s.len()).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 1]);
        catalog.expire();
        // Two were idle; the other two of the four are archived.
        let stats = catalog.stats();
        assert_eq!((stats[Counter::ArchivedDueToMemoryThreshold], stats[Counter::ClosedDueToMemoryThreshold]), (6, 2));
        assert_eq!((stats.active, stats.memory_bytes), (4, 4 * ARCHIVED_BUCKET_BYTES));
    }

    #[test]
    fn the_memory_of_a_catalog_counts_until_it_is_dropped() {
        let totals = std::rc::Rc::<super::super::Totals>::default();
        let timeseries = catalog().timeseries.clone();
        let options = CatalogOptions { reopening: false, ..CatalogOptions::default() };
        let mut both = [1, 2].map(|seed| Catalog::new(timeseries.clone(), options, totals.clone(), seed));
        both.iter_mut().for_each(|catalog| drop(insert(catalog, &[at(0)])));
        assert_eq!((totals.active.get(), totals.memory_bytes.get()), (2, 2 * both[0].stats().memory_bytes));
        drop(both);
        assert_eq!((totals.active.get(), totals.memory_bytes.get()), (0, 0));
    }

    #[test]
    fn a_full_bucket_is_closed_instead_of_archived() {
        let mut catalog = narrow(usize::MAX);
        insert(&mut catalog, &(0..1000).map(at).collect::<Vec<_>>());
        catalog.options.memory_bytes_max = 0;
        catalog.expire();
        let stats = catalog.stats();
        assert_eq!((stats[Counter::ArchivedDueToMemoryThreshold], stats[Counter::ClosedDueToCount]), (1, 1));
        assert_eq!((stats.active, catalog.archive.len()), (0, 0));
    }

    #[test]
    fn stale_entries_do_not_pile_up_in_the_idle_list() {
        let mut catalog = narrow(usize::MAX);
        for n in 0..900 {
            insert(&mut catalog, &[of(n, "a"), of(n, "b")]);
        }
        assert!(catalog.idle.len() < 80 && catalog.stats().idle == 2, "{}", catalog.idle.len());
        catalog.options.memory_bytes_max = 0;
        catalog.expire();
        assert_eq!(catalog.stats()[Counter::ArchivedDueToMemoryThreshold], 2);
    }
}
