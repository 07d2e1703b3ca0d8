//! `$_internalUnpackBucket` and `$_unpackBucket`: convert bucket documents to measurements.

mod parse;
mod run;
mod spec;

pub(super) use run::Unpack;
pub(super) use spec::{UnpackSpec, refused};
