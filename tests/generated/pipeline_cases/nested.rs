//! Random nested pipelines, whose fields and variables are named like the arguments of operators and stages.

use bson::{Bson, Document, doc};

use super::pipelines::Pipelines;
use super::stages::{Rows, Stop};
use crate::plain_list::data::scalar;
use crate::plain_list::queries::Queries;

/// Names of fields and of variables.
const NAMES: [&str; 10] = ["let", "vars", "in", "as", "input", "cond", "value", "this", "from", "v"];
const DEPTH_MAX: usize = 2;

/// The variables in scope of a nested pipeline.
type Scope = Vec<&'static str>;

impl Pipelines<'_> {
    /// A pipeline with nested ones and with stages that need ordered rows.
    pub fn nested(&self, list: &[Document]) -> (Vec<Document>, Result<Rows, Stop>) {
        let mut rows = Rows::new(list.to_vec());
        let mut pipeline: Vec<Document> = Vec::new();
        let mut stages = Vec::new();
        if self.chance(30) {
            stages.push(doc! { "$match": self.filter_of(list) });
        }
        stages.push(doc! { "$sort": { "n": *self.pick(&[1, -1]) } });
        stages.push(doc! { "$limit": 1 + self.random.below(8) as i32 });
        if self.chance(50) {
            stages.push(doc! { "$set": { "p": { "$gte": ["$a", 1] } } });
        }
        stages.extend((0..1 + self.random.below(3)).map(|_| self.special(list, &Vec::new(), 0)));
        if self.chance(40) {
            stages.push(self.plain(&Vec::new()));
        }
        for stage in stages {
            match rows.clone().stage(&stage) {
                Ok(made) => rows = made,
                Err(Stop::Open) => continue,
                Err(Stop::Refused) => {
                    pipeline.push(stage);
                    return (pipeline, Err(Stop::Refused));
                }
            }
            let ends = self.is_set(&stage);
            pipeline.push(stage);
            if ends || rows.list.len() > 500 {
                break;
            }
        }
        (pipeline, Ok(rows))
    }

    /// Whether a stage makes lists of unspecified order, which no later stage may read.
    fn is_set(&self, stage: &Document) -> bool {
        let argument = stage.values().next().and_then(Bson::as_document);
        argument.is_some_and(|argument| argument.contains_key("set") || argument.get_str("as").ok() == Some("set"))
    }

    fn filter_of(&self, list: &[Document]) -> Document {
        Queries { random: self.random, rows: list, collation: self.collation }.filter(1)
    }

    fn name(&self) -> &'static str {
        NAMES[self.random.below(NAMES.len() as u64) as usize]
    }

    /// A field, a variable, or a path below a variable.
    fn operand(&self, scope: &Scope) -> Bson {
        match scope.as_slice() {
            [] => self.field(),
            _ if self.chance(30) => self.field(),
            _ => {
                let name = self.pick(scope);
                match self.random.below(5) {
                    0 => format!("$${name}.{}", self.pick(&["a", "b", "in", "n"])).into(),
                    _ => format!("$${name}").into(),
                }
            }
        }
    }

    fn field(&self) -> Bson {
        format!("${}", self.pick(&["n", "n", "a", "b", "m", "m.a", "o", "in", "as", "value", "let", "none"])).into()
    }

    /// An expression with objects whose fields are named like arguments.
    fn value(&self, scope: &Scope) -> Bson {
        let operand = || self.operand(scope);
        match self.random.below(9) {
            0..=2 => operand(),
            3 => doc! { self.name(): operand(), "hit": operand() }.into(),
            4 => vec![operand(), operand()].into(),
            5 => doc! { "$cond": [{ "$gte": [operand(), operand()] }, operand(), operand()] }.into(),
            6 => doc! { "$ifNull": [operand(), { "$literal": scalar(self.random, None) }] }.into(),
            7 => {
                let name = self.name();
                let mut inside = scope.clone();
                inside.push(name);
                let object = doc! { self.name(): self.operand(&inside), "in": self.operand(&inside) };
                doc! { "$let": { "vars": { name: operand() }, "in": object } }.into()
            }
            _ => {
                let name = self.name();
                let mut inside = scope.clone();
                inside.push(name);
                let object = doc! { "input": self.operand(&inside), self.name(): self.operand(&inside) };
                doc! { "$map": { "input": [operand(), operand()], "as": name, "in": object } }.into()
            }
        }
    }

    /// The same for an accumulator, for which an array is several arguments.
    fn one_value(&self, scope: &Scope) -> Bson {
        match self.value(scope) {
            Bson::Array(items) => items[0].clone(),
            value => value,
        }
    }

    /// Fields named like arguments that bind variables, beside one with the outer value of such a variable.
    fn taken_for_arguments(&self, scope: &Scope) -> Document {
        let name = if scope.is_empty() { "v" } else { *self.pick(scope) };
        let hit = if scope.is_empty() { self.field() } else { format!("$${name}").into() };
        let mut object = match self.random.below(4) {
            0 => doc! { "input": self.field() },
            1 => doc! { "as": name, "cond": self.field() },
            2 => doc! { "let": { name: self.field() } },
            _ => doc! { "vars": { name: self.field() } },
        };
        object.extend(doc! { "n": "$n", "in": hit });
        object
    }

    fn condition(&self, scope: &Scope) -> Document {
        let one = || Bson::from(doc! { *self.pick(&["$eq", "$gte"]): [self.operand(scope), self.operand(scope)] });
        let expr = if self.chance(80) { one() } else { doc! { "$cond": [one(), one(), self.operand(scope)] }.into() };
        doc! { "$and": [{ "$expr": expr }, {}] }
    }

    /// A stage that needs only its own rows.
    fn plain(&self, scope: &Scope) -> Document {
        let value = || self.value(scope);
        match self.random.below(9) {
            7 => doc! { "$replaceWith": self.taken_for_arguments(scope) },
            8 => {
                let mut fields = self.taken_for_arguments(scope);
                fields.insert("_id", 0);
                doc! { "$project": fields }
            }
            0 | 1 => doc! { "$project": { "_id": 0, "n": 1, self.name(): value(), "hit": value() } },
            2 => doc! { "$set": { self.name(): value(), "hit": value() } },
            3 => doc! { "$replaceWith": { "n": "$n", self.name(): value(), "in": value() } },
            4 => doc! { "$match": self.condition(scope) },
            5 => doc! { "$unset": ["c", "o"] },
            _ => {
                doc! { "$unwind": { "path": format!("${}", self.pick(&["a", "in", "as", "x"])), "preserveNullAndEmptyArrays": true } }
            }
        }
    }

    /// A nested pipeline.
    fn inner(&self, list: &[Document], scope: &Scope, depth: usize) -> Vec<Document> {
        let mut stages = Vec::new();
        if self.chance(15) {
            stages.push(doc! { "$documents": [{ "n": 1_i64, self.name(): self.variables_only(scope) }, { "n": 2_i64, "a": 1 }] });
        }
        if self.chance(30) {
            stages.push(doc! { "$match": self.filter_of(list) });
        }
        if self.chance(40) {
            stages.push(doc! { "$match": self.condition(scope) });
        }
        stages.push(doc! { "$sort": { "n": *self.pick(&[1, -1]) } });
        stages.push(doc! { "$limit": 1 + self.random.below(5) as i32 });
        for _ in 0..self.random.below(3) {
            stages.push(match self.random.below(6) {
                0 | 1 if depth < DEPTH_MAX => self.special(list, scope, depth),
                2 => doc! { "$group": { "_id": self.operand(scope), self.name(): { "$first": self.one_value(scope) }, "all": { "$push": self.operand(scope) } } },
                _ => self.plain(scope),
            });
            if stages.last().is_some_and(|stage| stage.contains_key("$group")) {
                stages.push(doc! { "$sort": { "_id": 1 } });
            }
        }
        stages
    }

    /// An expression without fields.
    fn variables_only(&self, scope: &Scope) -> Bson {
        match scope.as_slice() {
            [] => 7.into(),
            names => doc! { "as": format!("$${}", self.pick(names)), "in": [format!("$${}", self.pick(names))] }.into(),
        }
    }

    /// A stage with a nested pipeline, or one that needs ordered rows.
    fn special(&self, list: &[Document], scope: &Scope, depth: usize) -> Document {
        let to = || *self.pick(&["x", "in", "as", "let", "o.in"]);
        match self.random.below(14) {
            0..=4 => {
                let (mut variables, mut inside) = (doc! {}, scope.clone());
                for _ in 0..self.random.below(4) {
                    let name = if self.chance(50) { self.name() } else { *self.pick(&["value", "this", "v"]) };
                    variables.insert(name, self.value(scope));
                    inside.push(name);
                }
                let mut stages = self.inner(list, &inside, depth + 1);
                let mut spec = doc! { "from": "c", "as": to() };
                if stages[0].contains_key("$documents") && self.chance(50) {
                    spec.remove("from");
                }
                if self.chance(30) {
                    stages.retain(|stage| !stage.contains_key("$documents"));
                    spec.insert("from", "c");
                    spec.insert("localField", *self.pick(&["n", "a", "b", "m", "none"]));
                    spec.insert("foreignField", *self.pick(&["n", "a", "b", "m", "m.a", "none"]));
                    if self.chance(30) {
                        spec.insert("as", "set");
                        return doc! { "$lookup": spec };
                    }
                }
                if !variables.is_empty() {
                    spec.insert("let", variables);
                }
                spec.insert("pipeline", stages);
                doc! { "$lookup": spec }
            }
            5 | 6 => doc! { "$unionWith": { "coll": "c", "pipeline": self.inner(list, scope, depth + 1) } },
            7 => {
                let mut spec = doc! {
                    "from": "c", "startWith": self.operand(scope), "as": "set",
                    "connectFromField": *self.pick(&["n", "a", "b", "m"]), "connectToField": *self.pick(&["n", "a", "b", "m.a"]),
                };
                if self.chance(50) {
                    spec.insert("maxDepth", self.random.below(3) as i32);
                }
                if self.chance(50) {
                    spec.insert("depthField", "depth");
                }
                if self.chance(50) {
                    let filter = if self.chance(50) { self.condition(scope) } else { self.filter_of(list) };
                    spec.insert("restrictSearchWithMatch", filter);
                }
                doc! { "$graphLookup": spec }
            }
            8 => {
                let mut spec = doc! {};
                for name in [self.name(), self.name()] {
                    let mut stages = vec![self.plain(scope)];
                    if depth < DEPTH_MAX {
                        let inside = self.special(list, scope, depth + 1);
                        stages.extend(Some(inside).filter(|stage| !stage.contains_key("$facet")));
                    }
                    spec.insert(name, stages);
                }
                doc! { "$facet": spec }
            }
            9 => {
                let low = self.random.below(5) as i64;
                let bounds = if self.chance(50) {
                    Bson::from("full")
                } else {
                    vec![low, low + 1 + self.random.below(8) as i64].into()
                };
                let mut spec = doc! { "field": "n", "range": { "step": *self.pick(&[1_i64, 2, 3]), "bounds": bounds } };
                if self.chance(50) {
                    spec.insert("partitionByFields", vec!["p"]);
                }
                doc! { "$densify": spec }
            }
            10 => {
                let value = doc! { "value": self.value(scope) };
                let mut spec = doc! { "output": { self.name(): value } };
                if self.chance(60) {
                    spec = doc! { "sortBy": { "n": *self.pick(&[1, -1]) }, "output": { *self.pick(&["a", "b", "in"]): { "method": "locf" } } };
                }
                doc! { "$fill": spec }
            }
            11 | 12 => {
                let mut output = doc! {};
                for _ in 0..1 + self.random.below(2) {
                    let function = match self.random.below(4) {
                        0 => doc! { "$documentNumber": {} },
                        kind => {
                            let operator = ["$push", "$first", "$last"][kind as usize - 1];
                            let window = [
                                Bson::from(vec![-1, 1]),
                                vec![Bson::from("unbounded"), "current".into()].into(),
                                vec![Bson::from(0), "unbounded".into()].into(),
                            ];
                            let one = self.one_value(scope);
                            doc! { operator: one, "window": { "documents": self.pick(&window).clone() } }
                        }
                    };
                    output.insert(self.name(), function);
                }
                let mut spec = doc! { "sortBy": { "n": *self.pick(&[1, -1]) }, "output": output };
                if self.chance(60) {
                    spec.insert("partitionBy", doc! { "$gte": [self.operand(scope), self.operand(scope)] });
                }
                doc! { "$setWindowFields": spec }
            }
            _ => doc! { "$bucketAuto": { "groupBy": "$n", "buckets": 1 + self.random.below(5) as i32, "output": {
                "count": { "$sum": 1 }, self.name(): { "$push": self.operand(scope) },
            } } },
        }
    }
}
