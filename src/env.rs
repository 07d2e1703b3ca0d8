//! What the world outside gives: time, randomness, regular expressions. A run with a seed repeats exactly.

use std::rc::Rc;

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
}

/// A compiled regular expression.
pub trait Regex {
    /// True where it matches somewhere in `text`.
    fn is_match(&self, text: &str) -> bool;
}

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
    }
}
