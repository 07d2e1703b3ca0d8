//! The messages of failed guards, the same in every backend.

use std::fmt::Write;

use crate::error::Error;

/// Maximum bytes of a key in a message: enough for the longest key with a bucket id.
const SHOWN_BYTES_MAX: usize = 48;

/// An insert whose key exists.
pub(crate) fn exists_already(key: &[u8]) -> Error {
    Error::write_conflict(format!("Key {} already exists", hex(key)))
}

/// A required key that does not exist.
pub(crate) fn is_gone(key: &[u8]) -> Error {
    Error::write_conflict(format!("Key {} does not exist", hex(key)))
}

fn hex(key: &[u8]) -> String {
    let mut out = String::with_capacity(2 * key.len().min(SHOWN_BYTES_MAX) + 3);
    for byte in key.iter().take(SHOWN_BYTES_MAX) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    if key.len() > SHOWN_BYTES_MAX {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_key_in_hex() {
        assert_eq!(exists_already(&[0x00, 0xAB]).message, "Key 00ab already exists");
        assert_eq!(is_gone(&[0xFF]).message, "Key ff does not exist");
    }

    #[test]
    fn cuts_a_long_key() {
        assert!(is_gone(&[7; 100]).message.len() < 130);
    }
}
