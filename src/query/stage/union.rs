//! `$unionWith`: appends the rows of another pipeline.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_union_with.cpp.

use std::rc::Rc;

use super::equal_rows::EqualRows;
use super::model::Others;
use super::parse::{PipelineParser, check_fields};
use super::running::Stage;
use super::spec::Spec;
use super::subpipeline::SubPipeline;
use super::table::forbid_writes;
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::query::exec::Flow;
use crate::value::{Doc, FieldSet, Value};

impl PipelineParser<'_> {
    /// `$unionWith`, with a name or with `{coll, pipeline}`.
    ///
    /// Errors: `FailedToParse`, `TypeMismatch`, 40415. Errors of the other pipeline occur when it is read.
    pub fn union_with(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |message: &str| Err(Error::new(ErrorCode::FailedToParse, message));
        let (collection, pipeline) = match (argument.as_str(), argument.as_doc()) {
            (Some(name), _) => (Some(name), None),
            (_, Some(options)) => {
                check_fields("$unionWith", options, &["coll", "pipeline"], &[])?;
                let wrong = || Error::type_mismatch("$unionWith needs a string as 'coll' and an array as 'pipeline'");
                let collection = options.get("coll").map(|name| name.as_str().ok_or_else(wrong)).transpose()?;
                (collection, options.get("pipeline").map(|stages| stages.as_array().ok_or_else(wrong)).transpose()?)
            }
            _ => return refuse("The $unionWith stage specification must be an object or a string"),
        };
        if collection.is_none() && !pipeline.is_some_and(begins_with_documents) {
            return refuse(
                "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
            );
        }
        let (name, stages) = (collection.unwrap_or_default(), pipeline.unwrap_or(Doc::EMPTY));
        forbid_writes(stages, ErrorCode::Location31441)?;
        let split = self.split(name, stages, None, self.globals)?;
        self.push(UnionSpec(split), "$unionWith", argument);
        Ok(())
    }
}

/// True if the stages need no collection.
pub(super) fn begins_with_documents(stages: Doc<'_>) -> bool {
    stages.iter().next().and_then(|(_, stage)| stage.as_doc()).is_some_and(|stage| stage.get("$documents").is_some())
}

/// The specification of a `$unionWith`.
struct UnionSpec(SubPipeline);

impl Spec for UnionSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        behind
    }

    fn appended(&self) -> Option<usize> {
        self.0.read_whole()
    }

    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage> {
        Box::new(Union { spec: self, rows: Vec::new(), others: Some(Others::clone(others)) })
    }
}

/// A running `$unionWith`.
struct Union {
    spec: Rc<UnionSpec>,
    rows: Vec<Block>,
    others: Option<Others>,
}

impl Stage for Union {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.rows.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(others) = self.others.take() else { return Ok(()) };
        let rows = self.spec.0.rows(None, &others, &mut EqualRows::default())?;
        self.rows.extend(Some(rows).filter(|rows| rows.rows() > 0));
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(if self.rows.is_empty() { None } else { Some(self.rows.remove(0)) })
    }
}
