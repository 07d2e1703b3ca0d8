//! `$map` and `$filter`. Their expression is computed for the elements of all rows of a block at once.

use super::cells::{Scratch, Vector};
use super::distinct::AlikeRows;
use super::mask::Mask;
use crate::block::{Block, ColumnBuilder};
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::query::expr::bound::BoundExpr;
use crate::query::expr::datum::{ArrayWriter, is_nullish};
use crate::query::expr::globals::Globals;
use crate::query::expr::tree::Expr;
use crate::value::{Doc, FieldSet, Value};

/// So many elements are computed at once.
const ELEMENTS_MAX: usize = 1 << 22;

/// `$map` or `$filter`.
#[derive(PartialEq)]
pub struct EachElement {
    is_filter: bool,
    /// What it computes for an element, which is a field: `name`.
    body: BoundExpr,
    name: String,
    /// What the body reads of the rows.
    pub fields: FieldSet,
}

impl EachElement {
    /// `None` if the body reads whole rows or variables from further outside, or if it is random.
    pub fn new(is_filter: bool, body: &Expr, globals: &Globals) -> Option<EachElement> {
        let (mut body, fields, mut name) = (body.clone(), body.fields(), String::new());
        let is_open = fields.is_all() || body.is_random();
        while !is_open && (name.is_empty() || fields.contains(&name)) {
            name.push('_');
        }
        let is_closed = !is_open && body.make_field(&name, 0);
        is_closed.then(|| EachElement { is_filter, body: BoundExpr::new(body, globals.clone()), name, fields })
    }

    /// The results for the rows of `block`. `None` if it cannot be computed for all of them, or if it would take too much
    /// memory.
    pub fn computed<'a>(&self, arrays: &Vector<'_>, block: &Block) -> Option<Vector<'a>> {
        let alike = match self.fields.is_empty() {
            true => AlikeRows::of(&[arrays], block.rows(), &Mask::NONE),
            false => AlikeRows::each(block.rows()),
        };
        // All elements, the row of each, and for each row whether it has an array, and where its elements end.
        let (mut elements, mut rows, mut ends) = (ColumnBuilder::new(), Vec::new(), Vec::new());
        let mut scratch = Scratch::default();
        for row in &alike.firsts {
            let value = arrays.value(*row, &mut scratch);
            let array = value.and_then(Value::as_array);
            for (_, element) in array.unwrap_or(Doc::EMPTY) {
                elements.push(element);
                rows.push(*row as u32);
            }
            if array.is_none() && !is_nullish(value) || rows.len() > ELEMENTS_MAX {
                return None;
            }
            ends.push((array.is_some(), rows.len()));
        }
        let elements = elements.finish();
        let mut read = Block::new(rows.len());
        for name in self.fields.names() {
            let Some(column) = block.column(name) else { continue };
            if column.value_bytes_max().saturating_mul(rows.len()) > COLUMN_SIZE_BYTES_MAX {
                return None;
            }
            read.set_column(name, column.gather(&rows));
        }
        read.set_column(&self.name, elements.clone());
        let values = self.body.column(&read).ok()?;
        let (mut made, mut at, mut scratch) = (ColumnBuilder::with_capacity(ends.len()), 0, Vec::new());
        for (is_array, end) in ends {
            let mut list = ArrayWriter::new();
            for element in at..end {
                let mut shown = values.value(element, &mut scratch);
                if self.is_filter {
                    if !shown.is_some_and(Value::is_true) {
                        continue;
                    }
                    shown = elements.value(element, &mut scratch);
                }
                list.push(shown);
            }
            at = end;
            made.push(list.finish().view().filter(|_| is_array).unwrap_or(Value::NULL));
        }
        Some(alike.spread(Vector::made(made.finish(), Mask::NONE)))
    }
}
