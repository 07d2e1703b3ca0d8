//! Stages in front of a pipeline that have documents of their own.

use super::parse::Parser;
use super::table::not_first;
use crate::block::{Block, DocPivot};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::BoundExpr;
use crate::value::{Doc, DocWriter, Value};

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

/// Stages that a time-series collection does not take, or that there is nothing for here. Each would be the first of its pipeline.
const REFUSED: [(&str, ErrorCode); 9] = [
    ("$changeStream", ErrorCode::CommandNotSupportedOnView),
    ("$planCacheStats", ErrorCode::CommandNotSupportedOnView),
    ("$listCatalog", ErrorCode::CommandNotSupportedOnView),
    ("$search", ErrorCode::Location10170100),
    ("$searchMeta", ErrorCode::Location10170100),
    ("$vectorSearch", ErrorCode::Location10170100),
    ("$scoreFusion", ErrorCode::Location10557300),
    ("$rankFusion", ErrorCode::Location10557301),
    ("$_internalSearchIdLookup", ErrorCode::Location10557302),
];

impl Parser<'_> {
    /// `$indexStats`.
    ///
    /// Errors: 28803.
    pub fn index_stats(&mut self, argument: Value<'_>) -> Result<()> {
        if !argument.as_doc().is_some_and(Doc::is_empty) {
            let message = "The $indexStats stage specification must be an empty object";
            return Err(Error::new(ErrorCode::Location28803, message));
        }
        self.source = Some(DocumentSource::IndexStats);
        Ok(())
    }

    /// `$documents`.
    ///
    /// Errors: those of expressions.
    pub fn documents(&mut self, argument: Value<'_>) -> Result<()> {
        self.source = Some(DocumentSource::Documents(self.expr(argument)?));
        Ok(())
    }

    /// `$collStats`.
    ///
    /// Errors: 5447000, 40168, 40279 and 40480.
    pub fn coll_stats(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Error::new(code, message);
        let doc = argument.as_doc();
        let doc = doc.ok_or_else(|| refuse(ErrorCode::Location5447000, "$collStats must take a nested object"))?;
        let mut asked = CollStats::default();
        for (name, value) in doc {
            let object = |code| value.as_doc().ok_or_else(|| refuse(code, "The options of $collStats must be objects"));
            match name {
                "storageStats" => {
                    let scale = object(ErrorCode::Location40279)?.get("scale").map_or(Some(1), Value::as_integer);
                    asked.scale = Some(scale.unwrap_or(1).max(1));
                }
                "count" => {
                    object(ErrorCode::Location40480)?;
                    asked.count = true;
                }
                _ => return Err(refuse(ErrorCode::Location40168, "unrecognized option to $collStats")),
            }
        }
        self.source = Some(DocumentSource::CollStats(asked));
        Ok(())
    }
}

/// What is wrong with a stage that the table of stages does not have.
pub(super) fn unknown(name: &str, place: usize) -> Error {
    match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, code)) if place == 0 => {
            Error::new(*code, ["A time-series collection does not take the stage ", name].concat())
        }
        Some(_) => not_first(name),
        None => Error::new(ErrorCode::Location40324, ["Unrecognized pipeline stage name: '", name, "'"].concat()),
    }
}

/// The rows of `$documents`.
///
/// Errors: 5858203 for what is no array, 40228 for an element that is no object, and those of the expression.
pub(super) fn documents(list: &BoundExpr) -> Result<Block> {
    let list = list.value(Doc::EMPTY)?;
    let Some(elements) = list.as_ref().and_then(|list| list.view().as_array()) else {
        return Err(Error::new(ErrorCode::Location5858203, "an array is expected"));
    };
    let mut rows = DocPivot::new();
    for (_, element) in elements {
        let message = "The elements of $documents must be objects";
        rows.push(element.as_doc().ok_or_else(|| Error::new(ErrorCode::Location40228, message))?)?;
    }
    Ok(rows.finish())
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
