//! From a plan to a scan: which keys of journals and indexes it reads, and which buckets it then fetches.

use std::rc::Rc;

use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::read::scan::{Access, Scan, buckets_of};
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::index;
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
        let (mut scan, first, mut found) = loop {
            let first = plan();
            let known = (collection.known.extended_range.get(), collection.entry().version);
            // Reads the journals and the index at one moment; an index dropped later still had every entry then.
            let (scan, found) = self.begin_scan(collection, &index_ranges(collection, &first)).await?;
            if (collection.known.extended_range.get(), collection.entry().version) != known {
                continue;
            }
            let only_indexed = matches!(&first.access, ReadAccess::Index(access) if access.only_indexed);
            // Rows that are not folded are in no index.
            if only_indexed && !is_folded && self.fold_groups(&scan, &|_| true).await? {
                is_folded = true;
                continue;
            }
            break (scan, first, found);
        };
        first.access.keep_texts(&|index| keyspace::index_prefix(&collection.id(), index), &mut found);
        let used: Vec<Option<u16>> = first.access.branches().iter().map(ReadAccess::index).collect();
        for (place, index) in used.iter().enumerate() {
            let is_first = used.iter().position(|other| other == index) == Some(place);
            index.iter().filter(|_| is_first).for_each(|index| collection.index_uses.add(*index));
        }
        scan.aim(match &first.access {
            ReadAccess::Buckets { low, high } => Access::Range(*low, *high),
            _ => Access::Ids(buckets_of(&found)?),
        });
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
}

/// The ranges of index entries, or of buckets in a union, that a plan reads; ascending and disjoint.
fn index_ranges(collection: &Collection, plan: &ReadPlan) -> Vec<KeyRange> {
    let id = collection.id();
    let mut ranges: Vec<KeyRange> = Vec::new();
    for branch in plan.access.branches() {
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
            ReadAccess::Buckets { low, high } if matches!(plan.access, ReadAccess::Union(_)) => {
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
