//! First stages that produce documents of their own: `$collStats`, `$documents`, `$indexStats`.

use super::model::{CollStats, DocumentSource};
use super::parse::PipelineParser;
use crate::block::{Block, DocPivot};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::BoundExpr;
use crate::value::{Doc, Value};

impl PipelineParser<'_> {
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
                _ => return Err(refuse(ErrorCode::Location40168, "Unknown option of $collStats")),
            }
        }
        self.source = Some(DocumentSource::CollStats(asked));
        Ok(())
    }
}

/// The rows of `$documents`.
///
/// Errors: 5858203 if it is not an array; 40228 if an element is not an object; those of the expression.
pub(super) fn documents(list: &BoundExpr) -> Result<Block> {
    let list = list.value(Doc::EMPTY)?;
    let Some(elements) = list.as_ref().and_then(|list| list.view().as_array()) else {
        return Err(Error::new(ErrorCode::Location5858203, "The argument of $documents must be an array"));
    };
    let mut rows = DocPivot::new();
    for (_, element) in elements {
        let message = "The elements of $documents must be objects";
        rows.push(element.as_doc().ok_or_else(|| Error::new(ErrorCode::Location40228, message))?)?;
    }
    Ok(rows.finish())
}
