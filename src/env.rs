//! What the host provides: time, turns of its event loop, randomness, regular expressions, collators, time zones, doubles as text. A run with a
//! seed repeats exactly (I7).

pub mod math;

use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Resolves when loading has ended; an error says why the code cannot be had.
pub type Loading = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// Resolves when the event loop of the host has had a turn.
pub type Turn = Pin<Box<dyn Future<Output = ()>>>;

/// What the engine asks of its host.
pub trait Env {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// Milliseconds since some moment, with fractions, on a clock that is never set back.
    fn elapsed_ms(&self) -> f64;
    /// Gives the event loop a turn; `None` if the host has none to give.
    fn turn(&self) -> Option<Turn>;
    /// True if that clock is looked at whenever a turn is possible; otherwise, after some work.
    fn looks_always(&self) -> bool {
        false
    }
    /// Sixty-four random bits.
    fn random_u64(&self) -> u64;
    /// A random double in [0, 1), which need not be hard to guess.
    fn random_double(&self) -> f64 {
        // A double holds 53 bits.
        (self.random_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// A regular expression in the syntax of ECMAScript that the hosts of all builds share: no possessive quantifiers,
    /// no conditionals.
    ///
    /// Errors: why the pattern does not compile.
    fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn CompiledRegex>, String>;
    /// A collator for a locale; fills in the options that `wanted` leaves open. `None` if the host does not have
    /// exactly this locale.
    fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>>;
    /// The double nearest to a number in JSON notation; an infinity if it is too large.
    fn double(&self, number: &str) -> f64;
    /// The shortest JSON digits that round-trip a finite, non-negative double.
    fn digits(&self, x: f64) -> String;
    /// A time zone of the IANA database; `None` if the host does not know it.
    fn time_zone(&self, name: &str) -> Option<Rc<dyn TimeZone>>;
    /// Loads the rarely used code, if it comes as a separate file; see `limits::RARE_OPERATORS`.
    fn complete(&self) -> Loading {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The options of a collator, in the words of ECMA-402.
pub struct Collating<'a> {
    /// The language tag, including the collation variant.
    pub locale: &'a str,
    /// `base`, `case`, `accent` or `variant`.
    pub sensitivity: &'static str,
    /// True if digits compare as numbers.
    pub numeric: bool,
    /// `upper`, `lower` or `false`; `None` for the locale's default.
    pub case_first: Option<&'static str>,
    /// True if punctuation is ignored; `None` for the locale's default.
    pub ignores_punctuation: Option<bool>,
}

/// A compiled regular expression.
pub trait CompiledRegex {
    /// True if the expression matches somewhere in `text`.
    fn is_match(&self, text: &str) -> bool;
    /// The matches in `text`, in order; only the first unless `all`.
    fn find(&self, text: &str, all: bool) -> Vec<Match>;
}

/// One match of a regular expression.
#[derive(Debug, PartialEq, Eq)]
pub struct Match {
    /// The number of characters before the match.
    pub at: usize,
    /// The whole match, then each group; `None` if a group did not take part.
    pub groups: Vec<Option<String>>,
}

/// Compares strings by the rules of a locale.
pub trait Collator {
    /// A total order.
    fn compare(&self, a: &str, b: &str) -> Ordering;
}

/// A time zone.
pub trait TimeZone {
    /// How far local time is ahead of UTC at a moment, both in milliseconds. No moment is more than 8.64e15 ms from the
    /// epoch.
    fn offset_ms(&self, at_ms: i64) -> i64;
}

/// Reads `±HH`, `±HHMM`, `±HH:MM`, and the host's `±HH:MM:SS`; returns milliseconds.
// Loaded later.
pub fn offset_ms(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = zone.split_first()?;
    let mut digits = [0; 6];
    let mut len = 0;
    for (at, byte) in rest.iter().enumerate() {
        if *byte != b':' || !matches!(at, 2 | 5) {
            *digits.get_mut(len)? = Some(i64::from(byte.wrapping_sub(b'0'))).filter(|digit| *digit < 10)?;
            len += 1;
        }
    }
    let [a, b, c, d, e, f] = digits;
    let seconds = (a * 10 + b) * 3600 + (c * 10 + d) * 60 + e * 10 + f;
    match sign {
        _ if len % 2 == 1 || len == 0 => None,
        b'+' => Some(seconds * 1000),
        b'-' => Some(-seconds * 1000),
        _ => None,
    }
}

#[cfg(test)]
#[path = "../tests/support/native_collator.rs"]
pub mod native_collator;

#[cfg(test)]
#[path = "../tests/support/native_regex.rs"]
pub mod native_regex;

#[cfg(test)]
#[path = "../tests/support/native_zone.rs"]
pub mod native_zone;

#[cfg(test)]
pub mod fixed {
    //! A host for unit tests, whose clock stands still.

    use std::cell::Cell;

    use super::*;

    /// The time never changes; random numbers count up.
    #[derive(Default)]
    pub struct FixedEnv(Cell<u64>);

    impl FixedEnv {
        /// The time that its clock shows.
        pub const NOW_MS: i64 = 1_700_000_000_000;
    }

    impl Env for FixedEnv {
        fn now_ms(&self) -> i64 {
            FixedEnv::NOW_MS
        }
        fn elapsed_ms(&self) -> f64 {
            0.0
        }
        fn turn(&self) -> Option<Turn> {
            None
        }
        fn random_u64(&self) -> u64 {
            self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
            self.0.get()
        }
        fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn CompiledRegex>, String> {
            native_regex::compile(pattern, ignores_case)
        }
        fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>> {
            native_collator::collator(wanted)
        }
        fn double(&self, number: &str) -> f64 {
            number.parse().unwrap()
        }
        fn digits(&self, x: f64) -> String {
            format!("{x:e}")
        }
        fn time_zone(&self, name: &str) -> Option<Rc<dyn TimeZone>> {
            native_zone::zone(name)
        }
    }
}
