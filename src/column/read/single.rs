//! The value of a column that has no other.

use super::items::{Item, Items};
use crate::value::Value;

/// The value of a column that is one literal and nothing else.
pub fn single(bytes: &[u8]) -> Option<Value<'_>> {
    let mut items = Items::new(bytes);
    let (Item::Literal(kind, value), _) = items.next(0).ok()? else { return None };
    let (Item::End, _) = items.next(0).ok()? else { return None };
    items.finish().ok()?;
    Value::parse(kind, value).ok()
}

#[cfg(test)]
mod tests {
    use super::super::super::write::encode;
    use super::*;
    use crate::block::{Column, ColumnData};
    use crate::value::OwnedValue;

    #[test]
    fn the_value_of_a_column_with_one_scalar_is_found_and_that_of_others_is_not() {
        let constant = |value: OwnedValue, rows| encode(&Column::constant(value.view(), rows));
        for value in [OwnedValue::double(-0.0), OwnedValue::string("text"), OwnedValue::null(), OwnedValue::bool(true)]
        {
            assert_eq!(single(&constant(value.clone(), 1)).map(Value::to_owned), Some(value.clone()));
            assert_eq!(single(&constant(value, 2)), None);
        }
        let doubles = |cells: &[f64]| encode(&Column::new(ColumnData::F64(cells.to_vec()), None));
        assert_eq!(single(&doubles(&[1.5])).and_then(Value::as_f64), Some(1.5));
        assert!(single(&doubles(&[])).is_none() && single(&doubles(&[1.5, 2.5])).is_none());
        // No end, bytes behind it, and no valid value.
        for bytes in [&[10, 0][..], &[10, 0, 0, 0], &[8, 0, 7, 0], &[2, 0, 1, 0, 0, 0, 9, 0]] {
            assert!(single(bytes).is_none(), "{bytes:?}");
        }
    }
}
