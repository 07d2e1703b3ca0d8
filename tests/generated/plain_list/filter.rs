//! A filter and a projection on one document, written from the server's manual. Operators without array rules of their own
//! are evaluated by the crate on the whole document.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

use bson::{Bson, Document, doc};
use timepail::env::Env;
use timepail::query::{Filter, Globals};
use timepail::value::Doc;

use super::order::{class, collation, is_nan, order};
use crate::support::{TestEnv, raw};

pub enum Plain {
    And(Vec<Plain>),
    Or(Vec<Plain>),
    Not(Box<Plain>),
    Field(String, Test),
    Never,
    /// The crate's filter on the whole document.
    Crate(Box<Filter>),
}

pub enum Test {
    Compare(&'static str, Bson),
    In(Vec<Bson>),
    Exists,
    Type(Vec<i32>),
    Size(i64),
    ElementObject(Box<Plain>),
    ElementValue(Box<Plain>),
}

thread_local! {
    /// True if an expression has failed.
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// The matching rows; `None` if an expression fails.
pub fn matching<'a>(rows: &'a [Document], filter: &Document) -> Option<Vec<&'a Document>> {
    FAILED.set(false);
    let plain = compile(filter);
    let found = rows.iter().filter(|row| plain.matches(row)).collect();
    (!FAILED.get()).then_some(found)
}

fn by_the_crate(filter: Document) -> Plain {
    let globals = Globals::new(&(TestEnv::new(0) as Rc<dyn Env>)).with_collation(&collation());
    Plain::Crate(Box::new(Filter::parse(Doc::parse(raw(&filter).as_bytes()).unwrap(), &globals).unwrap()))
}

fn compile(filter: &Document) -> Plain {
    let list =
        |value: &Bson| value.as_array().unwrap().iter().map(|item| compile(item.as_document().unwrap())).collect();
    let each = filter.iter().map(|(name, value)| match name.as_str() {
        "$and" => Plain::And(list(value)),
        "$or" => Plain::Or(list(value)),
        "$nor" => Plain::Not(Box::new(Plain::Or(list(value)))),
        _ if name.starts_with('$') => by_the_crate(doc! { name: value.clone() }),
        _ => match operators_in(value) {
            Some(operators) => operators_of(name, operators),
            None => equality(name, value),
        },
    });
    Plain::And(each.collect())
}

fn operators_in(value: &Bson) -> Option<&Document> {
    value.as_document().filter(|object| object.keys().next().is_some_and(|name| name.starts_with('$')))
}

fn equality(path: &str, value: &Bson) -> Plain {
    match value {
        Bson::RegularExpression(_) => by_the_crate(doc! { path: value.clone() }),
        _ => Plain::Field(path.to_owned(), Test::Compare("$eq", value.clone())),
    }
}

fn operators_of(path: &str, operators: &Document) -> Plain {
    let field = |test| Plain::Field(path.to_owned(), test);
    let not = |plain| Plain::Not(Box::new(plain));
    let has_regex = |items: &[Bson]| items.iter().any(|item| matches!(item, Bson::RegularExpression(_)));
    let each = operators.iter().filter(|(name, _)| *name != "$options").map(|(name, value)| match name.as_str() {
        "$eq" => field(Test::Compare("$eq", value.clone())),
        "$gt" => field(Test::Compare("$gt", value.clone())),
        "$gte" => field(Test::Compare("$gte", value.clone())),
        "$lt" => field(Test::Compare("$lt", value.clone())),
        "$lte" => field(Test::Compare("$lte", value.clone())),
        "$ne" => not(field(Test::Compare("$eq", value.clone()))),
        "$in" | "$nin" => {
            let items = value.as_array().unwrap();
            let (scalars, patterns): (Vec<Bson>, Vec<Bson>) =
                items.iter().cloned().partition(|item| !has_regex(std::slice::from_ref(item)));
            let mut any = vec![field(Test::In(scalars))];
            any.extend(patterns.iter().map(|pattern| equality(path, pattern)));
            if name == "$in" { Plain::Or(any) } else { not(Plain::Or(any)) }
        }
        "$exists" if value.as_bool().unwrap() => field(Test::Exists),
        "$exists" => not(field(Test::Exists)),
        "$type" => field(Test::Type(types(value))),
        "$size" => field(Test::Size(value.as_i32().unwrap().into())),
        "$not" => match value {
            Bson::Document(inner) => not(operators_of(path, inner)),
            _ => not(equality(path, value)),
        },
        "$all" => match value.as_array().unwrap().as_slice() {
            [] => Plain::Never,
            items => Plain::And(items.iter().map(|item| element_or_equality(path, item)).collect()),
        },
        "$elemMatch" => element(path, value.as_document().unwrap()),
        "$regex" => {
            let mut both = doc! { name: value.clone() };
            both.extend(operators.get("$options").map(|options| ("$options".to_owned(), options.clone())));
            by_the_crate(doc! { path: both })
        }
        _ => by_the_crate(doc! { path: { name: value.clone() } }),
    });
    Plain::And(each.collect())
}

fn element_or_equality(path: &str, item: &Bson) -> Plain {
    match operators_in(item).and_then(|operators| operators.get_document("$elemMatch").ok()) {
        Some(inner) => element(path, inner),
        None => equality(path, item),
    }
}

fn element(path: &str, inner: &Document) -> Plain {
    let logical = |name: &str| matches!(name, "$and" | "$or" | "$nor");
    let of_values = inner.keys().next().is_some_and(|name| name.starts_with('$') && !logical(name));
    if !of_values {
        return Plain::Field(path.to_owned(), Test::ElementObject(Box::new(compile(inner))));
    }
    let tests = operators_of("", inner);
    if tests.asks_the_crate() {
        return by_the_crate(doc! { path: { "$elemMatch": inner.clone() } });
    }
    Plain::Field(path.to_owned(), Test::ElementValue(Box::new(tests)))
}

/// The type numbers of a `$type` operand.
fn types(operand: &Bson) -> Vec<i32> {
    match operand {
        Bson::Array(items) => items.iter().flat_map(types).collect(),
        Bson::Int32(number) => vec![*number],
        Bson::String(alias) => match alias.as_str() {
            "number" => vec![1, 16, 18, 19],
            "double" => vec![1],
            "string" => vec![2],
            "object" => vec![3],
            "array" => vec![4],
            "objectId" => vec![7],
            "bool" => vec![8],
            "date" => vec![9],
            "null" => vec![10],
            "regex" => vec![11],
            "int" => vec![16],
            "long" => vec![18],
            "decimal" => vec![19],
            other => panic!("the type {other}"),
        },
        other => panic!("$type {other}"),
    }
}

fn type_number(value: &Bson) -> i32 {
    match value {
        Bson::MinKey => -1,
        other => i32::from(other.element_type() as u8),
    }
}

impl Plain {
    fn matches(&self, row: &Document) -> bool {
        match self {
            Plain::And(all) => all.iter().all(|one| one.matches(row)),
            Plain::Or(any) => any.iter().any(|one| one.matches(row)),
            Plain::Not(one) => !one.matches(row),
            Plain::Never => false,
            Plain::Crate(filter) => filter.matches_doc(Doc::parse(raw(row).as_bytes()).unwrap()).unwrap_or_else(|_| {
                FAILED.set(true);
                false
            }),
            Plain::Field(path, test) => {
                let path: Vec<&str> = path.split('.').collect();
                let expanded =
                    !matches!(test, Test::Exists | Test::Size(_) | Test::ElementObject(_) | Test::ElementValue(_));
                let mut values = Vec::new();
                reach(row.get(path[0]), &path[1..], expanded, &mut values);
                values.into_iter().any(|value| test.passes(value))
            }
        }
    }

    /// Whether a value itself matches; an array is not expanded.
    fn passes(&self, value: &Bson) -> bool {
        match self {
            Plain::And(all) => all.iter().all(|one| one.passes(value)),
            Plain::Or(any) => any.iter().any(|one| one.passes(value)),
            Plain::Not(one) => !one.passes(value),
            Plain::Field(_, test) => test.passes(Some(value)),
            Plain::Never | Plain::Crate(_) => false,
        }
    }

    fn asks_the_crate(&self) -> bool {
        match self {
            Plain::And(several) | Plain::Or(several) => several.iter().any(Plain::asks_the_crate),
            Plain::Not(one) => one.asks_the_crate(),
            Plain::Crate(_) => true,
            Plain::Field(..) | Plain::Never => false,
        }
    }
}

/// Every value at a path, and `None` for each branch that ends before.
fn reach<'a>(at: Option<&'a Bson>, path: &[&str], expanded: bool, to: &mut Vec<Option<&'a Bson>>) {
    match (at, path) {
        (Some(Bson::Array(items)), []) if expanded => {
            to.extend(items.iter().map(Some));
            to.push(at);
        }
        (_, []) => to.push(at),
        (Some(Bson::Document(object)), [name, rest @ ..]) => reach(object.get(name), rest, expanded, to),
        (Some(Bson::Array(items)), _) => through(items, path, expanded, to),
        _ => to.push(None),
    }
}

/// An array inside a path: the path continues in its objects, and a number selects by position.
fn through<'a>(items: &'a [Bson], path: &[&str], expanded: bool, to: &mut Vec<Option<&'a Bson>>) {
    for (position, item) in items.iter().enumerate() {
        if let Bson::Document(_) = item {
            reach(Some(item), path, expanded, to);
        }
        if path[0] != position.to_string() {
            continue;
        }
        match (item, &path[1..]) {
            (_, []) => to.push(Some(item)),
            (Bson::Document(_), rest) => reach(Some(item), rest, expanded, to),
            (Bson::Array(inner), rest) => through(inner, rest, expanded, to),
            _ => {}
        }
    }
}

impl Test {
    fn passes(&self, value: Option<&Bson>) -> bool {
        let or_null = value.unwrap_or(&Bson::Null);
        match self {
            Test::Compare(operator, operand) => compare(operator, or_null, operand),
            Test::In(items) => items.iter().any(|item| compare("$eq", or_null, item)),
            Test::Exists => value.is_some(),
            Test::Type(numbers) => value.is_some_and(|value| numbers.contains(&type_number(value))),
            Test::Size(size) => value.and_then(Bson::as_array).is_some_and(|items| items.len() as i64 == *size),
            Test::ElementValue(tests) => {
                value.and_then(Bson::as_array).is_some_and(|items| items.iter().any(|item| tests.passes(item)))
            }
            Test::ElementObject(filter) => {
                let matches = |item: &Bson| match item {
                    Bson::Document(object) => filter.matches(object),
                    Bson::Array(inner) => filter
                        .matches(&inner.iter().enumerate().map(|(at, item)| (at.to_string(), item.clone())).collect()),
                    _ => false,
                };
                value.and_then(Bson::as_array).is_some_and(|items| items.iter().any(matches))
            }
        }
    }
}

fn compare(operator: &str, value: &Bson, operand: &Bson) -> bool {
    let found = if class(value) != class(operand) {
        // MinKey and MaxKey compare with every type, including NaN.
        if !matches!(operand, Bson::MinKey | Bson::MaxKey) {
            return false;
        }
        class(value).cmp(&class(operand))
    } else {
        match (is_nan(value), is_nan(operand)) {
            (false, false) => order(value, operand),
            (true, true) => Ordering::Equal,
            _ => return false,
        }
    };
    match operator {
        "$eq" => found.is_eq(),
        "$gt" => found.is_gt(),
        "$gte" => found.is_ge(),
        "$lt" => found.is_lt(),
        _ => found.is_le(),
    }
}
