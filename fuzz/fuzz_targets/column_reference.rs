//! Any bytes, and damaged columns, into the engine's decoder and into the plain one of the tests: they must agree, and what they accept
//! must come back from another round.
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
        // So many edits of four bytes, then the steps that a column is made of.
        [what, rest @ ..] => {
            let (edits, steps) = rest.split_at(rest.len().min(4 * usize::from(what >> 5)));
            agree(&damaged(&encode(&column_of(&elements(steps, 30))), edits));
        }
        [] => {}
    }
});

fn agree(bytes: &[u8]) {
    // Long columns are slow, and most of what there is to find is in short ones.
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
