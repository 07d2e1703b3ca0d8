//! Arithmetic of columns: `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`; `$abs`, `$ceil`, `$floor`, `$sqrt`; `$trunc`,
//! `$round`. The types of results are those of `arithmetic`. A result that needs a wider type than its neighbours, or that
//! is an error, is left out.

use std::borrow::Cow;

use kernels::Operand as Side;
use kernels::arithmetic::{self, Arithmetic};

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::{Bitmap, Column};
use crate::query::expr::arithmetic::rounded_duration;
use crate::query::expr::operators::{Op, Operator};
use crate::query::expr::rounding::cut_to_places;
use crate::value::{Kind, Number, OwnedValue};

/// An argument as numbers of one type.
pub enum Operand<'v> {
    Numbers(Values<'v, f64>, Int32s),
    Longs(Values<'v, i64>),
    Dates(Values<'v, i64>),
}

/// A number for each row, or the same one for all rows.
pub enum Values<'v, T: Clone> {
    Cells(Cow<'v, [T]>),
    Same(T),
}

impl<'v, T: Copy> Values<'v, T> {
    /// One side of a kernel.
    pub fn side(&self) -> Side<'_, T> {
        match self {
            Values::Cells(cells) => Side::Cells(cells),
            Values::Same(value) => Side::Same(*value),
        }
    }

    /// How many rows it has; `None` if it is the same for all.
    pub fn rows(&self) -> Option<usize> {
        match self {
            Values::Cells(cells) => Some(cells.len()),
            Values::Same(_) => None,
        }
    }

    /// A number for each of `rows` rows.
    pub fn cells(self, rows: usize) -> Cow<'v, [T]> {
        match self {
            Values::Cells(cells) => cells,
            Values::Same(value) => vec![value; rows].into(),
        }
    }
}

impl<'v> Values<'v, f64> {
    /// Int32s as int64s.
    pub fn whole(&self) -> Values<'v, i64> {
        match self {
            Values::Cells(cells) => Values::Cells(whole(cells).into()),
            #[allow(clippy::cast_possible_truncation)]
            Values::Same(x) => Values::Same(*x as i64),
        }
    }
}

impl<'v> Values<'v, i64> {
    /// Int64s as the nearest doubles.
    pub fn doubles(&self) -> Values<'v, f64> {
        match self {
            Values::Cells(cells) => Values::Cells(doubles(cells).into()),
            #[allow(clippy::cast_precision_loss)]
            Values::Same(n) => Values::Same(*n as f64),
        }
    }
}

/// The numbers or dates of a vector without an index; `None` for other types.
pub fn operand<'v>(vector: &'v Vector<'_>) -> Option<Operand<'v>> {
    Some(match &vector.cells {
        Cells::Numbers(cells, int32s) => Operand::Numbers(Values::Cells(Cow::Borrowed(cells)), int32s.clone()),
        Cells::Longs(cells) => Operand::Longs(Values::Cells(Cow::Borrowed(cells))),
        Cells::Dates(cells) => Operand::Dates(Values::Cells(Cow::Borrowed(cells))),
        Cells::Constant(Some(value)) => {
            let value = value.view();
            match value.kind() {
                Kind::Int32 | Kind::Double => {
                    let (x, is_int32) = vector.constant_number()?;
                    Operand::Numbers(Values::Same(x), if is_int32 { Int32s::All } else { Int32s::None })
                }
                Kind::Int64 => Operand::Longs(Values::Same(value.as_i64()?)),
                Kind::Date => Operand::Dates(Values::Same(value.as_date_ms()?)),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// The same of a column.
pub fn typed<'v>(vector: &'v Vector<'_>) -> Option<Operand<'v>> {
    operand(vector).filter(|_| !matches!(vector.cells, Cells::Constant(_)))
}

/// `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`, from left to right.
pub fn combined<'a>(op: Op, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [first, second, rest @ ..] = arguments.vectors else { return None };
    let mut all = binary(op, first, second)?;
    for next in rest {
        all = binary(op, &all, next)?;
    }
    Some(all)
}

/// One step. A null or missing operand gives null.
fn binary<'a>(op: Op, a: &Vector<'_>, b: &Vector<'_>) -> Option<Vector<'a>> {
    let null = a.absent().with(&b.absent());
    let left = a.left.clone().with(&b.left);
    if let (Cells::Constant(_), Cells::Constant(_)) = (&a.cells, &b.cells) {
        return None;
    }
    let (Some(x), Some(y)) = (operand(a), operand(b)) else { return of_decimals(op, a, b) };
    let (cells, beyond) = match (x, y) {
        (Operand::Numbers(x, x_int32s), Operand::Numbers(y, y_int32s)) => {
            of_numbers(op, &x, &y, x_int32s.and(&y_int32s))
        }
        (Operand::Longs(x), Operand::Longs(y)) => of_longs(op, &x, &y),
        (Operand::Longs(x), Operand::Numbers(y, Int32s::All)) => of_longs(op, &x, &y.whole()),
        (Operand::Numbers(x, Int32s::All), Operand::Longs(y)) => of_longs(op, &x.whole(), &y),
        (Operand::Longs(x), Operand::Numbers(y, Int32s::None)) => of_numbers(op, &x.doubles(), &y, Int32s::None),
        (Operand::Numbers(x, Int32s::None), Operand::Longs(y)) => of_numbers(op, &x, &y.doubles(), Int32s::None),
        (Operand::Dates(x), Operand::Dates(y)) if op == Op::Subtract => {
            let (cells, beyond) = int64s(Arithmetic::Subtract, &x, &y);
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

fn arithmetic_of(op: Op) -> Arithmetic {
    match op {
        Op::Add => Arithmetic::Add,
        Op::Subtract => Arithmetic::Subtract,
        Op::Multiply => Arithmetic::Multiply,
        Op::Divide => Arithmetic::Divide,
        _ => Arithmetic::Remainder,
    }
}

/// The results, and the rows whose result is no int32 although their operands are, or that divide by zero.
fn of_numbers<'a>(op: Op, x: &Values<'_, f64>, y: &Values<'_, f64>, int32s: Int32s) -> (Cells<'a>, Mask) {
    let mut cells = arithmetic::doubles(arithmetic_of(op), x.side(), y.side());
    if matches!(op, Op::Divide | Op::Mod) {
        let beyond = match y {
            Values::Same(y) if *y == 0.0 => Mask::all(cells.len()),
            Values::Cells(y) if y.contains(&0.0) => Mask::of(Bitmap::from_slice(y, |y| *y == 0.0)),
            _ => Mask::NONE,
        };
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
pub fn doubles(cells: &[i64]) -> Vec<f64> {
    kernels::convert::doubles_of_int64s(cells)
}

/// Whole milliseconds; `None` if a number has none.
fn durations<'v>(numbers: &Values<'_, f64>) -> Option<Values<'v, i64>> {
    /// 2^52. Nearer to zero, `rounded_duration` leaves whole numbers as they are.
    const NEAR: f64 = 4_503_599_627_370_496.0;
    let is_whole = |x: &f64| x.abs() < NEAR && x.trunc() == *x;
    Some(match numbers {
        Values::Cells(cells) if cells.iter().all(is_whole) => Values::Cells(whole(cells).into()),
        Values::Cells(cells) => Values::Cells(cells.iter().map(|x| rounded_duration(*x)).collect::<Option<_>>()?),
        Values::Same(x) => Values::Same(rounded_duration(*x)?),
    })
}

fn of_longs<'a>(op: Op, x: &Values<'_, i64>, y: &Values<'_, i64>) -> (Cells<'a>, Mask) {
    if op == Op::Divide {
        return of_numbers(op, &x.doubles(), &y.doubles(), Int32s::None);
    }
    let (cells, beyond) = int64s(arithmetic_of(op), x, y);
    (Cells::Longs(cells.into()), beyond)
}

/// The results, and the rows without one.
fn int64s(operator: Arithmetic, x: &Values<'_, i64>, y: &Values<'_, i64>) -> (Vec<i64>, Mask) {
    let mut beyond = Vec::new();
    let cells = arithmetic::int64s(operator, x.side(), y.side(), &mut beyond);
    let beyond = Mask::of_rows(cells.len(), &beyond);
    (cells, beyond)
}

/// Decimals as their coefficients, and the exponent that all of them have.
pub fn coefficients<'a>(vector: &Vector<'_>) -> Option<(Vector<'a>, i32)> {
    let (cells, exponent) = match &vector.cells {
        Cells::Any(column) => column.decimals(0..column.len())?,
        Cells::Constant(Some(value)) => {
            let (cells, exponent) = Column::constant(value.view(), 1).decimals(0..1)?;
            return Some((Vector::constant(Some(OwnedValue::int64(*cells.first()?).view())), exponent));
        }
        _ => return None,
    };
    let Vector { missing, null, left, .. } = vector.clone();
    Some((Cells::Longs(cells.into()).with(missing, null, left), exponent))
}

/// One step with decimals, or with decimals and integers. Rows of which the result is longer than a coefficient of this form, or a
/// negative zero, are left out.
fn of_decimals<'a>(op: Op, a: &Vector<'_>, b: &Vector<'_>) -> Option<Vector<'a>> {
    let (x, y) = (coefficients(a), coefficients(b));
    if x.is_none() && y.is_none() {
        return None;
    }
    let exponent = |known: &Option<(Vector<'_>, i32)>| known.as_ref().map_or(0, |known| known.1);
    let exponent = match (op, exponent(&x), exponent(&y)) {
        (Op::Multiply, x, y) => x + y,
        (Op::Add | Op::Subtract, x, y) if x == y => x,
        _ => return None,
    };
    let [x, y] = [(x, a), (y, b)].map(|(known, vector)| known.map_or_else(|| vector.clone(), |known| known.0));
    let Vector { cells: Cells::Longs(cells), null, left, .. } = binary(op, &x, &y)? else { return None };
    let mut beyond = Mask::NONE;
    if op == Op::Multiply && cells.contains(&0) {
        // The sum of a zero and another number has the sign of that one.
        let Cells::Longs(sums) = binary(Op::Add, &x, &y)?.cells else { return None };
        beyond =
            Mask::from_fn(cells.len(), |row| cells.get(row) == Some(&0) && sums.get(row).is_some_and(|sum| *sum < 0));
    }
    Some(finished(Cells::Any(Cow::Owned(Column::of_decimals(&cells, exponent)?)), null, left, beyond))
}

/// Dates moved by milliseconds.
fn moved<'a>(op: Op, dates: &Values<'_, i64>, by: &Values<'_, i64>) -> Option<(Cells<'a>, Mask)> {
    let (cells, mut beyond) = match op {
        Op::Add | Op::Subtract => int64s(arithmetic_of(op), dates, by),
        _ => return None,
    };
    // A date is moved back by adding the opposite, which the smallest number does not have.
    match by {
        Values::Cells(by) if op == Op::Subtract && by.contains(&i64::MIN) => {
            beyond.add(&Mask::of(Bitmap::from_slice(by, |by| *by == i64::MIN)));
        }
        Values::Same(i64::MIN) if op == Op::Subtract => return None,
        _ => {}
    }
    Some((Cells::Dates(cells.into()), beyond))
}

/// An operator that is a function of one double.
pub fn of_doubles<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let (Some(of_double), [vector]) = (operator.of_double, arguments.vectors) else { return None };
    each_double(vector, arguments.rows, &of_double)
}

/// A function of the doubles of a column. Those without a result are left out.
pub fn each_double<'a>(vector: &Vector<'_>, rows: usize, of_double: &dyn Fn(f64) -> Option<f64>) -> Option<Vector<'a>> {
    let cells = match typed(vector)? {
        Operand::Numbers(cells, _) => cells,
        Operand::Longs(cells) => cells.doubles(),
        Operand::Dates(_) => return None,
    };
    let cells = cells.cells(rows);
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
    let rows = arguments.rows;
    let (cells, beyond) = match typed(vector)? {
        Operand::Numbers(cells, int32s) => unary_numbers(op, &cells.cells(rows), int32s),
        Operand::Longs(cells) => match op {
            Op::Abs => {
                let cells = cells.cells(rows);
                // The smallest int64 has no opposite.
                let beyond = match cells.contains(&i64::MIN) {
                    true => Mask::of(Bitmap::from_slice(&cells, |n| *n == i64::MIN)),
                    false => Mask::NONE,
                };
                (Cells::Longs(cells.iter().map(|n| n.wrapping_abs()).collect()), beyond)
            }
            Op::Ceil | Op::Floor => (Cells::Longs(cells.cells(rows).into_owned().into()), Mask::NONE),
            _ => roots(&doubles(&cells.cells(rows))),
        },
        Operand::Dates(_) => return None,
    };
    Some(finished(cells, null, left, beyond))
}

fn unary_numbers<'a>(op: Op, cells: &[f64], int32s: Int32s) -> (Cells<'a>, Mask) {
    match op {
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
        Op::Ceil => (Cells::Numbers(cut(cells, &int32s, f64::ceil), int32s), Mask::NONE),
        Op::Floor => (Cells::Numbers(cut(cells, &int32s, f64::floor), int32s), Mask::NONE),
        _ => roots(cells),
    }
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
    let places = match arguments.at(1) {
        None => 0,
        // Null or missing ones make null, which is not decided here.
        Some(_) => Number::of(arguments.constants(&[0])?.get(1).copied().flatten()?)?.whole()?,
    };
    let vector = arguments.at(0)?;
    if !(-20..=100).contains(&places) {
        return None;
    }
    let (null, left) = (vector.absent(), vector.left.clone());
    let cells = match typed(vector)? {
        Operand::Numbers(cells, int32s) if places == 0 => {
            let to_integer = if op == Op::Round { f64::round_ties_even } else { f64::trunc };
            Cells::Numbers(cut(&cells.cells(arguments.rows), &int32s, to_integer), int32s)
        }
        Operand::Numbers(cells, int32s) if int32s == Int32s::None || places >= 0 => {
            let cells = cells.cells(arguments.rows);
            let is_double = |row: usize| !int32s.has(row);
            let cut =
                |(row, x): (usize, &f64)| if is_double(row) { cut_to_places(*x, places, op == Op::Round) } else { *x };
            Cells::Numbers(cells.iter().enumerate().map(cut).collect(), int32s)
        }
        Operand::Longs(cells) if places >= 0 => Cells::Longs(cells.cells(arguments.rows).into_owned().into()),
        _ => return None,
    };
    Some(finished(cells, null, left, Mask::NONE))
}
