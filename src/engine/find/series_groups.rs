//! Leaves out the groups of the journals whose series do not match a filter on metadata. A group belongs to the same series
//! as the buckets of its metadata, so the filter is not asked for each group.

// Loaded later.

use std::rc::{Rc, Weak};

use super::series::Series;
use crate::bucket::{BucketId, TimeseriesOptions};
use crate::engine::Engine;
use crate::engine::collections::directory::{Directory, series_key};
use crate::engine::journal::ByBucket;
use crate::engine::read::scan::Scan;
use crate::limits::TRIED_GROUPS_MAX;
use crate::query::ReadPlan;
use crate::value::{Kind, Value};

/// The series of the groups of journals, by number.
#[derive(Default)]
pub(super) struct GroupSeries {
    /// How long the numbers of groups are valid.
    numbering: Weak<()>,
    /// How many series there were when the groups without one were looked up last.
    count: usize,
    /// `None` if the directory has no such series, or if the metadata is no object.
    series: Vec<Option<u32>>,
}

impl GroupSeries {
    /// Learns the series of groups that are new, or new to the directory.
    fn learn(&mut self, journal: &ByBucket, directory: &Directory, known: &Series, options: &TimeseriesOptions) {
        let numbering = Rc::downgrade(journal.numbering());
        if !self.numbering.ptr_eq(&numbering) {
            *self = GroupSeries { numbering, ..GroupSeries::default() };
        }
        let is_open = std::mem::replace(&mut self.count, directory.count()) != self.count;
        let learnt = if is_open { 0 } else { self.series.len() };
        self.series.resize(journal.groups().len().max(self.series.len()), None);
        for (slot, group) in self.series.iter_mut().zip(journal.groups()).skip(learnt) {
            let meta = group.meta().filter(|meta| meta.kind() == Kind::Object);
            if slot.is_none() && meta.is_some() {
                let number = known.number_in(directory, meta, options);
                *slot = number.and_then(|number| u32::try_from(number).ok());
            }
        }
    }
}

impl Series {
    /// The number of the series with that metadata.
    pub(super) fn number_in(
        &self,
        directory: &Directory,
        meta: Option<Value<'_>>,
        options: &TimeseriesOptions,
    ) -> Option<usize> {
        self.number(meta).or_else(|| {
            let number = directory.number(&series_key(options, meta));
            number.iter().for_each(|number| self.note(*number, meta));
            number
        })
    }

    /// Adds the buckets of groups of a scan that are listed as buckets of their series.
    pub(super) fn add_listed(&self, scan: &Scan, directory: &Directory, buckets: &mut Vec<BucketId>) {
        let (collection, journal) = (scan.collection(), scan.journal());
        let options = &collection.entry().options.timeseries;
        // Many groups are of one series.
        let mut listed = vec![None; if directory.buckets().is_empty() { 0 } else { journal.series_count() }];
        for (at, group) in scan.open_groups() {
            let Some(known) = listed.get_mut(journal.series_of(at)) else { continue };
            let of_series = *known.get_or_insert_with(|| {
                let number = self.number_in(directory, group.meta(), options);
                number.and_then(|number| u32::try_from(number).ok()).map_or(&[][..], |one| directory.buckets_of(one))
            });
            buckets.extend(of_series.binary_search_by(|one| one.id.cmp(&group.bucket)).is_ok().then_some(group.bucket));
        }
    }
}

impl Engine {
    /// Leaves out groups of series that are known not to match.
    #[inline(never)]
    pub(super) fn leave_out_groups_if_loaded(&self, scan: &mut Scan, plan: &ReadPlan) {
        let Some(filter) = plan.metadata_filter() else { return };
        let collection = Rc::clone(scan.collection());
        let known = collection.known.directory.borrow().clone();
        let known = known.filter(|known| known.epoch() == scan.epoch() && !known.has_arrays());
        let Some(directory) = known.filter(|_| scan.journal().groups().len() > TRIED_GROUPS_MAX) else { return };
        let series = self.series_of(&directory);
        // The rows raise the error of a filter again.
        let Ok(chosen) = series.choose(filter, directory.count()) else { return };
        let mut may_match = vec![false; directory.count()];
        for chosen in chosen {
            may_match.get_mut(chosen.number as usize).into_iter().for_each(|may_match| *may_match = true);
        }
        let groups = &mut *series.groups.borrow_mut();
        groups.learn(scan.journal(), &directory, &series, &collection.entry().options.timeseries);
        scan.keep_groups(&|number, _| {
            let series = groups.series.get(number).copied().flatten();
            series.and_then(|series| may_match.get(series as usize)).is_none_or(|may_match| *may_match)
        });
    }
}
