//! `$min` and `$max`.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Accumulator, each_cell};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::value::{Collation, Kind, OwnedValue, Value};

/// Extremes of groups in the order of all values; null counts as nothing.
pub(super) struct Extremes {
    is_max: bool,
    groups: Vec<Option<OwnedValue>>,
    collation: Collation,
}

impl Extremes {
    pub fn new(is_max: bool, collation: &Collation) -> Extremes {
        Extremes { is_max, groups: Vec::new(), collation: collation.clone() }
    }

    fn offer(&mut self, group: usize, value: Value<'_>) {
        let better = if self.is_max { Ordering::Greater } else { Ordering::Less };
        if let Some(known) = self.groups.get_mut(group)
            && !matches!(value.kind(), Kind::Null | Kind::Undefined)
            && known.as_ref().is_none_or(|known| self.collation.compare(value, known.view()) == better)
        {
            *known = Some(value.to_owned());
        }
    }
}

impl Accumulator for Extremes {
    fn grow(&mut self, _: usize) {
        self.groups.push(None);
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        // Of cells of one type the extreme of the range first. Not a number is below all numbers.
        let wanted = if self.is_max { Ordering::Greater } else { Ordering::Less };
        let of_range = match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let is_max = self.is_max;
                let gives_way = |x: f64, y: f64| if is_max { x < y || x.is_nan() } else { y < x || y.is_nan() };
                let cells = cells.get(rows.clone()).unwrap_or_default();
                let pick = |x: f64, y: &f64| if gives_way(x, *y) { *y } else { x };
                cells.split_first().map(|(first, rest)| OwnedValue::double(rest.iter().fold(*first, pick)))
            }
            (ColumnData::I32(cells), None) => {
                extreme_of(cells.get(rows.clone()).unwrap_or_default(), wanted).map(OwnedValue::int32)
            }
            (ColumnData::Date(cells), None) => {
                extreme_of(cells.get(rows.clone()).unwrap_or_default(), wanted).map(OwnedValue::date)
            }
            _ => None,
        };
        if let Some(value) = of_range {
            self.offer(group, value.view());
            return Ok(());
        }
        each_cell(cells, rows, &mut |value| {
            self.offer(group, value);
            Ok(())
        })
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        if let Some(value) = self.groups.get(from).cloned().flatten() {
            self.offer(into, value.view());
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        self.groups.get(group).cloned().flatten().unwrap_or_else(OwnedValue::null)
    }
}

fn extreme_of<T: Copy + Ord>(cells: &[T], wanted: Ordering) -> Option<T> {
    cells.iter().copied().reduce(|x, y| if y.cmp(&x) == wanted { y } else { x })
}
