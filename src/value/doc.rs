//! BSON documents: checked once, then walked without further checks.

use std::fmt;

use kernels::{documents, elements};

use super::raw::{Kind, Value};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_DEPTH_MAX;

/// A borrowed BSON document (or array) whose bytes were checked deeply: lengths, type bytes, NUL terminators, UTF-8, depth.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Doc<'a> {
    bytes: &'a [u8],
}

impl<'a> Doc<'a> {
    /// The document without fields.
    pub const EMPTY: Doc<'static> = Doc { bytes: &[5, 0, 0, 0, 0] };

    /// Checks `bytes` deeply. They must be exactly one document.
    ///
    /// Errors: `InvalidBSON`.
    pub fn parse(bytes: &'a [u8]) -> Result<Doc<'a>> {
        check(bytes)?;
        Ok(Doc { bytes })
    }

    /// A document inside one that was checked, or one that this crate has built.
    pub(crate) fn new_checked(bytes: &'a [u8]) -> Doc<'a> {
        debug_assert!(check_doc(bytes, 0).is_ok());
        Doc { bytes }
    }

    /// The whole document, length prefix included.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// True if there are no fields.
    pub fn is_empty(self) -> bool {
        self.bytes.len() <= 5
    }

    /// Names and values, in stored order.
    pub fn iter(self) -> Elements<'a> {
        Elements { rest: self.bytes.get(4..self.bytes.len().saturating_sub(1)).unwrap_or_default() }
    }

    /// As `iter`, with the bytes of the names. It is faster, as nobody looks whether these are UTF-8.
    pub fn fields(self) -> DocFields<'a> {
        DocFields(self.iter())
    }

    /// The first field called `name`.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let (kind, value) = elements::named(self.iter().rest, name.as_bytes())?;
        Some(Value::new_checked(Kind::from_byte(kind)?, value))
    }

    /// True if one of the texts occurs anywhere in the document, as a name or in a value.
    pub fn mentions(self, texts: &[&str]) -> bool {
        (0..self.bytes.len()).any(|at| {
            let rest = self.bytes.get(at..).unwrap_or_default();
            texts.iter().any(|text| rest.starts_with(text.as_bytes()))
        })
    }

    /// This document as a value.
    pub fn as_value(self) -> Value<'a> {
        Value::new_checked(Kind::Object, self.bytes)
    }

    /// An owned copy.
    pub fn to_owned(self) -> DocBuf {
        DocBuf { bytes: self.bytes.to_vec() }
    }
}

impl<'a> IntoIterator for Doc<'a> {
    type Item = (&'a str, Value<'a>);
    type IntoIter = Elements<'a>;
    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, " {name}: {value:?}")?;
        }
        f.write_str(if self.is_empty() { "}" } else { " }" })
    }
}

/// Iterator over names and values of a checked document.
#[derive(Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_field()?;
        Some((std::str::from_utf8(name).ok()?, value))
    }

    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        self.rest = self.rest.get(elements::behind(self.rest, count)..).unwrap_or_default();
        self.next()
    }

    fn count(self) -> usize {
        let (mut rest, mut count) = (self.rest, 0);
        while let Some((_, end)) = elements::first(rest) {
            (rest, count) = (rest.get(end..).unwrap_or_default(), count + 1);
        }
        count
    }
}

impl<'a> Elements<'a> {
    #[inline(never)]
    fn next_field(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let (name_end, end) = elements::first(self.rest)?;
        let (element, rest) = self.rest.split_at_checked(end)?;
        let kind = Kind::from_byte(*element.first()?)?;
        let value = Value::new_checked(kind, element.get(name_end + 1..)?);
        self.rest = rest;
        Some((element.get(1..name_end)?, value))
    }
}

/// Iterator over the bytes of names, and values, of a checked document.
pub struct DocFields<'a>(Elements<'a>);

impl<'a> Iterator for DocFields<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_field()
    }
}

/// An owned document.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DocBuf {
    bytes: Vec<u8>,
}

impl DocBuf {
    /// Takes ownership of the bytes after checking them deeply.
    ///
    /// Errors: `InvalidBSON`.
    pub fn parse(bytes: Vec<u8>) -> Result<DocBuf> {
        check(&bytes)?;
        Ok(DocBuf { bytes })
    }

    pub(crate) fn new_checked(bytes: Vec<u8>) -> DocBuf {
        debug_assert!(check_doc(&bytes, 0).is_ok());
        DocBuf { bytes }
    }

    /// The document, borrowed.
    pub fn view(&self) -> Doc<'_> {
        Doc { bytes: &self.bytes }
    }

    /// The bytes, by value.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Overwrites the date in the first field, in place; false if that field is not a date.
    pub fn set_first_date(&mut self, ms: i64) -> bool {
        let Some((name, Kind::Date)) = self.view().iter().next().map(|(name, value)| (name, value.kind())) else {
            return false;
        };
        // After the length, the type, the name and its NUL.
        let start = 4 + 1 + name.len() + 1;
        let place = self.bytes.get_mut(start..start + 8);
        place.is_some_and(|place| {
            place.copy_from_slice(&ms.to_le_bytes());
            true
        })
    }
}

impl fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidBSON, message)
}

fn prefix_len(bytes: &[u8]) -> Result<usize> {
    let prefix: [u8; 4] = bytes.get(..4).and_then(|b| b.try_into().ok()).ok_or_else(|| invalid("truncated length"))?;
    usize::try_from(i32::from_le_bytes(prefix)).map_err(|_| invalid("negative length"))
}

/// The number of bytes that the value at the start of `bytes` takes. Looks only at length prefixes and NULs.
pub(crate) fn value_len(kind: Kind, bytes: &[u8]) -> Result<usize> {
    elements::value_len(kind.byte(), bytes).ok_or_else(|| invalid(format!("truncated {}", kind.alias())))
}

fn check_text(bytes: &[u8]) -> Result<()> {
    let (last, text) =
        bytes.get(4..).and_then(<[u8]>::split_last).ok_or_else(|| invalid("string without terminator"))?;
    if *last != 0 || prefix_len(bytes)? != text.len() + 1 {
        return Err(invalid("string length and terminator disagree"));
    }
    std::str::from_utf8(text).map(|_| ()).map_err(|_| invalid("string is not UTF-8"))
}

/// Checks that `bytes` are exactly one value of `kind`.
pub(crate) fn check_value(kind: Kind, bytes: &[u8], depth: usize) -> Result<()> {
    if value_len(kind, bytes)? != bytes.len() {
        return Err(invalid(format!("{} of {} bytes has a wrong length", kind.alias(), bytes.len())));
    }
    match kind {
        Kind::String | Kind::Symbol | Kind::Code => check_text(bytes),
        Kind::DbPointer => check_text(bytes.get(..bytes.len() - 12).unwrap_or_default()),
        Kind::Bool if bytes != [0] && bytes != [1] => Err(invalid("bool is neither 0 nor 1")),
        Kind::Regex => std::str::from_utf8(bytes).map(|_| ()).map_err(|_| invalid("regex is not UTF-8")),
        Kind::Object | Kind::Array => check_doc(bytes, depth + 1),
        Kind::CodeWithScope => {
            let inner = bytes.get(4..).unwrap_or_default();
            let code_len = value_len(Kind::Code, inner)?;
            check_text(inner.get(..code_len).unwrap_or_default())?;
            check_doc(inner.get(code_len..).unwrap_or_default(), depth + 1)
        }
        _ => Ok(()),
    }
}

/// Length of a fixed-width value for which every bit pattern is valid.
#[inline]
fn plain_len(tag: u8) -> Option<usize> {
    const DOUBLE: u8 = Kind::Double as u8;
    const DATE: u8 = Kind::Date as u8;
    const INT64: u8 = Kind::Int64 as u8;
    const TIMESTAMP: u8 = Kind::Timestamp as u8;
    const INT32: u8 = Kind::Int32 as u8;
    const OBJECT_ID: u8 = Kind::ObjectId as u8;
    match tag {
        DOUBLE | DATE | INT64 | TIMESTAMP => Some(8),
        INT32 => Some(4),
        OBJECT_ID => Some(12),
        _ => None,
    }
}

/// Checks a whole document. Nearly all have only usual types, and are checked fast; of others, the walk tells what is wrong.
fn check(bytes: &[u8]) -> Result<()> {
    if documents::are_usual(bytes, DOCUMENT_DEPTH_MAX) { Ok(()) } else { check_doc(bytes, 0) }
}

fn check_doc(bytes: &[u8], depth: usize) -> Result<()> {
    if depth > DOCUMENT_DEPTH_MAX {
        let message = format!("A document may be nested {DOCUMENT_DEPTH_MAX} levels deep at most");
        return Err(Error::new(ErrorCode::Overflow, message));
    }
    if bytes.len() < 5 || prefix_len(bytes)? != bytes.len() || bytes.last() != Some(&0) {
        return Err(invalid("document length and terminator disagree"));
    }
    let mut rest = bytes.get(4..bytes.len() - 1).unwrap_or_default();
    while let Some((tag, tail)) = rest.split_first() {
        let name_len = tail.iter().position(|b| *b == 0).ok_or_else(|| invalid("field name without terminator"))?;
        let (name, tail) = tail.split_at(name_len);
        // Nearly every name is ASCII, and a stored bucket has thousands of names.
        if !name.is_ascii() && std::str::from_utf8(name).is_err() {
            return Err(invalid("field name is not UTF-8"));
        }
        let tail = tail.get(1..).unwrap_or_default();
        if let Some(len) = plain_len(*tag) {
            rest = tail.get(len..).ok_or_else(|| invalid("truncated value"))?;
            continue;
        }
        let kind = Kind::from_byte(*tag).ok_or_else(|| invalid(format!("unknown BSON type {tag:#04x}")))?;
        let len = value_len(kind, tail)?;
        check_value(kind, tail.get(..len).unwrap_or_default(), depth)?;
        rest = tail.get(len..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn fields_are_the_elements_with_the_bytes_of_their_names() {
        let doc = rawdoc! { "a": 1, "é": { "b": "text" }, "": [true] };
        let doc = Doc::parse(doc.as_bytes()).unwrap();
        let named: Vec<_> = doc.iter().map(|(name, value)| (name.as_bytes(), value)).collect();
        assert_eq!((doc.fields().collect::<Vec<_>>(), named.len()), (named, 3));
    }

    fn sample() -> Vec<u8> {
        rawdoc! {
            "double": 1.5, "text": "héllo", "object": { "a": 1, "b": [true, "x"] },
            "id": bson::oid::ObjectId::from_bytes([7; 12]), "date": bson::DateTime::from_millis(-1),
            "bin": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] },
            "re": bson::Regex { pattern: bson::cstr!("a+").into(), options: bson::cstr!("i").into() },
            "dec": bson::Decimal128::from_bytes([1; 16]), "long": 5_i64,
        }
        .into_bytes()
    }

    #[test]
    fn walks_every_field_in_stored_order() {
        let bytes = sample();
        let doc = Doc::parse(&bytes).unwrap();
        let names: Vec<_> = doc.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["double", "text", "object", "id", "date", "bin", "re", "dec", "long"]);
        assert_eq!(doc.get("text").unwrap().as_str(), Some("héllo"));
        assert_eq!(doc.get("object").unwrap().as_doc().unwrap().get("a").unwrap().as_i32(), Some(1));
        assert_eq!(doc.get("re").unwrap().as_regex(), Some(("a+", "i")));
        assert_eq!(doc.get("date").unwrap().as_date_ms(), Some(-1));
        assert_eq!(doc.get("bin").unwrap().as_binary(), Some((0, &[1, 2, 3][..])));
        assert!(doc.get("absent").is_none());
    }

    #[test]
    fn a_truncated_document_is_refused() {
        let bytes = sample();
        for len in 0..bytes.len() {
            assert!(Doc::parse(&bytes[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_still_walks_to_the_end() {
        let same = |bytes: &[u8]| check(bytes).err() == check_doc(bytes, 0).err();
        let usual = rawdoc! {
            "t": "text", "o": { "x": 1.5, "a": [true, null, 7_i64] }, "when": bson::DateTime::from_millis(-1),
            "id": bson::oid::ObjectId::from_bytes([7; 12]), "dec": bson::Decimal128::from_bytes([1; 16]),
            "bin": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] },
        };
        let samples = [sample(), usual.into_bytes()];
        for (bytes, at) in samples.iter().flat_map(|bytes| (0..bytes.len()).map(move |at| (bytes, at))) {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(same(&damaged), "bit {bit} of {at}");
                if let Ok(doc) = Doc::parse(&damaged) {
                    let _ = format!("{doc:?}");
                }
            }
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused() {
        let mut bytes = Doc::EMPTY.as_bytes().to_vec();
        for _ in 0..DOCUMENT_DEPTH_MAX + 1 {
            let mut outer = ((bytes.len() + 8) as i32).to_le_bytes().to_vec();
            outer.extend_from_slice(&[Kind::Object.byte(), b'a', 0]);
            outer.extend_from_slice(&bytes);
            outer.push(0);
            bytes = outer;
        }
        assert_eq!(Doc::parse(&bytes).unwrap_err().code, ErrorCode::Overflow);
    }
}
