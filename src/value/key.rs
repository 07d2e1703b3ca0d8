//! Keys whose byte order is the BSON order of their values.
//!
//! A key starts with the class of its value. No key is a prefix of another, so keys can be concatenated. Values that
//! are equal in BSON order have the same key, so keys serve for hashing too: 1, 1.0 and decimal 1.00 are one key.
//!
//! | class | payload |
//! |---|---|
//! | number | the nearest double towards zero, 8 bytes, sign folded in; then how the number relates to that double |
//! | string, symbol, code | UTF-8 with `00` written as `00 ff`; end `00 00` |
//! | object | for each field: class, name, `00`, payload; end `00` |
//! | array | the key of each element; end `00` |
//! | binary | length, subtype, bytes |
//! | regex | pattern, `00`, flags, `00` |
//! | dbPointer | length, name, id |
//! | code with scope | as code, then the payload of an object |
//! | others | fixed width, big-endian, sign flipped |

use super::decimal::{Decimal, Magnitude, truncate_integer};
use super::doc::Doc;
use super::number::Number;
use super::order::{canonical_class, code_and_scope, text_bytes};
use super::raw::{Kind, Value};

/// Ends an object or an array; sorts below every class byte.
const END: u8 = 0;
/// How a number relates to its double: below zero and beyond it, equal to it, above zero and beyond it.
const BELOW: u8 = 0x7f;
const EXACT: u8 = 0x80;
const ABOVE: u8 = 0x81;
/// Doubles represent every integer up to this one.
const DOUBLE_INTEGER_MAX: i64 = 1 << 53;

/// Appends the key of `value`. Keys compare by bytes as their values compare in BSON order.
pub fn append_key(out: &mut Vec<u8>, value: Value<'_>) {
    out.push(class_byte(value.kind()));
    append_payload(out, value);
}

/// Appends the key of `value` for a descending position of a compound key: the complemented bytes.
pub fn append_key_descending(out: &mut Vec<u8>, value: Value<'_>) {
    let start = out.len();
    append_key(out, value);
    out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
}

/// Appends the key of a missing value. It is the key of undefined, which sorts below null.
pub fn append_missing_key(out: &mut Vec<u8>) {
    append_key(out, Value::UNDEFINED);
}

/// The string at the start of `key`, and how many bytes of the key it takes; `None` if another class of value is there.
pub fn text_of_key(key: &[u8]) -> Option<(String, usize)> {
    let mut rest = key.strip_prefix(&[class_byte(Kind::String)])?.iter();
    let mut text = Vec::new();
    while let Some(byte) = rest.next() {
        match byte {
            0 if rest.next() == Some(&0) => return Some((String::from_utf8(text).ok()?, key.len() - rest.len())),
            byte => text.push(*byte),
        }
    }
    None
}

/// The classes -1 to 127, shifted up so that 0 stays free.
fn class_byte(kind: Kind) -> u8 {
    (canonical_class(kind).cast_unsigned()).wrapping_add(2)
}

fn append_payload(out: &mut Vec<u8>, value: Value<'_>) {
    match value.kind() {
        Kind::MinKey | Kind::Undefined | Kind::Null | Kind::MaxKey => {}
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            if let Some(number) = Number::of(value) {
                append_number(out, number);
            }
        }
        Kind::String | Kind::Symbol | Kind::Code => append_escaped(out, text_bytes(value)),
        Kind::Object => append_object(out, value.as_doc().unwrap_or(Doc::EMPTY)),
        Kind::Array => {
            value.elements().for_each(|(_, element)| append_key(out, element));
            out.push(END);
        }
        Kind::Binary => {
            let (length, rest) = value.bytes().split_at_checked(4).unwrap_or_default();
            append_reversed(out, length);
            out.extend_from_slice(rest);
        }
        Kind::ObjectId | Kind::Bool => out.extend_from_slice(value.bytes()),
        Kind::Date => append_signed(out, value.as_date_ms().unwrap_or_default()),
        Kind::Timestamp => append_reversed(out, value.bytes()),
        // Both parts end with a NUL and contain none.
        Kind::Regex => out.extend_from_slice(value.bytes()),
        Kind::DbPointer => {
            let (length, rest) = value.bytes().split_at_checked(4).unwrap_or_default();
            append_reversed(out, length);
            out.extend_from_slice(rest);
        }
        Kind::CodeWithScope => {
            let (code, scope) = code_and_scope(value);
            append_escaped(out, code);
            append_object(out, scope);
        }
    }
}

/// Class, then name, then value, which is how objects compare. Names hold no NUL.
fn append_object(out: &mut Vec<u8>, doc: Doc<'_>) {
    for (name, value) in doc {
        out.push(class_byte(value.kind()));
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        append_payload(out, value);
    }
    out.push(END);
}

/// The end `00 00` sorts below an escaped NUL and below every other byte, so that a prefix comes first.
fn append_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for (i, part) in text.split(|byte| *byte == 0).enumerate() {
        if i > 0 {
            out.extend_from_slice(&[0, 0xff]);
        }
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0, 0]);
}

/// Appends little-endian bytes as big-endian ones.
fn append_reversed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes.iter().rev());
}

fn append_signed(out: &mut Vec<u8>, n: i64) {
    out.extend_from_slice(&(n.cast_unsigned() ^ 1 << 63).to_be_bytes());
}

fn append_number(out: &mut Vec<u8>, number: Number) {
    match number {
        Number::Double(x) => {
            append_double(out, x);
            out.push(EXACT);
        }
        // Small enough for the cast to be exact.
        Number::Integer(n) if (-DOUBLE_INTEGER_MAX..=DOUBLE_INTEGER_MAX).contains(&n) => {
            append_double(out, n as f64);
            out.push(EXACT);
        }
        Number::Integer(n) => {
            let cut = truncate_integer(n);
            append_double(out, cut.double);
            append_beyond(out, if cut.exact { None } else { Decimal::from(n).magnitude() }, n < 0);
        }
        Number::Decimal(decimal) => {
            let cut = decimal.truncate();
            append_double(out, cut.double);
            append_beyond(out, if cut.exact { None } else { decimal.magnitude() }, decimal.is_negative());
        }
    }
}

/// Eight bytes that sort as doubles do. NaN comes first; both zeros are the same.
fn append_double(out: &mut Vec<u8>, x: f64) {
    let bits = if x.is_nan() {
        // 0 is free: the lowest number, minus infinity, has some bits set in its complement.
        0
    } else if x < 0.0 {
        !x.to_bits()
    } else {
        x.to_bits() | 1 << 63
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// How a number relates to its double. Numbers that share a double are told apart by all their digits.
fn append_beyond(out: &mut Vec<u8>, beyond: Option<Magnitude>, negative: bool) {
    let Some(Magnitude { scale, digits }) = beyond else { return out.push(EXACT) };
    out.push(if negative { BELOW } else { ABOVE });
    let start = out.len();
    // Scales lie between -6175 and 6145; 34 digits take 113 bits.
    let biased = u16::try_from(scale + 0x4000).unwrap_or_default();
    out.extend_from_slice(&biased.to_be_bytes());
    out.extend(digits.to_be_bytes().iter().skip(1));
    if negative {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::super::samples::{decimal, hostile_numbers, hostile_value, owned};
    use super::super::{OwnedValue, compare};
    use super::*;
    use bson::RawBson;
    use proptest::prelude::*;

    fn key(value: &OwnedValue) -> Vec<u8> {
        let mut out = Vec::new();
        append_key(&mut out, value.view());
        out
    }

    fn descending(value: &OwnedValue) -> Vec<u8> {
        let mut out = Vec::new();
        append_key_descending(&mut out, value.view());
        out
    }

    /// Asserts that keys order as their values do, and that neither key is a prefix of the other.
    fn agrees(a: &OwnedValue, b: &OwnedValue) -> Result<(), TestCaseError> {
        let order = compare(a.view(), b.view());
        let (left, right) = (key(a), key(b));
        prop_assert_eq!(left.cmp(&right), order, "{:?} against {:?}", a, b);
        prop_assert_eq!(descending(a).cmp(&descending(b)), order.reverse(), "{:?} against {:?}", a, b);
        if order != Ordering::Equal {
            prop_assert!(!left.starts_with(&right) && !right.starts_with(&left), "{:?} against {:?}", a, b);
        }
        Ok(())
    }

    #[test]
    fn equal_numbers_of_all_types_have_one_key() {
        let ones = [OwnedValue::int32(1), OwnedValue::int64(1), OwnedValue::double(1.0), decimal("1"), decimal("1.00")];
        for one in &ones {
            assert_eq!(key(one), key(&ones[0]), "{one:?}");
        }
        let big = 9_007_199_254_740_993;
        assert_eq!(key(&OwnedValue::int64(big)), key(&decimal("9007199254740993")));
        assert_eq!(key(&OwnedValue::int64(big)), key(&decimal("9007199254740993.000")));
        assert_eq!(key(&OwnedValue::double(0.0)), key(&OwnedValue::double(-0.0)));
        assert_eq!(key(&OwnedValue::double(f64::NAN)), key(&decimal("NaN")));
        assert_eq!(key(&OwnedValue::double(f64::INFINITY)), key(&decimal("Infinity")));
    }

    #[test]
    fn a_number_that_fits_a_double_has_a_key_of_ten_bytes() {
        for value in [OwnedValue::int32(7), OwnedValue::int64(1 << 60), OwnedValue::double(0.1), decimal("0.5")] {
            assert_eq!(key(&value).len(), 10, "{value:?}");
        }
    }

    #[test]
    fn a_missing_value_has_the_key_of_undefined_below_that_of_null() {
        let mut missing = Vec::new();
        append_missing_key(&mut missing);
        assert_eq!(missing, key(&Value::UNDEFINED.to_owned()));
        assert!(missing < key(&OwnedValue::null()));
        assert!(missing > key(&Value::MIN_KEY.to_owned()));
    }

    #[test]
    fn a_string_with_a_nul_sorts_right_after_its_prefix() {
        let keys = ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0\0", "a\0\u{1}", "a\u{1}", "aa"]
            .map(|text| key(&OwnedValue::string(text)));
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_string_is_read_from_the_front_of_a_key() {
        for text in ["", "a", "\0", "a\0\0b", "é", "\u{10ffff}"] {
            let mut both = key(&OwnedValue::string(text));
            let len = both.len();
            append_key(&mut both, OwnedValue::double(0.0).view());
            assert_eq!(text_of_key(&both), Some((text.to_owned(), len)));
            assert_eq!(text_of_key(&both[..len - 1]), None);
        }
        assert_eq!(text_of_key(&key(&OwnedValue::int32(1))), None);
        assert_eq!(text_of_key(&key(&owned(RawBson::Symbol("s".into())))), Some(("s".to_owned(), 4)));
        assert_eq!(text_of_key(&[]), None);
    }

    #[test]
    fn a_descending_part_reverses_only_itself_in_a_compound_key() {
        let compound = |text: &str, n: i32, last: i32| {
            let mut out = key(&OwnedValue::string(text));
            append_key_descending(&mut out, OwnedValue::int32(n).view());
            append_key(&mut out, OwnedValue::int32(last).view());
            out
        };
        let keys =
            [compound("a", 2, 1), compound("a", 2, 2), compound("a", 1, 0), compound("a\0", 9, 0), compound("b", 3, 0)];
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_key_is_appended_to_existing_bytes() {
        let mut out = vec![1, 2];
        append_key_descending(&mut out, OwnedValue::bool(true).view());
        assert_eq!(out[..2], [1, 2]);
        assert_eq!(out[2..], descending(&OwnedValue::bool(true)));
        assert_eq!(key(&owned(bson::rawbson!([]))), [27, 0]);
    }

    fn config(times: u32) -> ProptestConfig {
        let usual = ProptestConfig::default();
        ProptestConfig { cases: times * usual.cases, failure_persistence: None, ..usual }
    }

    proptest! {
        #![proptest_config(config(40))]

        #[test]
        fn number_keys_compare_as_their_numbers((a, b) in hostile_numbers()) {
            agrees(&a, &b)?;
        }
    }

    proptest! {
        #![proptest_config(config(20))]

        #[test]
        fn keys_compare_as_their_values(a in hostile_value(), b in hostile_value()) {
            agrees(&a, &b)?;
        }

        #[test]
        fn concatenated_keys_compare_as_lists_of_values(
            a in (hostile_value(), hostile_value()), b in (hostile_value(), hostile_value()), turned in any::<bool>()
        ) {
            let put = |out: &mut Vec<u8>, value: &OwnedValue, turned| {
                if turned { append_key_descending(out, value.view()) } else { append_key(out, value.view()) }
            };
            let joined = |pair: &(OwnedValue, OwnedValue)| {
                let mut out = Vec::new();
                put(&mut out, &pair.0, turned);
                put(&mut out, &pair.1, !turned);
                out
            };
            let turn = |order: Ordering, turned| if turned { order.reverse() } else { order };
            let order = turn(compare(a.0.view(), b.0.view()), turned)
                .then(turn(compare(a.1.view(), b.1.view()), !turned));
            prop_assert_eq!(joined(&a).cmp(&joined(&b)), order, "{:?} against {:?}", a, b);
        }
    }
}
