//! Random buckets and filters: a bucket that the loose predicate excludes never matches, and one that the tight one accepts always
//! does.

use bson::{DateTime, RawBson, RawDocumentBuf};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Layout, points, split};
use crate::bucket::{BucketId, MinMax, Schema, TimeseriesOptions, bucket_start_ms, is_extended_range};
use crate::query::filter::samples::{
    any_collation, any_filter_doc, any_place, any_value, doc_of, filter_by, owned, raw_array, raw_doc, scalar_of,
};
use crate::value::{Collation, Doc, DocBuf, Kind, OwnedValue};

const SPAN_SECONDS: i64 = 3_600;

/// Times at boundaries: the epoch, 31-bit and 32-bit seconds, the range of dates.
fn any_time() -> impl Strategy<Value = i64> {
    let base = select(vec![
        0,
        1_700_000_000_000,
        1_699_999_200_000,
        2_147_483_647_000,
        4_294_967_295_000,
        -5_000_000_000,
        i64::MIN,
        i64::MAX,
    ]);
    let near = select(vec![0, 1, 2, 499, 500, 999, 1_000, 60_000, 1_800_000, 3_599_999, 3_600_000, 3_600_001]);
    (base, near, any::<bool>())
        .prop_map(|(base, near, after)| if after { base.saturating_add(near) } else { base.saturating_sub(near) })
}

fn any_operand() -> BoxedStrategy<RawBson> {
    prop_oneof![
        2 => any_value(),
        1 => (0..4).prop_map(RawBson::Int32),
        1 => any_time().prop_map(|ms| RawBson::DateTime(DateTime::from_millis(ms))),
    ]
    .boxed()
}

/// The fields of one measurement without time and metadata.
type Row = (i64, Option<RawBson>, Option<RawBson>);

/// Measurements whose fields have one type each, or any.
fn any_rows() -> BoxedStrategy<Vec<Row>> {
    let rows = |a: BoxedStrategy<RawBson>, b: BoxedStrategy<RawBson>| {
        let offset = prop_oneof![0..SPAN_SECONDS * 1000, Just(0), Just(SPAN_SECONDS * 1000 - 1), 0..3_i64];
        vec((offset, proptest::option::weighted(0.8, a), proptest::option::weighted(0.8, b)), 1..5)
    };
    let number =
        select(vec![Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal128]).prop_flat_map(scalar_of).boxed();
    let text = scalar_of(Kind::String);
    let nested = number.clone();
    let object = (proptest::option::of(nested.clone()), proptest::option::of(nested)).prop_map(|(a, b)| {
        let fields = [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        RawBson::Document(raw_doc(fields))
    });
    prop_oneof![
        rows(number, object.boxed()),
        rows(text, any_value()),
        rows(any_place(), any_value()),
        rows(any_value(), any_value()),
    ]
    .boxed()
}

#[derive(Debug)]
struct Bucket {
    start: i64,
    options: TimeseriesOptions,
    fixed: bool,
    extended: bool,
    mixed: bool,
    id: BucketId,
    meta: Option<OwnedValue>,
    min: DocBuf,
    max: DocBuf,
    rows: Vec<DocBuf>,
}

/// A bucket as the catalog would make it, with one type per path unless `mixed`.
#[allow(clippy::too_many_arguments)]
fn bucket(
    time: i64,
    rows: Vec<Row>,
    meta: Option<RawBson>,
    has_meta: bool,
    mixed: bool,
    fixed: bool,
    extended: bool,
    collation: Collation,
) -> Bucket {
    let rounding_seconds = if fixed { SPAN_SECONDS } else { 60 };
    let start = bucket_start_ms(time, rounding_seconds);
    let id = BucketId::new(start, u64::from(fixed).wrapping_sub(u64::from(mixed)));
    let mut summary = MinMax::seed_time("t", start, &collation);
    let mut schema = Schema::new();
    let mut docs = Vec::new();
    for (offset, a, b) in rows {
        let t = start.saturating_add(offset);
        let fields = [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let date = ("t".to_owned(), RawBson::DateTime(DateTime::from_millis(t)));
        let row = doc_of([date].into_iter().chain(fields));
        let mut trial = schema.clone();
        if !row.view().iter().all(|(name, value)| trial.update(name, value)) && !mixed {
            continue;
        }
        schema = trial;
        row.view().iter().for_each(|(name, value)| summary.update(name, value));
        let fields = row.view().iter().map(|(name, value)| (name.to_owned(), raw(value.to_owned())));
        docs.push(doc_of(fields.chain(meta.clone().map(|m| ("m".to_owned(), m)))));
    }
    // Without a meta field, it is an ordinary field.
    if let (Some(value), false) = (&meta, has_meta) {
        let value = doc_of([("m".to_owned(), value.clone())]);
        value.view().iter().for_each(|(name, value)| summary.update(name, value));
    }
    let times = docs.iter().filter_map(|doc| doc.view().get("t").unwrap().as_date_ms());
    let extended = extended || times.chain([start]).any(is_extended_range);
    let options = TimeseriesOptions {
        time_field: "t".into(),
        meta_field: has_meta.then(|| "m".into()),
        rebucketed: false,
        granularity: None,
        span_seconds: SPAN_SECONDS,
        rounding_seconds: Some(rounding_seconds),
        collation,
    };
    let meta = meta.filter(|_| has_meta).map(owned);
    Bucket {
        start,
        options,
        fixed,
        extended,
        mixed,
        id,
        meta,
        min: summary.min_doc(),
        max: summary.max_doc(),
        rows: docs,
    }
}

fn raw(value: OwnedValue) -> RawBson {
    let mut writer = crate::value::DocWriter::new();
    writer.value("v", value.view());
    let doc = RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap();
    doc.get("v").unwrap().unwrap().into()
}

fn any_bucket() -> BoxedStrategy<Bucket> {
    let meta = proptest::option::weighted(0.8, any_value());
    (
        any_time(),
        any_rows(),
        meta,
        proptest::bool::weighted(0.8),
        any::<bool>(),
        any::<bool>(),
        proptest::bool::weighted(0.2),
        any_collation(),
    )
        .prop_map(|(time, rows, meta, has_meta, mixed, fixed, extended, collation)| {
            bucket(time, rows, meta, has_meta, mixed, fixed, extended, collation)
        })
        .boxed()
}

/// A comparison of the time with a constant near the bucket's ends, in seconds and milliseconds.
fn any_time_test() -> impl Strategy<Value = (&'static str, i64)> {
    let seconds = select(vec![-2 * SPAN_SECONDS, -SPAN_SECONDS, 0, 1, 60, SPAN_SECONDS, 2 * SPAN_SECONDS]);
    let by = select(vec![-1_000, -500, -1, 0, 1, 500, 1_000]);
    let op = select(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$ne"]);
    (op, seconds, by).prop_map(|(op, seconds, by)| (op, seconds * 1000 + by))
}

/// `doc` combined with a comparison of the time.
fn with_time(doc: RawDocumentBuf, combine: &str, (op, offset): (&str, i64), start: i64) -> RawDocumentBuf {
    let date = RawBson::DateTime(DateTime::from_millis(start.saturating_add(offset)));
    let operand = if op == "$in" { raw_array([date.clone(), date]) } else { date };
    let nested = |name: &str, value| RawBson::Document(raw_doc([(name.to_owned(), value)]));
    let test = nested("t", nested(op, operand));
    raw_doc([(combine.to_owned(), raw_array([test, RawBson::Document(doc)]))])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn bucket_predicates_agree_with_the_filter_on_measurements(
        bucket in any_bucket(),
        doc in prop_oneof![4 => any_filter_doc(any_operand()), 1 => Just(RawDocumentBuf::new()).boxed()],
        time_test in proptest::option::of((select(vec!["$and", "$or", "$nor"]), any_time_test())),
        other in proptest::option::of(any_collation()),
    ) {
        let doc = match time_test {
            Some((combine, test)) => with_time(doc, combine, test, bucket.start),
            None => doc,
        };
        let filter = filter_by(&doc, other.as_ref().unwrap_or(&bucket.options.collation));
        let layout = Layout {
            options: &bucket.options,
            extended_range: bucket.extended,
            mixed_schema: bucket.mixed,
            fixed_buckets: bucket.fixed,
            is_index_filter: true,
        };
        let split = split(&filter, &layout);
        let meta = bucket.meta.as_ref().map(OwnedValue::view);
        let (min, max) = (bucket.min.view(), bucket.max.view());
        let loose = split.bucket.may_match(min, max, meta);
        let tight = split.whole.all_match(min, max, meta);
        let meta_matches = split.meta.matches_value(meta).unwrap();
        let bucket_doc = doc_of(meta.map(|m| ("meta".to_owned(), raw(m.to_owned()))));
        prop_assert_eq!(meta_matches, split.meta.matches_doc(bucket_doc.view()).unwrap());
        let (first, last) = split.time_bounds();
        for row in &bucket.rows {
            let row: Doc<'_> = row.view();
            let matches = filter.matches_doc(row).unwrap();
            let residual = split.residual.matches_doc(row).unwrap();
            prop_assert_eq!(matches, meta_matches && residual, "{:?}: {:?}", row, split);
            prop_assert!(loose || !residual, "{:?}: {:?}", row, split);
            prop_assert!(residual || !tight, "{:?}: {:?}", row, split);
            prop_assert!(residual || !(split.exact && loose), "{:?}: {:?}", row, split);
            if matches {
                let time = row.get("t").unwrap().as_date_ms().unwrap();
                prop_assert!(first.is_none_or(|first| first <= time) && last.is_none_or(|last| time <= last), "{:?}", split);
                prop_assert!(split.id_range.contains(&bucket.id), "{:?}: {:?}", row, split);
                if let (Some(points), Some(meta)) = (points(&filter, "m"), meta) {
                    let is_text = points.texts.as_ref().is_some_and(|texts| texts.matches(Some(meta)));
                    let is_value = points.values.matches(Some(meta));
                    prop_assert!(meta.kind() == Kind::Array || is_text || is_value, "{:?}", split);
                }
            }
        }
    }
}
