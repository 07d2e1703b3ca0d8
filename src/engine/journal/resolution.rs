//! The measurements of a group in a collection with `dedupe`: its rows, and those of the stored buckets of its window
//! that lie between them, each measurement once (I38).
//!
//! Stored rows are earlier than all others (I37). So the measurements do not depend on which records are folded.

// Loaded later.

use std::rc::Rc;

use super::entry::SectionRef;
use super::sections::SectionGroup;
use super::tail::Tail;
use crate::block::Block;
use crate::bucket::{BucketId, Dedupe, TimeseriesOptions, unpack};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::value::{FieldSet, sort_by};

/// What a query finds in a group instead of its sections.
pub struct Resolution {
    /// The stored buckets were those of this epoch.
    pub epoch: u64,
    /// The number of sections of the group.
    pub(super) sections: usize,
    /// All stored buckets that may belong to the window.
    pub listed: Rc<[BucketId]>,
    /// The stored buckets whose rows are in `tail`.
    pub absorbed: Vec<(BucketId, Rc<StoredBucket>)>,
    /// The measurements.
    pub tail: Rc<Tail>,
}

impl SectionGroup {
    /// True if its measurements are known as of that epoch.
    #[inline(never)]
    pub fn is_resolved(&self, epoch: u64) -> bool {
        self.resolution().is_some_and(|known| known.epoch == epoch)
    }

    /// The stored buckets that may belong to its window, if they are known as of that epoch.
    pub fn listed(&self, epoch: u64) -> Option<Rc<[BucketId]>> {
        let known = self.take_resolution()?;
        let listed = (known.epoch == epoch).then(|| Rc::clone(&known.listed));
        if let Ok(known) = Rc::try_unwrap(known) {
            self.set_resolution(known);
        }
        listed
    }

    /// Finds out its measurements, given the stored buckets whose times overlap with those of its rows.
    ///
    /// Errors: `DataCorruptionDetected`.
    #[inline(never)]
    pub fn resolve(
        &self,
        epoch: u64,
        listed: Rc<[BucketId]>,
        absorbed: Vec<(BucketId, Rc<StoredBucket>)>,
        dedupe: &Dedupe,
        options: &TimeseriesOptions,
    ) -> Result<()> {
        // If somebody still reads it, it is made again.
        let known = self.take_resolution().and_then(Rc::into_inner);
        let is_same = |known: &Resolution| {
            known.absorbed.len() == absorbed.len()
                && known.absorbed.iter().zip(&absorbed).all(|(a, b)| Rc::ptr_eq(&a.1, &b.1))
        };
        let tail = match known.filter(is_same) {
            Some(known) if known.sections == self.sections().len() => known.tail,
            Some(known) => match self.appended(known, options)? {
                Some(tail) => Rc::new(tail),
                None => Rc::new(self.merged(&absorbed, dedupe, options)?),
            },
            None => Rc::new(self.merged(&absorbed, dedupe, options)?),
        };
        self.set_resolution(Resolution { epoch, sections: self.sections().len(), listed, absorbed, tail });
        Ok(())
    }

    /// The tail with the sections that are new; `None` if they are not all later than what it holds, or if somebody
    /// still reads it.
    fn appended(&self, known: Resolution, options: &TimeseriesOptions) -> Result<Option<Tail>> {
        let new = self.sections().get(known.sections..).unwrap_or_default();
        let mut last_ms = known.tail.first_or_last_ms(true);
        for section in new {
            let times = section.times(options)?;
            if times.first().is_none_or(|first| *first <= last_ms) || !times.is_sorted_by(|a, b| a < b) {
                return Ok(None);
            }
            last_ms = times.last().copied().unwrap_or(last_ms);
        }
        let Some(mut tail) = Rc::into_inner(known.tail) else { return Ok(None) };
        let parts: Vec<_> = new.iter().map(SectionRef::rows).collect();
        tail.add_rows(&parts, options)?;
        Ok(Some(tail))
    }

    fn merged(
        &self,
        absorbed: &[(BucketId, Rc<StoredBucket>)],
        dedupe: &Dedupe,
        options: &TimeseriesOptions,
    ) -> Result<Tail> {
        let mut stored: Vec<Block> = Vec::with_capacity(absorbed.len());
        for (_, bucket) in absorbed {
            stored.push(unpack(&bucket.view(options)?, &FieldSet::All, options)?);
        }
        let sections = in_commit_order(self.sections());
        let parts: Vec<_> =
            stored.iter().map(|rows| (rows, 0..rows.rows())).chain(sections.iter().map(|s| s.rows())).collect();
        let all = Block::concat_slices(&parts);
        let start: usize = stored.iter().map(Block::rows).sum();
        let one = match dedupe.measurements(&all, &options.time_field, start..start + moved_rows(&sections))? {
            Some(found) => all.gather(&found.iter().map(|measurement| measurement.kept).collect::<Vec<_>>()),
            None => all,
        };
        Tail::of_rows(&one, self.min_time_ms, options)
    }
}

/// Sections in the order in which their commits count.
pub fn in_commit_order(sections: &[SectionRef]) -> Vec<&SectionRef> {
    let mut sections: Vec<&SectionRef> = sections.iter().collect();
    sort_by(&mut sections, |a, b| a.place().cmp(&b.place()));
    sections
}

/// The number of rows that were moved to their window, which are the first ones of sections in commit order.
pub fn moved_rows(sections: &[&SectionRef]) -> usize {
    let moved = sections.iter().take_while(|section| section.entry().record.order.is_earlier());
    moved.map(|section| section.rows().1.len()).sum()
}
