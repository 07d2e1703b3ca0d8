//! `findAndModify`: removes one measurement and returns it.

// Loaded later.

use std::rc::Rc;

use super::find::{globals_of, target};
use super::raw_write;
use super::reply::Reply;
use super::request::Request;
use crate::block::DocPivot;
use crate::engine::{Collection, Defaults, Engine, ParseFind};
use crate::error::{Error, ErrorCode, Result};
use crate::query::{FindCommand, Globals, Query, Update, not_allowed};
use crate::value::{DocBuf, DocWriter, Value};

/// The names of fields in this command, and in a find.
const OF_FIND: [(&str, &str); 5] =
    [("query", "filter"), ("fields", "projection"), ("sort", "sort"), ("hint", "hint"), ("let", "let")];

/// All fields; the first ones are for updates only.
#[rustfmt::skip]
const FIELDS: [&str; 12] = [
    "update", "new", "upsert", "arrayFilters", "remove", "collation", "query", "fields", "sort", "hint", "let", raw_write::UNSAFE,
];

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let name = request.collection()?;
    let (user, raw) = target(name);
    if raw {
        raw_write::check(request)?;
    }
    let find = find_of(request)?;
    let globals = globals_of(engine, request)?;
    let options = |defaults: Defaults<'_>| FindCommand::parse(find.view(), &globals(defaults)).map(Query::from);
    if raw {
        return of_bucket(engine, request, user, &options, &globals).await;
    }
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

/// The same of a bucket document, which may also be updated.
async fn of_bucket(
    engine: &Rc<Engine>,
    request: &Request<'_>,
    name: &str,
    options: &ParseFind<'_>,
    globals: &dyn Fn(Defaults<'_>) -> Globals,
) -> Result<Reply> {
    let document = request.field("update");
    let update = |collection: &Collection| {
        let parse = |document| {
            Update::parse_whole(document, request.field("arrayFilters"), false, &globals(collection.defaults(true)))
        };
        document.map(parse).transpose()
    };
    let changed = engine.change_bucket(name, options, &update).await?;
    let mut reply = DocWriter::new();
    reply.begin_doc("lastErrorObject").int32("n", i32::from(changed.is_some()));
    if document.is_some() {
        reply.bool("updatedExisting", changed.is_some());
    }
    reply.end();
    let is_new = request.bool("new")? == Some(true);
    let shown = changed.and_then(|(before, after, projection)| {
        let wanted = if is_new { after } else { Some(before) };
        wanted.map(|wanted| (wanted, projection))
    });
    match shown {
        Some((wanted, projection)) => {
            let mut pivot = DocPivot::new();
            pivot.push(wanted.view())?;
            reply.begin_doc("value");
            projection.apply(pivot.finish())?.write_row(0, &mut reply);
            reply.end();
        }
        None => {
            reply.value("value", Value::NULL);
        }
    }
    Ok(Reply::ok(reply))
}

/// The find that selects the measurement to remove, or the bucket.
///
/// Errors: `InvalidOptions` for an update, which would change a single measurement; `FailedToParse`; 7314600.
pub fn find_of(request: &Request<'_>) -> Result<DocBuf> {
    let name = request.collection()?;
    let raw = target(name).1;
    request.allow_fields(&FIELDS)?;
    if request.field("txnNumber").is_some() {
        return Err(Error::new(ErrorCode::Location7314600, "Retryable findAndModify is not supported"));
    }
    let removes = request.bool("remove")? == Some(true);
    let of_update = |name: &str| request.field(name).is_some_and(|value| value.as_truthy() != Some(false));
    if FIELDS.iter().take(4).any(|name| of_update(name)) == removes {
        return Err(Error::new(ErrorCode::FailedToParse, "Either an update or remove=true must be specified"));
    }
    if !removes && !raw {
        return Err(not_allowed("findAndModify", ""));
    }
    if !removes && request.field("upsert").and_then(Value::as_truthy) == Some(true) {
        return Err(not_allowed("an upsert", ""));
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
