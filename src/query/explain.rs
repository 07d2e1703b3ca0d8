//! A plan as `explain` shows it: how buckets are found, how they are unpacked, and what becomes of their measurements.

// Loaded later.

use super::ends::Ends;
use super::exec::Counters;
use super::explain_bounds::{interval, write_multikey, write_records};
use super::intervals::{Interval, of_class};
use super::pushdown::Split;
use super::read_plan::{ReadAccess, ReadPlan};
use crate::bucket::{BucketId, ColumnSet, TimeseriesOptions, WEIGHT};
use crate::index::{IndexSpec, Part};
use crate::value::{DocBuf, DocWriter, Kind, OwnedValue, Value};

/// What became of a query that was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Index entries that were looked at.
    pub entries: u64,
    /// Stored buckets that were read.
    pub examined: u64,
    /// What was done with them.
    pub counters: Counters,
    /// How long it took.
    pub duration_ms: i64,
}

/// A plan and what it is shown with.
pub struct Explain<'a> {
    /// The database and the collection of the buckets.
    pub namespace: &'a str,
    /// The plan, and what it is for; `None` where there is no such collection.
    pub plan: Option<(&'a ReadPlan, &'a TimeseriesOptions)>,
    /// What became of it; `None` where it was not run.
    pub run: Option<Run>,
    /// True where rejected plans are to be shown as well. There are none.
    pub all_plans: bool,
    /// Of each branch of the access and each part of its index, how many components below the metadata lead to arrays on its path; empty where nobody
    /// has looked.
    pub multikey: Vec<Vec<Vec<usize>>>,
    /// What becomes of the matches where they are changed.
    pub write: Option<Write>,
    /// What is made of the matches where they are not returned.
    pub group: Option<Group>,
    /// True where the first of the later stages gives documents of its own.
    pub has_source: bool,
    /// True where the projection of the plan only says what the first of the later stages reads.
    pub is_narrowed: bool,
    /// The stages behind the plan, and how many rows came out of those of which it was counted.
    pub later: &'a [(DocBuf, Option<u64>)],
}

/// A write, as it is shown.
pub struct Write {
    /// What it does.
    pub op_type: &'static str,
    /// The stage that takes whole buckets, where nothing is left to be asked of their measurements.
    pub of_buckets: Option<&'static str>,
    /// True where the match is answered, and what of it.
    pub answers: Option<bool>,
}

/// A field, its accumulator and the operand of that.
pub type Group = (&'static str, &'static str, OwnedValue);

impl Explain<'_> {
    /// Adds `stages`, or where there is no collection what a stage would hold.
    pub fn write(&self, writer: &mut DocWriter) {
        if self.write.is_some() || self.plan.is_none() && self.later.is_empty() {
            return self.write_cursor(writer);
        }
        writer.begin_array("stages");
        let mut place = 0;
        if !self.has_source {
            writer.begin_doc("0").begin_doc("$cursor");
            self.write_cursor(writer);
            writer.end();
            self.end(self.passed(), writer);
            place = 1;
        }
        if let Some((plan, options)) = self.plan {
            place = self.write_stages(plan, options, writer);
        }
        for (stage, rows) in self.later {
            writer.begin_doc(&place.to_string());
            stage.view().iter().for_each(|(name, argument)| {
                writer.value(name, argument);
            });
            rows.iter().for_each(|rows| {
                writer.int64("nReturned", long(*rows));
            });
            writer.end();
            place += 1;
        }
        writer.end();
    }

    fn counters(&self) -> Counters {
        self.run.unwrap_or_default().counters
    }

    /// How many buckets went on to be unpacked or, where these are what was asked for, to be returned.
    fn passed(&self) -> u64 {
        let Counters { buckets_passed, measurements_matched, .. } = self.counters();
        let raw = self.plan.is_some_and(|(plan, _)| plan.is_over_buckets());
        if raw { measurements_matched } else { buckets_passed }
    }

    fn write_cursor(&self, writer: &mut DocWriter) {
        writer.begin_doc("queryPlanner").string("namespace", self.namespace).bool("indexFilterSet", false);
        self.write_plan("winningPlan", None, writer);
        writer.begin_array("rejectedPlans").end().end();
        let Some(run) = &self.run else { return };
        writer.begin_doc("executionStats").bool("executionSuccess", true).int64("nReturned", long(self.returned()));
        writer.int64("executionTimeMillis", run.duration_ms).int64("totalKeysExamined", long(run.entries));
        writer.int64("totalDocsExamined", long(run.examined));
        self.write_plan("executionStages", Some(run), writer);
        if self.all_plans {
            writer.begin_array("allPlansExecution").end();
        }
        writer.end();
    }

    /// How many documents come out of the plan: a write answers a match at most.
    fn returned(&self) -> u64 {
        match &self.write {
            Some(write) if write.answers.is_some() => self.counters().measurements_matched,
            Some(_) => 0,
            None => self.passed(),
        }
    }

    /// How the buckets are found and what becomes of them, and with a run how many.
    fn write_plan(&self, name: &str, run: Option<&Run>, writer: &mut DocWriter) {
        let (Some(write), Some((plan, _))) = (&self.write, self.plan) else {
            return self.write_access(name, run, writer);
        };
        writer.begin_doc(name);
        if write.answers == Some(true) {
            writer.string("stage", "PROJECTION_DEFAULT").begin_doc("inputStage");
        }
        let split = plan.split.as_ref().filter(|split| !split.exact);
        let residual = split.map(|split| &split.residual).filter(|residual| !residual.is_trivial());
        let buckets_unpacked = self.counters().buckets_unpacked;
        // Whole buckets may have been counted beyond a limit.
        let measurements_matched = self.counters().measurements_matched.min(plan.plan.limit.unwrap_or(u64::MAX));
        let counted: &[(&str, u64)] = match write.of_buckets.filter(|stage| residual.is_none() || *stage == "UPDATE") {
            Some(stage) => {
                writer.string("stage", stage);
                &[(if stage == "UPDATE" { "nWouldModify" } else { "nWouldDelete" }, measurements_matched)]
            }
            None => {
                writer.string("stage", "TS_MODIFY").string("opType", write.op_type);
                write_bucket_filter("bucketFilter", plan, true, writer);
                writer.begin_doc("residualFilter");
                residual.into_iter().for_each(|residual| residual.write(writer));
                writer.end();
                &[
                    ("nMeasurementsMatched", measurements_matched),
                    ("nMeasurementsDeleted", measurements_matched),
                    ("nBucketsUnpacked", buckets_unpacked),
                ]
            }
        };
        if run.is_some() {
            counted.iter().chain(&[("nReturned", self.returned())]).for_each(|(name, n)| {
                writer.int64(name, long(*n));
            });
        }
        self.write_access("inputStage", run, writer);
        if write.answers == Some(true) {
            writer.end();
        }
        writer.end();
    }

    /// How the buckets are found, and with a run how many.
    fn write_access(&self, name: &str, run: Option<&Run>, writer: &mut DocWriter) {
        writer.begin_doc(name);
        let counted = |writer: &mut DocWriter, returned: u64, what: &str, examined: u64| {
            if run.is_some() {
                writer.int64("nReturned", long(returned)).int64(what, long(examined));
            }
        };
        let Some((plan, options)) = self.plan else {
            writer.string("stage", "EOF");
            counted(writer, 0, "docsExamined", 0);
            writer.end();
            return;
        };
        let documents = self.run.unwrap_or_default().examined;
        // Whoever takes no rows takes no order.
        let backward = self.group.is_none() && plan.order == Some(false);
        let direction = if backward { "backward" } else { "forward" };
        match &plan.access {
            // The ends of series: the last buckets of each, or the first ones.
            ReadAccess::Buckets { low, high }
                if let (Some(ends), Some(spec)) = (Ends::of(plan), IndexSpec::default_of(options)) =>
            {
                let second = |id: &BucketId| OwnedValue::date(i64::from(id.time_seconds()) * 1000);
                let times =
                    (Some(*low).filter(|low| *low != BucketId::MIN), Some(*high).filter(|high| *high != BucketId::MAX));
                let times = vec![(times.0.as_ref().map(second), times.1.as_ref().map(second))];
                let bounds = [vec![(None, None)], times, vec![(None, None)]];
                let direction = if ends.is_last { "backward" } else { "forward" };
                writer.string("stage", "FETCH");
                write_bucket_filter("filter", plan, self.write.is_some(), writer);
                counted(writer, self.passed(), "docsExamined", documents);
                let entries = self.run.unwrap_or_default().entries;
                writer.begin_doc("inputStage");
                self.write_index_scan(0, ("DISTINCT_SCAN", &spec), (&spec.parts, &bounds), direction, writer);
                counted(writer, entries, "keysExamined", entries);
                writer.end();
            }
            ReadAccess::Buckets { low, high } => {
                let (from_start, to_end) = (*low == BucketId::MIN, *high == BucketId::MAX);
                let stage = if from_start && to_end { "COLLSCAN" } else { "CLUSTERED_IXSCAN" };
                writer.string("stage", if low > high { "EOF" } else { stage });
                write_bucket_filter("filter", plan, self.write.is_some(), writer);
                write_records((low, high), direction, writer);
                counted(writer, self.passed(), "docsExamined", documents);
            }
            access => {
                writer.string("stage", "FETCH");
                write_bucket_filter("filter", plan, self.write.is_some(), writer);
                counted(writer, self.passed(), "docsExamined", documents);
                let entries = self.run.unwrap_or_default().entries;
                writer.begin_doc("inputStage");
                match access {
                    ReadAccess::Union(branches) => {
                        writer.string("stage", "OR");
                        counted(writer, entries, "keysExamined", entries);
                        writer.begin_array("inputStages");
                        for (place, branch) in branches.iter().enumerate() {
                            writer.begin_doc(&place.to_string());
                            self.write_branch(branch, place, options, direction, writer);
                            writer.end();
                        }
                        writer.end();
                    }
                    only => {
                        self.write_branch(only, 0, options, direction, writer);
                        counted(writer, entries, "keysExamined", entries);
                    }
                }
                writer.end();
            }
        }
        writer.end();
    }

    /// How one index was asked, or one range of ids.
    fn write_branch(
        &self,
        branch: &ReadAccess,
        place: usize,
        options: &TimeseriesOptions,
        direction: &str,
        writer: &mut DocWriter,
    ) {
        match branch {
            ReadAccess::Series { points, first_ms, last_ms } => {
                let bound = |ms: Option<i64>| ms.map(OwnedValue::date);
                // A bucket that holds a time begins at most a span before it.
                let first = first_ms.map(|ms| ms.saturating_sub(options.span_ms()));
                let mut metas: Vec<Interval> =
                    points.values.values().iter().map(|v| (Some(v.clone()), Some(v.clone()))).collect();
                metas.extend(points.texts.iter().map(|_| of_class(Kind::String)));
                let bounds = [metas, vec![(bound(first), bound(*last_ms))], vec![(None, None)]];
                if let Some(spec) = IndexSpec::default_of(options) {
                    self.write_index_scan(place, ("IXSCAN", &spec), (&spec.parts, &bounds), direction, writer);
                }
            }
            ReadAccess::Index(access) => {
                self.write_index_scan(
                    place,
                    ("IXSCAN", &access.spec),
                    (&access.parts(), &access.bounds),
                    direction,
                    writer,
                );
            }
            ReadAccess::Buckets { low, high } => {
                writer.string("stage", "CLUSTERED_IXSCAN");
                write_records((low, high), direction, writer);
            }
            ReadAccess::Union(_) => {}
        }
    }

    fn write_index_scan(
        &self,
        place: usize,
        (stage, index): (&str, &IndexSpec),
        (parts, bounds): (&[Part], &[Vec<Interval>]),
        direction: &str,
        writer: &mut DocWriter,
    ) {
        writer.string("stage", stage).begin_doc("keyPattern");
        for part in parts {
            writer.value(&part.name, part.direction.view());
        }
        writer.end();
        writer.string("indexName", &index.name);
        if let Some(multikey) = self.multikey.get(place) {
            write_multikey(parts, multikey, writer);
        }
        writer.bool("isSparse", index.is_sparse());
        writer.bool("isPartial", index.partial.is_some()).string("direction", direction);
        writer.begin_doc("indexBounds");
        for (part, intervals) in parts.iter().zip(bounds) {
            writer.begin_array(&part.name);
            for (place, (low, high)) in intervals.iter().enumerate() {
                let ends =
                    [(low, "MinKey"), (high, "MaxKey")].map(|(end, open)| match end.as_ref().map(OwnedValue::view) {
                        Some(value) => match value.as_date_ms() {
                            Some(ms) => format!("new Date({ms})"),
                            None => format!("{value:?}"),
                        },
                        None => open.to_owned(),
                    });
                writer.string(&place.to_string(), &interval(&ends[0], &ends[1]));
            }
            writer.end();
        }
        writer.end();
    }

    /// What comes behind the cursor; answers the place behind it.
    fn write_stages(&self, plan: &ReadPlan, options: &TimeseriesOptions, writer: &mut DocWriter) -> usize {
        let counters = self.counters();
        let mut rows = counters.measurements_matched;
        let mut place = 0;
        let mut begin = |writer: &mut DocWriter| {
            place += 1;
            writer.begin_doc(&place.to_string());
        };
        if let Some(split) = &plan.split {
            begin(writer);
            write_unpacking(plan, split, options, writer);
            if self.run.is_some() {
                writer.int64("nBucketsUnpacked", long(counters.buckets_unpacked));
                writer.int64("nMeasurementsExamined", long(counters.measurements_examined));
            }
            self.end(rows, writer);
        }
        let time = plan.stream.as_ref().and_then(|stream| stream.time).filter(|_| !plan.extended_range);
        let plan = &plan.plan;
        let limit = plan.limit.unwrap_or(u64::MAX);
        if let Some(sort) = &plan.sort {
            begin(writer);
            let name = if time.is_some() { "$_internalBoundedSort" } else { "$sort" };
            writer.begin_doc(name).doc("sortKey", sort.to_doc().view());
            if let Some(ascending) = time {
                // No measurement is earlier than its bucket, or later than a span behind that.
                let offset = if ascending { 0 } else { options.span_seconds };
                writer.begin_doc("bound").string("base", "min").int64("offsetSeconds", offset).end();
            }
            let kept = limit.saturating_add(plan.skip);
            if plan.limit.is_some() {
                writer.int64("limit", long(kept));
            }
            writer.end();
            rows = rows.min(kept);
            self.end(rows, writer);
        }
        if plan.skip > 0 {
            begin(writer);
            writer.int64("$skip", long(plan.skip));
            rows = rows.saturating_sub(plan.skip);
            self.end(rows, writer);
        }
        rows = rows.min(limit);
        if plan.limit.is_some() && plan.sort.is_none() {
            begin(writer);
            writer.int64("$limit", long(limit));
            self.end(rows, writer);
        }
        if let Some((name, accumulator, operand)) = &self.group {
            begin(writer);
            writer.begin_doc("$group").value("_id", Value::NULL).begin_doc(name);
            writer.value(accumulator, operand.view()).end().end();
            self.end(rows.min(1), writer);
        } else if !plan.projection.is_all() && !self.is_narrowed {
            begin(writer);
            plan.projection.write(plan.projection.stage(), writer);
            self.end(rows, writer);
        }
        place + 1
    }

    /// The end of a stage that gives so many rows.
    fn end(&self, rows: u64, writer: &mut DocWriter) {
        if self.run.is_some() {
            writer.int64("nReturned", long(rows));
        }
        writer.end();
    }
}

/// `$_internalUnpackBucket`: the columns that are decoded, and what is left to be asked of their rows.
fn write_unpacking(plan: &ReadPlan, split: &Split, options: &TimeseriesOptions, writer: &mut DocWriter) {
    writer.begin_doc("$_internalUnpackBucket");
    let meta = plan.plan.meta_field.as_deref();
    match &plan.columns {
        ColumnSet::All => {
            writer.begin_array("exclude");
        }
        ColumnSet::Only(names) => {
            writer.begin_array("include");
            let meta = meta.filter(|_| plan.plan.wants_meta);
            let names = names.iter().map(|name| &**name).filter(|name| *name != WEIGHT);
            for (at, name) in names.chain(meta).enumerate() {
                writer.string(&at.to_string(), name);
            }
        }
    }
    writer.end().string("timeField", &options.time_field);
    meta.into_iter().for_each(|meta| {
        writer.string("metaField", meta);
    });
    writer.int32("bucketMaxSpanSeconds", i32::try_from(options.span_seconds).unwrap_or(i32::MAX));
    if plan.extended_range {
        writer.bool("usesExtendedRange", true);
    }
    if !split.exact && !split.residual.is_trivial() {
        if !split.whole.is_trivial() {
            writer.begin_doc("wholeBucketFilter");
            split.whole.write(writer);
            writer.end();
        }
        writer.begin_doc("eventFilter");
        split.residual.write(writer);
        writer.end();
    }
    if options.is_fixed() {
        writer.bool("fixedBuckets", true);
    }
    writer.end();
}

/// What is asked of a bucket before it is unpacked, in the terms of its document; none where nothing is. Writes leave closed ones alone.
fn write_bucket_filter(name: &str, plan: &ReadPlan, is_write: bool, writer: &mut DocWriter) {
    let meta = plan.split.as_ref().map_or(&plan.plan.residual, |split| &split.meta);
    let meta = Some(meta).filter(|meta| !meta.is_trivial());
    let bucket = plan.split.as_ref().map(|split| &split.bucket).filter(|bucket| !bucket.is_trivial());
    let parts = [is_write.then_some(0), meta.map(|_| 1), bucket.map(|_| 2)].into_iter().flatten().collect::<Vec<_>>();
    let count = parts.len();
    if count == 0 {
        return;
    }
    writer.begin_doc(name);
    if count > 1 {
        writer.begin_array("$and");
    }
    for (place, part) in parts.into_iter().enumerate() {
        if count > 1 {
            writer.begin_doc(&place.to_string());
        }
        match part {
            0 => {
                writer.begin_doc("control.closed").begin_doc("$not").bool("$eq", true).end().end();
            }
            1 => meta.into_iter().for_each(|meta| meta.write(writer)),
            _ => bucket.into_iter().for_each(|bucket| bucket.write(writer)),
        }
        if count > 1 {
            writer.end();
        }
    }
    if count > 1 {
        writer.end();
    }
    writer.end();
}

fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
