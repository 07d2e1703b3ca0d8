//! What the world outside gives: time, randomness, regular expressions, collators, time zones, doubles as texts. A run with a seed repeats exactly.

use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// The end of loading; or why there is nothing to be had.
pub type Loading = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// What the engine asks of the world it runs in.
pub trait Env {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// Sixty-four random bits.
    fn random_u64(&self) -> u64;
    /// A regular expression in the syntax of ECMAScript that the hosts of all builds share: no possessive quantifiers, no
    /// conditionals.
    ///
    /// Errors: why the pattern does not compile.
    fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn Regex>, String>;
    /// What compares strings by the rules of a locale; fills in what `wanted` leaves to it. `None` if the host has not just this
    /// locale, but another one in its place at best.
    fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>>;
    /// The double next to a number in the form of JSON; an infinity if it is too large.
    fn double(&self, number: &str) -> f64;
    /// The shortest digits that say a finite double which is not below zero, in the form of JSON.
    fn digits(&self, x: f64) -> String;
    /// The clocks of a zone of the IANA's database; `None` if the host does not know it.
    fn time_zone(&self, name: &str) -> Option<Rc<dyn TimeZone>>;
    /// Loads what is rarely used, where that comes apart from the rest: see `limits::RARE_OPERATORS`.
    fn complete(&self) -> Loading {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a collator is made of, in the words of ECMA-402.
pub struct Collating<'a> {
    /// The language tag, with the variant of its collation.
    pub locale: &'a str,
    /// `base`, `case`, `accent` or `variant`.
    pub sensitivity: &'static str,
    /// Digits compare as numbers.
    pub numeric: bool,
    /// `upper`, `lower` or `false`; `None` for that of the locale.
    pub case_first: Option<&'static str>,
    /// True if punctuation is not looked at; `None` for what the locale does.
    pub ignores_punctuation: Option<bool>,
}

/// A compiled regular expression.
pub trait Regex {
    /// True if it matches somewhere in `text`.
    fn is_match(&self, text: &str) -> bool;
    /// The matches in `text`, one behind the other; the first one alone unless `all` are wanted.
    fn find(&self, text: &str, all: bool) -> Vec<Match>;
}

/// What a regular expression has found.
#[derive(Debug, PartialEq, Eq)]
pub struct Match {
    /// So many characters stand before it.
    pub at: usize,
    /// What has matched, and of each group what has matched it; `None` if nothing has.
    pub groups: Vec<Option<String>>,
}

/// Compares strings by the rules of a locale.
pub trait Collator {
    /// A total order.
    fn compare(&self, a: &str, b: &str) -> Ordering;
}

/// The clocks of a zone.
pub trait TimeZone {
    /// How far they are ahead of UTC at a moment, both in milliseconds. No moment is more than 8.64e15 ms from the epoch.
    fn offset_ms(&self, at_ms: i64) -> i64;
}

/// `±HH`, `±HHMM`, `±HH:MM`, and the host's `±HH:MM:SS`, in milliseconds.
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
    //! A world that stands still, for unit tests.

    use std::cell::Cell;

    use super::*;

    /// Always the same moment; random bits count up.
    #[derive(Default)]
    pub struct FixedEnv(Cell<u64>);

    impl FixedEnv {
        /// The moment at which it stands.
        pub const NOW_MS: i64 = 1_700_000_000_000;
    }

    impl Env for FixedEnv {
        fn now_ms(&self) -> i64 {
            FixedEnv::NOW_MS
        }
        fn random_u64(&self) -> u64 {
            self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
            self.0.get()
        }
        fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn Regex>, String> {
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
