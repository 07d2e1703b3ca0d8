//! What `open` may ask for.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use crate::bucket::BucketFormat;
use crate::command::parse_context;
use crate::engine::keyspace::ContextId;
use crate::error::{Error, Result};
use crate::storage::idb::Durability;
use crate::value::Shown;

/// Where the database lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// Gone with the process.
    Memory,
    /// The browser's IndexedDB.
    Indexeddb,
}

/// The options of `open_engine`, checked.
pub struct OpenOptions {
    /// Where the database lies.
    pub storage: StorageKind,
    /// What a commit waits for.
    pub durability: Durability,
    /// What buckets are written as.
    pub bucket_format: BucketFormat,
    /// This context's identity, drawn at random.
    pub context: ContextId,
}

impl OpenOptions {
    /// Reads `{ storage: "memory" | "indexeddb", durability?: "relaxed" | "strict", bucketVersion?: 1 | 2,
    /// context: sixteen hex digits }`.
    ///
    /// By hand: four fields are not worth the formatters of a deserialiser, a twentieth of the module.
    /// Errors: `InvalidOptions`.
    pub fn read(options: &JsValue) -> Result<OpenOptions> {
        let storage = match text(options, "storage")?.as_deref() {
            Some("memory") => StorageKind::Memory,
            Some("indexeddb") => StorageKind::Indexeddb,
            _ => return Err(refused("storage must be 'memory' or 'indexeddb'")),
        };
        let durability = match text(options, "durability")?.as_deref() {
            None | Some("relaxed") => Durability::Relaxed,
            Some("strict") => Durability::Strict,
            Some(other) => return Err(refused(format!("durability must be 'relaxed' or 'strict', not '{other}'"))),
        };
        let bucket_format = match field(options, "bucketVersion")?.map(|version| version.as_f64()) {
            None | Some(Some(2.0)) => BucketFormat::Compressed,
            Some(Some(1.0)) => BucketFormat::Uncompressed,
            Some(Some(other)) => return Err(refused(format!("bucketVersion must be 1 or 2, not {}", Shown(other)))),
            Some(None) => return Err(refused("bucketVersion must be 1 or 2")),
        };
        let context = text(options, "context")?;
        let context = context.as_deref().and_then(parse_context);
        let context = context.ok_or_else(|| refused("context must be sixteen hex digits"))?;
        Ok(OpenOptions { storage, durability, bucket_format, context })
    }
}

/// A field of `options`; `None` where it is missing, undefined or null.
fn field(options: &JsValue, name: &str) -> Result<Option<JsValue>> {
    // Throws where `options` is no object, or by a getter of the caller.
    let value = Reflect::get(options, &name.into()).map_err(|_| refused("The options of open must be an object"))?;
    Ok((!value.is_undefined() && !value.is_null()).then_some(value))
}

fn text(options: &JsValue, name: &str) -> Result<Option<String>> {
    let value = field(options, name)?;
    value.map(|value| value.as_string().ok_or_else(|| refused(format!("{name} must be a string")))).transpose()
}

fn refused(message: impl Into<String>) -> Error {
    Error::invalid_options(message)
}
