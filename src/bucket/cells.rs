//! Reads uncompressed buckets: the cells of each column into a typed column.

use super::row_key::{CellHead, ROWS_MAX, parse_key};
use crate::block::{Bitmap, Block, Bytes12, Column, ColumnBuilder, ColumnData, VarData};
use crate::value::{Doc, FieldSet, Interner, Kind, Value};

/// The time column, which also defines the rows of the bucket.
pub(super) struct BucketTimes {
    pub(super) values: Vec<i64>,
    /// The row of every key; `None` if the keys are the row numbers.
    places: Option<Interner>,
}

impl BucketTimes {
    /// Times of rows in this order.
    pub(super) fn of(values: Vec<i64>) -> BucketTimes {
        BucketTimes { values, places: None }
    }

    pub(super) fn read(column: Value<'_>) -> Result<BucketTimes, String> {
        let cells = column.as_doc().ok_or("the time column is not an object")?;
        let bytes = elements(cells);
        // A date takes at least eleven bytes.
        let mut values: Vec<i64> = Vec::with_capacity(bytes.len() / 11);
        match walk(bytes, Kind::Date, None, &mut values) {
            Some(_) => Ok(BucketTimes { values, places: None }),
            None => BucketTimes::read_by_key(cells),
        }
    }

    fn read_by_key(cells: Doc<'_>) -> Result<BucketTimes, String> {
        let mut values = Vec::new();
        let mut places = Interner::default();
        for (key, value) in cells {
            let place =
                parse_key(key.as_bytes()).ok_or_else(|| format!("the key '{key}' of a time is not a row number"))?;
            if !places.add(&place.to_le_bytes()).1 {
                return Err(format!("the key '{key}' of a time occurs twice"));
            }
            values.push(value.as_date_ms().ok_or_else(|| format!("the time at '{key}' is {value:?}, not a date"))?);
        }
        Ok(BucketTimes { values, places: Some(places) })
    }

    fn row_of(&self, key: usize) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&key.to_le_bytes()),
            None => Some(key),
        }
    }
}

/// The rows of an uncompressed bucket, as for `unpack`. The columns in `known` are taken as they are.
pub(super) fn uncompressed(
    (times, data): (Value<'_>, Doc<'_>),
    wanted: &FieldSet,
    time_field: &str,
    known: &Block,
) -> Result<Block, String> {
    let mut times = BucketTimes::read(times)?;
    let mut block = Block::new(times.values.len());
    if wanted.contains(time_field) {
        block.set_column(time_field, Column::new(ColumnData::Date(std::mem::take(&mut times.values)), None));
    }
    let mut seen = Interner::default();
    for (name, cells) in data {
        if !seen.add(name.as_bytes()).1 {
            return Err(format!("column '{name}' occurs twice"));
        }
        if name == time_field || !wanted.contains(name) {
            continue;
        }
        if let Some(column) = known.column(name) {
            block.push_new_column(name, column.clone());
            continue;
        }
        let column = cells.as_doc().ok_or_else(|| "it is not an object".to_owned());
        let column = column.and_then(|cells| read_column(cells, block.rows(), &times));
        if let Some(column) = column.map_err(|what| format!("column '{name}': {what}"))? {
            block.push_new_column(name, column);
        }
    }
    Ok(block)
}

/// The column of `cells`, over `rows` rows; `None` if there is no cell.
pub(super) fn read_column(cells: Doc<'_>, rows: usize, times: &BucketTimes) -> Result<Option<Column>, String> {
    let bytes = elements(cells);
    let Some(kind) = bytes.first().copied().and_then(Kind::from_byte) else { return Ok(None) };
    let column = match kind {
        _ if times.places.is_some() => None,
        Kind::Double => read_fixed(bytes, kind, rows, ColumnData::F64),
        Kind::Int32 => read_fixed(bytes, kind, rows, ColumnData::I32),
        Kind::Int64 => read_fixed(bytes, kind, rows, ColumnData::I64),
        Kind::Date => read_fixed(bytes, kind, rows, ColumnData::Date),
        Kind::Bool => read_fixed(bytes, kind, rows, ColumnData::Bool),
        Kind::ObjectId => read_fixed(bytes, kind, rows, ColumnData::ObjectId),
        Kind::String => {
            let mut strings = VarData::default();
            walk(bytes, kind, Some(rows), &mut strings)
                .map(|presence| Column::new(ColumnData::String(strings), presence))
        }
        _ => None,
    };
    match column {
        Some(column) => Ok(Some(column)),
        None => read_by_key(cells, rows, times).map(Some),
    }
}

fn read_fixed<T: FixedWidth>(bytes: &[u8], kind: Kind, rows: usize, data: fn(Vec<T>) -> ColumnData) -> Option<Column> {
    let mut cells = Vec::with_capacity(rows);
    let presence = walk(bytes, kind, Some(rows), &mut cells)?;
    Some(Column::new(data(cells), presence))
}

/// Collects cells of one type.
trait CellSink {
    /// Reads the value at the start of `bytes`; returns the bytes after it.
    fn push<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]>;
    /// Leaves `count` cells empty.
    fn push_absent(&mut self, count: usize);
}

impl<T: FixedWidth> CellSink for Vec<T> {
    #[inline]
    fn push<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (value, rest) = T::split_first(bytes)?;
        Vec::push(self, value);
        Some(rest)
    }

    fn push_absent(&mut self, count: usize) {
        self.resize(self.len() + count, T::default());
    }
}

/// A value of a fixed-width type.
trait FixedWidth: Copy + Default {
    /// The value at the start of `bytes`, and the bytes after it.
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])>;
}

impl FixedWidth for f64 {
    #[inline]
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first_chunk().map(|(value, rest)| (f64::from_le_bytes(*value), rest))
    }
}

impl FixedWidth for i32 {
    #[inline]
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first_chunk().map(|(value, rest)| (i32::from_le_bytes(*value), rest))
    }
}

impl FixedWidth for i64 {
    #[inline]
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first_chunk().map(|(value, rest)| (i64::from_le_bytes(*value), rest))
    }
}

impl FixedWidth for u8 {
    #[inline]
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first().map(|(value, rest)| (*value, rest))
    }
}

impl FixedWidth for Bytes12 {
    #[inline]
    fn split_first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first_chunk().map(|(value, rest)| (*value, rest))
    }
}

impl CellSink for VarData {
    #[inline]
    fn push<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        VarData::push(self, text.strip_suffix(&[0])?);
        Some(rest)
    }

    fn push_absent(&mut self, count: usize) {
        (0..count).for_each(|_| self.seal());
    }
}

/// Reads cells of one type whose row numbers ascend; returns their presence if there are gaps.
///
/// `rows` is unknown for the time column, which must not have gaps. `None` if the cells are different; the contents of
/// `cells` are then undefined.
fn walk(bytes: &[u8], kind: Kind, rows: Option<usize>, cells: &mut impl CellSink) -> Option<Option<Bitmap>> {
    let limit = rows.unwrap_or(ROWS_MAX).min(ROWS_MAX);
    let mut presence: Option<Bitmap> = None;
    let mut head = CellHead::first(kind);
    let mut row = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        if row >= limit {
            return None;
        }
        if !head.begins(rest) {
            // The key gives the length of the gap; searching for a key that is out of order would go on to the end.
            let (_, key) = rest.split_first()?;
            let end = key.iter().take(8).position(|byte| *byte == 0)?;
            let next = parse_key(key.get(..end)?)?;
            if rows.is_none() || next <= row || next >= limit {
                return None;
            }
            presence.get_or_insert_with(|| Bitmap::filled(row, true)).push_many(false, next - row);
            cells.push_absent(next - row);
            (row..next).for_each(|_| head.advance());
            row = next;
            if !head.begins(rest) {
                return None;
            }
        }
        rest = cells.push(rest.get(head.len()..)?)?;
        if let Some(presence) = &mut presence {
            presence.push(true);
        }
        row += 1;
        if row < limit {
            head.advance();
        }
    }
    if let Some(rows) = rows.filter(|rows| *rows > row) {
        presence.get_or_insert_with(|| Bitmap::filled(row, true)).push_many(false, rows - row);
        cells.push_absent(rows - row);
    }
    Some(presence)
}

/// Cells of any types in any order, placed by their keys.
fn read_by_key(cells: Doc<'_>, rows: usize, times: &BucketTimes) -> Result<Column, String> {
    let mut by_row: Vec<Option<Value<'_>>> = vec![None; rows];
    for (key, value) in cells {
        let place = parse_key(key.as_bytes()).ok_or_else(|| format!("the key '{key}' is not a row number"))?;
        let row = times.row_of(place);
        let slot = row.and_then(|row| by_row.get_mut(row)).ok_or_else(|| format!("row '{key}' has no time"))?;
        if slot.replace(value).is_some() {
            return Err(format!("the key '{key}' occurs twice"));
        }
    }
    let mut builder = ColumnBuilder::with_capacity(rows);
    for cell in by_row {
        match cell {
            Some(value) => builder.push(value),
            None => builder.push_absent(1),
        }
    }
    Ok(builder.finish())
}

/// The bytes of a document between its length and its final NUL.
fn elements(doc: Doc<'_>) -> &[u8] {
    let bytes = doc.as_bytes();
    bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default()
}
