//! `$group`: rows of equal keys become one.

mod edges;
mod parse;
mod run;
mod spec;

pub(super) use run::{Group, run_end};
pub(super) use spec::{GroupSpec, Key};
