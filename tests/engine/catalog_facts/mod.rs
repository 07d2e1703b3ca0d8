//! Facts from the server's own tests of its bucket catalog, unless a unit test covers them.

mod batches;
mod commits;
mod direct_writes;
mod harness;
mod reopening;
mod schemas;
mod statistics;
mod summaries;
mod write_errors;
