//! Decimals in pipelines, drawn from their own random stream: exact sums, differences and products, so that integers of 128 bits
//! and a power of ten give the expected result.

use bson::{Bson, DateTime, Document, doc};
use futures::executor::block_on;

use super::judge::judge;
use super::stages::Rows;
use crate::plain_list::data::pick;
use crate::plain_list::forms::{forms, stored};
use crate::support::Random;
use crate::support::progress::progress;

/// The default number of cases.
const CASES: u64 = 40;

/// An integer times a power of ten; `None` stands for null.
#[derive(Clone, Copy, Debug)]
struct Exact {
    coefficient: i128,
    exponent: i32,
    is_decimal: bool,
}

impl Exact {
    fn at(self, exponent: i32) -> i128 {
        self.coefficient * 10_i128.pow((self.exponent - exponent).unsigned_abs())
    }

    fn bson(self) -> Bson {
        match self.is_decimal {
            true => Bson::Decimal128(format!("{}E{}", self.coefficient, self.exponent).parse().unwrap()),
            false => Bson::Int32(i32::try_from(self.at(0)).unwrap()),
        }
    }

    /// A decimal, or a double.
    fn quotient(self) -> Bson {
        if self.is_decimal { self.bson() } else { Bson::Double(self.double()) }
    }

    fn double(self) -> f64 {
        format!("{}E{}", self.coefficient, self.exponent).parse().unwrap()
    }

    fn plus(self, other: Exact) -> Exact {
        let exponent = self.exponent.min(other.exponent);
        let coefficient = self.at(exponent) + other.at(exponent);
        Exact { coefficient, exponent, is_decimal: self.is_decimal || other.is_decimal }
    }

    fn times(self, other: Exact) -> Exact {
        let is_decimal = self.is_decimal || other.is_decimal;
        Exact {
            coefficient: self.coefficient * other.coefficient,
            exponent: self.exponent + other.exponent,
            is_decimal,
        }
    }

    fn minus(self, other: Exact) -> Exact {
        self.plus(Exact { coefficient: -other.coefficient, ..other })
    }

    fn half(self) -> Exact {
        Exact { coefficient: self.coefficient * 5, exponent: self.exponent - 1, ..self }
    }
}

fn number(random: &Random) -> Exact {
    if random.chance(40) {
        return Exact { coefficient: i128::from(random.below(19)) - 9, exponent: 0, is_decimal: false };
    }
    let coefficient = i128::from(random.below(200_000)) - 100_000;
    Exact { coefficient, exponent: *pick(random, &[0, -1, -2, -3, 2]), is_decimal: true }
}

/// A row: its fields `d` and `e`, which may be null, and `f`.
type Row = ([Option<Exact>; 2], Exact);

/// An expression, and its value for each row.
fn expression(random: &Random, rows: &[Row], depth: u32) -> (Bson, Vec<Option<Exact>>) {
    if depth == 0 || random.chance(25) {
        let field = random.below(4) as usize;
        if let Some(name) = ["$d", "$e"].get(field) {
            return ((*name).into(), rows.iter().map(|row| row.0[field]).collect());
        }
        let constant = number(random);
        return (constant.bson(), vec![Some(constant); rows.len()]);
    }
    let (a, left) = expression(random, rows, depth - 1);
    let (b, right) = expression(random, rows, depth - 1);
    let (name, apply): (&str, fn(Exact, Exact) -> Exact) = *pick(
        random,
        &[("$add", Exact::plus as _), ("$subtract", Exact::minus as _), ("$multiply", Exact::times as _)],
    );
    let values = left.into_iter().zip(right).map(|(a, b)| Some(apply(a?, b?)));
    (doc! { name: [a, b] }.into(), values.collect())
}

fn window(rows: &[Row], row: usize, behind: usize) -> &[Row] {
    &rows[row.saturating_sub(behind)..=row]
}

/// A pipeline and its expected rows, in order.
fn pipeline(random: &Random, rows: &[Row]) -> (Vec<Document>, Vec<Document>) {
    let numbered = || doc! { "$sort": { "n": 1 } };
    let shown = || doc! { "$project": { "_id": 0, "n": 1, "x": 1, "y": 1 } };
    match random.below(4) {
        0 => {
            let (expression, values) = expression(random, rows, 2);
            let row = |(n, value): (i32, Option<Exact>)| doc! { "n": n, "x": value.map_or(Bson::Null, Exact::bson) };
            // A missing operand is not null.
            let set = doc! { "$set": { "x": { "$ifNull": [expression, Bson::Null] } } };
            (vec![set, numbered(), shown()], (0..).zip(values).map(row).collect())
        }
        1 => {
            let (expression, values) = expression(random, rows, 2);
            let (least, same) = (number(random), |a: Exact, b: Exact| a.minus(b).coefficient >= 0);
            let filter = doc! { "$match": { "$expr": { "$gte": [expression, least.bson()] } } };
            let kept = (0..).zip(values).filter(|(_, value)| value.is_some_and(|value| same(value, least)));
            (vec![filter, numbered(), shown()], kept.map(|(n, _): (i32, _)| doc! { "n": n }).collect())
        }
        2 => {
            let mut groups = Vec::new();
            for m in 0..2 {
                let mut all: Vec<Exact> = rows.iter().skip(m).step_by(2).map(|row| row.1).collect();
                let Some(total) = all.iter().copied().reduce(Exact::plus) else { continue };
                all.sort_by(|a, b| a.minus(*b).coefficient.cmp(&0));
                let middle = all[(all.len() - 1) / 2].double();
                let both = all.iter().copied().max_by(|a, b| a.minus(*b).coefficient.cmp(&0)).unwrap();
                groups.push(doc! { "_id": m as i32, "total": total.bson(), "middle": middle, "high": both.double() });
            }
            let median = doc! { "$median": { "input": "$f", "method": "discrete" } };
            let high = doc! { "$max": { "$toDouble": "$f" } };
            let group = doc! { "_id": "$m", "total": { "$sum": "$f" }, "middle": median, "high": high };
            (vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }], groups)
        }
        _ => {
            let behind = random.below(4) as usize;
            let bounds = doc! { "documents": [-(behind as i32), 0] };
            let slope = doc! { "$derivative": { "input": "$f" }, "window": { "documents": [-1, 0] } };
            let area = doc! { "$integral": { "input": "$f" }, "window": bounds };
            let stage = doc! { "$setWindowFields": { "sortBy": { "n": 1 }, "output": { "x": area, "y": slope } } };
            let made = (0..rows.len()).map(|n| {
                let areas = window(rows, n, behind).windows(2).map(|two| two[0].1.plus(two[1].1).half());
                let area = areas.reduce(Exact::plus).map_or(Bson::Int32(0), Exact::quotient);
                let slope = window(rows, n, 1).windows(2).map(|two| two[1].1.minus(two[0].1).quotient()).next();
                doc! { "n": n as i32, "x": area, "y": slope.unwrap_or(Bson::Null) }
            });
            (vec![stage, shown()], made.collect())
        }
    }
}

#[test]
fn decimal_arithmetic_is_exact_in_every_form() {
    let number_of = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number_of("CASE");
    let count = number_of("CASES").unwrap_or(if first.is_some() { 1 } else { CASES });
    let first = first.unwrap_or_default();
    for seed in first..first + count {
        progress("decimals", seed - first, count);
        let random = Random::new(seed ^ 0xdec1_a175);
        let maybe = |random: &Random| (!random.chance(15)).then(|| number(random));
        let rows: Vec<Row> =
            (0..1 + random.below(30)).map(|_| ([maybe(&random), maybe(&random)], number(&random))).collect();
        let documents: Vec<Document> = rows
            .iter()
            .enumerate()
            .map(|(n, (maybe, f))| {
                let at = DateTime::from_millis(n as i64 * 60_000);
                let mut row = doc! { "t": at, "m": (n % 2) as i32, "n": n as i32, "f": f.bson() };
                for (name, value) in ["d", "e"].into_iter().zip(maybe) {
                    row.extend(value.map(|value| (name.to_owned(), value.bson())));
                }
                row
            })
            .collect();
        let layout = doc! { "timeField": "t", "metaField": "m", "collation": { "locale": "simple" } };
        for form in forms(&random) {
            let db = block_on(stored(&documents, &layout, &form));
            for _ in 0..3 {
                let (pipeline, list) = pipeline(&random, &rows);
                let expected = Ok(Rows { list, ordered: true, exact: true });
                let judged = block_on(judge(&db, &pipeline, None, &expected, 1 + random.below(9) as i32));
                judged.unwrap_or_else(|what| panic!("case {seed}: {what}\n{pipeline:?}\n{form:?}\n{documents:?}"));
            }
        }
    }
}
