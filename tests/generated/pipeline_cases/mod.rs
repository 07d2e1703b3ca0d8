//! Random pipelines of hostile measurements against a plain list: whatever the stored form of a collection and
//! the size of batches, `aggregate` answers as if each stage ran on its own, as the server's manual says.
//!
//! `CASES=20000 cargo test --profile soak --test generated pipeline_cases` runs 20 000 cases; `CASE=17` runs case 17 alone, or begins there if `CASES` is set. A case is a
//! list of measurements in six forms with a few pipelines, each of which runs on every form. A failing case is shrunk before it is shown.

mod decimals;
mod expressions;
mod foreign;
mod gaps;
mod groups;
mod judge;
mod moves;
mod nested;
mod pipelines;
mod stages;

use bson::{Document, doc};
use futures::executor::block_on;
use judge::judge;
use pipelines::Pipelines;
use stages::{Rows, Stop};

use crate::plain_list::data::{any_collation, measurements, normalized};
use crate::plain_list::forms::{Form, forms, layout, stored};
use crate::plain_list::order::set_collation;
use crate::support::progress::progress;
use crate::support::{Db, Random};

/// The default number of cases.
const CASES: u64 = 100;
const PIPELINES: usize = 6;
/// Pipelines of a case that summaries of buckets may answer, or whose groups stream.
const SUMMARIES: usize = 2;
/// Pipelines of a case with nested pipelines.
const NESTED: usize = 2;
/// Pipelines of a case with a filter behind what it may cross.
const MOVING: usize = 4;

/// Required arguments of stages.
const REQUIRED: [&str; 17] = [
    "_id",
    "path",
    "from",
    "as",
    "pipeline",
    "coll",
    "localField",
    "foreignField",
    "startWith",
    "connectFromField",
    "connectToField",
    "field",
    "range",
    "output",
    "sortBy",
    "groupBy",
    "buckets",
];

/// Counters of a run.
#[derive(Default, Debug)]
struct Tally {
    pipelines: usize,
    stages: usize,
    answers: usize,
    refused: usize,
    nonempty: usize,
    ordered: usize,
    exact: usize,
}

/// The subject of a failure.
struct Case<'a> {
    layout: &'a Document,
    form: &'a Form,
    /// If it differs from that of the collection.
    collation: Option<&'a Document>,
}

fn case(seed: u64, tally: &mut Tally) {
    let random = Random::new(seed);
    let layout = layout(&random);
    let rows: Vec<Document> = measurements(&random);
    let model = model_of(&rows, &layout);
    let forms = forms(&random);
    let unpacking = Random::new(seed ^ 0x7183_9000);
    let stored: Vec<Db> = forms.iter().map(|form| block_on(stored(&rows, &layout, form))).collect();
    let own = layout.get_document("collation").unwrap();
    let (summing, nesting) = (Random::new(!seed), Random::new(seed ^ 0x1727_6000));
    let moving = Random::new(seed ^ 0x3456_7000);
    foreign::set_collection(&model);
    for place in 0..PIPELINES + SUMMARIES + NESTED + MOVING {
        let is_moving = place >= PIPELINES + SUMMARIES + NESTED;
        let is_nested = place >= PIPELINES + SUMMARIES;
        let random = match place {
            _ if is_moving => &moving,
            _ if is_nested => &nesting,
            PIPELINES.. => &summing,
            _ => &random,
        };
        let other = (!random.chance(75)).then(|| any_collation(random));
        set_collation(other.as_ref().unwrap_or(own));
        let pipelines = Pipelines { random, collation: own };
        let (pipeline, expected) = match place {
            _ if is_moving => pipelines.moving(&model),
            _ if is_nested => pipelines.nested(&model),
            PIPELINES.. => pipelines.summary(&model),
            _ => pipelines.pipeline(&model),
        };
        tally.pipelines += 1;
        tally.stages += pipeline.len();
        match &expected {
            Ok(rows) => {
                tally.nonempty += usize::from(!rows.list.is_empty());
                tally.ordered += usize::from(rows.ordered);
                tally.exact += usize::from(rows.exact);
            }
            Err(_) => tally.refused += 1,
        }
        for (db, form) in stored.iter().zip(&forms) {
            let batch = random.below(20) as i32;
            tally.answers += 2;
            let asked = async {
                judge(db, &pipeline, other.as_ref(), &expected, batch).await?;
                // The same pipeline without pushdown or other optimisation.
                judge(db, &apart(&pipeline), other.as_ref(), &expected, batch).await?;
                match unpacking.chance(30) {
                    true => judge(db, &unpacked(&pipeline, &layout), other.as_ref(), &expected, batch).await,
                    false => Ok(()),
                }
            };
            if let Err(what) = block_on(asked) {
                let case = Case { layout: &layout, form, collation: other.as_ref() };
                let (rows, pipeline, what) = shrunk(rows, &case, pipeline, what);
                let [rows, pipeline] =
                    [rows, pipeline].map(|list| list.iter().map(Document::to_string).collect::<Vec<_>>().join("\n"));
                panic!("case {seed}: {what}\n{pipeline}\n{layout} {other:?}\n{form:?}\n{rows}");
            }
        }
    }
}

/// The pipeline with stages between which nothing is optimised.
fn apart(pipeline: &[Document]) -> Vec<Document> {
    let wall = || doc! { "$_internalInhibitOptimization": {} };
    let stages = pipeline.iter().flat_map(|stage| [wall(), stage.clone()]);
    // Some stages must be the first one.
    let skipped = usize::from(pipeline.first().is_some_and(|stage| stage.contains_key("$geoNear")));
    stages.skip(skipped).collect()
}

/// A pipeline over measurements, rewritten for buckets.
fn unpacked(pipeline: &[Document], layout: &Document) -> Vec<Document> {
    if pipeline.first().is_some_and(|stage| stage.contains_key("$geoNear")) {
        return pipeline.to_vec();
    }
    let mut parameters = doc! { "timeField": "t", "bucketMaxSpanSeconds": 3600 };
    parameters.extend(layout.get("metaField").map(|name| ("metaField".to_owned(), name.clone())));
    let stage = doc! { "$_internalUnpackBucket": parameters };
    std::iter::once(stage).chain(pipeline.iter().cloned()).collect()
}

fn model_of(rows: &[Document], layout: &Document) -> Vec<Document> {
    rows.iter().map(|row| normalized(row, layout.get_str("metaField").ok())).collect()
}

/// The error of the answer to a pipeline, if it is wrong.
fn wrong(rows: &[Document], case: &Case<'_>, pipeline: &[Document]) -> Option<String> {
    let model = model_of(rows, case.layout);
    foreign::set_collection(&model);
    // The plain list does not understand a stage without its required arguments.
    let expected = std::panic::catch_unwind(|| Rows::new(model).through(pipeline)).ok()?;
    if matches!(expected, Err(Stop::Open)) {
        return None;
    }
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        block_on(async {
            let db = stored(rows, case.layout, case.form).await;
            judge(&db, pipeline, case.collation, &expected, 3).await?;
            judge(&db, &apart(pipeline), case.collation, &expected, 3).await?;
            judge(&db, &unpacked(pipeline, case.layout), case.collation, &expected, 3).await
        })
    }));
    answer.unwrap_or_else(|_| Err("a panic".to_owned())).err()
}

/// Shrinks a failing case: removes stages, rows, fields, and fields of stages.
fn shrunk(
    mut rows: Vec<Document>,
    case: &Case<'_>,
    mut pipeline: Vec<Document>,
    mut what: String,
) -> (Vec<Document>, Vec<Document>, String) {
    if wrong(&rows, case, &pipeline).is_none() {
        return (rows, pipeline, format!("{what} (and not again)"));
    }
    let mut at = 0;
    while at < pipeline.len() {
        let mut fewer = pipeline.clone();
        fewer.remove(at);
        match wrong(&rows, case, &fewer) {
            Some(now) => (pipeline, what) = (fewer, now),
            None => at += 1,
        }
    }
    at = 0;
    while at < rows.len() {
        let mut fewer = rows.clone();
        fewer.remove(at);
        match wrong(&fewer, case, &pipeline) {
            Some(now) if !fewer.is_empty() => (rows, what) = (fewer, now),
            _ => at += 1,
        }
    }
    for row in 0..rows.len() {
        let names: Vec<String> = rows[row].keys().filter(|name| *name != "t" && *name != "n").cloned().collect();
        for name in names {
            let mut fewer = rows.clone();
            fewer[row].remove(&name);
            if let Some(now) = wrong(&fewer, case, &pipeline) {
                (rows, what) = (fewer, now);
            }
        }
    }
    for stage in 0..pipeline.len() {
        let Some((operator, Some(fields))) =
            pipeline[stage].iter().next().map(|(name, value)| (name.clone(), value.as_document().cloned()))
        else {
            continue;
        };
        let inner = |pipeline: &[Document]| {
            Some(pipeline[stage].get_document(&operator).ok()?.get_array("pipeline").ok()?.len())
        };
        let mut at = 0;
        while at < inner(&pipeline).unwrap_or(0) {
            let mut fewer = pipeline.clone();
            fewer[stage].get_document_mut(&operator).unwrap().get_array_mut("pipeline").unwrap().remove(at);
            match wrong(&rows, case, &fewer) {
                Some(now) => (pipeline, what) = (fewer, now),
                None => at += 1,
            }
        }
        for name in fields.keys().filter(|name| !REQUIRED.contains(&name.as_str()) && fields.len() > 1) {
            let mut fewer = pipeline.clone();
            let inner = fewer[stage].get_document_mut(&operator).unwrap();
            inner.remove(name);
            if inner.is_empty() {
                continue;
            }
            if let Some(now) = wrong(&rows, case, &fewer) {
                (pipeline, what) = (fewer, now);
            }
        }
    }
    (rows, pipeline, what)
}

#[test]
fn every_form_of_a_collection_runs_pipelines_as_a_plain_list_does() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("CASE");
    let count = number("CASES").unwrap_or(if first.is_some() { 1 } else { CASES });
    let first = first.unwrap_or_default();
    let mut tally = Tally::default();
    for seed in first..first + count {
        case(seed, &mut tally);
        progress("pipelines", seed + 1 - first, count);
    }
    println!("{count} cases: {tally:?}");
    assert!(count < 20 || tally.nonempty * 2 > tally.pipelines && tally.refused > 0, "{tally:?}");
}
