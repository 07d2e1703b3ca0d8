//! Builds documents without an intermediate tree.

use kernels::elements;

use super::doc::{Doc, DocBuf};
use super::raw::{Kind, Value};

/// Builds a document field after field; nested documents are written in place.
///
/// Names must not contain a NUL byte: they come from checked documents and blocks, or from this crate.
#[derive(Clone, Default)]
pub struct DocWriter {
    bytes: Vec<u8>,
    /// Where the nested documents begin that are open. The document itself begins at 0.
    open: Vec<usize>,
}

impl DocWriter {
    /// A writer of an empty document.
    pub fn new() -> Self {
        DocWriter::with_capacity(64)
    }

    /// A writer that expects about `size_bytes`.
    pub fn with_capacity(size_bytes: usize) -> Self {
        let mut writer = DocWriter { bytes: Vec::with_capacity(size_bytes), open: Vec::new() };
        writer.reset();
        writer
    }

    fn push_open(&mut self) {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn header(&mut self, kind: Kind, name: &str) {
        debug_assert!(!name.as_bytes().contains(&0));
        self.bytes.push(kind.byte());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
    }

    /// A field with any value.
    pub fn value(&mut self, name: &str, value: Value<'_>) -> &mut Self {
        self.raw(name, value.kind(), value.bytes())
    }

    /// A field from a type and checked value bytes.
    pub(crate) fn raw(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> &mut Self {
        elements::push_named(&mut self.bytes, kind.byte(), name.as_bytes(), bytes);
        self
    }

    /// A field with a double.
    pub fn double(&mut self, name: &str, x: f64) -> &mut Self {
        self.raw(name, Kind::Double, &x.to_le_bytes())
    }

    /// A field with a binary.
    pub fn binary(&mut self, name: &str, subtype: u8, bytes: &[u8]) -> &mut Self {
        self.header(Kind::Binary, name);
        self.bytes.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.push(subtype);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A field with an int32.
    pub fn int32(&mut self, name: &str, n: i32) -> &mut Self {
        self.raw(name, Kind::Int32, &n.to_le_bytes())
    }

    /// A field with an int64.
    pub fn int64(&mut self, name: &str, n: i64) -> &mut Self {
        self.raw(name, Kind::Int64, &n.to_le_bytes())
    }

    /// A field with a date, in milliseconds.
    pub fn date(&mut self, name: &str, ms: i64) -> &mut Self {
        self.raw(name, Kind::Date, &ms.to_le_bytes())
    }

    /// A field with a boolean.
    pub fn bool(&mut self, name: &str, b: bool) -> &mut Self {
        self.raw(name, Kind::Bool, &[u8::from(b)])
    }

    /// A field with an ObjectId.
    pub fn object_id(&mut self, name: &str, id: &[u8; 12]) -> &mut Self {
        self.raw(name, Kind::ObjectId, id)
    }

    /// A field with a string.
    pub fn string(&mut self, name: &str, text: &str) -> &mut Self {
        self.header(Kind::String, name);
        elements::push_text(&mut self.bytes, text.as_bytes());
        self
    }

    /// A field with a document.
    pub fn doc(&mut self, name: &str, doc: Doc<'_>) -> &mut Self {
        self.raw(name, Kind::Object, doc.as_bytes())
    }

    /// Opens a nested document; `end` closes it.
    pub fn begin_doc(&mut self, name: &str) -> &mut Self {
        self.header(Kind::Object, name);
        self.push_open();
        self
    }

    /// Opens a nested array, whose elements the caller names "0", "1", …; `end` closes it.
    pub fn begin_array(&mut self, name: &str) -> &mut Self {
        self.header(Kind::Array, name);
        self.push_open();
        self
    }

    /// Closes the innermost nested document or array.
    pub fn end(&mut self) -> &mut Self {
        debug_assert!(!self.open.is_empty(), "end without begin");
        self.close();
        self
    }

    fn close(&mut self) {
        self.bytes.push(0);
        let start = self.open.pop().unwrap_or_default();
        let len = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        if let Some(prefix) = self.bytes.get_mut(start..start + 4) {
            prefix.copy_from_slice(&len.to_le_bytes());
        }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True before the first field.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= 4
    }

    /// The raw buffer, for writers of many small elements. Append whole elements only.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Drops what was written, to write another document into the same memory.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.open.clear();
        self.bytes.extend_from_slice(&[0; 4]);
    }

    /// Closes the document and shows it. Only `reset` may follow.
    pub fn finished(&mut self) -> Doc<'_> {
        debug_assert!(self.open.is_empty(), "nested document left open");
        self.close();
        Doc::new_checked(&self.bytes)
    }

    /// Closes the document.
    pub fn finish(mut self) -> DocBuf {
        while !self.open.is_empty() {
            debug_assert!(false, "nested document left open");
            self.close();
        }
        self.close();
        DocBuf::new_checked(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_documents_parse_and_equal_those_of_the_bson_crate() {
        let mut w = DocWriter::new();
        w.double("x", 1.5).string("s", "é").begin_doc("o").int32("i", 1).begin_array("a").bool("0", true).end().end();
        w.int64("l", -7).date("d", 9);
        let ours = w.finish();
        let theirs = bson::rawdoc! {
            "x": 1.5, "s": "é", "o": { "i": 1, "a": [true] }, "l": -7_i64, "d": bson::DateTime::from_millis(9)
        };
        assert_eq!(ours.view().as_bytes(), theirs.as_bytes());
        assert!(DocBuf::parse(ours.into_bytes()).is_ok());
        let mut again = DocWriter::new();
        again.string("before", "text").finished();
        again.reset();
        assert_eq!(again.int64("l", -7).finished().as_bytes(), bson::rawdoc! { "l": -7_i64 }.as_bytes());
    }
}
