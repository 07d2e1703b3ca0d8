//! Projections of objects whose fields are columns, without making the objects.

// Loaded later.

use super::apply::{Rewritten, set_below};
use super::parse::{Child, Projection, ProjectionNode};
use crate::block::{Column, ColumnData};

impl Projection {
    /// What is left of objects whose fields are columns. `None` if only single rows tell which objects are left.
    #[inline(never)]
    pub(super) fn rewrite_objects(&self, node: &ProjectionNode, column: &Column) -> Option<Column> {
        let ColumnData::Objects(objects) = column.data() else { return None };
        let mut left = Vec::new();
        for (name, column) in objects.fields()? {
            match node.child(name) {
                Some(Child::Below(node)) => match self.rewrite_column(node, &column) {
                    Rewritten::Same => left.push((name, column)),
                    Rewritten::Column(column) => left.push((name, column)),
                    Rewritten::Nothing => {}
                },
                child if self.keeps(child) => left.push((name, column)),
                _ => {}
            }
        }
        Column::of_fields(left)
    }
}

/// `column` with the fields at `path` in its objects set to `values`, in `new`. False unless the fields of these objects
/// are columns, and if the second half of the module is not loaded.
#[inline(never)]
pub(super) fn set_if_loaded(
    column: Option<&Column>,
    path: &[Box<str>],
    values: &Column,
    new: &mut Option<Column>,
) -> bool {
    *new = match column.map(|column| (column, column.data())) {
        Some((column, ColumnData::Objects(_))) => with_field(column, path, values),
        Some((_, ColumnData::Bson(_) | ColumnData::Dictionary(..))) => None,
        // Objects take the place of scalars, and of nothing.
        _ => path.iter().rev().try_fold(values.clone(), |inner, name| Column::of_fields(vec![(&**name, inner)])),
    };
    new.is_some()
}

/// Objects with the fields at `path` set to `values`. `None` unless their fields are columns, and if only single rows tell
/// where the new field stands.
fn with_field(column: &Column, path: &[Box<str>], values: &Column) -> Option<Column> {
    let (ColumnData::Objects(objects), None) = (column.data(), column.presence()) else { return None };
    let (first, below) = path.split_first()?;
    let mut fields = objects.fields()?;
    let known = fields.iter().position(|(name, _)| **name == **first);
    let before = known.and_then(|at| fields.get(at)).map(|(_, column)| column);
    if before.is_some_and(|before| before.presence().is_some()) {
        return None;
    }
    let new = if below.is_empty() { values.clone() } else { set_below(before, below, values) };
    match known.and_then(|at| fields.get_mut(at)) {
        Some((_, column)) => *column = new,
        None => fields.push((first, new)),
    }
    Column::of_fields(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::samples::shown;
    use crate::block::{Block, ColumnBuilder, Objects, ShapePart, pivot_docs};
    use crate::column::GrowingObjects;
    use crate::query::exec::join_blocks;
    use crate::query::filter::samples::globals;
    use crate::query::plan::Projection;
    use crate::value::{Doc, Kind, OwnedValue};
    use bson::{RawDocumentBuf, rawdoc};

    fn column(values: &[Option<i32>]) -> Column {
        let mut builder = ColumnBuilder::new();
        for value in values {
            match value {
                Some(n) => builder.push(OwnedValue::int32(*n).view()),
                None => builder.push_absent(1),
            }
        }
        builder.finish()
    }

    /// Three rows with objects `o: { a, p: { b?, q: { c } }, d?, s?: { e: [f?], g? } }` and a number `n`.
    fn rows() -> Block {
        let (full, some) = (|n| column(&[Some(n), Some(n + 1), Some(n + 2)]), |n| column(&[Some(n), None, Some(n)]));
        let scalar = |name: &str| ShapePart::Scalar(name.into());
        let open = |kind, name: &str| ShapePart::Open(kind, name.into());
        let close = || ShapePart::Close(false);
        let parts = vec![
            scalar("a"),
            open(Kind::Object, "p"),
            scalar("b"),
            open(Kind::Object, "q"),
            scalar("c"),
            close(),
            close(),
            scalar("d"),
            open(Kind::Object, "s"),
            open(Kind::Array, "e"),
            scalar("0"),
            close(),
            scalar("g"),
            close(),
        ];
        let scalars = vec![full(10), some(20), full(30), some(40), some(50), some(60)];
        let mut block = Block::new(3);
        block.set_column("o", Column::of_objects(Objects::new(parts.into(), scalars)));
        block.set_column("n", full(70));
        block.set_column("m", some(80));
        block
    }

    /// True if the projected objects still are columns. They are what objects made of them become.
    fn stays_columns(spec: &RawDocumentBuf, sets: bool) -> bool {
        let spec = Doc::parse(spec.as_bytes()).unwrap();
        let parse = if sets { Projection::parse_set } else { Projection::parse };
        let projection = parse(spec, &globals()).unwrap();
        let mut plain = rows();
        let made = plain.column("o").unwrap().clone().into_values();
        plain.set_column("o", made);
        let found = projection.apply(rows()).unwrap();
        assert_eq!(shown(&found), shown(&projection.apply(plain).unwrap()), "{spec:?}");
        found.column("o").is_some_and(|column| matches!(column.data(), ColumnData::Objects(_)))
    }

    #[test]
    fn a_projection_of_objects_in_columns_drops_columns() {
        for (spec, expected) in [
            (rawdoc! { "o.a": 0 }, true),
            (rawdoc! { "o.d": 0, "n": 0 }, true),
            (rawdoc! { "o.p.b": 0, "o.s.e": 0 }, true),
            (rawdoc! { "o.p": 0, "o.none.x": 0 }, true),
            (rawdoc! { "o.a.x": 0, "o.d.x": 0 }, true),
            (rawdoc! { "o.a": 1, "o.s": 1 }, true),
            (rawdoc! { "o.p.q": 1, "o.d": 1 }, true),
            (rawdoc! { "o.p.q.c": 1, "n": 1 }, true),
            (rawdoc! { "o.a.x": 1, "o.p": 1 }, true),
            // Objects that may be empty are made, but not those around them.
            (rawdoc! { "o.p.q.c": 0 }, true),
            (rawdoc! { "o.p.b": 1, "o.a": 1 }, true),
            (rawdoc! { "o.s.g": 0, "o.p.b.x": 0 }, true),
            (rawdoc! { "o.s.e.x": 1, "o.a": 1 }, true),
            (rawdoc! { "o.d": 1 }, false),
            (rawdoc! { "o.s.g": 1 }, false),
            (rawdoc! { "o.none": 1 }, false),
        ] {
            assert_eq!(stays_columns(&spec, false), expected, "{spec:?}");
        }
    }

    #[test]
    fn a_row_without_an_object_gets_none_from_empty_objects_inside() {
        let docs = [rawdoc! { "o": { "a": 1, "p": { "b": 1, "e": {} } } }, rawdoc! { "n": 1 }];
        let blocks = docs.iter().map(|doc| {
            let mut block = pivot_docs([Doc::parse(doc.as_bytes()).unwrap()]).unwrap();
            if let Some(objects) = block.column("o").and_then(|column| GrowingObjects::default().extend(column)) {
                block.set_column("o", Column::of_objects(objects));
            }
            block
        });
        let rows = join_blocks(blocks.collect());
        assert!(matches!(rows.column("o").unwrap().data(), ColumnData::Objects(_)));
        for spec in [rawdoc! { "o.a": 0 }, rawdoc! { "o.p": 1 }, rawdoc! { "o.p.b": 0 }, rawdoc! { "o.p.e": 1 }] {
            let projection = Projection::parse(Doc::parse(spec.as_bytes()).unwrap(), &globals()).unwrap();
            let found = projection.apply(rows.clone()).unwrap();
            let has = |row| found.column("o").is_some_and(|column| column.is_present(row));
            assert_eq!((has(0), has(1)), (true, false), "{spec:?}");
        }
        let (full, objects) = (column(&[Some(1), Some(2)]), rows.column("o").unwrap());
        assert!(Column::of_fields(vec![("n", full), ("o", objects.clone())]).is_none());
    }

    #[test]
    fn a_field_that_is_set_in_objects_in_columns_is_another_column() {
        for (spec, expected) in [
            (rawdoc! { "o.new": "$n" }, true),
            (rawdoc! { "o.new": "$m", "o.a": "$m" }, true),
            (rawdoc! { "o.a": "$n", "o.z": 1 }, true),
            (rawdoc! { "o.p.q.c": { "$add": ["$n", "$o.a"] } }, true),
            (rawdoc! { "o.p.new.x.y": "$n", "o.p.q.w": "text" }, true),
            (rawdoc! { "o.p": "$n", "o.a.x": "$m" }, true),
            (rawdoc! { "o.p.b": "$n" }, true),
            // Where the field is absent, the new one stands at the end.
            (rawdoc! { "o.d": "$n" }, false),
            (rawdoc! { "o.s.h": "$n" }, false),
            (rawdoc! { "o.s.e.x": "$n" }, false),
        ] {
            assert_eq!(stays_columns(&spec, true), expected, "{spec:?}");
        }
    }

    #[test]
    fn objects_made_of_a_field_that_all_rows_have_are_columns() {
        for (field, spec, expected) in [
            ("new", rawdoc! { "new.x": "$n", "new.y.z": "$m" }, true),
            ("n", rawdoc! { "n.x.y": "$n", "n.z": 1 }, true),
            ("m", rawdoc! { "m.x": "$n" }, true),
            // It is set to nothing where the source is missing, but then an object is made as well.
            ("new", rawdoc! { "new.x": "$m" }, false),
        ] {
            let set = Projection::parse_set(Doc::parse(spec.as_bytes()).unwrap(), &globals()).unwrap();
            let found = set.apply(rows()).unwrap();
            assert_eq!(matches!(found.column(field).unwrap().data(), ColumnData::Objects(_)), expected, "{spec:?}");
            for row in 0..3 {
                let alone = set.apply(rows().slice(row..row + 1)).unwrap();
                assert_eq!(shown(&found.slice(row..row + 1)), shown(&alone), "{spec:?}");
            }
        }
    }
}
