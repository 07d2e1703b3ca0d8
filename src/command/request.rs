//! Reading the fields of a command document.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::WRITE_BATCH_COUNT_MAX;
use crate::value::{Doc, Value};

/// Arguments that every command accepts and ignores.
const GENERIC: &[&str] = &[
    "$db",
    "$clusterTime",
    "$readPreference",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "bypassDocumentValidation",
    // Compared where every command comes in.
    "collectionUUID",
    "comment",
    "lsid",
    "maxTimeMS",
    // What `killOp` names.
    "opKey",
    "readConcern",
    "txnNumber",
    "writeConcern",
];

/// A command document. Its first field names the command and usually has the collection as its value.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    doc: Doc<'a>,
    name: &'a str,
    target: Value<'a>,
}

impl<'a> Request<'a> {
    /// Reads the name of the command.
    ///
    /// Errors: `FailedToParse` for an empty document.
    pub fn new(doc: Doc<'a>) -> Result<Request<'a>> {
        let first = doc.iter().next();
        let (name, target) =
            first.ok_or_else(|| Error::new(ErrorCode::FailedToParse, "The command document is empty"))?;
        Ok(Request { doc, name, target })
    }

    /// The command.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The whole document.
    pub fn doc(&self) -> Doc<'a> {
        self.doc
    }

    /// The collection that the command is for.
    ///
    /// Errors: `InvalidNamespace` if it is not a non-empty string.
    pub fn collection(&self) -> Result<&'a str> {
        self.target.as_str().filter(|name| !name.is_empty()).ok_or_else(|| {
            let message = format!("'{}' needs a collection name, not {:?}", self.name, self.target);
            Error::new(ErrorCode::InvalidNamespace, message)
        })
    }

    /// The value of the command's first field.
    pub fn target(&self) -> Value<'a> {
        self.target
    }

    /// The number after the command's name (`getMore`).
    pub fn target_integer(&self) -> Option<i64> {
        self.target.as_integer()
    }

    /// Refuses fields that the command does not know.
    ///
    /// Errors: those of `Error::unknown_field`.
    pub fn allow_fields(&self, known: &[&str]) -> Result<()> {
        for (name, _) in self.doc.iter().skip(1) {
            if !known.contains(&name) && !GENERIC.contains(&name) {
                return Err(Error::unknown_field(self.name, name));
            }
        }
        Ok(())
    }

    /// A field; null counts as absent.
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        self.doc.get(name).filter(|v| *v != Value::NULL)
    }

    /// A boolean (or number) field.
    ///
    /// Errors: `TypeMismatch`.
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        let read = |v: Value<'_>| v.as_truthy().ok_or_else(|| wrong_type(self.name, name, "a bool", v));
        self.field(name).map(read).transpose()
    }

    /// A string field.
    ///
    /// Errors: `TypeMismatch`.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        let read = |v: Value<'a>| v.as_str().ok_or_else(|| wrong_type(self.name, name, "a string", v));
        self.field(name).map(read).transpose()
    }

    /// An integer field, of any numeric type.
    ///
    /// Errors: `TypeMismatch`.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        let read = |v: Value<'_>| v.as_integer().ok_or_else(|| wrong_type(self.name, name, "an integer", v));
        self.field(name).map(read).transpose()
    }

    /// The elements of an array field.
    ///
    /// Errors: `TypeMismatch`.
    pub fn array(&self, name: &str) -> Result<Option<impl Iterator<Item = Value<'a>> + use<'a>>> {
        let read = |v: Value<'a>| v.as_array().ok_or_else(|| wrong_type(self.name, name, "an array", v));
        Ok(self.field(name).map(read).transpose()?.map(|array| array.iter().map(|(_, value)| value)))
    }
}

/// Refuses a write without statements or documents, or with too many.
///
/// Errors: `InvalidLength`.
pub fn check_batch(count: usize) -> Result<()> {
    if (1..=WRITE_BATCH_COUNT_MAX).contains(&count) {
        return Ok(());
    }
    let message = format!("Write batch sizes must be between 1 and {WRITE_BATCH_COUNT_MAX}, not {count}");
    Err(Error::new(ErrorCode::InvalidLength, message))
}

/// A field of a command that is missing.
pub fn missing_field(command: &str, name: &str) -> Error {
    Error::new(ErrorCode::IDLFailedToParse, format!("BSON field '{command}.{name}' is missing but a required field"))
}

/// A field of the wrong type.
pub fn wrong_type(command: &str, name: &str, wanted: &str, found: Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{command}.{name}' must be {wanted}, not {} {found:?}",
        found.kind().alias()
    ))
}
