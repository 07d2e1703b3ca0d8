//! What a context knows of the commits of a collection that are not folded yet: its own and those of others.
//!
//! `record` is the stored form of one commit, `entry` a record in memory, `state` the journal and its verbs, `sections` the rows of all commits by bucket, `tail` those
//! of one bucket as growing columns, `snapshot` how a look at storage brings the journal up to date. Nothing here awaits.

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
