//! Typed columns in memory: presence, slices, gathering, building, and the wire format that crosses to JavaScript.

mod bitmap;
mod builder;
mod column;
mod elements;
mod forms;
mod join;
pub mod kernels;
mod nested;
mod objects;
mod order;
mod pivot;
#[cfg(test)]
pub mod samples;
mod size;
mod table;
mod tagged;
mod text_numbers;
mod wire;

pub use bitmap::{Bitmap, SetRows};
pub use builder::ColumnBuilder;
pub use column::{ArrayElements, Bytes12, Column, ColumnData, VarData};
pub use join::joined_weights;
pub use objects::{Objects, ShapePart, push_header, write_object};
pub use order::common_order;
pub use pivot::{DocPivot, pivot_docs};
pub use table::Block;
pub use tagged::of_kind;
pub use text_numbers::TextNumbers;
pub use wire::{decode, encode};
