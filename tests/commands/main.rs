//! Commands: replies, refusals and what is stored.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod coll_mod;
mod command_facts;
mod commands;
mod create_again;
mod dedupe;
mod delete;
mod distinct;
mod error_codes;
mod explain;
mod explained_buckets;
mod find_and_modify;
mod listings;
mod live;
mod live_together;
mod out;
mod raw_buckets;
mod raw_updates;
mod small_commands;
mod strict_times;
#[path = "../support/mod.rs"]
mod support;
mod time_limits;
mod update;
mod validate;
mod validate_rules;
