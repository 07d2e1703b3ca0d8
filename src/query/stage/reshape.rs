//! What stages share that build new rows.

use crate::block::{Block, DocPivot};
use crate::error::Result;
use crate::query::plan::{Origin, write_set};
use crate::value::{Doc, DocBuf, DocWriter, Value};

/// The rows that a stage has built from documents.
#[derive(Default)]
pub(super) struct Made(Option<DocPivot>);

impl Made {
    /// Adds a row.
    pub fn push(&mut self, doc: Doc<'_>) -> Result<()> {
        self.0.get_or_insert_with(DocPivot::new).push(doc)
    }

    /// The added rows.
    pub fn take(&mut self) -> Option<Block> {
        self.0.take().map(DocPivot::finish)
    }
}

/// Rows that a stage computes one by one because each may take long.
#[derive(Default)]
pub(super) struct OneByOne {
    rows: Block,
    next: usize,
    made: Made,
}

impl OneByOne {
    /// Takes rows, after all earlier ones are computed.
    pub fn push(&mut self, rows: Block) {
        (self.rows, self.next) = (rows, 0);
    }

    /// As `Stage::take`. `compute` makes another row of a row, and says whether that took long.
    pub fn take(&mut self, compute: &mut dyn FnMut(Doc<'_>) -> Result<(DocBuf, bool)>) -> Result<Option<Block>> {
        while self.next < self.rows.rows() {
            let mut writer = DocWriter::new();
            self.rows.write_row(self.next, &mut writer);
            self.next += 1;
            let (row, took_long) = compute(writer.finish().view())?;
            self.made.push(row.view())?;
            if took_long {
                return Ok(Some(Block::default()));
            }
        }
        Ok(self.made.take())
    }
}

/// The origin of a field in the result of a stage that changes what lies at these paths.
pub(super) fn changed_at<'p>(name: &str, paths: impl IntoIterator<Item = &'p Vec<Box<str>>>) -> Origin<'static> {
    let is_changed = paths.into_iter().any(|path| path.first().is_none_or(|first| **first == *name));
    if is_changed { Origin::Unknown } else { Origin::Same }
}

/// The document with another value at a path.
pub(super) fn with(doc: Doc<'_>, path: &[Box<str>], new: Option<Value<'_>>) -> DocBuf {
    let mut writer = DocWriter::new();
    write_set(&mut writer, Some(doc), path, new);
    writer.finish()
}
