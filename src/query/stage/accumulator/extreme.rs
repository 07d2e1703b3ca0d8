//! `$min` and `$max`.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Accumulator, Times};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::value::{Collation, Kind, OwnedValue, Value};

/// Extremes of groups in the order of all values; null counts as nothing.
pub(super) struct Extremes {
    is_max: bool,
    /// The extreme, and where its row stands.
    groups: Vec<Option<(OwnedValue, i64)>>,
    collation: Collation,
}

impl Extremes {
    pub fn new(is_max: bool, collation: &Collation) -> Extremes {
        Extremes { is_max, groups: Vec::new(), collation: collation.clone() }
    }

    /// A value, and where its row stands: of those that compare equal, as 1 and 1.0 do, the first one stays.
    fn offer(&mut self, group: usize, value: Value<'_>, place: i64) {
        let better = if self.is_max { Ordering::Greater } else { Ordering::Less };
        if let Some(known) = self.groups.get_mut(group)
            && !matches!(value.kind(), Kind::Null | Kind::Undefined)
            && known.as_ref().is_none_or(|(known, first)| match self.collation.compare(value, known.view()) {
                Ordering::Equal => place < *first,
                order => order == better,
            })
        {
            *known = Some((value.to_owned(), place));
        }
    }
}

impl Accumulator for Extremes {
    fn grow(&mut self, _: usize) {
        self.groups.push(None);
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        // Of cells of one type the extreme of the range first. Not a number is below all numbers.
        let is_max = self.is_max;
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        let best = match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let gives_way = |x: f64, y: f64| if is_max { x < y || x.is_nan() } else { y < x || y.is_nan() };
                let all = cells.get(rows.clone()).unwrap_or_default();
                let best = all.iter().copied().reduce(|x, y| if gives_way(x, y) { y } else { x });
                // Zeros may differ in their signs.
                let is_best = |x: f64| best.is_some_and(|best| gives_way(x, best) == gives_way(best, x));
                let first = times.and_then(|times| {
                    let ties = all.iter().zip(rows.clone()).filter(|(x, _)| is_best(**x));
                    ties.map(|(x, row)| (times.place(row), *x)).min_by_key(|(place, _)| *place)
                });
                first.or(best.map(|best| (0, best))).map(|(place, x)| (OwnedValue::double(x), place))
            }
            (ColumnData::I32(cells), None) if times.is_none() => {
                extreme_of(cells.get(rows.clone()).unwrap_or_default(), wanted).map(|n| (OwnedValue::int32(n), 0))
            }
            // Nothing but itself equals a date.
            (ColumnData::Date(cells), None) => {
                extreme_of(cells.get(rows.clone()).unwrap_or_default(), wanted).map(|ms| (OwnedValue::date(ms), 0))
            }
            _ => None,
        };
        if let Some((value, place)) = best {
            self.offer(group, value.view(), place);
            return Ok(());
        }
        let mut scratch = Vec::new();
        for row in rows {
            if let Some(value) = cells.value(row, &mut scratch) {
                self.offer(group, value, times.map_or(0, |times| times.place(row)));
            }
        }
        Ok(())
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        if let Some((value, place)) = self.groups.get(from).cloned().flatten() {
            self.offer(into, value.view(), place);
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        self.groups.get(group).and_then(Option::as_ref).map_or_else(OwnedValue::null, |(value, _)| value.clone())
    }
}

fn extreme_of<T: Copy + Ord>(cells: &[T], wanted: Ordering) -> Option<T> {
    cells.iter().copied().reduce(|x, y| if y.cmp(&x) == wanted { y } else { x })
}
