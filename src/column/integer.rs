//! Converts values to the integers whose differences a column stores.

use crate::block::Bytes12;
use crate::value::Kind;

/// How the elements after a literal are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The difference from the previous element, 64 bits.
    Delta,
    /// The change of that difference.
    DeltaOfDelta,
    /// As `Delta`, between scaled integers or bit patterns.
    Double,
    /// The difference from the previous element, 128 bits.
    Delta128,
    /// Only repetitions of the same value.
    Repeat,
}

impl Coding {
    /// The coding of a type. Objects and arrays that are not literals are stored as sections.
    pub fn of(kind: Kind) -> Coding {
        match kind {
            Kind::Double => Coding::Double,
            Kind::Bool | Kind::Int32 | Kind::Int64 => Coding::Delta,
            Kind::Date | Kind::Timestamp | Kind::ObjectId => Coding::DeltaOfDelta,
            Kind::String | Kind::Code | Kind::Binary | Kind::Decimal128 => Coding::Delta128,
            _ => Coding::Repeat,
        }
    }
}

/// Maps a signed difference to an unsigned number that is small if the difference is near zero.
#[inline]
pub fn zigzag(delta: i64) -> u64 {
    (delta.cast_unsigned() << 1) ^ (delta >> 63).cast_unsigned()
}

/// The inverse of `zigzag`.
#[inline]
pub fn unzigzag(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

/// As `zigzag`, for 128 bits.
#[inline]
pub fn zigzag128(delta: i128) -> u128 {
    (delta.cast_unsigned() << 1) ^ (delta >> 127).cast_unsigned()
}

/// As `unzigzag`, for 128 bits.
#[inline]
pub fn unzigzag128(raw: u128) -> i128 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

/// The integer of an ObjectId, with the bytes that change most often lowest. The process (bytes 4 to 8) is left out.
#[inline]
pub fn of_object_id(id: Bytes12) -> i64 {
    let [t0, t1, t2, t3, _, _, _, _, _, c9, c10, c11] = id;
    i64::from_le_bytes([c11, t3, c10, t2, c9, t1, t0, 0])
}

/// The ObjectId of an integer, with the process of `like`.
#[inline]
pub fn to_object_id(integer: i64, like: Bytes12) -> Bytes12 {
    let [c11, t3, c10, t2, c9, t1, t0, _] = integer.to_le_bytes();
    let [_, _, _, _, p4, p5, p6, p7, p8, ..] = like;
    [t0, t1, t2, t3, p4, p5, p6, p7, p8, c9, c10, c11]
}

/// The process of an ObjectId. Two ids with different processes have no difference.
#[inline]
pub fn process_of(id: &Bytes12) -> &[u8] {
    id.get(4..9).unwrap_or_default()
}

/// The integer of a string (without its NUL), with the last character lowest. `None` if the string is longer than
/// sixteen bytes or begins with a NUL.
#[inline]
pub fn of_text(text: &[u8]) -> Option<u128> {
    if text.len() > 16 || text.first() == Some(&0) {
        return None;
    }
    Some(text.iter().fold(0, |integer, byte| integer << 8 | u128::from(*byte)))
}

/// The string of an integer, whose bytes are given highest first.
#[inline]
pub fn to_text(bytes: &[u8; 16]) -> &[u8] {
    let zeros = (u128::from_be_bytes(*bytes).leading_zeros() / 8) as usize;
    bytes.get(zeros..).unwrap_or_default()
}

/// The integer of a binary's bytes, with the first byte lowest. `None` for more than sixteen bytes.
#[inline]
pub fn of_bytes(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().rev().fold(0, |integer, byte| integer << 8 | u128::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn differences_near_zero_become_small_numbers() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        assert_eq!(zigzag128(i128::MIN), u128::MAX);
    }

    #[test]
    fn the_counter_and_the_seconds_of_an_object_id_are_the_low_bits() {
        let id = [0, 0, 0, 1, 9, 9, 9, 9, 9, 0, 0, 2];
        assert_eq!(of_object_id(id), 0x0102);
        assert_eq!(process_of(&id), [9; 5]);
    }

    #[test]
    fn the_last_character_of_a_string_and_the_first_byte_of_a_binary_are_the_low_bits() {
        assert_eq!(of_text(b"ab"), Some(0x6162));
        assert_eq!(of_text(b""), Some(0));
        assert_eq!(of_text(b"\0a"), None);
        assert_eq!(of_text(&[b'a'; 17]), None);
        assert_eq!(of_bytes(b"ab"), Some(0x6261));
        assert_eq!(of_bytes(&[0; 17]), None);
    }

    proptest! {
        #[test]
        fn integers_are_decoded_to_their_values(a in any::<i64>(), b in any::<i128>(), id in any::<[u8; 12]>(), text in "[^\0]{0,8}") {
            prop_assert_eq!(unzigzag(zigzag(a)), a);
            prop_assert_eq!(unzigzag128(zigzag128(b)), b);
            prop_assert_eq!(to_object_id(of_object_id(id), id), id);
            if let Some(integer) = of_text(text.as_bytes()) {
                let bytes = integer.to_be_bytes();
                prop_assert_eq!(to_text(&bytes), text.as_bytes());
            }
        }
    }
}
