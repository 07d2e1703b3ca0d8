//! `$jsonSchema`: the server's subset of draft 4, where `bsonType` names the types of BSON.

// Loaded later.

mod check;
mod keywords;
mod validate;

pub(super) use check::parse;
pub use validate::Schema;
