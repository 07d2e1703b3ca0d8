//! The access path, as `explain` shows it.

// Loaded later.

use super::bounds::{interval, write_multikey, write_records};
use super::filters::{write_bucket_filter, write_parsed_query};
use super::model::{ExecutionStats, Explain, long};
use crate::bucket::{BucketId, TimeseriesOptions};
use crate::index::{IndexSpec, KeyPart};
use crate::listed::IntoList;
use crate::query::exec::Ends;
use crate::query::plan::{Interval, ReadAccess, of_class};
use crate::value::{DocWriter, Kind, OwnedValue};

impl Explain<'_> {
    pub(super) fn write_cursor(&self, writer: &mut DocWriter) {
        writer.begin_doc("queryPlanner").string("namespace", self.namespace).bool("indexFilterSet", false);
        match self.plan {
            Some((plan, _)) => write_parsed_query(plan, self.is_write_of_rows(plan), writer),
            None => {
                writer.begin_doc("parsedQuery").end();
            }
        }
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

    /// Writes how buckets are found and what happens to them; after a run, with their numbers.
    fn write_plan(&self, name: &str, run: Option<&ExecutionStats>, writer: &mut DocWriter) {
        let (Some(write), Some((plan, _))) = (&self.write, self.plan) else {
            return match self.plan {
                Some((plan, _)) if plan.is_over_buckets() => self.write_plain(name, plan, run, writer),
                _ => self.write_access(name, run, writer),
            };
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
        match plan.is_over_buckets() {
            true => self.write_sorted("inputStage", plan, run, writer),
            false => self.write_access("inputStage", run, writer),
        }
        if write.answers == Some(true) {
            writer.end();
        }
        writer.end();
    }

    /// Writes how the buckets are found; after a run, with their numbers.
    pub(super) fn write_access(&self, name: &str, run: Option<&ExecutionStats>, writer: &mut DocWriter) {
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
        // Without rows, there is no order.
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
                write_bucket_filter("filter", plan, self.is_write_of_rows(plan), writer);
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
                write_bucket_filter("filter", plan, self.is_write_of_rows(plan), writer);
                write_records((low, high), direction, writer);
                counted(writer, self.passed(), "docsExamined", documents);
            }
            access => {
                writer.string("stage", "FETCH");
                write_bucket_filter("filter", plan, self.is_write_of_rows(plan), writer);
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

    /// Writes how one index or one range of ids was read.
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
                    points.values.values().iter().map(|v| (Some(v.clone()), Some(v.clone()))).listed();
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
        (parts, bounds): (&[KeyPart], &[Vec<Interval>]),
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
}
