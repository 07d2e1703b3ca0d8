//! Stages on a plain list of documents, as simply as they can be written.

use bson::{Bson, Document, doc};

use super::expressions::{evaluate, holds};
use super::foreign;
use super::gaps;
use super::groups::group;
use crate::plain_list::filter::matching;
use crate::plain_list::order::{NoKey, compare_keys, sort_key};
use crate::plain_list::projection::project;

/// The reason why there are no expected rows.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// The pipeline fails.
    Refused,
    /// The answer is not compared: it is unspecified, or the plain list cannot compute it.
    Open,
}

/// The rows after a stage.
#[derive(Clone, Debug)]
pub struct Rows {
    pub list: Vec<Document>,
    /// True if the rows must come in this order.
    pub ordered: bool,
    /// True if the types of values matter; otherwise values that compare equal are equal.
    pub exact: bool,
}

impl Rows {
    pub fn new(list: Vec<Document>) -> Rows {
        Rows { ordered: list.len() < 2, list, exact: true }
    }

    pub fn through(self, pipeline: &[Document]) -> Result<Rows, Stop> {
        let mut rows = self;
        for (place, stage) in pipeline.iter().enumerate() {
            // A stage that fails for some rows may not see them if a later limit is reached before.
            rows = rows.stage(stage).map_err(|stop| if place + 1 < pipeline.len() { Stop::Open } else { stop })?;
        }
        Ok(rows)
    }

    /// Runs one more stage.
    pub fn stage(self, stage: &Document) -> Result<Rows, Stop> {
        let (name, argument) = stage.iter().next().unwrap();
        let Rows { list, ordered, exact } = self;
        let each = |list: Vec<Document>, of: &dyn Fn(Document) -> Result<Vec<Document>, Stop>| {
            let made = list.into_iter().map(of).collect::<Result<Vec<_>, _>>()?.concat();
            Ok(Rows { ordered: ordered || made.len() < 2, list: made, exact })
        };
        match name.as_str() {
            "$match" if condition(argument).is_some() => {
                let condition = condition(argument).unwrap();
                each(list, &|row| Ok(if holds(condition, &row)? { vec![row] } else { Vec::new() }))
            }
            "$match" => {
                let list: Vec<Document> =
                    matching(&list, argument.as_document().unwrap()).ok_or(Stop::Open)?.into_iter().cloned().collect();
                Ok(Rows { ordered: ordered || list.len() < 2, list, exact })
            }
            "$project" => {
                let spec = argument.as_document().unwrap();
                each(list, &|row| Ok(vec![projected(&row, spec)?]))
            }
            "$set" => {
                let spec = argument.as_document().unwrap();
                each(list, &|row| Ok(vec![with_fields(&row, row.clone(), spec)?]))
            }
            "$unset" => {
                let paths: Document =
                    argument.as_array().unwrap().iter().map(|path| (path.as_str().unwrap().into(), 0.into())).collect();
                each(list, &|row| Ok(vec![project(&row, &paths)]))
            }
            "$sort" => sorted(list, exact, argument.as_document().unwrap()),
            "$skip" | "$limit" => {
                let count = argument.as_i32().unwrap() as usize;
                if !ordered && count < list.len() && (name, count) != (&"$skip".to_owned(), 0) {
                    return Err(Stop::Open);
                }
                let list = match name.as_str() {
                    "$skip" => list.into_iter().skip(count).collect(),
                    _ => list.into_iter().take(count).collect(),
                };
                Ok(Rows { list, ordered, exact })
            }
            "$group" => {
                let list = group(&list, ordered, argument.as_document().unwrap())?;
                Ok(Rows { ordered: list.len() < 2, list, exact: exact && ordered })
            }
            "$count" => {
                let count = doc! { argument.as_str().unwrap(): list.len() as i32 };
                Ok(Rows { list: if list.is_empty() { Vec::new() } else { vec![count] }, ordered: true, exact })
            }
            "$sortByCount" => {
                let counted = group(&list, ordered, &doc! { "_id": argument.clone(), "count": { "$sum": 1 } })?;
                sorted(counted, exact && ordered, &doc! { "count": -1 })
            }
            "$unwind" => each(list, &|row| Ok(unwound(&row, argument.as_document().unwrap()))),
            "$replaceWith" => each(list, &|row| match evaluate(argument, &row)? {
                Some(Bson::Document(root)) => Ok(vec![root]),
                _ => Err(Stop::Refused),
            }),
            "$lookup" | "$unionWith" | "$graphLookup" | "$facet" => {
                foreign::stage(Rows { list, ordered, exact }, name, argument.as_document().unwrap())
            }
            "$documents" => {
                let Some(Bson::Array(rows)) = evaluate(argument, &doc! {})? else { return Err(Stop::Refused) };
                let list = rows.into_iter().map(|row| row.as_document().cloned().ok_or(Stop::Refused));
                Ok(Rows { list: list.collect::<Result<_, _>>()?, ordered: true, exact: true })
            }
            "$densify" | "$fill" | "$setWindowFields" | "$bucketAuto" => {
                gaps::stage(Rows { list, ordered, exact }, name, argument.as_document().unwrap())
            }
            other => panic!("the stage {other}"),
        }
    }
}

/// The expression of a filter that is only `$expr`; other filters are evaluated like those of `find`.
fn condition(filter: &Bson) -> Option<&Bson> {
    match filter.as_document()?.get_array("$and").ok()?.as_slice() {
        [Bson::Document(first), Bson::Document(all)] if all.is_empty() => first.get("$expr"),
        _ => None,
    }
}

pub fn sorted(list: Vec<Document>, exact: bool, sort: &Document) -> Result<Rows, Stop> {
    let key = |row: Document| match sort_key(&row, sort) {
        Ok(key) => Ok((key, row)),
        Err(NoKey::ParallelArrays) => Err(Stop::Refused),
        Err(NoKey::Ambiguous) => Err(Stop::Open),
    };
    let mut keyed = list.into_iter().map(key).collect::<Result<Vec<_>, _>>()?;
    keyed.sort_by(|(a, _), (b, _)| compare_keys(sort, a, b));
    let ordered = keyed.windows(2).all(|two| compare_keys(sort, &two[0].0, &two[1].0).is_ne());
    Ok(Rows { list: keyed.into_iter().map(|(_, row)| row).collect(), ordered, exact })
}

/// The fields of a stage by path: nested objects without operators are flattened.
fn flat(above: &str, spec: &Document) -> Document {
    let mut all = doc! {};
    for (name, value) in spec {
        match value {
            Bson::Document(below) if below.keys().next().is_some_and(|name| !name.starts_with('$')) => {
                all.extend(flat(&format!("{above}{name}."), below));
            }
            _ => drop(all.insert(format!("{above}{name}"), value.clone())),
        }
    }
    all
}

/// Paths with 0 or 1, and computed fields.
fn projected(row: &Document, spec: &Document) -> Result<Document, Stop> {
    let (plain, computed): (Document, Document) =
        flat("", spec).into_iter().partition(|(_, value)| matches!(value, Bson::Int32(_)));
    let mut paths = plain;
    paths.extend(computed.keys().map(|path| (format!("{path}\0"), Bson::Int32(1))));
    with_fields(row, project(row, &paths), &computed)
}

/// Sets fields of `to` that are computed from `row`.
pub fn with_fields(row: &Document, mut to: Document, spec: &Document) -> Result<Document, Stop> {
    for (path, expression) in &flat("", spec) {
        let path: Vec<&str> = path.split('.').collect();
        set(&mut to, &path, evaluate(expression, row)?.as_ref());
    }
    Ok(to)
}

pub fn set(to: &mut Document, path: &[&str], value: Option<&Bson>) {
    match (&path[1..], value) {
        ([], Some(value)) => drop(to.insert(path[0], value.clone())),
        ([], None) => drop(to.remove(path[0])),
        (rest, _) => {
            let below = set_below(to.get(path[0]), rest, value);
            to.insert(path[0], below);
        }
    }
}

fn set_below(at: Option<&Bson>, path: &[&str], value: Option<&Bson>) -> Bson {
    match at {
        Some(Bson::Array(items)) => Bson::Array(items.iter().map(|item| set_below(Some(item), path, value)).collect()),
        other => {
            let mut object = other.and_then(Bson::as_document).cloned().unwrap_or_default();
            set(&mut object, path, value);
            Bson::Document(object)
        }
    }
}

fn unwound(row: &Document, spec: &Document) -> Vec<Document> {
    let path: Vec<&str> = spec.get_str("path").unwrap()[1..].split('.').collect();
    let keeps_empty = spec.get_bool("preserveNullAndEmptyArrays").unwrap_or(false);
    let with = |element: Option<Option<&Bson>>, place: Bson| {
        let mut row = row.clone();
        if let Some(element) = element {
            replace(&mut row, &path, element);
        }
        if let Ok(index) = spec.get_str("includeArrayIndex") {
            row.insert(index, place);
        }
        row
    };
    let mut found = Some(&Bson::Document(row.clone())).cloned();
    for name in &path {
        found = found.and_then(|value| value.as_document()?.get(name).cloned());
    }
    match &found {
        Some(Bson::Array(items)) if !items.is_empty() => {
            (0_i64..).zip(items).map(|(place, item)| with(Some(Some(item)), place.into())).collect()
        }
        Some(Bson::Array(_)) if keeps_empty => vec![with(Some(None), Bson::Null)],
        None | Some(Bson::Null | Bson::Undefined) if keeps_empty => vec![with(None, Bson::Null)],
        None | Some(Bson::Null | Bson::Undefined | Bson::Array(_)) => Vec::new(),
        Some(_) => vec![with(None, Bson::Null)],
    }
}

/// Replaces the value at an existing path of objects.
fn replace(at: &mut Document, path: &[&str], value: Option<&Bson>) {
    match (&path[1..], value) {
        ([], Some(value)) => drop(at.insert(path[0], value.clone())),
        ([], None) => drop(at.remove(path[0])),
        (rest, _) => replace(at.get_document_mut(path[0]).unwrap(), rest, value),
    }
}
