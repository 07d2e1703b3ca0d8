//! Fact 55: `explain` of deletes, updates and `findAndModify`, which changes nothing.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{FORMS, Filled, Form, at, tagged};

fn rows() -> Vec<Document> {
    [(1, 1), (2, 1), (3, 2), (4, 2)]
        .into_iter()
        .map(|(id, tag): (i32, i32)| doc! { "_id": id, "t": at(i64::from(id)), "tag": tag })
        .collect()
}

fn delete(q: Document, limit: i32) -> Document {
    doc! { "delete": "c", "deletes": [{ "q": q, "limit": limit }] }
}

fn closed() -> Document {
    doc! { "control.closed": { "$not": { "$eq": true } } }
}

impl Filled {
    /// The winning plan, and the stages with their counters.
    async fn explained(&self, command: Document) -> (Document, Document) {
        let reply = self.ok(doc! { "explain": command }).await;
        let planned = reply.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap().clone();
        let stats = reply.get_document("executionStats").unwrap();
        assert_eq!(stats.get_bool("executionSuccess").ok(), Some(true));
        (planned, stats.get_document("executionStages").unwrap().clone())
    }
}

fn counts(stages: &Document, names: &[&str]) -> Vec<i64> {
    names.iter().map(|name| stages.get_i64(name).unwrap()).collect()
}

#[test]
fn explain_of_a_delete_of_whole_series_removes_buckets() {
    block_on(async {
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows()).await;
            let (plan, stages) = filled.explained(delete(doc! {}, 0)).await;
            let scan = doc! { "stage": "COLLSCAN", "filter": closed(), "direction": "forward" };
            assert_eq!(plan, doc! { "stage": "DELETE", "inputStage": scan });
            assert_eq!(counts(&stages, &["nWouldDelete", "nReturned"]), [4, 0], "{form:?}");
            let (plan, stages) = filled.explained(delete(doc! { "tag": { "$gt": 1 } }, 0)).await;
            let filter = doc! { "$and": [closed(), { "meta": { "$gt": 1 } }] };
            assert_eq!(plan.get_document("inputStage").unwrap().get_document("filter").unwrap(), &filter);
            assert_eq!(counts(&stages, &["nWouldDelete"]), [2]);
            assert_eq!(filled.all().await, [1, 2, 3, 4]);
        }
    });
}

#[test]
fn explain_of_a_delete_by_measurements_shows_both_filters() {
    block_on(async {
        for form in [Form::Buckets(1), Form::Buckets(2)] {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows()).await;
            let (plan, stages) = filled.explained(delete(doc! { "tag": 2, "_id": { "$gte": 4 } }, 0)).await;
            assert_eq!([plan.get_str("stage").unwrap(), plan.get_str("opType").unwrap()], ["TS_MODIFY", "deleteMany"]);
            let filter = plan.get_document("bucketFilter").unwrap().get_array("$and").unwrap();
            assert_eq!(filter[..2], [Bson::from(closed()), bson!({ "meta": { "$eq": 2 } })]);
            assert_eq!(filter.len(), 3);
            assert_eq!(plan.get_document("residualFilter").unwrap(), &doc! { "_id": { "$gte": 4 } });
            let input = plan.get_document("inputStage").unwrap();
            assert_eq!(input.get_document("filter").unwrap().get_array("$and").unwrap(), filter);
            assert_eq!(
                counts(&stages, &["nMeasurementsMatched", "nMeasurementsDeleted", "nBucketsUnpacked"]),
                [1, 1, 1]
            );
            let (_, stages) = filled.explained(delete(doc! { "_id": { "$lte": 3 } }, 0)).await;
            assert_eq!(
                counts(&stages, &["nMeasurementsMatched", "nMeasurementsDeleted", "nBucketsUnpacked"]),
                [3, 3, 2]
            );
            assert_eq!(filled.all().await, [1, 2, 3, 4]);
        }
    });
}

#[test]
fn explain_of_a_delete_of_one_filters_measurements_even_if_metadata_decides() {
    block_on(async {
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows()).await;
            for q in [doc! { "tag": 1 }, doc! {}, doc! { "_id": { "$gt": 0 } }] {
                let (plan, stages) = filled.explained(delete(q.clone(), 1)).await;
                assert_eq!(
                    [plan.get_str("stage").unwrap(), plan.get_str("opType").unwrap()],
                    ["TS_MODIFY", "deleteOne"]
                );
                assert_eq!(plan.get_document("residualFilter").unwrap().is_empty(), !q.contains_key("_id"));
                assert_eq!(counts(&stages, &["nMeasurementsMatched", "nMeasurementsDeleted"]), [1, 1], "{q} {form:?}");
            }
            assert_eq!(filled.all().await, [1, 2, 3, 4]);
        }
    });
}

#[test]
fn explain_of_an_update_or_a_hint_shows_the_access_path() {
    block_on(async {
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows()).await;
            filled.index(doc! { "tag": 1 }, doc! {}).await;
            let statement =
                doc! { "q": { "tag": 1 }, "u": { "$set": { "tag": 9 } }, "multi": true, "hint": { "tag": 1 } };
            let (plan, stages) = filled.explained(doc! { "update": "c", "updates": [statement] }).await;
            assert_eq!(plan.get_str("stage").unwrap(), "UPDATE");
            assert_eq!(counts(&stages, &["nWouldModify"]), [2], "{form:?}");
            let fetch = plan.get_document("inputStage").unwrap();
            assert_eq!(fetch.get_document("inputStage").unwrap().get_str("indexName").unwrap(), "tag_1");
            assert_eq!(filled.tags().await, [1, 1, 2, 2].map(|tag| Some(Bson::from(tag))));
        }
    });
}

#[test]
fn explain_of_find_and_modify_shows_the_delete_below_its_projection() {
    block_on(async {
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows()).await;
            let command = doc! { "findAndModify": "c", "query": { "_id": 3 }, "remove": true };
            let (plan, stages) = filled.explained(command.clone()).await;
            assert_eq!([plan.get_str("stage").unwrap(), plan.get_str("opType").unwrap()], ["TS_MODIFY", "deleteOne"]);
            assert_eq!(counts(&stages, &["nMeasurementsDeleted", "nReturned"]), [1, 1]);
            let with_fields = command.into_iter().chain(doc! { "fields": { "_id": 1 } }).collect();
            let (plan, _) = filled.explained(with_fields).await;
            assert_eq!(plan.get_str("stage").unwrap(), "PROJECTION_DEFAULT");
            assert_eq!(plan.get_document("inputStage").unwrap().get_str("stage").unwrap(), "TS_MODIFY");
            assert_eq!(filled.all().await, [1, 2, 3, 4]);
        }
    });
}

#[test]
fn explain_of_an_invalid_write_fails_and_a_missing_collection_has_an_empty_plan() {
    block_on(async {
        let filled = Filled::new(Form::Both, doc! { "timeseries": tagged() }, &rows()).await;
        let both = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }, { "q": {}, "limit": 0 }] };
        let one = doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "tag": 1 } } }] };
        let hinted = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0, "hint": "none" }] };
        for (code, command) in [
            (16, both),
            (72, one),
            (2, hinted),
            (9, delete(doc! {}, 2)),
            (9, doc! { "findAndModify": "c", "query": {} }),
            (72, doc! { "findAndModify": "c", "query": {}, "update": { "$set": { "tag": 1 } } }),
        ] {
            assert_eq!(filled.fails(doc! { "explain": command.clone() }).await, code, "{command}");
        }
        let missing = doc! { "delete": "none", "deletes": [{ "q": {}, "limit": 0 }] };
        let (plan, stages) = filled.explained(missing).await;
        assert_eq!([plan.get_str("stage").unwrap(), stages.get_str("stage").unwrap()], ["EOF", "EOF"]);
    });
}
