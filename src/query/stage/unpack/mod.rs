//! `$_internalUnpackBucket` and `$_unpackBucket`: bucket documents become their measurements.

mod parse;
mod run;
mod spec;

pub(super) use run::Unpack;
pub(super) use spec::{UnpackSpec, refused};
