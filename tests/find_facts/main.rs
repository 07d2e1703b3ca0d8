//! The facts that the server's own tests of queries on time-series collections state, as far as `find` can be asked for them.
#![cfg(not(target_arch = "wasm32"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../support/mod.rs"]
mod support;

mod dates;
mod expressions;
mod fixed_buckets;
mod forms;
mod limits;
mod placements;
mod projections;
mod sorts;
mod times;
mod values;
