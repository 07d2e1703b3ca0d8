//! An expression together with everything needed to evaluate it on rows.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::date::{bin_slack_ms, is_alike, is_monotonic};
use super::evaluate::Scope;
use super::globals::Globals;
use super::tree::{Expr, Variable};
use super::vector::compile_if_loaded;
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Doc, DocWriter, FieldSet, OwnedValue, Value};

/// For fewer rows than this, an expression is evaluated row by row.
const COMPILED_ROWS_MIN: usize = 3;

/// A compiled expression.
pub(super) trait Columnwise {
    /// As `BoundExpr::column` if it `keeps_null`, else as `BoundExpr::column_without_null`.
    fn column(&self, block: &Block, keeps_null: bool) -> Result<Column>;

    /// As `BoundExpr::narrow`.
    fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()>;
}

/// An expression, the fields that it reads, and what else it refers to.
#[derive(Clone)]
pub struct BoundExpr {
    compiled: Rc<OnceCell<Option<Box<dyn Columnwise>>>>,
    expr: Expr,
    fields: FieldSet,
    is_random: bool,
    reads_outer: bool,
    globals: Globals,
}

impl BoundExpr {
    /// An expression that was parsed with `globals`.
    pub fn new(expr: Expr, globals: Globals) -> BoundExpr {
        let (fields, is_random, reads_outer) = (expr.fields(), expr.is_random(), expr.reads_outer());
        BoundExpr { compiled: Rc::default(), expr, fields, is_random, reads_outer, globals }
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// What the expression refers to besides the document.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The top-level fields that it reads.
    pub fn fields(&self) -> &FieldSet {
        &self.fields
    }

    /// True if its value differs from call to call.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// True if it reads a variable of an enclosing pipeline.
    pub fn reads_outer(&self) -> bool {
        self.reads_outer
    }

    /// True for fields and constants, which cannot fail.
    pub fn is_plain(&self) -> bool {
        matches!(self.expr, Expr::Constant(_) | Expr::Field(..))
    }

    /// True if its value is the same for all documents that differ only in `field`, a date in the given range, and it
    /// is not random.
    pub fn is_alike_between(&self, field: &str, first_ms: i64, last_ms: i64) -> bool {
        is_alike(&self.expr, &self.globals, field, (first_ms, last_ms))
    }

    /// True if its value only rises, or only falls, as the dates in `field` rise.
    pub fn is_monotonic(&self, field: &str) -> bool {
        is_monotonic(&self.expr, &self.globals, field)
    }

    /// How much later than the date in `field` its value may be, if it is that date, or where its bin begins.
    pub fn bin_slack_ms(&self, field: &str) -> Option<i64> {
        bin_slack_ms(&self.expr, &self.globals, field)
    }

    /// The same expression with all paths starting at `root`.
    pub fn with_root(&self, root: &str) -> BoundExpr {
        BoundExpr::new(self.expr.clone().with_root(root), self.globals.clone())
    }

    /// True if the expression is true for `doc`, which may be limited to the fields that it reads.
    ///
    /// Errors: those of operators.
    pub fn is_true(&self, doc: Doc<'_>) -> Result<bool> {
        self.expr.is_true(&Scope::of(doc, &self.globals))
    }

    /// The value for `doc`, which may be limited to the fields that it reads; `None` means missing.
    ///
    /// Errors: those of operators.
    pub fn value(&self, doc: Doc<'_>) -> Result<Option<OwnedValue>> {
        Ok(self.expr.evaluate(&Scope::of(doc, &self.globals))?.view().map(Value::to_owned))
    }

    /// The value of an expression of `Expr::parse_within` for an object `current` inside `root`.
    ///
    /// Errors: those of operators.
    pub fn value_within(&self, root: Doc<'_>, current: Doc<'_>) -> Result<Option<OwnedValue>> {
        let scope = Scope::of(root, &self.globals);
        Ok(self.expr.evaluate(&scope.with(Some(current.as_value())))?.view().map(Value::to_owned))
    }

    /// The values for all rows of `block`.
    ///
    /// Errors: those of operators.
    pub fn column(&self, block: &Block) -> Result<Column> {
        self.computed(block, true)
    }

    /// As `column`, but rows may lack a value instead of null: the others are a column of one type then.
    ///
    /// Errors: those of operators.
    pub fn column_without_null(&self, block: &Block) -> Result<Column> {
        self.computed(block, false)
    }

    fn computed(&self, block: &Block, keeps_null: bool) -> Result<Column> {
        if let Some(resolved) = self.resolved()? {
            return resolved.computed(block, keeps_null);
        }
        match &self.expr {
            Expr::Constant(Some(value)) => return Ok(Column::constant(value.view(), block.rows())),
            _ => {
                if let Some(column) = self.plain_column(block) {
                    return Ok(column.clone());
                }
            }
        }
        match self.compiled(block.rows()) {
            Some(compiled) => compiled.column(block, keeps_null),
            None => self.one_by_one(block),
        }
    }

    /// The column of the block that has the values, if the expression is a top-level field.
    pub fn plain_column<'a>(&self, block: &'a Block) -> Option<&'a Column> {
        match &self.expr {
            Expr::Field(Variable::Root, path) if path.len() == 1 => block.column(path.first()?),
            _ => None,
        }
    }

    /// Removes from `rows` those for which the expression is not true.
    ///
    /// Errors: those of operators.
    pub fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()> {
        let Some(compiled) = self.compiled(rows.count()) else {
            let mut passing = Bitmap::filled(rows.len(), false);
            self.for_each_row(block, &mut rows.iter(), &mut |row, value| {
                if value.is_some_and(Value::is_true) {
                    passing.set(row, true);
                }
            })?;
            *rows = passing;
            return Ok(());
        };
        if rows.count() * 2 > rows.len() {
            return compiled.narrow(block, rows);
        }
        let picked = rows.to_rows();
        let mut part = Block::new(picked.len());
        for (name, column) in block.columns().iter().filter(|(name, _)| self.fields.contains(name)) {
            part.set_column(name, column.gather(&picked));
        }
        let mut passing = Bitmap::filled(picked.len(), true);
        compiled.narrow(&part, &mut passing)?;
        let places = picked.iter().enumerate().filter(|(place, _)| !passing.get(*place));
        places.for_each(|(_, row)| rows.set(*row as usize, false));
        Ok(())
    }

    /// The compiled form; `None` if it would gain nothing for so many rows.
    fn compiled(&self, rows: usize) -> Option<&dyn Columnwise> {
        if rows < COMPILED_ROWS_MIN {
            return None;
        }
        let compile = || {
            let mut compiled = None;
            if compile_if_loaded(self, &mut compiled) { compiled } else { None }
        };
        self.compiled.get_or_init(compile).as_deref()
    }

    /// The same expression, not compiled.
    pub(super) fn uncompiled(&self) -> BoundExpr {
        BoundExpr { compiled: Rc::default(), ..self.clone() }
    }

    /// The values for all rows of `block`, row by row.
    ///
    /// Errors: those of operators.
    pub(super) fn one_by_one(&self, block: &Block) -> Result<Column> {
        let rows = block.rows();
        let columns = self.fields.names().iter().filter_map(|name| block.column(name));
        // Rows are alike if no row has any of the fields, as in buckets without metadata, or if all have the same values.
        let is_same = !self.fields.is_all() && !self.is_random && columns.into_iter().all(is_constant);
        let evaluated = if is_same { rows.min(1) } else { rows };
        let mut builder = ColumnBuilder::with_capacity(evaluated);
        self.for_each_row(block, &mut (0..evaluated), &mut |_, value| match value {
            Some(value) => builder.push(value),
            None => builder.push_absent(1),
        })?;
        let column = builder.finish();
        if evaluated == rows {
            return Ok(column);
        }
        if column.present_count() > 0 {
            return Ok(Column::new(ColumnData::Dictionary(vec![0; rows], Box::new(column)), None));
        }
        let mut nothing = ColumnBuilder::new();
        nothing.push_absent(rows);
        Ok(nothing.finish())
    }

    /// Calls `see` with the value for each of these rows; `None` means missing.
    ///
    /// Errors: those of operators.
    pub fn for_each_row(
        &self,
        block: &Block,
        rows: &mut dyn Iterator<Item = usize>,
        see: &mut dyn FnMut(usize, Option<Value<'_>>),
    ) -> Result<()> {
        if let Some(resolved) = self.resolved()? {
            return resolved.for_each_row(block, rows, see);
        }
        let columns: Vec<_> = self.fields.names().iter().filter_map(|f| Some((f, block.column(f)?))).listed();
        let mut scratch = Vec::new();
        let mut writer = DocWriter::new();
        for row in rows {
            writer.reset();
            if self.fields.is_all() {
                block.write_row(row, &mut writer);
            } else {
                for (name, column) in &columns {
                    if let Some(value) = column.value(row, &mut scratch) {
                        writer.value(name, value);
                    }
                }
            }
            see(row, self.expr.evaluate(&Scope::of(writer.finished(), &self.globals))?.view());
        }
        Ok(())
    }
}

/// True if all rows have the same value, stored once.
fn is_constant(column: &Column) -> bool {
    matches!(column.data(), ColumnData::Dictionary(_, values) if values.len() == 1 && column.presence().is_none())
}

impl fmt::Debug for BoundExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl PartialEq for BoundExpr {
    fn eq(&self, other: &BoundExpr) -> bool {
        self.expr == other.expr
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::expr::samples::globals;
    use crate::value::{Kind, OwnedValue};
    use bson::rawdoc;

    /// The values of an expression over a dictionary of a number and a string.
    fn column(expr: bson::RawDocumentBuf, index: Vec<u32>) -> Result<Column> {
        let mut values = ColumnBuilder::new();
        values.push(OwnedValue::int32(1).view());
        values.push(OwnedValue::string("x").view());
        let mut block = Block::new(index.len());
        block.set_column("a", Column::new(ColumnData::Dictionary(index, Box::new(values.finish())), None));
        let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().as_value(), &globals()).unwrap();
        BoundExpr::new(expr, globals()).column(&block)
    }

    #[test]
    fn an_expression_of_absent_fields_is_the_same_for_all_rows() {
        let column = |expr: bson::RawDocumentBuf, rows: usize| {
            let mut block = Block::new(rows);
            block.set_column("a", Column::constant(Value::NULL, rows));
            let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().as_value(), &globals()).unwrap();
            BoundExpr::new(expr, globals()).column(&block)
        };
        let type_of = rawdoc! { "$type": "$m" };
        let found = column(type_of.clone(), 3).unwrap();
        let mut scratch = Vec::new();
        let values: Vec<_> =
            (0..3).map(|row| found.value(row, &mut scratch).and_then(Value::as_str) == Some("missing")).collect();
        assert_eq!((values, found.len()), (vec![true; 3], 3));
        assert_eq!((column(type_of.clone(), 1).unwrap().len(), column(type_of, 0).unwrap().len()), (1, 0));
        let nothing = column(rawdoc! { "$cond": [{ "$gt": ["$m", 0] }, 1, "$n"] }, 3).unwrap();
        assert_eq!((nothing.len(), nothing.present_count()), (3, 0));
        let fails = rawdoc! { "$divide": [1, { "$size": { "$ifNull": ["$m", []] } }] };
        assert!(column(fails.clone(), 3).is_err());
        assert_eq!(column(fails, 0).unwrap().len(), 0);
        // Expressions that read the row itself, or random ones, differ.
        let chance = column(rawdoc! { "$rand": {} }, 3).unwrap();
        assert_ne!(chance.value(0, &mut Vec::new()), chance.value(1, &mut Vec::new()));
    }

    #[test]
    fn an_unused_dictionary_value_cannot_fail() {
        let sum = rawdoc! { "$add": ["$a", 1] };
        let found = column(sum.clone(), vec![0, 0, 0]).unwrap();
        assert_eq!(found.value(2, &mut Vec::new()).and_then(Value::as_i32), Some(2));
        assert!(column(sum, vec![0, 1, 0]).is_err());
        let kinds = column(rawdoc! { "$type": "$a" }, vec![1, 0, 1]).unwrap();
        assert_eq!(kinds.kind(), Some(Kind::String));
        assert_eq!(kinds.value(1, &mut Vec::new()).and_then(Value::as_str), Some("int"));
    }
}
