//! Arbitrary bytes for the decoder: it must not panic, must respect its size limit, and its count must equal the decoded rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use timepail::column::{count, decode, decode_scalars};

const ROWS_MAX: usize = 5_000;

fuzz_target!(|bytes: &[u8]| {
    let counted = count(bytes, ROWS_MAX);
    let Ok(column) = decode(bytes, ROWS_MAX) else { return };
    let rows = column.len();
    assert_eq!(counted, Ok(rows));
    assert_eq!(decode_scalars(bytes, ROWS_MAX, 0).map(|column| column.len()), Ok(rows));
    assert!(rows <= ROWS_MAX);
    if rows > 0 {
        assert!(count(bytes, rows - 1).is_err());
        assert!(decode(bytes, rows - 1).is_err());
    }
});
