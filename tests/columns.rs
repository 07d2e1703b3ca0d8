//! BSON columns: the engine's encoder and decoder against vectors and against a second, plain decoder.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod column_reference;
mod column_vectors;

use column_reference::decode as reference;
use column_vectors::vectors;

const ROWS_MAX: usize = 100_000;

#[test]
fn the_reference_decodes_what_every_vector_says() {
    for vector in vectors() {
        let decoded = reference(&vector.bytes, ROWS_MAX);
        match vector.elements {
            Some(elements) => assert_eq!(decoded.as_ref(), Ok(&elements), "{}", vector.name),
            None => assert!(decoded.is_err(), "{}", vector.name),
        }
    }
}
