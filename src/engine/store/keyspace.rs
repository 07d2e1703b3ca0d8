//! The layout of the one key space. No other file knows a prefix (I35).
//!
//! | key | value |
//! |---|---|
//! | `C` name | collection: id, options |
//! | `M` collection flag | marker: the collection exists (0), has dates in the extended range (1) |
//! | `M` collection 0 generation | the marker of a collection with `dedupe`: it exists, and was folded that often |
//! | `M` collection 2 epoch | marker: how often its buckets were changed |
//! | `M` collection 3 version | marker: how often its catalog entry was changed; absent if never |
//! | `M` collection 4 epoch | marker: an epoch in reserve |
//! | `J` collection context seq | journal record |
//! | `B` collection bucket-id | stored bucket |
//! | `I` collection index key bucket-id | empty |
//! | `Q` collection epoch key | an unreadable value of that collection, moved by the change that ended the epoch |
//!
//! Numbers are big-endian, so that keys sort by number.

use crate::bucket::BucketId;
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::storage::{Bytes, KeyRange};

const CATALOG: u8 = b'C';
const MARKER: u8 = b'M';
const JOURNAL: u8 = b'J';
const BUCKET: u8 = b'B';
const INDEX: u8 = b'I';
const QUARANTINE: u8 = b'Q';
const BUCKET_KEY_LEN: usize = 1 + size_of::<CollectionId>() + size_of::<BucketId>();
/// In the position of the flag in other markers.
const EPOCH: u8 = 2;
const VERSION: u8 = 3;
/// After all other flags, so that listing the markers can leave out the reserve.
const RESERVE: u8 = 4;
/// The distance between epochs in reserve.
const RESERVE_STEP: u64 = 1 << 32;
/// Number of epochs in reserve.
const RESERVE_LEN: u64 = 16;
/// How many bits of an epoch count the changesets of folds, how many the records that these have folded. The bits above
/// count everything else that has moved the epoch on.
const FOLD_STEP_BITS: u32 = 8;
const FOLDED_BITS: u32 = 14;

/// Identity of one life of a collection: random, from `create`, so that a collection created again shares no key with
/// the old one.
pub type CollectionId = [u8; 8];
/// Identity of one writer: a tab, a worker, a process.
pub type ContextId = [u8; 8];

/// What a marker key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Marker {
    /// The collection exists.
    Exists = 0,
    /// The collection has dates outside 1970..2038, so bucket ids do not sort by time.
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

/// The collection name in a catalog key.
pub fn catalog_name(key: &[u8]) -> Result<&str> {
    key.get(1..)
        .and_then(|name| std::str::from_utf8(name).ok())
        .ok_or_else(|| Error::corrupt("A catalog key has no collection name"))
}

/// A marker of a collection.
pub fn marker(collection: &CollectionId, marker: Marker) -> Bytes {
    key(MARKER, &[collection, &[marker as u8]])
}

/// The marker that says that a collection exists. Commits require it, so that none goes to a dropped collection
/// or uses an outdated generation. Generation 0 stands for a collection without `dedupe`.
pub fn exists(collection: &CollectionId, generation: u64) -> Bytes {
    match generation {
        0 => marker(collection, Marker::Exists),
        _ => key(MARKER, &[collection, &[Marker::Exists as u8], &generation.to_be_bytes()]),
    }
}

/// The generation in such a marker; `None` for a key of another kind, or of another collection.
pub fn generation_of(key: &[u8], collection: &CollectionId) -> Option<u64> {
    let number = number_of(key, Marker::Exists as u8).unwrap_or_default();
    (key == exists(collection, number).as_slice()).then_some(number)
}

/// The markers of a collection, without the epochs in reserve.
pub fn markers(collection: &CollectionId) -> KeyRange {
    KeyRange { start: key(MARKER, &[collection]), end: key(MARKER, &[collection, &[RESERVE]]) }
}

/// The markers of a collection, then its epochs in reserve.
pub fn markers_and_reserve(collection: &CollectionId) -> KeyRange {
    KeyRange::prefix(&key(MARKER, &[collection]))
}

/// The epoch of a new collection. Lower ones belong to databases without a reserve.
pub const FIRST_EPOCH: u64 = RESERVE_STEP + 1;

/// The marker of the epoch, which counts how often buckets of a collection were written or removed. The lowest one is
/// the present epoch: those in reserve are higher than all others.
///
/// **Invariant I40**: a fold that adds or removes no row counts in the low bits of the epoch, with the records that it
/// has removed; everything else counts in the bits above.
pub fn epoch(collection: &CollectionId, epoch: u64) -> Bytes {
    let kind = if is_from_reserve(epoch) { RESERVE } else { EPOCH };
    key(MARKER, &[collection, &[kind], &epoch.to_be_bytes()])
}

/// True for an epoch that was in reserve until a change had no room to write another one.
pub fn is_from_reserve(epoch: u64) -> bool {
    epoch > 0 && epoch.is_multiple_of(RESERVE_STEP)
}

/// A move of an epoch.
#[derive(Debug, PartialEq, Eq)]
pub struct NextEpoch {
    /// The epoch after it.
    pub epoch: u64,
    /// The epochs that must then be in reserve, if some may be missing.
    pub reserve: Vec<Bytes>,
    /// An epoch in reserve that it has passed.
    pub passed: Option<Bytes>,
}

/// The epoch after another. `folded`: the change is a step of a fold, and removes so many records whose rows are in
/// buckets.
pub fn next_epoch(collection: &CollectionId, epoch: u64, folded: Option<usize>) -> NextEpoch {
    let era = FOLDED_BITS + FOLD_STEP_BITS;
    let next = match folded.and_then(|records| (records as u64).checked_shl(FOLD_STEP_BITS)) {
        _ if epoch < RESERVE_STEP => FIRST_EPOCH,
        Some(folded) if fits(epoch, folded) => epoch.wrapping_add(folded).wrapping_add(1),
        // Never a multiple of the distance.
        _ => (epoch >> era).wrapping_add(1).wrapping_shl(era).wrapping_add(1),
    };
    let passed = Some(next_in_reserve(epoch)).filter(|reserved| epoch >= RESERVE_STEP && *reserved < next);
    let is_full = epoch > RESERVE_STEP && !is_from_reserve(epoch) && passed.is_none();
    let mut later = next;
    let reserve = (0..if is_full { 0 } else { RESERVE_LEN }).map(|_| {
        later = next_in_reserve(later);
        self::epoch(collection, later)
    });
    let reserve = reserve.listed();
    NextEpoch { epoch: next, reserve, passed: passed.map(|passed| self::epoch(collection, passed)) }
}

/// True if an epoch has room for one more step of a fold, which removes records.
fn fits(epoch: u64, folded: u64) -> bool {
    let mask = |bits: u32| (1_u64 << bits) - 1;
    epoch & mask(FOLD_STEP_BITS) < mask(FOLD_STEP_BITS)
        && (epoch & (mask(FOLDED_BITS) << FOLD_STEP_BITS)).saturating_add(folded) >> FOLD_STEP_BITS <= mask(FOLDED_BITS)
}

/// How many records were folded between two epochs, if nothing but folds lies between them.
pub fn folded_between(before: u64, after: u64) -> Option<u64> {
    let era = |epoch: u64| epoch >> (FOLDED_BITS + FOLD_STEP_BITS);
    (era(before) == era(after)).then(|| (after >> FOLD_STEP_BITS).saturating_sub(before >> FOLD_STEP_BITS))
}

/// The next epoch if nothing can be written.
pub fn next_in_reserve(epoch: u64) -> u64 {
    (epoch / RESERVE_STEP).wrapping_add(1).wrapping_mul(RESERVE_STEP)
}

/// The epoch in a marker; `None` for a key of another kind.
pub fn epoch_of(key: &[u8]) -> Option<u64> {
    number_of(key, EPOCH).or_else(|| number_of(key, RESERVE))
}

/// The marker that counts how often the catalog entry of a collection was changed, at least once.
pub fn version(collection: &CollectionId, version: u64) -> Bytes {
    key(MARKER, &[collection, &[VERSION], &version.to_be_bytes()])
}

/// The version in a marker; `None` for a key of another kind.
pub fn version_of(key: &[u8]) -> Option<u64> {
    number_of(key, VERSION)
}

fn number_of(key: &[u8], kind: u8) -> Option<u64> {
    let (start, number) = key.split_last_chunk::<8>()?;
    (start.first() == Some(&MARKER) && start.len() == 10 && start.last() == Some(&kind))
        .then_some(u64::from_be_bytes(*number))
}

/// True for the key of a marker.
pub fn is_of_markers(key: &[u8]) -> bool {
    key.first() == Some(&MARKER)
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

/// The records of a context up to `last`.
pub fn journal_up_to(collection: &CollectionId, context: &ContextId, last: u64) -> KeyRange {
    KeyRange { start: journal(collection, context, 0), end: [&journal(collection, context, last)[..], &[0]].concat() }
}

/// A bucket.
pub fn bucket(collection: &CollectionId, id: &BucketId) -> Bytes {
    bucket_key(collection, id).to_vec()
}

/// The same, without an allocation.
pub fn bucket_key(collection: &CollectionId, id: &BucketId) -> [u8; BUCKET_KEY_LEN] {
    let mut key = [BUCKET; BUCKET_KEY_LEN];
    let (_, of) = key.split_at_mut(1);
    let (of, rest) = of.split_at_mut(size_of::<CollectionId>());
    of.copy_from_slice(collection);
    rest.copy_from_slice(id.as_bytes());
    key
}

/// The parts of the first key of a bucket that could be at or behind `key`; and true if that key itself is in front of it.
pub fn bucket_from(key: &[u8]) -> (CollectionId, BucketId, bool) {
    let fill = if key.first() > Some(&BUCKET) { 0xFF } else { 0 };
    let (mut of, mut id) = ([fill; size_of::<CollectionId>()], [fill; size_of::<BucketId>()]);
    let mut rest = key.strip_prefix(&[BUCKET]).unwrap_or_default().iter();
    of.iter_mut().chain(&mut id).zip(&mut rest).for_each(|(to, byte)| *to = *byte);
    (of, BucketId::from_bytes(id), fill > 0 || rest.next().is_some())
}

/// All buckets of a collection whose ids lie in `[low, high]`, both inclusive.
pub fn buckets(collection: &CollectionId, low: &BucketId, high: &BucketId) -> KeyRange {
    KeyRange { start: bucket(collection, low), end: [&bucket(collection, high)[..], &[0]].concat() }
}

/// The prefix of an index's entries.
pub fn index_prefix(collection: &CollectionId, index: u16) -> Bytes {
    key(INDEX, &[collection, &index.to_be_bytes()])
}

/// The index number of an entry.
pub fn index_number(key: &[u8]) -> u16 {
    key.get(9..11).and_then(|number| number.try_into().ok()).map_or(0, u16::from_be_bytes)
}

/// One index entry: the order-preserving key, then the bucket.
pub fn index_entry(collection: &CollectionId, index: u16, entry: &[u8], bucket: &BucketId) -> Bytes {
    key(INDEX, &[collection, &index.to_be_bytes(), entry, bucket.as_bytes()])
}

/// The key under which the value of `moved`, a key of the collection, is quarantined.
pub fn quarantined(collection: &CollectionId, epoch: u64, moved: &[u8]) -> Bytes {
    key(QUARANTINE, &[collection, &epoch.to_be_bytes(), moved])
}

/// The bucket id at the end of a bucket key or an index entry.
pub fn bucket_id(key: &[u8]) -> Result<BucketId> {
    match key.split_last_chunk() {
        Some((prefix, id)) if prefix.len() >= 9 => Ok(BucketId::from_bytes(*id)),
        _ => Err(Error::corrupt(format!("A key of {} bytes does not end with a bucket id", key.len()))),
    }
}

/// The metadata key in an entry of the default index.
pub fn series_of(entry: &[u8]) -> Option<&[u8]> {
    // A date takes nine bytes; then comes the bucket id.
    let (front, _) = entry.split_last_chunk::<21>()?;
    front.get(1 + size_of::<CollectionId>() + 2..)
}

/// The lowest id in a range of bucket keys, which may begin right after the key of a bucket.
pub fn lowest_bucket(range: &KeyRange) -> Option<BucketId> {
    bucket_id(range.start.get(..BUCKET_KEY_LEN)?).ok()
}

/// An id that no bucket in a range of bucket keys exceeds.
pub fn highest_bucket(range: &KeyRange) -> Option<BucketId> {
    bucket_id(range.end.get(..BUCKET_KEY_LEN)?).ok()
}

/// All buckets that begin from the second of `low` to the second of `high`, judged by their ids.
pub fn buckets_of_seconds(collection: &CollectionId, low: &BucketId, high: &BucketId) -> KeyRange {
    buckets(collection, &low.second().0, &high.second().1)
}

/// True if every key between `low` and `high`, both bucket keys or both index entries, belongs to a bucket in `known`.
///
/// Entries of equal metadata sort by the start of their buckets, and so do ids in the standard range. So a bucket whose
/// entry lies between two others begins in or between their seconds.
pub fn encloses_known_only(collection: &CollectionId, low: &[u8], high: &[u8], known: &KeyRange) -> bool {
    if low.first() == Some(&BUCKET) && high.first() == Some(&BUCKET) {
        return known.start.as_slice() <= low && high < known.end.as_slice();
    }
    // For other indexes, nothing is known of entries in between.
    if low.get(9..11) != Some(&crate::index::META_TIME_INDEX.to_be_bytes()) {
        return false;
    }
    // A date takes nine bytes; then comes the bucket id.
    let meta = |key: &[u8]| key.split_last_chunk::<21>().map(|(meta, _)| meta.len());
    let (Some(len), Some(_)) = (meta(low), meta(high)) else { return false };
    if low.get(..len) != high.get(..len) || meta(high) != Some(len) {
        return false;
    }
    let (Ok(low), Ok(high)) = (bucket_id(low), bucket_id(high)) else { return false };
    let seconds = buckets_of_seconds(collection, &low, &high);
    !low.is_extended() && !high.is_extended() && known.start <= seconds.start && seconds.end <= known.end
}

/// Everything that belongs to a collection except its catalog entry: markers, journal, buckets, index entries,
/// quarantined values.
pub fn collection_ranges(collection: &CollectionId) -> Vec<KeyRange> {
    [MARKER, JOURNAL, BUCKET, INDEX, QUARANTINE]
        .iter()
        .map(|prefix| KeyRange::prefix(&key(*prefix, &[collection])))
        .listed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_back_into_their_parts() {
        let (coll, ctx) = ([9; 8], [7; 8]);
        let id = BucketId::from_bytes([5; 12]);
        assert_eq!(journal_parts(&journal(&coll, &ctx, 258)), Some((ctx, 258)));
        assert_eq!(bucket_id(&bucket(&coll, &id)).unwrap(), id);
        assert_eq!(bucket_id(&index_entry(&coll, 1, b"entry", &id)).unwrap(), id);
        let meta = crate::value::OwnedValue::string("a");
        let entry = crate::index::entries(Some(meta.view()), 7).remove(0);
        let mut series = Vec::new();
        crate::value::append_key(&mut series, meta.view());
        assert_eq!(series_of(&index_entry(&coll, 1, &entry, &id)), Some(&series[..]));
        let range = buckets(&coll, &id, &BucketId::MAX);
        let behind = KeyRange { start: buckets(&coll, &id, &id).end, ..range.clone() };
        assert_eq!((lowest_bucket(&range), lowest_bucket(&behind)), (Some(id), Some(id)));
        assert_eq!(catalog_name(&catalog("weather")).unwrap(), "weather");
        assert_eq!(epoch_of(&epoch(&coll, 1 << 40)), Some(1 << 40));
    }

    #[test]
    fn damaged_keys_are_errors_and_not_panics() {
        assert!(journal_parts(b"J123").is_none());
        assert!(bucket_id(b"B").is_err() && bucket_id(b"B12345678901234567").is_err());
        assert!(catalog_name(b"C\xFF").is_err());
        assert!(epoch_of(b"M").is_none() && epoch_of(&journal(&[9; 8], &[7; 8], 3)).is_none());
    }

    #[test]
    fn markers_are_recognised_by_collection_and_kind() {
        let coll = [2; 8];
        let all =
            [marker(&coll, Marker::Exists), marker(&coll, Marker::ExtendedRange), epoch(&coll, 2), version(&coll, 5)];
        let range = markers(&coll);
        for key in &all {
            assert!(range.start <= *key && *key < range.end);
            assert_eq!(epoch_of(key).is_some(), *key == all[2]);
            assert_eq!(version_of(key), (*key == all[3]).then_some(5));
            assert_eq!(is_marker(key, &coll, Marker::Exists), *key == all[0]);
        }
        assert!(all.is_sorted());
    }

    #[test]
    fn reserve_epochs_sort_after_all_other_markers_and_are_higher_than_earlier_epochs() {
        let coll = [2; 8];
        let next = |epoch: u64| {
            let moved = next_epoch(&coll, epoch, None);
            (moved.epoch, moved.reserve)
        };
        let (first, reserve) = next(0);
        assert_eq!((first, reserve.len() as u64), (FIRST_EPOCH, RESERVE_LEN));
        assert!(reserve.is_sorted() && reserve.first() > Some(&version(&coll, u64::MAX)));
        let (all, few) = (markers_and_reserve(&coll), markers(&coll));
        for key in &reserve {
            assert!(all.start < *key && *key < all.end && *key >= few.end);
            assert!(epoch_of(key) > Some(first) && is_from_reserve(epoch_of(key).unwrap()));
        }
        assert_eq!(reserve.first(), Some(&epoch(&coll, next_in_reserve(first))));
        // No epoch of the reserve is used, so none is missing.
        let (changed, missing) = next(first);
        assert_eq!((changed > first, missing.len(), next_in_reserve(changed)), (true, 0, next_in_reserve(first)));
        // Two were used: the others still exist, and two are added.
        let second = next_in_reserve(next_in_reserve(first));
        let (after, filled) = next(second);
        assert_eq!((after > second, filled.len(), is_from_reserve(after)), (true, reserve.len(), false));
        assert_eq!(filled[..reserve.len() - 2], reserve[2..]);
        // A database of an older version, without a reserve.
        assert_eq!((next(7), is_from_reserve(0)), ((first, reserve), false));
        let _ = (next(u64::MAX), next_epoch(&coll, u64::MAX, Some(1)), next_in_reserve(u64::MAX));
    }

    #[test]
    fn epochs_tell_how_many_records_were_folded_unless_something_else_has_happened() {
        let coll = [2; 8];
        let mut random = 7_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let (mut epoch, mut marks, mut passed) = (FIRST_EPOCH, Vec::new(), 0);
        for step in 0..6000_u64 {
            let folded = (below(4) > 0).then(|| below(30).saturating_sub(20) as usize * below(200) as usize);
            let moved = next_epoch(&coll, epoch, folded);
            assert!(moved.epoch > epoch && !is_from_reserve(moved.epoch), "step {step}");
            let is_passed = moved.epoch / RESERVE_STEP > epoch / RESERVE_STEP;
            assert_eq!(moved.passed, is_passed.then(|| super::epoch(&coll, next_in_reserve(epoch))));
            assert_eq!(moved.reserve.len() as u64, if is_passed { RESERVE_LEN } else { 0 });
            passed += u64::from(is_passed);
            // Of each earlier epoch, how many records were folded since, or that something else has happened.
            marks.push((epoch, Some(0_u64)));
            for (_, since) in marks.iter_mut() {
                *since = since.zip(folded).map(|(since, folded)| since + folded as u64);
            }
            for (before, since) in marks.iter().rev().take(40) {
                // None says nothing: the bits of folds may have overflowed.
                if let Some(found) = folded_between(*before, moved.epoch) {
                    assert_eq!(Some(found), *since, "step {step}");
                }
            }
            epoch = moved.epoch;
        }
        assert!(passed > 0, "an epoch in reserve was passed");
        assert_eq!(folded_between(FIRST_EPOCH, next_epoch(&coll, FIRST_EPOCH, Some(3)).epoch), Some(3));
        assert_eq!(folded_between(FIRST_EPOCH, next_epoch(&coll, FIRST_EPOCH, None).epoch), None);
        assert_eq!(folded_between(FIRST_EPOCH, next_in_reserve(FIRST_EPOCH)), None);
    }

    #[test]
    fn an_index_range_of_equal_metadata_has_only_buckets_of_its_seconds() {
        let coll = [1; 8];
        let entry = |meta: &str, seconds: i64, counter: u64| {
            let meta = crate::value::OwnedValue::string(meta);
            let entry = crate::index::entries(Some(meta.view()), seconds * 1000).remove(0);
            index_entry(&coll, crate::index::META_TIME_INDEX, &entry, &BucketId::new(seconds * 1000, counter))
        };
        let known = buckets_of_seconds(&coll, &BucketId::new(100_000, 7), &BucketId::new(200_000, 7));
        let holds = |low: Bytes, high: Bytes| encloses_known_only(&coll, &low, &high, &known);
        assert!(holds(entry("a", 100, 9), entry("a", 200, 1)));
        assert!(!holds(entry("a", 99, 9), entry("a", 200, 1)) && !holds(entry("a", 100, 9), entry("a", 201, 1)));
        assert!(!holds(entry("a", 100, 9), entry("b", 200, 1)) && !holds(entry("a", 100, 9), entry("ab", 200, 1)));
        let bucket_key = |seconds: i64| bucket(&coll, &BucketId::new(seconds * 1000, 3));
        assert!(holds(bucket_key(100), bucket_key(200)) && !holds(bucket_key(100), bucket_key(201)));
        assert!(!holds(bucket_key(100), entry("a", 200, 1)));
    }

    #[test]
    fn a_range_of_bucket_ids_includes_both_ends() {
        let coll = [0xFF; 8];
        let (low, high) = (BucketId::from_bytes([0; 12]), BucketId::from_bytes([0xFF; 12]));
        let range = buckets(&coll, &low, &high);
        for id in [low, high] {
            let key = bucket(&coll, &id);
            assert!(range.start <= key && key < range.end);
        }
    }

    #[test]
    fn the_key_range_up_to_a_record_has_only_records_of_its_context() {
        let (coll, ctx) = ([1; 8], [2; 8]);
        let range = journal_up_to(&coll, &ctx, 5);
        let holds = |context: [u8; 8], seq| {
            let key = journal(&coll, &context, seq);
            range.start <= key && key < range.end
        };
        assert!(holds(ctx, 0) && holds(ctx, 5));
        assert!(!holds(ctx, 6) && !holds([1; 8], 3) && !holds([3; 8], 0));
    }
}
