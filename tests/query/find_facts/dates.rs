//! Buckets of a time range, and dates that bucket ids cannot express.

use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};

use super::forms::{Forms, at, series};

const DAYS_MS: i64 = 86_400_000;

/// Ten days with a bucket each; the first and the last have two measurements.
fn days() -> Forms {
    let mut rows: Vec<RawDocumentBuf> =
        (0..10).map(|day| rawdoc! { "time": at(i64::from(day) * DAYS_MS), "n": day }).collect();
    rows.push(rawdoc! { "time": at(1), "n": 10 });
    rows.push(rawdoc! { "time": at(9 * DAYS_MS + 1), "n": 11 });
    Forms::of(&rows)
}

#[test]
fn an_upper_bound_ends_the_scan_at_its_bucket_and_a_lower_bound_begins_it_a_span_earlier() {
    let forms = days();
    let until = rawdoc! { "time": { "$lte": at(4 * DAYS_MS) } };
    forms.finds(until.clone(), &[0, 1, 2, 3, 4, 10]);
    let found = forms.explained_filter(until);
    assert_eq!(found.plan().get_str("stage").unwrap(), "CLUSTERED_IXSCAN");
    assert!(found.plan().get("minRecord").is_none() && found.plan().get("maxRecord").is_some());
    assert_eq!(found.counts(), [5, 5, 5, 6]);
    let from = rawdoc! { "time": { "$gte": at(4 * DAYS_MS) } };
    forms.finds(from.clone(), &[4, 5, 6, 7, 8, 9, 11]);
    let found = forms.explained_filter(from);
    assert!(found.plan().get("minRecord").is_some() && found.plan().get("maxRecord").is_none());
    assert_eq!(found.counts(), [6, 6, 6, 7]);
    // By its id, the bucket of the fourth day begins within the hour before the bound and may reach beyond it.
    let behind = rawdoc! { "time": { "$gte": at(4 * DAYS_MS + 1_800_000) } };
    forms.finds(behind.clone(), &[5, 6, 7, 8, 9, 11]);
    assert_eq!(forms.explained_filter(behind).counts(), [6, 5, 5, 6]);
}

#[test]
fn an_empty_time_range_finds_nothing() {
    let forms = days();
    let none = rawdoc! { "time": { "$lt": at(3 * DAYS_MS), "$gt": at(3 * DAYS_MS) } };
    forms.finds(none.clone(), &[]);
    let found = forms.explained_filter(none);
    assert!(found.plan().get("minRecord").is_some() && found.plan().get("maxRecord").is_some());
    assert_eq!(found.returned(), 0);
    let far_apart = rawdoc! { "time": { "$lt": at(2 * DAYS_MS), "$gt": at(7 * DAYS_MS) } };
    forms.finds(far_apart.clone(), &[]);
    assert_eq!(forms.explained_filter(far_apart).counts(), [0; 4]);
}

#[test]
fn bounds_outside_the_standard_range_decide_all_buckets() {
    let forms = Forms::of(&series(&[rawdoc! {}, rawdoc! {}, rawdoc! {}]));
    let all: &[i32] = &[1, 2, 3];
    let (before, behind) = (DateTime::from_millis(-1000), DateTime::from_millis(2_147_483_647_001));
    for (op, of_before, of_behind) in
        [("$lt", &[][..], all), ("$lte", &[], all), ("$gt", all, &[]), ("$gte", all, &[]), ("$eq", &[], &[])]
    {
        let op = bson::raw::CString::try_from(op).unwrap();
        forms.finds(rawdoc! { "time": { &op: before } }, of_before);
        forms.finds(rawdoc! { "time": { &op: behind } }, of_behind);
    }
}

#[test]
fn dates_before_1970_and_after_2038_are_found_by_every_comparison() {
    let times = [
        -62_135_596_800_000,
        -1000,
        -1,
        0,
        1,
        2_147_483_647_000,
        2_147_483_647_001,
        4_294_967_296_000,
        32_503_680_000_000,
    ];
    let row = |n: usize| rawdoc! { "time": DateTime::from_millis(times[n]), "n": n as i32 };
    let forms = Forms::of(&(0..times.len()).map(row).collect::<Vec<_>>());
    let date = |ms: i64| RawBson::DateTime(DateTime::from_millis(ms));
    let passing =
        |keep: &dyn Fn(i64) -> bool| (0..).zip(times).filter(|(_, ms)| keep(*ms)).map(|(n, _)| n).collect::<Vec<i32>>();
    for bound in times.into_iter().flat_map(|ms| [ms - 1, ms, ms + 1]) {
        for (op, keep) in [
            ("$eq", (|a, b| a == b) as fn(i64, i64) -> bool),
            ("$gt", |a, b| a > b),
            ("$gte", |a, b| a >= b),
            ("$lt", |a, b| a < b),
            ("$lte", |a, b| a <= b),
        ] {
            let op = bson::raw::CString::try_from(op).unwrap();
            let expected = passing(&|ms| keep(ms, bound));
            forms.finds(rawdoc! { "time": { &op: date(bound) } }, &expected);
            forms.finds(rawdoc! { "$expr": { &op: ["$time", date(bound)] } }, &expected);
        }
    }
    forms.finds(rawdoc! { "time": { "$gt": date(-1000), "$lte": date(2_147_483_647_000) } }, &[2, 3, 4, 5]);
    forms.finds(rawdoc! { "time": { "$in": [date(-1), date(7), date(4_294_967_296_000)] } }, &[2, 7]);
    let either = rawdoc! { "$or": [{ "time": { "$lt": date(-1) } }, { "time": { "$gte": date(4_294_967_296_000) } }] };
    forms.finds(either, &[0, 1, 7, 8]);
    let found = forms.explained_filter(rawdoc! { "time": { "$gt": date(0) } });
    assert_eq!(found.plan().get_str("stage").unwrap(), "COLLSCAN");
    assert!(found.unpack().get_bool("usesExtendedRange").unwrap());
    assert!(found.plan().get("minRecord").is_none() && found.plan().get("maxRecord").is_none());
}
