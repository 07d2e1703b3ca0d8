//! Rows that stand for all those of a bucket, made of what it says of itself.

use super::document::BucketDoc;
use super::unpack::ColumnSet;
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::value::Kind;

/// The column that says for how many rows each of these stands. No field has this name.
pub const WEIGHT: &str = "\0";

/// Two rows with the least and the greatest value of each wanted column, in place of all rows, as `control` has them; both have the last
/// time, and the first stands for all rows.
///
/// `None` if it does not tell: all columns are wanted; null counts as a value there; arrays and objects are summed up element by
/// element; strings compare by the collation of the collection.
/// Errors: those of counting.
pub fn extreme_rows(bucket: &BucketDoc<'_>, wanted: &ColumnSet, time_field: &str) -> Result<Option<Block>> {
    let ColumnSet::Only(names) = wanted else { return Ok(None) };
    let mut rows = Block::new(2);
    for name in names {
        if **name == *WEIGHT {
            let count = i32::try_from(bucket.count()?).unwrap_or(i32::MAX);
            rows.set_column(name, Column::new(ColumnData::I32(vec![count, 0]), None));
            continue;
        }
        let last = bucket.control_max().get(name);
        // When it begins is known only about.
        let first = if **name == *time_field { last } else { bucket.control_min().get(name) };
        if [first, last] == [None, None] {
            continue;
        }
        let mut column = ColumnBuilder::new();
        for end in [first, last] {
            let end = end.filter(|end| {
                let exact = [Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal128, Kind::Date, Kind::Bool];
                exact.contains(&end.kind())
            });
            let Some(end) = end else { return Ok(None) };
            column.push(end);
        }
        rows.set_column(name, column.finish());
    }
    Ok(Some(rows))
}
