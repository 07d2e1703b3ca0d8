//! Reads a column of objects as a column for each of their scalars.

use super::super::error::ColumnError;
use super::items::{Item, Items};
use super::reader::{RowReader, decode_from};
use super::section::PARTS_MAX;
use super::shape::SectionShape;
use super::words::elements;
use crate::block::{Column, ColumnData, Objects};
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::value::Kind;

/// Bytes of a cell of a column, at most, if it has a fixed width.
const CELL_BYTES: usize = 16;

/// Unless one in so many cells of some scalar differs from the cell before, the distinct objects are kept instead.
const CHANGING_PART: usize = 4;

/// As `decode_from`, but objects that all have one shape, and often differ, become columns of their scalars.
///
/// Errors: as `decode_from`.
pub fn decode_scalars(bytes: &[u8], rows_max: usize, from: usize) -> Result<Column, ColumnError> {
    // No column of numbers begins like a section.
    let begins_section = bytes.first().is_some_and(|first| *first & 0xF0 == 0xF0);
    let mut read = None;
    if begins_section
        && scalars_if_loaded(bytes, rows_max, &mut read)
        && let Some(objects) = read
    {
        return Ok(objects);
    }
    // Damage is told there.
    decode_from(bytes, rows_max, from)
}

/// The objects of a column that is one section, if they often differ; false if it is anything else, or damaged.
// Loaded later.
#[inline(never)]
fn scalars_if_loaded(bytes: &[u8], rows_max: usize, read: &mut Option<Column>) -> bool {
    let objects = scalars(bytes, rows_max).filter(|objects| objects.scalars().iter().any(is_changing));
    *read = objects.map(Column::of_objects);
    read.is_some()
}

/// The objects of a column that is one section; `None` if it is anything else, or damaged.
#[inline(never)]
fn scalars(bytes: &[u8], rows_max: usize) -> Option<Objects> {
    let mut items = Items::new(bytes);
    let Ok((Item::Section(section, reference), _)) = items.next(0) else { return None };
    let shape = SectionShape::new(section, reference, PARTS_MAX).ok().filter(|shape| shape.root == Kind::Object)?;
    if shape.scalars.len().saturating_mul(rows_max) > COLUMN_SIZE_BYTES_MAX / CELL_BYTES {
        return None;
    }
    let begin = |scalar: &super::shape::Scalar<'_>| (scalar.depth, 0);
    let mut streams: Vec<(usize, usize)> = shape.scalars.iter().map(begin).collect();
    let mut readers: Vec<RowReader<'_>> =
        shape.scalars.iter().map(|scalar| RowReader::behind(scalar.kind, scalar.bytes, rows_max)).collect();
    'objects: loop {
        for (number, ((depth, left), reader)) in streams.iter_mut().zip(&mut readers).enumerate() {
            if *left > 0 {
                continue;
            }
            *left = match items.next(*depth).ok()?.0 {
                Item::Literal(kind, bytes) => {
                    reader.literal(kind, bytes).ok()?;
                    1
                }
                Item::Control(control, words) => {
                    reader.control(control, words).ok()?;
                    elements(words).ok()?
                }
                Item::End if number == 0 => break 'objects,
                Item::End | Item::Section(..) => return None,
            };
        }
        // This many objects need no further item.
        let objects = streams.iter().map(|(_, left)| *left).min()?;
        streams.iter_mut().for_each(|(_, left)| *left -= objects);
    }
    let is_even = streams.iter().all(|(_, left)| *left == 0);
    let is_last = items.next(0).is_ok_and(|(item, _)| item == Item::End) && items.finish().is_ok();
    let scalars: Vec<Column> = readers.into_iter().map(RowReader::finish).listed();
    let rows = scalars.first().map(Column::len).filter(|rows| *rows > 0)?;
    // A text that comes again is stored once, but built into every object (I1). The reference has all names.
    let object_bytes_max = scalars.iter().map(Column::value_bytes_max).sum::<usize>() + reference.len();
    let is_small = object_bytes_max.saturating_mul(rows) <= COLUMN_SIZE_BYTES_MAX;
    (is_even && is_last && is_small && scalars.iter().all(|scalar| scalar.len() == rows))
        .then(|| Objects::new(shape.owned_parts(), scalars))
}

/// True if enough cells differ from the ones before them.
fn is_changing(scalar: &Column) -> bool {
    fn differ<T: PartialEq>(cells: &[T]) -> bool {
        let changes = cells.iter().zip(cells.iter().skip(1)).filter(|(a, b)| a != b).count();
        changes * CHANGING_PART > cells.len()
    }
    match scalar.data() {
        ColumnData::F64(cells) => differ(cells),
        ColumnData::I32(cells) => differ(cells),
        ColumnData::I64(cells) | ColumnData::Date(cells) => differ(cells),
        ColumnData::Bool(cells) => differ(cells),
        ColumnData::Dictionary(index, _) => differ(index),
        _ => scalar.present_count() * CHANGING_PART > scalar.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::read::decode;
    use crate::column::read::forge::{Forge, deltas, double, int, object, plain, run, string};
    use crate::column::read::vectors::cells;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    fn wind(speed: f64, gust: Option<f64>, text: &str) -> OwnedValue {
        let gust = gust.map(|gust| ("gust", double(gust)));
        let max = object(&gust.into_iter().chain([("text", string(text))]).collect::<Vec<_>>());
        object(&[("speed", double(speed)), ("max", max)])
    }

    /// Five objects; a scalar is missing in one of them, and one comes as a literal.
    fn winds() -> Forge {
        let section = Forge::default().section(0xF1, &wind(1.5, Some(2.5), "a"));
        let speeds = section.control(0xA0, &[deltas(&[0, 10, 20])]);
        let gusts = speeds.control(0xA0, &[plain(&[Some(0), None, Some(20), Some(0), Some(4)])]);
        let texts = gusts.control(0x80, &[plain(&[Some(0), Some(0)])]);
        texts.literal(&string("other")).literal(&double(0.5)).literal(&string("b")).control(0xA0, &[deltas(&[3])])
    }

    proptest! {
        #[test]
        fn damage_gives_the_same_objects_or_the_same_error(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
            let mut bytes = winds().literal(&string("c")).end().end().bytes;
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let (scalars, whole) = (decode_scalars(&bytes, 100, 0), decode(&bytes, 100));
            prop_assert_eq!(scalars.as_ref().map(cells), whole.as_ref().map(cells));
        }
    }

    #[test]
    fn objects_that_differ_become_a_column_for_each_scalar() {
        let forge = winds().literal(&string("c")).end().end();
        let column = decode_scalars(&forge.bytes, 10, 0);
        let whole = decode(&forge.bytes, 10);
        let (Ok(column), Ok(whole)) = (column, whole) else { panic!("{:?}", forge.bytes) };
        assert_eq!(cells(&column), cells(&whole));
        let ColumnData::Objects(objects) = column.data() else { panic!("{column:?}") };
        let reach = |path: &str| objects.reach(&path.split('.').collect::<Vec<_>>());
        let kind = |path: &str| reach(path).flatten().map(|column| (column.kind(), column.present_count()));
        assert_eq!(kind("speed"), Some((Some(Kind::Double), 5)));
        assert_eq!(kind("max.gust"), Some((Some(Kind::Double), 4)));
        assert_eq!(kind("max.text"), Some((Some(Kind::String), 5)));
        assert_eq!((reach("none"), reach("max.none"), reach("speed.none")), (Some(None), Some(None), Some(None)));
        let Some(Some(inner)) = reach("max") else { panic!("{:?}", reach("max")) };
        assert!(matches!(inner.data(), ColumnData::Objects(_)), "{inner:?}");
        assert_eq!(inner.present_count(), 5);
        assert_eq!(objects.reach(&[]), None, "the whole");
    }

    #[test]
    fn objects_that_would_take_too_many_bytes_are_refused_as_when_read_whole() {
        let large = object(&[("x", int(1)), ("text", string(&"x".repeat(1 << 20)))]);
        let column = Forge::default().section(0xF1, &large).control(0x80, &[deltas(&[1]), run(1)]);
        let column = column.control(0x80, &[deltas(&[0]), run(1)]).end().end();
        assert_eq!(decode_scalars(&column.bytes, 121, 0), decode(&column.bytes, 121));
        assert!(decode(&column.bytes, 121).is_err());
    }

    #[test]
    fn objects_that_hardly_change_or_are_not_alone_or_are_damaged_are_read_whole() {
        let one = object(&[("x", int(1)), ("y", int(2))]);
        let constant = Forge::default().section(0xF1, &one).control(0x80, &[run(1)]).control(0x80, &[run(1)]).end();
        let changing = Forge::default().section(0xF1, &one).control(0x80, &[deltas(&[1, 1])]);
        let changing = changing.control(0x80, &[deltas(&[0, 0])]).end();
        for (forge, rows) in [
            (constant.end(), 120),
            (changing.clone().literal(&int(3)).end(), 3),
            (changing.clone().end(), 1),
            (changing.clone(), 2),
            (Forge::default().literal(&int(3)).end(), 1),
            (Forge::default().control(0x80, &[plain(&[None])]).end(), 1),
        ] {
            assert_eq!(decode_scalars(&forge.bytes, rows, 0), decode(&forge.bytes, rows));
        }
        let twice = object(&[("x", int(1)), ("x", int(2))]);
        let twice = Forge::default().section(0xF1, &twice).control(0x80, &[deltas(&[1, 1])]);
        let column = twice.control(0x80, &[deltas(&[1, 1])]).end().end();
        let Ok(column) = decode_scalars(&column.bytes, 2, 0) else { panic!() };
        let ColumnData::Objects(objects) = column.data() else { panic!() };
        assert_eq!(objects.reach(&["x"]), None);
    }
}
