//! Expressions over columns. An expression is compiled once into a program, which then runs over the blocks of a query:
//! each step computes a column from whole columns. The results equal those of `Expr::evaluate` row by row.
//!
//! A step that cannot compute the value of a row leaves the row out (`Vector::left`); the whole expression is then
//! evaluated for these rows as for single documents. So a step never fails, and needs to handle only the types for which
//! it is fast.

// Loaded later.

#[cfg(test)]
mod array_tests;
mod arrays;
mod bucket;
mod cells;
mod choice;
mod columns;
mod comparison;
mod conversion;
mod dates;
mod distinct;
mod elements;
#[cfg(test)]
mod forms;
mod general;
mod lists;
mod mask;
mod membership;
mod numbers;
mod objects;
mod pairs;
mod program;
mod reading;
mod run;
#[cfg(test)]
mod samples;
mod sets;
mod several;
mod specific;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
mod texts;
mod truth;
mod varying;

pub use general::reached;
pub(super) use program::compile_if_loaded;
