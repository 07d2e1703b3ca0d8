//! Expressions over columns. An expression is compiled once into a program, which then runs over the blocks of a query:
//! each step takes the values of whole columns, and gives a column. The results are those of `Expr::evaluate` row by row.
//!
//! A step that cannot give the value of a row leaves the row out (`Vector::left`); the whole expression is evaluated for
//! these rows as for single documents. So a step never fails, and knows only the types that it is fast with.

// Loaded later.

mod bucket;
mod cells;
mod choice;
mod comparison;
mod conversion;
mod dates;
mod distinct;
mod general;
mod mask;
mod membership;
mod numbers;
mod program;
mod run;
mod several;
#[cfg(test)]
mod tests;
mod truth;

pub(super) use program::compile_if_loaded;
