//! Runs a program over a block.
//!
//! A column whose values repeat (`ColumnData::Dictionary`) is a frame of its own: a step that reads nothing else is computed
//! for its entries, and the rows refer to them. So what depends on metadata alone is computed once per bucket.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use super::cells::{Cells, Scratch, Vector, push};
use super::distinct::{self, AlikeRows};
use super::mask::Mask;
use super::program::{ExprStep, Program, Reads};
use super::{
    arrays, bucket, choice, comparison, conversion, dates, general, lists, membership, numbers, objects, sets, several,
    texts, truth, varying,
};
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::datum::Datum;
use crate::query::expr::operators::{Op, Operator};
use crate::value::{Kind, OwnedValue, Value};

/// A function of more arguments of which each has values of two types is computed row by row.
const OF_TWO_TYPES_MAX: usize = 3;

/// The values that steps have in a frame.
type StepValues<'a> = RefCell<Vec<Option<Rc<Vector<'a>>>>>;

/// A run over one block.
pub struct Run<'a> {
    program: &'a Program,
    /// The block, then the entries of each column of the program.
    frames: &'a [Option<Block>],
    block: &'a Block,
    known: Vec<StepValues<'a>>,
}

/// The arguments of a step: vectors without an index, and the number of rows.
pub struct VectorArguments<'v, 'a> {
    pub vectors: &'v [Rc<Vector<'a>>],
    pub rows: usize,
    pub program: &'a Program,
    /// The steps that have computed them.
    pub steps: &'a [usize],
}

impl<'v, 'a> VectorArguments<'v, 'a> {
    /// The argument at a position.
    pub fn at(&self, position: usize) -> Option<&'v Rc<Vector<'a>>> {
        self.vectors.get(position)
    }

    /// The constants among the arguments, in their positions; `None` unless all are constant but those in `others`.
    pub fn constants(&self, others: &[usize]) -> Option<Vec<Option<Value<'a>>>> {
        let constant = |(position, step): (usize, &usize)| match self.program.steps.get(*step) {
            _ if others.contains(&position) => Some(None),
            Some((ExprStep::Constant(value), _)) => Some(value.as_ref().map(|value| value.view())),
            _ => None,
        };
        self.steps.iter().enumerate().map(constant).listed_if_all()
    }

    /// True unless the argument, an optional one with a name, was omitted.
    pub fn is_given(&self, position: usize) -> bool {
        let step = self.steps.get(position).and_then(|step| self.program.steps.get(*step));
        !matches!(step, Some((ExprStep::Constant(None), _)))
    }
}

impl<'a> Run<'a> {
    /// Calls `work` with a run of a program over a block.
    pub fn over<T>(program: &Program, block: &Block, work: impl FnOnce(&Run<'_>) -> T) -> T {
        let entries = |name: &str| {
            let column = block.column(name)?;
            let ColumnData::Dictionary(_, values) = column.data() else { return None };
            if values.len() >= block.rows().max(2) {
                return None;
            }
            let mut entries = Block::new(values.len() + usize::from(column.presence().is_some()));
            let mut values = (**values).clone();
            if column.presence().is_some() {
                // The last entry stands for rows without the field.
                let mut builder = ColumnBuilder::resume(values);
                builder.push_absent(1);
                values = builder.finish();
            }
            entries.set_column(name, values);
            Some(entries)
        };
        let frames: Vec<Option<Block>> = program.columns.iter().map(|name| entries(name)).listed();
        let known = std::iter::repeat_with(|| RefCell::new(vec![None; program.steps.len()]));
        let known = known.take(frames.len() + 1).collect();
        work(&Run { program, frames: &frames, block, known })
    }

    /// The values of the result. Rows may lack a value instead of null, unless it `keeps_null`.
    pub fn column(&self, keeps_null: bool) -> Result<Column> {
        let rows = self.block.rows();
        let vector = self.value(self.program.result, 0);
        let left = vector.all_left();
        if let Some(rest) = left.rows() {
            return self.completed(&vector, rest);
        }
        // The steps need it no more.
        self.known.iter().for_each(|known| known.borrow_mut().clear());
        let mut vector = Rc::unwrap_or_clone(vector);
        if !keeps_null {
            let null = std::mem::take(&mut vector.null);
            vector.missing.add(&null);
        }
        Ok(match vector.into_column(rows) {
            Some(column) => column,
            None => self.program.whole.one_by_one(self.block)?,
        })
    }

    /// The values of a vector, and of the whole expression where rows are left out.
    fn completed(&self, vector: &Vector<'a>, rest: &Bitmap) -> Result<Column> {
        let rows = self.block.rows();
        let mut builder = ColumnBuilder::with_capacity(rows);
        let mut scratch = Scratch::default();
        let mut begun = 0;
        let mut until = |builder: &mut ColumnBuilder, end: usize| {
            for row in begun..end {
                match vector.value(row, &mut scratch) {
                    Some(value) => builder.push(value),
                    None => builder.push_absent(1),
                }
            }
            begun = end + 1;
        };
        self.program.whole.for_each_row(self.block, &mut rest.iter(), &mut |row, value| {
            until(&mut builder, row);
            match value {
                Some(value) => builder.push(value),
                None => builder.push_absent(1),
            }
        })?;
        until(&mut builder, rows);
        Ok(builder.finish())
    }

    /// Removes the rows for which the result is not true.
    pub fn narrow(&self, rows: &mut Bitmap) -> Result<()> {
        let vector = self.value(self.program.result, 0).flat();
        let mut passing = truth::truths(&vector, self.block.rows());
        let rest = vector.left.within(rows);
        if let Some(rest) = rest.rows() {
            self.program.whole.for_each_row(self.block, &mut rest.iter(), &mut |row, value| {
                passing.set(row, value.is_some_and(Value::is_true));
            })?;
        }
        rows.and(&passing);
        Ok(())
    }

    fn frame(&self, frame: usize) -> &'a Block {
        frame.checked_sub(1).and_then(|at| self.frames.get(at)).and_then(Option::as_ref).unwrap_or(self.block)
    }

    /// The values of a step in a frame.
    fn value(&self, step: usize, frame: usize) -> Rc<Vector<'a>> {
        let known = |frame: usize| self.known.get(frame)?.borrow().get(step).cloned().flatten();
        if let Some(vector) = known(frame) {
            return vector;
        }
        let Some((what, reads)) = self.program.steps.get(step) else { return Rc::new(Vector::constant(None)) };
        let vector = match reads {
            Reads::One(column) if frame == 0 && self.frames.get(*column).is_some_and(Option::is_some) => {
                self.indexed(step, *column)
            }
            _ => self.computed(what, frame),
        };
        if let Some(slot) = self
            .known
            .get(frame)
            .and_then(|known| known.try_borrow_mut().ok())
            .as_mut()
            .and_then(|known| known.get_mut(step))
        {
            *slot = Some(Rc::clone(&vector));
        }
        vector
    }

    /// The values of a step that reads one column alone, by the entries of that column.
    fn indexed(&self, step: usize, column: usize) -> Rc<Vector<'a>> {
        let entries = self.value(step, column + 1);
        if let (Cells::Constant(_), true) = (&entries.cells, entries.left.is_none()) {
            return entries;
        }
        let data = self.program.columns.get(column).and_then(|name| self.block.column(name));
        let Some((ColumnData::Dictionary(index, values), presence)) = data.map(|data| (data.data(), data.presence()))
        else {
            return Rc::new(Vector::nothing(self.block.rows()));
        };
        let index: Rc<[u32]> = match presence {
            None => index.as_slice().into(),
            Some(present) => {
                let none = u32::try_from(values.len()).unwrap_or(u32::MAX);
                (0..).zip(index).map(|(row, entry)| if present.get(row) { *entry } else { none }).collect()
            }
        };
        Rc::new(Cells::Indexed(index, entries).whole())
    }

    fn computed(&self, what: &'a ExprStep, frame: usize) -> Rc<Vector<'a>> {
        let block = self.frame(frame);
        let rows = block.rows();
        Rc::new(match what {
            ExprStep::Constant(value) => Cells::Constant(value.clone()).whole(),
            ExprStep::Column(column) => {
                let found = self.program.columns.get(*column).and_then(|name| block.column(name));
                found.map_or(Vector::constant(None), Vector::of)
            }
            ExprStep::Root => {
                let fields = block.columns().iter().map(|(name, column)| (&**name, column.clone()));
                match Column::of_fields(fields.listed()) {
                    Some(objects) => Vector::made(objects, Mask::NONE),
                    None => Vector::nothing(rows),
                }
            }
            ExprStep::Path(start, path) => general::path(&self.value(*start, frame), path, rows),
            ExprStep::Object(fields) => {
                let values: Vec<_> = fields.iter().map(|(name, step)| (&**name, self.value(*step, frame))).listed();
                general::container(Kind::Object, &values, rows)
            }
            ExprStep::Array(items) => {
                let names: Vec<String> = (0..items.len()).map(|place| place.to_string()).listed();
                let named = names.iter().zip(items);
                let values: Vec<_> = named.map(|(name, step)| (&**name, self.value(*step, frame))).listed();
                general::container(Kind::Array, &values, rows)
            }
            ExprStep::Checked(body, others) => {
                let mut vector = (*self.value(*body, frame)).clone();
                for other in others {
                    vector.left.add(&self.value(*other, frame).all_left());
                }
                vector
            }
            ExprStep::NotNull(value) => {
                let mut vector = (*self.value(*value, frame).flat()).clone();
                vector.left.add(&Mask::of(choice::nullish(&vector, rows)));
                vector
            }
            ExprStep::OrNull(value) => {
                let value = self.value(*value, frame).flat();
                match value.cells {
                    Cells::Constant(None) => {
                        Cells::Constant(Some(OwnedValue::null())).with(Mask::NONE, Mask::NONE, value.left.clone())
                    }
                    _ if value.missing.is_none() => return value,
                    _ => Vector { missing: Mask::NONE, null: value.absent(), ..(*value).clone() },
                }
            }
            ExprStep::Specific(value, what, others) => match what.computed(&self.value(*value, frame).flat(), rows) {
                Some(found) => found,
                None => return self.value(*others, frame),
            },
            ExprStep::Elements(arrays, outer, each) => {
                let arrays = self.value(*arrays, frame).flat();
                let outer = outer.iter().map(|step| {
                    let vector = self.value(*step, frame);
                    vector.all_left().is_none().then(|| Rc::unwrap_or_clone(vector).into_column(rows))?
                });
                let outer = outer.listed_if_all().filter(|_| arrays.left.is_none());
                let made = outer.and_then(|outer| each.computed(&arrays, &outer, block));
                made.unwrap_or_else(|| Vector::nothing(rows))
            }
            ExprStep::Single(expr) => {
                #[cfg(test)]
                general::CALLS.set(general::CALLS.get() + 1);
                let alike = if expr.is_random() || expr.fields().is_all() {
                    AlikeRows::each(rows)
                } else {
                    let read = expr.fields().names().iter().filter_map(|name| block.column(name));
                    let read: Vec<_> = read.map(|column| Cells::Any(Cow::Borrowed(column)).whole()).listed();
                    AlikeRows::of(&read.iter().listed(), rows, &Mask::NONE)
                };
                let mut builder = ColumnBuilder::with_capacity(rows);
                let evaluated = expr.for_each_row(block, &mut alike.firsts.iter().copied(), &mut |_, value| {
                    push(&mut builder, &Datum::from(value));
                });
                match evaluated {
                    Ok(()) => alike.spread(Vector::made(builder.finish(), Mask::NONE)),
                    Err(_) => Vector::nothing(rows),
                }
            }
            ExprStep::Call(operator, steps) => {
                let known = self.compared_type(operator, steps, frame);
                let known = known.or_else(|| self.counted_fields(operator, steps, frame));
                if let Some(found) = known.or_else(|| self.zipped(operator, steps, frame)) {
                    return Rc::new(found);
                }
                let vectors: Vec<_> = steps.iter().map(|step| self.value(*step, frame)).listed();
                self.called(operator, &vectors, steps, rows)
            }
        })
    }

    /// Whether `$type` of a value is, or is not, a constant name.
    fn compared_type(&self, operator: &Operator, steps: &[usize], frame: usize) -> Option<Vector<'a>> {
        let (Op::Eq | Op::Ne, [a, b]) = (operator.op, steps) else { return None };
        let step = |step: &usize| self.program.steps.get(*step).map(|(step, _)| step);
        let (types, name) = match (step(a)?, step(b)?) {
            (ExprStep::Call(of, types), ExprStep::Constant(Some(name))) if of.op == Op::Type => (types, name),
            (ExprStep::Constant(Some(name)), ExprStep::Call(of, types)) if of.op == Op::Type => (types, name),
            _ => return None,
        };
        let name = name.view().as_str().filter(|_| self.program.globals.collation().is_simple())?;
        let value = self.value(*types.first()?, frame);
        let mut found = membership::of_type(&value, name, self.frame(frame).rows())?;
        if let (Op::Ne, Cells::Truths(is)) = (operator.op, &mut found.cells) {
            is.invert();
        }
        Some(found)
    }

    /// `$zip` of arrays that need no array around them.
    fn zipped(&self, operator: &Operator, steps: &[usize], frame: usize) -> Option<Vector<'a>> {
        let [inputs, longest, defaults] = steps else { return None };
        let step = |step: &usize| self.program.steps.get(*step).map(|(step, _)| step);
        let are_omitted = [longest, defaults].iter().all(|at| step(at) == Some(&ExprStep::Constant(None)));
        let Some(ExprStep::Array(items)) = step(inputs).filter(|_| are_omitted && operator.name() == "$zip") else {
            return None;
        };
        let vectors: Vec<_> = items.iter().map(|item| self.value(*item, frame).flat()).listed();
        lists::zipped(&vectors, self.frame(frame).rows())
    }

    /// The length of what `$objectToArray` would make.
    fn counted_fields(&self, operator: &Operator, steps: &[usize], frame: usize) -> Option<Vector<'a>> {
        let (Op::Size, [array]) = (operator.op, steps) else { return None };
        let Some((ExprStep::Call(of, objects), _)) = self.program.steps.get(*array) else { return None };
        let objects = objects.first().filter(|_| of.name() == "$objectToArray")?;
        objects::field_counts(&self.value(*objects, frame))
    }

    fn called(
        &self,
        operator: &'static Operator,
        vectors: &[Rc<Vector<'a>>],
        steps: &'a [usize],
        rows: usize,
    ) -> Vector<'a> {
        match operator.op {
            Op::And | Op::Or => return truth::combined(vectors, rows, operator.op == Op::Or),
            Op::Not => return truth::negated(vectors, rows),
            Op::Cond => return choice::cond(vectors, rows),
            Op::Switch => return choice::switch(vectors, rows),
            Op::IfNull => return choice::if_null(vectors, rows),
            _ => {}
        }
        if let Some(found) = arrays::at_each(operator, vectors) {
            return found;
        }
        let program = self.program;
        if let Some(found) = varying::of_varying(operator, vectors, rows, program.globals.collation()) {
            return found;
        }
        let vectors: Vec<_> = vectors.iter().map(Rc::clone).listed();
        let arguments = VectorArguments { vectors: &vectors, rows, program, steps };
        let alike = distinct::few_texts(&vectors, rows);
        if alike.as_ref().is_some_and(|alike| texts::are_few(operator, alike.firsts.len(), rows)) {
            return general::called(operator, &arguments, &program.globals, alike);
        }
        let mut flat: Vec<_> = vectors.iter().map(Vector::flat).listed();
        if flat.iter().any(|vector| !matches!(vector.cells, Cells::Constant(_))) {
            // Beside typed cells, a field that no row has is a typed column without values.
            flat.iter_mut().enumerate().filter(|(at, _)| !operator.may_omit(*at)).for_each(|(_, vector)| {
                if let Some(typed) = vector.typed_nothing(rows) {
                    *vector = Rc::new(typed);
                }
            });
        }
        let made = self.of_parts(operator, VectorArguments { vectors: &flat, ..arguments }, &arguments);
        made.unwrap_or_else(|| general::called(operator, &arguments, &program.globals, alike))
    }

    /// A function of typed vectors: of each part of an argument, if that has values of two types; `None` if it has no form for these.
    fn of_parts(
        &self,
        operator: &'static Operator,
        typed: VectorArguments<'_, 'a>,
        arguments: &VectorArguments<'_, 'a>,
    ) -> Option<Vector<'a>> {
        let mut of_two =
            typed.vectors.iter().enumerate().filter(|(_, vector)| matches!(vector.cells, Cells::Either(..)));
        let Some((at, whole)) = of_two.next() else { return self.typed(operator, &typed, arguments) };
        let (Cells::Either(first, ..), true) = (&whole.cells, of_two.count() < OF_TWO_TYPES_MAX) else { return None };
        let mut results = Vec::new();
        for part in choice::parts_of(whole)? {
            let mut vectors: Vec<_> = typed.vectors.iter().map(Rc::clone).listed();
            vectors.iter_mut().skip(at).take(1).for_each(|slot| *slot = Rc::clone(&part));
            results.push(Rc::new(self.of_parts(
                operator,
                VectorArguments { vectors: &vectors, ..typed },
                arguments,
            )?));
        }
        let mut others = first.clone();
        others.invert();
        Some(choice::picked(&[first.clone(), others], &results, Mask::NONE, typed.rows))
    }

    /// A function of typed vectors; `None` if it has no form for these.
    fn typed(
        &self,
        operator: &'static Operator,
        typed: &VectorArguments<'_, 'a>,
        arguments: &VectorArguments<'_, 'a>,
    ) -> Option<Vector<'a>> {
        let globals = &self.program.globals;
        match operator.op {
            Op::Add | Op::Multiply | Op::Subtract | Op::Divide | Op::Mod => numbers::combined(operator.op, typed),
            Op::Abs | Op::Ceil | Op::Floor | Op::Sqrt => numbers::unary(operator.op, typed),
            Op::Trunc | Op::Round => numbers::to_places(operator.op, typed),
            Op::Eq | Op::Ne | Op::Gt | Op::Gte | Op::Lt | Op::Lte | Op::Cmp => {
                comparison::compared(operator, typed, globals.collation())
            }
            Op::GetField => objects::field(typed),
            Op::Bucket => bucket::bucketed(typed, globals.collation()),
            Op::Type => membership::types(typed),
            Op::IsNumber => membership::of_kinds(typed.at(0)?, &Kind::is_number, false, typed.rows),
            Op::IsArray => membership::of_kinds(typed.at(0)?, &|kind| kind == Kind::Array, false, typed.rows),
            Op::In => membership::contained(operator, typed, globals.collation())
                .or_else(|| lists::of_lists(operator, typed, globals.collation())),
            _ if operator.of_double.is_some() => numbers::of_doubles(operator, typed),
            _ => dates::of_dates(operator, typed, globals)
                .or_else(|| conversion::converted(operator, typed))
                .or_else(|| arrays::of_arrays(operator, typed))
                .or_else(|| lists::of_lists(operator, typed, globals.collation()))
                .or_else(|| sets::of_sets(operator, typed, globals.collation()))
                .or_else(|| several::of_several(operator, typed))
                .or_else(|| objects::of_objects(operator, typed))
                .or_else(|| texts::of_texts(operator, arguments, typed)),
        }
    }
}
