//! The integrity check: every journal record, bucket and index entry of a collection as stored, and the repair of
//! damaged ones.
//!
//! It does not use what memory holds. Markers are read first and last: if the epoch is the same, everything read in
//! between belongs together. **Invariant I28**: unreadable values are moved, not removed: their bytes stay under a key
//! of their own until the collection is dropped.

// Loaded later.

use std::rc::Rc;

use super::Engine;
use super::buckets::bucket_changes::{BucketChanges, ScannedPage, index_keys};
use super::buckets::fold::merge_sections;
use super::collections::collection::Collection;
use super::journal::{ByBucket, JournalEntry, Record, SectionRef};
use super::store::entry::CollectionEntry;
use super::store::keyspace::{self, Marker};
use super::store::pages::go_on;
use super::store::stored_bucket::StoredBucket;
use crate::bucket::{B19, BucketDoc, BucketId, Finding, Rule, Salvaged, is_extended_range, salvage, unpack, validate};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, FINDINGS_MAX, LOOK_WORK};
use crate::listed::IntoList;
use crate::storage::{Bytes, Entry, KeyRange, Page};
use crate::value::{Doc, DocWriter, FieldSet, Value, sort_by};

/// The options of `validate`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// True to decode compressed columns.
    pub full: bool,
    /// True to repair the indexes and to quarantine damaged buckets and records.
    pub repair: bool,
}

/// The result of `validate`.
#[derive(Default)]
pub struct Validation {
    /// Number of buckets, including those that are only in journals.
    pub buckets: usize,
    /// Number of values that are not buckets at all.
    pub invalid: usize,
    /// Number of buckets that break a rule.
    pub non_compliant: usize,
    /// Number of quarantined values.
    pub quarantined: usize,
    /// The indexes: name, number of entries, and whether the entries are correct.
    pub indexes: Vec<(Box<str>, usize, bool)>,
    /// Missing index entries, and extra ones.
    pub wrong_entries: [Vec<Bytes>; 2],
    /// The findings as an array of documents, up to the limit.
    pub findings: DocWriter,
    listed: usize,
    rounded_otherwise: bool,
    /// True if there are warnings.
    pub warned: bool,
    /// True if something is wrong that was not repaired.
    pub broken: bool,
    /// True if something was repaired.
    pub repaired: bool,
}

static STORED: Rule = Rule::new("STORED", ErrorCode::DataCorruptionDetected, "not a bucket");
static B20: Rule = Rule::new("B20", ErrorCode::BadValue, "stored under another id");
static J1: Rule = Rule::new("J1", ErrorCode::DataCorruptionDetected, "cannot be read");
static J2: Rule = Rule::new("J2", ErrorCode::DataCorruptionDetected, "rows do not belong to their bucket");
static DEDUPE: Rule = Rule::new("DEDUPE", ErrorCode::BadValue, "a measurement is stored twice");
static RANGE: Rule =
    Rule::new("RANGE", ErrorCode::BadValue, "dates outside 1970 to 2038 are stored, but the collection is not marked");
static ARRAY: Rule = Rule::new("ARRAY", ErrorCode::Location5930501, "an array on an indexed path");

/// One pass over a collection.
struct Pass<'a> {
    engine: &'a Engine,
    collection: &'a Rc<Collection>,
    entry: Rc<CollectionEntry>,
    checks: Checks,
    found: Validation,
    /// True while changes are being committed.
    changes: bool,
    /// What is still to be read; empty after the last page.
    ranges: Vec<KeyRange>,
    epoch: Option<u64>,
    /// True if the epoch was among the markers read last; the ones that follow are in reserve.
    epoch_read: bool,
    /// Values quarantined by this pass begin at this key.
    quarantine_start: Bytes,
    /// Journal records as they arrive, then all of them by bucket.
    records: Vec<Rc<JournalEntry>>,
    journal: Option<ByBucket>,
    /// Which buckets of the journal were visited.
    met: Vec<bool>,
    /// The existing index entries, and those that the buckets should have.
    entries: [Vec<Bytes>; 2],
    /// Buckets that stay although their index entries cannot be determined.
    unreadable: Vec<BucketId>,
    /// Whether there are dates outside the standard range, and whether the collection says so.
    extended: [bool; 2],
}

/// Few enough that a page takes no longer than a turn.
const PAGE: Page = Page { entries_max: 64, keys_only: false };

impl Engine {
    /// Checks a collection.
    ///
    /// Errors: `NamespaceNotFound`; `WriteConflict` if others kept changing its buckets; those of storage.
    pub async fn validate(&self, name: &str, checks: Checks) -> Result<Validation> {
        let collection = self.existing_collection(name).await?;
        let mut pass = Pass::new(self, &collection, checks);
        let mut conflicts = 0;
        loop {
            let entries = self.storage.scan(&pass.ranges, PAGE).await?;
            if pass.epoch.is_none() {
                // A page has room for all markers, and changing the entry moves the epoch on.
                self.reload_entry(&collection).await?;
            }
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
            let changes = pass.take(entries);
            match changes.commit(self, pass.epoch.unwrap_or_default(), Vec::new(), ScannedPage::default()).await {
                Ok(epoch) if pass.epoch.is_some() => {
                    if pass.go_on(epoch) {
                        return Ok(pass.found);
                    }
                }
                Err(e) if e.code != ErrorCode::WriteConflict => return Err(e),
                _ if conflicts == CHANGE_CONFLICTS_MAX => {
                    return Err(Error::write_conflict("Buckets were changed while they were checked"));
                }
                _ => {
                    conflicts += 1;
                    // What was repaired is no longer found; other findings are listed again.
                    let before = pass.found;
                    pass = Pass::new(self, &collection, checks);
                    if before.repaired {
                        pass.found.findings = before.findings;
                        pass.found.listed = before.listed;
                        pass.found.repaired = true;
                    }
                }
            }
        }
    }
}

impl<'a> Pass<'a> {
    #[inline(never)]
    fn new(engine: &'a Engine, collection: &'a Rc<Collection>, checks: Checks) -> Box<Pass<'a>> {
        let mut ranges = keyspace::collection_ranges(&collection.id());
        ranges.extend(ranges.first().cloned());
        Box::new(Pass {
            engine,
            collection,
            entry: collection.entry(),
            checks,
            found: Validation { findings: DocWriter::new(), ..Validation::default() },
            changes: false,
            ranges,
            epoch: None,
            epoch_read: false,
            quarantine_start: Bytes::new(),
            records: Vec::new(),
            journal: None,
            met: Vec::new(),
            entries: Default::default(),
            unreadable: Vec::new(),
            extended: [false; 2],
        })
    }

    /// Records that changes were committed; true if everything has been examined.
    fn go_on(&mut self, epoch: u64) -> bool {
        self.epoch = Some(epoch);
        self.found.repaired |= self.changes;
        self.ranges.is_empty()
    }

    /// Examines entries and returns repairs. If the epoch has moved on, it is unknown afterwards.
    #[inline(never)]
    fn take(&mut self, entries: Vec<Entry>) -> BucketChanges<'a> {
        let mut changes = BucketChanges::new(self.collection);
        let is_first = self.epoch.is_none();
        let is_last = entries.len() < PAGE.entries_max;
        if is_first {
            self.entry = self.collection.entry();
            // The markers follow once more at the end.
            self.ranges.remove(0);
        }
        if let Some(last) = entries.last().filter(|_| !is_last) {
            go_on(&mut self.ranges, &last.key);
        }
        let starts = keyspace::collection_ranges(&self.collection.id());
        for Entry { key, value } in entries {
            match starts.iter().position(|range| key.starts_with(&range.start)) {
                Some(0) => {
                    if !self.marker(&key) {
                        self.epoch = None;
                        return BucketChanges::new(self.collection);
                    }
                }
                Some(1) => self.record(key, value, &mut changes),
                Some(2) => self.stored(key, value, &mut changes),
                Some(3) => self.entries[0].push(key),
                _ => self.found.quarantined += usize::from(key < self.quarantine_start),
            }
        }
        if is_last {
            self.ranges.clear();
            self.end(&mut changes);
        }
        self.changes = !changes.is_empty();
        changes
    }

    /// Reads a marker; false if the epoch has moved on.
    fn marker(&mut self, key: &[u8]) -> bool {
        let id = self.collection.id();
        let Some(epoch) = keyspace::epoch_of(key) else {
            // The first of all markers.
            self.epoch_read &= keyspace::generation_of(key, &id).is_none();
            self.extended[1] |= keyspace::is_marker(key, &id, Marker::ExtendedRange);
            return true;
        };
        if std::mem::replace(&mut self.epoch_read, true) {
            return true;
        }
        match self.epoch {
            None => {
                self.quarantine_start = keyspace::quarantined(&id, epoch, &[]);
                self.epoch = Some(epoch);
                true
            }
            Some(known) => epoch == known,
        }
    }

    /// Lists findings. If they were repaired, `kept` measurements of the bucket were kept.
    #[inline(never)]
    fn add(&mut self, bucket: Option<BucketId>, findings: Vec<Finding>, kept: Option<usize>) {
        let found = &mut self.found;
        let mut breaks = false;
        for Finding { rule, path, detail } in findings {
            // Reported once for all buckets, and not at all if the rounding may have been changed, or if buckets start
            // where they were divided.
            let is_free = self.entry.version > 0 || self.entry.options.dedupe.is_some();
            if *rule == B19 && (is_free || std::mem::replace(&mut found.rounded_otherwise, true)) {
                continue;
            }
            found.warned |= rule.warns;
            found.broken |= !rule.warns && kept.is_none();
            breaks |= !rule.warns;
            if found.listed == FINDINGS_MAX {
                continue;
            }
            let list = &mut found.findings;
            list.begin_doc(&found.listed.to_string()).string("rule", rule.name).int32("code", rule.code as i32);
            if let Some(bucket) = &bucket {
                list.object_id("bucketId", bucket.as_bytes());
            }
            list.string("field", &path).string("message", if detail.is_empty() { rule.text } else { &detail });
            list.bool("warning", rule.warns).bool("repaired", kept.is_some());
            if let Some(kept) = kept {
                list.int32("measurementsKept", i32::try_from(kept).unwrap_or(i32::MAX));
            }
            list.end();
            found.listed += 1;
        }
        found.non_compliant += usize::from(breaks && bucket.is_some());
    }

    fn add_one(&mut self, bucket: Option<BucketId>, rule: &'static Rule, detail: String, kept: Option<usize>) {
        self.add(bucket, vec![Finding { rule, path: String::new(), detail }], kept);
    }

    fn record(&mut self, key: Bytes, value: Bytes, changes: &mut BucketChanges<'_>) {
        let Some((context, seq)) = keyspace::journal_parts(&key) else { return };
        match Record::decode(&value, &[]) {
            Ok(record) => {
                for section in &record.sections {
                    self.extended[0] |= is_extended_range(section.min_time_ms) || is_extended_range(section.last_ms);
                }
                self.records.push(Rc::new(JournalEntry::new((context, seq), record)));
            }
            Err(e) => {
                self.found.invalid += 1;
                self.add_one(None, &J1, e.into_message(), self.checks.repair.then_some(0));
                if self.checks.repair {
                    self.set_aside(key, value, changes);
                }
            }
        }
    }

    fn findings(&self, document: Doc<'_>) -> Vec<Finding> {
        let count_max = self.engine.catalog_options.bucket_count_max;
        validate(document, &self.entry.options.timeseries, self.checks.full, count_max)
    }

    /// What is wrong with a bucket once journal rows are merged into it.
    fn merged(&self, id: &BucketId, stored: Option<Doc<'_>>, sections: &[&SectionRef]) -> Vec<Finding> {
        match merge_sections(self.collection, stored, id, sections, self.engine.bucket_format) {
            Ok(document) => self.findings(document.view()),
            Err(e) => vec![Finding { rule: &J2, path: String::new(), detail: e.into_message() }],
        }
    }

    /// The journal by bucket, once all of it has arrived.
    fn journal(&mut self) -> ByBucket {
        self.journal.take().unwrap_or_else(|| {
            let journal = ByBucket::of(self.records.iter());
            self.met = vec![false; journal.groups().len()];
            journal
        })
    }

    /// Examines a stored bucket.
    fn stored(&mut self, key: Bytes, value: Bytes, changes: &mut BucketChanges<'_>) {
        let Ok(bucket) = keyspace::bucket_id(&key) else { return };
        let journal = self.journal();
        // With `dedupe`, rows are addressed to windows, and each group counts as a bucket of its own.
        let groups = if self.entry.options.dedupe.is_some() { Vec::new() } else { journal.groups_of(&bucket) };
        for number in &groups {
            self.met.iter_mut().skip(*number).take(1).for_each(|met| *met = true);
        }
        self.found.buckets += 1;
        match StoredBucket::decode(value.clone()) {
            Ok(stored) => {
                let document = stored.document.view();
                let mut findings = self.findings(document);
                if let Some((_, less)) =
                    self.checks.full.then(|| self.collection.distinct(document, self.engine)).flatten()
                {
                    let detail = format!("{less} rows are measurements that other rows are");
                    findings.push(Finding { rule: &DEDUPE, path: String::new(), detail });
                }
                let id = document.get("_id").and_then(Value::as_object_id);
                let rule = |rule| Finding { rule, path: String::new(), detail: String::new() };
                if id.is_some_and(|id| id != *bucket.as_bytes()) {
                    findings.push(rule(&B20));
                } else if self.collection.check_bucket(document).is_err_and(|e| e.code == ARRAY.code) {
                    // Reads rely on what an index requires.
                    findings.push(rule(&ARRAY));
                }
                if findings.iter().all(|finding| finding.rule.warns) {
                    for number in groups {
                        let sections = journal.groups().get(number).map_or(&[][..], |group| group.sections());
                        let sections: Vec<_> = sections.iter().filter(|s| !stored.coverage.covers(s.commit())).listed();
                        let Some(first) = sections.first() else { continue };
                        // Rows with other metadata get a bucket of their own.
                        let same = first.meta() == document.get("meta");
                        if same {
                            findings.clear();
                        } else {
                            self.found.buckets += 1;
                        }
                        findings.extend(self.merged(&bucket, same.then_some(document), &sections));
                    }
                    self.expect(&bucket, document);
                    self.add(Some(bucket), findings, None);
                } else {
                    self.damaged(&bucket, &stored, findings, (key, value), changes);
                }
            }
            Err(e) => {
                self.found.invalid += 1;
                self.add_one(Some(bucket), &STORED, e.into_message(), self.checks.repair.then_some(0));
                self.give_up(&bucket, (key, value), changes);
            }
        }
        self.journal = Some(journal);
    }

    fn set_aside(&mut self, key: Bytes, value: Bytes, changes: &mut BucketChanges<'_>) {
        self.found.quarantined += 1;
        changes.set_aside(self.epoch.unwrap_or_default(), key, value);
    }

    /// Quarantines a bucket from which nothing can be salvaged.
    fn give_up(&mut self, bucket: &BucketId, (key, value): (Bytes, Bytes), changes: &mut BucketChanges<'_>) {
        if self.checks.repair {
            self.set_aside(key, value, changes);
            changes.replace(bucket, None);
        } else {
            self.unreadable.push(*bucket);
        }
    }

    /// Rebuilds a bucket that breaks rules, if that loses nothing readable.
    fn damaged(
        &mut self,
        bucket: &BucketId,
        stored: &StoredBucket,
        findings: Vec<Finding>,
        (key, value): (Bytes, Bytes),
        changes: &mut BucketChanges<'_>,
    ) {
        let document = stored.document.view();
        let entry = Rc::clone(&self.entry);
        let options = &entry.options.timeseries;
        let view = BucketDoc::parse(document, options);
        let readable = view.and_then(|view| unpack(&view, &FieldSet::All, options)).is_ok();
        let salvaged = salvage(document, bucket, self.engine.bucket_format, options);
        let salvaged = salvaged.map(|salvaged| match self.collection.distinct(salvaged.document.view(), self.engine) {
            Some((document, less)) => Salvaged { document, rows: salvaged.rows - less, ..salvaged },
            None => salvaged,
        });
        let salvaged = salvaged.filter(|salvaged| {
            let document = salvaged.document.view();
            (salvaged.complete || !readable)
                && self.collection.check_bucket(document).is_ok()
                && self.findings(document).iter().all(|finding| finding.rule.warns)
        });
        match (salvaged, self.checks.repair) {
            (Some(salvaged), true) => {
                self.expect(bucket, salvaged.document.view());
                self.add(Some(*bucket), findings, Some(salvaged.rows));
                self.set_aside(key, value, changes);
                changes.replace(bucket, Some(StoredBucket::new(stored.coverage.clone(), salvaged.document)));
            }
            (None, true) if !readable => {
                self.add(Some(*bucket), findings, Some(0));
                self.give_up(bucket, (key, value), changes);
            }
            _ => {
                self.expect(bucket, document);
                self.add(Some(*bucket), findings, None);
            }
        }
    }

    /// Records the index entries of a bucket that stays.
    fn expect(&mut self, bucket: &BucketId, document: Doc<'_>) {
        match index_keys(self.collection, bucket, document) {
            Ok(keys) => self.entries[1].extend(keys),
            Err(_) => self.unreadable.push(*bucket),
        }
        if let Ok(view) = BucketDoc::parse(document, &self.entry.options.timeseries) {
            self.extended[0] |= is_extended_range(view.min_time_ms()) || is_extended_range(view.max_time_ms());
        }
    }

    /// Checks that need the whole collection.
    #[inline(never)]
    fn end(&mut self, changes: &mut BucketChanges<'_>) {
        let journal = self.journal();
        for (number, group) in journal.groups().iter().enumerate() {
            if self.met.get(number) == Some(&false) {
                self.found.buckets += 1;
                let findings = self.merged(&group.bucket, None, &group.sections().iter().listed());
                self.add(Some(group.bucket), findings, None);
            }
        }
        let repair = self.checks.repair;
        if self.extended == [true, false] {
            self.add_one(None, &RANGE, String::new(), repair.then_some(0));
            if repair {
                changes.mark_extended_range();
            }
        }
        let [stored, mut expected] = std::mem::take(&mut self.entries);
        sort_by(&mut expected, Ord::cmp);
        let wrong = [self.without(&expected, &stored), self.without(&stored, &expected)];
        for spec in self.entry.ready_indexes() {
            let is_wrong = !repair && wrong.iter().any(|keys| count(keys, spec.number) > 0);
            self.found.indexes.push((spec.name.clone(), count(&stored, spec.number), !is_wrong));
        }
        let [missing, extra] = &wrong;
        if repair {
            changes.correct_index(missing, extra);
        } else {
            self.found.broken |= missing.len() + extra.len() > 0;
        }
        self.found.wrong_entries = wrong;
    }

    /// The entries of `these` that are missing from `others` (ascending) and belong to a complete index.
    #[inline(never)]
    fn without(&self, these: &[Bytes], others: &[Bytes]) -> Vec<Bytes> {
        let mut rest = Vec::new();
        for key in these {
            // The builder of an index has not reached all buckets yet.
            let is_ready = self.entry.ready_indexes().any(|spec| spec.number == keyspace::index_number(key));
            let may_differ = keyspace::bucket_id(key).is_ok_and(|bucket| self.unreadable.contains(&bucket));
            if is_ready && !may_differ && others.binary_search(key).is_err() {
                rest.push(key.clone());
            }
        }
        rest
    }
}

/// The number of entries of an index.
fn count(keys: &[Bytes], number: u16) -> usize {
    keys.iter().filter(|key| keyspace::index_number(key) == number).count()
}
