//! Regular expressions: text matched against a PCRE pattern.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use ::kernels::texts;

use super::globals::Globals;
use super::literals::{Literals, literals_of};
use super::matcher::matcher_if_loaded;
use crate::block::{Bitmap, Column, ColumnData, kernels};
use crate::env;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Interner, Kind, OwnedValue, Value};

/// A pattern for strings and symbols. A stored regular expression passes if it is the same one.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    options: Box<str>,
    literals: Literals,
    ignores_case: bool,
    compiled: Rc<dyn env::CompiledRegex>,
    /// Whether the host is asked.
    asks_host: bool,
    verdicts: Rc<RefCell<Verdicts>>,
}

/// Texts that the host was asked for, by their numbers in a list.
#[derive(Default)]
struct Verdicts {
    texts: Interner,
    matches: Vec<bool>,
}

/// So many texts are remembered, of so many bytes at most.
const VERDICTS_MAX: usize = 4096;
const TEXT_LEN_MAX: usize = 256;

impl Regex {
    /// Compiles `pattern` with the options of PCRE.
    ///
    /// Errors: 51108 for an unknown option, 51091 for a pattern that does not compile, `BadValue` for a NUL byte.
    pub fn new(pattern: &str, options: &str, globals: &Globals) -> Result<Regex> {
        if pattern.as_bytes().contains(&0) {
            return Err(Error::bad_value("A regular expression cannot contain a NUL byte"));
        }
        let mut flags = Flags::default();
        if !options.bytes().all(|letter| flags.set(letter)) {
            let message = format!("Invalid regular expression options: {options}");
            return Err(Error::new(ErrorCode::Location51108, message));
        }
        let plain = Flags { ignores_case: flags.ignores_case, ..Flags::default() };
        let literals = if flags == plain { literals_of(pattern, flags.ignores_case) } else { Literals::default() };
        let ignores_case = flags.ignores_case;
        let translated = translate(pattern, &mut flags);
        let mut compiled = globals.env().regex(&translated, flags.ignores_case).map_err(|reason| {
            Error::new(ErrorCode::Location51091, format!("Regular expression is invalid: /{pattern}/: {reason}"))
        })?;
        let asks_host = !matcher_if_loaded(&translated, flags.ignores_case, &mut compiled);
        let (pattern, options, verdicts) = (pattern.into(), options.into(), Rc::default());
        Ok(Regex { pattern, options, literals, ignores_case, compiled, asks_host, verdicts })
    }

    /// True if it has been made of these.
    pub(super) fn is_of(&self, pattern: &str, options: &str) -> bool {
        *self.pattern == *pattern && *self.options == *options
    }

    /// The regular expression in a value.
    pub fn of(value: Value<'_>, globals: &Globals) -> Result<Regex> {
        let (pattern, options) = value.as_regex().unwrap_or_default();
        Regex::new(pattern, options, globals)
    }

    /// The regular expression as a value.
    pub fn to_value(&self) -> OwnedValue {
        let tag = [Kind::Regex.byte()];
        let bytes = [&tag, self.pattern.as_bytes(), &[0], self.options.as_bytes(), &[0]].concat();
        OwnedValue::from_tagged_checked(bytes)
    }

    /// The prefix of every matching string; empty if unknown.
    pub fn prefix(&self) -> &str {
        &self.literals.prefix
    }

    /// True if a value passes; a missing one does not.
    pub fn matches(&self, value: Option<Value<'_>>) -> bool {
        let Some(found) = value else { return false };
        match found.kind() {
            Kind::String | Kind::Symbol => found.as_text().is_some_and(|text| self.is_match(text)),
            Kind::Regex => found.as_regex() == Some((&self.pattern, &self.options)),
            _ => false,
        }
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.is_match_of_bytes(text.as_bytes())
    }

    /// The same for a text that was checked before. Only the host needs it as such.
    fn is_match_of_bytes(&self, text: &[u8]) -> bool {
        self.may_match(text) && (self.literals.decide || std::str::from_utf8(text).is_ok_and(|text| self.asked(text)))
    }

    /// False if a text lacks what is part of each match.
    fn may_match(&self, text: &[u8]) -> bool {
        let Literals { prefix, part, decide } = &self.literals;
        text.starts_with(prefix.as_bytes())
            && (*decide && !prefix.is_empty() || texts::find(text, part.as_bytes(), 0, self.ignores_case).is_some())
    }

    /// What the matcher says of a text, or the host: a call of it copies the text, and texts repeat.
    fn asked(&self, text: &str) -> bool {
        if !self.asks_host {
            return self.compiled.is_match(text);
        }
        let Verdicts { texts, matches } = &mut *self.verdicts.borrow_mut();
        let known = texts.get(text.as_bytes()).and_then(|number| matches.get(number));
        if let Some(known) = known {
            return *known;
        }
        let is_match = self.compiled.is_match(text);
        if texts.count() < VERDICTS_MAX && text.len() <= TEXT_LEN_MAX {
            texts.add(text.as_bytes());
            matches.push(is_match);
        }
        is_match
    }

    /// The matches in a text, or only the first one.
    pub fn find(&self, text: &str, all: bool) -> Vec<env::Match> {
        if self.may_match(text.as_bytes()) { self.compiled.find(text, all) } else { Vec::new() }
    }

    /// The cells that pass, present or not; `None` for columns without a type.
    pub fn select(&self, column: &Column) -> Option<Bitmap> {
        Some(match column.data() {
            ColumnData::String(v) => kernels::texts(v, |cell| self.is_match_of_bytes(cell)),
            ColumnData::Bson(_) | ColumnData::Objects(_) | ColumnData::Dictionary(..) => return None,
            _ => Bitmap::filled(column.len(), false),
        })
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern, self.options)
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        (&self.pattern, &self.options) == (&other.pattern, &other.options)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    ignores_case: bool,
    multiline: bool,
    dot_all: bool,
    extended: bool,
}

impl Flags {
    /// False for a letter that is not a PCRE option.
    fn set(&mut self, letter: u8) -> bool {
        match letter {
            b'i' => self.ignores_case = true,
            b'm' => self.multiline = true,
            b's' => self.dot_all = true,
            b'x' => self.extended = true,
            // Text is always UTF-8.
            b'u' => {}
            _ => return false,
        }
        true
    }
}

/// Translates a PCRE pattern to the syntax of ECMAScript without flags other than `i`, which all hosts share. In PCRE
/// lines end only at `\n`, `$` also matches before a final one, and classes may begin with `]`.
fn translate(pattern: &str, flags: &mut Flags) -> String {
    let mut rest = pattern.as_bytes();
    // Options at the very start, as in `(?i)abc`.
    if let Some(letters) = rest.strip_prefix(b"(?")
        && let Some(end) = letters.iter().position(|byte| !b"imsx".contains(byte))
        && letters.get(end) == Some(&b')')
    {
        letters.iter().take(end).for_each(|letter| {
            flags.set(*letter);
        });
        rest = letters.get(end + 1..).unwrap_or_default();
    }
    let mut out = Vec::with_capacity(rest.len() + 8);
    let mut in_class = false;
    while let Some((next, tail)) = rest.split_first() {
        rest = tail;
        let instead: &[u8] = match next {
            b'\\' => {
                let Some((letter, tail)) = tail.split_first() else {
                    // The host refuses it.
                    out.push(b'\\');
                    break;
                };
                rest = tail;
                match letter {
                    b'A' if !in_class => b"^",
                    b'z' if !in_class => b"$",
                    b'Z' if !in_class => br"(?=\n?$)",
                    b'h' | b's' | b'S' => {
                        let members: &[u8] = match letter {
                            b'h' => br" \t",
                            b's' => br" \t-\r",
                            // What a host takes for a space, and PCRE does not.
                            _ => br"\S\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
                        };
                        if in_class {
                            members
                        } else {
                            out.push(b'[');
                            out.extend_from_slice(members);
                            b"]"
                        }
                    }
                    b'x' if rest.starts_with(b"{") => br"\u",
                    // What a host without flags takes for the letter itself. The host refuses what is open at the end.
                    letter if letter.is_ascii_alphabetic() && !b"bBcdDfknprtuvwWPx".contains(letter) => {
                        out.push(b'(');
                        break;
                    }
                    letter => {
                        // ECMAScript refuses unnecessary escapes.
                        let needed = letter.is_ascii_alphanumeric() || br"^$\.*+?()[]{}|/".contains(letter);
                        if needed || (in_class && *letter == b'-') {
                            out.push(b'\\');
                        }
                        out.push(*letter);
                        continue;
                    }
                }
            }
            b']' if in_class => {
                in_class = false;
                b"]"
            }
            // A POSIX class, in a class that stays open, so that the host refuses it.
            b'[' if in_class && rest.starts_with(b":") => break,
            b'[' if in_class => br"\[",
            _ if in_class => std::slice::from_ref(next),
            b'[' => {
                in_class = true;
                out.push(b'[');
                if let Some(tail) = rest.strip_prefix(b"^") {
                    out.push(b'^');
                    rest = tail;
                }
                match rest.strip_prefix(b"]") {
                    Some(tail) => {
                        rest = tail;
                        br"\]"
                    }
                    None => b"",
                }
            }
            b' ' | b'\t'..=b'\r' if flags.extended => b"",
            b'#' if flags.extended => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                rest = rest.get(end..).unwrap_or_default();
                b""
            }
            b'.' => {
                if flags.dot_all {
                    br"[\s\S]"
                } else {
                    br"[^\n]"
                }
            }
            b'^' if flags.multiline => br"(?<![^\n])",
            b'$' => {
                if flags.multiline {
                    br"(?![^\n])"
                } else {
                    br"(?=\n?$)"
                }
            }
            b'(' => match rest.strip_prefix(b"?P<") {
                Some(tail) => {
                    rest = tail;
                    b"(?<"
                }
                None => b"(",
            },
            other => std::slice::from_ref(other),
        };
        out.extend_from_slice(instead);
    }
    // Characters were copied byte by byte, with only ASCII between them.
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::samples::globals;
    use super::*;

    fn regex(pattern: &str, options: &str) -> Regex {
        Regex::new(pattern, options, &globals()).unwrap()
    }

    #[track_caller]
    fn check(pattern: &str, options: &str, pass: &[&str], fail: &[&str]) {
        let regex = regex(pattern, options);
        for text in pass {
            assert!(regex.is_match(text), "/{pattern}/{options} on {text:?}");
        }
        for text in fail {
            assert!(!regex.is_match(text), "/{pattern}/{options} on {text:?}");
        }
    }

    #[test]
    fn options_are_those_of_pcre() {
        check("AB", "i", &["xaby"], &["a b"]);
        check("^b$", "", &["b", "b\n"], &["a\nb", "b\nc", "b\n\n"]);
        check("^b$", "m", &["a\nb\nc"], &["ab"]);
        check("a.b", "", &["a\rb", "a\u{2028}b"], &["a\nb"]);
        check("a.b", "s", &["a\nb"], &["ab"]);
        check("a b # rest\n c", "x", &["abc"], &["a b c"]);
        check("a[ #]b", "x", &["a b", "a#b"], &["ab"]);
        check("é.", "u", &["éé"], &["é"]);
        check("(?i)ab", "", &["AB"], &["A"]);
    }

    #[test]
    fn pcre_syntax_is_translated_to_ecmascript() {
        check(r"\Aab\z", "", &["ab"], &["ab\n", "xab"]);
        check(r"ab\Z", "", &["ab", "ab\n"], &["abc"]);
        check(r"a\-b\_\@", "", &["a-b_@"], &["ab"]);
        check(r"^[]a[]+$", "", &["]a["], &["b"]);
        check(r"^[^]a]+$", "", &["b"], &["]"]);
        check(r"(?P<n>a)\k<n>", "", &["aa"], &["ab"]);
        check(r"[\d\-x]\h", "", &["1 ", "-\t"], &["a ", "1\n"]);
        check(r"^\x{61}\x62$", "", &["ab"], &["x"]);
    }

    #[test]
    fn spaces_are_those_of_pcre() {
        check(r"^\s$", "", &[" ", "\t", "\u{b}", "\r"], &["\u{a0}", "\u{2028}", "\u{feff}", "x"]);
        check(r"^[\s-x]$", "", &[" ", "\n", "-", "x"], &["\u{a0}", "a"]);
        check(r"^\S$", "", &["\u{a0}", "\u{2003}", "\u{feff}", "x", "\u{1f600}"], &[" ", "\u{c}"]);
        check(r"^[^\S\n]$", "", &[" ", "\t"], &["\n", "x", "\u{a0}"]);
    }

    #[test]
    fn syntax_that_the_host_would_take_for_something_else_is_refused() {
        let escapes = [r"a\Kb", r"\Ga", r"^\X$", r"\Qa.b\E", r"a\R", r"\N", r"\o{141}", r"[\e]", r"\u{61}\L"];
        for pattern in escapes.into_iter().chain([r"[[:alpha:]]", r"[a[:^digit:]]"]) {
            assert_eq!(Regex::new(pattern, "", &globals()).unwrap_err().code, ErrorCode::Location51091, "{pattern}");
        }
    }

    #[test]
    fn literal_parts_decide_as_the_host_does() {
        assert_eq!((regex("^a", "i").prefix(), regex("^ab*", "").prefix()), ("", "a"));
        check("^a?", "", &["", "b"], &[]);
        check("^ab", "", &["abc"], &["a", "xab"]);
        check("^", "", &["", "a"], &[]);
        check("", "", &["", "a"], &[]);
        check("ab", "", &["ab", "xabx", "aab"], &["", "a", "axb", "AB"]);
        check("aB", "i", &["ab", "xAbx", "AAB"], &["", "a", "axb"]);
        check("k", "i", &["K"], &["\u{212a}"]);
        check("^ab", "i", &["aBc"], &["xab"]);
        check(r"b\d", "", &["ab1", "b2"], &["b", "1b"]);
        // Answers of the host are remembered.
        let pattern = regex(r"b(?=\d)", "");
        for _ in 0..3 {
            assert!(pattern.is_match("ab1") && !pattern.is_match("bb") && !pattern.is_match("a"));
        }
        assert_eq!(pattern.verdicts.borrow().matches, [true, false]);
    }

    #[test]
    fn more_texts_than_are_remembered_have_answers_of_their_own() {
        let pattern = regex(r"^\d*(?=[02468]$)", "");
        for n in (0..2 * VERDICTS_MAX).chain(0..2 * VERDICTS_MAX) {
            assert_eq!(pattern.is_match(&n.to_string()), n % 2 == 0);
        }
        assert_eq!(pattern.verdicts.borrow().matches.len(), VERDICTS_MAX);
    }
}
