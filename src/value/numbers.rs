//! Byte strings by number.

use std::collections::HashMap;

/// Numbers byte strings from 0 in the order in which they are added.
///
/// One for names, metadata, values and ids alike: a hash map for each of them would cost kilobytes of code apiece.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    known: HashMap<Box<[u8]>, usize>,
}

impl Numbers {
    /// The number of `key`.
    #[inline(never)]
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        self.known.get(key).copied()
    }

    /// The number of `key`, which is added where it is new; and whether it was new.
    #[inline(never)]
    pub fn add(&mut self, key: &[u8]) -> (usize, bool) {
        if let Some(number) = self.known.get(key) {
            return (*number, false);
        }
        let number = self.known.len();
        self.known.insert(key.into(), number);
        (number, true)
    }

    /// Forgets the keys for whose number `renumber` has none, and gives the others what it answers: 0, 1, 2 and so on, each once.
    #[inline(never)]
    pub fn renumber(&mut self, renumber: &dyn Fn(usize) -> Option<usize>) {
        self.known.retain(|_, number| renumber(*number).map(|new| *number = new).is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_the_number_that_it_got_first() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.add(b"a"), (0, true));
        assert_eq!(numbers.add(b""), (1, true));
        assert_eq!(numbers.add(b"a"), (0, false));
        assert_eq!((numbers.get(b""), numbers.get(b"b")), (Some(1), None));
    }

    #[test]
    fn keys_without_a_new_number_are_forgotten() {
        let mut numbers = Numbers::default();
        assert_eq!([b"a", b"b", b"c"].map(|key| numbers.add(key).0), [0, 1, 2]);
        numbers.renumber(&|number| number.checked_sub(1));
        assert_eq!((numbers.get(b"a"), numbers.get(b"b"), numbers.get(b"c")), (None, Some(0), Some(1)));
        assert_eq!(numbers.add(b"a"), (2, true));
    }
}
