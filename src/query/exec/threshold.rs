//! The threshold of a sort with a limit: buckets that cannot exceed it need no decoding.

use crate::block::{Block, Column, ColumnData};
use crate::limits::THRESHOLD_ROWS_MAX;
use crate::query::plan::Plan;
use crate::query::sort::{SortSpec, column_at, key_of_double, key_of_int};
use crate::value::{Component, Doc, Path, Value};

/// The best keys so far of a sort by time, or by numbers at a path in descending order.
///
/// Keys are numbers; a greater one sorts first. Values of other types have no key, so the threshold may be lower than
/// possible, but never higher.
pub(super) struct Threshold {
    path: Path,
    is_time: bool,
    ascending: bool,
    keep: usize,
    /// Ascending; at most `keep` of them.
    best: Vec<u64>,
}

impl Threshold {
    /// The threshold of a plan with that sort, which keeps `keep` rows. `None` if buckets cannot tell, or if skipping them
    /// could hide an error.
    pub fn new(plan: &Plan, sort: &SortSpec, keep: usize) -> Option<Threshold> {
        let (first, others) = sort.parts().split_first()?;
        let is_time = *first.path.as_str() == *plan.time_field;
        // In an ascending sort by a field, rows without it come first, and no summary says whether there are any.
        let is_told = is_time || !first.ascending && plan.meta_field.as_deref() != Some(first.path.first());
        // Two sort keys with arrays in one row are an error. A time is never an array.
        let is_single = others.len() <= usize::from(is_time);
        let is_wanted = (1..=THRESHOLD_ROWS_MAX).contains(&keep) && !plan.residual.can_fail();
        (is_told && is_single && is_wanted).then(|| Threshold {
            path: first.path.clone(),
            is_time,
            ascending: first.ascending,
            keep,
            best: Vec::new(),
        })
    }

    /// Takes collected rows into account.
    pub fn add(&mut self, rows: &Block) {
        let Some(Some(column)) = column_at(&self.path, rows) else { return };
        let doubles = column.to_doubles();
        let column = doubles.as_ref().unwrap_or(column);
        for row in 0..rows.rows() {
            if let Some(key) = self.key_of(column, row) {
                self.add_key(key);
            }
        }
    }

    fn key_of(&self, column: &Column, row: usize) -> Option<u64> {
        let key = match column.data() {
            ColumnData::Date(times) if self.is_time => self.key_of_time(*times.get(row)?),
            ColumnData::F64(v) if !self.is_time => key_of_double(*v.get(row)?),
            ColumnData::I32(v) if !self.is_time => key_of_double(f64::from(*v.get(row)?)),
            // Rounding preserves the order.
            ColumnData::I64(v) if !self.is_time => key_of_double(*v.get(row)? as f64),
            _ => return None,
        };
        column.is_present(row).then_some(key)
    }

    fn add_key(&mut self, key: u64) {
        let at = self.best.partition_point(|known| *known < key);
        if self.best.len() < self.keep {
            self.best.insert(at, key);
        } else if at > 0 {
            // Drops the smallest.
            self.best.copy_within(1..at, 0);
            self.best.get_mut(at - 1..at).into_iter().for_each(|place| place.fill(key));
        }
    }

    fn key_of_time(&self, ms: i64) -> u64 {
        if self.ascending { !key_of_int(ms) } else { key_of_int(ms) }
    }

    /// True if all kept rows come before every row between these times, with fields of at most the values in `max`.
    pub fn excludes(&self, (first_ms, last_ms): (i64, i64), max: Option<Doc<'_>>) -> bool {
        let Some(least) = self.best.first().filter(|_| self.best.len() == self.keep) else { return false };
        let key = match max {
            _ if self.is_time => Some(self.key_of_time(if self.ascending { first_ms } else { last_ms })),
            None => None,
            Some(max) => greatest_at(max, self.path.components()),
        };
        key.is_some_and(|key| key < *least)
    }
}

/// The key of the greatest value at a path, given the greatest values of a bucket; `None` if they do not tell.
fn greatest_at(max: Doc<'_>, path: &[Component]) -> Option<u64> {
    let (component, below) = path.split_first()?;
    match max.get(component.name()) {
        // No row has the field, and such rows come last.
        None => Some(0),
        // All other values sort after this one, whatever their types.
        Some(value) if below.is_empty() => key_of_number(value),
        // No row has an array there, which would sort after an object.
        Some(value) => greatest_at(value.as_doc()?, below),
    }
}

/// The key of a double or an integer.
fn key_of_number(value: Value<'_>) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_integer().map(|n| n as f64))?;
    Some(key_of_double(number))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::sink::Decoded;
    use super::super::{Exec, Sink};
    use super::*;
    use crate::block::pivot_docs;
    use crate::bucket::MinMax;
    use crate::query::filter::samples::globals;
    use crate::query::plan::CollectionFacts;
    use crate::query::plan::FindCommand;
    use crate::value::{Collation, OwnedValue};
    use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Option<Bson>> {
        let numbers = prop_oneof![
            (-9..9).prop_map(Bson::Int32),
            (-9..9).prop_map(|n| Bson::Double(f64::from(n) / 2.0)),
            // Beyond the precision of doubles.
            (0..4_i64).prop_map(|n| Bson::Int64((1 << 53) + n)),
            Just(Bson::Double(f64::NAN)),
        ];
        let others = prop_oneof![
            Just(None),
            Just(Some(Bson::Null)),
            Just(Some(Bson::String("x".into()))),
            Just(Some(Bson::Array(vec![Bson::Int32(20)]))),
            (-9..9).prop_map(|y| Some(Bson::Document(doc! { "y": y }))),
            (-9..9).prop_map(|z| Some(Bson::Document(doc! { "y": { "z": f64::from(z) } }))),
            Just(Some(Bson::Array(vec![Bson::Document(doc! { "y": 20 })]))),
        ];
        prop_oneof![4 => numbers.prop_map(Some), 3 => others]
    }

    fn row() -> impl Strategy<Value = RawDocumentBuf> {
        (0..40_i64, value(), value()).prop_map(|(t, a, b)| {
            let mut row = doc! { "t": DateTime::from_millis(t) };
            for (name, value) in [("a", a), ("b", b)] {
                if let Some(value) = value {
                    row.insert(name, value);
                }
            }
            RawDocumentBuf::try_from(&row).unwrap()
        })
    }

    /// The result of a query over buckets, and how many of them it skipped; unless `excluding`, all are pushed at once with all of
    /// their columns.
    fn run(command: &Document, buckets: &[Vec<RawDocumentBuf>], excluding: bool) -> (Vec<Option<OwnedValue>>, usize) {
        let command = RawDocumentBuf::try_from(command).unwrap();
        let find = FindCommand::parse(Doc::parse(command.as_bytes()).unwrap(), &globals()).unwrap();
        let facts = CollectionFacts { time_field: "t", meta_field: Some("m") };
        let plan = Plan::new(find.into(), &facts);
        let mut exec = Exec::new(&plan);
        let mut left_out = 0;
        for docs in buckets {
            let docs = || docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap());
            let mut summary = MinMax::new(&Collation::default());
            docs().flat_map(|doc| doc.iter()).for_each(|(name, value)| summary.update(name, value));
            let times = |doc: Doc<'_>| doc.get("t").and_then(Value::as_date_ms).unwrap();
            let (first, last) = (times(summary.min_doc().view()), times(summary.max_doc().view()));
            if excluding && exec.excludes((first, last), Some(summary.max_doc().view())) {
                left_out += 1;
                continue;
            }
            // As buckets are decoded, objects as a column for each scalar.
            let rows = pivot_docs(docs()).unwrap().map_columns(|column| crate::column::read_again(&column));
            let _ = match plan.decode_first.as_ref().filter(|_| excluding) {
                Some(fields) => {
                    let mut first = rows.clone();
                    first.retain_columns(|name| fields.contains(name));
                    exec.push_in_steps(first, None, false, Rc::new(Decoded { rows, needed: Rc::default() })).unwrap()
                }
                None => exec.push(rows, None, false).unwrap(),
            };
        }
        exec.finish().unwrap();
        while exec.take_pause() {
            exec.finish().unwrap();
        }
        let rows = exec.take(usize::MAX, usize::MAX).unwrap();
        let value = |row: usize, name: &str| {
            rows.column(name).and_then(|column| column.value(row, &mut Vec::new()).map(|value| value.to_owned()))
        };
        ((0..rows.rows()).flat_map(|row| ["t", "a", "b"].map(|name| value(row, name))).collect(), left_out)
    }

    proptest! {
        #[test]
        fn a_limited_sort_gives_the_same_rows_with_and_without_skipped_buckets(
            buckets in prop::collection::vec(prop::collection::vec(row(), 1..50), 1..12),
            sort in prop::sample::select(vec![
                doc! { "t": 1 }, doc! { "t": -1 }, doc! { "a": -1 }, doc! { "a": 1 }, doc! { "t": -1, "a": 1 }, doc! { "t": 1, "a": -1 },
                doc! { "b.y": -1, "t": 1 }, doc! { "b.y": -1 }, doc! { "b.y.z": -1 },
            ]),
            filter in prop::sample::select(vec![doc! {}, doc! { "b": { "$gt": 0 } }]),
            skip in 0..3,
            limit in 1..6,
        ) {
            let command = doc! { "find": "c", "filter": filter, "sort": sort, "skip": skip, "limit": limit };
            prop_assert_eq!(run(&command, &buckets, true).0, run(&command, &buckets, false).0);
        }
    }

    #[test]
    fn buckets_that_cannot_have_the_best_rows_are_skipped() {
        let row = |t: i64, a: f64| RawDocumentBuf::try_from(&doc! { "t": DateTime::from_millis(t), "a": a }).unwrap();
        let buckets: Vec<_> = (0..10).map(|n| vec![row(n, 9.0 - n as f64), row(n, 0.0)]).collect();
        let left_out = |sort: Document, filter: Document| {
            run(&doc! { "find": "c", "filter": filter, "sort": sort, "limit": 2 }, &buckets, true).1
        };
        assert_eq!(left_out(doc! { "t": 1 }, doc! {}), 9);
        assert_eq!(left_out(doc! { "t": -1 }, doc! {}), 0);
        assert_eq!(left_out(doc! { "a": -1 }, doc! {}), 8);
        // Rows without the field would come first.
        assert_eq!(left_out(doc! { "a": 1 }, doc! {}), 0);
        // An expression may fail on a skipped row, and two fields may both be arrays there.
        assert_eq!(left_out(doc! { "t": 1 }, doc! { "$expr": { "$gte": ["$a", 0] } }), 0);
        assert_eq!(left_out(doc! { "a": -1, "b": 1 }, doc! {}), 0);
        let row = |t: i64, y: i64| {
            RawDocumentBuf::try_from(&doc! { "t": DateTime::from_millis(t), "b": { "x": t, "y": y as f64 / 4.0 } })
                .unwrap()
        };
        let buckets: Vec<Vec<_>> = (0..10).map(|n| (0..60).map(|t| row(t, t * 7 % 60 - 50 * n)).collect()).collect();
        let left_out = |path: &str| {
            let command = doc! { "find": "c", "sort": { path: -1 }, "limit": 2 };
            let (excluding, all) = (run(&command, &buckets, true), run(&command, &buckets, false));
            assert_eq!(excluding.0, all.0);
            excluding.1
        };
        assert_eq!((left_out("b.y"), left_out("b.x"), left_out("b.none"), left_out("b.y.z")), (9, 0, 0, 0));
    }
}
