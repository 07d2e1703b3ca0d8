//! The keys of an uncompressed column: "0", "1", "2", …, as the bytes around them.

use crate::limits::BUCKET_ROWS_MAX;
use crate::value::Kind;

/// The bytes before a cell's value: its type byte, the row number in decimal, a NUL. They are at most eight bytes,
/// packed into one integer with the lowest byte first, so that writing or comparing them takes a single instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellHead {
    packed: u64,
    digits: u32,
}

/// The first row whose head does not fit. A column with this many dates is larger than a document may be.
pub(super) const ROWS_MAX: usize = BUCKET_ROWS_MAX;

const TAG: u64 = 0xFF;

impl CellHead {
    /// The head of row 0.
    pub(super) fn first(kind: Kind) -> CellHead {
        CellHead { packed: u64::from(kind.byte()) | u64::from(b'0') << 8, digits: 1 }
    }

    /// Advances to the next row, which must be below `ROWS_MAX`.
    #[inline]
    pub(super) fn advance(&mut self) {
        let mut shift = 8 * self.digits;
        self.packed += 1 << shift;
        while self.packed >> shift & 0xFF > u64::from(b'9') {
            self.packed -= 10 << shift;
            shift -= 8;
            if shift == 0 {
                self.add_digit();
                return;
            }
            self.packed += 1 << shift;
        }
    }

    /// From 9…9 to 10…0, which is one digit longer.
    #[cold]
    fn add_digit(&mut self) {
        debug_assert!(self.digits < 6);
        self.digits += 1;
        self.packed += 1 << 8 | u64::from(b'0') << (8 * self.digits);
    }

    /// The same row for a value of another type.
    #[inline]
    pub(super) fn with_kind(self, kind: Kind) -> CellHead {
        CellHead { packed: self.packed & !TAG | u64::from(kind.byte()), ..self }
    }

    /// Number of bytes.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.digits as usize + 2
    }

    /// Appends the head.
    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let end = out.len() + self.len();
        out.extend_from_slice(&self.packed.to_le_bytes());
        out.truncate(end);
    }

    /// True if `bytes` begins with this head.
    #[inline]
    pub(super) fn begins(self, bytes: &[u8]) -> bool {
        let front = match bytes.first_chunk() {
            Some(front) => u64::from_le_bytes(*front),
            None => bytes.iter().rev().fold(0, |front, byte| front << 8 | u64::from(*byte)),
        };
        (front ^ self.packed) << (64 - 8 * (self.digits + 2)) == 0
    }
}

/// The row number in a key: decimal, without sign or leading zeros.
pub(super) fn parse_key(key: &[u8]) -> Option<usize> {
    let canonical = key == b"0" || key.first() != Some(&b'0') && !key.is_empty() && key.len() <= 9;
    if !canonical {
        return None;
    }
    key.iter().try_fold(0, |row, digit| digit.is_ascii_digit().then(|| row * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_count_in_decimal() {
        let mut head = CellHead::first(Kind::Double);
        for row in 0..ROWS_MAX {
            if row < 2000 || row % 997 == 0 || row + 1 == ROWS_MAX || row.to_string().ends_with("00") {
                let mut out = Vec::new();
                head.write(&mut out);
                assert_eq!(out, format!("\x01{row}\0").as_bytes());
                assert_eq!(head.len(), out.len());
                assert!(head.begins(&out));
                assert!(head.begins(&[&out[..], &[7; 9]].concat()));
                out[1] ^= 1;
                assert!(!head.begins(&out));
            }
            if row + 1 < ROWS_MAX {
                head.advance();
            }
        }
    }

    #[test]
    fn a_head_with_more_digits_or_a_truncated_one_is_recognised() {
        let head = CellHead::first(Kind::Double);
        assert!(!head.begins(b"\x0100\0"));
        assert!(!head.begins(b"\x01"));
        assert!(!head.with_kind(Kind::Int32).begins(b"\x010\0"));
        assert!(head.with_kind(Kind::Int32).begins(b"\x100\0"));
    }

    #[test]
    fn keys_are_plain_decimal_numbers() {
        assert_eq!(parse_key(b"0"), Some(0));
        assert_eq!(parse_key(b"907"), Some(907));
        for key in ["", "00", "01", "-1", "+1", "1a", "1.0", " 1", "9999999999"] {
            assert_eq!(parse_key(key.as_bytes()), None, "{key}");
        }
    }
}
