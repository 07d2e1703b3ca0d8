//! Random queries over the paths of the measurements, with constants that are often stored values.

use bson::{Bson, DateTime, Document, doc};

use super::data::{INNER_NAMES, TEXTS, any_collation, any_time, any_value, pick, regex, scalar};
use crate::support::Random;

/// A `find`.
#[derive(Clone, Debug)]
pub struct Query {
    pub filter: Document,
    pub sort: Document,
    pub projection: Document,
    pub skip: i64,
    /// 0 means no limit.
    pub limit: i64,
    /// A `$natural` hint; true for forward.
    pub natural: Option<bool>,
    pub collation: Document,
    /// True if the collation is inherited from the collection and not sent.
    pub inherits: bool,
}

const PATHS: [&str; 32] = [
    "t", "t", "t", "m", "m", "m", "m.a", "m.b", "m.0", "m.c.a", "n", "a", "a", "b", "b", "c", "c", "o", "a.a", "a.b",
    "a.0", "a.1", "b.a", "b.b.c", "b.0.b", "o.b.0", "o.a", "c.a.b", "x.y", "t.a", "_id", "none",
];
/// Paths of sorts, few with numbers, which may be positions or names.
const SORT_PATHS: [&str; 19] = [
    "t", "t", "m", "m.a", "m.b", "n", "a", "b", "c", "o", "a.a", "a.b", "b.a", "b.b.c", "o.b.0", "c.0", "x.y", "_id",
    "none",
];
const INDEXED_PATHS: [&str; 16] =
    ["m", "m", "m", "m", "m.a", "m.a", "m.a", "m.b", "m.c.b", "t", "a", "a", "b", "b.a", "a.b", "n"];
const KEPT_PATHS: [&str; 14] =
    ["t", "m", "m.a", "m.c.a", "a", "b", "o", "a.b", "b.b.c", "c.a", "x.y", "n.a", "none", "o.0"];

pub struct Queries<'a> {
    pub random: &'a Random,
    pub rows: &'a [Document],
    /// The collation of the collection.
    pub collation: &'a Document,
}

impl Queries<'_> {
    pub fn query(&self) -> Query {
        let inherits = self.chance(60);
        let collation = if inherits { self.collation.clone() } else { any_collation(self.random) };
        let filter = if self.chance(30) && (collation.len() > 1 || self.collation.len() > 1) {
            self.text_filter()
        } else if self.chance(25) {
            self.indexed_filter(2)
        } else if self.chance(8) {
            doc! {}
        } else {
            self.filter(2)
        };
        let sort = self.sort();
        let projection = self.projection(!sort.is_empty());
        let few = || self.random.below(1 + self.rows.len() as u64 / 2) as i64;
        let skip = if self.chance(20) { few() } else { 0 };
        let limit = if self.chance(30) { few() } else { 0 };
        let natural = if self.chance(10) { Some(self.chance(50)) } else { None };
        Query { filter, sort, projection, skip, limit, natural, collation, inherits }
    }

    /// A comparison of a string field with a string.
    fn text_filter(&self) -> Document {
        let is_text = |(_, value): &(&String, &Bson)| value.as_str().is_some();
        let fields: Vec<&String> = self.rows.iter().flat_map(|row| row.iter().filter(is_text)).map(|f| f.0).collect();
        let name = if fields.is_empty() { "a" } else { self.pick(&fields).as_str() };
        let text = *self.pick(&TEXTS);
        match self.random.below(8) {
            0 => doc! { name: { "$in": [text, *self.pick(&TEXTS)] } },
            1 => doc! { "$expr": { *self.pick(&["$eq", "$gte", "$lt"]): [format!("${name}"), text] } },
            2 => doc! { name: text, "n": { "$gte": self.random.below(20) as i32 } },
            _ => doc! { name: { *self.pick(&["$eq", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]): text } },
        }
    }

    /// A filter that can use an index: equalities, sets, ranges and types on paths that some forms have indexed, alone or combined.
    fn indexed_filter(&self, depth: u64) -> Document {
        let path = *self.pick(&INDEXED_PATHS);
        let constant = || match self.operand(path) {
            // Another string that is equal by some collations.
            Bson::String(text) if self.chance(50) => match self.chance(50) {
                true => text.to_uppercase().into(),
                false => text.to_lowercase().into(),
            },
            other => other,
        };
        match self.random.below(if depth == 0 { 8 } else { 16 }) {
            0..=3 => doc! { path: { "$eq": constant() } },
            4 | 5 => doc! { path: { "$in": (0..self.random.below(4)).map(|_| constant()).collect::<Vec<_>>() } },
            6 => doc! { path: { *self.pick(&["$gt", "$gte", "$lt", "$lte"]): constant() } },
            7 => doc! { path: { "$type": self.types() } },
            n => {
                let arms: Vec<Document> =
                    (0..2 + self.random.below(3)).map(|_| self.indexed_filter(depth - 1)).collect();
                doc! { if n < 14 { "$or" } else { "$and" }: arms }
            }
        }
    }

    fn chance(&self, percent: u64) -> bool {
        self.random.chance(percent)
    }

    fn pick<'t, T>(&self, from: &'t [T]) -> &'t T {
        pick(self.random, from)
    }

    fn sort(&self) -> Document {
        let mut sort = Document::new();
        if self.chance(30) {
            // Conditions that buckets can decide: on metadata, then on time.
            for path in ["m.a", "m", "m.b"].into_iter().filter(|_| self.chance(25)) {
                sort.insert(path, if self.chance(50) { 1 } else { -1 });
            }
            if self.chance(85) {
                sort.insert("t", if self.chance(50) { 1 } else { -1 });
            }
        }
        let keys = *self.pick(&[0, 0, 0, 1, 1, 1, 2, 3]) * i32::from(sort.is_empty() || self.chance(30));
        for _ in 0..keys {
            let path = *self.pick(&SORT_PATHS);
            sort.insert(path, if self.chance(50) { 1 } else { -1 });
        }
        sort
    }

    /// Keeps the number, which identifies a measurement, if asked to.
    fn projection(&self, numbered: bool) -> Document {
        if self.chance(65) {
            return doc! {};
        }
        let keep = i32::from(self.chance(60));
        let mut paths: Vec<&str> = (0..1 + self.random.below(4)).map(|_| *self.pick(&KEPT_PATHS)).collect();
        if keep == 1 && numbered {
            paths.push("n");
        }
        let mut projection = Document::new();
        for path in paths {
            let above = |one: &str, other: &str| one == other || one.starts_with(&format!("{other}."));
            let number = path == "n.a" && numbered;
            if !number && !projection.keys().any(|known| above(known, path) || above(path, known)) {
                projection.insert(path, keep);
            }
        }
        if self.chance(20) && !projection.is_empty() {
            projection.insert("_id", i32::from(self.chance(50)));
        }
        if keep == 1 && numbered && !projection.contains_key("n") {
            doc! {}
        } else {
            projection
        }
    }

    pub fn filter(&self, depth: u64) -> Document {
        match self.random.below(if depth == 0 { 9 } else { 15 }) {
            0..=6 => self.field(),
            7 => self.expression(),
            8 if self.chance(30) => self.schema(),
            8 => self.field(),
            9 => {
                let mut both = self.filter(depth - 1);
                both.extend(self.filter(depth - 1));
                both
            }
            _ => {
                let children: Vec<Document> = (0..1 + self.random.below(3)).map(|_| self.filter(depth - 1)).collect();
                doc! { *self.pick(&["$and", "$or", "$or", "$nor"]): children }
            }
        }
    }

    fn field(&self) -> Document {
        let path = *self.pick(&PATHS);
        if self.chance(12) {
            let value = match self.random.below(5) {
                0 => regex(self.random),
                // Sometimes a pattern that is stored.
                1 => self.stored(path),
                _ => self.operand(path),
            };
            return doc! { path: value };
        }
        let mut tests = self.test(path, 1);
        if self.chance(25) {
            let more = self.test(path, 1);
            tests.extend(more.into_iter().filter(no_pattern));
        }
        doc! { path: tests }
    }

    /// One operator with its operand.
    fn test(&self, path: &str, depth: u64) -> Document {
        let own = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];
        let operands = |most: u64| -> Vec<Bson> { (0..self.random.below(most)).map(|_| self.operand(path)).collect() };
        match self.random.below(if depth == 0 { 17 } else { 24 }) {
            0..=7 => doc! { *self.pick(&own): self.operand(path) },
            8 | 9 => {
                let mut items = operands(5);
                if self.chance(15) {
                    items.push(regex(self.random));
                }
                doc! { *self.pick(&["$in", "$in", "$nin"]): items }
            }
            10 => doc! { "$exists": self.chance(50) },
            11 | 12 => doc! { "$type": self.types() },
            13 => doc! { "$size": self.random.below(4) as i32 },
            14 => match self.random.below(3) {
                0 => doc! { "$mod": [*self.pick(&[-1, 2, 3]), *self.pick(&[-1, 0, 1])] },
                1 => doc! { "$regex": *self.pick(&["^a", "B", "^$"]), "$options": *self.pick(&["", "i", "m"]) },
                _ => doc! { "$regex": regex(self.random) },
            },
            15 | 16 => {
                let mask = match self.random.below(3) {
                    0 => Bson::Int32(1 + self.random.below(7) as i32),
                    1 => Bson::from(vec![self.random.below(66) as i32]),
                    _ => Bson::Int64(1 << self.random.below(40)),
                };
                doc! { *self.pick(&["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"]): mask }
            }
            17 | 18 => {
                doc! { "$not": if self.chance(10) { regex(self.random) } else { self.test(path, depth - 1).into() } }
            }
            19 => doc! { "$all": operands(3) },
            20 => {
                let element = || doc! { "$elemMatch": self.element(path, depth - 1) };
                doc! { "$all": (0..1 + self.random.below(2)).map(|_| element()).collect::<Vec<_>>() }
            }
            _ => doc! { "$elemMatch": self.element(path, depth - 1) },
        }
    }

    fn element(&self, path: &str, depth: u64) -> Document {
        let inner = *self.pick(&["a", "b", "0", "1", "b.c", "a.0"]);
        match self.random.below(6) {
            0..=2 => {
                let mut tests = self.test(path, depth);
                if self.chance(30) {
                    tests.extend(self.test(path, 0).into_iter().filter(no_pattern));
                }
                tests
            }
            3 => doc! { inner: self.operand("a") },
            4 => doc! { "$or": [{ inner: self.test(path, depth) }, { "b": self.operand("a") }] },
            _ => doc! { inner: self.test(path, depth) },
        }
    }

    fn types(&self) -> Bson {
        let aliases =
            ["number", "double", "string", "object", "array", "objectId", "bool", "date", "null", "regex", "int"];
        let alias = || match self.random.below(4) {
            0 => Bson::Int32(*self.pick(&[1, 2, 3, 4, 8, 9, 10, 16, 18, 19, -1, 127])),
            1 => Bson::from(*self.pick(&["long", "decimal"])),
            _ => Bson::from(*self.pick(&aliases)),
        };
        if self.chance(60) { alias() } else { Bson::Array((0..1 + self.random.below(3)).map(|_| alias()).collect()) }
    }

    /// A constant of a filter: often a stored value or a neighbour of one.
    pub fn operand(&self, path: &str) -> Bson {
        let value = loop {
            let value = match self.random.below(10) {
                0..=6 => self.stored(path),
                7 => scalar(self.random, None),
                8 => any_value(self.random, 2),
                _ => Bson::Int32(self.random.below(5) as i32),
            };
            // A pattern would be matched instead of compared.
            if !matches!(value, Bson::RegularExpression(_)) {
                break value;
            }
        };
        match value {
            Bson::DateTime(at) if self.chance(50) => {
                let ms = at.timestamp_millis().saturating_add(*self.pick(&[-1, 1, 1000, -60_000, 3_600_000]));
                Bson::DateTime(DateTime::from_millis(ms))
            }
            Bson::Int32(n) if self.chance(30) => Bson::Double(f64::from(n) + 0.5),
            Bson::Int32(n) if self.chance(30) => Bson::Int64(n.into()),
            Bson::Double(x) if self.chance(30) && x.abs() < 1e9 => Bson::Decimal128(x.to_string().parse().unwrap()),
            value => value,
        }
    }

    /// A value of some measurement at the path, above it or below it.
    fn stored(&self, path: &str) -> Bson {
        if path == "t" && self.chance(10) {
            return Bson::DateTime(DateTime::from_millis(any_time(self.random)));
        }
        let row = self.pick(self.rows);
        let mut names = path.split('.');
        let Some(mut value) = row.get(names.next().unwrap_or_default()) else { return Bson::Null };
        for name in names {
            let inner = match value {
                Bson::Document(object) => object.get(name),
                Bson::Array(items) => items.first(),
                _ => None,
            };
            let Some(inner) = inner else { break };
            value = inner;
        }
        while self.chance(40) {
            let inner = match value {
                Bson::Document(object) => object.get(*self.pick(&INNER_NAMES)),
                Bson::Array(items) if !items.is_empty() => Some(self.pick(items)),
                _ => None,
            };
            let Some(inner) = inner else { break };
            value = inner;
        }
        value.clone()
    }

    fn expression(&self) -> Document {
        let path =
            || *self.pick(&["t", "t", "m", "m.a", "m.b", "n", "a", "b", "c", "o", "a.b", "b.a", "a.0", "o.a", "none"]);
        let one = || {
            let path = path();
            let this = format!("${path}");
            let other = match self.random.below(6) {
                0 => Bson::String(format!("${}", self.pick(&["a", "b", "m", "m.a", "o.a", "t", "none"]))),
                1 => doc! { "$type": format!("${}", self.pick(&["a", "b", "m"])) }.into(),
                _ => doc! { "$literal": self.operand(path) }.into(),
            };
            let operator = *self.pick(&["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
            let sides: Vec<Bson> = if self.chance(80) { vec![this.into(), other] } else { vec![other, this.into()] };
            doc! { operator: sides }
        };
        let condition = match self.random.below(9) {
            3 => doc! { "$isArray": [format!("${}", path())] },
            4 => {
                let path = path();
                let items = vec![self.operand(path), self.operand(path)];
                doc! { "$in": [format!("${path}"), { "$literal": items }] }
            }
            5 => doc! { "$eq": [{ "$year": "$t" }, *self.pick(&[1970, 2023, 2038, 2000, 1969])] },
            6 => doc! { "$gt": [{ "$size": { "$cond": [{ "$isArray": "$a" }, "$a", []] } }, 1] },
            0 => doc! { "$and": [one(), one()] },
            1 => doc! { "$or": [one(), one()] },
            2 => doc! { "$not": [one()] },
            _ => one(),
        };
        doc! { "$expr": condition }
    }

    fn schema(&self) -> Document {
        let name = *self.pick(&["a", "b", "m", "o", "none"]);
        let schema = match self.random.below(5) {
            0 => doc! { "required": [name] },
            1 => {
                doc! { "properties": { name: { "bsonType": *self.pick(&["int", "double", "object", "array", "string"]) } } }
            }
            2 => doc! { "properties": { name: { "minimum": 1, "maximum": 3 } } },
            3 => doc! { "properties": { name: { "type": "object", "required": ["a"] } } },
            _ => doc! { "properties": { name: { "minItems": 1, "uniqueItems": true } }, "required": ["n"] },
        };
        doc! { "$jsonSchema": schema }
    }
}

/// False for an operator that may occur only once, with its options.
fn no_pattern((name, _): &(String, Bson)) -> bool {
    name != "$regex" && name != "$options"
}
