//! BSON's comparison order: the order of sorts, of `$min` and `$max`, and of `control`.

use std::cmp::Ordering;

use super::collation::{Rules, compare_texts};
use super::doc::Doc;
use super::number::{Number, compare_doubles};
use super::raw::{Kind, Value};

/// The rank of a type among the types. Values of different classes compare by it alone.
///
/// Numbers are one class, and so are strings and symbols. A missing value has the class of `Undefined`.
pub fn canonical_class(kind: Kind) -> i8 {
    match kind {
        Kind::MinKey => -1,
        Kind::Undefined => 0,
        Kind::Null => 5,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => 10,
        Kind::String | Kind::Symbol => 15,
        Kind::Object => 20,
        Kind::Array => 25,
        Kind::Binary => 30,
        Kind::ObjectId => 35,
        Kind::Bool => 40,
        Kind::Date => 45,
        Kind::Timestamp => 47,
        Kind::Regex => 50,
        Kind::DbPointer => 55,
        Kind::Code => 60,
        Kind::CodeWithScope => 65,
        Kind::MaxKey => 127,
    }
}

/// BSON order of two values: a total order in which NaN equals itself and sorts below every other number. Strings
/// compare by their bytes.
#[inline(always)]
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    compare_with(None, a, b)
}

/// The same with strings compared by `rules`.
pub(super) fn compare_with(rules: Option<&Rules>, a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a.kind(), b.kind()) {
        (Kind::Double, Kind::Double) => compare_doubles(a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default()),
        (Kind::Int32, Kind::Int32) => a.as_i32().cmp(&b.as_i32()),
        (Kind::Int64, Kind::Int64) => a.as_i64().cmp(&b.as_i64()),
        (Kind::Date, Kind::Date) => a.as_date_ms().cmp(&b.as_date_ms()),
        (Kind::String, Kind::String) => compare_texts(rules, text_bytes(a), text_bytes(b)),
        (left, right) => canonical_class(left).cmp(&canonical_class(right)).then_with(|| compare_in_class(rules, a, b)),
    }
}

/// BSON order of optional values: a missing value sorts like undefined, which is below null.
pub fn compare_options(a: Option<Value<'_>>, b: Option<Value<'_>>) -> Ordering {
    compare(a.unwrap_or(Value::UNDEFINED), b.unwrap_or(Value::UNDEFINED))
}

/// True if neither value sorts before the other: 1 equals 1.0, and "a" the symbol equals "a" the string.
pub fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    a == b || compare(a, b) == Ordering::Equal
}

fn compare_in_class(rules: Option<&Rules>, a: Value<'_>, b: Value<'_>) -> Ordering {
    match a.kind() {
        Kind::MinKey | Kind::Undefined | Kind::Null | Kind::MaxKey => Ordering::Equal,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => match (Number::of(a), Number::of(b)) {
            (Some(x), Some(y)) => x.compare(y),
            _ => Ordering::Equal,
        },
        Kind::String | Kind::Symbol => compare_texts(rules, text_bytes(a), text_bytes(b)),
        // Code is not text in any language, so it compares by its bytes.
        Kind::Code => text_bytes(a).cmp(text_bytes(b)),
        Kind::Object => compare_objects(rules, doc_of(a), doc_of(b)),
        Kind::Array => compare_arrays(rules, doc_of(a), doc_of(b)),
        Kind::Binary => compare_binaries(a, b),
        Kind::ObjectId | Kind::Bool => a.bytes().cmp(b.bytes()),
        Kind::Date => a.as_date_ms().cmp(&b.as_date_ms()),
        Kind::Timestamp => a.as_timestamp().cmp(&b.as_timestamp()),
        Kind::Regex => a.as_regex().cmp(&b.as_regex()),
        // In stored order: the length of the name, the name, the id.
        Kind::DbPointer => a.bytes().len().cmp(&b.bytes().len()).then_with(|| a.bytes().cmp(b.bytes())),
        Kind::CodeWithScope => {
            let ((code_a, scope_a), (code_b, scope_b)) = (code_and_scope(a), code_and_scope(b));
            code_a.cmp(code_b).then_with(|| compare_objects(rules, scope_a, scope_b))
        }
    }
}

/// Field by field: class of the value, then name, then value. A shorter object comes first.
fn compare_objects(rules: Option<&Rules>, a: Doc<'_>, b: Doc<'_>) -> Ordering {
    compare_elements(a, b, |(name_a, value_a), (name_b, value_b)| {
        canonical_class(value_a.kind())
            .cmp(&canonical_class(value_b.kind()))
            .then_with(|| name_a.cmp(name_b))
            .then_with(|| compare_with(rules, value_a, value_b))
    })
}

fn compare_arrays(rules: Option<&Rules>, a: Doc<'_>, b: Doc<'_>) -> Ordering {
    compare_elements(a, b, |(_, value_a), (_, value_b)| compare_with(rules, value_a, value_b))
}

fn compare_elements<'a, 'b>(
    a: Doc<'a>,
    b: Doc<'b>,
    each: impl Fn((&'a str, Value<'a>), (&'b str, Value<'b>)) -> Ordering,
) -> Ordering {
    let mut right = b.iter();
    for left in a {
        let Some(other) = right.next() else { return Ordering::Greater };
        let order = each(left, other);
        if order != Ordering::Equal {
            return order;
        }
    }
    if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

fn compare_binaries(a: Value<'_>, b: Value<'_>) -> Ordering {
    let length = a.bytes().len().cmp(&b.bytes().len());
    // Subtype and bytes follow the length, in this order.
    length.then_with(|| a.bytes().get(4..).cmp(&b.bytes().get(4..)))
}

fn doc_of(value: Value<'_>) -> Doc<'_> {
    value.as_container().unwrap_or(Doc::EMPTY)
}

/// The bytes of a string, symbol or code, without another UTF-8 check.
pub(super) fn text_bytes(value: Value<'_>) -> &[u8] {
    let bytes = value.bytes();
    bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default()
}

/// The parts of a code with scope. It is stored as the total length, a string and a document.
pub(super) fn code_and_scope(value: Value<'_>) -> (&[u8], Doc<'_>) {
    let inner = value.bytes().get(4..).unwrap_or_default();
    let code_len = super::doc::value_len(Kind::Code, inner).unwrap_or_default();
    let code = Value::new_checked(Kind::Code, inner.get(..code_len).unwrap_or_default());
    (text_bytes(code), inner.get(code_len..).map_or(Doc::EMPTY, Doc::new_checked))
}

#[cfg(test)]
mod tests {
    use super::super::OwnedValue;
    use super::super::samples::{decimal, object, owned};
    use super::*;
    use bson::{Binary, RawBson, Regex, Timestamp, rawbson, rawdoc, spec::BinarySubtype};

    /// Asserts that the values ascend strictly, pairwise and in both directions.
    fn ascend(values: &[OwnedValue]) {
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(compare(a.view(), b.view()), i.cmp(&j), "{a:?} against {b:?}");
                assert_eq!(equal(a.view(), b.view()), i == j, "{a:?} against {b:?}");
            }
        }
    }

    fn binary(subtype: u8, bytes: &[u8]) -> OwnedValue {
        owned(Binary { subtype: BinarySubtype::from(subtype), bytes: bytes.to_vec() })
    }

    fn regex(pattern: &str, options: &str) -> OwnedValue {
        let part = |text: &str| bson::raw::CString::try_from(text).unwrap();
        owned(RawBson::RegularExpression(Regex { pattern: part(pattern), options: part(options) }))
    }

    fn pointer(name: &str, id: u8) -> OwnedValue {
        let mut bytes = u32::try_from(name.len() + 1).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&[0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        Value::parse(Kind::DbPointer, &bytes).unwrap().to_owned()
    }

    fn code(code: &str, scope: bson::RawDocumentBuf) -> OwnedValue {
        owned(bson::RawJavaScriptCodeWithScope { code: code.into(), scope })
    }

    #[test]
    fn types_are_ordered_by_their_class() {
        ascend(&[
            Value::MIN_KEY.to_owned(),
            Value::UNDEFINED.to_owned(),
            OwnedValue::null(),
            OwnedValue::double(f64::NAN),
            OwnedValue::int32(1),
            OwnedValue::string("a"),
            object(&rawdoc! { "a": 1 }),
            owned(rawbson!([1])),
            binary(0, &[1]),
            OwnedValue::object_id([1; 12]),
            OwnedValue::bool(false),
            OwnedValue::date(0),
            owned(Timestamp { time: 0, increment: 0 }),
            regex("a", ""),
            pointer("a", 1),
            owned(RawBson::JavaScriptCode("a".into())),
            code("a", rawdoc! {}),
            Value::MAX_KEY.to_owned(),
        ]);
    }

    #[test]
    fn a_missing_value_sorts_with_undefined_and_below_null() {
        assert_eq!(compare_options(None, None), Ordering::Equal);
        assert_eq!(compare_options(None, Some(Value::UNDEFINED)), Ordering::Equal);
        assert_eq!(compare_options(None, Some(Value::NULL)), Ordering::Less);
        assert_eq!(compare_options(Some(Value::MIN_KEY), None), Ordering::Less);
    }

    #[test]
    fn numbers_of_all_types_sort_together() {
        ascend(&[
            decimal("-Infinity"),
            OwnedValue::int64(i64::MIN),
            OwnedValue::double(-1.5),
            OwnedValue::int32(0),
            OwnedValue::double(0.5),
            decimal("1"),
            OwnedValue::int64(2),
            OwnedValue::double(f64::INFINITY),
        ]);
        assert!(equal(OwnedValue::int32(1).view(), decimal("1.0").view()));
    }

    #[test]
    fn strings_compare_by_bytes_and_symbols_are_strings() {
        ascend(&["", "A", "a", "a\0", "a\0b", "aa", "b", "é", "\u{10000}"].map(OwnedValue::string));
        let symbol = owned(RawBson::Symbol("a".into()));
        assert!(equal(symbol.view(), OwnedValue::string("a").view()));
        assert_eq!(compare(symbol.view(), OwnedValue::string("b").view()), Ordering::Less);
    }

    #[test]
    fn objects_compare_class_then_name_then_value_and_shorter_first() {
        ascend(&[
            object(&rawdoc! {}),
            object(&rawdoc! { "z": null }),
            object(&rawdoc! { "a": 1 }),
            object(&rawdoc! { "a": 1, "b": 0 }),
            object(&rawdoc! { "a": 2 }),
            object(&rawdoc! { "b": 0 }),
            object(&rawdoc! { "a": "" }),
        ]);
        assert!(!equal(object(&rawdoc! { "a": 1, "b": 2 }).view(), object(&rawdoc! { "b": 2, "a": 1 }).view()));
        assert!(equal(object(&rawdoc! { "a": 1 }).view(), object(&rawdoc! { "a": 1.0 }).view()));
    }

    #[test]
    fn arrays_compare_by_element_and_shorter_first() {
        ascend(
            &[rawbson!([]), rawbson!([1]), rawbson!([1, 1]), rawbson!([1, "a"]), rawbson!([2]), rawbson!([[]])]
                .map(owned),
        );
    }

    #[test]
    fn binary_data_compares_by_length_then_subtype_then_bytes() {
        ascend(&[
            binary(0, &[]),
            binary(0, &[9]),
            binary(5, &[0]),
            binary(0, &[0, 0]),
            binary(0, &[0, 1]),
            binary(4, &[0, 0]),
        ]);
    }

    #[test]
    fn dates_are_signed_and_timestamps_are_not() {
        ascend(&[i64::MIN, -1, 0, 1, i64::MAX].map(OwnedValue::date));
        ascend(
            &[(0, 0), (0, u32::MAX), (1, 0), (u32::MAX, 1)]
                .map(|(time, increment)| owned(Timestamp { time, increment })),
        );
    }

    #[test]
    fn object_ids_are_unsigned_bytes_and_false_is_below_true() {
        ascend(&[[0; 12], [0x7f; 12], [0x80; 12], [0xff; 12]].map(OwnedValue::object_id));
        ascend(&[OwnedValue::bool(false), OwnedValue::bool(true)]);
    }

    #[test]
    fn regexes_compare_by_pattern_then_flags() {
        ascend(&[regex("", "x"), regex("a", ""), regex("a", "i"), regex("ab", ""), regex("b", "")]);
    }

    #[test]
    fn pointers_compare_by_length_then_name_then_id() {
        ascend(&[pointer("b", 1), pointer("b", 2), pointer("c", 0), pointer("aa", 0)]);
    }

    #[test]
    fn code_compares_as_text_and_its_scope_as_an_object() {
        ascend(&["", "a", "b"].map(|text| owned(RawBson::JavaScriptCode(text.into()))));
        ascend(&[
            code("a", rawdoc! {}),
            code("a", rawdoc! { "x": 1 }),
            code("a", rawdoc! { "x": 2 }),
            code("b", rawdoc! {}),
        ]);
    }
}
