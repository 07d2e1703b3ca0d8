//! The layout of the one key space. No other file knows a prefix.
//!
//! | key | value |
//! |---|---|
//! | `C` name | collection: id, options |
//! | `M` collection flag | marker: the collection exists (0), holds extended-range dates (1) |
//! | `J` collection context seq | journal record |
//! | `B` collection bucket-id generation | stored bucket |
//! | `I` collection index key bucket-id generation fingerprint | empty |
//!
//! Numbers are big-endian, so that keys sort as they count.

use crate::bucket::BucketId;
use crate::error::{Error, Result};
use crate::storage::{Bytes, KeyRange};

const CATALOG: u8 = b'C';
const MARKER: u8 = b'M';
const JOURNAL: u8 = b'J';
const BUCKET: u8 = b'B';
const INDEX: u8 = b'I';

/// Identity of one life of a collection: drawn at random by `create`, so that a re-created collection shares no key.
pub type CollectionId = [u8; 8];
/// Identity of one writer: a tab, a worker, a process.
pub type ContextId = [u8; 8];

/// What a marker key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Marker {
    /// The collection exists.
    Exists = 0,
    /// The collection holds dates outside 1970..2038: bucket ids do not sort by time.
    ExtendedRange = 1,
}

fn key(prefix: u8, parts: &[&[u8]]) -> Bytes {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|p| p.len()).sum::<usize>());
    key.push(prefix);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The catalog entry of a collection.
pub fn catalog(name: &str) -> Bytes {
    key(CATALOG, &[name.as_bytes()])
}

/// All catalog entries.
pub fn catalog_range() -> KeyRange {
    KeyRange::prefix(&[CATALOG])
}

/// The name in a catalog key.
pub fn catalog_name(key: &[u8]) -> Result<&str> {
    key.get(1..)
        .and_then(|name| std::str::from_utf8(name).ok())
        .ok_or_else(|| Error::corrupt("A catalog key does not hold a name"))
}

/// A marker of a collection.
pub fn marker(collection: &CollectionId, marker: Marker) -> Bytes {
    key(MARKER, &[collection, &[marker as u8]])
}

/// All markers of a collection.
pub fn markers(collection: &CollectionId) -> KeyRange {
    KeyRange::prefix(&key(MARKER, &[collection]))
}

/// True for the key of that marker.
pub fn is_marker(key: &[u8], collection: &CollectionId, which: Marker) -> bool {
    key == marker(collection, which).as_slice()
}

/// A journal record.
pub fn journal(collection: &CollectionId, context: &ContextId, seq: u64) -> Bytes {
    key(JOURNAL, &[collection, context, &seq.to_be_bytes()])
}

/// All journal records of a collection.
pub fn journals(collection: &CollectionId) -> KeyRange {
    KeyRange::prefix(&key(JOURNAL, &[collection]))
}

/// Context and seq of a journal key; `None` for a key of another kind.
pub fn journal_parts(key: &[u8]) -> Option<(ContextId, u64)> {
    if key.first() != Some(&JOURNAL) || key.len() != 25 {
        return None;
    }
    let context = key.get(9..17)?.try_into().ok()?;
    let seq = u64::from_be_bytes(key.get(17..25)?.try_into().ok()?);
    Some((context, seq))
}

/// One generation of a bucket.
pub fn bucket(collection: &CollectionId, id: &BucketId, generation: u32) -> Bytes {
    key(BUCKET, &[collection, id.as_bytes(), &generation.to_be_bytes()])
}

/// All generations of a bucket: exactly one exists.
pub fn bucket_generations(collection: &CollectionId, id: &BucketId) -> KeyRange {
    KeyRange::prefix(&key(BUCKET, &[collection, id.as_bytes()]))
}

/// All buckets of a collection whose ids lie in `[low, high]`, both inclusive.
pub fn buckets(collection: &CollectionId, low: &BucketId, high: &BucketId) -> KeyRange {
    let start = bucket_generations(collection, low).start;
    KeyRange { start, end: bucket_generations(collection, high).end }
}

/// Bucket id and generation of a bucket key.
pub fn bucket_parts(key: &[u8]) -> Result<(BucketId, u32)> {
    let parts = || -> Option<(BucketId, u32)> {
        let id: [u8; 12] = key.get(9..21)?.try_into().ok()?;
        let generation = u32::from_be_bytes(key.get(21..25)?.try_into().ok()?);
        Some((BucketId::from_bytes(id), generation))
    };
    parts()
        .ok_or_else(|| Error::corrupt(format!("A bucket key of {} bytes does not hold id and generation", key.len())))
}

/// Where the entries of an index begin.
pub fn index_prefix(collection: &CollectionId, index: u16) -> Bytes {
    key(INDEX, &[collection, &index.to_be_bytes()])
}

/// A bucket in one form: what an index entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketRef {
    /// The bucket.
    pub id: BucketId,
    /// Its generation, so that it is fetched by its key and not searched for.
    pub generation: u32,
    /// A hash of its stored form: a bucket that was deleted and made again may have that generation once more.
    pub fingerprint: u32,
}

/// One index entry: the order-preserving key, then the bucket.
pub fn index_entry(collection: &CollectionId, index: u16, entry: &[u8], bucket: &BucketRef) -> Bytes {
    let (generation, fingerprint) = (bucket.generation.to_be_bytes(), bucket.fingerprint.to_be_bytes());
    key(INDEX, &[collection, &index.to_be_bytes(), entry, bucket.id.as_bytes(), &generation, &fingerprint])
}

/// The bucket at the end of an index entry.
pub fn index_entry_bucket(key: &[u8]) -> Result<BucketRef> {
    let parts = || -> Option<BucketRef> {
        let (key, fingerprint) = key.split_last_chunk()?;
        let (key, generation) = key.split_last_chunk()?;
        let (_, id) = key.split_last_chunk()?;
        let (generation, fingerprint) = (u32::from_be_bytes(*generation), u32::from_be_bytes(*fingerprint));
        Some(BucketRef { id: BucketId::from_bytes(*id), generation, fingerprint })
    };
    parts().ok_or_else(|| Error::corrupt("An index entry does not end with a bucket"))
}

/// The bucket that a key leads to, be it that of an index entry or that of a bucket, whose fingerprint is not known.
pub fn bucket_ref(key: &[u8]) -> Result<BucketRef> {
    if key.first() == Some(&INDEX) {
        return index_entry_bucket(key);
    }
    let (id, generation) = bucket_parts(key)?;
    Ok(BucketRef { id, generation, fingerprint: 0 })
}

/// All buckets that begin in the seconds from that of `low` to that of `high`, as ids tell them.
pub fn buckets_of_seconds(collection: &CollectionId, low: &BucketId, high: &BucketId) -> KeyRange {
    buckets(collection, &low.second().0, &high.second().1)
}

/// True where every key between two keys, both of buckets or both of index entries, is that of a bucket in `known`.
///
/// Entries of equal metadata sort by the start of their buckets, and so do ids in the standard range: a bucket whose entry lies
/// between two others begins in their seconds or between them.
pub fn encloses_known_only(collection: &CollectionId, low: &[u8], high: &[u8], known: &KeyRange) -> bool {
    if low.first() == Some(&BUCKET) && high.first() == Some(&BUCKET) {
        return known.start.as_slice() <= low && high < known.end.as_slice();
    }
    // Two dates of nine bytes, then the reference.
    let meta = |key: &[u8]| key.split_last_chunk::<38>().map(|(meta, _)| meta.len());
    let (Some(len), Some(_)) = (meta(low), meta(high)) else { return false };
    if low.get(..len) != high.get(..len) || meta(high) != Some(len) {
        return false;
    }
    let (Ok(low), Ok(high)) = (index_entry_bucket(low), index_entry_bucket(high)) else { return false };
    let seconds = buckets_of_seconds(collection, &low.id, &high.id);
    !low.id.is_extended() && !high.id.is_extended() && known.start <= seconds.start && seconds.end <= known.end
}

/// Everything that belongs to a collection, its catalog entry aside.
pub fn collection_ranges(collection: &CollectionId) -> Vec<KeyRange> {
    [MARKER, JOURNAL, BUCKET, INDEX].iter().map(|prefix| KeyRange::prefix(&key(*prefix, &[collection]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_keys_come_back() {
        let (coll, ctx) = ([9; 8], [7; 8]);
        let id = BucketId::from_bytes([5; 12]);
        assert_eq!(journal_parts(&journal(&coll, &ctx, 258)), Some((ctx, 258)));
        assert_eq!(bucket_parts(&bucket(&coll, &id, 3)).unwrap(), (id, 3));
        let stored = BucketRef { id, generation: 3, fingerprint: u32::MAX };
        assert_eq!(index_entry_bucket(&index_entry(&coll, 1, b"entry", &stored)).unwrap(), stored);
        assert_eq!(bucket_ref(&index_entry(&coll, 1, b"entry", &stored)).unwrap(), stored);
        assert_eq!(bucket_ref(&bucket(&coll, &id, 3)).unwrap(), BucketRef { fingerprint: 0, ..stored });
        assert_eq!(catalog_name(&catalog("weather")).unwrap(), "weather");
    }

    #[test]
    fn damaged_keys_are_errors_and_not_traps() {
        assert!(journal_parts(b"J123").is_none());
        assert!(bucket_parts(b"B").is_err());
        assert!(index_entry_bucket(b"I").is_err());
        assert!(catalog_name(b"C\xFF").is_err());
    }

    #[test]
    fn between_two_entries_of_equal_metadata_lie_buckets_of_their_seconds_and_of_no_others() {
        let coll = [1; 8];
        let entry = |meta: &str, seconds: i64, counter: u64| {
            let bucket = BucketRef { id: BucketId::new(seconds * 1000, counter), generation: 0, fingerprint: 0 };
            let meta = crate::value::OwnedValue::string(meta);
            let entry = crate::index::entries(Some(meta.view()), seconds * 1000, seconds * 1000 + 5).remove(0);
            index_entry(&coll, crate::index::META_TIME_INDEX, &entry, &bucket)
        };
        let known = buckets_of_seconds(&coll, &BucketId::new(100_000, 7), &BucketId::new(200_000, 7));
        let holds = |low: Bytes, high: Bytes| encloses_known_only(&coll, &low, &high, &known);
        assert!(holds(entry("a", 100, 9), entry("a", 200, 1)));
        assert!(!holds(entry("a", 99, 9), entry("a", 200, 1)) && !holds(entry("a", 100, 9), entry("a", 201, 1)));
        assert!(!holds(entry("a", 100, 9), entry("b", 200, 1)) && !holds(entry("a", 100, 9), entry("ab", 200, 1)));
        let bucket_key = |seconds: i64| bucket(&coll, &BucketId::new(seconds * 1000, 3), 1);
        assert!(holds(bucket_key(100), bucket_key(200)) && !holds(bucket_key(100), bucket_key(201)));
        assert!(!holds(bucket_key(100), entry("a", 200, 1)));
    }

    #[test]
    fn a_range_of_bucket_ids_includes_both_ends_in_every_generation() {
        let coll = [0xFF; 8];
        let (low, high) = (BucketId::from_bytes([0; 12]), BucketId::from_bytes([0xFF; 12]));
        let range = buckets(&coll, &low, &high);
        for (id, generation) in [(low, 0), (low, u32::MAX), (high, 0), (high, u32::MAX)] {
            let key = bucket(&coll, &id, generation);
            assert!(range.start <= key && key < range.end);
        }
    }
}
