//! Collections with fixed buckets: time bounds on a boundary between two buckets.

use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};

use super::forms::{Forms, at};

const SPANS: [i64; 3] = [3600, 86_400, 60];

/// Ten measurements, three per bucket, the first at the start of a bucket.
fn fixed(span_seconds: i64) -> Forms {
    let timeseries = rawdoc! {
        "timeField": "time", "metaField": "m", "bucketMaxSpanSeconds": span_seconds, "bucketRoundingSeconds": span_seconds,
    };
    let third = span_seconds * 1000 / 3;
    let rows: Vec<RawDocumentBuf> =
        (0..10).map(|n| rawdoc! { "time": at(i64::from(n) * third), "m": 1, "n": n, "x": n }).collect();
    Forms::with(&timeseries, &rows)
}

/// Whether the plan filters measurements, and whether it does so for buckets inside the range.
fn filters(forms: &Forms, filter: &RawDocumentBuf) -> (bool, bool) {
    let found = forms.explained_filter(filter.clone());
    assert!(found.unpack().get_bool("fixedBuckets").unwrap());
    (found.unpack().contains_key("eventFilter"), found.unpack().contains_key("wholeBucketFilter"))
}

#[test]
fn a_bound_between_two_fixed_buckets_filters_no_measurement() {
    for span in SPANS {
        let forms = fixed(span);
        let border = |n: i64| RawBson::DateTime(at(n * span * 1000));
        for (filter, expected) in [
            (rawdoc! { "time": { "$lt": border(1) } }, &[0, 1, 2][..]),
            (rawdoc! { "time": { "$gte": border(2) } }, &[6, 7, 8, 9]),
            (rawdoc! { "time": { "$gte": border(1), "$lt": border(2) } }, &[3, 4, 5]),
            (rawdoc! { "$or": [{ "time": { "$lt": border(1) } }, { "time": { "$gte": border(3) } }] }, &[0, 1, 2, 9]),
            (rawdoc! { "time": { "$lt": border(2) }, "m": 1 }, &[0, 1, 2, 3, 4, 5]),
        ] {
            assert_eq!(filters(&forms, &filter), (false, false), "{filter:?}");
            forms.finds(filter, expected);
        }
    }
}

#[test]
fn any_other_bound_filters_measurements() {
    for span in SPANS {
        let forms = fixed(span);
        let border = |n: i64| RawBson::DateTime(at(n * span * 1000));
        let inside = |n: i64| RawBson::DateTime(at(n * span * 1000 + 1));
        for (filter, expected) in [
            (rawdoc! { "time": { "$gt": border(2) } }, &[7, 8, 9][..]),
            (rawdoc! { "time": { "$lte": border(1) } }, &[0, 1, 2, 3]),
            (rawdoc! { "time": border(3) }, &[9]),
            (rawdoc! { "time": { "$lt": inside(1) } }, &[0, 1, 2, 3]),
            (rawdoc! { "time": { "$gte": inside(2) } }, &[7, 8, 9]),
        ] {
            assert_eq!(filters(&forms, &filter), (true, true), "{filter:?}");
            forms.finds(filter, expected);
        }
        for (filter, expected) in [
            (rawdoc! { "time": { "$in": [border(0), border(1)] } }, &[0, 3][..]),
            (rawdoc! { "time": { "$lt": border(1) }, "x": { "$gt": 0 } }, &[1, 2]),
        ] {
            assert_eq!(filters(&forms, &filter), (true, false), "{filter:?}");
            forms.finds(filter, expected);
        }
    }
}

#[test]
fn bounds_outside_the_standard_range_filter_no_measurement() {
    for span in SPANS {
        let forms = fixed(span);
        let all: Vec<i32> = (0..10).collect();
        // 1969, 2040 and 2200.
        for (ms, expected) in [(-3_600_000, &[][..]), (2_208_988_800_000, &all), (7_258_118_400_000, &all)] {
            let before = rawdoc! { "time": { "$lt": DateTime::from_millis(ms) } };
            assert_eq!(filters(&forms, &before), (false, false), "{before:?}");
            forms.finds(before, expected);
        }
    }
}
