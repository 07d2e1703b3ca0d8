//! Columns with known bytes: the fixture, and the sizes of plain data.

use super::super::vectors::vectors;
use super::{ColumnWriter, encode};
use crate::block::{Column, ColumnBuilder};
use crate::value::OwnedValue;

#[test]
fn every_column_of_the_fixture_is_written_byte_for_byte() {
    let mut seen = 0;
    for vector in vectors().iter().filter(|vector| !vector.decode_only) {
        let Some(elements) = &vector.elements else { continue };
        let (mut writer, mut builder) = (ColumnWriter::new(), ColumnBuilder::new());
        for element in elements {
            match element {
                Some(value) => (writer.push(value.view()), builder.push(value.view())),
                None => (writer.skip(1), builder.push_absent(1)),
            };
        }
        assert_eq!(writer.len(), elements.len());
        assert_eq!(hex(&writer.finish()), hex(&vector.bytes), "{}", vector.name);
        assert_eq!(hex(&encode(&builder.finish())), hex(&vector.bytes), "{} as a column", vector.name);
        seen += 1;
    }
    assert!(seen >= 90, "{seen}");
}

#[test]
fn a_thousand_elements_of_plain_data_have_the_size_that_is_known() {
    let size = |value: &dyn Fn(i64) -> OwnedValue| {
        let mut builder = ColumnBuilder::new();
        (0..1000).for_each(|i| builder.push(value(i).view()));
        encode(&builder.finish()).len()
    };
    assert_eq!(size(&|_| OwnedValue::double(21.5)), 44);
    assert_eq!(size(&|_| OwnedValue::bool(true)), 37);
    assert_eq!(size(&|i| OwnedValue::date(1_700_000_000_000 + 1000 * i)), 44);
    assert_eq!(size(&|i| OwnedValue::int32(i32::try_from(i).unwrap())), 40);
    assert_eq!(size(&OwnedValue::int64), 44);
    assert_eq!(encode(&Column::constant(OwnedValue::double(21.5).view(), 1000)).len(), 44);
    let mut missing = ColumnWriter::new();
    missing.skip(1000);
    assert_eq!(missing.finish().len(), 42);
    assert_eq!(ColumnWriter::new().finish(), [0]);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x} ")).collect()
}
