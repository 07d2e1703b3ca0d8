//! Steps over values of any type: a row at a time, but without documents in between.

use std::borrow::Cow;
use std::rc::Rc;

use super::arrays;
use super::cells::{Cells, Int32s, Scratch, Vector, push};
use super::distinct::AlikeRows;
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::{ArrayElements, Bitmap, Column, ColumnBuilder, ColumnData, Objects};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::arguments::is_null_call;
use crate::query::expr::datum::{Datum, container as built};
use crate::query::expr::evaluate::reach;
use crate::query::expr::globals::Globals;
use crate::query::expr::operators::{Evaluation, Function, Operator};
use crate::value::{DocWriter, Kind, OwnedValue, Value};

/// Operators with more arguments than this are rare, and are evaluated row by row.
const ARGUMENTS_MAX: usize = 12;

/// Of so many arrays at most, what a path reaches is remembered with them.
const REMEMBERED_MAX: usize = 512;

/// Calls `make` for every row that no vector leaves out, or for one of all rows with the same values, with the values of
/// all vectors. Rows for which it fails are left out. Which rows are alike may be known.
fn each_row<'a>(
    vectors: &[&Vector<'_>],
    (rows, alike): (usize, Option<AlikeRows>),
    make: &mut dyn FnMut(&[Option<Value<'_>>]) -> Result<Datum<'static>>,
) -> Vector<'a> {
    if vectors.len() > ARGUMENTS_MAX {
        return Vector::nothing(rows);
    }
    let is_constant = vectors.iter().all(|vector| matches!(vector.cells, Cells::Constant(_)) && vector.left.is_none());
    let mut left = vectors.iter().fold(Mask::NONE, |left, vector| left.with(&vector.all_left()));
    let alike = match alike {
        _ if is_constant => AlikeRows::each(rows.min(1)),
        Some(alike) => alike,
        None => AlikeRows::of(vectors, rows, &left),
    };
    let evaluated = alike.firsts.len();
    let mut failed = Bitmap::filled(evaluated, false);
    let mut builder = ColumnBuilder::with_capacity(evaluated);
    let mut scratches: [Scratch; ARGUMENTS_MAX] = Default::default();
    let mut constants = [None; ARGUMENTS_MAX];
    for (constant, vector) in constants.iter_mut().zip(vectors) {
        if let (Cells::Constant(value), true) = (&vector.cells, vector.absent().is_none()) {
            *constant = Some(value.as_ref().map(OwnedValue::view));
        }
    }
    for (place, row) in alike.firsts.iter().copied().enumerate() {
        if left.has(row) {
            builder.push_absent(1);
            continue;
        }
        let mut values = [None; ARGUMENTS_MAX];
        for (((value, scratch), vector), constant) in values.iter_mut().zip(&mut scratches).zip(vectors).zip(constants)
        {
            *value = constant.unwrap_or_else(|| vector.value(row, scratch));
        }
        match make(values.get(..vectors.len()).unwrap_or_default()) {
            Ok(value) => push(&mut builder, &value),
            Err(_) => {
                failed.set(place, true);
                builder.push_absent(1);
            }
        }
    }
    let column = builder.finish();
    if is_constant {
        return match failed.none() {
            true => Vector::constant(column.value(0, &mut Vec::new())),
            false => Vector::nothing(rows),
        };
    }
    let mut made = alike.spread(Vector::made(column, Mask::of(failed)));
    left.add(&made.left);
    made.left = left;
    made
}

#[cfg(test)]
thread_local! {
    /// How often an operator without a form for its columns was called for rows, or an expression evaluated on documents.
    pub static CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// An operator on argument values. Which rows are alike may be known.
pub fn called<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    globals: &Globals,
    alike: Option<AlikeRows>,
) -> Vector<'a> {
    let Evaluation::Eager { wants, nulls, run } = &operator.run else { return Vector::nothing(arguments.rows) };
    #[cfg(test)]
    CALLS.set(CALLS.get() + 1);
    let plain: Vec<_> = arguments.vectors.iter().map(Vector::without_lists).listed();
    let vectors: Vec<&Vector<'_>> = plain.iter().map(|vector| &**vector).listed();
    let is_given = |at: usize| !operator.may_omit(at) || arguments.is_given(at);
    each_row(&vectors, (arguments.rows, alike), &mut |values| {
        if is_null_call(operator.name(), (wants, *nulls), values, &is_given)? {
            return Ok(Datum::NULL);
        }
        match run {
            Function::Plain(run) => run(operator, values),
            Function::Comparing(run) => run(operator, values, globals.collation()),
            Function::Asking(run) => run(operator, values, globals),
        }
    })
}

/// What a path reaches in each value.
pub fn path<'a>(start: &Vector<'_>, path: &[Box<str>], rows: usize) -> Vector<'a> {
    if let Cells::Numbers(..) | Cells::Longs(_) | Cells::Dates(_) | Cells::Truths(_) | Cells::Either(..) = start.cells {
        // Nothing lies below these.
        return Cells::Constant(None).with(Mask::NONE, Mask::NONE, start.left.clone());
    }
    let left = start.all_left();
    let mut scratch = Scratch::default();
    if let (Cells::Constant(_), true) = (&start.cells, left.is_none()) {
        return Vector::constant(reach(start.value(0, &mut scratch), path).view());
    }
    let is_whole = left.is_none() && start.absent().is_none();
    let list = match &start.cells {
        // What is reached in few values is remembered.
        Cells::Any(column) if column.len() <= REMEMBERED_MAX || !column.begins_with_array() => None,
        _ => arrays::elements_of(start),
    };
    if let Some(found) = list.filter(|_| is_whole).and_then(|list| arrays::reached(&list, path)) {
        return Cells::Lists(Rc::new(found)).whole();
    }
    if let (Cells::Any(column), true) = (&start.cells, is_whole)
        && let ColumnData::Bson(_) = column.data()
    {
        return Vector::made(column.reached(path, || reached(column, path)), left);
    }
    if let Cells::Any(column) = &start.cells
        && let ColumnData::Objects(objects) = column.data()
        && let Some((list, present)) = arrays_in(objects, path)
    {
        return Cells::Lists(Rc::new(list)).with(Mask::outside(&present).with(&start.absent()), Mask::NONE, left);
    }
    if let Cells::Any(column) = &start.cells
        && let Some(scalar) = scalar_of(column, path)
    {
        let Some(scalar) = scalar else { return Cells::Constant(None).with(Mask::NONE, Mask::NONE, left) };
        let mut found = Vector::made(scalar, left);
        found.missing.add(&start.absent());
        return found;
    }
    let mut builder = ColumnBuilder::with_capacity(rows);
    for row in 0..rows {
        match left.has(row) {
            true => builder.push_absent(1),
            false => push(&mut builder, &reach(start.value(row, &mut scratch), path)),
        }
    }
    Vector::made(builder.finish(), left)
}

/// The arrays to which a path leads in all objects, or what its end reaches in their elements.
fn arrays_in(objects: &Objects, path: &[Box<str>]) -> Option<(ArrayElements, Bitmap)> {
    let names: Vec<&str> = path.iter().map(|name| &**name).listed();
    (1..=path.len()).rev().find_map(|len| {
        let (list, present) = objects.arrays(names.get(..len)?)?;
        match path.get(len..)? {
            [] => Some((list, present)),
            below => Some((arrays::reached(&list, below)?, present)),
        }
    })
}

/// What a path reaches in each value of a BSON column.
// Loaded later.
pub fn reached(column: &Column, path: &[Box<str>]) -> Column {
    let of_each = || {
        let (mut builder, mut scratch) = (ColumnBuilder::with_capacity(column.len()), Vec::new());
        for row in 0..column.len() {
            push(&mut builder, &reach(column.value(row, &mut scratch), path));
        }
        builder.finish()
    };
    let of_arrays = || {
        let list = column.elements().filter(|_| column.presence().is_none())?;
        arrays::reached(&list, path).map(|found| found.arrays(|_| false))
    };
    scalar_of(column, path).flatten().or_else(of_arrays).unwrap_or_else(of_each)
}

/// What a path reaches in a column of objects; the inner `None` if no object has it, the outer one if it is not a column.
pub(super) fn scalar_of(column: &Column, path: &[Box<str>]) -> Option<Option<Column>> {
    let names: Vec<&str> = path.iter().map(|name| &**name).listed();
    if let ColumnData::Objects(objects) = column.data() {
        if names.is_empty() {
            return Some(Some(column.clone()));
        }
        return objects.reach(&names).map(|found| found.map(Cow::into_owned));
    }
    column.reached_by(&names).map(Some)
}

/// An object of these fields, or an array of these elements. Fields without a value are left out; elements are null.
pub fn container<'a>(kind: Kind, fields: &[(&str, Rc<Vector<'a>>)], rows: usize) -> Vector<'a> {
    let plain = fields.iter().map(|(name, vector)| (*name, Vector::without_lists(vector))).listed();
    let (none, fields) = ((kind == Kind::Array).then_some(Value::NULL), plain.as_slice());
    let vectors: Vec<&Vector<'_>> = fields.iter().map(|(_, vector)| &**vector).listed();
    let differs = |vector: &&Vector<'_>| match &vector.cells {
        Cells::Numbers(_, Int32s::None) | Cells::Dates(_) => true,
        Cells::Any(column) => matches!(column.data(), ColumnData::Objects(_)),
        _ => false,
    };
    if vectors.iter().any(differs) {
        return each_container(kind, fields, rows);
    }
    each_row(&vectors, (rows, None), &mut |values| {
        let mut writer = DocWriter::new();
        for ((name, _), value) in fields.iter().zip(values) {
            if let Some(value) = value.or(none) {
                writer.value(name, value);
            }
        }
        Ok(built(kind, writer))
    })
}

/// Arrays of one value of each vector.
fn list_of(items: &[(&str, Rc<Vector<'_>>)], rows: usize) -> Option<ArrayElements> {
    let mut all = ColumnBuilder::with_capacity(rows * items.len());
    for (_, vector) in items {
        all.extend(&Vector::clone(vector).into_column(rows)?, 0..rows);
    }
    let places = (0..rows).flat_map(|row| (0..items.len()).map(move |item| (item * rows + row) as u32));
    let ends = (1..=rows).map(|row| (row * items.len()) as u32).listed();
    Some(ArrayElements::new(all.finish().gather(&places.listed()), ends))
}

/// As `container`, without a look for rows that are alike: of times and doubles, few are.
fn each_container<'a>(kind: Kind, fields: &[(&str, Rc<Vector<'a>>)], rows: usize) -> Vector<'a> {
    let none = (kind == Kind::Array).then_some(Value::NULL);
    let left = fields.iter().fold(Mask::NONE, |left, (_, vector)| left.with(&vector.all_left()));
    if kind == Kind::Object {
        let columns = fields.iter().map(|(name, vector)| Some((*name, Vector::clone(vector).into_column(rows)?)));
        if let Some(column) = columns.listed_if_all().and_then(Column::of_fields) {
            return Vector::made(column, Mask::NONE);
        }
    }
    if kind == Kind::Array
        && let Some(list) = list_of(fields, rows)
    {
        return Cells::Lists(Rc::new(list)).whole();
    }
    let mut builder = ColumnBuilder::with_capacity(rows);
    let (mut writer, mut scratch) = (DocWriter::new(), Scratch::default());
    for row in 0..rows {
        if left.has(row) {
            builder.push_absent(1);
            continue;
        }
        writer.reset();
        for (name, vector) in fields {
            if let Some(value) = vector.value(row, &mut scratch).or(none) {
                writer.value(name, value);
            }
        }
        builder.push(Value::new_checked(kind, writer.finished().as_bytes()));
    }
    Vector::made(builder.finish(), left)
}
