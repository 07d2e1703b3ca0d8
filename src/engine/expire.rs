//! Retention: whole buckets go when they are old enough, and the oldest ones when a collection has grown past its bound.
//!
//! Age counts from the start of a bucket's span, so that a bucket can outlive its last measurement by up to one span. Nothing
//! is filtered when it is read: what is due is found until a pass has deleted it.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::keyspace;
use super::page_changes::PageChanges;
use super::read::{Access, decode_stored};
use crate::bucket::{BucketDoc, BucketId};
use crate::error::{ErrorCode, Result};
use crate::limits::{EXPIRE_INTERVAL_MS, SCAN_PAGE_BUCKETS, WRITE_CONFLICT_RETRIES_MAX};
use crate::storage::{Bytes, Page};
use crate::value::sort_by;

/// What a pass has deleted of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Buckets.
    pub buckets: u64,
    /// Their measurements.
    pub measurements: u64,
    /// Bytes of their documents.
    pub bytes: u64,
    /// Start of the oldest bucket that is left; `None` where nothing is, and where dates outside the standard range keep ids
    /// from telling.
    pub oldest_ms: Option<i64>,
}

/// A stored bucket and its size.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    id: BucketId,
    generation: u32,
    bytes: u64,
    min_time_ms: i64,
}

/// Whether a bucket goes, by its id and its latest time.
type Rule<'a> = &'a dyn Fn(&BucketId, i64) -> bool;

impl Engine {
    /// True where no pass has run in this context for a minute, or ever.
    pub(super) fn expiry_due(&self) -> bool {
        let now_ms = self.now_ms();
        // A clock that was set back counts as a minute, too.
        self.last_expiry_ms.get().is_none_or(|last| !(last..last.saturating_add(EXPIRE_INTERVAL_MS)).contains(&now_ms))
    }

    /// One pass over every collection: deletes the buckets that `expireAfterSeconds` and `maxBytes` say. Answers what went, by name.
    ///
    /// Errors: those of storage, `DataCorruptionDetected`, `WriteConflict` where others kept rewriting the same buckets.
    pub async fn expire(&self) -> Result<Vec<(String, Expired)>> {
        self.last_expiry_ms.set(Some(self.now_ms()));
        let mut all = Vec::new();
        for (name, entry) in self.list_collections().await? {
            if entry.options.expire_after_seconds.is_none() && entry.options.max_bytes.is_none() {
                continue;
            }
            let Some(collection) = self.collection(&name).await? else { continue };
            let mut expired = Expired::default();
            let mut conflicts = 0;
            loop {
                match self.expire_collection(&collection, &mut expired).await {
                    Err(e) if e.code == ErrorCode::WriteConflict && conflicts < WRITE_CONFLICT_RETRIES_MAX => {
                        conflicts += 1
                    }
                    Err(e) if e.code == ErrorCode::NamespaceNotFound => break,
                    outcome => break outcome?,
                }
            }
            if expired.buckets > 0 {
                all.push((name, expired));
            }
        }
        Ok(all)
    }

    async fn expire_collection(&self, collection: &Rc<Collection>, expired: &mut Expired) -> Result<()> {
        let options = &collection.entry.options;
        // Tells whether there are dates outside the standard range.
        self.journal_snapshot(collection, &[]).await?;
        if let Some(seconds) = options.expire_after_seconds {
            self.expire_by_age(collection, seconds, expired).await?;
        }
        if let Some(max_bytes) = options.max_bytes {
            self.expire_by_size(collection, max_bytes.unsigned_abs(), expired).await?;
        }
        if expired.buckets > 0 && !collection.extended_range.get() {
            let range = [keyspace::buckets(&collection.id(), &BucketId::MIN, &BucketId::MAX)];
            let first = self.storage.scan(&range, Page { entries_max: 1, keys_only: true }).await?;
            let stored = first.first().map(|entry| keyspace::bucket_parts(&entry.key)).transpose()?;
            let stored = stored.map(|(id, _)| i64::from(id.time_seconds()) * 1000);
            let journal = self.journal_snapshot(collection, &[]).await?.journal;
            let sections = journal.iter().flat_map(|entry| &entry.record.sections).map(|section| section.min_time_ms);
            expired.oldest_ms = sections.chain(stored).min();
        }
        Ok(())
    }

    /// Deletes every bucket that began a span and `seconds` ago.
    ///
    /// With dates outside the standard range, ids do not sort by time: the latest measurement must be old as well, and the ids of
    /// dates before 1970, which stand at the end, are looked at too.
    async fn expire_by_age(&self, collection: &Rc<Collection>, seconds: i64, expired: &mut Expired) -> Result<()> {
        let options = &collection.entry.options.timeseries;
        let bound_ms = self.now_ms().saturating_sub(seconds.saturating_mul(1000));
        let goes = |_: &BucketId, last_ms| !collection.extended_range.get() || last_ms <= bound_ms;
        let start_ms = bound_ms.saturating_sub(options.span_ms());
        if start_ms >= 0 {
            self.sweep(collection, BucketId::MIN, BucketId::highest_at(start_ms), &goes, expired).await?;
        }
        if collection.extended_range.get() {
            let first = BucketId::lowest_at(((1 << 31) - options.span_seconds) * 1000);
            self.sweep(collection, first, BucketId::MAX, &goes, expired).await?;
        }
        Ok(())
    }

    /// Deletes the oldest buckets until the others have `max_bytes` or less.
    async fn expire_by_size(&self, collection: &Rc<Collection>, max_bytes: u64, expired: &mut Expired) -> Result<()> {
        let mut measured = self.measure(collection).await?;
        let mut over = measured.iter().map(|bucket| bucket.bytes).sum::<u64>().saturating_sub(max_bytes);
        if collection.extended_range.get() {
            sort_by(&mut measured, |a, b| a.min_time_ms.cmp(&b.min_time_ms));
        }
        let mut oldest: Vec<BucketId> = Vec::new();
        for bucket in measured {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(bucket.bytes);
            oldest.push(bucket.id);
        }
        sort_by(&mut oldest, Ord::cmp);
        let (Some(first), Some(last)) = (oldest.first(), oldest.last()) else { return Ok(()) };
        self.sweep(collection, *first, *last, &|id, _| oldest.binary_search(id).is_ok(), expired).await
    }

    /// The sizes of all stored buckets, in order of their ids. Only those are read that were not known in this form.
    async fn measure(&self, collection: &Rc<Collection>) -> Result<Vec<Measured>> {
        let id = collection.id();
        let keys = self.scan_keys(vec![keyspace::buckets(&id, &BucketId::MIN, &BucketId::MAX)]).await?;
        let mut all = Vec::with_capacity(keys.len());
        let mut unknown = Vec::new();
        for key in keys {
            let parts = keyspace::bucket_parts(&key)?;
            let known = collection.measured.borrow();
            match known.binary_search_by(|bucket| (bucket.id, bucket.generation).cmp(&parts)) {
                Ok(at) => all.extend(known.get(at)),
                Err(_) => unknown.push(key),
            }
        }
        for keys in unknown.chunks(SCAN_PAGE_BUCKETS) {
            let values: Vec<Option<Bytes>> = self.storage.get_many(keys).await?;
            for (key, value) in keys.iter().zip(values) {
                let Some(value) = value else { continue };
                let (id, generation) = keyspace::bucket_parts(key)?;
                let stored = decode_stored(&id, value)?;
                let document = stored.document.view();
                let min_time_ms = BucketDoc::parse(document, &collection.entry.options.timeseries)?.min_time_ms();
                all.push(Measured { id, generation, bytes: document.as_bytes().len() as u64, min_time_ms });
            }
        }
        sort_by(&mut all, |a, b| (a.id, a.generation).cmp(&(b.id, b.generation)));
        collection.measured.borrow_mut().clone_from(&all);
        Ok(all)
    }

    /// Deletes the buckets from `low` to `high` that go by `rule`, with the journal rows that were theirs when it began.
    async fn sweep(
        &self,
        collection: &Rc<Collection>,
        low: BucketId,
        high: BucketId,
        rule: Rule<'_>,
        expired: &mut Expired,
    ) -> Result<()> {
        let (mut scan, _) = self.begin_scan(collection, None).await?;
        let goes = |id: &BucketId, last_ms| (low..=high).contains(id) && rule(id, last_ms);
        if self.fold_sections(&scan, &|section| goes(&section.bucket, section.last_ms)).await? {
            (scan, _) = self.begin_scan(collection, None).await?;
        }
        scan.aim(Access::Range(low, high));
        while let Some(units) = self.next_page(&mut scan).await? {
            let mut page = PageChanges::new(collection, &units);
            let mut gone = *expired;
            for unit in &units {
                let Some((stored, generation)) = &unit.stored else { continue };
                let view = BucketDoc::parse(stored.document.view(), &collection.entry.options.timeseries)?;
                // Rows that came since may be later than what is stored.
                let sections = unit.sections.iter().filter_map(|reference| reference.section());
                if goes(&unit.id, sections.map(|section| section.last_ms).fold(view.max_time_ms(), i64::max)) {
                    page.replace(&view, (stored, *generation), None)?;
                    gone.buckets += 1;
                    gone.measurements += view.count()? as u64;
                    gone.bytes += stored.document.view().as_bytes().len() as u64;
                }
            }
            page.commit(self, scan.covered()).await?;
            *expired = gone;
        }
        Ok(())
    }
}
