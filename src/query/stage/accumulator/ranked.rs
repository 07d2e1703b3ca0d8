//! Accumulators that keep `n` values by rank: `$firstN`, `$lastN`, `$minN`, `$maxN`, `$top`, `$bottom`, `$topN`,
//! `$bottomN`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/accumulator_multi.cpp.

use std::cmp::Ordering;
use std::ops::Range;

use super::model::{Accumulator, Settings, Times, array_of, list_is_full};
use crate::block::Column;
use crate::error::{Error, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{Collation, Kind, OwnedValue, Value};

/// How cells are ranked, and which are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// The first cells: without keys all cells tie, and of ties the first ones stay.
    First,
    Last,
    /// By the values themselves, ascending; null does not count.
    Least,
    Greatest,
    /// Cells are objects of the output and its keys; keeps the first or the last by these.
    Top,
    Bottom,
}

/// The kept cells of each group, in key order.
pub(super) struct Ranked {
    rank: Rank,
    /// True if the result is a single value instead of a list.
    is_single: bool,
    /// The direction of each key.
    ascending: Vec<bool>,
    collation: Collation,
    groups: Vec<(usize, Vec<RankedEntry>)>,
    size_bytes: usize,
}

struct RankedEntry {
    keys: Vec<OwnedValue>,
    output: OwnedValue,
}

impl RankedEntry {
    fn size_bytes(&self) -> usize {
        self.keys.iter().chain([&self.output]).map(|value| value.tagged().len() + 32).sum()
    }
}

impl Ranked {
    pub fn new(rank: Rank, is_single: bool, settings: &Settings) -> Ranked {
        let ascending = match rank {
            // The place of the row follows the value, if rows come out of order.
            Rank::Least => vec![true, true],
            Rank::Greatest => vec![false, true],
            _ => settings.ascending.clone(),
        };
        Ranked { rank, is_single, ascending, collation: settings.collation.clone(), groups: Vec::new(), size_bytes: 0 }
    }

    /// The keys of a cell; `None` if it does not compete.
    fn entry(&self, cell: Value<'_>) -> Result<Option<RankedEntry>> {
        let (keys, output) = match self.rank {
            Rank::First | Rank::Last => (Vec::new(), cell),
            Rank::Least | Rank::Greatest if matches!(cell.kind(), Kind::Null | Kind::Undefined) => return Ok(None),
            Rank::Least | Rank::Greatest => (vec![cell.to_owned()], cell),
            Rank::Top | Rank::Bottom => {
                let (mut keys, mut arrays) = (Vec::new(), 0);
                let parts = cell.as_doc().and_then(|cell| cell.get("keys")?.as_array());
                for ((_, key), ascending) in parts.into_iter().flatten().zip(&self.ascending) {
                    arrays += usize::from(key.as_array().is_some());
                    keys.push(self.key(key, *ascending));
                }
                if arrays > 1 {
                    return Err(Error::bad_value("Cannot sort with keys that are parallel arrays"));
                }
                (keys, cell.as_doc().and_then(|cell| cell.get("output")).unwrap_or(Value::NULL))
            }
        };
        Ok(Some(RankedEntry { keys, output: output.to_owned() }))
    }

    /// For an array, the element that sorts first.
    fn key(&self, key: Value<'_>, ascending: bool) -> OwnedValue {
        let Some(array) = key.as_array() else { return key.to_owned() };
        let order = |a: &Value<'_>, b: &Value<'_>| directed(self.collation.compare(*a, *b), ascending);
        array
            .iter()
            .map(|(_, element)| element)
            .min_by(order)
            .unwrap_or(Value::new_checked(Kind::Undefined, &[]))
            .to_owned()
    }

    fn compare(&self, a: &RankedEntry, b: &RankedEntry) -> Ordering {
        let keys = a.keys.iter().zip(&b.keys).zip(&self.ascending);
        let each = keys.map(|((a, b), up)| directed(self.collation.compare(a.view(), b.view()), *up));
        each.fold(Ordering::Equal, Ordering::then)
    }

    fn offer(&self, (n, list): &mut (usize, Vec<RankedEntry>), new: RankedEntry) -> isize {
        let mut size_bytes = 0;
        if list.len() >= *n {
            // Of tied smallest values, the last one is dropped.
            let least = || list.partition_point(|known| list.first().is_some_and(|l| self.compare(known, l).is_le()));
            let worst = match self.rank {
                Rank::Last => 0,
                Rank::Bottom => least().saturating_sub(1),
                _ => list.len().saturating_sub(1),
            };
            let Some(order) = list.get(worst).map(|worst| self.compare(&new, worst)) else { return 0 };
            let wins = match self.rank {
                Rank::Last => true,
                Rank::Bottom => order.is_gt(),
                _ => order.is_lt(),
            };
            if !wins {
                return 0;
            }
            size_bytes -= list.remove(worst).size_bytes() as isize;
        }
        size_bytes += new.size_bytes() as isize;
        let at = list.partition_point(|known| self.compare(known, &new).is_le());
        list.insert(at, new);
        size_bytes
    }
}

fn directed(order: Ordering, ascending: bool) -> Ordering {
    if ascending { order } else { order.reverse() }
}

impl Accumulator for Ranked {
    fn grow(&mut self, n: usize) {
        self.groups.push((n, Vec::new()));
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        let Some(mut known) = self.groups.get_mut(group).map(std::mem::take) else { return Ok(()) };
        let mut scratch = Vec::new();
        for row in rows {
            let cell = cells.value(row, &mut scratch).unwrap_or(Value::NULL);
            if let Some(mut entry) = self.entry(cell)? {
                entry.keys.extend(times.map(|times| OwnedValue::int64(times.place(row))));
                self.size_bytes = self.size_bytes.saturating_add_signed(self.offer(&mut known, entry));
            }
            if self.size_bytes > STAGE_SIZE_BYTES_MAX {
                return Err(list_is_full());
            }
        }
        if let Some(group) = self.groups.get_mut(group) {
            *group = known;
        }
        Ok(())
    }

    fn value(&self, group: usize) -> OwnedValue {
        let list = self.groups.get(group).map_or(&[][..], |(_, list)| list);
        match (self.is_single, list.first()) {
            (true, Some(only)) => only.output.clone(),
            (true, None) => OwnedValue::null(),
            _ => array_of(&mut list.iter().map(|entry| entry.output.view())),
        }
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
