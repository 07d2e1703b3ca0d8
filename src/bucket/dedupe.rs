//! Which rows are one measurement: those of one series with the same time and equal values of the fields that `dedupe`
//! names.

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
    /// Values are equal if they compare as equal in BSON order: 1 and 1.0 are, null and a missing field are not.
    ///
    /// Errors: `InternalError` if the time column does not hold dates.
    pub fn measurements(&self, rows: &Block, time_field: &str) -> Result<Option<Vec<Measurement>>> {
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
                    Some(known) if self.keep == Keep::Last => known.kept = *row,
                    Some(_) => {}
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
