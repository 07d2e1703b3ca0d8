//! Finds out whether a `$group` needs only the first or last rows by time, or only summaries.

use super::spec::{GroupSpec, Key};
use crate::listed::IntoList;
use crate::query::expr::BoundExpr;
use crate::query::plan::{NewestBins, RowsPerGroup, Which};
use crate::query::sort::SortSpec;
use crate::query::stage::accumulator::{Accumulation, cannot_fail};

impl GroupSpec {
    /// Replaces accumulators that keep one row by a sort on time by `$first` or `$last`, if all others accept rows in
    /// any order.
    pub fn take_first_or_last(&mut self, time_field: &str) {
        let replaced: Vec<_> = self.fields.iter().map(|field| field.as_first_or_last(time_field)).collect();
        let fits = |(field, replaced): (&Accumulation, &Option<Accumulation>)| {
            replaced.is_some() || field.takes_any_order() && field.is_last().is_none()
        };
        if replaced.iter().all(Option::is_none) || !self.fields.iter().zip(&replaced).all(fits) {
            return;
        }
        for (field, replacement) in self.fields.iter_mut().zip(replaced) {
            *field = replacement.unwrap_or_else(|| field.clone());
        }
        self.unsorted_by = Some((time_field.into(), true));
    }

    /// Set if only a few of the rows that are equal in the key fields matter, and evaluating the others cannot fail.
    pub fn rows_needed(&self, time_field: &str) -> Option<RowsPerGroup> {
        let wanted = self.alike(time_field)?;
        if self.fields.iter().all(|field| field.is_summary(time_field, self.unsorted_by.is_some())) {
            return Some(RowsPerGroup { which: Which::Extremes, ..wanted });
        }
        self.ends(wanted, self.unsorted_by.as_ref().map(|(_, ascending)| *ascending), time_field)
    }

    /// The same for sorted rows in which each series is in time order, if `sort` ends with the time.
    pub fn rows_needed_after(&self, sort: &SortSpec, time_field: &str) -> Option<RowsPerGroup> {
        let by_time = sort.parts().last().filter(|last| last.path.as_str() == time_field)?;
        self.ends(self.alike(time_field)?, Some(by_time.ascending), time_field)
    }

    /// What rows matter if only `count` groups with the greatest values at `path` do: set if that is the key, a bin of time, or its
    /// only field, and if the order of rows does not matter.
    pub fn newest_bins(&self, path: &str, count: usize, time_field: &str) -> Option<NewestBins> {
        let below = path.strip_prefix("_id")?;
        let bin = match &self.key {
            Key::One(bin) if below.is_empty() => bin,
            Key::Object(fields) => match fields.as_slice() {
                [(name, bin)] if below.is_empty() || below.strip_prefix('.') == Some(&**name) => bin,
                _ => return None,
            },
            _ => return None,
        };
        let takes_any_order = self.fields.iter().all(|field| field.takes_any_order() && field.is_last().is_none());
        let slack_ms = bin.bin_slack_ms(time_field).filter(|_| takes_any_order)?;
        Some(NewestBins { bin: bin.clone(), slack_ms, count })
    }

    /// The fields of the key.
    fn alike(&self, time_field: &str) -> Option<RowsPerGroup> {
        let keys = self.key.parts();
        if keys.iter().any(|key| key.fields().is_all() || key.is_random()) {
            return None;
        }
        let fields = keys.iter().flat_map(|key| key.fields().names());
        let alike = fields.filter(|name| ***name != *time_field).cloned().listed();
        let reads_time = |key: &&&BoundExpr| key.fields().contains(time_field);
        let bins: Vec<BoundExpr> = keys.iter().filter(reads_time).map(|key| BoundExpr::clone(key)).listed();
        let by_value = keys.iter().all(|key| cannot_fail(key.expr()));
        Some(RowsPerGroup { which: Which::Last, count: 1, alike, by_value, bins, counts: self.counts() })
    }

    /// Set if all fields keep rows from the same end: which one, and the maximum number of rows. `ascending` is the
    /// time order of the rows, if they have one.
    fn ends(&self, wanted: RowsPerGroup, ascending: Option<bool>, time_field: &str) -> Option<RowsPerGroup> {
        let (mut which, mut count) = (None, 0);
        for field in &self.fields {
            let (is_last, n) = field.end(ascending, time_field).filter(|_| cannot_fail(field.input.expr()))?;
            if which.is_some_and(|which| which != is_last) {
                return None;
            }
            which = Some(is_last);
            count = n.max(count);
        }
        let which = if which? { Which::Last } else { Which::First };
        wanted.bins.is_empty().then_some(RowsPerGroup { which, count, ..wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Aggregation;
    use crate::query::filter::samples::globals;
    use crate::value::Doc;
    use bson::{Bson, Document, RawDocumentBuf, bson, doc};

    /// Which rows a pipeline needs at one end, whether it groups by what compares equal, and the remaining sort keys.
    fn rows_per_group(stages: Bson) -> (Option<(Which, usize, bool)>, usize) {
        let pipeline = RawDocumentBuf::try_from(&doc! { "pipeline": stages }).unwrap();
        let pipeline = Doc::parse(pipeline.as_bytes()).unwrap().get("pipeline").unwrap().as_array().unwrap();
        let query = Aggregation::parse(pipeline, &globals(), "at").unwrap().into_query();
        let sort = query.find.sort.filter(|_| !query.demand.takes_any_order).map_or(0, |sort| sort.parts().len());
        (query.demand.rows_per_group.map(|wanted| (wanted.which, wanted.count, wanted.by_value)), sort)
    }

    fn behind(sort: Document, key: &str, fields: Document) -> (Option<(Which, usize, bool)>, usize) {
        let mut group = doc! { "_id": key };
        group.extend(fields);
        rows_per_group(bson!([{ "$sort": sort }, { "$group": group }]))
    }

    #[test]
    fn a_group_after_a_sort_by_time_needs_only_first_or_last_rows() {
        let first = || doc! { "a": { "$first": "$a" }, "r": { "$first": "$$ROOT" } };
        assert_eq!(behind(doc! { "at": -1 }, "$m.id", first()), (Some((Which::Last, 1, true)), 0));
        assert_eq!(behind(doc! { "m.id": 1, "at": -1 }, "$m.id", first()), (Some((Which::Last, 1, true)), 2));
        assert_eq!(behind(doc! { "m": 1, "at": 1 }, "$m", first()), (Some((Which::First, 1, true)), 2));
        let last = doc! { "a": { "$last": "$a" }, "at": { "$max": "$at" } };
        assert_eq!(behind(doc! { "m": 1, "at": 1 }, "$m", last), (Some((Which::Last, 1, true)), 2));
        let several = doc! { "a": { "$firstN": { "n": 3, "input": "$a" } }, "b": { "$first": "$b" } };
        assert_eq!(behind(doc! { "at": -1 }, "$m.id", several), (Some((Which::Last, 3, true)), 1));
        let typed = rows_per_group(
            bson!([{ "$sort": { "at": 1 } }, { "$group": { "_id": { "$type": "$m" }, "a": { "$last": "$a" } } }]),
        );
        assert_eq!(typed, (Some((Which::Last, 1, false)), 0));
    }

    #[test]
    fn a_group_that_needs_other_rows_reads_all() {
        let sort = || doc! { "m": 1, "at": 1 };
        for fields in [
            doc! { "a": { "$first": "$a" }, "b": { "$last": "$b" } },
            doc! { "a": { "$first": "$a" }, "n": { "$sum": 1 } },
            doc! { "a": { "$first": { "$divide": ["$a", "$b"] } } },
            doc! { "a": { "$firstN": { "n": 101, "input": "$a" } } },
            doc! { "a": { "$last": "$a" }, "at": { "$min": "$at" } },
            doc! { "a": { "$push": "$a" } },
            doc! {},
        ] {
            assert_eq!(behind(sort(), "$m", fields.clone()), (None, 2), "{fields}");
        }
        let first = || doc! { "a": { "$first": "$a" } };
        assert_eq!(behind(doc! { "at": 1, "m": 1 }, "$m", first()).0, None);
        assert_eq!(behind(sort(), "$at", first()).0, None);
        assert_eq!(behind(sort(), "$$ROOT", first()).0, None);
        let limited = rows_per_group(
            bson!([{ "$sort": sort() }, { "$limit": 9 }, { "$group": { "_id": "$m", "a": { "$first": "$a" } } }]),
        );
        assert_eq!(limited.0, None);
    }

    #[test]
    fn accumulators_with_a_sort_by_time_need_only_first_or_last_rows() {
        let by = |sort: Document, name: &str, n: Bson| {
            let mut arguments = doc! { "sortBy": sort, "output": "$a" };
            if name.ends_with('N') {
                arguments.insert("n", n);
            }
            rows_per_group(bson!([{ "$group": { "_id": "$m.id", "a": { name: arguments } } }])).0
        };
        let newest = || doc! { "at": -1 };
        assert_eq!(by(newest(), "$top", 1.into()), Some((Which::Last, 1, true)));
        assert_eq!(by(newest(), "$topN", 3.into()), Some((Which::Last, 3, true)));
        assert_eq!(by(newest(), "$bottomN", 2.into()), Some((Which::First, 2, true)));
        assert_eq!(by(newest(), "$topN", "$n".into()), None);
        assert_eq!(by(doc! { "at": -1, "a": 1 }, "$topN", 3.into()), None);
        assert_eq!(by(doc! { "a": 1 }, "$top", 1.into()), None);
    }
}
