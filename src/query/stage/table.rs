//! The table of stages. A new one is a file and a row.

use super::parse::PipelineParser;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Value};

/// Where a stage may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagePlace {
    Anywhere,
    /// First in a pipeline that is not a branch of a `$facet`.
    First,
    /// Last in a pipeline that is not part of another one.
    Last,
    /// Anywhere except in a branch of a `$facet`.
    Outside,
}

/// The name of a stage, where it may occur, and its parser.
type StageRow = (&'static str, StagePlace, fn(&mut PipelineParser<'_>, Value<'_>) -> Result<()>);

const STAGES: &[StageRow] = &[
    ("$_internalInhibitOptimization", StagePlace::Anywhere, |parser, argument| parser.inhibit(argument)),
    ("$_internalUnpackBucket", StagePlace::Anywhere, |parser, argument| {
        parser.unpack("$_internalUnpackBucket", argument)
    }),
    ("$_unpackBucket", StagePlace::Anywhere, |parser, argument| parser.unpack("$_unpackBucket", argument)),
    ("$addFields", StagePlace::Anywhere, |parser, argument| parser.set(argument)),
    ("$bucket", StagePlace::Anywhere, |parser, argument| parser.bucket(argument)),
    ("$bucketAuto", StagePlace::Anywhere, |parser, argument| parser.bucket_auto(argument)),
    ("$collStats", StagePlace::First, |parser, argument| parser.coll_stats(argument)),
    ("$count", StagePlace::Anywhere, |parser, argument| parser.count(argument)),
    ("$densify", StagePlace::Anywhere, |parser, argument| parser.densify(argument)),
    ("$documents", StagePlace::First, |parser, argument| parser.documents(argument)),
    ("$downsample", StagePlace::Anywhere, |parser, argument| parser.downsample(argument)),
    ("$facet", StagePlace::Outside, |parser, argument| parser.facet(argument)),
    ("$fill", StagePlace::Anywhere, |parser, argument| parser.fill(argument)),
    ("$geoNear", StagePlace::First, |parser, argument| parser.near(argument)),
    ("$graphLookup", StagePlace::Anywhere, |parser, argument| parser.graph_lookup(argument)),
    ("$group", StagePlace::Anywhere, |parser, argument| parser.group(argument)),
    ("$indexStats", StagePlace::First, |parser, argument| parser.index_stats(argument)),
    ("$limit", StagePlace::Anywhere, |parser, argument| parser.limit(argument)),
    ("$lookup", StagePlace::Anywhere, |parser, argument| parser.lookup(argument)),
    ("$match", StagePlace::Anywhere, |parser, argument| parser.matches(argument)),
    ("$merge", StagePlace::Last, |parser, argument| parser.merge(argument)),
    ("$out", StagePlace::Last, |parser, argument| parser.out(argument)),
    ("$project", StagePlace::Anywhere, |parser, argument| parser.project(argument)),
    ("$redact", StagePlace::Anywhere, |parser, argument| parser.redact(argument)),
    ("$replaceRoot", StagePlace::Anywhere, |parser, argument| parser.replace_root(argument)),
    ("$replaceWith", StagePlace::Anywhere, |parser, argument| parser.replace_with(argument)),
    ("$sample", StagePlace::Anywhere, |parser, argument| parser.sample(argument)),
    ("$set", StagePlace::Anywhere, |parser, argument| parser.set(argument)),
    ("$setWindowFields", StagePlace::Anywhere, |parser, argument| parser.windows(argument)),
    ("$skip", StagePlace::Anywhere, |parser, argument| parser.skip(argument)),
    ("$sort", StagePlace::Anywhere, |parser, argument| parser.sort(argument)),
    ("$sortByCount", StagePlace::Anywhere, |parser, argument| parser.sort_by_count(argument)),
    ("$unionWith", StagePlace::Anywhere, |parser, argument| parser.union_with(argument)),
    ("$unset", StagePlace::Anywhere, |parser, argument| parser.unset(argument)),
    ("$unwind", StagePlace::Anywhere, |parser, argument| parser.unwind(argument)),
];

/// Stages that time-series collections do not support, or that have no use here. On the server each must come first.
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

impl PipelineParser<'_> {
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

    /// Parses the stage at a position; returns its name.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn stage_at<'s>(&mut self, stage: Value<'s>, place: usize, is_last: bool) -> Result<&'s str> {
        let message = "Each element of the 'pipeline' array must be an object";
        let mut fields = stage.as_doc().ok_or_else(|| Error::type_mismatch(message))?.iter();
        let (Some((name, argument)), None) = (fields.next(), fields.next()) else {
            let message = "Each stage of a pipeline must have exactly one field";
            return Err(Error::new(ErrorCode::Location40323, message));
        };
        let Some((_, stands, parse)) = row(name) else { return Err(unknown(name, place)) };
        match stands {
            StagePlace::First if place > 0 => return Err(not_first(name)),
            StagePlace::Last if !is_last => {
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
fn row(name: &str) -> Option<&'static StageRow> {
    STAGES.iter().find(|(known, ..)| *known == name)
}

/// Where a stage with this name may occur, if it exists.
pub(super) fn place_of(name: &str) -> Option<StagePlace> {
    row(name).map(|(_, place, _)| *place)
}

/// The error for a stage that must come first but does not.
pub(super) fn not_first(name: &str) -> Error {
    Error::new(ErrorCode::Location40602, [name, " is only valid as the first stage in a pipeline."].concat())
}

/// Refuses stages that write in a pipeline that is part of another one.
///
/// Errors: `code`.
pub(super) fn forbid_writes(stages: Doc<'_>, code: ErrorCode) -> Result<()> {
    for (_, stage) in stages {
        for (name, _) in stage.as_doc().unwrap_or(Doc::EMPTY) {
            if place_of(name) == Some(StagePlace::Last) {
                return Err(Error::new(code, [name, " is not allowed within the pipeline of another stage"].concat()));
            }
        }
    }
    Ok(())
}

/// The error for a stage that is not in the table.
fn unknown(name: &str, place: usize) -> Error {
    match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, code)) if place == 0 => {
            Error::new(*code, ["A time-series collection does not support the stage ", name].concat())
        }
        Some(_) => not_first(name),
        None => Error::new(ErrorCode::Location40324, ["Unrecognized pipeline stage name: '", name, "'"].concat()),
    }
}
