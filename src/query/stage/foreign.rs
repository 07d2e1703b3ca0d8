//! What a pipeline reads besides its own collection. Stages never await: what they need of elsewhere is asked for before they begin.

use super::aggregation::{Aggregation, Shown, Step};
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
            Step::Lookup(spec) => needed.push(spec.foreign.clone()),
            Step::Union(foreign) => needed.push(foreign.clone()),
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

/// True where somewhere in it a variable is read that is not the server's own, whose names are in capitals.
pub(super) fn reads_variables(doc: Doc<'_>) -> bool {
    doc.iter().any(|(_, value)| match (value.as_str(), value.as_doc().or(value.as_array())) {
        (Some(text), _) => {
            text.strip_prefix("$$").is_some_and(|name| !name.starts_with(|first: char| first.is_ascii_uppercase()))
        }
        (_, Some(inner)) => reads_variables(inner),
        _ => false,
    })
}
