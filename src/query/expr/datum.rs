//! The value of an expression.

use std::iter;

use kernels::elements::{self, Head};

use crate::value::{DocWriter, Kind, OwnedValue, Value};

/// The value of an expression: part of the document, or something new. Numbers and dates need no allocation.
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    /// Missing, which differs from null.
    Missing,
    /// Part of a document, a variable or the expression itself.
    Stored(Value<'a>),
    /// A new value of at most eight bytes, in the width of its type.
    Fixed(Kind, [u8; 8]),
    /// Any other new value: its bytes.
    Built(Kind, Vec<u8>),
    /// A value that others hold as well.
    Shared(OwnedValue),
}

impl<'a> Datum<'a> {
    /// Null.
    pub const NULL: Datum<'static> = Datum::Stored(Value::NULL);

    /// An int32.
    pub fn int32(n: i32) -> Datum<'static> {
        Datum::fixed(Kind::Int32, &n.to_le_bytes())
    }

    /// An int64.
    pub fn int64(n: i64) -> Datum<'static> {
        Datum::Fixed(Kind::Int64, n.to_le_bytes())
    }

    /// A double.
    pub fn double(x: f64) -> Datum<'static> {
        Datum::Fixed(Kind::Double, x.to_le_bytes())
    }

    /// A date, in milliseconds since the epoch.
    pub fn date(ms: i64) -> Datum<'static> {
        Datum::Fixed(Kind::Date, ms.to_le_bytes())
    }

    /// A boolean.
    pub fn bool(b: bool) -> Datum<'static> {
        Datum::fixed(Kind::Bool, &[u8::from(b)])
    }

    /// A string.
    pub fn string(text: &str) -> Datum<'static> {
        Datum::joined(iter::once(text.as_bytes()))
    }

    /// A string of these parts, all in UTF-8.
    pub fn joined<'p>(parts: impl Iterator<Item = &'p [u8]> + Clone) -> Datum<'static> {
        let len: usize = parts.clone().map(<[u8]>::len).sum();
        let mut bytes = Vec::with_capacity(len + 5);
        bytes.extend_from_slice(&u32::try_from(len + 1).unwrap_or(u32::MAX).to_le_bytes());
        parts.for_each(|part| bytes.extend_from_slice(part));
        bytes.push(0);
        Datum::Built(Kind::String, bytes)
    }

    /// A count with the server's type: an int32 if it fits.
    pub fn count(n: usize) -> Datum<'static> {
        match i32::try_from(n) {
            Ok(n) => Datum::int32(n),
            Err(_) => Datum::int64(i64::try_from(n).unwrap_or(i64::MAX)),
        }
    }

    fn fixed(kind: Kind, bytes: &[u8]) -> Datum<'static> {
        let mut all = [0; 8];
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Datum::Fixed(kind, all)
    }

    /// A copy of a value or of a missing one, which borrows nothing.
    pub fn copied(value: Option<Value<'_>>) -> Datum<'static> {
        match value {
            None => Datum::Missing,
            Some(value) => match width(value.kind()) {
                Some(_) => Datum::fixed(value.kind(), value.bytes()),
                None => Datum::Built(value.kind(), value.bytes().to_vec()),
            },
        }
    }

    /// The same value, borrowing nothing.
    pub fn into_static(self) -> Datum<'static> {
        match self {
            Datum::Missing => Datum::Missing,
            Datum::Stored(value) => Datum::copied(Some(value)),
            Datum::Fixed(kind, bytes) => Datum::Fixed(kind, bytes),
            Datum::Built(kind, bytes) => Datum::Built(kind, bytes),
            Datum::Shared(value) => Datum::Shared(value),
        }
    }

    /// The value; `None` if it is missing.
    pub fn view(&self) -> Option<Value<'_>> {
        match self {
            Datum::Missing => None,
            Datum::Stored(value) => Some(*value),
            Datum::Fixed(kind, bytes) => {
                let len = width(*kind).unwrap_or(bytes.len());
                Some(Value::new_checked(*kind, bytes.get(..len).unwrap_or_default()))
            }
            Datum::Built(kind, bytes) => Some(Value::new_checked(*kind, bytes)),
            Datum::Shared(value) => Some(value.view()),
        }
    }
}

impl<'a> From<Option<Value<'a>>> for Datum<'a> {
    fn from(value: Option<Value<'a>>) -> Datum<'a> {
        value.map_or(Datum::Missing, Datum::Stored)
    }
}

/// The bytes of a value stored in a datum itself.
fn width(kind: Kind) -> Option<usize> {
    Some(match kind {
        Kind::Double | Kind::Int64 | Kind::Date | Kind::Timestamp => 8,
        Kind::Int32 => 4,
        Kind::Bool => 1,
        Kind::Null | Kind::Undefined | Kind::MinKey | Kind::MaxKey => 0,
        _ => return None,
    })
}

/// Builds an array.
#[derive(Clone)]
pub struct ArrayWriter {
    writer: DocWriter,
    head: Head,
}

impl ArrayWriter {
    /// An empty array.
    pub fn new() -> ArrayWriter {
        ArrayWriter { writer: DocWriter::new(), head: Head::default() }
    }

    /// Appends an element; a missing one becomes null.
    pub fn push(&mut self, value: Option<Value<'_>>) {
        let value = value.unwrap_or(Value::NULL);
        elements::push(self.writer.buffer(), &mut self.head, value.kind().byte(), value.bytes());
    }

    /// Appends elements of one type, whose values are `len` bytes each.
    pub fn extend(&mut self, kind: Kind, values: &[u8], len: usize) {
        elements::push_all(self.writer.buffer(), &mut self.head, kind.byte(), values, len);
    }

    /// The array.
    pub fn finish(self) -> Datum<'static> {
        container(Kind::Array, self.writer)
    }
}

/// The contents of `writer` as an object or an array.
pub fn container(kind: Kind, writer: DocWriter) -> Datum<'static> {
    Datum::Built(kind, writer.finish().into_bytes())
}

/// True for null, undefined and missing values, for which most operators return null.
pub fn is_nullish(value: Option<Value<'_>>) -> bool {
    value.is_none_or(|value| matches!(value.kind(), Kind::Null | Kind::Undefined))
}

/// The name of a value's type, for messages.
pub fn type_name(value: Option<Value<'_>>) -> &'static str {
    value.map_or("missing", |value| value.kind().alias())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_numbered_in_decimal_digits() {
        let mut array = ArrayWriter::new();
        let mut expected = bson::RawArrayBuf::new();
        for n in 0..1102 {
            array.push(Some(OwnedValue::int32(n)).as_ref().map(OwnedValue::view));
            expected.push(n);
        }
        let more: Vec<u8> = (0..20_i64).flat_map(i64::to_le_bytes).collect();
        array.extend(Kind::Int64, &more, 8);
        (0..20_i64).for_each(|n| expected.push(n));
        array.push(None);
        expected.push(bson::RawBson::Null);
        assert_eq!(array.finish().view().map(Value::bytes), Some(expected.as_bytes()));
    }
}
