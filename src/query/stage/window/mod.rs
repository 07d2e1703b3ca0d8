//! `$setWindowFields`: fields computed from the rows around each row. And `$downsample`, which also works on
//! partitions.

mod bounds;
mod cells;
mod downsample;
mod extreme;
mod fill;
mod function;
mod kernel;
mod parse;
mod shown;
mod slide;
mod slope;
mod sums;
#[cfg(test)]
mod tests;
mod windows;

pub(super) use bounds::parse_unit;
