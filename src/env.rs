//! What the world outside gives: time, randomness, regular expressions, collators. A run with a seed repeats exactly.

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
    /// What compares strings by the rules of a locale; fills in what `wanted` leaves to it. `None` where the host has not just this
    /// locale, but another one in its place at best.
    fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>>;
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
    /// True where punctuation is not looked at; `None` for what the locale does.
    pub ignores_punctuation: Option<bool>,
}

/// A compiled regular expression.
pub trait Regex {
    /// True where it matches somewhere in `text`.
    fn is_match(&self, text: &str) -> bool;
}

/// Compares strings by the rules of a locale.
pub trait Collator {
    /// A total order.
    fn compare(&self, a: &str, b: &str) -> Ordering;
}

#[cfg(test)]
#[path = "../tests/support/native_collator.rs"]
pub mod native_collator;

#[cfg(test)]
#[path = "../tests/support/native_regex.rs"]
pub mod native_regex;

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
    }
}
