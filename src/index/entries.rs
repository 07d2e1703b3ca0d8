//! The entries of a bucket in a user's index.
//!
//! An entry is the concatenation of its parts' keys, all ascending; the storage key ends with the bucket id. A part
//! without a known bound (an array on the path, or several types in one bucket) has the key `ANY`, which every scan
//! includes. So a scan finds a superset of the matching buckets, and the whole filter is applied to each (I10).
//!
//! Geospatial parts have the key of the smallest cell that holds all places of the bucket. A wildcard index has an
//! entry for each path to a value or to an array; it does not look inside arrays.

use super::part::{KeyPart, PartKind, Source};
use super::places::Held;
use super::spec::IndexSpec;
use crate::value::{Doc, Kind, OwnedValue, Path, Value, append_key, append_missing_key};

/// The key of a part without a known bound. It sorts before all keys of values.
pub const ANY: u8 = 0;

/// What is known of a bucket without decoding its columns.
#[derive(Clone, Copy)]
pub struct BucketSummary<'a> {
    /// The metadata.
    pub meta: Option<Value<'a>>,
    /// `control.min`.
    pub min: Doc<'a>,
    /// `control.max`.
    pub max: Doc<'a>,
}

/// What is found at the path of a part.
enum PathValue<'a> {
    /// An array, there or before the end of the path; or several types.
    Array(Option<Value<'a>>),
    Value(Option<Value<'a>>),
}

/// The keys of a bucket; none if the index is sparse and the bucket has none of its parts.
pub fn keys(index: &IndexSpec, bucket: &BucketSummary<'_>) -> Vec<Vec<u8>> {
    if let [part] = index.parts.as_slice()
        && part.kind() == PartKind::Wildcard
    {
        let mut keys = Vec::new();
        if let PathValue::Value(Some(value)) | PathValue::Array(Some(value)) = bucket.at(part) {
            add_each(value, part.path.as_str().to_owned(), &mut keys);
        }
        return keys;
    }
    let mut key = Vec::with_capacity(64);
    let (mut is_there, mut places) = (false, None);
    for part in &index.parts {
        if part.kind().is_geo() {
            let held = index.held(part, bucket);
            *places.get_or_insert(false) |= held != Held::Nothing;
            match held {
                Held::Nothing => append_missing_key(&mut key),
                Held::Anywhere => key.push(ANY),
                Held::Cell(cell) => append_key(&mut key, OwnedValue::int64(cell).view()),
            }
            continue;
        }
        match bucket.at(part) {
            PathValue::Array(_) => key.push(ANY),
            PathValue::Value(None) => {
                append_missing_key(&mut key);
                continue;
            }
            PathValue::Value(Some(value)) => append_key(&mut key, value),
        }
        is_there = true;
    }
    // A geospatial index contains only buckets with places.
    if places.unwrap_or(is_there || !index.sparse) { vec![key] } else { Vec::new() }
}

/// The prefix of a wildcard's entries for a path.
pub fn wildcard_key(path: &str) -> Vec<u8> {
    let mut key = Vec::new();
    append_key(&mut key, OwnedValue::string(path).view());
    key
}

fn add_each(value: Value<'_>, path: String, keys: &mut Vec<Vec<u8>>) {
    if let Some(doc) = value.as_doc().filter(|doc| !doc.is_empty()) {
        for (name, value) in doc {
            add_each(value, [&path, ".", name].concat(), keys);
        }
        return;
    }
    let mut key = wildcard_key(&path);
    match value.kind() {
        Kind::Array => key.push(ANY),
        _ => append_key(&mut key, value),
    }
    keys.push(key);
}

impl<'a> BucketSummary<'a> {
    fn at(&self, part: &KeyPart) -> PathValue<'a> {
        let path = &part.path;
        if part.source == Source::Meta {
            return below(self.meta, path.rest().iter().map(|component| component.name()));
        }
        match self.extremes(path) {
            Some([low, _]) if part.source == Source::Min => of(low),
            Some([_, high]) => of(high),
            None => PathValue::Array(None),
        }
    }

    /// The lowest and the highest value at a measurement path; `None` if there are several types, or an array before
    /// the end of the path.
    pub(super) fn extremes(&self, path: &Path) -> Option<[Option<Value<'a>>; 2]> {
        let mut ends = [Some(self.min.as_value()), Some(self.max.as_value())];
        for component in path.components() {
            if ends.iter().any(|value| value.is_some_and(|value| value.kind() == Kind::Array)) {
                return None;
            }
            ends = ends.map(|value| value?.as_doc()?.get(component.name()));
            let [low, high] = ends.map(|value| value.map(Value::kind));
            if low != high {
                return None;
            }
        }
        Some(ends)
    }
}

fn below<'a, 'p>(mut value: Option<Value<'a>>, names: impl Iterator<Item = &'p str>) -> PathValue<'a> {
    for name in names {
        if let found @ PathValue::Array(_) = of(value) {
            return found;
        }
        value = value.and_then(Value::as_doc).and_then(|doc| doc.get(name));
    }
    of(value)
}

fn of(value: Option<Value<'_>>) -> PathValue<'_> {
    if value.is_some_and(|value| value.kind() == Kind::Array) {
        PathValue::Array(value)
    } else {
        PathValue::Value(value)
    }
}
