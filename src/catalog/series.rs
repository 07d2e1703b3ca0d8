//! Splits the rows of a block by series, that is, by the bytes of their normalised metadata.

use std::ops::Range;

use super::offer::OfferAnswer;
use crate::block::{Column, ColumnData};
use crate::listed::IntoList;
use crate::value::{Interner, OwnedValue, Value, as_metadata};

/// The rows of a block by series.
#[derive(Debug, Default)]
pub struct SeriesRows {
    /// Row numbers grouped by series, ascending within each.
    pub order: Vec<u32>,
    /// Normalised metadata and row count of every series, in first-seen order; `None` for measurements without
    /// metadata. Missing and null are two series.
    pub series: Vec<(Option<OwnedValue>, usize)>,
}

/// A series of a batch, and its progress.
pub(super) struct BatchSeries {
    pub meta: Option<OwnedValue>,
    /// Position in the batch's order of the first row without a bucket.
    pub next: usize,
    /// The range of its rows in the batch's order.
    pub rows: Range<usize>,
    /// The position of the series in the catalog.
    pub slot: usize,
    /// The search for a bucket of the next row.
    pub search: BucketSearch,
}

/// The search for the bucket of one row. It starts afresh for every row that the current bucket does not take.
#[derive(Debug, Default)]
pub(super) struct BucketSearch {
    /// True once an open bucket was met that rules out looking for stored ones.
    pub query_forbidden: bool,
    /// True once any open or stored bucket of the series was met.
    pub saw_bucket: bool,
    /// The answer to the last request for a stored bucket.
    pub answer: Option<OfferAnswer>,
    /// How many requests there were.
    pub attempts: usize,
}

/// Splits `rows` rows by the metadata column.
pub fn split(meta: Option<&Column>, rows: usize) -> SeriesRows {
    let one =
        |meta| SeriesRows { order: (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect(), series: vec![(meta, rows)] };
    let Some(column) = meta else { return one(None) };
    let distinct = if let ColumnData::Dictionary(_, values) = column.data() { values.len() } else { 0 };
    let mut series = SeriesSplitter {
        numbers: Interner::with_capacity(distinct),
        metadata: Vec::with_capacity(distinct),
        of_rows: Vec::with_capacity(rows),
    };
    let mut scratch = Vec::new();
    if let ColumnData::Dictionary(index, values) = column.data() {
        // Each distinct value is normalised and hashed only once.
        if column.presence().is_none() && values.len() == 1 {
            return one(values.value(0, &mut scratch).map(as_metadata));
        }
        let numbers: Vec<u32> = (0..values.len()).map(|at| series.number(values.value(at, &mut scratch))).collect();
        for (row, at) in index.iter().enumerate() {
            let number = match numbers.get(*at as usize) {
                Some(number) if column.is_present(row) => *number,
                _ => series.number(None),
            };
            series.of_rows.push(number);
        }
    } else {
        for row in 0..rows {
            let number = series.number(column.value(row, &mut scratch));
            series.of_rows.push(number);
        }
    }
    series.finish()
}

struct SeriesSplitter {
    /// Numbers by the bytes of the metadata; no bytes stand for no metadata.
    numbers: Interner,
    metadata: Vec<Option<OwnedValue>>,
    /// The series of each row.
    of_rows: Vec<u32>,
}

impl SeriesSplitter {
    fn number(&mut self, meta: Option<Value<'_>>) -> u32 {
        let meta = meta.map(as_metadata);
        let (number, new) = self.numbers.add(meta.as_ref().map_or(&[], OwnedValue::tagged));
        if new {
            self.metadata.push(meta);
        }
        // A block has fewer rows than that.
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn finish(self) -> SeriesRows {
        let mut lens = vec![0; self.metadata.len()];
        self.of_rows.iter().for_each(|number| {
            if let Some(len) = lens.get_mut(*number as usize) {
                *len += 1;
            }
        });
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end - len)
        });
        let mut next: Vec<usize> = ends.collect();
        let mut order = vec![0; self.of_rows.len()];
        for (row, number) in (0_u32..).zip(&self.of_rows) {
            let Some(next) = next.get_mut(*number as usize) else { continue };
            if let Some(place) = order.get_mut(*next) {
                *place = row;
            }
            *next += 1;
        }
        // A dictionary may hold values that no row has.
        let series = self.metadata.into_iter().zip(lens).filter(|(_, len)| *len > 0).listed();
        SeriesRows { order, series }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::value::Doc;
    use bson::{Bson, rawdoc};

    fn listed(found: SeriesRows) -> Vec<(Option<OwnedValue>, Vec<u32>)> {
        let mut order = found.order.into_iter();
        found.series.into_iter().map(|(meta, len)| (meta, order.by_ref().take(len).collect())).collect()
    }

    fn split_docs(docs: &[bson::RawDocumentBuf]) -> Vec<(Option<OwnedValue>, Vec<u32>)> {
        let block = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
        listed(split(block.column("m"), docs.len()))
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
    fn a_dictionary_splits_into_series_like_a_plain_column() {
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
        let read = |c: &Column| listed(split(Some(c), 5));
        let mut by_dictionary = read(&dictionary);
        by_dictionary.sort_by_key(|s| s.1.clone());
        assert_eq!(by_dictionary, read(&plain));
        assert_eq!(by_dictionary.len(), 2);
    }
}
