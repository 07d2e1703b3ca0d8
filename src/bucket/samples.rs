//! Measurements for the tests of this folder, with values that are easy to get wrong: holes, mixed types, NaN, signed
//! zeros.

use std::ops::Range;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::options::{Granularity, TimeseriesOptions};
use crate::block::{Block, Column, ColumnData, pivot_docs};
use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind, OwnedValue, Value};

pub const TIME: &str = "t";

/// Options with one-hour buckets.
pub fn options(meta_field: Option<&str>) -> TimeseriesOptions {
    TimeseriesOptions {
        time_field: TIME.to_owned(),
        meta_field: meta_field.map(str::to_owned),
        rebucketed: false,
        granularity: Some(Granularity::Seconds),
        span_seconds: 3_600,
        rounding_seconds: None,
        collation: Collation::default(),
    }
}

pub fn view(doc: &bson::RawDocumentBuf) -> Doc<'_> {
    Doc::parse(doc.as_bytes()).unwrap()
}

/// The rows of a block, with the fields of each sorted by name, where the order of columns does not matter.
pub fn by_name(block: &Block) -> Vec<Vec<(String, OwnedValue)>> {
    let fields = |doc: DocBuf| {
        let mut fields: Vec<_> = doc.view().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields
    };
    documents(block).into_iter().map(fields).collect()
}

pub fn block(docs: &[bson::RawDocumentBuf]) -> Block {
    pivot_docs(docs.iter().map(view)).unwrap()
}

fn scalar(kind: usize) -> BoxedStrategy<OwnedValue> {
    match kind {
        0 => select(vec![0.0, -0.0, 1.0, -1.5, f64::NAN, f64::INFINITY, 1e300]).prop_map(OwnedValue::double).boxed(),
        1 => (-2..3_i32).prop_map(OwnedValue::int32).boxed(),
        2 => select(vec![-2, 0, 1, i64::MAX, i64::MIN]).prop_map(OwnedValue::int64).boxed(),
        3 => (-2..3_i64).prop_map(OwnedValue::date).boxed(),
        4 => any::<bool>().prop_map(OwnedValue::bool).boxed(),
        5 => "[a-cé]{0,3}".prop_map(|s| OwnedValue::string(&s)).boxed(),
        6 => any::<u8>().prop_map(|b| OwnedValue::object_id([b; 12])).boxed(),
        7 => Just(OwnedValue::null()).boxed(),
        _ => (0..3_u8)
            .prop_map(|b| {
                Value::parse(Kind::Decimal128, &[[b; 14].as_slice(), &[0x40, 0x30]].concat()).unwrap().to_owned()
            })
            .boxed(),
    }
}

/// A scalar, or objects and arrays of scalars.
pub fn any_value() -> impl Strategy<Value = OwnedValue> {
    (0..9_usize).prop_flat_map(scalar).prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec((select(vec!["x", "y", "z"]), inner.clone()), 0..4).prop_map(|fields| {
                let mut writer = DocWriter::new();
                let mut seen = Vec::new();
                for (name, value) in fields {
                    if !seen.contains(&name) {
                        seen.push(name);
                        writer.value(name, value.view());
                    }
                }
                OwnedValue::doc(writer.finish().view())
            }),
            vec(inner, 0..4).prop_map(|items| {
                let mut writer = DocWriter::new();
                items.iter().enumerate().for_each(|(at, item)| {
                    writer.value(&at.to_string(), item.view());
                });
                Value::parse(Kind::Array, writer.finish().view().as_bytes()).unwrap().to_owned()
            }),
        ]
    })
}

type Cells = Vec<Option<OwnedValue>>;

/// Cells of one scalar type, or of any values; complete, with holes, or nearly empty.
fn any_cells(rows: usize, mixed: bool) -> BoxedStrategy<Cells> {
    let chance = select(vec![0.999, 0.7, 0.1]);
    let typed = (0..9_usize, chance.clone())
        .prop_flat_map(move |(kind, chance)| vec(option::weighted(chance, scalar(kind)), rows));
    if !mixed {
        return typed.boxed();
    }
    let any = chance.prop_flat_map(move |chance| vec(option::weighted(chance, any_value()), rows));
    prop_oneof![3 => typed, 1 => any].boxed()
}

/// Documents with a time in `[0, 3600)` seconds and fields named a to e, in varying order.
pub fn any_docs(rows: Range<usize>, mixed: bool) -> impl Strategy<Value = Vec<DocBuf>> {
    rows.prop_flat_map(move |rows| {
        let columns = vec(any_cells(rows, mixed), 0..5);
        (vec(0..3_600_000_i64, rows), columns, vec(any::<bool>(), rows)).prop_map(|(times, columns, turned)| {
            times
                .iter()
                .zip(turned)
                .enumerate()
                .map(|(row, (time, turned))| document(row, *time, &columns, turned))
                .collect()
        })
    })
}

fn document(row: usize, time: i64, columns: &[Cells], turned: bool) -> DocBuf {
    let mut writer = DocWriter::new();
    let mut fields: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().zip(columns).collect();
    if turned {
        fields.reverse();
    }
    writer.date(TIME, time);
    for (name, cells) in fields {
        if let Some(value) = &cells[row] {
            writer.value(name, value.view());
        }
    }
    writer.finish()
}

pub fn pivot(docs: &[DocBuf]) -> Block {
    pivot_docs(docs.iter().map(DocBuf::view)).unwrap()
}

/// The same cells with typed columns as dictionaries, in which every row has its own entry, in reverse order.
pub fn as_dictionaries(block: Block) -> Block {
    block.map_columns(|column| {
        if column.kind().is_none() || column.present_count() == 0 {
            return column;
        }
        let codes: Vec<u32> = (0..column.len() as u32).rev().collect();
        let values = Column::new(column.gather(&codes).data().clone(), None);
        Column::new(ColumnData::Dictionary(codes, Box::new(values)), column.presence().cloned())
    })
}

/// Every row as a document.
pub fn documents(block: &Block) -> Vec<DocBuf> {
    (0..block.rows())
        .map(|row| {
            let mut writer = DocWriter::new();
            block.write_row(row, &mut writer);
            writer.finish()
        })
        .collect()
}
