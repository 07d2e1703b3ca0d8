//! The stages of a pipeline, as `explain` shows them: how buckets are unpacked, and what happens to their measurements.

// Loaded later.

use super::model::{Explain, long};
use crate::bucket::TimeseriesOptions;
use crate::query::exec::Ends;
use crate::query::plan::{ReadAccess, ReadPlan, Split};
use crate::value::{DocWriter, FieldSet, Value};

impl Explain<'_> {
    /// Writes `stages`, or the contents of a single stage if there is no collection.
    pub fn write(&self, writer: &mut DocWriter) {
        // A plan over bucket documents is that of a plain collection.
        let is_alone = self.plan.is_none_or(|(plan, _)| plan.is_over_buckets()) && self.later.is_empty();
        if self.write.is_some() || is_alone {
            return self.write_cursor(writer);
        }
        writer.begin_array("stages");
        let mut place = 0;
        if !self.has_source {
            writer.begin_doc("0").begin_doc("$cursor");
            self.write_cursor(writer);
            writer.end();
            self.end(self.returned(), writer);
            place = 1;
        }
        if let Some((plan, options)) = self.plan.filter(|(plan, _)| !plan.is_over_buckets()) {
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

    /// Writes what follows the cursor; returns the next position.
    fn write_stages(&self, plan: &ReadPlan, options: &TimeseriesOptions, writer: &mut DocWriter) -> usize {
        let counters = self.counters();
        let mut rows = counters.measurements_matched;
        let mut place = 0;
        let mut begin = |writer: &mut DocWriter| {
            place += 1;
            writer.begin_doc(&place.to_string());
        };
        if let Some(ends) = self.series_ends(plan) {
            begin(writer);
            write_group_of_buckets(ends.as_one, writer);
            self.end(counters.buckets_unpacked, writer);
        }
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
                // No measurement is earlier than its bucket's start, or a span or more later.
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
        } else if !plan.projection.is_all() && !plan.is_narrowed {
            begin(writer);
            plan.projection.write(plan.projection.stage(), writer);
            self.end(rows, writer);
        }
        place + 1
    }

    /// The search for one bucket of each series, if the plan is one and every row may be the one that is wanted.
    fn series_ends(&self, plan: &ReadPlan) -> Option<Ends> {
        let is_exact = plan.plan.residual.is_trivial() && matches!(plan.access, ReadAccess::Buckets { .. });
        Ends::of(plan).filter(|ends| is_exact && ends.count == 1)
    }

    /// Ends a stage that returns this many rows.
    fn end(&self, rows: u64, writer: &mut DocWriter) {
        if self.run.is_some() {
            writer.int64("nReturned", long(rows));
        }
        writer.end();
    }
}

/// The `$group` that leaves one bucket of each series: the scan finds the one that matters first.
fn write_group_of_buckets(as_one: bool, writer: &mut DocWriter) {
    writer.begin_doc("$group");
    if as_one {
        writer.value("_id", Value::NULL);
    } else {
        writer.string("_id", "$meta");
    }
    for field in ["meta", "control", "data"] {
        writer.begin_doc(field).string("$first", &["$", field].concat()).end();
    }
    writer.end();
}

/// `$_internalUnpackBucket`: the columns to decode, and the filter left for their rows.
fn write_unpacking(plan: &ReadPlan, split: &Split, options: &TimeseriesOptions, writer: &mut DocWriter) {
    writer.begin_doc("$_internalUnpackBucket");
    let meta = plan.plan.meta_field.as_deref();
    match &*plan.columns {
        FieldSet::All => {
            writer.begin_array("exclude");
        }
        FieldSet::Only(names) => {
            writer.begin_array("include");
            let meta = meta.filter(|_| plan.plan.wants_meta);
            for (at, name) in names.iter().map(|name| &**name).chain(meta).enumerate() {
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
            split.whole.write(!split.residual.has_expressions(), writer);
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
