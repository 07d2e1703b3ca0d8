//! Columns with known elements, and what damage does to them.

use super::super::vectors::vectors;
use super::{count, decode};
use crate::block::Column;
use crate::value::OwnedValue;

/// The cells of a column; `None` means absent.
pub(super) fn cells(column: &Column) -> Vec<Option<OwnedValue>> {
    let mut scratch = Vec::new();
    (0..column.len()).map(|row| column.value(row, &mut scratch).map(|value| value.to_owned())).collect()
}

#[test]
fn every_column_gives_its_elements() {
    for vector in vectors() {
        let Some(elements) = vector.elements else { continue };
        let column = decode(&vector.bytes, elements.len()).unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert_eq!(cells(&column), elements, "{}", vector.name);
        assert_eq!(count(&vector.bytes, elements.len()), Ok(elements.len()), "{}", vector.name);
    }
}

#[test]
fn every_broken_column_is_refused() {
    for vector in vectors().iter().filter(|vector| vector.elements.is_none()) {
        assert!(decode(&vector.bytes, 10_000).is_err(), "{}", vector.name);
    }
}

#[test]
fn a_column_with_one_element_too_many_is_refused() {
    for vector in vectors() {
        let Some(rows) = vector.elements.map(|all| all.len()).filter(|rows| *rows > 0) else { continue };
        assert!(decode(&vector.bytes, rows - 1).is_err(), "{}", vector.name);
        assert!(count(&vector.bytes, rows - 1).is_err(), "{}", vector.name);
        assert!(decode(&vector.bytes, rows + 1).is_ok(), "{}", vector.name);
    }
}

/// An accepted column must be readable to its end, and `count` must agree.
fn read_all(bytes: &[u8], rows_max: usize) {
    if let Ok(column) = decode(bytes, rows_max) {
        assert!(column.len() <= rows_max);
        assert_eq!(count(bytes, rows_max), Ok(column.len()));
        for value in cells(&column).into_iter().flatten() {
            assert!(crate::value::Value::parse_tagged(value.tagged()).is_ok());
        }
    }
}

#[test]
fn a_column_cut_at_any_byte_is_refused() {
    for vector in vectors().iter().filter(|vector| vector.elements.is_some()) {
        for len in 0..vector.bytes.len() {
            assert!(decode(&vector.bytes[..len], 10_000).is_err(), "{} cut at {len}", vector.name);
        }
    }
}

#[test]
fn a_column_with_any_bit_flipped_is_refused_or_reads_to_its_end() {
    for vector in vectors() {
        let mut bytes = vector.bytes;
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                read_all(&bytes, 1_000);
                bytes[at] ^= 1 << bit;
            }
        }
    }
}
