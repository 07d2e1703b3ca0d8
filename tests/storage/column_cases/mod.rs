//! Columns for tests, generated from arbitrary bytes: tracks of values that change like measurements, runs and holes of the lengths at which words and
//! runs end, and objects that change shape. Property tests and fuzzing share this code, so that a finding of one can be repeated by the other.
// Each fuzz target uses a part of this module.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod assembled;
mod damage;
mod engine;
mod objects;
mod random;
mod scalars;

use crate::column_reference::Element;

pub use assembled::assembled;
pub use damage::damaged;
pub use engine::{column_of, elements_of, push_all};
use random::Random;

/// Lengths around those at which an encoder begins a new word, run or control.
const LENGTHS: [usize; 17] = [1, 2, 3, 7, 30, 59, 60, 61, 119, 120, 121, 180, 240, 1919, 1920, 1921, 4000];

/// Elements generated from `bytes`, about `rows_max` at most: every six bytes are a step.
pub fn elements(bytes: &[u8], rows_max: usize) -> Vec<Element> {
    let mut list: Vec<Element> = Vec::new();
    for step in bytes.chunks(6) {
        if list.len() >= rows_max {
            break;
        }
        let [what, length, kind, moves, holes, seed] =
            std::array::from_fn(|i| step.get(i).copied().unwrap_or_default());
        let fits = |length: &&usize| list.len() + **length <= rows_max;
        let fitting: Vec<usize> = LENGTHS.iter().filter(fits).copied().collect();
        let run = fitting.get(usize::from(length) % fitting.len().max(1)).copied().unwrap_or(1);
        let last = list.iter().rev().flatten().next().cloned();
        match what % 8 {
            0 => list.extend(vec![None; run]),
            1 => list.extend(vec![last.or_else(|| Some(scalars::fresh(kind, &mut Random::new(seed)))); run]),
            2 | 3 => {
                let track = objects::track(usize::from(length % 40) + 1, moves, &mut Random::new(seed));
                list.extend(with_holes(track, holes));
            }
            // A track that continues from the previous value, or from a new one.
            _ => {
                let mut random = Random::new(seed);
                let goes_on = what % 8 == 4;
                let from = last.filter(|last| goes_on && scalars::is_scalar(last));
                let from = from.unwrap_or_else(|| scalars::fresh(kind, &mut random));
                let length = if length < 8 { run } else { usize::from(length % 100) + 1 };
                list.extend(with_holes(scalars::track(from, length, moves, &mut random), holes));
            }
        }
    }
    list
}

/// The same with holes: none for most values of `holes`, otherwise some or nearly all.
fn with_holes(track: Vec<Vec<u8>>, holes: u8) -> Vec<Element> {
    let mut random = Random::new(holes);
    let percent = [0, 0, 0, 0, 2, 10, 50, 98][usize::from(holes % 8)];
    track
        .into_iter()
        .flat_map(|value| {
            let missing = random.chance(percent).then_some(None);
            missing.into_iter().chain([Some(value)])
        })
        .collect()
}
