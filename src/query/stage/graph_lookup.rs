//! `$graphLookup`: adds to each row a list of the rows of another collection that can be reached from it.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_graph_lookup.cpp. All rows of the other collection are
//! there before the first row comes. They are identified by their number, because measurements need no `_id`.

use std::rc::Rc;

use super::equal_rows::EqualRows;
use super::model::Others;
use super::parse::PipelineParser;
use super::reshape::{OneByOne, changed_at, with};
use super::running::Stage;
use super::spec::Spec;
use super::subpipeline::{SubPipeline, array_of};
use crate::block::{Bitmap, Block};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, Globals};
use crate::query::filter::Filter;
use crate::query::plan::Origin;
use crate::value::{
    Doc, DocBuf, DocWriter, Interner, Kind, Leaf, Number, OwnedValue, Path, Value, append_key, check_path, walk_doc,
};

/// The specification of a `$graphLookup`.
struct GraphSpec {
    split: SubPipeline,
    start: BoundExpr,
    from: Path,
    to: Path,
    depth_max: i64,
    depth_field: Option<Vec<Box<str>>>,
    /// The path of the list.
    list: Vec<Box<str>>,
    globals: Globals,
}

impl Spec for GraphSpec {
    fn passes_filters(&self) -> Option<bool> {
        Some(false)
    }

    fn origin(&self, name: &str) -> Origin<'_> {
        changed_at(name, [&self.list])
    }

    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage> {
        let (read, equal_rows) = (Some(Others::clone(others)), EqualRows::default());
        Box::new(GraphLookup { spec: self, others: None, equal_rows, read, rows: OneByOne::default() })
    }
}

/// The filter on the other rows, as pipeline stages.
fn restriction(doc: Doc<'_>) -> DocBuf {
    let mut filter = DocWriter::new();
    if let Some(wanted) = doc.get("restrictSearchWithMatch") {
        filter.value("$match", wanted);
    }
    let filter = filter.finish();
    array_of(Some(filter.view().as_value()).filter(|_| !filter.view().is_empty()).into_iter())
}

impl PipelineParser<'_> {
    /// `$graphLookup`.
    ///
    /// Errors: `FailedToParse`, 40100 to 40105, 40185, and those of expressions, paths and filters.
    pub fn graph_lookup(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Error::new(code, message);
        let message = "The $graphLookup stage specification must be an object";
        let doc = argument.as_doc().ok_or_else(|| refuse(ErrorCode::FailedToParse, message))?;
        let known = ["from", "as", "connectFromField", "connectToField", "depthField"];
        let (mut names, mut start, mut depth_max) = ([None; 5], None, i64::MAX);
        for (name, value) in doc {
            match name {
                "startWith" => start = Some(self.expr(value)?),
                "maxDepth" => {
                    let message = "maxDepth must be a non-negative 64-bit integer";
                    let number = Number::of(value).ok_or_else(|| refuse(ErrorCode::Location40100, message))?;
                    if number.compare(Number::Integer(0)).is_lt() {
                        return Err(refuse(ErrorCode::Location40101, message));
                    }
                    depth_max = number.whole().ok_or_else(|| refuse(ErrorCode::Location40102, message))?;
                }
                "restrictSearchWithMatch" if value.as_doc().is_none() => {
                    let message = "restrictSearchWithMatch must be an object";
                    return Err(refuse(ErrorCode::Location40185, message));
                }
                "restrictSearchWithMatch" => drop(Filter::parse(value.as_doc().unwrap_or(Doc::EMPTY), self.globals)?),
                _ => {
                    let slot = names.iter_mut().zip(known).find(|(_, known)| *known == name);
                    let unknown =
                        || refuse(ErrorCode::Location40104, &["Unknown argument of $graphLookup: ", name].concat());
                    let message = "The names and paths of $graphLookup must be strings";
                    let text = value.as_str().ok_or_else(|| refuse(ErrorCode::Location40103, message));
                    *slot.ok_or_else(unknown)?.0 = Some(text?);
                }
            }
        }
        let [Some(collection), Some(list), Some(from), Some(to), depth_field] = names else {
            let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField' and 'connectToField'";
            return Err(refuse(ErrorCode::Location40105, message));
        };
        let message = "$graphLookup requires 'startWith'";
        let start = start.ok_or_else(|| refuse(ErrorCode::Location40105, message))?;
        for path in [Some(list), Some(from), Some(to), depth_field].into_iter().flatten() {
            check_path(path)?;
        }
        let parts = |path: &str| path.split('.').map(Into::into).listed();
        let spec = GraphSpec {
            split: self.split(collection, restriction(doc).view(), None, self.globals)?,
            start,
            from: Path::parse(from)?,
            to: Path::parse(to)?,
            depth_max,
            depth_field: depth_field.map(parts),
            list: parts(list),
            globals: self.globals.clone(),
        };
        self.push(spec, "$graphLookup", argument);
        Ok(())
    }
}

/// A running `$graphLookup`.
struct GraphLookup {
    spec: Rc<GraphSpec>,
    /// The other rows, and before the first row comes, which are read.
    others: Option<Block>,
    equal_rows: EqualRows,
    read: Option<Others>,
    rows: OneByOne,
}

/// The distinct values visited.
#[derive(Default)]
struct Met {
    known: Interner,
    new: Vec<OwnedValue>,
}

impl Met {
    /// For an array, each element.
    fn add(&mut self, value: Value<'_>) {
        if let Some(array) = value.as_array() {
            return array.iter().for_each(|(_, element)| self.add_one(element));
        }
        self.add_one(value);
    }

    fn add_one(&mut self, value: Value<'_>) {
        let mut key = Vec::new();
        append_key(&mut key, value);
        if self.known.add(&key).1 {
            self.new.push(value.to_owned());
        }
    }
}

impl GraphLookup {
    /// The rows that can be reached from a row.
    fn list(&mut self, others: &Block, doc: Doc<'_>) -> Result<OwnedValue> {
        let (mut met, mut visited) = (Met::default(), Bitmap::filled(others.rows(), false));
        if let Some(start) = self.spec.start.value(doc)? {
            met.add(start.view());
        }
        let (mut list, mut count, mut depth) = (DocWriter::new(), 0, 0);
        while depth <= self.spec.depth_max && !met.new.is_empty() {
            let wanted = std::mem::take(&mut met.new);
            let filter = Filter::equal_to_any(&self.spec.to, wanted, self.spec.globals.collation());
            // The candidates of a single test for equality are the rows that pass it.
            let found = match self.equal_rows.candidates(others, &filter) {
                Some(found) => found,
                None => filter.select(others)?,
            };
            for row in found.iter() {
                if visited.get(row) {
                    continue;
                }
                visited.set(row, true);
                let mut writer = DocWriter::new();
                others.write_row(row, &mut writer);
                let mut found = writer.finish();
                walk_doc(found.view(), &self.spec.from, Leaf::Whole, &mut |value| {
                    value.into_iter().for_each(|value| met.add(value));
                    false
                });
                if let Some(field) = &self.spec.depth_field {
                    found = with(found.view(), field, Some(OwnedValue::int64(depth).view()));
                }
                list.doc(&count.to_string(), found.view());
                count += 1;
                if list.len() > STAGE_SIZE_BYTES_MAX {
                    let message = "$graphLookup exceeded the memory limit";
                    return Err(Error::new(ErrorCode::Location40099, message));
                }
            }
            depth += 1;
        }
        Ok(Value::new_checked(Kind::Array, list.finish().view().as_bytes()).to_owned())
    }
}

impl Stage for GraphLookup {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        if let Some(others) = self.read.take() {
            self.others = Some(self.spec.split.rows(None, &others, &mut EqualRows::default())?);
        }
        self.rows.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        let mut rows = std::mem::take(&mut self.rows);
        let others = self.others.take().unwrap_or_default();
        let taken = rows.take(&mut |doc| {
            let list = self.list(&others, doc)?;
            Ok((with(doc, &self.spec.list, Some(list.view())), true))
        });
        (self.rows, self.others) = (rows, Some(others));
        taken
    }
}
