//! Which rows are one measurement: those of one series with the same time and equal values of the fields that `dedupe`
//! names.

use std::ops::Range;

use super::options::wrong_type;
use super::time_order::dates;
use crate::block::{Block, Column};
use crate::error::{Error, Result};
use crate::value::{Doc, DocWriter, Interner, Value, append_key, append_missing_key, sort_rows};

/// Which of several rows of one measurement stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The earliest: later ones are ignored.
    First,
    /// The latest: it replaces earlier ones, whole.
    Last,
}

/// The `dedupe` option of a collection. Specific to timepail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// Paths of the fields that tell measurements of the same series and time apart, in the order given.
    pub by: Vec<String>,
    /// Which row stays.
    pub keep: Keep,
}

/// One measurement among rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The row that stays.
    pub kept: u32,
    /// Its first row, which need not stay.
    pub first: u32,
}

impl Dedupe {
    /// Parses the option. `fields` are the time field and the metadata field, which always belong to the identity.
    ///
    /// Errors: `TypeMismatch`, `Location40415` for an unknown field, `InvalidOptions` for values that mean nothing.
    pub(super) fn parse(doc: Doc<'_>) -> Result<Dedupe> {
        let mut dedupe = Dedupe { by: Vec::new(), keep: Keep::Last };
        for (name, value) in doc {
            match name {
                "by" => {
                    let names = value.as_array().ok_or_else(|| wrong_type("dedupe.by", value, "array"))?;
                    for (_, name) in names {
                        let path = name.as_str().ok_or_else(|| wrong_type("dedupe.by", name, "string"))?;
                        dedupe.add_path(path)?;
                    }
                }
                "keep" => {
                    dedupe.keep = match value.as_str().ok_or_else(|| wrong_type("dedupe.keep", value, "string"))? {
                        "first" => Keep::First,
                        "last" => Keep::Last,
                        other => {
                            let message = ["'dedupe.keep' is 'first' or 'last', not '", other, "'"].concat();
                            return Err(Error::invalid_options(message));
                        }
                    };
                }
                _ => return Err(Error::unknown_field("dedupe", name)),
            }
        }
        Ok(dedupe)
    }

    fn add_path(&mut self, path: &str) -> Result<()> {
        let is_empty = path.split('.').any(|part| part.is_empty() || part.starts_with('$'));
        if is_empty || self.by.iter().any(|known| known == path) {
            let why = if is_empty { "is not the path of a field" } else { "is named twice" };
            return Err(Error::invalid_options(format!("'{path}' in 'dedupe.by' {why}")));
        }
        self.by.push(path.to_owned());
        Ok(())
    }

    /// Checks the paths against the fields of the collection.
    ///
    /// Errors: `InvalidOptions` if a path is in the time or the metadata, which every measurement is told by.
    pub(super) fn check(&self, time_field: &str, meta_field: Option<&str>) -> Result<()> {
        let is_fixed = |path: &&String| {
            let front = front_of(path);
            front == time_field || Some(front) == meta_field
        };
        match self.by.iter().find(is_fixed) {
            Some(path) => Err(Error::invalid_options(format!(
                "'{path}' in 'dedupe.by' is not needed: measurements are always told apart by time and metadata"
            ))),
            None => Ok(()),
        }
    }

    /// Writes the option as `listCollections` shows it.
    pub(super) fn write(&self, writer: &mut DocWriter) {
        writer.begin_doc("dedupe").begin_array("by");
        for (place, path) in self.by.iter().enumerate() {
            writer.string(&place.to_string(), path);
        }
        writer.end();
        writer.string("keep", if self.keep == Keep::First { "first" } else { "last" });
        writer.end();
    }

    /// The measurements among rows of one series, which are in the order in which they were inserted; in order of time,
    /// and of their first rows at the same time. `None` if the rows are in order of time and no two are alike.
    ///
    /// Rows in `before` count as earlier than all others. Values are equal if they compare as equal in BSON order: 1 and
    /// 1.0 are, null and a missing field are not.
    ///
    /// Errors: `InternalError` if the time column does not hold dates.
    pub fn measurements(
        &self,
        rows: &Block,
        time_field: &str,
        before: Range<usize>,
    ) -> Result<Option<Vec<Measurement>>> {
        let times = dates(rows, 0..rows.rows(), time_field)?;
        if times.is_sorted_by(|a, b| a < b) {
            return Ok(None);
        }
        // With the sign flipped, so that dates before 1970 come first. Rows of the same time stay in order.
        let mut order: Vec<(u64, u32)> = times.iter().map(|ms| ms.cast_unsigned() ^ 1 << 63).zip(0..).collect();
        sort_rows(&mut order);
        let columns: Vec<(Option<&Column>, &str)> =
            self.by.iter().map(|path| (rows.column(front_of(path)), &**path)).collect();
        let mut found: Vec<Measurement> = Vec::with_capacity(order.len());
        for run in order.chunk_by(|a, b| a.0 == b.0) {
            let start = found.len();
            let mut numbers = Interner::default();
            for (_, row) in run {
                let number = match columns.is_empty() || run.len() == 1 {
                    true => 0,
                    false => numbers.add(&key_of(&columns, *row as usize)).0,
                };
                match found.get_mut(start + number) {
                    Some(known) => {
                        let [is_early, was_early] = [*row, known.kept].map(|row| before.contains(&(row as usize)));
                        let is_later = was_early || !is_early;
                        if is_later == (self.keep == Keep::Last) {
                            known.kept = *row;
                        }
                    }
                    None => found.push(Measurement { kept: *row, first: *row }),
                }
            }
        }
        let is_same =
            found.len() == times.len() && found.iter().zip(0..).all(|(measurement, row)| measurement.kept == row);
        Ok((!is_same).then_some(found))
    }
}

/// The field in which a path begins.
fn front_of(path: &str) -> &str {
    path.split_once('.').map_or(path, |(front, _)| front)
}

/// The values of a row at some paths, as bytes that are equal if the values are.
fn key_of(columns: &[(Option<&Column>, &str)], row: usize) -> Vec<u8> {
    let (mut key, mut scratch) = (Vec::new(), Vec::new());
    for (column, path) in columns {
        let mut value = column.and_then(|column| column.value(row, &mut scratch));
        for part in path.split('.').skip(1) {
            value = value.and_then(Value::as_doc).and_then(|doc| doc.get(part));
        }
        match value {
            Some(value) => append_key(&mut key, value),
            None => append_missing_key(&mut key),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::super::samples::block;
    use super::*;
    use crate::error::ErrorCode;
    use bson::{Bson, DateTime, RawDocumentBuf, rawdoc};

    fn dedupe(by: &[&str], keep: Keep) -> Dedupe {
        Dedupe { by: by.iter().map(|path| (*path).to_owned()).collect(), keep }
    }

    fn row(ms: i64, c: impl Into<bson::raw::RawBson>) -> RawDocumentBuf {
        rawdoc! { "t": DateTime::from_millis(ms), "c": c.into() }
    }

    /// The kept and the first row of each measurement.
    fn found(dedupe: &Dedupe, rows: &[RawDocumentBuf], before: Range<usize>) -> Option<Vec<(u32, u32)>> {
        let found = dedupe.measurements(&block(rows), "t", before).unwrap()?;
        Some(found.into_iter().map(|measurement| (measurement.kept, measurement.first)).collect())
    }

    #[test]
    fn rows_of_the_same_time_are_one_measurement_of_which_the_first_or_the_last_stays() {
        let rows = [row(5, 1), row(3, 1), row(5, 2), row(3, 3), row(4, 0)];
        assert_eq!(found(&dedupe(&[], Keep::Last), &rows, 0..0), Some(vec![(3, 1), (4, 4), (2, 0)]));
        assert_eq!(found(&dedupe(&[], Keep::First), &rows, 0..0), Some(vec![(1, 1), (4, 4), (0, 0)]));
        assert_eq!(found(&dedupe(&[], Keep::Last), &[row(1, 1), row(2, 1)], 0..0), None);
        assert_eq!(found(&dedupe(&["c"], Keep::Last), &[row(1, 1), row(1, 2)], 0..0), None);
        assert_eq!(found(&dedupe(&[], Keep::Last), &[row(2, 1), row(1, 1)], 0..0), Some(vec![(1, 1), (0, 0)]));
    }

    #[test]
    fn equal_numbers_of_any_type_are_one_value_and_null_is_not_a_missing_field() {
        let missing = rawdoc! { "t": DateTime::from_millis(7) };
        let rows = [
            row(7, 1),
            row(7, 1.0),
            row(7, 1_i64),
            row(7, Bson::Null.to_string()),
            row(7, bson::raw::RawBson::Null),
            missing.clone(),
            missing,
        ];
        let expected = Some(vec![(2, 0), (3, 3), (4, 4), (6, 5)]);
        assert_eq!(found(&dedupe(&["c"], Keep::Last), &rows, 0..0), expected);
    }

    #[test]
    fn a_path_leads_into_documents() {
        let at = |a: i32| rawdoc! { "t": DateTime::from_millis(1), "o": { "a": a, "b": a } };
        let rows = [at(1), at(2), at(1)];
        assert_eq!(found(&dedupe(&["o.a"], Keep::First), &rows, 0..0), Some(vec![(0, 0), (1, 1)]));
        assert_eq!(found(&dedupe(&["o.a.x"], Keep::First), &rows, 0..0), Some(vec![(0, 0)]));
    }

    #[test]
    fn rows_that_count_as_earlier_do_so_wherever_they_stand() {
        let rows = [row(1, 0), row(1, 1), row(1, 2), row(1, 3)];
        for (before, first, last) in [(0..0, 0, 3), (1..3, 1, 3), (2..4, 2, 1), (3..4, 3, 2), (0..4, 0, 3)] {
            assert_eq!(found(&dedupe(&[], Keep::First), &rows, before.clone()), Some(vec![(first, 0)]));
            assert_eq!(found(&dedupe(&[], Keep::Last), &rows, before), Some(vec![(last, 0)]));
        }
    }

    #[test]
    fn the_option_is_checked_and_written_as_it_was_given() {
        let parse = |doc: RawDocumentBuf| Dedupe::parse(Doc::parse(doc.as_bytes()).unwrap());
        let parsed = parse(rawdoc! { "by": ["c", "o.a"], "keep": "first" }).unwrap();
        assert_eq!(parsed, dedupe(&["c", "o.a"], Keep::First));
        assert_eq!(parse(rawdoc! {}).unwrap(), dedupe(&[], Keep::Last));
        let mut writer = DocWriter::new();
        parsed.write(&mut writer);
        let written = writer.finish();
        assert_eq!(Dedupe::parse(written.view().get("dedupe").unwrap().as_doc().unwrap()).unwrap(), parsed);
        for (wrong, code) in [
            (rawdoc! { "by": "c" }, ErrorCode::TypeMismatch),
            (rawdoc! { "by": [1] }, ErrorCode::TypeMismatch),
            (rawdoc! { "by": ["c", "c"] }, ErrorCode::InvalidOptions),
            (rawdoc! { "by": ["a..b"] }, ErrorCode::InvalidOptions),
            (rawdoc! { "by": ["$c"] }, ErrorCode::InvalidOptions),
            (rawdoc! { "keep": "both" }, ErrorCode::InvalidOptions),
            (rawdoc! { "keep": 1 }, ErrorCode::TypeMismatch),
            (rawdoc! { "on": 1 }, ErrorCode::IDLUnknownField),
        ] {
            assert_eq!(parse(wrong).unwrap_err().code, code);
        }
        assert!(parsed.check("t", Some("m")).is_ok());
        assert_eq!(parsed.check("c", None).unwrap_err().code, ErrorCode::InvalidOptions);
        assert_eq!(parsed.check("t", Some("o")).unwrap_err().code, ErrorCode::InvalidOptions);
    }
}
