//! The schema of a bucket, one type per path: decides whether a measurement fits those already there.

use super::fields::Siblings;
use super::rows::Rows;
use crate::block::{Block, Column};
use crate::error::{Error, Result};
use crate::value::{Doc, Kind, Value, canonical_class};

/// The types seen at every path. All numbers are one type, and so are strings and symbols; null is a type of its own.
///
/// A failed update may have been absorbed in part; a bucket takes nothing more after it.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    fields: Siblings<SchemaNode>,
    visits: u64,
}

#[derive(Clone, Debug, Default)]
struct SchemaNode {
    shape: NodeShape,
    /// The object in which this field occurred last. A name that occurs twice in one object counts once; otherwise such
    /// a measurement would fit no bucket at all.
    visit: u64,
}

#[derive(Clone, Debug, Default)]
enum NodeShape {
    #[default]
    Unset,
    Object(Siblings<SchemaNode>),
    Array(Vec<SchemaNode>),
    Scalar(i8),
}

impl Schema {
    /// An empty schema, which everything fits.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// The schema of a stored bucket.
    ///
    /// Errors: `DataCorruptionDetected` if a summary is empty or the two differ in the type of a field, which means
    /// that the bucket holds measurements of several types.
    pub fn from_control(min: Doc<'_>, max: Doc<'_>) -> Result<Schema> {
        let mut schema = Schema::new();
        for (side, doc) in [("min", min), ("max", max)] {
            if doc.is_empty() {
                return Err(Error::corrupt(format!("'control.{side}' is empty")));
            }
            if let Some((name, _)) = doc.iter().find(|(name, value)| !schema.update(name, *value)) {
                return Err(Error::corrupt(format!("Field '{name}' has several types in 'control'")));
            }
        }
        Ok(schema)
    }

    /// True if a field called `name` has occurred.
    pub fn knows(&self, name: &str) -> bool {
        self.fields.place(name).is_some()
    }

    /// Makes a field known without a type, because the bucket has a column for it.
    pub fn know(&mut self, name: &str) {
        self.fields.slot(name);
    }

    /// Takes in one field of a measurement. False if it does not fit.
    #[must_use]
    pub fn update(&mut self, name: &str, value: Value<'_>) -> bool {
        self.fields.slot(name).absorb(value, &mut self.visits)
    }

    /// Takes in a field of the scalar type `kind`. False if it does not fit.
    #[must_use]
    pub fn update_kind(&mut self, name: &str, kind: Kind) -> bool {
        self.fields.slot(name).absorb_scalar(kind)
    }

    /// Takes in the leading `rows` of `block` that fit and returns how many they are. Ignores the column called `skip`.
    ///
    /// If that is not all of them, the next row does not fit, and this schema must not be used any more.
    #[must_use]
    pub fn fits_run(&mut self, block: &Block, rows: Rows<'_>, skip: Option<&str>) -> usize {
        let mut fitting = rows;
        for (name, column) in block.columns() {
            if Some(&**name) != skip {
                fitting = fitting.first(self.fits_column(name, column, fitting));
            }
        }
        fitting.len()
    }

    fn fits_column(&mut self, name: &str, column: &Column, rows: Rows<'_>) -> usize {
        let Some(first) = rows.iter().position(|row| column.is_present(row)) else { return rows.len() };
        let node = self.fields.slot(name);
        if let Some(kind) = column.kind() {
            return if node.absorb_scalar(kind) { rows.len() } else { first };
        }
        let mut scratch = Vec::new();
        let misfit = rows.iter().position(|row| match column.value(row, &mut scratch) {
            Some(value) => !node.absorb(value, &mut self.visits),
            None => false,
        });
        misfit.unwrap_or(rows.len())
    }
}

impl SchemaNode {
    fn absorb(&mut self, value: Value<'_>, visits: &mut u64) -> bool {
        if let Some(doc) = value.as_doc() {
            if matches!(self.shape, NodeShape::Unset) {
                self.shape = NodeShape::Object(Siblings::default());
            }
            let NodeShape::Object(fields) = &mut self.shape else { return false };
            *visits += 1;
            let visit = *visits;
            return doc.iter().all(|(name, value)| {
                let node = fields.slot(name);
                let again = std::mem::replace(&mut node.visit, visit) == visit;
                again || node.absorb(value, visits)
            });
        }
        if let Some(array) = value.as_array() {
            if matches!(self.shape, NodeShape::Unset) {
                self.shape = NodeShape::Array(Vec::new());
            }
            let NodeShape::Array(items) = &mut self.shape else { return false };
            return array.iter().enumerate().all(|(at, (_, value))| {
                if at == items.len() {
                    items.push(SchemaNode::default());
                }
                items.get_mut(at).is_some_and(|item| item.absorb(value, visits))
            });
        }
        self.absorb_scalar(value.kind())
    }

    fn absorb_scalar(&mut self, kind: Kind) -> bool {
        let class = canonical_class(kind);
        match self.shape {
            NodeShape::Unset => {
                self.shape = NodeShape::Scalar(class);
                true
            }
            NodeShape::Scalar(mine) => mine == class,
            NodeShape::Object(_) | NodeShape::Array(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use bson::{RawDocumentBuf, rawdoc};

    fn view(doc: &RawDocumentBuf) -> Doc<'_> {
        Doc::parse(doc.as_bytes()).unwrap()
    }

    fn fits(schema: &mut Schema, doc: &RawDocumentBuf) -> bool {
        view(doc).iter().all(|(name, value)| schema.update(name, value))
    }

    /// Fills buckets with `groups`, first one document after another, then as runs of one block: a new bucket must be
    /// opened at the start of each group and nowhere else.
    fn assert_groups(groups: &[Vec<RawDocumentBuf>]) {
        let mut schema = Schema::new();
        for (at, group) in groups.iter().enumerate() {
            for (i, doc) in group.iter().enumerate() {
                if at > 0 && i == 0 {
                    assert!(!fits(&mut schema, doc), "{doc:?} should open a bucket");
                    schema = Schema::new();
                }
                assert!(fits(&mut schema, doc), "{doc:?} should fit");
            }
        }
        let block = pivot_docs(groups.iter().flatten().map(view)).unwrap();
        let mut rows: Vec<u32> = (0..block.rows() as u32).collect();
        let (mut by_list, mut by_span) = (Vec::new(), Vec::new());
        let mut start = 0;
        while !rows.is_empty() {
            by_span.push(Schema::new().fits_run(&block, Rows::from(start..block.rows()), None));
            by_list.push(Schema::new().fits_run(&block, Rows::from(&rows[..]), None));
            start += by_span.last().unwrap();
            rows.drain(..by_list.last().unwrap());
        }
        let expected: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!((by_list, by_span), (expected.clone(), expected));
    }

    #[test]
    fn a_field_that_changes_its_type_opens_a_bucket() {
        assert_groups(&[
            vec![rawdoc! { "a": 1 }],
            vec![rawdoc! { "a": true }],
            vec![rawdoc! { "a": {} }, rawdoc! { "a": { "b": 1 } }],
            vec![rawdoc! { "a": { "b": true } }],
        ]);
        assert_groups(&[
            vec![rawdoc! { "a": 1 }],
            vec![rawdoc! { "a": true }],
            vec![rawdoc! { "a": {} }, rawdoc! { "a": { "b": true } }],
            vec![rawdoc! { "a": { "b": 1 } }],
        ]);
    }

    #[test]
    fn new_names_fit_at_every_level() {
        let five = ["b", "c", "d", "e", "f"].map(|name| {
            let mut inner = RawDocumentBuf::new();
            inner.append(bson::raw::CString::try_from(name).unwrap(), true);
            rawdoc! { "a": inner }
        });
        assert_groups(&[five.to_vec(), vec![rawdoc! { "a": { "d": 1.0 } }]]);
        assert_groups(&[five.into_iter().chain([rawdoc! { "b": 1.0 }]).collect()]);
    }

    #[test]
    fn each_field_keeps_its_own_type() {
        assert_groups(&[
            vec![rawdoc! { "b": 1.0 }, rawdoc! { "c": {} }],
            vec![rawdoc! { "a": 1.0, "b": 2.0, "c": 3.0 }],
        ]);
    }

    #[test]
    fn the_order_of_fields_does_not_matter_and_arrays_may_grow() {
        assert_groups(&[
            vec![
                rawdoc! { "a": 1, "b": 2, "c": 3.5 },
                rawdoc! { "c": 1_i64, "b": 2, "a": 3 },
                rawdoc! { "b": 1, "a": 2, "c": 3 },
            ],
            vec![rawdoc! { "a": { "b": [1.0, 2.0] } }],
            vec![rawdoc! { "a": { "b": [true, false] } }, rawdoc! { "a": { "b": [false, true, false, true] } }],
        ]);
    }

    #[test]
    fn objects_in_arrays_are_compared_position_by_position() {
        assert_groups(&[
            vec![
                rawdoc! { "a": { "b": [{ "a": true }, { "b": false }] } },
                rawdoc! { "a": { "b": [{ "b": true }, { "a": false }] } },
            ],
            vec![
                rawdoc! { "a": { "b": [{ "a": 1.0 }, { "b": 2.0 }] } },
                rawdoc! { "a": { "b": [{}, {}, true, false] } },
            ],
        ]);
    }

    #[test]
    fn scalars_objects_and_arrays_do_not_mix() {
        let undefined = bson::RawBson::Undefined;
        let values: [bson::RawBson; 3] = [1.into(), rawdoc! { "b": 1 }.into(), bson::rawbson!([1])];
        for (at, first) in values.iter().enumerate() {
            for (i, second) in values.iter().chain([&undefined]).enumerate() {
                let mut schema = Schema::new();
                assert!(fits(&mut schema, &rawdoc! { "a": first.clone() }));
                assert!(fits(&mut schema, &rawdoc! { "b": 2 }));
                assert!(fits(&mut schema, &rawdoc! { "a": first.clone(), "c": 1 }));
                assert_eq!(fits(&mut schema, &rawdoc! { "a": second.clone() }), at == i, "{first:?} {second:?}");
            }
        }
    }

    #[test]
    fn null_is_a_type_and_a_missing_value_is_not() {
        assert_groups(&[vec![rawdoc! { "a": null }, rawdoc! {}], vec![rawdoc! { "a": 1 }, rawdoc! {}]]);
    }

    #[test]
    fn numbers_are_one_type_and_strings_and_symbols_too() {
        let decimal = bson::Decimal128::from_bytes([0; 16]);
        assert_groups(&[
            vec![rawdoc! { "a": 1 }, rawdoc! { "a": 1_i64 }, rawdoc! { "a": 1.5 }, rawdoc! { "a": decimal }],
            vec![rawdoc! { "a": "x" }, rawdoc! { "a": bson::RawBson::Symbol("x".into()) }],
        ]);
    }

    #[test]
    fn a_schema_from_a_stored_bucket_refuses_other_types() {
        let schema = |min: RawDocumentBuf, max: RawDocumentBuf| Schema::from_control(view(&min), view(&max)).unwrap();
        let refuses = |schema: &Schema, doc: RawDocumentBuf| !fits(&mut schema.clone(), &doc);
        let numbers = schema(rawdoc! { "a": 1 }, rawdoc! { "a": 2 });
        assert!(
            [rawdoc! { "a": {} }, rawdoc! { "a": [] }, rawdoc! { "a": "1" }].map(|d| refuses(&numbers, d)) == [true; 3]
        );
        assert!(!refuses(&numbers, rawdoc! { "a": 3.5 }));
        let strings = schema(rawdoc! { "a": "a" }, rawdoc! { "a": "aa" });
        assert!(refuses(&strings, rawdoc! { "a": 123 }));
        let nested = schema(rawdoc! { "a": { "b": 1 } }, rawdoc! { "a": { "b": 2 } });
        for doc in [rawdoc! { "a": [] }, rawdoc! { "a": { "b": "abc" } }, rawdoc! { "a": { "b": [] } }] {
            assert!(refuses(&nested, doc));
        }
    }

    #[test]
    fn a_bucket_of_mixed_types_or_without_a_summary_has_no_schema() {
        for (min, max) in [
            (rawdoc! { "a": 1 }, rawdoc! { "a": {} }),
            (rawdoc! { "a": {} }, rawdoc! { "a": 1 }),
            (rawdoc! { "a": [] }, rawdoc! { "a": {} }),
            (rawdoc! { "a": 1 }, rawdoc! { "a": "foo" }),
            (rawdoc! {}, rawdoc! { "a": 1 }),
            (rawdoc! { "a": 1 }, rawdoc! {}),
        ] {
            assert!(Schema::from_control(view(&min), view(&max)).is_err(), "{min:?} {max:?}");
        }
    }

    #[test]
    fn a_measurement_with_a_duplicate_nested_name_fits_an_empty_bucket() {
        let mut inner = crate::value::DocWriter::new();
        inner.int32("b", 1).string("b", "x");
        let inner = inner.finish();
        let mut schema = Schema::new();
        assert!(schema.update("a", inner.view().as_value()));
        assert!(schema.update("a", inner.view().as_value()));
        assert!(!fits(&mut schema, &rawdoc! { "a": { "b": "x" } }));
    }

    #[test]
    fn the_skipped_column_is_ignored() {
        let docs = [rawdoc! { "m": 1, "a": 1 }, rawdoc! { "m": "x", "a": 2 }];
        let block = pivot_docs(docs.iter().map(view)).unwrap();
        assert_eq!(Schema::new().fits_run(&block, Rows::from(0..2), Some("m")), 2);
        assert_eq!(Schema::new().fits_run(&block, Rows::from(0..2), None), 1);
    }
}
