//! The default index over metadata and time.
//!
//! An entry is the order-preserving key of the metadata, then of the bucket's start; the storage key ends with the
//! bucket id. The latest time is left out: the span bounds it well enough, and without it an entry never changes while
//! rows are added. An array has an entry for each element and one for the whole, as the match language finds it.

use crate::value::{OwnedValue, Value, append_key, append_missing_key, sort_by};

/// Number of the default index in the key space.
pub const META_TIME_INDEX: u16 = 1;

/// The entries of a bucket: one, or for array metadata one per element and one for the whole.
pub fn entries(meta: Option<Value<'_>>, min_time_ms: i64) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut add = |value: Option<Value<'_>>| {
        let mut key = Vec::with_capacity(40);
        match value {
            Some(value) => append_key(&mut key, value),
            None => append_missing_key(&mut key),
        }
        append_key(&mut key, OwnedValue::date(min_time_ms).view());
        keys.push(key);
    };
    add(meta);
    if let Some(array) = meta.and_then(Value::as_array) {
        array.iter().for_each(|(_, element)| add(Some(element)));
    }
    sort_by(&mut keys, Ord::cmp);
    keys.dedup();
    keys
}

/// The range of entries of buckets whose metadata equals `meta` (`None`: no metadata) and that may hold a time in
/// `[first_ms, last_ms]` (inclusive; `None` is open): the first key, and the first key after the range.
pub fn range(meta: Option<Value<'_>>, span_ms: i64, first_ms: Option<i64>, last_ms: Option<i64>) -> (Vec<u8>, Vec<u8>) {
    let key_at = |time: Option<i64>| {
        let mut key = Vec::with_capacity(32);
        match meta {
            Some(meta) => append_key(&mut key, meta),
            None => append_missing_key(&mut key),
        }
        if let Some(time) = time {
            append_key(&mut key, OwnedValue::date(time).view());
        }
        key
    };
    // A bucket that holds a time t begins in (t - span, t].
    let start = key_at(first_ms.map(|first| first.saturating_sub(span_ms)));
    let end = crate::storage::KeyRange::prefix(&key_at(last_ms)).end;
    (start, end)
}

/// The range of entries of all buckets whose metadata is a string or contains one as an element.
pub fn texts() -> (Vec<u8>, Vec<u8>) {
    let mut start = Vec::new();
    append_key(&mut start, OwnedValue::string("").view());
    start.truncate(1);
    let end = crate::storage::KeyRange::prefix(&start).end;
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Doc, DocWriter};

    fn within(entry: &[u8], range: &(Vec<u8>, Vec<u8>)) -> bool {
        range.0.as_slice() <= entry && entry < range.1.as_slice()
    }

    #[test]
    fn a_bucket_is_found_by_equal_metadata_of_any_numeric_type() {
        let entry = entries(Some(OwnedValue::int32(7).view()), 0).remove(0);
        for equal in [OwnedValue::int32(7), OwnedValue::int64(7), OwnedValue::double(7.0)] {
            assert!(within(&entry, &range(Some(equal.view()), 100, None, None)));
        }
        for other in [OwnedValue::double(7.5), OwnedValue::string("7"), OwnedValue::null()] {
            assert!(!within(&entry, &range(Some(other.view()), 100, None, None)));
        }
    }

    #[test]
    fn time_bounds_keep_every_bucket_that_may_hold_the_time() {
        let meta = OwnedValue::string("a");
        let entry = |min| entries(Some(meta.view()), min).remove(0);
        let found = range(Some(meta.view()), 100, Some(1000), Some(2000));
        for min in [900, 901, 1000, 2000] {
            assert!(within(&entry(min), &found), "bucket at {min}");
        }
        for min in [-5, 899, 2001, i64::MAX] {
            assert!(!within(&entry(min), &found), "bucket at {min}");
        }
    }

    #[test]
    fn metadata_that_is_an_array_is_found_by_each_element_and_as_a_whole() {
        let mut writer = DocWriter::new();
        writer
            .begin_array("m")
            .value("0", OwnedValue::string("a").view())
            .value("1", OwnedValue::string("b").view())
            .end();
        let doc = writer.finish();
        let array = Doc::get(doc.view(), "m").unwrap();
        let found = entries(Some(array), 0);
        for value in [OwnedValue::string("a").view(), OwnedValue::string("b").view(), array] {
            assert!(found.iter().any(|entry| within(entry, &range(Some(value), 100, None, None))));
        }
        assert!(
            found.iter().all(|entry| !within(entry, &range(Some(OwnedValue::string("c").view()), 100, None, None)))
        );
    }
}
