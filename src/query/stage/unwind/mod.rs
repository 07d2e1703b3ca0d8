//! `$unwind`: a row for each element of an array.
//!
//! If the pipeline makes the array in front of it, of the fields of an object or as a list of expressions, that object is
//! read in its place: its fields are mostly columns.

// Loaded later.

mod fields;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use kernels::gather;

use self::fields::{WantedNames, unwound_columns};
use super::model::Others;
use super::parse::PipelineParser;
use super::reshape::{changed_at, with};
use super::running::Stage;
use super::spec::{Spec, Step};
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::exec::Flow;
use crate::query::expr::{BoundExpr, not_an_object};
use crate::query::filter::Filter;
use crate::query::plan::{Origin, Projection};
use crate::value::{Doc, DocBuf, DocWriter, FieldSet, Kind, OwnedValue, Value, check_path};

impl PipelineParser<'_> {
    /// `$unwind`.
    ///
    /// Errors: as `UnwindSpec::parse`.
    pub fn unwind(&mut self, argument: Value<'_>) -> Result<()> {
        let mut spec = UnwindSpec::parse(argument)?;
        let reads_fields = match self.steps.last_mut() {
            Some((Step::Find(find), _)) => spec.reads_fields(&mut find.projection),
            _ => false,
        };
        if reads_fields {
            let mut shown = DocWriter::new();
            shown.string("path", &["$", &spec.path.concat()].concat());
            shown.bool("pairs", spec.from == UnwoundFrom::Pairs);
            spec.index.iter().for_each(|index| _ = shown.string("includeArrayIndex", &index.join(".")));
            self.push(spec, "$_internalUnwindFields", shown.finish().view().as_value());
        } else {
            self.push(spec, "$unwind", argument);
        }
        Ok(())
    }
}

/// `$unwind`: a row for each element of an array.
struct UnwindSpec {
    /// The path without its `$`, in parts.
    path: Vec<Box<str>>,
    /// The path of the element's position.
    index: Option<Vec<Box<str>>>,
    /// True to keep rows without elements.
    keeps_empty: bool,
    from: UnwoundFrom,
    /// Pairs whose name this filter does not pass are dropped behind the stage.
    names: Filter,
}

/// The fields of a pair.
const NAME: &str = "k";
const VALUE: &str = "v";

/// What there is a row for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnwoundFrom {
    /// Each element of an array.
    Array,
    /// The value of each field of an object.
    Values,
    /// Each field of an object, as `$objectToArray` shows it.
    Pairs,
}

impl UnwindSpec {
    /// Makes a projection that computes the array compute an object instead, whose fields are its elements: it can be columns.
    /// False if that is not possible.
    fn reads_fields(&mut self, projection: &mut Projection) -> bool {
        let [name] = &self.path[..] else { return false };
        let Some(expr) = projection.computed_field(name).filter(|_| !self.keeps_empty) else { return false };
        let Some((fields, are_pairs)) = expr.expr().fields_in_place_of_elements() else { return false };
        // Pairs are counted without the fields that a row lacks; elements are all there.
        if are_pairs && self.index.is_some() {
            return false;
        }
        *expr = BoundExpr::new(fields, expr.globals().clone());
        self.from = if are_pairs { UnwoundFrom::Pairs } else { UnwoundFrom::Values };
        true
    }

    /// True if pairs of this name may be kept.
    fn wants(&self, name: &str) -> bool {
        let mut row = DocWriter::new();
        row.begin_doc(&self.path.concat()).string(NAME, name).end();
        self.names.matches_doc(row.finish().view()).unwrap_or(true)
    }

    /// Parses the argument of `$unwind`.
    ///
    /// Errors: 15981, 28808 to 28822, and those of paths.
    fn parse(argument: Value<'_>) -> Result<UnwindSpec> {
        let wrong = |code, message: &str| Error::new(code, message);
        let (mut path, mut index, mut keeps_empty) = (argument.as_str(), None, false);
        if let Some(options) = argument.as_doc() {
            for (name, value) in options {
                match name {
                    "path" => {
                        let message = format!("The path of $unwind must be a string, not {}", value.kind().alias());
                        path = Some(value.as_str().ok_or_else(|| wrong(ErrorCode::Location28808, &message))?);
                    }
                    "preserveNullAndEmptyArrays" => {
                        let message = "The option preserveNullAndEmptyArrays of $unwind must be a boolean";
                        keeps_empty = value.as_bool().ok_or_else(|| wrong(ErrorCode::Location28809, message))?;
                    }
                    "includeArrayIndex" => {
                        let message = "The option includeArrayIndex of $unwind must be a non-empty string";
                        let name = value.as_str().filter(|name| !name.is_empty());
                        let name = name.ok_or_else(|| wrong(ErrorCode::Location28810, message))?;
                        if name.starts_with('$') {
                            let message = "The option includeArrayIndex of $unwind must not begin with a '$'";
                            return Err(wrong(ErrorCode::Location28822, message));
                        }
                        index = Some(name);
                    }
                    _ => {
                        return Err(Error::new(ErrorCode::Location28811, format!("Unknown option of $unwind: {name}")));
                    }
                }
            }
        } else if path.is_none() {
            let message = "The $unwind stage specification must be a string or an object";
            return Err(wrong(ErrorCode::Location15981, message));
        }
        let path = path.ok_or_else(|| Error::new(ErrorCode::Location28812, "$unwind needs a path"))?;
        let path = path.strip_prefix('$').ok_or_else(|| {
            Error::new(ErrorCode::Location28818, format!("The path of $unwind must begin with a '$': {path}"))
        })?;
        check_path(path)?;
        index.map_or(Ok(()), check_path)?;
        let parts = |path: &str| path.split('.').map(Into::into).listed();
        Ok(UnwindSpec {
            path: parts(path),
            index: index.map(parts),
            keeps_empty,
            from: UnwoundFrom::Array,
            names: Filter::all(),
        })
    }
}

impl Spec for UnwindSpec {
    fn reads(&self, mut behind: FieldSet) -> FieldSet {
        self.path.iter().take(1).for_each(|root| behind.add_path(root));
        behind
    }

    fn passes_filters(&self) -> Option<bool> {
        Some(!self.keeps_empty)
    }

    fn see_filter(&mut self, filter: &Filter) {
        let is_name = |part: &&Filter| match part {
            Filter::Field(path, _) => {
                path.first() == self.path.concat() && matches!(path.rest(), [below] if below.name() == NAME)
            }
            _ => false,
        };
        if self.from == UnwoundFrom::Pairs {
            self.names = Filter::and(filter.conjuncts().iter().filter(is_name).cloned().collect::<Vec<_>>());
        }
    }

    fn origin(&self, name: &str) -> Origin<'_> {
        changed_at(name, [&self.path].into_iter().chain(&self.index))
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Unwind { spec: self, made: None, wanted: WantedNames::default() })
    }
}

struct Unwind {
    spec: Rc<UnwindSpec>,
    made: Option<Block>,
    wanted: WantedNames,
}

/// A field as `$objectToArray` shows it.
fn pair(name: &str, value: Value<'_>) -> DocBuf {
    let mut pair = DocWriter::new();
    pair.string(NAME, name).value(VALUE, value);
    pair.finish()
}

/// What `$unwind` makes of the cells of a column.
struct Unwound {
    /// The new cells.
    cells: Column,
    /// The positions of the elements, if they are wanted; -1 of other values.
    places: Vec<i64>,
    /// Where the new cells of each cell end.
    ends: Vec<u32>,
}

impl Unwound {
    /// The new cells of `count` cells of `column`, which is the field at which the path begins.
    ///
    /// Errors: 40390.
    fn of(spec: &UnwindSpec, column: Option<&Column>, count: usize, wanted: &mut WantedNames) -> Result<Unwound> {
        let below = spec.path.get(1..).unwrap_or_default();
        let is_plain = !spec.keeps_empty && spec.from == UnwoundFrom::Array;
        let made = column.filter(|_| is_plain).and_then(|column| match (column.data(), below) {
            (_, []) => column.elements().map(|list| (list.values.clone(), list.ends.clone())),
            (ColumnData::Objects(objects), _) => objects.unwound(&below.iter().map(|name| &**name).listed()),
            _ => None,
        });
        if let Some((cells, ends)) = made {
            let (mut places, mut start) = (Vec::new(), 0);
            for end in ends.iter().filter(|_| spec.index.is_some()) {
                places.extend((0_i64..).take((end - start) as usize));
                start = *end;
            }
            return Ok(Unwound { cells, places, ends });
        }
        let (mut cells, mut places, mut ends) = (ColumnBuilder::new(), Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        for row in 0..count {
            let cell = column.and_then(|column| column.value(row, &mut scratch));
            let doc = cell.and_then(Value::as_doc);
            let found = if below.is_empty() { cell } else { doc.and_then(|doc| reach(doc, below)) };
            let mut emit = |new: Option<Value<'_>>, place: Option<i64>| {
                match new {
                    Some(new) => cells.push(new),
                    None => cells.push_absent(1),
                }
                places.push(place.unwrap_or(-1));
            };
            let mut emit_at = |new: Option<Value<'_>>, place: Option<i64>| match doc {
                Some(doc) if !below.is_empty() => emit(Some(with(doc, below, new).view().as_value()), place),
                _ => emit(new, place),
            };
            match (spec.from, doc, found.and_then(Value::as_array)) {
                (UnwoundFrom::Values | UnwoundFrom::Pairs, Some(fields), _) => {
                    for (place, (name, value)) in (0..).zip(fields) {
                        match spec.from {
                            UnwoundFrom::Pairs if !wanted.has(spec, name) => {}
                            UnwoundFrom::Pairs => emit(Some(pair(name, value).view().as_value()), None),
                            _ => emit(Some(value), Some(place)),
                        }
                    }
                }
                (UnwoundFrom::Values | UnwoundFrom::Pairs, ..) if cell.is_none_or(is_nothing) => {}
                (UnwoundFrom::Values | UnwoundFrom::Pairs, ..) => return Err(not_an_object()),
                (.., Some(array)) if !array.is_empty() => {
                    for (place, (_, element)) in (0..).zip(array.iter()) {
                        emit_at(Some(element), Some(place));
                    }
                }
                // The field of an empty array is removed.
                (.., Some(_)) if spec.keeps_empty => emit_at(None, None),
                (.., None) if found.is_some_and(|value| !is_nothing(value)) || spec.keeps_empty => emit(cell, None),
                _ => {}
            }
            ends.push(u32::try_from(places.len()).unwrap_or(u32::MAX));
        }
        Ok(Unwound { cells: cells.finish(), places, ends })
    }
}

impl Stage for Unwind {
    fn push(&mut self, mut rows: Block) -> Result<Flow> {
        let UnwindSpec { path, index, .. } = &*self.spec;
        let Some(root) = path.first() else { return Ok(Flow::Continue) };
        let column = rows.column(root);
        let (numbers, of_fields) = match column.map(Column::data) {
            Some(ColumnData::Objects(objects)) if self.spec.from != UnwoundFrom::Array => {
                (None, unwound_columns(objects, &self.spec, &mut self.wanted))
            }
            // The metadata of a bucket is unwound once.
            Some(ColumnData::Dictionary(index, values))
                if !self.spec.keeps_empty || column.is_none_or(|column| column.presence().is_none()) =>
            {
                (Some((index, &**values)), None)
            }
            _ => (None, None),
        };
        let mut places = Vec::new();
        let (picked, column) = match of_fields {
            Some((picked, fields, column)) => {
                if index.is_some() {
                    places = fields.into_iter().map(i64::from).listed();
                }
                (picked, column)
            }
            None => {
                let (from, count) = numbers.map_or((column, rows.rows()), |(_, values)| (Some(values), values.len()));
                let unwound = Unwound::of(&self.spec, from, count, &mut self.wanted)?;
                // Rows without a value have no new ones.
                let numbers_of_rows: Vec<u32> = match (numbers, column.and_then(Column::presence)) {
                    (None, _) => (0..).take(rows.rows()).collect(),
                    (Some((index, _)), None) => index.clone(),
                    (Some((index, _)), Some(present)) => {
                        let number = |(row, entry): (usize, &u32)| if present.get(row) { *entry } else { u32::MAX };
                        index.iter().enumerate().map(number).listed()
                    }
                };
                let (picked, cells) = gather::parts(&unwound.ends, &numbers_of_rows);
                if index.is_some() {
                    places = gather::int64s(&unwound.places, &cells);
                }
                let column = unwound.cells;
                let is_numbered = matches!(column.data(), ColumnData::Dictionary(..));
                let column = match numbers.is_some() {
                    true if column.presence().is_none() && !is_numbered => Column::of_entries(cells, column),
                    true => column.gather(&cells),
                    false => column,
                };
                (picked, column)
            }
        };
        let has_root = rows.column(root).is_some();
        if has_root {
            // The arrays are not copied.
            rows.set_column(root, Column::constant(Value::NULL, rows.rows()));
        }
        let mut made = rows.gather(&picked);
        if has_root {
            made.set_column(root, column);
        }
        if let Some((first, below)) = index.as_ref().and_then(|index| index.split_first()) {
            if below.is_empty() && places.iter().all(|place| *place >= 0) {
                made.set_column(first, Column::new(ColumnData::I64(places), None));
                self.made = Some(made).filter(|made| made.rows() > 0);
                return Ok(Flow::Continue);
            }
            let mut builder = ColumnBuilder::with_capacity(picked.len());
            let (before, mut scratch) = (made.column(first), Vec::new());
            for (row, place) in places.into_iter().enumerate() {
                let place = if place < 0 { OwnedValue::null() } else { OwnedValue::int64(place) };
                if below.is_empty() {
                    builder.push(place.view());
                    continue;
                }
                let mut writer = DocWriter::new();
                if let Some(value) = before.and_then(|column| column.value(row, &mut scratch)) {
                    writer.value(first, value);
                }
                let doc = with(writer.finish().view(), index.as_deref().unwrap_or_default(), Some(place.view()));
                doc.view().get(first).into_iter().for_each(|value| builder.push(value));
            }
            made.set_column(first, builder.finish());
        }
        self.made = Some(made).filter(|made| made.rows() > 0);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}

fn is_nothing(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Null | Kind::Undefined)
}

/// The value that a path of nested objects reaches.
fn reach<'a>(doc: Doc<'a>, path: &[Box<str>]) -> Option<Value<'a>> {
    let (first, below) = path.split_first()?;
    let value = doc.get(first)?;
    if below.is_empty() { Some(value) } else { reach(value.as_doc()?, below) }
}
