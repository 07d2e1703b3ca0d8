//! Dotted paths: how predicates, sorts and indexes name the values that they read.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

use super::collation::Collation;
use super::doc::Doc;
use super::raw::{Kind, Value};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;

/// A dotted path, split once. A clone shares it: filters and sorts are cloned several times before a query runs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Rc<SplitText>);

#[derive(PartialEq, Eq, Hash)]
struct SplitText {
    text: Box<str>,
    components: Vec<Component>,
}

/// A name between the dots of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    name: Box<str>,
    index: Option<usize>,
}

impl Component {
    /// The name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position in an array, if the name is a number as BSON writes array positions (without leading zeros).
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// A name.
    pub fn parse(name: &str) -> Component {
        let plain = name.bytes().all(|b| b.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
        Component { name: name.into(), index: if plain { name.parse().ok() } else { None } }
    }
}

impl Path {
    /// Splits `text` at its dots.
    ///
    /// Lenient, because matching is: the path "" names the field "", and components may be empty. No path can reach a
    /// field whose stored name contains a dot.
    ///
    /// Errors: `BadValue` for a NUL byte, which no name can contain.
    pub fn parse(text: &str) -> Result<Path> {
        if text.as_bytes().contains(&0) {
            return Err(Error::bad_value(format!("Field path \"{text}\" must not contain a NUL byte")));
        }
        let components = text.split('.').map(Component::parse).listed();
        Ok(Path(Rc::new(SplitText { text: text.into(), components })))
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Every component; there is at least one.
    pub fn components(&self) -> &[Component] {
        &self.0.components
    }

    /// The name of the top-level field.
    pub fn first(&self) -> &str {
        self.components().first().map_or("", Component::name)
    }

    /// The components below the top-level field.
    pub fn rest(&self) -> &[Component] {
        self.components().get(1..).unwrap_or_default()
    }

    /// True if the path has no dot.
    pub fn is_top_level(&self) -> bool {
        self.rest().is_empty()
    }

    /// True if `other` is this path or lies below it.
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        other.components().starts_with(self.components())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_str())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Checks the path of a field in an aggregation, a sort or a projection, which are stricter than filters.
///
/// Errors: 40352 for "", 40353 for a dot at its end, and those of [`check_name`].
pub fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::new(ErrorCode::Location40352, "A field path must not be empty"));
    }
    if path.ends_with('.') {
        return Err(Error::new(ErrorCode::Location40353, format!("Field path '{path}' must not end with a dot")));
    }
    path.split('.').try_for_each(check_name)
}

/// Checks one component of such a path.
///
/// Errors: 15998 for an empty name, 16410 for one that begins with `$`, 16411 for one with a NUL.
pub fn check_name(name: &str) -> Result<()> {
    let (code, problem) = match name.bytes().next() {
        None => (ErrorCode::Location15998, "must not be empty"),
        Some(b'$') => (ErrorCode::Location16410, "must not begin with '$'"),
        _ if name.contains('\0') => (ErrorCode::Location16411, "must not contain a NUL byte"),
        _ => return Ok(()),
    };
    Err(Error::new(code, format!("A name in a field path {problem}: '{name}'")))
}

/// How a walk treats an array at the end of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Visits each element, then the array: comparisons, `$in`, `$regex`, `$mod`, `$type`.
    Elements,
    /// Visits only the array: operators on the field itself, such as `$size`, `$elemMatch`, `$exists`.
    Whole,
}

/// Calls `visit` with every value that `path` reaches in `doc`, until a call answers true. Returns whether one did.
///
/// An array before the end of the path is expanded: the walk continues in its objects and skips its other elements. A
/// numeric component also selects the element at that position, as it is: an array selected by the last component is
/// not expanded. Arrays directly inside arrays are reached by position only. At the end of the path `leaf` decides. A
/// missing leaf, or a scalar in the way, is visited as `None`, once per branch.
pub fn walk_doc<'a>(doc: Doc<'a>, path: &Path, leaf: Leaf, visit: &mut dyn FnMut(Option<Value<'a>>) -> bool) -> bool {
    walk_from_value(doc.get(path.first()), path.rest(), leaf, visit)
}

/// `walk_doc` from the value of the path's top-level field, which the caller already has.
pub fn walk_from_value<'a>(
    value: Option<Value<'a>>,
    rest: &[Component],
    leaf: Leaf,
    visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
) -> bool {
    let Some(found) = value else { return visit(None) };
    let Some((next, below)) = rest.split_first() else {
        let elements = if leaf == Leaf::Elements { found.as_array() } else { None };
        return elements.is_some_and(|array| array.iter().any(|(_, e)| visit(Some(e)))) || visit(value);
    };
    match found.kind() {
        Kind::Object => walk_from_value(found.as_doc().and_then(|doc| doc.get(next.name())), below, leaf, visit),
        Kind::Array => walk_elements(found, rest, leaf, visit),
        _ => visit(None),
    }
}

/// Expands an array before the end of the path.
fn walk_elements<'a>(
    array: Value<'a>,
    rest: &[Component],
    leaf: Leaf,
    visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
) -> bool {
    let Some((next, below)) = rest.split_first() else { return false };
    array.elements().enumerate().any(|(position, (_, element))| {
        let kind = element.kind();
        if kind == Kind::Object && walk_from_value(Some(element), rest, leaf, visit) {
            return true;
        }
        if next.index() != Some(position) {
            return false;
        }
        match kind {
            _ if below.is_empty() => visit(Some(element)),
            Kind::Object | Kind::Array => walk_from_value(Some(element), below, leaf, visit),
            _ => false,
        }
    })
}

/// The sort key of a document: the least (ascending) or greatest (descending) value at a path.
///
/// `value` is the path's top-level field, `rest` the path below it. Arrays are expanded once per level; an empty array
/// at the end sorts as undefined. `None` means missing. Compare keys with `compare_sort_keys`. A numeric component
/// selects the element at that position if there is one; otherwise it is a field name of the elements.
pub fn sort_key<'a>(
    value: Option<Value<'a>>,
    rest: &[Component],
    ascending: bool,
    collation: &Collation,
) -> Option<Value<'a>> {
    let wanted = if ascending { Ordering::Less } else { Ordering::Greater };
    let mut best = Best { key: None, wanted, collation };
    best.visit(value, rest);
    best.key.flatten()
}

/// The order of sort keys: BSON order, except that a missing value equals null.
pub fn compare_sort_keys(a: Option<Value<'_>>, b: Option<Value<'_>>, collation: &Collation) -> Ordering {
    collation.compare(a.unwrap_or(Value::NULL), b.unwrap_or(Value::NULL))
}

struct Best<'a, 'c> {
    /// The outer option says whether any key was seen yet; the inner one is the key.
    key: Option<Option<Value<'a>>>,
    wanted: Ordering,
    collation: &'c Collation,
}

impl<'a> Best<'a, '_> {
    fn offer(&mut self, key: Option<Value<'a>>) {
        if self.key.is_none_or(|best| compare_sort_keys(key, best, self.collation) == self.wanted) {
            self.key = Some(key);
        }
    }

    fn visit(&mut self, value: Option<Value<'a>>, rest: &[Component]) {
        let Some(array) = value.and_then(Value::as_array) else {
            return self.visit_element(value, rest);
        };
        let Some((next, below)) = rest.split_first() else {
            if array.is_empty() {
                self.offer(Some(Value::UNDEFINED));
            }
            return array.iter().for_each(|(_, element)| self.offer(Some(element)));
        };
        if let Some((_, selected)) = next.index().and_then(|position| array.iter().nth(position)) {
            return self.visit(Some(selected), below);
        }
        if array.is_empty() {
            self.offer(None);
        }
        array.iter().for_each(|(_, element)| self.visit_element(Some(element), rest));
    }

    /// The walk continues in objects. Any other value before the end of the path hides it, and so does an array inside
    /// an array.
    fn visit_element(&mut self, value: Option<Value<'a>>, rest: &[Component]) {
        let Some((next, below)) = rest.split_first() else { return self.offer(value) };
        match value.and_then(Value::as_doc) {
            Some(doc) => self.visit(doc.get(next.name()), below),
            None => self.offer(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::object;
    use super::super::{OwnedValue, equal};
    use super::*;
    use bson::{RawDocumentBuf, rawdoc};

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    /// The values that the walk visits, in the shell's notation.
    fn seen_with(leaf: Leaf, doc: &RawDocumentBuf, text: &str) -> Vec<String> {
        let value = object(doc);
        let mut seen = Vec::new();
        let stopped = walk_doc(value.view().as_doc().unwrap(), &path(text), leaf, &mut |v| {
            seen.push(v.map_or("nothing".into(), |v| format!("{v:?}")));
            false
        });
        assert!(!stopped);
        seen
    }

    fn seen(doc: &RawDocumentBuf, text: &str) -> Vec<String> {
        seen_with(Leaf::Elements, doc, text)
    }

    fn matches_null(doc: &RawDocumentBuf, text: &str) -> bool {
        let value = object(doc);
        walk_doc(value.view().as_doc().unwrap(), &path(text), Leaf::Elements, &mut |v| {
            v.is_none_or(|v| equal(v, Value::NULL))
        })
    }

    #[test]
    fn a_path_is_split_at_its_dots_and_knows_its_numbers() {
        let p = path("a.0.b.10.01.x1");
        let parts: Vec<_> = p.components().iter().map(|c| (c.name(), c.index())).collect();
        assert_eq!(parts, [("a", None), ("0", Some(0)), ("b", None), ("10", Some(10)), ("01", None), ("x1", None)]);
        assert_eq!((p.first(), p.rest().len(), p.is_top_level()), ("a", 5, false));
        assert_eq!(path("a.99999999999999999999999").rest()[0].index(), None);
    }

    #[test]
    fn empty_components_are_kept_and_the_empty_path_is_the_empty_field_name() {
        assert_eq!(seen(&rawdoc! { "": 1, "a": 2 }, ""), ["1"]);
        assert_eq!(seen(&rawdoc! { "a": { "": { "b": 3 } } }, "a..b"), ["3"]);
        assert!(path("").is_top_level());
    }

    #[test]
    fn a_path_is_refused_where_a_name_in_it_is_empty_or_looks_like_a_variable() {
        for path in ["a", "a.b", "a.0", "a$.b$"] {
            check_path(path).unwrap();
        }
        for (path, code) in [
            ("", ErrorCode::Location40352),
            (".", ErrorCode::Location40353),
            ("a.", ErrorCode::Location40353),
            ("a..", ErrorCode::Location40353),
            (".a", ErrorCode::Location15998),
            ("a..b", ErrorCode::Location15998),
            ("$a", ErrorCode::Location16410),
            ("a.$b", ErrorCode::Location16410),
            ("a.b\0", ErrorCode::Location16411),
        ] {
            assert_eq!(check_path(path).unwrap_err().code, code, "{path:?}");
        }
    }

    #[test]
    fn a_path_with_a_nul_byte_is_refused() {
        assert!(Path::parse("a\0b").is_err());
    }

    #[test]
    fn a_path_is_a_prefix_of_itself_and_of_paths_below_it() {
        assert!(path("a.b").is_prefix_of(&path("a.b")));
        assert!(path("a.b").is_prefix_of(&path("a.b.c")));
        assert!(!path("a.b").is_prefix_of(&path("a.bc")));
        assert!(!path("a.b").is_prefix_of(&path("a")));
    }

    #[test]
    fn a_scalar_at_the_end_of_a_path_is_visited_once() {
        assert_eq!(seen(&rawdoc! { "a": { "b": { "c": 5 } } }, "a.b.c"), ["5"]);
    }

    #[test]
    fn an_array_at_the_end_of_a_path_is_visited_by_element_and_then_whole() {
        assert_eq!(seen(&rawdoc! { "a": [5, [6, 7]] }, "a"), ["5", "[6, 7]", "[5, [6, 7]]"]);
        assert_eq!(seen(&rawdoc! { "a": { "b": [] } }, "a.b"), ["[]"]);
        assert_eq!(seen_with(Leaf::Whole, &rawdoc! { "a": [5, 6] }, "a"), ["[5, 6]"]);
    }

    #[test]
    fn an_array_inside_a_path_is_expanded_and_its_scalars_are_skipped() {
        let doc = rawdoc! { "a": [{ "b": 5 }, 3, {}, { "b": [9, 11] }, { "b": 7 }] };
        assert_eq!(seen(&doc, "a.b"), ["5", "nothing", "9", "11", "[9, 11]", "7"]);
        assert_eq!(seen_with(Leaf::Whole, &doc, "a.b"), ["5", "nothing", "[9, 11]", "7"]);
    }

    #[test]
    fn arrays_directly_in_arrays_are_not_expanded() {
        assert!(seen(&rawdoc! { "a": [[{ "b": 1 }]] }, "a.b").is_empty());
    }

    #[test]
    fn null_matches_a_missing_leaf_of_an_object_and_of_a_scalar() {
        assert!(matches_null(&rawdoc! { "a": [{ "b": 1 }, {}] }, "a.b"));
        assert!(matches_null(&rawdoc! { "a": 5 }, "a.b"));
        assert!(matches_null(&rawdoc! {}, "a.b"));
        assert!(matches_null(&rawdoc! { "a": { "b": [1, null] } }, "a.b"));
    }

    #[test]
    fn null_does_not_match_an_array_without_objects() {
        assert!(!matches_null(&rawdoc! { "a": [] }, "a.b"));
        assert!(!matches_null(&rawdoc! { "a": [1] }, "a.b"));
        assert!(!matches_null(&rawdoc! { "a": [{ "b": 1 }] }, "a.b"));
    }

    #[test]
    fn a_number_selects_by_position_and_by_name() {
        assert_eq!(seen(&rawdoc! { "a": [5, 7, 3] }, "a.1"), ["7"]);
        assert_eq!(seen(&rawdoc! { "a": { "1": 4 } }, "a.1"), ["4"]);
        assert_eq!(seen(&rawdoc! { "a": [5, { "1": 4 }, 3] }, "a.1"), ["4", "{ 1: 4 }"]);
        assert!(seen(&rawdoc! { "a": [5] }, "a.1").is_empty());
        assert!(seen(&rawdoc! { "a": [5, 6] }, "a.01").is_empty());
    }

    #[test]
    fn an_array_selected_by_the_last_component_is_visited_whole() {
        assert_eq!(seen(&rawdoc! { "a": [5, [2, 4]] }, "a.1"), ["[2, 4]"]);
    }

    #[test]
    fn a_selected_element_continues_with_the_rest_of_the_path() {
        assert_eq!(seen(&rawdoc! { "a": [5, { "b": 4 }, 3] }, "a.1.b"), ["nothing", "4"]);
        assert_eq!(seen(&rawdoc! { "a": [5, [{ "b": 4 }], 3] }, "a.1.b"), ["4"]);
        assert_eq!(seen(&rawdoc! { "a": [[1, [2, 3]]] }, "a.0.1"), ["[2, 3]"]);
        assert!(seen(&rawdoc! { "a": [5, 6] }, "a.1.b").is_empty());
    }

    #[test]
    fn a_field_name_with_a_dot_is_not_found_by_a_path() {
        assert_eq!(seen(&rawdoc! { "x.y": 3 }, "x.y"), ["nothing"]);
    }

    #[test]
    fn the_visitor_can_stop_the_walk() {
        let value = object(&rawdoc! { "a": [{ "b": 1 }, { "b": [2, 3] }] });
        let mut count = 0;
        assert!(walk_doc(value.view().as_doc().unwrap(), &path("a.b"), Leaf::Elements, &mut |v| {
            count += 1;
            v.and_then(Value::as_i32) == Some(2)
        }));
        assert_eq!(count, 2);
    }

    #[test]
    fn a_column_walks_from_the_value_of_the_top_level_field() {
        let top = object(&rawdoc! { "b": 5 });
        let p = path("a.b");
        assert!(walk_from_value(Some(top.view()), p.rest(), Leaf::Elements, &mut |v| {
            v.and_then(Value::as_i32) == Some(5)
        }));
        assert!(walk_from_value(None, p.rest(), Leaf::Elements, &mut |v| v.is_none()));
    }

    fn key(doc: &RawDocumentBuf, text: &str, ascending: bool) -> String {
        let value = object(doc);
        let p = path(text);
        sort_key(value.view().as_doc().unwrap().get(p.first()), p.rest(), ascending, &Collation::default())
            .map_or("missing".into(), |v| format!("{v:?}"))
    }

    #[test]
    fn an_array_sorts_by_its_least_or_its_greatest_element() {
        let doc = rawdoc! { "a": [3, [0], 1, 2] };
        assert_eq!((key(&doc, "a", true), key(&doc, "a", false)), ("1".into(), "[0]".into()));
        let doc = rawdoc! { "a": [{ "b": [4, 9] }, { "b": 6 }] };
        assert_eq!((key(&doc, "a.b", true), key(&doc, "a.b", false)), ("4".into(), "9".into()));
    }

    #[test]
    fn an_empty_array_sorts_as_undefined_below_null() {
        let doc = rawdoc! { "a": [{ "b": [] }, { "b": null }] };
        assert_eq!(key(&doc, "a.b", true), format!("{:?}", Value::UNDEFINED));
        assert_eq!(key(&doc, "a.b", false), "null");
        assert_eq!(compare_sort_keys(Some(Value::UNDEFINED), None, &Collation::default()), Ordering::Less);
    }

    #[test]
    fn a_path_without_a_value_sorts_as_missing_and_ties_with_null() {
        for doc in [rawdoc! {}, rawdoc! { "a": 5 }, rawdoc! { "a": [] }, rawdoc! { "a": [1, { "b": 2 }] }] {
            assert_eq!(key(&doc, "a.b", true), "missing", "{doc:?}");
        }
        assert_eq!(compare_sort_keys(None, Some(Value::NULL), &Collation::default()), Ordering::Equal);
        assert_eq!(compare_sort_keys(None, Some(OwnedValue::int32(-1).view()), &Collation::default()), Ordering::Less);
    }

    #[test]
    fn an_empty_array_inside_a_path_counts_as_missing_beside_other_branches() {
        let doc = rawdoc! { "a": [{ "b": { "c": 5 } }, { "b": [] }] };
        assert_eq!((key(&doc, "a.b.c", true), key(&doc, "a.b.c", false)), ("missing".into(), "5".into()));
    }

    #[test]
    fn a_number_in_a_sort_path_is_a_position_if_there_is_an_element() {
        assert_eq!(key(&rawdoc! { "a": [7, 1] }, "a.0", true), "7");
        assert_eq!(key(&rawdoc! { "a": [[8, 2]] }, "a.0", true), "2");
        assert_eq!(key(&rawdoc! { "a": { "0": 3 } }, "a.0", true), "3");
        assert_eq!(key(&rawdoc! { "a": [{ "5": 1 }, { "5": 0 }] }, "a.5", true), "0");
    }
}
