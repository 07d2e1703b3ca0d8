//! Operators on objects that are columns: `$getField`, `$mergeObjects`, `$setField`, `$objectToArray`. Other objects are left to
//! `general`.

use kernels::elements::{push_named, push_text};

use super::cells::{Cells, Int32s, Vector};
use super::general::scalar_of;
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::{Column, ColumnData, VarData};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::value::Kind;

/// FieldColumns, and a column for each.
type FieldColumns<'v> = Vec<(&'v str, Column)>;

/// `None` for other operators.
pub fn of_objects<'a>(operator: &Operator, arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    match operator.name() {
        "$mergeObjects" => merged(arguments),
        "$objectToArray" => pairs(arguments),
        "$setField" => with_field(arguments),
        _ => None,
    }
}

/// `$getField` of a constant name.
pub fn field<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let [name, objects] = arguments.vectors else { return None };
    let found = scalar_of(objects_in(objects)?, &[text(name)?.into()])?;
    Some(found.map_or(Vector::constant(None), |found| Vector::made(found, Mask::NONE)))
}

fn merged<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let mut all = FieldColumns::new();
    for vector in arguments.vectors {
        for (name, column) in fields_in(vector)? {
            put(&mut all, name, column)?;
        }
    }
    Some(Vector::made(Column::of_fields(all)?, Mask::NONE))
}

fn with_field<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let [name, objects, value] = arguments.vectors else { return None };
    let name = text(name).filter(|name| !name.contains('\0'))?;
    let mut all = fields_in(objects)?;
    put(&mut all, name, Vector::clone(value).into_column(arguments.rows)?)?;
    Some(Vector::made(Column::of_fields(all)?, Mask::NONE))
}

/// The number of fields that each object has.
pub fn field_counts<'a>(objects: &Vector<'_>) -> Option<Vector<'a>> {
    let mut counts = vec![0.0; objects_in(objects)?.len()];
    for (_, column) in fields_in(objects)? {
        match column.presence() {
            None => counts.iter_mut().for_each(|count| *count += 1.0),
            Some(present) => present.iter().for_each(|row| {
                counts.get_mut(row).into_iter().for_each(|count| *count += 1.0);
            }),
        }
    }
    Some(Cells::Numbers(counts.into(), Int32s::All).whole())
}

/// `$objectToArray`.
fn pairs<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let fields = fields_in(arguments.at(0)?)?;
    let head = |name: &str| {
        let (mut text, mut head) = (Vec::new(), vec![0; LENGTH_BYTES]);
        push_text(&mut text, name.as_bytes());
        push_named(&mut head, Kind::String.byte(), b"k", &text);
        head
    };
    let heads: Vec<Vec<u8>> = fields.iter().map(|(name, _)| head(name)).listed();
    let numbers: Vec<String> = (0..fields.len()).map(|number| number.to_string()).listed();
    let mut cells = VarData::default();
    let (mut array, mut pair, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..arguments.rows {
        array.clear();
        array.resize(LENGTH_BYTES, 0);
        let mut next = numbers.iter();
        for ((_, column), head) in fields.iter().zip(&heads) {
            let Some(value) = column.value(row, &mut scratch) else { continue };
            pair.clear();
            pair.extend_from_slice(head);
            push_named(&mut pair, value.kind().byte(), b"v", value.bytes());
            end(&mut pair);
            push_named(&mut array, Kind::Object.byte(), next.next()?.as_bytes(), &pair);
        }
        end(&mut array);
        cells.bytes.push(Kind::Array.byte());
        cells.push(&array);
    }
    Some(Vector::made(Column::new(ColumnData::Bson(cells), None), Mask::NONE))
}

/// The length of a document, which stands in front of it.
const LENGTH_BYTES: usize = 4;

/// Ends a document.
fn end(document: &mut Vec<u8>) {
    document.push(0);
    let length = u32::try_from(document.len()).unwrap_or(u32::MAX).to_le_bytes();
    document.iter_mut().zip(length).for_each(|(byte, new)| *byte = new);
}

/// Replaces or adds a field. `None` if a row may keep the value that it has, or has the field in another place than others.
fn put<'v>(all: &mut FieldColumns<'v>, name: &'v str, column: Column) -> Option<()> {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) if column.presence().is_none() && known.presence().is_none() => *known = column,
        Some(_) => return None,
        None => all.push((name, column)),
    }
    Some(())
}

fn text<'v>(vector: &'v Vector<'_>) -> Option<&'v str> {
    let Cells::Constant(Some(value)) = &vector.cells else { return None };
    value.view().as_str()
}

/// Objects, of which no row lacks one.
fn objects_in<'v>(vector: &'v Vector<'_>) -> Option<&'v Column> {
    let Cells::Any(column) = &vector.cells else { return None };
    let is_whole = vector.all_left().is_none() && vector.absent().is_none();
    (is_whole && matches!(column.data(), ColumnData::Objects(_))).then_some(column)
}

fn fields_in<'v>(vector: &'v Vector<'_>) -> Option<FieldColumns<'v>> {
    let ColumnData::Objects(objects) = objects_in(vector)?.data() else { return None };
    objects.fields()
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, bson, doc};

    use super::*;
    use crate::block::{Block, ColumnBuilder};
    use crate::query::expr::samples::globals;
    use crate::query::expr::{BoundExpr, Expr};
    use crate::value::Doc;

    #[test]
    fn objects_that_are_columns_are_merged_as_columns() {
        let mut objects = ColumnBuilder::new();
        for row in 0..9 {
            let mut object = doc! { "x": row, "y": f64::from(row) / 2.0 };
            if row % 2 == 0 {
                object.insert("z", row * 2);
            }
            let object = RawDocumentBuf::try_from(&doc! { "": object }).unwrap();
            objects.push(Doc::parse(object.as_bytes()).unwrap().get("").unwrap());
        }
        let objects = crate::column::read_again(&objects.finish());
        assert!(matches!(objects.data(), ColumnData::Objects(_)));
        let mut block = Block::new(9);
        block.set_column("o", objects);
        // What is added to objects in which a row lacks the field may be in another place in each row.
        for (expression, is_column) in [
            (bson!({ "$mergeObjects": ["$o", { "y": "$o.y", "n": { "$add": ["$o.y", 0.5] } }] }), true),
            (bson!({ "$setField": { "field": "x", "input": "$o", "value": { "$add": ["$o.x", 1] } } }), true),
            (bson!({ "$setField": { "field": "new", "input": "$o", "value": "text" } }), true),
            (bson!({ "$mergeObjects": ["$o", { "z": { "$add": ["$o.y", 0.5] } }] }), false),
            (bson!({ "$mergeObjects": ["$o", null] }), false),
            (bson!({ "$setField": { "field": "x", "input": "$$ROOT", "value": "text" } }), true),
            (bson!({ "$objectToArray": "$$ROOT" }), false),
            (bson!({ "$objectToArray": "$o" }), false),
            (bson!({ "$size": { "$objectToArray": "$o" } }), false),
            (bson!({ "$setField": { "field": "x", "input": "$o", "value": "$o.z" } }), false),
        ] {
            let doc = RawDocumentBuf::try_from(&doc! { "": expression.clone() }).unwrap();
            let expr = Expr::parse(Doc::parse(doc.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap();
            let expr = BoundExpr::new(expr, globals());
            let (found, expected) = (expr.column(&block).unwrap(), expr.one_by_one(&block).unwrap());
            assert_eq!(matches!(found.data(), ColumnData::Objects(_)), is_column, "{expression}");
            for row in 0..9 {
                assert_eq!(found.value(row, &mut Vec::new()), expected.value(row, &mut Vec::new()), "{expression}");
            }
        }
    }
}
