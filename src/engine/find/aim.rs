//! From a plan to a scan: which keys of journals and indexes it reads, and which buckets it then fetches.

use std::rc::Rc;

use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::read::listed::{Older, buckets_of, index_ranges, series_ranges};
use crate::engine::read::scan::{Access, Scan};
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::limits::FIRST_PART_SPANS;
use crate::listed::IntoList;
use crate::query::{ReadAccess, ReadPlan};

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
        let used: Vec<Option<u16>> = first.access.branches().iter().map(ReadAccess::index).listed();
        for (place, index) in used.iter().enumerate() {
            let is_first = used.iter().position(|other| other == index) == Some(place);
            index.iter().filter(|_| is_first).for_each(|index| collection.index_uses.add(*index));
        }
        scan.aim(match &first.access {
            ReadAccess::Buckets { low, high } => Access::Range(*low, *high),
            _ => {
                let mut ids = buckets_of(&found)?;
                ids.retain(|id| Older::is_newer(recent.as_ref().and_then(|(_, older)| older.as_ref()), id));
                Access::Ids(ids)
            }
        });
        scan.older = recent.and_then(|(_, older)| older);
        match &first.access {
            ReadAccess::Buckets { low, high } => {
                self.leave_out_groups_if_loaded(&mut scan, &first);
                scan.keep_matching_groups(&first, (*low, *high));
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
    /// suffice.
    fn recent(&self, collection: &Collection, plan: &ReadPlan) -> Option<(ReadAccess, Option<Older>)> {
        let ReadAccess::Series { points, first_ms, .. } = &plan.access else { return None };
        let span_ms = collection.entry().options.timeseries.span_ms();
        let start_ms = self.last_ms(collection).saturating_sub(span_ms.saturating_mul(FIRST_PART_SPANS));
        let wants_newest = plan.order == Some(false) && plan.plan.limit.is_some() && plan.plan.rows_per_group.is_none();
        // With dates outside the standard range, ids say nothing about order.
        let is_plain = points.texts.is_none() && !collection.known.extended_range.get() && !collection.dedupes();
        if !wants_newest || !is_plain || first_ms.is_some_and(|first_ms| first_ms > start_ms) {
            return None;
        }
        Some(Older::split(&plan.access, (start_ms, span_ms), 0))
    }
}
