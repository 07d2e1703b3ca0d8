//! `$lookup`: adds to each row a list of the matching rows of another collection.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_lookup.cpp. The other rows are read before the first row
//! comes: the result of the whole pipeline if it reads no variable, otherwise of its leading stages that read none.
//! The rest of the pipeline is also parsed once, and runs for each row with its values, but only once for rows with the
//! same values. Rows of further collections are read in advance by the same rule.

use std::rc::Rc;

use super::equal_rows::EqualRows;
use super::model::Others;
use super::parse::PipelineParser;
use super::reshape::{OneByOne, changed_at, with};
use super::running::Stage;
use super::spec::Spec;
use super::subpipeline::SubPipeline;
use super::table::forbid_writes;
use super::union::begins_with_documents;
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Globals};
use crate::query::filter::Filter;
use crate::query::plan::Origin;
use crate::value::{Doc, DocBuf, DocWriter, Interner, Kind, Leaf, OwnedValue, Path, Value, check_path, walk_doc};

/// The specification of a `$lookup`.
struct LookupSpec {
    split: SubPipeline,
    /// The fields that must be equal: of a row, and of the other rows.
    fields: Option<(Path, Path)>,
    /// The variables of its `let`, and the number of the first one.
    variables: Vec<(Box<str>, BoundExpr)>,
    first_variable: usize,
    /// The path of the list.
    to: Vec<Box<str>>,
    globals: Globals,
}

impl Spec for LookupSpec {
    fn passes_filters(&self) -> Option<bool> {
        Some(false)
    }

    fn origin(&self, name: &str) -> Origin<'_> {
        changed_at(name, [&self.to])
    }

    fn looked_up(&self) -> Option<usize> {
        Some(self.split.place)
    }

    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage> {
        Box::new(Lookup {
            spec: self,
            others: Others::clone(others),
            equal_rows: EqualRows::default(),
            asked: Interner::default(),
            lists: Vec::new(),
            size_bytes: 0,
            rows: OneByOne::default(),
        })
    }
}

fn refuse(message: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, message)
}

impl PipelineParser<'_> {
    /// `$lookup`.
    ///
    /// Errors: `FailedToParse`, `TypeMismatch`, 40602, those of expressions and paths. Errors of rows that are read in
    /// advance occur then.
    pub fn lookup(&mut self, argument: Value<'_>) -> Result<()> {
        let doc = argument.as_doc().ok_or_else(|| refuse("The $lookup stage specification must be an object"))?;
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
                    let (slot, _) = slot.ok_or_else(|| refuse(&["Unknown argument of $lookup: ", name].concat()))?;
                    let text = value.as_str().filter(|text| !text.is_empty());
                    *slot = Some(text.ok_or_else(|| refuse("$lookup arguments must be non-empty strings"))?);
                }
            }
        }
        let [from, local, other, to] = names;
        if from.is_none() && !pipeline.is_some_and(begins_with_documents) {
            return Err(refuse("$lookup needs the field 'from'"));
        }
        let to = to.ok_or_else(|| refuse("$lookup needs the field 'as'"))?;
        for path in [local, other, Some(to)].into_iter().flatten() {
            check_path(path)?;
        }
        let fields = match (local, other) {
            (Some(local), Some(other)) => Some((Path::parse(local)?, Path::parse(other)?)),
            (None, None) if pipeline.is_some() => None,
            _ => {
                let message =
                    "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
                return Err(refuse(message));
            }
        };
        let stages = pipeline.unwrap_or(Doc::EMPTY);
        forbid_writes(stages, ErrorCode::Location51047)?;
        let globals = self.globals.with_outer(variables.iter().map(|(name, _): &(Box<str>, BoundExpr)| &**name));
        let equal = fields.as_ref().map(|(_, other)| other);
        let split = self.split(from.unwrap_or_default(), stages, equal, &globals)?;
        let spec = LookupSpec {
            split,
            fields,
            variables,
            first_variable: self.globals.outer_count(),
            to: to.split('.').map(Into::into).listed(),
            globals: self.globals.clone(),
        };
        self.push(spec, "$lookup", argument);
        Ok(())
    }
}

/// A running `$lookup`.
struct Lookup {
    spec: Rc<LookupSpec>,
    others: Others,
    equal_rows: EqualRows,
    /// The distinct values of rows so far, and the lists for them.
    asked: Interner,
    lists: Vec<OwnedValue>,
    size_bytes: usize,
    rows: OneByOne,
}

impl Lookup {
    /// A row with its list, and whether that was looked up now.
    fn row(&mut self, doc: Doc<'_>) -> Result<(DocBuf, bool)> {
        let mut question = DocWriter::new();
        let wanted = self.spec.fields.as_ref().map(|(local, other)| {
            let wanted = values_at(doc, local);
            question.begin_array("");
            for (place, value) in wanted.iter().enumerate() {
                question.value(&place.to_string(), value.view());
            }
            question.end();
            Filter::equal_to_any(other, wanted, self.spec.globals.collation())
        });
        let mut values = Vec::new();
        for (name, expr) in &self.spec.variables {
            let value = expr.value(doc)?;
            value.iter().for_each(|value| {
                question.value(name, value.view());
            });
            values.push(value);
        }
        if self.size_bytes > STAGE_SIZE_BYTES_MAX {
            (self.asked, self.lists, self.size_bytes) = (Interner::default(), Vec::new(), 0);
        }
        let question = question.finish();
        let (number, is_new) = self.asked.add(question.view().as_bytes());
        if is_new {
            let list = self.list(wanted, values)?;
            self.size_bytes += list.tagged().len() + 2 * question.view().as_bytes().len();
            self.lists.push(list);
        }
        let list = self.lists.get(number).map(OwnedValue::view);
        Ok((with(doc, &self.spec.to, list), is_new))
    }

    /// The rows that match a row; `wanted` is the filter for equal fields.
    fn list(&mut self, wanted: Option<Filter>, values: Vec<Option<OwnedValue>>) -> Result<OwnedValue> {
        self.spec.globals.set_outer(self.spec.first_variable, values);
        let rows = self.spec.split.rows(wanted, &self.others, &mut self.equal_rows)?;
        let mut list = DocWriter::new();
        for row in 0..rows.rows() {
            list.begin_doc(&row.to_string());
            rows.write_row(row, &mut list);
            list.end();
            if list.len() > STAGE_SIZE_BYTES_MAX {
                let message = "The matches of a $lookup exceed the memory limit";
                return Err(Error::new(ErrorCode::Location4568, message));
            }
        }
        Ok(Value::new_checked(Kind::Array, list.finish().view().as_bytes()).to_owned())
    }
}

/// The values at a path, for which rows are looked up; a missing value counts as null.
fn values_at(doc: Doc<'_>, local: &Path) -> Vec<OwnedValue> {
    let mut values = Vec::new();
    walk_doc(doc, local, Leaf::Whole, &mut |value| {
        match value.map(|value| (value, value.as_array())) {
            Some((_, Some(elements))) => values.extend(elements.iter().map(|(_, element)| element.to_owned())),
            Some((value, None)) => values.push(value.to_owned()),
            None => {}
        }
        false
    });
    if values.is_empty() {
        values.push(OwnedValue::null());
    }
    values
}

impl Stage for Lookup {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.rows.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        let mut rows = std::mem::take(&mut self.rows);
        let taken = rows.take(&mut |doc| self.row(doc));
        self.rows = rows;
        taken
    }
}
