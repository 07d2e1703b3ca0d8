//! Converts binary data from and to strings and numbers, and integers to other bases.
//!
//! Source: mongodb/mongo src/mongo/db/exec/expression/evaluate_convert.cpp.

// Loaded later.

use super::datum::Datum;
use crate::listed::IntoList;
use crate::value::{DocWriter, Kind, Number, Value};

/// The form of binary data and integers.
pub(super) struct Form<'a> {
    pub format: &'a str,
    pub base: Option<u32>,
    pub is_big: bool,
    pub subtype: u8,
}

/// Formats of binary data in strings.
pub(super) const FORMATS: [&str; 6] = ["auto", "base64", "base64url", "hex", "utf8", "uuid"];
/// Subtype and length of a UUID.
const UUID: (u8, usize) = (4, 16);
/// Positions of the hyphens in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The bytes that hexadecimal digits encode.
pub(super) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).listed_if_all();
    bytes.filter(|_| rest.is_empty())
}

/// Hexadecimal digits, in lower case.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The value of a base64 letter.
fn letter(n: u8, is_url: bool) -> u8 {
    match n {
        0..26 => b'A' + n,
        26..52 => b'a' + n - 26,
        52..62 => b'0' + n - 52,
        62 if is_url => b'-',
        62 => b'+',
        _ if is_url => b'_',
        _ => b'/',
    }
}

fn base64(bytes: &[u8], is_url: bool) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            match at <= chunk.len() {
                true => text.push(char::from(letter((bits >> (18 - 6 * at)) as u8 & 63, is_url))),
                false if is_url => {}
                false => text.push('='),
            }
        }
    }
    text
}

fn from_base64(text: &str, is_url: bool) -> Option<Vec<u8>> {
    let letters = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    if !text.len().is_multiple_of(4) && (!is_url || letters.len() < text.len()) || letters.len() % 4 == 1 {
        return None;
    }
    let (mut bytes, mut bits) = (Vec::new(), 0_u32);
    for (at, found) in letters.bytes().enumerate() {
        let n = (0..64).find(|n| letter(*n, is_url) == found)?;
        bits = bits << 6 | u32::from(n);
        // Each of four letters except the first completes a byte.
        let filled = at % 4;
        if filled > 0 {
            bytes.push((bits >> (6 - 2 * filled)) as u8);
        }
    }
    Some(bytes)
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = hex(bytes);
    HYPHENS.iter().for_each(|at| text.insert(*at, '-'));
    text
}

fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let is_hyphen = |at: &usize| text.as_bytes().get(*at) == Some(&b'-');
    let digits: Vec<u8> = text.bytes().filter(|letter| *letter != b'-').listed();
    from_hex(&digits).filter(|bytes| {
        bytes.len() == UUID.1 && text.len() == 2 * bytes.len() + HYPHENS.len() && HYPHENS.iter().all(is_hyphen)
    })
}

fn binary(subtype: u8, bytes: &[u8]) -> Datum<'static> {
    let mut writer = DocWriter::new();
    writer.binary("", subtype, bytes);
    Datum::copied(writer.finish().view().get(""))
}

/// The bytes of a fixed-width number, lowest first.
fn reversed(bytes: &[u8], is_big: bool) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if is_big {
        bytes.reverse();
    }
    bytes
}

/// A value as binary data; `None` if that is impossible.
pub(super) fn to_binary(value: Value<'_>, form: &Form<'_>) -> Option<Datum<'static>> {
    let bytes = match value.kind() {
        Kind::Int32 | Kind::Int64 | Kind::Double => reversed(value.bytes(), form.is_big),
        Kind::Binary => {
            let (subtype, bytes) = value.as_binary()?;
            return (subtype == form.subtype).then(|| binary(subtype, bytes));
        }
        _ => {
            let text = value.as_str().filter(|_| (form.format == "uuid") == (form.subtype == UUID.0))?;
            match form.format {
                "base64" => from_base64(text, false)?,
                "base64url" => from_base64(text, true)?,
                "hex" => from_hex(text.as_bytes())?,
                "utf8" => text.as_bytes().to_vec(),
                "uuid" => from_uuid(text)?,
                _ => return None,
            }
        }
    };
    Some(binary(form.subtype, &bytes))
}

/// Binary data as a string or a number; `None` if that is impossible.
pub(super) fn from_binary(subtype: u8, bytes: &[u8], to: Kind, form: &Form<'_>) -> Option<Datum<'static>> {
    if to == Kind::String {
        let is_uuid = (subtype, bytes.len()) == UUID;
        let text = match form.format {
            "auto" | "uuid" if is_uuid => uuid(bytes),
            "auto" | "base64" => base64(bytes, false),
            "base64url" => base64(bytes, true),
            "hex" => hex(bytes).to_ascii_uppercase(),
            "utf8" => std::str::from_utf8(bytes).ok()?.to_owned(),
            _ => return None,
        };
        return Some(Datum::string(&text));
    }
    let bytes = reversed(bytes, form.is_big);
    let n = match *bytes.as_slice() {
        [a] => i64::from(i8::from_le_bytes([a])),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] if to == Kind::Double => return Some(Datum::double(f32::from_le_bytes([a, b, c, d]).into())),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    };
    match to {
        Kind::Int32 if bytes.len() <= 4 => i32::try_from(n).ok().map(Datum::int32),
        Kind::Int64 => Some(Datum::int64(n)),
        Kind::Double if bytes.len() == 8 => Some(Datum::double(f64::from_bits(n.cast_unsigned()))),
        _ => None,
    }
}

/// An integer in a base, with capital letters.
pub(super) fn in_base(number: Number, base: u32) -> Option<String> {
    let n = number.whole()?;
    let (mut rest, base) = (n.unsigned_abs(), u64::from(base.max(2)));
    let mut text = String::new();
    loop {
        text.insert(0, char::from_digit((rest % base) as u32, 16)?.to_ascii_uppercase());
        rest /= base;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        text.insert(0, '-');
    }
    Some(text)
}
