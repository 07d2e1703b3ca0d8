//! The values of the parts of a key, computed once for all rows with the same metadata.

use std::ops::Range;
use std::rc::Rc;

use kernels::runs;

use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::query::expr::BoundExpr;
use crate::value::{Interner, Value};

/// A column that repeats its values for fewer rows than this on average is not taken apart into runs.
const RUN_ROWS_MIN: usize = 8;

/// More entries than this are forgotten before the next rows come.
const ENTRIES_MAX: usize = 1024;

/// The values of one part of a key for the rows of a block.
pub enum KeyCells {
    /// A cell for each row.
    Rows(Column),
    /// A cell for each entry, and the entries that rows have.
    Runs(Rc<Runs>, Rc<Column>),
}

/// Which rows have which entry: an entry, and where its rows end.
pub struct Runs(Vec<(u32, u32)>);

/// The distinct values of the columns that have been taken apart, and what parts of the key come to for them.
#[derive(Default)]
pub struct KeyEntries(Vec<ColumnEntries>);

struct ColumnEntries {
    name: Box<str>,
    known: Interner,
    /// A part, by its place in the key, and its values for the known entries.
    parts: Vec<(usize, Rc<Column>)>,
    /// Those of the block at hand: its runs, and the entries that it has brought. `None` if it cannot be taken apart.
    block: Option<(Rc<Runs>, Block)>,
}

impl KeyEntries {
    /// Forgets all entries if they are many; true if none are known.
    pub fn begin(&mut self) -> bool {
        if self.0.iter().any(|column| column.known.count() > ENTRIES_MAX) {
            self.0.clear();
        }
        self.0.is_empty()
    }

    /// The values of all parts. Those that read one column alone, whose values repeat for many rows on end, such as the
    /// metadata of buckets, are computed for these values, each once. Parts in `by_row` are not.
    ///
    /// Errors: those of operators.
    pub fn cells(&mut self, parts: &[&BoundExpr], by_row: &[usize], rows: &Block) -> Result<Vec<KeyCells>> {
        let mut seen: Vec<usize> = Vec::new();
        let mut cells = Vec::with_capacity(parts.len());
        for (place, part) in parts.iter().enumerate() {
            let fields = part.fields();
            let name = match fields.names() {
                [name] if !fields.is_all() && !part.is_random() && !by_row.contains(&place) => name,
                _ => {
                    cells.push(KeyCells::Rows(part.column(rows)?));
                    continue;
                }
            };
            let at = self.0.iter().position(|column| column.name == *name).unwrap_or_else(|| {
                let (known, parts) = (Interner::default(), Vec::new());
                self.0.push(ColumnEntries { name: name.clone(), known, parts, block: None });
                self.0.len() - 1
            });
            let Some(column) = self.0.get_mut(at) else { continue };
            if !seen.contains(&at) {
                seen.push(at);
                column.take_apart(rows);
            }
            cells.push(column.cells(place, part, rows)?);
        }
        Ok(cells)
    }
}

impl ColumnEntries {
    /// The runs of entries of the column, and those that are new, in the order of their first rows.
    fn take_apart(&mut self, rows: &Block) {
        self.block = rows.column(&self.name).filter(|column| column.presence().is_none()).and_then(|column| {
            let ColumnData::Dictionary(index, values) = column.data() else { return None };
            let ends = runs::ends_of_codes(index, index.len() / RUN_ROWS_MIN)?;
            let mut places = vec![None; values.len()];
            let (mut new, mut start) = (Vec::new(), 0);
            let (mut runs, mut key, mut scratch) = (Vec::with_capacity(ends.len()), Vec::new(), Vec::new());
            for end in ends {
                let entry = index.get(start).copied().unwrap_or_default();
                let place = places.get_mut(entry as usize)?.get_or_insert_with(|| {
                    let value = values.value(entry as usize, &mut scratch).unwrap_or(Value::NULL);
                    key.clear();
                    value.append_tagged(&mut key);
                    let (place, is_new) = self.known.add(&key);
                    if is_new {
                        new.push(entry);
                    }
                    u32::try_from(place).unwrap_or(u32::MAX)
                });
                runs.push((*place, end));
                start = end as usize;
            }
            let mut entries = Block::new(new.len());
            // The column itself remembers what paths reach in it.
            let is_all = new.len() == values.len() && (0..).zip(&new).all(|(place, entry)| place == *entry);
            entries.set_column(&self.name, if is_all { (**values).clone() } else { values.gather(&new) });
            Some((Rc::new(Runs(runs)), entries))
        });
    }

    /// The values of a part of the key.
    fn cells(&mut self, place: usize, part: &BoundExpr, rows: &Block) -> Result<KeyCells> {
        let Some((runs, entries)) = &self.block else { return part.column(rows).map(KeyCells::Rows) };
        let at = self.parts.iter().position(|(known, _)| *known == place);
        let known = at.map_or_else(|| Rc::new(ColumnBuilder::new().finish()), |at| self.parts.swap_remove(at).1);
        let values = if entries.rows() == 0 {
            known
        } else {
            let found = part.column(entries)?;
            let mut values = ColumnBuilder::resume(Rc::unwrap_or_clone(known));
            values.extend(&found, 0..found.len());
            Rc::new(values.finish())
        };
        self.parts.push((place, Rc::clone(&values)));
        Ok(KeyCells::Runs(Rc::clone(runs), values))
    }
}

impl KeyCells {
    /// The value of a row; `None` if it is missing.
    pub fn value<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> Option<Value<'a>> {
        match self {
            KeyCells::Rows(cells) => cells.value(row, scratch),
            KeyCells::Runs(runs, values) => values.value(runs.entry(row), scratch),
        }
    }
}

impl Runs {
    /// The entries of these rows, and where they end, counted from the first of the rows.
    pub fn within(&self, rows: &Range<usize>) -> impl Iterator<Item = (u32, usize)> {
        let Range { start, end } = *rows;
        let runs = self.0.get(self.place(start)..).unwrap_or_default().iter();
        let mut begun = start;
        runs.map_while(move |(entry, run_end)| {
            let is_within = begun < end;
            begun = *run_end as usize;
            is_within.then(|| (*entry, begun.min(end) - start))
        })
    }

    fn entry(&self, row: usize) -> usize {
        self.0.get(self.place(row)).map_or(usize::MAX, |(entry, _)| *entry as usize)
    }

    /// The number of the run that a row is in.
    fn place(&self, row: usize) -> usize {
        self.0.partition_point(|(_, end)| *end as usize <= row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::expr::Expr;
    use crate::query::filter::samples::globals;
    use crate::value::{Doc, OwnedValue};
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn part(expr: RawDocumentBuf) -> BoundExpr {
        let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().get("x").unwrap(), &globals()).unwrap();
        BoundExpr::new(expr, globals())
    }

    /// A block whose column `m` has entries of two numbers and a word.
    fn block(index: Vec<u32>) -> Block {
        let mut values = crate::block::ColumnBuilder::new();
        for value in [OwnedValue::int32(4), OwnedValue::string("x"), OwnedValue::int32(5)] {
            values.push(value.view());
        }
        let mut block = Block::new(index.len());
        block.set_column("m", Column::new(ColumnData::Dictionary(index, Box::new(values.finish())), None));
        block
    }

    proptest! {
        #[test]
        fn the_values_of_entries_are_those_of_their_rows(
            runs in prop::collection::vec((0..3_u32, prop_oneof![1..4_usize, 20..60_usize]), 1..6), cut in any::<[prop::sample::Index; 2]>(),
        ) {
            let index: Vec<u32> = runs.iter().flat_map(|(entry, count)| vec![*entry; *count]).collect();
            let block = block(index.clone());
            let parts = [part(rawdoc! { "x": { "$type": "$m" } }), part(rawdoc! { "x": "$m" }), part(rawdoc! { "x": { "$ifNull": ["$n", "$m"] } })];
            let cells = KeyEntries::default().cells(&parts.iter().collect::<Vec<_>>(), &[], &block).unwrap();
            for (part, cells) in parts.iter().zip(&cells) {
                let (expected, mut left, mut right) = (part.column(&block).unwrap(), Vec::new(), Vec::new());
                for row in 0..index.len() {
                    prop_assert_eq!(cells.value(row, &mut left), expected.value(row, &mut right));
                }
            }
            if let KeyCells::Runs(runs, values) = &cells[1] {
                let mut ends = cut.map(|cut| cut.index(index.len() + 1));
                ends.sort();
                let [start, end] = ends;
                let mut row = start;
                for (entry, run_end) in runs.within(&(start..end)) {
                    prop_assert!(row < start + run_end);
                    while row < start + run_end {
                        let (mut left, mut right) = (Vec::new(), Vec::new());
                        prop_assert_eq!(values.value(entry as usize, &mut left), block.column("m").unwrap().value(row, &mut right));
                        row += 1;
                    }
                }
                prop_assert_eq!(row, end);
            }
        }
    }

    #[test]
    fn entries_keep_their_places_from_block_to_block_until_they_are_forgotten() {
        let parts = [part(rawdoc! { "x": { "$type": "$m" } }), part(rawdoc! { "x": "$m" })];
        let parts: Vec<_> = parts.iter().collect();
        let mut known = KeyEntries::default();
        assert!(known.begin());
        let mut lens = Vec::new();
        for index in [vec![2; 40], vec![2; 20], [vec![0; 20], vec![2; 20]].concat(), vec![1; 9]] {
            let rows = block(index);
            let cells = known.cells(&parts, &[], &rows).unwrap();
            for (part, cells) in parts.iter().zip(&cells) {
                let (expected, mut left, mut right) = (part.column(&rows).unwrap(), Vec::new(), Vec::new());
                for row in 0..rows.rows() {
                    assert_eq!(cells.value(row, &mut left), expected.value(row, &mut right));
                }
            }
            let KeyCells::Runs(_, values) = &cells[1] else { panic!() };
            lens.push(values.len());
            assert!(!known.begin());
        }
        assert_eq!(lens, [1, 1, 2, 3]);
        let many: Vec<i32> = (0..=ENTRIES_MAX as i32).collect();
        let index = (0..many.len() as u32).flat_map(|entry| [entry; RUN_ROWS_MIN]).collect::<Vec<u32>>();
        let mut rows = Block::new(index.len());
        let values = Column::new(ColumnData::I32(many), None);
        rows.set_column("m", Column::new(ColumnData::Dictionary(index, Box::new(values)), None));
        assert!(matches!(known.cells(&parts, &[], &rows).unwrap()[..], [KeyCells::Runs(..), KeyCells::Runs(..)]));
        assert!(known.begin());
    }

    #[test]
    fn an_entry_that_no_row_has_cannot_fail() {
        let sum = part(rawdoc! { "x": { "$add": ["$m", 1] } });
        assert!(KeyEntries::default().cells(&[&sum], &[], &block([vec![0; 40], vec![2; 40]].concat())).is_ok());
        assert!(KeyEntries::default().cells(&[&sum], &[], &block([vec![0; 40], vec![1; 40]].concat())).is_err());
    }

    #[test]
    fn parts_that_read_the_same_repeated_column_share_its_runs_unless_they_are_wanted_by_row() {
        let parts = [part(rawdoc! { "x": { "$type": "$m" } }), part(rawdoc! { "x": "$m" })];
        let parts: Vec<_> = parts.iter().collect();
        let rows = block(vec![2; 40]);
        let cells = KeyEntries::default().cells(&parts, &[], &rows).unwrap();
        let [KeyCells::Runs(a, _), KeyCells::Runs(b, values)] = &cells[..] else { panic!() };
        assert!(Rc::ptr_eq(a, b) && values.len() == 1);
        assert!(matches!(
            KeyEntries::default().cells(&parts, &[1], &rows).unwrap()[..],
            [KeyCells::Runs(..), KeyCells::Rows(_)]
        ));
        assert!(matches!(
            KeyEntries::default().cells(&parts, &[], &block((0..40).map(|n| n % 3).collect())).unwrap()[..],
            [KeyCells::Rows(_), KeyCells::Rows(_)]
        ));
    }
}
