//! The result of a query that stays open: new rows are added to what it keeps, and the result is shown again.
//!
//! It keeps the rows of a find before its projection, or the groups of a `$group`. The steps behind these run over all
//! of it each time.

use super::aggregation::Aggregation;
use super::group::Group;
use super::model::Others;
use super::pipeline::Pipeline;
use super::running::Stage;
use super::spec::{ShownStep, Step};
use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::limits::ROWS_TOGETHER;
use crate::query::exec::{Exec, Queue, Sink};
use crate::query::filter::Filter;
use crate::query::plan::{CollectionFacts, Plan, Projection, Query};
use crate::query::sort::SortSpec;

/// What a query keeps of the rows that it has seen.
pub struct Standing {
    /// What is done with new rows first.
    plan: Plan,
    kept: StandingRows,
    /// Rows that are not in `kept` yet: many are taken at once.
    waiting: Queue,
    steps: Vec<ShownStep>,
}

enum StandingRows {
    /// The rows of a find.
    Rows {
        /// Puts kept rows and new ones in order.
        merge: Box<Plan>,
        rows: Block,
        skip: usize,
        projection: Projection,
    },
    Groups(Box<Group>),
}

impl Standing {
    /// A query without rows yet, and what to read for it once. Otherwise the reason why it must run again when rows are
    /// added.
    pub fn begin(query: Aggregation, facts: &CollectionFacts<'_>) -> Result<(Query, Standing), &'static str> {
        let Aggregation { mut find, mut demand, mut steps, .. } = query;
        if !steps.iter().all(|(step, _)| matches!(step, Step::Find(_) | Step::Group(_))) {
            return Err(
                "a stage after the first $match other than $group, $sort, $skip, $limit and $project reads all rows",
            );
        }
        let is_cut = demand.sorts(&find) || find.skip > 0 || find.limit.is_some();
        if matches!(steps.first(), Some((Step::Group(_), _))) && !is_cut {
            steps.iter_mut().take(1).filter_map(|(step, _)| step.group()).for_each(|group| group.in_order = Vec::new());
            let Step::Group(spec) = steps.remove(0).0 else { unreachable!("it is a group") };
            if !spec.takes_later_rows() {
                return Err("an accumulator of $group depends on the order of rows, and they are not sorted by time");
            }
            // Groups that are not among the newest are kept as well.
            demand.newest = None;
            let mut plan = Plan::new(Query { find: find.clone(), demand: demand.clone() }, facts);
            // Only of each bucket.
            plan.rows_per_group = None;
            let kept = StandingRows::Groups(Box::new(Group::new(spec)));
            return Ok((Query { find, demand }, Standing { plan, kept, waiting: Queue::default(), steps }));
        }
        if find.limit.is_none() && steps.iter().any(|(step, _)| matches!(step, Step::Group(_))) {
            return Err("a $group after $sort or $skip reads all rows in their order");
        }
        let mut needed = find.projection.needed_fields(&demand.fields);
        for part in SortSpec::parts_of(find.sort.as_ref()) {
            needed.add(part.path.first());
        }
        let narrowed = if needed.is_all() { Projection::all() } else { Projection::of_roots(needed.names()) };
        let projection = std::mem::replace(&mut find.projection, narrowed);
        let skip = std::mem::take(&mut find.skip);
        find.limit = find.limit.map(|limit| limit.saturating_add(skip));
        let mut plan = Plan::new(find.clone().into(), facts);
        let (all, none) = (Projection::all(), Filter::all());
        let merge = Box::new(Plan { residual: none, projection: all, ..plan.clone() });
        (plan.sort, plan.limit) = (None, None);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let kept = StandingRows::Rows { merge, rows: Block::new(0), skip, projection };
        Ok((find.into(), Standing { plan, kept, waiting: Queue::default(), steps }))
    }

    /// Takes rows that were read: those of its query.
    ///
    /// Errors: those of the stages.
    pub fn take(&mut self, rows: Block) -> Result<()> {
        // The rows of a find are put together at the end.
        let is_fed = matches!(self.kept, StandingRows::Groups(_));
        if is_fed && (!self.waiting.suits(&rows) || self.waiting.rows() >= ROWS_TOGETHER) {
            self.take_waiting()?;
        }
        self.waiting.push(rows);
        Ok(())
    }

    /// Puts the rows that wait where they belong.
    fn take_waiting(&mut self) -> Result<()> {
        if self.waiting.rows() > 0 {
            let new = self.waiting.take(usize::MAX, usize::MAX);
            match &mut self.kept {
                StandingRows::Rows { rows, .. } => *rows = new,
                StandingRows::Groups(group) => {
                    // A group never has enough.
                    let _ = Stage::push(&mut **group, new)?;
                }
            }
        }
        Ok(())
    }

    /// Adds rows that are new, with their metadata. False if the result stays as it is.
    ///
    /// Errors: those of filters and stages. The query must then begin again.
    pub fn add(&mut self, rows: &[Block]) -> Result<bool> {
        let mut matching = None;
        for rows in rows {
            // Most new rows are of other series or times. They cost their filter, and nothing else is made for them.
            let found = self.plan.residual.select(rows)?;
            if !found.none() {
                let exec = matching.get_or_insert_with(|| Exec::new(&self.plan));
                let rows = if found.count() == rows.rows() { rows.clone() } else { rows.gather(&found.to_rows()) };
                // Without a limit there is never enough.
                let _ = Sink::push(exec, rows, None, true)?;
            }
        }
        let Some(mut exec) = matching else { return Ok(false) };
        exec.finish()?;
        let mut is_changed = false;
        while exec.ready() > 0 {
            let new = exec.take(usize::MAX, usize::MAX)?;
            is_changed |= match &mut self.kept {
                StandingRows::Rows { merge, rows, .. } => {
                    let merged = merged(merge, rows, new)?;
                    let is_changed = merged != *rows;
                    *rows = merged;
                    is_changed
                }
                StandingRows::Groups(group) => {
                    // A group never has enough.
                    let _ = Stage::push(&mut **group, new)?;
                    true
                }
            };
        }
        Ok(is_changed)
    }

    /// The result.
    ///
    /// Errors: those of expressions and of the stages.
    pub fn result(&mut self) -> Result<Block> {
        self.take_waiting()?;
        let rows = match &mut self.kept {
            StandingRows::Rows { rows, skip, projection, .. } => {
                projection.apply(rows.slice(rows.rows().min(*skip)..rows.rows()))?
            }
            StandingRows::Groups(group) => group.shown(),
        };
        let rows = if self.steps.is_empty() { rows } else { self.run_steps(rows)? };
        Ok(self.with_time_column(rows))
    }

    fn run_steps(&self, rows: Block) -> Result<Block> {
        let mut pipeline = Pipeline::new(&mut self.steps.iter().map(|(step, _)| step), &Others::default());
        if rows.rows() > 0 {
            // No more rows come.
            let _ = pipeline.push(rows)?;
        }
        pipeline.finish()?;
        Ok(pipeline.take(usize::MAX, usize::MAX))
    }

    /// As a find does: callers that take columns get a time column even if the result is empty.
    fn with_time_column(&self, mut rows: Block) -> Block {
        let time_field = &self.plan.time_field;
        if let StandingRows::Rows { projection, .. } = &self.kept
            && rows.rows() == 0
            && self.steps.is_empty()
            && !time_field.is_empty()
            && projection.keeps_root(time_field)
        {
            rows.set_column(time_field, Column::new(ColumnData::Date(Vec::new()), None));
        }
        rows
    }

    /// Approximate bytes of what it keeps.
    pub fn size_bytes(&self) -> usize {
        let waiting = if self.waiting.rows() > 0 { self.waiting.size_bytes() } else { 0 };
        waiting
            + match &self.kept {
                StandingRows::Rows { rows, .. } => rows.size_bytes(),
                StandingRows::Groups(group) => group.size_bytes(),
            }
    }

    /// True if it keeps groups.
    pub fn keeps_groups(&self) -> bool {
        matches!(self.kept, StandingRows::Groups(_))
    }
}

/// The kept rows with new ones among them.
fn merged(merge: &Plan, kept: &Block, new: Block) -> Result<Block> {
    let mut exec = Exec::new(merge);
    for rows in [kept.clone(), new] {
        if rows.rows() > 0 {
            // It has enough if the limit is reached and nothing sorts: what is kept stays.
            let _ = Sink::push(&mut exec, rows, None, true)?;
        }
    }
    exec.finish()?;
    if exec.ready() == 0 { Ok(Block::new(0)) } else { exec.take(usize::MAX, usize::MAX) }
}
