//! The bounds of scans, as `explain` shows them.

// Loaded later.

use crate::bucket::BucketId;
use crate::index::KeyPart;
use crate::listed::IntoList;
use crate::value::DocWriter;

/// Writes the range of ids.
pub(super) fn write_records((low, high): (&BucketId, &BucketId), direction: &str, writer: &mut DocWriter) {
    if *low != BucketId::MIN {
        writer.object_id("minRecord", low.as_bytes());
    }
    if *high != BucketId::MAX {
        writer.object_id("maxRecord", high.as_bytes());
    }
    writer.string("direction", direction);
}

/// Writes which paths of an index lead to arrays.
pub(super) fn write_multikey(parts: &[KeyPart], multikey: &[Vec<usize>], writer: &mut DocWriter) {
    writer.bool("isMultiKey", !multikey.iter().all(Vec::is_empty)).begin_doc("multiKeyPaths");
    for (part, depths) in parts.iter().zip(multikey) {
        writer.begin_array(&part.name);
        for (place, depth) in depths.iter().enumerate() {
            let names: Vec<&str> = part.name.split('.').take(depth + 1).listed();
            writer.string(&place.to_string(), &names.join("."));
        }
        writer.end();
    }
    writer.end();
}

/// A closed interval in the notation of index bounds.
pub(super) fn interval(low: &str, high: &str) -> String {
    ["[", low, ", ", high, "]"].concat()
}
