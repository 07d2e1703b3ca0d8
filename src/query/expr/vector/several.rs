//! Functions of several numbers of a row: `$max`, `$min`, `$sum`, `$avg`; `$pow`; `$bitAnd`, `$bitOr`, `$bitXor`.

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::{Operand, finished, operand};
use super::run::VectorArguments;
use crate::query::expr::math::power_of_double;
use crate::query::expr::operators::Operator;

/// `None` for other operators, and for values that these are rarely given.
pub fn of_several<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    match operator.name() {
        "$max" | "$min" | "$sum" | "$avg" => of_doubles(operator.name(), arguments),
        "$pow" => powers(arguments),
        "$bitAnd" => bits(arguments, |a, b| a & b),
        "$bitOr" => bits(arguments, |a, b| a | b),
        "$bitXor" => bits(arguments, |a, b| a ^ b),
        _ => None,
    }
}

/// The doubles of all arguments. `None` if one may be an integer, which gives other types.
fn all_doubles<'v>(arguments: &'v VectorArguments<'_, '_>) -> Option<Vec<std::borrow::Cow<'v, [f64]>>> {
    let doubles = arguments.vectors.iter().map(|vector| match operand(vector) {
        Some(Operand::Numbers(cells, Int32s::None)) => Some(cells.cells(arguments.rows)),
        _ => None,
    });
    doubles.collect()
}

/// Null and missing values do not count.
fn of_doubles<'a>(name: &str, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [_, _, ..] = arguments.vectors else { return None };
    let columns = all_doubles(arguments)?;
    let absent: Vec<Mask> = arguments.vectors.iter().map(|vector| vector.absent()).collect();
    let is_whole = absent.iter().all(Mask::is_none);
    let mut counts = vec![0_u32; arguments.rows];
    let mut results = vec![0.0_f64; arguments.rows];
    // NaN sorts below all other numbers. Of values that compare equal, the first one stays.
    let step: fn(f64, f64) -> f64 = match name {
        "$max" => |a, b| if b > a || a.is_nan() { b } else { a },
        "$min" => |a, b| if b < a || b.is_nan() && !a.is_nan() { b } else { a },
        _ => |a, b| a + b,
    };
    let is_extreme = matches!(name, "$max" | "$min");
    for (cells, absent) in columns.iter().zip(&absent) {
        for (row, ((result, count), x)) in results.iter_mut().zip(&mut counts).zip(&**cells).enumerate() {
            if is_whole || !absent.has(row) {
                *result = if is_extreme && *count == 0 { *x } else { step(*result, *x) };
                *count += 1;
            }
        }
    }
    if name == "$sum" && !is_whole {
        // Without a double, the sum is an integer.
        let left = Mask::from_fn(arguments.rows, |row| counts.get(row) == Some(&0));
        return Some(finished(Cells::Numbers(results.into(), Int32s::None), Mask::NONE, all_left(arguments), left));
    }
    if name == "$avg" {
        results.iter_mut().zip(&counts).for_each(|(sum, count)| *sum /= f64::from((*count).max(1)));
    }
    let null = if is_whole { Mask::NONE } else { Mask::from_fn(arguments.rows, |row| counts.get(row) == Some(&0)) };
    Some(finished(Cells::Numbers(results.into(), Int32s::None), null, all_left(arguments), Mask::NONE))
}

fn all_left(arguments: &VectorArguments<'_, '_>) -> Mask {
    arguments.vectors.iter().fold(Mask::NONE, |left, vector| left.with(&vector.left))
}

/// `$pow`, unless both are integers.
fn powers<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [base, exponent] = arguments.vectors else { return None };
    let (Operand::Numbers(x, x_int32s), Operand::Numbers(y, y_int32s)) = (operand(base)?, operand(exponent)?) else {
        return None;
    };
    let (x, y) = (x.cells(arguments.rows), y.cells(arguments.rows));
    if x_int32s.and(&y_int32s) != Int32s::None {
        return None;
    }
    let null = base.absent().with(&exponent.absent());
    // Zero has no negative powers.
    let is_beyond = |(x, y): (&f64, &f64)| *x == 0.0 && *y < 0.0;
    let beyond = if x.iter().zip(&*y).any(is_beyond) {
        Mask::from_fn(arguments.rows, |row| x.get(row).zip(y.get(row)).is_some_and(is_beyond))
    } else {
        Mask::NONE
    };
    let cells = x.iter().zip(&*y).map(|(x, y)| power_of_double(*x, *y)).collect();
    Some(finished(Cells::Numbers(cells, Int32s::None), null, all_left(arguments), beyond))
}

/// Bitwise operators of integers of one type.
fn bits<'a>(arguments: &VectorArguments<'_, 'a>, step: fn(i64, i64) -> i64) -> Option<Vector<'a>> {
    let [first, rest @ ..] = arguments.vectors else { return None };
    let integers = |vector| match operand(vector)? {
        Operand::Numbers(cells, Int32s::All) => Some((cells.whole().cells(arguments.rows).into_owned(), true)),
        Operand::Longs(cells) => Some((cells.cells(arguments.rows).into_owned(), false)),
        _ => None,
    };
    let (mut all, mut is_narrow) = integers(first)?;
    let mut null = first.absent();
    for vector in rest {
        let (others, narrow) = integers(vector)?;
        is_narrow &= narrow;
        null.add(&vector.absent());
        all.iter_mut().zip(&others).for_each(|(n, m)| *n = step(*n, *m));
    }
    // Of int32s, no operator takes a result beyond them.
    #[allow(clippy::cast_precision_loss)]
    let cells = match is_narrow {
        true => Cells::Numbers(all.iter().map(|n| *n as f64).collect(), Int32s::All),
        false => Cells::Longs(all.into()),
    };
    Some(finished(cells, null, all_left(arguments), Mask::NONE))
}
