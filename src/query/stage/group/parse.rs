//! Parses `$group`.

use std::rc::Rc;

use super::spec::{GroupSpec, Key};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::expr::Expr;
use crate::query::stage::accumulator::{Accumulation, COVARIANCES};
use crate::query::stage::parse::PipelineParser;
use crate::query::stage::spec::Step;
use crate::value::Value;

impl PipelineParser<'_> {
    /// `$group`.
    ///
    /// Errors: 15947, 15948, 15952, 15955, 40234 to 40238, and those of accumulators and expressions.
    pub fn group(&mut self, argument: Value<'_>) -> Result<()> {
        let spec = self.group_spec(argument)?;
        self.push_step(Step::Group(Rc::new(spec)), "$group", argument);
        Ok(())
    }

    /// The argument of a `$group`.
    ///
    /// Errors: as `group`.
    pub fn group_spec(&self, argument: Value<'_>) -> Result<GroupSpec> {
        let Some(doc) = argument.as_doc() else {
            return Err(Error::new(ErrorCode::Location15947, "The fields of $group must be given in an object"));
        };
        let (mut key, mut fields) = (None, Vec::new());
        for (name, value) in doc {
            if name == "_id" {
                if key.replace(self.key(value)?).is_some() {
                    return Err(Error::new(ErrorCode::Location15948, "The _id of $group may only be given once"));
                }
                continue;
            }
            let refuse = |code, problem: &str| Err(Error::new(code, format!("The field '{name}' {problem}")));
            if name.contains('.') {
                return refuse(ErrorCode::Location40235, "cannot contain '.'");
            }
            if name.starts_with('$') {
                return refuse(ErrorCode::Location40236, "cannot be an operator name");
            }
            let Some(accumulation) = value.as_doc() else {
                return refuse(ErrorCode::Location40234, "must be an accumulator object");
            };
            let mut operators = accumulation.iter();
            let (Some((operator, input)), None) = (operators.next(), operators.next()) else {
                return refuse(ErrorCode::Location40238, "must specify one accumulator");
            };
            if COVARIANCES.contains(&operator) {
                let message = ["Unknown group operator '", operator, "'"].concat();
                return Err(Error::new(ErrorCode::Location15952, message));
            }
            fields.push(Accumulation::parse(name, operator, input, self.globals)?);
        }
        let key = key.ok_or_else(|| Error::new(ErrorCode::Location15955, "$group needs an _id"))?;
        let collation = self.globals.collation().clone();
        let in_order = Vec::new();
        Ok(GroupSpec { key, fields, collation, unsorted_by: None, in_order, shows_id: true, shows_parts: false })
    }

    fn key(&self, value: Value<'_>) -> Result<Key> {
        match value.as_doc() {
            Some(object) if object.iter().next().is_some_and(|(name, _)| !name.starts_with('$')) => {
                let field = |(name, value): (&str, Value<'_>)| {
                    Expr::check_field(name)?;
                    Ok((name.into(), self.expr(value)?))
                };
                object.iter().map(field).try_listed().map(Key::Object)
            }
            _ => self.expr(value).map(Key::One),
        }
    }
}
