//! The summaries `control.min` and `control.max`: the smallest and the largest value of every path in a bucket.

use std::cmp::Ordering;

use super::extremes::extremes;
use super::fields::Siblings;
use super::rows::{Rows, first_seen};
use crate::block::{Block, Column};
use crate::error::{Error, Result};
use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind, Value, canonical_class};

/// Two trees, one of minima and one of maxima.
///
/// Objects are summarised field by field and arrays position by position, so a summary need not be a value that occurs.
/// If a path holds both scalars and objects or arrays, the two trees may differ in shape; an update never fails. Equal
/// values do not replace each other: the first one stays.
///
/// Source: mongodb/mongo src/mongo/db/timeseries/bucket_catalog/flat_bson.cpp.
#[derive(Clone, Debug, Default)]
pub struct MinMax {
    fields: Siblings<SummaryNode>,
    collation: Collation,
}

#[derive(Clone, Debug, Default)]
struct SummaryNode {
    min: Extreme,
    max: Extreme,
    children: Option<Box<Children>>,
}

/// Which of the two summaries an update may have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedSummaries {
    /// `control.min`.
    pub min: bool,
    /// `control.max`.
    pub max: bool,
}

impl ChangedSummaries {
    fn add(&mut self, other: ChangedSummaries) {
        self.min |= other.min;
        self.max |= other.max;
    }
}

/// What lies below a path. One tree may have an object where the other has an array, so both are kept.
#[derive(Clone, Debug, Default)]
struct Children {
    fields: Siblings<SummaryNode>,
    items: Vec<SummaryNode>,
}

#[derive(Clone, Debug, Default)]
enum Extreme {
    #[default]
    Unset,
    Object,
    Array,
    /// Type byte and value bytes of a scalar.
    Scalar(Vec<u8>),
}

/// Which of the two trees an update may change, and how strings compare.
#[derive(Clone, Copy)]
struct Sides<'c> {
    min: bool,
    max: bool,
    collation: &'c Collation,
}

impl MinMax {
    /// Empty summaries that will compare strings by `collation`.
    pub fn new(collation: &Collation) -> MinMax {
        MinMax { fields: Siblings::default(), collation: collation.clone() }
    }

    /// The summaries of a bucket that begins at `min_time_ms`. The time field comes first in both, and its minimum is
    /// the rounded start, not the earliest measurement.
    pub fn seed_time(time_field: &str, min_time_ms: i64, collation: &Collation) -> MinMax {
        let mut summary = MinMax::new(collation);
        summary.update(time_field, Value::new_checked(Kind::Date, &min_time_ms.to_le_bytes()));
        summary
    }

    /// The summaries of a stored bucket; `min_doc` and `max_doc` return them unchanged.
    ///
    /// Errors: `DataCorruptionDetected` if a summary is empty.
    pub fn from_control(min: Doc<'_>, max: Doc<'_>, collation: &Collation) -> Result<MinMax> {
        let mut summary = MinMax::new(collation);
        for (side, doc, is_min) in [("min", min, true), ("max", max, false)] {
            let sides = Sides { min: is_min, max: !is_min, collation };
            if doc.is_empty() {
                return Err(Error::corrupt(format!("'control.{side}' is empty")));
            }
            for (name, value) in doc.iter() {
                summary.fields.slot(name).visit(value, sides);
            }
        }
        Ok(summary)
    }

    /// Takes in one field of a measurement.
    pub fn update(&mut self, name: &str, value: Value<'_>) {
        let MinMax { fields, collation } = self;
        fields.slot(name).visit(value, Sides { min: true, max: true, collation });
    }

    /// Takes in the present cells of a column, with the same result as one by one.
    pub fn update_column(&mut self, name: &str, column: &Column, rows: Rows<'_>) -> ChangedSummaries {
        let MinMax { fields, collation } = self;
        let (mut scratch, mut changed) = (Vec::new(), ChangedSummaries::default());
        if column.kind().is_some() {
            let Some(found) = extremes(column, rows, collation) else { return changed };
            let entry = fields.slot(name);
            for (row, is_min) in [(found.min, true), (found.max, false)] {
                if let Some(value) = found.column.value(row, &mut scratch) {
                    changed.add(entry.visit(value, Sides { min: is_min, max: !is_min, collation }));
                }
            }
            return changed;
        }
        let Some(first) = rows.iter().position(|row| column.is_present(row)) else { return changed };
        let entry = fields.slot(name);
        for row in rows.iter().skip(first) {
            if let Some(value) = column.value(row, &mut scratch) {
                changed.add(entry.visit(value, Sides { min: true, max: true, collation }));
            }
        }
        changed
    }

    /// Takes in rows of a block, with the same result as one by one. Leaves out the column called `skip`.
    pub fn update_rows(&mut self, block: &Block, rows: Rows<'_>, skip: Option<&str>) -> ChangedSummaries {
        let mut changed = ChangedSummaries::default();
        for (name, column) in first_seen(block, rows) {
            if Some(name) != skip {
                changed.add(self.update_column(name, column, rows));
            }
        }
        changed
    }

    /// `control.min`.
    pub fn min_doc(&self) -> DocBuf {
        self.write(|entry| &entry.min)
    }

    /// `control.max`.
    pub fn max_doc(&self) -> DocBuf {
        self.write(|entry| &entry.max)
    }

    fn write(&self, side: fn(&SummaryNode) -> &Extreme) -> DocBuf {
        let mut writer = DocWriter::with_capacity(256);
        self.fields.iter().for_each(|(name, entry)| entry.write(name, side, &mut writer));
        writer.finish()
    }
}

impl Extreme {
    /// The type of this node; for containers, their own type.
    fn kind(&self) -> Option<Kind> {
        match self {
            Extreme::Unset => None,
            Extreme::Object => Some(Kind::Object),
            Extreme::Array => Some(Kind::Array),
            Extreme::Scalar(tagged) => Some(Value::tagged_checked(tagged).kind()),
        }
    }

    /// True if a value of `kind` replaces this node because of its type.
    fn yields_to(&self, kind: Kind, wanted: Ordering) -> bool {
        self.kind().is_none_or(|mine| canonical_class(kind).cmp(&canonical_class(mine)) == wanted)
    }

    /// True if the value has replaced this node.
    fn visit_scalar(&mut self, value: Value<'_>, wanted: Ordering, collation: &Collation) -> bool {
        let replaced = match self {
            Extreme::Scalar(tagged) => collation.compare(value, Value::tagged_checked(tagged)) == wanted,
            _ => self.yields_to(value.kind(), wanted),
        };
        if replaced {
            let mut tagged = match std::mem::take(self) {
                Extreme::Scalar(tagged) => tagged,
                _ => Vec::new(),
            };
            tagged.clear();
            value.append_tagged(&mut tagged);
            *self = Extreme::Scalar(tagged);
        }
        replaced
    }
}

impl SummaryNode {
    fn visit(&mut self, value: Value<'_>, sides: Sides<'_>) -> ChangedSummaries {
        match value.as_container() {
            Some(doc) => {
                self.visit_container(value.kind(), doc, sides);
                ChangedSummaries { min: sides.min, max: sides.max }
            }
            None => ChangedSummaries {
                min: sides.min && self.min.visit_scalar(value, Ordering::Less, sides.collation),
                max: sides.max && self.max.visit_scalar(value, Ordering::Greater, sides.collation),
            },
        }
    }

    fn visit_container(&mut self, kind: Kind, doc: Doc<'_>, allowed: Sides<'_>) {
        let children = self.children.get_or_insert_default();
        let sides = Sides {
            min: allowed.min && children.open(kind, &mut self.min, Ordering::Less, |entry| &mut entry.min),
            max: allowed.max && children.open(kind, &mut self.max, Ordering::Greater, |entry| &mut entry.max),
            ..allowed
        };
        if !sides.min && !sides.max {
            return;
        }
        for (at, (name, value)) in doc.iter().enumerate() {
            if kind == Kind::Object {
                children.fields.slot(name).visit(value, sides);
                continue;
            }
            if at == children.items.len() {
                children.items.push(SummaryNode::default());
            }
            if let Some(item) = children.items.get_mut(at) {
                item.visit(value, sides);
            }
        }
    }

    fn write(&self, name: &str, side: fn(&SummaryNode) -> &Extreme, writer: &mut DocWriter) {
        let children = self.children.as_deref();
        match side(self) {
            Extreme::Unset => {}
            Extreme::Scalar(tagged) => {
                writer.value(name, Value::tagged_checked(tagged));
            }
            Extreme::Object => {
                writer.begin_doc(name);
                if let Some(children) = children {
                    children.fields.iter().for_each(|(name, entry)| entry.write(name, side, writer));
                }
                writer.end();
            }
            Extreme::Array => {
                writer.begin_array(name);
                // Unset positions come only after all positions that this tree has seen.
                let items = children.map_or(&[][..], |children| &children.items);
                items.iter().enumerate().for_each(|(at, entry)| entry.write(&at.to_string(), side, writer));
                writer.end();
            }
        }
    }
}

impl Children {
    /// Makes `mine` a container of `kind` if it is one already or gives way to one; whatever was below that tree before
    /// is dropped. Returns true if the value takes part in this tree.
    fn open(
        &mut self,
        kind: Kind,
        mine: &mut Extreme,
        wanted: Ordering,
        side: fn(&mut SummaryNode) -> &mut Extreme,
    ) -> bool {
        let container = if kind == Kind::Object { Extreme::Object } else { Extreme::Array };
        if std::mem::discriminant(mine) == std::mem::discriminant(&container) {
            return true;
        }
        if !mine.yields_to(kind, wanted) {
            return false;
        }
        *mine = container;
        if kind == Kind::Object {
            self.fields.values_mut().for_each(|entry| *side(entry) = Extreme::Unset);
        } else {
            self.items.iter_mut().for_each(|entry| *side(entry) = Extreme::Unset);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_docs, as_dictionaries, pivot, view};
    use super::*;
    use crate::value::{OwnedValue, compare};
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn summary_of(docs: &[RawDocumentBuf]) -> MinMax {
        let mut summary = MinMax::default();
        docs.iter().flat_map(|doc| view(doc).iter()).for_each(|(name, value)| summary.update(name, value));
        summary
    }

    fn assert_summary(docs: &[RawDocumentBuf], min: RawDocumentBuf, max: RawDocumentBuf) {
        let summary = summary_of(docs);
        assert_eq!(summary.min_doc().view(), view(&min));
        assert_eq!(summary.max_doc().view(), view(&max));
        assert_round_trip(&summary);
    }

    fn assert_round_trip(summary: &MinMax) {
        let (min, max) = (summary.min_doc(), summary.max_doc());
        if !min.view().is_empty() {
            let again = MinMax::from_control(min.view(), max.view(), &Collation::default()).unwrap();
            assert_eq!((again.min_doc(), again.max_doc()), (min, max));
        }
    }

    #[test]
    fn the_two_sides_are_independent() {
        assert_summary(
            &[rawdoc! { "a": 2, "b": 3 }, rawdoc! { "a": 1, "b": 3 }, rawdoc! { "a": 5, "b": 3 }],
            rawdoc! { "a": 1, "b": 3 },
            rawdoc! { "a": 5, "b": 3 },
        );
    }

    #[test]
    fn objects_are_summarised_field_by_field_and_arrays_position_by_position() {
        assert_summary(
            &[rawdoc! { "o": { "a": 1, "b": 9 } }, rawdoc! { "o": { "a": 5, "b": 2 } }],
            rawdoc! { "o": { "a": 1, "b": 2 } },
            rawdoc! { "o": { "a": 5, "b": 9 } },
        );
        assert_summary(
            &[rawdoc! { "l": [1, 5] }, rawdoc! { "l": [3, 2, 7] }],
            rawdoc! { "l": [1, 2, 7] },
            rawdoc! { "l": [3, 5, 7] },
        );
        assert_summary(&[rawdoc! { "o": {}, "l": [] }], rawdoc! { "o": {}, "l": [] }, rawdoc! { "o": {}, "l": [] });
    }

    #[test]
    fn an_object_and_an_array_at_one_path_become_the_minimum_and_the_maximum() {
        assert_summary(
            &[
                rawdoc! { "a": { "z": 1 }, "b": [{ "z": 1 }, { "z": 2 }] },
                rawdoc! { "a": [{ "z": 1 }, { "z": 2 }], "b": { "z": 1 } },
            ],
            rawdoc! { "a": { "z": 1 }, "b": { "z": 1 } },
            rawdoc! { "a": [{ "z": 1 }, { "z": 2 }], "b": [{ "z": 1 }, { "z": 2 }] },
        );
    }

    #[test]
    fn mixed_types_compare_by_type() {
        for (one, two, min, max) in [
            (rawdoc! { "a": 1 }, rawdoc! { "a": {} }, rawdoc! { "a": 1 }, rawdoc! { "a": {} }),
            (rawdoc! { "a": {} }, rawdoc! { "a": 1 }, rawdoc! { "a": 1 }, rawdoc! { "a": {} }),
            (rawdoc! { "a": [] }, rawdoc! { "a": {} }, rawdoc! { "a": {} }, rawdoc! { "a": [] }),
            (rawdoc! { "a": 1 }, rawdoc! { "a": "foo" }, rawdoc! { "a": 1 }, rawdoc! { "a": "foo" }),
            (rawdoc! { "a": true }, rawdoc! { "a": [1] }, rawdoc! { "a": [1] }, rawdoc! { "a": true }),
        ] {
            assert_summary(&[one, two], min, max);
        }
    }

    #[test]
    fn the_fields_of_a_replaced_container_are_forgotten() {
        assert_summary(
            &[
                rawdoc! { "a": { "x": 9 } },
                rawdoc! { "a": 1 },
                rawdoc! { "a": [5] },
                rawdoc! { "a": { "x": 7, "y": 7 } },
            ],
            rawdoc! { "a": 1 },
            rawdoc! { "a": [5] },
        );
        assert_summary(
            &[rawdoc! { "a": [1, 2] }, rawdoc! { "a": { "x": 9 } }, rawdoc! { "a": { "x": 8, "y": 1 } }],
            rawdoc! { "a": { "x": 8, "y": 1 } },
            rawdoc! { "a": [1, 2] },
        );
    }

    #[test]
    fn equal_values_do_not_replace_each_other_and_nan_is_the_minimum() {
        assert_summary(
            &[rawdoc! { "a": 1, "z": 0.0 }, rawdoc! { "a": 1.0, "z": -0.0 }],
            rawdoc! { "a": 1, "z": 0.0 },
            rawdoc! { "a": 1, "z": 0.0 },
        );
        assert_summary(
            &[rawdoc! { "a": -1e300 }, rawdoc! { "a": f64::NAN }, rawdoc! { "a": 3_i64 }],
            rawdoc! { "a": f64::NAN },
            rawdoc! { "a": 3_i64 },
        );
    }

    #[test]
    fn the_seeded_time_comes_first_and_keeps_its_minimum() {
        let mut summary = MinMax::seed_time("t", 60_000, &Collation::default());
        let doc = rawdoc! { "a": 1, "t": bson::DateTime::from_millis(61_000) };
        view(&doc).iter().for_each(|(name, value)| summary.update(name, value));
        let date = bson::DateTime::from_millis;
        assert_eq!(summary.min_doc().view(), view(&rawdoc! { "t": date(60_000), "a": 1 }));
        assert_eq!(summary.max_doc().view(), view(&rawdoc! { "t": date(61_000), "a": 1 }));
    }

    #[test]
    fn an_empty_summary_is_refused() {
        let full = rawdoc! { "a": 1 };
        assert!(MinMax::from_control(Doc::EMPTY, view(&full), &Collation::default()).is_err());
        assert!(MinMax::from_control(view(&full), Doc::EMPTY, &Collation::default()).is_err());
    }

    #[test]
    fn wide_documents_are_summarised_by_name_in_any_order() {
        let doc = |turn: usize| {
            let mut doc = RawDocumentBuf::new();
            for i in 0..200 {
                let name = format!("f{}", (i * 7 + turn) % 200);
                doc.append(bson::raw::CString::try_from(name.as_str()).unwrap(), turn as i32);
            }
            doc
        };
        let summary = summary_of(&[doc(5), doc(0), doc(9)]);
        assert!(summary.min_doc().view().iter().all(|(_, v)| v.as_i32() == Some(0)));
        assert!(summary.max_doc().view().iter().all(|(_, v)| v.as_i32() == Some(9)));
        assert_eq!(summary.max_doc().view().iter().count(), 200);
    }

    /// The order of fields that begin in the same row is that of the block.
    fn by_name(doc: &DocBuf) -> Vec<(String, OwnedValue)> {
        let mut fields: Vec<_> = doc.view().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields
    }

    proptest! {
        #[test]
        fn summaries_of_columns_equal_those_of_their_rows(docs in any_docs(1..25, true), cut in 0_usize..25, skipped in any::<bool>()) {
            let skip = skipped.then_some("b");
            let mut by_row = MinMax::default();
            for (name, value) in docs.iter().flat_map(|doc| doc.view().iter()).filter(|(name, _)| Some(*name) != skip) {
                by_row.update(name, value);
            }
            let block = pivot(&docs);
            let cut = cut.min(docs.len());
            let list: Vec<u32> = (0..docs.len() as u32).collect();
            for block in [block.clone(), as_dictionaries(block)] {
                let mut summary = MinMax::default();
                summary.update_rows(&block, Rows::from(0..cut), skip);
                summary.update_rows(&block, Rows::from(&list[cut..]), skip);
                for (summary, by_row) in [(summary.min_doc(), by_row.min_doc()), (summary.max_doc(), by_row.max_doc())] {
                    prop_assert_eq!(by_name(&summary), by_name(&by_row));
                }
            }
            assert_round_trip(&by_row);
        }

        #[test]
        fn summaries_bound_every_row(docs in any_docs(1..25, false)) {
            let block = pivot(&docs);
            let mut summary = MinMax::default();
            summary.update_rows(&block, Rows::from(0..docs.len()), None);
            let (min, max) = (summary.min_doc(), summary.max_doc());
            for (name, value) in docs.iter().flat_map(|doc| doc.view().iter()) {
                prop_assert_ne!(compare(min.view().get(name).unwrap(), value), Ordering::Greater);
                prop_assert_ne!(compare(max.view().get(name).unwrap(), value), Ordering::Less);
            }
        }
    }
}
