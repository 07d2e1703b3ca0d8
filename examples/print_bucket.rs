//! Prints bucket documents: their header, and how every column is stored.
//!
//! `cargo run --example print_bucket -- file.bson`, where the file holds one or more documents of a `system.buckets` collection,
//! one after another, as an export writes them.

use std::fmt::Write as _;
use std::process::ExitCode;

use timepail::column;
use timepail::value::{Doc, OwnedValue, Value};

/// No bucket of any server has more measurements.
const ROWS_MAX: usize = 1 << 20;
/// Number of values shown from each end of a column.
const SHOWN: usize = 3;
/// Maximum length of the text of one value.
const SHOWN_CHARACTERS: usize = 40;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: print_bucket file.bson");
        return ExitCode::FAILURE;
    };
    match std::fs::read(&file).map_err(|error| error.to_string()).and_then(|bytes| describe(&bytes)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{file}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Describes every document in `bytes`. Damage to a column is shown beside it; bytes that are not documents are an error.
pub fn describe(bytes: &[u8]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (doc, behind) = first_document(rest).map_err(|why| format!("no document at byte {at}: {why}"))?;
        describe_bucket(&mut out, doc);
        rest = behind;
    }
    Ok(out)
}

fn first_document(bytes: &[u8]) -> Result<(Doc<'_>, &[u8]), String> {
    let (prefix, _) = bytes.split_first_chunk::<4>().ok_or("its length is truncated")?;
    let length = usize::try_from(i32::from_le_bytes(*prefix)).map_err(|_| "its length is negative")?;
    let (doc, behind) = bytes.split_at_checked(length).ok_or("it is truncated")?;
    Ok((Doc::parse(doc).map_err(timepail::error::Error::into_message)?, behind))
}

fn describe_bucket(out: &mut String, bucket: Doc<'_>) {
    let part = |name| bucket.get(name);
    let control = part("control").and_then(Value::as_doc).unwrap_or(Doc::EMPTY);
    let version = control.get("version").and_then(Value::as_integer);
    let count = control.get("count").and_then(Value::as_integer);
    let id = part("_id").map_or_else(|| "without _id".into(), |id| format!("{id:?}"));
    line(out, format!("bucket {id}, {} bytes", bucket.as_bytes().len()));
    for (name, value) in control.iter() {
        line(out, format!("  control.{name}: {value:?}"));
    }
    if let Some(meta) = part("meta") {
        line(out, format!("  meta: {meta:?}"));
    }
    for (name, value) in part("data").and_then(Value::as_doc).unwrap_or(Doc::EMPTY).iter() {
        let described = match version {
            Some(1) => plain_cells(value).map(|cells| describe_column(value.bytes().len(), &cells)),
            Some(2 | 3) => compressed_cells(value).map(|(length, cells)| {
                let wrong = count.filter(|count| usize::try_from(*count) != Ok(cells.len()));
                let warning = wrong.map_or_else(String::new, |count| format!("; control.count says {count}"));
                describe_column(length, &cells) + &warning
            }),
            _ => Err("control.version is not 1, 2 or 3".into()),
        };
        line(out, format!("  data.{name}: {}", described.unwrap_or_else(|why| format!("unreadable, {why}"))));
    }
}

fn line(out: &mut String, text: String) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

/// The cells of a version 1 column: an object with row numbers as names. Rows without a value are left out.
fn plain_cells(value: Value<'_>) -> Result<Vec<Option<OwnedValue>>, String> {
    let rows = value.as_doc().ok_or("it is not an object")?;
    let mut cells = Vec::new();
    for (name, cell) in rows.iter() {
        let row: usize = name.parse().map_err(|_| format!("{name:?} is not a row number"))?;
        if row < cells.len() || row >= ROWS_MAX {
            return Err(format!("row {row} is out of order"));
        }
        cells.resize(row, None);
        cells.push(Some(cell.to_owned()));
    }
    Ok(cells)
}

/// Length and cells of a version 2 or 3 column: binary data of subtype 7.
fn compressed_cells(value: Value<'_>) -> Result<(usize, Vec<Option<OwnedValue>>), String> {
    let Some((7, bytes)) = value.as_binary() else { return Err("it is not binary data of subtype 7".into()) };
    let column = column::decode(bytes, ROWS_MAX).map_err(|error| error.to_string())?;
    let mut scratch = Vec::new();
    let mut cells = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        cells.push(column.value(row, &mut scratch).map(Value::to_owned));
    }
    Ok((bytes.len(), cells))
}

fn describe_column(length: usize, cells: &[Option<OwnedValue>]) -> String {
    let missing = cells.iter().filter(|cell| cell.is_none()).count();
    let holes = if missing > 0 { format!(" ({missing} missing)") } else { String::new() };
    // Without elements there is no number of bytes per element.
    let each = length as f64 / cells.len().max(1) as f64;
    let count = cells.len();
    format!("{length} bytes, {count} elements{holes}, {}, {each:.2} bytes each: {}", types_of(cells), ends_of(cells))
}

/// The types in a column, in order of first appearance.
fn types_of(cells: &[Option<OwnedValue>]) -> String {
    let mut types: Vec<&str> = Vec::new();
    for cell in cells.iter().flatten() {
        let alias = cell.view().kind().alias();
        if !types.contains(&alias) {
            types.push(alias);
        }
    }
    if types.is_empty() { "no type".into() } else { types.join(" and ") }
}

/// The first and the last few cells.
fn ends_of(cells: &[Option<OwnedValue>]) -> String {
    let shown = |cells: &[Option<OwnedValue>]| cells.iter().map(text_of).collect::<Vec<_>>().join(", ");
    match (cells.get(..SHOWN), cells.len().checked_sub(SHOWN).and_then(|from| cells.get(from..))) {
        (Some(first), Some(last)) if cells.len() > 2 * SHOWN => format!("{} ... {}", shown(first), shown(last)),
        _ => shown(cells),
    }
}

fn text_of(cell: &Option<OwnedValue>) -> String {
    let Some(value) = cell else { return "-".into() };
    let text = format!("{value:?}");
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => text.split_at(end).0.to_string() + "...",
        None => text,
    }
}
