//! BSON semantics over borrowed bytes: views, building, comparison order, numbers, paths, sortable keys, sizes.

mod doc;
mod raw;
mod writer;

pub use doc::{Doc, DocBuf, Elements};
pub use raw::{Kind, OwnedValue, Value};
pub use writer::DocWriter;
