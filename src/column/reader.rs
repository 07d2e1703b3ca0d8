//! Reading a column: item by item, into the kind of rows that its values allow.

use super::entries::Entries;
use super::error::ColumnError;
use super::items::{Item, Items};
use super::section;
use super::stream::{Element, Stream};
use super::typed::{BAD_SCALE, TOO_MANY, TypedRows};
use super::words::elements;
use crate::block::Column;
use crate::value::Kind;

/// The rows so far: typed ones as long as all values are of one type that has a width, entries from the first that is not.
#[derive(Default)]
struct Rows {
    /// How many are absent, before any value.
    absent: usize,
    typed: Option<TypedRows>,
    entries: Option<Entries>,
}

/// Reads a column of at most `rows_max` elements: of one typed form as long as all values have one type, of bson values
/// otherwise; a dictionary where strings or bson values repeat.
///
/// Errors: the rule that is broken, and the offset of the item that breaks it.
pub fn decode(bytes: &[u8], rows_max: usize) -> Result<Column, ColumnError> {
    // A word stands for two hundred and forty elements for each of its bytes at most.
    let capacity = rows_max.min(bytes.len().saturating_mul(240));
    let mut items = Items::new(bytes);
    let mut rows = Rows::default();
    // The state behind the last of `Rows::entries`.
    let mut stream = Stream::new();
    loop {
        let (item, offset) = items.next(0)?;
        let fail = |reason| ColumnError::new(reason, offset);
        match item {
            Item::Literal(kind, bytes) => {
                if rows.len() >= rows_max {
                    return Err(fail(TOO_MANY));
                }
                if rows.takes_typed(kind) {
                    rows.typed.get_or_insert_with(|| TypedRows::new(kind, rows.absent, capacity)).literal(bytes);
                } else {
                    stream = Stream::behind(kind, bytes);
                    push(rows.entries(), kind, bytes).map_err(fail)?;
                }
            }
            Item::Control(control, words) => {
                if let Some(entries) = &mut rows.entries {
                    stream.open(control, words).map_err(fail)?;
                    read_stream(&mut stream, entries, rows_max).map_err(fail)?;
                } else if let Some(typed) = &mut rows.typed {
                    typed.control(control, words, rows_max).map_err(fail)?;
                } else {
                    rows.absent += elements(words).map_err(fail)?;
                    if control & 0xF0 != 0x80 {
                        return Err(fail(BAD_SCALE));
                    }
                    if rows.absent > rows_max {
                        return Err(fail(TOO_MANY));
                    }
                }
            }
            Item::Section(section, reference) => {
                stream = match section::read(&mut items, offset, section, reference, rows.entries(), rows_max)? {
                    // The control that may follow can only repeat the last object.
                    Some(kind) => Stream::behind(kind, &[]),
                    None => Stream::new(),
                };
            }
            Item::End => {
                items.finish()?;
                return Ok(match (rows.entries, rows.typed) {
                    (Some(entries), _) => entries.finish(),
                    (None, Some(typed)) => typed.finish(),
                    (None, None) => Entries::new(rows.absent).finish(),
                });
            }
        }
    }
}

/// How many elements a column has, present or not, without reading its values.
///
/// Errors: as `decode`, as far as the items and their words tell.
pub fn count(bytes: &[u8], rows_max: usize) -> Result<usize, ColumnError> {
    let mut items = Items::new(bytes);
    let mut rows = 0;
    loop {
        let (item, offset) = items.next(0)?;
        rows += match item {
            Item::Literal(..) => 1,
            Item::Control(_, words) => elements(words).map_err(|reason| ColumnError::new(reason, offset))?,
            Item::Section(section, reference) => {
                section::count(&mut items, offset, section, reference, rows_max - rows)?
            }
            Item::End => {
                items.finish()?;
                return Ok(rows);
            }
        };
        if rows > rows_max {
            return Err(ColumnError::new(TOO_MANY, offset));
        }
    }
}

impl Rows {
    fn len(&self) -> usize {
        match (&self.entries, &self.typed) {
            (Some(entries), _) => entries.len(),
            (None, Some(typed)) => typed.len(),
            (None, None) => self.absent,
        }
    }

    #[inline]
    fn takes_typed(&self, kind: Kind) -> bool {
        self.entries.is_none() && self.typed.as_ref().map_or(TypedRows::takes(kind), |typed| typed.kind() == kind)
    }

    /// The rows as entries, which they become if they are not.
    fn entries(&mut self) -> &mut Entries {
        self.entries.get_or_insert_with(|| match self.typed.take() {
            Some(typed) => Entries::from_column(&typed.finish()),
            None => Entries::new(self.absent),
        })
    }
}

fn push(entries: &mut Entries, kind: Kind, bytes: &[u8]) -> Result<(), &'static str> {
    entries.charge(bytes.len())?;
    entries.push(kind, bytes);
    Ok(())
}

/// Appends all elements of the open control.
fn read_stream(stream: &mut Stream<'_>, entries: &mut Entries, rows_max: usize) -> Result<(), &'static str> {
    while !stream.is_exhausted() {
        let room = rows_max - entries.len();
        if room == 0 {
            return Err(TOO_MANY);
        }
        match stream.next(room)? {
            (Element::Missing, count) => entries.push_absent(count),
            (Element::Same, count) => entries.push_same(count),
            (Element::New, _) => {
                if let Some((kind, bytes)) = stream.value() {
                    push(entries, kind, bytes)?;
                }
            }
        }
    }
    Ok(())
}
