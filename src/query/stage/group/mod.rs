//! `$group`: combines rows with equal keys.

mod cells;
mod edges;
mod ids;
mod keys;
mod parse;
mod run;
mod spec;
#[cfg(test)]
mod tests;

pub(super) use cells::KeyCells;
pub(super) use run::{Group, run_end};
pub(super) use spec::{GroupSpec, Key};
