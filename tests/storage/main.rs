//! What is stored: columns, bucket versions, and the contract of storage.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod column_cases;
mod column_reference;
mod column_rules;
mod column_vectors;
mod columns;
#[path = "../contract/mod.rs"]
mod contract;
mod formats;
mod print_bucket;
mod storage_memory;
#[path = "../support/mod.rs"]
mod support;
