//! `aggregate` with `$out`: the rows replace the content of a collection.

// Loaded later.

use std::rc::Rc;

use super::find;
use super::insert::{size_errors, time_errors};
use super::reply::Reply;
use crate::block::Block;
use crate::bucket::CollectionOptions;
use crate::engine::{Collection, Engine, ParsePipeline};
use crate::error::{Error, ErrorCode, Result};
use crate::query::Out;
use crate::value::DocWriter;

/// Runs the parsed pipeline over `name`, or over its buckets if `raw`.
pub async fn run(
    engine: &Rc<Engine>,
    (name, raw): (&str, bool),
    parse: &ParsePipeline<'_>,
    out: &Out,
) -> Result<Reply> {
    if out.database.as_ref().is_some_and(|database| **database != *engine.name()) {
        let message = "$out can only write to the database that the pipeline reads";
        return Err(Error::new(ErrorCode::InvalidNamespace, message));
    }
    let options = match &out.timeseries {
        Some(timeseries) => {
            let mut create = DocWriter::new();
            create.string("create", &out.collection).doc("timeseries", timeseries.view());
            Some(CollectionOptions::parse_create(create.finish().view(), engine.now_ms())?)
        }
        None => None,
    };
    engine.replace_content((name, raw), parse, &out.collection, options, &measurements).await?;
    Ok(Reply::ok(find::cursor(engine, name, 0, "firstBatch")).with_batch(Block::new(0)))
}

/// The rows as measurements of a collection.
///
/// Errors: that of the first row that is not a valid measurement.
fn measurements(collection: &Collection, mut rows: Block) -> Result<Block> {
    let time_field = collection.time_field();
    let errors =
        [time_errors(&rows, time_field), size_errors(&rows, collection.meta_field()), collection.index_errors(&rows)];
    if let Some((_, error)) = errors.into_iter().flatten().min_by_key(|(row, _)| *row) {
        return Err(error);
    }
    if let Some(times) = rows.remove_column(time_field) {
        rows.set_first_column(time_field, times.into_plain().narrowed());
    }
    Ok(rows)
}
