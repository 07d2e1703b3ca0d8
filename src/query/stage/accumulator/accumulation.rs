//! A parsed accumulator field.

use std::borrow::Cow;

use super::arguments;
use super::model::{Accumulator, Inputs, Settings};
use super::table::AccumulatorSpec;
use crate::block::{Block, ColumnBuilder};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::EDGE_ROWS_MAX;
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr, Globals, Variable};
use crate::value::{Collation, Doc, DocWriter, Kind, Value};

/// A parsed field of a `$group`.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulation {
    /// The name of the field.
    pub name: Box<str>,
    pub(super) spec: AccumulatorSpec,
    /// The expression that it accumulates; for `$top` and its siblings, the output.
    pub input: BoundExpr,
    /// The sort keys of `$top` and its siblings.
    pub(super) keys: Vec<BoundExpr>,
    /// The number of values to keep, as an expression of a group's id.
    pub(super) n: Option<BoundExpr>,
    /// For `$top` and its siblings by one field: that field, whether ascending, and the output.
    pub(super) by_one: Option<(Box<str>, bool, BoundExpr)>,
    pub(super) settings: Settings,
}

impl Accumulation {
    /// Parses `{<operator>: <argument>}` for the field `name`.
    ///
    /// Errors: 15952 for an unknown operator, and those of its arguments.
    pub fn parse(name: &str, operator: &str, argument: Value<'_>, globals: &Globals) -> Result<Accumulation> {
        arguments::parse(name, operator, argument, globals)
    }

    /// True if the order of rows does not matter, or if knowing their times is enough.
    pub fn takes_any_order(&self) -> bool {
        self.spec.takes_any_order
    }

    /// True if null and missing values make no difference.
    pub fn skips_null(&self) -> bool {
        self.takes_any_order() && self.is_last().is_none() && self.keys.is_empty()
    }

    /// If it keeps one row by time: whether the last (true) or the first.
    pub fn is_last(&self) -> Option<bool> {
        match self.spec.name {
            "$first" => Some(false),
            "$last" => Some(true),
            _ => None,
        }
    }

    /// If it keeps rows from one end by time: whether the last ones, and how many. `ascending` is the time order in
    /// which rows come; without it, the accumulator must have a time order of its own.
    pub fn end(&self, ascending: Option<bool>, time_field: &str) -> Option<(bool, usize)> {
        let count = match &self.n {
            None => 1,
            Some(n) => match n.expr() {
                Expr::Constant(Some(n)) => usize::try_from(n.view().as_integer()?).ok()?,
                _ => return None,
            },
        };
        let of_time = matches!(self.input.expr(), Expr::Field(Variable::Root, path) if matches!(&path[..], [name] if **name == *time_field));
        let is_last = match (self.spec.name, &self.by_one) {
            ("$first" | "$firstN", _) => !ascending?,
            ("$last" | "$lastN", _) => ascending?,
            ("$min", _) if of_time => false,
            ("$max", _) if of_time => true,
            (name, Some((path, ascending, _))) if **path == *time_field => name.starts_with("$top") != *ascending,
            _ => return None,
        };
        (1..=EDGE_ROWS_MAX).contains(&count).then_some((is_last, count))
    }

    /// If it counts rows: the type of the constant 1 that it adds up, which is a double if it comes from JavaScript.
    pub fn counts_as(&self) -> Option<Kind> {
        let Expr::Constant(Some(one)) = self.input.expr() else { return None };
        (one.view().as_integer() == Some(1) && matches!(self.spec.name, "$sum" | "$count")).then(|| one.view().kind())
    }

    /// True if the result can be computed from the number of rows and the smallest and largest value of each top-level
    /// field (for the time: the largest). This does not hold if rows are sorted and the first of several equal values,
    /// such as 1 and 1.0, must be returned.
    pub fn is_summary(&self, time_field: &str, sorted: bool) -> bool {
        let is_extreme = |name: &str| match name == time_field {
            true => self.spec.name == "$max",
            false => !sorted && matches!(self.spec.name, "$min" | "$max"),
        };
        let is_field = |expr: &Expr| matches!(expr, Expr::Field(Variable::Root, path) if matches!(&path[..], [name] if is_extreme(name)));
        self.counts_as().is_some() || is_field(self.input.expr())
    }

    /// The same as `$first` or `$last` over rows in ascending order of `time_field`, if it keeps one row by that field
    /// alone.
    pub fn as_first_or_last(&self, time_field: &str) -> Option<Accumulation> {
        let (path, ascending, output) = self.by_one.as_ref().filter(|(path, ..)| **path == *time_field)?;
        debug_assert!(!path.is_empty());
        let is_one = |n: &Expr| matches!(n, Expr::Constant(Some(n)) if n.view().as_integer() == Some(1));
        let spec = AccumulatorSpec::named(match self.spec.name.starts_with("$top") == *ascending {
            true => "$first",
            false => "$last",
        })?;
        let (name, settings) = (self.name.clone(), self.settings.clone());
        let replacement =
            Accumulation { name, spec, input: output.clone(), keys: Vec::new(), n: None, by_one: None, settings };
        Some(replacement).filter(|_| self.n.as_ref().is_none_or(|n| is_one(n.expr())))
    }

    /// True if the id of a group may decide how many values it keeps.
    pub fn reads_id(&self) -> bool {
        self.n.as_ref().is_some_and(|n| !matches!(n.expr(), Expr::Constant(_)))
    }

    /// The number of values that a group keeps: `n`, computed from the fields of the group's id.
    ///
    /// Errors: 5787902, 5787903 and 5787908 if it is not a positive integer.
    pub fn count<'a>(&self, id: &dyn Fn() -> Option<Doc<'a>>) -> Result<usize> {
        let Some(n) = &self.n else { return Ok(1) };
        let empty = DocWriter::new().finish();
        let refuse = |code, what: &str| Err(Error::new(code, format!("Value for 'n' must be {what}")));
        let n = n.value(id().unwrap_or(empty.view()))?;
        let Some(n) = n.filter(|n| n.view().kind().is_number()) else {
            return refuse(ErrorCode::Location5787902, "of integral type");
        };
        match n.view().as_integer() {
            None => refuse(ErrorCode::Location5787903, "of integral type"),
            Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
            Some(_) => refuse(ErrorCode::Location5787908, "greater than 0"),
        }
    }

    /// The expressions whose values it takes.
    pub fn exprs(&self) -> impl Iterator<Item = &BoundExpr> {
        std::iter::once(&self.input).chain(&self.keys)
    }

    /// What it takes of rows. If few of them stay, what is shown of these is not made before; `all_stay` if most do.
    ///
    /// Errors: those of its expressions.
    pub fn inputs<'a>(&'a self, rows: &'a Block, all_stay: bool) -> Result<Inputs<'a>> {
        let keys = self.keys.iter().map(|key| key.column(rows)).try_listed()?;
        let input = &self.input;
        let keeps_few = !all_stay && (self.n.is_some() || !keys.is_empty() || self.is_last().is_some());
        let plain = input.plain_column(rows);
        // Objects and arrays are made for rows that stay, unless others could fail.
        let is_late = keeps_few && !self.skips_null() && plain.is_none() && cannot_fail(input.expr());
        let shown = is_late.then_some((input, rows));
        let cells = match plain {
            Some(cells) => Cow::Borrowed(cells),
            None if is_late => Cow::Owned(ColumnBuilder::new().finish()),
            None if self.skips_null() => Cow::Owned(input.column_without_null(rows)?),
            None => Cow::Owned(input.column(rows)?),
        };
        Ok(Inputs { cells, keys, shown })
    }

    /// How strings compare.
    pub fn collation(&self) -> &Collation {
        &self.settings.collation
    }

    /// True if it ranks values by keys.
    pub fn is_ranked(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The accumulator, without groups.
    pub fn start(&self) -> Box<dyn Accumulator> {
        (self.spec.start)(&self.settings)
    }
}

/// True for fields, constants, and arrays and objects of these.
pub fn cannot_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Constant(_) | Expr::Field(..) => true,
        Expr::Array(items) => items.iter().all(cannot_fail),
        Expr::Object(fields) => fields.iter().all(|(_, field)| cannot_fail(field)),
        Expr::Call(..) => false,
    }
}
