//! `$out`: the target of a pipeline's rows. And `$merge`, which time-series collections do not support.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_out.cpp.

use super::model::Out;
use super::parse::{PipelineParser, check_fields};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, DocWriter, Value};

impl PipelineParser<'_> {
    /// `$merge`.
    ///
    /// Errors: always 1074330.
    pub fn merge(&mut self, _argument: Value<'_>) -> Result<()> {
        let message = "$merge is not supported, because it cannot write to a time-series collection";
        Err(Error::new(ErrorCode::Location1074330, message))
    }

    /// `$out`.
    ///
    /// Errors: 16990, 40414, 40415 and `TypeMismatch`.
    pub fn out(&mut self, argument: Value<'_>) -> Result<()> {
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
            let message = "The argument of $out must be a string or an object";
            return Err(Error::new(ErrorCode::Location16990, message));
        };
        let mut shown = DocWriter::new();
        shown.value("$out", argument);
        self.out = Some(Out { database, collection: collection.into(), timeseries, shown: shown.finish() });
        Ok(())
    }
}
