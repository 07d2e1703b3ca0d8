//! `delete`.

use std::rc::Rc;

use super::request::{missing_field, unknown_field, wrong_type};
use super::{Reply, Request, int, write_errors};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::WRITE_BATCH_COUNT_MAX;
use crate::query::{Filter, Globals};
use crate::value::{Doc, DocWriter, Value};

struct Statement {
    filter: Filter,
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
    let globals = match request.field("let").and_then(Value::as_doc) {
        Some(variables) => engine.globals().with_variables(variables)?,
        None => engine.globals(),
    };
    let mut n = 0_u64;
    let mut errors = Vec::new();
    for (index, statement) in statements.into_iter().enumerate() {
        let outcome = match parse(statement, &globals) {
            Err(error) => Err(error),
            Ok(statement) => match engine.collection(name).await? {
                None => Ok(0),
                Some(collection) => engine.delete(&collection, &statement.filter, statement.only_one).await,
            },
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

fn parse(statement: Value<'_>, globals: &Globals) -> Result<Statement> {
    let doc: Doc<'_> =
        statement.as_doc().ok_or_else(|| wrong_type("delete", "deletes", "an array of objects", statement))?;
    let mut filter = None;
    let mut limit = None;
    for (name, value) in doc.iter() {
        match name {
            "q" => filter = Some(value.as_doc().ok_or_else(|| wrong_type("delete.deletes", "q", "an object", value))?),
            "limit" => limit = Some(value),
            "hint" | "collation" | "comment" => {}
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
    Ok(Statement { filter: Filter::parse(filter, globals)?, only_one })
}
