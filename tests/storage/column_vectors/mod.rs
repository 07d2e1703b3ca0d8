//! The vectors of `tests/fixtures/bson_column_vectors.json`: columns, and their elements in extended JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde_json::{Map, Value as Json};

use crate::column_reference::Element;

/// One column.
pub struct Vector {
    /// The subject of the vector.
    pub name: String,
    /// The column.
    pub bytes: Vec<u8>,
    /// The elements; `None` if the column must be refused.
    pub elements: Option<Vec<Element>>,
    /// True if the encoder writes the elements differently.
    pub decode_only: bool,
}

/// All vectors.
pub fn vectors() -> Vec<Vector> {
    let list: Vec<Json> = serde_json::from_str(include_str!("../../fixtures/bson_column_vectors.json")).unwrap();
    list.iter()
        .map(|vector| Vector {
            name: text(&vector["name"]).into(),
            bytes: base64(text(&vector["base64"])),
            elements: vector["elements"].as_array().map(|list| list.iter().map(element).collect()),
            decode_only: vector.get("decode_only").is_some_and(|flag| flag == true),
        })
        .collect()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("no string: {json}"))
}

fn element(json: &Json) -> Element {
    (json.get("$missing").is_none()).then(|| tagged(json))
}

/// Type byte and value bytes of canonical extended JSON.
fn tagged(json: &Json) -> Vec<u8> {
    match json {
        Json::Null => vec![0x0A],
        Json::Bool(flag) => vec![0x08, u8::from(*flag)],
        Json::String(text) => [&[0x02], &string(text)[..]].concat(),
        Json::Array(list) => {
            let fields = list.iter().enumerate().map(|(i, field)| (i.to_string(), field));
            [&[0x04], &document(fields)[..]].concat()
        }
        Json::Object(map) => special(map).unwrap_or_else(|| {
            let fields = map.iter().map(|(name, field)| (name.clone(), field));
            [&[0x03], &document(fields)[..]].concat()
        }),
        Json::Number(_) => panic!("a number that does not say its type: {json}"),
    }
}

/// The value of an object with a name that begins with a dollar sign.
fn special(map: &Map<String, Json>) -> Option<Vec<u8>> {
    let (name, json) = map.iter().next().filter(|(name, _)| name.starts_with('$'))?;
    let (kind, value): (u8, Vec<u8>) = match name.as_str() {
        "$numberInt" => (0x10, text(json).parse::<i32>().unwrap().to_le_bytes().into()),
        "$numberLong" => (0x12, text(json).parse::<i64>().unwrap().to_le_bytes().into()),
        "$numberDouble" => (0x01, text(json).parse::<f64>().unwrap().to_le_bytes().into()),
        "$doubleBits" => (0x01, u64::from_str_radix(text(json), 16).unwrap().to_le_bytes().into()),
        "$numberDecimal" => (0x13, text(json).parse::<bson::Decimal128>().unwrap().bytes().into()),
        "$date" => (0x09, text(&json["$numberLong"]).parse::<i64>().unwrap().to_le_bytes().into()),
        "$timestamp" => {
            let half = |name| u32::try_from(json[name].as_u64().unwrap()).unwrap().to_le_bytes();
            (0x11, [half("i"), half("t")].concat())
        }
        "$oid" => (0x07, object_id(json)),
        "$symbol" => (0x0E, string(text(json))),
        "$code" => (0x0D, string(text(json))),
        "$dbPointer" => (0x0C, [string(text(&json["$ref"])), object_id(&json["$id"]["$oid"])].concat()),
        "$binary" => {
            let bytes = base64(text(&json["base64"]));
            let subtype = u8::from_str_radix(text(&json["subType"]), 16).unwrap();
            (0x05, [&(bytes.len() as i32).to_le_bytes()[..], &[subtype], &bytes].concat())
        }
        "$bson" => (u8::try_from(json["type"].as_u64().unwrap()).unwrap(), base64(text(&json["base64"]))),
        "$undefined" => (0x06, Vec::new()),
        "$minKey" => (0xFF, Vec::new()),
        "$maxKey" => (0x7F, Vec::new()),
        _ => panic!("no extended JSON: {name}"),
    };
    Some([vec![kind], value].concat())
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as i32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

fn object_id(hex: &Json) -> Vec<u8> {
    let hex = text(hex);
    (0..12).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn document<'a>(fields: impl Iterator<Item = (String, &'a Json)>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, field) in fields {
        let field = tagged(field);
        body.push(field[0]);
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(&field[1..]);
    }
    [&(body.len() as i32 + 5).to_le_bytes()[..], &body, &[0]].concat()
}

fn base64(text: &str) -> Vec<u8> {
    let sextet = |character: u8| match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no base64: {text}"),
    };
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for character in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | u32::from(sextet(character));
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
