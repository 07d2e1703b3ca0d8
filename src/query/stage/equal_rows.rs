//! Finds the rows of another collection that a filter for equality may select, without looking at all of them for each
//! question.

use crate::block::{Bitmap, Block, ColumnData};
use crate::query::filter::Filter;
use crate::value::{Interner, Leaf, OwnedValue, Path, Value, append_key, walk_from_value};

/// Fewer rows are all looked at.
const ROWS_MIN: usize = 64;
/// How often all rows are looked at first: numbering takes as long as eight looks at texts, and as sixty at numbers. A
/// stage inside the pipeline of another `$lookup` starts anew for each row of that.
const LOOKS_MAX: usize = 16;
/// Candidates are copied with all their columns, so that they must be fewer than one in this many rows.
const SHARE_MAX: usize = 8;
/// Long arrays are not numbered: more values than this, on average of all rows.
const VALUES_MAX: usize = 4;

/// The rows of one block, which does not change, by their values at some paths.
#[derive(Default)]
pub(super) struct EqualRows {
    /// How often all rows were looked at.
    looks: usize,
    known: Vec<(Path, Option<RowsByValue>)>,
}

impl EqualRows {
    /// Rows of `block` among which are all that pass `filter`, and no others if it is a single test for equality; `None`
    /// if they are not known without looking at all rows, or if they are not few.
    pub fn candidates(&mut self, block: &Block, filter: &Filter) -> Option<Bitmap> {
        if block.rows() < ROWS_MIN || self.looks < LOOKS_MAX {
            self.looks += 1;
            return None;
        }
        let mut fewest: Option<Bitmap> = None;
        for (path, values) in filter.equalities() {
            if !self.known.iter().any(|(known, _)| *known == path) {
                self.known.push((path.clone(), RowsByValue::new(block, &path)));
            }
            let by_value = self.known.iter().find(|(known, _)| *known == path).and_then(|(_, known)| known.as_ref());
            let found = by_value.map(|by_value| by_value.rows(&values, block.rows()));
            fewest = fewest.into_iter().chain(found).min_by_key(Bitmap::count);
        }
        fewest.filter(|rows| SHARE_MAX * rows.count() < block.rows())
    }

    /// The rows of `block` that may pass `filter`, in their order.
    pub fn narrow(&mut self, block: Block, filter: &Filter) -> Block {
        match self.candidates(&block, filter) {
            // A projection fails by its constant parts even if no row passes the filter, but not without rows.
            Some(rows) if rows.none() => block.slice(0..1),
            Some(rows) => block.gather(&rows.to_rows()),
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
    /// `None` if there are too many values.
    fn new(block: &Block, path: &Path) -> Option<RowsByValue> {
        let mut made = RowsByValue::default();
        let (mut key, mut scratch) = (Vec::new(), Vec::new());
        let column = block.column(path.first());
        // Rows with one entry of a dictionary have the same values.
        let entries = column.and_then(|column| match (column.data(), column.presence()) {
            (ColumnData::Dictionary(index, values), None) => Some((index, vec![None::<Vec<usize>>; values.len()])),
            _ => None,
        });
        let (index, mut known) = entries.unzip();
        for row in 0..block.rows() {
            let slot = index.and_then(|index| index.get(row)).zip(known.as_mut());
            let mut slot = slot.and_then(|(entry, known)| known.get_mut(*entry as usize));
            let mut numbers = slot.as_mut().and_then(|slot| slot.take()).unwrap_or_default();
            if numbers.is_empty() {
                let top = column.and_then(|column| column.value(row, &mut scratch));
                let is_full = walk_from_value(top, path.rest(), Leaf::Elements, &mut |value| {
                    key.clear();
                    append_key(&mut key, value.unwrap_or(Value::NULL));
                    numbers.push(made.values.add(&key).0);
                    numbers.len() > VALUES_MAX * block.rows()
                });
                if is_full {
                    return None;
                }
            }
            numbers.iter().for_each(|number| made.add(*number, row));
            if made.entries.len() > VALUES_MAX * block.rows() {
                return None;
            }
            if let Some(slot) = slot {
                *slot = Some(numbers);
            }
        }
        Some(made)
    }

    /// Adds a row to those with the value of this number.
    fn add(&mut self, number: usize, row: usize) {
        let is_new = number >= self.last.len();
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
    use crate::block::ColumnBuilder;
    use crate::query::filter::samples::{any_block, any_filter_doc, any_value, filter, owned, raw_array};
    use bson::{RawBson, rawbson, rawdoc};
    use proptest::prelude::*;

    /// The candidates of each equality by itself.
    fn found(block: &Block, filter: &Filter) -> Vec<Bitmap> {
        let by_value =
            |(path, values): (Path, Vec<_>)| Some(RowsByValue::new(block, &path)?.rows(&values, block.rows()));
        filter.equalities().into_iter().filter_map(by_value).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
            let found = found(&block, &filter);
            // Long arrays are not numbered.
            prop_assert!(found.iter().all(|rows| *rows == filter.select(&block).unwrap()), "{:?} {:?}", filter, block);
        }

        #[test]
        fn every_row_for_which_an_expression_of_equality_is_true_is_a_candidate(
            block in any_block(), place in 0..5_usize, value in any_value(), literal_first in any::<bool>(),
        ) {
            let path = RawBson::String(["$a", "$b", "$a.b", "$m.x.y", "$a.0"][place].to_owned());
            let literal = rawbson!({ "$literal": value });
            let sides = if literal_first { raw_array([literal, path]) } else { raw_array([path, literal]) };
            let filter = filter(&rawdoc! { "$expr": { "$eq": sides } });
            let passing = filter.select(&block).unwrap();
            for candidates in found(&block, &filter) {
                prop_assert!(passing.iter().all(|row| candidates.get(row)), "{:?} {:?}", filter, block);
            }
        }
    }

    fn block_of(name: &str, values: impl Iterator<Item = RawBson>) -> Block {
        let mut column = ColumnBuilder::new();
        values.for_each(|value| column.push(owned(value).view()));
        let column = column.finish();
        let mut block = Block::new(column.len());
        block.set_column(name, column);
        block
    }

    /// The candidates once values are numbered.
    fn candidates(block: &Block, filter: &Filter) -> Option<Vec<u32>> {
        let mut equal = EqualRows::default();
        for _ in 0..LOOKS_MAX {
            assert_eq!(equal.candidates(block, filter), None);
        }
        equal.candidates(block, filter).map(|rows| rows.to_rows())
    }

    #[test]
    fn values_are_numbered_after_some_questions_and_only_of_enough_rows() {
        let numbers = |rows| block_of("n", (0..rows).map(|row| rawbson!(row % 20)));
        let seven = filter(&rawdoc! { "n": 7.0 });
        assert_eq!(candidates(&numbers(100), &seven), Some(vec![7, 27, 47, 67, 87]));
        assert_eq!(candidates(&numbers(ROWS_MIN as i32 - 1), &seven), None);
        assert_eq!(
            candidates(&numbers(100), &filter(&rawdoc! { "n": { "$in": [1, 2, 3] } })),
            None,
            "they are not few"
        );
    }

    #[test]
    fn the_equality_with_the_fewest_rows_counts() {
        let mut block = block_of("n", (0..400).map(|row| rawbson!(row % 40)));
        block.set_column("m", block_of("m", (0..400).map(|row| rawbson!(row % 4))).column("m").unwrap().clone());
        assert_eq!(candidates(&block, &filter(&rawdoc! { "m": 3, "n": 7 })).map(|rows| rows.len()), Some(10));
        assert_eq!(candidates(&block, &filter(&rawdoc! { "m": 3 })), None);
    }

    #[test]
    fn long_arrays_are_not_numbered() {
        let of = |length: i32| {
            block_of("n", (0..100).map(|row| raw_array((0..length).map(|at| rawbson!(row * length + at)))))
        };
        let seven = filter(&rawdoc! { "n": 7 });
        assert_eq!(candidates(&of(3), &seven), Some(vec![2]));
        assert_eq!(candidates(&of(4), &seven), None, "each array counts as well");
    }

    #[test]
    fn a_row_is_left_to_fail_if_none_may_match() {
        let block = block_of("n", (0..100).map(|row| rawbson!(row)));
        let mut equal = EqualRows { looks: LOOKS_MAX, ..EqualRows::default() };
        assert_eq!(equal.narrow(block.clone(), &filter(&rawdoc! { "n": 7 })).rows(), 1);
        assert_eq!(equal.narrow(block.clone(), &filter(&rawdoc! { "n": 700 })).rows(), 1);
        assert_eq!(equal.narrow(block, &filter(&rawdoc! { "m": 1, "n": { "$gt": 7 } })).rows(), 1);
    }
}
