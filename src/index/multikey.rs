//! Arrays in indexed metadata: which ones are allowed, and where they are.

use super::part::{PartKind, Source};
use super::spec::IndexSpec;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Component, Value};

impl IndexSpec {
    /// True if the index refuses some metadata.
    pub fn limits_meta(&self) -> bool {
        let mut on_meta = self.parts.iter().filter(|part| part.source == Source::Meta);
        self.is_hashed() || on_meta.clone().any(|part| part.kind().is_geo()) || on_meta.nth(1).is_some()
    }

    fn is_hashed(&self) -> bool {
        self.parts.iter().any(|part| part.kind() == PartKind::Hashed)
    }

    /// Refuses metadata that this index cannot hold.
    ///
    /// Errors: 16766 for an array under a hashed index; `CannotIndexParallelArrays`; as `check_places`.
    pub fn check_meta(&self, meta: Value<'_>) -> Result<()> {
        let is_hashed = self.is_hashed();
        for (place, part) in self.parts.iter().enumerate() {
            let path = part.path.rest();
            if part.source != Source::Meta {
                continue;
            }
            let (code, what) = if is_hashed && leads_to_array(meta, path) {
                (ErrorCode::Location16766, "A hashed index cannot contain arrays: '")
            } else if self.parts.iter().skip(place + 1).any(|other| {
                other.source == Source::Meta
                    && [part, other].iter().all(|part| part.kind() == PartKind::Order)
                    && are_parallel(meta, path, other.path.rest())
            }) {
                (ErrorCode::CannotIndexParallelArrays, "An index cannot contain parallel arrays: '")
            } else {
                continue;
            };
            return Err(Error::new(code, [what, &self.name, "'"].concat()));
        }
        if self.parts.iter().any(|part| part.kind().is_geo()) { self.check_places(meta) } else { Ok(()) }
    }
}

fn leads_to_array(value: Value<'_>, path: &[Component]) -> bool {
    value.as_array().is_some()
        || path.split_first().is_some_and(|(name, rest)| {
            let below = value.as_doc().and_then(|doc| doc.get(name.name()));
            below.is_some_and(|below| leads_to_array(below, rest))
        })
}

/// True if two paths lead to different arrays, here or in an element.
fn are_parallel(value: Value<'_>, one: &[Component], other: &[Component]) -> bool {
    if let Some(array) = value.as_array() {
        return array.iter().enumerate().any(|(place, (_, element))| {
            match (into_element(place, element, one), into_element(place, element, other)) {
                (Some(one), Some(other)) => are_parallel(element, one, other),
                _ => false,
            }
        });
    }
    match (one.split_first(), other.split_first()) {
        (Some((name, one)), Some((same, other))) if name.name() == same.name() => {
            let below = value.as_doc().and_then(|doc| doc.get(name.name()));
            below.is_some_and(|below| are_parallel(below, one, other))
        }
        _ => leads_to_array(value, one) && leads_to_array(value, other),
    }
}

/// The rest of a path in an array element: after its position, or in its fields.
fn into_element<'p>(place: usize, element: Value<'_>, path: &'p [Component]) -> Option<&'p [Component]> {
    let (name, rest) = path.split_first()?;
    if name.index() == Some(place) {
        return Some(rest);
    }
    element.as_doc().map(|_| path)
}

/// Records the number of path components that lead from `value` to each array on the path.
pub fn note_arrays(value: Value<'_>, path: &[Component], depth: usize, found: &mut Vec<usize>) {
    let mut note = |depth| {
        if !found.contains(&depth) {
            found.push(depth);
        }
    };
    if let Some(array) = value.as_array() {
        note(depth);
        for (place, (_, element)) in array.iter().enumerate() {
            if let Some(rest) = into_element(place, element, path) {
                note_arrays(element, rest, depth + path.len() - rest.len(), found);
            }
        }
    } else if let (Some((name, rest)), Some(doc)) = (path.split_first(), value.as_doc())
        && let Some(value) = doc.get(name.name())
    {
        note_arrays(value, rest, depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};

    use super::*;
    use crate::bucket::CollectionOptions;
    use crate::value::{Doc, DocBuf, DocWriter, Path};

    fn meta(meta: Bson) -> DocBuf {
        let mut bytes = Vec::new();
        bson::doc! { "meta": meta }.to_writer(&mut bytes).unwrap();
        Doc::parse(&bytes).unwrap().to_owned()
    }

    fn spec(parts: &[(&str, &str)]) -> IndexSpec {
        let mut spec = DocWriter::new();
        spec.begin_doc("key");
        for (name, kind) in parts {
            match *kind {
                "" => spec.int32(name, 1),
                kind => spec.string(name, kind),
            };
        }
        spec.end().string("name", "i");
        let create = bson::rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        let create = Doc::parse(create.as_bytes()).unwrap();
        let options = CollectionOptions::parse_create(create, 0).unwrap();
        IndexSpec::parse(spec.finish().view(), &options.timeseries).unwrap()
    }

    fn code(parts: &[(&str, &str)], value: Bson) -> Option<i32> {
        let meta = meta(value);
        spec(parts).check_meta(meta.view().get("meta").unwrap()).err().map(|error| error.code as i32)
    }

    #[test]
    fn arrays_on_different_paths_are_parallel_and_a_shared_one_is_not() {
        let ab: &[_] = &[("m.a", ""), ("m.b", "")];
        for (parts, value, expected) in [
            (ab, bson!({"a": [1], "b": [2]}), Some(171)),
            (ab, bson!({"a": [], "b": []}), Some(171)),
            (ab, bson!({"a": [1], "b": 2}), None),
            (ab, bson!([{"a": 1, "b": 2}]), None),
            (ab, bson!([{"a": [1], "b": 2}, {"a": [1], "b": [2]}]), Some(171)),
            (ab, bson!([{"a": [1], "b": 2}, {"a": 1, "b": [2]}]), None),
            (&[("m.a.x", ""), ("m.a.y", "")], bson!({"a": [{"x": 1, "y": 2}]}), None),
            (&[("m.a.x", ""), ("m.a.y", "")], bson!({"a": [{"x": [1], "y": [2]}]}), Some(171)),
            (&[("m", ""), ("m.a", "")], bson!([{"a": 1}]), None),
            (&[("m.a.0", ""), ("m.a.1", "")], bson!({"a": [[1], [2]]}), None),
            (&[("m.a", ""), ("m.b", ""), ("m.c", "")], bson!({"b": [1], "c": [1]}), Some(171)),
            (&[("m.a", ""), ("t", "")], bson!({"a": [1]}), None),
        ] {
            assert_eq!(code(parts, value.clone()), expected, "{parts:?} {value}");
        }
    }

    #[test]
    fn a_hashed_index_refuses_arrays_on_its_paths() {
        for (parts, value, expected) in [
            (&[("m", "hashed")][..], bson!([1]), Some(16766)),
            (&[("m.a", "hashed")], bson!({"a": []}), Some(16766)),
            (&[("m.a", "hashed")], bson!([{"a": 1}]), Some(16766)),
            (&[("m.a", "hashed"), ("m.b", "")], bson!({"b": [1]}), Some(16766)),
            (&[("m", "hashed")], bson!({"a": [1]}), None),
            (&[("m.a", "hashed"), ("t", "")], bson!({"a": {"b": [1]}}), None),
        ] {
            assert_eq!(code(parts, value.clone()), expected, "{parts:?} {value}");
        }
    }

    #[test]
    fn multikey_paths_are_the_components_that_lead_to_arrays() {
        for (path, value, expected) in [
            ("meta.a", bson!({"a": [{"b": 1}]}), &[1][..]),
            ("meta.a.b", bson!({"a": [{"b": [1]}, {"b": 2}]}), &[1, 2]),
            ("meta.a", bson!([{"a": 1}]), &[0]),
            ("meta.a.b", bson!({"a": {"b": 1}}), &[]),
            ("meta.a.1.b", bson!({"a": [0, {"b": [1]}]}), &[1, 3]),
        ] {
            let (meta, mut found) = (meta(value.clone()), Vec::new());
            note_arrays(meta.view().get("meta").unwrap(), Path::parse(path).unwrap().rest(), 0, &mut found);
            assert_eq!(found, expected, "{path} {value}");
        }
    }
}
