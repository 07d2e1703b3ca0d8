//! `delete` and `update`: statements, run one after another.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::raw_write;
use super::reply::{Reply, int, write_errors};
use super::request::{Request, check_batch, missing_field, wrong_type};
use crate::engine::{ChangeKind, Collection, Engine, MeasurementChange};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::{Filter, Globals, Hint, Update, check_query, not_allowed};
use crate::value::{Collation, Doc, DocWriter, Kind, Value};

/// A statement of either command.
struct Statement<'a> {
    filter: Doc<'a>,
    collation: Option<Value<'a>>,
    hint: Option<Value<'a>>,
    /// True for a delete of at most one measurement.
    one: bool,
    update: Option<Value<'a>>,
    array_filters: Option<Value<'a>>,
    multi: bool,
    upsert: bool,
}

/// What the filters of a command refer to.
struct StatementScope<'a> {
    engine: &'a Engine,
    globals: Globals,
    variables: Option<Doc<'a>>,
}

impl<'a> StatementScope<'a> {
    fn new(engine: &'a Engine, request: &Request<'a>) -> Result<StatementScope<'a>> {
        let object =
            |value: Value<'a>| value.as_doc().ok_or_else(|| wrong_type(request.name(), "let", "an object", value));
        let variables = request.field("let").map(object).transpose()?;
        Ok(StatementScope { engine, globals: engine.globals(), variables })
    }

    /// Variables may depend on the collation, so each statement evaluates them again.
    fn with(&self, collation: &Collation) -> Result<Globals> {
        let globals = self.globals.with_collation(collation);
        match self.variables {
            Some(variables) => globals.with_variables(variables),
            None => Ok(globals),
        }
    }
}

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let is_update = request.name() == "update";
    let list = if is_update { "updates" } else { "deletes" };
    request.allow_fields(&[list, "ordered", "let", raw_write::UNSAFE])?;
    let (name, raw) = target(request.collection()?);
    if raw {
        raw_write::check(request)?;
    }
    let ordered = request.bool("ordered")?.unwrap_or(true);
    let statements: Vec<Value<'_>> = request.array(list)?.ok_or_else(|| missing_field(request.name(), list))?.listed();
    check_batch(statements.len())?;
    let scope = StatementScope::new(engine, request)?;
    scope.with(&Collation::default())?;
    // As on the server, a malformed statement fails the whole command before anything changes.
    let parsed = statements.into_iter().map(|statement| parse(statement, request.name(), list));
    let statements = parsed.try_listed()?;
    let (mut n, mut modified) = (0_u64, 0_u64);
    let mut errors = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        let change = |collection: Option<&Collection>| statement.change(collection, is_update, raw, &scope);
        match engine.change(name, &change).await {
            Ok(changed) => {
                n += changed.matched;
                modified += changed.modified;
            }
            // As on the server, this is not the failure of one statement. What was changed by then stays changed.
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => {
                errors.push((index, error));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut reply = DocWriter::new();
    reply.int32("n", int(n));
    if is_update {
        reply.int32("nModified", int(modified));
    }
    write_errors(&mut reply, &errors);
    Ok(Reply::ok(reply))
}

/// The change that a command with one statement makes, for `explain`.
///
/// Errors: `InvalidLength` for several statements; those of the statement.
pub fn only_change<'a>(
    engine: &Engine,
    request: &Request<'a>,
    collection: Option<&Collection>,
    raw: bool,
) -> Result<MeasurementChange<'a>> {
    let is_update = request.name() == "update";
    let list = if is_update { "updates" } else { "deletes" };
    let mut statements = request.array(list)?.ok_or_else(|| missing_field(request.name(), list))?;
    let (Some(statement), None) = (statements.next(), statements.next()) else {
        return Err(Error::new(ErrorCode::InvalidLength, "Explained write batches must be of size 1"));
    };
    let scope = StatementScope::new(engine, request)?;
    parse(statement, request.name(), list)?.change(collection, is_update, raw, &scope)
}

/// The parts of a statement, of the right types. Their content is the matter of the statement alone.
fn parse<'a>(value: Value<'a>, command: &str, list: &str) -> Result<Statement<'a>> {
    let doc: Doc<'a> = value.as_doc().ok_or_else(|| wrong_type(command, list, "an array of objects", value))?;
    let of = [command, ".", list].concat();
    let (mut filter, mut limit) = (None, None);
    let mut statement = Statement {
        filter: Doc::EMPTY,
        collation: None,
        hint: None,
        one: false,
        update: None,
        array_filters: None,
        multi: false,
        upsert: false,
    };
    let is_update = command == "update";
    for (name, value) in doc {
        let flag = || value.as_truthy().ok_or_else(|| wrong_type(&of, name, "a bool", value));
        let object = || value.as_doc().ok_or_else(|| wrong_type(&of, name, "an object", value));
        match name {
            "q" => filter = Some(object()?),
            "collation" => statement.collation = object().map(|_| Some(value))?,
            "hint" => {
                if !matches!(value.kind(), Kind::String | Kind::Object) {
                    Hint::parse(value)?;
                }
                statement.hint = Some(value);
            }
            "comment" => {}
            "limit" if !is_update => limit = Some(parse_limit(value)?),
            "u" if is_update && matches!(value.kind(), Kind::Object | Kind::Array) => statement.update = Some(value),
            "u" if is_update => {
                return Err(Error::new(ErrorCode::FailedToParse, "An update must be an object or an array"));
            }
            "multi" if is_update => statement.multi = flag()?,
            "upsert" if is_update => statement.upsert = flag()?,
            "arrayFilters" if is_update => {
                let filters = value.as_array().filter(|list| list.iter().all(|(_, one)| one.as_doc().is_some()));
                filters.ok_or_else(|| wrong_type(&of, name, "an array of objects", value))?;
                statement.array_filters = Some(value);
            }
            // Constants need a pipeline.
            "c" | "upsertSupplied" if is_update => {}
            _ => return Err(Error::unknown_field(&of, name)),
        }
    }
    statement.filter = filter.ok_or_else(|| missing_field(&of, "q"))?;
    if is_update {
        statement.update.ok_or_else(|| missing_field(&of, "u"))?;
    } else {
        statement.one = limit.ok_or_else(|| missing_field(&of, "limit"))?;
    }
    Ok(statement)
}

/// True if a delete is of at most one measurement.
fn parse_limit(value: Value<'_>) -> Result<bool> {
    match value.as_integer() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(Error::new(
            ErrorCode::FailedToParse,
            format!("The limit field in delete objects must be 0 or 1. Got {value:?}"),
        )),
    }
}

impl<'a> Statement<'a> {
    /// What the statement changes, and how.
    fn change(
        &self,
        collection: Option<&Collection>,
        is_update: bool,
        raw: bool,
        scope: &StatementScope<'_>,
    ) -> Result<MeasurementChange<'a>> {
        if is_update && collection.is_none() {
            return Ok(MeasurementChange { filter: Filter::all(), hint: None, kind: ChangeKind::Delete, raw });
        }
        let meta_field = if is_update && !raw { self.check_update(collection)? } else { "" };
        let default = Collation::default();
        let default = collection.map_or(&default, Collection::collation);
        let collation = scope.engine.collation(self.collation)?;
        let globals = scope.with(collation.as_ref().unwrap_or(default))?;
        let kind = match self.update {
            Some(document) if raw => self.raw_update(document, &globals)?,
            Some(document) => ChangeKind::Update(Update::parse(document, self.array_filters, meta_field, &globals)?),
            None if self.one => ChangeKind::DeleteOne,
            None => ChangeKind::Delete,
        };
        let hint = self.hint.map(Hint::parse).transpose()?.flatten();
        Ok(MeasurementChange { filter: Filter::parse(self.filter, &globals)?, hint, kind, raw })
    }

    /// An update of bucket documents.
    fn raw_update(&self, document: Value<'_>, globals: &Globals) -> Result<ChangeKind<'a>> {
        if self.upsert {
            return Err(not_allowed("an upsert", ""));
        }
        let update = Update::parse_whole(document, self.array_filters, self.multi, globals)?;
        Ok(if self.multi { ChangeKind::Update(update) } else { ChangeKind::UpdateOne(update) })
    }

    /// The field that an update may change; unknown without a collection.
    fn check_update<'c>(&self, collection: Option<&'c Collection>) -> Result<&'c str> {
        if !self.multi {
            return Err(not_allowed("multi: false, as updateOne sends it; updateMany changes metadata", ""));
        }
        if self.upsert {
            return Err(not_allowed("an upsert", ""));
        }
        let Some(collection) = collection else { return Ok("") };
        let meta_field = collection.meta_field().ok_or_else(|| not_allowed("no metaField", ""))?;
        check_query(self.filter, meta_field).map(|()| meta_field)
    }
}
