//! A sorted list in parts, so that an insert moves a part of the entries and not all of them. A tree would add three
//! kilobytes to the module.

/// A part with more entries than this is divided.
const PART_LEN_MAX: usize = 512;

/// A sorted list. Callers keep its order: they insert where `place` says.
#[derive(Clone, Debug)]
pub struct SortedParts<T> {
    /// None of them is empty.
    parts: Vec<Vec<T>>,
    len: usize,
}

/// Where an entry is: the number of its part, and its position there. Places become outdated when the list changes.
pub type PartPlace = (usize, usize);

impl<T> Default for SortedParts<T> {
    fn default() -> Self {
        SortedParts { parts: Vec::new(), len: 0 }
    }
}

impl<T> SortedParts<T> {
    /// The place of the first entry that is not before, which may be the end of the list. Entries that are before come
    /// first.
    pub fn place(&self, is_before: &dyn Fn(&T) -> bool) -> PartPlace {
        let part = self.parts.partition_point(|part| part.last().is_some_and(is_before));
        (part, self.parts.get(part).map_or(0, |part| part.partition_point(is_before)))
    }

    /// The entry at a place; `None` at the end.
    pub fn get(&self, (part, at): PartPlace) -> Option<&T> {
        self.parts.get(part)?.get(at)
    }

    /// The entry at a place, to be changed.
    pub fn get_mut(&mut self, (part, at): PartPlace) -> Option<&mut T> {
        self.parts.get_mut(part)?.get_mut(at)
    }

    /// Inserts an entry in front of the one at a place.
    pub fn insert(&mut self, (part, at): PartPlace, entry: T) {
        self.len += 1;
        if let Some(entries) = self.parts.get_mut(part) {
            entries.insert(at, entry);
            if entries.len() > PART_LEN_MAX {
                let rest = entries.split_off(PART_LEN_MAX / 2);
                self.parts.insert(part + 1, rest);
            }
            return;
        }
        // Entries that come in order fill one part after the other.
        match self.parts.last_mut().filter(|last| last.len() < PART_LEN_MAX) {
            Some(last) => last.push(entry),
            None => self.parts.push(vec![entry]),
        }
    }

    /// Removes the entry at a place.
    pub fn remove(&mut self, (part, at): PartPlace) -> Option<T> {
        let entries = self.parts.get_mut(part).filter(|entries| at < entries.len())?;
        let entry = entries.remove(at);
        if entries.is_empty() {
            self.parts.remove(part);
        }
        self.len -= 1;
        Some(entry)
    }

    /// Removes the entries in front of a place, from the last one on, as long as `is_doomed`.
    pub fn remove_before(&mut self, (mut part, mut at): PartPlace, is_doomed: &mut dyn FnMut(&T) -> bool) {
        loop {
            if at == 0 {
                let Some(before) = part.checked_sub(1) else { return };
                (part, at) = (before, self.parts.get(before).map_or(0, Vec::len));
            }
            at -= 1;
            if !self.get((part, at)).is_some_and(&mut *is_doomed) {
                return;
            }
            self.remove((part, at));
        }
    }

    /// Shows the entries from a place on, until `show` returns false.
    pub fn visit(&self, (part, at): PartPlace, show: &mut dyn FnMut(&T) -> bool) {
        let mut from = at;
        for entries in self.parts.get(part..).unwrap_or_default() {
            if !entries.get(from..).unwrap_or_default().iter().all(&mut *show) {
                return;
            }
            from = 0;
        }
    }

    /// The place that is so many entries in front of another one, or the first place.
    pub fn back(&self, (mut part, mut at): PartPlace, mut count: usize) -> PartPlace {
        while at < count
            && let Some(before) = part.checked_sub(1)
        {
            count -= at;
            (part, at) = (before, self.parts.get(before).map_or(0, Vec::len));
        }
        (part, at.saturating_sub(count))
    }

    /// The number of entries in front of a place.
    pub fn rank(&self, (part, at): PartPlace) -> usize {
        self.parts.iter().take(part).map(Vec::len).sum::<usize>() + at
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A step: what to do, and with which number.
    fn steps() -> impl Strategy<Value = Vec<(u8, u16)>> {
        prop::collection::vec((0..20_u8, 0..4000_u16), 1..3000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_list_has_the_entries_of_a_sorted_vector(ascending in 0..3000_u16, steps in steps()) {
            let mut list = SortedParts::default();
            let mut plain = Vec::new();
            for number in 0..ascending {
                list.insert(list.place(&|_| true), number);
                plain.push(number);
            }
            for (step, number) in steps {
                let place = list.place(&|entry| *entry < number);
                let at = plain.partition_point(|entry| *entry < number);
                prop_assert_eq!(list.get(place), plain.get(at));
                match step {
                    0..14 => {
                        list.insert(place, number);
                        plain.insert(at, number);
                    }
                    14..18 => prop_assert_eq!(list.remove(place), (at < plain.len()).then(|| plain.remove(at))),
                    18 => {
                        let width = number % 900;
                        let end = list.place(&|entry| *entry < number + width);
                        let until = plain.partition_point(|entry| *entry < number + width);
                        prop_assert_eq!((list.rank(place), list.rank(end)), (at, until));
                        let back = usize::from(number) / 3;
                        prop_assert_eq!(list.rank(list.back(end, back)), until.saturating_sub(back));
                        let mut found = Vec::new();
                        list.visit(place, &mut |entry| {
                            found.push(*entry);
                            found.len() < 700
                        });
                        prop_assert_eq!(&found[..], &plain[at..(at + 700).min(plain.len())]);
                        if number % 3 == 0 {
                            let mut left = until - at;
                            list.remove_before(end, &mut |_| {
                                let is_doomed = left > 0;
                                left = left.saturating_sub(1);
                                is_doomed
                            });
                            plain.drain(at..until);
                        }
                    }
                    _ => {
                        list.remove_before(list.place(&|_| true), &mut |entry| *entry > 3500);
                        plain.retain(|entry| *entry <= 3500);
                    }
                }
            }
            prop_assert_eq!(list.len(), plain.len());
            prop_assert!(list.parts.iter().all(|part| (1..=PART_LEN_MAX).contains(&part.len())));
            prop_assert_eq!(list.parts.concat(), plain);
        }
    }

    #[test]
    fn entries_in_ascending_order_fill_parts() {
        let mut list = SortedParts::default();
        (0..3 * PART_LEN_MAX).for_each(|number| list.insert(list.place(&|entry| *entry < number), number));
        assert_eq!(list.parts.iter().map(Vec::len).collect::<Vec<_>>(), [PART_LEN_MAX; 3]);
        let first = list.place(&|entry| *entry < 1);
        assert_eq!((list.get(first), list.get((3, 0))), (Some(&1), None));
        assert_eq!(list.remove((2, PART_LEN_MAX)), None);
        list.remove_before((3, 0), &mut |_| true);
        assert_eq!((list.len(), list.parts.len()), (0, 0));
    }
}
