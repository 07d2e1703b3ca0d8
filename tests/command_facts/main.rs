//! Facts about indexes, deletes, updates and the other commands, as the server's own tests have them: each a state, a command and what follows.
#![cfg(not(target_arch = "wasm32"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod create_indexes;
mod deletes;
mod explained_writes;
mod forms;
mod hints;
mod modified;
mod partial;
mod raw_indexes;
#[path = "../support/mod.rs"]
mod support;
mod updates;
