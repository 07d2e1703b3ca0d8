//! Random measurements and filters, and their matches in a plain list.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use timepail::block::ColumnData;
use timepail::column;
use timepail::env::Env;
use timepail::query::{Filter, Globals};
use timepail::value::Doc;

use super::{Random, TestEnv, raw};

const HOUR_MS: i64 = 3_600_000;

/// A measurement with the number `n` of one of a few series within sixteen hours; some fields are missing or of another type.
pub fn measurement(random: &Random, n: i64) -> Document {
    let mut d = doc! {
        "t": DateTime::from_millis((random.below(400) as i64) * HOUR_MS / 100 + random.below(1000) as i64),
        "n": n,
    };
    match random.below(6) {
        0 => {}
        1 => drop(d.insert("m", doc! { "id": random.below(2) as i32, "site": "a" })),
        _ => drop(d.insert("m", format!("s{}", random.below(3)))),
    }
    match random.below(8) {
        0 => {}
        1 => drop(d.insert("x", "text")),
        2 => drop(d.insert("x", vec![1, 2])),
        _ => drop(d.insert("x", random.below(100) as f64)),
    }
    if random.chance(20) {
        d.insert("o", doc! { "a": random.below(5) as i32 });
    }
    d
}

/// A filter over such measurements.
pub fn a_filter(random: &Random) -> Document {
    let time = |r: &Random| DateTime::from_millis(r.below(400) as i64 * HOUR_MS / 100);
    match random.below(8) {
        0 => doc! {},
        1 => doc! { "t": { "$gte": time(random), "$lt": time(random) } },
        2 => doc! { "m": format!("s{}", random.below(4)) },
        3 => doc! { "m.id": 1, "t": { "$lt": time(random) } },
        4 => doc! { "x": { "$gt": random.below(100) as f64 } },
        5 => {
            doc! { "$or": [{ "m": "s0", "x": { "$lte": 50.0 } }, { "t": { "$gte": time(random) }, "o.a": { "$in": [1, 2] } }] }
        }
        6 => doc! { "x": { "$exists": false } },
        _ => doc! { "m": "s1", "t": { "$gte": time(random) }, "x": { "$ne": 7.0 } },
    }
}

/// The matches in a list.
pub fn matching<'a>(model: &'a [Document], filter: &Document) -> Vec<&'a Document> {
    let matches = matches(raw(filter));
    model.iter().filter(|d| matches(raw(d).as_bytes())).collect()
}

/// Whether a document, given as bytes, matches.
pub fn matches(filter: RawDocumentBuf) -> impl Fn(&[u8]) -> bool {
    let globals = Globals::new(&(TestEnv::new(0) as Rc<dyn Env>));
    let filter = Filter::parse(Doc::parse(filter.as_bytes()).unwrap(), &globals).unwrap();
    move |bytes| filter.matches_doc(Doc::parse(bytes).unwrap()).unwrap()
}

/// The times of the rows of a bucket of any version, in order.
pub fn times_of(bucket: &Document, time_field: &str) -> Vec<i64> {
    match bucket.get_document("data").unwrap().get(time_field).unwrap() {
        Bson::Document(cells) => cells.iter().map(|(_, t)| t.as_datetime().unwrap().timestamp_millis()).collect(),
        Bson::Binary(binary) => match column::decode(&binary.bytes, 1_000_000).unwrap().data() {
            ColumnData::Date(times) => times.clone(),
            other => panic!("times that are no dates: {other:?}"),
        },
        other => panic!("a time column that is {other}"),
    }
}

/// The numbers `n` of a bucket's rows.
pub fn numbers_of(bucket: &Document) -> Vec<i64> {
    match bucket.get_document("data").unwrap().get("n").unwrap() {
        Bson::Document(cells) => cells.iter().map(|(_, n)| n.as_i64().unwrap()).collect(),
        Bson::Binary(binary) => match column::decode(&binary.bytes, 1_000_000).unwrap().data() {
            ColumnData::I64(numbers) => numbers.clone(),
            other => panic!("numbers that are {other:?}"),
        },
        other => panic!("a column of numbers that is {other}"),
    }
}
