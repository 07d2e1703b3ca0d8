//! `$setWindowFields`: fields computed from the rows around each row. And `$downsample`, which also works on
//! partitions.

mod bounds;
mod downsample;
mod fill;
mod function;
mod parse;
mod slide;
mod windows;

pub(super) use bounds::parse_unit;
