//! The unfolded commits of a collection, of this context and of others, as this context knows them (I22).
//!
//! `record` is the stored form of one commit, `entry` a record in memory, `state` the journal and its operations.
//! `sections` has the rows of all commits by bucket, `tail` the rows of one bucket as growing columns. `snapshot` brings
//! the journal up to date by a refresh from storage. Nothing here awaits.

mod additions;
mod entry;
mod order;
mod record;
mod records;
mod resolution;
#[cfg(test)]
pub(in crate::engine) mod samples;
mod sections;
mod snapshot;
mod state;
mod tail;
mod texts;

pub use entry::{JournalEntry, RecordKey, SectionRef};
pub use record::{CommitOrder, Record};
pub use records::RecordRun;
pub use resolution::{Resolution, in_commit_order, moved_rows};
pub use sections::{ByBucket, SectionGroup};
pub use snapshot::RefreshOutcome;
pub use state::{Journal, JournalMark};
pub use tail::Tail;
