//! Unpacks a bucket into rows, with only the columns that are needed.

use std::ops::Range;

use super::cells::uncompressed;
use super::document::{BucketDoc, BucketVersion, compressed, compressed_count, damaged};
use super::head::each_at_its_place;
use super::kept::TIMES;
use super::options::TimeseriesOptions;
use crate::block::{Block, Column, ColumnData};
use crate::column;
use crate::error::Result;
use crate::value::{FieldSet, Interner, Value};

/// The measurements of a bucket: the time column first, the others in the bucket's order, without the metadata.
///
/// A column without cells is left out. Columns outside of `wanted` are not decoded; that includes the time column, if
/// the bucket stores its row count.
///
/// Errors: `DataCorruptionDetected` naming the bucket and the column.
pub fn unpack(bucket: &BucketDoc<'_>, wanted: &FieldSet, options: &TimeseriesOptions) -> Result<Block> {
    unpack_rows(bucket, wanted, options, Part::From(0), &Block::default())
}

/// As `unpack`, without the first `from` rows. `known` has columns that `unpack` has returned for the other rows.
///
/// Errors: as `unpack`.
pub fn unpack_rest(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    options: &TimeseriesOptions,
    known: &Block,
    from: usize,
) -> Result<Block> {
    unpack_rows(bucket, wanted, options, Part::From(from), known)
}

/// As `unpack` if only the `count` rows with the first times matter, or with the last times if `is_last`. The result
/// may have fewer rows, but contains these rows and all rows whose time ties with one of them.
///
/// Errors: as `unpack`.
pub fn unpack_first_or_last(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    options: &TimeseriesOptions,
    (is_last, count): (bool, usize),
) -> Result<Block> {
    if bucket.version() != BucketVersion::Sorted {
        return unpack(bucket, wanted, options);
    }
    // One more row: if it does not tie with the row before it, no later one does.
    let wanted_rows = if count == 1 { 1 } else { count.saturating_add(1) };
    let part = if is_last { Part::Last(wanted_rows) } else { Part::First(wanted_rows) };
    let block = unpack_rows(bucket, wanted, options, part, &Block::default())?;
    if count == 1 {
        return Ok(block);
    }
    let is_told = match block.column(&options.time_field).map(Column::data) {
        _ if block.rows() <= count => true,
        Some(ColumnData::Date(times)) => match (is_last, &times[..]) {
            (true, [extra, next, ..]) | (false, [.., next, extra]) => extra != next,
            _ => false,
        },
        _ => false,
    };
    if is_told { Ok(block) } else { unpack(bucket, wanted, options) }
}

/// Objects of fewer rows are values: to read these by their scalars takes longer than to do so once they are joined.
const SCALARS_FROM: usize = 16;

/// Which rows are decoded. A bucket that is not compressed gives all, except for `From`.
#[derive(Clone, Copy)]
enum Part {
    First(usize),
    Last(usize),
    From(usize),
}

impl Part {
    fn of(self, rows: usize) -> Range<usize> {
        match self {
            Part::First(count) => 0..rows.min(count),
            Part::Last(count) => rows.saturating_sub(count)..rows,
            Part::From(from) => from.min(rows)..rows,
        }
    }
}

fn unpack_rows(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    options: &TimeseriesOptions,
    part: Part,
    known: &Block,
) -> Result<Block> {
    let time_field = &options.time_field;
    let unpacked = match bucket.version() {
        BucketVersion::Uncompressed => {
            uncompressed((bucket.times(), bucket.data()), wanted, time_field, known).map(|block| match part {
                Part::From(from) if from > 0 => block.slice(part.of(block.rows())),
                _ => block,
            })
        }
        BucketVersion::Sorted | BucketVersion::Unsorted => unpack_compressed(bucket, wanted, time_field, part, known),
    };
    unpacked.map_err(|what| damaged(&bucket.id(), what))
}

/// The columns in `known` are taken as they are.
fn unpack_compressed(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    time_field: &str,
    part: Part,
    known: &Block,
) -> Result<Block, String> {
    let rows = compressed_count(bucket)?;
    let range = part.of(rows);
    let decoded = |name: &str, place: u32, value: Value<'_>| -> Result<Column, String> {
        if let Some(known) = known.column(name) {
            return Ok(known.clone());
        }
        let mut found = None;
        if let Some(kept) = bucket.kept
            && kept.found_if_loaded(place, &range, &mut found)
            && let Some(found) = found
        {
            return Ok(found);
        }
        let bytes = compressed(value)?;
        let column = match rows < SCALARS_FROM {
            true => column::decode_from(bytes, rows, range.start),
            false => column::decode_scalars(bytes, rows, range.start),
        };
        let column = column.map_err(|what| what.to_string())?;
        // If a column is too short, nothing says which rows it lacks.
        if column.len() < rows {
            return Err(format!("it has {} elements instead of {rows}", column.len()));
        }
        if range.len() < rows {
            return Ok(column.slice(range.clone()));
        }
        if let Some(kept) = bucket.kept {
            // Reads of all fields may be long, and are less often repeated.
            kept.keep_if_loaded(place, name, Some(&column), !wanted.is_all());
        }
        Ok(column)
    };
    let mut block = Block::new(range.len());
    if wanted.contains(time_field) {
        let times = decoded(time_field, TIMES, bucket.times()).and_then(|times| match times.data() {
            ColumnData::Date(_) if times.presence().is_none() => Ok(times),
            _ => Err("a row has no date".to_owned()),
        });
        block.push_new_column(time_field, times.map_err(|what| format!("the time column '{time_field}': {what}"))?);
    }
    let mut take = |name: &str, place: u32, value: Value<'_>| -> Result<(), String> {
        let column = decoded(name, place, value).map_err(|what| format!("column '{name}': {what}"))?;
        if column.present_count() > 0 {
            block.push_new_column(name, column);
        }
        Ok(())
    };
    if each_at_its_place(bucket, wanted, time_field, &mut take)? {
        return Ok(block);
    }
    let mut seen = Interner::default();
    for (number, (name, value)) in (0..).zip(bucket.data()) {
        if !seen.add(name.as_bytes()).1 {
            return Err(format!("column '{name}' occurs twice"));
        }
        if name != time_field && wanted.contains(name) {
            take(name, number, value)?;
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::super::build::{Header, build};
    use super::super::id::BucketId;
    use super::super::kept::KeptColumns;
    use super::super::min_max::MinMax;
    use super::super::rows::Rows;
    use super::super::samples::{any_docs, as_dictionaries, documents, options, pivot, view};
    use super::*;
    use crate::error::ErrorCode;
    use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind};
    use bson::{RawBson, RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn date(ms: i64) -> bson::DateTime {
        bson::DateTime::from_millis(ms)
    }

    fn bucket(version: i32, data: RawDocumentBuf) -> RawDocumentBuf {
        let limits = rawdoc! { "t": date(0) };
        let control = rawdoc! { "version": version, "min": limits.clone(), "max": limits };
        rawdoc! { "_id": bson::oid::ObjectId::from_bytes([0xCD; 12]), "control": control, "data": data }
    }

    fn unpacked(data: RawDocumentBuf, wanted: &FieldSet) -> Result<Block> {
        let document = bucket(1, data);
        let options = options(None);
        let bucket = BucketDoc::parse(view(&document), &options)?;
        let block = unpack(&bucket, wanted, &options)?;
        assert_eq!(bucket.count(), Ok(block.rows()));
        Ok(block)
    }

    fn only(names: &[&str]) -> FieldSet {
        assert!(names.is_sorted());
        FieldSet::Only(names.iter().map(|name| (*name).into()).collect())
    }

    fn names(block: &Block) -> Vec<&str> {
        block.columns().iter().map(|(name, _)| &**name).collect()
    }

    fn rows(block: &Block) -> Vec<DocBuf> {
        documents(block)
    }

    fn expected(docs: &[RawDocumentBuf]) -> Vec<DocBuf> {
        docs.iter().map(|doc| view(doc).to_owned()).collect()
    }

    #[test]
    fn only_the_wanted_columns_are_unpacked() {
        let data = rawdoc! { "a": { "0": 1, "1": 2 }, "t": { "0": date(1), "1": date(2) }, "b": { "1": "x" } };
        assert_eq!(names(&unpacked(data.clone(), &FieldSet::All).unwrap()), ["t", "a", "b"]);
        let one = unpacked(data.clone(), &only(&["b", "nowhere"])).unwrap();
        assert_eq!(rows(&one), expected(&[rawdoc! {}, rawdoc! { "b": "x" }]));
        let none = unpacked(data, &only(&[])).unwrap();
        assert_eq!((none.rows(), names(&none).len()), (2, 0));
    }

    #[test]
    fn cells_are_matched_to_times_by_key_and_not_by_position() {
        let data = rawdoc! {
            "t": { "2": date(1), "10": date(2), "9": date(3) },
            "a": { "9": 3, "2": 1 }, "b": { "10": 2.5 }, "c": {},
        };
        let block = unpacked(data, &FieldSet::All).unwrap();
        assert_eq!(names(&block), ["t", "a", "b"]);
        assert_eq!(
            rows(&block),
            expected(&[
                rawdoc! { "t": date(1), "a": 1 },
                rawdoc! { "t": date(2), "b": 2.5 },
                rawdoc! { "t": date(3), "a": 3 },
            ])
        );
        let turned = rawdoc! { "t": { "0": date(1), "1": date(2) }, "a": { "1": 2, "0": 1 } };
        let block = unpacked(turned, &FieldSet::All).unwrap();
        assert_eq!(rows(&block), expected(&[rawdoc! { "t": date(1), "a": 1 }, rawdoc! { "t": date(2), "a": 2 }]));
    }

    #[test]
    fn typed_columns_come_back_typed_with_or_without_gaps() {
        let times: RawDocumentBuf = (0..12).fold(RawDocumentBuf::new(), |mut doc, row| {
            doc.append(bson::raw::CString::try_from(row.to_string()).unwrap(), date(row));
            doc
        });
        let data = rawdoc! { "t": times, "a": { "1": 1.5, "10": 2.5 }, "b": { "0": true, "11": false }, "c": { "0": 1, "1": 1.5 } };
        let block = unpacked(data, &FieldSet::All).unwrap();
        assert_eq!(block.column("a").unwrap().kind(), Some(Kind::Double));
        assert_eq!(block.column("a").unwrap().presence().unwrap().to_rows(), [1, 10]);
        assert_eq!(block.column("b").unwrap().kind(), Some(Kind::Bool));
        assert_eq!(block.column("c").unwrap().kind(), None);
        assert_eq!(block.column("c").unwrap().present_count(), 2);
    }

    #[test]
    fn malformed_columns_are_errors_that_name_bucket_and_column() {
        let times = rawdoc! { "0": date(1), "1": date(2) };
        let with = |column: RawBson| rawdoc! { "t": times.clone(), "a": column };
        let twice = {
            let mut writer = DocWriter::new();
            writer.int32("0", 1).int32("0", 2);
            RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
        };
        for (data, message) in [
            (with(5.into()), "column 'a': it is not an object"),
            (with(rawdoc! { "2": 1 }.into()), "column 'a': row '2' has no time"),
            (with(rawdoc! { "x": 1 }.into()), "column 'a': the key 'x' is not a row number"),
            (with(rawdoc! { "01": 1 }.into()), "column 'a': the key '01'"),
            (with(twice.clone().into()), "column 'a': the key '0' occurs twice"),
            (rawdoc! { "t": 1 }, "the time column is not an object"),
            (rawdoc! { "t": { "0": 1 } }, "the time at '0' is 1, not a date"),
            (rawdoc! { "t": { "x": date(1) } }, "the key 'x' of a time is not a row number"),
            (rawdoc! { "t": { "0": date(1), "00": date(1) } }, "the key '00' of a time"),
        ] {
            let error = unpacked(data, &FieldSet::All).unwrap_err();
            assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
            assert!(error.message.contains(message), "{error}");
            assert!(error.message.contains(&"cd".repeat(12)), "{error}");
        }
        let mut data = rawdoc! { "t": times };
        data.append(bson::cstr!("a"), rawdoc! {});
        data.append(bson::cstr!("a"), rawdoc! {});
        assert!(unpacked(data, &FieldSet::All).is_err());
    }

    fn binary(bytes: &[u8]) -> bson::Binary {
        bson::Binary { subtype: bson::spec::BinarySubtype::Column, bytes: bytes.to_vec() }
    }

    /// A date column with these values.
    fn dates(values: &[i64]) -> bson::Binary {
        binary(&column::encode(&Column::new(ColumnData::Date(values.to_vec()), None)))
    }

    fn doubles(values: &[f64]) -> bson::Binary {
        binary(&column::encode(&Column::new(ColumnData::F64(values.to_vec()), None)))
    }

    #[test]
    fn the_time_column_of_a_compressed_bucket_may_be_anywhere_in_versions_2_and_3() {
        let options = options(None);
        for version in [2, 3] {
            let document = bucket(version, rawdoc! { "a": doubles(&[1.5, 2.5]), "t": dates(&[5, 3]) });
            let bucket = BucketDoc::parse(view(&document), &options).unwrap();
            assert_eq!(bucket.count(), Ok(2));
            let block = unpack(&bucket, &FieldSet::All, &options).unwrap();
            assert_eq!(names(&block), ["t", "a"]);
            assert_eq!(
                rows(&block),
                expected(&[rawdoc! { "t": date(5), "a": 1.5 }, rawdoc! { "t": date(3), "a": 2.5 }])
            );
        }
    }

    #[test]
    fn known_columns_are_not_decoded_again_and_keep_their_place() {
        let times = rawdoc! { "0": date(1), "1": date(2) };
        let cells = |a: f64, b: f64| rawdoc! { "0": a, "1": b };
        let plain = bucket(1, rawdoc! { "a": cells(1.0, 2.0), "t": times, "b": cells(3.0, 4.0) });
        let packed = bucket(2, rawdoc! { "a": doubles(&[1.0, 2.0]), "t": dates(&[1, 2]), "b": doubles(&[3.0, 4.0]) });
        for document in [plain, packed] {
            let options = options(None);
            let bucket = BucketDoc::parse(view(&document), &options).unwrap();
            let mut known = Block::new(2);
            known.set_column("b", Column::new(ColumnData::F64(vec![7.0, 8.0]), None));
            let rest = unpack_rest(&bucket, &FieldSet::All, &options, &known, 0).unwrap();
            assert_eq!((names(&rest), rest.column("b")), (vec!["t", "a", "b"], known.column("b")));
            let last = unpack_rest(&bucket, &FieldSet::All, &options, &Block::default(), 1).unwrap();
            assert_eq!(rows(&last), expected(&[rawdoc! { "t": date(2), "a": 2.0, "b": 4.0 }]));
        }
    }

    #[test]
    fn columns_read_with_all_fields_stay_in_memory_too() {
        let (options, kept) = (options(None), KeptColumns::default());
        kept.allow(&std::rc::Rc::new(super::super::room::ColumnRoom::new(1 << 20)));
        let document = bucket(2, rawdoc! { "t": dates(&[1, 2]), "a": doubles(&[1.0, 2.0]) });
        let bucket = BucketDoc::parse(view(&document), &options).unwrap().with_kept(&kept);
        let mut found = None;
        for is_kept in [false, true] {
            unpack(&bucket, &FieldSet::All, &options).unwrap();
            assert_eq!(kept.found_if_loaded(TIMES, &(0..2), &mut found), is_kept);
        }
    }

    #[test]
    fn only_the_first_or_the_last_row_of_a_sorted_bucket_is_unpacked() {
        let options = options(None);
        let several = |version: i32, times: &[i64], first_or_last: (bool, usize)| {
            let values: Vec<f64> = times.iter().map(|ms| *ms as f64 / 4.0).collect();
            let document = bucket(version, rawdoc! { "a": doubles(&values), "t": dates(times) });
            let bucket = BucketDoc::parse(view(&document), &options).unwrap();
            rows(&unpack_first_or_last(&bucket, &FieldSet::All, &options, first_or_last).unwrap())
        };
        let at = |version: i32, times: &[i64], is_last: bool| several(version, times, (is_last, 1));
        let row = |ms: i64| rawdoc! { "t": date(ms), "a": ms as f64 / 4.0 };
        assert_eq!(at(2, &[3, 5, 8], true), expected(&[row(8)]));
        assert_eq!(at(2, &[3, 5, 8], false), expected(&[row(3)]));
        assert_eq!(at(3, &[3, 8, 5], true), expected(&[row(3), row(8), row(5)]));
        // Damage before the row is still an error.
        let document = bucket(2, rawdoc! { "a": doubles(&[1.0]), "t": dates(&[1, 2]) });
        let bucket = BucketDoc::parse(view(&document), &options).unwrap();
        assert!(unpack_first_or_last(&bucket, &FieldSet::All, &options, (true, 1)).is_err());
        // With several rows, one more is decoded to see whether others tie.
        assert_eq!(several(2, &[1, 3, 5, 8], (true, 2)), expected(&[row(3), row(5), row(8)]));
        assert_eq!(several(2, &[1, 3, 5, 8], (false, 2)), expected(&[row(1), row(3), row(5)]));
        assert_eq!(several(2, &[1, 5, 5, 5, 8], (true, 2)).len(), 5);
        assert_eq!(several(2, &[1, 3, 3, 8], (false, 2)).len(), 4);
        assert_eq!(several(2, &[1, 3], (true, 2)).len(), 2);
    }

    #[test]
    fn an_unwanted_column_is_not_decoded() {
        let options = options(None);
        let limits = rawdoc! { "t": date(0) };
        let control = rawdoc! { "version": 2, "min": limits.clone(), "max": limits, "count": 2 };
        let data = rawdoc! { "t": binary(b"damaged"), "a": doubles(&[1.5, 2.5]), "b": binary(b"damaged") };
        let document = rawdoc! { "_id": bson::oid::ObjectId::from_bytes([0xCD; 12]), "control": control, "data": data };
        let bucket = BucketDoc::parse(view(&document), &options).unwrap();
        assert_eq!(bucket.count(), Ok(2));
        let block = unpack(&bucket, &only(&["a"]), &options).unwrap();
        assert_eq!(rows(&block), expected(&[rawdoc! { "a": 1.5 }, rawdoc! { "a": 2.5 }]));
        assert!(unpack(&bucket, &only(&["t"]), &options).is_err());
        assert!(unpack(&bucket, &only(&["b"]), &options).is_err());
    }

    #[test]
    fn malformed_compressed_columns_are_errors_that_name_bucket_and_column() {
        let options = options(None);
        for (count, data, message) in [
            (2, rawdoc! { "t": dates(&[1, 2]), "a": 5 }, "column 'a': it is int, not a compressed column"),
            (2, rawdoc! { "t": dates(&[1, 2]), "a": doubles(&[1.0]) }, "column 'a': it has 1 elements instead of 2"),
            (2, rawdoc! { "t": dates(&[1, 2]), "a": doubles(&[1.0; 3]) }, "column 'a': "),
            (2, rawdoc! { "t": dates(&[1, 2]), "a": binary(&[]) }, "column 'a': "),
            (2, rawdoc! { "t": dates(&[1, 2]), "a": binary(&[0x20, 0]) }, "at byte 0"),
            (2, rawdoc! { "t": { "0": date(1) } }, "the time column 't': it is object, not a compressed column"),
            (2, rawdoc! { "t": dates(&[1]) }, "the time column 't': it has 1 elements instead of 2"),
            (2, rawdoc! { "t": doubles(&[1.0, 2.0]) }, "the time column 't': a row has no date"),
        ] {
            let limits = rawdoc! { "t": date(0) };
            let control = rawdoc! { "version": 2, "min": limits.clone(), "max": limits, "count": count };
            let id = bson::oid::ObjectId::from_bytes([0xCD; 12]);
            let document = rawdoc! { "_id": id, "control": control, "data": data };
            let bucket = BucketDoc::parse(view(&document), &options).unwrap();
            let error = unpack(&bucket, &FieldSet::All, &options).unwrap_err();
            assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
            assert!(error.message.contains(message), "{error}");
            assert!(error.message.contains(&"cd".repeat(12)), "{error}");
        }
    }

    fn build_as(version: BucketVersion, block: &Block) -> DocBuf {
        let mut summary = MinMax::seed_time("t", 0, &Collation::default());
        summary.update_rows(block, Rows::from(0..block.rows()), None);
        build(&Header { id: BucketId::new(0, 1), meta: None, closed: false, version }, block, &summary, "t").unwrap()
    }

    fn round_trip_as(version: BucketVersion, block: &Block) -> Block {
        let document = build_as(version, block);
        let options = options(None);
        let parsed = BucketDoc::parse(document.view(), &options).unwrap();
        assert_eq!((parsed.version(), parsed.count()), (version, Ok(block.rows())));
        unpack(&parsed, &FieldSet::All, &options).unwrap()
    }

    fn round_trip(block: &Block) -> Block {
        round_trip_as(BucketVersion::Uncompressed, block)
    }

    #[test]
    fn a_thousand_rows_come_back() {
        let docs: Vec<_> = (0..1200)
            .map(|row| match row % 7 {
                0 => rawdoc! { "t": date(row), "a": row as f64, "s": "é" },
                1 => rawdoc! { "t": date(row), "b": row % 2 == 0, "i": row as i32 },
                _ => rawdoc! { "t": date(row), "a": -0.5, "i": 1 },
            })
            .collect();
        let block = super::super::samples::block(&docs);
        assert_eq!(rows(&round_trip(&block)), rows(&block));
        assert_eq!(rows(&round_trip_as(BucketVersion::Sorted, &block)), rows(&block));
    }

    proptest! {
        #[test]
        fn a_built_bucket_unpacks_to_the_same_rows(docs in any_docs(1..130, true)) {
            let block = pivot(&docs);
            let back = round_trip(&block);
            let typed = |block: &Block| {
                let cells = block.columns().iter().filter(|(_, column)| column.present_count() > 0);
                cells.map(|(name, column)| (name.clone(), column.kind())).collect::<Vec<_>>()
            };
            prop_assert_eq!(rows(&back), rows(&block));
            prop_assert_eq!(typed(&back), typed(&block));
            for version in [BucketVersion::Sorted, BucketVersion::Unsorted] {
                let back = round_trip_as(version, &block);
                prop_assert_eq!(rows(&back), rows(&block));
                prop_assert_eq!(typed(&back), typed(&block));
            }
            let shared = as_dictionaries(block);
            prop_assert_eq!(rows(&round_trip(&shared)), rows(&back));
            prop_assert_eq!(rows(&round_trip_as(BucketVersion::Unsorted, &shared)), rows(&back));
        }

        #[test]
        fn a_damaged_bucket_is_an_error_or_unpacks(docs in any_docs(1..12, true), at in any::<prop::sample::Index>(), bit in 0..8_u8, compressed in any::<bool>()) {
            let version = if compressed { BucketVersion::Unsorted } else { BucketVersion::Uncompressed };
            let mut bytes = build_as(version, &pivot(&docs)).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(document) = Doc::parse(&bytes) {
                let options = options(None);
                if let Ok(bucket) = BucketDoc::parse(document, &options) {
                    let _ = unpack(&bucket, &FieldSet::All, &options).map(|block| documents(&block));
                }
            }
        }
    }
}
