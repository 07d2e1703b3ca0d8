//! Accumulators that show rows of their windows: the first by rank, the different ones, or all.

use std::ops::Range;

use kernels::places::Places;

use super::super::accumulator::{Picks, RankedRows};
use super::cells::{NOWHERE, cell, picked};
use super::slide::WindowValues;
use crate::block::Column;
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::NOTHING;
use crate::query::expr::ArrayWriter;
use crate::value::{Value, sort_by};

/// The values of the rows that are picked in each window, `n` at most. `None` if single values take too much memory.
///
/// Errors: those of `WindowValues`.
pub(super) fn shown_rows(picks: &Picks, n: usize, cells: &Column, windows: &[Range<usize>]) -> Result<Option<Column>> {
    let mut picked_rows = PickedRows::new(picks, cells);
    let mut rows = Vec::new();
    if let Picks::Ranked(RankedRows { is_single: true, .. }) = picks {
        let is_small = cells.value_bytes_max().saturating_mul(windows.len()) <= STAGE_SIZE_BYTES_MAX;
        let mut firsts = Vec::with_capacity(windows.len());
        for window in windows.iter().filter(|_| is_small) {
            picked_rows.of(window, n, &mut rows);
            firsts.push(rows.first().copied().unwrap_or(NOWHERE));
        }
        return Ok(is_small.then(|| picked(cells, &firsts, Value::NULL)));
    }
    let mut values = WindowValues::new(windows.len());
    let (mut array, mut before, mut scratch) = (ArrayWriter::new().finish(), Vec::new(), Vec::new());
    for window in windows {
        picked_rows.of(window, n, &mut rows);
        if rows != before {
            let mut writer = ArrayWriter::new();
            for row in &rows {
                writer.push(cells.value(*row as usize, &mut scratch));
            }
            array = writer.finish();
            before.clone_from(&rows);
        }
        values.push(array.view().unwrap_or(Value::NULL))?;
    }
    Ok(Some(values.finish()))
}

/// Picks rows of one window after the other.
struct PickedRows<'a> {
    picks: &'a Picks,
    cells: &'a Column,
    held: Range<usize>,
    /// What is picked from: the places of ranked rows, or the first rows of each number.
    set: Places,
    /// For each row, its place in that set (`NOWHERE` if it has none), and the rows before and behind it with its number.
    links: Vec<Links>,
    /// The rank by which each row is shown.
    ranks: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Links {
    place: u32,
    before: u32,
    behind: u32,
}

impl Links {
    const NONE: Links = Links { place: NOWHERE, before: NOWHERE, behind: NOWHERE };
}

impl<'a> PickedRows<'a> {
    fn new(picks: &'a Picks, cells: &'a Column) -> PickedRows<'a> {
        let (mut links, mut ranks) = (Vec::new(), Vec::new());
        match picks {
            Picks::Ranked(RankedRows { rows, shown, .. }) => {
                links.resize(cells.len(), Links::NONE);
                for (place, row) in (0..).zip(rows) {
                    if let Some(links) = links.get_mut(*row as usize) {
                        links.place = place;
                    }
                }
                if let Some(shown) = shown {
                    ranks.resize(cells.len(), 0);
                    for (rank, row) in (0..).zip(shown) {
                        if let Some(slot) = ranks.get_mut(*row as usize) {
                            *slot = rank;
                        }
                    }
                }
            }
            Picks::Distinct(numbers) => {
                let mut last = Vec::new();
                for (row, number) in (0..).zip(numbers) {
                    links.push(Links::NONE);
                    if *number == NOTHING {
                        continue;
                    }
                    if last.len() <= *number as usize {
                        last.resize(*number as usize + 1, NOWHERE);
                    }
                    let before = last.get_mut(*number as usize).map_or(NOWHERE, |last| std::mem::replace(last, row));
                    if let Some(links) = links.get_mut(before as usize) {
                        links.behind = row;
                    }
                    if let Some(links) = links.last_mut() {
                        (links.place, links.before) = (row, before);
                    }
                }
            }
            Picks::Present | Picks::First | Picks::Last => {}
        }
        PickedRows { picks, cells, held: 0..0, set: Places::new(links.len()), links, ranks }
    }

    /// The rows of a window, in the order in which they are shown.
    fn of(&mut self, window: &Range<usize>, n: usize, rows: &mut Vec<u32>) {
        rows.clear();
        let all = |range: Range<usize>| range.map(|row| row as u32);
        match self.picks {
            Picks::Present => rows.extend(all(window.clone()).filter(|row| self.cells.is_present(*row as usize))),
            Picks::First => rows.extend(all(window.start..window.end.min(window.start.saturating_add(n)))),
            Picks::Last => rows.extend(all(window.start.max(window.end.saturating_sub(n))..window.end)),
            Picks::Distinct(_) => {
                self.move_to(window);
                self.set.least(usize::MAX, rows);
            }
            Picks::Ranked(ranked) => {
                self.move_to(window);
                self.set.least(n, rows);
                rows.iter_mut().for_each(|place| *place = cell(&ranked.rows, *place as usize));
                if ranked.shown.is_some() {
                    let rank = |row: &u32| cell(&self.ranks, *row as usize);
                    sort_by(rows, |a, b| rank(a).cmp(&rank(b)));
                }
            }
        }
    }

    fn move_to(&mut self, window: &Range<usize>) {
        let held = std::mem::replace(&mut self.held, window.clone());
        let goes_on = held.start <= window.start && window.start <= held.end && held.end <= window.end;
        let kept = if goes_on { window.start..held.end } else { held.end..held.end };
        let links = |row: usize| self.links.get(row).copied().unwrap_or(Links::NONE);
        for links in (held.start..kept.start).map(links) {
            self.set.remove(links.place);
            // The next row with the same number takes its place.
            if (links.behind as usize) < kept.end {
                self.set.insert(links.behind);
            }
        }
        for links in (if goes_on { kept.end } else { window.start }..window.end).map(links) {
            let is_first = links.before == NOWHERE || (links.before as usize) < window.start;
            if links.place != NOWHERE && is_first {
                self.set.insert(links.place);
            }
        }
    }
}
