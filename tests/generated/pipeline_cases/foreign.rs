//! `$lookup`, `$unionWith`, `$graphLookup` and `$facet` on a plain list, which is also the foreign collection.

use std::cell::RefCell;

use bson::{Bson, Document, doc};

use super::expressions::{evaluate, evaluate_each, with_variables};
use super::stages::{Rows, Stop, set};
use crate::plain_list::filter::matching;
use crate::plain_list::order::order;

thread_local! {
    static COLLECTION: RefCell<Vec<Document>> = const { RefCell::new(Vec::new()) };
}

/// Sets the rows of the collection.
pub fn set_collection(rows: &[Document]) {
    COLLECTION.set(rows.to_vec());
}

fn collection() -> Rows {
    Rows::new(COLLECTION.with_borrow(Clone::clone))
}

pub fn stage(rows: Rows, name: &str, spec: &Document) -> Result<Rows, Stop> {
    let Rows { mut list, mut ordered, mut exact } = rows;
    match name {
        "$unionWith" => {
            let other = collection().through(&stages(spec, "pipeline"))?;
            (ordered, exact) = (ordered && other.ordered, exact && other.exact);
            list.extend(other.list);
        }
        "$facet" => {
            let mut made = doc! {};
            for (name, branch) in spec {
                let rows = Rows { list: list.clone(), ordered, exact };
                let found = rows.through(&documents(branch))?;
                exact &= found.exact;
                made.insert(name, in_order(name, found)?);
            }
            (list, ordered) = (vec![made], true);
        }
        _ => {
            let to = spec.get_str("as").unwrap();
            for row in &mut list {
                let found = if name == "$lookup" { looked_up(row, spec)? } else { reached(row, spec)? };
                exact &= found.exact;
                set(row, &to.split('.').collect::<Vec<_>>(), Some(&in_order(to, found)?));
            }
        }
    }
    Ok(Rows { list, ordered, exact })
}

/// Rows as a list. Rows without an order are unspecified, except under the name `set`, which is compared as a set.
fn in_order(name: &str, rows: Rows) -> Result<Bson, Stop> {
    if rows.ordered || name == "set" { Ok(Bson::from(rows.list)) } else { Err(Stop::Open) }
}

fn documents(list: &Bson) -> Vec<Document> {
    list.as_array().unwrap().iter().map(|stage| stage.as_document().unwrap().clone()).collect()
}

fn stages(spec: &Document, name: &str) -> Vec<Document> {
    spec.get(name).map_or_else(Vec::new, documents)
}

fn looked_up(row: &Document, spec: &Document) -> Result<Rows, Stop> {
    let variables = spec.get_document("let").map_or_else(|_| Ok(Vec::new()), |all| evaluate_each(all, row))?;
    let mut rows = collection();
    if let Ok(local) = spec.get_str("localField") {
        let values = match row.get(local) {
            Some(Bson::Array(items)) if !items.is_empty() => items.clone(),
            None | Some(Bson::Array(_)) => vec![Bson::Null],
            Some(value) => vec![value.clone()],
        };
        rows = Rows::new(
            equal(&rows.list, spec.get_str("foreignField").unwrap(), &values)?
                .into_iter()
                .map(|at| rows.list[at].clone())
                .collect(),
        );
    }
    with_variables(variables, || rows.through(&stages(spec, "pipeline")))
}

/// The indexes of the rows that have one of these values at a path.
fn equal(rows: &[Document], path: &str, values: &[Bson]) -> Result<Vec<usize>, Stop> {
    if values.iter().any(|value| matches!(value, Bson::Undefined | Bson::RegularExpression(_))) {
        return Err(Stop::Open);
    }
    let each: Vec<Document> = values.iter().map(|value| doc! { path: { "$eq": value } }).collect();
    let found = matching(rows, &doc! { "$or": each }).ok_or(Stop::Open)?;
    let places = rows.iter().enumerate().filter(|(_, row)| found.iter().any(|found| std::ptr::eq(*found, *row)));
    Ok(places.map(|(at, _)| at).collect())
}

fn reached(row: &Document, spec: &Document) -> Result<Rows, Stop> {
    let text = |name: &str| spec.get_str(name).unwrap();
    let mut rows = collection().list;
    if let Ok(filter) = spec.get_document("restrictSearchWithMatch") {
        rows = Rows::new(rows).stage(&doc! { "$match": filter })?.list;
    }
    let mut known: Vec<Bson> = Vec::new();
    let mut add = |value: Option<Bson>| {
        let values = match value {
            Some(Bson::Array(items)) => items,
            value => value.into_iter().collect(),
        };
        let mut new = Vec::new();
        for value in values {
            if known.iter().all(|known| order(known, &value).is_ne()) {
                known.push(value.clone());
                new.push(value);
            }
        }
        new
    };
    let mut wanted = add(evaluate(spec.get("startWith").unwrap(), row)?);
    let (mut depths, mut depth) = (vec![None; rows.len()], 0);
    while !wanted.is_empty() && i64::from(spec.get_i32("maxDepth").unwrap_or(i32::MAX)) >= depth {
        let mut next = Vec::new();
        for at in equal(&rows, text("connectToField"), &wanted)? {
            if depths[at].is_none() {
                depths[at] = Some(depth);
                next.extend(add(rows[at].get(text("connectFromField")).cloned()));
            }
        }
        (wanted, depth) = (next, depth + 1);
    }
    let found = rows.into_iter().zip(depths).filter_map(|(mut row, depth)| {
        let depth = depth?;
        spec.get_str("depthField").into_iter().for_each(|name| drop(row.insert(name, depth)));
        Some(row)
    });
    Ok(Rows::new(found.collect()))
}
