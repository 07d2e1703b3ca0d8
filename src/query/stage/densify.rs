//! `$densify`: adds rows where a number or a date is missing from a grid.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_densify.cpp. A sort comes first. All rows are held,
//! because a grid may begin at the smallest and end at the largest value of all.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;

use super::model::Others;
use super::parse::{PipelineParser, check_fields};
use super::running::Stage;
use super::spec::{Spec, read_by};
use crate::block::{Block, DocPivot};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{DENSIFIED_ROWS_MAX, STAGE_SIZE_BYTES_MAX};
use crate::listed::IntoList;
use crate::query::exec::{Coder, Flow, MissingAs, Tuples, join_blocks};
use crate::query::expr::{BoundExpr, TimeUnit};
use crate::query::plan::write_set;
use crate::query::sort::SortSpec;
use crate::value::decimal::{plus, result};
use crate::value::{Collation, Doc, DocWriter, FieldSet, Kind, Number, OwnedValue, Value, compare};

/// The specification of a `$densify`, without its sort.
struct DensifySpec {
    /// The path of the field, and the expression that reads it.
    field: (Vec<Box<str>>, BoundExpr),
    /// The fields that rows of a partition share.
    partition: Vec<(Vec<Box<str>>, BoundExpr)>,
    step: OwnedValue,
    unit: Option<TimeUnit>,
    bounds: Bounds,
    collation: Collation,
}

/// The range of a grid.
#[derive(Clone, Debug, PartialEq)]
enum Bounds {
    /// From the smallest to the largest value of all partitions.
    Full,
    /// From the smallest to the largest value of each partition.
    Partition,
    /// From the first value to before the second.
    Between(OwnedValue, OwnedValue),
}

impl DensifySpec {
    /// The ends of a grid that are given.
    fn between(&self) -> Option<(GridPlace, GridPlace)> {
        match &self.bounds {
            Bounds::Between(low, high) => GridPlace::of(low.view()).zip(GridPlace::of(high.view())),
            _ => None,
        }
    }
}

impl Spec for DensifySpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        read_by(behind, self.partition.iter().chain([&self.field]).map(|(_, expr)| expr))
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Densify::new(self))
    }
}

#[cold]
#[inline(never)]
fn refuse(code: ErrorCode, message: &str) -> Error {
    Error::new(code, message)
}

impl PipelineParser<'_> {
    /// `$densify`.
    ///
    /// Errors: `FailedToParse`, 40414, 40415, `TypeMismatch`, and those of ranges.
    pub fn densify(&mut self, argument: Value<'_>) -> Result<()> {
        let message = "The $densify stage specification must be an object";
        let doc = argument.as_doc().ok_or_else(|| refuse(ErrorCode::FailedToParse, message))?;
        check_fields("$densify", doc, &["field", "partitionByFields", "range"], &["field", "range"])?;
        let wrong = || {
            Error::type_mismatch("$densify needs a string 'field', an object 'range', and names in 'partitionByFields'")
        };
        let field = doc.get("field").and_then(Value::as_str).ok_or_else(wrong)?;
        let range = doc.get("range").and_then(Value::as_doc).ok_or_else(wrong)?;
        check_fields("$densify.range", range, &["step", "unit", "bounds"], &["step", "bounds"])?;
        let mut names = Vec::new();
        if let Some(list) = doc.get("partitionByFields") {
            for (_, name) in list.as_array().ok_or_else(wrong)? {
                names.push(name.as_str().ok_or_else(wrong)?);
            }
        }

        let zero = OwnedValue::int32(0);
        let step = range.get("step").filter(|step| step.kind().is_number() && compare(*step, zero.view()).is_gt());
        let message = "The step parameter in a range statement must be a strictly positive numeric value";
        let step = step.ok_or_else(|| refuse(ErrorCode::Location5733401, message))?;
        let unit = match range.get("unit") {
            Some(unit) if step.as_integer().is_some() => Some(super::window::parse_unit(unit)?),
            Some(_) => {
                let message = "The step parameter in a range statement must be a whole number for dates";
                return Err(refuse(ErrorCode::Location6586400, message));
            }
            None => None,
        };
        let bounds = parse_bounds(range.get("bounds").unwrap_or(Value::NULL), step, unit)?;
        if bounds == Bounds::Partition && names.is_empty() {
            let message = "The bounds 'partition' need partitionByFields";
            return Err(refuse(ErrorCode::Location5733408, message));
        }

        let parts = |path: &str| -> Vec<Box<str>> { path.split('.').map(Into::into).listed() };
        let mut sort = DocWriter::new();
        let mut partition = Vec::new();
        for name in names {
            partition.push((parts(name), self.field(name)?));
            sort.int32(name, 1);
        }
        let place = self.field(field)?;
        sort.int32(field, 1);
        let spec = DensifySpec {
            field: (parts(field), place),
            partition,
            step: step.to_owned(),
            unit,
            bounds,
            collation: self.globals.collation().clone(),
        };
        let sort = SortSpec::parse(sort.finish().view().as_value(), self.globals.collation())?;
        self.sort_rows(sort);
        self.push(spec, "$_internalDensify", argument);
        Ok(())
    }
}

fn parse_bounds(bounds: Value<'_>, step: Value<'_>, unit: Option<TimeUnit>) -> Result<Bounds> {
    use ErrorCode as E;
    match (bounds.as_str(), bounds.as_array()) {
        (Some("full"), _) => Ok(Bounds::Full),
        (Some("partition"), _) => Ok(Bounds::Partition),
        (Some(_), _) => Err(refuse(E::Location5946802, "Bounds string must either be 'full' or 'partition'")),
        (None, None) => {
            Err(refuse(E::Location5733404, "The bounds must be the string 'full', 'partition', or an ascending array"))
        }
        (None, Some(array)) => {
            let both: Vec<Value<'_>> = array.iter().map(|(_, bound)| bound).collect();
            let [low, high] = both.as_slice() else {
                return Err(refuse(E::Location5733403, "A bounding array must have exactly two elements"));
            };
            let (is_number, is_date) = (low.kind().is_number(), low.kind() == Kind::Date);
            let same = low.kind() == high.kind() && low.kind() == step.kind();
            let problem = match () {
                () if compare(*low, *high).is_gt() => Some((E::Location5733402, "A bounding array must be ascending")),
                () if is_number && unit.is_some() => {
                    Some((E::Location5733409, "Numeric bounds may not have unit parameter"))
                }
                () if is_number && !high.kind().is_number() => {
                    Some((E::Location5733406, "A bounding array must contain either both dates or both numeric types"))
                }
                () if is_number && !same => {
                    Some((E::Location5876900, "Upper bound, lower bound, and step must all have the same type"))
                }
                () if is_date && high.kind() != Kind::Date => {
                    Some((E::Location5733405, "A bounding array must contain either both dates or both numeric types"))
                }
                () if is_date && unit.is_none() => {
                    Some((E::Location5733410, "A bounding array of dates must specify a unit"))
                }
                () if !is_number && !is_date => Some((E::Location5946800, "Explicit bounds must be numeric or dates")),
                () => None,
            };
            match problem {
                Some((code, message)) => Err(refuse(code, message)),
                None => Ok(Bounds::Between(Value::to_owned(*low), Value::to_owned(*high))),
            }
        }
    }
}

/// A running `$densify` over sorted rows.
struct Densify {
    spec: Rc<DensifySpec>,
    held: Vec<Block>,
    size_bytes: usize,
    generated: usize,
    ready: VecDeque<Block>,
}

/// A value on the axis of a grid: a date or a number, and its type.
#[derive(Clone, Copy)]
struct GridPlace {
    at: Number,
    kind: Kind,
}

impl GridPlace {
    /// The place of a value; `None` for others than numbers and dates.
    fn of(value: Value<'_>) -> Option<GridPlace> {
        let at = value.as_date_ms().map(Number::Integer).or_else(|| Number::of(value))?;
        Some(GridPlace { at, kind: value.kind() })
    }

    fn compare(self, other: GridPlace) -> Ordering {
        self.at.compare(other.at)
    }

    fn value(self) -> OwnedValue {
        match (self.at, self.kind) {
            (Number::Integer(n), Kind::Date) => OwnedValue::date(n),
            (Number::Integer(n), Kind::Int32) => OwnedValue::int32(i32::try_from(n).unwrap_or_default()),
            (Number::Integer(n), _) => OwnedValue::int64(n),
            (number, _) => result(number),
        }
    }
}

/// The rows of a partition, and the rows generated between them.
struct DensifyGrid<'a> {
    partition: Doc<'a>,
    /// The next value on the grid.
    next: Option<GridPlace>,
    made: DocPivot,
    made_count: usize,
    /// The output in order: the rows of the partition by their place in it, `None` for the next generated one.
    order: Vec<Option<u32>>,
}

impl Densify {
    fn new(spec: Rc<DensifySpec>) -> Densify {
        Densify { spec, held: Vec::new(), size_bytes: 0, generated: 0, ready: VecDeque::new() }
    }

    /// The next value on the grid.
    fn step(&self, from: GridPlace) -> Result<GridPlace> {
        let step = self.spec.step.view();
        if let (Number::Integer(ms), Kind::Date, Some(unit)) = (from.at, from.kind, self.spec.unit) {
            let next = unit.shift(ms, step.as_integer().unwrap_or_default());
            let message = "$densify would generate a date out of range";
            let next = next.ok_or_else(|| refuse(ErrorCode::Location5166406, message))?;
            return Ok(GridPlace { at: Number::Integer(next), kind: Kind::Date });
        }
        let by = Number::of(step).unwrap_or(Number::Integer(0));
        if let (Number::Integer(a), Number::Integer(b)) = (from.at, by)
            && let Some(next) = a.checked_add(b)
        {
            let is_narrow = from.kind == Kind::Int32 && step.kind() == Kind::Int32 && i32::try_from(next).is_ok();
            let kind = if is_narrow { Kind::Int32 } else { Kind::Int64 };
            return Ok(GridPlace { at: Number::Integer(next), kind });
        }
        let next = result(plus(from.at, by));
        GridPlace::of(next.view()).ok_or_else(|| Error::internal("A value is not on the grid of $densify"))
    }

    /// Generates rows for values before `end`, or up to it if `included`.
    fn fill(&mut self, grid: &mut DensifyGrid<'_>, end: GridPlace, included: bool) -> Result<()> {
        while let Some(next) = grid.next.take() {
            let order = next.compare(end);
            if order.is_gt() || order.is_eq() && !included {
                grid.next = Some(next);
                break;
            }
            if self.spec.between().is_some_and(|(_, high)| next.compare(high).is_ge()) {
                break;
            }
            self.generated += 1;
            if self.generated > DENSIFIED_ROWS_MAX {
                return Err(refuse(ErrorCode::Location5897900, "$densify would generate too many documents"));
            }
            let mut row = DocWriter::new();
            write_set(&mut row, Some(grid.partition), &self.spec.field.0, Some(next.value().view()));
            grid.made.push(row.finish().view())?;
            grid.made_count += 1;
            grid.order.push(None);
            grid.next = Some(self.step(next)?);
        }
        Ok(())
    }

    /// The position of a row on the grid's axis; `None` for rows without a value.
    fn check_value(&self, value: Option<Value<'_>>) -> Result<Option<GridPlace>> {
        let Some(value) = value.filter(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined)) else {
            return Ok(None);
        };
        let (place, has_unit) = (GridPlace::of(value), self.spec.unit.is_some());
        match (place.is_some(), value.kind() == Kind::Date, has_unit) {
            (false, ..) => Err(refuse(ErrorCode::Location5733201, "The $densify field must be numeric or a date")),
            (_, false, true) => {
                Err(refuse(ErrorCode::Location6053600, "A $densify value is numeric, but the step has a unit"))
            }
            (_, true, false) => {
                Err(refuse(ErrorCode::Location6053601, "A $densify value is a date, but the step has no unit"))
            }
            _ => Ok(place),
        }
    }

    /// Outputs the rows of a partition.
    fn densify(
        &mut self,
        partition: Doc<'_>,
        rows: &Block,
        places: &[Option<GridPlace>],
        members: &[u32],
        ends: Option<(GridPlace, GridPlace)>,
    ) -> Result<()> {
        let place_of = |row: &u32| places.get(*row as usize).copied().flatten();
        let first = members.iter().find_map(place_of);
        let between = self.spec.between();
        let next = match (&self.spec.bounds, between, ends) {
            (_, Some((low, _)), _) if first.is_some() || self.spec.partition.is_empty() => Some(low),
            (Bounds::Full, _, Some((min, _))) if first.is_some() => Some(min),
            (Bounds::Partition, ..) => first,
            _ => None,
        };
        let order = Vec::with_capacity(members.len());
        let mut grid = DensifyGrid { partition, next, made: DocPivot::new(), made_count: 0, order };
        for (row, at) in members.iter().zip(0..) {
            if let Some(place) = place_of(row) {
                self.fill(&mut grid, place, false)?;
                if let Some(next) = grid.next.take() {
                    let is_there = next.compare(place).is_eq();
                    grid.next = Some(if is_there { self.step(next)? } else { next });
                }
            }
            grid.order.push(Some(at));
        }
        match (&self.spec.bounds, between, ends) {
            (_, Some((_, high)), _) => self.fill(&mut grid, high, false)?,
            (Bounds::Full, _, Some((_, max))) => self.fill(&mut grid, max, true)?,
            _ => {}
        }
        let rows = rows.gather(members);
        if grid.made_count == 0 {
            self.ready.push_back(rows);
            return Ok(());
        }
        let mut made = u32::try_from(rows.rows()).unwrap_or(u32::MAX)..;
        let order: Vec<u32> = grid.order.iter().filter_map(|row| row.or_else(|| made.next())).listed();
        let all = join_blocks(vec![rows, grid.made.finish()]);
        self.ready.push_back(all.gather(&order));
        Ok(())
    }
}

impl Stage for Densify {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.size_bytes += rows.size_bytes();
        if self.size_bytes > STAGE_SIZE_BYTES_MAX {
            let message = "Exceeded memory limit for $densify, and there is no disk to spill to";
            return Err(refuse(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, message));
        }
        self.held.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        let rows = join_blocks(std::mem::take(&mut self.held));
        let spec = Rc::clone(&self.spec);
        let field = spec.field.1.column(&rows)?;
        let mut scratch = Vec::new();
        let place = |row| self.check_value(field.value(row, &mut scratch));
        let places = (0..rows.rows()).map(place).try_listed()?;
        let there = || places.iter().copied().flatten();
        let min = there().reduce(|a, b| if b.compare(a).is_lt() { b } else { a });
        let max = there().reduce(|a, b| if b.compare(a).is_gt() { b } else { a });
        if places.is_empty() {
            let empty = DocWriter::new().finish();
            return if spec.partition.is_empty() { self.densify(empty.view(), &rows, &[], &[], None) } else { Ok(()) };
        }
        let keys = spec.partition.iter().map(|(_, expr)| expr.column(&rows)).try_listed()?;
        let (mut parts, mut counts) = (Vec::new(), Vec::new());
        for key in &keys {
            let mut coder = Coder::new(spec.collation.clone(), MissingAs::Undefined);
            parts.push(coder.numbers(key, 0..rows.rows()));
            counts.push(coder.count());
        }
        let numbers = Tuples::new(keys.len()).numbers(parts, &counts, rows.rows());
        let mut members: Vec<Vec<u32>> = Vec::new();
        numbers.for_each_run(0..rows.rows(), &mut |number, run| {
            members.resize(members.len().max(number as usize + 1), Vec::new());
            let run = run.filter_map(|row| u32::try_from(row).ok());
            members.get_mut(number as usize).into_iter().for_each(|rows| rows.extend(run.clone()));
            Ok::<(), Error>(())
        })?;
        for members in members {
            let mut partition = DocWriter::new().finish();
            let first = members.first().map_or(0, |row| *row as usize);
            for ((path, _), column) in spec.partition.iter().zip(&keys) {
                if let Some(value) = column.value(first, &mut scratch) {
                    let mut with = DocWriter::new();
                    write_set(&mut with, Some(partition.view()), path, Some(value));
                    partition = with.finish();
                }
            }
            self.densify(partition.view(), &rows, &places, &members, min.zip(max))?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        while let Some(block) = self.ready.pop_front() {
            if block.rows() > 0 {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }
}
