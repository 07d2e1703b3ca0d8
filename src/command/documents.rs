//! The batch of a reply as documents inside it, for clients that do not read blocks.

// Loaded later.

use super::reply::Reply;
use crate::value::{DocWriter, Kind};

/// The same reply with the measurements of its batch in `cursor.firstBatch` or `cursor.nextBatch`, as a server sends it.
#[inline(never)]
pub fn with_documents(reply: Reply) -> Reply {
    let Some(batch) = reply.batch else { return reply };
    let mut document = DocWriter::with_capacity(batch.size_bytes());
    for (name, value) in reply.document.view() {
        let Some(cursor) = value.as_doc().filter(|_| name == "cursor") else {
            document.value(name, value);
            continue;
        };
        document.begin_doc(name);
        for (name, value) in cursor {
            if value.kind() != Kind::Array {
                document.value(name, value);
                continue;
            }
            document.begin_array(name);
            for row in 0..batch.rows() {
                document.begin_doc(&row.to_string());
                batch.write_row(row, &mut document);
                document.end();
            }
            document.end();
        }
        document.end();
    }
    Reply { document: document.finish(), batch: None }
}

#[cfg(test)]
mod tests {
    use bson::{doc, rawdoc};

    use super::*;
    use crate::block::pivot_docs;
    use crate::value::Doc;

    #[test]
    fn a_batch_stands_in_the_cursor_as_a_server_sends_it() {
        let rows = [rawdoc! { "a": 1, "b": "x" }, rawdoc! {}, rawdoc! { "b": [1, "y"] }];
        let block = pivot_docs(rows.iter().map(|row| Doc::parse(row.as_bytes()).unwrap())).unwrap();
        let mut reply = DocWriter::new();
        reply.begin_doc("cursor").int64("id", 7).string("ns", "d.c").begin_array("nextBatch").end().end();
        let reply = with_documents(Reply::ok(reply).with_batch(block));
        let expected = doc! { "cursor": { "id": 7_i64, "ns": "d.c", "nextBatch": [{ "a": 1, "b": "x" }, {}, { "b": [1, "y"] }] }, "ok": 1.0 };
        assert_eq!(bson::Document::try_from(&*reply.to_bson()).unwrap(), expected);
        assert!(reply.batch.is_none());
    }

    #[test]
    fn a_reply_without_a_batch_stays_as_it_is() {
        let reply = with_documents(Reply::ok(DocWriter::new()));
        assert_eq!(bson::Document::try_from(&*reply.to_bson()).unwrap(), doc! { "ok": 1.0 });
    }
}
