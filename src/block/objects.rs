//! Objects of one shape, with a column for each of their scalars: a path into them is a column of its own.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use kernels::elements;

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData};
use crate::listed::IntoList;
use crate::value::Kind;

/// One step through the shape of an object, with names that it owns or borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapePart<N = Box<str>> {
    /// A scalar.
    Scalar(N),
    /// An object or array begins.
    Open(Kind, N),
    /// The object or array ends. True if it is present even if nothing is in it.
    Close(bool),
}

impl ShapePart {
    /// The same with a borrowed name.
    pub fn borrowed(&self) -> ShapePart<&str> {
        match self {
            ShapePart::Scalar(name) => ShapePart::Scalar(name),
            ShapePart::Open(kind, name) => ShapePart::Open(*kind, name),
            ShapePart::Close(empty) => ShapePart::Close(*empty),
        }
    }
}

/// Objects whose scalars are columns. A scalar that an object does not have is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    parts: Rc<[ShapePart]>,
    /// One for each scalar of the shape, of equal length.
    scalars: Vec<Column>,
}

/// A field of a shape.
struct Found<'p> {
    /// Where it begins and ends.
    at: usize,
    end: usize,
    /// The numbers of its scalars.
    numbers: Range<usize>,
    /// What is left of the path, if the field is no object.
    rest: &'p [&'p str],
}

impl Objects {
    /// Objects of a shape, whose scalars are columns of equal length.
    pub fn new(parts: Rc<[ShapePart]>, scalars: Vec<Column>) -> Objects {
        Objects { parts, scalars }
    }

    /// The number of objects.
    pub fn rows(&self) -> usize {
        self.scalars.first().map_or(0, Column::len)
    }

    /// The shape.
    pub fn parts(&self) -> &Rc<[ShapePart]> {
        &self.parts
    }

    /// The scalars, in the order of the shape.
    pub fn scalars(&self) -> &[Column] {
        &self.scalars
    }

    /// Writes the object of a row. False if nothing is in it.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let mut scalars = self.scalars.iter();
        let mut scratch = Vec::new();
        write_object(&mut self.parts.iter().map(ShapePart::borrowed), out, &mut |out, name| {
            if let Some(value) = scalars.next().and_then(|scalar| scalar.value(row, &mut scratch)) {
                elements::push_named(out, value.kind().byte(), name.as_bytes(), value.bytes());
            }
        })
    }

    /// What a path reaches in all objects: the inner `None` if no object has it, the outer one if it is not a column,
    /// because it leads into an array, or to one, or to an object that may be empty, or because names are not unique.
    // Loaded later.
    #[inline(never)]
    pub fn reach(&self, path: &[&str]) -> Option<Option<Cow<'_, Column>>> {
        let Some(Found { at, end, numbers, rest }) = self.find(path)? else { return Some(None) };
        match self.parts.get(at)? {
            ShapePart::Open(Kind::Object, _) => Some(Some(Cow::Owned(self.inner(at..end + 1, numbers)?))),
            ShapePart::Scalar(_) => {
                let column = self.scalars.get(numbers.start)?;
                // Nothing lies below most scalars, but a literal may be an object.
                let is_below = !rest.is_empty();
                match column.kind() {
                    None | Some(Kind::Object | Kind::Array) if is_below => None,
                    _ if is_below => Some(None),
                    _ => Some(Some(Cow::Borrowed(column))),
                }
            }
            _ => None,
        }
    }

    /// The field that a path leads to. The inner `None` if no object has it, the outer one if names are not unique.
    fn find<'p>(&self, mut path: &'p [&'p str]) -> Option<Option<Found<'p>>> {
        let mut level = 0..self.parts.len();
        let mut scalar = 0;
        loop {
            let (name, rest) = path.split_first()?;
            let (mut found, mut at, mut number) = (None, level.start, scalar);
            while at < level.end {
                let (own, end, behind) = self.field_at(at, number)?;
                if *own == **name && found.replace(Found { at, end, numbers: number..behind, rest }).is_some() {
                    return None;
                }
                (at, number) = (end + 1, behind);
            }
            match &found {
                Some(Found { at, end, numbers, rest: below @ [_, ..] })
                    if matches!(self.parts.get(*at), Some(ShapePart::Open(Kind::Object, _))) =>
                {
                    (level, scalar, path) = (at + 1..*end, numbers.start, below);
                }
                _ => return Some(found),
            }
        }
    }

    /// The scalars of the array to which a path leads in all objects, of which none may be empty. `None` if it leads elsewhere, or if more
    /// than scalars are in the arrays.
    pub(super) fn items(&self, path: &[&str]) -> Option<&[Column]> {
        let Found { at, end, numbers, rest } = self.find(path)??;
        let [ShapePart::Open(Kind::Array, _), items @ .., ShapePart::Close(false)] = self.parts.get(at..=end)? else {
            return None;
        };
        let scalars = self.scalars.get(numbers).filter(|scalars| !scalars.is_empty() && rest.is_empty())?;
        let mut items = items.iter().enumerate();
        let are_numbered = items.all(|(at, part)| matches!(part, ShapePart::Scalar(name) if name.parse() == Ok(at)));
        are_numbered.then_some(scalars)
    }

    /// The objects with each number in the arrays to which a path leads in all objects, of which none may be empty, neither an array nor
    /// an object in it. `None` if it leads elsewhere, or if others than objects are in the arrays.
    pub(super) fn object_items(&self, path: &[&str]) -> Option<Vec<Column>> {
        let Found { at, end, numbers, rest } = self.find(path)??;
        let (Some(ShapePart::Open(Kind::Array, _)), Some(ShapePart::Close(false))) =
            (self.parts.get(at), self.parts.get(end))
        else {
            return None;
        };
        let (mut items, mut at, mut number) = (Vec::new(), at + 1, numbers.start);
        while at < end {
            let (name, last, behind) = self.field_at(at, number)?;
            if name.parse() != Ok(items.len()) {
                return None;
            }
            items.push(self.inner(at..last + 1, number..behind)?);
            (at, number) = (last + 1, behind);
        }
        Some(items).filter(|items| !items.is_empty() && rest.is_empty())
    }

    /// Objects with an element in the place of the array to which a path leads, for each element, and where those of each object end.
    /// Objects without an array are left out. `None` as for `arrays`.
    // Loaded later.
    #[inline(never)]
    pub fn unwound(&self, path: &[&str]) -> Option<(Column, Vec<u32>)> {
        let (list, _) = self.arrays(path)?;
        let Found { at, end, numbers, .. } = self.find(path)??;
        let Some(ShapePart::Open(_, name)) = self.parts.get(at) else { return None };
        let rows = (0..self.rows()).flat_map(|row| std::iter::repeat_n(row as u32, list.range(row).len())).listed();
        let mut parts = self.parts.get(..at)?.to_vec();
        let mut scalars = self.scalars.get(..numbers.start)?.iter().map(|scalar| scalar.gather(&rows)).listed();
        match list.values.data() {
            ColumnData::Objects(elements) => {
                parts.push(ShapePart::Open(Kind::Object, name.clone()));
                parts.extend_from_slice(&elements.parts);
                parts.push(ShapePart::Close(false));
                scalars.extend_from_slice(&elements.scalars);
            }
            _ => {
                parts.push(ShapePart::Scalar(name.clone()));
                scalars.push(list.values.clone());
            }
        }
        parts.extend_from_slice(self.parts.get(end + 1..)?);
        scalars.extend(self.scalars.get(numbers.end..)?.iter().map(|scalar| scalar.gather(&rows)));
        Some((Column::of_objects(Objects::new(parts.into(), scalars)), list.ends))
    }

    /// The objects that these parts and scalars are inside of these. `None` if one may be empty: its parts alone would not
    /// say where it is absent.
    fn inner(&self, parts: Range<usize>, scalars: Range<usize>) -> Option<Column> {
        match (self.parts.get(parts)?, self.scalars.get(scalars)?) {
            ([ShapePart::Open(Kind::Object, _), parts @ .., ShapePart::Close(false)], scalars @ [_, ..])
                if !has_empty(parts) =>
            {
                Some(Column::of_objects(Objects::new(parts.into(), scalars.to_vec())))
            }
            _ => None,
        }
    }

    /// Their fields as columns. `None` if a field may be an array or an empty object, also inside of another one, which
    /// alone would not say where it is absent, or if names are not unique.
    pub fn fields(&self) -> Option<Vec<(&str, Column)>> {
        let (mut fields, mut at, mut number) = (Vec::<(&str, Column)>::new(), 0, 0);
        while at < self.parts.len() {
            let (name, end, behind) = self.field_at(at, number)?;
            let column = match self.parts.get(at)? {
                ShapePart::Scalar(_) => self.scalars.get(number)?.clone(),
                _ => self.inner(at..end + 1, number..behind)?,
            };
            if fields.iter().any(|(known, _)| *known == name) {
                return None;
            }
            fields.push((name, column));
            (at, number) = (end + 1, behind);
        }
        Some(fields)
    }

    /// The field that begins at a place: its name, the place where it ends, and the number of the first scalar behind it,
    /// if the first one in it has this `number`.
    fn field_at(&self, at: usize, number: usize) -> Option<(&str, usize, usize)> {
        let (ShapePart::Scalar(name) | ShapePart::Open(_, name)) = self.parts.get(at)? else { return None };
        let end = self.end_of(at);
        Some((name, end, number + self.scalars_within(at..end + 1)))
    }

    /// The place at which the container ends that begins at `start`; a scalar ends where it begins.
    fn end_of(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        let ends = |part: &ShapePart| {
            match part {
                ShapePart::Open(..) => depth += 1,
                ShapePart::Close(_) => depth -= 1,
                ShapePart::Scalar(_) => {}
            }
            depth == 0
        };
        let behind = self.parts.get(start..).unwrap_or_default();
        start + behind.iter().position(ends).unwrap_or(behind.len())
    }

    fn scalars_within(&self, range: Range<usize>) -> usize {
        let parts = self.parts.get(range).unwrap_or_default();
        parts.iter().filter(|part| matches!(part, ShapePart::Scalar(_))).count()
    }

    /// The same shape with other scalars, each made of one of these.
    pub fn map(&self, make: impl FnMut(&Column) -> Column) -> Objects {
        Objects { parts: Rc::clone(&self.parts), scalars: self.scalars.iter().map(make).collect() }
    }
}

impl Column {
    /// Objects of these fields. `None` unless one of the fields is always there: without it, an object may be empty or
    /// absent. `None` as well if a field is an object that is absent in some rows, and would not say so by its parts.
    pub fn of_fields(fields: Vec<(&str, Column)>) -> Option<Column> {
        fields.iter().find(|(_, column)| column.presence().is_none())?;
        Column::of_some_fields(fields)
    }

    /// The same, where objects without any of these fields are absent.
    pub(super) fn of_some_fields(fields: Vec<(&str, Column)>) -> Option<Column> {
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        for (name, column) in fields {
            let ColumnData::Objects(objects) = column.data() else {
                parts.push(ShapePart::Scalar(name.into()));
                scalars.push(column);
                continue;
            };
            if column.presence().is_some() && has_empty(&objects.parts) {
                return None;
            }
            parts.push(ShapePart::Open(Kind::Object, name.into()));
            parts.extend_from_slice(&objects.parts);
            parts.push(ShapePart::Close(false));
            scalars.extend_from_slice(&objects.scalars);
        }
        Some(Column::of_objects(Objects::new(parts.into(), scalars)))
    }

    /// A column of these objects, where those that nothing is in are absent.
    // Loaded later.
    #[inline(never)]
    pub fn of_objects(objects: Objects) -> Column {
        let mut presence = Some(Bitmap::filled(objects.rows(), has_empty(&objects.parts)));
        for scalar in &objects.scalars {
            match scalar.presence().zip(presence.as_mut()) {
                Some((more, present)) => present.or(more),
                // Mostly some scalar is always there.
                None => presence = None,
            }
        }
        Column::new(ColumnData::Objects(Box::new(objects)), presence)
    }
}

/// True if something is in these objects even if they have no scalar.
fn has_empty(parts: &[ShapePart]) -> bool {
    parts.contains(&ShapePart::Close(true))
}

/// Writes an object of a shape; `scalar` writes each scalar with its header, or nothing. False if nothing is in it.
pub fn write_object<'a>(
    parts: &mut dyn Iterator<Item = ShapePart<&'a str>>,
    out: &mut Vec<u8>,
    scalar: &mut dyn FnMut(&mut Vec<u8>, &str),
) -> bool {
    let mut open: Vec<(usize, usize)> = Vec::new();
    out.clear();
    out.extend_from_slice(&[0; 4]);
    for part in parts {
        match part {
            ShapePart::Scalar(name) => scalar(out, name),
            ShapePart::Open(kind, name) => {
                let start = out.len();
                push_header(out, kind, name);
                open.push((start, out.len()));
                out.extend_from_slice(&[0; 4]);
            }
            ShapePart::Close(empty) => {
                let (start, body) = open.pop().unwrap_or_default();
                if out.len() > body + 4 || empty {
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

/// Writes the type and the name of a field.
pub fn push_header(out: &mut Vec<u8>, kind: Kind, name: &str) {
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
