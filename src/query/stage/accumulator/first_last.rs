//! `$first`, `$last`, and `$mergeObjects`, which also depends on the order of rows.

use std::ops::Range;

use super::model::{Accumulator, Inputs, Times, each_cell};
use crate::block::{Column, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, DocWriter, Kind, OwnedValue, Value};

/// The first or last values of groups; a missing value becomes null.
pub(super) struct FirstOrLast {
    is_last: bool,
    groups: Vec<Option<OwnedValue>>,
    /// The place of each value's row, if rows come out of order.
    places: Vec<i64>,
    /// While rows are added, the row that each group takes its value from, or `NO_ROW`.
    rows: Vec<u32>,
    size_bytes: usize,
}

const NO_ROW: u32 = u32::MAX;

impl FirstOrLast {
    pub fn new(is_last: bool) -> FirstOrLast {
        FirstOrLast { is_last, groups: Vec::new(), places: Vec::new(), rows: Vec::new(), size_bytes: 0 }
    }

    /// Sets the values of groups to those of rows, one of each.
    fn set(&mut self, groups: &[usize], inputs: &Inputs<'_>, rows: &[u32]) -> Result<()> {
        let mut scratch = Vec::new();
        inputs.each_shown(rows, &mut |at, cells, row| {
            if let Some(known) = groups.get(at).and_then(|group| self.groups.get_mut(*group)) {
                let value = cells.value(row, &mut scratch).unwrap_or(Value::NULL).to_owned();
                self.size_bytes += value.tagged().len();
                self.size_bytes -= known.replace(value).map_or(0, |before| before.tagged().len());
            }
        })
    }
}

/// Of rows with equal times, the one that comes first is the first.
fn is_better(is_last: bool, place: i64, than: i64) -> bool {
    if is_last { place >= than } else { place < than }
}

impl Accumulator for FirstOrLast {
    fn grow(&mut self, _: usize) {
        self.groups.push(None);
        self.places.push(0);
        self.rows.push(NO_ROW);
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        let Some(times) = times else {
            let row = if self.is_last { rows.end.saturating_sub(1) } else { rows.start };
            if self.is_last || self.groups.get(group).is_some_and(Option::is_none) {
                self.set(&[group], inputs, &[row as u32])?;
            }
            return Ok(());
        };
        let is_last = self.is_last;
        let is_better = |place: i64, than: i64| is_better(is_last, place, than);
        let mut best = self.groups.get(group).and_then(Option::as_ref).and_then(|_| self.places.get(group)).copied();
        let mut chosen = None;
        for row in rows {
            let place = times.place(row);
            if best.is_none_or(|best| is_better(place, best)) {
                (best, chosen) = (Some(place), Some(row));
            }
        }
        if let (Some(row), Some(best)) = (chosen, best) {
            self.set(&[group], inputs, &[row as u32])?;
            self.places.get_mut(group).into_iter().for_each(|place| *place = best);
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        let FirstOrLast { is_last, groups: values, places, rows: chosen, .. } = self;
        let mut touched = Vec::new();
        for (row, group) in (0..).skip(rows.start).zip(groups) {
            let at = *group as usize;
            let (Some(chosen), Some(known)) = (chosen.get_mut(at), values.get(at)) else { continue };
            let is_first = *chosen == NO_ROW;
            let is_known = !is_first || known.is_some();
            if let (Some(times), Some(best)) = (times, places.get_mut(at)) {
                let place = times.place(row as usize);
                if is_known && !is_better(*is_last, place, *best) {
                    continue;
                }
                *best = place;
            } else if is_known && !*is_last {
                continue;
            }
            *chosen = row;
            if is_first {
                touched.push(at);
            }
        }
        let take = |group: &usize| self.rows.get_mut(*group).map_or(NO_ROW, |row| std::mem::replace(row, NO_ROW));
        let rows: Vec<u32> = touched.iter().map(take).collect();
        self.set(&touched, inputs, &rows)
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        see(self.groups.get(group).and_then(Option::as_ref).map_or(Value::NULL, OwnedValue::view));
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

/// True for objects that all have the same fields, so that each replaces those before it.
fn has_all_fields(cells: &Column) -> bool {
    let ColumnData::Objects(objects) = cells.data() else { return false };
    objects.scalars().iter().all(|scalar| scalar.presence().is_none()) && objects.fields().is_some()
}

/// The merged fields of all objects of a group; the last value of each field wins.
#[derive(Default)]
pub(super) struct Merged {
    groups: Vec<OwnedValue>,
}

impl Accumulator for Merged {
    fn grow(&mut self, _: usize) {
        self.groups.push(OwnedValue::doc(DocWriter::new().finish().view()));
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(merged) = self.groups.get_mut(group) else { return Ok(()) };
        let rows =
            if has_all_fields(&inputs.cells) { rows.end.saturating_sub(1).max(rows.start)..rows.end } else { rows };
        each_cell(&inputs.cells, rows, &mut |_, value| {
            if matches!(value.kind(), Kind::Null | Kind::Undefined) {
                return Ok(());
            }
            let Some(new) = value.as_doc() else {
                let message =
                    format!("$mergeObjects requires object inputs, but input is of type {}", value.kind().alias());
                return Err(Error::new(ErrorCode::Location40400, message));
            };
            let mut writer = DocWriter::new();
            let known = merged.view().as_doc().unwrap_or(Doc::EMPTY);
            if known.iter().map(|(name, _)| name).eq(new.iter().map(|(name, _)| name)) {
                *merged = OwnedValue::doc(new);
                return Ok(());
            }
            for (name, value) in known {
                writer.value(name, new.get(name).unwrap_or(value));
            }
            for (name, value) in new.iter().filter(|(name, _)| known.get(name).is_none()) {
                writer.value(name, value);
            }
            *merged = OwnedValue::doc(writer.finish().view());
            Ok(())
        })
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        see(self.groups.get(group).map_or(Value::NULL, OwnedValue::view));
    }

    fn size_bytes(&self) -> usize {
        self.groups.iter().map(|merged| merged.tagged().len()).sum()
    }
}
