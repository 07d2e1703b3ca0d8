//! A number for each row.

use std::ops::Range;

use kernels::{gather, runs, table};

use super::pairs::Pairs;

/// Rows go by runs if their runs have at least this many rows on average.
const RUN_ROWS_MIN: usize = 8;

/// Runs of cells are numbered one by one unless there are more than this.
pub(super) fn runs_max(rows: usize) -> usize {
    (rows / 2).max(1)
}

/// A number for each row of a range.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// All rows have the same one.
    One(u32),
    /// Consecutive rows with one number, and where they end, counted from the start of the range.
    Runs(Vec<(u32, usize)>),
    /// One per row.
    Each(Vec<u32>),
}

impl Numbers {
    /// The number of each of `cells`; `number` is asked in order, and perhaps only once for each run of equal cells.
    pub fn of_codes(cells: &[u32], number: &mut dyn FnMut(u32) -> u32) -> Numbers {
        match runs::ends_of_codes(cells, runs_max(cells.len())) {
            Some(ends) => Numbers::of_ends(&ends, &mut |row| number(cells.get(row).copied().unwrap_or_default())),
            None => Numbers::Each(cells.iter().map(|cell| number(*cell)).collect()),
        }
    }

    /// The numbers of byte strings: `number` is asked once for each run of equal ones.
    pub(super) fn of_bytes<'a>(
        cell: &dyn Fn(usize) -> &'a [u8],
        rows: Range<usize>,
        number: &mut dyn FnMut(&[u8]) -> u32,
    ) -> Numbers {
        let mut last: Option<&[u8]> = None;
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for (row, end) in rows.zip(1..) {
            let cell = cell(row);
            if last.replace(cell) != Some(cell) {
                runs.push((number(cell), end));
            }
            if let Some((_, to)) = runs.last_mut() {
                *to = end;
            }
        }
        Numbers::of_runs(runs)
    }

    /// The numbers of runs that end there, by their first rows.
    pub(super) fn of_ends(ends: &[u32], number: &mut dyn FnMut(usize) -> u32) -> Numbers {
        let mut start = 0;
        let run = |end: &u32| {
            let number = number(start);
            start = *end as usize;
            (number, start)
        };
        Numbers::of_runs(ends.iter().map(run).collect())
    }

    /// These runs in the form that suits their length.
    pub(super) fn of_runs(runs: Vec<(u32, usize)>) -> Numbers {
        match runs.as_slice() {
            [(only, _)] => Numbers::One(*only),
            [.., (_, rows)] if runs.len() * RUN_ROWS_MIN > *rows => Numbers::Each(runs::spread(&runs)),
            _ => Numbers::Runs(runs),
        }
    }

    /// One number for each of `rows` rows.
    pub fn into_each(self, rows: usize) -> Vec<u32> {
        match self {
            Numbers::One(number) => vec![number; rows],
            Numbers::Runs(known) => runs::spread(&known),
            Numbers::Each(numbers) => numbers,
        }
    }

    /// The numbers of these rows alone, which are in order.
    pub fn of_rows(&self, rows: &[u32]) -> Numbers {
        match self {
            Numbers::One(number) => Numbers::One(*number),
            Numbers::Runs(runs) => {
                let end = |(number, end): &(u32, usize)| (*number, rows.partition_point(|row| (*row as usize) < *end));
                Numbers::Runs(runs.iter().map(end).collect())
            }
            Numbers::Each(numbers) => Numbers::Each(gather::codes(numbers, rows)),
        }
    }

    /// Calls `see` with the rows of each run, as parts of `rows`.
    ///
    /// Errors: those of `see`.
    pub fn for_each_run<E>(
        &self,
        rows: Range<usize>,
        see: &mut dyn FnMut(u32, Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Numbers::One(number) => see(*number, rows),
            Numbers::Runs(runs) => {
                let mut start = rows.start;
                for (number, end) in runs {
                    let end = rows.start + end;
                    see(*number, start..end)?;
                    start = end;
                }
                Ok(())
            }
            Numbers::Each(numbers) => {
                let mut start = rows.start;
                for run in numbers.chunk_by(|a, b| a == b) {
                    let end = start + run.len();
                    see(run.first().copied().unwrap_or_default(), start..end)?;
                    start = end;
                }
                Ok(())
            }
        }
    }
}

/// How two numbers become one.
pub(super) enum Merging<'a> {
    /// The number of their pair.
    Pairs(&'a mut Pairs),
    /// The first one, shifted to the left by so many bits, and the second one in these.
    Shift(u32),
}

/// One number for each of `rows` rows, made of two.
pub(super) fn merge(merging: &mut Merging<'_>, a: Numbers, b: Numbers, rows: usize) -> Numbers {
    if let (Numbers::Each(_), _) | (_, Numbers::Each(_)) = (&a, &b) {
        let (mut a, b) = (a.into_each(rows), b.into_each(rows));
        match merging {
            Merging::Pairs(pairs) => pairs.number_all(&mut a, &b),
            Merging::Shift(bits) => table::shift_together(&mut a, &b, *bits),
        }
        return Numbers::Each(a);
    }
    let mut number = |x: u32, y: u32| match merging {
        Merging::Pairs(pairs) => pairs.number(x, y),
        Merging::Shift(bits) => x << *bits | y,
    };
    let runs = |numbers: Numbers| match numbers {
        Numbers::Runs(runs) => runs,
        Numbers::One(number) => vec![(number, rows)],
        Numbers::Each(_) => Vec::new(),
    };
    let (a, b) = (runs(a), runs(b));
    let (mut left, mut right) = (a.as_slice(), b.as_slice());
    let mut merged = Vec::with_capacity(a.len() + b.len());
    while let ([(x, x_end), left_rest @ ..], [(y, y_end), right_rest @ ..]) = (left, right) {
        let end = *x_end.min(y_end);
        merged.push((number(*x, *y), end));
        left = if *x_end == end { left_rest } else { left };
        right = if *y_end == end { right_rest } else { right };
    }
    Numbers::of_runs(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs() -> impl Strategy<Value = Vec<u8>> {
        let run = (0..4_u8, prop_oneof![1..3_usize, 20..60_usize]);
        proptest::collection::vec(run, 1..6)
            .prop_map(|runs| runs.into_iter().flat_map(|(cell, count)| vec![cell; count]).collect())
    }

    proptest! {
        #[test]
        fn runs_of_two_parts_make_the_runs_of_their_pairs(a in runs(), b in runs()) {
            let rows = a.len().min(b.len());
            let (a, b) = (&a[..rows], &b[..rows]);
            let numbers = |cells: &[u8]| {
                let cells: Vec<u32> = cells.iter().map(|cell| u32::from(*cell)).collect();
                Numbers::of_codes(&cells, &mut |cell| cell)
            };
            prop_assert_eq!(numbers(a).into_each(rows), a.iter().map(|cell| u32::from(*cell)).collect::<Vec<_>>());
            let merged = merge(&mut Merging::Pairs(&mut Pairs::default()), numbers(a), numbers(b), rows);
            let mut known = Vec::new();
            let mut expected = Vec::new();
            for pair in a.iter().zip(b) {
                let at = known.iter().position(|known| *known == pair);
                expected.push(at.unwrap_or(known.len()) as u32);
                if at.is_none() {
                    known.push(pair);
                }
            }
            let mut seen = Vec::new();
            merged.for_each_run(5..5 + rows, &mut |number, run| {
                assert_eq!(run.start, 5 + seen.len());
                seen.resize(run.end - 5, number);
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(&seen, &expected);
            let kept: Vec<u32> = (0..rows as u32).filter(|row| a[*row as usize] != b[0]).collect();
            let picked: Vec<u32> = kept.iter().map(|row| expected[*row as usize]).collect();
            let of_kept = merged.of_rows(&kept);
            let mut seen = Vec::new();
            of_kept.for_each_run(0..kept.len(), &mut |number, run| {
                seen.resize(run.end, number);
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(&seen, &picked);
            prop_assert_eq!(merged.into_each(rows), expected);
        }
    }
}
