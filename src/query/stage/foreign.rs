//! What a pipeline reads besides its own collection. Stages never await: what they need of elsewhere is asked for before they begin.

use super::aggregation::{Aggregation, Shown, Step};
use super::graph_lookup::restriction;
use super::parse::Parser;
use crate::block::Block;
use crate::error::Result;
use crate::query::expr::Globals;
use crate::value::{Doc, DocBuf, DocWriter, Value};

/// A pipeline over another collection whose rows a stage needs.
#[derive(Clone)]
pub struct Foreign {
    /// The collection; empty where the pipeline has documents of its own.
    pub collection: Box<str>,
    /// The stages, an array.
    stages: DocBuf,
    globals: Globals,
}

impl Foreign {
    pub(super) fn new(collection: &str, stages: DocBuf, globals: &Globals) -> Foreign {
        Foreign { collection: collection.into(), stages, globals: globals.clone() }
    }

    /// The pipeline, over a collection whose rows have this time field.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn parse(&self, time_field: &str) -> Result<Aggregation> {
        let mut parsed = Aggregation::parse(self.stages.view(), &self.globals, time_field)?;
        parsed.find.collation = self.globals.collation().clone();
        Ok(parsed)
    }
}

/// What those steps need, in their order.
pub(super) fn foreign_of(steps: &[Shown], needed: &mut Vec<Foreign>) {
    for (step, _) in steps {
        match step {
            Step::Lookup(spec) => spec.split.needs(needed),
            Step::Union(split) => split.needs(needed),
            Step::Graph(spec) => spec.split.needs(needed),
            Step::Facet(branches) => branches.iter().for_each(|(_, steps)| foreign_of(steps, needed)),
            _ => {}
        }
    }
}

/// Some of the stages of an array, as an array.
pub(super) fn array_of<'a>(stages: impl Iterator<Item = Value<'a>>) -> DocBuf {
    let mut array = DocWriter::new();
    for (place, stage) in stages.enumerate() {
        array.value(&place.to_string(), stage);
    }
    array.finish()
}

/// A pipeline over another collection, of which a part may depend on a row.
#[derive(Clone)]
pub(super) struct Split {
    /// What is the same for all rows, which is read once.
    pub foreign: Foreign,
    /// The stages that are left for each row, an array.
    pub rest: DocBuf,
    /// What these read of other collections: the same for all rows as well, and read before the first one.
    pub nested: Vec<Foreign>,
}

impl Split {
    /// All of a pipeline where it is a `whole` one and reads no variable, else the filters in front that read none, and what is left.
    pub fn new(collection: &str, stages: &[Value<'_>], whole: bool, globals: &Globals) -> Split {
        let same_for_all = |stage: &&Value<'_>| !reads_variables(**stage, &[]);
        let is_first = |stage: &&Value<'_>| {
            let is_filter =
                stage.as_doc().is_some_and(|stage| stage.get("$match").or(stage.get("$documents")).is_some());
            is_filter && same_for_all(stage)
        };
        let all = whole && stages.iter().all(|stage| same_for_all(&stage));
        let first = if all { stages.len() } else { stages.iter().take_while(is_first).count() };
        let (first, rest) = stages.split_at(first);
        let mut nested = Vec::new();
        nested_in(rest, globals, &mut nested);
        let foreign = Foreign::new(collection, array_of(first.iter().copied()), globals);
        Split { foreign, rest: array_of(rest.iter().copied()), nested }
    }

    /// The rows that were read, or what the rest of the stages makes of them.
    ///
    /// Errors: those of the stages.
    pub fn rows(&self, rows: Block, nested: Vec<Block>) -> Result<Block> {
        match self.rest.view().is_empty() {
            true => Ok(rows),
            false => self.run(&[], &self.foreign.globals, rows, nested),
        }
    }

    /// What its rows come from, and then what is left of its stages.
    fn needs(&self, needed: &mut Vec<Foreign>) {
        needed.push(self.foreign.clone());
        needed.extend(self.nested.iter().cloned());
    }

    /// What is left of the stages, behind others, over the rows that were read.
    ///
    /// Errors: those of the stages.
    pub fn run(&self, first: &[Doc<'_>], globals: &Globals, rows: Block, nested: Vec<Block>) -> Result<Block> {
        let rest = self.rest.view();
        let stages = array_of(first.iter().map(|stage| stage.as_value()).chain(rest.iter().map(|(_, stage)| stage)));
        let pipeline = Aggregation::parse_for_row(stages.view(), globals)?;
        let rows = pipeline.own_rows()?.unwrap_or(rows);
        pipeline.run_over(rows, nested)
    }
}

impl Parser<'_> {
    /// A pipeline over another collection: as long as no row is known, nothing of it depends on one.
    pub fn split(&self, collection: &str, stages: Doc<'_>) -> Split {
        if self.for_row {
            return Split::new(collection, &elements(stages), true, self.globals);
        }
        let foreign = Foreign::new(collection, array_of(elements(stages).into_iter()), self.globals);
        Split { foreign, rest: array_of(std::iter::empty()), nested: Vec::new() }
    }
}

/// What stages that depend on a row read of other collections, in the order in which `foreign_of` has it of the same stages. What does
/// not parse is found when the stages are.
fn nested_in(stages: &[Value<'_>], globals: &Globals, needed: &mut Vec<Foreign>) {
    for (name, argument) in stages.iter().filter_map(|stage| stage.as_doc()?.iter().next()) {
        let field = |name: &str| argument.as_doc().and_then(|doc| doc.get(name));
        let mut stages = field("pipeline").and_then(Value::as_array).map(Doc::to_owned);
        let (collection, whole) = match name {
            "$lookup" => (field("from"), field("localField").is_none()),
            "$unionWith" => (argument.as_str().map(|_| argument).or(field("coll")), true),
            "$graphLookup" => {
                stages = argument.as_doc().map(restriction);
                (field("from"), true)
            }
            "$facet" => {
                for (_, branch) in argument.as_doc().into_iter().flatten() {
                    nested_in(&branch.as_array().map_or_else(Vec::new, elements), globals, needed);
                }
                continue;
            }
            _ => continue,
        };
        let stages = stages.as_ref().map_or_else(Vec::new, |stages| elements(stages.view()));
        Split::new(collection.and_then(Value::as_str).unwrap_or_default(), &stages, whole, globals).needs(needed);
    }
}

/// The elements of an array.
pub(super) fn elements(array: Doc<'_>) -> Vec<Value<'_>> {
    array.iter().map(|(_, element)| element).collect()
}

/// True where somewhere in it a variable is read that is neither `bound` in it nor the server's own, whose names are in capitals.
fn reads_variables(value: Value<'_>, bound: &[&str]) -> bool {
    if let Some(name) = value.as_str().and_then(|text| text.strip_prefix("$$")) {
        let name = name.split('.').next().unwrap_or_default();
        return !name.starts_with(|first: char| first.is_ascii_uppercase()) && !bound.contains(&name);
    }
    let Some(doc) = value.as_doc().or(value.as_array()) else { return false };
    let mut inside = bound.to_vec();
    for (name, value) in doc {
        match name {
            "vars" | "let" => inside.extend(value.as_doc().into_iter().flatten().map(|(name, _)| name)),
            "as" if doc.get("in").or(doc.get("cond")).is_some() => inside.extend(value.as_str()),
            "input" => inside.extend(["this", "value"]),
            _ => {}
        }
    }
    // These are evaluated before anything is bound.
    let is_outside = |name: &str| matches!(name, "vars" | "let" | "input" | "initialValue");
    doc.iter().any(|(name, value)| reads_variables(value, if is_outside(name) { bound } else { &inside }))
}
