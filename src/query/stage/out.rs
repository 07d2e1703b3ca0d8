//! `$out`: where the rows of a pipeline go. And `$merge`, which no time-series collection takes.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/document_source_out.cpp.

use super::parse::{Parser, check_fields};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, DocBuf, DocWriter, Value};

/// Where the rows of a pipeline go.
#[derive(Clone)]
pub struct Out {
    /// The database; `None` for the own one.
    pub database: Option<Box<str>>,
    /// The collection whose content they become.
    pub collection: Box<str>,
    /// The options by which it is made, where it is not there yet.
    pub timeseries: Option<DocBuf>,
    /// The stage as it is written.
    pub(super) shown: DocBuf,
}

/// True for the stages that write.
fn writes(name: &str) -> bool {
    matches!(name, "$out" | "$merge")
}

impl Parser<'_> {
    /// A stage that writes, true where `name` is one; `is_last` where no other comes behind it.
    ///
    /// Errors: 40601 where it is not the last, 16990, 40414, 40415 and `TypeMismatch` for its argument; 1074330 for every `$merge`.
    pub fn out(&mut self, name: &str, argument: Value<'_>, is_last: bool) -> Result<bool> {
        let refuse = |code, message: &str| Err(Error::new(code, message));
        if !writes(name) {
            return Ok(false);
        }
        if !is_last {
            return refuse(ErrorCode::Location40601, &[name, " can only be the final stage in the pipeline"].concat());
        }
        if name == "$merge" {
            let message = "$merge into a time-series collection is not supported, and there are no others";
            return refuse(ErrorCode::Location1074330, message);
        }
        let (mut database, mut collection, mut timeseries) = (None, argument.as_str(), None);
        if let Some(options) = argument.as_doc() {
            check_fields("$out", options, &["db", "coll", "timeseries"], &["db", "coll"])?;
            let wrong = || Error::type_mismatch("'db' and 'coll' of $out must be strings, 'timeseries' an object");
            let text = |name: &str| options.get(name).and_then(Value::as_str).ok_or_else(wrong);
            (database, collection) = (Some(text("db")?.into()), Some(text("coll")?));
            let object = |value: Value<'_>| value.as_doc().map(Doc::to_owned).ok_or_else(wrong);
            timeseries = options.get("timeseries").map(object).transpose()?;
        }
        let Some(collection) = collection else {
            return refuse(ErrorCode::Location16990, "$out only supports a string or object argument");
        };
        let mut shown = DocWriter::new();
        shown.value(name, argument);
        self.out = Some(Out { database, collection: collection.into(), timeseries, shown: shown.finish() });
        Ok(true)
    }
}

/// Refuses stages that write, where a pipeline is part of another one.
///
/// Errors: `code`.
pub(super) fn forbid_writes<'a>(stages: impl Iterator<Item = Value<'a>>, code: ErrorCode) -> Result<()> {
    let mut names = stages.filter_map(|stage| stage.as_doc()).flat_map(|stage| stage.iter().map(|(name, _)| name));
    match names.find(|name| writes(name)) {
        Some(name) => Err(Error::new(code, [name, " is not allowed within the pipeline of another stage"].concat())),
        None => Ok(()),
    }
}
