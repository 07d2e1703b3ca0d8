//! The shape of a section's objects, flat: what its reference document holds, in order.

use super::items::Section;
use crate::value::{Doc, Elements, Kind};

/// One step through the shape.
pub enum Part<'a> {
    /// A scalar: the next stream's.
    Scalar(&'a str),
    /// An object or array begins.
    Open(Kind, &'a str),
    /// It ends. True where it is empty in the reference: it is then in every object, empty.
    Close(bool),
}

/// A scalar of the reference: what its stream begins behind.
pub struct Scalar<'a> {
    /// Its type.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// How deep it is nested.
    pub depth: usize,
}

/// The shape of objects.
pub struct Shape<'a> {
    /// Whether they are objects or arrays.
    pub root: Kind,
    /// What they hold.
    pub parts: Vec<Part<'a>>,
    /// The scalars among the parts.
    pub scalars: Vec<Scalar<'a>>,
}

impl<'a> Shape<'a> {
    /// The shape of a reference, which is checked, so that it is not nested beyond measure. At most `parts_max` parts.
    ///
    /// Errors: a reference without scalars, or with more parts.
    pub fn new(section: Section, reference: &'a [u8], parts_max: usize) -> Result<Shape<'a>, &'static str> {
        let root = if section == Section::Array { Kind::Array } else { Kind::Object };
        let mut shape = Shape { root, parts: Vec::new(), scalars: Vec::new() };
        let mut open: Vec<Elements<'a>> = vec![Doc::new_checked(reference).iter()];
        while let Some(elements) = open.last_mut() {
            if shape.parts.len() >= parts_max {
                return Err("a section has too many fields");
            }
            let Some((name, value)) = elements.next() else {
                open.pop();
                // The root has no parts of its own.
                if !open.is_empty() {
                    let empty = matches!(shape.parts.last(), Some(Part::Open(..)));
                    shape.parts.push(Part::Close(empty));
                }
                continue;
            };
            let container = value.as_container().filter(|_| section != Section::Legacy || value.kind() == Kind::Object);
            if let Some(inner) = container {
                shape.parts.push(Part::Open(value.kind(), name));
                open.push(inner.iter());
            } else {
                shape.parts.push(Part::Scalar(name));
                shape.scalars.push(Scalar { kind: value.kind(), bytes: value.bytes(), depth: open.len() });
            }
        }
        if shape.scalars.is_empty() {
            return Err("the reference of a section has no scalars");
        }
        Ok(shape)
    }

    /// Writes an object whose scalars `next` gives, in order; `None` leaves one out. False where nothing is left of it.
    pub fn build<'b>(&self, out: &mut Vec<u8>, mut next: impl FnMut() -> Option<(Kind, &'b [u8])>) -> bool {
        let mut open: Vec<(usize, usize)> = Vec::new();
        out.clear();
        out.extend_from_slice(&[0; 4]);
        for part in &self.parts {
            match part {
                Part::Scalar(name) => {
                    if let Some((kind, bytes)) = next() {
                        push_header(out, kind, name);
                        out.extend_from_slice(bytes);
                    }
                }
                Part::Open(kind, name) => {
                    let start = out.len();
                    push_header(out, *kind, name);
                    open.push((start, out.len()));
                    out.extend_from_slice(&[0; 4]);
                }
                Part::Close(empty) => {
                    let (start, body) = open.pop().unwrap_or_default();
                    if out.len() > body + 4 || *empty {
                        close(out, body);
                    } else {
                        out.truncate(start);
                    }
                }
            }
        }
        let any = out.len() > 4;
        close(out, 0);
        any
    }
}

fn push_header(out: &mut Vec<u8>, kind: Kind, name: &str) {
    out.push(kind.byte());
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Ends the document that begins at `body`.
fn close(out: &mut Vec<u8>, body: usize) {
    out.push(0);
    let len = (out.len() - body) as u32;
    if let Some(prefix) = out.get_mut(body..body + 4) {
        prefix.copy_from_slice(&len.to_le_bytes());
    }
}
