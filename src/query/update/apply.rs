//! Applies an update to one value.

use super::array::array_of;
use super::operators::{UpdateOperator, unfit};
use super::tree::{PathStep, Update, UpdateNode, conflict, refused};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{ARRAY_PADDING_MAX, DOCUMENT_DEPTH_MAX};
use crate::listed::IntoList;
use crate::value::{Component, Doc, DocBuf, DocWriter, Kind, OwnedValue, Value, as_metadata};

/// What an application depends on besides the value.
struct Applied<'u> {
    update: &'u Update,
    root: Option<Value<'u>>,
    /// The position of the array element that the query has matched.
    matched: Option<usize>,
}

impl Update {
    /// The new metadata for `meta`; `None` for none. `matched` is called for the position of the element that the query
    /// has matched, if the update uses it.
    ///
    /// Errors: `PathNotViable`, `TypeMismatch`, `BadValue` and others if an operator does not fit the value.
    pub fn apply(&self, meta: Option<Value<'_>>, matched: &dyn Fn() -> Option<usize>) -> Result<Option<OwnedValue>> {
        let matched = if self.is_positional { matched() } else { None };
        if self.is_positional && matched.is_none() {
            return Err(Error::bad_value("The positional operator needs an array element that the query has matched"));
        }
        let new = Applied { update: self, root: meta, matched }.apply(&self.root, meta, 1)?;
        Ok(new.map(|new| as_metadata(new.view())))
    }

    /// The new form of a whole document, with the same `_id`.
    ///
    /// Errors: `ImmutableField` for another `_id`; as `apply`.
    pub fn apply_whole(&self, document: Doc<'_>) -> Result<DocBuf> {
        if self.is_positional {
            return Err(Error::bad_value("The positional operator is not supported in updates of buckets"));
        }
        let before = document.as_value();
        let new = Applied { update: self, root: Some(before), matched: None }.apply(&self.root, Some(before), 0)?;
        let new = new.as_ref().and_then(|new| new.view().as_doc()).unwrap_or(Doc::EMPTY);
        let mut writer = DocWriter::new();
        // A replacement may leave it out.
        if let (None, Some(id)) = (new.get("_id"), document.get("_id")) {
            writer.value("_id", id);
        }
        for (name, value) in new {
            writer.value(name, value);
        }
        let new = writer.finish();
        if new.view().get("_id") != document.get("_id") {
            return Err(Error::new(ErrorCode::ImmutableField, "The '_id' of a bucket cannot be changed"));
        }
        Ok(new)
    }
}

impl Applied<'_> {
    fn apply(&self, node: &UpdateNode, value: Option<Value<'_>>, depth: usize) -> Result<Option<OwnedValue>> {
        if let Some((operator, operand)) = &node.op {
            let new = match operator {
                UpdateOperator::Rename => self.renamed(operand.view(), value)?,
                operator => operator.apply(operand.view(), value, &self.update.globals)?,
            };
            if new.as_ref().is_some_and(|new| depth + nesting(new.view()) > DOCUMENT_DEPTH_MAX - 2) {
                return Err(Error::new(ErrorCode::Overflow, "The metadata would be nested too deeply"));
            }
            return Ok(new);
        }
        let before = value.and_then(Value::as_container);
        let is_array = value.is_some_and(|value| value.kind() == Kind::Array);
        let of_elements = |step: &PathStep| matches!(step, PathStep::All | PathStep::Filtered(_));
        if !is_array && node.children.iter().any(|(step, _)| of_elements(step)) {
            return Err(unfit(value.unwrap_or(Value::NULL), "An array update is not possible on"));
        }
        // A removed array element leaves a null.
        let mut fields: Vec<(Box<str>, OwnedValue)> = Vec::new();
        for (name, field) in before.unwrap_or(Doc::EMPTY) {
            let mut new = Some(field.to_owned());
            let mut nodes: Vec<&UpdateNode> = Vec::new();
            for (step, child) in &node.children {
                if !self.takes(step, name, field)? {
                    continue;
                }
                if nodes.iter().any(|before| before.overlaps(child)) {
                    return Err(conflict(name));
                }
                nodes.push(child);
                new = self.apply(child, new.as_ref().map(OwnedValue::view), depth + 1)?;
            }
            if let Some(new) = new.or_else(|| is_array.then(OwnedValue::null)) {
                fields.push((name.into(), new));
            }
        }
        for (step, child) in &node.children {
            let name = match step {
                PathStep::Name(name) => name.clone(),
                PathStep::Matched => self.matched.unwrap_or_default().to_string().into(),
                PathStep::All | PathStep::Filtered(_) => continue,
            };
            if before.is_some_and(|before| before.get(&name).is_some()) {
                continue;
            }
            let Some(new) = self.apply(child, None, depth + 1)? else { continue };
            let index = Component::parse(&name).index().filter(|_| is_array);
            if let Some(value) = value.filter(|_| before.is_none() || is_array && index.is_none()) {
                return Err(refused(ErrorCode::PathNotViable, &format!("{value:?} cannot have the field"), &name));
            }
            let Some(index) = index else {
                fields.push((name, new));
                continue;
            };
            let len = fields.len();
            if index.saturating_sub(len) > ARRAY_PADDING_MAX {
                return Err(refused(ErrorCode::CannotBackfillArray, "Too far beyond the end of an array:", &name));
            }
            while fields.len() <= index {
                fields.push((Box::default(), OwnedValue::null()));
            }
            fields.iter_mut().skip(index).take(1).for_each(|field| field.1 = new.clone());
        }
        if is_array {
            return Ok(Some(array_of(fields.iter().map(|(_, element)| element.view()).listed())));
        }
        if before.is_none() && fields.is_empty() {
            return Ok(value.map(Value::to_owned));
        }
        let mut writer = DocWriter::new();
        for (name, field) in fields {
            writer.value(&name, field.view());
        }
        Ok(Some(OwnedValue::doc(writer.finish().view())))
    }

    /// True if a step leads to a field or an element.
    fn takes(&self, step: &PathStep, name: &str, field: Value<'_>) -> Result<bool> {
        Ok(match step {
            PathStep::Name(taken) => **taken == *name,
            PathStep::Matched => Component::parse(name).index() == self.matched,
            PathStep::All => true,
            PathStep::Filtered(number) => match self.update.filters.get(*number) {
                Some((_, filter)) => filter.matches_value(Some(field))?,
                None => false,
            },
        })
    }

    /// The value that is renamed to this path, if there is one; `paths` are the source and the target.
    fn renamed(&self, paths: Value<'_>, value: Option<Value<'_>>) -> Result<Option<OwnedValue>> {
        let mut found = None;
        for (_, path) in paths.as_container().unwrap_or(Doc::EMPTY).iter() {
            let at = self.look_up(path.as_str().unwrap_or_default())?;
            match found {
                None if at.is_none() => return Ok(value.map(Value::to_owned)),
                None => found = at,
                Some(_) => {}
            }
        }
        Ok(found.map(Value::to_owned))
    }

    /// The value at a path before any change.
    ///
    /// Errors: `BadValue` if an array is on the way, because elements are not renamed.
    fn look_up(&self, path: &str) -> Result<Option<Value<'_>>> {
        let mut value = self.root;
        for name in path.split('.').skip(self.update.above) {
            if let Some(array) = value.filter(|value| value.kind() == Kind::Array) {
                return Err(unfit(array, "$rename cannot change fields inside an array:"));
            }
            value = value.and_then(Value::as_doc).and_then(|doc| doc.get(name));
        }
        Ok(value)
    }
}

/// The nesting depth of a value.
fn nesting(value: Value<'_>) -> usize {
    value.as_container().map_or(0, |doc| 1 + doc.iter().map(|(_, inner)| nesting(inner)).max().unwrap_or_default())
}
