//! `$in`: tests a value against a set of constants.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::rc::Rc;

use super::bounds::{self, Doubles};
use crate::block::{Bitmap, Bytes12, Column, ColumnData, kernels};
use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::value::{Collation, Kind, Number, OwnedValue, Value, canonical_class, sort_by};

/// A set of constants, one of which a value must equal. Null also stands for missing.
#[derive(Clone, Debug, PartialEq)]
pub struct In {
    /// Ascending in BSON order, without duplicates.
    values: Vec<OwnedValue>,
    collation: Collation,
    numbers: Rc<SetNumbers>,
}

/// The numbers of a set as cells of columns have them, once a column has asked: a set may be longer than a column.
#[derive(Debug, Default)]
struct SetNumbers {
    /// Whether NaN is one of them, and the others.
    doubles: OnceCell<(bool, Vec<f64>)>,
    int32s: OnceCell<Vec<i32>>,
    int64s: OnceCell<Vec<i64>>,
}

impl PartialEq for SetNumbers {
    fn eq(&self, _: &SetNumbers) -> bool {
        true
    }
}

impl In {
    /// The set of `values`, with strings compared by `collation`.
    pub fn new(mut values: Vec<OwnedValue>, collation: &Collation) -> In {
        sort_by(&mut values, |a, b| collation.compare(a.view(), b.view()));
        values.dedup_by(|a, b| collation.equal(a.view(), b.view()));
        In { values, collation: collation.clone(), numbers: Rc::default() }
    }

    /// The constants, ascending in BSON order, without duplicates.
    pub fn values(&self) -> &[OwnedValue] {
        &self.values
    }

    /// How strings compare.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// True if a value, or a missing one, is in the set.
    pub fn matches(&self, value: Option<Value<'_>>) -> bool {
        self.holds(value.unwrap_or(Value::NULL))
    }

    fn holds(&self, value: Value<'_>) -> bool {
        self.values.binary_search_by(|candidate| self.collation.compare(candidate.view(), value)).is_ok()
    }

    /// The cells that pass, present or not; `None` for columns without a type.
    pub(super) fn select(&self, column: &Column) -> Option<Bitmap> {
        let numbers = || self.values.iter().filter_map(|v| Number::of(v.view()));
        Some(match column.data() {
            ColumnData::F64(v) => {
                let (has_nan, wanted) = self.numbers.doubles.get_or_init(|| {
                    let high = |number| match bounds::doubles(CompareOp::Eq, number) {
                        Doubles::Nothing | Doubles::NaN => None,
                        // The ends differ only at zero, and -0 is found as 0.
                        Doubles::Between(_, high) => Some(high),
                    };
                    (numbers().any(Number::is_nan), numbers().filter_map(high).listed())
                });
                let mut rows = kernels::among(v, wanted);
                if *has_nan {
                    rows.or(&kernels::nans(v));
                }
                rows
            }
            ColumnData::I32(v) => {
                let wanted = || numbers().filter_map(|n| bounds::int32s(CompareOp::Eq, n)).map(|b| b.0).listed();
                kernels::among(v, self.numbers.int32s.get_or_init(wanted))
            }
            ColumnData::I64(v) => {
                let wanted = || numbers().filter_map(|n| bounds::int64s(CompareOp::Eq, n)).map(|b| b.0).listed();
                kernels::among(v, self.numbers.int64s.get_or_init(wanted))
            }
            ColumnData::Date(v) => kernels::among(v, &self.each(Value::as_date_ms)),
            ColumnData::Bool(v) => kernels::among(v, &self.each(|b| b.as_bool().map(u8::from))),
            ColumnData::ObjectId(v) => kernels::among::<Bytes12>(v, &self.each(Value::as_object_id)),
            ColumnData::String(_) if !self.collation.is_simple() => return None,
            ColumnData::String(v) => {
                // Strings and symbols are of one class; their order is that of their bytes.
                let class = canonical_class(Kind::String);
                let below = |is: fn(&i8, &i8) -> bool| {
                    self.values.partition_point(|v| is(&canonical_class(v.view().kind()), &class))
                };
                let texts = self.values.get(below(i8::lt)..below(i8::le)).unwrap_or_default();
                let compare = |v: &OwnedValue, cell: &[u8]| v.view().as_text().unwrap_or_default().as_bytes().cmp(cell);
                kernels::texts(v, |cell| texts.binary_search_by(|v| compare(v, cell)).is_ok())
            }
            ColumnData::Bson(_) | ColumnData::Objects(_) | ColumnData::Dictionary(..) => return None,
        })
    }

    /// What `f` extracts from the values of one type, ascending because the values are.
    fn each<'a, T>(&'a self, f: impl Fn(Value<'a>) -> Option<T>) -> Vec<T> {
        self.values.iter().filter_map(|v| f(v.view())).listed()
    }

    /// The values within `low..=high` in BSON order.
    pub fn between(&self, low: Value<'_>, high: Value<'_>) -> &[OwnedValue] {
        let start = self.values.partition_point(|v| self.collation.compare(v.view(), low) == Ordering::Less);
        let end = self.values.partition_point(|v| self.collation.compare(v.view(), high) != Ordering::Greater);
        self.values.get(start..end).unwrap_or_default()
    }
}
