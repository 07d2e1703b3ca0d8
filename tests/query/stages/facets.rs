//! `$facet` and `$sample`.

use std::collections::BTreeSet;

use bson::{Bson, Document, doc};

use super::{code, list, row, run, run_in, values, with_rows};

fn rows() -> Vec<Document> {
    (0..50_i32).map(|n| row(n.into(), if n % 2 == 0 { "a" } else { "b" }, doc! { "n": n })).collect()
}

#[test]
fn every_branch_sees_all_rows_and_one_row_comes_out() {
    with_rows(rows(), async |db| {
        let n = doc! { "$project": { "_id": 0, "n": 1 } };
        let facet = doc! { "$facet": {
            "first": [{ "$sort": { "n": 1 } }, { "$limit": 2 }, n.clone()],
            "groups": [{ "$group": { "_id": "$station", "sum": { "$sum": "$n" } } }, { "$sort": { "_id": 1 } }],
            "none": [{ "$match": { "n": 100 } }],
            "count": [{ "$count": "n" }],
        } };
        let expected = doc! {
            "first": [{ "n": 0 }, { "n": 1 }], "groups": [{ "_id": "a", "sum": 600 }, { "_id": "b", "sum": 625 }],
            "none": [], "count": [{ "n": 50 }],
        };
        assert_eq!(run(db, vec![facet.clone()]).await, [expected]);
        let small = vec![
            doc! { "$match": { "n": { "$lt": 2 } } },
            doc! { "$sort": { "n": -1 } },
            n,
            doc! { "$facet": { "all": [] } },
        ];
        assert_eq!(run(db, small).await, [doc! { "all": [{ "n": 1 }, { "n": 0 }] }]);
        let empty = vec![doc! { "$match": { "n": 100 } }, doc! { "$facet": { "a": [], "b": [{ "$count": "n" }] } }];
        assert_eq!(run(db, empty).await, [doc! { "a": [], "b": [] }]);
        let behind = vec![
            facet,
            doc! { "$unwind": "$groups" },
            doc! { "$replaceWith": "$groups" },
            doc! { "$match": { "_id": "b" } },
        ];
        assert_eq!(run(db, behind).await, [doc! { "_id": "b", "sum": 625 }]);
        let limits = doc! { "$facet": { "one": [{ "$limit": 1 }, { "$count": "n" }], "two": [{ "$limit": 2 }, { "$count": "n" }] } };
        assert_eq!(run(db, vec![limits]).await, [doc! { "one": [{ "n": 1 }], "two": [{ "n": 2 }] }]);
    });
}

#[test]
fn a_sample_has_distinct_rows_and_varies() {
    with_rows(rows(), async |db| {
        let mut seen = BTreeSet::new();
        let mut first = BTreeSet::new();
        for batch in [101, 2, 1, 7].repeat(25) {
            let rows = run_in(db, vec![doc! { "$sample": { "size": 5.0 } }], batch).await;
            let numbers: Vec<i32> = rows.iter().map(|row| row.get_i32("n").unwrap()).collect();
            assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 5);
            first.insert(numbers[0]);
            seen.extend(numbers);
        }
        // In 100 samples of 5 of 50 rows, the chance that some row is never drawn is below 1 in 700.
        assert!(seen.len() >= 48, "{seen:?}");
        assert!(first.len() > 20, "{first:?}");
        let all = run_in(db, vec![doc! { "$sample": { "size": 1000 } }, doc! { "$sort": { "n": 1 } }], 101).await;
        assert_eq!(values(&all, "n"), (0..50).map(Bson::from).collect::<Vec<_>>());
        let behind =
            vec![doc! { "$match": { "station": "a" } }, doc! { "$sample": { "size": 3 } }, doc! { "$count": "n" }];
        assert_eq!(run(db, behind).await, [doc! { "n": 3 }]);
        assert!(run(db, vec![doc! { "$match": { "n": 100 } }, doc! { "$sample": { "size": 3 } }]).await.is_empty());
    });
}

#[test]
fn invalid_facets_and_samples_are_refused_with_their_codes() {
    with_rows(rows(), async |db| {
        for (wanted, stage) in [
            (40169, doc! { "$facet": 1 }),
            (40169, doc! { "$facet": {} }),
            (40170, doc! { "$facet": { "a": 1 } }),
            (40171, doc! { "$facet": { "a": list![1] } }),
            (40600, doc! { "$facet": { "a": [{ "$facet": { "b": [] } }] } }),
            (15998, doc! { "$facet": { "": [] } }),
            (16410, doc! { "$facet": { "$a": [] } }),
            (16412, doc! { "$facet": { "a.b": [] } }),
            (40323, doc! { "$facet": { "a": [{}] } }),
            (40324, doc! { "$facet": { "a": [{ "$nothing": 1 }] } }),
            (28745, doc! { "$sample": 1 }),
            (28746, doc! { "$sample": { "size": "x" } }),
            (28747, doc! { "$sample": { "size": 0 } }),
            (28747, doc! { "$sample": { "size": -1 } }),
            (28748, doc! { "$sample": { "x": 1 } }),
            (28749, doc! { "$sample": {} }),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}
