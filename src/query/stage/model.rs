//! Where the rows of a pipeline come from and go to, besides its own collection.

use std::rc::Rc;

use crate::block::Block;
use crate::query::expr::{BoundExpr, Globals};
use crate::query::filter::Filter;
use crate::value::{DocBuf, DocWriter, FieldSet};

/// A source of documents that are not measurements.
#[derive(Clone)]
pub enum DocumentSource {
    /// `$indexStats`: one document per index.
    IndexStats,
    /// `$collStats`: one document with the size of the collection.
    CollStats(CollStats),
    /// `$documents`: a list of documents.
    Documents(BoundExpr),
}

/// The options of `$collStats`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollStats {
    /// Sizes, in units of this many bytes.
    pub scale: Option<i64>,
    /// True for the number of measurements.
    pub count: bool,
}

impl DocumentSource {
    /// Writes the stage.
    pub(super) fn write(&self, writer: &mut DocWriter) {
        match self {
            DocumentSource::IndexStats => {
                writer.begin_doc("$indexStats").end();
            }
            DocumentSource::CollStats(asked) => {
                writer.begin_doc("$collStats");
                if let Some(scale) = asked.scale {
                    writer.begin_doc("storageStats").int64("scale", scale).end();
                }
                if asked.count {
                    writer.begin_doc("count").end();
                }
                writer.end();
            }
            DocumentSource::Documents(list) => list.expr().write("$documents", writer),
        }
    }

    /// True if its documents depend on no collection.
    pub fn is_independent(&self) -> bool {
        matches!(self, DocumentSource::Documents(_))
    }
}

/// The target of a pipeline's rows.
#[derive(Clone)]
pub struct Out {
    /// The database; `None` for the current one.
    pub database: Option<Box<str>>,
    /// The collection whose content is replaced.
    pub collection: Box<str>,
    /// The options with which it is created, if it does not exist.
    pub timeseries: Option<DocBuf>,
    /// The stage as it was written.
    pub(super) shown: DocBuf,
}

/// A pipeline over another collection whose rows a stage needs.
#[derive(Clone)]
pub struct Foreign {
    /// The collection; empty if the pipeline produces documents of its own.
    pub collection: Box<str>,
    /// The stages, as an array.
    pub(super) stages: DocBuf,
    pub(super) globals: Globals,
    /// What the rows must pass behind the stages.
    pub(super) filter: Filter,
    /// The top-level fields of the rows that are read.
    pub(super) fields: FieldSet,
}

/// The rows of each `Foreign` of a pipeline, in order.
pub type Others = Rc<[Block]>;
