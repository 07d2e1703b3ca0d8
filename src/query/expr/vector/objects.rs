//! Operators on objects that are columns: `$getField`, `$mergeObjects`, `$setField`, `$unsetField`. Other objects are left to
//! `general`.

use super::cells::{Cells, Int32s, Vector};
use super::general::scalar_of;
use super::mask::Mask;
use super::pairs;
use super::run::VectorArguments;
use crate::block::{Column, ColumnData};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::value::{Kind, Value};

/// Names of fields, and a column for each.
pub type FieldColumns<'v> = Vec<(&'v str, Column)>;

/// `None` for other operators.
pub fn of_objects<'a>(operator: &Operator, arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    match operator.name() {
        "$mergeObjects" => merged(arguments),
        "$objectToArray" => pairs::of_object(arguments),
        "$arrayToObject" => pairs::of_array(arguments),
        "$setField" => with_field(arguments),
        "$unsetField" => without_field(arguments),
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
        for (name, column) in fields_in(vector, arguments.rows)? {
            put(&mut all, name, column)?;
        }
    }
    Some(Vector::made(Column::of_fields(all)?, Mask::NONE))
}

fn with_field<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let [name, objects, value] = arguments.vectors else { return None };
    let name = text(name).filter(|name| !name.contains('\0'))?;
    let mut all = fields_in(objects, arguments.rows)?;
    put(&mut all, name, Vector::clone(value).into_column(arguments.rows)?)?;
    Some(Vector::made(Column::of_fields(all)?, Mask::NONE))
}

/// The number of fields that each object has.
pub fn field_counts<'a>(objects: &Vector<'_>) -> Option<Vector<'a>> {
    let rows = objects_in(objects)?.len();
    let mut counts = vec![0.0; rows];
    for (_, column) in fields_in(objects, rows)? {
        match column.presence() {
            None => counts.iter_mut().for_each(|count| *count += 1.0),
            Some(present) => present.iter().for_each(|row| {
                counts.get_mut(row).into_iter().for_each(|count| *count += 1.0);
            }),
        }
    }
    Some(Cells::Numbers(counts.into(), Int32s::All).whole())
}

/// `$unsetField`.
fn without_field<'a>(arguments: &VectorArguments<'_, '_>) -> Option<Vector<'a>> {
    let [name, objects] = arguments.vectors else { return None };
    let (name, mut all) = (text(name)?, fields_in(objects, arguments.rows)?);
    all.retain(|(known, _)| *known != name);
    // Objects without fields are no column.
    let column = Column::of_fields(all).filter(|column| column.presence().is_none())?;
    Some(Vector::made(column, Mask::NONE))
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

/// The fields of objects, which may be the same for all rows.
pub fn fields_in<'v>(vector: &'v Vector<'_>, rows: usize) -> Option<FieldColumns<'v>> {
    if let (Cells::Constant(Some(object)), true) = (&vector.cells, vector.left.is_none()) {
        let is_scalar = |value: &Value<'_>| !matches!(value.kind(), Kind::Object | Kind::Array);
        let column = |value| Some(value).filter(is_scalar).map(|value| Column::constant(value, rows));
        return object.view().as_doc()?.iter().map(|(name, value)| Some((name, column(value)?))).listed_if_all();
    }
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
