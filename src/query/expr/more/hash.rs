//! `$toHashedIndexKey`: what the server keeps of a value in a hashed index.
//!
//! Rule: mongodb/mongo src/mongo/db/hasher.cpp.

use super::super::arguments::given;
use super::super::datum::Datum;
use super::super::operators::{ANY, Op, Operator, plain};
use crate::value::{Number, Value, canonical_class};

pub(super) static TABLE: &[Operator] = &[plain(Op::More, "$toHashedIndexKey", ANY, |_, x| {
    // A seed of zero.
    let mut bytes = vec![0; 4];
    describe(None, given(x, 0).unwrap_or(Value::NULL), &mut bytes);
    Ok(Datum::int64(md5_start(bytes)))
})];

/// Appends the order of a value's type, its name where it has one, and what it is: numbers without their fraction, the fields of objects
/// in turn.
fn describe(name: Option<&str>, value: Value<'_>, bytes: &mut Vec<u8>) {
    bytes.extend(i32::from(canonical_class(value.kind())).to_le_bytes());
    if let Some(name) = name {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    }
    if let Some(doc) = value.as_doc().or(value.as_array()) {
        doc.iter().for_each(|(name, value)| describe(Some(name), value, bytes));
        // The end of an object is an element without type and name.
        bytes.extend([0; 4]);
    } else if let Some(number) = Number::of(value) {
        bytes.extend(whole(number).to_le_bytes());
    } else {
        bytes.extend_from_slice(value.bytes());
    }
}

/// Without its fraction; the nearest of 64 bits, and zero where it is no number.
fn whole(number: Number) -> i64 {
    match number.truncated() {
        Some(n) => n,
        None if number.is_nan() => 0,
        // Two to the power of 63 was cast once, and has to stay what came of that.
        None if matches!(number, Number::Double(x) if x == -(i64::MIN as f64)) => i64::MIN,
        None if number.compare(Number::Integer(0)).is_lt() => i64::MIN,
        None => i64::MAX,
    }
}

/// The first eight bytes of the MD5 of `bytes`, as an integer (RFC 1321).
fn md5_start(mut bytes: Vec<u8>) -> i64 {
    const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let bits = 8 * bytes.len() as u64;
    bytes.push(0x80);
    while bytes.len() % 64 != 56 {
        bytes.push(0);
    }
    bytes.extend(bits.to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in bytes.chunks(64) {
        let word = |at: usize| {
            let bytes = block.iter().skip(4 * at).take(4);
            bytes.rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0_u8..64 {
            let (round, at) = (step / 16, usize::from(step));
            let (mixed, place) = match round {
                0 => (b & c | !b & d, at),
                1 => (d & b | !d & c, 5 * at + 1),
                2 => (b ^ c ^ d, 3 * at + 5),
                _ => (c ^ (b | !d), 7 * at),
            };
            // The table of the standard.
            let constant = ((f64::from(step) + 1.0).sin().abs() * 4_294_967_296.0) as u32;
            let turn = TURNS.get(usize::from(round)).and_then(|turns| turns.get(at % 4)).copied().unwrap_or(0);
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(word(place % 16));
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(turn)));
        }
        for (part, more) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(more);
        }
    }
    let [low, high, ..] = state;
    i64::from(high) << 32 | i64::from(low)
}
