//! Sets of cells: parts (see `parts`) in which order and repetition do not matter.

/// Longer parts are not compared here.
const PART_MAX: usize = 128;

/// The cells of one set in each row.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The place of the first cell.
    pub first: u32,
    /// Where the part of each row ends, counted from there. `None` if all rows have the same one.
    pub ends: Option<&'a [u32]>,
    /// How many cells the part of all rows has.
    pub count: u32,
}

/// What is made of the sets of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// The cells of all sets, in order.
    Union,
    /// The cells of the first set that all others have, in order.
    Intersection,
    /// The cells of the first set that no other one has, as they come.
    Difference,
}

impl Parts<'_> {
    /// The places of the cells of a row; `None` if they are too many.
    #[inline(always)]
    fn places(&self, row: usize) -> Option<std::ops::Range<u32>> {
        let end = |row: usize| self.ends.map_or(Some(self.count), |ends| ends.get(row).copied());
        let start = if self.ends.is_none() || row == 0 { 0 } else { end(row - 1)? };
        let places = self.first + start..self.first + end(row)?;
        (places.len() <= PART_MAX).then_some(places)
    }
}

/// The words at some places.
#[inline(always)]
fn at(words: &[u64], places: std::ops::Range<u32>) -> &[u64] {
    words.get(places.start as usize..places.end as usize).unwrap_or_default()
}

/// The places of the cells of a set that is made in each row, and where those of each row end. `words` are the cells as words that are equal and
/// sort as they do. Of equal cells, the first one is taken. `None` if a set is too long.
#[inline(never)]
pub fn made(make: Make, words: &[u64], all: &[Parts<'_>], rows: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let (mut places, mut ends) = (Vec::new(), Vec::with_capacity(rows));
    // The words at `places` of a row.
    let mut known: Vec<u64> = Vec::new();
    for row in 0..rows {
        let from = places.len();
        known.clear();
        for (number, parts) in all.iter().enumerate() {
            let here = parts.places(row)?;
            if number > 0 && make != Make::Union {
                continue;
            }
            for (word, place) in at(words, here.clone()).iter().zip(here) {
                let mut others = all.iter().skip(1);
                let is_in = |parts: &Parts<'_>| parts.places(row).map(|places| at(words, places).contains(word));
                let is_wanted = match make {
                    Make::Union => true,
                    Make::Intersection => others.try_fold(true, |all, parts| Some(all && is_in(parts)?))?,
                    Make::Difference => others.try_fold(true, |none, parts| Some(none && !is_in(parts)?))?,
                };
                let mut to = known.len();
                if make == Make::Difference {
                    if !is_wanted || known.contains(word) {
                        continue;
                    }
                } else {
                    while to > 0 && known.get(to - 1).is_some_and(|before| before > word) {
                        to -= 1;
                    }
                    if !is_wanted || to > 0 && known.get(to - 1) == Some(word) {
                        continue;
                    }
                }
                known.insert(to, *word);
                places.insert(from + to, place);
            }
        }
        ends.push(places.len() as u32);
    }
    Some((places, ends))
}

/// The rows in which all other sets have each cell of the first one, and if `both`, the first one each cell of the others, as sets (see `bits`).
/// `words` are as in `made`. `None` if a set is too long.
#[inline(never)]
pub fn within(words: &[u64], all: &[Parts<'_>], rows: usize, both: bool) -> Option<Vec<u64>> {
    let (first, others) = all.split_first()?;
    let mut found = vec![0_u64; rows.div_ceil(64)];
    for row in 0..rows {
        let first = at(words, first.places(row)?);
        let mut is_within = true;
        for other in others {
            let other = at(words, other.places(row)?);
            is_within &= first.iter().all(|word| other.contains(word));
            is_within &= !both || other.iter().all(|word| first.contains(word));
        }
        if let Some(word) = found.get_mut(row / 64) {
            *word |= u64::from(is_within) << (row % 64);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(
            sets in prop::collection::vec(prop::collection::vec(prop::collection::vec(0..6_u64, 0..5), 3), 1..4),
            same in prop::collection::vec(0..6_u64, 0..5),
            of_same in 0..4_usize,
        ) {
            // The set number `of_same` is the same in all rows.
            let (mut words, mut ends) = (Vec::new(), Vec::new());
            let set = |number: usize, row: usize| if number == of_same { &same } else { &sets[number][row] };
            for number in 0..sets.len() {
                let first = words.len();
                let mut of_rows = Vec::new();
                for row in 0..if number == of_same { 1 } else { 3 } {
                    words.extend_from_slice(set(number, row));
                    of_rows.push((words.len() - first) as u32);
                }
                ends.push((first as u32, of_rows));
            }
            let parts: Vec<Parts<'_>> = ends.iter().enumerate().map(|(number, (first, ends))| Parts {
                first: *first,
                ends: (number != of_same).then_some(ends),
                count: same.len() as u32,
            }).collect();
            let firsts = |make: Make, row: usize| -> Vec<u64> {
                let others = || (1..sets.len()).map(|number| set(number, row));
                let of_first: Vec<u64> = set(0, row).clone();
                match make {
                    Make::Union => (0..sets.len()).flat_map(|n| set(n, row).clone()).collect::<BTreeSet<_>>().into_iter().collect(),
                    Make::Intersection => {
                        let all: BTreeSet<u64> = of_first.into_iter().collect();
                        all.into_iter().filter(|word| others().all(|other| other.contains(word))).collect()
                    }
                    Make::Difference => {
                        let mut left = Vec::new();
                        for word in of_first {
                            if !left.contains(&word) && !others().any(|other| other.contains(&word)) {
                                left.push(word);
                            }
                        }
                        left
                    }
                }
            };
            for make in [Make::Union, Make::Intersection, Make::Difference] {
                let (places, ends) = made(make, &words, &parts, 3).unwrap();
                let mut start = 0;
                for (row, end) in ends.iter().map(|end| *end as usize).enumerate() {
                    let found: Vec<u64> = places[start..end].iter().map(|place| words[*place as usize]).collect();
                    prop_assert_eq!(&found, &firsts(make, row), "{:?}", make);
                    for (place, word) in places[start..end].iter().zip(&found) {
                        let first_of = parts.iter().filter_map(|parts| parts.places(row)).flatten().find(|at| words[*at as usize] == *word);
                        prop_assert_eq!(first_of, Some(*place));
                    }
                    start = end;
                }
            }
            for both in [false, true] {
                let found = within(&words, &parts, 3, both).unwrap();
                for row in 0..3 {
                    let all: Vec<BTreeSet<u64>> = (0..sets.len()).map(|n| set(n, row).iter().copied().collect()).collect();
                    let is_within = all[1..].iter().all(|other| all[0].is_subset(other) && (!both || all[0] == *other));
                    prop_assert_eq!(found[0] >> row & 1 == 1, is_within);
                }
            }
        }
    }

    #[test]
    fn long_parts_are_left_to_others() {
        let words = vec![7; PART_MAX + 1];
        let parts = |count: usize| {
            [Parts { first: 0, ends: None, count: 1 }, Parts { first: 0, ends: None, count: count as u32 }]
        };
        for make in [Make::Union, Make::Intersection, Make::Difference] {
            assert!(made(make, &words, &parts(PART_MAX), 2).is_some());
            assert_eq!(made(make, &words, &parts(PART_MAX + 1), 2), None);
        }
        assert!(within(&words, &parts(PART_MAX), 2, true).is_some());
        assert_eq!(within(&words, &parts(PART_MAX + 1), 2, false), None);
    }
}
