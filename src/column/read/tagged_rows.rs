//! Columns of numbers, dates, booleans and null, of several types: a type byte and a word for each row.

use kernels::tagged;

use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData, VarData};
use crate::value::Kind;

/// True for the types whose values are words.
#[inline]
pub fn takes(kind: Kind) -> bool {
    matches!(kind, Kind::Double | Kind::Date | Kind::Int64 | Kind::Int32 | Kind::Bool | Kind::Null)
}

/// The column of rows with these type bytes, as a dictionary if its values repeat. Words of rows that are not present are zero.
pub fn column(mut kinds: Vec<u8>, mut words: Vec<u64>, presence: Option<Bitmap>) -> Column {
    let rows = words.len();
    if presence.as_ref().map_or(rows == 0, Bitmap::none) {
        let mut builder = ColumnBuilder::new();
        builder.push_absent(rows);
        return builder.finish();
    }
    tagged::narrow(&kinds, &mut words);
    if let Some(presence) = &presence {
        kinds.iter_mut().enumerate().for_each(|(row, kind)| *kind *= u8::from(presence.get(row)));
    }
    if let Some((index, kinds, words)) = tagged::entries(&kinds, &words) {
        let values = Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), None);
        return Column::new(ColumnData::Dictionary(index, Box::new(values)), presence);
    }
    Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), presence)
}
