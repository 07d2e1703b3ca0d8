//! From a command to its rows: filters, their pushdown to buckets, plans, execution. Never awaits.

mod exec;
mod explain;
mod expr;
mod filter;
mod plan;
mod sort;
mod stage;
mod update;

pub use exec::{
    Count, Counters, Distinct, Ends, Exec, Flow, Late, LateColumns, Queue, Sink, TimeBound, among, join_blocks,
};
pub use explain::{ExecutionStats, Explain, ExplainedGroup, Write};
pub use expr::Globals;
pub use filter::Filter;
#[cfg(test)]
pub use filter::samples as filter_samples;
pub use plan::{
    CollectionFacts, Demand, FindCommand, Hint, Index, IndexAccess, Plan, Projection, Query, ReadAccess, ReadPlan,
    Stream, Which, arguments, check_hint,
};
pub use sort::{SortSpec, sorted_groups};
pub use stage::{Aggregation, CollStats, DocumentSource, Foreign, Others, Out, Pipeline, ShownStage, Standing};
pub use update::{Update, check_query, not_allowed};
