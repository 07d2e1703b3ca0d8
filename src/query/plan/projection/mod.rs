//! The projection of a `find`: which fields of a measurement are kept, or dropped.

mod apply;
mod needed;
mod parse;

pub use apply::write_set;
pub use needed::Needed;
pub use parse::Projection;
