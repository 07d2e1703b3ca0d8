//! The options of `open`.

use crate::bucket::BucketFormat;
use crate::catalog::CatalogOptions;
use crate::command::parse_context;
use crate::engine::keyspace::ContextId;
use crate::error::{Error, Result};
use crate::storage::idb::Durability;
use crate::value::{Doc, Value};

/// Where the database is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// In memory; gone with the process.
    Memory,
    /// The browser's IndexedDB.
    Indexeddb,
    /// In a storage object of the host.
    Host,
}

/// The options of `open_engine`, checked.
pub struct OpenOptions {
    /// Where the database is stored.
    pub storage: StorageKind,
    /// What a commit waits for.
    pub durability: Durability,
    /// The format in which buckets are written.
    pub bucket_format: BucketFormat,
    /// How buckets are chosen.
    pub catalog_options: CatalogOptions,
    /// True if filters that compare the time field with a value other than a date are refused.
    pub is_strict: bool,
    /// True if only the command `expire` runs retention.
    pub expires_by_command: bool,
    /// This context's random identity.
    pub context: ContextId,
}

impl OpenOptions {
    /// Reads `{ storage: "memory" | "indexeddb" | "host", durability?: "relaxed" | "strict", bucketVersion?: 1 | 2,
    /// parameters?: { <name>: number }, strict?: bool,
    /// retention?: "automatic" | "manual", context: sixteen hex digits }`, given as a BSON document.
    ///
    /// Errors: `InvalidOptions`; those of `CatalogOptions::with_parameters`.
    pub fn read(options: &[u8]) -> Result<OpenOptions> {
        let options = Doc::parse(options)?;
        let text = |name| options.get(name).map(|value| value.as_str().unwrap_or_default());
        let storage = match text("storage") {
            Some("memory") => StorageKind::Memory,
            Some("indexeddb") => StorageKind::Indexeddb,
            Some("host") => StorageKind::Host,
            _ => return Err(refused("storage", "'memory', 'indexeddb' or 'host'", options)),
        };
        let durability = match text("durability") {
            None | Some("relaxed") => Durability::Relaxed,
            Some("strict") => Durability::Strict,
            _ => return Err(refused("durability", "'relaxed' or 'strict'", options)),
        };
        let bucket_format = match options.get("bucketVersion").map(Value::as_integer) {
            None | Some(Some(2)) => BucketFormat::Compressed,
            Some(Some(1)) => BucketFormat::Uncompressed,
            _ => return Err(refused("bucketVersion", "1 or 2", options)),
        };
        let catalog_options = match options.get("parameters").map(|value| value.as_doc()) {
            None => CatalogOptions::default(),
            Some(Some(parameters)) => CatalogOptions::default().with_parameters(parameters)?,
            _ => return Err(refused("parameters", "an object", options)),
        };
        let is_strict = options.get("strict").and_then(Value::as_truthy).unwrap_or(false);
        let expires_by_command = match text("retention") {
            None | Some("automatic") => false,
            Some("manual") => true,
            _ => return Err(refused("retention", "'automatic' or 'manual'", options)),
        };
        let context = text("context").and_then(parse_context);
        let context = context.ok_or_else(|| refused("context", "sixteen hex digits", options))?;
        Ok(OpenOptions { storage, durability, bucket_format, catalog_options, is_strict, expires_by_command, context })
    }
}

fn refused(name: &str, wanted: &str, options: Doc<'_>) -> Error {
    Error::invalid_options(format!("{name} must be {wanted}, not {:?}", options.get(name).unwrap_or(Value::NULL)))
}
