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
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Expr, Globals, Variable};
use crate::query::filter::Filter;
use crate::query::plan::Origin;
use crate::value::{Doc, DocBuf, DocWriter, Interner, Kind, Leaf, OwnedValue, Path, Value, check_path, walk_doc};

/// Rows whose lists have more bytes together go on in several blocks: an `$unwind` makes rows of all elements of a block.
const LISTS_BYTES_MAX: usize = 4 << 20;

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
            lists: LookupLists::default(),
            columns: ByColumns::default(),
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
    lists: LookupLists,
    /// Rows whose lists become a column, and others.
    columns: ByColumns,
    rows: OneByOne,
}

/// The lists found so far, by the values of rows.
#[derive(Default)]
struct LookupLists {
    asked: Interner,
    found: Vec<OwnedValue>,
    size_bytes: usize,
}

/// Rows of which the values that lists are looked up for are columns.
#[derive(Default)]
struct ByColumns {
    rows: Block,
    /// What the first path reaches, if there is one, and the values of the variables.
    values: Vec<Column>,
    /// How many rows have gone on.
    begun: usize,
    /// The list of each row behind these so far, and the bytes that they have together.
    numbers: Vec<usize>,
    list_bytes: usize,
    /// The list of each entry, if the values are a dictionary.
    of_entries: Vec<Option<usize>>,
}

/// What is asked of the other rows: the values at the path, unless fields need not be equal, and those of the variables.
fn question(wanted: Option<&[OwnedValue]>, variables: &[Option<OwnedValue>]) -> DocBuf {
    let mut question = DocWriter::new();
    if let Some(wanted) = wanted {
        question.begin_array("");
        for (place, value) in wanted.iter().enumerate() {
            question.value(&place.to_string(), value.view());
        }
        question.end();
    }
    for (number, value) in variables.iter().enumerate() {
        if let Some(value) = value {
            question.value(&number.to_string(), value.view());
        }
    }
    question.finish()
}

impl LookupSpec {
    /// The columns of a block for which lists are looked up. `None` if a value may be an array, of which each element counts, or if the
    /// list has a path.
    fn columns_of(&self, rows: &Block) -> Result<Option<Vec<Column>>> {
        let mut columns = Vec::with_capacity(self.variables.len() + 1);
        if self.to.len() > 1 {
            return Ok(None);
        }
        if let Some((local, _)) = &self.fields {
            // A number could lead into an array.
            if local.components().iter().any(|component| component.index().is_some()) {
                return Ok(None);
            }
            let path = local.components().iter().map(|component| component.name().into()).listed();
            let local = BoundExpr::new(Expr::Field(Variable::Root, path), self.globals.clone()).column(rows)?;
            if has_arrays(&local) {
                return Ok(None);
            }
            columns.push(local);
        }
        for (_, variable) in &self.variables {
            columns.push(variable.column(rows)?);
        }
        Ok(Some(columns))
    }
}

/// True if a value is an array.
fn has_arrays(column: &Column) -> bool {
    match column.data() {
        ColumnData::Bson(cells) => (0..cells.len()).any(|row| cells.get(row).first() == Some(&Kind::Array.byte())),
        ColumnData::Dictionary(_, entries) => has_arrays(entries),
        _ => false,
    }
}

impl Lookup {
    /// The number of the list for what is asked, and whether that was looked up now.
    fn ask(&mut self, wanted: Option<Vec<OwnedValue>>, variables: Vec<Option<OwnedValue>>) -> Result<(usize, bool)> {
        let question = question(wanted.as_deref(), &variables);
        let (number, is_new) = self.lists.asked.add(question.view().as_bytes());
        if is_new {
            let filter = self
                .spec
                .fields
                .as_ref()
                .zip(wanted)
                .map(|((_, other), wanted)| Filter::equal_to_any(other, wanted, self.spec.globals.collation()));
            let list = self.list(filter, variables)?;
            self.lists.size_bytes += list.tagged().len() + 2 * question.view().as_bytes().len();
            self.lists.found.push(list);
        }
        Ok((number, is_new))
    }

    /// A row with its list, and whether that was looked up now.
    fn row(&mut self, doc: Doc<'_>) -> Result<(DocBuf, bool)> {
        let wanted = self.spec.fields.as_ref().map(|(local, _)| values_at(doc, local));
        let variables = self.spec.variables.iter().map(|(_, expr)| expr.value(doc)).try_listed()?;
        if self.lists.size_bytes > STAGE_SIZE_BYTES_MAX {
            self.lists = LookupLists::default();
        }
        let (number, is_new) = self.ask(wanted, variables)?;
        let list = self.lists.found.get(number).map(OwnedValue::view);
        Ok((with(doc, &self.spec.to, list), is_new))
    }

    /// Goes on with the rows whose lists become a column: an empty block once a list was looked up, otherwise rows with their lists.
    fn by_columns(&mut self) -> Result<Option<Block>> {
        let mut scratch = Vec::new();
        let mut rows = std::mem::take(&mut self.columns);
        while rows.next() < rows.rows.rows() {
            let is_full = self.lists.size_bytes > STAGE_SIZE_BYTES_MAX;
            if is_full || rows.list_bytes > LISTS_BYTES_MAX {
                let made = rows.with_lists(&self.spec.to, &self.lists.found);
                if is_full {
                    self.lists = LookupLists::default();
                    rows.of_entries.clear();
                }
                if made.rows() > 0 {
                    self.columns = rows;
                    return Ok(Some(made));
                }
            }
            let row = rows.next();
            let entry = rows.entry(row);
            let known = entry.and_then(|entry| rows.of_entries.get(entry).copied().flatten());
            let (number, is_new) = match known {
                Some(number) => (number, false),
                None => {
                    let values = rows.values.iter().map(|column| column.value(row, &mut scratch).map(Value::to_owned));
                    let mut values = values.listed();
                    let wanted =
                        self.spec.fields.is_some().then(|| vec![values.remove(0).unwrap_or(OwnedValue::null())]);
                    self.ask(wanted, values)?
                }
            };
            rows.numbers.push(number);
            rows.list_bytes += self.lists.found.get(number).map_or(0, |list| list.tagged().len());
            if let (Some(entry), None) = (entry, known) {
                rows.of_entries.resize(rows.of_entries.len().max(entry + 1), None);
                rows.of_entries.get_mut(entry).into_iter().for_each(|known| *known = Some(number));
            }
            if is_new {
                self.columns = rows;
                return Ok(Some(Block::default()));
            }
        }
        Ok(Some(rows.with_lists(&self.spec.to, &self.lists.found)).filter(|made| made.rows() > 0))
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

impl ByColumns {
    /// The entry of a row, if the values are a dictionary.
    fn entry(&self, row: usize) -> Option<usize> {
        let [column] = self.values.as_slice() else { return None };
        let (ColumnData::Dictionary(index, _), None) = (column.data(), column.presence()) else { return None };
        index.get(row).map(|entry| *entry as usize)
    }

    /// The next row that has no list yet.
    fn next(&self) -> usize {
        self.begun + self.numbers.len()
    }

    /// The rows that have lists, with these, which are then done. Equal lists are one entry of a dictionary.
    fn with_lists(&mut self, to: &[Box<str>], lists: &[OwnedValue]) -> Block {
        let (mut entries, mut places, mut index) = (ColumnBuilder::new(), vec![None; lists.len()], Vec::new());
        for number in &self.numbers {
            let (Some(place), Some(list)) = (places.get_mut(*number), lists.get(*number)) else { continue };
            index.push(*place.get_or_insert_with(|| {
                entries.push(list.view());
                (entries.len() - 1) as u32
            }));
        }
        let are_all = self.begun == 0 && self.next() == self.rows.rows();
        let mut made = match are_all {
            true => std::mem::take(&mut self.rows),
            false => self.rows.slice(self.begun..self.next()),
        };
        let lists = Column::new(ColumnData::Dictionary(index, Box::new(entries.finish())), None);
        to.iter().for_each(|name| made.set_column(name, lists.clone()));
        (self.begun, self.list_bytes) = (self.next(), 0);
        self.numbers.clear();
        made
    }
}

impl Stage for Lookup {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        match self.spec.columns_of(&rows)? {
            Some(values) => self.columns = ByColumns { rows, values, ..ByColumns::default() },
            None => self.rows.push(rows),
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        let mut rows = std::mem::take(&mut self.rows);
        let taken = rows.take(&mut |doc| self.row(doc));
        self.rows = rows;
        match taken? {
            Some(taken) => Ok(Some(taken)),
            None => self.by_columns(),
        }
    }
}
