//! Accumulators over windows of typed columns. Everything else is accumulated value by value (`slide.rs`).

use std::ops::Range;

use super::super::accumulator::{Accumulation, Inputs};
use super::cells::{NOWHERE, doubles, picked, typed};
use super::extreme::{Quantiles, extreme_rows, extreme_rows_of_any};
use super::slide::over_windows;
use super::sums::{deviations, double_sums, integer_sums, mixed_sums};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::expr::{Expr, Globals, is_continuous, percentiles_of};
use crate::value::{Collation, Value};

/// An accumulator that is computed over vectors.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kernel {
    /// `$sum` and `$count`; true for `$avg`.
    Sum(bool),
    /// `$min`; true for `$max`.
    Extreme(bool),
    /// `$first`; true for `$last`.
    End(bool),
    /// `$stdDevPop`; true for `$stdDevSamp`.
    Deviation(bool),
    /// `$median` and `$percentile`.
    Quantiles(Quantiles),
}

impl Kernel {
    /// The kernel of an accumulator, whose argument is known to be valid.
    ///
    /// Errors: none that parsing the accumulator has not given.
    pub fn of(operator: &str, argument: Value<'_>, globals: &Globals) -> Result<Option<Kernel>> {
        Ok(Some(match operator {
            "$sum" | "$count" => Kernel::Sum(false),
            "$avg" => Kernel::Sum(true),
            "$min" | "$max" => Kernel::Extreme(operator == "$max"),
            "$first" | "$last" => Kernel::End(operator == "$last"),
            "$stdDevPop" | "$stdDevSamp" => Kernel::Deviation(operator == "$stdDevSamp"),
            "$median" | "$percentile" => {
                let get = |name| argument.as_doc().and_then(|argument| argument.get(name));
                let shares = match get("p").filter(|_| operator == "$percentile") {
                    Some(p) => Some(percentiles_of(&Expr::parse(p, globals)?)?),
                    None => None,
                };
                Kernel::Quantiles(Quantiles { shares, is_continuous: is_continuous(get("method"))? })
            }
            _ => return Ok(None),
        }))
    }

    /// The results for windows of a column of several types; `None` if it has no kernel for them.
    fn over_mixed(&self, column: &Column, windows: &[Range<usize>], collation: &Collation) -> Result<Option<Column>> {
        let numbers = || column.to_doubles();
        // Other values may be large, and their copies must not take too much memory.
        let is_small = || column.value_bytes_max().saturating_mul(windows.len()) <= STAGE_SIZE_BYTES_MAX;
        match self {
            Kernel::End(is_last) => Ok(is_small().then(|| ends(column, windows, *is_last))),
            Kernel::Sum(false) => Ok(numbers().and_then(|numbers| mixed_sums(column, &numbers, windows))),
            Kernel::Extreme(is_max) => Ok(is_small().then(|| {
                // A number keeps the type that it has.
                let rows = numbers().and_then(|numbers| extreme_rows(&numbers, windows, *is_max));
                let rows = rows.unwrap_or_else(|| extreme_rows_of_any(column, windows, *is_max, collation));
                picked(column, &rows, Value::NULL)
            })),
            Kernel::Sum(true) | Kernel::Deviation(_) | Kernel::Quantiles(_) => match numbers() {
                Some(numbers) => self.over(&numbers, windows),
                None => Ok(None),
            },
        }
    }

    /// The results for windows of a typed column; `None` if it has no kernel for the type.
    fn over(&self, column: &Column, windows: &[Range<usize>]) -> Result<Option<Column>> {
        let present = column.presence();
        Ok(match self {
            Kernel::Sum(is_mean) => match column.data() {
                ColumnData::F64(cells) => Some(double_sums(cells, present, windows, *is_mean)),
                _ => integer_sums(column, windows, *is_mean),
            },
            Kernel::Extreme(is_max) => {
                extreme_rows(column, windows, *is_max).map(|rows| picked(column, &rows, Value::NULL))
            }
            Kernel::End(is_last) => Some(ends(column, windows, *is_last)),
            Kernel::Deviation(is_sample) => {
                doubles(column).map(|cells| deviations(&cells, present, windows, *is_sample))
            }
            Kernel::Quantiles(quantiles) => match doubles(column) {
                Some(cells) => Some(quantiles.of(&cells, present, windows)?),
                None => None,
            },
        })
    }
}

/// The first or the last cell of each window.
fn ends(column: &Column, windows: &[Range<usize>], is_last: bool) -> Column {
    let end = |window: &Range<usize>| {
        let row = if is_last { window.end.saturating_sub(1) } else { window.start };
        if window.is_empty() { NOWHERE } else { u32::try_from(row).unwrap_or(NOWHERE) }
    };
    let rows: Vec<u32> = windows.iter().map(end).collect();
    picked(column, &rows, Value::NULL)
}

/// The results of an accumulator for windows.
///
/// Errors: those of the accumulator; `ExceededMemoryLimit` if the values take too much memory.
pub(super) fn accumulated(
    kernel: Option<&Kernel>,
    spec: &Accumulation,
    inputs: &Inputs<'_>,
    windows: &[Range<usize>],
) -> Result<Column> {
    if let Some(kernel) = kernel {
        let result = match typed(&inputs.cells) {
            Some(column) => kernel.over(&column, windows)?,
            None => kernel.over_mixed(&inputs.cells, windows, spec.collation())?,
        };
        if let Some(result) = result {
            return Ok(result);
        }
    }
    over_windows(spec, inputs, windows)
}
