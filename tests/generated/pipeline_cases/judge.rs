//! Compares the answer of a collection to a pipeline with that of the plain list.

use bson::{Bson, Document, doc};

use super::stages::{Rows, Stop};
use crate::plain_list::batches::all_batches;
use crate::plain_list::order::order;
use crate::support::{Db, raw};

/// Errors: how the answer of a collection, or of its buckets if the pipeline begins with unpacking, is wrong.
pub async fn judge(
    db: &Db,
    pipeline: &[Document],
    collation: Option<&Document>,
    expected: &Result<Rows, Stop>,
    batch: i32,
) -> Result<(), String> {
    let unpacks = pipeline.first().is_some_and(|stage| stage.contains_key("$_internalUnpackBucket"));
    let collection = if unpacks { "system.buckets.c" } else { "c" };
    let mut command = doc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": batch } };
    command.extend(collation.map(|collation| ("collation".to_owned(), collation.into())));
    let found = all_batches(db, raw(&command), batch).await;
    match (found, expected) {
        (_, Err(Stop::Open)) | (Err(_), Err(Stop::Refused)) => Ok(()),
        (Ok(found), Err(Stop::Refused)) => Err(format!("It did not fail: {found:?}")),
        (Err(message), Ok(_)) => Err(message),
        (Ok(found), Ok(expected)) => same_rows(&found, expected),
    }
}

fn same_rows(found: &[Document], expected: &Rows) -> Result<(), String> {
    let Rows { list, ordered, exact } = expected;
    if found.len() != list.len() {
        return Err(format!("{} rows, not {}: {found:?}", found.len(), list.len()));
    }
    let mut left: Vec<&Document> = list.iter().collect();
    if !ordered {
        // An unspecified value must not hide a specified one.
        left.sort_by_key(|row| format!("{row:?}").contains("Undefined"));
    }
    for (place, row) in found.iter().enumerate() {
        let at = if *ordered { 0 } else { left.iter().position(|one| same_fields(row, one, *exact)).unwrap_or(0) };
        let wanted = left.remove(at);
        if !same_fields(row, wanted, *exact) {
            return Err(format!("Row {place} is\n{row}\nand not, ordered: {ordered}, exact: {exact},\n{wanted}"));
        }
    }
    Ok(())
}

/// The order of fields is tested by those of `find`.
fn same_fields(found: &Document, wanted: &Document, exact: bool) -> bool {
    found.len() == wanted.len()
        && wanted.iter().all(|(name, wanted)| {
            let same = |found: &Bson| match (found, wanted) {
                (Bson::Array(found), Bson::Array(wanted)) if name == "set" => same_set(found, wanted, exact),
                _ => same(found, wanted, exact),
            };
            found.get(name).is_some_and(same)
        })
}

fn same_set(found: &[Bson], wanted: &[Bson], exact: bool) -> bool {
    let mut left: Vec<&Bson> = wanted.iter().collect();
    found.iter().all(|one| {
        let at = left.iter().position(|other| same(one, other, exact));
        at.map(|at| left.swap_remove(at)).is_some()
    }) && left.is_empty()
}

fn same(found: &Bson, wanted: &Bson, exact: bool) -> bool {
    match (found, wanted) {
        (_, Bson::Undefined) => true,
        (Bson::Document(found), Bson::Document(wanted)) => same_fields(found, wanted, exact),
        (Bson::Array(found), Bson::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| same(a, b, exact))
        }
        (Bson::Double(x), Bson::Double(y)) if y.is_finite() && (x - y).abs() <= 1e-9 * y.abs() => true,
        _ if exact => found.element_type() == wanted.element_type() && order(found, wanted).is_eq(),
        _ => order(found, wanted).is_eq(),
    }
}
