//! The `aggregate` command.

use super::aggregation::Aggregation;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::plan::Hint;
use crate::query::plan::arguments::{check_generic, count, flag, is_given, object};
use crate::value::Doc;

impl Aggregation {
    /// Parses `{aggregate: <collection>, pipeline: […], cursor: {…}, …}`; the value of the first field is the caller's business.
    /// `time_field` as in `parse`. Where it is explained there need be no `cursor`.
    ///
    /// Errors: `TypeMismatch`, else `FailedToParse` without `cursor`, 40414 without `pipeline`, 40415 for unknown arguments, and those of the stages.
    pub fn of_command(command: Doc<'_>, globals: &Globals, time_field: &str, explained: bool) -> Result<Aggregation> {
        let mut globals = globals.clone();
        if let Some(variables) = command.get("let").filter(|value| is_given(*value)) {
            globals = globals.with_variables(object("let", variables)?)?;
        }
        let (mut pipeline, mut hint, mut batch_size, mut has_cursor) = (None, None, None, false);
        for (name, value) in command.iter().skip(1).filter(|(_, value)| is_given(*value)) {
            match name {
                "pipeline" => {
                    let stages = value.as_array();
                    let message = "'pipeline' option must be specified as an array";
                    pipeline = Some(stages.ok_or_else(|| Error::type_mismatch(message))?);
                }
                "cursor" => {
                    has_cursor = true;
                    for (name, value) in object(name, value)? {
                        match name {
                            "batchSize" => batch_size = Some(count(name, value)?),
                            _ => return Err(Error::unknown_field("aggregate.cursor", name)),
                        }
                    }
                }
                "hint" => hint = Hint::parse(value)?,
                // Read above, or by the caller, who knows the collation of the collection.
                "let" | "collation" => {}
                "allowDiskUse" | "bypassDocumentValidation" | "explain" => {
                    flag(name, value)?;
                }
                _ if check_generic(name, value)? => {}
                _ => return Err(Error::unknown_field("aggregate", name)),
            }
        }
        let Some(pipeline) = pipeline else {
            let message = "BSON field 'aggregate.pipeline' is missing but a required field";
            return Err(Error::new(ErrorCode::IDLFailedToParse, message));
        };
        if !has_cursor && !explained {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            return Err(Error::new(ErrorCode::FailedToParse, message));
        }
        let mut aggregation = Aggregation::parse(pipeline, &globals, time_field)?;
        (aggregation.find.hint, aggregation.find.batch_size) = (hint, batch_size);
        aggregation.find.collation = globals.collation().clone();
        Ok(aggregation)
    }
}
