//! The facts that the server's own tests of its bucket catalog state, as far as no test beside the code states them.

mod batches;
mod commits;
mod direct_writes;
mod harness;
mod reopening;
mod schemas;
mod statistics;
mod summaries;
mod write_errors;
