//! Facts 46 to 53: updates of metadata, and those that are refused.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{Filled, Form, at, tagged};

fn row(id: i32, tag: Bson) -> Document {
    doc! { "_id": id, "t": at(i64::from(id) * 1000), "tag": tag, "x": id }
}

/// An update of rows with these tags, the expected tags, and the numbers of matched and changed rows.
struct Case {
    tags: Vec<Bson>,
    q: Document,
    u: Document,
    more: Document,
    expected: Vec<Bson>,
    counts: (i32, i32),
}

fn case(tags: Bson, q: Document, u: Document, expected: Bson, counts: (i32, i32)) -> Case {
    let (Bson::Array(tags), Bson::Array(expected)) = (tags, expected) else { panic!("no lists") };
    Case { tags, q, u, more: doc! {}, expected, counts }
}

impl Case {
    fn with(self, more: Document) -> Case {
        Case { more, ..self }
    }
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    vec![
        case(bson!([1, 2]), doc! { "tag": 1 }, doc! { "$set": { "tag": "x" } }, bson!(["x", 2]), (1, 1)),
        case(bson!([{ "a": 1 }, 2]), doc! { "tag.a": 1 }, doc! { "$set": { "tag": { "tag": 1 } } }, bson!([{ "tag": 1 }, 2]), (1, 1)),
        case(bson!([{ "a": 1 }]), doc! {}, doc! { "$set": { "tag.b": 2 } }, bson!([{ "a": 1, "b": 2 }]), (1, 1)),
        // The order of metadata fields does not matter.
        case(bson!([1]), doc! {}, doc! { "$set": { "tag": { "b": 1, "a": { "d": 1, "c": 2 } } } }, bson!([{ "a": { "c": 2, "d": 1 }, "b": 1 }]), (1, 1)),
        case(bson!([1, 1, 2]), doc! {}, doc! { "$set": { "tag": 1 } }, bson!([1, 1, 1]), (3, 1)),
        case(bson!([{ "a": 1 }, { "a": 2 }]), doc! { "tag.a": 1 }, doc! { "$unset": { "tag.a": "" } }, bson!([{}, { "a": 2 }]), (1, 1)),
        case(bson!([{ "a": 1 }, { "b": 2 }]), doc! {}, doc! { "$inc": { "tag.a": 10 } }, bson!([{ "a": 11 }, { "a": 10, "b": 2 }]), (2, 2)),
        case(bson!([{ "a": 3 }, { "b": 2 }]), doc! {}, doc! { "$mul": { "tag.a": 10 } }, bson!([{ "a": 30 }, { "a": 0, "b": 2 }]), (2, 2)),
        case(bson!([{ "a": 3 }, { "b": 2 }]), doc! { "tag.a": { "$exists": true } }, doc! { "$mul": { "tag.a": 10 } }, bson!([{ "a": 30 }, { "b": 2 }]), (1, 1)),
        case(bson!([{ "a": 3 }, { "b": 2 }]), doc! { "tag.b": { "$nin": [2] } }, doc! { "$mul": { "tag.a": 2 } }, bson!([{ "a": 6 }, { "b": 2 }]), (1, 1)),
        case(bson!([{ "a": 3 }, { "a": 7 }]), doc! {}, doc! { "$min": { "tag.a": 5 } }, bson!([{ "a": 3 }, { "a": 5 }]), (2, 1)),
        case(bson!([{ "a": 3 }, { "a": 7 }]), doc! {}, doc! { "$max": { "tag.a": 5 } }, bson!([{ "a": 5 }, { "a": 7 }]), (2, 1)),
        case(bson!([{ "a": 3 }, { "b": 7 }]), doc! {}, doc! { "$rename": { "tag.a": "tag.c" } }, bson!([{ "c": 3 }, { "b": 7 }]), (2, 1)),
        case(bson!([{ "a": [1] }, { "b": 7 }]), doc! {}, doc! { "$push": { "tag.a": { "$each": [3, 2], "$sort": 1, "$slice": 2 } } }, bson!([{ "a": [1, 2] }, { "a": [2, 3], "b": 7 }]), (2, 2)),
        case(bson!([{ "a": [1] }, { "a": [2] }]), doc! {}, doc! { "$addToSet": { "tag.a": 1 } }, bson!([{ "a": [1] }, { "a": [2, 1] }]), (2, 1)),
        case(bson!([{ "a": [1, 2] }, { "a": [] }]), doc! {}, doc! { "$pop": { "tag.a": 1 } }, bson!([{ "a": [1] }, { "a": [] }]), (2, 1)),
        case(bson!([{ "a": [1, 2, 3] }]), doc! {}, doc! { "$pull": { "tag.a": { "$gte": 2 } } }, bson!([{ "a": [1] }]), (1, 1)),
        case(bson!([{ "a": [1, 2, 3] }]), doc! {}, doc! { "$pullAll": { "tag.a": [1, 3] } }, bson!([{ "a": [2] }]), (1, 1)),
        case(bson!([{ "a": 6 }]), doc! {}, doc! { "$bit": { "tag.a": { "and": 3 } } }, bson!([{ "a": 2 }]), (1, 1)),
        case(bson!([{ "a": 6 }]), doc! {}, doc! { "$setOnInsert": { "tag.b": 1 } }, bson!([{ "a": 6 }]), (1, 0)),
        case(bson!([{ "a": [1, 2] }, { "a": [3] }]), doc! { "tag.a": 2 }, doc! { "$set": { "tag.a.$": 9 } }, bson!([{ "a": [1, 9] }, { "a": [3] }]), (1, 1)),
        case(bson!([[1, 2], 3]), doc! { "tag": 2 }, doc! { "$set": { "tag.$": 9 } }, bson!([[1, 9], 3]), (1, 1)),
        case(bson!([{ "a": [1, 2] }]), doc! {}, doc! { "$inc": { "tag.a.$[]": 1 } }, bson!([{ "a": [2, 3] }]), (1, 1)),
        case(bson!([{ "a": [{ "b": 1 }, { "b": 2 }] }]), doc! {}, doc! { "$set": { "tag.a.$[i].b": 9 } }, bson!([{ "a": [{ "b": 1 }, { "b": 9 }] }]), (1, 1))
            .with(doc! { "arrayFilters": [{ "i.b": { "$gt": 1 } }] }),
        case(bson!([{ "a": [1, 2] }]), doc! {}, doc! { "$unset": { "tag.a.$[i]": "" } }, bson!([{ "a": [(Bson::Null), 2] }]), (1, 1))
            .with(doc! { "arrayFilters": [{ "i": 1 }] }),
        case(bson!(["café", "cafe", "cafE", "caff"]), doc! { "tag": "cafe" }, doc! { "$set": { "tag": 1 } }, bson!([1, 1, 1, "caff"]), (3, 3))
            .with(doc! { "collation": { "locale": "fr", "strength": 1 } }),
        case(bson!(["café", "cafe", "cafE"]), doc! { "tag": "cafe" }, doc! { "$set": { "tag": 1 } }, bson!(["café", 1, "cafE"]), (1, 1)),
        case(bson!([{ "a": 1 }, { "b": 1 }]), doc! { "$or": [{ "tag.a": 1 }, { "tag.c": 1 }] }, doc! { "$set": { "tag": 0 } }, bson!([0, { "b": 1 }]), (1, 1)),
        case(bson!([{ "a": 1 }, 2]), doc! { "$jsonSchema": { "properties": { "tag": { "bsonType": "object" } } } }, doc! { "$set": { "tag": 0 } }, bson!([0, 2]), (1, 1)),
        case(bson!([1, 2, 3]), doc! { "tag": { "$in": [1, 3] } }, doc! { "$set": { "tag": "$$x" } }, bson!(["$$x", 2, "$$x"]), (2, 2)),
        case(bson!([1, 2]), doc! { "tag": 9 }, doc! { "$set": { "tag": 0 } }, bson!([1, 2]), (0, 0)),
    ]
}

#[test]
fn every_operator_changes_the_metadata_of_whole_buckets_in_every_form() {
    block_on(async {
        for Case { tags, q, u, more, expected, counts } in cases() {
            let rows: Vec<Document> = tags.into_iter().zip(0..).map(|(tag, id)| row(id, tag)).collect();
            for filled in Filled::each(&rows).await {
                let found = filled.update(q.clone(), u.clone(), more.clone()).await;
                assert_eq!(found, counts, "{u} {:?}", filled.form);
                let expected: Vec<Option<Bson>> = expected.iter().cloned().map(Some).collect();
                assert_eq!(filled.tags().await, expected, "{u} {:?}", filled.form);
                filled.sound().await;
            }
        }
    });
}

#[test]
fn updates_count_measurements_and_unset_metadata_is_missing() {
    block_on(async {
        let rows: Vec<Document> = (0..6).map(|id| row(id, (id % 2).into())).collect();
        for filled in Filled::each(&rows).await {
            assert_eq!(filled.update(doc! {}, doc! { "$set": { "tag": 1 } }, doc! {}).await, (6, 3));
            assert_eq!(filled.update(doc! {}, doc! { "$unset": { "tag": "" } }, doc! {}).await, (6, 6));
            assert!(filled.tags().await.iter().all(Option::is_none));
            filled.insert(&[row(9, 1.into())]).await;
            assert_eq!(
                filled.update(doc! { "tag": { "$exists": false } }, doc! { "$set": { "tag": 2 } }, doc! {}).await,
                (6, 6)
            );
            assert_eq!(filled.ids(doc! { "filter": { "tag": 2 } }).await, [0, 1, 2, 3, 4, 5]);
            filled.sound().await;
        }
    });
}

#[test]
fn an_index_on_metadata_follows_updates() {
    block_on(async {
        let rows: Vec<Document> = (0..6).map(|id| row(id, bson!({ "a": (id % 2), "b": "x" }))).collect();
        for filled in Filled::each(&rows).await {
            filled.index(doc! { "tag.a": 1 }, doc! {}).await;
            filled.index(doc! { "tag.b": 1, "x": 1 }, doc! {}).await;
            filled.index(doc! { "tag": "hashed" }, doc! {}).await;
            filled.update(doc! { "tag.a": 1 }, doc! { "$set": { "tag.a": 7, "tag.b": "y" } }, doc! {}).await;
            for (filter, hint, found) in [
                (doc! { "tag.a": 7 }, "tag.a_1", &[1, 3, 5][..]),
                (doc! { "tag.a": 1 }, "tag.a_1", &[]),
                (doc! { "tag.b": "y", "x": { "$gt": 1 } }, "tag.b_1_x_1", &[3, 5]),
                (doc! { "tag": { "a": 7, "b": "y" } }, "tag_hashed", &[1, 3, 5]),
                (doc! { "tag": { "a": 1, "b": "x" } }, "tag_hashed", &[]),
            ] {
                assert_eq!(
                    filled.ids(doc! { "filter": filter, "hint": hint }).await,
                    found,
                    "{hint} {:?}",
                    filled.form
                );
            }
            filled.sound().await;
        }
    });
}

#[test]
fn an_update_of_other_fields_fails_with_72_and_changes_nothing() {
    block_on(async {
        let rows: Vec<Document> = (0..4).map(|id| row(id, bson!({ "a": (id % 2) }))).collect();
        let set = || doc! { "$set": { "tag": 1 } };
        let statements = [
            doc! { "q": {}, "u": set() },
            doc! { "q": {}, "u": set(), "multi": false },
            doc! { "q": {}, "u": set(), "multi": true, "upsert": true },
            doc! { "q": {}, "u": [set()], "multi": true },
            doc! { "q": {}, "u": {}, "multi": true },
            doc! { "q": {}, "u": { "tag": 1 }, "multi": true },
            doc! { "q": { "x": 1 }, "u": set(), "multi": true },
            doc! { "q": { "tag": { "a": 1 }, "x": 1 }, "u": set(), "multi": true },
            doc! { "q": { "t": at(0) }, "u": set(), "multi": true },
            doc! { "q": { "tagx": 1 }, "u": set(), "multi": true },
            doc! { "q": { "$and": [{ "tag": 1 }, { "$or": [{ "x": 1 }] }] }, "u": set(), "multi": true },
            doc! { "q": { "$expr": { "$eq": ["$tag", 1] } }, "u": set(), "multi": true },
            doc! { "q": { "$where": "1" }, "u": set(), "multi": true },
            doc! { "q": { "$jsonSchema": { "required": ["x"] } }, "u": set(), "multi": true },
            doc! { "q": { "$jsonSchema": { "properties": { "tag.a": {} } } }, "u": set(), "multi": true },
            doc! { "q": {}, "u": { "$set": { "x": 1 } }, "multi": true },
            doc! { "q": {}, "u": { "$set": { "_id": 1 } }, "multi": true },
            doc! { "q": {}, "u": { "$set": { "tag": 1, "t": 1 } }, "multi": true },
            doc! { "q": {}, "u": { "$unset": { "tagx": "" } }, "multi": true },
            doc! { "q": {}, "u": { "$rename": { "tag": "other" } }, "multi": true },
            doc! { "q": {}, "u": { "$rename": { "tag.a": "a" } }, "multi": true },
            doc! { "q": {}, "u": { "$rename": { "x": "tag.x" } }, "multi": true },
        ];
        for filled in Filled::each(&rows).await {
            let before = filled.tags().await;
            for statement in &statements {
                let reply = filled.ok(doc! { "update": "c", "updates": [statement.clone()] }).await;
                let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
                assert_eq!((error.get_i32("code").unwrap(), reply.get_i32("n").unwrap()), (72, 0), "{statement}");
            }
            assert_eq!(filled.tags().await, before);
        }
        let plain = Filled::new(Form::Journal, doc! { "timeseries": { "timeField": "t" } }, &[]).await;
        let statement = doc! { "q": {}, "u": set(), "multi": true };
        let reply = plain.ok(doc! { "update": "c", "updates": [statement] }).await;
        assert_eq!(reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("code").unwrap(), 72);
    });
}

#[test]
fn ordered_statements_stop_at_an_error_and_unordered_ones_do_not() {
    block_on(async {
        for (ordered, n, tags) in [(true, 1, bson!([11, 2, 3])), (false, 2, bson!([11, 2, 13]))] {
            let rows: Vec<Document> = (1..=3).map(|id| row(id, id.into())).collect();
            let filled = Filled::new(Form::Both, doc! { "timeseries": tagged() }, &rows).await;
            let good = |tag: i32| doc! { "q": { "tag": tag }, "u": { "$inc": { "tag": 10 } }, "multi": true };
            let bad = doc! { "q": { "tag": 2 }, "u": { "$inc": { "tag": 10 } } };
            let reply = filled.ok(doc! { "update": "c", "updates": [good(1), bad, good(3)], "ordered": ordered }).await;
            assert_eq!((reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap()), (n, n));
            let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
            assert_eq!((error.get_i32("index").unwrap(), error.get_i32("code").unwrap()), (1, 72));
            let found: Vec<Bson> = filled.tags().await.into_iter().flatten().collect();
            assert_eq!(Bson::Array(found), tags);
        }
    });
}

#[test]
fn metadata_refused_by_an_index_is_a_write_error_and_nothing_changes() {
    block_on(async {
        let rows: Vec<Document> = (0..4).map(|id| row(id, bson!({ "a": (id % 2), "b": 1 }))).collect();
        for filled in Filled::each(&rows).await {
            filled.index(doc! { "tag.a": 1, "tag.b": 1 }, doc! {}).await;
            filled.index(doc! { "tag.c": "hashed" }, doc! {}).await;
            let before = filled.tags().await;
            for (code, u) in
                [(171, doc! { "$set": { "tag.a": [1], "tag.b": [1] } }), (16766, doc! { "$push": { "tag.c": 1 } })]
            {
                let statement = doc! { "q": { "tag.a": 1 }, "u": u, "multi": true };
                let reply = filled.ok(doc! { "update": "c", "updates": [statement] }).await;
                let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
                assert_eq!((error.get_i32("code").unwrap(), reply.get_i32("n").unwrap()), (code, 0));
                assert_eq!(filled.tags().await, before);
            }
            assert_eq!(filled.update(doc! { "tag.a": 1 }, doc! { "$set": { "tag.a": [1] } }, doc! {}).await, (2, 2));
            filled.sound().await;
        }
    });
}
