//! `$group` on a plain list of documents.

use bson::{Bson, Document};

use super::expressions::evaluate;
use super::stages::Stop;
use crate::plain_list::order::order;

type Values = Vec<Option<Bson>>;

/// The groups, each when its first row comes.
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

/// The parts of a key; of a single part nothing is null.
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
        made.insert(name, accumulated(operator, argument, rows, ordered)?);
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

/// How many numbers there are, and what they come to; undefined where rounding may have made anything of it.
fn sum(values: &[Bson]) -> Result<(usize, Bson), Stop> {
    let (mut count, mut integers, mut doubles, mut has_long) = (0, 0_i128, Vec::new(), false);
    for value in values {
        match value {
            Bson::Int32(n) => integers += i128::from(*n),
            Bson::Int64(n) => {
                integers += i128::from(*n);
                has_long = true;
            }
            Bson::Double(x) => doubles.push(*x),
            Bson::Decimal128(_) => return Err(Stop::Refused),
            _ => continue,
        }
        count += 1;
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

fn deviation(values: &[Bson], fewer: usize) -> Result<Bson, Stop> {
    let number = |value: &Bson| match value {
        Bson::Int32(n) => Some(Ok(f64::from(*n))),
        Bson::Int64(n) => Some(Ok(*n as f64)),
        Bson::Double(x) => Some(Ok(*x)),
        Bson::Decimal128(_) => Some(Err(Stop::Refused)),
        _ => None,
    };
    let numbers = values.iter().filter_map(number).collect::<Result<Vec<f64>, _>>()?;
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
    let mean = numbers.iter().sum::<f64>() / count as f64;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    Ok(Bson::Double((squares / (count - fewer) as f64).sqrt()))
}
