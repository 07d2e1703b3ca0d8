//! Stages that become parts of a find: `$match`, `$sort`, `$skip`, `$limit`, `$project`, `$addFields`, `$unset`.

use super::parse::{FindPart, PipelineParser};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::filter::Filter;
use crate::query::plan::Projection;
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocWriter, Value, check_path};

impl PipelineParser<'_> {
    /// `$match`.
    ///
    /// Errors: 15959, and those of filters.
    pub fn matches(&mut self, argument: Value<'_>) -> Result<()> {
        let filter = object(argument, ErrorCode::Location15959, "The filter of $match must be an object")?;
        self.keep(Filter::parse(filter, self.globals)?);
        Ok(())
    }

    /// Keeps the rows that a filter matches.
    pub(super) fn keep(&mut self, filter: Filter) {
        let find = self.find(FindPart::Filter);
        find.filter = Filter::and(vec![std::mem::take(&mut find.filter), filter]);
    }

    /// `$sort`.
    ///
    /// Errors: those of sorts.
    pub fn sort(&mut self, argument: Value<'_>) -> Result<()> {
        self.sort_rows(SortSpec::parse(argument, self.globals.collation())?);
        Ok(())
    }

    /// `$skip`.
    ///
    /// Errors: 5107200.
    pub fn skip(&mut self, argument: Value<'_>) -> Result<()> {
        let skip = natural("$skip", argument, ErrorCode::Location5107200)?;
        let find = self.find(FindPart::Skip);
        find.skip = find.skip.saturating_add(skip);
        Ok(())
    }

    /// `$limit`.
    ///
    /// Errors: 2107201 and 15958.
    pub fn limit(&mut self, argument: Value<'_>) -> Result<()> {
        let limit = natural("$limit", argument, ErrorCode::Location2107201)?;
        if limit == 0 {
            return Err(Error::new(ErrorCode::Location15958, "The argument of $limit must be positive"));
        }
        let find = self.find(FindPart::Limit);
        find.limit = Some(find.limit.map_or(limit, |known| known.min(limit)));
        Ok(())
    }

    /// `$project`.
    ///
    /// Errors: 15969, 51272, and those of projections.
    pub fn project(&mut self, argument: Value<'_>) -> Result<()> {
        let fields = object(argument, ErrorCode::Location15969, "$project specification must be an object")?;
        if fields.is_empty() {
            let message = "$project specification must have at least one field";
            return Err(Error::new(ErrorCode::Location51272, message));
        }
        let projection = Projection::parse(fields, self.globals)?;
        self.find(FindPart::Projection).projection = projection;
        Ok(())
    }

    /// `$addFields` and `$set`.
    ///
    /// Errors: 40272, 40176 for colliding paths, 40177 and 40180 for empty objects, 40181 for an expression beside other
    /// fields, 40183 for a path inside an object, and those of expressions.
    pub fn set(&mut self, argument: Value<'_>) -> Result<()> {
        let fields = object(argument, ErrorCode::Location40272, "$addFields specification stage must be an object")?;
        check_set(fields, ErrorCode::Location40177)?;
        let projection = Projection::parse_set(fields, self.globals).map_err(|error| match error.code {
            ErrorCode::Location31249 | ErrorCode::Location31250 => {
                Error::new(ErrorCode::Location40176, error.message.clone())
            }
            _ => error,
        })?;
        self.find(FindPart::Projection).projection = projection;
        Ok(())
    }

    /// `$unset`.
    ///
    /// Errors: 31002, 31119 and 31120, and those of paths and projections.
    pub fn unset(&mut self, argument: Value<'_>) -> Result<()> {
        let mut dropped = DocWriter::new();
        for path in strings(argument)? {
            check_path(path)?;
            dropped.int32(path, 0);
        }
        let projection = Projection::parse(dropped.finish().view(), self.globals)?;
        self.find(FindPart::Projection).projection = projection;
        Ok(())
    }

    /// `$_internalInhibitOptimization`: later stages are neither pushed down nor combined with earlier ones.
    ///
    /// Errors: `FailedToParse`.
    pub fn inhibit(&mut self, argument: Value<'_>) -> Result<()> {
        let message = "$_internalInhibitOptimization must take an empty object";
        if !object(argument, ErrorCode::FailedToParse, message)?.is_empty() {
            return Err(Error::new(ErrorCode::FailedToParse, message));
        }
        self.begin_find();
        self.part = FindPart::End;
        Ok(())
    }
}

/// Checks the objects of `$addFields`; `empty` is the code of one without fields. Paths are written at the top, where no
/// name begins with `$`: paths are checked later.
fn check_set(fields: Doc<'_>, empty: ErrorCode) -> Result<()> {
    let is_top = empty == ErrorCode::Location40177;
    let refuse = |code, what: &str| Err(Error::new(code, ["$addFields cannot have ", what].concat()));
    let count = fields.iter().count();
    if count == 0 {
        return refuse(empty, "an empty object");
    }
    for (name, value) in fields {
        match name {
            _ if is_top => {}
            _ if name.starts_with('$') && count == 1 => return Ok(()),
            _ if name.starts_with('$') => return refuse(ErrorCode::Location40181, "fields beside an expression"),
            _ if name.contains('.') => return refuse(ErrorCode::Location40183, "a path inside an object"),
            _ => {}
        }
        value.as_doc().map_or(Ok(()), |below| check_set(below, ErrorCode::Location40180))?;
    }
    Ok(())
}

/// An object.
pub(super) fn object<'a>(argument: Value<'a>, code: ErrorCode, message: &str) -> Result<Doc<'a>> {
    argument.as_doc().ok_or_else(|| Error::new(code, message))
}

/// A non-negative integer.
fn natural(name: &str, value: Value<'_>, code: ErrorCode) -> Result<u64> {
    value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        Error::new(code, format!("The argument of {name} must be a non-negative 64-bit integer, not {value:?}"))
    })
}

/// A string or an array of strings.
fn strings(value: Value<'_>) -> Result<Vec<&str>> {
    let found: Option<Vec<&str>> = match value.as_array() {
        Some(array) if !array.is_empty() => array.iter().map(|(_, item)| item.as_str()).listed_if_all(),
        Some(_) => {
            let message = "$unset specification must be a string or an array with at least one field";
            return Err(Error::new(ErrorCode::Location31119, message));
        }
        None => {
            let message = "$unset specification must be a string or an array";
            return value.as_str().map(|one| vec![one]).ok_or_else(|| Error::new(ErrorCode::Location31002, message));
        }
    };
    let message = "$unset specification must be a string or an array containing only string values";
    found.ok_or_else(|| Error::new(ErrorCode::Location31120, message))
}
