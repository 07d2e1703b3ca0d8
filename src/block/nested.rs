//! Arrays and objects in a reply, as columns of their elements and fields: JavaScript reads these several times faster than BSON.

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData};
use super::pivot::DocPivot;
use super::table::Block;
use crate::limits::BLOCK_ROWS_MAX;
use crate::value::Kind;

/// Fewer values stay BSON: to begin a block takes JavaScript as long as some dozens of them.
const VALUES_MIN: usize = 256;

/// The ends of arrays and a column of their elements, or the fields of objects.
type Nested = (Option<Vec<u32>>, Block);

/// The elements or fields of the values of a column, if all are arrays, or all are objects and most have most of the fields. False
/// if it stays as it is.
// Loaded later.
#[inline(never)]
pub(super) fn nested_if_loaded(column: &Column, nested: &mut Option<Nested>) -> bool {
    *nested = match column.data() {
        ColumnData::Objects(_) => fields_of(column).map(|fields| (None, fields)),
        ColumnData::Bson(cells) => match cells.bytes.first().and_then(|kind| Kind::from_byte(*kind)) {
            Some(Kind::Object) => pivoted(column).map(|fields| (None, fields)),
            Some(Kind::Array) => elements_of(column),
            _ => None,
        },
        _ => None,
    };
    nested.is_some()
}

/// The fields of objects that are columns.
fn fields_of(column: &Column) -> Option<Block> {
    let ColumnData::Objects(objects) = column.data() else { return None };
    let mut block = Block::new(column.len());
    objects.fields()?.into_iter().for_each(|(name, column)| block.push_new_column(name, column));
    is_dense(&block).then_some(block)
}

/// The fields of objects that are BSON. `None` if not all are objects with the same fields in the same order: where some lack
/// fields, JavaScript reads BSON as fast.
fn pivoted(column: &Column) -> Option<Block> {
    if column.present_count() < VALUES_MIN {
        return None;
    }
    let mut pivot = DocPivot::new();
    let mut scratch = Vec::new();
    let mut fields = None;
    for row in 0..column.len() {
        let mut place = pivot.begin_row();
        let Some(value) = column.value(row, &mut scratch) else { continue };
        let mut count = 0;
        for (name, value) in value.as_doc()? {
            count += usize::from(pivot.push_field(&mut place, name, value));
        }
        if *fields.get_or_insert(count) != pivot.fields() || count != pivot.fields() {
            return None;
        }
    }
    pivot.agrees().then(|| pivot.finish()).filter(is_dense)
}

/// False if most cells are absent: the reader looks at each field of each object. A name with `$` may belong to a reference to a
/// document, which is not an object in JavaScript.
fn is_dense(fields: &Block) -> bool {
    let present = |column: &Column| column.presence().map_or(column.len(), Bitmap::count);
    let known: usize = fields.columns().iter().map(|(_, column)| present(column)).sum();
    2 * known >= fields.columns().len() * fields.rows()
        && !fields.columns().iter().any(|(name, _)| name.starts_with('$'))
}

/// The elements of arrays.
fn elements_of(column: &Column) -> Option<Nested> {
    let found = column.elements().filter(|found| (VALUES_MIN..=BLOCK_ROWS_MAX).contains(&found.values.len()))?;
    let mut block = Block::new(found.values.len());
    block.set_column("", found.values.clone());
    Some((Some(found.ends.clone()), block))
}

/// The objects that have these fields.
///
/// Errors: what is wrong with the block.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn objects_of(fields: &Block, rows: usize, is_present: &dyn Fn(usize) -> bool) -> Result<Column, String> {
    if fields.rows() != rows {
        return Err(format!("{} objects for {rows} rows", fields.rows()));
    }
    let mut objects = super::builder::ColumnBuilder::with_capacity(rows);
    let mut writer = crate::value::DocWriter::new();
    for row in 0..rows {
        if !is_present(row) {
            objects.push_absent(1);
            continue;
        }
        writer.reset();
        fields.write_row(row, &mut writer);
        objects.push(writer.finished().as_value());
    }
    Ok(objects.finish())
}

/// The arrays that have these elements, and end there.
///
/// Errors: what is wrong with the block or the ends.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn arrays_of(elements: &Block, ends: &[u32], is_present: &dyn Fn(usize) -> bool) -> Result<Column, String> {
    let [(name, column)] = elements.columns() else { return Err("elements must be one column".to_owned()) };
    if !name.is_empty() || column.present_count() < column.len() {
        return Err("elements must be a nameless column without absent cells".to_owned());
    }
    if !ends.is_sorted() || ends.last().map_or(0, |end| *end as usize) != elements.rows() {
        return Err("the ends of arrays must ascend to the last element".to_owned());
    }
    let mut arrays = super::builder::ColumnBuilder::with_capacity(ends.len());
    let (mut start, mut scratch) = (0, Vec::new());
    let mut writer = crate::value::DocWriter::new();
    for (row, end) in ends.iter().enumerate() {
        let cells = start..*end as usize;
        start = cells.end;
        if !is_present(row) {
            arrays.push_absent(1);
            continue;
        }
        writer.reset();
        for (number, cell) in cells.enumerate() {
            writer.value(&number.to_string(), column.value(cell, &mut scratch).ok_or("an element is absent")?);
        }
        arrays.push(crate::value::Value::new_checked(Kind::Array, writer.finished().as_bytes()));
    }
    Ok(arrays.finish())
}

#[cfg(test)]
mod tests {
    use super::super::builder::ColumnBuilder;
    use super::super::wire::{decode, encode};
    use super::*;
    use crate::value::{Doc, DocWriter, OwnedValue};
    use bson::{Bson, RawDocumentBuf, doc};
    use proptest::prelude::*;

    /// A column of the values of `v`, of those that have it.
    fn column(docs: impl IntoIterator<Item = bson::Document>) -> Column {
        let mut builder = ColumnBuilder::new();
        for doc in docs {
            let doc = RawDocumentBuf::try_from(&doc).unwrap();
            match Doc::parse(doc.as_bytes()).unwrap().get("v") {
                Some(value) => builder.push(value),
                None => builder.push_absent(1),
            }
        }
        builder.finish()
    }

    fn cells(column: &Column) -> Vec<Option<OwnedValue>> {
        let mut scratch = Vec::new();
        (0..column.len()).map(|row| column.value(row, &mut scratch).map(|value| value.to_owned())).collect()
    }

    /// What the column becomes: `A` for arrays, `O` for objects, with what their columns become; `-` for others.
    fn form(column: &Column) -> String {
        let mut nested = None;
        nested_if_loaded(column, &mut nested);
        let Some((ends, block)) = nested else { return "-".to_owned() };
        let inner: String = block.columns().iter().map(|(_, column)| form(column)).collect();
        format!("{}({inner})", if ends.is_some() { "A" } else { "O" })
    }

    /// The same values behind the wire, and the type with which the column goes there.
    fn sent(column: &Column) -> u8 {
        let mut block = Block::new(column.len());
        block.set_column("v", column.clone());
        let bytes = encode(&block);
        assert_eq!(cells(decode(&bytes).unwrap().column("v").unwrap()), cells(column));
        bytes[24]
    }

    #[test]
    fn arrays_of_objects_go_out_as_columns_of_the_fields_of_all_elements() {
        let point = |n: i32| doc! { "t": bson::DateTime::from_millis(n.into()), "x": f64::from(n), "in": { "k": [n, n], "s": "a" } };
        let arrays = column((0..120).map(|n| doc! { "v": (0..n % 7).map(|m| point(100 * n + m)).collect::<Vec<_>>() }));
        assert_eq!((form(&arrays).as_str(), sent(&arrays)), ("A(O(--O(A(-)-)))", 11));
        let some = column((0..200).map(|n| {
            if n % 3 == 0 {
                doc! {}
            } else {
                doc! { "v": [n, "x"] }
            }
        }));
        assert_eq!((form(&some).as_str(), sent(&some)), ("A(-)", 11));
    }

    #[test]
    fn objects_of_several_types_go_out_as_columns_of_their_fields() {
        let value = |n: i32| if n % 2 == 0 { Bson::from(n) } else { Bson::from("text") };
        let objects = column((0..400).map(|n| match n % 5 {
            0 => doc! {},
            _ => doc! { "v": { "a": value(n), "b": n } },
        }));
        assert_eq!((form(&objects).as_str(), sent(&objects)), ("O(--)", 10));
    }

    #[test]
    fn values_that_are_few_or_differ_stay_bson() {
        let of = |value: &dyn Fn(i32) -> Bson| column((0..400).map(|n| doc! { "v": value(n) }));
        let few = column((0..80).map(|n| doc! { "v": [n, 1, 2] }));
        for other in [
            few,
            of(&|n| if n == 30 { Bson::from(n) } else { Bson::from(vec![n]) }),
            of(&|n| if n == 30 { Bson::from(n) } else { doc! { "a": n }.into() }),
            of(&|n| if n == 30 { doc! { "b": n, "a": n }.into() } else { doc! { "a": n, "b": n }.into() }),
            of(&|n| if n == 30 { doc! { "a": n }.into() } else { doc! { "a": n, "b": n }.into() }),
            of(&|n| if n == 30 { doc! { "a": n, "b": n }.into() } else { doc! { "a": n }.into() }),
            of(&|n| if n == 30 { doc! {}.into() } else { doc! { "a": n }.into() }),
            of(&|n| doc! { "$ref": "c", "$id": n }.into()),
            of(&|_| Bson::from(Vec::<i32>::new())),
        ] {
            assert_eq!((form(&other).as_str(), sent(&other)), ("-", 8));
        }
        let mut twice = DocWriter::new();
        twice.int32("a", 1).int32("a", 2);
        let twice = twice.finish();
        let mut builder = ColumnBuilder::new();
        (0..400).for_each(|_| builder.push(twice.view().as_value()));
        assert_eq!(form(&builder.finish()), "-");
    }

    #[test]
    fn objects_in_dictionaries_stay_bson_because_each_row_needs_one_of_its_own() {
        let values = column((0..400).map(|n| doc! { "v": [n, n] }));
        let index = (0..2000).map(|row| row % 400).collect();
        assert_eq!(sent(&Column::new(ColumnData::Dictionary(index, Box::new(values)), None)), 8);
    }

    #[test]
    fn what_is_nested_deeply_goes_out_in_columns_up_to_a_level() {
        // The column of each level is the only one of its block.
        fn levels(block: &[u8]) -> usize {
            let word = |at: usize| u32::from_le_bytes(block[16 + 4 * at..][..4].try_into().unwrap()) as usize;
            if word(2) == 8 { 0 } else { 1 + levels(&block[word(6)..word(6) + word(7)]) }
        }
        let deep = |n: i32| {
            (0..30).fold(Bson::from(n), |inner, level| {
                if level % 2 == 0 { Bson::from(vec![inner]) } else { doc! { "k": inner }.into() }
            })
        };
        let values = column((0..300).map(|n| doc! { "v": deep(n) }));
        assert_eq!(sent(&values), 10);
        let mut block = Block::new(values.len());
        block.set_column("v", values);
        assert_eq!(levels(&encode(&block)), 4);
    }

    fn any_value() -> impl Strategy<Value = Bson> {
        let leaf = prop_oneof![
            3 => any::<i32>().prop_map(Bson::from),
            1 => any::<f64>().prop_filter("equal to itself", |x| !x.is_nan()).prop_map(Bson::from),
            1 => "[a-c]{0,3}".prop_map(Bson::from),
            1 => Just(Bson::Null),
        ];
        leaf.prop_recursive(3, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Bson::from),
                prop::collection::vec(inner, 0..4).prop_map(|values| {
                    "abcd".chars().map(String::from).zip(values).collect::<bson::Document>().into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn nested_values_are_the_same_behind_the_wire(
            shapes in prop::collection::vec(any_value(), 1..4), picks in prop::collection::vec(any::<u8>(), 100..700), with_gaps in any::<bool>(),
        ) {
            let values = picks.iter().map(|pick| match (*pick as usize, with_gaps) {
                (0..10, true) => doc! {},
                (pick, _) => doc! { "v": shapes[pick % shapes.len()].clone() },
            });
            sent(&column(values));
        }
    }
}
