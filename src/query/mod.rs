//! Between a parsed command and its rows: filters, what of them runs before unpacking, plans, execution. Never awaits.

pub mod ends;
pub mod exec;
pub mod explain;
mod explain_bounds;
pub mod expr;
pub mod filter;
pub mod find_options;
pub mod indexes;
pub mod intervals;
pub mod plan;
pub mod projection;
pub mod pushdown;
pub mod read_plan;
pub mod sort;
pub mod stage;
pub mod stream;
mod unions;
pub mod update;

pub use ends::Ends;
pub use exec::{Count, Counters, Distinct, Exec, Flow, Sink, TimeBound};
pub use explain::{Explain, Group, Run, Write};
pub use expr::Globals;
pub use filter::Filter;
pub use find_options::{FindOptions, Hint, Which};
pub use indexes::{Index, IndexAccess};
pub use projection::Projection;
pub use read_plan::{ReadAccess, ReadPlan};
pub use stage::{Aggregation, CollStats, DocumentSource, Foreign, Others, Out, Pipeline};
pub use stream::Stream;
pub use update::{Update, check_query, not_allowed};
