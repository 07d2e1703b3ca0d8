//! Sorts that stream bucket by bucket, and their order.

use std::cmp::Reverse;

use bson::{RawArrayBuf, RawBson, RawDocumentBuf, doc, rawdoc};

use super::forms::{Forms, at, joined, numbers};

const HOUR_MS: i64 = 3_600_000;

/// Three series with alternating measurements for five hours, in buckets with overlapping times.
fn turns() -> Forms {
    let row = |n: i32| {
        let (place, series) = (i64::from(n * 7 % 60), ["a", "b", "c"][n as usize % 3]);
        rawdoc! { "time": at(place * HOUR_MS / 12), "m": series, "n": n, "a": { "b": n, "c": 1 } }
    };
    Forms::of(&(0..60).map(row).collect::<Vec<_>>())
}

/// The `n` of the selected series, in the order of the sort.
fn expected(series: &[i32], by_series: i64, by_time: i64) -> Vec<i32> {
    let mut all: Vec<i32> = (0..60).filter(|n| series.contains(&(n % 3))).collect();
    all.sort_by_key(|n| (by_series * i64::from(n % 3), by_time * i64::from(n * 7 % 60)));
    all
}

#[test]
fn a_sort_by_time_alone_reads_the_collection_in_its_direction() {
    let forms = turns();
    for (direction, name) in [(1, "forward"), (-1, "backward")] {
        let find = rawdoc! { "find": "c", "sort": { "time": direction } };
        assert_eq!(numbers(&forms.sorted(find.clone())), expected(&[0, 1, 2], 0, direction.into()));
        let found = forms.explained(find);
        assert_eq!(found.plan(), &doc! { "stage": "COLLSCAN", "direction": name });
        assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$_internalBoundedSort"]);
    }
}

#[test]
fn filters_and_hints_do_not_change_the_sort_order() {
    let forms = turns();
    let index = || RawBson::Document(rawdoc! { "m": 1, "time": 1 });
    let natural = |direction: i32| RawBson::Document(rawdoc! { "$natural": direction });
    for (filter, series) in [
        (rawdoc! {}, &[0, 1, 2][..]),
        (rawdoc! { "m": "b" }, &[1]),
        (rawdoc! { "m": { "$in": ["a", "c"] } }, &[0, 2]),
        (rawdoc! { "m": { "$gt": "a" } }, &[1, 2]),
    ] {
        for hint in [None, Some(index()), Some("m_1_time_1".into()), Some(natural(1)), Some(natural(-1))] {
            for (by_series, by_time) in [(0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)] {
                let by = rawdoc! { "time": by_time };
                let sort = if by_series == 0 { by } else { joined(&[&rawdoc! { "m": by_series }, &by]) };
                let mut find = rawdoc! { "find": "c", "filter": filter.clone(), "sort": sort };
                hint.iter().for_each(|hint| find.append(bson::cstr!("hint"), hint.clone()));
                let expected = expected(series, by_series.into(), by_time.into());
                assert_eq!(numbers(&forms.sorted(find.clone())), expected, "{find:?}");
                assert_eq!(forms.explained(find).names()[2], "$_internalBoundedSort");
            }
        }
    }
}

#[test]
fn a_point_query_on_metadata_uses_the_index_unless_hinted_to_scan() {
    let forms = turns();
    let stage = |extra: RawDocumentBuf| {
        let find = rawdoc! { "find": "c", "filter": { "m": "b" }, "sort": { "time": -1 } };
        let found = forms.explained(joined(&[&find, &extra]));
        let plan = found.plan();
        let of_scan = plan.get_document("inputStage").unwrap_or(plan);
        (of_scan.get_str("stage").unwrap().to_owned(), of_scan.get_str("direction").unwrap().to_owned())
    };
    let backward = |stage: &str| (stage.to_owned(), "backward".to_owned());
    assert_eq!(stage(rawdoc! {}), backward("IXSCAN"));
    assert_eq!(stage(rawdoc! { "hint": { "m": 1, "time": 1 } }), backward("IXSCAN"));
    // A hint can reverse the scan.
    assert_eq!(stage(rawdoc! { "hint": { "$natural": 1 } }), backward("COLLSCAN"));
    assert_eq!(stage(rawdoc! { "hint": { "$natural": -1 } }), backward("COLLSCAN"));
}

#[test]
fn a_projection_does_not_change_the_sort_order() {
    let forms = turns();
    for projection in [
        rawdoc! { "a": 0 },
        rawdoc! { "m": 1, "time": 1, "n": 1 },
        rawdoc! { "m": 0, "_id": 0 },
        rawdoc! { "time": 0 },
        rawdoc! { "n": 1 },
        rawdoc! { "n": 1, "time": { "$subtract": [at(0), "$time"] } },
        rawdoc! { "n": 1, "m": "x" },
        rawdoc! { "a.b": 0, "m": 0 },
    ] {
        for (sort, by_series) in [(rawdoc! { "time": -1 }, 0), (rawdoc! { "m": 1, "time": -1 }, 1)] {
            let find = rawdoc! { "find": "c", "sort": sort, "projection": projection.clone() };
            assert_eq!(numbers(&forms.sorted(find.clone())), expected(&[0, 1, 2], by_series, -1), "{find:?}");
            assert_eq!(forms.explained(find).names()[2], "$_internalBoundedSort");
        }
    }
}

#[test]
fn metadata_of_all_types_sorts_by_its_key_and_then_by_time() {
    let decimal = RawBson::Decimal128("7".parse().unwrap());
    let array = |items: &[RawBson]| RawBson::Array(items.iter().cloned().collect::<RawArrayBuf>());
    let empty = || RawBson::Document(rawdoc! {});
    // Each with its rank in ascending and in descending order; ties share a rank.
    let metadata: Vec<(Option<RawBson>, i32, i32)> = vec![
        (Some(array(&[])), 0, 9),
        (None, 1, 8),
        (Some(RawBson::Null), 1, 8),
        (Some(array(&[RawBson::Null])), 1, 8),
        (Some(array(&[5.into()])), 2, 7),
        (Some(array(&[5.into(), 99.into()])), 2, 5),
        (Some(7_i32.into()), 3, 6),
        (Some(7_i64.into()), 3, 6),
        (Some(7.0.into()), 3, 6),
        (Some(decimal), 3, 6),
        (Some("".into()), 4, 4),
        (Some(array(&["".into()])), 4, 4),
        (Some("B".into()), 5, 3),
        (Some("b".into()), 6, 2),
        (Some(empty()), 7, 1),
        (Some(array(&[empty()])), 7, 1),
        (Some(RawBson::Document(rawdoc! { "a": 1, "b": 2 })), 8, 0),
        // The same series as the one before.
        (Some(RawBson::Document(rawdoc! { "b": 2, "a": 1 })), 8, 0),
    ];
    let kinds = metadata.len() as i32;
    let time_of = |n: i32| i64::from(n * 35 % (6 * kinds + 1)) * 300_000;
    let row = |n: i32| {
        let mut row = rawdoc! { "time": at(time_of(n)), "n": n };
        let (meta, ..) = &metadata[(n % kinds) as usize];
        meta.iter().for_each(|meta| row.append(bson::cstr!("m"), meta.clone()));
        row
    };
    let forms = Forms::of(&(0..6 * kinds).map(row).collect::<Vec<_>>());
    for (by_meta, by_time) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
        let mut expected: Vec<i32> = (0..6 * kinds).collect();
        expected.sort_by_key(|n| {
            let (_, up, down) = metadata[(n % kinds) as usize];
            (if by_meta == 1 { up } else { down }, i64::from(by_time) * time_of(*n))
        });
        let found = forms.sorted(rawdoc! { "find": "c", "sort": { "m": by_meta, "time": by_time } });
        assert_eq!(numbers(&found), expected, "{by_meta} {by_time}");
    }
}

#[test]
fn metadata_equal_by_the_collation_sorts_as_one_series() {
    let place = |n: i32| [1, 0, 1, 0, 2][n as usize % 5];
    let time_of = |n: i32| i64::from(n * 17 % 43) * 600_000;
    let row = |n: i32| {
        let meta = ["b", "A", "B", "a", "c"][n as usize % 5];
        rawdoc! { "time": at(time_of(n)), "m": meta, "n": n }
    };
    let forms = Forms::of(&(0..40).map(row).collect::<Vec<_>>());
    for (by_meta, by_time) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
        let mut expected: Vec<i32> = (0..40).collect();
        expected.sort_by_key(|n| (by_meta * place(*n), i64::from(by_time) * time_of(*n)));
        let find = rawdoc! {
            "find": "c", "sort": { "m": by_meta, "time": by_time }, "collation": { "locale": "fr", "strength": 2 },
        };
        assert_eq!(numbers(&forms.sorted(find)), expected, "{by_meta} {by_time}");
    }
}

#[test]
fn times_a_month_apart_sort_correctly_in_one_bucket_or_two() {
    let timeseries = rawdoc! { "timeField": "time", "metaField": "m", "granularity": "hours" };
    let days = [29, 0, 400, 31, 28, 60];
    let row = |n: usize| rawdoc! { "time": at(days[n] * 24 * HOUR_MS), "m": 1, "n": n as i32 };
    let forms = Forms::with(&timeseries, &(0..days.len()).map(row).collect::<Vec<_>>());
    let mut expected: Vec<usize> = (0..days.len()).collect();
    for direction in [1, -1] {
        expected.sort_by_key(|n| i64::from(direction) * days[*n]);
        let expected: Vec<i32> = expected.iter().map(|n| *n as i32).collect();
        let find = rawdoc! { "find": "c", "sort": { "time": direction } };
        assert_eq!(numbers(&forms.sorted(find.clone())), expected);
        assert!(forms.explained(find).names().contains(&"$_internalBoundedSort"));
        assert_eq!(numbers(&forms.sorted(rawdoc! { "find": "c", "sort": { "m": 1, "time": direction } })), expected);
    }
}

#[test]
fn a_limit_after_a_sort_on_part_of_the_metadata_returns_the_first_rows() {
    let row = |n: i32| rawdoc! { "time": at(i64::from(n)), "m": { "x": n * 3 % 8, "y": 1 }, "n": n };
    let forms = Forms::of(&(0..8).map(row).collect::<Vec<_>>());
    let mut by_x: Vec<i32> = (0..8).collect();
    for direction in [1, -1] {
        by_x.sort_by_key(|n| direction * (n * 3 % 8));
        let find = rawdoc! { "find": "c", "sort": { "m.x": direction }, "limit": 2 };
        assert_eq!(numbers(&forms.sorted(find.clone())), by_x[..2]);
        // The limit is part of the sort, and no bucket beyond it is unpacked.
        let found = forms.explained(find);
        assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$sort"]);
        assert_eq!(found.stage("$sort").get_i64("limit").unwrap(), 2);
        assert_eq!(found.counts()[2], 2);
        let second = rawdoc! { "find": "c", "sort": { "m.x": direction }, "skip": 1, "limit": 1 };
        assert_eq!(numbers(&forms.sorted(second)), by_x[1..2]);
    }
    by_x.sort_by_key(|n| Reverse(n * 3 % 8));
    let all = forms.sorted(rawdoc! { "find": "c", "sort": { "m.x": -1 }, "limit": 100 });
    assert_eq!(numbers(&all), by_x);
}
