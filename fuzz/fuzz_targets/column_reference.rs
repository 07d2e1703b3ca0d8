//! Arbitrary bytes and damaged columns for the engine's decoder and for the reference decoder of the tests: they must agree, and accepted elements
//! must survive another round trip.
#![no_main]

#[path = "../../tests/storage/column_cases/mod.rs"]
mod column_cases;
#[path = "../../tests/storage/column_reference/mod.rs"]
mod column_reference;

use column_cases::{assembled, column_of, damaged, elements, elements_of};
use libfuzzer_sys::fuzz_target;
use timepail::column::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        // Any bytes.
        [0, column @ ..] => agree(column),
        // A column of items in any order.
        [what, items @ ..] if what % 2 == 0 => agree(&assembled(items)),
        // A number of edits of four bytes each, then the steps that generate a column.
        [what, rest @ ..] => {
            let (edits, steps) = rest.split_at(rest.len().min(4 * usize::from(what >> 5)));
            agree(&damaged(&encode(&column_of(&elements(steps, 30))), edits));
        }
        [] => {}
    }
});

fn agree(bytes: &[u8]) {
    // Long columns are slow, and most findings need only short ones.
    let rows_max = if bytes.len() % 8 == 0 { 5_000 } else { 300 };
    match (decode(bytes, rows_max), column_reference::decode(bytes, rows_max)) {
        (Ok(column), Ok(reference)) => {
            assert!(elements_of(&column) == reference, "other elements of {bytes:02x?}");
            let again = encode(&column);
            let column = decode(&again, rows_max).expect("what was encoded decodes");
            assert!(elements_of(&column) == reference, "other elements after a round of {bytes:02x?}");
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(why)) => panic!("only the engine takes {bytes:02x?}: {why}"),
        (Err(why), Ok(_)) => panic!("only the reference takes {bytes:02x?}: {why}"),
    }
}
