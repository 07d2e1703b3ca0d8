//! A selection of rows of a block: a span, or a list in any order.

use std::ops::Range;

use crate::block::{Block, Column};
use crate::listed::IntoList;
use crate::value::sort_by;

/// Rows of a block, in the order in which they are visited.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// `len` rows from `start` on.
    Span {
        /// The first row.
        start: usize,
        /// The number of rows.
        len: usize,
    },
    /// The rows in a list.
    List(&'a [u32]),
}

impl<'a> Rows<'a> {
    /// The number of rows.
    pub fn len(self) -> usize {
        match self {
            Rows::Span { len, .. } => len,
            Rows::List(rows) => rows.len(),
        }
    }

    /// True if there are no rows.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first `len` rows, or all if there are fewer.
    pub fn first(self, len: usize) -> Rows<'a> {
        match self {
            Rows::Span { start, len: all } => Rows::Span { start, len: all.min(len) },
            Rows::List(rows) => Rows::List(rows.get(..len).unwrap_or(rows)),
        }
    }

    /// The rows.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> + 'a {
        (0..self.len()).map(move |at| match self {
            Rows::Span { start, .. } => start + at,
            Rows::List(rows) => rows.get(at).map_or(0, |row| *row as usize),
        })
    }
}

impl From<Range<usize>> for Rows<'_> {
    fn from(range: Range<usize>) -> Self {
        Rows::Span { start: range.start, len: range.len() }
    }
}

impl<'a> From<&'a [u32]> for Rows<'a> {
    fn from(rows: &'a [u32]) -> Self {
        Rows::List(rows)
    }
}

/// The columns that have a cell in `rows`, in the order in which a walk row by row would meet them.
pub(super) fn first_seen<'b>(block: &'b Block, rows: Rows<'_>) -> impl Iterator<Item = (&'b str, &'b Column)> {
    let mut found: Vec<_> = block
        .columns()
        .iter()
        .filter_map(|(name, column)| Some((rows.iter().position(|row| column.is_present(row))?, &**name, column)))
        .listed();
    // Stable: columns that begin in the same row keep their order in the block.
    sort_by(&mut found, |(a, ..), (b, ..)| a.cmp(b));
    found.into_iter().map(|(_, name, column)| (name, column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::value::Doc;
    use bson::rawdoc;

    #[test]
    fn columns_are_in_the_order_of_their_first_cell() {
        let docs = [rawdoc! { "a": 1 }, rawdoc! { "c": 1, "b": 1 }, rawdoc! { "b": 1 }, rawdoc! { "d": 1, "c": 1 }];
        let block = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
        let names = |rows: Rows<'_>| first_seen(&block, rows).map(|(name, _)| name).collect::<String>();
        assert_eq!(names(Rows::from(0..4)), "acbd");
        assert_eq!(names(Rows::from(2..4)), "bdc");
        assert_eq!(names(Rows::from(&[3, 0][..])), "dca");
    }

    #[test]
    fn a_span_and_a_list_of_the_same_rows_agree() {
        let list = [3, 4, 5];
        for rows in [Rows::from(3..6), Rows::from(&list[..])] {
            assert_eq!(rows.iter().collect::<Vec<_>>(), [3, 4, 5]);
            assert_eq!(rows.first(2).iter().collect::<Vec<_>>(), [3, 4]);
            assert_eq!((rows.len(), rows.first(9).len(), rows.first(0).is_empty()), (3, 3, true));
        }
    }
}
