//! The entries of a bucket in an index that a user has made.
//!
//! An entry is the keys of the parts one behind the other, all ascending; the storage key ends with the bucket id. What a part does not
//! tell a bound about, an array on the path or several types in one bucket, has the key `ANY`, which every scan looks at as
//! well. So what is between the bounds is a superset of the buckets that may match, and each is asked again.

use super::spec::{IndexSpec, Part, Source};
use crate::value::{Doc, Kind, Value, append_key, append_missing_key};

/// The key of a part that a bound says nothing about. It comes before all keys of values.
pub const ANY: u8 = 0;

/// What is known of a bucket without its columns.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// The metadata.
    pub meta: Option<Value<'a>>,
    /// `control.min`.
    pub min: Doc<'a>,
    /// `control.max`.
    pub max: Doc<'a>,
}

/// What stands at the path of a part.
enum Found<'a> {
    Array,
    Value(Option<Value<'a>>),
}

/// The entry of a bucket; `None` where the index is sparse and the bucket has none of its parts.
pub fn entry(index: &IndexSpec, bucket: &Summary<'_>) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(64);
    let mut is_there = false;
    for part in &index.parts {
        match bucket.at(part) {
            Found::Array => key.push(ANY),
            Found::Value(None) => {
                append_missing_key(&mut key);
                continue;
            }
            Found::Value(Some(value)) => append_key(&mut key, value),
        }
        is_there = true;
    }
    (is_there || !index.sparse).then_some(key)
}

impl<'a> Summary<'a> {
    fn at(&self, part: &Part) -> Found<'a> {
        let path = &part.path;
        if part.source == Source::Meta {
            return below(self.meta, path.rest().iter().map(|component| component.name()));
        }
        let (mut low, mut high) = (Some(self.min.as_value()), Some(self.max.as_value()));
        for component in path.components() {
            let next = |value: Option<Value<'a>>| value?.as_doc()?.get(component.name());
            (low, high) = (next(low), next(high));
            let kinds = [low, high].map(|value| value.map(Value::kind));
            if kinds[0] != kinds[1] || kinds.contains(&Some(Kind::Array)) {
                return Found::Array;
            }
        }
        Found::Value(if part.source == Source::Min { low } else { high })
    }
}

fn below<'a, 'p>(mut value: Option<Value<'a>>, names: impl Iterator<Item = &'p str>) -> Found<'a> {
    let is_array = |value: Option<Value<'a>>| value.is_some_and(|value| value.kind() == Kind::Array);
    for name in names {
        if is_array(value) {
            return Found::Array;
        }
        value = value.and_then(Value::as_doc).and_then(|doc| doc.get(name));
    }
    if is_array(value) { Found::Array } else { Found::Value(value) }
}
