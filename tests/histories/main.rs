//! Histories of several contexts on one storage: random ones, and short ones in every order of their storage calls.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod interleavings;
mod sim;
#[path = "../support/mod.rs"]
mod support;
