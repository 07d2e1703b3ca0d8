//! `$count` and `$sortByCount`, which are written as groups that count rows.

use super::parse::{FindPart, PipelineParser};
use crate::error::{Error, ErrorCode, Result};
use crate::query::plan::Projection;
use crate::query::sort::SortSpec;
use crate::value::{DocWriter, Value};

impl PipelineParser<'_> {
    /// `$count`: one group of all rows, without its id.
    ///
    /// Errors: 40156 to 40160.
    pub fn count(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, what: &str| Err(Error::new(code, format!("The count field must be {what}")));
        let name = match argument.as_str() {
            None => return refuse(ErrorCode::Location40156, "a non-empty string"),
            Some("") => return refuse(ErrorCode::Location40157, "a non-empty string"),
            Some(name) if name.starts_with('$') => {
                return refuse(ErrorCode::Location40158, "a name that does not begin with $");
            }
            Some(name) if name.contains('\0') => return refuse(ErrorCode::Location40159, "a name without a NUL byte"),
            Some(name) if name.contains('.') => return refuse(ErrorCode::Location40160, "a name without a dot"),
            Some(name) => name,
        };
        self.push_count(Value::NULL, name)?;
        let mut without_id = DocWriter::new();
        without_id.int32("_id", 0);
        let projection = Projection::parse(without_id.finish().view(), self.globals)?;
        self.find(FindPart::Projection).projection = projection;
        Ok(())
    }

    /// `$sortByCount`.
    ///
    /// Errors: 40147 to 40149, and those of expressions.
    pub fn sort_by_count(&mut self, argument: Value<'_>) -> Result<()> {
        let code = match (argument.as_str(), argument.as_doc().map(|doc| doc.iter().next())) {
            (Some(path), _) => (!path.starts_with('$')).then_some(ErrorCode::Location40148),
            (_, Some(first)) => {
                let is_operator = first.is_some_and(|(name, _)| name.starts_with('$'));
                (!is_operator).then_some(ErrorCode::Location40147)
            }
            _ => Some(ErrorCode::Location40149),
        };
        if let Some(code) = code {
            let message = "The sortByCount field must be a $-prefixed path or an expression object";
            return Err(Error::new(code, message));
        }
        self.push_count(argument, "count")?;
        let mut sort = DocWriter::new();
        sort.int32("count", -1);
        self.sort_rows(SortSpec::parse(sort.finish().view().as_value(), self.globals.collation())?);
        Ok(())
    }

    /// A group that only counts its rows, in the field `name`.
    fn push_count(&mut self, key: Value<'_>, name: &str) -> Result<()> {
        let mut group = DocWriter::new();
        group.value("_id", key).begin_doc(name).int32("$sum", 1).end();
        self.group(group.finish().view().as_value())
    }
}
