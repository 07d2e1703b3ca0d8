//! Bounds of scans, as `explain` shows them.

// Loaded later.

use crate::bucket::BucketId;
use crate::index::Part;
use crate::value::DocWriter;

/// Which ids are looked at.
pub(super) fn write_records((low, high): (&BucketId, &BucketId), direction: &str, writer: &mut DocWriter) {
    if *low != BucketId::MIN {
        writer.object_id("minRecord", low.as_bytes());
    }
    if *high != BucketId::MAX {
        writer.object_id("maxRecord", high.as_bytes());
    }
    writer.string("direction", direction);
}

/// Which paths of an index lead to arrays.
pub(super) fn write_multikey(parts: &[Part], multikey: &[Vec<usize>], writer: &mut DocWriter) {
    writer.bool("isMultiKey", !multikey.iter().all(Vec::is_empty)).begin_doc("multiKeyPaths");
    for (part, depths) in parts.iter().zip(multikey) {
        writer.begin_array(&part.name);
        for (place, depth) in depths.iter().enumerate() {
            let names: Vec<&str> = part.name.split('.').take(depth + 1).collect();
            writer.string(&place.to_string(), &names.join("."));
        }
        writer.end();
    }
    writer.end();
}

/// A closed interval, as bounds of an index are shown.
pub(super) fn interval(low: &str, high: &str) -> String {
    ["[", low, ", ", high, "]"].concat()
}
