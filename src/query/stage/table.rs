//! The table of stages. A new one is a file and a row.

use super::parse::Parser;
use crate::error::{Error, ErrorCode, Result};
use crate::value::Value;

/// Where a stage may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// In front of a pipeline, which is no branch of a `$facet`.
    First,
    /// Behind all others of a pipeline that is part of no other.
    Last,
    /// Anywhere but in a branch of a `$facet`.
    Outside,
}

/// The name of a stage, where it may stand, and what adds it to a pipeline.
pub(super) type Row = (&'static str, Place, fn(&mut Parser<'_>, Value<'_>) -> Result<()>);

const STAGES: &[Row] = &[
    ("$_internalInhibitOptimization", Place::Anywhere, |parser, argument| parser.inhibit(argument)),
    ("$_internalUnpackBucket", Place::Anywhere, |parser, argument| parser.unpack("$_internalUnpackBucket", argument)),
    ("$_unpackBucket", Place::Anywhere, |parser, argument| parser.unpack("$_unpackBucket", argument)),
    ("$addFields", Place::Anywhere, |parser, argument| parser.set(argument)),
    ("$bucket", Place::Anywhere, |parser, argument| parser.bucket(argument)),
    ("$bucketAuto", Place::Anywhere, |parser, argument| parser.bucket_auto(argument)),
    ("$collStats", Place::First, |parser, argument| parser.coll_stats(argument)),
    ("$count", Place::Anywhere, |parser, argument| parser.count(argument)),
    ("$densify", Place::Anywhere, |parser, argument| parser.densify(argument)),
    ("$documents", Place::First, |parser, argument| parser.documents(argument)),
    ("$downsample", Place::Anywhere, |parser, argument| parser.downsample(argument)),
    ("$facet", Place::Outside, |parser, argument| parser.facet(argument)),
    ("$fill", Place::Anywhere, |parser, argument| parser.fill(argument)),
    ("$geoNear", Place::First, |parser, argument| parser.near(argument)),
    ("$graphLookup", Place::Anywhere, |parser, argument| parser.graph_lookup(argument)),
    ("$group", Place::Anywhere, |parser, argument| parser.group(argument)),
    ("$indexStats", Place::First, |parser, argument| parser.index_stats(argument)),
    ("$limit", Place::Anywhere, |parser, argument| parser.limit(argument)),
    ("$lookup", Place::Anywhere, |parser, argument| parser.lookup(argument)),
    ("$match", Place::Anywhere, |parser, argument| parser.matches(argument)),
    ("$merge", Place::Last, |parser, argument| parser.merge(argument)),
    ("$out", Place::Last, |parser, argument| parser.out(argument)),
    ("$project", Place::Anywhere, |parser, argument| parser.project(argument)),
    ("$redact", Place::Anywhere, |parser, argument| parser.redact(argument)),
    ("$replaceRoot", Place::Anywhere, |parser, argument| parser.replace_root(argument)),
    ("$replaceWith", Place::Anywhere, |parser, argument| parser.replace_with(argument)),
    ("$sample", Place::Anywhere, |parser, argument| parser.sample(argument)),
    ("$set", Place::Anywhere, |parser, argument| parser.set(argument)),
    ("$setWindowFields", Place::Anywhere, |parser, argument| parser.windows(argument)),
    ("$skip", Place::Anywhere, |parser, argument| parser.skip(argument)),
    ("$sort", Place::Anywhere, |parser, argument| parser.sort(argument)),
    ("$sortByCount", Place::Anywhere, |parser, argument| parser.sort_by_count(argument)),
    ("$unionWith", Place::Anywhere, |parser, argument| parser.union_with(argument)),
    ("$unset", Place::Anywhere, |parser, argument| parser.unset(argument)),
    ("$unwind", Place::Anywhere, |parser, argument| parser.unwind(argument)),
];

/// The row of a stage.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    STAGES.iter().find(|(known, ..)| *known == name)
}

/// Where a stage of that name may stand, if there is one.
pub(super) fn place_of(name: &str) -> Option<Place> {
    row(name).map(|(_, place, _)| *place)
}

/// What is wrong with a stage that is to be the first one, and is not.
pub(super) fn not_first(name: &str) -> Error {
    Error::new(ErrorCode::Location40602, [name, " is only valid as the first stage in a pipeline."].concat())
}

/// Refuses stages that write, where a pipeline is part of another one.
///
/// Errors: `code`.
pub(super) fn forbid_writes<'a>(stages: impl Iterator<Item = Value<'a>>, code: ErrorCode) -> Result<()> {
    let mut names = stages.filter_map(Value::as_doc).flat_map(|stage| stage.iter().map(|(name, _)| name));
    match names.find(|name| place_of(name) == Some(Place::Last)) {
        Some(name) => Err(Error::new(code, [name, " is not allowed within the pipeline of another stage"].concat())),
        None => Ok(()),
    }
}
