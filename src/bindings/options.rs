//! What `open` may ask for.

use serde::Deserialize;
use wasm_bindgen::JsValue;

use crate::bucket::BucketFormat;
use crate::command::parse_context;
use crate::engine::keyspace::ContextId;
use crate::error::{Error, Result};
use crate::storage::idb::Durability;
use crate::value::Shown;

/// Where the database lies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// Gone with the process.
    Memory,
    /// The browser's IndexedDB.
    Indexeddb,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    storage: StorageKind,
    durability: Option<String>,
    context: String,
    bucket_version: Option<f64>,
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
    /// Errors: `InvalidOptions`.
    pub fn read(options: JsValue) -> Result<OpenOptions> {
        let raw: Raw = serde_wasm_bindgen::from_value(options)
            .map_err(|e| Error::invalid_options(format!("The options of open are not understood: {e}")))?;
        let durability = match raw.durability.as_deref() {
            None | Some("relaxed") => Durability::Relaxed,
            Some("strict") => Durability::Strict,
            Some(other) => {
                return Err(Error::invalid_options(format!("durability must be 'relaxed' or 'strict', not '{other}'")));
            }
        };
        let bucket_format = match raw.bucket_version {
            None | Some(2.0) => BucketFormat::Compressed,
            Some(1.0) => BucketFormat::Uncompressed,
            Some(other) => {
                return Err(Error::invalid_options(format!("bucketVersion must be 1 or 2, not {}", Shown(other))));
            }
        };
        let context =
            parse_context(&raw.context).ok_or_else(|| Error::invalid_options("context must be sixteen hex digits"))?;
        Ok(OpenOptions { storage: raw.storage, durability, bucket_format, context })
    }
}
