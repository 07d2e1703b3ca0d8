//! `$redact`: each object of a row stays, goes, or is descended into.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_redact.cpp. The answers of the expression are strings,
//! held by variables that exist only here.

use std::rc::Rc;

use super::model::Others;
use super::parse::PipelineParser;
use super::reshape::Made;
use super::running::Stage;
use super::spec::Spec;
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Expr};
use crate::value::{Doc, DocBuf, DocWriter, OwnedValue, Value};

const DESCEND: &str = "descend";
const PRUNE: &str = "prune";
const KEEP: &str = "keep";

impl PipelineParser<'_> {
    /// `$redact`.
    ///
    /// Errors: those of the expression.
    pub fn redact(&mut self, argument: Value<'_>) -> Result<()> {
        let named = [("DESCEND", DESCEND), ("PRUNE", PRUNE), ("KEEP", KEEP)];
        let variables = named.map(|(name, value)| (name.into(), Some(OwnedValue::string(value))));
        let globals = self.globals.with_more(variables.to_vec());
        let expr = BoundExpr::new(Expr::parse_within(argument, &globals)?, globals);
        self.push(RedactSpec(expr), "$redact", argument);
        Ok(())
    }
}

/// The specification of a `$redact`.
struct RedactSpec(BoundExpr);

impl Spec for RedactSpec {
    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Redact { spec: self, made: Made::default() })
    }
}

/// A running `$redact`.
struct Redact {
    spec: Rc<RedactSpec>,
    made: Made,
}

impl Redact {
    /// What is left of an object in a row.
    fn object(&self, row: Doc<'_>, doc: Doc<'_>) -> Result<Option<DocBuf>> {
        let verdict = self.spec.0.value_within(row, doc)?;
        match verdict.as_ref().and_then(|verdict| verdict.view().as_str()) {
            Some(KEEP) => Ok(Some(doc.to_owned())),
            Some(PRUNE) => Ok(None),
            Some(DESCEND) => {
                let mut left = DocWriter::new();
                for (name, value) in doc {
                    self.field(row, name, value, &mut left)?;
                }
                Ok(Some(left.finish()))
            }
            _ => {
                let message = "The expression of $redact must return $$KEEP, $$DESCEND or $$PRUNE";
                Err(Error::new(ErrorCode::Location17053, message))
            }
        }
    }

    fn field(&self, row: Doc<'_>, name: &str, value: Value<'_>, left: &mut DocWriter) -> Result<()> {
        if let Some(doc) = value.as_doc() {
            if let Some(doc) = self.object(row, doc)? {
                left.doc(name, doc.view());
            }
        } else if let Some(array) = value.as_array() {
            left.begin_array(name);
            let mut place = 0;
            for (_, element) in array {
                let before = left.len();
                self.field(row, &place.to_string(), element, left)?;
                place += usize::from(left.len() > before);
            }
            left.end();
        } else {
            left.value(name, value);
        }
        Ok(())
    }
}

impl Stage for Redact {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        for row in 0..rows.rows() {
            let mut writer = DocWriter::new();
            rows.write_row(row, &mut writer);
            let row = writer.finish();
            if let Some(left) = self.object(row.view(), row.view())? {
                self.made.push(left.view())?;
            }
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}
