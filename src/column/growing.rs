//! Objects that come row by row, as columns of their scalars: what a stored column of objects reads as, without its
//! bytes.

use std::rc::Rc;

use super::read::{SectionKind, SectionShape};
use super::write::reference::{has_empty, has_scalar, merge, walk};
use crate::block::{Column, ColumnBuilder, Objects, ShapePart, push_header, write_object};
use crate::listed::IntoList;
use crate::value::{Doc, DocBuf, Kind, Value};

/// Fields that objects of different shapes may have together: each takes a cell in every row.
const PARTS_MAX: usize = 64;

/// A reference that also the object follows; `None` if there is none, or if it has many fields. That is judged each time,
/// because to merge ever more fields takes long.
fn widened(reference: Doc<'_>, object: Doc<'_>) -> Option<DocBuf> {
    let wider = merge(reference, object)?;
    shape_of(wider.view())?;
    Some(wider)
}

fn shape_of(reference: Doc<'_>) -> Option<SectionShape<'_>> {
    SectionShape::new(SectionKind::Object, reference.as_bytes(), PARTS_MAX).ok()
}

/// The scalars of objects by their places in one shape.
type AlignedScalars = Vec<Option<Column>>;

/// A shape that all of these objects follow, and the scalars of each by their places in it. `None` if there is none, or
/// if they would have many fields together.
pub fn aligned(all: &[Objects]) -> Option<(Rc<[ShapePart]>, Vec<AlignedScalars>)> {
    let mut shape = Rc::clone(all.first()?.parts());
    let (mut common, mut references, mut is_wider) = (None::<DocBuf>, Vec::new(), false);
    for objects in all {
        let mut reference = Vec::new();
        let mut parts = objects.parts().iter().map(ShapePart::borrowed);
        write_object(&mut parts, &mut reference, &mut |out, name| push_header(out, Kind::Null, name));
        let reference = DocBuf::parse(reference).ok()?;
        let common = common.get_or_insert_with(|| reference.clone());
        if !walk(common.view(), reference.view(), &mut |_| {}) {
            *common = widened(common.view(), reference.view())?;
            is_wider = true;
        }
        references.push(reference);
    }
    let common = common.as_ref()?.view();
    if is_wider {
        shape = shape_of(common)?.owned_parts();
    }
    let mut aligned = Vec::new();
    for (objects, reference) in all.iter().zip(&references) {
        let (mut scalars, mut places) = (objects.scalars().iter(), Vec::new());
        let mut place = |scalar: Option<Value<'_>>| places.push(scalar.and_then(|_| scalars.next().cloned()));
        if !walk(common, reference.view(), &mut place) {
            return None;
        }
        aligned.push(places);
    }
    Some((shape, aligned))
}

/// The objects of the first rows of a column. All have the shape of one reference, or lack some of its fields.
#[derive(Default)]
pub struct GrowingObjects {
    reference: Option<DocBuf>,
    /// One for each scalar of the reference.
    scalars: Vec<Column>,
    rows: usize,
}

impl GrowingObjects {
    /// Reads the rows behind those that were read before. `None` if the objects have no common shape, if some cells are
    /// not objects, or if columns of scalars could not tell empty from missing objects.
    pub fn extend(&mut self, column: &Column) -> Option<Objects> {
        // Whatever fails begins anew.
        let GrowingObjects { mut reference, scalars, rows } = std::mem::take(self);
        let mut builders: Vec<ColumnBuilder> = scalars.into_iter().map(ColumnBuilder::resume).collect();
        let mut scratch = Vec::new();
        for row in rows..column.len() {
            let Some(value) = column.value(row, &mut scratch) else {
                builders.iter_mut().for_each(|builder| builder.push_absent(1));
                continue;
            };
            let object = value.as_doc().filter(|object| has_scalar(*object))?;
            if let Some(reference) = &reference
                && push(reference.view(), object, &mut builders)
            {
                continue;
            }
            let wider = match &reference {
                Some(reference) => widened(reference.view(), object)?,
                None => object.to_owned(),
            };
            let known = reference.as_ref().unwrap_or(&wider).view();
            builders = spread(builders, known, wider.view(), (row, column.len()));
            push(wider.view(), object, &mut builders);
            reference = Some(wider);
        }
        let known = reference?;
        if column.presence().is_some() && has_empty(known.view()) {
            return None;
        }
        let parts = shape_of(known.view())?.owned_parts();
        let scalars = builders.into_iter().map(ColumnBuilder::finish).listed();
        *self = GrowingObjects { reference: Some(known), scalars: scalars.clone(), rows: column.len() };
        Some(Objects::new(parts, scalars))
    }
}

/// Appends the scalars of an object. False if it does not follow the reference; then some are appended.
fn push(reference: Doc<'_>, object: Doc<'_>, builders: &mut [ColumnBuilder]) -> bool {
    let mut builders = builders.iter_mut();
    walk(reference, object, &mut |value| match (builders.next(), value) {
        (Some(builder), Some(value)) => builder.push(value),
        (Some(builder), None) => builder.push_absent(1),
        (None, _) => {}
    })
}

/// The builders of the scalars of a `wider` reference: those of the scalars that `known` has as well, with so many `rows`, and
/// others in which all rows are absent.
fn spread(
    builders: Vec<ColumnBuilder>,
    known: Doc<'_>,
    wider: Doc<'_>,
    (rows, capacity): (usize, usize),
) -> Vec<ColumnBuilder> {
    let (mut builders, mut spread) = (builders.into_iter(), Vec::new());
    walk(wider, known, &mut |scalar| {
        let absent = || {
            let mut builder = ColumnBuilder::with_capacity(capacity);
            builder.push_absent(rows);
            builder
        };
        spread.push(match scalar.and_then(|_| builders.next()) {
            // It has a cell of an object that did not follow.
            Some(builder) if builder.len() > rows => ColumnBuilder::resume(builder.finish().slice(0..rows)),
            Some(builder) => builder,
            None => absent(),
        });
    });
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::block::samples::row_with_object;
    use crate::value::OwnedValue;
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn column(docs: &[RawDocumentBuf]) -> Column {
        let block = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
        block.column("o").cloned().unwrap_or_else(|| {
            let mut none = ColumnBuilder::new();
            none.push_absent(docs.len());
            none.finish()
        })
    }

    fn cells(column: &Column) -> Vec<Option<OwnedValue>> {
        let mut scratch = Vec::new();
        (0..column.len()).map(|row| column.value(row, &mut scratch).map(|value| value.to_owned())).collect()
    }

    /// True if the objects became columns, after each of these numbers of rows; they are compared with the given ones.
    fn grown(docs: &[RawDocumentBuf], steps: &[usize]) -> bool {
        let mut objects = GrowingObjects::default();
        steps.iter().all(|rows| {
            let expected = column(&docs[..*rows]);
            let found = objects.extend(&expected).map(Column::of_objects);
            found.inspect(|found| assert_eq!(cells(found), cells(&expected), "{rows} rows")).is_some()
        })
    }

    #[test]
    fn objects_that_gain_fields_while_they_grow_are_the_same_objects() {
        let doc = |n: i32| match n % 11 {
            0 => rawdoc! { "n": n },
            _ if n > 50 && n % 3 == 0 => rawdoc! { "o": { "x": n, "in": { "y": [n, "a"] }, "late": n } },
            1 => rawdoc! { "o": { "in": { "y": ["b"], "z": f64::from(n) } } },
            2 => rawdoc! { "o": { "x": "text", "in": { "y": [n] } } },
            _ => rawdoc! { "o": { "x": n, "in": { "y": [n, 1], "z": n } } },
        };
        let docs: Vec<_> = (0..100).map(doc).collect();
        assert!(grown(&docs, &[5, 5, 30, 31, 60, 100]));
    }

    #[test]
    fn objects_without_a_common_shape_stay_objects() {
        let a = || rawdoc! { "o": { "a": 1, "b": 2 } };
        for other in [
            rawdoc! { "o": { "b": 1, "a": 2 } },
            rawdoc! { "o": {} },
            rawdoc! { "o": { "a": {}, "b": 2 } },
            rawdoc! { "o": { "a": { "x": 1 } } },
            rawdoc! { "o": 5 },
            rawdoc! { "o": [1] },
            rawdoc! { "o": { "a": 1, "a": 2 } },
        ] {
            assert!(!grown(&[a(), other.clone()], &[1, 2]), "{other:?}");
            assert!(!grown(&[other.clone(), a()], &[2]), "{other:?}");
        }
        let empty = || rawdoc! { "o": { "a": 1, "e": {} } };
        assert!(grown(&[empty(), empty()], &[1, 2]));
        assert!(!grown(&[empty(), rawdoc! { "n": 1 }], &[2]));
        assert!(!grown(&[rawdoc! { "n": 1 }], &[1]));
    }

    #[test]
    fn an_object_that_does_not_follow_leaves_no_cell_behind_and_what_failed_begins_anew() {
        let docs = [
            rawdoc! { "o": { "a": 1, "in": { "x": 1 }, "z": 1 } },
            rawdoc! { "n": 1 },
            // What stands in front of the new name, of another type and absent, was taken before that is met.
            rawdoc! { "o": { "a": "text", "in": { "new": 2 }, "z": 2 } },
            rawdoc! { "o": { "in": { "x": 3 }, "last": 3 } },
        ];
        assert!(grown(&docs, &[4]) && grown(&docs, &[1, 2, 3, 4]));
        let mut objects = GrowingObjects::default();
        assert!(objects.extend(&column(&docs[..1])).is_some());
        assert!(objects.extend(&column(&[docs[0].clone(), rawdoc! { "o": 5 }])).is_none());
        let found = objects.extend(&column(&docs)).map(Column::of_objects);
        assert_eq!(found.as_ref().map(cells), Some(cells(&column(&docs))));
    }

    #[test]
    fn objects_with_ever_new_names_stay_objects() {
        let doc = |n: i32| {
            let inner = bson::doc! { format!("k{n}"): n };
            rawdoc! { "o": RawDocumentBuf::try_from(&inner).unwrap() }
        };
        let docs: Vec<_> = (0..200).map(doc).collect();
        assert!(grown(&docs, &[60]));
        assert!(!grown(&docs, &[60, 200]));
    }

    proptest! {
        #[test]
        fn objects_read_in_steps_are_the_same_objects(bits in prop::collection::vec(0_u16..512, 1..60), steps in prop::collection::vec(1_usize..60, 1..5)) {
            let docs: Vec<_> = bits.into_iter().map(row_with_object).collect();
            let mut steps: Vec<_> = steps.into_iter().map(|rows| rows.min(docs.len())).collect();
            steps.sort_unstable();
            grown(&docs, &steps);
        }
    }
}
