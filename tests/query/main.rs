//! Queries: filters, sorts, pipelines, and the indexes and shortcuts that no answer depends on.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod accumulators;
mod aggregate;
mod bucket_runs;
mod collation;
mod extremes;
mod find_facts;
mod geo;
mod geo_indexes;
mod geo_near;
mod index_unions;
mod indexes;
mod kept_columns;
mod newest;
mod newest_bins;
mod objects;
mod record_runs;
mod series_filters;
mod stages;
mod streamed_groups;
mod streamed_sorts;
#[path = "../support/mod.rs"]
mod support;
mod wildcard_indexes;
