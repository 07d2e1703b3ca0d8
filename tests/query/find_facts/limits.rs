//! Limits, the order of buckets, and a metadata field without a name.

use bson::{RawDocumentBuf, doc, rawdoc};

use super::forms::{Forms, at, numbers, series};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_limit_returns_that_many_distinct_measurements() {
    let forms =
        Forms::of(&series(&[rawdoc! { "m": 1, "a": 1 }, rawdoc! { "m": 2, "a": 2 }, rawdoc! { "m": 1, "a": 3 }]));
    for (extra, count) in [(doc! { "limit": 2 }, 2), (doc! { "limit": 9 }, 3), (doc! { "skip": 2, "limit": 2 }, 1)] {
        for (form, db) in forms.each() {
            let mut find = doc! { "find": "c" };
            find.extend(extra.clone());
            let mut found = numbers(&futures::executor::block_on(db.find(crate::support::raw(&find))));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), count, "{form}: {extra}");
        }
    }
    let found = forms.explained(rawdoc! { "find": "c", "limit": 2 });
    assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$limit"]);
    assert_eq!(found.returned(), 2);
    // A limit counts only the measurements that pass the filter.
    let some = forms.unsorted(rawdoc! { "find": "c", "filter": { "a": { "$gte": 2 } }, "limit": 2 });
    assert_eq!(some.len(), 2);
}

#[test]
fn a_natural_hint_reads_buckets_forward_or_backward() {
    let row = |n: i32| rawdoc! { "time": at(i64::from(n * 5 % 7) * HOUR_MS), "m": n % 2, "n": n };
    let forms = Forms::of(&(0..7).map(row).collect::<Vec<_>>());
    let mut by_time: Vec<i32> = (0..7).collect();
    by_time.sort_by_key(|n| n * 5 % 7);
    for (direction, name) in [(1, "forward"), (-1, "backward")] {
        let find = rawdoc! { "find": "c", "hint": { "$natural": direction } };
        assert_eq!(numbers(&forms.sorted(find.clone())), by_time);
        assert_eq!(forms.explained(find).plan(), &doc! { "stage": "COLLSCAN", "direction": name });
        let some = rawdoc! { "find": "c", "filter": { "m": 1 }, "hint": { "$natural": direction } };
        let odd: Vec<i32> = by_time.iter().copied().filter(|n| n % 2 == 1).collect();
        assert_eq!(numbers(&forms.sorted(some)), odd);
        by_time.reverse();
    }
}

#[test]
fn a_meta_field_with_an_empty_name_can_be_filtered_but_not_sorted_or_projected() {
    let row = |n: i32| rawdoc! { "time": at(i64::from(n * 2 % 5)), "": n % 2, "n": n };
    let rows: Vec<RawDocumentBuf> = (0..5).map(row).collect();
    let forms = Forms::with(&rawdoc! { "timeField": "time", "metaField": "" }, &rows);
    forms.finds(rawdoc! { "": 1 }, &[1, 3]);
    forms.finds(rawdoc! { "": { "$lt": 1 }, "n": { "$gt": 0 } }, &[2, 4]);
    forms.finds(rawdoc! {}, &[0, 1, 2, 3, 4]);
    assert_eq!(numbers(&forms.sorted(rawdoc! { "find": "c", "sort": { "time": 1 } })), [0, 3, 1, 4, 2]);
    let first = forms.sorted(rawdoc! { "find": "c", "sort": { "time": 1 }, "limit": 1 });
    assert_eq!(first, [doc! { "time": at(0), "": 0, "n": 0 }]);
    forms.refuses(&rawdoc! { "find": "c", "sort": { "": 1 } }, 40352);
    forms.refuses(&rawdoc! { "find": "c", "sort": { "a.": 1 } }, 40353);
    forms.refuses(&rawdoc! { "find": "c", "projection": { "a.": 1 } }, 40353);
    forms.refuses(&rawdoc! { "find": "c", "projection": { "": 1 } }, 40352);
    forms.refuses(&rawdoc! { "find": "c", "projection": { "": 0 } }, 40352);
    forms.refuses(&rawdoc! { "find": "c", "projection": { "x": "$" } }, 16872);
    forms.refuses(&rawdoc! { "find": "c", "filter": { "$expr": { "$eq": ["$", 1] } } }, 16872);
}
