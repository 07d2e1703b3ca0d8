//! Conversions, and decimals as strings.

use bson::{RawBson, rawbson};
use proptest::prelude::*;

use super::{check, date, doc, evaluate, fails};
use crate::env::fixed::FixedEnv;
use crate::error::ErrorCode;
use crate::value::Decimal;
use crate::value::decimal;

fn dec(text: &str) -> RawBson {
    RawBson::Decimal128(text.parse().unwrap())
}

fn to(name: &str, value: impl Into<RawBson>) -> RawBson {
    let name = bson::raw::CString::try_from(name).unwrap();
    rawbson!({ (&*name): { "$literal": (value.into()) } })
}

#[test]
fn every_type_converts_to_the_types_that_the_server_allows() {
    let id = bson::oid::ObjectId::parse_str("6553f21000a1b2c3d4e5f607").unwrap();
    let stamp = RawBson::Timestamp(bson::Timestamp { time: 5, increment: 7 });
    let long = i64::from(i32::MAX) + 1;
    for (name, value, wanted) in [
        ("$toDouble", rawbson!(true), rawbson!(1.0)),
        ("$toDouble", rawbson!(long), rawbson!(2_147_483_648.0)),
        ("$toDouble", dec("0.1"), rawbson!(0.1)),
        ("$toDouble", dec("-Infinity"), rawbson!(f64::NEG_INFINITY)),
        ("$toDouble", dec("9007199254740993"), rawbson!(9_007_199_254_740_992.0)),
        ("$toDouble", date(5), rawbson!(5.0)),
        ("$toInt", rawbson!(-2.9), rawbson!(-2)),
        ("$toInt", dec("2147483647.9"), rawbson!(i32::MAX)),
        ("$toInt", rawbson!(false), rawbson!(0)),
        ("$toLong", date(-7), rawbson!(-7_i64)),
        ("$toLong", rawbson!(1e18), rawbson!(1_000_000_000_000_000_000_i64)),
        ("$toDate", rawbson!(5_i64), date(5)),
        ("$toDate", rawbson!(-5.9), date(-5)),
        ("$toDate", dec("5.9"), date(5)),
        ("$toDate", stamp.clone(), date(5000)),
        ("$toDate", id.into(), date(1_700_000_272_000)),
        ("$toDate", rawbson!("2018-03-03T01:02:03.004+01:00"), date(1_520_035_323_004)),
        ("$toBool", rawbson!(""), rawbson!(true)),
        ("$toBool", rawbson!("false"), rawbson!(true)),
        ("$toBool", rawbson!(-0.0), rawbson!(false)),
        ("$toBool", dec("0E+3"), rawbson!(false)),
        ("$toBool", dec("NaN"), rawbson!(true)),
        ("$toBool", date(0), rawbson!(true)),
        ("$toBool", rawbson!([]), rawbson!(true)),
        ("$toBool", stamp, rawbson!(true)),
        ("$toObjectId", rawbson!("6553F21000A1b2c3d4e5f607"), id.into()),
        ("$toString", id.into(), rawbson!("6553f21000a1b2c3d4e5f607")),
        ("$toString", rawbson!(false), rawbson!("false")),
        ("$toString", date(0), rawbson!("1970-01-01T00:00:00.000Z")),
        ("$toString", rawbson!(-7_i64), rawbson!("-7")),
        ("$toDecimal", rawbson!(2.5), dec("2.50000000000000")),
        ("$toDecimal", rawbson!(-123_456_789.123_456_79), dec("-123456789.123457")),
        ("$toDecimal", rawbson!(0.0), dec("0")),
        ("$toDecimal", rawbson!(1e300), dec("1.00000000000000E+300")),
        ("$toDecimal", rawbson!(i64::MIN), dec("-9223372036854775808")),
        ("$toDecimal", rawbson!(true), dec("1")),
        ("$toDecimal", date(-7), dec("-7")),
        ("$toDecimal", rawbson!(f64::INFINITY), dec("Infinity")),
    ] {
        check(to(name, value), wanted);
    }
    for name in ["$toDouble", "$toString", "$toObjectId", "$toBool", "$toDate", "$toInt", "$toLong", "$toDecimal"] {
        check(to(name, RawBson::Null), RawBson::Null);
        let name = bson::raw::CString::try_from(name).unwrap();
        check(rawbson!({ (&*name): "$absent" }), RawBson::Null);
    }
    for (name, value) in [
        ("$toDouble", rawbson!([1])),
        ("$toDouble", id.into()),
        ("$toDouble", dec("1E+400")),
        ("$toInt", date(5)),
        ("$toInt", rawbson!(long)),
        ("$toInt", rawbson!(f64::NAN)),
        ("$toInt", rawbson!(2_147_483_648.0)),
        ("$toInt", id.into()),
        ("$toLong", rawbson!(9.3e18)),
        ("$toLong", dec("NaN")),
        ("$toDate", rawbson!(5)),
        ("$toDate", rawbson!(true)),
        ("$toDate", rawbson!("tomorrow")),
        ("$toObjectId", rawbson!(5)),
        ("$toObjectId", rawbson!("6553f21000a1b2c3d4e5f60")),
        ("$toObjectId", rawbson!("6553f21000a1b2c3d4e5f60g")),
        ("$toString", rawbson!({ "a": 1 })),
        ("$toDecimal", rawbson!([])),
    ] {
        fails(to(name, value), ErrorCode::ConversionFailure);
    }
}

#[test]
fn strings_convert_to_numbers_only_if_they_are_numbers() {
    for (name, text, wanted) in [
        ("$toInt", "-5", rawbson!(-5)),
        ("$toInt", "+05", rawbson!(5)),
        ("$toLong", "9223372036854775807", rawbson!(i64::MAX)),
        ("$toDouble", "-1.5e-3", rawbson!(-0.001_5)),
        ("$toDouble", ".5", rawbson!(0.5)),
        ("$toDouble", "5.", rawbson!(5.0)),
        ("$toDouble", "007", rawbson!(7.0)),
        ("$toDouble", "-0", rawbson!(-0.0)),
        ("$toDouble", "2.2250738585072011e-308", rawbson!(2.225_073_858_507_201e-308)),
        ("$toDouble", "-inf", rawbson!(f64::NEG_INFINITY)),
        ("$toDouble", "1e-999999999999", rawbson!(0.0)),
        ("$toDecimal", "1.50", dec("1.50")),
        ("$toDecimal", "-1E3", dec("-1E+3")),
        ("$toDecimal", "12345678901234567890123456789012345", dec("1.234567890123456789012345678901234E+34")),
        ("$toDecimal", "12345678901234567890123456789012335.0001", dec("1.234567890123456789012345678901234E+34")),
        ("$toDecimal", "99999999999999999999999999999999995", dec("1.000000000000000000000000000000000E+35")),
        ("$toDecimal", "1e-6180", dec("0E-6176")),
        ("$toDecimal", "6e-6177", dec("1E-6176")),
        ("$toDecimal", "1E6144", dec("1.000000000000000000000000000000000E+6144")),
        ("$toDecimal", "NaN", dec("NaN")),
        ("$toDecimal", "+Infinity", dec("Infinity")),
        ("$toDecimal", "0.00", dec("0.00")),
    ] {
        check(to(name, text), wanted);
    }
    for (name, text) in [
        ("$toInt", ""),
        ("$toInt", "5.0"),
        ("$toInt", " 5"),
        ("$toInt", "5 "),
        ("$toInt", "0x6C"),
        ("$toInt", "2147483648"),
        ("$toLong", "9223372036854775808"),
        ("$toDouble", ""),
        ("$toDouble", "."),
        ("$toDouble", "1e"),
        ("$toDouble", "1e400"),
        ("$toDouble", "1.2.3"),
        ("$toDouble", "0x6C"),
        ("$toDouble", " 1"),
        ("$toDouble", "--1"),
        ("$toDouble", "1,5"),
        ("$toDecimal", "1e7000"),
        ("$toDecimal", "e5"),
        ("$toDecimal", "five"),
    ] {
        fails(to(name, text), ErrorCode::ConversionFailure);
    }
}

#[test]
fn doubles_and_decimals_convert_to_strings_as_on_the_server() {
    for (value, wanted) in [
        (rawbson!(0.1), "0.1"),
        (rawbson!(0.1 + 0.2), "0.30000000000000004"),
        (rawbson!(-2.5), "-2.5"),
        (rawbson!(-0.0), "-0"),
        (rawbson!(1e15), "1000000000000000"),
        (rawbson!(1e16), "1e+16"),
        (rawbson!(1.5e300), "1.5e+300"),
        (rawbson!(0.0001), "0.0001"),
        (rawbson!(0.00001), "1e-05"),
        (rawbson!(5e-324), "5e-324"),
        (rawbson!(f64::NAN), "NaN"),
        (rawbson!(f64::NEG_INFINITY), "-Infinity"),
        (dec("1.50"), "1.50"),
        (dec("-0.000001"), "-0.000001"),
        (dec("1E-7"), "1E-7"),
        (dec("12E+3"), "1.2E+4"),
        (dec("0E+3"), "0E+3"),
        (dec("-0.00"), "-0.00"),
        (dec("NaN"), "NaN"),
        (dec("-Infinity"), "-Infinity"),
    ] {
        check(to("$toString", value), wanted);
    }
}

#[test]
fn convert_takes_type_names_numbers_and_replacements() {
    let convert = |options: RawBson| rawbson!({ "$convert": options });
    for (options, wanted) in [
        (rawbson!({ "input": "$a", "to": "string" }), rawbson!("5")),
        (rawbson!({ "input": "$x", "to": 16 }), rawbson!(2)),
        (rawbson!({ "input": "$x", "to": 18.0 }), rawbson!(2_i64)),
        (rawbson!({ "input": "$s", "to": "int", "onError": "none" }), rawbson!("none")),
        (rawbson!({ "input": "$s", "to": "array", "onError": "none" }), rawbson!("none")),
        (rawbson!({ "input": "$n", "to": "int", "onNull": "$x" }), rawbson!(2.5)),
        (rawbson!({ "input": "$n", "to": "int" }), RawBson::Null),
        (rawbson!({ "input": "$a", "to": "$absent" }), RawBson::Null),
        (rawbson!({ "input": "7", "to": { "$concat": ["lo", "ng"] } }), rawbson!(7_i64)),
        (
            rawbson!({ "input": "$a", "to": "decimal", "onError": { "$divide": ["$a", { "$subtract": ["$a", 5] }] } }),
            dec("5"),
        ),
    ] {
        check(convert(options), wanted);
    }
    for (options, code) in [
        (rawbson!({ "input": "$s", "to": "int" }), ErrorCode::ConversionFailure),
        (rawbson!({ "input": "$a", "to": "array" }), ErrorCode::ConversionFailure),
        (rawbson!({ "input": "$a", "to": "integer" }), ErrorCode::BadValue),
        (rawbson!({ "input": "$a", "to": "integer", "onError": 1 }), ErrorCode::BadValue),
        (rawbson!({ "input": "$a", "to": true }), ErrorCode::FailedToParse),
        (rawbson!({ "input": "$a", "to": 1.5 }), ErrorCode::FailedToParse),
        (rawbson!({ "input": "$a" }), ErrorCode::FailedToParse),
        (rawbson!({ "input": "$a", "to": "int", "or": 1 }), ErrorCode::FailedToParse),
        (rawbson!("$a"), ErrorCode::FailedToParse),
    ] {
        fails(convert(options), code);
    }
}

fn read(text: &str) -> Decimal {
    Decimal::from_le_bytes(text.parse::<bson::Decimal128>().unwrap().bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decimals_read_as_they_are_written(coefficient in 0..10_u128.pow(34), cut in 0..34_u32, exponent in -6176..6112_i32, negative: bool) {
        let number = Decimal::Finite { negative, coefficient: coefficient / 10_u128.pow(cut), exponent };
        let text = decimal::text(number);
        prop_assert_eq!(decimal::parse(&text), Some(number), "{}", text);
        prop_assert_eq!(read(&text), number, "{}", text);
        let value = decimal::to_value(number);
        let bytes = value.view().as_decimal128().unwrap();
        prop_assert_eq!(bytes, text.parse::<bson::Decimal128>().unwrap().bytes());
    }

    #[test]
    fn doubles_read_as_they_are_written(bits: u64) {
        let x = f64::from_bits(bits);
        let text = decimal::double_text(x, &FixedEnv::default());
        let again = decimal::parse_double(&text, &FixedEnv::default()).unwrap();
        prop_assert!(again.to_bits() == bits || x.is_nan() && again.is_nan(), "{:?} {}", x, text);
    }

    #[test]
    fn doubles_become_decimals_of_fifteen_digits(x in prop_oneof![-1e18..1e18_f64, prop::num::f64::NORMAL, (-9_999_999_i64..9_999_999).prop_map(|n| n as f64 / 64.0)]) {
        let wanted = format!("{x:.14e}");
        let found = decimal::from_double(x);
        prop_assert!(x == 0.0 || found == read(&wanted), "{:?} {:?} {}", x, found, wanted);
    }
}

fn binary(subtype: u8, bytes: &[u8]) -> RawBson {
    RawBson::Binary(bson::Binary { subtype: subtype.into(), bytes: bytes.to_vec() })
}

fn convert(input: RawBson, mut arguments: RawBson) -> RawBson {
    arguments.as_document_mut().unwrap().append(bson::raw::cstr!("input"), rawbson!({ "$literal": input }));
    rawbson!({ "$convert": arguments })
}

#[test]
fn binary_data_is_written_in_every_format_and_read_again() {
    // The expected strings come from Python's modules base64 and uuid.
    let bytes = [0, 255, 16, 131, 16, 81, 251, 239, 190];
    let sixteen: Vec<u8> = (0..16).collect();
    for (subtype, bytes, format, text) in [
        (0, &bytes[..], "base64", "AP8QgxBR++++"),
        (0, &bytes, "base64url", "AP8QgxBR----"),
        (0, &bytes[..7], "base64", "AP8QgxBR+w=="),
        (0, &bytes[..8], "base64url", "AP8QgxBR--8"),
        (0, &[], "base64", ""),
        (128, &bytes[..3], "hex", "00FF10"),
        (5, "hé".as_bytes(), "utf8", "hé"),
        (4, &sixteen, "uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ] {
        let data = binary(subtype, bytes);
        check(convert(data.clone(), rawbson!({ "to": "string", "format": format })), text);
        let to = rawbson!({ "type": "binData", "subtype": (i32::from(subtype)) });
        check(convert(text.into(), rawbson!({ "to": to, "format": format })), data);
    }
    check(to("$toString", binary(4, &sixteen)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    check(to("$toString", binary(0, &sixteen)), "AAECAwQFBgcICQoLDA0ODw==");
    check(to("$toUUID", "00010203-0405-0607-0809-0A0B0C0D0E0F"), binary(4, &sixteen));
    check(convert(binary(2, &[]), rawbson!({ "to": 8 })), true);
    check(
        convert("AP8".into(), rawbson!({ "to": { "type": 5, "subtype": null }, "format": "base64url" })),
        binary(0, &[0, 255]),
    );
}

#[test]
fn numbers_convert_to_binary_data_in_both_byte_orders() {
    for (number, little) in [
        (rawbson!(-2), vec![254, 255, 255, 255]),
        (rawbson!(258_i64), vec![2, 1, 0, 0, 0, 0, 0, 0]),
        (rawbson!(-2.5), vec![0, 0, 0, 0, 0, 0, 4, 192]),
    ] {
        let kind = match &number {
            RawBson::Int32(_) => "int",
            RawBson::Int64(_) => "long",
            _ => "double",
        };
        let big: Vec<u8> = little.iter().rev().copied().collect();
        for (order, bytes) in [(rawbson!(null), &little), (rawbson!("little"), &little), (rawbson!("big"), &big)] {
            let order = order.clone();
            check(
                convert(number.clone(), rawbson!({ "to": "binData", "byteOrder": (order.clone()) })),
                binary(0, bytes),
            );
            check(convert(binary(0, bytes), rawbson!({ "to": kind, "byteOrder": order })), number.clone());
        }
    }
    check(convert(binary(9, &[255]), rawbson!({ "to": "int" })), -1);
    check(convert(binary(0, &[255, 127]), rawbson!({ "to": "long" })), 32_767_i64);
    check(convert(binary(0, &[192, 32, 0, 0]), rawbson!({ "to": "double", "byteOrder": "big" })), -2.5);
}

#[test]
fn integers_are_written_and_read_in_other_bases() {
    for (number, base, text) in
        [(rawbson!(10), 2, "1010"), (rawbson!(-255_i64), 16, "-FF"), (rawbson!(64.0), 8, "100"), (dec("-0"), 10, "0")]
    {
        check(convert(number, rawbson!({ "to": "string", "base": base })), text);
    }
    check(convert("ff".into(), rawbson!({ "to": "int", "base": 16 })), 255);
    check(convert("-101".into(), rawbson!({ "to": "double", "base": 2 })), -5.0);
    check(convert("17".into(), rawbson!({ "to": "decimal", "base": 8 })), dec("15"));
    check(convert("2".into(), rawbson!({ "to": "long", "base": 2, "onError": "none" })), "none");
    check(convert("17".into(), rawbson!({ "to": "long", "base": null })), 17_i64);
}

#[test]
fn invalid_binary_data_and_formats_are_refused_with_their_codes() {
    use ErrorCode::*;
    for (input, arguments, code) in [
        ("AP8".into(), rawbson!({ "to": "binData", "format": "base64" }), ConversionFailure),
        ("A===".into(), rawbson!({ "to": "binData", "format": "base64" }), ConversionFailure),
        ("A".into(), rawbson!({ "to": "binData", "format": "base64url" }), ConversionFailure),
        ("A-8=".into(), rawbson!({ "to": "binData", "format": "base64" }), ConversionFailure),
        ("0".into(), rawbson!({ "to": "binData", "format": "hex" }), ConversionFailure),
        ("00".into(), rawbson!({ "to": "binData", "format": "auto" }), ConversionFailure),
        (
            "0001020304050607-0809-0a0b0c0d0e0f--".into(),
            rawbson!({ "to": { "type": "binData", "subtype": 4 }, "format": "uuid" }),
            ConversionFailure,
        ),
        (
            "00010203-0405-0607-0809-0a0b0c0d0e0f".into(),
            rawbson!({ "to": "binData", "format": "uuid" }),
            ConversionFailure,
        ),
        (binary(0, &[255]), rawbson!({ "to": "string", "format": "utf8" }), ConversionFailure),
        (binary(0, &[255]), rawbson!({ "to": "string", "format": "uuid" }), ConversionFailure),
        (binary(0, &[1, 2, 3]), rawbson!({ "to": "int" }), ConversionFailure),
        (binary(0, &[1; 8]), rawbson!({ "to": "int" }), ConversionFailure),
        (binary(0, &[1; 2]), rawbson!({ "to": "double" }), ConversionFailure),
        (binary(0, &[1]), rawbson!({ "to": { "type": "binData", "subtype": 1 } }), ConversionFailure),
        (dec("1"), rawbson!({ "to": "binData" }), ConversionFailure),
        (rawbson!(1.5), rawbson!({ "to": "string", "base": 2 }), ConversionFailure),
        ("1".into(), rawbson!({ "to": "binData", "onError": 1 }), Location4341115),
        (binary(0, &[]), rawbson!({ "to": "string" }), Location4341115),
        ("1".into(), rawbson!({ "to": "binData", "format": 1 }), Location4341114),
        ("1".into(), rawbson!({ "to": "binData", "format": "base32" }), Location4341125),
        (rawbson!(1), rawbson!({ "to": "binData", "byteOrder": 1 }), Location9130001),
        (rawbson!(1), rawbson!({ "to": "binData", "byteOrder": "middle" }), Location9130002),
        (rawbson!(1), rawbson!({ "to": "string", "base": "x" }), Location3501300),
        (rawbson!(1), rawbson!({ "to": "string", "base": 3 }), Location3501301),
        (rawbson!(1), rawbson!({ "to": { "type": "binData", "subtype": "x" } }), Location4341108),
        (rawbson!(1), rawbson!({ "to": { "type": "binData", "subtype": 1.5 } }), Location4341106),
        (rawbson!(1), rawbson!({ "to": { "type": "binData", "subtype": 100 } }), Location4341107),
        (rawbson!(1), rawbson!({ "to": { "subtype": 1 } }), FailedToParse),
    ] {
        fails(convert(input, arguments), code);
    }
    fails(to("$toUUID", "x"), ConversionFailure);
}

#[test]
fn a_message_shows_the_value_that_is_no_date() {
    let error = evaluate(rawbson!({ "$dateFromString": { "dateString": "never" } }), &doc()).unwrap_err();
    assert_eq!(error.message, "$dateFromString cannot read a date from \"never\"");
}
