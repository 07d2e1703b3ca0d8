//! BSON semantics over borrowed bytes: views, builders, comparison order, numbers, paths, sortable keys, sizes.

mod collation;
pub mod decimal;
mod display_double;
mod doc;
mod field_set;
mod hash;
mod interner;
mod key;
mod meta;
mod number;
mod order;
mod path;
mod raw;
#[cfg(test)]
mod samples;
mod size;
mod sort;
mod word_table;
mod writer;

pub use collation::Collation;
pub use decimal::{Decimal, Magnitude};
pub use display_double::DisplayDouble;
pub use doc::{Doc, DocBuf, Elements};
pub(crate) use doc::{check_value, value_len};
pub use field_set::FieldSet;
pub use hash::hash;
pub use interner::Interner;
pub use key::{append_key, append_key_descending, append_missing_key, text_of_key};
pub use meta::{as_metadata, is_normalized, normalize};
pub use number::Number;
pub use order::{canonical_class, compare, compare_options, equal};
pub use path::{Component, Leaf, Path, check_name, check_path, compare_sort_keys, sort_key, walk_doc, walk_from_value};
pub(crate) use raw::fixed;
pub use raw::{Kind, OwnedValue, Value};
pub use size::{digits, element_size};
pub use sort::{sort_by, sort_rows};
pub use word_table::WordTable;
pub use writer::DocWriter;
