//! Splitting the rows of a block by series: by the normalised metadata, binary identity.

use crate::block::{Column, ColumnData};
use crate::value::{Numbers, OwnedValue, Value, normalize};

/// The rows of one series, in input order.
#[derive(Debug)]
pub struct SeriesRows {
    /// Normalised metadata; `None` for measurements without any. Missing and null are two series.
    pub meta: Option<OwnedValue>,
    /// Row numbers, ascending.
    pub rows: Vec<u32>,
}

/// Splits `rows` rows by the metadata column; series in first-seen order.
pub fn split(meta: Option<&Column>, rows: usize) -> Vec<SeriesRows> {
    let all = || (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect::<Vec<u32>>();
    let Some(column) = meta else { return vec![SeriesRows { meta: None, rows: all() }] };
    let mut series = Series::default();
    let mut scratch = Vec::new();
    if let ColumnData::Dictionary(index, values) = column.data() {
        // Each distinct value is normalised and hashed once.
        if column.presence().is_none() && values.len() == 1 {
            let only = values.value(0, &mut scratch).map(normalize);
            return vec![SeriesRows { meta: only, rows: all() }];
        }
        let slots: Vec<usize> = (0..values.len()).map(|at| series.slot(values.value(at, &mut scratch))).collect();
        for (row, at) in index.iter().enumerate() {
            let slot = match slots.get(*at as usize) {
                Some(slot) if column.is_present(row) => *slot,
                _ => series.slot(None),
            };
            series.add(slot, row);
        }
    } else {
        for row in 0..rows {
            let slot = series.slot(column.value(row, &mut scratch));
            series.add(slot, row);
        }
    }
    series.list.retain(|s| !s.rows.is_empty());
    series.list
}

#[derive(Default)]
struct Series {
    /// By the bytes of the metadata; none stands for none.
    slots: Numbers,
    list: Vec<SeriesRows>,
}

impl Series {
    fn slot(&mut self, meta: Option<Value<'_>>) -> usize {
        let meta = meta.map(normalize);
        let (slot, new) = self.slots.add(meta.as_ref().map_or(&[], OwnedValue::tagged));
        if new {
            self.list.push(SeriesRows { meta, rows: Vec::new() });
        }
        slot
    }

    fn add(&mut self, slot: usize, row: usize) {
        if let (Some(series), Ok(row)) = (self.list.get_mut(slot), u32::try_from(row)) {
            series.rows.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::value::Doc;
    use bson::{Bson, rawdoc};

    fn split_docs(docs: &[bson::RawDocumentBuf]) -> Vec<(Option<OwnedValue>, Vec<u32>)> {
        let block = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
        split(block.column("m"), docs.len()).into_iter().map(|s| (s.meta, s.rows)).collect()
    }

    #[test]
    fn key_order_inside_metadata_does_not_make_another_series() {
        let found = split_docs(&[
            rawdoc! { "m": [{ "a": 0, "b": { "x": 1, "y": 2 } }] },
            rawdoc! { "m": [{ "b": { "y": 2, "x": 1 }, "a": 0 }] },
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, [0, 1]);
    }

    #[test]
    fn null_missing_and_empty_metadata_are_three_series() {
        let found = split_docs(&[rawdoc! { "m": Bson::Null.to_string() }, rawdoc! {}, rawdoc! { "m": {} }]);
        assert_eq!(found.len(), 3);
        assert!(found[1].0.is_none());
    }

    #[test]
    fn numbers_of_different_types_are_different_series() {
        let found = split_docs(&[rawdoc! { "m": 1 }, rawdoc! { "m": 1_i64 }, rawdoc! { "m": 1.0 }, rawdoc! { "m": 1 }]);
        assert_eq!(found.iter().map(|s| s.1.clone()).collect::<Vec<_>>(), [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn a_dictionary_splits_as_the_plain_column_does() {
        let values = pivot_docs([
            Doc::parse(rawdoc! { "m": { "b": 1, "a": 2 } }.as_bytes()).unwrap(),
            Doc::parse(rawdoc! { "m": "x" }.as_bytes()).unwrap(),
            Doc::parse(rawdoc! { "m": { "a": 2, "b": 1 } }.as_bytes()).unwrap(),
        ])
        .unwrap();
        let index = vec![2, 1, 0, 1, 1];
        let plain = values.column("m").unwrap().gather(&index);
        let dictionary =
            Column::new(ColumnData::Dictionary(index, Box::new(values.column("m").unwrap().clone())), None);
        let read = |c: &Column| split(Some(c), 5).into_iter().map(|s| (s.meta, s.rows)).collect::<Vec<_>>();
        let mut by_dictionary = read(&dictionary);
        by_dictionary.sort_by_key(|s| s.1.clone());
        assert_eq!(by_dictionary, read(&plain));
        assert_eq!(by_dictionary.len(), 2);
    }
}
