//! Random pipelines. Each stage is chosen depending on the output of the stages before.

use bson::{Bson, Document, doc};

use super::stages::{Rows, Stop};
use crate::plain_list::data::{pick, scalar};
use crate::plain_list::queries::Queries;
use crate::support::Random;

/// Fields of measurements and computed ones.
const PATHS: [&str; 17] =
    ["t", "t", "m", "m.a", "m.b", "m.c.a", "n", "a", "a", "b", "c", "o", "a.a", "a.b", "b.b.c", "o.a", "none"];
const GROUPED: [&str; 9] = ["_id", "_id", "_id.x", "_id.y", "count", "low", "high", "first", "x"];

pub struct Pipelines<'a> {
    pub random: &'a Random,
    /// The collation of the collection.
    pub collation: &'a Document,
}

impl Pipelines<'_> {
    /// A pipeline under construction and what is known of its rows.
    pub fn pipeline(&self, list: &[Document]) -> (Vec<Document>, Result<Rows, Stop>) {
        let mut rows = Rows::new(list.to_vec());
        let mut pipeline: Vec<Document> = Vec::new();
        let mut grouped = false;
        for _ in 0..1 + self.random.below(6) {
            let stage = self.stage(&rows, grouped);
            match rows.clone().stage(&stage) {
                Ok(made) => rows = made,
                Err(Stop::Open) => continue,
                Err(Stop::Refused) => {
                    pipeline.push(stage);
                    return (pipeline, Err(Stop::Refused));
                }
            }
            grouped |= ["$group", "$count", "$sortByCount"].iter().any(|name| stage.contains_key(name));
            pipeline.push(stage);
            if rows.list.len() > 2000 {
                break;
            }
        }
        (pipeline, Ok(rows))
    }

    /// A pipeline that groups by metadata and time bins to count rows or to find extremes, or that lists rows by these in time order.
    pub fn summary(&self, list: &[Document]) -> (Vec<Document>, Result<Rows, Stop>) {
        let key = || match self.random.below(5) {
            0 => Bson::Null,
            1 | 2 => Bson::from(*self.pick(&["$m", "$m.a"])),
            _ => self.bin(),
        };
        let id = if self.chance(50) { doc! { "x": key(), "y": key() }.into() } else { key() };
        let mut group = doc! { "_id": id };
        for (name, operator, input) in [
            ("count", "$sum", Bson::Int32(1)),
            ("also", "$count", doc! {}.into()),
            ("low", "$min", "$a".into()),
            ("high", "$max", "$a".into()),
            ("other", "$max", "$n".into()),
            ("last", "$max", "$t".into()),
        ] {
            if self.chance(40) {
                group.insert(name, doc! { operator: input });
            }
        }
        let mut stages = Vec::new();
        if self.chance(40) {
            stages.push(doc! { "$match": self.filter(&Rows::new(list.to_vec()), false) });
        }
        if self.chance(40) {
            let direction = *self.pick(&[1, -1]);
            stages.push(doc! { "$sort": { "t": direction, "n": direction } });
            if self.chance(60) {
                group.insert("all", doc! { "$push": "$n" });
            }
        }
        stages.push(if self.chance(15) {
            doc! { "$count": "n" }
        } else {
            doc! { "$group": group }
        });
        let rows = Rows::new(list.to_vec()).through(&stages);
        match rows {
            Err(Stop::Open) => (Vec::new(), Ok(Rows::new(list.to_vec()))),
            rows => (stages, rows),
        }
    }

    pub fn chance(&self, percent: u64) -> bool {
        self.random.chance(percent)
    }

    pub fn pick<'t, T>(&self, from: &'t [T]) -> &'t T {
        pick(self.random, from)
    }

    fn path(&self, grouped: bool) -> &'static str {
        let paths: &[&str] = if grouped { &GROUPED } else { &PATHS };
        paths[self.random.below(paths.len() as u64) as usize]
    }

    fn stage(&self, rows: &Rows, grouped: bool) -> Document {
        let path = || self.path(grouped);
        let below = |most: usize| self.random.below(most as u64) as i32;
        match self.random.below(22) {
            0..=2 => doc! { "$match": self.filter(rows, grouped) },
            3 | 4 => doc! { "$project": self.projection(rows, grouped) },
            5 | 6 => {
                let mut fields =
                    doc! { *self.pick(&["x", "y", "a", "a.b", "m.x", "t"]): self.expression(rows, grouped) };
                if self.chance(40) {
                    fields.insert(*self.pick(&["z", "b.c", "c"]), self.expression(rows, grouped));
                }
                doc! { "$set": fields }
            }
            7 => {
                let mut paths = vec![path()];
                paths.extend(["c", "o.a"].iter().filter(|_| self.chance(40)));
                paths.retain(|one| !paths_collide(one));
                paths.sort_unstable();
                paths.dedup();
                let all = if paths.is_empty() { vec!["b"] } else { paths };
                doc! { "$unset": all }
            }
            8..=11 => doc! { "$sort": self.sort(grouped) },
            12 => doc! { "$skip": below(1 + rows.list.len() / 2) },
            13 => doc! { "$limit": 1 + below(1 + rows.list.len()) },
            14..=17 => doc! { "$group": self.group(rows, grouped) },
            18 => {
                let mut unwind =
                    doc! { "path": format!("${}", self.pick(&["a", "b", "c", "o", "a.b", "o.a", "m", "_id", "m.a"])) };
                if self.chance(40) {
                    unwind.insert("preserveNullAndEmptyArrays", self.chance(70));
                }
                if self.chance(40) {
                    unwind.insert("includeArrayIndex", *self.pick(&["i", "i", "a"]));
                }
                doc! { "$unwind": unwind }
            }
            19 => doc! { "$replaceWith": match self.random.below(4) {
                0 => Bson::from(*self.pick(&["$$ROOT", "$m", "$o", "$_id"])),
                1 => doc! { "$ifNull": [*self.pick(&["$none", "$m", "$b"]), { "n": "$n" }] }.into(),
                2 => doc! { "n": "$n", "t": "$t", "m": "$m", *self.pick(&["a", "x"]): self.expression(rows, grouped) }.into(),
                _ => doc! { "$mergeObjects": ["$m", "$$ROOT", "$o", { *self.pick(&["a", "x"]): self.expression(rows, grouped) }] }.into(),
            } },
            20 => doc! { "$count": *self.pick(&["count", "x"]) },
            // Only a path and an operator are accepted.
            _ => match self.key(rows, grouped) {
                Bson::Document(key) if key.keys().any(|name| name.starts_with('$')) => doc! { "$sortByCount": key },
                Bson::String(path) => doc! { "$sortByCount": path },
                other => doc! { "$sortByCount": { "$literal": other } },
            },
        }
    }

    fn filter(&self, rows: &Rows, grouped: bool) -> Document {
        let queries = Queries { random: self.random, rows: &rows.list, collation: self.collation };
        if rows.list.is_empty() {
            doc! { "a": 1 }
        } else if grouped {
            let path = self.path(true);
            doc! { path: { *self.pick(&["$eq", "$ne", "$gte", "$lt"]): queries.operand(path) } }
        } else {
            queries.filter(1)
        }
    }

    fn projection(&self, rows: &Rows, grouped: bool) -> Document {
        let keep = i32::from(self.chance(70));
        let mut projection = doc! {};
        for _ in 0..1 + self.random.below(3) {
            let path = self.path(grouped);
            if !path.contains('.') && (keep == 1 || path != "n") {
                projection.insert(path, keep);
            }
        }
        if keep == 1 {
            projection.insert("n", 1);
            if self.chance(60) {
                let path = *self.pick(&["x", "y", "z.y", "c.x", "b.b.c"]);
                if !projection.contains_key(&path[..1]) {
                    projection.insert(path, self.expression(rows, grouped));
                }
            }
            if self.chance(20) {
                projection.insert("_id", 0);
            }
        } else if projection.is_empty() {
            projection.insert("c", 0);
        }
        projection
    }

    fn sort(&self, grouped: bool) -> Document {
        if self.chance(15) && !grouped {
            return doc! { "t": *self.pick(&[1, -1]) };
        }
        let mut sort = doc! {};
        for _ in 0..self.random.below(3) {
            sort.insert(self.path(grouped), *self.pick(&[1, -1]));
        }
        if self.chance(80) || sort.is_empty() {
            sort.insert(if grouped { "_id" } else { "n" }, *self.pick(&[1, -1]));
            sort.insert("i", 1);
        }
        sort
    }

    fn expression(&self, rows: &Rows, grouped: bool) -> Bson {
        let path = || Bson::from(format!("${}", self.path(grouped)));
        match self.random.below(12) {
            0..=3 => path(),
            // Of equal values, any may have come.
            4 if rows.exact => doc! { "$type": path() }.into(),
            5 => doc! { "$ifNull": [path(), 0] }.into(),
            6 => doc! { "$cond": [{ "$gte": [path(), path()] }, path(), path()] }.into(),
            7 => doc! { "$add": [*self.pick(&["$n", "$count", "$none"]), 1] }.into(),
            8 => doc! { "u": path(), "v": path() }.into(),
            9 => vec![path(), path()].into(),
            10 => doc! { "$literal": scalar(self.random, None) }.into(),
            11 if !grouped => self.bin(),
            _ => "$$REMOVE".into(),
        }
    }

    fn bin(&self) -> Bson {
        let mut bin = doc! { "date": "$t", "unit": *self.pick(&["minute", "hour", "day"]) };
        if self.chance(30) {
            bin.insert("binSize", *self.pick(&[2, 3, 10]));
        }
        if self.chance(30) {
            bin.insert(
                "timezone",
                *self.pick(&["America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]),
            );
        }
        doc! { "$dateTrunc": bin }.into()
    }

    fn key(&self, rows: &Rows, grouped: bool) -> Bson {
        match self.random.below(8) {
            0 | 1 => Bson::from(*self.pick(&["$m", "$m.a", "$m.b", "$_id", "$low"])),
            2 => Bson::Null,
            3 if !grouped => self.bin(),
            4 => doc! { "$gte": [format!("${}", self.path(grouped)), 1] }.into(),
            _ => self.expression(rows, grouped),
        }
    }

    /// The `n` of an accumulator, sometimes an expression on the group id.
    fn count(&self) -> Bson {
        let count = 1 + self.random.below(4) as i32;
        if self.chance(20) { doc! { "$cond": [{ "$gte": ["$x", 1] }, count, 1] }.into() } else { count.into() }
    }

    fn group(&self, rows: &Rows, grouped: bool) -> Document {
        let id = if self.chance(40) {
            let mut parts = doc! { "x": self.key(rows, grouped) };
            if self.chance(60) {
                parts.insert("y", self.key(rows, grouped));
            }
            Bson::Document(parts)
        } else {
            self.key(rows, grouped)
        };
        let mut group = doc! { "_id": id };
        for (name, operator) in [
            ("count", "$count"),
            ("sum", "$sum"),
            ("mean", "$avg"),
            ("low", "$min"),
            ("high", "$max"),
            ("first", "$first"),
            ("last", "$last"),
            ("all", "$push"),
            ("set", "$addToSet"),
            ("pop", "$stdDevPop"),
            ("samp", "$stdDevSamp"),
            ("merged", "$mergeObjects"),
            ("firsts", "$firstN"),
            ("lasts", "$lastN"),
            ("lows", "$minN"),
            ("highs", "$maxN"),
            ("top", "$top"),
            ("bottom", "$bottom"),
            ("tops", "$topN"),
            ("bottoms", "$bottomN"),
            ("median", "$median"),
            ("shares", "$percentile"),
        ] {
            let by_order = ["$first", "$last", "$push", "$mergeObjects", "$firstN", "$lastN"].contains(&operator);
            if !self.chance(18) || by_order && !rows.ordered {
                continue;
            }
            let input = match operator {
                "$count" => doc! {}.into(),
                "$mergeObjects" if self.chance(70) => doc! { "u": self.expression(rows, grouped) }.into(),
                // Its fields have no order, so nothing may compare it.
                "$push" | "$last" if self.chance(15) => "$$ROOT".into(),
                "$sum" if self.chance(30) => 1.into(),
                "$firstN" | "$lastN" | "$minN" | "$maxN" => {
                    doc! { "n": self.count(), "input": self.expression(rows, grouped) }.into()
                }
                "$top" | "$bottom" => {
                    doc! { "sortBy": self.sort(grouped), "output": self.expression(rows, grouped) }.into()
                }
                "$topN" | "$bottomN" => {
                    let output = self.expression(rows, grouped);
                    doc! { "sortBy": self.sort(grouped), "output": output, "n": self.count() }.into()
                }
                "$median" | "$percentile" => {
                    let method = *self.pick(&["approximate", "discrete", "continuous"]);
                    let mut arguments = doc! { "input": self.expression(rows, grouped), "method": method };
                    if operator == "$percentile" {
                        arguments.insert("p", vec![0.0, 0.25, self.random.below(101) as f64 / 100.0, 1.0]);
                    }
                    arguments.into()
                }
                // An array would be several arguments.
                _ => match self.expression(rows, grouped) {
                    Bson::Array(items) => items[0].clone(),
                    other => other,
                },
            };
            group.insert(name, doc! { operator: input });
        }
        group
    }
}

/// Whether a path is a prefix or an extension of another unset path.
fn paths_collide(path: &str) -> bool {
    path == "o"
}
