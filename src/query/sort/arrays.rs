//! Compound sort keys of rows that may contain arrays.
//!
//! The paths of a compound sort expand a shared array together, as an index would. Of the resulting tuples, the one
//! that sorts first is the row's key. Two different arrays in one row are an error.
//!
//! Source: mongodb/mongo src/mongo/db/index/sort_key_generator.cpp and btree_key_generator.cpp.

use std::cmp::Ordering;

use super::spec::SortPart;
use crate::error::{Error, Result};
use crate::value::{Component, Kind, Value, compare_sort_keys};

/// The state of one path's walk.
#[derive(Clone, Copy)]
enum Walk<'a> {
    /// Ended at this key.
    Done(Option<Value<'a>>),
    /// Continues below this value.
    Below(Option<Value<'a>>, &'a [Component]),
}

/// The keys of a row with these top-level values, one per part.
///
/// Errors: `BadValue` if two parts meet different arrays.
pub(super) fn least_keys<'a>(parts: &[&'a SortPart], values: &[Option<Value<'a>>]) -> Result<Vec<Option<Value<'a>>>> {
    let walks = parts.iter().zip(values).map(|(part, value)| Walk::Below(*value, part.path.rest())).collect();
    let mut least = None;
    expand(parts, walks, &mut least)?;
    Ok(least.unwrap_or_default())
}

fn expand<'a>(
    parts: &[&'a SortPart],
    mut walks: Vec<Walk<'a>>,
    least: &mut Option<Vec<Option<Value<'a>>>>,
) -> Result<()> {
    walks.iter_mut().for_each(advance);
    let mut arrays = walks.iter().filter_map(|walk| match walk {
        Walk::Below(array, _) => *array,
        Walk::Done(_) => None,
    });
    let Some(array) = arrays.next() else {
        let keys: Vec<_> = walks.iter().map(|walk| if let Walk::Done(key) = walk { *key } else { None }).collect();
        if least.as_ref().is_none_or(|best| compare_tuples(parts, &keys, best).is_lt()) {
            *least = Some(keys);
        }
        return Ok(());
    };
    // Two keys are from the same array if they are the same bytes of one cell, that is, at the same address.
    if arrays.any(|other| !std::ptr::eq(other.bytes(), array.bytes())) {
        return Err(Error::bad_value("Cannot sort with keys that are parallel arrays"));
    }
    let elements = array.elements().map(|(_, element)| Some(element));
    let elements: Vec<Option<Value<'a>>> = elements.collect();
    // An empty array still gives its row one key.
    let only = [None];
    for element in if elements.is_empty() { only.as_slice() } else { elements.as_slice() } {
        let inner = walks.iter().map(|walk| match *walk {
            Walk::Below(_, []) => Walk::Done(Some(element.unwrap_or(Value::UNDEFINED))),
            Walk::Below(_, rest) => match element.filter(|e| e.kind() == Kind::Object) {
                Some(object) => Walk::Below(Some(object), rest),
                None => Walk::Done(None),
            },
            done => done,
        });
        expand(parts, inner.collect(), least)?;
    }
    Ok(())
}

/// Walks through objects, and into array elements selected by number, up to the key or an array.
fn advance(walk: &mut Walk<'_>) {
    while let Walk::Below(value, rest) = *walk {
        let Some(found) = value else {
            *walk = Walk::Done(None);
            return;
        };
        *walk = match (rest.split_first(), found.kind()) {
            (Some((next, below)), Kind::Array) => {
                let selected = next.index().and_then(|at| found.as_array()?.iter().nth(at));
                let Some((_, selected)) = selected else { return };
                Walk::Below(Some(selected), below)
            }
            (None, Kind::Array) => return,
            (Some((next, below)), Kind::Object) => {
                Walk::Below(found.as_doc().and_then(|doc| doc.get(next.name())), below)
            }
            (Some(_), _) => Walk::Done(None),
            (None, _) => Walk::Done(Some(found)),
        };
    }
}

fn compare_tuples(parts: &[&SortPart], a: &[Option<Value<'_>>], b: &[Option<Value<'_>>]) -> Ordering {
    let mut each = parts.iter().zip(a.iter().zip(b)).map(|(part, (a, b))| {
        let order = compare_sort_keys(*a, *b, &part.collation);
        if part.ascending { order } else { order.reverse() }
    });
    each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::super::SortSpec;
    use super::*;
    use crate::value::{Collation, Doc, sort_key};
    use bson::{RawDocumentBuf, rawdoc};

    /// The key tuple in the shell's notation.
    fn keys(sort: RawDocumentBuf, doc: RawDocumentBuf) -> Result<String> {
        let spec = SortSpec::parse(Doc::parse(sort.as_bytes()).unwrap().as_value(), &Collation::default()).unwrap();
        let doc = Doc::parse(doc.as_bytes()).unwrap();
        let parts: Vec<&SortPart> = spec.parts().iter().collect();
        let values: Vec<_> = parts.iter().map(|part| doc.get(part.path.first())).collect();
        Ok(format!("{:?}", least_keys(&parts, &values)?))
    }

    #[test]
    fn paths_into_one_array_are_expanded_together() {
        let doc = || rawdoc! { "a": [{ "b": 2, "c": 1 }, { "b": 1, "c": 9 }, { "b": 1, "c": 3 }, 7] };
        assert_eq!(keys(rawdoc! { "a.b": -1, "a.c": 1 }, doc()).unwrap(), "[Some(2), Some(1)]");
        assert_eq!(keys(rawdoc! { "a.b": 1, "a.c": -1 }, doc()).unwrap(), "[None, None]");
        let doc = rawdoc! { "a": [{ "b": 1, "c": 9 }, { "b": 1, "c": 3 }] };
        assert_eq!(keys(rawdoc! { "a.b": 1, "a.c": -1 }, doc).unwrap(), "[Some(1), Some(9)]");
    }

    #[test]
    fn parallel_arrays_in_one_row_are_refused() {
        for doc in [
            rawdoc! { "a": { "b": [1], "c": [2] } },
            rawdoc! { "a": [{ "b": [1], "c": [2] }] },
            rawdoc! { "a": { "b": [], "c": [{}] } },
        ] {
            let error = keys(rawdoc! { "a.b": 1, "a.c": 1 }, doc).unwrap_err();
            assert!(error.message.contains("parallel arrays"));
        }
        assert!(keys(rawdoc! { "a": 1, "b": 1 }, rawdoc! { "a": [1], "b": [1] }).is_err());
    }

    #[test]
    fn an_array_beside_scalars_sorts_as_each_path_alone() {
        for doc in [
            rawdoc! { "a": [3, 1, [0]], "b": { "c": 4 } },
            rawdoc! { "a": [], "b": { "c": 4 } },
            rawdoc! { "a": 1, "b": [{ "c": [] }, 2] },
            rawdoc! { "a": { "x": 1 }, "b": [{ "c": 5 }, { "c": [7, 3] }, [{ "c": 1 }]] },
            rawdoc! { "b": 3 },
            rawdoc! { "b": [] },
        ] {
            for (a, b) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
                let alone = |path: &str, ascending| {
                    let doc = Doc::parse(doc.as_bytes()).unwrap();
                    let path = crate::value::Path::parse(path).unwrap();
                    format!("{:?}", sort_key(doc.get(path.first()), path.rest(), ascending, &Collation::default()))
                };
                assert_eq!(
                    keys(rawdoc! { "a": a, "b.c": b }, doc.clone()).unwrap(),
                    format!("[{}, {}]", alone("a", a == 1), alone("b.c", b == 1)),
                    "{doc:?} by {a}, {b}"
                );
            }
        }
    }

    #[test]
    fn a_number_selects_an_element_and_does_not_expand() {
        let doc = rawdoc! { "a": [{ "b": 2 }, { "b": 1 }], "c": [5, 4] };
        assert_eq!(keys(rawdoc! { "a.0.b": 1, "c": 1 }, doc).unwrap(), "[Some(2), Some(4)]");
    }
}
