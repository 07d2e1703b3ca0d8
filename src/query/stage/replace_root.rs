//! `$replaceRoot` and `$replaceWith`: objects become rows.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_replace_root.cpp.

use std::rc::Rc;

use super::finds::object;
use super::model::Others;
use super::parse::{FindPart, PipelineParser};
use super::running::Stage;
use super::spec::Spec;
use crate::block::{Block, Column, ColumnBuilder, ColumnData, DocPivot};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Expr, Globals, Variable};
use crate::query::plan::Projection;
use crate::value::{Doc, DocWriter, FieldSet, Kind, Value};

impl PipelineParser<'_> {
    /// `$replaceWith`. With an object of fields it is a projection.
    ///
    /// Errors: those of expressions.
    pub fn replace_with(&mut self, new_root: Value<'_>) -> Result<()> {
        let root = self.expr(new_root)?;
        let spec = match Root::of(root.expr(), root.globals()) {
            Root::Fields(projection) => {
                self.find(FindPart::Projection).projection = projection;
                return Ok(());
            }
            columns => RootSpec { root, columns },
        };
        let mut options = DocWriter::new();
        options.value("newRoot", new_root);
        self.push(spec, "$replaceRoot", options.finish().view().as_value());
        Ok(())
    }

    /// `$replaceRoot`.
    ///
    /// Errors: 40229 to 40231, and those of expressions.
    pub fn replace_root(&mut self, argument: Value<'_>) -> Result<()> {
        let message = "The $replaceRoot stage specification must be an object";
        let options = object(argument, ErrorCode::Location40229, message)?;
        if options.iter().any(|(name, _)| name != "newRoot") {
            return Err(Error::new(ErrorCode::Location40230, "Unknown option of $replaceRoot"));
        }
        let message = "$replaceRoot needs newRoot";
        self.replace_with(options.get("newRoot").ok_or_else(|| Error::new(ErrorCode::Location40231, message))?)
    }
}

/// An expression that gives objects, by how their fields become columns.
enum Root {
    /// The row itself.
    Row,
    /// An object of fields, or several that are merged.
    Fields(Projection),
    /// Objects that are merged.
    Merged(Vec<Root>),
    /// Any other expression.
    Values(BoundExpr),
}

impl Root {
    fn of(expr: &Expr, globals: &Globals) -> Root {
        let bound = |expr: &Expr| BoundExpr::new(expr.clone(), globals.clone());
        if matches!(expr, Expr::Field(Variable::Root, path) if path.is_empty()) {
            return Root::Row;
        }
        let mut fields = Vec::new();
        if add_fields(expr, &mut fields).is_some() {
            let fields = fields.into_iter().map(|(name, expr)| (name, bound(&expr)));
            if let Some(projection) = Projection::replacing(fields.listed()) {
                return Root::Fields(projection);
            }
        }
        match merged(expr) {
            // A single argument may be an array of objects.
            Some(parts @ [_, _, ..]) => Root::Merged(parts.iter().map(|part| Root::of(part, globals)).listed()),
            _ => Root::Values(bound(expr)),
        }
    }

    /// As `Spec::reads`.
    fn reads(&self, behind: &FieldSet, needed: &mut FieldSet) {
        match self {
            Root::Row => needed.add_all(behind),
            Root::Fields(projection) => needed.add_all(&projection.needed_fields(&FieldSet::All)),
            Root::Values(expr) => needed.add_all(expr.fields()),
            Root::Merged(parts) => parts.iter().for_each(|part| part.reads(behind, needed)),
        }
    }

    /// The objects for `rows`, as rows; `is_part` as for `of_objects`. `None` if only single rows tell what the objects are, or in
    /// which order their fields stand.
    ///
    /// Errors: those of operators and of `of_objects`.
    fn columns(&self, rows: &Block, is_part: bool) -> Result<Option<Block>> {
        match self {
            Root::Row => Ok(Some(rows.clone())),
            Root::Fields(projection) => projection.apply(rows.clone()).map(Some),
            Root::Values(expr) => of_objects(&expr.column(rows)?, is_part),
            Root::Merged(parts) => {
                let mut merged = Block::new(rows.rows());
                for part in parts {
                    let Some(part) = part.columns(rows, true)? else { return Ok(None) };
                    for (name, column) in part.columns() {
                        let Some(column) = over(merged.column(name), column) else { return Ok(None) };
                        merged.set_column(name, column);
                    }
                }
                Ok(Some(merged))
            }
        }
    }
}

/// Adds the fields of an object, or of several that are merged. `None` if they are not written out. If one replaces
/// another, which depends on whether it is missing, `Projection::replacing` sees a name twice.
fn add_fields(expr: &Expr, all: &mut Vec<(Box<str>, Expr)>) -> Option<()> {
    if let Expr::Object(fields) = expr {
        all.extend_from_slice(fields);
        return Some(());
    }
    merged(expr)?.iter().try_for_each(|part| add_fields(part, all))
}

/// What `$mergeObjects` merges.
fn merged(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Call(operator, parts) if operator.name() == "$mergeObjects" => Some(parts),
        _ => None,
    }
}

/// The cells of `column`, and where it has none, those of `before`. `None` if `before` lacks cells: a field that only
/// `column` has stands behind the others, and any other in its old place.
fn over(before: Option<&Column>, column: &Column) -> Option<Column> {
    let Some(before) = before else { return Some(column.clone()) };
    if before.presence().is_some() {
        return None;
    }
    if column.presence().is_none() {
        return Some(column.clone());
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut cells = ColumnBuilder::with_capacity(column.len());
    for row in 0..column.len() {
        let cell = column.value(row, &mut new).or_else(|| before.value(row, &mut old));
        cell.into_iter().for_each(|cell| cells.push(cell));
    }
    Some(cells.finish())
}

/// The rows whose fields are those of the objects in `column`. As a part of others, a cell that is null or missing is an object
/// without fields, and the result is `None` if another cell is no object, or one that names a field twice.
///
/// Errors: 40228 if a cell is no object, 12602102 if an object names a field twice.
fn of_objects(column: &Column, is_part: bool) -> Result<Option<Block>> {
    let block = match (column.data(), column.presence()) {
        (ColumnData::Objects(objects), None) => objects.fields().map(|fields| {
            let mut block = Block::new(column.len());
            fields.into_iter().for_each(|(name, field)| block.set_column(name, field));
            block
        }),
        // An entry that no row has may be no object.
        (ColumnData::Dictionary(index, values), None) if values.len() < index.len() => {
            of_objects(values, is_part).ok().flatten().map(|block| block.gather(index))
        }
        _ => None,
    };
    if let Some(block) = block {
        return Ok(Some(filled(block)));
    }
    let (mut pivot, mut scratch) = (DocPivot::new(), Vec::new());
    for row in 0..column.len() {
        let value = column.value(row, &mut scratch);
        let is_nothing = value.is_none_or(|value| value.kind() == Kind::Null);
        let doc = value.and_then(Value::as_doc).or_else(|| (is_part && is_nothing).then_some(Doc::EMPTY));
        let pushed = match doc {
            Some(doc) => pivot.push(doc),
            None => Err(Error::new(
                ErrorCode::Location40228,
                format!(
                    "'newRoot' expression must evaluate to an object, but resulting value was of type {}",
                    value.map_or("missing", |value| value.kind().alias())
                ),
            )),
        };
        match pushed {
            Err(_) if is_part => return Ok(None),
            pushed => pushed?,
        }
    }
    Ok(Some(pivot.finish()))
}

/// Without the columns that no row has a cell in.
fn filled(mut block: Block) -> Block {
    let is_empty = |(_, column): &&(Box<str>, Column)| column.present_count() == 0;
    let empty: Vec<_> = block.columns().iter().filter(is_empty).map(|(name, _)| name.clone()).listed();
    empty.iter().for_each(|name| drop(block.remove_column(name)));
    block
}

/// Each row is replaced by the object that an expression gives.
struct RootSpec {
    root: BoundExpr,
    columns: Root,
}

impl Spec for RootSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        let mut needed = FieldSet::none();
        self.columns.reads(&behind, &mut needed);
        needed
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(ReplaceRoot { spec: self, made: None })
    }
}

struct ReplaceRoot {
    spec: Rc<RootSpec>,
    made: Option<Block>,
}

impl Stage for ReplaceRoot {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.made = match self.spec.columns.columns(&rows, false)? {
            None => of_objects(&self.spec.root.column(&rows)?, false)?,
            made => made,
        };
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::block::samples::shown;
    use crate::query::expr::samples::globals;
    use bson::{RawBson, RawDocumentBuf, cstr, rawbson, rawdoc};

    fn rows() -> Block {
        let doc = |n: i32| {
            let mut doc =
                rawdoc! { "a": n, "s": "text", "m": { "x": n % 2, "y": { "z": 1 } }, "full": { "b": n, "c": true } };
            if n % 3 > 0 {
                doc.append(cstr!("some"), n);
                doc.append(cstr!("part"), rawdoc! { "a": -n, "d": n });
            }
            if n % 5 > 0 {
                doc.append(cstr!("nil"), if n % 2 > 0 { rawbson!({ "e": n }) } else { RawBson::Null });
            }
            doc
        };
        let docs: Vec<RawDocumentBuf> = (1..40).map(doc).collect();
        let mut block = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
        let metas = block.column("m").unwrap().gather(&[0, 1]);
        block.set_column("m", Column::of_entries((0..39).map(|row| row % 2).collect(), metas));
        block
    }

    fn bound(expr: &RawBson) -> BoundExpr {
        let holder = rawdoc! { "": expr.clone() };
        BoundExpr::new(
            Expr::parse(Doc::parse(holder.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap(),
            globals(),
        )
    }

    /// The objects that the expression gives for single rows.
    fn one_by_one(expr: &BoundExpr, rows: &Block) -> Vec<RawDocumentBuf> {
        let mut found = Vec::new();
        expr.for_each_row(rows, &mut (0..rows.rows()), &mut |_, value| {
            let doc = value.and_then(Value::as_doc).unwrap().to_owned();
            found.push(RawDocumentBuf::from_bytes(doc.into_bytes()).unwrap());
        })
        .unwrap();
        found
    }

    #[test]
    fn objects_that_become_columns_are_those_of_single_rows_with_their_fields_in_the_same_order() {
        let rows = rows();
        for (expr, expected) in [
            (rawbson!("$$ROOT"), true),
            (rawbson!("$m"), true),
            (rawbson!("$full"), true),
            (rawbson!({ "$ifNull": ["$part", { "none": "$a" }] }), true),
            (rawbson!({ "$mergeObjects": ["$$ROOT", { "a": { "$add": ["$a", 1] }, "new": "$s" }] }), true),
            (rawbson!({ "$mergeObjects": [{ "a": 0, "some": -1, "last": 1 }, "$$ROOT"] }), true),
            (rawbson!({ "$mergeObjects": ["$m", "$$ROOT", "$full"] }), true),
            (rawbson!({ "$mergeObjects": [{ "a": 1 }, "$part", null, "$nothing", "$nil"] }), true),
            (rawbson!({ "$mergeObjects": [{ "k": "$some" }, { "t": { "u": "$some" } }, "$m"] }), true),
            (rawbson!({ "$mergeObjects": ["$full", { "$mergeObjects": ["$m", { "x": 7 }] }] }), true),
            (rawbson!({ "$mergeObjects": ["$$ROOT", { "some": "$a" }] }), false),
            (rawbson!({ "$mergeObjects": ["$$ROOT", { "some": "$nothing" }] }), true),
            (rawbson!({ "$mergeObjects": "$full" }), true),
        ] {
            let expr = bound(&expr);
            let columns = Root::of(expr.expr(), expr.globals()).columns(&rows, false).unwrap();
            assert_eq!(columns.is_some(), expected, "{:?}", expr.expr());
            let Some(columns) = columns else { continue };
            assert_eq!(shown(&columns), one_by_one(&expr, &rows), "{:?}", expr.expr());
            assert!(columns.columns().iter().all(|(_, column)| column.present_count() > 0));
        }
    }

    #[test]
    fn entries_of_the_metadata_that_no_row_has_need_not_be_objects() {
        let mut rows = Block::new(3);
        let metas = pivot_docs(
            [rawdoc! { "m": 7 }, rawdoc! { "m": { "x": 1 } }].iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap()),
        );
        let metas = metas.unwrap().column("m").unwrap().clone();
        rows.set_column("m", Column::of_entries(vec![1, 1, 1], metas.clone()));
        let root = bound(&rawbson!("$m"));
        let columns = Root::of(root.expr(), root.globals());
        let found = columns.columns(&rows, false).unwrap().unwrap();
        assert_eq!(shown(&found), vec![rawdoc! { "x": 1 }; 3]);
        rows.set_column("m", Column::of_entries(vec![1, 0, 1], metas));
        assert_eq!(columns.columns(&rows, false).unwrap_err().code, ErrorCode::Location40228);
    }

    #[test]
    fn a_row_whose_new_root_is_no_object_is_refused_however_its_fields_are_made() {
        let rows = rows();
        for (expr, code) in [
            (rawbson!("$a"), ErrorCode::Location40228),
            (rawbson!("$part"), ErrorCode::Location40228),
            (rawbson!("$nil"), ErrorCode::Location40228),
            (rawbson!({ "$mergeObjects": ["$$ROOT", "$s"] }), ErrorCode::Location40400),
            (rawbson!({ "$mergeObjects": ["$full", ["$full"]] }), ErrorCode::Location40400),
        ] {
            let root = bound(&expr);
            let columns = Root::of(root.expr(), root.globals());
            let spec = Rc::new(RootSpec { root, columns });
            let refused = spec.start(&Others::default()).push(rows.clone()).unwrap_err();
            assert_eq!(refused.code, code, "{expr:?}");
        }
    }

    #[test]
    fn of_the_row_only_those_fields_are_read_that_are_read_behind_the_stage() {
        for (expr, behind, expected) in [
            (rawbson!({ "$mergeObjects": ["$$ROOT", { "n": "$a" }] }), vec!["b", "n"], vec!["a", "b", "n"]),
            (rawbson!({ "$mergeObjects": ["$m.x", { "n": "$a" }] }), vec!["b"], vec!["a", "m"]),
        ] {
            let root = bound(&expr);
            let columns = Root::of(root.expr(), root.globals());
            let mut wanted = FieldSet::none();
            behind.into_iter().for_each(|name| wanted.add(name));
            let mut read: Vec<_> = RootSpec { root, columns }.reads(wanted).names().to_vec();
            read.sort();
            assert_eq!(read, expected.into_iter().map(Box::from).collect::<Vec<Box<str>>>());
        }
    }
}
