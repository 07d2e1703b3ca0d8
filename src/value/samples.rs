//! Values for the tests of this folder: short constructors, and generators of values that are easy to get wrong.

use bson::{Binary, RawBson, RawDocumentBuf, spec::BinarySubtype};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{DocBuf, DocWriter, Kind, OwnedValue, Value};

/// A value from anything that the `bson` crate can convert.
pub fn owned(value: impl Into<RawBson>) -> OwnedValue {
    let mut doc = RawDocumentBuf::new();
    doc.append(bson::cstr!("v"), value.into());
    DocBuf::parse(doc.into_bytes()).unwrap().view().get("v").unwrap().to_owned()
}

/// A document as a value.
pub fn object(doc: &RawDocumentBuf) -> OwnedValue {
    owned(doc.clone())
}

/// A decimal from its text.
pub fn decimal(text: &str) -> OwnedValue {
    owned(text.parse::<bson::Decimal128>().unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Numbers at which doubles, integers and decimals meet or part.
const LANDMARKS: &[f64] = &[
    0.0,
    5e-324,
    1e-323,
    f64::MIN_POSITIVE,
    1e-308,
    1e-200,
    1e-40,
    1e-31,
    1e-7,
    0.1,
    0.125,
    0.3,
    1.0,
    1.5,
    9.99,
    10.0,
    999.0,
    1e15,
    4_503_599_627_370_496.0,
    9_007_199_254_740_992.0,
    18_014_398_509_481_984.0,
    9_223_372_036_854_775_808.0,
    1e19,
    1e22,
    1e23,
    1e33,
    1e34,
    1e35,
    1e100,
    8.98846567431158e307,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

/// A number at or next to `landmark`, as one of the four types.
fn number_near(landmark: f64) -> BoxedStrategy<OwnedValue> {
    let extremes = ["1E-6176", "1E-330", "4.9E-324", "9E+6144", "1E+309", "0E+6111", "-0E-6176", "Infinity", "NaN"];
    (0..10, -2_i64..=2, any::<bool>(), select(extremes.to_vec()))
        .prop_map(move |(form, step, negative, extreme)| {
            let x = if negative { -landmark } else { landmark };
            let beside = f64::from_bits(x.to_bits().saturating_add_signed(step));
            let whole = (x as i64).saturating_add(step);
            match form {
                0..=2 => OwnedValue::double(beside),
                3 => OwnedValue::int32(whole as i32),
                4..=5 => OwnedValue::int64(whole),
                6 => decimal(&format!("{whole}.{}", "0".repeat(step.unsigned_abs() as usize))),
                7 if x.is_finite() => decimal(&beside_in_34_digits(x, step)),
                8 if x.is_finite() => decimal(&format!("{beside:e}")),
                _ => decimal(&format!("{}{extreme}", if negative && !extreme.starts_with('-') { "-" } else { "" })),
            }
        })
        .boxed()
}

/// The first 34 digits of `x`, with the last digit moved by `step`.
fn beside_in_34_digits(x: f64, step: i64) -> String {
    let text = format!("{x:.33e}");
    let (digits, exponent) = text.split_once('e').unwrap();
    let digits: i128 = digits.replace('.', "").parse().unwrap();
    format!("{}E{}", digits + i128::from(step), exponent.parse::<i32>().unwrap() - 33)
}

fn hostile_number() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        8 => select(LANDMARKS).prop_flat_map(number_near),
        1 => any::<u64>().prop_map(|bits| OwnedValue::double(f64::from_bits(bits))),
        1 => any::<i64>().prop_map(OwnedValue::int64),
        1 => any::<[u8; 16]>().prop_map(|bytes| owned(bson::Decimal128::from_bytes(bytes))),
        1 => (any::<i64>(), -345..345_i32).prop_map(|(digits, exponent)| decimal(&format!("{digits}E{exponent}"))),
    ]
}

/// Two numbers, often close to each other.
pub fn hostile_numbers() -> impl Strategy<Value = (OwnedValue, OwnedValue)> {
    prop_oneof![
        3 => select(LANDMARKS).prop_flat_map(|landmark| (number_near(landmark), number_near(landmark))),
        1 => (hostile_number(), hostile_number()),
    ]
}

fn hostile_text() -> impl Strategy<Value = String> {
    let part =
        select(vec!["", "\0", "\u{1}", "a", "b", "é", "\u{7f}", "\u{10ffff}", "a long common prefix, which goes on"]);
    vec(part, 0..4).prop_map(|parts| parts.concat())
}

/// Text for a name, a pattern or flags.
fn hostile_name() -> impl Strategy<Value = String> {
    hostile_text().prop_map(|text| text.replace('\0', ""))
}

fn pointer(name: &str, id: u8) -> OwnedValue {
    let mut bytes = OwnedValue::string(name).view().bytes().to_vec();
    bytes.extend_from_slice(&[id; 12]);
    Value::parse(Kind::DbPointer, &bytes).unwrap().to_owned()
}

fn regex((pattern, options): (String, String)) -> OwnedValue {
    let part = |text: String| bson::raw::CString::try_from(text).unwrap();
    owned(RawBson::RegularExpression(bson::Regex { pattern: part(pattern), options: part(options) }))
}

fn leaf() -> impl Strategy<Value = OwnedValue> {
    let small = || select(vec![0_u8, 1, 0x7f, 0x80, 0xff]);
    let binary = |(subtype, bytes): (u8, Vec<u8>)| owned(Binary { subtype: BinarySubtype::from(subtype), bytes });
    prop_oneof![
        8 => hostile_number(),
        4 => hostile_text().prop_map(|text| OwnedValue::string(&text)),
        1 => hostile_text().prop_map(|text| owned(RawBson::Symbol(text))),
        1 => hostile_text().prop_map(|text| owned(RawBson::JavaScriptCode(text))),
        2 => (small(), vec(small(), 0..3)).prop_map(binary),
        1 => small().prop_map(|byte| OwnedValue::object_id([byte; 12])),
        1 => any::<bool>().prop_map(OwnedValue::bool),
        1 => select(vec![i64::MIN, -1, 0, 1, i64::MAX]).prop_map(OwnedValue::date),
        1 => (small(), small()).prop_map(|(time, increment)| owned(bson::Timestamp {
            time: u32::from(time) << 24, increment: u32::from(increment) << 24,
        })),
        1 => (hostile_name(), hostile_name()).prop_map(regex),
        1 => (hostile_text(), small()).prop_map(|(name, id)| pointer(&name, id)),
        1 => select(vec![Value::MIN_KEY, Value::UNDEFINED, Value::NULL, Value::MAX_KEY]).prop_map(Value::to_owned),
    ]
}

fn document(fields: &[(String, OwnedValue)]) -> DocBuf {
    let mut writer = DocWriter::new();
    for (name, value) in fields {
        writer.value(name, value.view());
    }
    writer.finish()
}

/// A value of any type, nested up to three levels.
pub fn hostile_value() -> impl Strategy<Value = OwnedValue> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        let fields = || vec((hostile_name(), inner.clone()), 0..3);
        let code = |(code, scope): (String, Vec<(String, OwnedValue)>)| {
            let scope = RawDocumentBuf::from_bytes(document(&scope).into_bytes()).unwrap();
            owned(bson::RawJavaScriptCodeWithScope { code, scope })
        };
        prop_oneof![
            4 => fields().prop_map(|fields| OwnedValue::doc(document(&fields).view())),
            4 => vec(inner.clone(), 0..3).prop_map(|elements| {
                let named: Vec<_> = elements.into_iter().enumerate().map(|(i, e)| (i.to_string(), e)).collect();
                Value::parse(Kind::Array, document(&named).view().as_bytes()).unwrap().to_owned()
            }),
            1 => (hostile_text(), fields()).prop_map(code),
        ]
    })
}

/// A value that sorts as the number does, found by writing out all its digits: an oracle that shares no code with the
/// crate. `None` for NaN and infinities, and for exponents that would take too many digits.
pub fn exact_expansion(value: Value<'_>) -> Option<(i8, Vec<u8>)> {
    const WHOLE: usize = 400;
    const FRACTION: usize = 1_200;
    let text = match value.kind() {
        Kind::Double => format!("{:.FRACTION$}", value.as_f64()?),
        Kind::Int32 | Kind::Int64 => value.as_integer()?.to_string(),
        Kind::Decimal128 => bson::Decimal128::from_bytes(value.as_decimal128()?).to_string(),
        _ => return None,
    };
    let (negative, text) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
    match text {
        "NaN" => return Some((-3, Vec::new())),
        "inf" | "Infinity" => return Some((if negative { -2 } else { 2 }, Vec::new())),
        _ => {}
    }
    let (mantissa, exponent) = text.split_once('E').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().unwrap();
    let first = i64::try_from(WHOLE - whole.len()).unwrap() - exponent;
    let mut digits = vec![0; WHOLE + FRACTION];
    for (i, digit) in whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').enumerate() {
        if digit > 0 {
            *usize::try_from(first).ok().and_then(|first| digits.get_mut(first + i))? = digit;
        }
    }
    if digits.iter().all(|d| *d == 0) {
        return Some((0, Vec::new()));
    }
    Some(if negative { (-1, digits.into_iter().map(|d| 9 - d).collect()) } else { (1, digits) })
}
