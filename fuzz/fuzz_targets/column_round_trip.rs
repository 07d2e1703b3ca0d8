//! Elements made of any bytes through the encoder and back: at once, in parts, and reopened.
#![no_main]

#[path = "../../tests/column_cases/mod.rs"]
mod column_cases;
#[path = "../../tests/column_reference/mod.rs"]
#[allow(dead_code)]
mod column_reference;

use column_cases::{elements, elements_of, push_all};
use libfuzzer_sys::fuzz_target;
use timepail::column::{ColumnWriter, count, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, steps)) = bytes.split_first() else { return };
    // Most columns are short, so that there can be many of them.
    let rows_max = match cut % 32 {
        0 => 400,
        1..5 => 70,
        _ => 24,
    };
    let mut rows = elements(steps, rows_max);
    rows.truncate(rows_max);
    let cut = usize::from(*cut) * rows.len() / 255;

    let mut writer = ColumnWriter::new();
    push_all(&mut writer, &rows[..cut]);
    let part = writer.to_bytes();
    push_all(&mut writer, &rows[cut..]);
    let whole = writer.finish();

    let column = decode(&whole, rows.len()).expect("what was encoded decodes");
    assert_eq!(elements_of(&column), rows);
    assert_eq!(count(&whole, rows.len()), Ok(rows.len()));
    assert_eq!(encode(&column), whole);

    let stored = decode(&part, cut).expect("a part decodes");
    let mut reopened = ColumnWriter::new();
    reopened.extend(&stored, 0..cut);
    assert_eq!(reopened.to_bytes(), part);
    push_all(&mut reopened, &rows[cut..]);
    assert_eq!(reopened.finish(), whole);
});
