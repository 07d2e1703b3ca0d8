//! Expected answers computed on a plain list of documents, and random measurements, stored forms and queries.
#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

pub mod batches;
pub mod data;
pub mod filter;
pub mod forms;
pub mod order;
pub mod places;
pub mod projection;
pub mod queries;
