//! A round trip of elements generated from arbitrary bytes; in some modes in parts, with a reopened encoder, or encoded twice.
#![no_main]

#[path = "../../tests/storage/column_cases/mod.rs"]
mod column_cases;
#[path = "../../tests/storage/column_reference/mod.rs"]
#[allow(dead_code)]
mod column_reference;

use column_cases::{column_of, elements, elements_of, push_all};
use libfuzzer_sys::fuzz_target;
use timepail::column::{ColumnWriter, count, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let [how, cut, steps @ ..] = bytes else { return };
    // Mostly short columns, so that there can be many.
    let rows_max = match how >> 2 {
        0 => 400,
        1..8 => 70,
        _ => 16,
    };
    let mut rows = elements(steps, rows_max);
    rows.truncate(rows_max);
    let whole = encode(&column_of(&rows));
    let column = decode(&whole, rows.len()).expect("what was encoded decodes");
    assert_eq!(elements_of(&column), rows);

    let (before, behind) = rows.split_at(usize::from(*cut) * rows.len() / 255);
    let mut writer = ColumnWriter::new();
    match how & 3 {
        // In parts, decoded in between.
        0 => {
            push_all(&mut writer, before);
            assert_eq!(writer.to_bytes(), encode(&column_of(before)));
            push_all(&mut writer, behind);
        }
        // Reopened from a part.
        1 => {
            let part = encode(&column_of(before));
            writer.extend(&decode(&part, before.len()).expect("a part decodes"), 0..before.len());
            assert_eq!(writer.to_bytes(), part);
            push_all(&mut writer, behind);
        }
        // In its decoded form, a dictionary or not.
        2 => writer.extend(&column, 0..rows.len()),
        _ => return assert_eq!(count(&whole, rows.len()), Ok(rows.len())),
    }
    assert_eq!(writer.len(), rows.len());
    assert_eq!(writer.finish(), whole);
});
