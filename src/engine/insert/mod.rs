//! Inserts of rows and of bucket documents.

pub mod raw_write;
pub mod reopen;
pub mod windows;
pub mod write;
