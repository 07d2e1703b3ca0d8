//! Arithmetic on decimals.

// Loaded later.

use super::datum::Datum;
use super::operators::Op;
use crate::value::Number;
use crate::value::decimal::{
    Decimal, Rounding, absolute, difference, of_number, product, quotient, remainder, rounded, sqrt, sum, to_value,
};

/// The result of an arithmetic operator for two numbers, of which one is a decimal, or for one number.
/// False if the second half of the module is not loaded.
#[inline(never)]
pub(super) fn decimals_if_loaded(op: Op, numbers: [Number; 2], result: &mut Datum<'_>) -> bool {
    let [a, b] = numbers.map(of_number);
    *result = datum(match op {
        Op::Add => sum(a, b),
        Op::Subtract => difference(a, b),
        Op::Multiply => product(a, b),
        Op::Divide => quotient(a, b),
        Op::Mod => remainder(a, b),
        Op::Abs => absolute(a),
        Op::Ceil => rounded(a, 0, Rounding::Ceil),
        Op::Floor => rounded(a, 0, Rounding::Floor),
        Op::Sqrt => sqrt(a),
        // Not needed at run time, but without this answer the compiler would drop the operators.
        _ => return false,
    });
    true
}

/// A decimal as the value of an expression.
pub(super) fn datum(decimal: Decimal) -> Datum<'static> {
    Datum::Shared(to_value(decimal))
}
