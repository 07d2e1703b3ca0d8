//! Decodes columns from bytes.

mod entries;
#[cfg(test)]
mod forge;
mod items;
mod objects;
mod presence;
mod reader;
mod section;
mod shape;
mod single;
mod stream;
mod tagged_rows;
mod typed;
#[cfg(test)]
mod vectors;
mod words;

pub(super) use items::SectionKind;
pub use objects::decode_scalars;
pub use reader::{count, decode, decode_from};
pub(super) use shape::SectionShape;
pub use single::single;
