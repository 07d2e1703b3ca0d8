//! A stored bucket and the rows that come to it, or those that stay in it, as a new document.

use std::ops::Range;

use super::build::{Header, build};
use super::document::BucketDoc;
use super::id::BucketId;
use super::min_max::MinMax;
use super::options::TimeseriesOptions;
use super::rows::Rows;
use super::unpack::{ColumnSet, unpack};
use crate::block::{Bitmap, Block};
use crate::error::{Error, Result};
use crate::value::{DocBuf, Value};

/// The document of `stored` with the rows of `additions` appended, or of a new bucket with these rows.
///
/// Additions hold the time column and the other fields without the metadata. A stored bucket keeps its start; else it is
/// `min_time_ms`. Every row is taken: whether rows belong into a bucket is asked of `fit` before, and rows that were
/// acknowledged are not lost because a limit was passed since.
/// Errors: `DataCorruptionDetected` where the stored columns do not read, `BSONObjectTooLarge`, `InternalError` where the
/// metadata is another or there are no rows at all.
pub fn merge(
    stored: Option<&BucketDoc<'_>>,
    id: &BucketId,
    min_time_ms: i64,
    meta: Option<Value<'_>>,
    additions: &[(&Block, Range<usize>)],
    options: &TimeseriesOptions,
) -> Result<DocBuf> {
    if let Some(bucket) = stored.filter(|bucket| bucket.meta() != meta || bucket.id() != *id) {
        return Err(Error::internal(format!("Rows of bucket {id} were to be merged into bucket {}", bucket.id())));
    }
    let mut summary = match stored {
        Some(bucket) => MinMax::from_control(bucket.control_min(), bucket.control_max())?,
        None => MinMax::seed_time(&options.time_field, min_time_ms),
    };
    additions.iter().for_each(|(block, rows)| summary.update_rows(block, Rows::from(rows.clone()), None));
    let before = stored.map(|bucket| unpack(bucket, &ColumnSet::All, options)).transpose()?;
    let mut parts: Vec<(&Block, Range<usize>)> = Vec::with_capacity(additions.len() + 1);
    parts.extend(before.as_ref().map(|block| (block, 0..block.rows())));
    parts.extend(additions.iter().cloned());
    let rows = Block::concat_slices(&parts);
    if rows.rows() == 0 {
        return Err(Error::internal(format!("Bucket {id} was to be written without rows")));
    }
    let closed = stored.is_some_and(BucketDoc::closed);
    build(&Header { id: *id, meta, closed }, &rows, &summary, &options.time_field)
}

/// The document of a bucket with those of its rows that `keep` selects; `None` where none is left.
///
/// `rows` is the whole bucket, unpacked. The start of the bucket stays, so that its `_id` still names it.
/// Errors: `BSONObjectTooLarge`, which a part of a stored bucket does not reach.
pub fn rebuild(
    bucket: &BucketDoc<'_>,
    rows: &Block,
    keep: &Bitmap,
    options: &TimeseriesOptions,
) -> Result<Option<DocBuf>> {
    if keep.none() {
        return Ok(None);
    }
    let rest = rows.gather(&keep.to_rows());
    let mut summary = MinMax::seed_time(&options.time_field, bucket.min_time_ms());
    summary.update_rows(&rest, Rows::from(0..rest.rows()), None);
    let header = Header { id: bucket.id(), meta: bucket.meta(), closed: bucket.closed() };
    build(&header, &rest, &summary, &options.time_field).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_docs, block, documents, options, pivot};
    use super::*;
    use crate::value::OwnedValue;
    use bson::rawdoc;
    use proptest::prelude::*;

    const ID: BucketId = BucketId::from_bytes([9; 12]);

    fn meta() -> OwnedValue {
        OwnedValue::string("m")
    }

    fn merged(stored: Option<&DocBuf>, additions: &[(&Block, Range<usize>)]) -> DocBuf {
        let options = options(Some("m"));
        let stored = stored.map(|document| BucketDoc::parse(document.view(), &options).unwrap());
        merge(stored.as_ref(), &ID, 0, Some(meta().view()), additions, &options).unwrap()
    }

    fn at(seconds: i64) -> bson::DateTime {
        bson::DateTime::from_millis(seconds * 1000)
    }

    proptest! {
        #[test]
        fn merging_in_any_parts_equals_building_at_once(
            docs in any_docs(2..40, true), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 3),
        ) {
            let whole = pivot(&docs);
            let at_once = merged(None, &[(&whole, 0..docs.len())]);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| 1 + cut.index(docs.len() - 1)).collect();
            cuts.sort_unstable();
            let (first, second, third) = (cuts[0], cuts[1], cuts[2]);
            let stored = merged(None, &[(&whole, 0..first)]);
            let own = pivot(&docs[second..third]);
            let additions = [(&whole, first..second), (&own, 0..own.rows()), (&whole, third..docs.len())];
            prop_assert_eq!(merged(Some(&stored), &additions), at_once);
        }

        #[test]
        fn a_bucket_without_some_rows_is_the_bucket_of_the_others(docs in any_docs(1..30, true), bits in any::<u64>()) {
            let options = options(Some("m"));
            let stored = merged(None, &[(&pivot(&docs), 0..docs.len())]);
            let bucket = BucketDoc::parse(stored.view(), &options).unwrap();
            let rows = unpack(&bucket, &ColumnSet::All, &options).unwrap();
            let keep = Bitmap::from_fn(docs.len(), |row| bits >> row & 1 == 1);
            let rest = rebuild(&bucket, &rows, &keep, &options).unwrap();
            let kept: Vec<_> = documents(&rows).into_iter().zip(0..).filter(|(_, row)| keep.get(*row)).map(|(d, _)| d).collect();
            let expected = (!kept.is_empty()).then(|| merged(None, &[(&pivot(&kept), 0..kept.len())]));
            prop_assert_eq!(rest, expected);
        }
    }

    #[test]
    fn a_stored_bucket_keeps_its_start_and_its_mark_of_being_closed() {
        let options = options(None);
        let rows = block(&[rawdoc! { "t": at(70) }]);
        let header = Header { id: ID, meta: None, closed: true };
        let document = build(&header, &rows, &MinMax::seed_time("t", 60_000), "t").unwrap();
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let more = merge(Some(&bucket), &ID, 0, None, &[(&rows, 0..1)], &options).unwrap();
        let more = BucketDoc::parse(more.view(), &options).unwrap();
        assert_eq!((more.min_time_ms(), more.max_time_ms(), more.closed()), (60_000, 70_000, true));
        let keep = Bitmap::filled(1, true);
        let same = rebuild(&bucket, &rows, &keep, &options).unwrap().unwrap();
        let same = BucketDoc::parse(same.view(), &options).unwrap();
        assert_eq!((same.min_time_ms(), same.closed()), (60_000, true));
    }

    #[test]
    fn rows_of_another_series_or_bucket_and_no_rows_at_all_are_our_own_mistake() {
        let options = options(Some("m"));
        let rows = block(&[rawdoc! { "t": at(1) }]);
        let document = merged(None, &[(&rows, 0..1)]);
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let other = BucketId::from_bytes([8; 12]);
        let meta = meta();
        assert!(merge(Some(&bucket), &ID, 0, None, &[(&rows, 0..1)], &options).is_err());
        assert!(merge(Some(&bucket), &other, 0, Some(meta.view()), &[(&rows, 0..1)], &options).is_err());
        assert!(merge(None, &ID, 0, None, &[], &options).is_err());
    }
}
