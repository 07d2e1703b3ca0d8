//! From a plan to a scan: which keys of journals and indexes it reads, and which buckets it then fetches.

use std::rc::Rc;

use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::read::listed::{Older, buckets_of};
use crate::engine::read::scan::{Access, Scan};
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::index;
use crate::limits::FIRST_PART_SPANS;
use crate::query::{ReadAccess, ReadPlan};
use crate::storage::KeyRange;
use crate::value::OwnedValue;

impl Engine {
    /// A scan aimed at what a plan reads. `plan` is called again if the snapshot shows something new to this context:
    /// dates outside the standard range, or a changed catalog entry.
    pub(in crate::engine) async fn aimed_scan(
        &self,
        collection: &Rc<Collection>,
        plan: &dyn Fn() -> ReadPlan,
    ) -> Result<(Scan, ReadPlan)> {
        let mut is_folded = false;
        let (mut scan, first, mut found, recent) = loop {
            let first = plan();
            let recent = self.recent(collection, &first);
            let access = recent.as_ref().map_or(&first.access, |(access, _)| access);
            let known = (collection.known.extended_range.get(), collection.entry().version);
            // Reads the journals and the index at one moment; an index dropped later still had every entry then.
            let (scan, found) = self.begin_scan(collection, &index_ranges(collection, access)).await?;
            if (collection.known.extended_range.get(), collection.entry().version) != known {
                continue;
            }
            let only_indexed = matches!(&first.access, ReadAccess::Index(access) if access.only_indexed);
            // Rows that are not folded are in no index.
            if only_indexed && !is_folded && self.fold_groups(&scan, &|_| true).await? {
                is_folded = true;
                continue;
            }
            break (scan, first, found, recent);
        };
        first.access.keep_texts(&|index| keyspace::index_prefix(&collection.id(), index), &mut found);
        let used: Vec<Option<u16>> = first.access.branches().iter().map(ReadAccess::index).collect();
        for (place, index) in used.iter().enumerate() {
            let is_first = used.iter().position(|other| other == index) == Some(place);
            index.iter().filter(|_| is_first).for_each(|index| collection.index_uses.add(*index));
        }
        scan.aim(match &first.access {
            ReadAccess::Buckets { low, high } => Access::Range(*low, *high),
            _ => {
                let mut ids = buckets_of(&found)?;
                ids.retain(|id| recent.as_ref().is_none_or(|(_, older)| Some(*id) >= older.highest()));
                Access::Ids(ids)
            }
        });
        scan.older = recent.map(|(_, older)| older);
        match &first.access {
            ReadAccess::Buckets { low, high } => {
                self.leave_out_groups_if_loaded(&mut scan, &first);
                scan.keep_groups(&|_, group| {
                    // An expression that fails here fails again on the rows, which raises the error.
                    (low..=high).contains(&&group.bucket)
                        && first.may_match_rows(group.meta(), group.first_ms, group.last_ms).unwrap_or(true)
                });
            }
            series @ ReadAccess::Series { .. } => {
                let wanted = scan.journal().groups_within(&series_ranges(collection, series));
                scan.keep_groups(&|number, _| wanted.binary_search(&number).is_ok());
            }
            ReadAccess::Index(_) | ReadAccess::Union(_) => {}
        }
        Ok((scan, first))
    }

    /// For the newest rows of a series, which its last buckets often have: the access to these, and what to read if they do not
    /// suffice. Buckets are told apart by their ids, which hold their starts.
    fn recent(&self, collection: &Collection, plan: &ReadPlan) -> Option<(ReadAccess, Older)> {
        let ReadAccess::Series { points, first_ms, last_ms } = &plan.access else { return None };
        let span_ms = collection.entry().options.timeseries.span_ms();
        let start_ms = self.last_ms(collection).saturating_sub(span_ms.saturating_mul(FIRST_PART_SPANS));
        let wants_newest = plan.order == Some(false) && plan.plan.limit.is_some() && plan.plan.rows_per_group.is_none();
        // With dates outside the standard range, ids say nothing about order.
        let is_plain = points.texts.is_none() && !collection.known.extended_range.get() && !collection.dedupes();
        if !wants_newest || !is_plain || first_ms.is_some_and(|first_ms| first_ms > start_ms) {
            return None;
        }
        let series = |first_ms, last_ms| ReadAccess::Series { points: points.clone(), first_ms, last_ms };
        // The time in an entry may differ from that of the id, but not by a whole span.
        let [from_ms, end_ms] = [-span_ms, span_ms].map(|by_ms| start_ms.saturating_add(by_ms));
        let older = series(*first_ms, Some(last_ms.map_or(end_ms, |last_ms| last_ms.min(end_ms))));
        let older = Older::Entries(index_ranges(collection, &older), BucketId::lowest_at(start_ms));
        Some((series(Some(from_ms.max(first_ms.unwrap_or(i64::MIN))), *last_ms), older))
    }
}

/// The ranges of index entries, or of buckets in a union, that an access reads; ascending and disjoint.
fn index_ranges(collection: &Collection, access: &ReadAccess) -> Vec<KeyRange> {
    let id = collection.id();
    let mut ranges: Vec<KeyRange> = Vec::new();
    for branch in access.branches() {
        let prefix = branch.index().map(|index| keyspace::index_prefix(&id, index)).unwrap_or_default();
        let behind = |key: &[u8]| [&prefix[..], key].concat();
        let mut add = |(start, end): (Vec<u8>, Vec<u8>)| ranges.push(KeyRange { start, end });
        match branch {
            ReadAccess::Series { .. } => {
                series_ranges(collection, branch).iter().for_each(|(start, end)| add((behind(start), behind(end))));
            }
            ReadAccess::Index(access) => {
                access.ranges.iter().for_each(|(low, high)| add((behind(low), KeyRange::prefix(&behind(high)).end)));
            }
            ReadAccess::Buckets { low, high } if matches!(access, ReadAccess::Union(_)) => {
                let range = keyspace::buckets(&id, low, high);
                add((range.start, range.end));
            }
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => {}
        }
    }
    index::apart(ranges)
}

/// The ranges of entries in the default index that a plan reads.
fn series_ranges(collection: &Collection, access: &ReadAccess) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ReadAccess::Series { points, first_ms, last_ms } = access else { return Vec::new() };
    let span_ms = collection.entry().options.timeseries.span_ms();
    let range = |value: &OwnedValue| index::range(Some(value.view()), span_ms, *first_ms, *last_ms);
    points.values.values().iter().map(range).chain(points.texts.iter().map(|_| index::texts())).collect()
}
