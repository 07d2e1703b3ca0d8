//! Parses an update from its document.

use super::array::array_of;
use super::operators::{UpdateOperator, shown};
use super::query::{first_of, not_allowed};
use super::tree::{PathStep, Update, UpdateNode, refused};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::value::{Doc, Kind, OwnedValue, Value};

impl Update {
    /// Parses the update of the metadata `meta_field` from `document`, with `arrayFilters` if there are any.
    ///
    /// Errors: `InvalidOptions` for a pipeline, a replacement, and a change of anything else; `FailedToParse`,
    /// `BadValue`, `TypeMismatch` and others for invalid updates; `ConflictingUpdateOperators`.
    pub fn parse(
        document: Value<'_>,
        array_filters: Option<Value<'_>>,
        meta_field: &str,
        globals: &Globals,
    ) -> Result<Update> {
        let doc = operators_of(document, meta_field)?;
        Update::of_operators(doc, array_filters, 1, globals)
    }

    /// Parses the update of a whole document: operators, or, unless `multi`, a replacement.
    ///
    /// Errors: `InvalidOptions` for a pipeline; `FailedToParse` for a replacement of many; as `parse`.
    pub fn parse_whole(
        document: Value<'_>,
        array_filters: Option<Value<'_>>,
        multi: bool,
        globals: &Globals,
    ) -> Result<Update> {
        let doc = object_of(document)?;
        if doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')) {
            return Update::of_operators(doc, array_filters, 0, globals);
        }
        if multi {
            let message = "With multi: true, an update needs operators, not";
            return Err(shown(ErrorCode::FailedToParse, message, document));
        }
        let mut update = Update::of_operators(Doc::EMPTY, array_filters, 0, globals)?;
        update.root.op = Some((UpdateOperator::Set, document.to_owned()));
        Ok(update)
    }

    fn of_operators(doc: Doc<'_>, array_filters: Option<Value<'_>>, above: usize, globals: &Globals) -> Result<Update> {
        let mut update = Update {
            root: UpdateNode::default(),
            above,
            filters: Vec::new(),
            is_positional: false,
            globals: globals.clone(),
        };
        if let Some(filters) = array_filters {
            let wrong = |value| shown(ErrorCode::TypeMismatch, "arrayFilters must be an array of objects, not", value);
            for (_, filter) in filters.as_array().ok_or_else(|| wrong(filters))? {
                update.add_filter(filter.as_doc().ok_or_else(|| wrong(filter))?)?;
            }
        }
        let mut used = vec![false; update.filters.len()];
        for (name, fields) in doc {
            let operator = UpdateOperator::of(name)?;
            let fields = fields.as_doc().ok_or_else(|| {
                shown(ErrorCode::FailedToParse, "An update operator needs an object of fields, not", fields)
            })?;
            for (path, operand) in fields {
                let steps = update.steps(path, &mut used)?;
                if operator == UpdateOperator::Rename {
                    let target = operand.as_str().unwrap_or_default();
                    let to = update.steps(target, &mut used)?;
                    let is_plain = from_names(&steps) && from_names(&to);
                    if !is_plain || steps.starts_with(&to) || to.starts_with(&steps) {
                        return Err(refused(ErrorCode::BadValue, "Cannot rename to", target));
                    }
                    let paths = array_of(vec![OwnedValue::string(path).view(), operand]);
                    update.root.add(&steps, path, (UpdateOperator::Unset, OwnedValue::null()))?;
                    update.root.add(&to, target, (operator, paths))?;
                    continue;
                }
                // An invalid operand is an error even if nothing matches.
                operator.apply(operand, None, globals)?;
                update.root.add(&steps, path, (operator, operand.to_owned()))?;
            }
        }
        if update.root.op.is_none() && update.root.children.is_empty() {
            update.root.op = Some((UpdateOperator::SetOnInsert, OwnedValue::null()));
        }
        match update.filters.iter().zip(used).find(|(_, used)| !used) {
            Some(((name, _), _)) => {
                Err(refused(ErrorCode::FailedToParse, "No path of the update uses the array filter", name))
            }
            None => Ok(update),
        }
    }

    fn add_filter(&mut self, doc: Doc<'_>) -> Result<()> {
        let filter = Filter::parse(doc, &self.globals)?;
        let fields = filter.fields();
        let name = match fields.names() {
            [only] if !filter.is_random() => Some(only.clone()),
            _ => None,
        };
        let Some(name) = name.filter(|name| self.filters.iter().all(|(known, _)| known != name)) else {
            return Err(shown(
                ErrorCode::FailedToParse,
                "An array filter must have a top-level field name of its own:",
                doc.as_value(),
            ));
        };
        let is_identifier = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_identifier {
            return Err(refused(ErrorCode::BadValue, "Not an identifier:", &name));
        }
        self.filters.push((name, filter));
        Ok(())
    }

    /// The steps of a path below the value that is changed.
    fn steps(&mut self, path: &str, used: &mut [bool]) -> Result<Vec<PathStep>> {
        let mut steps = Vec::new();
        for name in path.split('.').skip(self.above) {
            let in_brackets = name.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']'));
            steps.push(match in_brackets {
                _ if name.is_empty() => {
                    return Err(refused(ErrorCode::EmptyFieldName, "A name must not be empty in the path", path));
                }
                _ if name == "$" && !steps.contains(&PathStep::Matched) => {
                    self.is_positional = true;
                    PathStep::Matched
                }
                _ if name == "$" => return Err(refused(ErrorCode::BadValue, "Too many positional elements in", path)),
                Some("") => PathStep::All,
                Some(identifier) => {
                    let number = self.filters.iter().position(|(known, _)| **known == *identifier);
                    let number =
                        number.ok_or_else(|| refused(ErrorCode::BadValue, "No array filter found for", path))?;
                    used.iter_mut().skip(number).take(1).for_each(|used| *used = true);
                    PathStep::Filtered(number)
                }
                None if name.starts_with('$') => {
                    return Err(refused(
                        ErrorCode::DollarPrefixedFieldName,
                        "A name must not begin with $ in the path",
                        path,
                    ));
                }
                None => PathStep::Name(name.into()),
            });
        }
        if steps.len() > DOCUMENT_DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "An update path has too many components"));
        }
        Ok(steps)
    }
}

/// True for steps without arrays.
fn from_names(steps: &[PathStep]) -> bool {
    steps.iter().all(|step| matches!(step, PathStep::Name(_)))
}

fn object_of(document: Value<'_>) -> Result<Doc<'_>> {
    if document.kind() == Kind::Array {
        return Err(not_allowed("a pipeline", ""));
    }
    document.as_doc().ok_or_else(|| shown(ErrorCode::FailedToParse, "An update must be an object, not", document))
}

/// The operators of an update document, after checking that it only changes the metadata.
fn operators_of<'a>(document: Value<'a>, meta_field: &str) -> Result<Doc<'a>> {
    let doc = object_of(document)?;
    if !doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')) {
        return Err(not_allowed(if doc.is_empty() { "an empty document" } else { "a replacement document" }, ""));
    }
    for (operator, operand) in doc {
        for (path, target) in operand.as_doc().unwrap_or(Doc::EMPTY).iter() {
            let renamed = operator == "$rename" && target.as_str().is_none_or(|to| first_of(to) != meta_field);
            if renamed || first_of(path) != meta_field {
                return Err(not_allowed("a field other than the metaField: ", path));
            }
        }
    }
    Ok(doc)
}
