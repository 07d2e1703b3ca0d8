//! Rewrites a stored bucket: with added rows, or with only the rows that stay.

use std::ops::Range;

use super::build::{Header, build};
use super::document::{BucketDoc, BucketFormat, BucketVersion};
use super::id::BucketId;
use super::min_max::MinMax;
use super::options::TimeseriesOptions;
use super::rows::Rows;
use super::time_order::{dates, in_time_order};
use super::unpack::unpack;
use crate::block::{Bitmap, Block};
use crate::error::{Error, Result};
use crate::value::{DocBuf, FieldSet, Value};

/// The document of `stored` with the rows of `additions` appended, or of a new bucket with these rows.
///
/// Additions hold the time column and the other fields without the metadata. A stored bucket keeps its start; a new one
/// starts at `min_time_ms`. Every row is taken: callers ask `fit` first whether rows belong in the bucket, and
/// acknowledged rows must not be lost because a limit has been exceeded since.
///
/// Each addition to a compressed bucket is sorted by time. If an addition begins before the bucket's last row, the
/// bucket becomes version 3 for good: its rows then stand in order of arrival.
///
/// Errors: `DataCorruptionDetected` if stored columns cannot be read, `BSONObjectTooLarge`, `InternalError` if the
/// metadata differs or there are no rows.
pub fn merge(
    stored: Option<&BucketDoc<'_>>,
    id: &BucketId,
    min_time_ms: i64,
    meta: Option<Value<'_>>,
    additions: &[(&Block, Range<usize>)],
    format: BucketFormat,
    options: &TimeseriesOptions,
) -> Result<DocBuf> {
    let time_field = &options.time_field;
    if let Some(bucket) = stored.filter(|bucket| bucket.meta() != meta || bucket.id() != *id) {
        return Err(Error::internal(format!("Cannot merge rows of bucket {id} into bucket {}", bucket.id())));
    }
    let mut summary = match stored {
        Some(bucket) => MinMax::from_control(bucket.control_min(), bucket.control_max(), &options.collation)?,
        None => MinMax::seed_time(&options.time_field, min_time_ms, &options.collation),
    };
    let mut before = stored.map(|bucket| unpack(bucket, &FieldSet::All, options)).transpose()?;
    let mut version = version_of(stored.map(BucketDoc::version), format);
    let mut ordered: Vec<Option<Block>> = Vec::new();
    if version != BucketVersion::Uncompressed {
        if let Some(rows) = before.as_mut().filter(|_| version == BucketVersion::Sorted) {
            // A compressed bucket has this order already; an uncompressed one gets it now.
            if let Some(sorted) = in_time_order(rows, 0..rows.rows(), time_field)? {
                *rows = sorted;
            }
        }
        for (block, range) in additions {
            ordered.push(in_time_order(block, range.clone(), time_field)?);
        }
    }
    let mut ordered = ordered.iter();
    let mut parts: Vec<(&Block, Range<usize>)> = Vec::with_capacity(additions.len() + 1);
    parts.extend(before.as_ref().map(|block| (block, 0..block.rows())));
    parts.extend(additions.iter().map(|(block, range)| match ordered.next() {
        Some(Some(sorted)) => (sorted, 0..sorted.rows()),
        _ => (*block, range.clone()),
    }));
    let rows = Block::concat_slices(&parts);
    if rows.rows() == 0 {
        return Err(Error::internal(format!("Cannot write bucket {id} without rows")));
    }
    // All additions at once: a column of one type then takes one loop, however few rows each addition has.
    let added = before.as_ref().map_or(0, Block::rows)..rows.rows();
    summary.update_rows(&rows, Rows::from(added), None);
    if version == BucketVersion::Sorted && !dates(&rows, 0..rows.rows(), time_field)?.is_sorted() {
        version = BucketVersion::Unsorted;
    }
    let closed = stored.is_some_and(BucketDoc::closed);
    build(&Header { id: *id, meta, closed, version }, &rows, &summary, time_field)
}

/// A bucket document of exactly these rows, which are sorted by time. Its start is `min_time_ms`.
///
/// Errors: `BSONObjectTooLarge`.
pub fn whole(
    header: (BucketId, Option<Value<'_>>),
    min_time_ms: i64,
    rows: &Block,
    format: BucketFormat,
    options: &TimeseriesOptions,
) -> Result<DocBuf> {
    let mut summary = MinMax::seed_time(&options.time_field, min_time_ms, &options.collation);
    summary.update_rows(rows, Rows::from(0..rows.rows()), None);
    let (id, meta) = header;
    build(&Header { id, meta, closed: false, version: version_of(None, format) }, rows, &summary, &options.time_field)
}

/// The version for rewriting a bucket or writing a new one. Version 3 stays, because its rows keep their order of
/// arrival.
fn version_of(stored: Option<BucketVersion>, format: BucketFormat) -> BucketVersion {
    match (format, stored) {
        (BucketFormat::Uncompressed, _) => BucketVersion::Uncompressed,
        (BucketFormat::Compressed, Some(BucketVersion::Unsorted)) => BucketVersion::Unsorted,
        (BucketFormat::Compressed, _) => BucketVersion::Sorted,
    }
}

/// The bucket document with only the rows that `keep` selects; `None` if none is left.
///
/// `rows` is the whole bucket, unpacked. The start of the bucket stays, so that its `_id` still matches.
///
/// Errors: `BSONObjectTooLarge`, which part of a stored bucket does not reach.
pub fn rebuild(
    bucket: &BucketDoc<'_>,
    rows: &Block,
    keep: &Bitmap,
    format: BucketFormat,
    options: &TimeseriesOptions,
) -> Result<Option<DocBuf>> {
    if keep.none() {
        return Ok(None);
    }
    let mut version = version_of(Some(bucket.version()), format);
    let mut rest = rows.gather(&keep.to_rows());
    // The removed rows may be the ones that were out of order.
    if version == BucketVersion::Unsorted && dates(&rest, 0..rest.rows(), &options.time_field)?.is_sorted() {
        version = BucketVersion::Sorted;
    }
    if version == BucketVersion::Sorted
        && let Some(sorted) = in_time_order(&rest, 0..rest.rows(), &options.time_field)?
    {
        rest = sorted;
    }
    let mut summary = MinMax::seed_time(&options.time_field, bucket.min_time_ms(), &options.collation);
    summary.update_rows(&rest, Rows::from(0..rest.rows()), None);
    let header = Header { id: bucket.id(), meta: bucket.meta(), closed: bucket.closed(), version };
    build(&header, &rest, &summary, &options.time_field).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_docs, block, by_name, documents, options, pivot};
    use super::*;
    use crate::value::{Collation, Doc, OwnedValue};
    use bson::rawdoc;
    use proptest::prelude::*;

    const ID: BucketId = BucketId::from_bytes([9; 12]);

    fn meta() -> OwnedValue {
        OwnedValue::string("m")
    }

    fn merged_as(format: BucketFormat, stored: Option<&DocBuf>, additions: &[(&Block, Range<usize>)]) -> DocBuf {
        let options = options(Some("m"));
        let stored = stored.map(|document| BucketDoc::parse(document.view(), &options).unwrap());
        merge(stored.as_ref(), &ID, 0, Some(meta().view()), additions, format, &options).unwrap()
    }

    fn merged(stored: Option<&DocBuf>, additions: &[(&Block, Range<usize>)]) -> DocBuf {
        merged_as(BucketFormat::Uncompressed, stored, additions)
    }

    type Row = Vec<(String, OwnedValue)>;

    /// The version of a bucket, and its measurements in order.
    fn read(document: &DocBuf) -> (BucketVersion, Vec<Row>) {
        let options = options(Some("m"));
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        (bucket.version(), by_name(&unpack(&bucket, &FieldSet::All, &options).unwrap()))
    }

    /// All of a bucket but the order of its columns.
    fn unordered(document: &DocBuf) -> Row {
        fn add(to: &mut Row, within: &str, doc: Doc<'_>) {
            for (name, value) in doc {
                let path = format!("{within}.{name}");
                let of_columns = matches!(path.as_str(), ".data" | ".control" | ".control.min" | ".control.max");
                match value.as_doc().filter(|_| of_columns) {
                    Some(doc) => add(to, &path, doc),
                    None => to.push((path, value.to_owned())),
                }
            }
        }
        let mut parts = Vec::new();
        add(&mut parts, "", document.view());
        parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        parts
    }

    fn time_of(row: &Row) -> i64 {
        let time = row.iter().find(|(name, _)| name == "t").and_then(|(_, time)| time.view().as_date_ms());
        time.unwrap()
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
            let rest = pivot(&docs[second..third]);
            let additions = [(&whole, first..second), (&rest, 0..rest.rows()), (&whole, third..docs.len())];
            prop_assert_eq!(unordered(&merged(Some(&stored), &additions)), unordered(&at_once));
        }

        #[test]
        fn an_early_batch_makes_a_compressed_bucket_unsorted_for_good(
            docs in any_docs(1..40, true), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let whole = pivot(&docs);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(docs.len())).collect();
            cuts.extend([0, docs.len()]);
            cuts.sort_unstable();
            let (mut stored, mut expected, mut version) = (None, Vec::new(), BucketVersion::Sorted);
            for (start, end) in cuts.iter().copied().zip(cuts.iter().copied().skip(1)).filter(|(a, b)| a < b) {
                let part = pivot(&docs[start..end]);
                stored = Some(merged_as(BucketFormat::Compressed, stored.as_ref(), &[(&whole, start..end)]));
                let mut batch = by_name(&part);
                batch.sort_by_key(time_of);
                if expected.last().is_some_and(|last| time_of(&batch[0]) < time_of(last)) {
                    version = BucketVersion::Unsorted;
                }
                expected.append(&mut batch);
                prop_assert_eq!(read(stored.as_ref().unwrap()), (version, expected.clone()));
            }
        }

        #[test]
        fn removing_rows_from_a_bucket_equals_building_it_from_the_others(docs in any_docs(1..30, true), bits in any::<u64>()) {
            let options = options(Some("m"));
            let stored = merged(None, &[(&pivot(&docs), 0..docs.len())]);
            let bucket = BucketDoc::parse(stored.view(), &options).unwrap();
            let rows = unpack(&bucket, &FieldSet::All, &options).unwrap();
            let keep = Bitmap::from_fn(docs.len(), |row| bits >> row & 1 == 1);
            let rest = rebuild(&bucket, &rows, &keep, BucketFormat::Uncompressed, &options).unwrap();
            let kept: Vec<_> = documents(&rows).into_iter().zip(0..).filter(|(_, row)| keep.get(*row)).map(|(d, _)| d).collect();
            let expected = (!kept.is_empty()).then(|| merged(None, &[(&pivot(&kept), 0..kept.len())]));
            prop_assert_eq!(rest.as_ref().map(unordered), expected.as_ref().map(unordered));
        }
    }

    #[test]
    fn a_merge_keeps_the_start_and_the_closed_flag_of_the_stored_bucket() {
        let options = options(None);
        let rows = block(&[rawdoc! { "t": at(70) }]);
        let header = Header { id: ID, meta: None, closed: true, version: BucketVersion::Uncompressed };
        let document = build(&header, &rows, &MinMax::seed_time("t", 60_000, &Collation::default()), "t").unwrap();
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let format = BucketFormat::Compressed;
        let more = merge(Some(&bucket), &ID, 0, None, &[(&rows, 0..1)], format, &options).unwrap();
        let more = BucketDoc::parse(more.view(), &options).unwrap();
        assert_eq!((more.min_time_ms(), more.max_time_ms(), more.closed()), (60_000, 70_000, true));
        let keep = Bitmap::filled(1, true);
        let same = rebuild(&bucket, &rows, &keep, format, &options).unwrap().unwrap();
        let same = BucketDoc::parse(same.view(), &options).unwrap();
        assert_eq!((same.min_time_ms(), same.closed()), (60_000, true));
    }

    #[test]
    fn merging_rows_of_another_series_or_bucket_or_no_rows_is_an_internal_error() {
        let options = options(Some("m"));
        let rows = block(&[rawdoc! { "t": at(1) }]);
        let document = merged(None, &[(&rows, 0..1)]);
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        let other = BucketId::from_bytes([8; 12]);
        let meta = meta();
        let format = BucketFormat::Compressed;
        assert!(merge(Some(&bucket), &ID, 0, None, &[(&rows, 0..1)], format, &options).is_err());
        assert!(merge(Some(&bucket), &other, 0, Some(meta.view()), &[(&rows, 0..1)], format, &options).is_err());
        assert!(merge(None, &ID, 0, None, &[], format, &options).is_err());
    }

    #[test]
    fn a_bucket_is_written_in_the_format_asked_for_whatever_it_had_before() {
        let rows = block(&[rawdoc! { "t": at(3) }, rawdoc! { "t": at(1) }]);
        let later = block(&[rawdoc! { "t": at(4) }]);
        let old = merged(None, &[(&rows, 0..2)]);
        let new = merged_as(BucketFormat::Compressed, Some(&old), &[(&later, 0..1)]);
        let times = |document: &DocBuf| read(document).1.iter().map(time_of).collect::<Vec<_>>();
        assert_eq!((read(&new).0, times(&new)), (BucketVersion::Sorted, vec![1000, 3000, 4000]));
        let back = merged(Some(&new), &[(&rows, 0..2)]);
        assert_eq!((read(&back).0, times(&back)), (BucketVersion::Uncompressed, vec![1000, 3000, 4000, 3000, 1000]));
    }

    #[test]
    fn deleting_from_an_unsorted_bucket_keeps_it_unsorted_unless_the_rest_is_sorted() {
        let options = options(Some("m"));
        let rows = block(&[rawdoc! { "t": at(3) }, rawdoc! { "t": at(1) }, rawdoc! { "t": at(2) }]);
        let document = merged_as(BucketFormat::Compressed, None, &[(&rows, 0..1), (&rows, 1..3)]);
        assert_eq!(read(&document).0, BucketVersion::Unsorted);
        let bucket = BucketDoc::parse(document.view(), &options).unwrap();
        for (gone, version) in [(0, BucketVersion::Sorted), (1, BucketVersion::Unsorted)] {
            let keep = Bitmap::from_fn(3, |row| row != gone);
            let rest = rebuild(&bucket, &rows, &keep, BucketFormat::Compressed, &options).unwrap().unwrap();
            assert_eq!(read(&rest).0, version);
        }
    }
}
