//! Numbers the groups of rows by the columns of their keys.

use std::ops::Range;

use super::cells::KeyCells;
use crate::block::Column;
use crate::listed::IntoList;
use crate::query::exec::{Coder, MissingAs, Numbers, Tuples};
use crate::value::Collation;

/// The groups of a `$group`, numbered from 0 on in the order of their first rows.
pub(super) struct GroupKeys {
    /// One for each part of the key.
    coders: Vec<Coder>,
    /// The parts' numbers.
    tuples: Tuples,
    /// The numbers of each part's entries, as far as rows had them.
    entries: Vec<Vec<u32>>,
}

impl GroupKeys {
    /// No groups by keys of so many parts.
    pub fn new(parts: usize, collation: &Collation) -> GroupKeys {
        // As the only part of a key, a missing value counts as null; among others it is left out.
        let missing = if parts == 1 { MissingAs::Null } else { MissingAs::Undefined };
        GroupKeys {
            coders: (0..parts).map(|_| Coder::new(collation.clone(), missing)).collect(),
            tuples: Tuples::new(parts),
            entries: vec![Vec::new(); parts],
        }
    }

    /// Says that the entries that come now are others than before.
    pub fn forget_entries(&mut self) {
        self.entries.iter_mut().for_each(Vec::clear);
    }

    /// The groups of these rows.
    pub fn numbers(&mut self, keys: &[KeyCells], rows: &Range<usize>) -> Numbers {
        let coders = self.coders.iter_mut().zip(&mut self.entries);
        let parts = coders.zip(keys).map(|((coder, entries), key)| match key {
            KeyCells::Rows(cells) => coder.numbers(cells, rows.clone()),
            KeyCells::Runs(runs, values) => coder.numbers_of_runs(&mut runs.within(rows), values, entries),
        });
        let parts = parts.listed();
        let counts = self.coders.iter().map(|coder| coder.count()).listed();
        self.tuples.numbers(parts, &counts, rows.len())
    }

    /// How many groups are known.
    pub fn count(&self) -> usize {
        let parts = || self.coders.first().map_or(1, |coder| coder.count());
        self.tuples.len().unwrap_or_else(parts)
    }

    /// True if keys that compare equal may differ in their bytes.
    pub fn has_aliases(&self) -> bool {
        self.coders.iter().any(Coder::has_aliases)
    }

    /// The parts of the keys of the first `count` groups, a column for each part. If keys that compare equal may differ in their bytes, they are those of any
    /// group.
    pub fn columns(&self, count: usize) -> Vec<Column> {
        let parts = self.tuples.parts(0..count as u32).into_iter();
        parts.zip(&self.coders).map(|(part, coder)| coder.column(part)).listed()
    }

    /// The length of the keys of all groups from the number `first` on.
    pub fn key_lens(&self, first: usize) -> usize {
        let parts = self.tuples.parts(first as u32..self.count() as u32).into_iter();
        parts.zip(&self.coders).map(|(part, coder)| coder.key_lens(&part)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ColumnData;
    use crate::query::exec::samples::{any_column, cell, without_case};
    use crate::value::{OwnedValue, Value};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_those_of_comparing_every_row_with_all_before(
            blocks in prop::collection::vec([any_column(40), any_column(40), any_column(40)], 1..5),
            parts in 1..4_usize, is_collated in any::<bool>(),
        ) {
            let collation = if is_collated { without_case() } else { Collation::default() };
            let mut keys = GroupKeys::new(parts, &collation);
            let (mut known, mut lens): (Vec<Vec<OwnedValue>>, Vec<usize>) = Default::default();
            for block in &blocks {
                let columns = &block[..parts];
                let cells: Vec<_> = columns.iter().cloned().map(KeyCells::Rows).collect();
                let found = keys.numbers(&cells, &(3..40)).into_each(37);
                prop_assert!(found.iter().all(|number| (*number as usize) < keys.count()));
                for (row, number) in (3..40).zip(found) {
                    let missing = if parts == 1 { Value::NULL } else { Value::UNDEFINED };
                    let key: Vec<_> =
                        columns.iter().map(|column| cell(column, row).unwrap_or(missing.to_owned())).collect();
                    let equal = |known: &Vec<OwnedValue>| {
                        known.iter().zip(&key).all(|(a, b)| collation.equal(a.view(), b.view()))
                    };
                    let at = known.iter().position(equal).unwrap_or(known.len());
                    prop_assert_eq!(number as usize, at, "{:?}", key);
                    prop_assert!(at == known.len() || known[at] == key || keys.has_aliases());
                    if at == known.len() {
                        let mut bytes = Vec::new();
                        key.iter().for_each(|part| crate::value::append_key(&mut bytes, part.view()));
                        lens.push(bytes.len());
                        known.push(key);
                    }
                }
                prop_assert_eq!(keys.count(), known.len());
                for first in [0, known.len() / 2, known.len()] {
                    prop_assert!(is_collated || keys.key_lens(first) == lens[first..].iter().sum::<usize>());
                }
                let columns = keys.columns(known.len());
                prop_assert_eq!(columns.len(), parts);
                for (part, column) in columns.iter().enumerate() {
                    for (group, key) in known.iter().enumerate() {
                        let missing = if parts == 1 { Value::NULL } else { Value::UNDEFINED };
                        let found = cell(column, group).unwrap_or(missing.to_owned());
                        prop_assert!(found == key[part] || keys.has_aliases() && collation.equal(found.view(), key[part].view()));
                    }
                }
            }
        }
    }

    #[test]
    fn thousands_of_groups_keep_their_numbers_over_many_blocks() {
        let mut keys = GroupKeys::new(3, &Collation::default());
        let minutes =
            |first: i64| Column::new(ColumnData::Date((first..first + 60).map(|n| n * 60_000).collect()), None);
        for round in 0..2 {
            let mut next = 0;
            for host in 0..100 {
                for hour in 0..6 {
                    let host = Column::constant(OwnedValue::string(&format!("host_{host}")).view(), 60);
                    let parity = Column::new(ColumnData::I32((0..60).map(|n| n % 2).collect()), None);
                    let numbers = keys.numbers(&[host, minutes(hour * 60), parity].map(KeyCells::Rows), &(0..60));
                    assert_eq!(numbers, Numbers::Each((next..next + 60).collect()), "round {round}");
                    next += 60;
                }
            }
        }
        assert!(!keys.has_aliases());
    }
}
