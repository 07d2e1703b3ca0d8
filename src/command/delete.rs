//! `delete`.

use std::rc::Rc;

use super::request::{missing_field, unknown_field, wrong_type};
use super::{Reply, Request, int, write_errors};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::WRITE_BATCH_COUNT_MAX;
use crate::query::{Filter, Globals};
use crate::value::{Collation, Doc, DocWriter, Value};

struct Statement<'a> {
    filter: Doc<'a>,
    collation: Option<Collation>,
    only_one: bool,
}

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["deletes", "ordered", "let"])?;
    let name = request.collection()?;
    let ordered = request.bool("ordered")?.unwrap_or(true);
    let statements: Vec<Value<'_>> =
        request.array("deletes")?.ok_or_else(|| missing_field("delete", "deletes"))?.collect();
    if statements.is_empty() || statements.len() > WRITE_BATCH_COUNT_MAX {
        let message =
            format!("Write batch sizes must be between 1 and {WRITE_BATCH_COUNT_MAX}, not {}", statements.len());
        return Err(Error::new(ErrorCode::InvalidLength, message));
    }
    let (globals, variables) = (engine.globals(), request.field("let").and_then(Value::as_doc));
    // What variables come to may depend on the collation, so that each statement evaluates them again.
    let with_variables = |globals: Globals| match variables {
        Some(variables) => globals.with_variables(variables),
        None => Ok(globals),
    };
    with_variables(globals.clone())?;
    let mut n = 0_u64;
    let mut errors = Vec::new();
    for (index, statement) in statements.into_iter().enumerate() {
        let outcome = match parse(statement, engine) {
            Err(error) => Err(error),
            Ok(Statement { filter, collation, only_one }) => {
                let filter = |default: &Collation| {
                    let collation = collation.as_ref().unwrap_or(default);
                    Filter::parse(filter, &with_variables(globals.with_collation(collation))?)
                };
                engine.delete(name, &filter, only_one).await
            }
        };
        match outcome {
            Ok(deleted) => n += deleted,
            Err(error) => {
                errors.push((index, error));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut reply = DocWriter::new();
    write_errors(reply.int32("n", int(n)), &errors);
    Ok(Reply::ok(reply))
}

fn parse<'a>(statement: Value<'a>, engine: &Engine) -> Result<Statement<'a>> {
    let doc: Doc<'a> =
        statement.as_doc().ok_or_else(|| wrong_type("delete", "deletes", "an array of objects", statement))?;
    let mut filter = None;
    let mut limit = None;
    let mut collation = None;
    for (name, value) in doc.iter() {
        match name {
            "q" => filter = Some(value.as_doc().ok_or_else(|| wrong_type("delete.deletes", "q", "an object", value))?),
            "limit" => limit = Some(value),
            "collation" => collation = engine.collation(Some(value))?,
            "hint" | "comment" => {}
            _ => return Err(unknown_field("delete.deletes", name)),
        }
    }
    let limit = limit.ok_or_else(|| missing_field("delete.deletes", "limit"))?;
    let only_one = match limit.as_integer() {
        Some(0) => false,
        Some(1) => true,
        _ => {
            let message = format!("The limit field in delete objects must be 0 or 1. Got {limit:?}");
            return Err(Error::new(ErrorCode::FailedToParse, message));
        }
    };
    let filter = filter.ok_or_else(|| missing_field("delete.deletes", "q"))?;
    Ok(Statement { filter, collation, only_one })
}
