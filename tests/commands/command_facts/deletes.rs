//! Facts 35 to 46 and 54: which measurements deletes remove, and how their buckets change.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{Filled, Form, at, tagged};
use crate::support::checks;
use crate::support::explained::explain;
use crate::support::raw;

const MINUTE: i64 = 60_000;

fn row(id: i32, tag: impl Into<Bson>) -> Document {
    doc! { "_id": id, "t": at(i64::from(id) * MINUTE), "tag": tag.into(), "f": 100 + id }
}

#[test]
fn measurements_inserted_after_a_delete_of_their_series_are_the_only_ones() {
    block_on(async {
        for filled in Filled::each(&[row(1, "A"), row(2, "A"), row(3, "B")]).await {
            assert_eq!(filled.delete(doc! { "tag": "A" }, 0).await, 2);
            assert_eq!(filled.ids(doc! { "filter": { "tag": "A" } }).await, Vec::<i32>::new());
            filled.insert(&[row(4, "A")]).await;
            assert_eq!(filled.ids(doc! { "filter": { "tag": "A" } }).await, [4], "{:?}", filled.form);
            assert_eq!(filled.all().await, [3, 4]);
            filled.sound().await;
        }
    });
}

#[test]
fn a_delete_by_metadata_removes_exactly_the_matches() {
    block_on(async {
        let tags = [
            bson!({ "a": "A", "b": { "a": 1 } }),
            bson!({ "a": "A" }),
            bson!({ "a": "B", "b": { "a": "A" } }),
            bson!({ "b": 1 }),
            bson!(7),
        ];
        let mut rows: Vec<Document> = tags.into_iter().zip(1..).map(|(tag, n)| row(n, tag)).collect();
        rows.push(doc! { "_id": 6, "t": at(6 * MINUTE) });
        for (query, gone) in [
            (doc! { "tag.a": "A" }, &[1, 2][..]),
            (doc! { "$and": [{ "tag.a": "A" }, { "tag.b.a": 1 }] }, &[1]),
            (doc! { "$or": [{ "tag.a": "B" }, { "tag": 7 }] }, &[3, 5]),
            (doc! { "tag.a": { "$ne": "A" } }, &[3, 4, 5, 6]),
            (doc! { "tag.b.a": { "$exists": true } }, &[1, 3]),
            (doc! { "$jsonSchema": { "required": ["tag"] } }, &[1, 2, 3, 4, 5]),
            (
                doc! { "$jsonSchema": { "required": ["tag"], "properties": { "tag": { "bsonType": "object" } } } },
                &[1, 2, 3, 4],
            ),
            (doc! { "tag": { "$exists": false } }, &[6]),
            (doc! { "$expr": { "$eq": ["$tag.a", "B"] } }, &[3]),
            (doc! { "$nor": [{ "tag.a": "A" }] }, &[3, 4, 5, 6]),
        ] {
            for filled in Filled::each(&rows).await {
                assert_eq!(filled.delete(query.clone(), 0).await, gone.len() as i32, "{query} {:?}", filled.form);
                let left: Vec<i32> = (1..=6).filter(|id| !gone.contains(id)).collect();
                assert_eq!(filled.all().await, left, "{query} {:?}", filled.form);
                filled.sound().await;
            }
        }
    });
}

#[test]
fn measurements_can_be_deleted_without_a_meta_field() {
    block_on(async {
        let rows: Vec<Document> = (1..=5).map(|n| doc! { "_id": n, "t": at(n.into()), "x": n }).collect();
        for form in super::forms::FORMS {
            let filled = Filled::new(form, doc! { "timeseries": { "timeField": "t" } }, &rows).await;
            assert_eq!(filled.delete(doc! { "x": { "$lt": 3 } }, 0).await, 2);
            assert_eq!(filled.delete(doc! {}, 0).await, 3);
            assert!(filled.all().await.is_empty());
            assert!(checks::buckets(&filled.other, "c").await.is_empty());
        }
    });
}

#[test]
fn deletes_leave_a_bucket_alone_then_rewrite_it_then_remove_it() {
    block_on(async {
        let rows: Vec<Document> = (1..=3).map(|n| doc! { "_id": n, "t": at(5), "tag": 1 }).collect();
        for (query, n, left) in [
            (doc! { "_id": { "$gt": 3 } }, 0, &[1, 2, 3][..]),
            (doc! { "_id": { "$lt": 2 } }, 1, &[2, 3]),
            (doc! { "_id": { "$lt": 3 } }, 2, &[3]),
            (doc! { "t": at(5) }, 3, &[]),
        ] {
            for filled in Filled::each(&rows).await {
                assert_eq!(filled.delete(query.clone(), 0).await, n, "{query} {:?}", filled.form);
                assert_eq!(filled.all().await, left);
                let buckets = checks::buckets(&filled.other, "c").await;
                assert_eq!(buckets.len(), usize::from(!left.is_empty()));
                filled.sound().await;
            }
        }
    });
}

#[test]
fn a_delete_by_a_measured_field_rewrites_some_buckets_and_removes_others() {
    block_on(async {
        // These are 101 and 109 of A, 102 to 104 of B, 105 and 110 of C.
        let rows: Vec<Document> = [(1, "A"), (2, "B"), (3, "B"), (4, "B"), (5, "C"), (9, "A"), (10, "C")]
            .into_iter()
            .map(|(id, tag)| row(id, tag))
            .collect();
        for filled in Filled::each(&rows).await {
            assert_eq!(filled.delete(doc! { "f": { "$lt": 106 } }, 0).await, 5);
            assert_eq!(filled.all().await, [9, 10]);
            filled.sound().await;
        }
        for filled in Filled::each(&rows).await {
            let query = doc! { "f": { "$in": [101, 103, 105, 110] }, "tag": { "$in": ["A", "C"] } };
            assert_eq!(filled.delete(query, 0).await, 3);
            assert_eq!(filled.all().await, [2, 3, 4, 9]);
            filled.sound().await;
        }
    });
}

#[test]
fn fixed_buckets_are_removed_whole_if_the_bound_is_a_boundary() {
    block_on(async {
        let span = 3600;
        let create = doc! { "timeseries": { "timeField": "t", "metaField": "tag", "bucketMaxSpanSeconds": span, "bucketRoundingSeconds": span } };
        let hour = |n: i32, minutes: i32| at(i64::from(n * 60 + minutes) * MINUTE);
        let rows: Vec<Document> = (0..12)
            .map(|n| doc! { "_id": n, "t": hour(n / 4, n % 4 * 15), "tag": if n % 2 == 0 { "A" } else { "B" } })
            .collect();
        for (query, whole, gone) in [
            (doc! { "t": { "$lt": hour(1, 0) } }, true, (0..4).collect::<Vec<i32>>()),
            (doc! { "t": { "$gte": hour(1, 0) }, "tag": "A" }, true, vec![4, 6, 8, 10]),
            (doc! { "t": { "$lte": hour(1, 0) } }, false, (0..5).collect()),
            (doc! { "t": { "$lt": hour(1, 1) } }, false, (0..5).collect()),
        ] {
            for form in super::forms::FORMS {
                let filled = Filled::new(form, create.clone(), &rows).await;
                let statement = doc! { "q": query.clone(), "limit": 0 };
                let delete = doc! { "explain": { "delete": "c", "deletes": [statement] }, "verbosity": "queryPlanner" };
                let plan = filled.ok(delete).await;
                let plan = plan.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
                assert_eq!(plan.get_str("stage").unwrap(), if whole { "DELETE" } else { "TS_MODIFY" }, "{query}");
                assert_eq!(filled.delete(query.clone(), 0).await, gone.len() as i32, "{query} {form:?}");
                let left: Vec<i32> = (0..12).filter(|id| !gone.contains(id)).collect();
                assert_eq!(filled.all().await, left);
                filled.sound().await;
            }
        }
    });
}

#[test]
fn a_delete_with_limit_one_removes_one_match() {
    block_on(async {
        let rows: Vec<Document> = (1..=6).map(|n| row(n, if n < 4 { "A" } else { "B" })).collect();
        for (query, matches) in [
            (doc! { "f": 104 }, &[4][..]),
            (doc! { "f": { "$gt": 104 } }, &[5, 6]),
            (doc! { "tag": "A" }, &[1, 2, 3]),
            (doc! { "tag": "B", "f": { "$lt": 106 } }, &[4, 5]),
            (doc! {}, &[1, 2, 3, 4, 5, 6]),
            (doc! { "_id": 3 }, &[3]),
            (doc! { "_id": 9 }, &[]),
            (doc! { "tag": "C" }, &[]),
        ] {
            for filled in Filled::each(&rows).await {
                let n = filled.delete(query.clone(), 1).await;
                assert_eq!(n, i32::from(!matches.is_empty()), "{query} {:?}", filled.form);
                let left = filled.all().await;
                let gone: Vec<i32> = (1..=6).filter(|id| !left.contains(id)).collect();
                assert!(gone.len() == n as usize && gone.iter().all(|id| matches.contains(id)), "{query}: {gone:?}");
                filled.sound().await;
            }
        }
    });
}

#[test]
fn deletes_do_not_change_the_start_of_a_bucket() {
    block_on(async {
        let minutes = |n: i64| at(n * MINUTE);
        let rows = [
            doc! { "_id": 1, "t": at(5 * MINUTE + 10_000), "tag": 1, "v": 1 },
            doc! { "_id": 2, "t": minutes(30), "tag": 1, "v": 2 },
            doc! { "_id": 3, "t": minutes(45), "tag": 1, "v": 3 },
        ];
        for filled in Filled::each(&rows).await {
            for (query, limit, left) in
                [(doc! { "t": at(5 * MINUTE + 10_000) }, 1, &[2, 3][..]), (doc! { "v": { "$lt": 3 } }, 0, &[3])]
            {
                assert_eq!(filled.delete(query, limit).await, 1);
                let buckets = checks::buckets(&filled.other, "c").await;
                let control = buckets[0].get_document("control").unwrap();
                let min = control.get_document("min").unwrap();
                assert_eq!(min.get_datetime("t").unwrap(), &minutes(5), "{:?}", filled.form);
                assert_eq!(min.get_i32("v").unwrap(), left[0]);
                assert_eq!(filled.all().await, left);
            }
            filled.sound().await;
        }
    });
}

#[test]
fn a_delete_uses_the_hinted_index_and_fails_for_a_missing_one() {
    block_on(async {
        let rows: Vec<Document> = (1..=4).map(|n| row(n, n % 2)).collect();
        for (hint, index) in [
            (bson!({ "$natural": 1 }), None),
            (bson!({ "$natural": -1 }), None),
            (bson!({ "tag": 1 }), Some(doc! { "meta": 1 })),
            (bson!("tag_1"), Some(doc! { "meta": 1 })),
            (bson!({ "t": 1, "tag": 1 }), Some(doc! { "control.min.t": 1, "control.max.t": 1, "meta": 1 })),
        ] {
            for filled in Filled::each(&rows).await {
                filled.index(doc! { "tag": 1 }, doc! {}).await;
                filled.index(doc! { "t": 1, "tag": 1 }, doc! {}).await;
                let statement = doc! { "q": { "tag": 1, "f": { "$lt": 103 } }, "limit": 0, "hint": hint.clone() };
                let delete = doc! { "delete": "c", "deletes": [statement] };
                let plan = filled.ok(doc! { "explain": delete.clone(), "verbosity": "queryPlanner" }).await;
                let plan = plan.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
                let input = plan.get_document("inputStage").unwrap();
                match &index {
                    None => assert_eq!(input.get_str("stage").unwrap(), "COLLSCAN"),
                    Some(key) => {
                        let scan = input.get_document("inputStage").unwrap();
                        assert_eq!(
                            (scan.get_str("stage").unwrap(), scan.get_document("keyPattern").unwrap()),
                            ("IXSCAN", key)
                        );
                    }
                }
                assert_eq!(filled.ok(delete).await.get_i32("n").unwrap(), 1);
                assert_eq!(filled.all().await, [2, 3, 4]);
                for unknown in [bson!("none"), bson!({ "none": 1 }), bson!({ "tag": -1 })] {
                    let statement = doc! { "q": {}, "limit": 0, "hint": unknown };
                    let reply = filled.ok(doc! { "delete": "c", "deletes": [statement] }).await;
                    let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
                    assert_eq!((reply.get_i32("n").unwrap(), error.get_i32("code").unwrap()), (0, 2));
                }
            }
        }
    });
}

#[test]
fn find_and_modify_removes_the_first_match_and_returns_the_requested_fields() {
    block_on(async {
        let rows: Vec<Document> = (1..=6).map(|n| row(n, if n < 4 { "A" } else { "B" })).collect();
        for (query, matches) in [
            (doc! { "f": 104 }, &[4][..]),
            (doc! { "tag": "A" }, &[1, 2, 3]),
            (doc! { "tag": "B", "f": { "$lt": 106 } }, &[4, 5]),
            (doc! {}, &[1, 2, 3, 4, 5, 6]),
            (doc! { "f": 7 }, &[]),
        ] {
            for filled in Filled::each(&rows).await {
                let command =
                    doc! { "findAndModify": "c", "query": query.clone(), "remove": true, "fields": { "_id": 1 } };
                let reply = filled.ok(command).await;
                let left = filled.all().await;
                match reply.get_document("value") {
                    Ok(value) => {
                        let id = value.get_i32("_id").unwrap();
                        assert!(value.len() == 1 && matches.contains(&id) && !left.contains(&id) && left.len() == 5);
                    }
                    Err(_) => assert!(matches.is_empty() && left.len() == 6),
                }
                let last = doc! { "findAndModify": "c", "query": {}, "remove": true, "sort": { "f": -1 } };
                assert_eq!(filled.ok(last).await.get_document("value").unwrap().get_i32("_id").unwrap(), 6);
                filled.sound().await;
            }
        }
    });
}

#[test]
fn a_delete_compares_strings_by_its_collation() {
    block_on(async {
        let rows = [row(1, "Günter"), row(2, "Gunter"), row(3, "Zoe")];
        for filled in Filled::each(&rows).await {
            let collation = doc! { "locale": "de@collation=phonebook" };
            let statement = doc! { "q": { "tag": { "$lt": "Gunter" } }, "limit": 0, "collation": collation };
            let reply = filled.ok(doc! { "delete": "c", "deletes": [statement] }).await;
            assert_eq!((reply.get_i32("n").unwrap(), filled.all().await), (1, vec![2, 3]), "{:?}", filled.form);
        }
    });
}

#[test]
fn let_variables_apply_to_deletes_and_ordered_statements_stop_at_the_first_error() {
    block_on(async {
        let rows: Vec<Document> = (1..=4).map(|n| row(n, n)).collect();
        for (ordered, left) in [(true, &[2, 3, 4][..]), (false, &[2, 4])] {
            let filled = Filled::new(Form::Both, doc! { "timeseries": tagged() }, &rows).await;
            let of = |q: Document| doc! { "q": q, "limit": 0 };
            let command = doc! {
                "delete": "c",
                "deletes": [of(doc! { "$expr": { "$eq": ["$_id", "$$one"] } }), of(doc! { "$what": 1 }), of(doc! { "tag": 3 })],
                "let": { "one": 1 },
                "ordered": ordered,
            };
            let reply = filled.ok(command).await;
            assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
            assert_eq!(filled.all().await, left);
            let update = doc! { "q": {}, "u": { "$set": { "tag": 1 } }, "multi": true };
            for command in [
                doc! { "delete": "c", "deletes": [of(doc! {})], "let": 5 },
                doc! { "update": "c", "updates": [update], "let": "x" },
            ] {
                assert_eq!(filled.db.fails(raw(&command)).await.0, 14, "{command}");
            }
            assert_eq!(filled.all().await, left);
        }
    });
}

#[test]
fn a_malformed_statement_fails_its_command_before_anything_changes() {
    block_on(async {
        let rows: Vec<Document> = (1..=4).map(|n| row(n, n)).collect();
        let filled = Filled::new(Form::Both, doc! { "timeseries": tagged() }, &rows).await;
        let fails = async |list: &str, first: &Document, second: &Document| {
            let command = doc! { (&list[..6]): "c", list: [first.clone(), second.clone()], "ordered": false };
            let code = filled.db.fails(raw(&command)).await.0;
            assert_eq!(filled.all().await, [1, 2, 3, 4], "{command}");
            code
        };
        let first = doc! { "q": { "tag": 1 }, "limit": 0 };
        for (wanted, second) in [
            (40414, doc! { "q": {} }),
            (40414, doc! { "limit": 0 }),
            (40415, doc! { "q": {}, "limit": 0, "multi": true }),
            (9, doc! { "q": {}, "limit": 2 }),
            (9, doc! { "q": {}, "limit": 0, "hint": 1 }),
            (14, doc! { "q": 1, "limit": 0 }),
            (14, doc! { "q": {}, "limit": 0, "collation": 1 }),
        ] {
            assert_eq!(fails("deletes", &first, &second).await, wanted, "{second}");
        }
        let first = doc! { "q": { "tag": 1 }, "u": { "$set": { "tag": 9 } }, "multi": true };
        for (wanted, second) in [
            (40414, doc! { "q": {} }),
            (40415, doc! { "q": {}, "u": {}, "limit": 0 }),
            (9, doc! { "q": {}, "u": 1 }),
            (14, doc! { "q": {}, "u": {}, "multi": "yes" }),
            (14, doc! { "q": {}, "u": {}, "arrayFilters": [1] }),
        ] {
            assert_eq!(fails("updates", &first, &second).await, wanted, "{second}");
        }
        // What a statement asks for is its own matter.
        let wrong = doc! { "q": {}, "limit": 0, "collation": { "locale": "nowhere" } };
        let reply = filled.ok(doc! { "delete": "c", "deletes": [wrong, { "q": { "tag": 1 }, "limit": 0 }] }).await;
        assert_eq!((reply.get_i32("n").unwrap(), reply.get_array("writeErrors").unwrap().len()), (0, 1));
        assert_eq!(filled.all().await, [1, 2, 3, 4]);
    });
}

#[test]
fn a_read_plan_has_no_condition_on_closed_buckets() {
    block_on(async {
        let filled = Filled::new(Form::Buckets(2), doc! { "timeseries": tagged() }, &[row(1, 1)]).await;
        let found = explain(&filled.db, raw(&doc! { "find": "c" })).await;
        assert!(!found.plan().contains_key("filter"));
    });
}

#[test]
fn measurements_of_closed_buckets_are_found_but_not_deleted_or_updated() {
    block_on(async {
        let rows: Vec<Document> = (1..=6).map(|n| row(n, if n < 4 { "A" } else { "B" })).collect();
        for filled in Filled::each(&rows).await {
            filled.close("A").await;
            assert_eq!(filled.delete(doc! { "tag": "A" }, 0).await, 0);
            assert_eq!(filled.delete(doc! { "f": { "$lt": 103 } }, 0).await, 0);
            assert_eq!(filled.delete(doc! { "_id": 1 }, 1).await, 0);
            assert_eq!(filled.update(doc! { "tag": "A" }, doc! { "$set": { "tag": "C" } }, doc! {}).await, (0, 0));
            assert_eq!(filled.all().await, [1, 2, 3, 4, 5, 6]);
            let explained = doc! { "explain": { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] } };
            let stages = filled.ok(explained).await;
            let stages = stages.get_document("executionStats").unwrap().get_document("executionStages").unwrap();
            assert_eq!(stages.get_i64("nWouldDelete").unwrap(), 3, "{:?}", filled.form);
            // In any order, the first ones are in the closed bucket.
            for (more, id) in [
                (doc! { "query": { "tag": "A" } }, None),
                (doc! { "sort": { "f": 1 } }, Some(4)),
                (doc! { "sort": { "t": 1 } }, Some(5)),
                (doc! { "sort": { "tag": 1, "t": 1 } }, Some(6)),
                (doc! {}, None),
            ] {
                let command = doc! { "findAndModify": "c", "remove": true }.into_iter().chain(more.clone()).collect();
                let reply = filled.ok(command).await;
                let removed = reply.get_document("value").ok().map(|value| value.get_i32("_id").unwrap());
                assert_eq!(removed, id, "{more} {:?}", filled.form);
            }
            assert_eq!(filled.all().await, [1, 2, 3]);
            // Later measurements go to another bucket.
            filled.insert(&[row(7, "A")]).await;
            assert_eq!((filled.delete(doc! { "tag": "A" }, 0).await, filled.all().await), (1, vec![1, 2, 3]));
        }
    });
}
