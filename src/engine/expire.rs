//! Retention: deletes whole buckets when they are old enough, and the oldest ones when a collection exceeds its maximum
//! size (I31).
//!
//! Age counts from the start of a bucket's span, so a bucket can outlive its last measurement by up to one span. Reads
//! do not filter: expired measurements are found until a pass has deleted them.

use std::rc::Rc;

use super::Engine;
use super::buckets::bucket_changes::{BucketChanges, ScannedPage};
use super::change::removal::Doomed;
use super::collections::bucket_size::BucketSize;
use super::collections::collection::Collection;
use super::journal::{SectionGroup, SectionRef};
use super::read::scan::{Access, Scan};
use super::store::keyspace;
use crate::bucket::{BucketDoc, BucketId};
use crate::error::{ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, EXPIRE_INTERVAL_MS, LOOK_WORK};
use crate::storage::{LocalFuture, Page};
use crate::value::{Doc, Value, sort_by};

/// What a pass has deleted from a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Number of buckets.
    pub buckets: u64,
    /// Number of measurements in them.
    pub measurements: u64,
    /// Bytes of their documents.
    pub bytes: u64,
    /// Start of the oldest bucket left. `None` if there is none, or if dates outside the standard range make ids
    /// useless for that.
    pub oldest_ms: Option<i64>,
}

/// True if a bucket is to be deleted, judged by its id, its latest time and its metadata.
type ExpiryRule<'a> = &'a dyn Fn(&BucketId, i64, Option<Value<'_>>) -> bool;

impl Engine {
    /// True if this context has run no pass within the last minute. Always false if only the command `expire` runs one.
    pub(super) fn expiry_due(&self) -> bool {
        if self.expires_by_command {
            return false;
        }
        let now_ms = self.now_ms();
        // If the clock was set back, a pass is due as well.
        self.last_expiry_ms.get().is_none_or(|last| !(last..last.saturating_add(EXPIRE_INTERVAL_MS)).contains(&now_ms))
    }

    /// Runs one pass over every collection: deletes the buckets that `expireAfterSeconds` and `maxBytes` select.
    /// Returns what was deleted, by collection.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`; `WriteConflict` if others kept rewriting the same buckets;
    /// `OutOfDiskSpace` if nothing could be deleted for lack of room.
    pub async fn expire(&self) -> Result<Vec<(String, Expired)>> {
        self.last_expiry_ms.set(Some(self.now_ms()));
        let mut all = Vec::new();
        let mut no_room = None;
        for (name, entry) in self.list_collections().await? {
            let by_index = entry.has_more_indexes();
            if entry.options.expire_after_seconds.is_none() && entry.options.max_bytes.is_none() && !by_index {
                continue;
            }
            let Some(collection) = self.collection(&name).await? else { continue };
            if entry.options.expire_after_seconds.is_none() && entry.options.max_bytes.is_none() {
                match self.refresh(&collection).await {
                    Err(e) if e.code == ErrorCode::NamespaceNotFound => continue,
                    outcome => outcome?,
                }
                if collection.entry().indexes.iter().all(|index| index.spec.expire_after_seconds.is_none()) {
                    continue;
                }
            }
            self.complete().await?;
            let mut expired = Expired::default();
            let mut conflicts = 0;
            loop {
                // Loaded by now: awaited above.
                match self.expire_collection(&collection, &mut expired).await {
                    Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                    Err(e) if e.code == ErrorCode::NamespaceNotFound => break,
                    // Deleting from another collection may make room.
                    Err(e) if e.code == ErrorCode::OutOfDiskSpace => break no_room = Some(e),
                    outcome => break outcome?,
                }
            }
            if expired.buckets > 0 {
                all.push((name, expired));
            }
        }
        match no_room {
            Some(error) if all.is_empty() => Err(error),
            _ => Ok(all),
        }
    }

    /// Boxed, because it is in the second half of the module.
    fn expire_collection<'a>(
        &'a self,
        collection: &'a Rc<Collection>,
        expired: &'a mut Expired,
    ) -> LocalFuture<'a, ()> {
        Box::pin(self.expire_by_rules(collection, expired))
    }

    // Loaded later.
    async fn expire_by_rules(&self, collection: &Rc<Collection>, expired: &mut Expired) -> Result<()> {
        // Learns whether there are dates outside the standard range, and whether the entry has changed.
        self.journal_snapshot(collection, &[]).await?;
        let entry = collection.entry();
        let options = &entry.options;
        let mut no_room = Ok(());
        // If one rule has no room to write, another one may still make room.
        let mut unless_full = |outcome: Result<()>| match outcome {
            Err(e) if e.code == ErrorCode::OutOfDiskSpace => {
                no_room = Err(e);
                Ok(())
            }
            outcome => outcome,
        };
        if let Some(seconds) = options.expire_after_seconds {
            unless_full(self.expire_by_age(collection, seconds, &|_| true, expired).await)?;
        }
        for index in &entry.indexes {
            if let Some(seconds) = index.spec.expire_after_seconds {
                unless_full(self.expire_by_age(collection, seconds, &|meta| index.takes_meta(meta), expired).await)?;
            }
        }
        if let Some(max_bytes) = options.max_bytes {
            unless_full(self.expire_by_size(collection, max_bytes.unsigned_abs(), expired).await)?;
        }
        if expired.buckets > 0 && !collection.known.extended_range.get() {
            let range = [keyspace::buckets(&collection.id(), &BucketId::MIN, &BucketId::MAX)];
            let first = self.storage.scan(&range, Page { entries_max: 1, keys_only: true }).await?;
            let stored = first.first().map(|entry| keyspace::bucket_id(&entry.key)).transpose()?;
            let stored = stored.map(|id| i64::from(id.time_seconds()) * 1000);
            let journal = self.journal_snapshot(collection, &[]).await?.journal;
            let unfolded = journal.groups().iter().map(|group| group.min_time_ms);
            expired.oldest_ms = unfolded.chain(stored).min();
        }
        no_room
    }

    /// Deletes every bucket that began a span and `seconds` ago and whose metadata `goes` accepts.
    ///
    /// If there are dates outside the standard range, ids do not sort by time. Then the latest measurement must be old
    /// as well, and the ids of dates before 1970, which sort last, are included.
    async fn expire_by_age(
        &self,
        collection: &Rc<Collection>,
        seconds: i64,
        goes: &dyn Fn(Option<Value<'_>>) -> bool,
        expired: &mut Expired,
    ) -> Result<()> {
        let options = &collection.entry().options.timeseries;
        let bound_ms = self.now_ms().saturating_sub(seconds.saturating_mul(1000));
        let goes = |_: &BucketId, last_ms: i64, meta: Option<Value<'_>>| {
            (!collection.known.extended_range.get() || last_ms <= bound_ms) && goes(meta)
        };
        let start_ms = bound_ms.saturating_sub(options.span_ms());
        if start_ms >= 0 {
            self.sweep(collection, BucketId::MIN, BucketId::highest_at(start_ms), &goes, expired).await?;
        }
        if collection.known.extended_range.get() {
            let first = BucketId::lowest_at(((1 << 31) - options.span_seconds) * 1000);
            self.sweep(collection, first, BucketId::MAX, &goes, expired).await?;
        }
        Ok(())
    }

    /// Deletes the oldest buckets until the remaining ones have `max_bytes` or less.
    async fn expire_by_size(&self, collection: &Rc<Collection>, max_bytes: u64, expired: &mut Expired) -> Result<()> {
        let mut bucket_sizes = self.measure(collection).await?;
        let mut over = bucket_sizes.iter().map(|bucket| bucket.bytes).sum::<u64>().saturating_sub(max_bytes);
        if collection.known.extended_range.get() {
            sort_by(&mut bucket_sizes, |a, b| a.min_time_ms.cmp(&b.min_time_ms));
        }
        let mut oldest: Vec<BucketId> = Vec::new();
        for bucket in bucket_sizes {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(bucket.bytes);
            oldest.push(bucket.id);
        }
        sort_by(&mut oldest, Ord::cmp);
        let (Some(first), Some(last)) = (oldest.first(), oldest.last()) else { return Ok(()) };
        self.sweep(collection, *first, *last, &|id, _, _| oldest.binary_search(id).is_ok(), expired).await
    }

    /// The sizes of all stored buckets, in id order. Reads them again if others have changed buckets since the last
    /// time.
    async fn measure(&self, collection: &Rc<Collection>) -> Result<Vec<BucketSize>> {
        let epoch = collection.journal.epoch();
        if let Some(bucket_sizes) = &*collection.known.bucket_sizes.borrow() {
            return Ok(bucket_sizes.clone());
        }
        let options = &collection.entry().options.timeseries;
        let mut all = Vec::new();
        let (mut scan, _) = self.begin_scan(collection, &[]).await?;
        scan.aim(Access::Range(BucketId::MIN, BucketId::MAX));
        while let Some(units) = self.next_page(&mut scan).await? {
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
            all.extend(units.iter().filter_map(|unit| BucketSize::of(&unit.id, unit.stored.as_deref()?, options)));
        }
        if collection.journal.epoch() == epoch {
            *collection.known.bucket_sizes.borrow_mut() = Some(all.clone());
        }
        Ok(all)
    }

    /// Deletes the buckets from `low` to `high` that `rule` selects, with the journal rows that they had at the start
    /// of the sweep. If there is no room to write, removes first what needs no write.
    async fn sweep(
        &self,
        collection: &Rc<Collection>,
        low: BucketId,
        high: BucketId,
        rule: ExpiryRule<'_>,
        expired: &mut Expired,
    ) -> Result<()> {
        let goes =
            |id: &BucketId, last_ms, meta: Option<Value<'_>>| (low..=high).contains(id) && rule(id, last_ms, meta);
        let bucket = |id: &BucketId, _: Doc<'_>, view: &BucketDoc<'_>, last_ms| Ok(goes(id, last_ms, view.meta()));
        let rows = |reference: &SectionRef, _: Option<&BucketDoc<'_>>, last_ms| {
            Ok(reference.section().is_some_and(|section| goes(&section.bucket, last_ms, reference.meta())))
        };
        let doomed = Doomed { bucket: &bucket, rows: &rows, only_folded: false };
        loop {
            let (scan, _) = self.begin_scan(collection, &[]).await?;
            let error = match self.sweep_scan(scan, (low, high), &goes, expired).await {
                Err(e) if e.code == ErrorCode::OutOfDiskSpace => e,
                outcome => return outcome,
            };
            let (mut scan, _) = self.begin_scan(collection, &[]).await?;
            scan.aim(Access::Range(low, high));
            let removed = self.remove_without_room(&mut scan, &doomed).await?;
            expired.buckets += removed.buckets;
            expired.measurements += removed.measurements;
            expired.bytes += removed.bytes;
            if removed.measurements == 0 {
                return Err(error);
            }
        }
    }

    async fn sweep_scan(
        &self,
        mut scan: Scan,
        (low, high): (BucketId, BucketId),
        goes: ExpiryRule<'_>,
        expired: &mut Expired,
    ) -> Result<()> {
        let collection = &Rc::clone(scan.collection());
        let folds = |group: &SectionGroup| goes(&group.bucket, group.last_ms, group.meta());
        if self.fold_groups(&scan, &folds).await? {
            (scan, _) = self.begin_scan(collection, &[]).await?;
        }
        scan.aim(Access::Range(low, high));
        while let Some(units) = self.next_page(&mut scan).await? {
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
            let mut changes = BucketChanges::new(collection);
            let mut gone = *expired;
            for unit in &units {
                let Some(stored) = &unit.stored else { continue };
                let view = BucketDoc::parse(stored.document.view(), &collection.entry().options.timeseries)?;
                // Newer rows may be later than the stored ones.
                let last_ms = unit.unfolded().map_or(i64::MIN, |group| group.last_ms).max(view.max_time_ms());
                if goes(&unit.id, last_ms, view.meta()) {
                    changes.remove(unit)?;
                    gone.buckets += 1;
                    gone.measurements += view.count()? as u64;
                    gone.bytes += stored.document.view().as_bytes().len() as u64;
                }
            }
            let page = ScannedPage::of(&units, scan.covered());
            let epoch = changes.commit(self, scan.epoch(), Vec::new(), page).await?;
            scan.set_epoch(epoch);
            *expired = gone;
        }
        Ok(())
    }
}
