//! The unfolded commits of a collection, of this context and of others, as this context knows them (I22).
//!
//! `record` is the stored form of one commit, `entry` a record in memory, `state` the journal and its operations,
//! `sections` the rows of all commits by bucket, `tail` those of one bucket as growing columns, and `snapshot` brings
//! the journal up to date after a look at storage. Nothing here awaits.

mod entry;
mod record;
#[cfg(test)]
mod samples;
mod sections;
mod snapshot;
mod state;
mod tail;

pub use entry::{JournalEntry, SectionRef};
pub use record::Record;
pub use sections::{ByBucket, Group};
pub use snapshot::Learnt;
pub use state::Journal;
pub use tail::Tail;
