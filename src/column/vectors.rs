//! The vectors of `tests/fixtures/bson_column_vectors.json`: columns, and the elements that they hold.

use serde_json::Value as Json;

use crate::value::{DocWriter, Kind, OwnedValue};

/// One vector.
pub struct ColumnVector {
    pub name: String,
    /// `None` if the column must be refused. An element of `None` is missing.
    pub elements: Option<Vec<Option<OwnedValue>>>,
    pub bytes: Vec<u8>,
    /// True for bytes that today's writers do not produce.
    pub decode_only: bool,
}

/// All vectors.
pub fn vectors() -> Vec<ColumnVector> {
    let text = include_str!("../../tests/fixtures/bson_column_vectors.json");
    let all: Vec<Json> = serde_json::from_str(text).unwrap();
    all.iter()
        .map(|vector| ColumnVector {
            name: vector["name"].as_str().unwrap().to_owned(),
            elements: vector["elements"].as_array().map(|all| all.iter().map(element).collect()),
            bytes: base64(vector["base64"].as_str().unwrap()),
            decode_only: vector["decode_only"] == true,
        })
        .collect()
}

fn element(json: &Json) -> Option<OwnedValue> {
    (json.get("$missing").is_none()).then(|| value(json))
}

/// A value of extended JSON, canonical form.
fn value(json: &Json) -> OwnedValue {
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let tagged =
        |kind: Kind, parts: &[&[u8]]| OwnedValue::from_tagged_checked([&[kind.byte()][..], &parts.concat()].concat());
    let string = |json: &Json| OwnedValue::string(json.as_str().unwrap()).view().bytes().to_vec();
    let fields = match json {
        Json::Null => return OwnedValue::null(),
        Json::Bool(b) => return OwnedValue::bool(*b),
        Json::String(text) => return OwnedValue::string(text),
        Json::Array(all) => {
            let names: Vec<String> = (0..all.len()).map(|i| i.to_string()).collect();
            return document(Kind::Array, names.iter().map(String::as_str).zip(all));
        }
        Json::Object(fields) => fields,
        Json::Number(n) => panic!("{n} is not canonical"),
    };
    let Some((name, inner)) = fields.iter().next() else { return document(Kind::Object, [].into_iter()) };
    match name.as_str() {
        "$numberInt" => OwnedValue::int32(text(inner).parse().unwrap()),
        "$numberLong" => OwnedValue::int64(text(inner).parse().unwrap()),
        "$numberDouble" => OwnedValue::double(text(inner).parse().unwrap()),
        "$doubleBits" => OwnedValue::double(f64::from_bits(u64::from_str_radix(&text(inner), 16).unwrap())),
        "$numberDecimal" => {
            let decimal: bson::Decimal128 = text(inner).parse().unwrap();
            tagged(Kind::Decimal128, &[&decimal.bytes()])
        }
        "$date" => OwnedValue::date(value(inner).view().as_i64().unwrap()),
        "$oid" => OwnedValue::object_id(text(inner).parse::<bson::oid::ObjectId>().unwrap().bytes()),
        "$timestamp" => {
            let part = |name: &str| u32::try_from(inner[name].as_u64().unwrap()).unwrap().to_le_bytes();
            tagged(Kind::Timestamp, &[&part("i"), &part("t")])
        }
        "$binary" => {
            let bytes = base64(&text(&inner["base64"]));
            let subtype = u8::from_str_radix(&text(&inner["subType"]), 16).unwrap();
            tagged(Kind::Binary, &[&(bytes.len() as u32).to_le_bytes(), &[subtype], &bytes])
        }
        "$undefined" => tagged(Kind::Undefined, &[]),
        "$minKey" => tagged(Kind::MinKey, &[]),
        "$maxKey" => tagged(Kind::MaxKey, &[]),
        "$symbol" => tagged(Kind::Symbol, &[&string(inner)]),
        "$code" => tagged(Kind::Code, &[&string(inner)]),
        "$dbPointer" => tagged(Kind::DbPointer, &[&string(&inner["$ref"]), value(&inner["$id"]).view().bytes()]),
        "$bson" => {
            let kind = Kind::from_byte(u8::try_from(inner["type"].as_u64().unwrap()).unwrap()).unwrap();
            tagged(kind, &[&base64(&text(&inner["base64"]))])
        }
        name => {
            assert!(!name.starts_with('$'), "{name} is not read");
            document(Kind::Object, fields.iter().map(|(name, inner)| (name.as_str(), inner)))
        }
    }
}

fn document<'a>(kind: Kind, fields: impl Iterator<Item = (&'a str, &'a Json)>) -> OwnedValue {
    let mut writer = DocWriter::new();
    for (name, json) in fields {
        writer.value(name, value(json).view());
    }
    let bytes = writer.finish().into_bytes();
    OwnedValue::from_tagged_checked([&[kind.byte()][..], &bytes].concat())
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | DIGITS.iter().position(|digit| *digit == byte).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
