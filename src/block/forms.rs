//! Converts columns: to one repeated value, to cells without a dictionary, to one type.

use super::builder::{ColumnBuilder, push_tagged};
use super::column::{Column, ColumnData, VarData};
use crate::value::{Kind, Value};

impl Column {
    /// The values with these numbers: a dictionary if most of them come several times.
    pub fn of_entries(numbers: Vec<u32>, values: Column) -> Column {
        if 2 * values.len() > numbers.len() {
            return values.gather(&numbers);
        }
        Column::new(ColumnData::Dictionary(numbers, Box::new(values)), None)
    }

    /// `len` rows that all hold `value`, stored once.
    pub fn constant(value: Value<'_>, len: usize) -> Column {
        // Each bucket has one for its metadata. The builder would let its vectors grow step by step.
        let values = match value.kind() {
            Kind::Object => {
                let tagged = [&[value.kind().byte()], value.bytes()].concat();
                let end = u32::try_from(tagged.len()).unwrap_or(u32::MAX);
                Column::new(ColumnData::Bson(VarData { offsets: vec![0, end], bytes: tagged }), None)
            }
            _ => {
                let mut builder = ColumnBuilder::new();
                builder.push(value);
                builder.finish()
            }
        };
        Column::new(ColumnData::Dictionary(vec![0; len], Box::new(values)), None)
    }

    /// The same cells without a dictionary.
    pub fn into_plain(self) -> Column {
        let ColumnData::Dictionary(index, values) = self.data() else { return self.into_values() };
        let mut plain = values.gather(index);
        if let Some(presence) = self.presence() {
            // The slot of an absent cell must be zero or empty, whatever the dictionary's first entry is.
            let mut builder = ColumnBuilder::new();
            let mut scratch = Vec::new();
            for row in 0..plain.len() {
                match plain.value(row, &mut scratch).filter(|_| presence.get(row)) {
                    Some(value) => builder.push(value),
                    None => builder.push_absent(1),
                }
            }
            plain = builder.finish();
        }
        plain
    }

    /// The values with their type bytes.
    pub(super) fn tagged(&self) -> VarData {
        let (rows, mut tagged) = (0..self.len(), VarData::default());
        if tagged.extend_tagged(self, &rows) {
            return tagged;
        }
        let mut scratch = Vec::new();
        for row in rows {
            match self.value(row, &mut scratch) {
                Some(value) => push_tagged(&mut tagged, value),
                None => tagged.seal(),
            }
        }
        tagged
    }

    /// A typed column, if all present cells of a BSON column have one type that has a typed form.
    pub fn narrowed(self) -> Column {
        let ColumnData::Bson(v) = self.data() else { return self };
        let mut tags = (0..v.len()).filter(|row| self.is_present(*row)).map(|row| v.get(row).first().copied());
        let first = tags.next().flatten().and_then(Kind::from_byte);
        let typed = matches!(
            first,
            Some(Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Date | Kind::Bool | Kind::String | Kind::ObjectId)
        );
        if !typed || !tags.all(|tag| tag == first.map(Kind::byte)) {
            return self;
        }
        let mut builder = ColumnBuilder::with_capacity(self.len());
        builder.extend(&self, 0..self.len());
        builder.finish()
    }
}
