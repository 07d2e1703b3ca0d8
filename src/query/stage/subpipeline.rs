//! Pipelines inside stages. Stages never await: what they need from other collections is collected during parsing and
//! read before they run.

use super::aggregation::Aggregation;
use super::equal_rows::EqualRows;
use super::model::{Foreign, Others};
use super::parse::PipelineParser;
use super::table::{StagePlace, not_first, place_of};
use crate::block::Block;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::query::plan::FindCommand;
use crate::value::{Doc, DocBuf, DocWriter, FieldSet, Path, Value};

/// An array of some stages.
pub(super) fn array_of<'a>(stages: impl Iterator<Item = Value<'a>>) -> DocBuf {
    let mut array = DocWriter::new();
    for (place, stage) in stages.enumerate() {
        array.value(&place.to_string(), stage);
    }
    array.finish()
}

/// The elements of an array.
pub(super) fn elements(array: Doc<'_>) -> Vec<Value<'_>> {
    array.iter().map(|(_, element)| element).listed()
}

/// A pipeline over another collection. The part that is the same for all rows is read once; the rest runs for each row.
pub(super) struct SubPipeline {
    /// The index of its rows among the others.
    pub place: usize,
    /// The remaining stages, if there are any, or if rows must be equal in fields.
    rest: Option<Aggregation>,
}

impl PipelineParser<'_> {
    /// Splits a pipeline over another collection, which sees the variables of `globals`. With `equal`, rows must also be
    /// equal at that path, which is tested before all stages but filters.
    ///
    /// Errors: 40602, and those of stages. Errors of the part that is read in advance occur when it is read.
    pub fn split(
        &mut self,
        collection: &str,
        stages: Doc<'_>,
        equal: Option<&Path>,
        globals: &Globals,
    ) -> Result<SubPipeline> {
        let stages = elements(stages);
        let (mut once, mut rest, by_fields) = (stages.len(), None, equal.is_some());
        // Before any row is known, nothing depends on one.
        if by_fields || globals.outer_count() > 0 {
            let mut parser = PipelineParser::new(globals);
            parser.begin_find();
            parser.others = std::mem::take(&mut self.others);
            once = parser.rest(&stages, by_fields)?;
            self.others = std::mem::take(&mut parser.others);
            if once < stages.len() || by_fields {
                rest = Some(parser.finish("")?);
            }
        }
        let first = array_of(stages.into_iter().take(once));
        let (collection, globals) = (collection.into(), globals.without_outer());
        let mut fields = rest.as_ref().map_or(FieldSet::All, Aggregation::fields);
        equal.iter().for_each(|path| fields.add(path.first()));
        let filter = Filter::all();
        self.others.push(Foreign { collection, stages: first, globals, filter, fields });
        Ok(SubPipeline { place: self.others.len() - 1, rest })
    }

    /// Parses stages of which some may depend on a row. Returns how many leading stages are the same for all rows; these
    /// are then not among the steps. If rows must be equal in fields, only filters and the first stage are, for equality
    /// is tested behind filters.
    fn rest(&mut self, stages: &[Value<'_>], by_fields: bool) -> Result<usize> {
        let (known, count) = (self.others.len(), self.globals.outer_count());
        let mut outermost = self.globals.take_outer_read();
        let (mut once, mut is_front, mut is_same) = (0, true, !by_fields);
        for (place, stage) in stages.iter().enumerate() {
            let name = self.stage_at(*stage, place, place + 1 == stages.len())?;
            // Equality in fields is tested before it.
            if by_fields && self.source.is_none() && place_of(name) == Some(StagePlace::First) {
                return Err(not_first(name));
            }
            // Variables of pipelines inside the stage are its own.
            let read = self.globals.take_outer_read();
            outermost = outermost.min(read);
            is_same = is_same && read >= count;
            is_front = is_front && read >= count && (!by_fields || self.is_filter() || self.source.is_some());
            if is_front {
                once += 1;
                self.forget(known);
            }
        }
        self.globals.note_outer_read(outermost);
        if is_same {
            self.forget(known);
            return Ok(stages.len());
        }
        Ok(once)
    }
}

impl SubPipeline {
    /// The place of its rows among the others, if they are all that it gives.
    pub fn read_whole(&self) -> Option<usize> {
        self.rest.is_none().then_some(self.place)
    }

    /// The rows read in advance, or what the remaining stages make of them with the current values of variables.
    /// `wanted` selects the rows that are equal in fields; `known` is for the rows read in advance.
    ///
    /// Errors: those of the stages.
    pub fn rows(&self, wanted: Option<Filter>, others: &Others, known: &mut EqualRows) -> Result<Block> {
        let rows = others.get(self.place).cloned().unwrap_or_default();
        let Some(rest) = &self.rest else { return Ok(rows) };
        let mut find = FindCommand::clone(&rest.find);
        if let Some(wanted) = wanted {
            find.filter = Filter::and([wanted, find.filter]);
        }
        let rows = match rest.own_rows()? {
            Some(own) => own,
            None => known.narrow(rows, &find.filter),
        };
        rest.run(find, rows, others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::expr::samples::globals;
    use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

    /// What a `$lookup` reads of its collection.
    fn foreign(lookup: RawDocumentBuf) -> Foreign {
        let mut lookup = lookup;
        lookup.append(bson::cstr!("from"), "others");
        lookup.append(bson::cstr!("as"), "found");
        let pipeline = rawdoc! { "0": { "$lookup": lookup } };
        let parsed = Aggregation::parse(Doc::parse(pipeline.as_bytes()).unwrap(), &globals(), "t").unwrap();
        parsed.others.last().cloned().unwrap()
    }

    fn read_of(lookup: RawDocumentBuf) -> FieldSet {
        foreign(lookup).fields
    }

    fn only(names: &[&str]) -> FieldSet {
        FieldSet::Only(names.iter().map(|name| (*name).into()).collect())
    }

    #[test]
    fn of_another_collection_only_the_fields_are_read_that_the_pipeline_reads() {
        let correlated = rawdoc! { "$match": { "a.x": 1, "$expr": { "$eq": ["$b.y", "$$k"] } } };
        let k = rawdoc! { "k": "$k" };
        let of_group = rawdoc! { "let": k.clone(), "pipeline": [correlated.clone(), { "$group": { "_id": "$c", "n": { "$max": "$d.e" } } }] };
        assert_eq!(read_of(of_group), only(&["a", "b", "c", "d"]));
        let sorted = rawdoc! { "let": k.clone(), "pipeline": [correlated.clone(), { "$sort": { "s": 1 } }, { "$project": { "p": 1 } }] };
        assert_eq!(read_of(sorted), only(&["_id", "a", "b", "p", "s"]));
        let counted = rawdoc! { "localField": "k", "foreignField": "f.g", "pipeline": [{ "$count": "n" }] };
        assert_eq!(read_of(counted), only(&["f"]));
        let whole = rawdoc! { "let": k, "pipeline": [correlated] };
        assert_eq!(read_of(whole), FieldSet::All);
        assert_eq!(read_of(rawdoc! { "localField": "k", "foreignField": "f" }), FieldSet::All);
        assert_eq!(read_of(rawdoc! { "pipeline": [{ "$project": { "p": 1 } }] }), FieldSet::All);
    }
    #[test]
    fn stages_in_front_of_the_first_that_reads_a_variable_or_chance_are_run_once() {
        let once = |stages: &[RawDocumentBuf], more: RawDocumentBuf| {
            let mut lookup = more;
            let mut list = RawArrayBuf::new();
            stages.iter().for_each(|stage| list.push(stage.clone()));
            lookup.append(bson::cstr!("pipeline"), list);
            foreign(lookup).stages.view().iter().count()
        };
        let group = rawdoc! { "$group": { "_id": "$a", "n": { "$max": "$b" } } };
        let sort = rawdoc! { "$sort": { "n": 1 } };
        let by_variable = rawdoc! { "$match": { "$expr": { "$eq": ["$_id", "$$k"] } } };
        let k = || rawdoc! { "let": { "k": "$k" } };
        assert_eq!(once(&[group.clone(), sort.clone(), by_variable.clone(), sort.clone()], k()), 2);
        assert_eq!(once(&[by_variable.clone(), group.clone()], k()), 0);
        assert_eq!(once(&[sort.clone(), rawdoc! { "$sample": { "size": 2 } }, by_variable.clone()], k()), 1);
        assert_eq!(once(&[rawdoc! { "$set": { "r": { "$rand": {} } } }, by_variable.clone()], k()), 0);
        let inner = rawdoc! { "$lookup": { "from": "others", "let": { "i": "$n" }, "pipeline": [by_variable.clone()], "as": "x" } };
        assert_eq!(once(&[group.clone(), inner, sort.clone()], k()), 1, "an inner pipeline reads it");
        let bound = rawdoc! { "$lookup": { "from": "others", "let": { "k": "$n" }, "pipeline": [by_variable.clone()], "as": "x" } };
        assert_eq!(
            once(&[group.clone(), bound, by_variable], k()),
            2,
            "the inner pipeline has a variable of this name"
        );
        let fields = rawdoc! { "localField": "k", "foreignField": "_id" };
        assert_eq!(once(&[rawdoc! { "$match": { "b": 1 } }, group, sort], fields), 1);
    }
}
