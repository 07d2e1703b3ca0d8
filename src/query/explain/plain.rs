//! The plan of a query over bucket documents: that of a plain collection, one stage within the other.

// Loaded later.

use super::model::{ExecutionStats, Explain, long};
use crate::query::plan::ReadPlan;
use crate::value::DocWriter;

impl Explain<'_> {
    /// True if measurements are written, which leaves closed buckets alone.
    pub(super) fn is_write_of_rows(&self, plan: &ReadPlan) -> bool {
        self.write.is_some() && !plan.is_over_buckets()
    }

    /// Writes `LIMIT`, a projection, `SKIP` and `SORT` as they are needed, or `COUNT`, and how the buckets are found.
    pub(super) fn write_plain(
        &self,
        name: &str,
        plan: &ReadPlan,
        run: Option<&ExecutionStats>,
        writer: &mut DocWriter,
    ) {
        let find = &plan.plan;
        let matched = self.counters().measurements_matched;
        let limit = find.limit.unwrap_or(u64::MAX);
        let skipped = matched.saturating_sub(find.skip);
        let returned = |writer: &mut DocWriter, rows: u64| {
            if run.is_some() {
                writer.int64("nReturned", long(rows));
            }
        };
        let mut open = 0;
        let mut begin = |stage: &str, writer: &mut DocWriter| {
            writer.begin_doc(if open == 0 { name } else { "inputStage" }).string("stage", stage);
            open += 1;
        };
        if self.is_counted() {
            begin("COUNT", writer);
            returned(writer, 0);
            if run.is_some() {
                writer.int64("nCounted", long(skipped.min(limit))).int64("nSkipped", long(matched.min(find.skip)));
            }
        } else {
            if find.limit.is_some() && find.sort.is_none() {
                begin("LIMIT", writer);
                returned(writer, skipped.min(limit));
                writer.int64("limitAmount", long(limit));
            }
            if !find.projection.is_all() && !find.is_narrowed && self.group.is_none() {
                begin("PROJECTION_DEFAULT", writer);
                returned(writer, skipped.min(limit));
                find.projection.write("transformBy", writer);
            }
            if find.skip > 0 {
                begin("SKIP", writer);
                returned(writer, skipped.min(limit));
                writer.int64("skipAmount", long(find.skip));
            }
        }
        self.write_sorted(if open == 0 { name } else { "inputStage" }, plan, run, writer);
        for _ in 0..open {
            writer.end();
        }
    }

    /// Writes `SORT`, if there is a sort, and how the buckets are found.
    pub(super) fn write_sorted(
        &self,
        name: &str,
        plan: &ReadPlan,
        run: Option<&ExecutionStats>,
        writer: &mut DocWriter,
    ) {
        let Some(sort) = &plan.plan.sort else { return self.write_access(name, run, writer) };
        let kept = plan.plan.limit.map(|limit| limit.saturating_add(plan.plan.skip));
        writer.begin_doc(name).string("stage", "SORT");
        if run.is_some() {
            let matched = self.counters().measurements_matched;
            writer.int64("nReturned", long(matched.min(kept.unwrap_or(u64::MAX))));
        }
        writer.doc("sortPattern", sort.to_doc().view());
        if let Some(kept) = kept {
            writer.int64("limitAmount", long(kept));
        }
        writer.string("type", "simple");
        self.write_access("inputStage", run, writer);
        writer.end();
    }
}
