//! The refusal of a database opened with `strict`: filters that compare the time with numbers or strings, which never
//! match.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::request::Request;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::{Doc, Kind, Value};

/// Stages whose documents still have the time of the measurement.
const PASSING: [&str; 6] = ["$match", "$sort", "$limit", "$skip", "$sample", "$downsample"];

/// Checks every filter of a command.
///
/// Errors: `BadValue` if a time is compared with a number or a string. The command itself reports other mistakes.
pub async fn check(engine: &Rc<Engine>, request: &Request<'_>) -> Result<()> {
    let live = request.field("query").and_then(Value::as_doc).filter(|_| request.name() == "liveQuery");
    let live = live.and_then(|query| Request::new(query).ok());
    let request = live.as_ref().unwrap_or(request);
    let filters = filters_of(request);
    let Some((user, false)) = request.target().as_str().map(target).filter(|_| !filters.is_empty()) else {
        return Ok(());
    };
    let Some(collection) = engine.collection(user).await? else { return Ok(()) };
    filters.into_iter().try_for_each(|filter| check_filter(filter, collection.time_field()))
}

fn filters_of<'a>(request: &Request<'a>) -> Vec<Doc<'a>> {
    let items = |name: &str| request.field(name).map_or(Doc::EMPTY.iter(), Value::elements);
    let docs = |name: &str| items(name).filter_map(|(_, item)| item.as_doc());
    match request.name() {
        "find" => request.field("filter").and_then(Value::as_doc).into_iter().listed(),
        "count" | "distinct" | "findAndModify" | "findandmodify" => {
            request.field("query").and_then(Value::as_doc).into_iter().listed()
        }
        "delete" => docs("deletes").filter_map(|statement| statement.get("q")?.as_doc()).listed(),
        "update" => docs("updates").filter_map(|statement| statement.get("q")?.as_doc()).listed(),
        "aggregate" => docs("pipeline")
            .map_while(|stage| stage.iter().next().filter(|(name, _)| PASSING.contains(name)))
            .filter_map(|(name, argument)| argument.as_doc().filter(|_| name == "$match"))
            .listed(),
        _ => Vec::new(),
    }
}

fn check_filter(filter: Doc<'_>, time_field: &str) -> Result<()> {
    for (name, value) in filter {
        if matches!(name, "$and" | "$or" | "$nor") {
            let arms = value.elements();
            arms.filter_map(|(_, arm)| arm.as_doc()).try_for_each(|arm| check_filter(arm, time_field))?;
        } else if name == time_field {
            check_condition(value, time_field)?;
        }
    }
    Ok(())
}

fn check_condition(condition: Value<'_>, time_field: &str) -> Result<()> {
    if condition.kind().is_number() || condition.kind() == Kind::String {
        return Err(Error::bad_value(format!(
            "'{time_field}' is compared with the {} {condition:?}, but it is a date, so the comparison never holds: pass a Date",
            condition.kind().alias()
        )));
    }
    for (name, value) in condition.as_doc().unwrap_or(Doc::EMPTY).iter() {
        match name {
            "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" | "$not" => check_condition(value, time_field)?,
            "$in" | "$nin" => {
                let values = value.elements();
                values.into_iter().try_for_each(|(_, value)| check_condition(value, time_field))?;
            }
            _ => {}
        }
    }
    Ok(())
}
