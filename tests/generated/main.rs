//! Random queries and pipelines, compared with another implementation.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod find_cases;
mod newest_shapes;
mod pipeline_cases;
mod plain_list;
#[path = "../support/mod.rs"]
mod support;
