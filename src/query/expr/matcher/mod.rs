//! Matches ASCII texts against patterns without the host: a call of it copies the text, and takes a microsecond.

// Loaded later.

mod parse;
mod program;
mod steps;

use std::rc::Rc;

use crate::env::CompiledRegex;

/// Puts a matcher in place of the host's if it can match that pattern, which the host has compiled: it is the same in all texts.
/// False if it cannot.
#[inline(never)]
pub fn matcher_if_loaded(pattern: &str, ignores_case: bool, compiled: &mut Rc<dyn CompiledRegex>) -> bool {
    let Some(matcher) = program::Matcher::new(pattern, ignores_case, compiled) else { return false };
    *compiled = Rc::new(matcher);
    true
}
