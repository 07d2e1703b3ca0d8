//! Of which rows a `$group` needs no more than the first or the last by time, or than what they come to together.

use super::spec::GroupSpec;
use crate::query::expr::{BoundExpr, Expr};
use crate::query::plan::{Edge, Which};
use crate::query::sort::SortSpec;
use crate::query::stage::accumulator::Accumulation;

impl GroupSpec {
    /// Takes the first or the last row by time for what keeps one row by a sort of the time alone, where all others take rows in any order.
    pub fn take_edges(&mut self, time_field: &str) {
        let edges: Vec<_> = self.fields.iter().map(|field| field.as_edge(time_field)).collect();
        let fits = |(field, edge): (&Accumulation, &Option<Accumulation>)| {
            edge.is_some() || field.takes_any_order() && field.is_last().is_none()
        };
        if edges.iter().all(Option::is_none) || !self.fields.iter().zip(&edges).all(fits) {
            return;
        }
        for (field, edge) in self.fields.iter_mut().zip(edges) {
            *field = edge.unwrap_or_else(|| field.clone());
        }
        self.unsorted_by = Some((time_field.into(), true));
    }

    /// Where of rows that are alike in the fields of the key only few matter, and nothing of the others can fail.
    pub fn edge(&self, time_field: &str) -> Option<Edge> {
        let edge = self.alike(time_field)?;
        if self.fields.iter().all(|field| field.is_summary(time_field, self.unsorted_by.is_some())) {
            return Some(Edge { which: Which::Extremes, ..edge });
        }
        self.ends(edge, self.unsorted_by.as_ref().map(|(_, ascending)| *ascending), time_field)
    }

    /// The same of rows that come in an order in which those of a series are in the order of their times, if `sort` ends with the time.
    pub fn edge_behind(&self, sort: &SortSpec, time_field: &str) -> Option<Edge> {
        let by_time = sort.parts().last().filter(|last| last.path.as_str() == time_field)?;
        self.ends(self.alike(time_field)?, Some(by_time.ascending), time_field)
    }

    /// The fields of the key.
    fn alike(&self, time_field: &str) -> Option<Edge> {
        let keys = self.key.parts();
        if keys.iter().any(|key| key.fields().is_all() || key.is_random()) {
            return None;
        }
        let fields = keys.iter().flat_map(|key| key.fields().names());
        let alike = fields.filter(|name| ***name != *time_field).cloned().collect();
        let reads_time = |key: &&&BoundExpr| key.fields().contains(time_field);
        let bins: Vec<BoundExpr> = keys.iter().filter(reads_time).map(|key| BoundExpr::clone(key)).collect();
        let by_value = keys.iter().all(|key| cannot_fail(key.expr()));
        Some(Edge { which: Which::Last, count: 1, alike, by_value, bins, counts: self.counts() })
    }

    /// Where each field takes rows from the same end: those are what matters, as many as the one that takes most does. `ascending` is the
    /// order of the times in which rows come, if they come in one.
    fn ends(&self, edge: Edge, ascending: Option<bool>, time_field: &str) -> Option<Edge> {
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
        edge.bins.is_empty().then_some(Edge { which, count, ..edge })
    }
}

/// True for fields, constants, and lists and objects of these.
fn cannot_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Constant(_) | Expr::Field(..) => true,
        Expr::Array(items) => items.iter().all(cannot_fail),
        Expr::Object(fields) => fields.iter().all(|(_, field)| cannot_fail(field)),
        Expr::Call(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Aggregation;
    use crate::query::filter::samples::globals;
    use crate::value::Doc;
    use bson::{Bson, Document, RawDocumentBuf, bson, doc};

    /// Which rows a pipeline asks for at one end, whether by what compares equal, and the parts of the sort that is left.
    fn edge(stages: Bson) -> (Option<(Which, usize, bool)>, usize) {
        let pipeline = RawDocumentBuf::try_from(&doc! { "pipeline": stages }).unwrap();
        let pipeline = Doc::parse(pipeline.as_bytes()).unwrap().get("pipeline").unwrap().as_array().unwrap();
        let query = Aggregation::parse(pipeline, &globals(), "at").unwrap().into_query();
        let sort = query.find.sort.map_or(0, |sort| sort.parts().len());
        (query.demand.edge.map(|edge| (edge.which, edge.count, edge.by_value)), sort)
    }

    fn behind(sort: Document, key: &str, fields: Document) -> (Option<(Which, usize, bool)>, usize) {
        let mut group = doc! { "_id": key };
        group.extend(fields);
        edge(bson!([{ "$sort": sort }, { "$group": group }]))
    }

    #[test]
    fn a_group_behind_a_sort_that_ends_with_the_time_asks_for_rows_at_one_end() {
        let first = || doc! { "a": { "$first": "$a" }, "r": { "$first": "$$ROOT" } };
        assert_eq!(behind(doc! { "at": -1 }, "$m.id", first()), (Some((Which::Last, 1, true)), 0));
        assert_eq!(behind(doc! { "m.id": 1, "at": -1 }, "$m.id", first()), (Some((Which::Last, 1, true)), 2));
        assert_eq!(behind(doc! { "m": 1, "at": 1 }, "$m", first()), (Some((Which::First, 1, true)), 2));
        let last = doc! { "a": { "$last": "$a" }, "at": { "$max": "$at" } };
        assert_eq!(behind(doc! { "m": 1, "at": 1 }, "$m", last), (Some((Which::Last, 1, true)), 2));
        let several = doc! { "a": { "$firstN": { "n": 3, "input": "$a" } }, "b": { "$first": "$b" } };
        assert_eq!(behind(doc! { "at": -1 }, "$m.id", several), (Some((Which::Last, 3, true)), 1));
        let typed =
            edge(bson!([{ "$sort": { "at": 1 } }, { "$group": { "_id": { "$type": "$m" }, "a": { "$last": "$a" } } }]));
        assert_eq!(typed, (Some((Which::Last, 1, false)), 0));
    }

    #[test]
    fn a_group_that_needs_other_rows_asks_for_all() {
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
        let limited =
            edge(bson!([{ "$sort": sort() }, { "$limit": 9 }, { "$group": { "_id": "$m", "a": { "$first": "$a" } } }]));
        assert_eq!(limited.0, None);
    }

    #[test]
    fn accumulators_with_an_order_of_their_own_ask_for_rows_at_one_end() {
        let by = |sort: Document, name: &str, n: Bson| {
            let mut arguments = doc! { "sortBy": sort, "output": "$a" };
            if name.ends_with('N') {
                arguments.insert("n", n);
            }
            edge(bson!([{ "$group": { "_id": "$m.id", "a": { name: arguments } } }])).0
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
