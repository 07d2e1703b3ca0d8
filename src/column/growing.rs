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
        write_object(objects.parts(), &mut reference, &mut |out, name| push_header(out, Kind::Null, name));
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
        shape = shape_of(common)?.parts.into();
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
        let mut scratch = Vec::new();
        let mut is_wider = false;
        for row in self.rows..column.len() {
            let Some(value) = column.value(row, &mut scratch) else { continue };
            let object = value.as_doc().filter(|object| has_scalar(*object))?;
            let reference = self.reference.get_or_insert_with(|| object.to_owned());
            if !walk(reference.view(), object, &mut |_| {}) {
                *reference = widened(reference.view(), object)?;
                is_wider = true;
            }
        }
        let reference = self.reference.as_ref()?.view();
        if column.presence().is_some() && has_empty(reference) {
            return None;
        }
        let shape = shape_of(reference)?;
        if is_wider || self.rows == 0 {
            (self.rows, self.scalars) = (0, Vec::new());
        }
        let known = std::mem::take(&mut self.scalars).into_iter().map(ColumnBuilder::resume);
        let mut builders: Vec<ColumnBuilder> = known.collect();
        builders.resize_with(shape.scalars.len(), || ColumnBuilder::with_capacity(column.len()));
        for row in self.rows..column.len() {
            let object = column.value(row, &mut scratch).and_then(|value| value.as_doc()).unwrap_or(Doc::EMPTY);
            let mut builders = builders.iter_mut();
            walk(reference, object, &mut |value| match (builders.next(), value) {
                (Some(builder), Some(value)) => builder.push(value),
                (Some(builder), None) => builder.push_absent(1),
                (None, _) => {}
            });
        }
        self.rows = column.len();
        self.scalars = builders.into_iter().map(ColumnBuilder::finish).listed();
        Some(Objects::new(shape.parts.into(), self.scalars.clone()))
    }
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
