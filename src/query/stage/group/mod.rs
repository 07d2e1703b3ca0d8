//! `$group`: combines rows with equal keys.

mod edges;
mod ids;
mod keys;
mod parse;
mod run;
mod spec;

pub(super) use run::{Group, run_end};
pub(super) use spec::{GroupSpec, Key};
