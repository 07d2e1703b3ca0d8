//! Objects as arrays of names and values, and back: `$objectToArray`, `$arrayToObject`.

// Loaded later.

use std::rc::Rc;

use kernels::elements::push_named;

use super::arrays::{elements_of, reached};
use super::cells::{Cells, Vector};
use super::mask::Mask;
use super::objects::{FieldColumns, fields_in};
use super::run::VectorArguments;
use crate::block::{ArrayElements, Column, ColumnBuilder, ColumnData, VarData};
use crate::listed::IntoList;
use crate::value::{Kind, OwnedValue, Value};

/// Objects with more fields than this are made row by row.
const FIELDS_MAX: usize = 64;

/// `$objectToArray` of objects that are columns: names and values are a column each.
pub fn of_object<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let rows = arguments.rows;
    let fields = fields_in(arguments.at(0)?, rows)?;
    let (mut names, mut all) = (ColumnBuilder::new(), ColumnBuilder::new());
    for (name, column) in &fields {
        names.push(OwnedValue::string(name).view());
        all.extend(column, 0..rows);
    }
    let (mut index, mut places, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        for (number, (_, column)) in fields.iter().enumerate() {
            if column.presence().is_none_or(|present| present.get(row)) {
                index.push(number as u32);
                places.push((number * rows + row) as u32);
            }
        }
        ends.push(places.len() as u32);
    }
    let values = all.finish().gather(&places);
    let names = Column::new(ColumnData::Dictionary(index, Box::new(names.finish())), None);
    let values = Column::of_fields(vec![("k", names), ("v", values)])?;
    Some(Cells::Lists(Rc::new(ArrayElements { values, ends })).whole())
}

/// `$arrayToObject` of arrays of objects `{ k, v }`. `None` for others, and if an array has a name twice.
pub fn of_array<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let vector = arguments.at(0)?;
    let list = elements_of(vector)?;
    let mut scratch = Vec::new();
    let are_pairs = match list.values.data() {
        ColumnData::Objects(objects) => objects.fields()?.len() == 2,
        _ => (0..list.values.len()).all(|at| {
            let pair = list.values.value(at, &mut scratch).and_then(Value::as_doc);
            pair.is_some_and(|pair| pair.iter().count() == 2)
        }),
    };
    let part =
        |name: &str| Some(reached(&list, &[name.into()]).filter(|part| are_pairs && part.ends == list.ends)?.values);
    let (names, values) = (part("k")?, part("v")?);
    let each = (0..names.len()).map(|at| name_in(&names, at)).listed_if_all()?;
    let is_twice =
        |array: &[&str]| array.iter().enumerate().any(|(at, name)| array.iter().take(at).any(|known| known == name));
    let arrays = (0..list.ends.len()).map(|row| each.get(list.range(row)).unwrap_or_default());
    if arrays.clone().any(|array| array.len() > FIELDS_MAX || is_twice(array)) {
        return None;
    }
    let (null, left) = (vector.absent(), vector.left.clone());
    let first = each.get(list.range(0)).unwrap_or_default();
    if null.is_none() && !first.is_empty() && arrays.clone().all(|array| array == first) {
        // The same fields in each row.
        let column =
            |at: usize| values.gather(&(0..arguments.rows).map(|row| (row * first.len() + at) as u32).listed());
        let fields: FieldColumns<'_> = first.iter().enumerate().map(|(at, name)| (*name, column(at))).listed();
        return Some(Vector::made(Column::of_fields(fields)?, left));
    }
    let mut cells = VarData::default();
    let mut object = Vec::new();
    for row in 0..arguments.rows {
        object.clear();
        object.resize(LENGTH_BYTES, 0);
        for at in list.range(row) {
            let value = values.value(at, &mut scratch)?;
            push_named(&mut object, value.kind().byte(), each.get(at)?.as_bytes(), value.bytes());
        }
        object.push(0);
        let length = u32::try_from(object.len()).unwrap_or(u32::MAX).to_le_bytes();
        object.iter_mut().zip(length).for_each(|(byte, new)| *byte = new);
        cells.bytes.push(Kind::Object.byte());
        cells.push(&object);
    }
    let made = Column::new(ColumnData::Bson(cells), None);
    Some(Cells::Any(std::borrow::Cow::Owned(made)).with(Mask::NONE, null, left))
}

/// The text of a row that may be the name of a field.
fn name_in(column: &Column, row: usize) -> Option<&str> {
    match column.data() {
        ColumnData::String(cells) => std::str::from_utf8(cells.get(row)).ok().filter(|name| !name.contains('\0')),
        ColumnData::Dictionary(index, entries) => name_in(entries, *index.get(row)? as usize),
        _ => None,
    }
}

/// The length of a document, which stands in front of it.
const LENGTH_BYTES: usize = 4;
