//! Reference documents of sections: whether an object follows one, and the common reference of two objects.

use std::collections::BinaryHeap;

use crate::value::{Doc, DocBuf, DocWriter, Kind, Value};

/// True for objects and arrays, whose scalars are streams of their own.
pub fn is_container(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Object | Kind::Array)
}

/// True if the object contains a scalar, at any depth.
pub fn has_scalar(object: Doc<'_>) -> bool {
    object.fields().any(|(_, value)| value.as_container().is_none_or(has_scalar))
}

/// True if the object contains an object or array without fields, at any depth.
pub fn has_empty(object: Doc<'_>) -> bool {
    object.fields().any(|(_, value)| value.as_container().is_some_and(|inner| inner.is_empty() || has_empty(inner)))
}

/// Visits the value in `object` for every scalar of `reference`, in the order of `reference`; `None` if it has none.
///
/// Returns false if the object has a different shape; the visits stop where that shows. Scalars may change their type
/// but not their place. Fields may be absent, unless they are empty objects, which could not be told from absent ones.
pub fn walk(reference: Doc<'_>, object: Doc<'_>, visit: &mut dyn FnMut(Option<Value<'_>>)) -> bool {
    let mut rest = object.fields();
    let mut head = rest.next();
    for (name, wanted) in reference.fields() {
        let found = head.filter(|field| field.0 == name).map(|field| field.1);
        if found.is_some() {
            head = rest.next();
        }
        let fits = match (wanted.as_container(), found) {
            (None, Some(found)) if is_container(found) => false,
            (None, found) => {
                visit(found);
                true
            }
            (Some(inner), None) => !inner.is_empty() && walk(inner, Doc::EMPTY, visit),
            (Some(inner), Some(found)) => match found.as_container() {
                Some(object) if found.kind() == wanted.kind() && object.is_empty() == inner.is_empty() => {
                    walk(inner, object, visit)
                }
                _ => false,
            },
        };
        if !fits {
            return false;
        }
    }
    head.is_none()
}

/// A reference that both `object` and everything that follows `reference` follow. If both have a value, it is that of
/// `reference`. `None` if there is no such reference.
pub fn merge(reference: Doc<'_>, object: Doc<'_>) -> Option<DocBuf> {
    let mut out = DocWriter::new();
    merge_level(reference, object, &mut out)?;
    Some(out.finish())
}

fn merge_level(reference: Doc<'_>, object: Doc<'_>, out: &mut DocWriter) -> Option<()> {
    // A field is written either from one side alone or from both together, so every name of either side comes out. It
    // comes out only once if no side has a name twice and names of both sides meet.
    let (in_reference, in_object) = (LevelNames::of(reference)?, LevelNames::of(object)?);
    let (mut left, mut right) = (reference.iter(), object.iter());
    let (mut from_reference, mut from_object) = (left.next(), right.next());
    let mut position = 0;
    loop {
        match (from_reference, from_object) {
            (None, None) => return Some(()),
            (Some((name, a)), Some((other, b))) if name == other => {
                merge_field(name, a, b, out)?;
                (from_reference, from_object) = (left.next(), right.next());
                position += 1;
            }
            (Some((name, value)), _) if in_object.position(name).is_none_or(|at| at < position) => {
                copy_alone(name, value, &in_object, out)?;
                from_reference = left.next();
            }
            (_, Some((name, value))) => {
                copy_alone(name, value, &in_reference, out)?;
                from_object = right.next();
                position += 1;
            }
            // The name comes later in the object that has ended.
            (Some(_), None) => return None,
        }
    }
}

/// A field that both have.
fn merge_field(name: &str, a: Value<'_>, b: Value<'_>, out: &mut DocWriter) -> Option<()> {
    match (a.as_container(), b.as_container()) {
        (None, None) => {
            out.value(name, a);
        }
        (Some(reference), Some(object)) if a.kind() == b.kind() && reference.is_empty() == object.is_empty() => {
            if a.kind() == Kind::Array {
                out.begin_array(name)
            } else {
                out.begin_doc(name)
            };
            merge_level(reference, object, out)?;
            out.end();
        }
        _ => return None,
    }
    Some(())
}

/// A field that only one side has. Whatever follows the other side lacks it, which an empty object does not allow.
fn copy_alone(name: &str, value: Value<'_>, other_side: &LevelNames<'_>, out: &mut DocWriter) -> Option<()> {
    if other_side.position(name).is_some() || value.as_container().is_some_and(|o| o.is_empty() || has_empty(o)) {
        return None;
    }
    out.value(name, value);
    Some(())
}

/// The names of one level and their positions.
struct LevelNames<'a> {
    sorted: Vec<(&'a str, usize)>,
}

impl<'a> LevelNames<'a> {
    /// `None` if a name occurs twice.
    fn of(object: Doc<'a>) -> Option<LevelNames<'a>> {
        // A heap sort: another general sort would double the code size of this file.
        let heap: BinaryHeap<_> = object.iter().enumerate().map(|(position, field)| (field.0, position)).collect();
        let sorted = heap.into_sorted_vec();
        let twice = sorted.iter().zip(sorted.iter().skip(1)).any(|(a, b)| a.0 == b.0);
        (!twice).then_some(LevelNames { sorted })
    }

    fn position(&self, name: &str) -> Option<usize> {
        let found = self.sorted.binary_search_by(|field| field.0.cmp(name)).ok()?;
        self.sorted.get(found).map(|field| field.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawDocumentBuf, rawdoc};

    fn follows(reference: &RawDocumentBuf, object: &RawDocumentBuf) -> (bool, Vec<bool>) {
        let mut visited = Vec::new();
        let fits = walk(doc(reference), doc(object), &mut |value| visited.push(value.is_some()));
        (fits, visited)
    }

    fn doc(raw: &RawDocumentBuf) -> Doc<'_> {
        Doc::parse(raw.as_bytes()).unwrap()
    }

    fn merged(reference: RawDocumentBuf, object: RawDocumentBuf) -> Option<Vec<u8>> {
        let merged = merge(doc(&reference), doc(&object))?;
        for side in [&reference, &object] {
            assert!(walk(merged.view(), doc(side), &mut |_| ()), "{side:?}");
        }
        Some(merged.into_bytes())
    }

    #[test]
    fn an_object_follows_a_reference_with_more_fields_in_the_same_order() {
        let reference = rawdoc! { "a": 1, "o": { "b": 1, "c": [1, 2] }, "d": 1 };
        assert_eq!(follows(&reference, &reference), (true, vec![true; 5]));
        assert_eq!(follows(&reference, &rawdoc! { "d": "x" }), (true, vec![false, false, false, false, true]));
        assert_eq!(follows(&reference, &rawdoc! { "d": 1, "a": 1 }), (false, vec![false, false, false, false, true]));
        assert!(!follows(&reference, &rawdoc! { "o": 1 }).0);
        assert_eq!(follows(&reference, &rawdoc! { "a": {} }), (false, vec![]));
        assert!(!follows(&reference, &rawdoc! { "o": {} }).0);
        assert!(!follows(&reference, &rawdoc! { "o": [1] }).0);
        assert!(!follows(&reference, &rawdoc! { "z": 1 }).0);
    }

    #[test]
    fn an_empty_object_is_never_absent() {
        let reference = rawdoc! { "a": 1, "o": { "b": 1, "e": {} } };
        assert!(follows(&reference, &rawdoc! { "o": { "e": {} } }).0);
        assert_eq!(follows(&reference, &rawdoc! { "a": 1 }), (false, vec![true, false]));
        assert!(has_empty(doc(&reference)));
        assert!(!has_scalar(doc(&rawdoc! { "o": { "e": [] } })));
    }

    #[test]
    fn a_merged_reference_keeps_both_field_orders_and_its_own_values() {
        let expect = |a, b, c: RawDocumentBuf| assert_eq!(merged(a, b), Some(c.as_bytes().to_vec()));
        expect(rawdoc! { "a": 1 }, rawdoc! { "b": 2 }, rawdoc! { "a": 1, "b": 2 });
        expect(rawdoc! { "a": 1, "c": 1 }, rawdoc! { "b": 2, "a": 2, "c": 2 }, rawdoc! { "b": 2, "a": 1, "c": 1 });
        expect(rawdoc! { "o": { "x": 1 } }, rawdoc! { "o": { "y": [2] } }, rawdoc! { "o": { "x": 1, "y": [2] } });
        expect(rawdoc! { "e": {}, "a": 1 }, rawdoc! { "e": {}, "b": 1 }, rawdoc! { "e": {}, "a": 1, "b": 1 });
    }

    #[test]
    fn no_merge_changes_an_order_a_nesting_or_the_presence_of_an_empty_object() {
        assert_eq!(merged(rawdoc! { "a": 1, "b": 1 }, rawdoc! { "b": 1, "a": 1 }), None);
        assert_eq!(merged(rawdoc! { "a": 1 }, rawdoc! { "a": { "b": 1 } }), None);
        assert_eq!(merged(rawdoc! { "a": [1] }, rawdoc! { "a": { "0": 1 } }), None);
        assert_eq!(merged(rawdoc! { "a": 1 }, rawdoc! { "b": { "c": {} } }), None);
        assert_eq!(merged(rawdoc! { "a": {} }, rawdoc! { "a": { "b": 1 } }), None);
        assert_eq!(merged(rawdoc! { "a": 1, "a": 2 }, rawdoc! { "b": 1 }), None);
        assert_eq!(merged(rawdoc! { "a": 1 }, rawdoc! { "b": 1, "b": 2 }), None);
    }
}
