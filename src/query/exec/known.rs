//! Numbers distinct values.

use std::cmp::Ordering;

use crate::value::{Collation, Interner, OwnedValue, Value};

/// Numbers values from 0 on, in first-seen order. Values that compare equal have the same number.
#[derive(Default)]
pub struct KnownValues {
    /// Values by their keys, which are equal if the values compare equal by bytes: 1 and 1.0 are one value.
    keys: Interner,
    /// The number of each key, if a collation makes several keys equal; otherwise empty.
    numbers: Vec<usize>,
    values: Vec<OwnedValue>,
    collation: Collation,
    /// Positions in `values`, in collation order.
    order: Vec<usize>,
}

impl KnownValues {
    /// An empty set.
    pub fn new(collation: Collation) -> KnownValues {
        KnownValues { collation, ..KnownValues::default() }
    }

    /// True if values are compared by their bytes alone.
    pub fn is_simple(&self) -> bool {
        self.collation.is_simple()
    }

    /// The number of the value with this key, and whether it is new.
    pub fn add(&mut self, key: &[u8], value: &mut dyn FnMut() -> OwnedValue) -> (usize, bool) {
        let (number, is_new) = self.keys.add(key);
        if !is_new {
            return (self.numbers.get(number).copied().unwrap_or(number), false);
        }
        let value = value();
        let new = self.values.len();
        if !self.collation.is_simple() {
            let place = self.place(value.view());
            let known = place.ok().and_then(|at| self.order.get(at).copied());
            self.numbers.push(known.unwrap_or(new));
            match (place, known) {
                (Err(at), _) => self.order.insert(at, new),
                (_, Some(known)) => return (known, false),
                _ => {}
            }
        }
        self.values.push(value);
        (new, true)
    }

    /// The values, in the order of their numbers.
    pub fn values(&self) -> &[OwnedValue] {
        &self.values
    }

    /// The values, by value.
    pub fn into_values(self) -> Vec<OwnedValue> {
        self.values
    }

    fn place(&self, value: Value<'_>) -> Result<usize, usize> {
        self.order.binary_search_by(|at| {
            self.values.get(*at).map_or(Ordering::Less, |known| self.collation.compare(known.view(), value))
        })
    }
}
