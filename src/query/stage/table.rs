//! The table of stages. A new one is a file and a row.

use super::parse::Parser;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Value};

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
type Row = (&'static str, Place, fn(&mut Parser<'_>, Value<'_>) -> Result<()>);

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

/// Stages that a time-series collection does not take, or that there is nothing for here. Each would be the first of its pipeline.
const REFUSED: [(&str, ErrorCode); 9] = [
    ("$changeStream", ErrorCode::CommandNotSupportedOnView),
    ("$planCacheStats", ErrorCode::CommandNotSupportedOnView),
    ("$listCatalog", ErrorCode::CommandNotSupportedOnView),
    ("$search", ErrorCode::Location10170100),
    ("$searchMeta", ErrorCode::Location10170100),
    ("$vectorSearch", ErrorCode::Location10170100),
    ("$scoreFusion", ErrorCode::Location10557300),
    ("$rankFusion", ErrorCode::Location10557301),
    ("$_internalSearchIdLookup", ErrorCode::Location10557302),
];

impl Parser<'_> {
    /// Adds the stages of a pipeline.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn stages(&mut self, pipeline: Doc<'_>) -> Result<()> {
        let count = pipeline.iter().count();
        for (place, (_, stage)) in pipeline.iter().enumerate() {
            self.stage_at(stage, place, place + 1 == count)?;
        }
        Ok(())
    }

    /// Adds the stage that stands at a place; answers its name.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn stage_at<'s>(&mut self, stage: Value<'s>, place: usize, is_last: bool) -> Result<&'s str> {
        let message = "Each element of the 'pipeline' array must be an object";
        let mut fields = stage.as_doc().ok_or_else(|| Error::type_mismatch(message))?.iter();
        let (Some((name, argument)), None) = (fields.next(), fields.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(ErrorCode::Location40323, message));
        };
        let Some((_, stands, parse)) = row(name) else { return Err(unknown(name, place)) };
        match stands {
            Place::First if place > 0 => return Err(not_first(name)),
            Place::Last if !is_last => {
                let message = [name, " can only be the final stage in the pipeline"].concat();
                return Err(Error::new(ErrorCode::Location40601, message));
            }
            _ => {}
        }
        parse(self, argument)?;
        Ok(name)
    }
}

/// The row of a stage.
fn row(name: &str) -> Option<&'static Row> {
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

/// What is wrong with a stage that the table of stages does not have.
fn unknown(name: &str, place: usize) -> Error {
    match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, code)) if place == 0 => {
            Error::new(*code, ["A time-series collection does not take the stage ", name].concat())
        }
        Some(_) => not_first(name),
        None => Error::new(ErrorCode::Location40324, ["Unrecognized pipeline stage name: '", name, "'"].concat()),
    }
}
