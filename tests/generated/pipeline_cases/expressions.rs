//! The expressions of random pipelines, evaluated on one document.

use std::cell::RefCell;

use bson::{Bson, DateTime, Document, doc};
use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::stages::Stop;
use crate::plain_list::order::order;

/// Variables by name.
pub type Variables = Vec<(String, Option<Bson>)>;

thread_local! {
    /// The variables in scope, the innermost last.
    static VARIABLES: RefCell<Variables> = const { RefCell::new(Vec::new()) };
}

/// Calls `run` with these variables in scope as well.
pub fn with_variables<T>(more: Variables, run: impl FnOnce() -> T) -> T {
    let known = VARIABLES.with_borrow_mut(|variables| {
        let known = variables.len();
        variables.extend(more);
        known
    });
    let made = run();
    VARIABLES.with_borrow_mut(|variables| variables.truncate(known));
    made
}

/// The values of several named expressions.
pub fn evaluate_each(expressions: &Document, row: &Document) -> Result<Variables, Stop> {
    expressions.iter().map(|(name, value)| Ok((name.clone(), evaluate(value, row)?))).collect()
}

/// True if an expression evaluates to a truthy value.
pub fn holds(expression: &Bson, row: &Document) -> Result<bool, Stop> {
    Ok(match evaluate(expression, row)? {
        None | Some(Bson::Null | Bson::Undefined) => false,
        Some(Bson::Boolean(truth)) => truth,
        Some(number @ (Bson::Double(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Decimal128(_))) => {
            order(&number, &Bson::Int32(0)).is_ne()
        }
        Some(_) => true,
    })
}

/// The value of an expression; `None` if it is missing.
pub fn evaluate(expression: &Bson, row: &Document) -> Result<Option<Bson>, Stop> {
    Ok(match expression {
        Bson::String(text) if text == "$$REMOVE" => None,
        Bson::String(text) if text == "$$ROOT" => Some(Bson::Document(row.clone())),
        Bson::String(text) if text.starts_with("$$") => {
            let path: Vec<&str> = text[2..].split('.').collect();
            let known = VARIABLES.with_borrow(|variables| variables.iter().rfind(|(name, _)| name == path[0]).cloned());
            let value = known.unwrap_or_else(|| panic!("no variable {text}")).1;
            value.and_then(|value| field(&doc! { path[0]: value }, &path))
        }
        Bson::String(text) if text.starts_with('$') => {
            let path: Vec<&str> = text[1..].split('.').collect();
            field(row, &path)
        }
        Bson::Array(items) => {
            let items = items.iter().map(|item| Ok(evaluate(item, row)?.unwrap_or(Bson::Null)));
            Some(Bson::Array(items.collect::<Result<_, _>>()?))
        }
        Bson::Document(object) => match object.iter().next() {
            Some((name, argument)) if name.starts_with('$') => operator(name, argument, row)?,
            _ => {
                let mut made = Document::new();
                for (name, value) in object {
                    made.extend(evaluate(value, row)?.map(|value| (name.clone(), value)));
                }
                Some(Bson::Document(made))
            }
        },
        literal => Some(literal.clone()),
    })
}

/// The value at a path, through objects and objects in arrays; numbers are not positions.
fn field(object: &Document, path: &[&str]) -> Option<Bson> {
    let value = object.get(path[0])?;
    match (value, &path[1..]) {
        (_, []) => Some(value.clone()),
        (Bson::Document(inner), rest) => field(inner, rest),
        (Bson::Array(items), rest) => {
            let objects = items.iter().filter_map(Bson::as_document);
            Some(Bson::Array(objects.filter_map(|inner| field(inner, rest)).collect()))
        }
        _ => None,
    }
}

fn is_nothing(value: &Option<Bson>) -> bool {
    matches!(value, None | Some(Bson::Null | Bson::Undefined))
}

fn operator(name: &str, argument: &Bson, row: &Document) -> Result<Option<Bson>, Stop> {
    let list = || argument.as_array().unwrap().iter().map(|item| evaluate(item, row)).collect::<Result<Vec<_>, _>>();
    Ok(match name {
        "$literal" => Some(argument.clone()),
        "$type" => Some(Bson::from(type_name(evaluate(argument, row)?.as_ref()))),
        "$isNumber" => {
            use Bson::{Decimal128, Double, Int32, Int64};
            let is_number = matches!(evaluate(argument, row)?, Some(Double(_) | Int32(_) | Int64(_) | Decimal128(_)));
            Some(Bson::Boolean(is_number))
        }
        "$let" => {
            let arguments = argument.as_document().unwrap();
            let variables = evaluate_each(arguments.get_document("vars").unwrap(), row)?;
            with_variables(variables, || evaluate(arguments.get("in").unwrap(), row))?
        }
        "$map" => {
            let arguments = argument.as_document().unwrap();
            let Some(Bson::Array(items)) = evaluate(arguments.get("input").unwrap(), row)? else {
                return Err(Stop::Open);
            };
            let name = arguments.get_str("as").unwrap_or("this");
            let each = items.into_iter().map(|item| {
                let mapped =
                    with_variables(vec![(name.to_owned(), Some(item))], || evaluate(arguments.get("in").unwrap(), row));
                Ok(mapped?.unwrap_or(Bson::Null))
            });
            Some(Bson::Array(each.collect::<Result<_, _>>()?))
        }
        "$ifNull" => {
            let values = list()?;
            let found = values.iter().find(|value| !is_nothing(value)).or(values.last());
            found.cloned().flatten()
        }
        "$mergeObjects" => {
            let mut merged = Document::new();
            for part in list()? {
                match part {
                    Some(Bson::Document(part)) => merged.extend(part),
                    part if is_nothing(&part) => {}
                    _ => return Err(Stop::Refused),
                }
            }
            Some(Bson::Document(merged))
        }
        "$cond" => {
            let [condition, yes, no] = argument.as_array().unwrap().as_slice() else { unreachable!() };
            evaluate(if holds(condition, row)? { yes } else { no }, row)?
        }
        "$gte" | "$eq" => {
            // A missing value sorts like undefined: after MinKey and before null.
            let [a, b] =
                <[_; 2]>::try_from(list()?).unwrap().map(|value: Option<Bson>| value.unwrap_or(Bson::Undefined));
            let found = order(&a, &b);
            Some(Bson::Boolean(if name == "$eq" { found.is_eq() } else { found.is_ge() }))
        }
        "$add" => match <[_; 2]>::try_from(list()?).unwrap() {
            [a, b] if is_nothing(&a) || is_nothing(&b) => Some(Bson::Null),
            [Some(Bson::Int64(a)), Some(Bson::Int32(b))] => Some(Bson::Int64(a + i64::from(b))),
            [Some(Bson::Int32(a)), Some(Bson::Int32(b))] => Some(Bson::Int32(a + b)),
            [Some(Bson::Double(a)), Some(Bson::Int32(b))] => Some(Bson::Double(a + f64::from(b))),
            _ => return Err(Stop::Open),
        },
        "$dateTrunc" => {
            let options = argument.as_document().unwrap();
            let unit_ms: i64 = match options.get_str("unit").unwrap() {
                "minute" => 60_000,
                "hour" => 3_600_000,
                _ => 86_400_000,
            };
            let bin_ms = unit_ms * i64::from(options.get_i32("binSize").unwrap_or(1));
            match evaluate(options.get("date").unwrap(), row)? {
                None | Some(Bson::Null | Bson::Undefined) => Some(Bson::Null),
                Some(Bson::DateTime(at)) => {
                    // Near the limits of dates the server fails at some point.
                    if at.timestamp_millis().unsigned_abs() > 9_000_000_000_000_000_000 {
                        return Err(Stop::Open);
                    }
                    if let Ok(zone) = options.get_str("timezone") {
                        return in_zone(zone, at.timestamp_millis(), unit_ms, bin_ms).map(Some);
                    }
                    // Bins are counted from the start of the year 2000.
                    let since = i128::from(at.timestamp_millis()) - 946_684_800_000;
                    let bin = since.div_euclid(bin_ms.into()) * i128::from(bin_ms) + 946_684_800_000;
                    Some(Bson::DateTime(DateTime::from_millis(bin as i64)))
                }
                Some(_) => return Err(Stop::Open),
            }
        }
        other => panic!("the operator {other}"),
    })
}

/// The start of a bin in a time zone: days and longer are in local time, hours and shorter in elapsed time.
fn in_zone(zone: &str, at_ms: i64, unit_ms: i64, bin_ms: i64) -> Result<Bson, Stop> {
    let zone = TimeZone::get(zone).unwrap();
    let open = |_| Stop::Open;
    let first = date(2000, 1, 1);
    let start = if unit_ms < 86_400_000 {
        let anchor_ms = first.to_zoned(zone).unwrap().timestamp().as_millisecond();
        (at_ms - anchor_ms).div_euclid(bin_ms) * bin_ms + anchor_ms
    } else {
        let day = Timestamp::from_millisecond(at_ms).map_err(open)?.to_zoned(zone.clone()).date();
        let bin_days = bin_ms / unit_ms;
        let days = i64::from((day - first).get_days()).div_euclid(bin_days) * bin_days;
        let start = first.checked_add(Span::new().days(days)).map_err(open)?;
        start.to_zoned(zone).map_err(open)?.timestamp().as_millisecond()
    };
    Ok(Bson::DateTime(DateTime::from_millis(start)))
}

fn type_name(value: Option<&Bson>) -> &'static str {
    match value {
        None => "missing",
        Some(Bson::Double(_)) => "double",
        Some(Bson::String(_)) => "string",
        Some(Bson::Document(_)) => "object",
        Some(Bson::Array(_)) => "array",
        Some(Bson::Binary(_)) => "binData",
        Some(Bson::Undefined) => "undefined",
        Some(Bson::ObjectId(_)) => "objectId",
        Some(Bson::Boolean(_)) => "bool",
        Some(Bson::DateTime(_)) => "date",
        Some(Bson::Null) => "null",
        Some(Bson::RegularExpression(_)) => "regex",
        Some(Bson::DbPointer(_)) => "dbPointer",
        Some(Bson::JavaScriptCode(_)) => "javascript",
        Some(Bson::Symbol(_)) => "symbol",
        Some(Bson::JavaScriptCodeWithScope(_)) => "javascriptWithScope",
        Some(Bson::Int32(_)) => "int",
        Some(Bson::Timestamp(_)) => "timestamp",
        Some(Bson::Int64(_)) => "long",
        Some(Bson::Decimal128(_)) => "decimal",
        Some(Bson::MinKey) => "minKey",
        Some(Bson::MaxKey) => "maxKey",
    }
}
