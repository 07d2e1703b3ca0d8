//! Checks BSON documents.

use crate::elements::text_len;
use crate::kinds::{ARRAY, BOOL, DATE, DECIMAL, DOUBLE, INT32, INT64, NULL, OBJECT};

const TEXT: u8 = 0x02;
const BINARY: u8 = 0x05;
const OBJECT_ID: u8 = 0x07;
const TIMESTAMP: u8 = 0x11;

/// True if `bytes` are a document that is well formed in all its parts, nested up to `depth` levels below it, and whose values are of the usual types.
/// Documents with rarer types, such as regular expressions, are not told from damaged ones.
#[inline(never)]
pub fn are_usual(bytes: &[u8], depth: usize) -> bool {
    walk(bytes, depth).is_some()
}

fn walk(bytes: &[u8], depth: usize) -> Option<()> {
    let (body, [0]) = bytes.get(4..)?.split_last_chunk()? else { return None };
    if prefix(bytes)? != bytes.len() {
        return None;
    }
    let mut rest = body;
    while let Some((kind, named)) = rest.split_first() {
        let (name, value) = named.split_at_checked(text_len(named)?)?;
        if !name.is_ascii() {
            std::str::from_utf8(name).ok()?;
        }
        let value = value.get(1..)?;
        let len = match *kind {
            DOUBLE | DATE | TIMESTAMP | INT64 => 8,
            INT32 => 4,
            NULL => 0,
            BOOL => {
                let (0 | 1) = value.first()? else { return None };
                1
            }
            OBJECT_ID => 12,
            DECIMAL => 16,
            TEXT => {
                let len = 4_usize.checked_add(prefix(value)?)?;
                let (text, [0]) = value.get(4..len)?.split_last_chunk()? else { return None };
                if !text.is_ascii() {
                    std::str::from_utf8(text).ok()?;
                }
                len
            }
            OBJECT | ARRAY => {
                let len = prefix(value)?;
                walk(value.get(..len)?, depth.checked_sub(1)?)?;
                len
            }
            BINARY => 5_usize.checked_add(prefix(value)?)?,
            _ => return None,
        };
        rest = value.get(len..)?;
    }
    Some(())
}

/// The length at the start of `bytes`.
#[inline(always)]
fn prefix(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(elements: &[&[u8]]) -> Vec<u8> {
        let body = elements.concat();
        [&(body.len() as u32 + 5).to_le_bytes(), body.as_slice(), &[0]].concat()
    }

    #[test]
    fn documents_of_usual_types_are_known_and_rarer_ones_are_not() {
        let inner = document(&[b"\x10n\0\x01\0\0\0"]);
        let holding = [b"\x03o\0", inner.as_slice()].concat();
        let elements: [&[u8]; 10] = [
            b"\x01d\0\0\0\0\0\0\0\xf0\x3f",
            b"\x02t\0\x03\0\0\0\xc3\xa9\0",
            b"\x09w\0\0\0\0\0\0\0\0\0",
            b"\x08b\0\x01",
            b"\x0an\0",
            b"\x12l\0\0\0\0\0\0\0\0\0",
            b"\x05x\0\x02\0\0\0\x07ab",
            b"\x07i\0abcdefghijkl",
            b"\x13d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30",
            &holding,
        ];
        let all = document(&elements);
        assert!(are_usual(&all, 1) && are_usual(&document(&[]), 0));
        assert!(!are_usual(&all, 0), "nested too deeply");
        let wrong: [&[u8]; 8] = [
            b"\x08b\0\x02",
            b"\x02t\0\x02\0\0\0\xc3\0",
            b"\x02t\0\x00\0\0\0",
            b"\x02t\0\x02\0\0\0ab",
            b"\x10\xff\0\x01\0\0\0",
            b"\x0br\0a\0i\0",
            b"\x05x\0\xff\xff\xff\xff\x07",
            b"\x10n",
        ];
        for element in wrong {
            assert!(!are_usual(&document(&[elements[0], element]), 9), "{element:?}");
        }
        for len in 0..all.len() {
            assert!(!are_usual(&all[..len], 1), "cut at {len}");
        }
    }
}
