//! Loops over the cells of typed columns, compiled for speed.
//!
//! timepail is compiled for size. This crate alone is compiled with `opt-level = 3`, and in releases the compiler turns its loops into SIMD
//! (docs/internals/split.md). So it holds what runs once a cell, and nothing else: plain functions over slices, without types of timepail.
//! Presence of cells is the caller's business; every slot has a value.
//!
//! A function that others call is neither generic nor inlined: either would be compiled in the caller's crate, for size. What it calls
//! itself is marked `#[inline(always)]`.

pub mod alike;
pub mod arithmetic;
pub mod bits;
pub mod classes;
pub mod compare;
pub mod convert;
pub mod decimals;
pub mod digits;
pub mod documents;
pub mod edits;
pub mod elements;
pub mod extreme;
pub mod gather;
pub mod items;
pub mod keys;
mod kinds;
mod operand;
pub mod parts;
pub mod paths;
pub mod places;
pub mod reading;
pub mod runs;
pub mod scale;
pub mod sets;
pub mod sortable;
pub mod sum;
pub mod table;
pub mod tagged;
pub mod texts;
pub mod windows;
pub mod words;
pub mod written;

pub use operand::Operand;
