//! Finds the rows of another collection that a filter for equality may select, without looking at all of them for each
//! question.

use crate::block::{Bitmap, Block};
use crate::query::filter::Filter;
use crate::value::{Interner, Leaf, OwnedValue, Path, Value, append_key, walk_from_value};

/// Fewer rows are all looked at.
const ROWS_MIN: usize = 64;
/// Candidates are copied with all their columns, so that they must be fewer than one in this many rows.
const SHARE_MAX: usize = 8;
/// Numbering the values of all rows takes about as long as comparing them so often. A stage in the pipeline of another
/// `$lookup` starts anew for each row of that, and may have fewer questions.
const COMPARED_MAX: usize = 8;

/// The rows of one block, which does not change, by their values at some paths.
#[derive(Default)]
pub(super) struct EqualRows {
    /// How often all rows were compared.
    compared: usize,
    known: Vec<(Path, RowsByValue)>,
}

impl EqualRows {
    /// Rows of `block` among which are all that pass `filter`; `None` if they are not known without looking at all.
    pub fn candidates(&mut self, block: &Block, filter: &Filter) -> Option<Vec<u32>> {
        if block.rows() < ROWS_MIN || self.compared < COMPARED_MAX {
            self.compared += 1;
            return None;
        }
        let mut fewest: Option<Bitmap> = None;
        for (path, values) in filter.equalities() {
            if !self.known.iter().any(|(known, _)| *known == path) {
                self.known.push((path.clone(), RowsByValue::new(block, &path)));
            }
            let by_value = self.known.iter().find(|(known, _)| *known == path);
            let found = by_value.map(|(_, by_value)| by_value.rows(&values, block.rows()));
            fewest = fewest.into_iter().chain(found).min_by_key(Bitmap::count);
        }
        fewest.filter(|rows| SHARE_MAX * rows.count() < block.rows()).map(|rows| rows.to_rows())
    }

    /// The rows of `block` that may pass `filter`, in their order.
    pub fn narrow(&mut self, block: Block, filter: &Filter) -> Block {
        match self.candidates(&block, filter) {
            // A projection fails by its constant parts even if no row passes the filter, but not without rows.
            Some(rows) if rows.is_empty() => block.slice(0..1),
            Some(rows) => block.gather(&rows),
            None => block,
        }
    }
}

/// The rows with each value at a path, or with an array there that has it.
#[derive(Default)]
struct RowsByValue {
    values: Interner,
    /// The last entry of each value.
    last: Vec<u32>,
    /// Rows, each with the entry before it of the same value.
    entries: Vec<(u32, Option<u32>)>,
}

impl RowsByValue {
    fn new(block: &Block, path: &Path) -> RowsByValue {
        let mut made = RowsByValue::default();
        let (mut key, mut scratch) = (Vec::new(), Vec::new());
        let column = block.column(path.first());
        for row in 0..block.rows() {
            let top = column.and_then(|column| column.value(row, &mut scratch));
            walk_from_value(top, path.rest(), Leaf::Elements, &mut |value| {
                key.clear();
                append_key(&mut key, value.unwrap_or(Value::NULL));
                made.add(&key, row);
                false
            });
        }
        made
    }

    fn add(&mut self, key: &[u8], row: usize) {
        let (number, is_new) = self.values.add(key);
        if is_new {
            self.last.push(0);
        }
        if let Some(last) = self.last.get_mut(number) {
            let before = std::mem::replace(last, small(self.entries.len()));
            self.entries.push((small(row), Some(before).filter(|_| !is_new)));
        }
    }

    /// Of `count` rows, those with one of `values`.
    fn rows(&self, values: &[OwnedValue], count: usize) -> Bitmap {
        let (mut found, mut key) = (Bitmap::filled(count, false), Vec::new());
        for value in values {
            key.clear();
            append_key(&mut key, value.view());
            let mut next = self.values.get(&key).and_then(|number| self.last.get(number)).copied();
            while let Some((row, before)) = next.and_then(|entry| self.entries.get(entry as usize)) {
                found.set(*row as usize, true);
                next = *before;
            }
        }
        found
    }
}

/// Blocks hold fewer rows.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::{any_block, any_filter_doc, any_value, filter, owned};

    use bson::rawbson;
    use proptest::prelude::*;

    /// The candidates of each equality by itself.
    fn found(block: &Block, filter: &Filter) -> Vec<Bitmap> {
        let by_value = |(path, values): (Path, Vec<_>)| RowsByValue::new(block, &path).rows(&values, block.rows());
        filter.equalities().into_iter().map(by_value).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_row_that_passes_a_filter_is_a_candidate_of_each_equality(
            block in any_block(), doc in any_filter_doc(any_value()),
        ) {
            let filter = filter(&doc);
            if let Ok(passing) = filter.select(&block) {
                for candidates in found(&block, &filter) {
                    prop_assert!(passing.iter().all(|row| candidates.get(row)), "{:?} {:?}", filter, block);
                }
            }
        }

        #[test]
        fn the_candidates_of_one_equality_are_the_rows_that_pass_it(
            block in any_block(), place in 0..5_usize, value in any_value(),
        ) {
            let path = Path::parse(["a", "b", "a.b", "m.x.y", "a.0"][place]).unwrap();
            let filter = Filter::equal_to_any(&path, vec![owned(value)], &Default::default());
            prop_assert_eq!(found(&block, &filter), [filter.select(&block).unwrap()], "{:?} {:?}", filter, block);
        }
    }

    #[test]
    fn values_are_numbered_after_some_questions_and_only_of_enough_rows() {
        let block = |rows: usize| {
            let mut block = Block::new(rows);
            let numbers = (0..rows).map(|row| (row % 20) as i32).collect();
            block.set_column("n", crate::block::Column::new(crate::block::ColumnData::I32(numbers), None));
            block
        };
        let seven = filter(&bson::rawdoc! { "n": 7.0 });
        let mut known = EqualRows::default();
        for _ in 0..COMPARED_MAX {
            assert_eq!(known.candidates(&block(100), &seven), None);
        }
        assert_eq!(known.candidates(&block(100), &seven), Some(vec![7, 27, 47, 67, 87]));
        assert_eq!(known.narrow(block(100), &seven).rows(), 5);
        assert_eq!(known.narrow(block(ROWS_MIN - 1), &seven).rows(), ROWS_MIN - 1);
        let most = Filter::equal_to_any(
            &Path::parse("n").unwrap(),
            (0..19).map(|n| owned(rawbson!(n))).collect(),
            &Default::default(),
        );
        assert_eq!(known.candidates(&block(100), &most), None);
    }
}
