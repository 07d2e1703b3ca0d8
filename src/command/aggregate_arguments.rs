//! The pipeline of an `aggregate`, and the collection that it reads.

use super::request::Request;
use crate::error::{Error, ErrorCode, Result};
use crate::query::{Aggregation, DocumentSource, Globals};

/// The name that stands for a collection if a pipeline needs none.
const NO_COLLECTION: &str = "$cmd.aggregate";

/// The collection that a pipeline reads. `{aggregate: 1}` reads none.
///
/// Errors: `InvalidNamespace`.
pub fn collection_of<'a>(request: &Request<'a>) -> Result<&'a str> {
    if request.target_integer() == Some(1) { Ok(NO_COLLECTION) } else { request.collection() }
}

/// The pipeline of a command, parsed by `Aggregation::of_command`.
///
/// Errors: those of `of_command`; `InvalidNamespace` if the pipeline needs a collection and has none, or has one and
/// needs none.
pub fn parse(request: &Request<'_>, globals: &Globals, time_field: &str, explained: bool) -> Result<Aggregation> {
    let parsed = Aggregation::of_command(request.doc(), globals, time_field, explained)?;
    let needs_none = parsed.source.as_ref().is_some_and(DocumentSource::is_independent);
    if needs_none != (collection_of(request)? == NO_COLLECTION) {
        let message =
            "{aggregate: 1} needs a pipeline that begins with $documents, and such a pipeline needs {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, message));
    }
    Ok(parsed)
}
