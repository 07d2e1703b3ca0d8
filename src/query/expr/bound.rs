//! An expression with all that it takes to evaluate it on rows.

use std::fmt;

use super::date::{bins, is_alike, is_monotonic};
use super::evaluate::Scope;
use super::globals::Globals;
use super::operators::Op;
use super::tree::{Expr, Variable};
use super::vectors::doubles_if_loaded;
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::value::{Doc, DocWriter, FieldSet, OwnedValue, Value};

/// An expression, what it reads, and what else it refers to.
#[derive(Clone)]
pub struct BoundExpr {
    expr: Expr,
    fields: FieldSet,
    is_random: bool,
    reads_outer: bool,
    globals: Globals,
}

impl BoundExpr {
    /// What `expr` says where it was parsed with `globals`.
    pub fn new(expr: Expr, globals: Globals) -> BoundExpr {
        let (fields, is_random, reads_outer) = (expr.fields(), expr.is_random(), expr.reads_outer());
        BoundExpr { expr, fields, is_random, reads_outer, globals }
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// What it refers to besides the document.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The top-level fields of the document that it reads.
    pub fn fields(&self) -> &FieldSet {
        &self.fields
    }

    /// True where its value differs from call to call.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// True where it reads a variable of a pipeline around.
    pub fn reads_outer(&self) -> bool {
        self.reads_outer
    }

    /// True for fields and constants, which do not fail.
    pub fn is_plain(&self) -> bool {
        matches!(self.expr, Expr::Constant(_) | Expr::Field(..))
    }

    /// True where it is the same for all documents that differ in a field alone, which is a date between those two, and no chance is in it.
    pub fn is_alike_between(&self, field: &str, first_ms: i64, last_ms: i64) -> bool {
        is_alike(&self.expr, &self.globals, field, (first_ms, last_ms))
    }

    /// True where its values come in order for documents in the order of a field that is a date, upwards or downwards.
    pub fn is_monotonic(&self, field: &str) -> bool {
        is_monotonic(&self.expr, &self.globals, field)
    }

    /// The same with all paths beginning at `root`.
    pub fn with_root(&self, root: &str) -> BoundExpr {
        BoundExpr::new(self.expr.clone().with_root(root), self.globals.clone())
    }

    /// True where the expression is true of `doc`, which needs no other fields than those it reads.
    ///
    /// Errors: those of operators.
    pub fn is_true(&self, doc: Doc<'_>) -> Result<bool> {
        self.expr.is_true(&Scope::of(doc, &self.globals))
    }

    /// The value for `doc`, which needs no other fields than those it reads; `None` is the lack of one.
    ///
    /// Errors: those of operators.
    pub fn value(&self, doc: Doc<'_>) -> Result<Option<OwnedValue>> {
        Ok(self.expr.evaluate(&Scope::of(doc, &self.globals))?.view().map(Value::to_owned))
    }

    /// The value of an expression of `Expr::parse_within` for an object `current` in `root`.
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
        if let Some(resolved) = self.resolved()? {
            return resolved.column(block);
        }
        let rows = block.rows();
        let only_field = match self.fields.names() {
            [only] if !self.is_random => Some(only),
            _ => None,
        };
        let column = only_field.and_then(|name| Some((name, block.column(name)?)));
        match (&self.expr, column) {
            (Expr::Constant(Some(value)), _) => return Ok(Column::constant(value.view(), rows)),
            (Expr::Field(Variable::Root, path), Some((_, column))) if path.len() == 1 => return Ok(column.clone()),
            _ => {}
        }
        if let Some((name, column)) = column
            && column.presence().is_none()
        {
            match (column.data(), &self.expr) {
                (ColumnData::Dictionary(index, values), _) if values.len() < rows => {
                    // Each value once, not each row. A value that no row has any more may fail; then the rows are asked.
                    let mut block = Block::new(values.len());
                    block.set_column(name, (**values).clone());
                    if let Ok(column) = self.column(&block) {
                        return Ok(column.gather(index));
                    }
                }
                (ColumnData::Date(times), Expr::Call(operator, arguments)) if operator.op == Op::DateTrunc => {
                    // Loaded by now: `$dateTrunc` is not among `OPERATORS`.
                    if let Some(starts) = bins(operator, arguments, &self.globals, times) {
                        return Ok(Column::new(ColumnData::Date(starts), None));
                    }
                }
                _ => {}
            }
        }
        let mut doubles = Vec::new();
        if matches!(self.expr, Expr::Call(..)) && doubles_if_loaded(&self.expr, block, &mut doubles) {
            return Ok(Column::new(ColumnData::F64(doubles), None));
        }
        // Where no row has any of the fields all are alike, as those of a bucket without metadata.
        let is_there = self.fields.names().iter().any(|name| block.column(name).is_some());
        let is_same = !self.fields.is_all() && !self.is_random && !is_there;
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

    /// Shows `see` the value for each of those rows; `None` is the lack of one.
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
        let columns: Vec<_> = self.fields.names().iter().filter_map(|f| Some((f, block.column(f)?))).collect();
        let mut scratch = Vec::new();
        for row in rows {
            let mut writer = DocWriter::new();
            if self.fields.is_all() {
                block.write_row(row, &mut writer);
            } else {
                for (name, column) in &columns {
                    if let Some(value) = column.value(row, &mut scratch) {
                        writer.value(name, value);
                    }
                }
            }
            let doc = writer.finish();
            see(row, self.expr.evaluate(&Scope::of(doc.view(), &self.globals))?.view());
        }
        Ok(())
    }
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
    fn what_reads_no_field_that_is_there_is_the_same_for_all_rows() {
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
        // What reads the row itself, or throws dice, differs.
        let chance = column(rawdoc! { "$rand": {} }, 3).unwrap();
        assert_ne!(chance.value(0, &mut Vec::new()), chance.value(1, &mut Vec::new()));
    }

    #[test]
    fn a_value_of_a_dictionary_that_no_row_has_cannot_fail() {
        let sum = rawdoc! { "$add": ["$a", 1] };
        let found = column(sum.clone(), vec![0, 0, 0]).unwrap();
        assert_eq!(found.value(2, &mut Vec::new()).and_then(Value::as_i32), Some(2));
        assert!(column(sum, vec![0, 1, 0]).is_err());
        let kinds = column(rawdoc! { "$type": "$a" }, vec![1, 0, 1]).unwrap();
        assert_eq!(kinds.kind(), Some(Kind::String));
        assert_eq!(kinds.value(1, &mut Vec::new()).and_then(Value::as_str), Some("int"));
    }
}
