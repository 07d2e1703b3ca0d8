//! An expression with all that it takes to evaluate it on rows.

use std::fmt;

use super::evaluate::Scope;
use super::globals::Globals;
use super::tree::{Expr, Reads};
use crate::block::Block;
use crate::error::Result;
use crate::value::{Doc, DocWriter, Value};

/// An expression, what it reads, and what else it refers to.
#[derive(Clone)]
pub struct BoundExpr {
    expr: Expr,
    reads: Reads,
    globals: Globals,
}

impl BoundExpr {
    /// What `expr` says where it was parsed with `globals`.
    pub fn new(expr: Expr, globals: Globals) -> BoundExpr {
        BoundExpr { reads: expr.reads(), expr, globals }
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// What it refers to besides the document.
    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// What the expression depends on.
    pub fn reads(&self) -> &Reads {
        &self.reads
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

    /// Shows `see` the value for each of those rows; `None` is the lack of one.
    ///
    /// Errors: those of operators.
    pub fn for_each_row(
        &self,
        block: &Block,
        rows: &mut dyn Iterator<Item = usize>,
        see: &mut dyn FnMut(usize, Option<Value<'_>>),
    ) -> Result<()> {
        let columns: Vec<_> = self.reads.fields.iter().filter_map(|f| Some((f, block.column(f)?))).collect();
        let mut scratch = Vec::new();
        for row in rows {
            let mut writer = DocWriter::new();
            if self.reads.whole {
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
