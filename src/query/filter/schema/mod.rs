//! `$jsonSchema`: the server's subset of draft 4, in which `bsonType` names BSON types.

// Loaded later.

mod check;
mod keywords;
mod validate;

pub(super) use check::parse;
pub use validate::JsonSchema;
