//! Named siblings in the tree of a tracker, in first-seen order.

use crate::value::Interner;

/// Above this many siblings a name is looked up by its hash.
const SCANNED_MAX: usize = 12;

/// Siblings by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Siblings<T> {
    entries: Vec<(Box<str>, T)>,
    /// Position of each name, once there are too many to scan.
    places: Option<Interner>,
    /// Where the next name is expected: documents of one shape name their fields in the same order.
    cursor: usize,
}

impl<T: Default> Siblings<T> {
    /// The sibling called `name`; appends a new one if there is none.
    pub(super) fn slot(&mut self, name: &str) -> &mut T {
        let at = self.place(name).unwrap_or_else(|| self.append(name));
        self.cursor = if at + 1 < self.entries.len() { at + 1 } else { 0 };
        // `place` and `append` return existing positions.
        #[allow(clippy::indexing_slicing)]
        &mut self.entries[at].1
    }

    /// The position of the sibling called `name`.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        if self.entries.get(self.cursor).is_some_and(|(n, _)| &**n == name) {
            return Some(self.cursor);
        }
        match &self.places {
            Some(places) => places.get(name.as_bytes()),
            None => self.entries.iter().position(|(n, _)| &**n == name),
        }
    }

    fn append(&mut self, name: &str) -> usize {
        let at = self.entries.len();
        self.entries.push((name.into(), T::default()));
        match &mut self.places {
            Some(places) => {
                places.add(name.as_bytes());
            }
            None if self.entries.len() > SCANNED_MAX => {
                let places = self.places.insert(Interner::default());
                self.entries.iter().for_each(|(name, _)| {
                    places.add(name.as_bytes());
                });
            }
            None => {}
        }
        at
    }

    /// The siblings, in first-seen order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, entry)| (&**name, entry))
    }

    /// The siblings, mutable.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_order_and_keep_first_seen_order() {
        let mut fields = Siblings::<usize>::default();
        let names: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
        for (i, name) in names.iter().enumerate() {
            *fields.slot(name) = i;
        }
        for i in (0..40).rev().chain(0..40) {
            assert_eq!(*fields.slot(&names[i]), i);
        }
        assert_eq!(fields.iter().map(|(name, i)| (name.to_owned(), *i)).collect::<Vec<_>>().len(), 40);
        assert!(fields.iter().zip(&names).all(|((name, _), expected)| name == expected));
    }
}
