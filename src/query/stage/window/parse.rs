//! Parses `$setWindowFields` and its functions.

use super::super::accumulator::Accumulation;
use super::super::parse::{FindPart, PipelineParser, check_fields};
use super::bounds::{Window, misuse, parse_unit};
use super::function::WindowFunction;
use super::kernel::Kernel;
use super::windows::{WindowOutput, WindowSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{BoundExpr, Expr, Variable};
use crate::query::plan::Projection;
use crate::query::sort::SortSpec;
use crate::value::decimal::{of_number, over};
use crate::value::{Doc, DocWriter, Number, OwnedValue, Value, check_path};

/// Prefix of temporary columns.
const TEMPORARY: &str = "__internal_setWindowFields_";

impl PipelineParser<'_> {
    /// `$setWindowFields`. It becomes a temporary field for the partition if that is not a field, a sort, the windows,
    /// and a stage that moves nested outputs to their paths.
    ///
    /// Errors: `FailedToParse`; 40414 without output; 40415 for unknown arguments; 6307900 if outputs collide; those of
    /// functions and windows.
    pub fn windows(&mut self, argument: Value<'_>) -> Result<()> {
        let message = "The $setWindowFields stage specification must be an object";
        let doc = argument.as_doc().ok_or_else(|| misuse(message))?;
        check_fields("$setWindowFields", doc, &["partitionBy", "sortBy", "output"], &["output"])?;
        let not_object = || Error::type_mismatch("'sortBy' and 'output' of $setWindowFields must be objects");
        let sort = match doc.get("sortBy") {
            Some(value) if value.as_doc().is_none() => return Err(not_object()),
            Some(value) => Some(SortSpec::parse(value, self.globals.collation())?),
            None => None,
        };
        let partition = doc.get("partitionBy").map(|value| self.expr(value)).transpose()?;
        let output = doc.get("output").and_then(Value::as_doc).ok_or_else(not_object)?;

        let (mut set, mut unset) = (DocWriter::new(), DocWriter::new());
        let mut outputs: Vec<WindowOutput> = Vec::new();
        let mut paths: Vec<&str> = Vec::new();
        for (path, value) in output {
            let is_in =
                |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if paths.iter().any(|known| is_in(known, path) || is_in(path, known)) {
                let message = "$setWindowFields 'output' specification contains two conflicting paths";
                return Err(Error::new(ErrorCode::Location6307900, message));
            }
            paths.push(path);
            check_path(path)?;
            let mut name = path.to_owned();
            if path.contains('.') {
                name = [TEMPORARY, &paths.len().to_string()].concat();
                set.string(path, &["$", &name].concat());
                unset.int32(&name, 0);
            }
            outputs.push(self.output(&name, value, sort.as_ref())?);
        }

        let partition = self.in_order(partition, sort.as_ref(), &mut unset)?;
        let order = match sort.as_ref().map_or(&[][..], SortSpec::parts) {
            [only] => Some((self.field(only.path.as_str())?, only.ascending)),
            _ => None,
        };
        let collation = self.globals.collation().clone();
        let spec = WindowSpec { partition, order, outputs, choice: None, collation };
        self.push(spec, "$_internalSetWindowFields", argument);
        if !set.is_empty() {
            let projection = Projection::parse_set(set.finish().view(), self.globals)?;
            self.find(FindPart::Projection).projection = projection;
        }
        self.drop_fields(unset)
    }

    /// Adds a sort by partition and then by `sort`. Returns the field of the partition; a temporary one must be dropped
    /// afterwards.
    pub(super) fn in_order(
        &mut self,
        partition: Option<BoundExpr>,
        sort: Option<&SortSpec>,
        unset: &mut DocWriter,
    ) -> Result<Option<BoundExpr>> {
        let mut combined = DocWriter::new();
        let partition = self.partition(partition, &mut combined, unset)?;
        let by = partition.as_ref().and_then(|partition| path_of(partition.expr()));
        for part in SortSpec::parts_of(sort).iter().filter(|part| by.as_deref() != Some(part.path.as_str())) {
            combined.int32(part.path.as_str(), if part.ascending { 1 } else { -1 });
        }
        if !combined.is_empty() {
            let combined = SortSpec::parse(combined.finish().view().as_value(), self.globals.collation())?;
            self.sort_rows(combined);
        }
        Ok(partition)
    }

    /// Drops temporary fields.
    pub(super) fn drop_fields(&mut self, unset: DocWriter) -> Result<()> {
        if !unset.is_empty() {
            let projection = Projection::parse(unset.finish().view(), self.globals)?;
            self.find(FindPart::Projection).projection = projection;
        }
        Ok(())
    }

    /// A field of the row as an expression.
    ///
    /// Errors: those of paths.
    pub(in super::super) fn field(&self, path: &str) -> Result<BoundExpr> {
        check_path(path)?;
        self.expr(OwnedValue::string(&["$", path].concat()).view())
    }

    /// The field of the partition, with which the sort begins. If it must be computed first, it is temporary.
    fn partition(
        &mut self,
        partition: Option<BoundExpr>,
        sort: &mut DocWriter,
        unset: &mut DocWriter,
    ) -> Result<Option<BoundExpr>> {
        let Some(partition) = partition else { return Ok(None) };
        if let Expr::Constant(value) = partition.expr() {
            return match value.as_ref().and_then(|value| value.view().as_array()) {
                Some(_) => Err(Error::type_mismatch("The value of partitionBy must not be an array")),
                None => Ok(None),
            };
        }
        if let Some(path) = path_of(partition.expr()) {
            sort.int32(&path, 1);
            return Ok(Some(partition));
        }
        let name = [TEMPORARY, "partition_key"].concat();
        self.find(FindPart::Projection).projection = Projection::set_field(&name, partition);
        sort.int32(&name, 1);
        unset.int32(&name, 0);
        self.field(&name).map(Some)
    }

    fn output(&self, name: &str, value: Value<'_>, sort: Option<&SortSpec>) -> Result<WindowOutput> {
        let message = "A field of 'output' must be an object with a window function";
        let doc = value.as_doc().ok_or_else(|| misuse(message))?;
        let (operator, argument) = doc.iter().find(|(name, _)| name.starts_with('$')).ok_or_else(|| misuse(message))?;
        let parts = sort.map_or(0, |sort| sort.parts().len());
        let is_more = |(at, (name, _)): &(usize, (&str, _))| *at > 1 || *name != operator && *name != "window";
        let more = doc.iter().enumerate().find(is_more).map(|(_, field)| field);
        let window = doc.get("window");
        let object =
            || argument.as_doc().ok_or_else(|| misuse("The argument of this window function must be an object"));
        let (mut input, mut takes_window) = (None, false);
        let function = match operator {
            "$rank" | "$denseRank" | "$documentNumber" => {
                let refuse = |code, message: &str| Err(Error::new(code, message));
                if doc.iter().count() > 1 {
                    let message = "Rank functions take no further arguments";
                    return refuse(ErrorCode::Location5371601, message);
                }
                if argument.as_doc().is_none_or(|argument| !argument.is_empty()) {
                    let message = "The argument of rank functions must be {}";
                    return refuse(ErrorCode::Location5371603, message);
                }
                if parts != 1 {
                    let message = "Rank functions need a sortBy with exactly one field";
                    return refuse(ErrorCode::Location5371602, message);
                }
                input = Some(self.constant(OwnedValue::null()));
                match operator {
                    "$rank" => WindowFunction::Rank,
                    "$denseRank" => WindowFunction::DenseRank,
                    _ => WindowFunction::Number,
                }
            }
            "$shift" => {
                let argument = only(operator, object()?, &["output", "by", "default"])?;
                let message = "$shift needs a sortBy, an 'output' expression and an integer 'by'";
                let by = argument.get("by").map(|by| self.constant_of(by)).transpose()?;
                let by =
                    by.and_then(|by| by.view().as_integer()).filter(|_| parts > 0).ok_or_else(|| misuse(message))?;
                input = Some(self.expr(argument.get("output").ok_or_else(|| misuse(message))?)?);
                let default = argument.get("default").map(|default| self.constant_of(default)).transpose()?;
                WindowFunction::Shift(by, default.unwrap_or_else(OwnedValue::null))
            }
            "$derivative" | "$integral" => {
                let argument = only(operator, object()?, &["input", "unit"])?;
                takes_window = true;
                if parts != 1 || operator == "$derivative" && window.is_none() {
                    return Err(misuse(
                        "$derivative and $integral need a sortBy of one field, and $derivative a window",
                    ));
                }
                let unit_ms = match argument.get("unit").map(parse_unit).transpose()? {
                    Some(unit) => {
                        let message = "The 'unit' must be 'week' or smaller";
                        Some(unit.length_ms().ok_or_else(|| Error::new(ErrorCode::Location5490710, message))?)
                    }
                    None => None,
                };
                let value = argument.get("input").ok_or_else(|| misuse("An 'input' expression is required"))?;
                input = Some(self.expr(value)?);
                match operator {
                    "$integral" => {
                        let sum = Accumulation::parse(name, "$sum", Value::NULL, self.globals)?;
                        WindowFunction::Integral(unit_ms, Box::new(sum))
                    }
                    _ => WindowFunction::Derivative(unit_ms),
                }
            }
            // The second is the function's earlier name.
            "$minMaxScaler" | "$minMaxScalar" => {
                let argument = only(operator, object()?, &["input", "min", "max"])?;
                takes_window = true;
                let message = "$minMaxScaler needs an 'input', and 'min' and 'max' must be ascending constants";
                let bound = |name: &str, otherwise| match argument.get(name) {
                    Some(value) => Number::of(self.constant_of(value)?.view()).ok_or_else(|| misuse(message)),
                    None => Ok(Number::Integer(otherwise)),
                };
                let (low, high) = (bound("min", 0)?, bound("max", 1)?);
                if argument.get("min").is_some() != argument.get("max").is_some() || low.compare(high).is_ge() {
                    return Err(misuse(message));
                }
                input = Some(self.expr(argument.get("input").ok_or_else(|| misuse(message))?)?);
                let extreme = |operator: &str| Accumulation::parse(name, operator, Value::NULL, self.globals);
                WindowFunction::Spread(low, high, Box::new([extreme("$min")?, extreme("$max")?]))
            }
            "$expMovingAvg" => {
                let argument = only(operator, object()?, &["input", "N", "alpha"])?;
                let n = argument.get("N").and_then(Value::as_integer).filter(|n| *n > 0);
                let alpha = match (n, argument.get("alpha").and_then(Number::of)) {
                    (Some(n), _) => over(Number::Decimal(2.into()), Number::Integer(n.saturating_add(1))),
                    (None, Some(alpha)) => alpha,
                    _ => Number::Integer(0),
                };
                // With N of 1, the newest value has the weight 1.
                let is_weight = alpha.compare(Number::Integer(0)).is_gt()
                    && (alpha.compare(Number::Integer(1)).is_lt() || n.is_some());
                let value = argument.get("input").filter(|_| argument.iter().count() == 2 && is_weight && parts > 0);
                let message = "$expMovingAvg needs a sortBy, an 'input', and either 'N', an integer above 0, or 'alpha' between 0 and 1";
                input = Some(self.expr(value.ok_or_else(|| misuse(message))?)?);
                WindowFunction::MovingAverage(of_number(alpha))
            }
            "$locf" => WindowFunction::Carry,
            "$linearFill" if window.is_none() && parts != 1 => {
                let message = "$linearFill must be specified with a sortBy of exactly one element";
                return Err(Error::new(ErrorCode::Location605001, message));
            }
            "$linearFill" => WindowFunction::Line,
            "$count" if argument.as_doc().is_none_or(|argument| !argument.is_empty()) => {
                return Err(misuse("$count takes no arguments: write {$count: {}}"));
            }
            "$mergeObjects" => return Err(misuse("Unrecognized window function")),
            _ => {
                takes_window = true;
                let accumulation = match Accumulation::parse(name, operator, argument, self.globals) {
                    Err(e) if e.code == ErrorCode::Location15952 => return Err(misuse("Unrecognized window function")),
                    Err(e) if e.code == ErrorCode::IDLFailedToParse => {
                        let message = "$percentile or $median needs all of its arguments";
                        return Err(Error::new(ErrorCode::Location7455900, message));
                    }
                    parsed => parsed?,
                };
                input = Some(accumulation.input.clone());
                WindowFunction::Accumulator(Kernel::of(operator, argument, self.globals)?, Box::new(accumulation))
            }
        };
        if let Some((name, _)) = more.or(doc.get("window").filter(|_| !takes_window).map(|value| ("window", value))) {
            return Err(misuse(&[operator, " takes nothing beside it named ", name].concat()));
        }
        let window = window.map_or(Ok(Window::WHOLE), |window| Window::parse(window, sort, self))?;
        if matches!(function, WindowFunction::Spread(..)) && !window.has_current() {
            return Err(misuse("The window of $minMaxScaler must include the current row"));
        }
        let input = input.map_or_else(|| self.expr(argument), Ok)?;
        Ok(WindowOutput { name: name.into(), function, input, window })
    }

    /// The value of a constant expression.
    fn constant_of(&self, value: Value<'_>) -> Result<OwnedValue> {
        match self.expr(value)?.expr() {
            Expr::Constant(value) => Ok(value.clone().unwrap_or_else(OwnedValue::null)),
            _ => Err(misuse("An argument of this window function must be constant")),
        }
    }
}

/// A document without other fields.
fn only<'a>(operator: &str, doc: Doc<'a>, names: &[&str]) -> Result<Doc<'a>> {
    match doc.iter().find(|(name, _)| !names.contains(name)) {
        Some((name, _)) => Err(misuse(&["Unknown argument of ", operator, ": ", name].concat())),
        None => Ok(doc),
    }
}

/// The path of a field, if sorts distinguish its values as the expression does: sorts treat a number as a position in
/// an array.
fn path_of(expr: &Expr) -> Option<String> {
    let Expr::Field(Variable::Root, path) = expr else { return None };
    let is_place = |name: &str| name.starts_with(|first: char| first.is_ascii_digit());
    (!path.is_empty() && !path.iter().any(|name| is_place(name))).then(|| path.join("."))
}
