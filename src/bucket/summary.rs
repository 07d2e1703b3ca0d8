//! Synthetic rows that stand for all rows of a bucket, made from its summaries.

use super::document::BucketDoc;
use crate::block::{Block, ColumnBuilder};
use crate::error::Result;
use crate::value::{FieldSet, Kind};

/// Two synthetic rows in place of all rows: the smallest and the largest value of each wanted column, from `control`.
/// Both have the latest time. If `counts`, the weight of the first row is the row count, and that of the second 0.
///
/// `None` if the summaries do not suffice: all columns are wanted; a column has a null, which counts as a value there;
/// it has arrays or objects, which are summarised element by element; it has strings, which compare by the collation of
/// the collection.
///
/// Errors: as `BucketDoc::count`.
pub fn extreme_rows(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    time_field: &str,
    counts: bool,
) -> Result<Option<Block>> {
    let FieldSet::Only(names) = wanted else { return Ok(None) };
    let mut rows = Block::new(2);
    for name in names {
        let last = bucket.control_max().get(name);
        // Its earliest time is known only roughly.
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
    if counts {
        rows.set_weights(Some(vec![u32::try_from(bucket.count()?).unwrap_or(u32::MAX), 0]));
    }
    Ok(Some(rows))
}
