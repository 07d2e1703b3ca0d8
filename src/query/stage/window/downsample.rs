//! `$downsample`: selects the rows that show the shape of a line drawn through all of them. It is specific to timepail.
//!
//! The sort and the partitions are as in `$setWindowFields`. Rows are chosen by numbers in typed vectors; no row is
//! built.

use super::super::parse::{PipelineParser, check_fields};
use super::bounds::misuse;
use super::function::place;
use super::windows::WindowSpec;
use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::exec::join_blocks;
use crate::query::expr::BoundExpr;
use crate::query::sort::SortSpec;
use crate::value::{DocWriter, Kind, Number, Value};

/// Which rows of a partition stay.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowChoice {
    /// The value drawn over time.
    pub field: BoundExpr,
    points: usize,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// `lttb`: the first and the last row, and from each of equally large groups in between the row with the largest
    /// triangle.
    Triangles,
    /// `minmax`: the smallest and the largest value of each slice of time.
    Extremes,
    /// `m4`: also the first and the last of each slice.
    Corners,
}

impl PipelineParser<'_> {
    /// `$downsample`.
    ///
    /// Errors: `FailedToParse`, `TypeMismatch`, 40414 and 40415 for arguments, and those of sorts and expressions.
    pub fn downsample(&mut self, argument: Value<'_>) -> Result<()> {
        let message = "The $downsample stage specification must be an object";
        let doc = argument.as_doc().ok_or_else(|| misuse(message))?;
        let names = ["field", "points", "sortBy", "method", "partitionBy"];
        check_fields("$downsample", doc, &names, names.get(..3).unwrap_or_default())?;
        let sort = SortSpec::parse(doc.get("sortBy").unwrap_or(Value::NULL), self.globals.collation())?;
        let [by] = sort.parts() else { return Err(misuse("$downsample needs a sortBy of exactly one field")) };
        if !by.ascending {
            return Err(misuse("$downsample needs an ascending sortBy; a $sort after it can reverse the rows"));
        }
        let (method, least) = match doc.get("method").map_or(Some("lttb"), Value::as_str) {
            Some("lttb") => (Method::Triangles, 2),
            Some("minmax") => (Method::Extremes, 2),
            Some("m4") => (Method::Corners, 4),
            _ => return Err(misuse("The 'method' of $downsample must be 'lttb', 'minmax' or 'm4'")),
        };
        let points = doc.get("points").and_then(Value::as_integer).filter(|points| *points >= least);
        let points = points.and_then(|points| usize::try_from(points).ok());
        let message = "The 'points' of $downsample must be an integer of at least 2, or at least 4 for 'm4'";
        let points = points.ok_or_else(|| misuse(message))?;
        let field = doc.get("field").and_then(Value::as_str).filter(|field| !field.starts_with('$'));
        let field =
            self.field(field.ok_or_else(|| misuse("The 'field' of $downsample must be a path without '$'"))?)?;
        let partition = doc.get("partitionBy").map(|value| self.expr(value)).transpose()?;

        let mut unset = DocWriter::new();
        let partition = self.in_order(partition, Some(&sort), &mut unset)?;
        let spec = WindowSpec {
            partition,
            order: Some((self.field(by.path.as_str())?, true)),
            outputs: Vec::new(),
            choice: Some(RowChoice { field, points, method }),
            collation: self.globals.collation().clone(),
        };
        self.push(spec, "$downsample", argument);
        self.drop_fields(unset)
    }
}

/// The numbers of a column, or dates as numbers if they count; NaN for other values.
fn numbers(column: &Column, takes_dates: bool) -> Vec<f64> {
    let mut numbers: Vec<f64> = match column.data() {
        ColumnData::F64(cells) => cells.clone(),
        ColumnData::Date(cells) if takes_dates => doubles(cells),
        ColumnData::I64(cells) => doubles(cells),
        _ => {
            let mut scratch = Vec::new();
            let mut number = |row| {
                let value = column.value(row, &mut scratch).filter(|value| takes_dates || value.kind() != Kind::Date);
                value.and_then(place).map_or(f64::NAN, Number::near_double)
            };
            (0..column.len()).map(&mut number).collect()
        }
    };
    if let Some(presence) = column.presence() {
        for (_, number) in numbers.iter_mut().enumerate().filter(|(row, _)| !presence.get(*row)) {
            *number = f64::NAN;
        }
    }
    numbers
}

#[allow(clippy::cast_precision_loss)]
fn doubles(cells: &[i64]) -> Vec<f64> {
    cells.iter().map(|cell| *cell as f64).collect()
}

/// Points in order, with their distance from the first.
#[derive(Default)]
struct PointLine {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl RowChoice {
    /// The rows of a partition that stay; `order` is its sort key.
    ///
    /// Errors: those of expressions.
    pub fn rows(&self, blocks: &[Block], order: &BoundExpr) -> Result<Block> {
        let (mut line, mut rows): (PointLine, Vec<u32>) = Default::default();
        let (mut start, mut first) = (0, None);
        for block in blocks {
            let (x, y) = (numbers(&order.column(block)?, true), numbers(&self.field.column(block)?, false));
            for (row, (x, y)) in (start..).zip(x.into_iter().zip(y)) {
                if x.is_finite() && y.is_finite() {
                    line.x.push(x - *first.get_or_insert(x));
                    line.y.push(y);
                    rows.push(row);
                }
            }
            start = start.saturating_add(u32::try_from(block.rows()).unwrap_or(u32::MAX));
        }
        if rows.len() > self.points {
            let chosen = match self.method {
                Method::Triangles => line.largest_triangles(self.points),
                Method::Extremes => line.extremes(self.points / 2, false),
                Method::Corners => line.extremes(self.points / 4, true),
            };
            rows = chosen.into_iter().filter_map(|point| rows.get(point).copied()).listed();
        }
        let (mut kept, mut rest, mut start) = (Vec::new(), rows.as_slice(), 0);
        for block in blocks {
            let end = start + u32::try_from(block.rows()).unwrap_or(u32::MAX);
            let (here, behind) = rest.split_at(rest.partition_point(|row| *row < end));
            if !here.is_empty() {
                kept.push(block.gather(&here.iter().map(|row| row - start).collect::<Vec<_>>()));
            }
            (rest, start) = (behind, end);
        }
        Ok(join_blocks(kept))
    }
}

impl PointLine {
    fn points(&self, from: usize, to: usize) -> impl Iterator<Item = (f64, f64)> {
        let (x, y) = (self.x.get(from..to).unwrap_or_default(), self.y.get(from..to).unwrap_or_default());
        x.iter().copied().zip(y.iter().copied())
    }

    /// For each group, the largest triangle with the row chosen before it and the centre of the next group; `count`
    /// must be less than the number of points.
    fn largest_triangles(&self, count: usize) -> Vec<usize> {
        let (last, groups) = (self.x.len() - 1, count - 2);
        let product = |a: usize, b: usize| a as u64 * b as u64;
        // The start of each group; the first and the last row are in none.
        let start = |group: usize| 1 + usize::try_from(product(group, last - 1) / groups as u64).unwrap_or(last);
        let mut chosen = vec![0];
        let mut from = 0;
        for group in 0..groups {
            let (first, end) = (start(group), start(group + 1));
            let next = if group + 1 < groups { start(group + 2) } else { last + 1 };
            let sum = self.points(end, next).fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
            #[allow(clippy::cast_precision_loss)]
            let size = (next - end) as f64;
            let (to_x, to_y) = (sum.0 / size, sum.1 / size);
            let (from_x, from_y) = self.points(from, from + 1).next().unwrap_or_default();
            // If sums of values overflow, no triangle has an area, and the first row stays.
            let mut largest = -1.0;
            from = first;
            for (row, (x, y)) in (first..).zip(self.points(first, end)) {
                let area = ((from_x - to_x) * (y - from_y) - (from_x - x) * (to_y - from_y)).abs();
                if area > largest {
                    (largest, from) = (area, row);
                }
            }
            chosen.push(from);
        }
        chosen.push(last);
        chosen
    }

    /// The smallest and the largest value of each of `count` equal slices, the first of equal ones; with `ends`, also
    /// the first and the last.
    fn extremes(&self, slices: usize, ends: bool) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        let length = self.x.last().copied().unwrap_or_default();
        // Without a length, everything is one slice. The cast truncates and saturates, to the first or the last slice.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let slice = |x: f64| ((x / length * slices as f64) as usize).min(slices - 1);
        let mut start = 0;
        while let Some(x) = self.x.get(start) {
            let here = slice(*x);
            // A later date may be nearer to the first one if numbers precede dates; it stays in the slice that has
            // begun.
            let behind = self.x.get(start..).unwrap_or_default();
            let end = start + behind.iter().take_while(|x| slice(**x) <= here).count();
            let (mut least, mut greatest) = ((f64::INFINITY, start), (f64::NEG_INFINITY, start));
            for (row, (_, y)) in (start..).zip(self.points(start, end)) {
                if y < least.0 {
                    least = (y, row);
                }
                if y > greatest.0 {
                    greatest = (y, row);
                }
            }
            let (least, greatest) = (least.1, greatest.1);
            let inner = [least.min(greatest), least.max(greatest)];
            let all = [start, inner[0], inner[1], end - 1];
            for row in if ends { &all[..] } else { &inner[..] } {
                if chosen.last() != Some(row) {
                    chosen.push(*row);
                }
            }
            start = end;
        }
        chosen
    }
}
