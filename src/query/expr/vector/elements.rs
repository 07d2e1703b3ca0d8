//! `$map`, `$filter` and `$reduce`. Their expression is computed for the elements of all rows of a block at once; that of `$reduce`
//! for the first elements of all rows, then for the second ones, and so on.

use std::rc::Rc;

use super::arrays::elements_of;
use super::cells::{Cells, Scratch, Vector};
use super::distinct::AlikeRows;
use super::mask::Mask;
use super::truth;
use crate::block::{ArrayElements, Block, Column, ColumnBuilder, ColumnData};
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::expr::bound::BoundExpr;
use crate::query::expr::datum::is_nullish;
use crate::query::expr::globals::Globals;
use crate::query::expr::tree::Expr;
use crate::value::{Doc, FieldSet, Value, sort_by};

/// So many elements are computed at once.
const ELEMENTS_MAX: usize = 1 << 22;

/// With fewer rows than this for each place of the longest array, `$reduce` goes row by row.
const REDUCED_ROWS_MIN: usize = 3;

/// What is made of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ElementsUse {
    Map,
    Filter,
    Reduce,
}

/// `$map`, `$filter` or `$reduce`.
#[derive(PartialEq)]
pub struct EachElement {
    what: ElementsUse,
    /// What it computes for an element, which is a field, as are the value so far and the variables from outside.
    body: BoundExpr,
    /// The names of these fields are this and a number: 0 of the element, 1 of the value so far, and larger ones of variables further
    /// outside.
    prefix: String,
    /// The variables from outside that the body reads: how many others are between the operator and each.
    pub outside: Vec<usize>,
    /// What the body reads of the rows.
    pub fields: FieldSet,
}

impl ElementsUse {
    /// The number of variables that it binds.
    fn variables(self) -> usize {
        if self == ElementsUse::Reduce { 2 } else { 1 }
    }
}

impl EachElement {
    /// `None` if the body reads whole rows, or if it is random.
    pub fn new(what: ElementsUse, body: &Expr, globals: &Globals) -> Option<EachElement> {
        let (mut body, fields, mut prefix) = (body.clone(), body.fields(), "_".to_owned());
        if fields.is_all() || body.is_random() {
            return None;
        }
        while fields.names().iter().any(|name| name.starts_with(&prefix)) {
            prefix.push('_');
        }
        let (mut outside, own) = (Vec::new(), what.variables());
        body.make_fields(0, &mut |hops| {
            if let Some(between) = hops.checked_sub(own)
                && !outside.contains(&between)
            {
                outside.push(between);
            }
            field_name(&prefix, hops)
        });
        Some(EachElement { what, body: BoundExpr::new(body, globals.clone()), prefix, outside, fields })
    }

    /// The results for the rows of `block`. `None` if it cannot be computed for all of them, or if it would take too much
    /// memory.
    /// `outer` has the value with which `$reduce` begins, and then the variables from outside, in their order.
    pub fn computed<'a>(&self, arrays: &Vector<'_>, outer: &[Column], block: &Block) -> Option<Vector<'a>> {
        // Comparing arrays takes longer than computing their elements.
        if let Some(ArrayElements { values, ends }) = elements_of(arrays).as_deref() {
            let absent = arrays.absent();
            let ends = ends.iter().enumerate().map(|(row, end)| (!absent.has(row), *end as usize)).listed();
            let each = AlikeRows::each(block.rows());
            return self.of_elements(values, &each.firsts, &ends, (outer, block));
        }
        let mut read = vec![arrays];
        let begins = outer.first().filter(|_| self.what == ElementsUse::Reduce).map(Vector::of);
        read.extend(&begins);
        let alike = match self.fields.is_empty() && self.outside.is_empty() {
            true => AlikeRows::of(&read, block.rows(), &Mask::NONE),
            false => AlikeRows::each(block.rows()),
        };
        // All elements, and for each row whether it has an array, and where its elements end.
        let (mut elements, mut ends) = (ColumnBuilder::new(), Vec::new());
        let mut scratch = Scratch::default();
        for row in &alike.firsts {
            let value = arrays.value(*row, &mut scratch);
            let array = value.and_then(Value::as_array);
            for (_, element) in array.unwrap_or(Doc::EMPTY) {
                elements.push(element);
            }
            if array.is_none() && !is_nullish(value) || elements.len() > ELEMENTS_MAX {
                return None;
            }
            ends.push((array.is_some(), elements.len()));
        }
        let made = self.of_elements(&elements.finish(), &alike.firsts, &ends, (outer, block))?;
        Some(alike.spread(made))
    }

    /// The results for elements. For each array, `rows` has its row in `block`, and `ends` whether it is there, and where its
    /// elements end.
    fn of_elements<'a>(
        &self,
        elements: &Column,
        rows: &[usize],
        ends: &[(bool, usize)],
        (outer, block): (&[Column], &Block),
    ) -> Option<Vector<'a>> {
        let absent = Mask::from_fn(ends.len(), |at| ends.get(at).is_some_and(|(is_array, _)| !is_array));
        if self.what == ElementsUse::Reduce {
            let mut made = Vector::made(self.reduced(elements, rows, ends, (outer, block))?, Mask::NONE);
            made.missing.remove(&absent);
            made.null.add(&absent);
            return Some(made);
        }
        let mut of_row = Vec::with_capacity(elements.len());
        for ((_, end), row) in ends.iter().zip(rows) {
            of_row.resize(*end, u32::try_from(*row).ok()?);
        }
        let ends = ends.iter().map(|(_, end)| *end as u32).listed();
        let list = self.mapped(elements, &of_row, ends, (outer, block))?;
        Some(Cells::Lists(Rc::new(list)).with(Mask::NONE, absent, Mask::NONE))
    }

    /// The columns that the body reads besides those of elements and of the value so far, with their cells in these rows. `None` if they
    /// take too much memory.
    fn read_in(&self, rows: &[u32], (outer, block): (&[Column], &Block)) -> Option<Block> {
        let mut read = Block::new(rows.len());
        for name in self.fields.names() {
            let Some(column) = block.column(name) else { continue };
            read.set_column(name, repeated(column, rows)?);
        }
        for (between, column) in self.outside.iter().zip(outer) {
            read.set_column(&field_name(&self.prefix, between + self.what.variables()), repeated(column, rows)?);
        }
        Some(read)
    }

    /// The values to which `$reduce` comes. The longest arrays are in front, so that those that have an element at a place are always the
    /// first ones.
    fn reduced(
        &self,
        elements: &Column,
        rows: &[usize],
        ends: &[(bool, usize)],
        (outer, block): (&[Column], &Block),
    ) -> Option<Column> {
        let (begins, outer) = outer.split_first()?;
        let start = |array: usize| array.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |(_, end)| *end);
        let len = |array: usize| ends.get(array).map_or(0, |(_, end)| end - start(array));
        let mut order: Vec<usize> = (0..ends.len()).collect();
        sort_by(&mut order, |a, b| len(*b).cmp(&len(*a)));
        let longest = order.first().map_or(0, |array| len(*array));
        if elements.len() < longest * REDUCED_ROWS_MIN {
            return None;
        }
        let in_order = order.iter().map(|array| u32::try_from(*rows.get(*array)?).ok()).listed_if_all()?;
        let others = self.read_in(&in_order, (outer, block))?;
        let [this, so_far] = [0, 1].map(|hops| field_name(&self.prefix, hops));
        let mut value = begins.gather(&in_order);
        let mut done = Vec::new();
        for place in 0..=longest {
            let count = order.partition_point(|array| len(*array) > place);
            if count < value.len() {
                let mut ended = Block::new(value.len() - count);
                ended.set_column(&so_far, value.slice(count..value.len()));
                done.push(ended);
                value = value.slice(0..count);
            }
            if count == 0 {
                break;
            }
            let next = order.iter().take(count).map(|array| u32::try_from(start(*array) + place).ok());
            let mut read = others.slice(0..count);
            read.set_column(&this, elements.gather(&next.listed_if_all()?));
            read.set_column(&so_far, value);
            value = self.body.column(&read).ok()?;
            if value.size_bytes() > COLUMN_SIZE_BYTES_MAX {
                return None;
            }
        }
        done.reverse();
        let mut places = vec![0; order.len()];
        for (at, array) in (0..).zip(&order) {
            places.get_mut(*array).into_iter().for_each(|place| *place = at);
        }
        Some(Block::concat(done).column(&so_far)?.gather(&places))
    }

    /// The results of `$map` and `$filter`. For each element, `rows` has its row in `block`; arrays have these `ends`.
    fn mapped(
        &self,
        elements: &Column,
        rows: &[u32],
        ends: Vec<u32>,
        (outer, block): (&[Column], &Block),
    ) -> Option<ArrayElements> {
        let mut read = self.read_in(rows, (outer, block))?;
        read.set_column(&field_name(&self.prefix, 0), elements.clone());
        let values = self.body.column(&read).ok()?;
        if self.what == ElementsUse::Map {
            return Some(ArrayElements::new(values, ends));
        }
        let passing = truth::of_column(&values);
        Some(ArrayElements { values: elements.clone(), ends }.with(elements, &passing))
    }
}

fn field_name(prefix: &str, hops: usize) -> String {
    let mut name = hops.to_string();
    name.insert_str(0, prefix);
    name
}

/// The cells of some rows, each as often as it is named; `None` if they take too much memory.
fn repeated(column: &Column, rows: &[u32]) -> Option<Column> {
    if let (ColumnData::Bson(_), None) = (column.data(), column.presence())
        && column.len() <= rows.len()
    {
        // Values of any length, such as arrays from which the body takes elements, are not repeated.
        return Some(Column::new(ColumnData::Dictionary(rows.to_vec(), Box::new(column.clone())), None));
    }
    let fits = column.value_bytes_max().saturating_mul(rows.len()) <= COLUMN_SIZE_BYTES_MAX;
    fits.then(|| column.gather(rows))
}
