//! Accumulators: how `$group` combines the values of a group.

mod accumulation;
mod arguments;
mod covariance;
mod deviation;
mod extreme;
mod first_last;
mod list;
mod model;
mod percentile;
mod ranked;
mod sum;
mod table;

pub use accumulation::Accumulation;
pub use model::{Accumulator, Times};
pub use table::COVARIANCES;
