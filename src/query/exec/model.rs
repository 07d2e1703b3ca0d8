//! Compares the executor with a plain vector of documents.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use proptest::prelude::*;

use super::{Count, Distinct, Exec, Flow, Sink};
use crate::block::{Block, pivot_docs};
use crate::bucket::TimeseriesOptions;
use crate::query::filter::samples::globals;
use crate::query::plan::FindCommand;
use crate::query::plan::ReadPlan;
use crate::value::{
    Collation, Doc, DocBuf, DocWriter, Leaf, OwnedValue, Path, Value, compare_sort_keys, equal, sort_key, walk_doc,
};

/// The plan of a find on a collection of time `t` and metadata `m`.
fn plan_of(find: FindCommand) -> ReadPlan {
    let options = TimeseriesOptions {
        time_field: "t".into(),
        meta_field: Some("m".into()),
        rebucketed: false,
        granularity: None,
        span_seconds: 3600,
        rounding_seconds: None,
        collation: Collation::default(),
    };
    ReadPlan::new(find.into(), &options, false, &[])
}

/// A measurement without its metadata, and its metadata.
type Row = (DocBuf, Option<OwnedValue>);

fn buf(doc: &Document) -> DocBuf {
    DocBuf::parse(RawDocumentBuf::try_from(doc).unwrap().into_bytes()).unwrap()
}

fn any_row() -> impl Strategy<Value = (i64, Document)> {
    let a =
        prop_oneof![3 => (0..4_i32).prop_map(|n| Bson::Double(f64::from(n))), 1 => (0..4_i32).prop_map(Bson::Int32)];
    let b = prop_oneof![
        3 => "[a-c]{0,2}".prop_map(Bson::String),
        1 => Just(Bson::Null),
        1 => (0..3_i32).prop_map(|n| Bson::Array(vec![n.into(), 1.into()])),
    ];
    let o = prop_oneof![
        3 => (0..3_i32, 0..3_i32).prop_map(|(x, y)| Bson::Document(doc! { "x": x, "y": y })),
        1 => (0..2_i32).prop_map(Bson::Int32),
    ];
    let fields =
        (proptest::option::of(a), proptest::option::of(b), proptest::option::of(o), proptest::option::of(0..3));
    (0..20_i64, fields).prop_map(|(t, (a, b, o, id))| {
        let mut row = doc! { "t": bson::DateTime::from_millis(t) };
        for (name, value) in [("_id", id.map(Bson::Int32)), ("a", a), ("b", b), ("o", o)] {
            if let Some(value) = value {
                row.insert(name, value);
            }
        }
        (t, row)
    })
}

/// Runs of rows with equal metadata, as in buckets.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let run = (0..4_i32, proptest::collection::vec(any_row(), 1..15), any::<bool>());
    proptest::collection::vec(run, 0..6).prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(meta, mut rows, by_time)| {
                if by_time {
                    rows.sort_by_key(|row| row.0);
                }
                let meta = (meta > 0).then(|| OwnedValue::doc(buf(&doc! { "id": meta, "site": "s" }).view()));
                rows.into_iter().map(move |(_, row)| (buf(&row), meta.clone()))
            })
            .collect()
    })
}

fn filters() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! {},
        rawdoc! { "a": { "$gte": 1 } },
        rawdoc! { "m.id": { "$in": [1, 3] } },
        rawdoc! { "$or": [{ "a": 2 }, { "m.id": 2 }, { "o.x": 1 }] },
        rawdoc! { "b": { "$ne": "a" }, "t": { "$lt": bson::DateTime::from_millis(15) } },
        rawdoc! { "m": { "$exists": false } },
        rawdoc! { "a": { "$gt": 100 } },
        rawdoc! { "b": { "$regex": "^b" }, "m.site": { "$type": "string" } },
        rawdoc! { "$expr": { "$and": [{ "$gt": ["$a", "$m.id"] }, { "$lte": ["$m.id", 2] }] } },
        rawdoc! { "$expr": { "$gte": ["$t", bson::DateTime::from_millis(7)] } },
        rawdoc! { "$expr": { "$eq": [{ "$getField": "a" }, 2] } },
        rawdoc! { "b": { "$elemMatch": { "$gte": 2 } }, "o.x": { "$mod": [2, 0] } },
    ]
}

fn sorts() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! {},
        rawdoc! { "t": 1 },
        rawdoc! { "t": -1 },
        rawdoc! { "a": 1, "t": -1 },
        rawdoc! { "b": -1 },
        rawdoc! { "m.id": 1, "t": 1 },
        rawdoc! { "m": -1, "o.y": 1 },
        rawdoc! { "nothing": 1 },
    ]
}

/// A projection, and its effect on a measurement.
type Project = (RawDocumentBuf, fn(&mut Document));

fn projections() -> Vec<Project> {
    fn keep(row: &mut Document, names: &[&str]) {
        *row = row.clone().into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect();
    }
    /// Keeps (or drops) one field of an object; a scalar in the object's place stays (or goes).
    fn nested(row: &mut Document, name: &str, inner: &str, included: bool) {
        match row.get_mut(name) {
            Some(Bson::Document(object)) => {
                *object = object.clone().into_iter().filter(|(name, _)| (name == inner) == included).collect();
            }
            _ if included => {
                row.remove(name);
            }
            _ => {}
        }
    }
    vec![
        (rawdoc! {}, |_| {}),
        (rawdoc! { "a": 1 }, |row| keep(row, &["_id", "a"])),
        (rawdoc! { "b": 0, "t": 0 }, |row| keep(row, &["_id", "a", "m", "o"])),
        (rawdoc! { "o.x": 1, "m": 1, "_id": 0 }, |row| {
            keep(row, &["m", "o"]);
            nested(row, "o", "x", true);
        }),
        (rawdoc! { "o.x": 0 }, |row| nested(row, "o", "x", false)),
        (rawdoc! { "m": 0 }, |row| keep(row, &["_id", "t", "a", "b", "o"])),
        (rawdoc! { "m.id": 1, "t": 1 }, |row| {
            keep(row, &["_id", "t", "m"]);
            nested(row, "m", "id", true);
        }),
        (rawdoc! { "absent": 1, "_id": 0 }, |row| row.clear()),
    ]
}

fn with_meta((row, meta): &Row) -> DocBuf {
    let mut writer = DocWriter::new();
    row.view().iter().for_each(|(name, value)| {
        writer.value(name, value);
        if let (true, Some(meta)) = (name == "t", meta) {
            writer.value("m", meta.view());
        }
    });
    writer.finish()
}

fn key<'a>(doc: &'a DocBuf, part: &crate::query::sort::SortPart) -> Option<Value<'a>> {
    sort_key(doc.view().get(part.path.first()), part.path.rest(), part.ascending, &part.collation)
}

/// The result of the query, computed document by document.
fn expected(rows: &[Row], find: &FindCommand, project: fn(&mut Document)) -> Vec<Document> {
    let mut found: Vec<DocBuf> =
        rows.iter().map(with_meta).filter(|doc| find.filter.matches_doc(doc.view()).unwrap()).collect();
    if let Some(sort) = &find.sort {
        found.sort_by(|x, y| {
            sort.parts().iter().fold(Ordering::Equal, |order, part| {
                let by_part = compare_sort_keys(key(x, part), key(y, part), &part.collation);
                order.then(if part.ascending { by_part } else { by_part.reverse() })
            })
        });
    }
    let limit = find.limit.map_or(usize::MAX, |limit| limit as usize);
    let wanted = found.into_iter().skip(find.skip as usize).take(limit);
    wanted
        .map(|doc| {
            let mut doc = document(doc);
            project(&mut doc);
            doc
        })
        .collect()
}

fn document(doc: DocBuf) -> Document {
    Document::try_from(RawDocumentBuf::from_bytes(doc.into_bytes()).unwrap()).unwrap()
}

fn documents(block: &Block) -> Vec<Document> {
    (0..block.rows())
        .map(|row| {
            let mut writer = DocWriter::new();
            block.write_row(row, &mut writer);
            document(writer.finish())
        })
        .collect()
}

/// The order of top-level fields depends on which rows share a batch, so it is ignored.
fn fields(docs: &[Document]) -> Vec<BTreeMap<&String, &Bson>> {
    docs.iter().map(|doc| doc.iter().collect()).collect()
}

/// Cuts the rows where the metadata changes, and at `cuts`.
fn buckets<'a>(rows: &'a [Row], cuts: &'a [bool]) -> impl Iterator<Item = &'a [Row]> {
    let mut at = 0;
    rows.chunk_by(move |a, b| {
        at += 1;
        a.1 == b.1 && !cuts.get(at % cuts.len()).copied().unwrap_or_default()
    })
}

fn command(
    filter: &RawDocumentBuf,
    sort: &RawDocumentBuf,
    projection: &RawDocumentBuf,
    skip: i32,
    limit: i32,
) -> FindCommand {
    let command = rawdoc! { "find": "c", "filter": filter.clone(), "sort": sort.clone(), "projection": projection.clone(),
    "skip": skip, "limit": limit };
    FindCommand::parse(Doc::parse(command.as_bytes()).unwrap(), &globals()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn results_equal_those_of_a_plain_vector_however_rows_are_split(
        rows in any_rows(), cuts in proptest::collection::vec(any::<bool>(), 1..20),
        filter in proptest::sample::select(filters()), sort in proptest::sample::select(sorts()),
        which in any::<prop::sample::Index>(), skip in 0..12_i32, limit in prop_oneof![Just(0), 1..30_i32],
        batch in 1..20_usize, early in any::<bool>(),
    ) {
        let (projection, project) = projections().swap_remove(which.index(projections().len()));
        let find = command(&filter, &sort, &projection, skip, limit);
        let read = plan_of(find.clone());
        let plan = &read.plan;
        let mut exec = Exec::new(plan);
        let mut count = Count::default();
        count.begin(plan);
        let mut got = Vec::new();
        let (mut exec_flow, mut count_flow) = (Flow::Continue, Flow::Continue);
        for bucket in buckets(&rows, &cuts) {
            let meta = bucket[0].1.as_ref().map(OwnedValue::view);
            let times = || bucket.iter().filter_map(|row| row.0.view().get("t")?.as_date_ms());
            if !read.may_match_rows(meta, times().min().unwrap(), times().max().unwrap()).unwrap() {
                continue;
            }
            let mut block = pivot_docs(bucket.iter().map(|row| row.0.view())).unwrap();
            block.retain_columns(|name| read.columns.contains(name));
            let all_match = bucket.iter().all(|row| find.filter.matches_doc(with_meta(row).view()).unwrap());
            if count_flow == Flow::Continue {
                count_flow = match all_match && early {
                    true => count.push_whole(&|| Ok(block.rows()), meta).unwrap().unwrap(),
                    false => count.push(block.clone(), meta, all_match && !early).unwrap(),
                };
            }
            if exec_flow == Flow::Continue {
                exec_flow = exec.push(block, meta, all_match && early).unwrap();
            }
            while early && exec.ready() >= batch {
                got.extend(documents(&exec.take(batch, usize::MAX).unwrap()));
            }
        }
        exec.finish().unwrap();
        while exec.ready() > 0 {
            let taken = exec.take(batch, usize::MAX).unwrap();
            prop_assert!((1..=batch).contains(&taken.rows()));
            got.extend(documents(&taken));
        }
        let expected = expected(&rows, &find, project);
        prop_assert_eq!(fields(&got), fields(&expected));
        prop_assert_eq!(count.count(), expected.len() as u64);
    }

    #[test]
    fn distinct_values_equal_those_of_all_documents(
        rows in any_rows(), cuts in proptest::collection::vec(any::<bool>(), 1..20),
        filter in proptest::sample::select(filters()), key in proptest::sample::select(vec!["a", "b", "m", "m.x", "t", "c.d", "zz"]),
        whole in any::<bool>(),
    ) {
        let mut find = command(&filter, &rawdoc! {}, &rawdoc! {}, 0, 0);
        find.projection = crate::query::plan::Projection::only(key.split('.').next().unwrap());
        let read = plan_of(find.clone());
        let path = Path::parse(key).unwrap();
        let mut distinct = Distinct::new(path.clone());
        distinct.begin(&read.plan);
        let mut expected: Vec<OwnedValue> = Vec::new();
        for bucket in buckets(&rows, &cuts) {
            let meta = bucket[0].1.as_ref().map(OwnedValue::view);
            if !read.may_match_rows(meta, i64::MIN, i64::MAX).unwrap() {
                continue;
            }
            let mut block = pivot_docs(bucket.iter().map(|row| row.0.view())).unwrap();
            block.retain_columns(|name| read.columns.contains(name));
            let documents: Vec<DocBuf> = bucket.iter().map(with_meta).collect();
            let matching: Vec<&DocBuf> =
                documents.iter().filter(|document| find.filter.matches_doc(document.view()).unwrap()).collect();
            let all_match = matching.len() == documents.len();
            let known = if all_match && whole { distinct.push_whole(&|| Ok(block.rows()), meta).unwrap() } else { None };
            if known.is_none() {
                prop_assert_eq!(distinct.push(block, meta, all_match && whole).unwrap(), Flow::Continue);
            }
            for document in matching {
                walk_doc(document.view(), &path, Leaf::Whole, &mut |value| {
                    let values: Vec<Value<'_>> = match value.and_then(Value::as_array) {
                        Some(elements) => elements.iter().map(|(_, element)| element).collect(),
                        None => value.into_iter().collect(),
                    };
                    for value in values {
                        if !expected.iter().any(|known| equal(known.view(), value)) {
                            expected.push(value.to_owned());
                        }
                    }
                    false
                });
            }
        }
        prop_assert_eq!(distinct.into_values(), expected);
    }
}
