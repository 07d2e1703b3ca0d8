//! MongoDB's time-series collection as a WebAssembly module.
//!
//! A command comes in as BSON, a reply goes out as BSON; measurements travel beside them as a block of columns. In
//! between is plain synchronous Rust: only `engine` awaits storage, and only `bindings` and the storages of the host
//! know JavaScript. The modules lie on floors, which `ARCHITECTURE.md` lists: a module imports only from lower floors.

// `talc` takes 2 KB less of compressed module than the allocator of the standard library, and is as fast.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: allocator::SmallBlocks<talc::cell::TalcSyncCell<allocator::Growth, talc::wasm::WasmBinning>> =
    allocator::SmallBlocks::new(talc::cell::TalcSyncCell::new_wasm(allocator::Growth::NONE));

pub mod allocator;

#[cfg(target_arch = "wasm32")]
pub mod bindings;
pub mod block;
pub mod bucket;
pub mod catalog;
pub mod column;
pub mod command;
pub mod engine;
pub mod env;
pub mod error;
pub mod geo;
pub mod index;
pub mod limits;
pub mod listed;
pub mod query;
pub mod storage;
pub mod value;
