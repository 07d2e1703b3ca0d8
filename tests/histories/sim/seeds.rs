//! Runs seeds on several threads, and reports failing ones.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::progress::progress;

/// Kinds of histories.
const KINDS: u64 = 16;

/// Runs a kind of history with many seeds, and always with those that once failed.
///
/// `SIM_SEEDS` overrides their number, over all kinds; `SIM_SEED` selects one.
pub fn run(kind: &str, usually: u64, kept: &[u64], history: &(dyn Fn(u64) + Sync)) {
    let setting = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    if let Some(seed) = setting("SIM_SEED") {
        return history(seed);
    }
    let end = setting("SIM_SEEDS").map_or(usually, |all| all / KINDS);
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let later = kept.iter().copied().filter(|seed| *seed >= end);
            let Some(seed) = (0..end).chain(later).nth(at as usize) else { return };
            progress(kind, at, end);
            if let Err(failure) = catch_unwind(AssertUnwindSafe(|| history(seed))) {
                println!("{kind}: seed {seed} has failed; SIM_SEED={seed} runs it again");
                next.store(end + kept.len() as u64, Ordering::Relaxed);
                resume_unwind(failure);
            }
        }
    };
    // Twelve tests run at once; with many seeds the last of them should not run alone on one core.
    let threads = if end > usually { 2 } else { 1 };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!("{kind}: {end} seeds, and {} that were kept", kept.len());
}
