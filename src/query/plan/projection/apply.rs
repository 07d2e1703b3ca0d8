//! Applies a projection to the columns of a block.
//!
//! Source: mongodb/mongo src/mongo/db/exec/projection_node.cpp.

use super::objects::set_if_loaded;
use super::parse::{Child, Projection, ProjectionNode};
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Doc, DocWriter, Kind, Value};

impl Projection {
    /// The rows of `block` with the fields that the projection keeps, in their order, followed by computed ones.
    ///
    /// Errors: those of expressions.
    pub fn apply(&self, mut block: Block) -> Result<Block> {
        let computed = self.computed.iter().map(|(_, expr)| expr.column(&block)).try_listed()?;
        block.retain_columns(|name| self.keeps_root(name));
        for (name, child) in &self.root.children {
            let (Child::Below(node), Some(column)) = (child, block.column(name)) else { continue };
            match self.rewrite_column(node, column) {
                Rewritten::Same => {}
                Rewritten::Column(column) => block.set_column(name, column),
                Rewritten::Nothing => {
                    block.remove_column(name);
                }
            }
        }
        for ((path, _), values) in self.computed.iter().zip(computed) {
            let Some((root, below)) = path.split_first() else { continue };
            let values = if below.is_empty() { values } else { set_below(block.column(root), below, &values) };
            match values.present_count() {
                0 => drop(block.remove_column(root)),
                _ => block.set_column(root, values),
            }
        }
        Ok(block)
    }

    /// True if the projection may keep something of the top-level field `root`.
    pub fn keeps_root(&self, root: &str) -> bool {
        self.keeps(self.root.child(root))
    }

    /// True if the projection may keep something of a field.
    pub(super) fn keeps(&self, child: Option<&Child>) -> bool {
        match child {
            None => !self.inclusion,
            Some(Child::Named) => self.inclusion,
            Some(Child::Computed) => false,
            Some(Child::Below(_)) => true,
        }
    }

    /// True if the top-level field `root` stays unchanged.
    pub fn leaves_root(&self, root: &str) -> bool {
        let child = self.root.child(root);
        let is_kept = self.keeps(child) && !matches!(child, Some(Child::Below(_)));
        is_kept && self.computed.iter().all(|(path, _)| path.first().is_none_or(|first| **first != *root))
    }

    /// True if `apply` changes nothing in a block.
    pub fn leaves_block(&self, block: &Block) -> bool {
        self.computed.is_empty() && block.columns().iter().all(|(name, _)| self.leaves_root(name))
    }

    /// True if `apply` reads the top-level field `root`.
    pub fn reads_root(&self, root: &str) -> bool {
        self.keeps_root(root) || self.computed.iter().any(|(_, expr)| expr.fields().contains(root))
    }

    /// True if a scalar in the place of `node` is dropped: it has none of the fields below. If some are computed, it
    /// keeps its place for them.
    fn drops_scalars(&self, node: &ProjectionNode) -> bool {
        self.inclusion && !node.computes()
    }

    pub(super) fn rewrite_column(&self, node: &ProjectionNode, column: &Column) -> Rewritten {
        match column.data() {
            ColumnData::Bson(_) | ColumnData::Objects(_) => {
                // Loaded by now: `column::read::objects` has made the column.
                if is_objects(column)
                    && let Some(rewritten) = self.rewrite_objects(node, column)
                {
                    return Rewritten::Column(rewritten);
                }
                let (rewritten, present) = self.rewrite_cells(node, column);
                if present == 0 { Rewritten::Nothing } else { Rewritten::Column(rewritten) }
            }
            ColumnData::Dictionary(index, values) => self.rewrite_dictionary(node, column, index, values),
            // Typed cells are scalars, and a scalar has no fields below it.
            _ if self.drops_scalars(node) => Rewritten::Nothing,
            _ => Rewritten::Same,
        }
    }

    /// The rewritten cells, and how many are left.
    fn rewrite_cells(&self, node: &ProjectionNode, column: &Column) -> (Column, usize) {
        let mut builder = ColumnBuilder::with_capacity(column.len());
        let mut scratch = Vec::new();
        let mut present = 0;
        for row in 0..column.len() {
            let value = column.value(row, &mut scratch);
            match value.and_then(|v| v.as_container().map(|container| (v.kind(), container))) {
                Some((kind, container)) => {
                    let mut writer = DocWriter::with_capacity(container.as_bytes().len());
                    self.write_container(node, kind, container, &mut writer);
                    let doc = writer.finish();
                    builder.push(Value::new_checked(kind, doc.view().as_bytes()));
                    present += 1;
                }
                None => {
                    let scalar = value.filter(|_| !self.drops_scalars(node));
                    present += usize::from(scalar.is_some());
                    push(&mut builder, scalar);
                }
            }
        }
        (builder.finish(), present)
    }

    fn rewrite_dictionary(&self, node: &ProjectionNode, column: &Column, index: &[u32], values: &Column) -> Rewritten {
        if !matches!(values.data(), ColumnData::Bson(_)) {
            return if self.drops_scalars(node) { Rewritten::Nothing } else { Rewritten::Same };
        }
        let (rewritten, present) = self.rewrite_cells(node, values);
        if present == 0 {
            return Rewritten::Nothing;
        }
        // A dictionary has no absent values, so those that the projection emptied are removed.
        let left = rewritten.presence().map_or_else(|| (0..rewritten.len() as u32).collect(), Bitmap::to_rows);
        let place = |(row, at): (usize, &u32)| left.binary_search(at).ok().filter(|_| column.is_present(row));
        let places: Vec<Option<usize>> = index.iter().enumerate().map(place).listed();
        let presence = Bitmap::from_slice(&places, Option::is_some);
        let index = places.iter().map(|place| place.unwrap_or_default() as u32);
        let data = ColumnData::Dictionary(index.listed(), Box::new(rewritten.gather(&left)));
        Rewritten::Column(Column::new(data, Some(presence)))
    }

    /// Writes what is left of an object or an array into the document that `writer` has open.
    fn write_container(&self, node: &ProjectionNode, kind: Kind, container: Doc<'_>, writer: &mut DocWriter) {
        let mut position = 0_usize;
        for (name, value) in container {
            let inner = value.as_container();
            if kind == Kind::Array {
                // Elements move up if a scalar disappears; arrays in arrays are rewritten too.
                match inner {
                    Some(inner) => self.write_inner(node, &position.to_string(), value.kind(), inner, writer),
                    None if self.drops_scalars(node) => continue,
                    None => {
                        writer.value(&position.to_string(), value);
                    }
                }
                position += 1;
                continue;
            }
            match (node.child(name), inner) {
                (Some(Child::Below(child)), Some(inner)) => self.write_inner(child, name, value.kind(), inner, writer),
                (Some(Child::Below(child)), None) if self.drops_scalars(child) => {}
                // Also a scalar above a path that is dropped.
                (child, _) if self.keeps(child) => {
                    writer.value(name, value);
                }
                _ => {}
            }
        }
    }

    fn write_inner(&self, node: &ProjectionNode, name: &str, kind: Kind, inner: Doc<'_>, writer: &mut DocWriter) {
        if kind == Kind::Array {
            writer.begin_array(name)
        } else {
            writer.begin_doc(name)
        };
        self.write_container(node, kind, inner, writer);
        writer.end();
    }
}

fn is_objects(column: &Column) -> bool {
    matches!(column.data(), ColumnData::Objects(_))
}

/// `column` with the fields at `path` in its objects set to `values`.
pub(super) fn set_below(column: Option<&Column>, path: &[Box<str>], values: &Column) -> Column {
    let mut new = None;
    if set_if_loaded(column, path, values, &mut new)
        && let Some(new) = new
    {
        return new;
    }
    let mut builder = ColumnBuilder::with_capacity(values.len());
    let (mut scratch, mut new) = (Vec::new(), Vec::new());
    for row in 0..values.len() {
        let before = column.and_then(|column| column.value(row, &mut scratch));
        let mut writer = DocWriter::new();
        write_below(&mut writer, "", before, path, values.value(row, &mut new));
        let doc = writer.finish();
        push(&mut builder, doc.view().get(""));
    }
    builder.finish()
}

/// Writes the fields of an object with `new` at `path`: in its place, or at the end if there was none. In an array it
/// is set in each element; any other value on the way is replaced by an object.
pub fn write_set(writer: &mut DocWriter, object: Option<Doc<'_>>, path: &[Box<str>], new: Option<Value<'_>>) {
    let Some((first, below)) = path.split_first() else { return };
    let put = |writer: &mut DocWriter, before: Option<Value<'_>>| match new {
        _ if !below.is_empty() => write_below(writer, first, before, below, new),
        Some(new) => drop(writer.value(first, new)),
        None => {}
    };
    let mut is_set = false;
    for (name, value) in object.unwrap_or(Doc::EMPTY) {
        if *name == **first {
            is_set = true;
            put(writer, Some(value));
        } else {
            writer.value(name, value);
        }
    }
    if !is_set {
        put(writer, None);
    }
}

fn write_below(
    writer: &mut DocWriter,
    name: &str,
    before: Option<Value<'_>>,
    path: &[Box<str>],
    new: Option<Value<'_>>,
) {
    if let Some(array) = before.and_then(Value::as_array) {
        writer.begin_array(name);
        array.iter().for_each(|(name, element)| write_below(writer, name, Some(element), path, new));
    } else {
        writer.begin_doc(name);
        write_set(writer, before.and_then(Value::as_doc), path, new);
    }
    writer.end();
}

fn push(builder: &mut ColumnBuilder, value: Option<Value<'_>>) {
    match value {
        Some(value) => builder.push(value),
        None => builder.push_absent(1),
    }
}

/// What a projection leaves of a column.
pub(super) enum Rewritten {
    Same,
    Column(Column),
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::query::filter::samples::globals;
    use crate::value::OwnedValue;
    use bson::{RawDocumentBuf, cstr, rawdoc};

    fn parse(spec: &RawDocumentBuf) -> Result<Projection> {
        Projection::parse(Doc::parse(spec.as_bytes()).unwrap(), &globals())
    }

    fn project(spec: RawDocumentBuf, doc: RawDocumentBuf) -> RawDocumentBuf {
        let block = pivot_docs([Doc::parse(doc.as_bytes()).unwrap()]).unwrap();
        row(&parse(&spec).unwrap().apply(block).unwrap(), 0)
    }

    fn row(block: &Block, row: usize) -> RawDocumentBuf {
        let mut writer = DocWriter::new();
        block.write_row(row, &mut writer);
        RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
    }

    #[test]
    fn an_inclusion_keeps_its_fields_and_the_id_in_the_order_of_the_document() {
        let doc = rawdoc! { "t": 1, "b": 2, "_id": 3, "a": 4 };
        assert_eq!(project(rawdoc! { "a": 1, "b": true }, doc.clone()), rawdoc! { "b": 2, "_id": 3, "a": 4 });
        assert_eq!(project(rawdoc! { "a": 2.5, "_id": 0 }, doc.clone()), rawdoc! { "a": 4 });
        assert_eq!(project(rawdoc! { "_id": 1 }, doc), rawdoc! { "_id": 3 });
        assert_eq!(project(rawdoc! { "a": 1 }, rawdoc! { "b": 2 }), rawdoc! {});
    }

    #[test]
    fn an_exclusion_drops_its_fields_and_the_id_only_where_it_is_named() {
        let doc = rawdoc! { "t": 1, "b": 2, "_id": 3 };
        assert_eq!(project(rawdoc! { "b": 0 }, doc.clone()), rawdoc! { "t": 1, "_id": 3 });
        assert_eq!(project(rawdoc! { "b": false, "_id": 0 }, doc.clone()), rawdoc! { "t": 1 });
        assert_eq!(project(rawdoc! { "_id": 1, "b": 0 }, doc.clone()), rawdoc! { "t": 1, "_id": 3 });
        assert_eq!(project(rawdoc! { "_id": 0_i64 }, doc.clone()), rawdoc! { "t": 1, "b": 2 });
        assert_eq!(project(rawdoc! {}, doc.clone()), doc);
    }

    #[test]
    fn a_nested_inclusion_maps_over_arrays_and_drops_scalars_in_the_way() {
        let spec = || rawdoc! { "a.b": 1, "_id": 0 };
        assert_eq!(project(spec(), rawdoc! { "a": { "b": 1, "c": 2 } }), rawdoc! { "a": { "b": 1 } });
        assert_eq!(project(spec(), rawdoc! { "a": { "c": 2 } }), rawdoc! { "a": {} });
        assert_eq!(project(spec(), rawdoc! { "a": 5 }), rawdoc! {});
        assert_eq!(
            project(spec(), rawdoc! { "a": [1, { "b": 2, "c": 3 }, [{ "b": 4 }, 5], {}] }),
            rawdoc! { "a": [{ "b": 2 }, [{ "b": 4 }], {}] }
        );
        assert_eq!(project(rawdoc! { "a.b.c": 1 }, rawdoc! { "a": { "b": 7 } }), rawdoc! { "a": {} });
    }

    #[test]
    fn a_nested_exclusion_maps_over_arrays_and_keeps_scalars_in_the_way() {
        let spec = || rawdoc! { "a.b": 0 };
        assert_eq!(project(spec(), rawdoc! { "a": { "b": 1, "c": 2 } }), rawdoc! { "a": { "c": 2 } });
        assert_eq!(project(spec(), rawdoc! { "a": 5 }), rawdoc! { "a": 5 });
        assert_eq!(
            project(spec(), rawdoc! { "a": [1, { "b": 2, "c": 3 }, [{ "b": 4 }, 5]] }),
            rawdoc! { "a": [1, { "c": 3 }, [{}, 5]] }
        );
        assert_eq!(project(rawdoc! { "a.b.c": 0 }, rawdoc! { "a": { "b": 7 } }), rawdoc! { "a": { "b": 7 } });
    }

    #[test]
    fn computed_fields_follow_the_kept_ones_in_the_order_of_the_projection() {
        let doc = rawdoc! { "t": 1, "b": 2, "_id": 3, "a": 4 };
        let spec = rawdoc! { "z": { "$add": ["$a", "$b"] }, "b": 1, "a": { "$multiply": ["$a", 10] }, "k": "text" };
        assert_eq!(project(spec, doc.clone()), rawdoc! { "b": 2, "_id": 3, "z": 6, "a": 40, "k": "text" });
        // Computed from the original document, and not set if there is no value.
        let spec = rawdoc! { "_id": 0, "a": "$b", "b": "$a", "x": "$none" };
        assert_eq!(project(spec, doc.clone()), rawdoc! { "a": 2, "b": 4 });
        assert_eq!(
            project(rawdoc! { "_id": 0, "l": ["$a", "$none"] }, doc.clone())
                .get_array("l")
                .unwrap()
                .into_iter()
                .count(),
            2
        );
        assert_eq!(project(rawdoc! { "_id": { "$literal": 7 } }, doc.clone()), rawdoc! { "_id": 7 });
        assert_eq!(project(rawdoc! { "all": "$$ROOT", "_id": 0 }, doc.clone()), rawdoc! { "all": doc });
    }

    #[test]
    fn a_computed_path_is_set_in_objects_and_in_each_element_of_arrays() {
        let spec = || rawdoc! { "_id": 0, "a.b": "$n", "a.c": 1 };
        assert_eq!(
            project(spec(), rawdoc! { "n": 5, "a": { "b": 1, "c": 2, "d": 3 } }),
            rawdoc! { "a": { "c": 2, "b": 5 } }
        );
        assert_eq!(project(spec(), rawdoc! { "n": 5, "a": 7 }), rawdoc! { "a": { "b": 5 } });
        assert_eq!(project(spec(), rawdoc! { "n": 5 }), rawdoc! { "a": { "b": 5 } });
        assert_eq!(project(spec(), rawdoc! { "a": { "b": 1 } }), rawdoc! { "a": {} });
        assert_eq!(
            project(spec(), rawdoc! { "n": 5, "a": [1, { "c": 2, "d": 3 }, [{ "b": 4 }]] }),
            rawdoc! { "a": [{ "b": 5 }, { "c": 2, "b": 5 }, [{ "b": 5 }]] }
        );
        assert_eq!(
            project(rawdoc! { "_id": 0, "a": { "x": { "y": "$n" } } }, rawdoc! { "n": 5, "a": { "x": 1 } }),
            rawdoc! { "a": { "x": { "y": 5 } } }
        );
    }

    #[test]
    fn a_computed_path_keeps_the_position_of_its_field() {
        let doc = rawdoc! { "b": 4, "o": { "p": { "q": 1 }, "s": 3, "r": 2 }, "a": 1 };
        assert_eq!(
            project(rawdoc! { "_id": 0, "b.c": "$a", "a": 1 }, doc.clone()),
            rawdoc! { "b": { "c": 1 }, "a": 1 }
        );
        for (path, place) in [(cstr!("o.p.z"), cstr!("p")), (cstr!("o.s.z"), cstr!("s"))] {
            let found = project(rawdoc! { "_id": 0, path: "$a", "o.r": 1 }, doc.clone());
            assert_eq!(found, rawdoc! { "o": { place: { "z": 1 }, "r": 2 } });
        }
        let set = rawdoc! { "o.s": "$a", "b.c": "$a" };
        let set = Projection::parse_set(Doc::parse(set.as_bytes()).unwrap(), &globals()).unwrap();
        let block = pivot_docs([Doc::parse(doc.as_bytes()).unwrap()]).unwrap();
        let expected = rawdoc! { "b": { "c": 1 }, "o": { "p": { "q": 1 }, "s": 1, "r": 2 }, "a": 1 };
        assert_eq!(row(&set.apply(block).unwrap(), 0), expected);
    }

    #[test]
    fn an_expression_that_fails_fails_the_projection() {
        let block = pivot_docs([Doc::parse(rawdoc! { "a": "text" }.as_bytes()).unwrap()]).unwrap();
        let failed = parse(&rawdoc! { "x": { "$add": ["$a", 1] } }).unwrap().apply(block).unwrap_err();
        assert_eq!(failed.code, crate::error::ErrorCode::TypeMismatch);
    }

    #[test]
    fn a_dictionary_is_projected_value_by_value_and_stays_a_dictionary() {
        let meta = rawdoc! { "b": 1, "c": 2 };
        let meta = Doc::parse(meta.as_bytes()).unwrap().as_value();
        let mut block = Block::new(3);
        block.set_column("m", Column::constant(meta, 3));
        let included = parse(&rawdoc! { "m.b": 1 }).unwrap().apply(block.clone()).unwrap();
        assert!(matches!(included.column("m").unwrap().data(), ColumnData::Dictionary(..)));
        assert_eq!(row(&included, 2), rawdoc! { "m": { "b": 1 } });
        block.set_column("m", Column::constant(OwnedValue::int32(1).view(), 3));
        assert!(parse(&rawdoc! { "m.b": 1 }).unwrap().apply(block.clone()).unwrap().columns().is_empty());
        assert_eq!(row(&parse(&rawdoc! { "m.b": 0 }).unwrap().apply(block).unwrap(), 0), rawdoc! { "m": 1 });
    }

    #[test]
    fn values_that_become_missing_leave_the_dictionary() {
        let mut values = ColumnBuilder::new();
        values.push(OwnedValue::int32(1).view());
        let object = rawdoc! { "b": 1, "c": 2 };
        values.push(Doc::parse(object.as_bytes()).unwrap().as_value());
        let data = ColumnData::Dictionary(vec![0, 1, 1, 0], Box::new(values.finish()));
        let mut block = Block::new(4);
        block.set_column("m", Column::new(data, Some(Bitmap::from_fn(4, |row| row != 1))));
        let block = parse(&rawdoc! { "m.b": 1 }).unwrap().apply(block).unwrap();
        let rows: Vec<_> = (0..4).map(|i| row(&block, i)).collect();
        assert_eq!(rows, [rawdoc! {}, rawdoc! {}, rawdoc! { "m": { "b": 1 } }, rawdoc! {}]);
        assert!(crate::block::decode(&crate::block::encode(&block)).is_ok());
    }
}
