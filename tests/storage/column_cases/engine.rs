//! The engine's columns from lists of elements and back.

use timepail::block::{Column, ColumnBuilder};
use timepail::column::ColumnWriter;
use timepail::value::Value;

use crate::column_reference::Element;

pub fn column_of(elements: &[Element]) -> Column {
    let mut builder = ColumnBuilder::new();
    for element in elements {
        match element {
            Some(tagged) => builder.push(Value::parse_tagged(tagged).unwrap()),
            None => builder.push_absent(1),
        }
    }
    builder.finish()
}

pub fn elements_of(column: &Column) -> Vec<Element> {
    let mut scratch = Vec::new();
    let mut element = |row| {
        let value = column.value(row, &mut scratch)?;
        Some([&[value.kind().byte()], value.bytes()].concat())
    };
    (0..column.len()).map(&mut element).collect()
}

pub fn push_all(writer: &mut ColumnWriter, elements: &[Element]) {
    for element in elements {
        match element {
            Some(tagged) => writer.push(Value::parse_tagged(tagged).unwrap()),
            None => writer.skip(1),
        }
    }
}
