//! Regular expressions: text matched against a PCRE pattern.

use std::fmt;
use std::rc::Rc;

use super::globals::Globals;
use crate::block::{Bitmap, Column, ColumnData, kernels};
use crate::env;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, OwnedValue, Value};

/// A pattern for strings and symbols. A stored regular expression passes if it is the same one.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    options: Box<str>,
    /// The prefix of every match; empty if unknown.
    prefix: Box<str>,
    /// True if the pattern is only its prefix.
    only_prefix: bool,
    compiled: Rc<dyn env::CompiledRegex>,
}

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
        let (prefix, only_prefix) =
            if flags == Flags::default() { literal_prefix(pattern) } else { Default::default() };
        let translated = translate(pattern, &mut flags);
        let compiled = globals.env().regex(&translated, flags.ignores_case).map_err(|reason| {
            Error::new(ErrorCode::Location51091, format!("Regular expression is invalid: /{pattern}/: {reason}"))
        })?;
        Ok(Regex { pattern: pattern.into(), options: options.into(), prefix: prefix.into(), only_prefix, compiled })
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
        &self.prefix
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
        // A call to the host copies the text.
        text.starts_with(&*self.prefix) && (self.only_prefix || self.compiled.is_match(text))
    }

    /// The matches in a text, or only the first one.
    pub fn find(&self, text: &str, all: bool) -> Vec<env::Match> {
        self.compiled.find(text, all)
    }

    /// The cells that pass, present or not; `None` for columns without a type.
    pub fn select(&self, column: &Column) -> Option<Bitmap> {
        Some(match column.data() {
            ColumnData::String(v) => {
                kernels::texts(v, |cell| std::str::from_utf8(cell).is_ok_and(|t| self.is_match(t)))
            }
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

/// The literal prefix of a pattern anchored at the start, and whether the pattern contains nothing else.
fn literal_prefix(pattern: &str) -> (String, bool) {
    let mut prefix = Vec::new();
    let anchored = pattern.as_bytes().strip_prefix(b"^").filter(|rest| !rest.contains(&b'|'));
    let mut whole = anchored.is_some();
    let mut rest = anchored.unwrap_or_default().iter();
    while let Some(next) = rest.next() {
        let literal = match next {
            b'\\' => rest.next().filter(|byte| byte.is_ascii_punctuation()),
            b'.' | b'+' | b'[' | b'(' | b')' | b']' | b'}' | b'$' | b'^' | b'?' | b'*' | b'{' => None,
            other => Some(other),
        };
        let Some(literal) = literal else {
            // The last character may be absent or repeated.
            if matches!(next, b'?' | b'*' | b'{') {
                while prefix.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            whole = false;
            break;
        };
        prefix.push(*literal);
    }
    // Only whole characters were taken.
    (String::from_utf8(prefix).unwrap_or_default(), whole)
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
    fn the_literal_prefix_of_a_pattern_ends_at_the_first_variable_part() {
        let prefix = |pattern: &str| literal_prefix(pattern);
        assert_eq!(prefix("^abc"), ("abc".into(), true));
        assert_eq!(prefix(r"^a\.b"), ("a.b".into(), true));
        assert_eq!(prefix("^abc*"), ("ab".into(), false));
        assert_eq!(prefix("^abc{0}"), ("ab".into(), false));
        assert_eq!(prefix("^abc+"), ("abc".into(), false));
        assert_eq!(prefix(r"^ab\d"), ("ab".into(), false));
        assert_eq!(prefix("^ab|c"), (String::new(), false));
        assert_eq!(prefix("abc"), (String::new(), false));
        assert_eq!(prefix("^éa$"), ("éa".into(), false));
        assert_eq!(regex("^a", "i").prefix(), "");
        check("^a?", "", &["", "b"], &[]);
        check("^ab", "", &["abc"], &["a", "xab"]);
    }
}
