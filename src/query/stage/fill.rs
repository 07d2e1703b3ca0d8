//! `$fill`: translated to window functions that fill gaps, and to values where gaps remain.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_fill.cpp.

use super::parse::{FindPart, PipelineParser, check_fields};
use crate::error::{Error, ErrorCode, Result};
use crate::query::plan::Projection;
use crate::value::{DocWriter, Value, check_path};

impl PipelineParser<'_> {
    /// `$fill`.
    ///
    /// Errors: `FailedToParse`, 40414, 40415, `TypeMismatch`, 6050200 to 6050204, and those of `$setWindowFields`.
    pub fn fill(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Err(Error::new(code, message));
        let Some(doc) = argument.as_doc() else {
            return refuse(ErrorCode::FailedToParse, "The $fill stage specification must be an object");
        };
        check_fields("$fill", doc, &["partitionBy", "partitionByFields", "sortBy", "output"], &["output"])?;
        let wrong = || Error::type_mismatch("An argument of $fill has the wrong type");
        let output = doc.get("output").and_then(Value::as_doc).ok_or_else(wrong)?;
        if output.is_empty() {
            let message = "The output field in '$fill' must contain an object with at least one element";
            return refuse(ErrorCode::Location6050203, message);
        }
        let (mut set, mut windows) = (DocWriter::new(), DocWriter::new());
        let mut has_windows = false;
        windows.begin_doc("output");
        for (name, value) in output {
            let Some(spec) = value.as_doc() else {
                let message = "Each fill output specification must be an object with exactly one field";
                return refuse(ErrorCode::Location6050200, message);
            };
            check_fields("$fill", spec, &["method", "value"], &[])?;
            let path = ["$", name].concat();
            match (spec.get("method"), spec.get("value")) {
                (Some(_), Some(_)) => {
                    let message = "Each fill output specification must have exactly one of 'method' or 'value' fields";
                    return refuse(ErrorCode::Location6050201, message);
                }
                (Some(method), None) => {
                    let function = match method.as_str().ok_or_else(wrong)? {
                        "locf" => "$locf",
                        "linear" => "$linearFill",
                        _ => return refuse(ErrorCode::Location6050202, "Method must be either locf or linear"),
                    };
                    windows.begin_doc(name).string(function, &path).end();
                    has_windows = true;
                }
                (None, Some(value)) => {
                    set.begin_doc(name).begin_array("$ifNull").string("0", &path).value("1", value).end().end();
                }
                (None, None) => {}
            }
        }
        windows.end();
        if let Some(sort) = doc.get("sortBy") {
            windows.value("sortBy", sort);
        }
        match (doc.get("partitionBy"), doc.get("partitionByFields")) {
            (Some(_), Some(_)) => {
                let message = "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'";
                return refuse(ErrorCode::Location6050204, message);
            }
            (Some(partition), None) if partition.as_str().is_some() || partition.as_doc().is_some() => {
                windows.value("partitionBy", partition);
            }
            (Some(_), None) => return Err(wrong()),
            (None, Some(fields)) => {
                let mut names = Vec::new();
                for (_, name) in fields.as_array().ok_or_else(wrong)? {
                    let name = name.as_str().ok_or_else(wrong)?;
                    check_path(name)?;
                    names.push(name);
                }
                windows.begin_doc("partitionBy");
                names.iter().for_each(|name| {
                    windows.string(name, &["$", name].concat());
                });
                windows.end();
            }
            (None, None) => {}
        }
        if has_windows {
            self.windows(windows.finish().view().as_value())?;
        }
        if !set.is_empty() {
            let projection = Projection::parse_set(set.finish().view(), self.globals)?;
            self.find(FindPart::Projection).projection = projection;
        }
        Ok(())
    }
}
