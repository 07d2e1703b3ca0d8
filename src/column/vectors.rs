//! Columns whose bytes are known: the fixture, and sizes of plain data.

use std::str::FromStr;

use serde_json::Value as Json;

use super::{ColumnWriter, encode};
use crate::block::{Column, ColumnBuilder};
use crate::value::{DocWriter, Kind, OwnedValue, Value};

const FIXTURE: &str = include_str!("../../tests/fixtures/bson_column_vectors.json");

#[test]
fn every_column_of_the_fixture_is_written_byte_for_byte() {
    let vectors: Vec<Json> = serde_json::from_str(FIXTURE).unwrap();
    let mut seen = 0;
    for vector in vectors.iter().filter(|v| v["elements"].is_array() && v["decode_only"] != true) {
        let elements: Vec<Option<OwnedValue>> = vector["elements"].as_array().unwrap().iter().map(element).collect();
        let expected = base64(&vector["base64"]);
        let (mut writer, mut builder) = (ColumnWriter::new(), ColumnBuilder::new());
        for element in &elements {
            match element {
                Some(value) => (writer.push(value.view()), builder.push(value.view())),
                None => (writer.skip(1), builder.push_absent(1)),
            };
        }
        assert_eq!(writer.len(), elements.len());
        assert_eq!(hex(&writer.finish()), hex(&expected), "{}", vector["name"]);
        assert_eq!(hex(&encode(&builder.finish())), hex(&expected), "{} as a column", vector["name"]);
        seen += 1;
    }
    assert!(seen >= 90, "{seen}");
}

#[test]
fn a_thousand_elements_of_plain_data_have_the_size_that_is_known() {
    let size = |value: &dyn Fn(i64) -> OwnedValue| {
        let mut builder = ColumnBuilder::new();
        (0..1000).for_each(|i| builder.push(value(i).view()));
        encode(&builder.finish()).len()
    };
    assert_eq!(size(&|_| OwnedValue::double(21.5)), 44);
    assert_eq!(size(&|_| OwnedValue::bool(true)), 37);
    assert_eq!(size(&|i| OwnedValue::date(1_700_000_000_000 + 1000 * i)), 44);
    assert_eq!(size(&|i| OwnedValue::int32(i32::try_from(i).unwrap())), 40);
    assert_eq!(size(&OwnedValue::int64), 44);
    assert_eq!(encode(&Column::constant(OwnedValue::double(21.5).view(), 1000)).len(), 44);
    let mut missing = ColumnWriter::new();
    missing.skip(1000);
    assert_eq!(missing.finish().len(), 42);
    assert_eq!(ColumnWriter::new().finish(), [0]);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x} ")).collect()
}

fn base64(text: &Json) -> Vec<u8> {
    bson::Binary::from_base64(text.as_str().unwrap(), None).unwrap().bytes
}

/// An element; `None` where it is missing.
fn element(json: &Json) -> Option<OwnedValue> {
    if json.get("$missing").is_some() {
        return None;
    }
    let (kind, bytes) = tagged(json);
    Some(Value::parse(kind, &bytes).unwrap().to_owned())
}

/// Type and value bytes of canonical extended JSON.
fn tagged(json: &Json) -> (Kind, Vec<u8>) {
    let number = |json: &Json| json.as_i64().or_else(|| json.as_str()?.parse().ok()).unwrap();
    let text = |json: &Json| OwnedValue::string(json.as_str().unwrap()).view().bytes().to_vec();
    let oid = |json: &Json| bson::oid::ObjectId::parse_str(json.as_str().unwrap()).unwrap().bytes().to_vec();
    let fields = match json {
        Json::Null => return (Kind::Null, vec![]),
        Json::Bool(b) => return (Kind::Bool, vec![u8::from(*b)]),
        Json::String(_) => return (Kind::String, text(json)),
        Json::Array(items) => {
            return (Kind::Array, document(items.iter().enumerate().map(|(i, v)| (i.to_string(), v))));
        }
        Json::Object(fields) => fields,
        Json::Number(_) => panic!("a plain number says no type"),
    };
    let Some((key, inner)) = fields.iter().next().filter(|(key, _)| key.starts_with('$')) else {
        return (Kind::Object, document(fields.iter().map(|(name, value)| (name.clone(), value))));
    };
    match key.as_str() {
        "$numberInt" => (Kind::Int32, i32::try_from(number(inner)).unwrap().to_le_bytes().to_vec()),
        "$numberLong" => (Kind::Int64, number(inner).to_le_bytes().to_vec()),
        "$numberDouble" => (Kind::Double, f64::from_str(inner.as_str().unwrap()).unwrap().to_le_bytes().to_vec()),
        "$doubleBits" => {
            let bits = u64::from_str_radix(inner.as_str().unwrap(), 16).unwrap();
            (Kind::Double, bits.to_le_bytes().to_vec())
        }
        "$numberDecimal" => {
            (Kind::Decimal128, bson::Decimal128::from_str(inner.as_str().unwrap()).unwrap().bytes().to_vec())
        }
        "$date" => (Kind::Date, number(&inner["$numberLong"]).to_le_bytes().to_vec()),
        "$timestamp" => (Kind::Timestamp, (number(&inner["t"]) << 32 | number(&inner["i"])).to_le_bytes().to_vec()),
        "$oid" => (Kind::ObjectId, oid(inner)),
        "$binary" => {
            let bytes = base64(&inner["base64"]);
            let subtype = u8::from_str_radix(inner["subType"].as_str().unwrap(), 16).unwrap();
            let len = u32::try_from(bytes.len()).unwrap();
            (Kind::Binary, [&len.to_le_bytes()[..], &[subtype], &bytes].concat())
        }
        "$symbol" => (Kind::Symbol, text(inner)),
        "$code" => (Kind::Code, text(inner)),
        "$dbPointer" => (Kind::DbPointer, [text(&inner["$ref"]), oid(&inner["$id"]["$oid"])].concat()),
        "$undefined" => (Kind::Undefined, vec![]),
        "$minKey" => (Kind::MinKey, vec![]),
        "$maxKey" => (Kind::MaxKey, vec![]),
        "$bson" => {
            let kind = u8::try_from(inner["type"].as_u64().unwrap()).unwrap();
            (Kind::from_byte(kind).unwrap(), base64(&inner["base64"]))
        }
        _ => panic!("{key} is no form of extended JSON"),
    }
}

fn document<'a>(fields: impl Iterator<Item = (String, &'a Json)>) -> Vec<u8> {
    let mut out = DocWriter::new();
    for (name, value) in fields {
        let (kind, bytes) = tagged(value);
        out.value(&name, Value::parse(kind, &bytes).unwrap());
    }
    out.finish().into_bytes()
}
