//! Random values and blocks, for the tests of expressions over columns.

use proptest::prelude::*;

use crate::block::samples::decimals;
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::value::{DocWriter, OwnedValue, Value};

/// The number of rows of a random block.
pub const ROWS: usize = 6;

pub fn number() -> impl Strategy<Value = f64> {
    // The second line is where halves end, or nearly.
    let special = [
        [0.0, -0.0, 1.0, -2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e10].as_slice(),
        &[4_503_599_627_370_495.5, 4_503_599_627_370_497.0, -9_007_199_254_740_991.0, 0.499_999_999_999_999_94],
    ]
    .concat();
    prop_oneof![prop::sample::select(special), -9.0..9.0_f64, (-3..4_i32).prop_map(f64::from)]
}

pub fn int32() -> impl Strategy<Value = i32> {
    prop_oneof![4 => -3..4_i32, 1 => prop::sample::select(vec![i32::MIN, i32::MAX, i32::MAX - 1])]
}

pub fn int64() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3..4_i64, 1 => (1_i64 << 60)..i64::MAX, 1 => Just(i64::MIN)]
}

pub fn date() -> impl Strategy<Value = i64> {
    // Around changes of clocks, of hours and of years; and dates that no host knows.
    let hours = prop::sample::select(vec![1_616_889_600_000_i64, 1_700_000_000_000, 1_577_836_800_000, 0]);
    let near = (hours, -3..3_i64, -2..3_i64).prop_map(|(at, hours, ms)| at + hours * 1_800_000 + ms);
    prop_oneof![8 => near, 1 => prop::sample::select(vec![i64::MIN, i64::MIN + 28_800_000, i64::MAX - 28_800_000, i64::MAX, -1_i64 << 60])]
}

pub fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "ä", "7", "-1.5", "2020-01-01", "abc"]).prop_map(str::to_owned)
}

/// A value of any type.
fn any_value() -> impl Strategy<Value = Option<OwnedValue>> {
    prop_oneof![
        4 => number().prop_map(|x| Some(OwnedValue::double(x))),
        4 => int32().prop_map(|n| Some(OwnedValue::int32(n))),
        1 => int64().prop_map(|n| Some(OwnedValue::int64(n))),
        1 => date().prop_map(|ms| Some(OwnedValue::date(ms))),
        1 => text().prop_map(|text| Some(OwnedValue::string(&text))),
        1 => any::<bool>().prop_map(|b| Some(OwnedValue::bool(b))),
        1 => Just(Some(OwnedValue::null())),
        1 => Just(None),
    ]
}

/// Values, of which some may be missing, as a column.
pub fn column(values: &[Option<OwnedValue>]) -> Column {
    let mut builder = ColumnBuilder::new();
    values.iter().for_each(|value| match value {
        Some(value) => builder.push(value.view()),
        None => builder.push_absent(1),
    });
    builder.finish()
}

/// Metadata: repeated values, of which rows may have none.
fn metadata() -> impl Strategy<Value = Column> {
    let object = (any_value(), any_value()).prop_map(|(x, y)| {
        let mut writer = DocWriter::new();
        for (name, value) in [("x", &x), ("y", &y)] {
            if let Some(value) = value {
                writer.value(name, value.view());
            }
        }
        OwnedValue::doc(writer.finish().view())
    });
    let entry = prop_oneof![3 => object, 1 => any_value().prop_filter_map("present", |value| value)];
    let index = prop::collection::vec(0..3_u32, ROWS);
    (prop::collection::vec(entry, 3), index, prop::option::of(prop::collection::vec(any::<bool>(), ROWS))).prop_map(
        |(entries, index, presence)| {
            let entries: Vec<_> = entries.into_iter().map(Some).collect();
            let presence = presence.map(|presence| Bitmap::from_slice(&presence, |is| *is));
            Column::new(ColumnData::Dictionary(index, Box::new(column(&entries))), presence)
        },
    )
}

/// A block with columns of each type, and of several types.
pub fn block() -> impl Strategy<Value = Block> {
    let holes = || prop::option::of(prop::collection::vec(any::<bool>(), ROWS));
    let wide = prop_oneof![int64().prop_map(|n| Some(OwnedValue::int64(n))), any_value()];
    let cells = (
        (prop::collection::vec(number(), ROWS), holes()),
        (prop::collection::vec(int32(), ROWS), holes()),
        (prop::collection::vec(int64(), ROWS), holes()),
        (prop::collection::vec(date(), ROWS), holes()),
        (prop::collection::vec(0..2_u8, ROWS), holes()),
        prop::collection::vec(prop::option::weighted(0.8, text()), ROWS),
        prop::collection::vec(any_value(), ROWS),
        (prop::collection::vec(number(), ROWS), decimals(ROWS), decimals(ROWS), prop::collection::vec(wide, ROWS)),
        (
            metadata(),
            prop::collection::vec((number(), prop::option::weighted(0.8, int32()), any_value(), text()), ROWS),
        ),
    );
    cells.prop_map(|(a, i, l, d, t, s, v, (b, c, e, w), (m, o))| {
        let objects = o.into_iter().map(|(x, y, z, s)| {
            let mut writer = DocWriter::new();
            writer.double("x", x);
            writer.begin_doc("y");
            if let Some(y) = y {
                writer.int32("z", y);
            }
            if let Some(z) = z {
                writer.value("x", z.view());
            }
            writer.end().string("s", &s);
            Some(OwnedValue::doc(writer.finish().view()))
        });
        let whole = column(&objects.collect::<Vec<_>>());
        let objects = crate::column::read_again(&whole);
        let typed = |data: ColumnData, holes: Option<Vec<bool>>| {
            let column = Column::new(data, None);
            let Some(holes) = holes else { return column };
            let values =
                (0..ROWS).map(|row| column.value(row, &mut Vec::new()).filter(|_| holes[row]).map(Value::to_owned));
            self::column(&values.collect::<Vec<_>>())
        };
        let texts: Vec<_> = s.iter().map(|text| text.as_deref().map(OwnedValue::string)).collect();
        let mut block = Block::new(ROWS);
        for (name, column) in [
            ("a", typed(ColumnData::F64(a.0), a.1)),
            ("b", Column::new(ColumnData::F64(b), None)),
            ("i", typed(ColumnData::I32(i.0), i.1)),
            ("l", typed(ColumnData::I64(l.0), l.1)),
            ("d", typed(ColumnData::Date(d.0), d.1)),
            ("t", typed(ColumnData::Bool(t.0), t.1)),
            ("s", column(&texts)),
            ("v", column(&v)),
            ("w", column(&w)),
            ("c", column(&c.into_iter().map(Some).collect::<Vec<_>>())),
            ("e", column(&e.into_iter().zip(&v).map(|(e, v)| v.is_some().then_some(e)).collect::<Vec<_>>())),
            ("m", m),
            ("o", objects),
            ("p", whole),
        ] {
            block.set_column(name, column);
        }
        block
    })
}
