//! `$lookup`: the rows of another collection that belong to each row, as a list in it.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/document_source_lookup.cpp. The other rows are all there when the first row comes: those of the
//! whole pipeline where it reads no variable, else those of the filters in front that read none. What is left of it is parsed as well, and
//! runs for each row with its values, once for all rows that ask the same. What that reads of still other collections is there, by the same rule.

use std::rc::Rc;

use super::model::Others;
use super::parse::Parser;
use super::reshape::{Made, with};
use super::running::Stage;
use super::spec::Spec;
use super::subpipeline::{SubPipeline, elements};
use super::table::forbid_writes;
use super::union::begins_with_documents;
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Globals};
use crate::query::filter::Filter;
use crate::value::{Doc, DocBuf, DocWriter, Kind, Leaf, Numbers, OwnedValue, Path, Value, check_path, walk_doc};

/// What a `$lookup` asks for.
struct LookupSpec {
    split: SubPipeline,
    /// The field of a row and that of the others that are to be equal.
    fields: Option<(Path, Box<str>)>,
    /// The variables of its `let`, and the number of the first one.
    variables: Vec<(Box<str>, BoundExpr)>,
    first_variable: usize,
    /// Where the list goes.
    to: Vec<Box<str>>,
    globals: Globals,
}

impl Spec for LookupSpec {
    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage> {
        Box::new(Lookup {
            spec: self,
            others: Others::clone(others),
            asked: Numbers::default(),
            lists: Vec::new(),
            size_bytes: 0,
            made: Made::default(),
        })
    }
}

fn refuse(message: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, message)
}

impl Parser<'_> {
    /// `$lookup`.
    ///
    /// Errors: `FailedToParse`, `TypeMismatch`, 40602, those of expressions and paths; those of what is read once come when it is read.
    pub fn lookup(&mut self, argument: Value<'_>) -> Result<()> {
        let doc = argument.as_doc().ok_or_else(|| refuse("the $lookup stage specification must be an object"))?;
        let (mut names, mut variables, mut pipeline) = ([None; 4], Vec::new(), None);
        for (name, value) in doc {
            match name {
                "pipeline" => {
                    let stages = value.as_array();
                    pipeline = Some(stages.ok_or_else(|| Error::type_mismatch("'pipeline' must be an array"))?);
                }
                "let" => {
                    let wrong = || refuse("$lookup argument 'let' must be an object");
                    for (name, value) in value.as_doc().ok_or_else(wrong)? {
                        if !name.starts_with(|first: char| first.is_ascii_lowercase() || !first.is_ascii()) {
                            return Err(refuse("A variable of 'let' must begin with a lower case letter"));
                        }
                        variables.push((name.into(), self.expr(value)?));
                    }
                }
                _ => {
                    let known = ["from", "localField", "foreignField", "as"];
                    let slot = names.iter_mut().zip(known).find(|(_, known)| *known == name);
                    let (slot, _) = slot.ok_or_else(|| refuse("unknown argument to $lookup"))?;
                    let text = value.as_str().filter(|text| !text.is_empty());
                    *slot = Some(text.ok_or_else(|| refuse("$lookup arguments must be non-empty strings"))?);
                }
            }
        }
        let [from, local, other, to] = names;
        if from.is_none() && !pipeline.is_some_and(begins_with_documents) {
            return Err(refuse("must specify 'from' field for a $lookup"));
        }
        let to = to.ok_or_else(|| refuse("must specify 'as' field for a $lookup"))?;
        for path in [local, other, Some(to)].into_iter().flatten() {
            check_path(path)?;
        }
        let fields = match (local, other) {
            (Some(local), Some(other)) => Some((Path::parse(local)?, other.into())),
            (None, None) if pipeline.is_some() => None,
            _ => {
                let message =
                    "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
                return Err(refuse(message));
            }
        };
        let stages = pipeline.unwrap_or(Doc::EMPTY);
        forbid_writes(elements(stages).into_iter(), ErrorCode::Location51047)?;
        let globals = self.globals.with_outer(variables.iter().map(|(name, _): &(Box<str>, BoundExpr)| &**name));
        let split = self.split(from.unwrap_or_default(), stages, fields.is_some(), &globals)?;
        let spec = LookupSpec {
            split,
            fields,
            variables,
            first_variable: self.globals.outer_count(),
            to: to.split('.').map(Into::into).collect(),
            globals: self.globals.clone(),
        };
        self.push(spec, "$lookup", argument);
        Ok(())
    }
}

/// A `$lookup` at work.
struct Lookup {
    spec: Rc<LookupSpec>,
    others: Others,
    /// What rows have asked so far, and the lists that they got.
    asked: Numbers,
    lists: Vec<OwnedValue>,
    size_bytes: usize,
    made: Made,
}

impl Lookup {
    /// The rows that belong to a row: `wanted` is a filter, where fields are to be equal.
    fn list(&self, wanted: Option<Doc<'_>>, values: Vec<Option<OwnedValue>>) -> Result<OwnedValue> {
        let wanted = wanted.map(|wanted| Filter::parse(wanted, &self.spec.globals)).transpose()?;
        self.spec.globals.set_outer(self.spec.first_variable, values);
        let rows = self.spec.split.rows(wanted, &self.others)?;
        let mut list = DocWriter::new();
        for row in 0..rows.rows() {
            list.begin_doc(&row.to_string());
            rows.write_row(row, &mut list);
            list.end();
            if list.len() > STAGE_SIZE_BYTES_MAX {
                let message = "The matches of a $lookup take more memory than they may";
                return Err(Error::new(ErrorCode::Location4568, message));
            }
        }
        Ok(Value::new_checked(Kind::Array, list.finish().view().as_bytes()).to_owned())
    }
}

/// The filter of what is equal to the values at a path; nothing is null.
fn equal_to(doc: Doc<'_>, local: &Path, other: &str) -> DocBuf {
    let mut values: Vec<Value<'_>> = Vec::new();
    walk_doc(doc, local, Leaf::Whole, &mut |value| {
        match value.map(|value| (value, value.as_array())) {
            Some((_, Some(elements))) => values.extend(elements.iter().map(|(_, element)| element)),
            Some((value, None)) => values.push(value),
            None => {}
        }
        false
    });
    if values.is_empty() {
        values.push(Value::NULL);
    }
    is_any_of(&values, other)
}

/// The filter of what is equal to one of those values.
pub(super) fn is_any_of(values: &[Value<'_>], other: &str) -> DocBuf {
    let mut filter = DocWriter::new();
    // In a list a regular expression would be a pattern.
    let has_patterns = values.iter().any(|value| value.kind() == Kind::Regex);
    if has_patterns {
        filter.begin_array("$or");
        for (place, value) in values.iter().enumerate() {
            filter.begin_doc(&place.to_string()).begin_doc(other).value("$eq", *value).end().end();
        }
        filter.end();
    } else {
        filter.begin_doc(other).begin_array("$in");
        for (place, value) in values.iter().enumerate() {
            filter.value(&place.to_string(), *value);
        }
        filter.end().end();
    }
    filter.finish()
}

impl Stage for Lookup {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        for row in 0..rows.rows() {
            let mut writer = DocWriter::new();
            rows.write_row(row, &mut writer);
            let doc = writer.finish();
            let wanted = self.spec.fields.as_ref().map(|(local, other)| equal_to(doc.view(), local, other));
            let mut question = DocWriter::new();
            wanted.iter().for_each(|wanted| {
                question.doc("", wanted.view());
            });
            let mut values = Vec::new();
            for (name, expr) in &self.spec.variables {
                let value = expr.value(doc.view())?;
                value.iter().for_each(|value| {
                    question.value(name, value.view());
                });
                values.push(value);
            }
            if self.size_bytes > STAGE_SIZE_BYTES_MAX {
                (self.asked, self.lists, self.size_bytes) = (Numbers::default(), Vec::new(), 0);
            }
            let question = question.finish();
            let (number, is_new) = self.asked.add(question.view().as_bytes());
            if is_new {
                let list = self.list(wanted.as_ref().map(DocBuf::view), values)?;
                self.size_bytes += list.tagged().len() + 2 * question.view().as_bytes().len();
                self.lists.push(list);
            }
            let list = self.lists.get(number).map(OwnedValue::view);
            self.made.push(with(doc.view(), &self.spec.to, list).view())?;
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}
