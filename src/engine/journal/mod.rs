//! What a context knows of the commits of a collection that are not folded yet: its own and those of others.
//!
//! `record` is the stored form of one commit, `state` the journal and its verbs, `sections` the rows of all commits by bucket, `tail` those
//! of one bucket as growing columns, `snapshot` how a look at storage brings the journal up to date. Nothing here awaits.

mod record;
#[cfg(test)]
mod samples;
mod sections;
mod snapshot;
mod state;
mod tail;

pub use record::Record;
pub use sections::{ByBucket, Group, SectionRef};
pub use snapshot::Learnt;
pub use state::{Journal, JournalEntry};
pub use tail::Tail;
