//! `$redact`: each object of a row stays, goes, or is descended into.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_redact.cpp. The answers of the expression are strings,
//! held by variables that exist only here.

use std::rc::Rc;

use super::model::Others;
use super::parse::PipelineParser;
use super::reshape::Made;
use super::running::Stage;
use super::spec::{Spec, read_by};
use crate::block::{Block, Column};
use crate::error::{Error, ErrorCode, Result};
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Expr, Globals};
use crate::query::filter::Filter;
use crate::value::{Doc, DocBuf, DocWriter, FieldSet, OwnedValue, Value};

const DESCEND: &str = "descend";
const PRUNE: &str = "prune";
const KEEP: &str = "keep";

impl PipelineParser<'_> {
    /// `$redact`.
    ///
    /// Errors: those of the expression.
    pub fn redact(&mut self, argument: Value<'_>) -> Result<()> {
        let globals = with_verdicts(self.globals);
        let outer = Expr::parse(argument, &globals)?;
        if let Some(filter) = kept(&outer, &globals) {
            self.keep(filter);
            return Ok(());
        }
        let inner = BoundExpr::new(Expr::parse_within(argument, &globals)?, globals.clone());
        let outer = BoundExpr::new(outer, globals);
        self.push(RedactSpec { inner, outer }, "$redact", argument);
        Ok(())
    }
}

/// With the variables that hold what the expression may return.
fn with_verdicts(globals: &Globals) -> Globals {
    let named = [("DESCEND", DESCEND), ("PRUNE", PRUNE), ("KEEP", KEEP)];
    globals.with_more(named.map(|(name, value)| (name.into(), Some(OwnedValue::string(value)))).to_vec())
}

/// The filter of the rows that stay, if the expression is a `$cond` by which they stay or go as a whole.
fn kept(expr: &Expr, globals: &Globals) -> Option<Filter> {
    let Expr::Call(operator, arguments) = expr else { return None };
    let ("$cond", [condition, verdicts @ ..]) = (operator.name(), arguments.as_slice()) else { return None };
    let [Expr::Constant(Some(yes)), Expr::Constant(Some(no))] = verdicts else { return None };
    let filter = Filter::of_expr(condition.clone(), globals);
    match (yes.view().as_str()?, no.view().as_str()?) {
        (KEEP, PRUNE) => Some(filter),
        (PRUNE, KEEP) => Some(Filter::negated(filter)),
        _ => None,
    }
}

/// The specification of a `$redact`.
struct RedactSpec {
    /// The expression for an object inside a row.
    inner: BoundExpr,
    /// The expression for a row itself.
    outer: BoundExpr,
}

impl Spec for RedactSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        read_by(behind, [&self.outer])
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Redact { spec: self, made: Made::default(), whole: None })
    }
}

/// A running `$redact`.
struct Redact {
    spec: Rc<RedactSpec>,
    made: Made,
    /// Rows that stay as they are.
    whole: Option<Block>,
}

impl Redact {
    /// What is left of an object in a row.
    fn object(&self, row: Doc<'_>, doc: Doc<'_>) -> Result<Option<DocBuf>> {
        let verdict = self.spec.inner.value_within(row, doc)?;
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

/// The rows that stay. `None` unless each of the others goes as a whole.
fn kept_rows(verdicts: &Column) -> Option<Vec<u32>> {
    let (mut kept, mut scratch) = (Vec::new(), Vec::new());
    for row in 0..verdicts.len() {
        match verdicts.value(row, &mut scratch)?.as_str()? {
            KEEP => kept.push(row as u32),
            PRUNE => {}
            _ => return None,
        }
    }
    Some(kept)
}

impl Stage for Redact {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let verdicts = self.spec.outer.column(&rows)?;
        if let Some(kept) = kept_rows(&verdicts) {
            self.whole = match kept.len() {
                0 => None,
                count if count == rows.rows() => Some(rows),
                _ => Some(rows.gather(&kept)),
            };
            return Ok(Flow::Continue);
        }
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
        Ok(self.whole.take().or_else(|| self.made.take()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::query::expr::samples::globals;
    use bson::{RawBson, RawDocumentBuf, rawbson, rawdoc};

    fn stage(expr: &RawBson) -> Redact {
        let holder = rawdoc! { "": expr.clone() };
        let value = Doc::parse(holder.as_bytes()).unwrap().get("").unwrap();
        let globals = with_verdicts(&globals());
        let inner = BoundExpr::new(Expr::parse_within(value, &globals).unwrap(), globals.clone());
        let outer = BoundExpr::new(Expr::parse(value, &globals).unwrap(), globals);
        Redact { spec: Rc::new(RedactSpec { inner, outer }), made: Made::default(), whole: None }
    }

    #[test]
    fn rows_that_stay_or_go_as_a_whole_stay_columns_and_are_those_that_are_examined_one_by_one() {
        let docs: Vec<RawDocumentBuf> = (0..60).map(|n| rawdoc! { "a": n, "o": { "a": n % 7 } }).collect();
        let rows = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
        for (expr, is_whole) in [
            (rawbson!("$$KEEP"), true),
            (rawbson!("$$PRUNE"), true),
            (rawbson!({ "$cond": [{ "$gt": ["$a", 3] }, "$$KEEP", "$$PRUNE"] }), true),
            (rawbson!({ "$cond": [{ "$gt": ["$$CURRENT.o.a", "$$ROOT.a"] }, "$$PRUNE", "$$KEEP"] }), true),
            (rawbson!({ "$cond": [{ "$gt": ["$a", 3] }, "$$DESCEND", "$$PRUNE"] }), false),
        ] {
            let mut stage = stage(&expr);
            let _ = stage.push(rows.clone()).unwrap();
            assert_eq!(stage.made.take().is_none(), is_whole, "{expr:?}");
            let mut singles = Made::default();
            for doc in &docs {
                let doc = Doc::parse(doc.as_bytes()).unwrap();
                stage.object(doc, doc).unwrap().into_iter().for_each(|left| singles.push(left.view()).unwrap());
            }
            assert!(!is_whole || stage.whole.take() == singles.take(), "{expr:?}");
        }
        assert_eq!(stage(&rawbson!("$a")).push(rows).unwrap_err().code, ErrorCode::Location17053);
    }
}
