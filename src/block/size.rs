//! How many bytes values take in a document.

use super::column::{Column, ColumnData};
use super::objects::ShapePart;
use super::table::Block;

/// Type and end of name of a field in a document.
const FIELD_BYTES: usize = 2;
/// Length, end, type and number of a document in an array.
const ROW_BYTES: usize = 12;

impl Block {
    /// About the bytes of its rows as documents in an array, as a reply has them.
    pub fn document_bytes(&self) -> usize {
        let of_field = |(name, column): &(Box<str>, Column)| {
            (name.len() + FIELD_BYTES) * column.present_count() + column.document_bytes()
        };
        ROW_BYTES * self.rows() + self.columns().iter().map(of_field).sum::<usize>()
    }
}

impl Column {
    /// About the bytes of all values in documents, each row with a value of its own, without the name and the type of the
    /// field.
    fn document_bytes(&self) -> usize {
        let present = self.present_count();
        match self.data() {
            ColumnData::String(values) => 5 * present + values.bytes.len(),
            ColumnData::Bson(values) => values.bytes.len(),
            ColumnData::Objects(objects) => {
                let names = objects.parts().iter().map(|part| match part {
                    ShapePart::Scalar(name) => name.len() + FIELD_BYTES,
                    ShapePart::Open(_, name) => name.len() + FIELD_BYTES + 5,
                    ShapePart::Close(_) => 0,
                });
                let scalars = objects.scalars().iter().map(Column::document_bytes);
                (5 + names.sum::<usize>()) * present + scalars.sum::<usize>()
            }
            ColumnData::Dictionary(index, values) => {
                let sizes: Vec<usize> = (0..values.len()).map(|entry| values.value_bytes(entry)).collect();
                index.iter().filter_map(|entry| sizes.get(*entry as usize)).sum()
            }
            _ => self.value_bytes_max() * present,
        }
    }

    /// Approximate bytes that the cells take in memory.
    pub fn size_bytes(&self) -> usize {
        let rows = self.len();
        match self.data() {
            ColumnData::F64(_) | ColumnData::I64(_) | ColumnData::Date(_) => 8 * rows,
            ColumnData::I32(_) | ColumnData::Dictionary(..) => 4 * rows,
            ColumnData::Bool(_) => rows,
            ColumnData::ObjectId(_) => 12 * rows,
            ColumnData::String(v) | ColumnData::Bson(v) => 4 * rows + v.bytes.len(),
            ColumnData::Objects(objects) => objects.scalars().iter().map(Column::size_bytes).sum(),
        }
    }

    /// Bytes of a row's value in a document, without its name and type. The cell must be present.
    pub fn value_bytes(&self, row: usize) -> usize {
        match self.data() {
            ColumnData::String(values) => 5 + values.get(row).len(),
            ColumnData::Bson(values) => values.get(row).len().saturating_sub(1),
            ColumnData::Dictionary(index, values) => index.get(row).map_or(0, |at| values.value_bytes(*at as usize)),
            ColumnData::Objects(_) => self.value(row, &mut Vec::new()).map_or(0, |value| value.bytes().len()),
            _ => self.value_bytes_max(),
        }
    }

    /// Bytes of the largest value of any row.
    pub fn value_bytes_max(&self) -> usize {
        let length = |pair: &[u32]| match pair {
            [start, end] => end.saturating_sub(*start),
            _ => 0,
        };
        let longest = |offsets: &[u32]| offsets.windows(2).map(length).max().unwrap_or_default() as usize;
        match self.data() {
            ColumnData::F64(_) | ColumnData::I64(_) | ColumnData::Date(_) => 8,
            ColumnData::I32(_) => 4,
            ColumnData::Bool(_) => 1,
            ColumnData::ObjectId(_) => 12,
            ColumnData::String(values) => 5 + longest(&values.offsets),
            ColumnData::Bson(values) => longest(&values.offsets).saturating_sub(1),
            ColumnData::Objects(_) => (0..self.len()).map(|row| self.value_bytes(row)).max().unwrap_or_default(),
            ColumnData::Dictionary(_, values) => values.value_bytes_max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, rawdoc};

    use super::super::{ColumnBuilder, ColumnData, pivot_docs};
    use super::*;
    use crate::value::{Doc, OwnedValue};

    #[test]
    fn the_size_of_a_value_is_what_it_adds_to_an_empty_document() {
        let values = [
            OwnedValue::double(1.0),
            OwnedValue::int32(1),
            OwnedValue::int64(1),
            OwnedValue::date(1),
            OwnedValue::bool(true),
            OwnedValue::object_id([1; 12]),
            OwnedValue::string("text"),
            OwnedValue::null(),
        ];
        for value in &values {
            let mut builder = ColumnBuilder::new();
            builder.push(value.view());
            let column = builder.finish();
            let dictionary = Column::new(ColumnData::Dictionary(vec![0, 0], Box::new(column.clone())), None);
            let bytes = value.view().bytes().len();
            assert_eq!((column.value_bytes(0), column.value_bytes_max()), (bytes, bytes), "{value:?}");
            assert_eq!((dictionary.value_bytes(1), dictionary.value_bytes_max()), (bytes, bytes), "{value:?}");
        }
        let mut builder = ColumnBuilder::new();
        values.iter().for_each(|value| builder.push(value.view()));
        let mixed = builder.finish();
        let sizes: Vec<_> = (0..values.len()).map(|row| mixed.value_bytes(row)).collect();
        assert_eq!((sizes, mixed.value_bytes_max()), (vec![8, 4, 8, 8, 1, 12, 9, 0], 12));
    }

    #[test]
    fn rows_of_a_block_are_measured_as_documents_also_if_they_share_values() {
        let long = "x".repeat(1000);
        let mixed = |n: i32| if n % 2 == 0 { RawBson::Null } else { RawBson::Int64(1) };
        let rows: Vec<_> = (0..100)
            .map(|n| rawdoc! { "n": n, "text": long.as_str(), "object": { "name": n, "list": [1.0, { "deep": "text" }] }, "mixed": mixed(n) })
            .collect();
        let mut block = pivot_docs(rows.iter().map(|row| Doc::parse(row.as_bytes()).unwrap())).unwrap();
        let expected: usize = rows.iter().map(|row| row.as_bytes().len() + 4).sum();
        let within = |bytes: usize| (expected * 9 / 10..expected * 11 / 10).contains(&bytes);
        assert!(within(block.document_bytes()), "{} of {expected}", block.document_bytes());
        let mut builder = ColumnBuilder::new();
        builder.push(OwnedValue::string(&long).view());
        block.set_column("text", Column::new(ColumnData::Dictionary(vec![0; 100], Box::new(builder.finish())), None));
        assert!(within(block.document_bytes()), "{} of {expected}", block.document_bytes());
        assert!(block.size_bytes() < expected / 5);
    }
}
