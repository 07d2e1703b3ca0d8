//! The items of a column: where each begins and ends, with every bound checked (I1).

use super::super::error::ColumnError;
use crate::value::{Kind, check_value, value_len};

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A value.
    Literal(Kind, &'a [u8]),
    /// The control byte, and its one to sixteen words of eight bytes.
    Control(u8, &'a [u8]),
    /// The start of a section: its kind, and the reference document that shows the shape of its objects.
    Section(SectionKind, &'a [u8]),
    /// The end of the open section, or of the column.
    End,
}

/// The kinds of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Objects as old servers wrote them: an array inside is one value.
    Legacy,
    /// Objects.
    Object,
    /// Arrays.
    Array,
}

/// Iterates over the items of a column.
pub struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Items<'a> {
    /// The items of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Items<'a> {
        Items { bytes, at: 0 }
    }

    /// The next item and its offset. `depth` is the nesting depth of a literal.
    ///
    /// Errors: unknown or truncated items, and literals that are not valid values.
    #[inline]
    pub fn next(&mut self, depth: usize) -> Result<(Item<'a>, usize), ColumnError> {
        let offset = self.at;
        let fail = |reason| ColumnError::new(reason, offset);
        let first = *self.bytes.get(offset).ok_or(fail("the column has no end"))?;
        let item = match first {
            0x80..=0xDF => {
                let words = self.take(offset + 1, (usize::from(first & 15) + 1) * 8);
                // At least the end of the column must follow.
                Item::Control(
                    first,
                    words.filter(|_| self.at < self.bytes.len()).ok_or(fail("a control is truncated"))?,
                )
            }
            0x01..=0x1F | 0x7F | 0xFF => {
                let kind = Kind::from_byte(first).ok_or(fail("a literal has an unknown type"))?;
                if self.bytes.get(offset + 1) != Some(&0) {
                    return Err(fail("a literal has a name"));
                }
                let literal = match width_of(kind) {
                    Some(width) => self.take(offset + 2, width).ok_or(fail("a literal is truncated"))?,
                    None => self.checked(kind, offset + 2, depth).ok_or(fail("a literal is not a valid value"))?,
                };
                Item::Literal(kind, literal)
            }
            0xF0..=0xF2 => {
                let section = match first {
                    0xF0 => SectionKind::Legacy,
                    0xF1 => SectionKind::Object,
                    _ => SectionKind::Array,
                };
                let reference = self.checked(Kind::Object, offset + 1, depth);
                Item::Section(section, reference.ok_or(fail("the reference of a section is not a valid document"))?)
            }
            0 => {
                self.at += 1;
                Item::End
            }
            _ => return Err(fail("an item begins with an unknown byte")),
        };
        Ok((item, offset))
    }

    /// Continues after the bytes that `read` has read; it says how many.
    #[inline]
    pub fn skip(&mut self, read: impl FnOnce(&'a [u8]) -> usize) {
        self.at += read(self.bytes.get(self.at..).unwrap_or_default());
    }

    /// Checks that nothing follows.
    ///
    /// Errors: bytes are left.
    pub fn finish(&self) -> Result<(), ColumnError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(ColumnError::new("bytes follow the end", self.at)) }
    }

    /// Takes `len` bytes from `start` and continues after them.
    #[inline]
    fn take(&mut self, start: usize, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(start..)?.get(..len)?;
        self.at = start + len;
        Some(taken)
    }

    /// As `take`, for a value whose bytes must be checked.
    fn checked(&mut self, kind: Kind, start: usize, depth: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(start..)?;
        let value = rest.get(..value_len(kind, rest).ok()?)?;
        check_value(kind, value, depth).ok()?;
        self.at = start + value.len();
        Some(value)
    }
}

/// The width of types for which any bytes are a value.
#[inline]
fn width_of(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Double | Kind::Date | Kind::Int64 | Kind::Timestamp => Some(8),
        Kind::Int32 => Some(4),
        Kind::ObjectId => Some(12),
        Kind::Decimal128 => Some(16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(bytes: &[u8]) -> &'static str {
        Items::new(bytes).next(0).unwrap_err().reason
    }

    #[test]
    fn literals_controls_sections_and_the_end_are_recognised() {
        let mut bytes = vec![0x10, 0, 1, 0, 0, 0, 0x81];
        bytes.extend([7; 16]);
        bytes.extend([0xF2, 5, 0, 0, 0, 0, 0x7F, 0, 0xFF, 0, 0]);
        let mut items = Items::new(&bytes);
        assert_eq!(items.next(0), Ok((Item::Literal(Kind::Int32, &[1, 0, 0, 0]), 0)));
        assert_eq!(items.next(0), Ok((Item::Control(0x81, &[7; 16]), 6)));
        assert_eq!(items.next(0), Ok((Item::Section(SectionKind::Array, &[5, 0, 0, 0, 0]), 23)));
        assert_eq!(items.next(0), Ok((Item::Literal(Kind::MaxKey, &[]), 29)));
        assert_eq!(items.next(0), Ok((Item::Literal(Kind::MinKey, &[]), 31)));
        assert_eq!(items.next(0), Ok((Item::End, 33)));
        assert!(items.finish().is_ok());
    }

    #[test]
    fn unknown_item_bytes_are_refused() {
        for first in (0x20..0x7F).chain(0xE0..0xF0).chain(0xF3..0xFF) {
            assert!(reason(&[first, 0, 0, 0, 0]).contains("unknown byte"), "{first:#x}");
        }
        for first in 0x14..0x20 {
            assert!(reason(&[first, 0, 0]).contains("unknown type"), "{first:#x}");
        }
    }

    #[test]
    fn a_control_needs_all_its_words_and_a_following_byte() {
        let control = [vec![0x81], vec![1; 16], vec![0]].concat();
        assert!(Items::new(&control).next(0).is_ok());
        for len in 1..control.len() {
            assert_eq!(reason(&control[..len]), "a control is truncated");
        }
    }

    #[test]
    fn values_that_are_not_well_formed_are_refused() {
        let cases: [(&[u8], &str); 12] = [
            (&[], "has no end"),
            (&[0x10, b'a', 0, 1, 0, 0, 0, 0], "has a name"),
            (&[0x10], "has a name"),
            (&[0x01, 0, 1, 2, 3], "truncated"),
            (&[0x08, 0, 2, 0], "not a valid value"),
            (&[0x02, 0, 0, 0, 0, 0, 0], "not a valid value"),
            (&[0x02, 0, 2, 0, 0, 0, b'a', b'b', 0], "not a valid value"),
            (&[0x02, 0, 2, 0, 0, 0, 0xFF, 0, 0], "not a valid value"),
            (&[0x02, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0], "not a valid value"),
            (&[0x05, 0, 9, 0, 0, 0, 0, 1, 0], "not a valid value"),
            (&[0x0B, 0, b'a', 0, b'i'], "not a valid value"),
            (&[0xF1, 6, 0, 0, 0, 0, 0], "not a valid document"),
        ];
        for (bytes, expected) in cases {
            assert!(reason(bytes).contains(expected), "{bytes:x?}: {}", reason(bytes));
        }
    }

    #[test]
    fn a_column_within_a_column_is_an_ordinary_binary() {
        let bytes = [0x05, 0, 2, 0, 0, 0, 7, 0x80, 0x80];
        assert_eq!(Items::new(&bytes).next(0), Ok((Item::Literal(Kind::Binary, &[2, 0, 0, 0, 7, 0x80, 0x80]), 0)));
    }
}
