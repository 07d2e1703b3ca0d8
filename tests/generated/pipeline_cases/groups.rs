//! `$group` on a plain list of documents.

use bson::{Bson, Document};

use super::expressions::evaluate;
use super::stages::Stop;
use crate::plain_list::order::{compare_keys, order};

type Values = Vec<Option<Bson>>;

/// The groups, in the order of their first rows.
pub fn group(list: &[Document], ordered: bool, spec: &Document) -> Result<Vec<Document>, Stop> {
    let mut groups: Vec<(Values, Vec<&Document>)> = Vec::new();
    for row in list {
        let key = key_of(spec.get("_id").unwrap(), row)?;
        match groups.iter_mut().find(|(known, _)| same_key(known, &key)) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups.into_iter().map(|(key, rows)| one_group(spec, key, &rows, ordered)).collect()
}

/// The parts of a key; a single missing part is null.
fn key_of(spec: &Bson, row: &Document) -> Result<Values, Stop> {
    let mut parts = match fields_of(spec) {
        Some(fields) => fields.values().map(|part| evaluate(part, row)).collect::<Result<Vec<_>, _>>()?,
        None => vec![evaluate(spec, row)?],
    };
    if let [only @ None] = parts.as_mut_slice() {
        *only = Some(Bson::Null);
    }
    Ok(parts)
}

fn fields_of(spec: &Bson) -> Option<&Document> {
    spec.as_document().filter(|object| object.keys().next().is_some_and(|name| !name.starts_with('$')))
}

fn same_key(a: &Values, b: &Values) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => order(a, b).is_eq(),
        (a, b) => a.is_none() && b.is_none(),
    })
}

fn one_group(spec: &Document, key: Values, rows: &[&Document], ordered: bool) -> Result<Document, Stop> {
    let mut made = Document::new();
    for (name, accumulation) in spec {
        if name == "_id" {
            let id = match fields_of(accumulation) {
                Some(fields) => {
                    let parts = fields.keys().zip(&key).filter_map(|(name, part)| Some((name.clone(), part.clone()?)));
                    Bson::Document(parts.collect())
                }
                None => key[0].clone().unwrap(),
            };
            made.insert("_id", id);
            continue;
        }
        let (operator, argument) = accumulation.as_document().unwrap().iter().next().unwrap();
        let made_now = match argument.as_document() {
            // For these accumulators, any object is a value.
            Some(_) if ["$first", "$last", "$push"].contains(&operator.as_str()) => {
                accumulated(operator, argument, rows, ordered)?
            }
            Some(arguments) if arguments.keys().any(|name| ["input", "output"].contains(&name.as_str())) => {
                ranked(operator, arguments, rows, ordered, made.get("_id").unwrap())?
            }
            _ => accumulated(operator, argument, rows, ordered)?,
        };
        made.insert(name, made_now);
    }
    Ok(made)
}

fn accumulated(operator: &str, argument: &Bson, rows: &[&Document], ordered: bool) -> Result<Bson, Stop> {
    if operator == "$count" {
        return Ok(Bson::Int32(rows.len() as i32));
    }
    let values = rows.iter().map(|row| evaluate(argument, row)).collect::<Result<Values, _>>()?;
    let present: Vec<Bson> = values.iter().flatten().cloned().collect();
    let solid = || present.iter().filter(|value| !matches!(value, Bson::Null | Bson::Undefined));
    let or_null = |value: Option<&Option<Bson>>| value.cloned().flatten().unwrap_or(Bson::Null);
    if !ordered && rows.len() > 1 && matches!(operator, "$first" | "$last" | "$push" | "$mergeObjects") {
        return Err(Stop::Open);
    }
    Ok(match operator {
        "$sum" => sum(&present)?.1,
        "$avg" => match sum(&present)? {
            (0, _) => Bson::Null,
            (count, Bson::Int32(n)) => Bson::Double(f64::from(n) / count as f64),
            (count, Bson::Int64(n)) => Bson::Double(n as f64 / count as f64),
            (count, Bson::Double(x)) => Bson::Double(x / count as f64),
            (_, unknown) => unknown,
        },
        // The first of several that are equal.
        "$min" => solid().min_by(|a, b| order(a, b)).cloned().unwrap_or(Bson::Null),
        "$max" => solid().rev().max_by(|a, b| order(a, b)).cloned().unwrap_or(Bson::Null),
        "$first" => or_null(values.first()),
        "$last" => or_null(values.last()),
        "$push" => Bson::Array(present),
        "$addToSet" => {
            let mut set: Vec<Bson> = Vec::new();
            for value in present {
                if set.iter().all(|known| order(known, &value).is_ne()) {
                    set.push(value);
                }
            }
            Bson::Array(set)
        }
        "$stdDevPop" => deviation(&present, 0)?,
        "$stdDevSamp" => deviation(&present, 1)?,
        "$mergeObjects" => {
            let mut merged = Document::new();
            for value in solid() {
                merged.extend(value.as_document().ok_or(Stop::Refused)?.clone());
            }
            Bson::Document(merged)
        }
        other => panic!("the accumulator {other}"),
    })
}

/// Accumulators with named arguments.
fn ranked(operator: &str, arguments: &Document, rows: &[&Document], ordered: bool, id: &Bson) -> Result<Bson, Stop> {
    let output = arguments.get("output").or(arguments.get("input")).unwrap();
    let values = rows.iter().map(|row| evaluate(output, row)).collect::<Result<Values, _>>()?;
    if let "$median" | "$percentile" = operator {
        return percentiles(operator == "$median", arguments, &values.into_iter().flatten().collect::<Vec<_>>());
    }
    let id = id.as_document().cloned().unwrap_or_default();
    let n = match arguments.get("n") {
        Some(n) => evaluate(n, &id)?.unwrap().as_i32().unwrap() as usize,
        None => 1,
    };
    let mut values: Vec<Bson> = values.into_iter().map(|value| value.unwrap_or(Bson::Null)).collect();
    let count = values.len();
    match operator {
        "$firstN" | "$lastN" if !ordered && count > 1 => return Err(Stop::Open),
        "$firstN" => values.truncate(n),
        "$lastN" => drop(values.drain(..count.saturating_sub(n))),
        "$minN" | "$maxN" => {
            values.retain(|value| !matches!(value, Bson::Null));
            values.sort_by(|a, b| if operator == "$minN" { order(a, b) } else { order(b, a) });
            values.truncate(n);
        }
        _ => {
            values = by_keys(
                operator.starts_with("$top"),
                arguments.get_document("sortBy").unwrap(),
                rows,
                values,
                ordered,
                n,
            )?
        }
    }
    Ok(if arguments.contains_key("n") { Bson::Array(values) } else { values.remove(0) })
}

/// The `n` values of the first or last rows by a sort; of tied rows the first that arrived.
fn by_keys(
    is_top: bool,
    sort: &Document,
    rows: &[&Document],
    values: Vec<Bson>,
    ordered: bool,
    n: usize,
) -> Result<Vec<Bson>, Stop> {
    let mut keyed = Vec::new();
    for (row, value) in rows.iter().zip(values) {
        let (mut key, mut arrays) = (Vec::new(), 0);
        for (path, direction) in sort {
            key.push(match evaluate(&format!("${path}").into(), row)? {
                Some(Bson::Array(items)) => {
                    arrays += 1;
                    let ascending = direction.as_i32() == Some(1);
                    let first = items.into_iter().min_by(|a, b| if ascending { order(a, b) } else { order(b, a) });
                    first.unwrap_or(Bson::Undefined)
                }
                value => value.unwrap_or(Bson::Null),
            });
        }
        if arrays > 1 {
            return Err(Stop::Refused);
        }
        keyed.push((key, value));
    }
    let compare = |a: &(Vec<Bson>, Bson), b: &(Vec<Bson>, Bson)| compare_keys(sort, &a.0, &b.0);
    keyed.sort_by(|a, b| if is_top { compare(a, b) } else { compare(b, a) });
    if !ordered && keyed.windows(2).any(|two| compare(&two[0], &two[1]).is_eq()) {
        return Err(Stop::Open);
    }
    keyed.truncate(n);
    keyed.sort_by(compare);
    Ok(keyed.into_iter().map(|(_, value)| value).collect())
}

fn percentiles(is_median: bool, arguments: &Document, values: &[Bson]) -> Result<Bson, Stop> {
    let mut numbers = numbers(values);
    numbers.retain(|x| !x.is_nan());
    numbers.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let last = numbers.len() as f64 - 1.0;
    let at = |p: f64| {
        if numbers.is_empty() {
            return Bson::Null;
        }
        if arguments.get_str("method").unwrap() != "continuous" {
            // The smallest value such that at least this share of the values is not above it.
            let below = |x: &f64| numbers.iter().filter(|other| *other <= x).count() as f64;
            return numbers.iter().find(|x| below(x) >= p * numbers.len() as f64).copied().unwrap().into();
        }
        let (low, high) = (numbers[(p * last).floor() as usize], numbers[(p * last).ceil() as usize]);
        let share = (p * last).fract();
        match (low == high, low.is_finite(), high.is_finite()) {
            (true, ..) | (_, false, _) => low.into(),
            (_, _, false) => high.into(),
            _ => ((1.0 - share) * low + share * high).into(),
        }
    };
    if is_median {
        return Ok(at(0.5));
    }
    Ok(arguments.get_array("p").unwrap().iter().map(|p| at(p.as_f64().unwrap())).collect::<Vec<_>>().into())
}

/// The count of numbers and their result; undefined if it depends on rounding.
fn sum(values: &[Bson]) -> Result<(usize, Bson), Stop> {
    let (mut count, mut integers, mut doubles, mut has_long, mut has_decimal) = (0, 0_i128, Vec::new(), false, false);
    for value in values {
        match value {
            Bson::Int32(n) => integers += i128::from(*n),
            Bson::Int64(n) => {
                integers += i128::from(*n);
                has_long = true;
            }
            Bson::Double(x) => doubles.push(*x),
            Bson::Decimal128(_) => has_decimal = true,
            _ => continue,
        }
        count += 1;
    }
    if has_decimal {
        return Ok((count, Bson::Undefined));
    }
    let total = match (i32::try_from(integers), i64::try_from(integers)) {
        (Ok(n), _) if doubles.is_empty() && !has_long => Bson::Int32(n),
        (_, Ok(n)) if doubles.is_empty() => Bson::Int64(n),
        _ => {
            doubles.push(integers as f64);
            doubles.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let (total, size): (f64, f64) = (doubles.iter().sum(), doubles.iter().map(|x| x.abs()).sum());
            if size.is_finite() && total.abs() < 1e-5 * size { Bson::Undefined } else { Bson::Double(total) }
        }
    };
    Ok((count, total))
}

/// All numbers as doubles, including decimals.
fn numbers(values: &[Bson]) -> Vec<f64> {
    let number = |value: &Bson| match value {
        Bson::Int32(n) => Some(f64::from(*n)),
        Bson::Int64(n) => Some(*n as f64),
        Bson::Double(x) => Some(*x),
        Bson::Decimal128(x) => Some(x.to_string().parse().unwrap()),
        _ => None,
    };
    values.iter().filter_map(number).collect()
}

fn deviation(values: &[Bson], fewer: usize) -> Result<Bson, Stop> {
    let numbers = numbers(values);
    let count = numbers.len();
    if count <= fewer {
        return Ok(Bson::Null);
    }
    if numbers.iter().any(|x| !x.is_finite()) {
        return Ok(Bson::Double(f64::NAN));
    }
    if numbers.iter().any(|x| x.abs() > 1e7) {
        return Ok(Bson::Undefined);
    }
    if numbers.iter().all(|x| *x == numbers[0]) {
        return Ok(Bson::Double(0.0));
    }
    let mean = numbers.iter().sum::<f64>() / count as f64;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    Ok(Bson::Double((squares / (count - fewer) as f64).sqrt()))
}
