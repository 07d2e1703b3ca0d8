//! Accumulators: how `$group` combines the values of a group.

mod accumulation;
mod arguments;
mod best;
mod covariance;
mod deviation;
mod extreme;
mod first_last;
mod kernels;
mod list;
mod model;
mod percentile;
mod picks;
mod ranked;
mod sum;
mod table;
mod words;

pub use accumulation::{Accumulation, cannot_fail};
pub use model::{Accumulator, Inputs, Times};
pub use picks::{Picks, RankedRows};
pub use table::COVARIANCES;
pub use words::word_of;
