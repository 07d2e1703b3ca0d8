//! `$bucket` and `$bucketAuto`: groups by boundaries, either given ones or ones that make groups equally large.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_bucket.cpp and document_source_bucket_auto.cpp.

use std::rc::Rc;

use super::accumulator::word_of;
use super::granularity::PreferredNumbers;
use super::group::{Group, GroupSpec, Key, KeyCells};
use super::model::Others;
use super::parse::PipelineParser;
use super::running::Stage;
use super::spec::Spec;
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::{Flow, join_blocks};
use crate::query::expr::{BoundExpr, Expr, bucket_of};
use crate::query::sort::SortSpec;
use crate::value::{Collation, DocWriter, FieldSet, OwnedValue, Value, canonical_class, sort_by, sort_rows};

#[cold]
#[inline(never)]
fn refuse(code: ErrorCode, message: &str) -> Error {
    Error::new(code, message)
}

impl PipelineParser<'_> {
    /// `$bucket`: groups by the boundary below a value, sorted.
    ///
    /// Errors: 40191 to 40202, and those of `$group`.
    pub fn bucket(&mut self, argument: Value<'_>) -> Result<()> {
        use ErrorCode as E;
        let doc = argument.as_doc().ok_or_else(|| refuse(E::Location40201, "Argument to $bucket must be an object"))?;
        let (mut by, mut boundaries, mut default, mut output) = (None, Vec::new(), None, None);
        for (name, value) in doc {
            match name {
                "groupBy" if is_expression(value) => by = Some(value),
                "groupBy" => {
                    let message = "The $bucket 'groupBy' field must be a $-prefixed path or an expression";
                    return Err(refuse(E::Location40202, message));
                }
                "boundaries" => {
                    let message = "The $bucket 'boundaries' field must be an array";
                    let list = value.as_array().ok_or_else(|| refuse(E::Location40200, message))?;
                    for (_, value) in list {
                        boundaries.push(self.bucket_constant(value, E::Location40191)?);
                    }
                    self.check_boundaries(&boundaries)?;
                }
                "default" => default = Some(self.bucket_constant(value, E::Location40195)?),
                "output" => {
                    let message = "The $bucket 'output' field must be an object";
                    output = Some(value.as_doc().ok_or_else(|| refuse(E::Location40196, message))?);
                }
                _ => return Err(refuse(E::Location40197, "Unrecognized option to $bucket")),
            }
        }
        let (Some(by), [first, .., last]) = (by, boundaries.as_slice()) else {
            let message = "$bucket requires 'groupBy' and 'boundaries' to be specified";
            return Err(refuse(E::Location40198, message));
        };
        let collation = self.globals.collation();
        if let Some(default) = &default
            && canonical_class(default.view().kind()) == canonical_class(first.view().kind())
            && collation.compare(default.view(), first.view()).is_ge()
            && collation.compare(default.view(), last.view()).is_lt()
        {
            let message =
                "The $bucket 'default' field must be less than the lowest boundary or not less than the highest";
            return Err(refuse(E::Location40199, message));
        }
        let mut group = DocWriter::new();
        group.begin_doc("_id").begin_doc("$let").begin_doc("vars").value("v", by).end().begin_doc("in");
        group.begin_doc("$switch").begin_array("branches");
        for (place, pair) in boundaries.windows(2).enumerate() {
            let [low, high] = pair else { continue };
            group.begin_doc(&place.to_string()).begin_doc("case").begin_array("$and");
            for (place, operator, bound) in [("0", "$gte", low), ("1", "$lt", high)] {
                group.begin_doc(place).begin_array(operator).string("0", "$$v");
                literal(&mut group, "1", bound);
                group.end().end();
            }
            group.end().end();
            literal(&mut group, "then", low);
            group.end();
        }
        group.end();
        if let Some(default) = &default {
            literal(&mut group, "default", default);
        }
        group.end().end().end().end();
        match output {
            Some(output) => output.iter().for_each(|(name, value)| {
                group.value(name, value);
            }),
            None => {
                group.begin_doc("count").int32("$sum", 1).end();
            }
        }
        let by = self.expr(by)?;
        self.group(group.finish().view().as_value())?;
        if let Some(group) = self.steps.last_mut().and_then(|(step, _)| step.group()) {
            // The same as what is shown, but for the time it takes.
            let id = bucket_of(by.expr().clone(), boundaries, default);
            group.key = Key::One(BoundExpr::new(id, by.globals().clone()));
        }
        self.sort_by_id()
    }

    /// The value of a constant expression.
    fn bucket_constant(&self, value: Value<'_>, code: ErrorCode) -> Result<OwnedValue> {
        match self.expr(value)?.expr() {
            Expr::Constant(value) => Ok(value.clone().unwrap_or_else(OwnedValue::null)),
            _ => Err(refuse(code, "The boundaries and the default of $bucket must be constant")),
        }
    }

    fn check_boundaries(&self, boundaries: &[OwnedValue]) -> Result<()> {
        if boundaries.len() < 2 {
            let message = "The $bucket 'boundaries' field must have at least 2 values";
            return Err(refuse(ErrorCode::Location40192, message));
        }
        for pair in boundaries.windows(2) {
            let [low, high] = pair else { continue };
            if canonical_class(low.view().kind()) != canonical_class(high.view().kind()) {
                let message = "All values in the 'boundaries' option to $bucket must have the same type";
                return Err(refuse(ErrorCode::Location40193, message));
            }
            if self.globals.collation().compare(low.view(), high.view()).is_ge() {
                let message = "The 'boundaries' option to $bucket must be sorted";
                return Err(refuse(ErrorCode::Location40194, message));
            }
        }
        Ok(())
    }

    /// `$bucketAuto`.
    ///
    /// Errors: 40239 to 40246, 40257 and 40261.
    pub fn bucket_auto(&mut self, argument: Value<'_>) -> Result<()> {
        use ErrorCode as E;
        let message = "The argument to $bucketAuto must be an object";
        let doc = argument.as_doc().ok_or_else(|| refuse(E::Location40240, message))?;
        let (mut by, mut count, mut output, mut series) = (None, None, None, None);
        for (name, value) in doc {
            match name {
                "groupBy" if is_expression(value) => by = Some(self.expr(value)?),
                "groupBy" => {
                    let message = "The $bucketAuto 'groupBy' field must be a $-prefixed path or an expression object";
                    return Err(refuse(E::Location40239, message));
                }
                "buckets" => {
                    let message = "The $bucketAuto 'buckets' field must be a positive 32-bit integer";
                    if !value.kind().is_number() {
                        return Err(refuse(E::Location40241, message));
                    }
                    let n = value.as_integer().and_then(|n| i32::try_from(n).ok());
                    let n = n.ok_or_else(|| refuse(E::Location40242, message))?;
                    let n = usize::try_from(n).ok().filter(|n| *n > 0);
                    count = Some(n.ok_or_else(|| refuse(E::Location40243, message))?);
                }
                "output" => {
                    let message = "The $bucketAuto 'output' field must be an object";
                    output = Some(value.as_doc().ok_or_else(|| refuse(E::Location40244, message))?);
                }
                "granularity" => {
                    let message = "The $bucketAuto 'granularity' field must be a string";
                    series = Some(PreferredNumbers::named(
                        value.as_str().ok_or_else(|| refuse(E::Location40261, message))?,
                    )?);
                }
                _ => return Err(refuse(E::Location40245, "Unrecognized option to $bucketAuto")),
            }
        }
        let (Some(by), Some(count)) = (by, count) else {
            return Err(refuse(E::Location40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
        };
        let mut group = DocWriter::new();
        group.int32("_id", 0);
        match output.filter(|output| !output.is_empty()) {
            Some(output) => output.iter().for_each(|(name, value)| {
                group.value(name, value);
            }),
            None => {
                group.begin_doc("count").int32("$sum", 1).end();
            }
        }
        let group = self.group_spec(group.finish().view().as_value())?;
        let group = Rc::new(GroupSpec { key: Key::One(by), ..group });
        self.push(BucketAutoSpec { group, buckets: count, series }, "$bucketAuto", argument);
        self.sort_by_id()
    }

    fn sort_by_id(&mut self) -> Result<()> {
        let mut sort = DocWriter::new();
        sort.int32("_id", 1);
        let sort = SortSpec::parse(sort.finish().view().as_value(), self.globals.collation())?;
        self.sort_rows(sort);
        Ok(())
    }
}

fn is_expression(value: Value<'_>) -> bool {
    let operator = value.as_doc().and_then(|doc| doc.iter().next());
    match operator {
        Some((name, _)) => name.starts_with('$'),
        None => value.as_str().is_some_and(|path| path.len() > 1 && path.starts_with('$')),
    }
}

fn literal(writer: &mut DocWriter, name: &str, value: &OwnedValue) {
    writer.begin_doc(name).value("$literal", value.view()).end();
}

/// The specification of a `$bucketAuto`.
struct BucketAutoSpec {
    group: Rc<GroupSpec>,
    buckets: usize,
    /// The preferred numbers for boundaries; without them, boundaries are taken from the values.
    series: Option<PreferredNumbers>,
}

impl Spec for BucketAutoSpec {
    fn reads(&self, _behind: FieldSet) -> FieldSet {
        self.group.needed_fields()
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        let group = Group::new(Rc::clone(&self.group));
        Box::new(BucketAuto { group, spec: self, held: Vec::new(), size_bytes: 0 })
    }
}

/// A running `$bucketAuto`: when all rows are there, it divides the sorted values into groups, by which rows are then
/// grouped.
struct BucketAuto {
    spec: Rc<BucketAutoSpec>,
    group: Group,
    held: Vec<Block>,
    size_bytes: usize,
}

/// Numbers of which the order is that of the values, and which are equal if values are.
fn ranks(column: &Column, collation: &Collation) -> Vec<u64> {
    /// Negative numbers come first.
    const SIGN: u64 = 1 << 63;
    let of_integer = |n: i64| n.cast_unsigned() ^ SIGN;
    let of_double = |x: f64| match x.to_bits() {
        _ if x.is_nan() => 1,
        _ if x == 0.0 => SIGN,
        bits if bits & SIGN != 0 => !bits,
        bits => bits | SIGN,
    };
    let typed = column.untagged().map(|(typed, _)| typed);
    let cells = typed.as_ref().unwrap_or(column);
    let present = cells.presence();
    let known: Option<Vec<u64>> = match cells.data() {
        ColumnData::F64(cells) => Some(cells.iter().map(|x| of_double(*x)).collect()),
        ColumnData::I32(cells) => Some(cells.iter().map(|n| of_integer(i64::from(*n))).collect()),
        // The least one has the number of rows without a value.
        ColumnData::I64(cells) | ColumnData::Date(cells) if present.is_none() || !cells.contains(&i64::MIN) => {
            Some(cells.iter().map(|n| of_integer(*n)).collect())
        }
        ColumnData::Dictionary(index, values) if present.is_none() => {
            let values = ranks(values, collation);
            Some(index.iter().map(|entry| values.get(*entry as usize).copied().unwrap_or_default()).collect())
        }
        _ => None,
    };
    if let Some(mut known) = known {
        for (row, rank) in known.iter_mut().enumerate() {
            *rank = if cells.is_present(row) { *rank } else { 0 };
        }
        return known;
    }
    // Words tell most values apart; only rows with equal ones are compared by their values.
    let mut scratch = Vec::new();
    let bytes_compare = collation.is_simple();
    let word = |row| word_of(column.value(row, &mut scratch).unwrap_or(Value::NULL), bytes_compare);
    let mut rows: Vec<(u64, u32)> = (0..column.len()).map(word).zip(0..).collect();
    sort_rows(&mut rows);
    let mut ranks = vec![0; rows.len()];
    let mut rank = 0;
    let mut other = Vec::new();
    let mut compare = |a: u32, b: u32| {
        let value = |row: u32, scratch| column.value(row as usize, scratch).unwrap_or(Value::NULL);
        collation.compare(value(a, &mut scratch), value(b, &mut other))
    };
    for run in rows.chunk_by_mut(|a, b| a.0 == b.0) {
        sort_by(run, |a, b| compare(a.1, b.1));
        let mut last = None;
        for (_, row) in run {
            rank += u64::from(last.replace(*row).is_none_or(|last| compare(last, *row).is_ne()));
            ranks.get_mut(*row as usize).into_iter().for_each(|slot| *slot = rank);
        }
    }
    ranks
}

impl Stage for BucketAuto {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        self.size_bytes += rows.size_bytes();
        if self.size_bytes > STAGE_SIZE_BYTES_MAX {
            let message = "Exceeded memory limit for $bucketAuto, and there is no disk to spill to";
            return Err(refuse(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, message));
        }
        self.held.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        let rows = join_blocks(std::mem::take(&mut self.held));
        let Key::One(by) = &self.spec.group.key else { return Ok(()) };
        let column = by.column(&rows)?;
        let (collation, buckets, series) = (&self.spec.group.collation, self.spec.buckets, &self.spec.series);
        let mut sorted: Vec<(u64, u32)> = ranks(&column, collation).into_iter().zip(0..).collect();
        sort_rows(&mut sorted);
        let value = |row: u32| column.value(row as usize, &mut Vec::new()).unwrap_or(Value::NULL).to_owned();
        let number = |row: u32| PreferredNumbers::number(value(row).view());
        // Rounded to the nearest number of rows.
        let size = ((2 * sorted.len() + buckets) / (2 * buckets)).max(1);
        let (mut ids, mut bucket_of) = (ColumnBuilder::new(), vec![0_u32; sorted.len()]);
        let (mut rest, mut left) = (sorted.as_slice(), buckets);
        // The start of the next bucket, if that is not a value.
        let mut low = match (series, rest.first()) {
            (Some(series), Some((_, first))) => {
                for (_, row) in &sorted {
                    number(*row)?;
                }
                Some(series.below(number(*first)?))
            }
            _ => None,
        };
        let mut bucket_number = 0;
        while let Some(min) = rest.first() {
            left -= 1;
            let wanted = if left == 0 { rest.len() } else { size.min(rest.len()) };
            let max = rest.get(wanted - 1).unwrap_or(min);
            let bound = match series {
                Some(series) => Some(series.above(number(max.1)?)),
                None => None,
            };
            // Values below the boundary belong here, and equal values stay together.
            let ties = |(rank, row): &&(u64, u32)| match bound {
                Some(bound) => number(*row).is_ok_and(|value| value < bound),
                None => *rank == max.0,
            };
            let count = wanted + rest.iter().skip(wanted).take_while(ties).count();
            let (bucket, behind) = rest.split_at(count);
            let mut id = DocWriter::new();
            match (series, bound) {
                (Some(series), Some(mut bound)) => {
                    // A bucket of zeros ends before the next value.
                    if let (true, Some((_, next))) = (bound == 0.0, behind.first()) {
                        bound = series.below(number(*next)?);
                    }
                    id.double("min", low.replace(bound).unwrap_or_default()).double("max", bound);
                }
                _ => {
                    id.value("min", value(min.1).view()).value("max", value(behind.first().unwrap_or(max).1).view());
                }
            }
            ids.push(id.finish().view().as_value());
            for (_, row) in bucket {
                if let Some(slot) = bucket_of.get_mut(*row as usize) {
                    *slot = bucket_number;
                }
            }
            bucket_number += 1;
            rest = behind;
        }
        // Rows of one bucket side by side, in the order in which they came.
        let mut order: Vec<(u64, u32)> = bucket_of.iter().map(|bucket| u64::from(*bucket)).zip(0..).collect();
        sort_rows(&mut order);
        let order: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
        let buckets = order.iter().map(|row| bucket_of.get(*row as usize).copied().unwrap_or_default());
        let keys = ColumnData::Dictionary(buckets.collect(), Box::new(ids.finish()));
        self.group.add(&rows.gather(&order), &[KeyCells::Rows(Column::new(keys, None))])?;
        self.group.finish()
    }

    fn take(&mut self) -> Result<Option<Block>> {
        self.group.take()
    }
}
