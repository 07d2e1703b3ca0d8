//! The flattened shape of a section's objects: the contents of its reference document, in order.

use std::rc::Rc;

use kernels::elements;

use super::items::SectionKind;
use crate::block::{ShapePart, write_object};
use crate::value::{Doc, Elements, Kind};

/// A scalar of the reference: the initial value of its stream.
pub struct Scalar<'a> {
    /// Its type.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// How deep it is nested.
    pub depth: usize,
}

/// The shape of objects.
pub struct SectionShape<'a> {
    /// Whether they are objects or arrays.
    pub root: Kind,
    /// Their parts, in order.
    pub parts: Vec<ShapePart<&'a str>>,
    /// The scalars among the parts.
    pub scalars: Vec<Scalar<'a>>,
}

impl<'a> SectionShape<'a> {
    /// The shape of a reference with at most `parts_max` parts. The reference is checked, so its nesting is bounded.
    ///
    /// Errors: a reference without scalars, or with more parts.
    pub fn new(section: SectionKind, reference: &'a [u8], parts_max: usize) -> Result<SectionShape<'a>, &'static str> {
        let root = if section == SectionKind::Array { Kind::Array } else { Kind::Object };
        let mut shape = SectionShape { root, parts: Vec::new(), scalars: Vec::new() };
        let mut open: Vec<Elements<'a>> = vec![Doc::new_checked(reference).iter()];
        while let Some(elements) = open.last_mut() {
            if shape.parts.len() >= parts_max {
                return Err("a section has too many fields");
            }
            let Some((name, value)) = elements.next() else {
                open.pop();
                // The root itself is not a part.
                if !open.is_empty() {
                    let empty = matches!(shape.parts.last(), Some(ShapePart::Open(..)));
                    shape.parts.push(ShapePart::Close(empty));
                }
                continue;
            };
            let container =
                value.as_container().filter(|_| section != SectionKind::Legacy || value.kind() == Kind::Object);
            if let Some(inner) = container {
                shape.parts.push(ShapePart::Open(value.kind(), name));
                open.push(inner.iter());
            } else {
                shape.parts.push(ShapePart::Scalar(name));
                shape.scalars.push(Scalar { kind: value.kind(), bytes: value.bytes(), depth: open.len() });
            }
        }
        if shape.scalars.is_empty() {
            return Err("the reference of a section has no scalars");
        }
        Ok(shape)
    }

    /// The parts with names of their own.
    pub fn owned_parts(&self) -> Rc<[ShapePart]> {
        let owned = |part: &ShapePart<&str>| match part {
            ShapePart::Scalar(name) => ShapePart::Scalar((*name).into()),
            ShapePart::Open(kind, name) => ShapePart::Open(*kind, (*name).into()),
            ShapePart::Close(empty) => ShapePart::Close(*empty),
        };
        self.parts.iter().map(owned).collect()
    }

    /// Writes an object from its scalars: `next` gives them in order, `None` leaves one out. False if nothing is left
    /// of it.
    pub fn build<'b>(&self, out: &mut Vec<u8>, mut next: impl FnMut() -> Option<(Kind, &'b [u8])>) -> bool {
        write_object(&mut self.parts.iter().cloned(), out, &mut |out, name| {
            if let Some((kind, bytes)) = next() {
                elements::push_named(out, kind.byte(), name.as_bytes(), bytes);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::read::forge::{array, int, object};
    use crate::value::OwnedValue;

    fn shape<'a>(section: SectionKind, reference: &'a OwnedValue) -> Result<SectionShape<'a>, &'static str> {
        SectionShape::new(section, reference.view().bytes(), 100)
    }

    /// The parts of an object that remain when only the scalars selected by `has` are kept.
    fn built(reference: &OwnedValue, has: &[bool]) -> Option<OwnedValue> {
        let shape = shape(SectionKind::Object, reference).unwrap();
        assert_eq!(shape.scalars.len(), has.len());
        let mut scalars = shape.scalars.iter().zip(has);
        let mut out = Vec::new();
        let any = shape
            .build(&mut out, || scalars.next().and_then(|(scalar, has)| has.then_some((scalar.kind, scalar.bytes))));
        any.then(|| OwnedValue::doc(Doc::parse(&out).unwrap()))
    }

    #[test]
    fn objects_have_the_order_of_the_reference_without_missing_fields() {
        let inner = object(&[("x", int(1)), ("y", int(2))]);
        let reference = object(&[("a", inner.clone()), ("b", array(&inner)), ("c", int(3))]);
        assert_eq!(built(&reference, &[true; 5]), Some(reference.clone()));
        let x = object(&[("x", int(1))]);
        assert_eq!(built(&reference, &[true, false, false, false, true]), Some(object(&[("a", x), ("c", int(3))])));
        assert_eq!(built(&reference, &[false; 5]), None);
    }

    #[test]
    fn containers_that_are_empty_in_the_reference_are_always_present() {
        let empty = object(&[]);
        let outer = object(&[("e", array(&empty)), ("x", int(1))]);
        let reference = object(&[("o", outer), ("y", int(2))]);
        let expected = object(&[("o", object(&[("e", array(&empty))]))]);
        assert_eq!(built(&reference, &[false, false]), Some(expected));
    }

    #[test]
    fn arrays_are_scalars_of_legacy_sections_only() {
        let reference = object(&[("a", array(&object(&[("0", int(1)), ("1", int(2))])))]);
        assert_eq!(shape(SectionKind::Object, &reference).unwrap().scalars.len(), 2);
        assert_eq!(shape(SectionKind::Legacy, &reference).unwrap().scalars.len(), 1);
        let empty = object(&[("a", array(&object(&[])))]);
        assert!(shape(SectionKind::Object, &empty).is_err());
        assert_eq!(shape(SectionKind::Legacy, &empty).unwrap().scalars[0].kind, Kind::Array);
    }

    #[test]
    fn a_shape_without_scalars_or_with_too_many_parts_is_refused() {
        assert!(shape(SectionKind::Object, &object(&[("a", object(&[("b", object(&[]))]))])).is_err());
        let names: Vec<String> = (0..101).map(|i| i.to_string()).collect();
        let fields: Vec<_> = names.iter().map(|name| (name.as_str(), int(0))).collect();
        assert!(shape(SectionKind::Object, &object(&fields[..99])).is_ok());
        assert!(shape(SectionKind::Object, &object(&fields)).is_err());
    }
}
