//! Random columns in every form for tests.

use bson::RawBson;
use proptest::prelude::*;

pub use crate::block::samples::column_of;
use crate::block::{Column, ColumnData};
use crate::env::fixed::FixedEnv;
use crate::value::{Collation, Doc, DocBuf, OwnedValue, Value};

/// A value from anything that the `bson` crate can convert.
pub fn owned(value: impl Into<RawBson>) -> OwnedValue {
    let mut doc = bson::RawDocumentBuf::new();
    doc.append(bson::cstr!("v"), value.into());
    DocBuf::parse(doc.into_bytes()).unwrap().view().get("v").unwrap().to_owned()
}

fn binary(subtype: u8) -> RawBson {
    RawBson::Binary(bson::Binary { subtype: subtype.into(), bytes: vec![1; 12] })
}

/// Values that are equal in pairs, but not in their bytes.
fn values() -> Vec<OwnedValue> {
    let one = bson::rawdoc! { "a": 1 };
    vec![
        OwnedValue::int32(1),
        OwnedValue::int64(1),
        OwnedValue::double(1.0),
        OwnedValue::double(0.0),
        OwnedValue::double(-0.0),
        OwnedValue::int32(0),
        OwnedValue::double(f64::NAN),
        OwnedValue::double(f64::from_bits(f64::NAN.to_bits() | 7)),
        OwnedValue::int64(i64::MAX),
        OwnedValue::double(9_223_372_036_854_775_808.0),
        OwnedValue::date(0),
        OwnedValue::date(60_000),
        OwnedValue::bool(false),
        OwnedValue::bool(true),
        OwnedValue::object_id([0; 12]),
        OwnedValue::object_id([1; 12]),
        // The same bytes.
        OwnedValue::string(&"\u{1}".repeat(12)),
        owned(binary(0)),
        owned(binary(4)),
        OwnedValue::string(""),
        OwnedValue::string("a"),
        OwnedValue::string("A"),
        OwnedValue::string("a\0b"),
        owned(RawBson::Symbol("a".into())),
        OwnedValue::null(),
        Value::UNDEFINED.to_owned(),
        owned(one),
        owned(bson::rawdoc! { "a": 1.0 }),
        owned(bson::rawbson!([1, "a"])),
    ]
}

/// A column of one type or of many, with or without absent cells, runs and a dictionary.
pub fn any_column(rows: usize) -> impl Strategy<Value = Column> {
    let all = values();
    let run = (0..all.len(), any::<prop::sample::Index>(), prop_oneof![1..4_usize, 9..40_usize]);
    (prop::collection::vec(run, 1..30), prop::option::of(0..all.len()), 0..4_u8, any::<bool>()).prop_map(
        move |(runs, only, absent, is_dictionary)| {
            // All cells have the type of one of the values, or any.
            let kind = only.map(|only| all[only].view().kind());
            let fits: Vec<&OwnedValue> =
                all.iter().filter(|value| kind.is_none_or(|kind| value.view().kind() == kind)).collect();
            let mut cells: Vec<Option<OwnedValue>> = Vec::new();
            for (at, pick, count) in &runs {
                let value = (absent > 0 || at % 5 > 0).then(|| (*pick.get(&fits)).clone());
                cells.resize(cells.len() + count, value);
            }
            let cells: Vec<_> = cells.into_iter().cycle().take(rows).collect();
            if !is_dictionary || cells.iter().any(Option::is_none) {
                return column_of(&cells);
            }
            // Perhaps entries that no row has, and one for each run even if they are equal.
            let mut entries = if absent > 1 { vec![Some(OwnedValue::string("unused"))] } else { Vec::new() };
            let mut index = Vec::new();
            for cell in cells {
                if entries.last() != Some(&cell) {
                    entries.push(cell);
                }
                index.push(entries.len() as u32 - 1);
            }
            Column::new(ColumnData::Dictionary(index, Box::new(column_of(&entries))), None)
        },
    )
}

/// A collation for which "a" equals "A".
pub fn without_case() -> Collation {
    let options = bson::rawdoc! { "locale": "en", "strength": 2 };
    Collation::parse(Doc::parse(options.as_bytes()).unwrap(), &FixedEnv::default()).unwrap()
}

/// The cell of a row; a missing one is undefined.
pub fn cell(column: &Column, row: usize) -> Option<OwnedValue> {
    column.value(row, &mut Vec::new()).map(Value::to_owned)
}
