//! Values as words: those with a fixed number of bytes, at most eight.

use kernels::table::Addable;
use kernels::{elements, gather};

use super::coder::NOTHING;
use crate::value::{Kind, Value};

/// Integers below this are looked up by themselves.
pub const SMALL_MAX: u32 = 1 << 16;

/// The place of a small integer in one of the lists of `Coder::small`.
pub fn small_of(kind: Kind, word: u64) -> Option<(usize, usize)> {
    let code = match kind {
        Kind::Int32 => u32::try_from(word).ok(),
        Kind::Double => gather::whole(f64::from_bits(word)),
        _ => None,
    };
    Some((usize::from(kind == Kind::Double), code.filter(|code| *code < SMALL_MAX)? as usize))
}

/// Notes the number of a small integer.
pub fn note_small(small: &mut Vec<u32>, place: usize, number: u32) {
    if place >= small.len() {
        small.resize((place + 1).next_power_of_two(), NOTHING);
    }
    small.get_mut(place).into_iter().for_each(|slot| *slot = number);
}

/// True if no other word of the type compares equal, and if its key is as long as others of the type.
pub fn is_plain(kind: Kind, word: u64) -> bool {
    let x = f64::from_bits(word);
    match kind {
        Kind::Double => !x.is_nan() && (x != 0.0 || word == 0),
        Kind::Int64 => word.cast_signed().unsigned_abs() >> 53 == 0,
        _ => true,
    }
}

/// The words of a type that are plain, and looked for in `Coder::words` alone.
pub fn addable(kind: Kind) -> Addable {
    const EXACT_MAX: i64 = (1 << 53) - 1;
    let (low, span) = match kind {
        Kind::Int32 => (SMALL_MAX.into(), (u32::MAX - SMALL_MAX).into()),
        Kind::Int64 => ((-EXACT_MAX).cast_unsigned(), 2 * EXACT_MAX.cast_unsigned()),
        _ => (0, u64::MAX),
    };
    Addable { low, span, small: (kind == Kind::Double).then_some(SMALL_MAX) }
}

/// The value of a word.
pub fn value_of(kind: Kind, word: &u64) -> Value<'_> {
    let len = match kind {
        Kind::Int32 => 4,
        Kind::Bool => 1,
        _ => 8,
    };
    // The lower bytes come first.
    Value::new_checked(kind, bytemuck::bytes_of(word).get(..len).unwrap_or_default())
}

/// A text, or the value of another type with these bytes.
pub fn view_of<'a>(kind: Kind, bytes: &[u8], scratch: &'a mut Vec<u8>) -> Value<'a> {
    scratch.clear();
    match kind {
        Kind::String => elements::push_text(scratch, bytes),
        _ => scratch.extend_from_slice(bytes),
    }
    Value::new_checked(kind, scratch)
}

/// The place in `words` of the table for values of this type.
pub fn table_of(kind: Kind) -> Option<usize> {
    [Kind::Double, Kind::Int32, Kind::Int64, Kind::Date, Kind::Bool].iter().position(|known| *known == kind)
}

/// A value as a word, if there is a table for those of its type.
pub fn word_of(value: Value<'_>) -> Option<u64> {
    table_of(value.kind())?;
    let mut word = [0; 8];
    word.get_mut(..value.bytes().len())?.copy_from_slice(value.bytes());
    Some(u64::from_le_bytes(word))
}
