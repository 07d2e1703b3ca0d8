//! Sums and deviations of windows over flat vectors.

use std::ops::Range;

use kernels::{tagged, windows};

use super::cells::{cell, except};
use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData, of_kind};
use crate::value::{Kind, OwnedValue, Value};

/// The sum of no numbers.
pub(super) fn no_sum() -> Value<'static> {
    Value::new_checked(Kind::Int32, &[0; 4])
}

/// The sums of doubles, or their means.
pub(super) fn double_sums(cells: &[f64], present: Option<&Bitmap>, of: &[Range<usize>], is_mean: bool) -> Column {
    let (sums, empty) = windows::sums(of_present(cells, present), of, is_mean);
    without(sums, &empty, if is_mean { Value::NULL } else { no_sum() })
}

/// The standard deviations of numbers; of a sample, or of all there are.
pub(super) fn deviations(cells: &[f64], present: Option<&Bitmap>, of: &[Range<usize>], is_sample: bool) -> Column {
    let (found, too_few) = windows::deviations(of_present(cells, present), of, is_sample);
    without(found, &too_few, Value::NULL)
}

fn of_present<'a>(cells: &'a [f64], present: Option<&'a Bitmap>) -> windows::Cells<'a> {
    windows::Cells { cells, present: present.map(Bitmap::words) }
}

/// Doubles, with another value in some rows.
fn without(cells: Vec<f64>, rows: &[u32], value: Value<'_>) -> Column {
    let others: Vec<_> = rows.iter().map(|row| (*row as usize, value)).collect();
    except(ColumnData::F64(cells), &others)
}

/// The sums of integers, or their means. Integers are exact, so these subtract what all rows up to each end add up to.
pub(super) fn integer_sums(column: &Column, windows: &[Range<usize>], is_mean: bool) -> Option<Column> {
    let mut up_to = vec![(0_i128, 0_u32)];
    let mut last = (0, 0);
    let mut add = |row: usize, cell: i64| {
        if column.is_present(row) {
            last = (last.0 + i128::from(cell), last.1 + 1);
        }
        up_to.push(last);
    };
    let is_long = match column.data() {
        ColumnData::I32(cells) => {
            cells.iter().enumerate().for_each(|(row, cell)| add(row, i64::from(*cell)));
            false
        }
        ColumnData::I64(cells) => {
            cells.iter().enumerate().for_each(|(row, cell)| add(row, *cell));
            true
        }
        _ => return None,
    };
    let between = |window: &Range<usize>| {
        let (from, to) = (cell(&up_to, window.start), cell(&up_to, window.end));
        (to.0 - from.0, to.1 - from.1)
    };
    let sums: Vec<(i128, u32)> = windows.iter().map(between).collect();
    Some(if is_mean { means(&sums) } else { totals(&sums, is_long) })
}

/// The sums of doubles and int32s, or their means; `None` if the column has values of other types than these and null. As
/// everywhere, the sum of the integers is exact and added to that of the doubles.
pub(super) fn mixed_sums(column: &Column, of: &[Range<usize>], is_mean: bool) -> Option<Column> {
    let ColumnData::Bson(cells) = column.data() else { return None };
    let (kinds, words) = cells.to_words();
    let (doubles, ..) = tagged::doubles_and_int32s(&kinds, &words)?;
    let is_double = of_kind(&kinds, Kind::Double.byte());
    let (sums, _) = windows::sums(of_present(&doubles, Some(&is_double)), of, false);
    // Up to each row: the int32s, how many these are, and how many doubles.
    let mut up_to = vec![(0_i64, 0_u32, 0_u32)];
    let mut last = (0, 0, 0);
    for (kind, word) in kinds.iter().zip(&words) {
        match Kind::from_byte(*kind) {
            Some(Kind::Int32) => last = (last.0 + i64::from(*word as i32), last.1 + 1, last.2),
            Some(Kind::Double) => last.2 += 1,
            _ => {}
        }
        up_to.push(last);
    }
    let within = |window: &Range<usize>| {
        let (from, to) = (cell(&up_to, window.start), cell(&up_to, window.end));
        (to.0 - from.0, to.1 - from.1, to.2 - from.2)
    };
    // The sum as a double, and how many numbers are in it.
    let total = |(window, sum): (&Range<usize>, &f64)| {
        let (integers, int32s, doubles) = within(window);
        (sum + near_double(integers.into()), f64::from(doubles) + f64::from(int32s))
    };
    let totals = || of.iter().zip(&sums).map(total);
    if is_mean {
        let none: Vec<_> =
            totals().enumerate().filter(|(_, (_, count))| *count == 0.0).map(|(row, _)| (row, Value::NULL)).collect();
        return Some(except(ColumnData::F64(totals().map(|(sum, count)| sum / count.max(1.0)).collect()), &none));
    }
    if of.iter().all(|window| within(window).2 > 0) {
        return Some(Column::new(ColumnData::F64(totals().map(|(sum, _)| sum).collect()), None));
    }
    let mut builder = ColumnBuilder::with_capacity(of.len());
    for (window, (sum, _)) in of.iter().zip(totals()) {
        let (integers, _, doubles) = within(window);
        let value = match i32::try_from(integers) {
            _ if doubles > 0 => OwnedValue::double(sum),
            Ok(integer) => OwnedValue::int32(integer),
            Err(_) => OwnedValue::int64(integers),
        };
        builder.push(value.view());
    }
    Some(builder.finish())
}

fn means(sums: &[(i128, u32)]) -> Column {
    let others: Vec<_> =
        sums.iter().enumerate().filter(|(_, sum)| sum.1 == 0).map(|(row, _)| (row, Value::NULL)).collect();
    let mean = |(sum, count): &(i128, u32)| near_double(*sum) / f64::from((*count).max(1));
    except(ColumnData::F64(sums.iter().map(mean).collect()), &others)
}

/// Sums as int32s, int64s or doubles: the smallest type that holds them, and none below that of the values.
fn totals(sums: &[(i128, u32)], is_long: bool) -> Column {
    let ints: Option<Vec<i32>> = sums.iter().map(|(sum, _)| i32::try_from(*sum).ok().filter(|_| !is_long)).collect();
    if let Some(ints) = ints {
        return Column::new(ColumnData::I32(ints), None);
    }
    let longs: Option<Vec<i64>> =
        sums.iter().map(|(sum, count)| i64::try_from(*sum).ok().filter(|_| is_long && *count > 0)).collect();
    if let Some(longs) = longs {
        return Column::new(ColumnData::I64(longs), None);
    }
    let mut builder = ColumnBuilder::with_capacity(sums.len());
    for (sum, count) in sums {
        let value = match (i32::try_from(*sum), i64::try_from(*sum)) {
            (Ok(n), _) if !is_long || *count == 0 => OwnedValue::int32(n),
            (_, Ok(n)) => OwnedValue::int64(n),
            _ => OwnedValue::double(near_double(*sum)),
        };
        builder.push(value.view());
    }
    builder.finish()
}

#[allow(clippy::cast_precision_loss)]
fn near_double(n: i128) -> f64 {
    i64::try_from(n).map_or(n as f64, |n| n as f64)
}
