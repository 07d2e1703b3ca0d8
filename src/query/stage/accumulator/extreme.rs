//! `$min` and `$max`.

use std::cmp::Ordering;
use std::ops::Range;

use super::model::{Accumulator, Times};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::value::{Collation, Kind, OwnedValue, Value};

/// Extremes of groups in BSON order; null does not count.
pub(super) struct ExtremeValues {
    is_max: bool,
    /// The extreme, and the place of its row.
    groups: Vec<Option<(OwnedValue, i64)>>,
    collation: Collation,
}

impl ExtremeValues {
    pub fn new(is_max: bool, collation: &Collation) -> ExtremeValues {
        ExtremeValues { is_max, groups: Vec::new(), collation: collation.clone() }
    }

    /// A value and the place of its row. Of values that compare equal, such as 1 and 1.0, the first one stays.
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

impl Accumulator for ExtremeValues {
    fn grow(&mut self, _: usize) {
        self.groups.push(None);
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        // In a typed column: first the extreme of the range, then the first cell that equals it. NaN sorts below all
        // numbers.
        let (is_max, range) = (self.is_max, rows.clone());
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        let best = match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let gives_way = |x: f64, y: f64| if is_max { x < y || x.is_nan() } else { y < x || y.is_nan() };
                let range = cells.get(range).unwrap_or_default();
                range.iter().copied().reduce(|x, y| if gives_way(x, y) { y } else { x }).map(|best| {
                    let is_best =
                        |row: usize| cells.get(row).is_some_and(|x| gives_way(*x, best) == gives_way(best, *x));
                    let (row, place) = first(rows.clone(), times, &is_best);
                    // Zeros may differ in their signs.
                    let best = row.and_then(|row| cells.get(row)).copied().unwrap_or(best);
                    (OwnedValue::double(best), place)
                })
            }
            (ColumnData::I32(cells), None) => extreme_of(cells.get(range).unwrap_or_default(), wanted).map(|best| {
                let (_, place) = first(rows.clone(), times, &|row| cells.get(row) == Some(&best));
                (OwnedValue::int32(best), place)
            }),
            // Dates that compare equal are identical.
            (ColumnData::Date(cells), None) => {
                extreme_of(cells.get(range).unwrap_or_default(), wanted).map(|best| (OwnedValue::date(best), 0))
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

/// The first row for which the condition holds, and its place, if rows come out of order.
fn first(rows: Range<usize>, times: Option<&Times<'_>>, holds: &dyn Fn(usize) -> bool) -> (Option<usize>, i64) {
    let Some(times) = times else { return (None, 0) };
    let first = rows.filter(|row| holds(*row)).min_by_key(|row| times.place(*row));
    (first, first.map_or(0, |row| times.place(row)))
}

fn extreme_of<T: Copy + Ord>(cells: &[T], wanted: Ordering) -> Option<T> {
    cells.iter().copied().reduce(|x, y| if y.cmp(&x) == wanted { y } else { x })
}
