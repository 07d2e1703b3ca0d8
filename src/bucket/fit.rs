//! Decides whether rows may be added to a stored bucket.

use std::ops::Range;

use super::document::BucketDoc;
use super::options::TimeseriesOptions;
use super::rows::Rows;
use super::schema::Schema;
use super::time_order::dates;
use crate::block::Block;
use crate::error::Result;
use crate::value::Value;

/// Why a row does not fit a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The bucket is closed.
    Closed,
    /// The bucket belongs to another series.
    Meta,
    /// The row is later than the bucket's span.
    TimeForward,
    /// The row is earlier than the bucket's start.
    TimeBackward,
    /// The bucket holds the maximum number of rows.
    Count,
    /// The bucket has another type for a field of the row.
    Schema,
}

/// How many leading rows fit, and why the next one does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Number of rows, counted across all additions.
    pub rows: usize,
    /// `None` if every row fits.
    pub misfit: Option<Misfit>,
}

/// How many leading rows of `additions`, all of series `meta`, fit the bucket up to `count_max` rows.
///
/// Sizes are not checked here: they are estimates that only the catalog makes. Of several reasons, returns the first in
/// the order of `Misfit`, in which the server checks them.
///
/// Errors: as `BucketDoc::count`; `InternalError` if the time column does not hold dates.
pub fn fit(
    bucket: &BucketDoc<'_>,
    meta: Option<Value<'_>>,
    additions: &[(&Block, Range<usize>)],
    count_max: usize,
    options: &TimeseriesOptions,
) -> Result<Fit> {
    let refuse = |misfit| Ok(Fit { rows: 0, misfit: Some(misfit) });
    if bucket.closed() {
        return refuse(Misfit::Closed);
    }
    if bucket.meta() != meta {
        return refuse(Misfit::Meta);
    }
    let Ok(mut schema) = Schema::from_control(bucket.control_min(), bucket.control_max()) else {
        return refuse(Misfit::Schema);
    };
    let room = count_max.saturating_sub(bucket.count()?);
    let mut taken = 0;
    for (block, rows) in additions {
        let (in_time, mut misfit) = leading_in_time(bucket, block, rows.clone(), options)?;
        let counted = in_time.min(room - taken);
        if counted < in_time {
            misfit = Some(Misfit::Count);
        }
        let fitting = schema.fits_run(block, Rows::from(rows.clone()).first(counted), None);
        if fitting < counted {
            misfit = Some(Misfit::Schema);
        }
        taken += fitting;
        if misfit.is_some() {
            return Ok(Fit { rows: taken, misfit });
        }
    }
    Ok(Fit { rows: taken, misfit: None })
}

/// How many leading rows lie in the bucket's span.
fn leading_in_time(
    bucket: &BucketDoc<'_>,
    block: &Block,
    rows: Range<usize>,
    options: &TimeseriesOptions,
) -> Result<(usize, Option<Misfit>)> {
    let times = dates(block, rows, &options.time_field)?;
    for (at, time) in times.iter().enumerate() {
        // Saturating: times before the start are checked next.
        if time.saturating_sub(bucket.min_time_ms()) >= options.span_ms() {
            return Ok((at, Some(Misfit::TimeForward)));
        }
        if *time < bucket.min_time_ms() {
            return Ok((at, Some(Misfit::TimeBackward)));
        }
    }
    Ok((times.len(), None))
}

#[cfg(test)]
mod tests {
    use super::super::build::{Header, build};
    use super::super::document::{BucketFormat, BucketVersion};
    use super::super::id::BucketId;
    use super::super::merge::merge;
    use super::super::min_max::MinMax;
    use super::super::samples::{block, options};
    use super::*;
    use crate::value::{Collation, OwnedValue};
    use bson::rawdoc;

    const ID: BucketId = BucketId::from_bytes([9; 12]);

    fn at(seconds: i64) -> bson::DateTime {
        bson::DateTime::from_millis(seconds * 1000)
    }

    /// How many of `docs`, added in two parts, fit a bucket that starts at second 60 and has one row `{a: 1}`.
    fn fits(docs: &[bson::RawDocumentBuf], count_max: usize) -> Fit {
        let options = options(Some("m"));
        let first = block(&[rawdoc! { "t": at(61), "a": 1 }]);
        let meta = OwnedValue::string("m");
        let document =
            merge(None, &ID, 60_000, Some(meta.view()), &[(&first, 0..1)], BucketFormat::Compressed, &options).unwrap();
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let rows = block(docs);
        let half = rows.rows() / 2;
        let additions = [(&rows, 0..half), (&rows, half..rows.rows())];
        fit(&bucket, Some(meta.view()), &additions, count_max, &options).unwrap()
    }

    #[test]
    fn rows_are_accepted_up_to_the_first_that_does_not_fit() {
        let good = rawdoc! { "t": at(60), "a": 2.5, "b": "x" };
        let late = rawdoc! { "t": at(3660), "a": "x" };
        let last = rawdoc! { "t": at(3659) };
        let early = rawdoc! { "t": at(59) };
        let other = rawdoc! { "t": at(60), "a": "x" };
        let three = |third: &bson::RawDocumentBuf| vec![good.clone(), last.clone(), third.clone(), good.clone()];
        assert_eq!(fits(&three(&good), 1000), Fit { rows: 4, misfit: None });
        assert_eq!(fits(&three(&late), 3), Fit { rows: 2, misfit: Some(Misfit::TimeForward) });
        assert_eq!(fits(&three(&early), 3), Fit { rows: 2, misfit: Some(Misfit::TimeBackward) });
        assert_eq!(fits(&three(&other), 3), Fit { rows: 2, misfit: Some(Misfit::Count) });
        assert_eq!(fits(&three(&other), 4), Fit { rows: 2, misfit: Some(Misfit::Schema) });
        assert_eq!(fits(&three(&good), 1), Fit { rows: 0, misfit: Some(Misfit::Count) });
        assert_eq!(fits(&three(&good), 0), Fit { rows: 0, misfit: Some(Misfit::Count) });
    }

    #[test]
    fn closed_buckets_and_those_of_other_series_or_of_mixed_types_accept_no_rows() {
        let options = options(Some("m"));
        let rows = block(&[rawdoc! { "t": at(1), "a": 1 }, rawdoc! { "t": at(1), "a": "x" }]);
        let answer = |count: usize, closed: bool, meta: Option<Value<'_>>| {
            let mut summary = MinMax::seed_time("t", 0, &Collation::default());
            summary.update_rows(&rows, Rows::from(0..count), None);
            let header = Header { id: ID, meta: Some(Value::NULL), closed, version: BucketVersion::Uncompressed };
            let document = build(&header, &rows.slice(0..count), &summary, "t").unwrap();
            let bucket = BucketDoc::parse(document.view(), &options).unwrap();
            fit(&bucket, meta, &[(&rows, 0..1)], 1000, &options).unwrap()
        };
        let refused = |misfit| Fit { rows: 0, misfit: Some(misfit) };
        assert_eq!(answer(1, false, Some(Value::NULL)), Fit { rows: 1, misfit: None });
        assert_eq!(answer(1, true, Some(Value::NULL)), refused(Misfit::Closed));
        assert_eq!(answer(1, false, None), refused(Misfit::Meta));
        assert_eq!(answer(2, false, Some(Value::NULL)), refused(Misfit::Schema));
    }

    #[test]
    fn rows_without_a_date_column_are_an_internal_error_in_fit() {
        let options = options(None);
        let rows = block(&[rawdoc! { "t": at(1) }]);
        let document = merge(None, &ID, 0, None, &[(&rows, 0..1)], BucketFormat::Compressed, &options).unwrap();
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let timeless = block(&[rawdoc! { "t": 1 }]);
        assert!(fit(&bucket, None, &[(&timeless, 0..1)], 1000, &options).is_err());
    }
}
