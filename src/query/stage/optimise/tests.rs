//! What moves, and what stays.

use bson::{Bson, Document, RawDocumentBuf, bson, doc};

use crate::query::Aggregation;
use crate::query::filter::samples::globals;
use crate::value::{Doc, DocBuf};

fn document(doc: &DocBuf) -> Document {
    RawDocumentBuf::from_bytes(doc.view().as_bytes().to_vec()).unwrap().try_into().unwrap()
}

/// The stages of a pipeline as it runs: those of the first find, then the others.
fn run(stages: Bson) -> Vec<Document> {
    let pipeline = RawDocumentBuf::try_from(&doc! { "pipeline": stages }).unwrap();
    let pipeline = Doc::parse(pipeline.as_bytes()).unwrap().get("pipeline").unwrap().as_array().unwrap();
    let parsed = Aggregation::parse(pipeline, &globals(), "").unwrap();
    let shown = parsed.find.shown().into_iter().chain(parsed.shown().into_iter().map(|shown| shown.stage));
    // What the next stage reads is no stage of the user's.
    shown.map(|stage| document(&stage)).filter(|stage| !is_narrowing(stage)).collect()
}

fn is_narrowing(stage: &Document) -> bool {
    stage.get_document("$project").is_ok_and(|fields| fields.values().all(|kept| matches!(kept, Bson::Boolean(_))))
}

fn stages(list: Bson) -> Vec<Document> {
    list.as_array().unwrap().iter().map(|stage| stage.as_document().unwrap().clone()).collect()
}

fn moves(before: Bson, after: Bson) {
    assert_eq!(run(before), stages(after));
}

fn equals(path: &str, value: impl Into<Bson>) -> Bson {
    doc! { "$match": { path: { "$eq": value.into() } } }.into()
}

#[test]
fn a_filter_moves_in_front_of_a_sort_but_not_of_a_limit() {
    let sort = || doc! { "$sort": { "b": 1 } };
    let sorted = || doc! { "$sort": { "sortKey": { "b": 1 } } };
    moves(bson!([sort(), { "$match": { "a": 1 } }]), bson!([equals("a", 1), sorted()]));
    let limited = doc! { "$sort": { "sortKey": { "b": 1 }, "limit": 3_i64 } };
    moves(bson!([sort(), { "$limit": 3 }, { "$match": { "a": 1 } }]), bson!([limited.clone(), equals("a", 1)]));
    moves(bson!([sort(), { "$match": { "a": 1 } }, { "$limit": 3 }]), bson!([equals("a", 1), limited]));
    let chance = run(bson!([sort(), { "$match": { "$sampleRate": 0.5 } }]));
    assert!(chance[0].contains_key("$sort"), "{chance:?}");
}

#[test]
fn a_filter_moves_in_front_of_a_projection_that_keeps_renames_or_drops_its_field() {
    let project = || doc! { "$project": { "a": true, "b": "$c", "d": { "$add": ["$a", { "$const": 1 }] } } };
    let shown = || doc! { "$project": { "_id": true, "a": true, "b": "$c", "d": { "$add": ["$a", { "$const": 1 }] } } };
    moves(bson!([project(), { "$match": { "a.x": 1 } }]), bson!([equals("a.x", 1), shown()]));
    moves(bson!([project(), { "$match": { "b.x": 1 } }]), bson!([equals("c.x", 1), shown()]));
    moves(bson!([project(), { "$match": { "d": 1 } }]), bson!([shown(), equals("d", 1)]));
    moves(
        bson!([project(), { "$match": { "d": 1, "b": { "$exists": false } } }]),
        bson!([{ "$match": { "c": { "$not": { "$exists": true } } } }, shown(), equals("d", 1)]),
    );
    // No row has it.
    moves(bson!([project(), { "$match": { "e": null } }]), bson!([shown()]));
    let swap = || doc! { "$addFields": { "a": "$b", "b": "$a" } };
    moves(
        bson!([swap(), { "$match": { "$or": [{ "a": 1 }, { "b": 2 }] } }]),
        bson!([{ "$match": { "$or": [{ "b": { "$eq": 1 } }, { "a": { "$eq": 2 } }] } }, swap()]),
    );
}

#[test]
fn what_a_path_reaches_is_asked_for_twice_unless_nothing_but_one_value_can_pass() {
    let project = || doc! { "$addFields": { "a": "$m.x" } };
    moves(bson!([project(), { "$match": { "a": 1 } }]), bson!([equals("m.x", 1), project(), equals("a", 1)]));
    for filter in [
        doc! { "a": { "$eq": null } },
        doc! { "a": { "$eq": [1] } },
        doc! { "a": { "$exists": true } },
        doc! { "a.0": { "$eq": 1 } },
        doc! { "a": { "$not": { "$eq": 1 } } },
    ] {
        moves(bson!([project(), { "$match": filter.clone() }]), bson!([project(), { "$match": filter }]));
    }
    // An expression reaches the same in both.
    let same = run(bson!([project(), { "$match": { "$expr": { "$gt": ["$a", 1] } } }]));
    assert_eq!(same[0], doc! { "$match": { "$expr": { "$gt": ["$m.x", { "$const": 1 }] } } });
    assert_eq!(same.len(), 2);
}

#[test]
fn a_filter_of_the_key_moves_in_front_of_a_group() {
    let group = |id: Bson| doc! { "$group": { "_id": id, "n": { "$sum": 1 } } };
    moves(bson!([group("$a".into()), { "$match": { "_id": 1 } }]), bson!([equals("a", 1), group("$a".into())]));
    let parts = || group(doc! { "x": "$a", "y": "$m.x" }.into());
    moves(bson!([parts(), { "$match": { "_id.x.z": 1 } }]), bson!([equals("a.z", 1), parts()]));
    moves(bson!([parts(), { "$match": { "_id.y": 1 } }]), bson!([equals("m.x", 1), parts(), equals("_id.y", 1)]));
    moves(
        bson!([parts(), { "$match": { "_id.x": { "$ne": 1 }, "n": 2 } }]),
        bson!([{ "$match": { "a": { "$not": { "$eq": 1 } } } }, parts(), equals("n", 2)]),
    );
    for filter in [
        doc! { "_id": { "$eq": { "x": 1 } } },
        doc! { "_id.x": { "$eq": null } },
        doc! { "_id.x": { "$exists": true } },
        doc! { "_id.x": { "$type": [16_i64] } },
        doc! { "_id.z": { "$eq": 1 } },
        doc! { "$or": [{ "_id.x": { "$eq": 1 } }, { "n": { "$eq": 1 } }] },
    ] {
        moves(bson!([parts(), { "$match": filter.clone() }]), bson!([parts(), { "$match": filter }]));
    }
}

#[test]
fn what_can_fail_stays_behind_what_it_would_not_have_met() {
    let project = || doc! { "$addFields": { "a": { "$add": ["$b", { "$const": 1 }] } } };
    let fails = || doc! { "$expr": { "$gt": [{ "$divide": [{ "$const": 1 }, "$c"] }, { "$const": 1 }] } };
    moves(bson!([project(), { "$match": fails() }]), bson!([{ "$match": fails() }, project()]));
    let both = || doc! { "$and": [{ "a": { "$eq": 1 } }, fails()] };
    moves(bson!([project(), { "$match": both() }]), bson!([project(), { "$match": both() }]));
    let unwind = || doc! { "$unwind": "$l" };
    moves(bson!([unwind(), { "$match": { "b": 1 } }]), bson!([equals("b", 1), unwind()]));
    moves(bson!([unwind(), { "$match": { "l": 1 } }]), bson!([unwind(), equals("l", 1)]));
    moves(bson!([unwind(), { "$match": fails() }]), bson!([unwind(), { "$match": fails() }]));
}

#[test]
fn a_filter_moves_as_far_as_it_may_and_not_over_a_barrier() {
    let list = |stages: Vec<Bson>| Bson::Array(stages);
    let (unwind, rename) = (doc! { "$unwind": "$l" }, doc! { "$addFields": { "y": "$x" } });
    let (sort, group) = (doc! { "$sort": { "z": 1 } }, doc! { "$group": { "_id": "$y" } });
    let all =
        vec![rename.into(), unwind.clone().into(), sort.into(), group.into(), doc! { "$match": { "_id": 1 } }.into()];
    let found = run(list(all.clone()));
    assert_eq!(Bson::from(found[0].clone()), equals("x", 1));
    assert!(!found[1..].iter().any(|stage| stage.contains_key("$match")), "{found:?}");
    let mut barred = all;
    barred.insert(2, doc! { "$_internalInhibitOptimization": {} }.into());
    let found = run(list(barred));
    assert_eq!(found[1], unwind);
    assert_eq!(Bson::from(found[2].clone()), equals("y", 1));
}

#[test]
fn a_group_reads_what_a_projection_of_fields_reads() {
    let group = |host: &str, value: &str| doc! { "$group": { "_id": host, "u": { "$avg": value } } };
    let renames = doc! { "$project": { "host": "$m.x", "u": "$a" } };
    moves(bson!([renames, group("$host", "$u")]), bson!([group("$m.x", "$a")]));
    let replaced = doc! { "$replaceWith": { "host": "$m.x", "u": { "v": "$a" } } };
    moves(
        bson!([replaced, group("$host", "$n")]),
        bson!([
            { "$project": { "_id": false, "host": "$m.x", "u": { "v": "$a" } } },
            group("$host", "$n"),
        ]),
    );
    moves(bson!([{ "$unset": "b" }, group("$a", "$c")]), bson!([group("$a", "$c")]));
    let hour = || doc! { "$dateTrunc": { "date": "$t", "unit": { "$const": "hour" } } };
    let once = run(bson!([{ "$addFields": { "h": hour() } }, group("$h", "$c")]));
    assert_eq!(once, [doc! { "$group": { "_id": hour(), "u": { "$avg": "$c" } } }]);
    // Computed twice, never, or not for every row.
    for (key, value) in [("$h", "$h"), ("$a", "$c"), ("$h.x", "$c")] {
        let set = doc! { "$addFields": { "h": hour() } };
        moves(bson!([set.clone(), group(key, value)]), bson!([set, group(key, value)]));
    }
    let sorted = doc! { "$group": { "_id": null, "u": { "$top": { "sortBy": { "b": 1 }, "output": "$c" } } } };
    moves(bson!([{ "$unset": "a" }, sorted.clone()]), bson!([sorted.clone()]));
    moves(bson!([{ "$addFields": { "b": "$a" } }, sorted.clone()]), bson!([{ "$addFields": { "b": "$a" } }, sorted]));
}

#[test]
fn a_filter_moves_into_both_halves_of_a_union() {
    let union = |pipeline: Bson| doc! { "$unionWith": { "coll": "c", "pipeline": pipeline } };
    moves(
        bson!([union(bson!([{ "$limit": 3 }])), { "$match": { "a": 1 } }]),
        bson!([equals("a", 1), union(bson!([{ "$limit": 3 }, equals("a", 1)]))]),
    );
    moves(
        bson!([{ "$unionWith": "c" }, { "$addFields": { "b": "$a" } }, { "$match": { "b": 1 } }]),
        bson!([equals("a", 1), union(bson!([equals("a", 1)])), { "$addFields": { "b": "$a" } }]),
    );
}

#[test]
fn what_is_left_of_a_field_is_asked_for_twice_unless_whole_objects_are_compared() {
    let cut = || doc! { "$project": { "_id": true, "a.b": true, "x": "$y" } };
    moves(bson!([cut(), { "$match": { "a.b": 1 } }]), bson!([equals("a.b", 1), cut(), equals("a.b", 1)]));
    for filter in [
        doc! { "a": { "$eq": { "b": 1 } } },
        doc! { "a.0": { "$eq": 1 } },
        doc! { "a.b": { "$exists": true } },
        doc! { "$nor": [{ "a.b": { "$eq": 1 } }] },
    ] {
        moves(bson!([cut(), { "$match": filter.clone() }]), bson!([cut(), { "$match": filter }]));
    }
}
