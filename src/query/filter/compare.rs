//! `$eq`, `$gt`, `$gte`, `$lt`, `$lte`: compares a value with a constant of the same type.

use std::cmp::Ordering;

use super::bounds::{self, Doubles};
use crate::block::{Bitmap, Column, ColumnData, kernels};
use crate::error::{Error, Result};
use crate::query::expr::CompareOp;
use crate::value::{Collation, Component, Kind, Number, OwnedValue, Path, Value, canonical_class};

/// A comparison with a constant.
///
/// Only values of the operand's canonical type pass, with the server's exceptions: null also stands for missing, and
/// every other type is above MinKey and below MaxKey. NaN equals NaN and is neither above nor below anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    op: CompareOp,
    value: OwnedValue,
    collation: Collation,
}

impl Compare {
    /// A comparison with `value`. `path` is used in the message.
    ///
    /// Errors: `BadValue` for an undefined operand, and for a regular expression with any operator but `$eq`.
    pub fn new(path: &Path, op: CompareOp, value: Value<'_>, collation: &Collation) -> Result<Compare> {
        match value.kind() {
            Kind::Undefined => Err(Error::bad_value(format!("Cannot compare '{path}' to undefined"))),
            Kind::Regex if op != CompareOp::Eq => {
                Err(Error::bad_value(format!("Cannot compare '{path}' to a regular expression")))
            }
            _ => Ok(Compare::plain(op, value.to_owned(), collation)),
        }
    }

    /// A comparison with any value, for `matches_whole`.
    pub(super) fn plain(op: CompareOp, value: OwnedValue, collation: &Collation) -> Compare {
        Compare { op, value, collation: collation.clone() }
    }

    /// True if a value, or a missing one, passes by the whole BSON order, as in expressions: types are not separated, a
    /// missing value is below null, and NaN is below the numbers.
    pub(super) fn matches_whole(&self, value: Option<Value<'_>>) -> bool {
        self.op.holds(self.collation.compare_options(value, Some(self.value())))
    }

    /// True if the value that objects lead to passes, or if an array is met on the way or at the end.
    pub(super) fn matches_path(&self, top: Option<Value<'_>>, rest: &[Component]) -> bool {
        let mut found = top;
        for component in rest {
            found = match found {
                Some(array) if array.kind() == Kind::Array => return true,
                other => other.and_then(Value::as_doc).and_then(|doc| doc.get(component.name())),
            };
        }
        found.is_some_and(|value| value.kind() == Kind::Array) || self.matches_whole(found)
    }

    /// As `select`, for `matches_whole`.
    pub(super) fn select_whole(&self, column: &Column) -> Option<Bitmap> {
        let operand = self.value();
        let classes = canonical_class(column.kind()?).cmp(&canonical_class(operand.kind()));
        if classes.is_ne() {
            return Some(Bitmap::filled(column.len(), self.op.holds(classes)));
        }
        let selected = self.select(column)?;
        let ColumnData::F64(v) = column.data() else {
            // NaN sorts below every other number.
            let greater = is_nan(operand) && self.op.holds(Ordering::Greater);
            return Some(if greater { Bitmap::filled(column.len(), true) } else { selected });
        };
        let order = if is_nan(operand) { Ordering::Equal } else { Ordering::Less };
        let mut nans = kernels::nans(v);
        let mut others =
            if order.is_eq() { Bitmap::filled(v.len(), self.op.holds(Ordering::Greater)) } else { selected };
        if self.op.holds(order) {
            others.or(&nans);
        } else {
            nans.invert();
            others.and(&nans);
        }
        Some(others)
    }

    /// The comparison.
    pub fn op(&self) -> CompareOp {
        self.op
    }

    /// The constant.
    pub fn value(&self) -> Value<'_> {
        self.value.view()
    }

    /// How strings compare.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// True if a value, or a missing one, passes.
    pub fn matches(&self, value: Option<Value<'_>>) -> bool {
        let operand = self.value();
        let Some(found) = value else {
            return if operand.kind() == Kind::Null { self.op.includes_equal() } else { self.matches_other_types() };
        };
        if found.kind() != operand.kind() && canonical_class(found.kind()) != canonical_class(operand.kind()) {
            return self.matches_other_types();
        }
        if self.op != CompareOp::Eq {
            let (left, right) = (is_nan(found), is_nan(operand));
            if left || right {
                return left && right && self.op.includes_equal();
            }
        }
        self.op.holds(self.collation.compare(found, operand))
    }

    /// The result for values whose type is not the operand's.
    fn matches_other_types(&self) -> bool {
        match self.value().kind() {
            Kind::MinKey => matches!(self.op, CompareOp::Gt | CompareOp::Gte),
            Kind::MaxKey => matches!(self.op, CompareOp::Lt | CompareOp::Lte),
            _ => false,
        }
    }

    /// The cells that pass, present or not; `None` for columns without a type.
    pub(super) fn select(&self, column: &Column) -> Option<Bitmap> {
        let operand = self.value();
        let number = Number::of(operand);
        let selected = match column.data() {
            ColumnData::F64(v) => number.map(|n| match bounds::doubles(self.op, n) {
                Doubles::Nothing => Bitmap::filled(v.len(), false),
                Doubles::NaN => kernels::nans(v),
                Doubles::Between(low, high) => kernels::between(v, low, high),
            }),
            ColumnData::I32(v) => number.map(|n| match bounds::int32s(self.op, n) {
                Some((low, high)) => kernels::between(v, low, high),
                None => Bitmap::filled(v.len(), false),
            }),
            ColumnData::I64(v) => number.map(|n| self.select_int64s(v, n)),
            ColumnData::Date(v) => operand.as_date_ms().map(|ms| self.select_int64s(v, Number::Integer(ms))),
            ColumnData::Bool(v) => operand.as_bool().map(|b| {
                let wanted = u8::from(b);
                Bitmap::from_slice(v, |cell| self.op.holds(cell.cmp(&wanted)))
            }),
            ColumnData::ObjectId(v) => {
                operand.as_object_id().map(|id| Bitmap::from_slice(v, |cell| self.op.holds(cell.cmp(&id))))
            }
            // Row by row, as for anything without a kernel.
            ColumnData::String(_) if !self.collation.is_simple() => return None,
            ColumnData::String(v) => operand.as_text().filter(|_| operand.kind() != Kind::Code).map(|text| {
                let wanted = text.as_bytes();
                match self.op {
                    CompareOp::Eq => kernels::equal_texts(v, wanted),
                    op => kernels::texts(v, |cell| op.holds(cell.cmp(wanted))),
                }
            }),
            ColumnData::Bson(_) | ColumnData::Objects(_) | ColumnData::Dictionary(..) => return None,
        };
        Some(selected.unwrap_or_else(|| Bitmap::filled(column.len(), self.matches_other_types())))
    }

    /// As `select` for a column of objects; `None` if objects are compared with an object.
    pub(super) fn select_objects(&self, column: &Column) -> Option<Bitmap> {
        let differs = canonical_class(self.value().kind()) != canonical_class(Kind::Object);
        differs.then(|| Bitmap::filled(column.len(), self.matches_other_types()))
    }

    fn select_int64s(&self, cells: &[i64], operand: Number) -> Bitmap {
        match bounds::int64s(self.op, operand) {
            Some((low, high)) => kernels::between(cells, low, high),
            None => Bitmap::filled(cells.len(), false),
        }
    }
}

fn is_nan(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Double | Kind::Decimal128) && Number::of(value).is_some_and(Number::is_nan)
}
