//! Functions of several numbers of a row: `$max`, `$min`, `$sum`, `$avg`, `$stdDevPop`, `$stdDevSamp`; `$pow`, `$log`;
//! `$atan2`; `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot`.

use std::borrow::Cow;
use std::rc::Rc;

use kernels::sum;

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::{Operand, each_double, finished, operand};
use super::run::VectorArguments;
use super::{choice, comparison};
use crate::block::Bitmap;
use crate::env::math;
use crate::listed::IntoList;
use crate::query::expr::compare::CompareOp;
use crate::query::expr::math::power_of_double;
use crate::query::expr::operators::Operator;
use crate::value::Collation;

/// The greatest int32; sums are whole, and the least one is left out as well.
const INT32_MAX: f64 = 2_147_483_647.0;

/// `None` for other operators, and for values that these are rarely given.
pub fn of_several<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    match operator.name() {
        name @ ("$max" | "$min") => of_numbers(name, arguments)
            .or_else(|| extremes(name == "$max", arguments))
            .or_else(|| better(name == "$max", arguments)),
        name @ ("$sum" | "$avg") => of_numbers(name, arguments),
        "$stdDevPop" => deviations(arguments, 0.0),
        "$stdDevSamp" => deviations(arguments, 1.0),
        "$pow" => powers(arguments),
        "$log" => logarithms(arguments),
        "$atan2" => angles(arguments),
        "$bitAnd" => bits(arguments, 0, |a, b| a & b),
        "$bitOr" => bits(arguments, 0, |a, b| a | b),
        "$bitXor" => bits(arguments, 0, |a, b| a ^ b),
        "$bitNot" => bits(arguments, -1, |n, _| n),
        _ => None,
    }
}

/// Null and missing values do not count.
fn of_numbers<'a>(name: &str, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [_, _, ..] = arguments.vectors else { return None };
    // NaN sorts below all other numbers. Of values that compare equal, the first one stays.
    let is_better: fn(f64, f64) -> bool = match name {
        "$max" => |a, b| b > a || a.is_nan(),
        _ => |a, b| b < a || b.is_nan() && !a.is_nan(),
    };
    let columns = doubles_of(arguments)?;
    let absent: Vec<Mask> = arguments.vectors.iter().map(|vector| vector.absent()).listed();
    let is_whole = absent.iter().all(Mask::is_none);
    let is_extreme = matches!(name, "$max" | "$min");
    let mut counts = vec![0_u32; arguments.rows];
    let mut results = vec![0.0_f64; arguments.rows];
    // Sums of doubles, and what rounding has taken from them. Integers are added to them at the end.
    let mut doubles = vec![(0.0, 0.0); if is_extreme { 0 } else { arguments.rows }];
    // Rows of which the result is an integer. The sum of nothing is one.
    let has_int32s = columns.iter().any(|(_, int32s)| *int32s != Int32s::None);
    let mut integers = vec![name == "$sum" || has_int32s; arguments.rows];
    for ((cells, int32s), absent) in columns.iter().zip(&absent) {
        let states = results.iter_mut().zip(&mut counts).zip(&mut integers).zip(&**cells);
        for (row, (((result, count), integer), x)) in states.enumerate() {
            if !is_whole && absent.has(row) {
                continue;
            }
            let is_int32 = has_int32s && int32s.has(row);
            if let Some((sum, lost)) = doubles.get_mut(row) {
                match is_int32 {
                    true => *result += *x,
                    false => sum::add(sum, lost, *x),
                }
                *integer &= is_int32;
            } else if *count == 0 || is_better(*result, *x) {
                (*result, *integer) = (*x, is_int32);
            }
            *count += 1;
        }
    }
    let mut null = Mask::NONE;
    if name != "$sum" && !is_whole {
        null = Mask::from_fn(arguments.rows, |row| counts.get(row) == Some(&0));
    }
    for ((result, (mut sum, mut lost)), integer) in results.iter_mut().zip(doubles).zip(&integers) {
        if !integer {
            sum::add(&mut sum, &mut lost, *result);
            *result = sum::total(sum, lost);
        }
    }
    if name == "$avg" {
        results.iter_mut().zip(&counts).for_each(|(sum, count)| *sum /= f64::from((*count).max(1)));
        integers.fill(false);
    }
    let int32s = Int32s::of(Bitmap::from_slice(&integers, |integer| *integer));
    let is_wide =
        |row: usize| integers.get(row) == Some(&true) && results.get(row).is_some_and(|sum| sum.abs() > INT32_MAX);
    let wide = if name == "$sum" && has_int32s { Mask::from_fn(arguments.rows, is_wide) } else { Mask::NONE };
    Some(finished(Cells::Numbers(results.into(), int32s), null, all_left(arguments), wide))
}

/// The arguments as doubles, and which of these are int32s.
fn doubles_of<'v>(arguments: &VectorArguments<'v, '_>) -> Option<Vec<(Cow<'v, [f64]>, Int32s)>> {
    let numbers = arguments.vectors.iter().map(|vector| match operand(vector) {
        Some(Operand::Numbers(cells, int32s)) => Some((cells.cells(arguments.rows), int32s)),
        _ => None,
    });
    numbers.listed_if_all()
}

/// Standard deviations. More than `fewer` numbers have one.
fn deviations<'a>(arguments: &VectorArguments<'_, 'a>, fewer: f64) -> Option<Vector<'a>> {
    let [_, _, ..] = arguments.vectors else { return None };
    let mut states = vec![(0.0, 0.0, 0.0); arguments.rows];
    for ((cells, _), vector) in doubles_of(arguments)?.iter().zip(arguments.vectors) {
        let absent = vector.absent();
        for (row, ((count, mean, squares), x)) in states.iter_mut().zip(&**cells).enumerate() {
            if !absent.has(row) {
                *count += 1.0;
                let distance = x - *mean;
                *mean += distance / *count;
                *squares += distance * (x - *mean);
            }
        }
    }
    let null = Mask::of(Bitmap::from_slice(&states, |(count, ..)| *count <= fewer));
    let cells = states.iter().map(|(count, _, squares)| (squares / (count - fewer)).sqrt()).listed();
    Some(finished(Cells::Numbers(cells.into(), Int32s::None), null, all_left(arguments), Mask::NONE))
}

/// `$max` and `$min` of int64s or of dates.
fn extremes<'a>(is_max: bool, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [_, _, ..] = arguments.vectors else { return None };
    let (mut best, mut null, mut dates) = (Vec::new(), Mask::all(arguments.rows), 0);
    for vector in arguments.vectors {
        let cells = match operand(vector)? {
            Operand::Longs(cells) => cells,
            Operand::Dates(cells) => {
                dates += 1;
                cells
            }
            Operand::Numbers(..) => return None,
        };
        let (cells, absent) = (cells.cells(arguments.rows), vector.absent());
        best.resize(arguments.rows, 0);
        for (row, (best, n)) in best.iter_mut().zip(&*cells).enumerate() {
            if !absent.has(row) && (null.has(row) || (*n > *best) == is_max) {
                *best = *n;
            }
        }
        let mut present = Mask::all(arguments.rows);
        present.remove(&absent);
        null.remove(&present);
    }
    let cells = match dates {
        0 => Cells::Longs(best.into()),
        _ if dates == arguments.vectors.len() => Cells::Dates(best.into()),
        _ => return None,
    };
    Some(finished(cells, null, all_left(arguments), Mask::NONE))
}

/// `$max` and `$min` of two numbers of different types.
fn better<'a>(is_max: bool, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [a, b] = arguments.vectors else { return None };
    let is_number = |vector| matches!(operand(vector), Some(Operand::Numbers(..) | Operand::Longs(_)));
    if !is_number(a) || !is_number(b) {
        return None;
    }
    let op = if is_max { CompareOp::Gt } else { CompareOp::Lt };
    // Of values that compare equal, the first one stays.
    let mut takes_b = comparison::truths(op, b, a, arguments.rows, &Collation::default())?;
    let [absent_a, absent_b] = [a, b].map(|vector| vector.absent());
    absent_a.rows().into_iter().for_each(|rows| takes_b.or(rows));
    let mut takes_a = takes_b.clone();
    takes_a.invert();
    absent_b.rows().into_iter().for_each(|rows| takes_a.or(rows));
    takes_b = takes_a.clone();
    takes_b.invert();
    let mut picked =
        choice::picked(&[takes_a, takes_b], &[Rc::clone(a), Rc::clone(b)], all_left(arguments), arguments.rows);
    picked.null.add(&std::mem::replace(&mut picked.missing, Mask::NONE));
    Some(picked)
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

/// `$atan2`.
fn angles<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [y, x] = arguments.vectors else { return None };
    let doubles = |vector| match operand(vector)? {
        Operand::Numbers(cells, _) => Some(cells.cells(arguments.rows)),
        Operand::Longs(_) | Operand::Dates(_) => None,
    };
    let cells = doubles(y)?.iter().zip(&*doubles(x)?).map(|(y, x)| math::atan2(*y, *x)).listed();
    let null = y.absent().with(&x.absent());
    Some(finished(Cells::Numbers(cells.into(), Int32s::None), null, all_left(arguments), Mask::NONE))
}

/// `$log` to a constant base.
fn logarithms<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [vector, base] = arguments.vectors else { return None };
    let base = base.constant_number().map(|(base, _)| base).filter(|base| *base > 0.0 && *base != 1.0)?;
    let base = math::ln(base);
    // NaN has a logarithm, which is NaN.
    each_double(vector, arguments.rows, &|x| if x <= 0.0 { None } else { Some(math::ln(x) / base) })
}

/// Bitwise operators of integers of one type. The bits in `inverted` of the first integers are inverted.
fn bits<'a>(arguments: &VectorArguments<'_, 'a>, inverted: i64, step: fn(i64, i64) -> i64) -> Option<Vector<'a>> {
    let [first, rest @ ..] = arguments.vectors else { return None };
    let integers = |vector| match operand(vector)? {
        Operand::Numbers(cells, Int32s::All) => Some((cells.whole().cells(arguments.rows).into_owned(), true)),
        Operand::Longs(cells) => Some((cells.cells(arguments.rows).into_owned(), false)),
        _ => None,
    };
    let (mut all, mut is_narrow) = integers(first)?;
    let mut null = first.absent();
    all.iter_mut().for_each(|n| *n ^= inverted);
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

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};
    use proptest::prelude::*;

    use crate::block::{Block, ColumnBuilder};
    use crate::query::expr::samples::globals;
    use crate::query::expr::{BoundExpr, Expr};
    use crate::value::{Doc, OwnedValue};

    /// Numbers whose sums are rounded.
    fn value() -> impl Strategy<Value = Option<OwnedValue>> {
        prop_oneof![
            6 => (-99..99_i32).prop_map(|n| Some(OwnedValue::double(f64::from(n) / 10.0))),
            3 => any::<f64>().prop_map(|x| Some(OwnedValue::double(x))),
            3 => any::<i32>().prop_map(|n| Some(OwnedValue::int32(n))),
            1 => Just(Some(OwnedValue::null())),
            1 => Just(None),
        ]
    }

    proptest! {
        #[test]
        fn functions_of_several_fields_are_rounded_as_those_of_single_rows(
            rows in prop::collection::vec(prop::collection::vec(value(), 5), 1..9), count in 2..6_usize,
            name in prop::sample::select(vec!["$sum", "$avg", "$stdDevPop", "$stdDevSamp", "$max", "$min", "$add", "$multiply"]),
        ) {
            let mut block = Block::new(rows.len());
            for (at, field) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
                let mut column = ColumnBuilder::new();
                for row in &rows {
                    match &row[at] {
                        Some(value) => column.push(value.view()),
                        None => column.push_absent(1),
                    }
                }
                block.set_column(field, column.finish());
            }
            let expression = doc! { "": { name: &["$a", "$b", "$c", "$d", "$e"][..count] } };
            let expression = RawDocumentBuf::try_from(&expression).unwrap();
            let expr = Expr::parse(Doc::parse(expression.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap();
            let expr = BoundExpr::new(expr, globals());
            let (found, expected) = (expr.column(&block).unwrap(), expr.one_by_one(&block).unwrap());
            for row in 0..rows.len() {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let [a, b] = [found.value(row, &mut a), expected.value(row, &mut b)];
                // Null may be missing instead.
                let shown = |value: Option<crate::value::Value<'_>>| value.filter(|value| value.kind() != crate::value::Kind::Null).map(|value| (value.kind(), value.bytes().to_vec()));
                let is_nan = [a, b].iter().all(|x| x.and_then(|x| x.as_f64()).is_some_and(f64::is_nan));
                prop_assert!(is_nan || shown(a) == shown(b), "{:?} {:?}", a, b);
            }
        }
    }
}
