//! `$map` and `$filter`. Their expression is computed for the elements of all rows of a block at once.

use kernels::elements::{arrays_of_doubles, arrays_of_values};

use super::cells::{Cells, Scratch, Vector};
use super::distinct::AlikeRows;
use super::mask::Mask;
use crate::block::{ArrayElements, Bitmap, Block, Column, ColumnBuilder, ColumnData, VarData};
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::listed::IntoList;
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
    /// What it computes for an element, which is a field, as are the variables from outside.
    body: BoundExpr,
    /// The names of these fields are this and a number: 0 of the element, and larger ones of variables further outside.
    prefix: String,
    /// The variables from outside that the body reads: how many others are between the operator and each.
    pub outside: Vec<usize>,
    /// What the body reads of the rows.
    pub fields: FieldSet,
}

impl EachElement {
    /// `None` if the body reads whole rows, or if it is random.
    pub fn new(is_filter: bool, body: &Expr, globals: &Globals) -> Option<EachElement> {
        let (mut body, fields, mut prefix) = (body.clone(), body.fields(), "_".to_owned());
        if fields.is_all() || body.is_random() {
            return None;
        }
        while fields.names().iter().any(|name| name.starts_with(&prefix)) {
            prefix.push('_');
        }
        let mut outside = Vec::new();
        body.make_fields(0, &mut |hops| {
            if let Some(between) = hops.checked_sub(1)
                && !outside.contains(&between)
            {
                outside.push(between);
            }
            field_name(&prefix, hops)
        });
        Some(EachElement { is_filter, body: BoundExpr::new(body, globals.clone()), prefix, outside, fields })
    }

    /// The results for the rows of `block`. `None` if it cannot be computed for all of them, or if it would take too much
    /// memory.
    /// `outer` has the variables from outside, in their order.
    pub fn computed<'a>(&self, arrays: &Vector<'_>, outer: &[Column], block: &Block) -> Option<Vector<'a>> {
        // Comparing arrays takes longer than computing their elements.
        let known = if let Cells::Any(column) = &arrays.cells { column.elements() } else { None };
        if let Some(ArrayElements { values, ends }) = known.as_deref() {
            let mut start = 0;
            let rows = ends.iter().enumerate().flat_map(|(row, end)| {
                let from = std::mem::replace(&mut start, *end);
                (from..*end).map(move |_| row as u32)
            });
            let rows: Vec<u32> = rows.collect();
            let absent = arrays.absent();
            let ends = ends.iter().enumerate().map(|(row, end)| (!absent.has(row), *end as usize)).listed();
            return self.of_elements(values, &rows, ends, (outer, block)).map(|made| Vector::made(made, Mask::NONE));
        }
        let alike = match self.fields.is_empty() && self.outside.is_empty() {
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
        let made = self.of_elements(&elements.finish(), &rows, ends, (outer, block))?;
        Some(alike.spread(Vector::made(made, Mask::NONE)))
    }

    /// The results for elements, of which `rows` tells the row in `block`. For each array, `ends` has whether it is there, and where
    /// its elements end.
    fn of_elements(
        &self,
        elements: &Column,
        rows: &[u32],
        ends: Vec<(bool, usize)>,
        (outer, block): (&[Column], &Block),
    ) -> Option<Column> {
        let mut read = Block::new(rows.len());
        for name in self.fields.names() {
            let Some(column) = block.column(name) else { continue };
            read.set_column(name, repeated(column, rows)?);
        }
        for (between, column) in self.outside.iter().zip(outer) {
            read.set_column(&field_name(&self.prefix, between + 1), repeated(column, rows)?);
        }
        read.set_column(&field_name(&self.prefix, 0), elements.clone());
        let values = self.body.column(&read).ok()?;
        let shown = if self.is_filter { elements } else { &values };
        if let (ColumnData::F64(_) | ColumnData::Bson(_), None) = (shown.data(), shown.presence()) {
            let mut scratch = Vec::new();
            let is_true = |at| values.value(at, &mut scratch).is_some_and(Value::is_true);
            let kept = self.is_filter.then(|| Bitmap::from_fn(values.len(), is_true));
            let kept = kept.as_ref().map(Bitmap::words);
            let (offsets, bytes) = match shown.data() {
                ColumnData::F64(cells) => arrays_of_doubles(cells, &ends, kept),
                ColumnData::Bson(cells) => arrays_of_values((&cells.offsets, &cells.bytes), &ends, kept),
                _ => return None,
            };
            return Some(Column::new(ColumnData::Bson(VarData { offsets, bytes }), None));
        }
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
        Some(made.finish())
    }
}

fn field_name(prefix: &str, hops: usize) -> String {
    let mut name = hops.to_string();
    name.insert_str(0, prefix);
    name
}

/// The cells of some rows, each as often as it is named; `None` if they take too much memory.
fn repeated(column: &Column, rows: &[u32]) -> Option<Column> {
    if let (ColumnData::Bson(_), None) = (column.data(), column.presence())
        && column.len() < rows.len()
    {
        // Values of any length, such as arrays from which the body takes elements, are not repeated.
        return Some(Column::new(ColumnData::Dictionary(rows.to_vec(), Box::new(column.clone())), None));
    }
    let fits = column.value_bytes_max().saturating_mul(rows.len()) <= COLUMN_SIZE_BYTES_MAX;
    fits.then(|| column.gather(rows))
}
