//! Projections: which fields of a measurement are kept, dropped or computed.

mod apply;
mod parse;

pub use apply::write_set;
pub use parse::Projection;
