//! Sections: objects, as one stream for every scalar of a reference document.

use super::entries::{Entries, TOO_LARGE};
use super::error::ColumnError;
use super::items::{Item, Items, Section};
use super::shape::{Part, Scalar, Shape};
use super::stream::{Element, Stream};
use super::typed::TOO_MANY;
use super::words::elements;
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::value::Kind;

/// The end of a section where an object still lacks values, or has values left.
const UNEVEN: &str = "the streams of a section end at different objects";
/// A section without objects.
const EMPTY: &str = "a section has no objects";
/// A section within a section.
const NESTED: &str = "a section begins within a section";

/// Most parts a section may have: what is kept for them is bounded like what a column stands for.
const PARTS_MAX: usize =
    COLUMN_SIZE_BYTES_MAX / (size_of::<Part<'_>>() + size_of::<Scalar<'_>>() + size_of::<Leaf<'_>>());

/// The stream of one scalar.
struct Leaf<'a> {
    stream: Stream<'a>,
    depth: usize,
    /// Whether the last object had it.
    present: bool,
}

/// Reads a section, behind its start at `offset`, as rows of `entries`, up to `rows_max` rows.
///
/// Gives the type of the last object, where that was not missing.
pub fn read<'a>(
    items: &mut Items<'a>,
    offset: usize,
    section: Section,
    reference: &'a [u8],
    entries: &mut Entries,
    rows_max: usize,
) -> Result<Option<Kind>, ColumnError> {
    let shape = Shape::new(section, reference, PARTS_MAX).map_err(|reason| ColumnError::new(reason, offset))?;
    let mut leaves: Vec<Leaf<'a>> = shape
        .scalars
        .iter()
        .map(|scalar| Leaf { stream: Stream::behind(scalar.kind, scalar.bytes), depth: scalar.depth, present: false })
        .collect();
    let mut object = Vec::new();
    // Whether the last object was present; `None` before any.
    let mut last = None;
    loop {
        let mut changed = last.is_none();
        // Where something is wrong with the object that begins here.
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
                        leaf.stream = Stream::behind(kind, bytes);
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
        // Also the work of streams that bring nothing forth.
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
    section: Section,
    reference: &'a [u8],
    rows_max: usize,
) -> Result<usize, ColumnError> {
    let shape = Shape::new(section, reference, PARTS_MAX).map_err(|reason| ColumnError::new(reason, offset))?;
    // How many values every stream has left.
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
        // So many objects need no further item.
        let objects = left.iter().copied().min().unwrap_or_default();
        left.iter_mut().for_each(|left| *left -= objects);
        rows += objects;
        work += left.len();
        if rows > rows_max || work > COLUMN_SIZE_BYTES_MAX {
            return Err(ColumnError::new(if rows > rows_max { TOO_MANY } else { TOO_LARGE }, offset));
        }
    }
}
