//! Windows: which rows of its partition a row sees.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/window_function/window_bounds.cpp and partition_iterator.cpp.

use std::ops::Range;

use kernels::windows;

use super::super::parse::PipelineParser;
use crate::block::{Column, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::expr::{Expr, TimeUnit};
use crate::query::sort::SortSpec;
use crate::value::decimal::plus;
use crate::value::{Number, OwnedValue, Value, compare};

#[cold]
#[inline(never)]
pub(super) fn misuse(message: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, message)
}

/// The extent of a window as distances from the row; `None` is the end of the partition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    low: Option<OwnedValue>,
    high: Option<OwnedValue>,
    by: By,
}

/// The unit of distances.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Rows,
    /// Values of the sort key: numbers, or dates with a unit.
    Values(Option<TimeUnit>),
}

impl Window {
    /// All rows of the partition.
    pub const WHOLE: Window = Window { low: None, high: None, by: By::Rows };

    /// Parses `{documents: [<low>, <high>]}`, `{range: [<low>, <high>], unit: <unit>}` or `{}`.
    ///
    /// Errors: `FailedToParse`; 5339900 if it ends before it begins; 5339901, 5339902 and 8947401 if the sort does not
    /// fit.
    pub fn parse(value: Value<'_>, sort: Option<&SortSpec>, parser: &PipelineParser<'_>) -> Result<Window> {
        let Some(doc) = value.as_doc() else { return Err(misuse("The 'window' must be an object")) };
        let (documents, range, unit) = (doc.get("documents"), doc.get("range"), doc.get("unit"));
        let known = [documents, range, unit].iter().filter(|value| value.is_some()).count();
        if documents.is_some() && range.is_some() || doc.iter().count() != known || range.is_none() && unit.is_some() {
            return Err(misuse("A 'window' must have either 'documents', or 'range' with an optional 'unit'"));
        }
        let Some(bounds) = documents.or(range) else { return Ok(Window::WHOLE) };
        let both: Vec<Value<'_>> = bounds.elements().map(|(_, bound)| bound).listed();
        let [low, high] = both.as_slice() else { return Err(misuse("Window bounds must be a 2-element array")) };
        let by = match (range, unit) {
            (None, _) => By::Rows,
            (_, None) => By::Values(None),
            (_, Some(unit)) => By::Values(Some(parse_unit(unit)?)),
        };
        let (low, high) = (bound(*low, by, parser)?, bound(*high, by, parser)?);
        if let (Some(low), Some(high)) = (&low, &high)
            && compare(low.view(), high.view()).is_gt()
        {
            return Err(Error::new(ErrorCode::Location5339900, "Lower bound must not exceed upper bound"));
        }
        let parts = sort.map_or(&[][..], SortSpec::parts);
        match (by, parts) {
            (By::Rows, []) if low.is_some() || high.is_some() => {
                return Err(Error::new(ErrorCode::Location5339901, "Document-based bounds require a sortBy"));
            }
            (By::Rows, _) => {}
            (_, [only]) if !only.ascending => {
                let message = "Range-based bounds require an ascending sortBy";
                return Err(Error::new(ErrorCode::Location8947401, message));
            }
            (_, [_]) => {}
            _ => {
                let message = "Range-based bounds require sortBy a single field";
                return Err(Error::new(ErrorCode::Location5339902, message));
            }
        }
        Ok(Window { low, high, by })
    }

    /// True if every row is in its own window.
    pub fn has_current(&self) -> bool {
        let zero = OwnedValue::int32(0);
        self.low.as_ref().is_none_or(|low| compare(low.view(), zero.view()).is_le())
            && self.high.as_ref().is_none_or(|high| compare(high.view(), zero.view()).is_ge())
    }

    /// The window of each row in a partition of `rows` rows.
    ///
    /// Errors: 5429413, 5429414 and 5429513 if the sort key does not have the type of the distances.
    pub fn ranges(&self, rows: usize, order: Option<&Column>) -> Result<Vec<Range<usize>>> {
        let unit = match (self.by, &self.low, &self.high) {
            // Unbounded in any unit.
            (_, None, None) => return Ok(vec![0..rows; rows]),
            (By::Rows, low, high) => {
                let distance = |bound: &Option<OwnedValue>| bound.as_ref().and_then(|n| n.view().as_integer());
                return Ok(windows::of_rows(rows, distance(low), distance(high)));
            }
            (By::Values(unit), ..) => unit,
        };
        let distance = |bound: &Option<OwnedValue>| bound.as_ref().and_then(|bound| Number::of(bound.view()));
        let (low, high) = (distance(&self.low), distance(&self.high));
        if let Some((places, [low, high])) = order.and_then(|order| integers(order, unit, [low, high])) {
            return Ok(windows::of_places(places, low, high));
        }
        let mut places = Vec::with_capacity(rows);
        let mut scratch = Vec::new();
        for row in 0..rows {
            places.push(place(order.and_then(|order| order.value(row, &mut scratch)), unit)?);
        }
        let move_by = |place: &Number, by| moved(*place, by, unit);
        let starts = edges(&places, low, move_by, |place, limit| place.compare(*limit).is_lt())?;
        Ok(spans(rows, starts, edges(&places, high, move_by, |place, limit| place.compare(*limit).is_le())?))
    }
}

/// The cells of a sort key and the bounds as integers, if the cells are dates or integers and stay so when they are moved
/// by the bounds. The cells are in order.
fn integers(order: &Column, unit: Option<TimeUnit>, by: [Option<Number>; 2]) -> Option<(&[i64], [Option<i64>; 2])> {
    let (cells, length) = match (order.data(), unit) {
        _ if order.presence().is_some() => return None,
        (ColumnData::Date(cells), Some(unit)) => (cells, unit.length_ms()?),
        (ColumnData::I64(cells), None) => (cells, 1),
        _ => return None,
    };
    let [low, high] = by.map(|by| {
        let Some(by) = by else { return Some(None) };
        let by = match by {
            Number::Integer(by) => by,
            by => by.truncated().filter(|_| unit.is_some())?,
        };
        let by = by.checked_mul(length)?;
        let is_within =
            [cells.first(), cells.last()].iter().all(|cell| cell.is_none_or(|cell| cell.checked_add(by).is_some()));
        is_within.then_some(Some(by))
    });
    Some((cells, [low?, high?]))
}

/// For each place, how many places lie before its end of a window, which is `by` away; `None` without an end. The end
/// moves along with the places; back where a month is shorter than the one before.
fn edges(
    places: &[Number],
    by: Option<Number>,
    moved: impl Fn(&Number, Number) -> Result<Number>,
    is_before: impl Fn(&Number, &Number) -> bool,
) -> Result<Option<Vec<usize>>> {
    let Some(by) = by else { return Ok(None) };
    let (mut edges, mut edge) = (Vec::with_capacity(places.len()), 0);
    for place in places {
        let limit = moved(place, by)?;
        while places.get(edge).is_some_and(|place| is_before(place, &limit)) {
            edge += 1;
        }
        while edge.checked_sub(1).and_then(|at| places.get(at)).is_some_and(|place| !is_before(place, &limit)) {
            edge -= 1;
        }
        edges.push(edge);
    }
    Ok(Some(edges))
}

fn spans(rows: usize, starts: Option<Vec<usize>>, ends: Option<Vec<usize>>) -> Vec<Range<usize>> {
    let at = |edges: &Option<Vec<usize>>, row: usize| edges.as_ref().and_then(|edges| edges.get(row)).copied();
    let span = |row| {
        let end = at(&ends, row).unwrap_or(rows);
        at(&starts, row).unwrap_or(0).min(end)..end
    };
    (0..rows).map(span).collect()
}

/// The unit of time with this name.
pub(in super::super) fn parse_unit(unit: Value<'_>) -> Result<TimeUnit> {
    let unit = unit.as_str().and_then(TimeUnit::named);
    unit.ok_or_else(|| misuse("The 'unit' of a window must be the name of a unit of time"))
}

fn bound(value: Value<'_>, by: By, parser: &PipelineParser<'_>) -> Result<Option<OwnedValue>> {
    match value.as_str() {
        Some("unbounded") => return Ok(None),
        Some("current") => return Ok(Some(OwnedValue::int32(0))),
        Some(_) => return Err(misuse("Window bounds must be 'unbounded', 'current', or a number")),
        None => {}
    }
    let expr = parser.expr(value)?;
    let Expr::Constant(Some(bound)) = expr.expr() else {
        return Err(misuse("Window bounds expression must be a constant"));
    };
    let fits = match by {
        By::Values(None) => bound.view().kind().is_number(),
        _ => bound.view().as_integer().is_some(),
    };
    if fits {
        Ok(Some(bound.clone()))
    } else {
        Err(misuse("Window bounds must be integers, or any numbers for a 'range' without 'unit'"))
    }
}

/// The position of a row on the axis of the sort key.
fn place(value: Option<Value<'_>>, unit: Option<TimeUnit>) -> Result<Number> {
    let date = value.and_then(Value::as_date_ms);
    let (place, code) = match (unit, date) {
        (Some(_), date) => (date.map(Number::Integer), ErrorCode::Location5429513),
        (None, Some(_)) => (None, ErrorCode::Location5429413),
        (None, None) => (value.and_then(Number::of), ErrorCode::Location5429414),
    };
    let message = "A 'range' needs a sortBy field with dates if it has a 'unit', and with numbers otherwise";
    place.ok_or_else(|| Error::new(code, message))
}

fn moved(from: Number, by: Number, unit: Option<TimeUnit>) -> Result<Number> {
    if let (Number::Integer(from), Number::Integer(by)) =
        (from, by.truncated().filter(|_| unit.is_some()).map_or(by, Number::Integer))
    {
        let to = unit.map_or_else(|| from.checked_add(by), |unit| unit.shift(from, by));
        if let Some(to) = to {
            return Ok(Number::Integer(to));
        }
        if unit.is_some() {
            return Err(Error::new(ErrorCode::Location5166406, "A window extends to a date out of range"));
        }
    }
    Ok(plus(from, by))
}
