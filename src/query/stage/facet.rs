//! `$facet`: several pipelines over the same rows; each result becomes a list in one row.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_facet.cpp.

use std::rc::Rc;

use super::model::Others;
use super::optimise::optimise;
use super::parse::PipelineParser;
use super::pipeline::Pipeline;
use super::running::Stage;
use super::spec::{ShownStep, Spec, check_unpacking, narrow_appended, reads, wait_for_all};
use super::table::{StagePlace, place_of};
use crate::block::{Block, ColumnBuilder};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::value::{DocWriter, FieldSet, Kind, Value};

impl PipelineParser<'_> {
    /// `$facet`.
    ///
    /// Errors: 40169 to 40171, 40600 for one in another, 15998, 16410 and 16412 for names, and those of the stages.
    pub fn facet(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Err(Error::new(code, message));
        let Some(doc) = argument.as_doc().filter(|doc| !doc.is_empty()) else {
            return refuse(ErrorCode::Location40169, "The $facet specification must be a non-empty object");
        };
        let mut branches = Vec::new();
        for (name, value) in doc {
            let name_code = match name {
                "" => Some(ErrorCode::Location15998),
                _ if name.starts_with('$') => Some(ErrorCode::Location16410),
                _ => name.contains('.').then_some(ErrorCode::Location16412),
            };
            if let Some(code) = name_code {
                return refuse(code, "The names of $facet pipelines must be valid field names");
            }
            let Some(stages) = value.as_array() else {
                return refuse(ErrorCode::Location40170, "The arguments of $facet must be arrays");
            };
            for (_, stage) in stages {
                let Some(stage) = stage.as_doc() else {
                    return refuse(ErrorCode::Location40171, "The arrays of $facet must contain objects");
                };
                let is_outside = |name: &str| place_of(name).is_some_and(|place| place != StagePlace::Anywhere);
                if let Some((name, _)) = stage.iter().find(|(name, _)| is_outside(name)) {
                    let message = [name, " is not allowed to be used within a $facet stage"].concat();
                    return refuse(ErrorCode::Location40600, &message);
                }
            }
            let mut branch = PipelineParser::new(self.globals);
            branch.others = std::mem::take(&mut self.others);
            branch.stages(stages)?;
            optimise(&mut branch.steps, &mut branch.others);
            narrow_appended(&branch.steps, &mut branch.others, &FieldSet::All);
            self.others = branch.others;
            check_unpacking(&mut branch.steps, false)?;
            branches.push((name.into(), branch.steps));
        }
        self.push(FacetSpec(branches), "$facet", argument);
        Ok(())
    }
}

/// The branches of a `$facet`, by name.
struct FacetSpec(Vec<(Box<str>, Vec<ShownStep>)>);

impl Spec for FacetSpec {
    fn reads(&self, _behind: FieldSet) -> FieldSet {
        let mut fields = FieldSet::none();
        self.0.iter().for_each(|(_, steps)| fields.add_all(&reads(steps)));
        fields
    }

    fn shows_rows(&self) -> bool {
        true
    }

    fn waits_for_all(&self) -> bool {
        self.0.iter().any(|(_, steps)| wait_for_all(steps, true))
    }

    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage> {
        let branch = |(name, steps): &(Box<str>, Vec<ShownStep>)| {
            let pipeline = Pipeline::new(&mut steps.iter().map(|(step, _)| step), others);
            (name.clone(), Branch { pipeline, is_enough: false })
        };
        Box::new(Facet { branches: self.0.iter().map(branch).listed(), made: None })
    }
}

/// A running `$facet`.
struct Facet {
    branches: Vec<(Box<str>, Branch)>,
    made: Option<Block>,
}

struct Branch {
    pipeline: Pipeline,
    is_enough: bool,
}

impl Stage for Facet {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let mut flow = Flow::Enough;
        for (_, branch) in self.branches.iter_mut().filter(|(_, branch)| !branch.is_enough) {
            branch.is_enough = branch.pipeline.push(rows.clone())? == Flow::Enough;
            if !branch.is_enough {
                flow = Flow::Continue;
            }
        }
        Ok(flow)
    }

    fn finish(&mut self) -> Result<()> {
        let mut made = Block::new(1);
        let mut size_bytes = 0;
        for (name, Branch { pipeline, .. }) in &mut self.branches {
            pipeline.finish()?;
            let mut list = DocWriter::new();
            let mut place = 0;
            while pipeline.ready() > 0 {
                let rows = pipeline.take(usize::MAX, usize::MAX);
                for row in 0..rows.rows() {
                    list.begin_doc(&place.to_string());
                    rows.write_row(row, &mut list);
                    list.end();
                    place += 1;
                }
                if size_bytes + list.len() > STAGE_SIZE_BYTES_MAX {
                    let message = "The document constructed by $facet exceeds the memory limit";
                    return Err(Error::new(ErrorCode::Location4031700, message));
                }
            }
            size_bytes += list.len();
            let list = list.finish();
            let mut column = ColumnBuilder::new();
            column.push(Value::new_checked(Kind::Array, list.view().as_bytes()));
            made.set_column(name, column.finish());
        }
        self.made = Some(made);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}
