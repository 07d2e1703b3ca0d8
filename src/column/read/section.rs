//! Sections: objects, stored as one stream for each scalar of a reference document.

use super::super::error::ColumnError;
use super::entries::{Entries, TOO_LARGE};
use super::items::{Item, Items, SectionKind};
use super::shape::{Scalar, SectionShape};
use super::stream::{Element, StreamReader};
use super::typed::TOO_MANY;
use super::words::elements;
use crate::block::ShapePart;
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::value::Kind;

/// A section ends although an object still lacks values, or has values left.
const UNEVEN: &str = "the streams of a section end at different objects";
/// A section without objects.
const EMPTY: &str = "a section has no objects";
/// A section inside a section.
const NESTED: &str = "a section begins inside another section";

/// Maximum number of parts of a section, so that its memory is bounded like that of decoded values.
pub(super) const PARTS_MAX: usize =
    COLUMN_SIZE_BYTES_MAX / (size_of::<ShapePart>() + size_of::<Scalar<'_>>() + size_of::<ScalarStream<'_>>());

/// The stream of one scalar.
struct ScalarStream<'a> {
    stream: StreamReader<'a>,
    depth: usize,
    /// True if the last object had this scalar.
    present: bool,
}

/// Reads a section, after its start at `offset`, as rows of `entries`, up to `rows_max` rows.
///
/// Returns the type of the last object, or `None` if that is missing.
pub fn read<'a>(
    items: &mut Items<'a>,
    offset: usize,
    section: SectionKind,
    reference: &'a [u8],
    entries: &mut Entries,
    rows_max: usize,
) -> Result<Option<Kind>, ColumnError> {
    let shape = SectionShape::new(section, reference, PARTS_MAX).map_err(|reason| ColumnError::new(reason, offset))?;
    let mut leaves: Vec<ScalarStream<'a>> = shape
        .scalars
        .iter()
        .map(|scalar| ScalarStream {
            stream: StreamReader::behind(scalar.kind, scalar.bytes),
            depth: scalar.depth,
            present: false,
        })
        .collect();
    let mut object = Vec::new();
    // Whether the last object was present; `None` before the first one.
    let mut last = None;
    loop {
        let mut changed = last.is_none();
        // The offset to report if the object that begins here is damaged.
        let mut at = offset;
        for number in 0..leaves.len() {
            let Some(leaf) = leaves.get_mut(number) else { break };
            let mut element = Element::New;
            let mut is_literal = false;
            if leaf.stream.is_exhausted() {
                let (item, item_at) = items.next(leaf.depth)?;
                let fail = |reason| ColumnError::new(reason, item_at);
                at = item_at;
                match item {
                    Item::Literal(kind, bytes) => {
                        leaf.stream = StreamReader::behind(kind, bytes);
                        is_literal = true;
                    }
                    Item::Control(control, words) => leaf.stream.open(control, words).map_err(fail)?,
                    Item::Section(..) => return Err(fail(NESTED)),
                    Item::End if number > 0 || leaves.iter().any(|leaf| !leaf.stream.is_exhausted()) => {
                        return Err(fail(UNEVEN));
                    }
                    Item::End => return last.map(|any| Some(shape.root).filter(|_| any)).ok_or(fail(EMPTY)),
                }
            }
            if !is_literal {
                element = leaf.stream.next(1).map_err(|reason| ColumnError::new(reason, at))?.0;
            }
            let present = element != Element::Missing;
            changed |= element == Element::New || present != leaf.present;
            leaf.present = present;
        }
        let fail = |reason| ColumnError::new(reason, at);
        if entries.len() >= rows_max {
            return Err(fail(TOO_MANY));
        }
        // Charges the work of all streams, even those that produce nothing.
        entries.charge(leaves.len()).map_err(fail)?;
        if !changed {
            if last == Some(true) {
                entries.push_same(1)
            } else {
                entries.push_absent(1)
            }
            continue;
        }
        let mut streams = leaves.iter();
        let any =
            shape.build(&mut object, || streams.next().and_then(|leaf| leaf.stream.value().filter(|_| leaf.present)));
        last = Some(any);
        if any {
            entries.charge(object.len()).map_err(fail)?;
            entries.push(shape.root, &object);
        } else {
            entries.push_absent(1);
        }
    }
}

/// As `read`, but only counts the objects.
pub fn count<'a>(
    items: &mut Items<'a>,
    offset: usize,
    section: SectionKind,
    reference: &'a [u8],
    rows_max: usize,
) -> Result<usize, ColumnError> {
    let shape = SectionShape::new(section, reference, PARTS_MAX).map_err(|reason| ColumnError::new(reason, offset))?;
    // How many values each stream has left.
    let mut left = vec![0; shape.scalars.len()];
    let (mut rows, mut work) = (0, 0);
    loop {
        for (number, (left, scalar)) in
            left.iter_mut().zip(&shape.scalars).enumerate().filter(|(_, (left, _))| **left == 0)
        {
            let (item, at) = items.next(scalar.depth)?;
            let fail = |reason| ColumnError::new(reason, at);
            *left = match item {
                Item::Literal(..) => 1,
                Item::Control(_, words) => elements(words).map_err(fail)?,
                Item::Section(..) => return Err(fail(NESTED)),
                Item::End if number > 0 => return Err(fail(UNEVEN)),
                Item::End if rows == 0 => return Err(fail(EMPTY)),
                Item::End => return Ok(rows),
            };
        }
        // This many objects need no further item.
        let objects = left.iter().copied().min().unwrap_or_default();
        left.iter_mut().for_each(|left| *left -= objects);
        rows += objects;
        work += left.len();
        if rows > rows_max || work > COLUMN_SIZE_BYTES_MAX {
            return Err(ColumnError::new(if rows > rows_max { TOO_MANY } else { TOO_LARGE }, offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ColumnData;
    use crate::column::read::forge::{Forge, array, deltas, double, int, object, plain, run, string};
    use crate::limits::DOCUMENT_DEPTH_MAX;
    use crate::value::OwnedValue;

    fn pair(x: i32, y: i32) -> OwnedValue {
        object(&[("x", int(x)), ("y", int(y))])
    }

    /// A section whose reference is `{ x: 1, y: 2 }`.
    fn pairs() -> Forge {
        Forge::default().section(0xF1, &pair(1, 2))
    }

    #[test]
    fn each_scalar_of_the_reference_has_a_stream() {
        let column = pairs().control(0x80, &[deltas(&[0, 1])]).control(0x80, &[plain(&[Some(2), None])]).end().end();
        assert_eq!(column.cells(), [Some(pair(1, 3)), Some(object(&[("x", int(2))]))]);
        let (reference, expected) = (array(&pair(1, 2)), array(&pair(2, 1)));
        let column = Forge::default().section(0xF2, &reference).control(0x80, &[deltas(&[1])]);
        assert_eq!(column.control(0x80, &[deltas(&[-1])]).end().end().cells(), [Some(expected)]);
    }

    #[test]
    fn items_are_in_the_order_in_which_objects_need_them() {
        let column = pairs()
            .control(0x80, &[deltas(&[0, 1])])
            .control(0x80, &[deltas(&[0])])
            .literal(&string("y"))
            .literal(&double(0.5))
            .control(0x80, &[deltas(&[0])])
            .control(0xA0, &[deltas(&[1])])
            .control(0x80, &[deltas(&[0])])
            .end()
            .end();
        let expected = [
            pair(1, 2),
            object(&[("x", int(2)), ("y", string("y"))]),
            object(&[("x", double(0.5)), ("y", string("y"))]),
            object(&[("x", double(0.6)), ("y", string("y"))]),
        ];
        assert_eq!(column.cells(), expected.map(Some));
    }

    #[test]
    fn objects_without_fields_are_missing_and_equal_ones_are_stored_once() {
        let words = [plain(&[Some(0), None]), run(1), deltas(&[0]), deltas(&[0; 30])];
        let column = pairs().control(0x80, &words).control(0x80, &words).end().end().read().unwrap();
        assert_eq!((column.len(), column.present_count()), (153, 32));
        assert!(matches!(column.data(), ColumnData::Dictionary(_, entries) if entries.len() == 1));
    }

    #[test]
    fn a_control_after_a_section_repeats_the_last_object_or_a_missing_one() {
        let one = |slot: Option<u64>| {
            let column = pairs().control(0x80, &[plain(&[slot])]).control(0x80, &[plain(&[slot])]);
            column.end()
        };
        let column = one(Some(0)).control(0x80, &[plain(&[Some(0), None, Some(0)]), run(1)]).end();
        let again = Some(pair(1, 2));
        assert_eq!(column.cells(), [vec![again.clone(); 2], vec![None], vec![again; 121]].concat());
        let column = one(None).control(0x80, &[plain(&[Some(0), None, Some(0)])]).end();
        assert_eq!(column.cells(), vec![None; 4]);
        // After a section that ended with a missing object, any difference has no base.
        assert_eq!(one(None).control(0x80, &[deltas(&[1])]).end().cells(), vec![None; 2]);
        assert!(one(Some(0)).control(0x80, &[deltas(&[1])]).end().read().is_err());
        assert!(one(Some(0)).control(0x90, &[deltas(&[0])]).end().read().is_err());
        assert!(one(None).control(0x90, &[deltas(&[0])]).end().read().is_err());
        // A literal starts afresh.
        let column = one(Some(0)).literal(&int(1)).control(0x80, &[deltas(&[1])]).end();
        assert_eq!(column.cells(), [pair(1, 2), int(1), int(2)].map(Some));
    }

    #[test]
    fn a_section_after_scalars_makes_a_column_of_bson_values() {
        let zero = deltas(&[0]);
        let column = Forge::default().literal(&int(1)).control(0x80, &[deltas(&[1])]);
        let column = column.section(0xF1, &pair(1, 2)).control(0x80, &[zero]).control(0x80, &[zero]).end().end();
        assert_eq!(column.cells(), [int(1), int(2), pair(1, 2)].map(Some));
    }

    #[test]
    fn uneven_empty_and_nested_sections_are_refused() {
        let start = pairs().bytes.len();
        let even = pairs().control(0x80, &[deltas(&[0])]).control(0x80, &[deltas(&[0])]);
        assert!(even.clone().end().end().read().is_ok());
        assert_eq!(pairs().end().end().refusal(), (EMPTY, start));
        assert_eq!(pairs().refusal(), ("the column has no end", start));
        // In the middle of an object.
        assert_eq!(pairs().control(0x80, &[deltas(&[0])]).end().end().refusal(), (UNEVEN, start + 9));
        // The second stream has a value left.
        let long = pairs().control(0x80, &[deltas(&[0])]).control(0x80, &[deltas(&[0, 0])]).end().end();
        assert_eq!(long.refusal(), (UNEVEN, start + 18));
        assert_eq!(even.clone().section(0xF1, &pair(1, 2)).refusal(), (NESTED, start + 18));
        assert_eq!(even.clone().end().refusal().0, "the column has no end");
        for start in [0xF0, 0xF1, 0xF2] {
            let none = Forge::default().section(start, &object(&[("o", object(&[]))])).control(0x80, &[deltas(&[0])]);
            assert_eq!(none.end().end().refusal(), ("the reference of a section has no scalars", 0));
        }
        let count = |forge: Forge| crate::column::count(&forge.bytes, 100);
        assert!(count(pairs().end().end()).is_err());
        assert!(count(pairs().control(0x80, &[deltas(&[0])]).end().end()).is_err());
        assert_eq!(count(even.end().end()), Ok(1));
    }

    #[test]
    fn a_literal_may_not_nest_objects_deeper_than_documents_may_be() {
        let nested = |levels: usize| (0..levels).fold(int(1), |inner, _| object(&[("o", inner)]));
        let (reference, literal) = (nested(DOCUMENT_DEPTH_MAX - 3), nested(3));
        let column = Forge::default().section(0xF1, &reference);
        let whole = column.clone().literal(&literal).end().end().cells();
        assert_eq!(whole, [Some(nested(DOCUMENT_DEPTH_MAX))]);
        let deeper = column.literal(&object(&[("o", literal)])).end().end();
        assert_eq!(deeper.refusal().0, "a literal is not a valid value");
    }

    #[test]
    fn sections_stay_within_the_rows_and_the_bytes_of_a_column() {
        let runs = pairs().control(0x80, &[deltas(&[1]), run(2)]).control(0x80, &[run(2), deltas(&[0])]).end().end();
        assert_eq!(crate::column::decode(&runs.bytes, 241).unwrap().len(), 241);
        assert_eq!(crate::column::decode(&runs.bytes, 240).unwrap_err().reason, TOO_MANY);
        assert!(crate::column::count(&runs.bytes, 240).is_err());
        let large = object(&[("x", int(1)), ("text", string(&"x".repeat(1 << 20)))]);
        let column = Forge::default().section(0xF1, &large).control(0x80, &[deltas(&[1]), run(1)]);
        let column = column.control(0x80, &[deltas(&[0]), run(1)]).end().end();
        assert_eq!(column.refusal().0, TOO_LARGE);
    }
}
