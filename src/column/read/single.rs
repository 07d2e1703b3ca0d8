//! The value of a column that has no other.

use super::super::scale;
use super::items::{Item, Items, SectionKind};
use super::words::ZERO_WORD;
use crate::value::{Doc, Kind, Value};

/// A reference of so many bytes has fewer fields than a section may have.
const REFERENCE_BYTES_MAX: usize = 1 << 16;

/// The value of a column that is one literal and nothing else, or one object that is the reference of its section.
pub fn single(bytes: &[u8]) -> Option<Value<'_>> {
    let mut items = Items::new(bytes);
    let value = match items.next(0).ok()?.0 {
        Item::Literal(kind, value) => Value::new_checked(kind, value),
        Item::Section(section, reference) if reference.len() < REFERENCE_BYTES_MAX => {
            let kind = match section {
                SectionKind::Legacy => return None,
                SectionKind::Object => Kind::Object,
                SectionKind::Array => Kind::Array,
            };
            if unchanged(Doc::new_checked(reference), &mut items)? == 0 {
                return None;
            }
            let (Item::End, _) = items.next(0).ok()? else { return None };
            Value::new_checked(kind, reference)
        }
        _ => return None,
    };
    let (Item::End, _) = items.next(0).ok()? else { return None };
    items.finish().ok()?;
    Some(value)
}

/// Reads one element for each scalar of an object, and returns how many these are. `None` unless each has the value that the
/// object has.
fn unchanged(object: Doc<'_>, items: &mut Items<'_>) -> Option<usize> {
    let mut scalars = 0;
    for (_, value) in object.fields() {
        if let Some(inner) = value.as_container() {
            scalars += unchanged(inner, items)?;
            continue;
        }
        scalars += 1;
        let Item::Control(control, words) = items.next(0).ok()?.0 else { return None };
        let scale = scale::scale_of(control)?;
        // A double must have an integer in its scale; other types have no scale.
        let fits = value.as_f64().map_or(scale == scale::RAW, |x| scale::encode(x, scale).is_some());
        if !fits || words != ZERO_WORD.to_le_bytes() {
            return None;
        }
    }
    Some(scalars)
}

#[cfg(test)]
mod tests {
    use super::super::super::write::encode;
    use super::*;
    use crate::block::{Column, ColumnData};
    use crate::column::read::forge::{Forge, array, deltas, double, int, object, plain, string};
    use crate::column::read::vectors::cells;
    use crate::value::OwnedValue;

    #[test]
    fn the_object_of_a_column_is_found_if_it_is_the_reference_of_its_section() {
        let inner = object(&[("x", int(1)), ("text", string("long text".repeat(5).as_str())), ("e", object(&[]))]);
        let list = array(&object(&[("0", double(0.1)), ("1", double(f64::NAN)), ("2", inner.clone())]));
        for value in
            [inner.clone(), list.clone(), object(&[("in", inner), ("list", list), ("none", OwnedValue::null())])]
        {
            let bytes = encode(&Column::constant(value.view(), 1));
            assert!(bytes.first().is_some_and(|first| *first >= 0xF1), "{bytes:?}");
            assert_eq!(single(&bytes).map(Value::to_owned), Some(value.clone()));
            let column = crate::column::decode(&bytes, 1);
            assert_eq!(column.as_ref().map(cells), Ok(vec![Some(value.clone())]));
            (0..bytes.len()).for_each(|len| assert_eq!(single(&bytes[..len]), None));
            assert_eq!(single(&encode(&Column::constant(value.view(), 2))), None);
        }
    }

    #[test]
    fn an_object_that_differs_from_its_reference_or_is_damaged_is_no_single_one() {
        let begin = |first: u8| Forge::default().section(first, &object(&[("x", double(0.1)), ("y", int(2))]));
        let (same, other) = (&[deltas(&[0])][..], &[deltas(&[1])][..]);
        let whole = |scale: u8| begin(0xF1).control(scale, same).control(0x80, same).end().end().bytes;
        assert!(single(&whole(0x80)).is_some() && single(&whole(0xA0)).is_some());
        for forge in [
            begin(0xF1).control(0x80, same).control(0x80, other).end().end(),
            begin(0xF1).control(0x80, same).control(0x80, &[plain(&[None])]).end().end(),
            begin(0xF1).control(0x80, same).literal(&int(3)).end().end(),
            // The double has no integer in this scale, and the integer has no scale.
            begin(0xF1).control(0x90, same).control(0x80, same).end().end(),
            begin(0xF1).control(0x80, same).control(0x90, same).end().end(),
            begin(0xF1).control(0x80, same).end().end(),
            begin(0xF1).control(0x80, same).control(0x80, same).end().literal(&int(1)).end(),
            begin(0xF0).control(0x80, same).control(0x80, same).end().end(),
            Forge::default().section(0xF1, &object(&[("o", object(&[]))])).end().end(),
        ] {
            assert_eq!(single(&forge.bytes), None, "{:?}", forge.bytes);
        }
    }

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
