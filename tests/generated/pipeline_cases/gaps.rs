//! `$densify`, `$fill`, `$setWindowFields` and `$bucketAuto` on a plain list, over integers that are unique per row.

use bson::{Bson, Document, doc};

use super::expressions::evaluate;
use super::stages::{Rows, Stop, sorted, with_fields};

pub fn stage(rows: Rows, name: &str, spec: &Document) -> Result<Rows, Stop> {
    match name {
        "$densify" => densified(rows, spec),
        "$fill" => filled(rows, spec),
        "$setWindowFields" => windows(rows, spec),
        _ => buckets(rows, spec),
    }
}

/// The number of each row, if all have one.
fn numbers(list: &[Document]) -> Result<Vec<i64>, Stop> {
    let number = |row: &Document| row.get("n").and_then(Bson::as_i64).ok_or(Stop::Open);
    let numbers = list.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let mut distinct = numbers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() == numbers.len() { Ok(numbers) } else { Err(Stop::Open) }
}

fn densified(rows: Rows, spec: &Document) -> Result<Rows, Stop> {
    let numbers = numbers(&rows.list)?;
    let range = spec.get_document("range").unwrap();
    let step = range.get_i64("step").unwrap();
    let (Some(least), Some(greatest)) = (numbers.iter().min().copied(), numbers.iter().max().copied()) else {
        return Err(Stop::Open);
    };
    let (start, end) = match range.get_array("bounds") {
        Ok(bounds) => (bounds[0].as_i64().unwrap(), bounds[1].as_i64().unwrap()),
        // Over the values of all partitions, including the last one.
        Err(_) => (least, greatest + 1),
    };
    let parts: Vec<Option<Bson>> = match spec.get_array("partitionByFields") {
        Ok(_) => {
            let mut parts: Vec<Option<Bson>> = rows.list.iter().map(|row| row.get("p").cloned()).collect();
            parts.sort_by_key(|part| part.as_ref().and_then(Bson::as_bool));
            parts.dedup();
            parts
        }
        Err(_) => vec![None],
    };
    let mut list = rows.list.clone();
    let by_part = spec.contains_key("partitionByFields");
    for part in parts {
        for number in (start..end).step_by(usize::try_from(step).unwrap()) {
            let has =
                |row: &Document| row.get_i64("n").ok() == Some(number) && (!by_part || row.get("p") == part.as_ref());
            if !rows.list.iter().any(has) {
                let mut row = doc! { "n": number };
                row.extend(part.iter().map(|part| ("p".to_owned(), part.clone())));
                list.push(row);
            }
        }
    }
    let by = if by_part {
        doc! { "p": 1, "n": 1 }
    } else {
        doc! { "n": 1 }
    };
    sorted(list, rows.exact, &by)
}

fn filled(rows: Rows, spec: &Document) -> Result<Rows, Stop> {
    let output = spec.get_document("output").unwrap();
    let mut rows = rows;
    if let Ok(sort) = spec.get_document("sortBy") {
        numbers(&rows.list)?;
        rows = sorted(rows.list, rows.exact, sort)?;
    }
    for (name, method) in output {
        let mut last = None;
        for row in &mut rows.list {
            let is_nothing = matches!(row.get(name), None | Some(Bson::Null | Bson::Undefined));
            match method.as_document().unwrap().get("value") {
                Some(value) if is_nothing => {
                    // If there is no value either, the field is dropped.
                    *row = with_fields(
                        &row.clone(),
                        row.clone(),
                        &doc! { name: { "$ifNull": [format!("${name}"), value] } },
                    )?;
                }
                Some(_) => {}
                None if is_nothing => drop(row.insert(name, last.clone().unwrap_or(Bson::Null))),
                None => last = row.get(name).cloned(),
            }
        }
    }
    Ok(rows)
}

fn windows(rows: Rows, spec: &Document) -> Result<Rows, Stop> {
    numbers(&rows.list)?;
    let sort = spec.get_document("sortBy").unwrap();
    let mut by = doc! {};
    let mut list = rows.list;
    if let Some(partition) = spec.get("partitionBy") {
        for row in &mut list {
            let part = evaluate(partition, row)?;
            // Other values may tie.
            let Some(Bson::Boolean(part)) = part else { return Err(Stop::Open) };
            row.insert("\0", part);
        }
        by.insert("\0", 1);
    }
    by.extend(sort.clone());
    let mut rows = sorted(list, rows.exact, &by)?;
    let before = rows.list.clone();
    for (at, row) in rows.list.iter_mut().enumerate() {
        let of_part = |other: &Document| other.get("\0") == before[at].get("\0");
        let start = before.iter().position(of_part).unwrap();
        let end = before.iter().rposition(of_part).unwrap() + 1;
        for (name, function) in spec.get_document("output").unwrap() {
            let function = function.as_document().unwrap();
            let window = match function.get_document("window") {
                Ok(window) => {
                    let edge = |place: usize, otherwise: usize| match &window.get_array("documents").unwrap()[place] {
                        Bson::Int32(by) => {
                            (at as i64 + i64::from(*by) + place as i64).clamp(start as i64, end as i64) as usize
                        }
                        Bson::String(current) if current == "current" => at + place,
                        _ => otherwise,
                    };
                    edge(0, start)..edge(1, end)
                }
                Err(_) => start..end,
            };
            let (operator, argument) = function.iter().next().unwrap();
            let seen = before.get(window).unwrap_or(&[]);
            let value = match operator.as_str() {
                "$documentNumber" => Some(Bson::Int64((at - start + 1) as i64)),
                "$count" => Some(Bson::Int32(seen.len() as i32)),
                "$push" => {
                    let values = seen.iter().map(|row| evaluate(argument, row)).collect::<Result<Vec<_>, _>>()?;
                    Some(Bson::Array(values.into_iter().flatten().collect()))
                }
                _ => {
                    let edge = if operator == "$first" { seen.first() } else { seen.last() };
                    let value = edge.map(|row| evaluate(argument, row)).transpose()?.flatten();
                    Some(value.unwrap_or(Bson::Null))
                }
            };
            row.extend(value.map(|value| (name.clone(), value)));
        }
    }
    rows.list.iter_mut().for_each(|row| drop(row.remove("\0")));
    Ok(rows)
}

fn buckets(rows: Rows, spec: &Document) -> Result<Rows, Stop> {
    let numbers = numbers(&rows.list)?;
    let count = spec.get_i32("buckets").unwrap() as usize;
    if !rows.ordered {
        return Err(Stop::Open);
    }
    let before = rows.list.clone();
    let rows = sorted(rows.list, rows.exact, &doc! { "n": 1 })?;
    let size = ((numbers.len() as f64 / count as f64).round() as usize).max(1);
    let mut made: Vec<Document> = Vec::new();
    let mut left = rows.list.as_slice();
    while !left.is_empty() {
        let taken = if made.len() + 1 == count { left.len() } else { size.min(left.len()) };
        let (bucket, behind) = left.split_at(taken);
        let end = behind.first().unwrap_or(&bucket[taken - 1]).get("n").unwrap();
        let mut row = doc! { "_id": { "min": bucket[0].get("n").unwrap(), "max": end } };
        for (name, accumulation) in spec.get_document("output").unwrap() {
            let (operator, argument) = accumulation.as_document().unwrap().iter().next().unwrap();
            // In their order of arrival.
            let came = before.iter().filter(|row| bucket.iter().any(|one| one.get("n") == row.get("n")));
            let values = came.map(|row| evaluate(argument, row)).collect::<Result<Vec<_>, _>>()?;
            let value = match operator.as_str() {
                "$sum" => Bson::Int32(taken as i32),
                _ => Bson::Array(values.into_iter().flatten().collect()),
            };
            row.insert(name, value);
        }
        made.push(row);
        left = behind;
    }
    Ok(Rows { ordered: true, list: made, exact: rows.exact })
}
