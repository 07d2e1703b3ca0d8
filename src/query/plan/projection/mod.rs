//! The projection of a `find`: which fields of a measurement are kept, or dropped.

mod apply;
mod parse;

pub use apply::write_set;
pub use parse::Projection;
