//! Converts a stored bucket to another format: the same rows, with its summaries and flags unchanged.

use super::build::{Header, rewrite};
use super::document::{BucketDoc, BucketVersion};
use super::options::TimeseriesOptions;
use super::time_order::in_time_order;
use super::unpack::unpack;
use crate::block::Block;
use crate::error::Result;
use crate::value::{Doc, DocBuf, FieldSet};

/// A version 1 bucket as version 2, with rows in time order; other buckets unchanged.
///
/// `None` if it cannot be compressed because columns and times do not match. Such a bucket stays as it is, and reading
/// it reports what is wrong.
///
/// Errors: `DataCorruptionDetected` if it is not a bucket at all; `BSONObjectTooLarge`.
pub fn compress(document: Doc<'_>, options: &TimeseriesOptions) -> Result<Option<DocBuf>> {
    let bucket = BucketDoc::parse(document, options)?;
    if bucket.version() != BucketVersion::Uncompressed {
        return Ok(Some(document.to_owned()));
    }
    let Ok(rows) = unpack(&bucket, &FieldSet::All, options) else { return Ok(None) };
    let rows = in_time_order(&rows, 0..rows.rows(), &options.time_field)?.unwrap_or(rows);
    convert(&bucket, &rows, BucketVersion::Sorted, options).map(Some)
}

/// A version 2 or 3 bucket as version 1, with rows in their present order; other buckets unchanged.
///
/// Errors: `DataCorruptionDetected` if a column does not decode; `BSONObjectTooLarge`.
pub fn decompress(document: Doc<'_>, options: &TimeseriesOptions) -> Result<DocBuf> {
    let bucket = BucketDoc::parse(document, options)?;
    if bucket.version() == BucketVersion::Uncompressed {
        return Ok(document.to_owned());
    }
    let rows = unpack(&bucket, &FieldSet::All, options)?;
    convert(&bucket, &rows, BucketVersion::Uncompressed, options)
}

fn convert(
    bucket: &BucketDoc<'_>,
    rows: &Block,
    version: BucketVersion,
    options: &TimeseriesOptions,
) -> Result<DocBuf> {
    let header = Header { id: bucket.id(), meta: bucket.meta(), closed: bucket.closed(), version };
    rewrite(&header, rows, (bucket.control_min(), bucket.control_max()), &options.time_field)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_docs, by_name, options, view};
    use super::*;
    use crate::bucket::{BucketFormat, BucketId, merge};
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn date(ms: i64) -> bson::DateTime {
        bson::DateTime::from_millis(ms)
    }

    fn bucket(control: RawDocumentBuf, data: RawDocumentBuf) -> RawDocumentBuf {
        rawdoc! { "_id": bson::oid::ObjectId::from_bytes([0xCD; 12]), "control": control, "meta": 5, "data": data }
    }

    fn control() -> RawDocumentBuf {
        // The summaries are wider than the rows, as after deletes.
        rawdoc! { "version": 1, "min": { "t": date(0), "a": -5 }, "max": { "t": date(9), "a": 7 }, "closed": true }
    }

    fn names(doc: Doc<'_>) -> Vec<&str> {
        doc.iter().map(|(name, _)| name).collect()
    }

    fn sub<'a>(doc: &'a DocBuf, name: &str) -> Doc<'a> {
        doc.view().get(name).and_then(|value| value.as_doc()).unwrap()
    }

    #[test]
    fn compressing_sorts_the_rows_and_keeps_summaries_marks_and_the_order_of_columns() {
        let data = rawdoc! {
            "b": { "1": "x" },
            "t": { "0": date(3), "1": date(1), "2": date(3) },
            "a": { "0": 1, "2": 2 },
        };
        let document = bucket(control(), data);
        let options = options(Some("m"));
        let compressed = compress(view(&document), &options).unwrap().unwrap();
        assert_eq!(names(compressed.view()), ["_id", "control", "meta", "data"]);
        assert_eq!(names(sub(&compressed, "control")), ["version", "min", "max", "closed", "count"]);
        assert_eq!(names(sub(&compressed, "data")), ["t", "b", "a"]);
        let parsed = BucketDoc::parse(compressed.view(), &options).unwrap();
        assert_eq!((parsed.version(), parsed.count(), parsed.closed()), (BucketVersion::Sorted, Ok(3), true));
        let old = BucketDoc::parse(view(&document), &options).unwrap();
        assert_eq!((parsed.control_min(), parsed.control_max()), (old.control_min(), old.control_max()));
        let back = decompress(compressed.view(), &options).unwrap();
        let expected = rawdoc! {
            "t": { "0": date(1), "1": date(3), "2": date(3) },
            "b": { "0": "x" },
            "a": { "1": 1, "2": 2 },
        };
        assert_eq!(sub(&back, "data"), view(&expected));
        assert_eq!(sub(&back, "control"), view(&control()));
    }

    #[test]
    fn a_bucket_already_in_the_format_is_unchanged() {
        let document = bucket(control(), rawdoc! { "t": { "0": date(3), "1": date(1) } });
        let options = options(Some("m"));
        assert_eq!(decompress(view(&document), &options).unwrap().view(), view(&document));
        let compressed = compress(view(&document), &options).unwrap().unwrap();
        assert_eq!(compress(compressed.view(), &options).unwrap().unwrap(), compressed);
    }

    #[test]
    fn a_bucket_with_cells_without_a_time_stays_uncompressed() {
        let options = options(Some("m"));
        for data in [
            rawdoc! { "t": { "0": date(1) }, "a": { "1": 1 } },
            rawdoc! { "t": { "0": date(1) }, "a": { "x": 1 } },
            rawdoc! { "t": { "0": 1 } },
        ] {
            assert_eq!(compress(view(&bucket(control(), data)), &options), Ok(None));
        }
    }

    proptest! {
        #[test]
        fn converting_a_bucket_to_either_format_loses_nothing(docs in any_docs(1..40, true)) {
            let options = options(Some("m"));
            let rows = super::super::samples::pivot(&docs);
            let id = BucketId::from_bytes([9; 12]);
            let formats = [BucketFormat::Compressed, BucketFormat::Uncompressed];
            let [new, old] = formats.map(|f| merge(None, &id, 0, None, &[(&rows, 0..rows.rows())], f, &options).unwrap());
            let [from_new, from_old] = [decompress(new.view(), &options).unwrap(), compress(old.view(), &options).unwrap().unwrap()];
            let read = |document: &DocBuf| {
                let bucket = BucketDoc::parse(document.view(), &options).unwrap();
                by_name(&unpack(&bucket, &FieldSet::All, &options).unwrap())
            };
            prop_assert_eq!(read(&from_new), read(&new));
            prop_assert_eq!(read(&from_old), read(&new));
            let again = decompress(from_old.view(), &options).unwrap();
            prop_assert_eq!(compress(again.view(), &options).unwrap().unwrap(), from_old);
        }
    }
}
