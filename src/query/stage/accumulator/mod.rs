//! Accumulators: what `$group` makes of the values of a group.

mod accumulation;
mod arguments;
mod covariance;
mod deviation;
mod edge;
mod extreme;
mod list;
mod model;
mod percentile;
mod ranked;
mod sum;
mod table;

pub use accumulation::Accumulation;
pub use model::{Accumulator, Times};
pub use table::COVARIANCES;
