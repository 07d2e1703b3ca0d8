//! Replies, with their counts and errors.

use crate::block::Block;
use crate::error::Error;
use crate::value::{DocBuf, DocWriter};

/// The answer to a command: a reply document and, for cursors, the batch as a block.
#[derive(Debug)]
pub struct Reply {
    /// The reply; `ok` says whether the command succeeded.
    pub document: DocBuf,
    /// The measurements of `cursor.firstBatch` or `cursor.nextBatch`; the array in the document is empty.
    pub batch: Option<Block>,
}

impl Reply {
    pub(super) fn ok(mut document: DocWriter) -> Reply {
        document.double("ok", 1.0);
        Reply { document: document.finish(), batch: None }
    }

    /// The reply in types of the crate `bson`, for Rust programs. The module of the npm package does not contain this.
    pub fn to_bson(&self) -> bson::RawDocumentBuf {
        // The bytes were checked when the reply was built.
        bson::RawDocumentBuf::from_bytes(self.document.view().as_bytes().to_vec()).unwrap_or_default()
    }

    pub(super) fn with_batch(self, batch: Block) -> Reply {
        Reply { batch: Some(batch), ..self }
    }
}

impl Reply {
    /// A failure, and what else is said of it.
    pub(super) fn with_details(error: &Error, details: &mut dyn FnMut(&mut DocWriter)) -> Reply {
        let mut document = DocWriter::new();
        document.double("ok", 0.0).string("errmsg", &error.message);
        document.int32("code", error.code as i32).string("codeName", &error.code.name());
        details(&mut document);
        Reply { document: document.finish(), batch: None }
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Reply {
        Reply::with_details(&error, &mut |_| {})
    }
}

/// A count as an int64.
pub(super) fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A count as an int32, where the server's type is always int32.
pub(super) fn int<N>(n: N) -> i32
where
    i32: TryFrom<N>,
{
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Appends `writeErrors`, if there are any: the index of a measurement or statement, and its error.
pub(super) fn write_errors(reply: &mut DocWriter, errors: &[(usize, Error)]) {
    if errors.is_empty() {
        return;
    }
    reply.begin_array("writeErrors");
    for (place, (index, error)) in errors.iter().enumerate() {
        reply.begin_doc(&place.to_string()).int32("index", int(*index)).int32("code", error.code as i32);
        reply.string("codeName", &error.code.name()).string("errmsg", &error.message).end();
    }
    reply.end();
}
