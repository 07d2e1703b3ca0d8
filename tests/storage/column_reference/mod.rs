//! A second decoder of BSON columns, which the engine's is compared with: written from the format alone, element by element, with
//! every check and without optimisation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod input;
mod section;
mod stream;
mod words;

use input::{Input, Item};
use stream::Stream;

/// A type byte followed by value bytes; `None` is a missing element.
pub type Element = Option<Vec<u8>>;

/// The maximum number of bytes of the objects of all sections, without repeated ones.
const SECTION_BYTES_MAX: usize = 64 << 20;

/// The elements of a column, at most `rows_max`; otherwise the reason why it is invalid.
pub fn decode(bytes: &[u8], rows_max: usize) -> Result<Vec<Element>, String> {
    let mut input = Input::new(bytes);
    let mut rows = Rows { list: Vec::new(), rows_max, section_bytes: 0 };
    let mut stream = Stream::after(None);
    loop {
        match input.item()? {
            Item::End if input.is_at_end() => return Ok(rows.list),
            Item::End => return Err("bytes after the end".into()),
            Item::Literal(element) => {
                rows.push(Some(element.clone()))?;
                stream = Stream::after(Some(element));
            }
            Item::Control { nibble, words } => {
                stream.load(nibble, &words)?;
                while stream.has_elements() {
                    rows.push(stream.next()?)?;
                }
            }
            // Controls after a section can repeat its last object.
            Item::Section(start) => stream = Stream::after(section::decode(start, &mut input, &mut rows)?),
        }
    }
}

/// The elements so far and their limits.
struct Rows {
    list: Vec<Element>,
    rows_max: usize,
    section_bytes: usize,
}

impl Rows {
    fn push(&mut self, element: Element) -> Result<(), String> {
        if self.list.len() == self.rows_max {
            return Err(format!("more than {} elements", self.rows_max));
        }
        self.list.push(element);
        Ok(())
    }

    fn push_object(&mut self, element: Element) -> Result<(), String> {
        // A repeated object counts zero bytes.
        if self.list.last() != Some(&element) {
            self.section_bytes += element.as_ref().map_or(0, Vec::len);
        }
        if self.section_bytes > SECTION_BYTES_MAX {
            return Err("sections of too many bytes".into());
        }
        self.push(element)
    }
}
