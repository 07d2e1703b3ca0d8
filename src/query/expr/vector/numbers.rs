//! Arithmetic of columns: `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`; `$abs`, `$ceil`, `$floor`, `$sqrt`; `$trunc`,
//! `$round`. The types of results are those of `arithmetic`. A result that needs a wider type than its neighbours, or that
//! is an error, is left out.

use std::borrow::Cow;

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::Bitmap;
use crate::query::expr::arithmetic::{cut_to_places, rounded_duration};
use crate::query::expr::operators::{Op, Operator};
use crate::value::{Kind, Number};

/// An argument as cells of one type.
pub enum Operand<'v> {
    Numbers(Cow<'v, [f64]>, Int32s),
    Longs(Cow<'v, [i64]>),
    Dates(Cow<'v, [i64]>),
}

/// The cells of a vector without an index, or one cell for each row if it is a constant; `None` for other types.
pub fn operand<'v>(vector: &'v Vector<'_>, rows: usize) -> Option<Operand<'v>> {
    Some(match &vector.cells {
        Cells::Numbers(cells, int32s) => Operand::Numbers(Cow::Borrowed(cells), int32s.clone()),
        Cells::Longs(cells) => Operand::Longs(Cow::Borrowed(cells)),
        Cells::Dates(cells) => Operand::Dates(Cow::Borrowed(cells)),
        Cells::Constant(Some(value)) => {
            let value = value.view();
            match value.kind() {
                Kind::Int32 | Kind::Double => {
                    let (x, is_int32) = vector.constant_number()?;
                    Operand::Numbers(vec![x; rows].into(), if is_int32 { Int32s::All } else { Int32s::None })
                }
                Kind::Int64 => Operand::Longs(vec![value.as_i64()?; rows].into()),
                Kind::Date => Operand::Dates(vec![value.as_date_ms()?; rows].into()),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`, from left to right.
pub fn combined<'a>(op: Op, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [first, second, rest @ ..] = arguments.vectors else { return None };
    let mut all = binary(op, first, second, arguments.rows)?;
    for next in rest {
        all = binary(op, &all, next, arguments.rows)?;
    }
    Some(all)
}

/// One step. A null or missing operand gives null.
fn binary<'a>(op: Op, a: &Vector<'_>, b: &Vector<'_>, rows: usize) -> Option<Vector<'a>> {
    let null = a.absent().with(&b.absent());
    let left = a.left.clone().with(&b.left);
    let (cells, beyond) = match (operand(a, rows)?, operand(b, rows)?) {
        (Operand::Numbers(x, x_int32s), Operand::Numbers(y, y_int32s)) => {
            of_numbers(op, &x, &y, x_int32s.and(&y_int32s))
        }
        (Operand::Longs(x), Operand::Longs(y)) => of_longs(op, &x, &y)?,
        (Operand::Longs(x), Operand::Numbers(y, Int32s::All)) => of_longs(op, &x, &whole(&y))?,
        (Operand::Numbers(x, Int32s::All), Operand::Longs(y)) => of_longs(op, &whole(&x), &y)?,
        (Operand::Longs(x), Operand::Numbers(y, Int32s::None)) => of_numbers(op, &doubles(&x), &y, Int32s::None),
        (Operand::Numbers(x, Int32s::None), Operand::Longs(y)) => of_numbers(op, &x, &doubles(&y), Int32s::None),
        (Operand::Dates(x), Operand::Dates(y)) if op == Op::Subtract => {
            let (cells, beyond) = checked(&x, &y, i64::checked_sub);
            (Cells::Longs(cells.into()), beyond)
        }
        (Operand::Dates(x), Operand::Numbers(y, _)) => moved(op, &x, &durations(&y)?)?,
        (Operand::Dates(x), Operand::Longs(y)) => moved(op, &x, &y)?,
        (Operand::Numbers(x, _), Operand::Dates(y)) if op == Op::Add => moved(op, &y, &durations(&x)?)?,
        (Operand::Longs(x), Operand::Dates(y)) if op == Op::Add => moved(op, &y, &x)?,
        _ => return None,
    };
    Some(finished(cells, null, left, beyond))
}

/// A row that is absent has no result that could be beyond its type.
pub fn finished<'a>(cells: Cells<'a>, null: Mask, mut left: Mask, mut beyond: Mask) -> Vector<'a> {
    beyond.remove(&null);
    left.add(&beyond);
    cells.with(Mask::NONE, null, left)
}

fn zip<T: Copy, R>(x: &[T], y: &[T], mut f: impl FnMut(T, T) -> R) -> Vec<R> {
    x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect()
}

/// The results, and the rows whose result is no int32 although their operands are, or that divide by zero.
fn of_numbers<'a>(op: Op, x: &[f64], y: &[f64], int32s: Int32s) -> (Cells<'a>, Mask) {
    let mut cells = match op {
        Op::Add => zip(x, y, |x, y| x + y),
        Op::Subtract => zip(x, y, |x, y| x - y),
        Op::Multiply => zip(x, y, |x, y| x * y),
        Op::Divide => zip(x, y, |x, y| x / y),
        _ => zip(x, y, |x, y| x % y),
    };
    if matches!(op, Op::Divide | Op::Mod) {
        let beyond = if y.contains(&0.0) { Mask::of(Bitmap::from_slice(y, |y| *y == 0.0)) } else { Mask::NONE };
        if op == Op::Divide {
            return (Cells::Numbers(cells.into(), Int32s::None), beyond);
        }
        unsigned_zeros(&mut cells, &int32s);
        return (Cells::Numbers(cells.into(), int32s), beyond);
    }
    if int32s == Int32s::None {
        return (Cells::Numbers(cells.into(), int32s), Mask::NONE);
    }
    unsigned_zeros(&mut cells, &int32s);
    let is_int32 = |x: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&x);
    let beyond = if cells.iter().all(|x| is_int32(*x)) {
        Mask::NONE
    } else {
        Mask::from_fn(cells.len(), |row| int32s.has(row) && !cells.get(row).is_some_and(|x| is_int32(*x)))
    };
    (Cells::Numbers(cells.into(), int32s), beyond)
}

/// Integers have no negative zero.
fn unsigned_zeros(cells: &mut [f64], int32s: &Int32s) {
    match int32s {
        Int32s::None => {}
        Int32s::All => cells.iter_mut().for_each(|x| *x += 0.0),
        Int32s::Some(rows) => rows.iter().for_each(|row| {
            if let Some(x) = cells.get_mut(row) {
                *x += 0.0;
            }
        }),
    }
}

/// Int32s as int64s.
#[allow(clippy::cast_possible_truncation)]
pub fn whole(cells: &[f64]) -> Vec<i64> {
    cells.iter().map(|x| *x as i64).collect()
}

/// Int64s as the nearest doubles.
#[allow(clippy::cast_precision_loss)]
pub fn doubles(cells: &[i64]) -> Vec<f64> {
    cells.iter().map(|n| *n as f64).collect()
}

/// Whole milliseconds; `None` if a number has none.
fn durations(cells: &[f64]) -> Option<Vec<i64>> {
    cells.iter().map(|x| rounded_duration(*x)).collect()
}

fn of_longs<'a>(op: Op, x: &[i64], y: &[i64]) -> Option<(Cells<'a>, Mask)> {
    if op == Op::Divide {
        return Some(of_numbers(op, &doubles(x), &doubles(y), Int32s::None));
    }
    let (cells, beyond) = match op {
        Op::Add => checked(x, y, i64::checked_add),
        Op::Subtract => checked(x, y, i64::checked_sub),
        Op::Multiply => checked(x, y, i64::checked_mul),
        Op::Mod => checked(x, y, |n, m| (m != 0).then(|| n.wrapping_rem(m))),
        _ => return None,
    };
    Some((Cells::Longs(cells.into()), beyond))
}

/// The results, and the rows without one.
fn checked(x: &[i64], y: &[i64], f: impl Fn(i64, i64) -> Option<i64>) -> (Vec<i64>, Mask) {
    let mut fails = false;
    let cells = zip(x, y, |n, m| {
        let result = f(n, m);
        fails |= result.is_none();
        result.unwrap_or_default()
    });
    let beyond = if fails {
        Mask::from_fn(cells.len(), |row| match (x.get(row), y.get(row)) {
            (Some(n), Some(m)) => f(*n, *m).is_none(),
            _ => true,
        })
    } else {
        Mask::NONE
    };
    (cells, beyond)
}

/// Dates moved by milliseconds.
fn moved<'a>(op: Op, dates: &[i64], by: &[i64]) -> Option<(Cells<'a>, Mask)> {
    let (cells, beyond) = match op {
        Op::Add => checked(dates, by, i64::checked_add),
        Op::Subtract => checked(dates, by, |date, by| date.checked_add(by.checked_neg()?)),
        _ => return None,
    };
    Some((Cells::Dates(cells.into()), beyond))
}

/// An operator that is a function of one double. Numbers that it does not accept are left out.
pub fn of_doubles<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let (Some(of_double), [vector]) = (operator.of_double, arguments.vectors) else { return None };
    let cells = match operand(vector, arguments.rows)? {
        Operand::Numbers(cells, _) => cells,
        Operand::Longs(cells) => doubles(&cells).into(),
        Operand::Dates(_) => return None,
    };
    let mut refused = Vec::new();
    let result = |(row, x): (usize, &f64)| {
        of_double(*x).unwrap_or_else(|| {
            refused.push(row);
            0.0
        })
    };
    let results: Vec<f64> = cells.iter().enumerate().map(result).collect();
    let beyond = Mask::of_rows(results.len(), &refused);
    let cells = Cells::Numbers(results.into(), Int32s::None);
    Some(finished(cells, vector.absent(), vector.left.clone(), beyond))
}

/// `$abs`, `$ceil`, `$floor`, `$sqrt`.
pub fn unary<'a>(op: Op, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [vector] = arguments.vectors else { return None };
    let (null, left) = (vector.absent(), vector.left.clone());
    let (cells, beyond) = match operand(vector, arguments.rows)? {
        Operand::Numbers(cells, int32s) => match op {
            Op::Abs => {
                let cells: Vec<f64> = cells.iter().map(|x| x.abs()).collect();
                // The smallest int32 has no opposite.
                let is_beyond = |x: &f64| *x > f64::from(i32::MAX);
                let beyond = if int32s == Int32s::None || !cells.iter().any(is_beyond) {
                    Mask::NONE
                } else {
                    Mask::from_fn(cells.len(), |row| int32s.has(row) && cells.get(row).is_some_and(is_beyond))
                };
                (Cells::Numbers(cells.into(), int32s), beyond)
            }
            Op::Ceil => (Cells::Numbers(cut(&cells, &int32s, f64::ceil), int32s), Mask::NONE),
            Op::Floor => (Cells::Numbers(cut(&cells, &int32s, f64::floor), int32s), Mask::NONE),
            _ => roots(&cells),
        },
        Operand::Longs(cells) => match op {
            Op::Abs => {
                let (cells, beyond) = checked(&cells, &cells, |n, _| n.checked_abs());
                (Cells::Longs(cells.into()), beyond)
            }
            Op::Ceil | Op::Floor => (Cells::Longs(cells.into_owned().into()), Mask::NONE),
            _ => roots(&doubles(&cells)),
        },
        Operand::Dates(_) => return None,
    };
    Some(finished(cells, null, left, beyond))
}

/// What rounding leaves of doubles; integers stay as they are.
fn cut<'a>(cells: &[f64], int32s: &Int32s, f: impl Fn(f64) -> f64) -> Cow<'a, [f64]> {
    match int32s {
        Int32s::All => cells.to_vec().into(),
        _ => cells.iter().map(|x| f(*x)).collect(),
    }
}

/// Negative numbers have no square root.
fn roots<'a>(cells: &[f64]) -> (Cells<'a>, Mask) {
    let beyond =
        if cells.iter().any(|x| *x < 0.0) { Mask::of(Bitmap::from_slice(cells, |x| *x < 0.0)) } else { Mask::NONE };
    (Cells::Numbers(cells.iter().map(|x| x.sqrt()).collect(), Int32s::None), beyond)
}

/// `$trunc` and `$round` to a constant number of decimal places.
pub fn to_places<'a>(op: Op, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let places = match arguments.constants(1)?.get(1).copied().flatten() {
        None if arguments.is_given(1) => return None,
        None => 0,
        Some(places) => Number::of(places)?.whole()?,
    };
    let vector = arguments.at(0)?;
    if !(-20..=100).contains(&places) {
        return None;
    }
    let (null, left) = (vector.absent(), vector.left.clone());
    let cells = match operand(vector, arguments.rows)? {
        Operand::Numbers(cells, int32s) if int32s == Int32s::None || places >= 0 => {
            let is_double = |row: usize| !int32s.has(row);
            let cut =
                |(row, x): (usize, &f64)| if is_double(row) { cut_to_places(*x, places, op == Op::Round) } else { *x };
            Cells::Numbers(cells.iter().enumerate().map(cut).collect(), int32s)
        }
        Operand::Longs(cells) if places >= 0 => Cells::Longs(cells.into_owned().into()),
        _ => return None,
    };
    Some(finished(cells, null, left, Mask::NONE))
}
