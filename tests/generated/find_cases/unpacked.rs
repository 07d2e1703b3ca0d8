//! Compares buckets unpacked by a stage with the measurements of a `find` of the same collection.

use bson::{Document, doc, rawdoc};
use futures::executor::block_on;

use super::model_of;
use crate::plain_list::batches::all_batches;
use crate::plain_list::data::measurements;
use crate::plain_list::forms::{forms, layout, stored};
use crate::plain_list::queries::Queries;
use crate::support::{Db, Random, multiset, raw};

const CASES: u64 = 20;
const FILTERS: usize = 3;
const NAMES: [&str; 9] = ["t", "m", "n", "a", "b", "c", "o", "_id", "none"];

/// The rows of a pipeline over buckets, or of a query of measurements; `None` if it fails.
async fn found(db: &Db, command: Document) -> Option<Vec<Vec<u8>>> {
    all_batches(db, raw(&command), 7).await.ok().map(|rows| multiset(&rows))
}

#[test]
fn unpacked_buckets_equal_the_measurements_of_a_find_in_every_form() {
    let (mut rows_seen, mut filtered) = (0, 0);
    for seed in 0..CASES {
        let random = Random::new(seed ^ 0x5346_5000);
        let layout = layout(&random);
        let rows = measurements(&random);
        let model = model_of(&rows, &layout);
        let collation = layout.get_document("collation").unwrap();
        let queries = Queries { random: &random, rows: &model, collation };
        for form in forms(&random) {
            let db = block_on(stored(&rows, &layout, &form));
            let unpack = |more: Document| {
                let mut parameters = doc! { "timeField": "t", "bucketMaxSpanSeconds": 3600 };
                parameters.extend(layout.get("metaField").map(|name| ("metaField".to_owned(), name.clone())));
                parameters.extend(more);
                doc! { "$_internalUnpackBucket": parameters }
            };
            let over_buckets = |pipeline: Vec<Document>| doc! { "aggregate": "system.buckets.c", "pipeline": pipeline, "cursor": { "batchSize": 7 } };
            let case = format!("case {seed}: {layout}\n{form:?}");
            block_on(async {
                let all = db.find(rawdoc! { "find": "c" }).await;
                let unpacked = found(&db, over_buckets(vec![unpack(doc! {})])).await;
                assert_eq!(unpacked, Some(multiset(&all)), "{case}");
                rows_seen += all.len();
                for _ in 0..FILTERS {
                    let names: Vec<&str> = NAMES.into_iter().filter(|_| random.chance(60)).collect();
                    let includes = random.chance(50);
                    let fields = doc! { if includes { "include" } else { "exclude" }: names.clone() };
                    let left = all.iter().map(|row| {
                        let kept = row.iter().filter(|(name, _)| names.contains(&name.as_str()) == includes);
                        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
                    });
                    let left: Vec<Document> = left.collect();
                    let some = found(&db, over_buckets(vec![unpack(fields.clone())])).await;
                    assert_eq!(some, Some(multiset(&left)), "{fields} in {case}");
                    // The filter as an event filter of the stage, as a following stage, and as a query.
                    let filter = queries.filter(1);
                    let mut with_filter = fields.clone();
                    with_filter.insert("eventFilter", filter.clone());
                    let inside = found(&db, over_buckets(vec![unpack(with_filter)])).await;
                    let behind = vec![unpack(fields), doc! { "$match": filter.clone() }];
                    assert_eq!(inside, found(&db, over_buckets(behind)).await, "{filter} in {case}");
                    let whole = unpack(doc! { "eventFilter": filter.clone() });
                    let whole = found(&db, over_buckets(vec![whole])).await;
                    let query = doc! { "find": "c", "filter": filter.clone(), "batchSize": 7 };
                    // If a filter fails for some measurements, the query may skip these.
                    if let Some(whole) = whole {
                        filtered += usize::from(!whole.is_empty() && whole.len() < all.len());
                        assert_eq!(found(&db, query).await, Some(whole), "{filter} in {case}");
                    }
                }
            });
        }
    }
    assert!(rows_seen > 1000 && filtered > 30, "{rows_seen} rows, {filtered} filters");
}
