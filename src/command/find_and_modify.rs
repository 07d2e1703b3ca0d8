//! `findAndModify`: removes one measurement and returns it.

// Loaded later.

use std::rc::Rc;

use super::find::{globals_of, target};
use super::raw_write;
use super::reply::Reply;
use super::request::Request;
use crate::engine::{Defaults, Engine};
use crate::error::{Error, ErrorCode, Result};
use crate::query::{FindCommand, Query, not_allowed};
use crate::value::{DocBuf, DocWriter, Value};

/// The names of fields in this command, and in a find.
const OF_FIND: [(&str, &str); 5] =
    [("query", "filter"), ("fields", "projection"), ("sort", "sort"), ("hint", "hint"), ("let", "let")];

/// All fields; the first ones are for updates only.
const FIELDS: [&str; 11] =
    ["update", "new", "upsert", "arrayFilters", "remove", "collation", "query", "fields", "sort", "hint", "let"];

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let name = request.collection()?;
    let find = find_of(name, request)?;
    let globals = globals_of(engine, request)?;
    let options = |defaults: Defaults<'_>| FindCommand::parse(find.view(), &globals(defaults)).map(Query::from);
    let removed = engine.remove_one(name, &options).await?;
    let mut reply = DocWriter::new();
    reply.begin_doc("lastErrorObject").int32("n", i32::from(removed.is_some())).end();
    match removed {
        Some(row) => {
            reply.begin_doc("value");
            row.write_row(0, &mut reply);
            reply.end();
        }
        None => {
            reply.value("value", Value::NULL);
        }
    }
    Ok(Reply::ok(reply))
}

/// The find that selects the measurement to remove.
///
/// Errors: `InvalidOptions` for an update, which would change a single measurement; `FailedToParse`; 7314600.
pub fn find_of(name: &str, request: &Request<'_>) -> Result<DocBuf> {
    request.allow_fields(&FIELDS)?;
    if target(name).1 {
        raw_write::check(request)?;
    }
    if request.field("txnNumber").is_some() {
        return Err(Error::new(ErrorCode::Location7314600, "Retryable findAndModify is not supported"));
    }
    let removes = request.bool("remove")? == Some(true);
    let of_update = |name: &str| request.field(name).is_some_and(|value| value.as_truthy() != Some(false));
    if FIELDS.iter().take(4).any(|name| of_update(name)) == removes {
        return Err(Error::new(ErrorCode::FailedToParse, "Either an update or remove=true must be specified"));
    }
    if !removes {
        return Err(not_allowed("findAndModify", ""));
    }
    let mut find = DocWriter::new();
    find.string("find", name);
    for (name, of_find) in OF_FIND {
        if let Some(value) = request.field(name) {
            find.value(of_find, value);
        }
    }
    Ok(find.finish())
}
