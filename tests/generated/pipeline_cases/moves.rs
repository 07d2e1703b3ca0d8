//! Random pipelines in which a filter stands behind each kind of stage that it may move in front of, on fields that are kept, renamed,
//! computed, removed and cut, and on ids of groups and their parts.

use bson::{Bson, Document, doc};

use super::pipelines::Pipelines;
use super::stages::{Rows, Stop};
use crate::plain_list::queries::Queries;

/// Fields of measurements, and paths into them.
const READ: [&str; 14] = ["m", "m", "m.a", "m.b", "m.c.a", "a", "a", "b", "c", "o", "a.a", "a.b", "o.a", "_id"];
/// Fields behind the stages, and paths into them.
const ASKED: [&str; 16] =
    ["x", "x", "x", "y", "y", "x.a", "x.0", "x.b.c", "a", "a.b", "b", "m", "m.a", "o.a", "_id", "n"];
const ASKED_OF_GROUPS: [&str; 9] = ["_id", "_id", "_id.x", "_id.x", "_id.y", "_id.a", "_id.x.a", "_id.x.0", "count"];

/// A pipeline in the making.
struct Made {
    rows: Rows,
    pipeline: Vec<Document>,
    grouped: bool,
}

impl Made {
    /// Adds a stage whose answer is known.
    fn add(&mut self, stage: Document) {
        if let Ok(rows) = self.rows.clone().stage(&stage) {
            self.grouped |= stage.contains_key("$group");
            self.pipeline.push(stage);
            self.rows = rows;
        }
    }
}

impl Pipelines<'_> {
    pub fn moving(&self, list: &[Document]) -> (Vec<Document>, Result<Rows, Stop>) {
        let mut made = Made { rows: Rows::new(list.to_vec()), pipeline: Vec::new(), grouped: false };
        for _ in 0..1 + self.random.below(3) {
            made.add(self.crossed(made.grouped));
            if self.chance(30) {
                made.add(doc! { "$match": self.asked(&made, 1) });
            }
        }
        made.add(doc! { "$match": self.asked(&made, 2) });
        if self.chance(60) {
            made.add(doc! { "$group": self.summed(made.grouped) });
            made.add(doc! { "$match": self.asked(&made, 1) });
        }
        (made.pipeline, Ok(made.rows))
    }

    fn summed(&self, grouped: bool) -> Document {
        let paths: &[&str] = if grouped { &ASKED_OF_GROUPS } else { &ASKED };
        let path = || Bson::from(format!("${}", self.pick(paths)));
        let id = if self.chance(50) { path() } else { doc! { "x": path(), "y": path() }.into() };
        let mut group = doc! { "_id": id, "count": { "$sum": 1 }, "low": { "$min": path() } };
        if self.chance(30) {
            group.insert("top", doc! { "$top": { "sortBy": { "n": 1 }, "output": path() } });
        }
        if self.chance(30) {
            group.insert("lows", doc! { "$minN": { "n": 2, "input": path() } });
        }
        group
    }

    /// A stage that a filter crosses, or not.
    fn crossed(&self, grouped: bool) -> Document {
        let read =
            || if grouped { format!("${}", self.pick(&ASKED_OF_GROUPS)) } else { format!("${}", self.pick(&READ)) };
        let computed = || match self.random.below(6) {
            0 => doc! { "$ifNull": [read(), 0] }.into(),
            1 => doc! { "u": read(), "v": read() }.into(),
            2 => doc! { "$literal": self.random.below(3) as i32 }.into(),
            _ => Bson::from(read()),
        };
        match self.random.below(12) {
            0 | 1 => {
                doc! { "$project": { "x": computed(), "y": read(), *self.pick(&["a", "a.b", "m", "o.a"]): 1, "n": 1 } }
            }
            2 => doc! { "$project": { *self.pick(&["a", "a.b", "m.a", "_id", "o"]): 0 } },
            3 | 4 => doc! { "$set": { "x": computed(), *self.pick(&["a", "b", "y", "m.x"]): read() } },
            5 => doc! { "$unset": [*self.pick(&["a", "a.b", "m.a", "x", "_id"])] },
            6 => doc! { "$replaceWith": { "x": computed(), "y": read(), "a": read(), "n": "$n" } },
            7 => doc! { "$sort": { *self.pick(&["m", "a", "x", "_id"]): 1, "n": *self.pick(&[1, -1]) } },
            8 => {
                let keeps = self.chance(50);
                doc! { "$unwind": { "path": format!("${}", self.pick(&["a", "b", "x", "m.a"])), "preserveNullAndEmptyArrays": keeps } }
            }
            9 if !grouped => {
                doc! { "$unionWith": { "coll": "c", "pipeline": [doc! { "$match": { "n": { "$lt": 9_i64 } } }] } }
            }
            _ => {
                let id = match self.random.below(5) {
                    0 => doc! { "x": computed() }.into(),
                    1 | 2 => doc! { "x": read(), "y": computed() }.into(),
                    _ => Bson::from(read()),
                };
                doc! { "$group": { "_id": id, "count": { "$sum": 1 }, "n": { "$min": "$n" } } }
            }
        }
    }

    fn asked(&self, made: &Made, depth: u64) -> Document {
        let (rows, grouped) = (&made.rows, made.grouped);
        let paths: &[&'static str] = if grouped { &ASKED_OF_GROUPS } else { &ASKED };
        let queries = Queries { random: self.random, rows: &rows.list, collation: self.collation };
        let path = *self.pick(paths);
        let operand = || if rows.list.is_empty() { Bson::Int32(1) } else { queries.operand(path) };
        match self.random.below(if depth == 0 { 12 } else { 17 }) {
            0..=3 => doc! { path: { "$eq": operand() } },
            4 => doc! { path: { *self.pick(&["$gt", "$gte", "$lt", "$lte", "$ne"]): operand() } },
            5 => doc! { path: { "$in": [operand(), operand()] } },
            6 => doc! { path: { "$exists": self.chance(50) } },
            7 => doc! { path: { "$eq": Bson::Null } },
            // Of what is equal, any may have come.
            8 if rows.exact => doc! { path: { "$type": *self.pick(&["int", "array", "string", "object", "null"]) } },
            9 | 10 if !path.contains(".0") => {
                let (operator, operand) = (*self.pick(&["$eq", "$gt", "$lte", "$ne"]), doc! { "$literal": operand() });
                doc! { "$expr": { operator: [format!("${path}"), operand] } }
            }
            11 => doc! { path: { "$not": { "$eq": operand() } } },
            12..=16 => {
                let several: Vec<Document> = (0..2).map(|_| self.asked(made, depth - 1)).collect();
                doc! { *self.pick(&["$and", "$or", "$or", "$nor"]): several }
            }
            _ => doc! { path: operand() },
        }
    }
}
