//! Accumulators that keep `n` values by rank: `$firstN`, `$lastN`, `$minN`, `$maxN`, `$top`, `$bottom`, `$topN`,
//! `$bottomN`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/accumulator_multi.cpp.

use std::cmp::Ordering;
use std::ops::Range;

use super::best::{best_row, better_rows};
use super::kernels::next_within;
use super::model::{Accumulator, Inputs, Settings, Times, list_is_full, show_array};
use super::picks::{Picks, RankedRows};
use super::words::{word_of, word_of_text, words_of_dates, words_of_doubles, words_of_int32s};
use crate::block::{Column, ColumnData};
use crate::error::{Error, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::value::{Collation, Kind, OwnedValue, Value, sort_by};

/// How rows are ranked, and which are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The first rows: without keys all rows tie, and of ties the first ones stay.
    First,
    Last,
    /// By the values themselves, ascending; null does not count.
    Least,
    Greatest,
    /// The first or the last rows by their keys.
    Top,
    Bottom,
}

/// The kept rows of each group, in key order.
///
/// A word for each row tells most rows apart, so that nearly all are rejected by one comparison. Values are made of rows
/// only when those of a block are through.
pub(super) struct Ranked {
    rank: Rank,
    /// True if the result is a single value instead of a list.
    is_single: bool,
    /// The direction of each key.
    ascending: Vec<bool>,
    collation: Collation,
    groups: Vec<KeptRows>,
    /// For each group: a row whose rank is above this one is not kept. The rank is the word of a row; turned around, if the
    /// last rows are kept.
    bounds: Vec<u64>,
    /// Groups that keep rows of the block that is being added.
    touched: Vec<usize>,
    size_bytes: usize,
}

/// The rows that a group keeps.
struct KeptRows {
    /// The maximum number.
    n: usize,
    entries: Vec<RankedEntry>,
    is_touched: bool,
}

struct RankedEntry {
    word: u64,
    /// The place of the row, if rows come out of order; by this, ties are broken.
    place: i64,
    content: Content,
}

enum Content {
    /// A row of the block that is being added.
    Row(u32),
    /// The keys, unless they are the output itself, and the output.
    Values(Vec<OwnedValue>, OwnedValue),
}

impl Content {
    fn size_bytes(&self) -> usize {
        match self {
            Content::Row(_) => 0,
            Content::Values(keys, output) => keys.iter().chain([output]).map(|value| value.tagged().len() + 32).sum(),
        }
    }
}

/// The columns of the block that is being added.
struct Keys<'a> {
    columns: &'a [Column],
    ascending: &'a [bool],
    collation: &'a Collation,
    /// True if the output is the key, and arrays compare as a whole.
    by_value: bool,
}

impl Keys<'_> {
    /// A key of a row; for an array, the element that sorts first.
    fn key<'a>(&'a self, number: usize, row: usize, scratch: &'a mut Vec<u8>) -> Value<'a> {
        let key = self.columns.get(number).and_then(|column| column.value(row, scratch)).unwrap_or(Value::NULL);
        let ascending = self.ascending.get(number).is_none_or(|ascending| *ascending);
        self.least(key, ascending)
    }

    fn least<'a>(&self, key: Value<'a>, ascending: bool) -> Value<'a> {
        let Some(array) = key.as_array().filter(|_| !self.by_value) else { return key };
        let order = |a: &Value<'_>, b: &Value<'_>| directed(self.collation.compare(*a, *b), ascending);
        array.iter().map(|(_, element)| element).min_by(order).unwrap_or(Value::UNDEFINED)
    }

    /// The words of rows by their first key: smaller for a row that comes first. Equal words say nothing.
    #[inline(never)]
    fn words(&self, rows: Range<usize>) -> Vec<u64> {
        let (Some(column), Some(ascending)) = (self.columns.first(), self.ascending.first()) else {
            return vec![0; rows.len()];
        };
        let mut words = Vec::with_capacity(rows.len());
        let flip = if *ascending { 0 } else { u64::MAX };
        match (column.data(), column.presence()) {
            (ColumnData::F64(cells), None) => words_of_doubles(cut(cells, rows), flip, &mut words),
            (ColumnData::I32(cells), None) => words_of_int32s(cut(cells, rows), flip, &mut words),
            (ColumnData::Date(cells), None) => words_of_dates(cut(cells, rows), flip, &mut words),
            (ColumnData::String(cells), None) if self.collation.is_simple() => {
                words.extend(rows.map(|row| word_of_text(cells.get(row)) ^ flip));
            }
            (ColumnData::Dictionary(index, entries), None) if entries.len() < rows.len() => {
                let entries = Keys { columns: std::slice::from_ref(entries), ..*self }.words(0..entries.len());
                let word = |entry: &u32| entries.get(*entry as usize).copied().unwrap_or_default();
                words.extend(cut(index, rows).iter().map(word));
            }
            _ => {
                let mut scratch = Vec::new();
                let bytes_compare = self.collation.is_simple();
                words.extend(rows.map(|row| word_of(self.key(0, row, &mut scratch), bytes_compare) ^ flip));
            }
        }
        words
    }

    /// The order of two rows.
    fn compare(&self, new: &RankedEntry, known: &RankedEntry) -> Ordering {
        self.compare_keys(new, known).then(new.place.cmp(&known.place))
    }

    fn compare_keys(&self, new: &RankedEntry, known: &RankedEntry) -> Ordering {
        if new.word != known.word {
            return new.word.cmp(&known.word);
        }
        let (mut scratch, mut other) = (Vec::new(), Vec::new());
        for (number, ascending) in self.ascending.iter().enumerate() {
            let key = self.key_of(number, new, &mut scratch);
            let order = directed(self.collation.compare(key, self.key_of(number, known, &mut other)), *ascending);
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    fn key_of<'a>(&'a self, number: usize, entry: &'a RankedEntry, scratch: &'a mut Vec<u8>) -> Value<'a> {
        match &entry.content {
            Content::Row(row) => self.key(number, *row as usize, scratch),
            Content::Values(keys, output) => keys.get(number).unwrap_or(output).view(),
        }
    }

    /// Errors: `BadValue` if several keys of a row are arrays.
    fn check_arrays(&self, rows: Range<usize>) -> Result<()> {
        let columns: Vec<&Column> = self.columns.iter().filter(|column| column.kind().is_none()).listed();
        let mut scratch = Vec::new();
        for row in rows.filter(|_| columns.len() > 1) {
            let mut is_array =
                |column: &&&Column| column.value(row, &mut scratch).is_some_and(|value| value.kind() == Kind::Array);
            if columns.iter().filter(&mut is_array).count() > 1 {
                return Err(Error::bad_value("Cannot sort with keys that are parallel arrays"));
            }
        }
        Ok(())
    }
}

impl KeptRows {
    /// Takes a row if it is among those to keep. Returns the bytes of the row that it replaces, and whether it was
    /// taken.
    fn offer(&mut self, rank: Rank, keys: &Keys<'_>, new: RankedEntry) -> (usize, bool) {
        let mut freed = 0;
        let entries = &mut self.entries;
        if entries.len() >= self.n {
            let worst = match rank {
                Rank::First => return (0, false),
                Rank::Last => 0,
                // Of tied smallest values, the last one is dropped.
                Rank::Bottom => match entries.first() {
                    Some(first) if keys.compare(&new, first).is_gt() => {
                        entries.iter().skip(1).take_while(|entry| keys.compare(first, entry).is_eq()).count()
                    }
                    _ => return (0, false),
                },
                _ => match entries.last() {
                    Some(last) if keys.compare(&new, last).is_lt() => entries.len() - 1,
                    _ => return (0, false),
                },
            };
            freed = entries.remove(worst).content.size_bytes();
        }
        let at = match rank {
            Rank::First | Rank::Last => entries.len(),
            _ => entries.partition_point(|known| keys.compare(&new, known).is_ge()),
        };
        entries.insert(at, new);
        (freed, true)
    }

    /// The rank of the worst row, if another one must be better than that.
    fn bound(&self, rank: Rank) -> u64 {
        let worst = match rank {
            _ if self.entries.len() < self.n => None,
            // All words are 0, and all ranks 1.
            Rank::First => return 0,
            Rank::Last => None,
            Rank::Bottom => self.entries.first().map(|worst| !worst.word),
            _ => self.entries.last().map(|worst| worst.word),
        };
        worst.unwrap_or(u64::MAX)
    }
}

impl Ranked {
    pub fn new(rank: Rank, is_single: bool, settings: &Settings) -> Ranked {
        let ascending = match rank {
            Rank::Least => vec![true],
            Rank::Greatest => vec![false],
            _ => settings.ascending.clone(),
        };
        let collation = settings.collation.clone();
        Ranked {
            rank,
            is_single,
            ascending,
            collation,
            groups: Vec::new(),
            bounds: Vec::new(),
            touched: Vec::new(),
            size_bytes: 0,
        }
    }

    /// Which of the rows a group may keep, if a kernel finds these by the only key, and if they are few.
    fn picked_rows(&self, group: usize, inputs: &Inputs<'_>, rows: &Range<usize>) -> Option<Vec<usize>> {
        let (columns, is_max) = match self.rank {
            Rank::First | Rank::Last => return None,
            Rank::Least | Rank::Greatest => (std::slice::from_ref(&*inputs.cells), self.rank == Rank::Greatest),
            Rank::Top | Rank::Bottom => (&*inputs.keys, (self.rank == Rank::Bottom) == *self.ascending.first()?),
        };
        let ([column], kept) = (columns, self.groups.get(group)?) else { return None };
        if kept.n == 1 {
            return best_row(column, rows, is_max).map(|row| vec![row]);
        }
        let worst = if self.rank == Rank::Bottom { kept.entries.first() } else { kept.entries.last() };
        match &worst.filter(|_| kept.entries.len() == kept.n)?.content {
            Content::Values(keys, output) => better_rows(column, rows, is_max, keys.first().unwrap_or(output).view()),
            Content::Row(_) => None,
        }
    }

    /// Adds rows of these groups.
    fn add_rows(
        &mut self,
        of_rows: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        let Ranked { rank, ascending, collation, groups, bounds, touched, size_bytes, .. } = self;
        let by_value = matches!(rank, Rank::Least | Rank::Greatest);
        let columns = if by_value { std::slice::from_ref(&*inputs.cells) } else { &inputs.keys };
        let keys = Keys { columns, ascending, collation, by_value };
        keys.check_arrays(rows.clone())?;
        // Ranks.
        let mut words = keys.words(rows.clone());
        let flip = match rank {
            Rank::Bottom => u64::MAX,
            Rank::First => 1,
            _ => 0,
        };
        words.iter_mut().for_each(|word| *word ^= flip);
        let mut next = 0;
        while let Some(at) = next_within(of_rows, &words, bounds, next) {
            next = at + 1;
            let (row, group) = (rows.start + at, of_rows.get(at).map_or(usize::MAX, |group| *group as usize));
            let (Some(kept), Some(bound)) = (groups.get_mut(group), bounds.get_mut(group)) else { continue };
            if by_value && !counts(&inputs.cells, row) {
                continue;
            }
            let word = words.get(at).map_or(0, |rank| rank ^ flip);
            let place = times.map_or(0, |times| times.place(row));
            let content = Content::Row(u32::try_from(row).unwrap_or(u32::MAX));
            let (freed, is_kept) = kept.offer(*rank, &keys, RankedEntry { word, place, content });
            *size_bytes -= freed;
            *bound = kept.bound(*rank);
            if is_kept && !kept.is_touched {
                kept.is_touched = true;
                touched.push(group);
            }
        }
        self.make_values(inputs, by_value)
    }

    /// Makes values of the rows of this block that are kept.
    fn make_values(&mut self, inputs: &Inputs<'_>, by_value: bool) -> Result<()> {
        let Ranked { ascending, collation, groups, touched, size_bytes, .. } = self;
        let columns = if by_value { &[][..] } else { &inputs.keys };
        let keys = Keys { columns, ascending, collation, by_value };
        let of_rows = |kept: &mut KeptRows, see: &mut dyn FnMut(&mut Content, u32)| {
            for entry in &mut kept.entries {
                if let Content::Row(row) = entry.content {
                    see(&mut entry.content, row);
                }
            }
        };
        let mut rows = Vec::new();
        for group in touched.iter() {
            groups.get_mut(*group).into_iter().for_each(|kept| of_rows(kept, &mut |_, row| rows.push(row)));
        }
        if rows.is_empty() {
            touched.clear();
            return Ok(());
        }
        let shown = inputs.shown_of(&rows)?;
        let (mut at, mut scratch) = (0, Vec::new());
        for group in touched.drain(..) {
            let Some(kept) = groups.get_mut(group) else { continue };
            kept.is_touched = false;
            of_rows(kept, &mut |content, row| {
                let output = shown.value(at, &mut scratch).unwrap_or(Value::NULL).to_owned();
                let numbers = 0..columns.len();
                let keys = numbers.map(|number| keys.key(number, row as usize, &mut scratch).to_owned()).collect();
                *content = Content::Values(keys, output);
                *size_bytes += content.size_bytes();
                at += 1;
            });
        }
        if self.size_bytes > STAGE_SIZE_BYTES_MAX { Err(list_is_full()) } else { Ok(()) }
    }
}

/// True for cells that are neither missing nor null.
fn counts(cells: &Column, row: usize) -> bool {
    match cells.kind() {
        Some(_) => cells.is_present(row),
        None => {
            let mut scratch = Vec::new();
            cells.value(row, &mut scratch).is_some_and(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined))
        }
    }
}

fn cut<T>(cells: &[T], rows: Range<usize>) -> &[T] {
    cells.get(rows).unwrap_or_default()
}

fn directed(order: Ordering, ascending: bool) -> Ordering {
    if ascending { order } else { order.reverse() }
}

impl Accumulator for Ranked {
    fn grow(&mut self, n: usize) {
        self.groups.push(KeptRows { n, entries: Vec::new(), is_touched: false });
        self.bounds.push(u64::MAX);
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        let number = u32::try_from(group).unwrap_or(u32::MAX);
        // Of rows that come out of order, the first one by time stays.
        match self.picked_rows(group, inputs, &rows).filter(|_| times.is_none()) {
            Some(picked) => picked.into_iter().try_for_each(|row| self.add_rows(&[number], inputs, row..row + 1, None)),
            None => self.add_rows(&vec![number; rows.len()], inputs, rows, times),
        }
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        self.add_rows(groups, inputs, rows, times)
    }

    fn picks(&self, inputs: &Inputs<'_>) -> Option<Picks> {
        let by_value = match self.rank {
            Rank::First => return Some(Picks::First),
            Rank::Last => return Some(Picks::Last),
            rank => matches!(rank, Rank::Least | Rank::Greatest),
        };
        let columns = if by_value { std::slice::from_ref(&*inputs.cells) } else { &inputs.keys };
        if columns.len() > 1 && columns.iter().any(|column| column.kind().is_none()) {
            // Parallel arrays are an error, but only of rows in a window.
            return None;
        }
        let keys = Keys { columns, ascending: &self.ascending, collation: &self.collation, by_value };
        let words = keys.words(0..inputs.cells.len());
        let mut entries = Vec::with_capacity(words.len());
        for (row, word) in (0..).zip(words) {
            if !by_value || counts(&inputs.cells, row as usize) {
                entries.push(RankedEntry { word, place: i64::from(row), content: Content::Row(row) });
            }
        }
        sort_by(&mut entries, |a, b| keys.compare(a, b));
        let mut rows: Vec<u32> = entries.iter().map(|entry| entry.place as u32).collect();
        let shown = (self.rank == Rank::Bottom).then(|| rows.clone());
        if shown.is_some() {
            // From the last one on; but of rows that tie, the first ones stay.
            rows.reverse();
            let mut ties = rows.as_mut_slice();
            for tied in entries.chunk_by(|a, b| keys.compare_keys(a, b).is_eq()).rev() {
                let Some((these, rest)) = ties.split_at_mut_checked(tied.len()) else { break };
                these.reverse();
                ties = rest;
            }
        }
        let ranked = RankedRows { rows, shown, is_single: self.is_single };
        Some(Picks::Ranked(ranked))
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let entries = self.groups.get(group).map_or(&[][..], |kept| &kept.entries);
        let mut outputs = entries.iter().filter_map(|entry| match &entry.content {
            Content::Values(_, output) => Some(output.view()),
            Content::Row(_) => None,
        });
        match self.is_single {
            true => see(outputs.next().unwrap_or(Value::NULL)),
            false => show_array(&mut outputs, see),
        }
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use proptest::prelude::*;

    fn shown(rank: Rank, ascending: bool, n: usize, blocks: &[Vec<f64>], are_apart: bool) -> Option<OwnedValue> {
        let settings = Settings {
            collation: Collation::default(),
            ascending: vec![ascending],
            percentiles: Vec::new(),
            is_continuous: false,
        };
        let mut ranked = Ranked::new(rank, n == 1, &settings);
        ranked.grow(n);
        for (block, doubles) in blocks.iter().enumerate() {
            let numbers = (0..doubles.len()).map(|row| (100 * block + row) as f64).collect();
            let dates = || ColumnData::Date(doubles.iter().map(|x| *x as i64).collect());
            let key = Column::new(if block % 2 == 0 { ColumnData::F64(doubles.clone()) } else { dates() }, None);
            let by_value = matches!(rank, Rank::Least | Rank::Greatest);
            let cells = if by_value { key.clone() } else { Column::new(ColumnData::F64(numbers), None) };
            let inputs = Inputs { cells: Cow::Owned(cells), keys: vec![key], shown: None };
            match are_apart {
                true => ranked.add_each(&vec![0; doubles.len()], &inputs, 0..doubles.len(), None).unwrap(),
                false => ranked.add(0, &inputs, 0..doubles.len(), None).unwrap(),
            }
        }
        let mut found = None;
        ranked.show(0, &mut |value| found = Some(value.to_owned()));
        found
    }

    /// Mostly the same one, so that few rows are better than others.
    fn key() -> impl Strategy<Value = f64> {
        let others = prop::sample::select(vec![0.0, -0.0, 1.0, 2.5, -3.0, f64::NAN, 0.25]);
        prop_oneof![40 => Just(0.5), 1 => others]
    }

    proptest! {
        #[test]
        fn the_best_row_of_a_group_is_found_as_one_by_one(
            blocks in prop::collection::vec(prop::collection::vec(key(), 1..150), 1..4),
            rank in prop::sample::select(vec![Rank::Top, Rank::Bottom, Rank::Least, Rank::Greatest]), ascending in any::<bool>(), n in 1..4_usize,
        ) {
            prop_assert_eq!(shown(rank, ascending, n, &blocks, false), shown(rank, ascending, n, &blocks, true));
        }
    }
}
