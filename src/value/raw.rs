//! One BSON value: a type byte and the value's bytes.

use std::fmt;
use std::rc::Rc;

use kernels::elements;

use super::display_double::DisplayDouble;
use super::doc::{Doc, Elements, check_value};
use super::number::Number;
use crate::error::{Error, Result};

/// The BSON types, by their type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Double = 0x01,
    String = 0x02,
    Object = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    Date = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Code = 0x0D,
    Symbol = 0x0E,
    CodeWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl Kind {
    /// The type of a type byte.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0x01 => Kind::Double,
            0x02 => Kind::String,
            0x03 => Kind::Object,
            0x04 => Kind::Array,
            0x05 => Kind::Binary,
            0x06 => Kind::Undefined,
            0x07 => Kind::ObjectId,
            0x08 => Kind::Bool,
            0x09 => Kind::Date,
            0x0A => Kind::Null,
            0x0B => Kind::Regex,
            0x0C => Kind::DbPointer,
            0x0D => Kind::Code,
            0x0E => Kind::Symbol,
            0x0F => Kind::CodeWithScope,
            0x10 => Kind::Int32,
            0x11 => Kind::Timestamp,
            0x12 => Kind::Int64,
            0x13 => Kind::Decimal128,
            0x7F => Kind::MaxKey,
            0xFF => Kind::MinKey,
            _ => return None,
        })
    }

    /// The type byte.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// The alias that `$type` and error messages use.
    pub fn alias(self) -> &'static str {
        match self {
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::Binary => "binData",
            Kind::Undefined => "undefined",
            Kind::ObjectId => "objectId",
            Kind::Bool => "bool",
            Kind::Date => "date",
            Kind::Null => "null",
            Kind::Regex => "regex",
            Kind::DbPointer => "dbPointer",
            Kind::Code => "javascript",
            Kind::Symbol => "symbol",
            Kind::CodeWithScope => "javascriptWithScope",
            Kind::Int32 => "int",
            Kind::Timestamp => "timestamp",
            Kind::Int64 => "long",
            Kind::Decimal128 => "decimal",
            Kind::MaxKey => "maxKey",
            Kind::MinKey => "minKey",
        }
    }

    /// The number that `$type` uses for it: the type byte as a signed number.
    pub fn code(self) -> i64 {
        i64::from(self.byte().cast_signed())
    }

    /// True for int32, int64, double and decimal.
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128)
    }
}

/// 2^63, the first double above the 64-bit integers.
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A borrowed BSON value whose bytes have been checked.
///
/// `==` compares type and bytes: int32 1, int64 1 and double 1.0 differ, and so do 0.0 and -0.0. For BSON's own order
/// and equality see `value::order`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value<'a> {
    kind: Kind,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// BSON null.
    pub const NULL: Value<'static> = Value { kind: Kind::Null, bytes: &[] };
    /// BSON undefined: the sort key of an empty array.
    pub const UNDEFINED: Value<'static> = Value { kind: Kind::Undefined, bytes: &[] };
    /// Sorts below every other value.
    pub const MIN_KEY: Value<'static> = Value { kind: Kind::MinKey, bytes: &[] };
    /// Sorts above every other value.
    pub const MAX_KEY: Value<'static> = Value { kind: Kind::MaxKey, bytes: &[] };

    /// A value whose bytes are known to be well formed because they lie in a checked document or column.
    pub(crate) fn new_checked(kind: Kind, bytes: &'a [u8]) -> Value<'a> {
        debug_assert!(check_value(kind, bytes, 0).is_ok());
        Value { kind, bytes }
    }

    /// A value of `kind` from unchecked bytes; checks them deeply.
    ///
    /// Errors: `InvalidBSON`.
    pub fn parse(kind: Kind, bytes: &'a [u8]) -> Result<Value<'a>> {
        check_value(kind, bytes, 0)?;
        Ok(Value { kind, bytes })
    }

    /// A value from a type byte followed by value bytes; checks them deeply.
    ///
    /// Errors: `InvalidBSON`.
    pub fn parse_tagged(tagged: &'a [u8]) -> Result<Value<'a>> {
        let (kind, bytes) = split_tag(tagged)?;
        Value::parse(kind, bytes)
    }

    /// A value from a type byte and value bytes that were checked before.
    pub(crate) fn tagged_checked(tagged: &'a [u8]) -> Value<'a> {
        match split_tag(tagged) {
            Ok((kind, bytes)) => Value::new_checked(kind, bytes),
            Err(_) => Value::NULL,
        }
    }

    /// The BSON type.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// The value bytes, without the type byte and the name.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// An owned copy.
    pub fn to_owned(self) -> OwnedValue {
        // The length is known, so this allocates once.
        OwnedValue { tagged: std::iter::once(self.kind.byte()).chain(self.bytes.iter().copied()).collect() }
    }

    /// The double, if it is one.
    pub fn as_f64(self) -> Option<f64> {
        (self.kind == Kind::Double).then(|| f64::from_le_bytes(fixed(self.bytes)))
    }

    /// The int32, if it is one.
    pub fn as_i32(self) -> Option<i32> {
        (self.kind == Kind::Int32).then(|| i32::from_le_bytes(fixed(self.bytes)))
    }

    /// The int64, if it is one.
    pub fn as_i64(self) -> Option<i64> {
        (self.kind == Kind::Int64).then(|| i64::from_le_bytes(fixed(self.bytes)))
    }

    /// Milliseconds since the epoch, if it is a date.
    pub fn as_date_ms(self) -> Option<i64> {
        (self.kind == Kind::Date).then(|| i64::from_le_bytes(fixed(self.bytes)))
    }

    /// The increment (low half) and seconds (high half) of a timestamp.
    pub fn as_timestamp(self) -> Option<u64> {
        (self.kind == Kind::Timestamp).then(|| u64::from_le_bytes(fixed(self.bytes)))
    }

    /// The boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind == Kind::Bool).then(|| self.bytes.first() == Some(&1))
    }

    /// The twelve bytes of an ObjectId.
    pub fn as_object_id(self) -> Option<[u8; 12]> {
        (self.kind == Kind::ObjectId).then(|| fixed(self.bytes))
    }

    /// The sixteen little-endian bytes of a decimal.
    pub fn as_decimal128(self) -> Option<[u8; 16]> {
        (self.kind == Kind::Decimal128).then(|| fixed(self.bytes))
    }

    /// The text of a string.
    pub fn as_str(self) -> Option<&'a str> {
        (self.kind == Kind::String).then(|| self.text())
    }

    /// Appends type byte and value bytes.
    pub fn append_tagged(self, out: &mut Vec<u8>) {
        elements::push_tagged(out, self.kind.byte(), self.bytes);
    }

    /// The text of a string, symbol or code.
    pub fn as_text(self) -> Option<&'a str> {
        matches!(self.kind, Kind::String | Kind::Symbol | Kind::Code).then(|| self.text())
    }

    fn text(self) -> &'a str {
        std::str::from_utf8(self.text_bytes()).unwrap_or_default()
    }

    /// The UTF-8 bytes of a string, symbol or code. Values of other types have other bytes there.
    pub fn text_bytes(self) -> &'a [u8] {
        self.bytes.get(4..self.bytes.len().saturating_sub(1)).unwrap_or_default()
    }

    /// The document, if it is an object.
    pub fn as_doc(self) -> Option<Doc<'a>> {
        (self.kind == Kind::Object).then(|| Doc::new_checked(self.bytes))
    }

    /// The elements of an array, as a document whose names are positions.
    pub fn as_array(self) -> Option<Doc<'a>> {
        (self.kind == Kind::Array).then(|| Doc::new_checked(self.bytes))
    }

    /// The elements of an array, with their positions as names. Values of other types have none.
    pub fn elements(self) -> Elements<'a> {
        self.as_array().unwrap_or(Doc::EMPTY).iter()
    }

    /// The document of an object or of an array.
    pub fn as_container(self) -> Option<Doc<'a>> {
        matches!(self.kind, Kind::Object | Kind::Array).then(|| Doc::new_checked(self.bytes))
    }

    /// Subtype and bytes of binary data. The old subtype 2 keeps its inner length prefix.
    pub fn as_binary(self) -> Option<(u8, &'a [u8])> {
        if self.kind != Kind::Binary {
            return None;
        }
        Some((self.bytes.get(4).copied().unwrap_or_default(), self.bytes.get(5..).unwrap_or_default()))
    }

    /// Pattern and options of a regular expression.
    pub fn as_regex(self) -> Option<(&'a str, &'a str)> {
        if self.kind != Kind::Regex {
            return None;
        }
        let mut parts = self.bytes.split(|b| *b == 0).map(|part| std::str::from_utf8(part).unwrap_or_default());
        Some((parts.next().unwrap_or_default(), parts.next().unwrap_or_default()))
    }

    /// The integer, if a numeric value is exactly one: int32, int64, or a double without a fraction.
    pub fn as_integer(self) -> Option<i64> {
        match self.kind {
            Kind::Int32 => self.as_i32().map(i64::from),
            Kind::Int64 => self.as_i64(),
            Kind::Double => {
                let x = self.as_f64()?;
                // In this range and without a fraction, the cast is exact.
                (x.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&x)).then_some(x as i64)
            }
            _ => None,
        }
    }

    /// Truth in expressions: everything but false, null, undefined and zeros.
    pub fn is_true(self) -> bool {
        match self.kind {
            Kind::Bool => self.as_bool() == Some(true),
            Kind::Null | Kind::Undefined => false,
            _ => Number::of(self).is_none_or(|n| n.compare(Number::Integer(0)).is_ne()),
        }
    }

    /// Truth in commands: a boolean, or a number other than zero.
    pub fn as_truthy(self) -> Option<bool> {
        match self.kind {
            Kind::Bool => self.as_bool(),
            Kind::Int32 | Kind::Int64 => self.as_integer().map(|n| n != 0),
            Kind::Double => self.as_f64().map(|x| x != 0.0),
            _ => None,
        }
    }
}

impl fmt::Debug for Value<'_> {
    /// Similar to the shell's notation; also used in error messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Double => fmt::Display::fmt(&DisplayDouble(self.as_f64().unwrap_or_default()), f),
            Kind::Int32 | Kind::Int64 => write!(f, "{}", self.as_integer().unwrap_or_default()),
            Kind::String | Kind::Symbol | Kind::Code => write!(f, "\"{}\"", self.text()),
            Kind::Object => self.as_container().map_or(Ok(()), |doc| write!(f, "{doc:?}")),
            Kind::Array => {
                f.write_str("[")?;
                for (i, (_, element)) in self.elements().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    element.fmt(f)?;
                }
                f.write_str("]")
            }
            Kind::Bool => write!(f, "{}", self.as_bool().unwrap_or_default()),
            Kind::Date => write!(f, "Date({})", self.as_date_ms().unwrap_or_default()),
            Kind::Null => f.write_str("null"),
            Kind::ObjectId => {
                f.write_str("ObjectId(")?;
                self.bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
                f.write_str(")")
            }
            Kind::Regex => self.as_regex().map_or(Ok(()), |(pattern, options)| write!(f, "/{pattern}/{options}")),
            kind => write!(f, "{}({} bytes)", kind.alias(), self.bytes.len()),
        }
    }
}

/// An owned value: its type byte followed by its value bytes. Clones share them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnedValue {
    tagged: Rc<[u8]>,
}

impl OwnedValue {
    fn build(kind: Kind, bytes: &[u8]) -> OwnedValue {
        Value { kind, bytes }.to_owned()
    }
    /// Takes ownership of a type byte and value bytes that this crate has built.
    pub(crate) fn from_tagged_checked(tagged: Vec<u8>) -> OwnedValue {
        debug_assert!(Value::parse_tagged(&tagged).is_ok());
        OwnedValue { tagged: tagged.into() }
    }
    /// BSON null.
    pub fn null() -> OwnedValue {
        OwnedValue::build(Kind::Null, &[])
    }
    /// A double.
    pub fn double(x: f64) -> OwnedValue {
        OwnedValue::build(Kind::Double, &x.to_le_bytes())
    }
    /// An int32.
    pub fn int32(n: i32) -> OwnedValue {
        OwnedValue::build(Kind::Int32, &n.to_le_bytes())
    }
    /// An int64.
    pub fn int64(n: i64) -> OwnedValue {
        OwnedValue::build(Kind::Int64, &n.to_le_bytes())
    }
    /// A date, in milliseconds since the epoch.
    pub fn date(ms: i64) -> OwnedValue {
        OwnedValue::build(Kind::Date, &ms.to_le_bytes())
    }
    /// A boolean.
    pub fn bool(b: bool) -> OwnedValue {
        OwnedValue::build(Kind::Bool, &[u8::from(b)])
    }
    /// An ObjectId.
    pub fn object_id(id: [u8; 12]) -> OwnedValue {
        OwnedValue::build(Kind::ObjectId, &id)
    }
    /// A string.
    pub fn string(text: &str) -> OwnedValue {
        let mut tagged = Vec::with_capacity(text.len() + 6);
        tagged.push(Kind::String.byte());
        elements::push_text(&mut tagged, text.as_bytes());
        OwnedValue::from_tagged_checked(tagged)
    }
    /// An object.
    pub fn doc(doc: Doc<'_>) -> OwnedValue {
        OwnedValue::build(Kind::Object, doc.as_bytes())
    }
    /// The value, borrowed.
    pub fn view(&self) -> Value<'_> {
        Value::tagged_checked(&self.tagged)
    }
    /// Type byte and value bytes.
    pub fn tagged(&self) -> &[u8] {
        &self.tagged
    }
}

impl fmt::Debug for OwnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// The first `N` bytes, padded with zeros. A checked value is never shorter.
pub(crate) fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.get(..N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

fn split_tag(tagged: &[u8]) -> Result<(Kind, &[u8])> {
    let (tag, bytes) =
        tagged.split_first().ok_or_else(|| Error::new(crate::error::ErrorCode::InvalidBSON, "empty value"))?;
    let kind = Kind::from_byte(*tag)
        .ok_or_else(|| Error::new(crate::error::ErrorCode::InvalidBSON, format!("unknown BSON type {tag:#04x}")))?;
    Ok((kind, bytes))
}
