//! The order of BSON values and the sort keys of documents, written as simply as possible from the manual.

use std::cell::RefCell;
use std::cmp::Ordering;

use bson::{Bson, Document};
use timepail::value::{Collation, Doc};

use crate::support::{TestEnv, raw};

thread_local! {
    /// The collation of the current query.
    static COLLATION: RefCell<Collation> = RefCell::default();
}

/// Sets the collation of the current query.
pub fn set_collation(document: &Document) {
    let collation = Collation::parse(Doc::parse(raw(document).as_bytes()).unwrap(), &*TestEnv::new(0)).unwrap();
    COLLATION.set(collation);
}

pub fn collation() -> Collation {
    COLLATION.with_borrow(Clone::clone)
}

/// The rank of a type in the sort order.
pub fn class(value: &Bson) -> i32 {
    match value {
        Bson::MinKey => -1,
        Bson::Undefined => 0,
        Bson::Null => 5,
        Bson::Double(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Decimal128(_) => 10,
        Bson::String(_) | Bson::Symbol(_) => 15,
        Bson::Document(_) => 20,
        Bson::Array(_) => 25,
        Bson::Binary(_) => 30,
        Bson::ObjectId(_) => 35,
        Bson::Boolean(_) => 40,
        Bson::DateTime(_) => 45,
        Bson::Timestamp(_) => 47,
        Bson::RegularExpression(_) => 50,
        Bson::DbPointer(_) => 55,
        Bson::JavaScriptCode(_) => 60,
        Bson::JavaScriptCodeWithScope(_) => 65,
        Bson::MaxKey => 127,
    }
}

pub fn is_nan(value: &Bson) -> bool {
    match value {
        Bson::Double(x) => x.is_nan(),
        Bson::Decimal128(x) => x.to_string() == "NaN",
        _ => false,
    }
}

/// BSON order: by type, then by value; NaN is less than all numbers.
pub fn order(a: &Bson, b: &Bson) -> Ordering {
    let classes = class(a).cmp(&class(b));
    if classes.is_ne() {
        return classes;
    }
    match (a, b) {
        // The digits of decimals are tested elsewhere.
        (Bson::Decimal128(_), _) | (_, Bson::Decimal128(_)) => by_the_crate(a, b),
        _ if class(a) == 10 => numbers(a, b),
        (Bson::String(a) | Bson::Symbol(a), Bson::String(b) | Bson::Symbol(b)) => {
            COLLATION.with_borrow(|collation| collation.compare_texts(a.as_bytes(), b.as_bytes()))
        }
        (Bson::Document(a), Bson::Document(b)) => documents(a, b),
        (Bson::Array(a), Bson::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
            unequal.unwrap_or(a.len().cmp(&b.len()))
        }
        (Bson::Binary(a), Bson::Binary(b)) => {
            let subtype = |of: &bson::Binary| u8::from(of.subtype);
            (a.bytes.len(), subtype(a), &a.bytes).cmp(&(b.bytes.len(), subtype(b), &b.bytes))
        }
        (Bson::ObjectId(a), Bson::ObjectId(b)) => a.bytes().cmp(&b.bytes()),
        (Bson::Boolean(a), Bson::Boolean(b)) => a.cmp(b),
        (Bson::DateTime(a), Bson::DateTime(b)) => a.timestamp_millis().cmp(&b.timestamp_millis()),
        (Bson::Timestamp(a), Bson::Timestamp(b)) => (a.time, a.increment).cmp(&(b.time, b.increment)),
        (Bson::RegularExpression(a), Bson::RegularExpression(b)) => {
            let parts = |of: &bson::Regex| (of.pattern.as_str().to_owned(), of.options.as_str().to_owned());
            parts(a).cmp(&parts(b))
        }
        (Bson::JavaScriptCode(a), Bson::JavaScriptCode(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

fn documents(a: &Document, b: &Document) -> Ordering {
    let of = |((a_name, a), (b_name, b)): ((&String, &Bson), (&String, &Bson))| {
        class(a).cmp(&class(b)).then(a_name.as_bytes().cmp(b_name.as_bytes())).then_with(|| order(a, b))
    };
    a.iter().zip(b.iter()).map(of).find(|o| o.is_ne()).unwrap_or(a.len().cmp(&b.len()))
}

fn numbers(a: &Bson, b: &Bson) -> Ordering {
    let integer = |of: &Bson| match of {
        Bson::Int32(n) => Some(i128::from(*n)),
        Bson::Int64(n) => Some(i128::from(*n)),
        _ => None,
    };
    let double = |of: &Bson| of.as_f64().unwrap();
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => integer_and_double(a, double(b)),
        (None, Some(b)) => integer_and_double(b, double(a)).reverse(),
        (None, None) => match (double(a).is_nan(), double(b).is_nan()) {
            (false, false) => double(a).partial_cmp(&double(b)).unwrap(),
            (a, b) => b.cmp(&a),
        },
    }
}

fn integer_and_double(n: i128, x: f64) -> Ordering {
    if x.is_nan() || x == f64::NEG_INFINITY {
        return Ordering::Greater;
    }
    // Beyond 64-bit integers the cast saturates; within, the fraction decides.
    let whole = x.trunc() as i128;
    n.cmp(&whole).then_with(|| 0.0.partial_cmp(&(x - x.trunc())).unwrap_or(Ordering::Less))
}

fn by_the_crate(a: &Bson, b: &Bson) -> Ordering {
    let [a, b] = [a, b].map(|value| raw(&bson::doc! { "v": value.clone() }));
    let [a, b] = [&a, &b].map(|bytes| Doc::parse(bytes.as_bytes()).unwrap().get("v").unwrap());
    timepail::value::compare(a, b)
}

/// The reason why rows have no order.
#[derive(Debug, PartialEq)]
pub enum NoKey {
    /// Two parts of a sort meet different arrays: an error.
    ParallelArrays,
    /// A number that is both a position and a name, or that leads to an array in an array: the order is unspecified.
    Ambiguous,
}

#[derive(Clone, Copy)]
enum At<'a> {
    End(&'a Bson),
    Below(&'a Bson, &'a [&'a str]),
}

/// The sort key of a document: the least of the keys that an index on these paths would have.
pub fn sort_key(row: &Document, sort: &Document) -> Result<Vec<Bson>, NoKey> {
    let whole = Bson::Document(row.clone());
    let paths: Vec<Vec<&str>> = sort.keys().map(|path| path.split('.').collect()).collect();
    let mut keys = Vec::new();
    expand(paths.iter().map(|path| At::Below(&whole, path)).collect(), &mut keys)?;
    Ok(keys.into_iter().min_by(|a, b| compare_keys(sort, a, b)).unwrap())
}

pub fn compare_keys(sort: &Document, a: &[Bson], b: &[Bson]) -> Ordering {
    let each = sort.values().zip(a.iter().zip(b)).map(|(direction, (a, b))| {
        let ascending = direction.as_i32() == Some(1);
        if ascending { order(a, b) } else { order(b, a) }
    });
    each.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn expand(mut at: Vec<At<'_>>, keys: &mut Vec<Vec<Bson>>) -> Result<(), NoKey> {
    for one in &mut at {
        while let At::Below(Bson::Document(object), [name, rest @ ..]) = *one {
            *one = object.get(name).map_or(At::End(&Bson::Null), |value| At::Below(value, rest));
        }
        if let At::Below(Bson::Array(items), [name, ..]) = *one
            && let Some(item) = name.parse::<usize>().ok().and_then(|at| items.get(at))
        {
            let named = |item: &Bson| item.as_document().is_some_and(|object| object.contains_key(name));
            if items.iter().any(named) || item.as_array().is_some() {
                return Err(NoKey::Ambiguous);
            }
            let At::Below(_, [_, rest @ ..]) = *one else { unreachable!() };
            *one = At::Below(item, rest);
            return expand(at, keys);
        }
        *one = match *one {
            At::Below(value @ Bson::Array(_), rest) => At::Below(value, rest),
            At::Below(value, []) => At::End(value),
            At::Below(..) => At::End(&Bson::Null),
            end => end,
        };
    }
    let mut arrays = at.iter().filter_map(|one| if let At::Below(array, _) = one { Some(*array) } else { None });
    let Some(array) = arrays.next() else {
        keys.push(at.iter().map(|one| if let At::End(key) = one { (*key).clone() } else { Bson::Null }).collect());
        return Ok(());
    };
    if arrays.any(|other| !std::ptr::eq(other, array)) {
        return Err(NoKey::ParallelArrays);
    }
    let items = array.as_array().unwrap();
    if items.is_empty() {
        return expand(into_item(&at, None), keys);
    }
    items.iter().try_for_each(|item| expand(into_item(&at, Some(item)), keys))
}

fn into_item<'a>(at: &[At<'a>], item: Option<&'a Bson>) -> Vec<At<'a>> {
    let each = at.iter().map(|one| match (*one, item) {
        (At::Below(_, []), Some(item)) => At::End(item),
        (At::Below(_, []), None) => At::End(&Bson::Undefined),
        (At::Below(_, rest), Some(item @ Bson::Document(_))) => At::Below(item, rest),
        (At::Below(..), _) => At::End(&Bson::Null),
        (end, _) => end,
    });
    each.collect()
}
