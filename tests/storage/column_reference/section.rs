//! Sections: objects as one stream per scalar.

use timepail::value::{Doc, Value};

use super::input::{Input, Item, check};
use super::stream::Stream;
use super::{Element, Rows};

const OBJECT: u8 = 0x03;
const ARRAY: u8 = 0x04;

/// A node of the reference.
enum Shape {
    /// The number of its stream.
    Scalar(usize),
    /// Type byte, and the fields by name.
    Container(u8, Vec<(String, Shape)>),
}

/// Reads a section after its start byte. Returns its last element.
pub fn decode(start: u8, input: &mut Input<'_>, rows: &mut Rows) -> Result<Element, String> {
    let reference = input.value(if start == 0xF2 { ARRAY } else { OBJECT })?;
    let reference = Value::parse_tagged(&reference).map_err(timepail::error::Error::into_message)?;
    let mut streams = Vec::new();
    let shape = shape_of(reference, start == 0xF0, &mut streams);
    if streams.is_empty() {
        return Err("the reference of a section has no scalars".into());
    }
    let mut last = None;
    for count in 0.. {
        let Some(values) = next_values(&mut streams, input)? else {
            if count == 0 {
                return Err("a section without objects".into());
            }
            break;
        };
        last = build(&shape, &values);
        if let Some(object) = &last {
            check(object)?;
        }
        rows.push_object(last.clone())?;
    }
    Ok(last)
}

/// The value of every stream for one object; `None` at the end of the section.
fn next_values(streams: &mut [Stream], input: &mut Input<'_>) -> Result<Option<Vec<Element>>, String> {
    let mut values = Vec::new();
    for number in 0..streams.len() {
        match next_value(&mut streams[number], input)? {
            Some(value) => values.push(value),
            None if number > 0 => return Err("a section ends within an object".into()),
            None if streams.iter().any(Stream::has_elements) => return Err("streams of unequal length".into()),
            None => return Ok(None),
        }
    }
    Ok(Some(values))
}

/// The next value of a stream, which takes another item when it runs out; `None` at the end.
fn next_value(stream: &mut Stream, input: &mut Input<'_>) -> Result<Option<Element>, String> {
    if !stream.has_elements() {
        match input.item()? {
            Item::End => return Ok(None),
            Item::Section(_) => return Err("a section within a section".into()),
            Item::Literal(element) => {
                *stream = Stream::after(Some(element.clone()));
                return Ok(Some(Some(element)));
            }
            Item::Control { nibble, words } => stream.load(nibble, &words)?,
        }
    }
    stream.next().map(Some)
}

/// The shape of the reference, and a stream for every scalar in it. If `arrays_are_scalars`, each array is one stream.
fn shape_of(value: Value<'_>, arrays_are_scalars: bool, streams: &mut Vec<Stream>) -> Shape {
    let tagged = [&[value.kind().byte()], value.bytes()].concat();
    let container: Option<Doc<'_>> = value.as_container().filter(|_| !(arrays_are_scalars && tagged[0] == ARRAY));
    let Some(container) = container else {
        streams.push(Stream::after(Some(tagged)));
        return Shape::Scalar(streams.len() - 1);
    };
    let fields = container.iter().map(|(name, field)| (name.to_string(), shape_of(field, arrays_are_scalars, streams)));
    let fields = fields.collect();
    Shape::Container(tagged[0], fields)
}

/// The value of one object at a node; `None` if it is missing.
fn build(shape: &Shape, values: &[Element]) -> Element {
    match shape {
        Shape::Scalar(number) => values[*number].clone(),
        Shape::Container(kind, fields) => {
            let mut body = Vec::new();
            for (name, field) in fields {
                if let Some(element) = build(field, values) {
                    body.push(element[0]);
                    body.extend_from_slice(name.as_bytes());
                    body.push(0);
                    body.extend_from_slice(&element[1..]);
                }
            }
            // An object that is empty in the reference is always present, others only if they have a field.
            if body.is_empty() && !fields.is_empty() {
                return None;
            }
            let length = body.len() as i32 + 5;
            Some([&[*kind][..], &length.to_le_bytes(), &body, &[0]].concat())
        }
    }
}
