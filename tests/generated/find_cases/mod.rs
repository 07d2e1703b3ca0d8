//! Random queries of hostile measurements against a plain list: whatever the stored form of a collection,
//! `find` and `count` answer as the server's manual says.
//!
//! `CASES=20000 cargo test --profile soak --test generated find_cases` runs 20 000 cases; `CASE=17` runs case 17 alone, or
//! begins there if `CASES` is set. A case is a list of measurements in six forms with a few queries, each of which runs on every form. A failing case is shrunk
//! before it is shown.

mod judge;
mod unpacked;

use bson::Document;
use futures::executor::block_on;
use judge::{Expected, judge};

use crate::plain_list::data::{measurements, normalized};
use crate::plain_list::forms::{Form, forms, layout, stored, versions};
use crate::plain_list::places::Places;
use crate::plain_list::queries::{Queries, Query};
use crate::support::progress::progress;
use crate::support::{Db, Random};

/// The default number of cases.
const CASES: u64 = 100;
const QUERIES: usize = 8;

/// Counters of a run.
#[derive(Default, Debug)]
struct Tally {
    queries: usize,
    answers: usize,
    /// Queries whose answer is unspecified.
    open: usize,
    nonempty: usize,
    /// Buckets of each version, counted in every tenth case.
    buckets: [usize; 3],
}

fn case(seed: u64, tally: &mut Tally) {
    let random = Random::new(seed);
    let layout = layout(&random);
    let mut rows: Vec<Document> = measurements(&random);
    let places = Places::new(seed);
    places.among(&mut rows);
    let model = model_of(&rows, &layout);
    let forms = forms(&random);
    let stored: Vec<Db> = forms.iter().map(|form| block_on(stored(&rows, &layout, form))).collect();
    for db in stored.iter().filter(|_| seed.is_multiple_of(10)) {
        let versions = block_on(versions(db));
        tally.buckets.iter_mut().zip(versions).for_each(|(sum, more)| *sum += more);
    }
    let collation = layout.get_document("collation").unwrap();
    let queries = Queries { random: &random, rows: &model, collation };
    for _ in 0..QUERIES {
        let mut query = queries.query();
        places.ask(&mut query);
        tally.queries += 1;
        let Some(expected) = Expected::of(&model, &query) else {
            tally.open += 1;
            continue;
        };
        tally.nonempty += usize::from(expected.is_nonempty());
        for (db, form) in stored.iter().zip(&forms) {
            let batch = random.below(20) as i32;
            tally.answers += 1;
            if let Err(what) = block_on(judge(db, &query, &expected, batch)) {
                let (rows, query, what) = shrunk(rows, &layout, form, query, what);
                let rows: Vec<String> = rows.iter().map(Document::to_string).collect();
                panic!("case {seed}: {what}\n{query:?}\n{layout}\n{form:?}\n{}", rows.join("\n"));
            }
        }
    }
}

fn model_of(rows: &[Document], layout: &Document) -> Vec<Document> {
    rows.iter().map(|row| normalized(row, layout.get_str("metaField").ok())).collect()
}

/// The error of the answer to a query, if it is wrong.
fn wrong(rows: &[Document], layout: &Document, form: &Form, query: &Query) -> Option<String> {
    let expected = Expected::of(&model_of(rows, layout), query)?;
    let answer = std::panic::catch_unwind(|| {
        block_on(async { judge(&stored(rows, layout, form).await, query, &expected, 3).await })
    });
    answer.unwrap_or_else(|_| Err("a panic".to_owned())).err()
}

/// Shrinks a failing case: removes rows, fields, and parts of the query.
fn shrunk(
    mut rows: Vec<Document>,
    layout: &Document,
    form: &Form,
    mut query: Query,
    mut what: String,
) -> (Vec<Document>, Query, String) {
    if wrong(&rows, layout, form, &query).is_none() {
        return (rows, query, format!("{what} (and not again)"));
    }
    let mut at = 0;
    while at < rows.len() {
        let mut fewer = rows.clone();
        fewer.remove(at);
        match wrong(&fewer, layout, form, &query) {
            Some(now) if !fewer.is_empty() => (rows, what) = (fewer, now),
            _ => at += 1,
        }
    }
    for row in 0..rows.len() {
        let names: Vec<String> = rows[row].keys().filter(|name| *name != "t" && *name != "n").cloned().collect();
        for name in names {
            let mut fewer = rows.clone();
            fewer[row].remove(&name);
            if let Some(now) = wrong(&fewer, layout, form, &query) {
                (rows, what) = (fewer, now);
            }
        }
    }
    let simpler: [fn(&mut Query); 6] = [
        |query| query.natural = None,
        |query| query.projection.clear(),
        |query| query.limit = 0,
        |query| query.skip = 0,
        |query| query.sort.clear(),
        |query| query.filter.clear(),
    ];
    for simplify in simpler {
        let mut simple = query.clone();
        simplify(&mut simple);
        if let Some(now) = wrong(&rows, layout, form, &simple) {
            (query, what) = (simple, now);
        }
    }
    (rows, query, what)
}

#[test]
fn every_form_of_a_collection_answers_what_a_plain_list_does() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("CASE");
    let count = number("CASES").unwrap_or(if first.is_some() { 1 } else { CASES });
    let first = first.unwrap_or_default();
    let cases = first..first + count;
    let mut tally = Tally::default();
    for seed in cases {
        case(seed, &mut tally);
        progress("finds", seed + 1 - first, count);
    }
    println!("{count} cases: {tally:?}");
    assert!(count < 20 || tally.buckets.iter().all(|count| *count > 0), "{tally:?}");
    assert!(tally.open * 5 < tally.queries.max(50), "too many queries without an expectation: {tally:?}");
}
