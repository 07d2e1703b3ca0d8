//! `$min` and `$max`.

use std::cmp::Ordering;
use std::ops::Range;

use super::kernels::{extreme_of, extreme_of_doubles};
use super::model::{Accumulator, Inputs, Times, each_cell};
use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::value::{Collation, Kind, OwnedValue, Value};

/// Extremes of groups in BSON order; null does not count.
pub(super) struct ExtremeValues {
    is_max: bool,
    groups: Vec<Extreme>,
    /// The place of each extreme's row, if rows come out of order.
    places: Vec<i64>,
    collation: Collation,
}

/// The extreme of a group. Numbers and dates take no memory of their own.
#[derive(Clone, Default)]
enum Extreme {
    #[default]
    None,
    Double(f64),
    Int32(i32),
    Int64(i64),
    Date(i64),
    Other(OwnedValue),
}

impl Extreme {
    fn of(value: Value<'_>) -> Extreme {
        let typed = match value.kind() {
            Kind::Double => value.as_f64().map(Extreme::Double),
            Kind::Int32 => value.as_i32().map(Extreme::Int32),
            Kind::Int64 => value.as_i64().map(Extreme::Int64),
            Kind::Date => value.as_date_ms().map(Extreme::Date),
            _ => None,
        };
        typed.unwrap_or_else(|| Extreme::Other(value.to_owned()))
    }

    fn as_double(&mut self) -> Option<&mut f64> {
        if let Extreme::Double(x) = self { Some(x) } else { None }
    }

    fn as_int32(&mut self) -> Option<&mut i32> {
        if let Extreme::Int32(n) = self { Some(n) } else { None }
    }

    fn as_int64(&mut self) -> Option<&mut i64> {
        if let Extreme::Int64(n) = self { Some(n) } else { None }
    }

    fn as_date(&mut self) -> Option<&mut i64> {
        if let Extreme::Date(ms) = self { Some(ms) } else { None }
    }

    fn see<T>(&self, see: impl FnOnce(Option<Value<'_>>) -> T) -> T {
        let (kind, bytes) = match self {
            Extreme::None => return see(None),
            Extreme::Other(value) => return see(Some(value.view())),
            Extreme::Double(x) => (Kind::Double, x.to_le_bytes()),
            Extreme::Int64(n) => (Kind::Int64, n.to_le_bytes()),
            Extreme::Date(ms) => (Kind::Date, ms.to_le_bytes()),
            Extreme::Int32(n) => return see(Some(Value::new_checked(Kind::Int32, &n.to_le_bytes()))),
        };
        see(Some(Value::new_checked(kind, &bytes)))
    }
}

/// Typed cells, and how they become the extreme of a group.
struct Cells<'a, T> {
    cells: &'a [T],
    presence: Option<&'a Bitmap>,
    times: Option<&'a Times<'a>>,
    extreme: fn(T) -> Extreme,
}

impl ExtremeValues {
    pub fn new(is_max: bool, collation: &Collation) -> ExtremeValues {
        ExtremeValues { is_max, groups: Vec::new(), places: Vec::new(), collation: collation.clone() }
    }

    /// A value and the place of its row. Of values that compare equal, such as 1 and 1.0, the first one stays.
    fn offer(&mut self, group: usize, value: Value<'_>, place: i64) {
        let wanted = if self.is_max { Ordering::Greater } else { Ordering::Less };
        let collation = &self.collation;
        if let (Some(known), Some(first)) = (self.groups.get_mut(group), self.places.get_mut(group))
            && !matches!(value.kind(), Kind::Null | Kind::Undefined)
            && known.see(|known| match known.map(|known| collation.compare(value, known)) {
                Some(Ordering::Equal) => place < *first,
                order => order.is_none_or(|order| order == wanted),
            })
        {
            (*known, *first) = (Extreme::of(value), place);
        }
    }

    /// Offers each cell of these rows to the group of its row. `known` is the extreme of a group if it has this type.
    fn offer_each<T: Copy>(
        &mut self,
        groups: &[u32],
        rows: Range<usize>,
        of: &Cells<'_, T>,
        known: impl Fn(&mut Extreme) -> Option<&mut T>,
        compare: impl Fn(T, T) -> Ordering,
    ) {
        let wanted = if self.is_max { Ordering::Greater } else { Ordering::Less };
        for (row, group) in rows.zip(groups) {
            let (group, Some(cell)) = (*group as usize, of.cells.get(row).copied()) else { continue };
            if of.presence.is_some_and(|presence| !presence.get(row)) {
                continue;
            }
            match self.groups.get_mut(group).and_then(&known) {
                Some(best) => {
                    let order = compare(cell, *best);
                    if order == wanted {
                        *best = cell;
                        if let (Some(times), Some(place)) = (of.times, self.places.get_mut(group)) {
                            *place = times.place(row);
                        }
                    } else if let (Ordering::Equal, Some(times), Some(place)) =
                        (order, of.times, self.places.get_mut(group))
                        && times.place(row) < *place
                    {
                        (*best, *place) = (cell, times.place(row));
                    }
                }
                None => {
                    let place = of.times.map_or(0, |times| times.place(row));
                    (of.extreme)(cell).see(|value| value.into_iter().for_each(|value| self.offer(group, value, place)));
                }
            }
        }
    }

    fn offer_values(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        cells: &Column,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        each_cell(cells, rows, &mut |row, value| {
            self.offer(group_of(row), value, times.map_or(0, |times| times.place(row)));
            Ok(())
        })
    }
}

impl Accumulator for ExtremeValues {
    fn grow(&mut self, _: usize) {
        self.groups.push(Extreme::None);
        self.places.push(0);
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        // In a typed column: first the extreme of the range, then the first cell that equals it.
        let (is_max, cells) = (self.is_max, &inputs.cells);
        let range = rows.clone();
        let best = match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                extreme_of_doubles(cells.get(range).unwrap_or_default(), is_max).map(|best| {
                    let is_best =
                        |row: usize| cells.get(row).is_some_and(|x| *x == best || x.is_nan() && best.is_nan());
                    let (row, place) = first(rows.clone(), times, &is_best);
                    // Zeros may differ in their signs.
                    (Extreme::Double(row.and_then(|row| cells.get(row)).copied().unwrap_or(best)), place)
                })
            }
            (ColumnData::I32(cells), None) => extreme_of(cells.get(range).unwrap_or_default(), is_max).map(|best| {
                let (_, place) = first(rows.clone(), times, &|row| cells.get(row) == Some(&best));
                (Extreme::Int32(best), place)
            }),
            (ColumnData::I64(cells), None) => extreme_of(cells.get(range).unwrap_or_default(), is_max).map(|best| {
                let (_, place) = first(rows.clone(), times, &|row| cells.get(row) == Some(&best));
                (Extreme::Int64(best), place)
            }),
            // Dates that compare equal are identical.
            (ColumnData::Date(cells), None) => {
                extreme_of(cells.get(range).unwrap_or_default(), is_max).map(|best| (Extreme::Date(best), 0))
            }
            _ => None,
        };
        if let Some((extreme, place)) = best {
            extreme.see(|value| value.into_iter().for_each(|value| self.offer(group, value, place)));
            return Ok(());
        }
        self.offer_values(&|_| group, cells, rows, times)
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        fn of<'a, T>(
            cells: &'a [T],
            column: &'a Column,
            times: Option<&'a Times<'a>>,
            extreme: fn(T) -> Extreme,
        ) -> Cells<'a, T> {
            Cells { cells, presence: column.presence(), times, extreme }
        }
        let column = &inputs.cells;
        match column.data() {
            ColumnData::F64(cells) => {
                let order = |x: f64, y: f64| x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()));
                self.offer_each(groups, rows, &of(cells, column, times, Extreme::Double), Extreme::as_double, order);
            }
            ColumnData::I32(cells) => {
                self.offer_each(groups, rows, &of(cells, column, times, Extreme::Int32), Extreme::as_int32, |m, n| {
                    m.cmp(&n)
                });
            }
            ColumnData::I64(cells) => {
                self.offer_each(groups, rows, &of(cells, column, times, Extreme::Int64), Extreme::as_int64, |m, n| {
                    m.cmp(&n)
                });
            }
            ColumnData::Date(cells) => {
                self.offer_each(groups, rows, &of(cells, column, times, Extreme::Date), Extreme::as_date, |m, n| {
                    m.cmp(&n)
                });
            }
            _ => {
                let start = rows.start;
                let group_of = |row: usize| groups.get(row - start).map_or(usize::MAX, |group| *group as usize);
                self.offer_values(&group_of, column, rows, times)?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let place = self.places.get(from).copied().unwrap_or_default();
        let from = self.groups.get(from).cloned().unwrap_or_default();
        from.see(|value| value.into_iter().for_each(|value| self.offer(into, value, place)));
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        let value = |value: Option<Value<'_>>| value.unwrap_or(Value::NULL).to_owned();
        self.groups.get(group).map_or_else(OwnedValue::null, |extreme| extreme.see(value))
    }

    fn put(&self, group: usize, to: &mut ColumnBuilder) {
        let extreme = self.groups.get(group).unwrap_or(&Extreme::None);
        extreme.see(|value| to.push(value.unwrap_or(Value::NULL)));
    }
}

/// The first row for which the condition holds, and its place, if rows come out of order.
fn first(rows: Range<usize>, times: Option<&Times<'_>>, holds: &dyn Fn(usize) -> bool) -> (Option<usize>, i64) {
    let Some(times) = times else { return (None, 0) };
    let first = rows.filter(|row| holds(*row)).min_by_key(|row| times.place(*row));
    (first, first.map_or(0, |row| times.place(row)))
}
