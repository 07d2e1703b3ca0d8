//! The facts that the server's own tests of its bucket catalog state, as far as no test beside the code states them.
#![cfg(not(target_arch = "wasm32"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod commits;
mod direct_writes;
mod harness;
mod reopening;
mod schemas;
mod statistics;
mod summaries;
mod write_errors;
