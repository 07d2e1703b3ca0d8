//! The engine below the commands: the bucket catalog, journals and folds, what memory keeps, and several contexts.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod catalog_facts;
mod folding;
mod full_buckets;
mod index_builds;
mod kept_buckets;
mod large_inserts;
mod live_tail;
mod long_cursor;
mod lost_answers;
mod many_series;
mod no_room;
mod overtaking;
mod reopening;
mod retention;
#[path = "../support/mod.rs"]
mod support;
mod turns;
