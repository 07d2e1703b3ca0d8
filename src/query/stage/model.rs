//! Where the rows of a pipeline come from and go, besides its own collection.

use std::rc::Rc;

use crate::block::Block;
use crate::query::expr::{BoundExpr, Globals};
use crate::value::{DocBuf, DocWriter};

/// Where documents come from that are no measurements.
#[derive(Clone)]
pub enum DocumentSource {
    /// `$indexStats`: one for each index.
    IndexStats,
    /// `$collStats`: one that says how much the collection holds.
    CollStats(CollStats),
    /// `$documents`: a list.
    Documents(BoundExpr),
}

/// What `$collStats` is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollStats {
    /// Sizes, in units of so many bytes.
    pub scale: Option<i64>,
    /// How many measurements there are.
    pub count: bool,
}

impl DocumentSource {
    /// The stage as it is written.
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

    /// True where it has its documents from no collection.
    pub fn is_independent(&self) -> bool {
        matches!(self, DocumentSource::Documents(_))
    }
}

/// Where the rows of a pipeline go.
#[derive(Clone)]
pub struct Out {
    /// The database; `None` for the own one.
    pub database: Option<Box<str>>,
    /// The collection whose content they become.
    pub collection: Box<str>,
    /// The options by which it is made, where it is not there yet.
    pub timeseries: Option<DocBuf>,
    /// The stage as it is written.
    pub(super) shown: DocBuf,
}

/// A pipeline over another collection whose rows a stage needs.
#[derive(Clone)]
pub struct Foreign {
    /// The collection; empty where the pipeline has documents of its own.
    pub collection: Box<str>,
    /// The stages, an array.
    pub(super) stages: DocBuf,
    pub(super) globals: Globals,
}

/// The rows of each `Foreign` of a pipeline, in their order.
pub type Others = Rc<[Block]>;
