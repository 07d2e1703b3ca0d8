//! Values by number, each once.

use std::cmp::Ordering;

use crate::value::{Collation, Numbers, OwnedValue, Value};

/// Numbers values from 0 in the order in which they are met. Those that compare equal have one number.
#[derive(Default)]
pub struct KnownValues {
    /// By keys that are equal where values compare equal by bytes: 1 and 1.0 are one value.
    keys: Numbers,
    /// The number of each key, where a collation takes several for equal; empty without one.
    numbers: Vec<usize>,
    values: Vec<OwnedValue>,
    collation: Collation,
    /// The places of `values` in the order of the collation.
    order: Vec<usize>,
}

impl KnownValues {
    /// Without values.
    pub fn new(collation: Collation) -> KnownValues {
        KnownValues { collation, ..KnownValues::default() }
    }

    /// The number of the value that has this key, and whether it is new.
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

    /// Takes another value for a known one, which compares equal.
    pub fn replace(&mut self, number: usize, value: OwnedValue) {
        if let Some(known) = self.values.get_mut(number) {
            *known = value;
        }
    }

    /// The values in the order of their numbers.
    pub fn values(&self) -> &[OwnedValue] {
        &self.values
    }

    /// The same, and nothing else.
    pub fn into_values(self) -> Vec<OwnedValue> {
        self.values
    }

    fn place(&self, value: Value<'_>) -> Result<usize, usize> {
        self.order.binary_search_by(|at| {
            self.values.get(*at).map_or(Ordering::Less, |known| self.collation.compare(known.view(), value))
        })
    }
}
