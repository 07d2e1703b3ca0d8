//! Any bytes, and damaged columns, into the engine's decoder and into the plain one of the tests: they must agree, and what they accept
//! must come back from another round.
#![no_main]

#[path = "../../tests/column_cases/mod.rs"]
mod column_cases;
#[path = "../../tests/column_reference/mod.rs"]
mod column_reference;

use column_cases::{assembled, column_of, damaged, elements, elements_of};
use libfuzzer_sys::fuzz_target;
use timepail::column::{decode, encode};

const ROWS_MAX: usize = 3_000;

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        // Any bytes.
        [0, column @ ..] => agree(column),
        // A column of items in any order.
        [what, items @ ..] if what % 2 == 0 => agree(&assembled(items)),
        // So many edits of four bytes, then the steps that a column is made of.
        [what, rest @ ..] => {
            let (edits, steps) = rest.split_at(rest.len().min(4 * usize::from(what >> 5)));
            agree(&damaged(&encode(&column_of(&elements(steps, 200))), edits));
        }
        [] => {}
    }
});

fn agree(bytes: &[u8]) {
    match (decode(bytes, ROWS_MAX), column_reference::decode(bytes, ROWS_MAX)) {
        (Ok(column), Ok(reference)) => {
            assert!(elements_of(&column) == reference, "other elements of {bytes:02x?}");
            let again = encode(&column);
            let column = decode(&again, ROWS_MAX).expect("what was encoded decodes");
            assert!(elements_of(&column) == reference, "other elements after a round of {bytes:02x?}");
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(why)) => panic!("only the engine takes {bytes:02x?}: {why}"),
        (Err(why), Ok(_)) => panic!("only the reference takes {bytes:02x?}: {why}"),
    }
}
