//! Parses projections into a tree of paths.
//!
//! Source: mongodb/mongo src/mongo/db/query/projection_parser.cpp.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr, Globals};
use crate::value::{Doc, DocWriter, FieldSet, Kind, OwnedValue, Value, check_path, compare};

/// A parsed projection: the paths that it keeps or drops, and the fields that it computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    pub(super) inclusion: bool,
    pub(super) root: ProjectionNode,
    /// In document order, which is the order of the result.
    pub(super) computed: Vec<(Vec<Box<str>>, BoundExpr)>,
}

/// The fields below one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProjectionNode {
    /// By name, ascending.
    pub(super) children: Vec<(Box<str>, Child)>,
}

/// What a projection does with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// An inclusion keeps it, an exclusion drops it.
    Named,
    /// It is computed; the old value is dropped.
    Computed,
    /// Something below it is named or computed.
    Below(ProjectionNode),
}

impl Projection {
    /// A projection that keeps everything.
    pub fn all() -> Projection {
        Projection { inclusion: false, root: ProjectionNode::default(), computed: Vec::new() }
    }

    /// True if measurements are unchanged.
    pub fn is_all(&self) -> bool {
        !self.inclusion && self.root.children.is_empty() && self.computed.is_empty()
    }

    /// The top-level fields that `apply` reads to produce those in `wanted`.
    pub fn needed_fields(&self, wanted: &FieldSet) -> FieldSet {
        let mut needed = match wanted {
            _ if self.computed.iter().any(|(_, expr)| expr.fields().is_all()) => return FieldSet::All,
            _ if self.inclusion => FieldSet::Only(self.root.children.iter().map(|(name, _)| name.clone()).listed()),
            // A field that is set keeps its position if it existed, so it is read as well.
            _ => wanted.clone(),
        };
        match &mut needed {
            FieldSet::All => return needed,
            FieldSet::Only(names) => names.retain(|name| wanted.contains(name) && self.keeps_root(name)),
        }
        self.computed.iter().for_each(|(_, expr)| needed.add_all(expr.fields()));
        needed
    }

    /// A projection that keeps nothing, for counting rows.
    pub fn none() -> Projection {
        Projection { inclusion: true, ..Projection::all() }
    }

    /// Only the top-level fields with these names.
    pub fn of_roots(names: &[Box<str>]) -> Projection {
        let mut projection = Projection::none();
        for name in names {
            projection.root.insert(name, Child::Named);
        }
        projection
    }

    /// Parses the fields that `$addFields` sets. Only objects without operators are nested fields; everything else is
    /// an expression or a literal.
    ///
    /// Errors: as `parse`.
    pub fn parse_set(doc: Doc<'_>, globals: &Globals) -> Result<Projection> {
        let mut parser = ProjectionParser {
            globals,
            sets: true,
            inclusion: None,
            id: None,
            root: ProjectionNode::default(),
            computed: Vec::new(),
        };
        parser.fields(&mut Vec::new(), doc)?;
        Ok(Projection { computed: parser.computed, ..Projection::all() })
    }

    /// Sets one top-level field, and keeps all others.
    pub fn set_field(name: &str, value: BoundExpr) -> Projection {
        Projection { computed: vec![(vec![name.into()], value)], ..Projection::all() }
    }

    /// Only one top-level field.
    pub fn only(name: &str) -> Projection {
        let mut only = Projection::none();
        only.root.children.push((name.into(), Child::Named));
        only
    }

    /// The name of the pipeline stage for this projection.
    pub fn stage(&self) -> &'static str {
        if self.inclusion || self.computed.is_empty() { "$project" } else { "$addFields" }
    }

    /// Writes a field whose value parses to this projection.
    pub fn write(&self, name: &str, writer: &mut DocWriter) {
        writer.begin_doc(name);
        if self.inclusion && self.root.child("_id").is_none() {
            writer.bool("_id", false);
        }
        self.root.write("", self.inclusion, writer);
        self.computed.iter().for_each(|(path, expr)| expr.expr().write(&path.join("."), writer));
        writer.end();
    }

    /// Parses `{a: 1, "b.c": 1}`, `{a: 0}`, the nested form `{b: {c: 1}}`, and computed fields, `{c: {$add: ["$a",
    /// 1]}}`. An empty document keeps everything.
    ///
    /// Errors: 31253 and 31254 for a mix of inclusions and exclusions (except for `_id`); 31252 and 31310 for an
    /// expression or a literal in an exclusion; 31249 and 31250 for colliding paths; 51270 for an empty object; those
    /// of paths and expressions; `BadValue` for positional operators.
    pub fn parse(doc: Doc<'_>, globals: &Globals) -> Result<Projection> {
        let mut parser = ProjectionParser {
            globals,
            sets: false,
            inclusion: None,
            id: None,
            root: ProjectionNode::default(),
            computed: Vec::new(),
        };
        parser.fields(&mut Vec::new(), doc)?;
        let ProjectionParser { inclusion, id, mut root, computed, .. } = parser;
        // A projection of only `_id` is an inclusion or an exclusion according to it.
        let inclusion = inclusion.or(id).unwrap_or(false);
        if id.is_some() && root.child("_id").is_some() {
            return Err(Error::new(ErrorCode::Location31250, "Path collision at _id"));
        }
        // An inclusion keeps `_id` unless it excludes it; an exclusion drops it only if it names it.
        let id_named = if inclusion { id.unwrap_or(true) } else { id == Some(false) };
        if id_named && root.child("_id").is_none() {
            root.insert("_id", Child::Named);
        }
        Ok(Projection { inclusion, root, computed })
    }
}

struct ProjectionParser<'g> {
    globals: &'g Globals,
    /// True if every field is computed.
    sets: bool,
    /// Whether the first field other than `_id` is an inclusion.
    inclusion: Option<bool>,
    /// Whether `_id` is included.
    id: Option<bool>,
    root: ProjectionNode,
    computed: Vec<(Vec<Box<str>>, BoundExpr)>,
}

impl ProjectionParser<'_> {
    /// Parses the fields of one level; `above` are the path components that lead to it.
    fn fields<'a>(&mut self, above: &mut Vec<&'a str>, doc: Doc<'a>) -> Result<()> {
        for (name, value) in doc {
            let depth = above.len();
            above.extend(name.split('.'));
            self.field(above, value)?;
            above.truncate(depth);
        }
        Ok(())
    }

    fn field<'a>(&mut self, path: &mut Vec<&'a str>, value: Value<'a>) -> Result<()> {
        check(path)?;
        if let Some(doc) = value.as_doc() {
            return match doc.iter().next() {
                None if self.sets => self.compute(path, value, ErrorCode::BadValue),
                None => Err(Error::new(
                    ErrorCode::Location51270,
                    format!(
                        "An empty sub-projection is not a valid value. Found empty object at path {}",
                        path.join(".")
                    ),
                )),
                Some((name, _)) if name.starts_with('$') => self.compute(path, value, ErrorCode::Location31252),
                Some(_) => self.fields(path, doc),
            };
        }
        let included = match value.kind() {
            _ if self.sets => return self.compute(path, value, ErrorCode::BadValue),
            Kind::Bool => value.as_bool() == Some(true),
            kind if kind.is_number() => compare(value, OwnedValue::int32(0).view()).is_ne(),
            _ => return self.compute(path, value, ErrorCode::Location31310),
        };
        if path.as_slice() == ["_id"] {
            self.id = Some(included);
            return Ok(());
        }
        match *self.inclusion.get_or_insert(included) {
            true if !included => Err(Error::new(
                ErrorCode::Location31254,
                format!("Cannot do exclusion on field {} in inclusion projection", path.join(".")),
            )),
            false if included => Err(Error::new(
                ErrorCode::Location31253,
                format!("Cannot do inclusion on field {} in exclusion projection", path.join(".")),
            )),
            _ => self.root.add(path, path, Child::Named),
        }
    }

    /// A field whose value is an expression or a literal; `refusal` is the error code for it in an exclusion.
    fn compute(&mut self, path: &[&str], value: Value<'_>, refusal: ErrorCode) -> Result<()> {
        if !*self.inclusion.get_or_insert(true) {
            let message = format!("Cannot use an expression on field {} in an exclusion projection", path.join("."));
            return Err(Error::new(refusal, message));
        }
        // With numbers only, this is the `$slice` of finds, which slices the field itself.
        if let Some(slice) = value.as_doc().and_then(|doc| doc.get("$slice"))
            && slice.as_array().map_or(slice.kind().is_number(), |all| all.iter().all(|(_, n)| n.kind().is_number()))
        {
            return Err(Error::new(
                ErrorCode::InvalidPipelineOperator,
                "'$slice' takes the array as well: ['$field', 2]",
            ));
        }
        let expr = BoundExpr::new(Expr::parse(value, self.globals)?, self.globals.clone());
        self.computed.push((path.iter().map(|name| (*name).into()).listed(), expr));
        self.root.add(path, path, Child::Computed)
    }
}

impl ProjectionNode {
    /// What the projection does with the field `name`.
    pub(super) fn child(&self, name: &str) -> Option<&Child> {
        self.children.get(self.place(name).ok()?).map(|(_, child)| child)
    }

    /// True if a field at or below this node is computed.
    pub(super) fn computes(&self) -> bool {
        self.children.iter().any(|(_, child)| match child {
            Child::Named => false,
            Child::Computed => true,
            Child::Below(node) => node.computes(),
        })
    }

    /// The field `name`, inserted as `child` if it is new.
    fn insert(&mut self, name: &str, child: Child) -> &mut Child {
        let at = self.place(name).unwrap_or_else(|at| {
            self.children.insert(at, (name.into(), child));
            at
        });
        // Both the found position and the inserted one exist.
        #[allow(clippy::indexing_slicing)]
        &mut self.children[at].1
    }

    /// Writes a field for each named path; `above` is the path to this node.
    fn write(&self, above: &str, inclusion: bool, writer: &mut DocWriter) {
        for (name, child) in &self.children {
            let path = [above, name].concat();
            match child {
                Child::Named => {
                    writer.bool(&path, inclusion);
                }
                Child::Computed => {}
                Child::Below(node) => node.write(&(path + "."), inclusion, writer),
            }
        }
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.children.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// Adds a path: `rest` are its components below this node, `path` is all of it, and `end` says what happens to its
    /// last field.
    fn add(&mut self, rest: &[&str], path: &[&str], end: Child) -> Result<()> {
        let Some((name, below)) = rest.split_first() else { return Ok(()) };
        if below.is_empty() {
            if self.child(name).is_some() {
                return Err(Error::new(ErrorCode::Location31250, format!("Path collision at {}", path.join("."))));
            }
            self.insert(name, end);
            return Ok(());
        }
        match self.insert(name, Child::Below(ProjectionNode::default())) {
            Child::Below(node) => node.add(below, path, end),
            _ => Err(Error::new(
                ErrorCode::Location31249,
                format!("Path collision at {} remaining portion {}", path.join("."), below.join(".")),
            )),
        }
    }
}

fn check(path: &[&str]) -> Result<()> {
    if path.contains(&"$") {
        return Err(not_supported(path, "the positional operator"));
    }
    check_path(&path.join("."))?;
    if path.len() > DOCUMENT_DEPTH_MAX {
        return Err(Error::bad_value(format!("A projected path has more than {DOCUMENT_DEPTH_MAX} components")));
    }
    Ok(())
}

fn not_supported(path: &[&str], what: &str) -> Error {
    Error::bad_value(format!("Projection of '{}': {what} is not supported yet", path.join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use crate::value::DocWriter;
    use bson::{RawDocumentBuf, rawdoc};

    fn parse(spec: &RawDocumentBuf) -> Result<Projection> {
        Projection::parse(Doc::parse(spec.as_bytes()).unwrap(), &globals())
    }

    fn code(spec: RawDocumentBuf) -> ErrorCode {
        parse(&spec).unwrap_err().code
    }

    fn one_field(name: &str) -> RawDocumentBuf {
        let mut writer = DocWriter::new();
        writer.int32(name, 1);
        RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
    }

    #[test]
    fn the_nested_form_equals_the_dotted_one() {
        assert_eq!(
            parse(&rawdoc! { "a": { "b": 1, "c.d": 1 } }).unwrap(),
            parse(&rawdoc! { "a.b": 1, "a.c.d": 1 }).unwrap()
        );
    }

    #[test]
    fn mixing_inclusion_and_exclusion_is_refused_except_for_the_id() {
        assert_eq!(code(rawdoc! { "a": 1, "b": 0 }), ErrorCode::Location31254);
        assert_eq!(code(rawdoc! { "a": 0, "b": 1 }), ErrorCode::Location31253);
        assert_eq!(code(rawdoc! { "a": { "b": 0, "c": 1 } }), ErrorCode::Location31253);
        assert_eq!(code(rawdoc! { "a": 1, "_id.x": 0 }), ErrorCode::Location31254);
    }

    #[test]
    fn colliding_paths_are_refused() {
        assert_eq!(code(rawdoc! { "a": 1, "a.b": 1 }), ErrorCode::Location31249);
        assert_eq!(code(rawdoc! { "a.b": 1, "a": 1 }), ErrorCode::Location31250);
        assert_eq!(code(rawdoc! { "a.b": 1, "a": { "b": 1 } }), ErrorCode::Location31250);
        assert_eq!(code(rawdoc! { "_id": 1, "_id.a": 1 }), ErrorCode::Location31250);
    }

    #[test]
    fn empty_components_empty_objects_and_positional_operators_are_refused() {
        assert_eq!(code(one_field("")), ErrorCode::Location40352);
        for name in [".a", "a..b"] {
            assert_eq!(code(one_field(name)), ErrorCode::Location15998, "{name:?}");
        }
        assert_eq!(code(one_field("a.")), ErrorCode::Location40353);
        assert_eq!(code(one_field("a.$b")), ErrorCode::Location16410);
        assert_eq!(code(rawdoc! { "a": {} }), ErrorCode::Location51270);
        assert_eq!(code(rawdoc! { "a.$": 1 }), ErrorCode::BadValue);
        for operator in
            [rawdoc! { "$slice": 1 }, rawdoc! { "$elemMatch": { "x": 1 } }, rawdoc! { "$meta": "textScore" }]
        {
            assert_eq!(code(rawdoc! { "a": operator }), ErrorCode::InvalidPipelineOperator);
        }
    }

    #[test]
    fn a_computed_field_makes_an_inclusion_and_is_refused_in_an_exclusion() {
        assert!(parse(&rawdoc! { "a": "$b" }).unwrap().inclusion);
        assert_eq!(code(rawdoc! { "a": "$b", "c": 0 }), ErrorCode::Location31254);
        assert_eq!(code(rawdoc! { "c": 0, "a": { "$add": [1, 2] } }), ErrorCode::Location31252);
        assert_eq!(code(rawdoc! { "c": 0, "a": "text" }), ErrorCode::Location31310);
        assert_eq!(code(rawdoc! { "a": "$b", "a.c": 1 }), ErrorCode::Location31249);
        assert_eq!(code(rawdoc! { "a.c": "$b", "a": "$d" }), ErrorCode::Location31250);
        assert_eq!(code(rawdoc! { "a": { "$nothing": 1 } }), ErrorCode::InvalidPipelineOperator);
    }

    #[test]
    fn a_path_deeper_than_any_document_is_refused() {
        assert_eq!(code(one_field(&("a.".repeat(100_000) + "a"))), ErrorCode::BadValue);
    }

    #[test]
    fn an_inclusion_needs_the_roots_of_its_paths_and_an_exclusion_everything() {
        let needed = parse(&rawdoc! { "a.b": 1, "c": 1 }).unwrap().needed_fields(&FieldSet::All);
        assert!(needed.contains("a") && needed.contains("c") && needed.contains("_id") && !needed.contains("b"));
        assert_eq!(parse(&rawdoc! { "a": 0 }).unwrap().needed_fields(&FieldSet::All), FieldSet::All);
        let needed =
            parse(&rawdoc! { "_id": 0, "x": { "$add": ["$a.b", "$c"] } }).unwrap().needed_fields(&FieldSet::All);
        assert!(needed.contains("a") && needed.contains("c") && !needed.contains("_id"));
        assert_eq!(parse(&rawdoc! { "x": "$$ROOT" }).unwrap().needed_fields(&FieldSet::All), FieldSet::All);
    }
}
