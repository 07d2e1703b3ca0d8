//! The plan of a `find`: plain data that says what is scanned, decoded, filtered, sorted and returned.

use super::demand::{Demand, NewestBins, Query, RowsPerGroup};
use super::find::FindCommand;
use super::projection::Projection;
use crate::limits::LATE_ROWS_MAX;
use crate::query::filter::Filter;
use crate::query::sort::SortSpec;
use crate::value::{Collation, FieldSet};

/// What planning must know about a collection.
#[derive(Clone, Copy, Debug)]
pub struct CollectionFacts<'a> {
    /// Name of the timeField.
    pub time_field: &'a str,
    /// Name of the metaField, if there is one.
    pub meta_field: Option<&'a str>,
}

/// How a `find` runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the timeField.
    pub time_field: Box<str>,
    /// Name of the metaField, if there is one.
    pub meta_field: Option<Box<str>>,
    /// The filter on rows.
    pub residual: Filter,
    /// The fields to decode, without the meta field unless all are decoded.
    pub decode: FieldSet,
    /// The fields to decode first, if they may tell that no row of a bucket matters.
    pub decode_first: Option<FieldSet>,
    /// True if somebody reads the metadata of rows.
    pub wants_meta: bool,
    /// The fields to return.
    pub projection: Projection,
    /// The order of rows; `None` for that of the scan.
    pub sort: Option<SortSpec>,
    /// Number of matches to skip.
    pub skip: u64,
    /// Maximum number of matches returned; `None` for all.
    pub limit: Option<u64>,
    /// How strings compare outside of filters and sorts.
    pub collation: Collation,
    /// Set if only some of the matches of one push matter.
    pub rows_per_group: Option<RowsPerGroup>,
    /// Set if of the rows of a bucket that all match only the first or the last ones matter to a sort by time, besides those of the same
    /// time: whether the last, and how many.
    pub sorted_ends: Option<(bool, usize)>,
    /// Set if only the rows with the latest times matter.
    pub newest: Option<NewestBins>,
    /// True if the projection is not that of the command, but lists the fields that the stages read, of which a `$group` hides the
    /// order.
    pub is_narrowed: bool,
    /// True if stages never have enough before all rows have come.
    pub waits_for_all: bool,
    /// True if nobody sees the order of the fields that are decoded, or if there is only one besides the time.
    pub in_any_order: bool,
}

impl Plan {
    /// True if a sort returns so few rows that most of their columns are decoded late.
    pub fn is_late(&self) -> bool {
        let few = |limit: u64| self.skip.saturating_add(limit) <= LATE_ROWS_MAX as u64;
        self.sort.is_some() && self.decode_first.is_some() && self.limit.is_some_and(few)
    }

    /// The plan of a `find`.
    pub fn new(query: Query, facts: &CollectionFacts<'_>) -> Plan {
        let Query { find, demand } = query;
        let sorts = demand.sorts(&find);
        let FindCommand { filter, mut projection, sort, skip, limit, collation, .. } = find;
        let Demand { rows_per_group, fields, is_narrowed, waits_for_all, newest, .. } = demand;
        let residual = filter;
        // Rows that are not examined would hide an error of the filter.
        let newest = newest.filter(|_| !residual.can_fail());
        let sort = sort.filter(|_| sorts);
        if is_narrowed {
            projection = Projection::of_roots(fields.names());
        }
        let mut decode = projection.needed_fields(&fields);
        let may_discard = !residual.is_trivial() || sort.is_some() && limit.is_some() || newest.is_some();
        let mut first = residual.fields();
        newest.iter().for_each(|_| first.add(facts.time_field));
        for part in SortSpec::parts_of(sort.as_ref()) {
            first.add_path(part.path.as_str());
        }
        decode.add_all(&first);
        let of_series = |wanted: &RowsPerGroup| wanted.alike.iter().all(|name| facts.meta_field == Some(name));
        // Within one series, a sort by metadata and then time is a sort by time.
        let by_time = |sort: &SortSpec| match sort.parts() {
            [front @ .., last] => {
                let of_meta = |name: &str| facts.meta_field == Some(name);
                last.path.as_str() == facts.time_field && front.iter().all(|part| of_meta(part.path.first()))
            }
            [] => false,
        };
        let kept = limit.map_or(u64::MAX, |limit| skip.saturating_add(limit));
        let sorted_ends = sort.as_ref().filter(|sort| kept <= LATE_ROWS_MAX as u64 && by_time(sort));
        let sorted_ends = sorted_ends.and_then(|sort| Some((!sort.parts().last()?.ascending, kept as usize)));
        let in_order = sort.as_ref().is_none_or(by_time);
        let rows_per_group =
            rows_per_group.filter(|wanted| of_series(wanted) && skip == 0 && limit.is_none() && in_order);
        let wants_meta = facts.meta_field.is_some_and(|meta| decode.contains(meta));
        if let Some(meta) = facts.meta_field {
            decode.remove(meta);
            first.remove(meta);
        }
        let others = decode.names().iter().filter(|name| ***name != *facts.time_field).count();
        let in_any_order = is_narrowed || !decode.is_all() && others <= 1;
        let decode_first = Some(first).filter(|first| may_discard && *first != decode && rows_per_group.is_none());
        Plan {
            time_field: facts.time_field.into(),
            meta_field: facts.meta_field.map(Into::into),
            residual,
            decode,
            decode_first,
            wants_meta,
            projection,
            sort,
            skip,
            limit,
            collation,
            rows_per_group,
            sorted_ends,
            newest,
            is_narrowed,
            waits_for_all,
            in_any_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use crate::value::Doc;
    use bson::{RawDocumentBuf, rawdoc};

    const FACTS: CollectionFacts<'_> = CollectionFacts { time_field: "t", meta_field: Some("m") };

    fn find(command: RawDocumentBuf) -> Plan {
        Plan::new(FindCommand::parse(Doc::parse(command.as_bytes()).unwrap(), &globals()).unwrap().into(), &FACTS)
    }

    /// The names of the decoded columns, and whether the metadata is needed.
    fn reads(plan: &Plan) -> (Vec<&str>, bool) {
        let names = match &plan.decode {
            FieldSet::All => vec!["*"],
            FieldSet::Only(roots) => roots.iter().map(|root| &**root).collect(),
        };
        (names, plan.wants_meta)
    }

    #[test]
    fn fields_of_filter_projection_and_sort_are_decoded_except_the_metadata() {
        assert_eq!(reads(&find(rawdoc! { "find": "c" })), (vec!["*"], true));
        let plan =
            find(rawdoc! { "find": "c", "filter": { "a.x": 2 }, "projection": { "b.y": 1 }, "sort": { "t": 1 } });
        assert_eq!(reads(&plan), (vec!["_id", "a", "b", "t"], false));
        let plan = find(rawdoc! { "find": "c", "projection": { "a": 1, "_id": 0 }, "sort": { "m.id": 1 } });
        assert_eq!(reads(&plan), (vec!["a"], true));
        let plan =
            find(rawdoc! { "find": "c", "filter": { "$or": [{ "m": 1 }, { "a": 1 }] }, "projection": { "_id": 1 } });
        assert_eq!(reads(&plan), (vec!["_id", "a"], true));
    }

    #[test]
    fn a_count_decodes_what_its_filter_reads() {
        let count = |command: RawDocumentBuf| {
            let options = FindCommand::of_count(Doc::parse(command.as_bytes()).unwrap(), &globals()).unwrap();
            Plan::new(options.into(), &FACTS)
        };
        assert_eq!(reads(&count(rawdoc! { "count": "c" })), (vec![], false));
        assert_eq!(reads(&count(rawdoc! { "count": "c", "query": { "a.b": 1 } })), (vec!["a"], false));
    }
}
