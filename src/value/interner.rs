//! Numbers distinct byte strings.

use kernels::keys::{self, Keys, KeysMut, hash};

use crate::listed::IntoList;

/// Numbers byte strings from 0 on, in the order in which they are added.
///
/// One type serves for names, metadata, values and ids. Keys lie end to end in one buffer, and an open-addressing table
/// of their numbers finds them: no allocation per key, and a tenth of the code of the standard map with its keyed hash.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    bytes: Vec<u8>,
    /// Where each key ends, which is where the next one begins.
    ends: Vec<u32>,
    /// The slots that `kernels::keys` searches. At most half of them are taken. With the hash in its slot, a key is not
    /// read when the table grows.
    table: Vec<u64>,
}

impl Interner {
    /// An empty set with room for about `count` keys.
    pub fn with_capacity(count: usize) -> Interner {
        Interner { table: vec![0; (2 * count).next_power_of_two()], ends: Vec::with_capacity(count), bytes: Vec::new() }
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of `key`.
    #[inline(never)]
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        keys::place(self.keys(), hash(key), key).ok()
    }

    /// The number of `key`, which is added if it is new, and whether it was new.
    #[inline(never)]
    pub fn add(&mut self, key: &[u8]) -> (usize, bool) {
        if 2 * (self.ends.len() + 1) > self.table.len() {
            self.grow();
        }
        let (number, hash) = (self.ends.len(), hash(key));
        match keys::place(self.keys(), hash, key) {
            Ok(known) => return (known, false),
            Err(place) => self.take(place, u64::from(hash) << 32 | (number as u64 + 1)),
        }
        self.bytes.extend_from_slice(key);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        (number, true)
    }

    /// Renumbers the keys by `renumber`, which gives 0, 1, 2 and so on, each once. Keys for which it gives `None` are
    /// dropped.
    #[inline(never)]
    pub fn renumber(&mut self, renumber: &dyn Fn(usize) -> Option<usize>) {
        let mut kept: Vec<(usize, usize)> = (0..self.ends.len()).filter_map(|old| Some((renumber(old)?, old))).listed();
        super::sort_by(&mut kept, Ord::cmp);
        let mut numbers = Interner::default();
        for (_, old) in kept {
            numbers.add(self.key(old));
        }
        *self = numbers;
    }

    /// The key with this number; empty if there is none.
    pub fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The set, for loops over many keys.
    pub fn keys(&self) -> Keys<'_> {
        Keys { bytes: &self.bytes, ends: &self.ends, table: &self.table }
    }

    fn take(&mut self, place: usize, slot: u64) {
        if let Some(free) = self.table.get_mut(place) {
            *free = slot;
        }
    }

    fn grow(&mut self) {
        let mut larger = vec![0; (2 * self.table.len()).max(16)];
        keys::move_keys(&self.table, &mut larger);
        self.table = larger;
    }

    /// Appends what `numbers` has for each cell, up to the first that is no key. If it `adds`, cells become keys, with their own numbers
    /// in `numbers`. Cell `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    pub fn append_numbers(
        &mut self,
        numbers: &mut Vec<u32>,
        adds: bool,
        (offsets, bytes): (&[u32], &[u8]),
        out: &mut Vec<u32>,
    ) {
        let begun = out.len();
        loop {
            let Interner { bytes: known, ends, table } = self;
            let rest = offsets.get(out.len() - begun..).unwrap_or_default();
            keys::append_numbers(KeysMut { bytes: known, ends, table }, numbers, adds, rest, bytes, out);
            if !adds || out.len() - begun + 1 >= offsets.len() {
                return;
            }
            self.grow();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_first_number() {
        let mut numbers = Interner::default();
        assert_eq!(numbers.add(b"a"), (0, true));
        assert_eq!(numbers.add(b""), (1, true));
        assert_eq!(numbers.add(b"a"), (0, false));
        assert_eq!((numbers.get(b""), numbers.get(b"b")), (Some(1), None));
    }

    #[test]
    fn renumbering_forgets_keys_without_a_new_number() {
        let mut numbers = Interner::default();
        assert_eq!([b"a", b"b", b"c"].map(|key| numbers.add(key).0), [0, 1, 2]);
        numbers.renumber(&|number| number.checked_sub(1));
        assert_eq!((numbers.get(b"a"), numbers.get(b"b"), numbers.get(b"c")), (None, Some(0), Some(1)));
        assert_eq!(numbers.add(b"a"), (2, true));
    }

    #[test]
    fn many_keys_of_every_length_are_distinguished() {
        let keys: Vec<Vec<u8>> =
            (0..3000_u32).map(|n| n.to_le_bytes().repeat(1 + n as usize % 5)[n as usize % 4..].to_vec()).collect();
        let mut numbers = Interner::default();
        let mut model: Vec<&[u8]> = Vec::new();
        for key in &keys {
            let known = model.iter().position(|there| there == key);
            assert_eq!(numbers.add(key), (known.unwrap_or(model.len()), known.is_none()));
            if known.is_none() {
                model.push(key);
            }
        }
        for (number, key) in model.iter().enumerate() {
            assert_eq!(numbers.get(key), Some(number));
        }
        let longest =
            (0..numbers.table.len()).map(|at| numbers.table[at..].iter().take_while(|n| **n > 0).count()).max();
        assert!(longest < Some(64), "keys of one shape crowd the table: {longest:?}");
    }
}
