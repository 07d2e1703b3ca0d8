//! How many bytes values take in a document.

use super::column::{Column, ColumnData};

impl Column {
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
    use super::super::{ColumnBuilder, ColumnData};
    use super::*;
    use crate::value::OwnedValue;

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
}
