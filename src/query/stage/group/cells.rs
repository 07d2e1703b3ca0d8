//! The values of the parts of a key, computed once for all rows with the same metadata.

use std::ops::Range;
use std::rc::Rc;

use kernels::runs;

use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::query::expr::BoundExpr;
use crate::value::Value;

/// A column that repeats its values for fewer rows than this on average is not taken apart into runs.
const RUN_ROWS_MIN: usize = 8;

/// The values of one part of a key for the rows of a block.
pub enum KeyCells {
    /// A cell for each row.
    Rows(Column),
    /// A cell for each entry, and the entries that rows have.
    Runs(Rc<Runs>, Column),
}

/// Which rows have which entry: an entry, and where its rows end.
pub struct Runs(Vec<(u32, u32)>);

/// A column of repeated values, as rows of their own.
struct Entries<'a> {
    name: &'a str,
    /// `None` if the column is of another kind.
    found: Option<(Rc<Runs>, Block)>,
}

impl KeyCells {
    /// The values of all parts. Those that read one column alone, whose values repeat for many rows on end, such as the
    /// metadata of buckets, are computed for these values. Parts in `by_row` are not.
    ///
    /// Errors: those of operators.
    pub fn of(parts: &[&BoundExpr], by_row: &[usize], rows: &Block) -> Result<Vec<KeyCells>> {
        let mut known: Vec<Entries<'_>> = Vec::new();
        let cells = parts.iter().enumerate().map(|(place, part)| {
            let fields = part.fields();
            let [name] = fields.names() else { return part.column(rows).map(KeyCells::Rows) };
            if fields.is_all() || part.is_random() || by_row.contains(&place) {
                return part.column(rows).map(KeyCells::Rows);
            }
            let at = known.iter().position(|entries| *entries.name == **name).unwrap_or_else(|| {
                known.push(Entries { name, found: entries_of(name, rows) });
                known.len() - 1
            });
            match known.get(at).and_then(|entries| entries.found.as_ref()) {
                Some((runs, entries)) => Ok(KeyCells::Runs(Rc::clone(runs), part.column(entries)?)),
                None => part.column(rows).map(KeyCells::Rows),
            }
        });
        cells.collect()
    }

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

/// The entries of a column that rows have, in the order of their first rows.
fn entries_of(name: &str, rows: &Block) -> Option<(Rc<Runs>, Block)> {
    let column = rows.column(name).filter(|column| column.presence().is_none())?;
    let ColumnData::Dictionary(index, values) = column.data() else { return None };
    let ends = runs::ends_of_codes(index, index.len() / RUN_ROWS_MIN)?;
    let mut places = vec![None; values.len()];
    let (mut used, mut start) = (Vec::new(), 0);
    let mut runs = Vec::with_capacity(ends.len());
    for end in ends {
        let entry = *index.get(start)?;
        let place = *places.get_mut(entry as usize)?.get_or_insert_with(|| {
            used.push(entry);
            used.len() - 1
        });
        runs.push((u32::try_from(place).ok()?, end));
        start = end as usize;
    }
    let mut entries = Block::new(used.len());
    entries.set_column(name, values.gather(&used));
    Some((Rc::new(Runs(runs)), entries))
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
            let cells = KeyCells::of(&parts.iter().collect::<Vec<_>>(), &[], &block).unwrap();
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
    fn an_entry_that_no_row_has_cannot_fail() {
        let sum = part(rawdoc! { "x": { "$add": ["$m", 1] } });
        assert!(KeyCells::of(&[&sum], &[], &block([vec![0; 40], vec![2; 40]].concat())).is_ok());
        assert!(KeyCells::of(&[&sum], &[], &block([vec![0; 40], vec![1; 40]].concat())).is_err());
    }

    #[test]
    fn parts_that_read_the_same_repeated_column_share_its_runs_unless_they_are_wanted_by_row() {
        let parts = [part(rawdoc! { "x": { "$type": "$m" } }), part(rawdoc! { "x": "$m" })];
        let parts: Vec<_> = parts.iter().collect();
        let rows = block(vec![2; 40]);
        let cells = KeyCells::of(&parts, &[], &rows).unwrap();
        let [KeyCells::Runs(a, _), KeyCells::Runs(b, values)] = &cells[..] else { panic!() };
        assert!(Rc::ptr_eq(a, b) && values.len() == 1);
        assert!(matches!(KeyCells::of(&parts, &[1], &rows).unwrap()[..], [KeyCells::Runs(..), KeyCells::Rows(_)]));
        assert!(matches!(
            KeyCells::of(&parts, &[], &block((0..40).map(|n| n % 3).collect())).unwrap()[..],
            [KeyCells::Rows(_), KeyCells::Rows(_)]
        ));
    }
}
