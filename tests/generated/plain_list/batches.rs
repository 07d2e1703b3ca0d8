//! Reads a cursor to its end.

use bson::{Document, RawDocumentBuf, rawdoc};

use crate::support::{Db, take_rows};

/// All rows of a command that returns a cursor, in batches of `batch`.
///
/// Errors: the reply of a command that failed; a batch that is too large.
pub async fn all_batches(db: &Db, command: RawDocumentBuf, batch: i32) -> Result<Vec<Document>, String> {
    let collection = command.iter().next().unwrap().unwrap().1.as_str().unwrap().to_owned();
    let mut reply = db.command(command).await;
    let (mut rows, mut name) = (Vec::new(), "firstBatch");
    loop {
        let Ok(cursor) = reply.get_document_mut("cursor") else { return Err(reply.to_string()) };
        let more = take_rows(cursor, name);
        if more.len() > batch.max(1) as usize {
            return Err(format!("{} rows in a batch of {batch}", more.len()));
        }
        rows.extend(more);
        let id = cursor.get_i64("id").unwrap();
        if id == 0 {
            return Ok(rows);
        }
        name = "nextBatch";
        reply =
            db.command(rawdoc! { "getMore": id, "collection": collection.as_str(), "batchSize": batch.max(1) }).await;
    }
}
