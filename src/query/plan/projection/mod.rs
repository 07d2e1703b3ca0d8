//! Projections: which fields of a measurement are kept, dropped or computed.

mod apply;
mod objects;
mod origin;
mod parse;

pub use apply::write_set;
pub use origin::Origin;
pub use parse::Projection;
