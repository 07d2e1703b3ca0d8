//! Columns for tests, and what blocks show.

use super::builder::ColumnBuilder;
use super::column::Column;
use super::table::Block;
use crate::value::{DocWriter, Kind, OwnedValue, Value};
use bson::{RawDocumentBuf, cstr, rawdoc};
use proptest::prelude::*;

/// Decimals as most columns have them, of one exponent, or with a few values that are unlike the others.
pub fn decimals(rows: usize) -> impl Strategy<Value = Vec<OwnedValue>> {
    let decimal = |text: String| {
        let bytes = text.parse::<bson::Decimal128>().unwrap().bytes();
        Value::parse(Kind::Decimal128, &bytes).unwrap().to_owned()
    };
    let n =
        prop_oneof![8 => -500..500_i64, 1 => any::<i64>(), 1 => prop::sample::select(vec![i64::MAX, 0, 1 << 53, 25])];
    let others = [
        "-0",
        "-0.00",
        "NaN",
        "Infinity",
        "-Infinity",
        "1E+2",
        "2.5",
        "0.250",
        "9223372036854775808E-2",
        "3E-6176",
        "1234567890123456789012345678901234",
        "-9999999999999999999999999999999.99",
        "9E+6111",
    ];
    let others = prop_oneof![
        6 => prop::sample::select(others.to_vec()).prop_map(move |text| decimal(text.to_owned())),
        1 => Just(OwnedValue::double(2.5)),
        1 => Just(OwnedValue::int32(-3)),
        1 => Just(OwnedValue::null()),
    ];
    let exponent = prop_oneof![3 => Just(-2), 1 => prop::sample::select(vec![0, 3, -25, -6176, 6093])];
    let cells = prop::collection::vec((n, prop::option::weighted(0.2, others)), rows);
    (exponent, prop::bool::weighted(0.3), cells).prop_map(move |(exponent, has_others, cells)| {
        let cell = |(n, other): (i64, Option<OwnedValue>)| match other.filter(|_| has_others) {
            Some(other) => other,
            None => decimal(format!("{n}E{exponent}")),
        };
        cells.into_iter().map(cell).collect()
    })
}

/// The documents that the rows of a block are.
pub fn shown(block: &Block) -> Vec<RawDocumentBuf> {
    let row = |row| {
        let mut writer = DocWriter::new();
        block.write_row(row, &mut writer);
        RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
    };
    (0..block.rows()).map(row).collect()
}

/// The column of these cells, typed if they have one type.
pub fn column_of(cells: &[Option<OwnedValue>]) -> Column {
    let mut builder = ColumnBuilder::new();
    for cell in cells {
        match cell {
            Some(value) => builder.push(value.view()),
            None => builder.push_absent(1),
        }
    }
    builder.finish()
}

/// A row with an object `o` of a few fields that the bits choose, up to 511; with few bits it has none.
pub fn row_with_object(bits: u16) -> RawDocumentBuf {
    let has = |bit: u16| bits >> bit & 1 == 1;
    let (mut object, mut inner) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    has(0).then(|| inner.append(cstr!("x"), i32::from(bits)));
    has(1).then(|| inner.append(cstr!("y"), "text"));
    has(2).then(|| object.append(cstr!("a"), f64::from(bits)));
    (has(0) || has(1) || bits > 500).then(|| object.append(cstr!("in"), inner));
    has(3).then(|| object.append(cstr!("b"), has(4)));
    if bits > 25 {
        rawdoc! { "o": object }
    } else {
        rawdoc! { "n": 1 }
    }
}
