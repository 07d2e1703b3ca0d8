//! `$setWindowFields`: fields that are computed of the rows around each row. And `$downsample`, which holds partitions as well.

mod bounds;
mod downsample;
mod fill;
mod function;
mod parse;
mod slide;
mod windows;

pub(super) use bounds::parse_unit;
