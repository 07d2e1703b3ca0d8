//! Rows of buckets that have one row each. To decode a column for each of their cells would take longer than to put the cells together.

// Loaded later.

use super::document::{BucketDoc, BucketVersion, compressed, compressed_count, damaged};
use super::head::each_at_its_place;
use super::options::TimeseriesOptions;
use crate::block::{Column, DocPivot};
use crate::column;
use crate::error::Result;
use crate::value::{FieldSet, Kind, Value};

/// Appends the row of a compressed bucket that has no other, with these columns, the time first; false if the bucket has more, or is
/// not compressed.
///
/// Errors: `DataCorruptionDetected` naming the bucket and the column. The last row then lacks some fields.
pub fn push_single(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    options: &TimeseriesOptions,
    rows: &mut DocPivot,
) -> Result<bool> {
    let damaged = |what: String| damaged(&bucket.id(), what);
    if bucket.version() == BucketVersion::Uncompressed || compressed_count(bucket).map_err(damaged)? != 1 {
        return Ok(false);
    }
    let time_field = &*options.time_field;
    let mut place = rows.begin_row();
    // Returns the type of the value, if there is one.
    let mut push = |name: &str, column: Value<'_>| -> Result<Option<Kind>, String> {
        let bytes = compressed(column)?;
        let (decoded, mut scratch): (Column, Vec<u8>);
        let value = match column::single(bytes) {
            Some(value) => Some(value),
            None => {
                decoded = column::decode(bytes, 1).map_err(|what| what.to_string())?;
                if decoded.len() != 1 {
                    return Err(format!("it has {} elements instead of 1", decoded.len()));
                }
                scratch = Vec::new();
                decoded.value(0, &mut scratch)
            }
        };
        let Some(value) = value else { return Ok(None) };
        if rows.push_field(&mut place, name, value) {
            Ok(Some(value.kind()))
        } else {
            Err("it occurs twice".to_owned())
        }
    };
    if wanted.contains(time_field) {
        let what = match push(time_field, bucket.times()) {
            Ok(Some(Kind::Date)) => None,
            Ok(_) => Some("a row has no date".to_owned()),
            Err(what) => Some(what),
        };
        if let Some(what) = what {
            return Err(damaged(format!("the time column '{time_field}': {what}")));
        }
    }
    let mut push = |name: &str, _: u32, value: Value<'_>| match push(name, value) {
        Ok(_) => Ok(()),
        Err(what) => Err(format!("column '{name}': {what}")),
    };
    if !each_at_its_place(bucket, wanted, time_field, &mut push).map_err(damaged)? {
        for (name, value) in bucket.data() {
            if *name != *time_field && wanted.contains(name) {
                push(name, 0, value).map_err(damaged)?;
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::build::{Header, build};
    use super::super::id::BucketId;
    use super::super::min_max::MinMax;
    use super::super::rows::Rows;
    use super::super::samples::{any_docs, by_name, documents, options, pivot, view};
    use super::super::unpack::unpack;
    use super::*;
    use crate::block::{Block, ColumnData};
    use crate::value::{Collation, DocBuf};
    use bson::rawdoc;
    use proptest::prelude::*;

    #[test]
    fn objects_of_few_rows_are_values_and_those_of_more_are_read_by_their_scalars() {
        let unpacked = |rows: i32| {
            let doc = |n: i32| rawdoc! { "t": bson::DateTime::from_millis(n.into()), "o": { "x": n, "y": n % 3 } };
            let block = pivot(&(0..rows).map(|n| view(&doc(n)).to_owned()).collect::<Vec<_>>());
            let (document, options) = (bucket(BucketVersion::Sorted, &block), options(None));
            let parsed = BucketDoc::parse(document.view(), &options).unwrap();
            let found = unpack(&parsed, &FieldSet::All, &options).unwrap();
            assert_eq!(by_name(&found), by_name(&block));
            found.column("o").unwrap().clone()
        };
        assert!(matches!(unpacked(15).data(), ColumnData::Bson(_)));
        assert!(matches!(unpacked(16).data(), ColumnData::Objects(_)));
    }

    /// A bucket of these rows.
    fn bucket(version: BucketVersion, rows: &Block) -> DocBuf {
        let mut summary = MinMax::seed_time("t", 0, &Collation::default());
        summary.update_rows(rows, Rows::from(0..rows.rows()), None);
        build(&Header { id: BucketId::new(0, 1), meta: None, closed: false, version }, rows, &summary, "t").unwrap()
    }

    proptest! {
        #[test]
        fn rows_of_buckets_that_have_one_each_are_those_that_unpacking_gives(docs in any_docs(1..20, true), pick in 0..3_usize) {
            let options = options(None);
            let wanted = [FieldSet::All, FieldSet::Only(vec!["a".into(), "t".into()]), FieldSet::one("b")];
            let (mut rows, mut expected) = (DocPivot::new(), Vec::new());
            for doc in &docs {
                let document = bucket(BucketVersion::Sorted, &pivot(std::slice::from_ref(doc)));
                let parsed = BucketDoc::parse(document.view(), &options).unwrap();
                prop_assert!(push_single(&parsed, &wanted[pick], &options, &mut rows).unwrap());
                expected.push(unpack(&parsed, &wanted[pick], &options).unwrap());
            }
            let agrees = rows.agrees();
            let found = rows.finish();
            prop_assert!(!agrees || documents(&found) == expected.iter().flat_map(documents).collect::<Vec<_>>());
            prop_assert_eq!(by_name(&found), expected.iter().flat_map(by_name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn buckets_with_more_rows_or_without_compression_are_left_to_others_and_damaged_ones_are_errors() {
        let (options, mut rows) = (options(None), DocPivot::new());
        let mut push = |document: &DocBuf| {
            push_single(&BucketDoc::parse(document.view(), &options).unwrap(), &FieldSet::All, &options, &mut rows)
        };
        let date = |ms| bson::DateTime::from_millis(ms);
        let two = pivot(&[rawdoc! { "t": date(1) }, rawdoc! { "t": date(2) }].map(|doc| view(&doc).to_owned()));
        assert_eq!(push(&bucket(BucketVersion::Sorted, &two)), Ok(false));
        assert_eq!(push(&bucket(BucketVersion::Uncompressed, &two.slice(0..1))), Ok(false));
        assert_eq!(push(&bucket(BucketVersion::Sorted, &two.slice(0..1))), Ok(true));
        let binary = |bytes: &[u8]| bson::Binary { subtype: bson::spec::BinarySubtype::Column, bytes: bytes.to_vec() };
        let time = || binary(&column::encode(&Column::new(ColumnData::Date(vec![1]), None)));
        for (data, message) in [
            (rawdoc! { "t": time(), "a": 5 }, "column 'a': it is int, not a compressed column"),
            (rawdoc! { "t": time(), "a": binary(&[]) }, "column 'a': "),
            (rawdoc! { "t": time(), "a": binary(&[0]) }, "column 'a': it has 0 elements instead of 1"),
            (rawdoc! { "t": binary(&[10, 0, 0]) }, "the time column 't': a row has no date"),
            (rawdoc! { "t": binary(&[0x20, 0]) }, "the time column 't': "),
        ] {
            let limits = rawdoc! { "t": date(0) };
            let control = rawdoc! { "version": 2, "min": limits.clone(), "max": limits, "count": 1 };
            let id = bson::oid::ObjectId::from_bytes([0xCD; 12]);
            let document = rawdoc! { "_id": id, "control": control, "data": data };
            let error = push(&view(&document).to_owned()).unwrap_err();
            assert!(error.message.contains(message) && error.message.contains(&"cd".repeat(12)), "{error}");
        }
    }
}
