//! Sums and deviations of windows over flat vectors.

use std::ops::Range;

use kernels::windows;

use super::cells::{cell, except};
use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData};
use crate::listed::IntoList;
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

/// The sums of a column of doubles, int32s and nulls, whose `numbers` as doubles are given. Without a double, a sum is an
/// integer.
pub(super) fn mixed_sums(column: &Column, numbers: &Column, of: &[Range<usize>]) -> Option<Column> {
    let (ColumnData::Bson(cells), ColumnData::F64(doubles)) = (column.data(), numbers.data()) else { return None };
    let sums = double_sums(doubles, numbers.presence(), of, false);
    // Up to each row: the sum of the int32s, and the number of doubles.
    let mut up_to = vec![(0_i64, 0_u32)];
    let mut last = (0, 0);
    let (kinds, words) = cells.to_words();
    for (kind, word) in kinds.iter().zip(&words) {
        match Kind::from_byte(*kind) {
            Some(Kind::Int32) => last.0 += i64::from(*word as i32),
            Some(Kind::Double) => last.1 += 1,
            _ => {}
        }
        up_to.push(last);
    }
    let without_double = |window: &Range<usize>| {
        let (from, to) = (cell(&up_to, window.start), cell(&up_to, window.end));
        (from.1 == to.1).then_some(to.0 - from.0)
    };
    if of.iter().all(|window| without_double(window).is_none()) {
        return Some(sums);
    }
    let (mut builder, mut scratch) = (ColumnBuilder::with_capacity(of.len()), Vec::new());
    for (row, window) in of.iter().enumerate() {
        match without_double(window).map(|integers| (integers, i32::try_from(integers))) {
            None => builder.push(sums.value(row, &mut scratch).unwrap_or(Value::NULL)),
            Some((_, Ok(integer))) => builder.push(OwnedValue::int32(integer).view()),
            Some((integers, _)) => builder.push(OwnedValue::int64(integers).view()),
        }
    }
    Some(builder.finish())
}

fn means(sums: &[(i128, u32)]) -> Column {
    let others: Vec<_> =
        sums.iter().enumerate().filter(|(_, sum)| sum.1 == 0).map(|(row, _)| (row, Value::NULL)).listed();
    let mean = |(sum, count): &(i128, u32)| near_double(*sum) / f64::from((*count).max(1));
    except(ColumnData::F64(sums.iter().map(mean).collect()), &others)
}

/// Sums as int32s, int64s or doubles: the smallest type that holds them, and none below that of the values.
fn totals(sums: &[(i128, u32)], is_long: bool) -> Column {
    let ints: Option<Vec<i32>> =
        sums.iter().map(|(sum, _)| i32::try_from(*sum).ok().filter(|_| !is_long)).listed_if_all();
    if let Some(ints) = ints {
        return Column::new(ColumnData::I32(ints), None);
    }
    let longs: Option<Vec<i64>> =
        sums.iter().map(|(sum, count)| i64::try_from(*sum).ok().filter(|_| is_long && *count > 0)).listed_if_all();
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
