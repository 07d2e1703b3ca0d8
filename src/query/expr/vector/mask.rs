//! A set of rows that is empty most of the time.

use crate::block::Bitmap;

/// A set of rows; `None` if it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mask(Option<Bitmap>);

impl Mask {
    /// The empty set.
    pub const NONE: Mask = Mask(None);

    /// The rows of a bitmap.
    pub fn of(rows: Bitmap) -> Mask {
        Mask(Some(rows).filter(|rows| !rows.none()))
    }

    /// All of `rows` rows.
    pub fn all(rows: usize) -> Mask {
        Mask::of(Bitmap::filled(rows, true))
    }

    /// These rows of `rows`.
    pub fn of_rows(rows: usize, contained: &[usize]) -> Mask {
        if contained.is_empty() {
            return Mask::NONE;
        }
        let mut bitmap = Bitmap::filled(rows, false);
        contained.iter().for_each(|row| bitmap.set(*row, true));
        Mask::of(bitmap)
    }

    /// The rows that a bitmap lacks.
    pub fn outside(rows: &Bitmap) -> Mask {
        let mut outside = rows.clone();
        outside.invert();
        Mask::of(outside)
    }

    /// The rows for which a condition holds.
    pub fn from_fn(rows: usize, holds: impl FnMut(usize) -> bool) -> Mask {
        Mask::of(Bitmap::from_fn(rows, holds))
    }

    /// True for the empty set.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The rows, if there are any.
    pub fn rows(&self) -> Option<&Bitmap> {
        self.0.as_ref()
    }

    /// Its rows, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.as_ref().map(Bitmap::iter).unwrap_or_default()
    }

    /// True if it contains a row.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.0.as_ref().is_some_and(|rows| rows.get(row))
    }

    /// How many rows it contains.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, Bitmap::count)
    }

    /// Adds the rows of another set.
    pub fn add(&mut self, other: &Mask) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (Some(rows), Some(more)) => rows.or(more),
            (None, more) => self.0.clone_from(more),
        }
    }

    /// The rows of both sets.
    pub fn with(mut self, other: &Mask) -> Mask {
        self.add(other);
        self
    }

    /// Removes the rows of another set.
    pub fn remove(&mut self, other: &Mask) {
        if let (Some(rows), Some(less)) = (&mut self.0, &other.0) {
            let mut kept = less.clone();
            kept.invert();
            rows.and(&kept);
            if rows.none() {
                self.0 = None;
            }
        }
    }

    /// The rows of a bitmap that are in this set.
    pub fn within(&self, rows: &Bitmap) -> Mask {
        self.0.as_ref().map_or(Mask::NONE, |mine| {
            let mut both = mine.clone();
            both.and(rows);
            Mask::of(both)
        })
    }

    /// The rows whose entry is in this set, a set of entries.
    pub fn spread(&self, index: &[u32]) -> Mask {
        self.0
            .as_ref()
            .map_or(Mask::NONE, |entries| Mask::of(Bitmap::from_slice(index, |entry| entries.get(*entry as usize))))
    }
}
