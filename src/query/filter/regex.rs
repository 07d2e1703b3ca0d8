//! `$regex`, and regular expressions in the place of values: text against a pattern.

use std::fmt;
use std::rc::Rc;

use super::tree::{Filter, Test};
use crate::block::{Bitmap, Column, ColumnData, kernels};
use crate::env;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::value::{Doc, Kind, Path, Value};

/// A pattern that strings and symbols match; a stored regular expression passes where it is the same one.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    options: Box<str>,
    /// What every match begins with; empty where that is not known.
    prefix: Box<str>,
    /// The prefix is all that is asked.
    only_prefix: bool,
    compiled: Rc<dyn env::Regex>,
}

impl Regex {
    /// Compiles `pattern` with PCRE's `options`.
    ///
    /// Errors: 51108 for an unknown option, 51091 for a pattern that does not compile, `BadValue` for a NUL byte.
    pub fn new(pattern: &str, options: &str, globals: &Globals) -> Result<Regex> {
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        let mut flags = Flags::default();
        for letter in options.chars() {
            if !flags.set(letter) {
                let message = format!("invalid flag in regex options: {letter}");
                return Err(Error::new(ErrorCode::Location51108, message));
            }
        }
        let (prefix, only_prefix) =
            if flags == Flags::default() { literal_prefix(pattern) } else { Default::default() };
        let translated = translate(pattern, &mut flags);
        let compiled = globals.env().regex(&translated, flags.ignores_case).map_err(|reason| {
            Error::new(ErrorCode::Location51091, format!("Regular expression is invalid: /{pattern}/: {reason}"))
        })?;
        Ok(Regex { pattern: pattern.into(), options: options.into(), prefix: prefix.into(), only_prefix, compiled })
    }

    /// The regular expression in a value.
    pub(super) fn of(value: Value<'_>, globals: &Globals) -> Result<Regex> {
        let (pattern, options) = value.as_regex().unwrap_or_default();
        Regex::new(pattern, options, globals)
    }

    /// What every string that matches begins with; empty where that is not known.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// True where a value passes; a missing one does not.
    pub fn matches(&self, value: Option<Value<'_>>) -> bool {
        let Some(found) = value else { return false };
        match found.kind() {
            Kind::String | Kind::Symbol => found.as_text().is_some_and(|text| self.is_match(text)),
            Kind::Regex => found.as_regex() == Some((&self.pattern, &self.options)),
            _ => false,
        }
    }

    fn is_match(&self, text: &str) -> bool {
        // Asking the host costs a copy of the text.
        text.starts_with(&*self.prefix) && (self.only_prefix || self.compiled.is_match(text))
    }

    /// The cells that pass, whether present or not; `None` for data without a type of its own.
    pub(super) fn select(&self, column: &Column) -> Option<Bitmap> {
        Some(match column.data() {
            ColumnData::String(v) => {
                kernels::texts(v, |cell| std::str::from_utf8(cell).is_ok_and(|t| self.is_match(t)))
            }
            ColumnData::Bson(_) | ColumnData::Dictionary(..) => return None,
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

/// The filter of `$regex` with its `$options`, which stand side by side in `operators`.
pub(super) fn parse(path: &Path, operators: Doc<'_>, globals: &Globals) -> Result<Filter> {
    let (mut pattern, mut options) = (None, "");
    let twice = |code| Error::new(code, "options set in both $regex and $options");
    for (name, operand) in operators {
        match name {
            "$regex" => match operand.as_regex() {
                Some((_, flags)) if !flags.is_empty() && !options.is_empty() => {
                    return Err(twice(ErrorCode::Location51074));
                }
                Some((text, flags)) => {
                    pattern = Some(text);
                    options = if flags.is_empty() { options } else { flags };
                }
                None => {
                    let text = operand.as_str().ok_or_else(|| Error::bad_value("$regex has to be a string"))?;
                    pattern = Some(text);
                }
            },
            "$options" => {
                let flags = operand.as_str().ok_or_else(|| Error::bad_value("$options has to be a string"))?;
                if !options.is_empty() {
                    return Err(twice(ErrorCode::Location51075));
                }
                options = flags;
            }
            _ => {}
        }
    }
    let pattern = pattern.ok_or_else(|| Error::bad_value("$options needs a $regex"))?;
    Ok(Filter::Field(path.clone(), Test::Regex(Regex::new(pattern, options, globals)?)))
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    ignores_case: bool,
    multiline: bool,
    dot_all: bool,
    extended: bool,
}

impl Flags {
    /// False for a letter that PCRE does not have.
    fn set(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.ignores_case = true,
            'm' => self.multiline = true,
            's' => self.dot_all = true,
            'x' => self.extended = true,
            // Text is always UTF-8.
            'u' => {}
            _ => return false,
        }
        true
    }
}

/// What a pattern that is anchored at the start begins with, and whether there is nothing else in it.
fn literal_prefix(pattern: &str) -> (String, bool) {
    let mut prefix = String::new();
    let Some(anchored) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else { return (prefix, false) };
    let mut rest = anchored.chars();
    while let Some(next) = rest.next() {
        let literal = match next {
            '\\' => rest.next().filter(char::is_ascii_punctuation),
            '?' | '*' | '{' => {
                // The last character may be absent, or come more than once.
                prefix.pop();
                None
            }
            '.' | '+' | '[' | '(' | ')' | ']' | '}' | '$' | '^' => None,
            other => Some(other),
        };
        match literal {
            Some(literal) => prefix.push(literal),
            None => return (prefix, false),
        }
    }
    (prefix, true)
}

/// A PCRE pattern in the syntax of ECMAScript without flags but `i`, which is all that hosts agree on: lines end at `\n` alone,
/// `$` also stands before a final one, classes may begin with `]`.
fn translate(pattern: &str, flags: &mut Flags) -> String {
    let mut pattern = pattern;
    // Options at the very start, as in `(?i)abc`.
    while let Some((letters, rest)) = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        && !letters.is_empty()
        && letters.chars().all(|letter| "imsx".contains(letter))
    {
        letters.chars().for_each(|letter| {
            flags.set(letter);
        });
        pattern = rest;
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut in_class = false;
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        match next {
            '\\' => escape(rest.next(), in_class, &mut out),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' if in_class => out.push_str("\\["),
            _ if in_class => out.push(next),
            '[' => {
                in_class = true;
                out.push('[');
                for (begins, instead) in [("^", "^"), ("]", "\\]")] {
                    if let Some(tail) = rest.as_str().strip_prefix(begins) {
                        out.push_str(instead);
                        rest = tail.chars();
                    }
                }
            }
            ' ' | '\t' | '\n' | '\r' | '\x0B' | '\x0C' if flags.extended => {}
            '#' if flags.extended => {
                rest.by_ref().find(|c| *c == '\n');
            }
            '.' => out.push_str(if flags.dot_all { r"[\s\S]" } else { r"[^\n]" }),
            '^' if flags.multiline => out.push_str(r"(?<![^\n])"),
            '$' => out.push_str(if flags.multiline { r"(?![^\n])" } else { r"(?=\n?$)" }),
            '(' => {
                out.push('(');
                if let Some(tail) = rest.as_str().strip_prefix("?P<") {
                    out.push_str("?<");
                    rest = tail.chars();
                }
            }
            _ => out.push(next),
        }
    }
    out
}

/// What follows a backslash. ECMAScript refuses to escape what needs no escape.
fn escape(letter: Option<char>, in_class: bool, out: &mut String) {
    match letter {
        Some('A') if !in_class => out.push('^'),
        Some('z') if !in_class => out.push('$'),
        Some('Z') if !in_class => out.push_str(r"(?=\n?$)"),
        Some('h') => out.push_str(if in_class { r" \t" } else { r"[ \t]" }),
        Some(c) if c.is_ascii_alphanumeric() || r"^$\.*+?()[]{}|/".contains(c) || (in_class && c == '-') => {
            out.push('\\');
            out.push(c);
        }
        Some(c) => out.push(c),
        None => out.push('\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{filter, globals, hits};
    use super::*;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

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
    fn syntax_that_ecmascript_writes_otherwise_is_translated() {
        check(r"\Aab\z", "", &["ab"], &["ab\n", "xab"]);
        check(r"ab\Z", "", &["ab", "ab\n"], &["abc"]);
        check(r"a\-b\_\@", "", &["a-b_@"], &["ab"]);
        check(r"^[]a[]+$", "", &["]a["], &["b"]);
        check(r"^[^]a]+$", "", &["b"], &["]"]);
        check(r"(?P<n>a)\k<n>", "", &["aa"], &["ab"]);
        check(r"[\d\-x]\h", "", &["1 ", "-\t"], &["a "]);
    }

    #[test]
    fn a_literal_start_is_known_until_something_may_vary() {
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

    #[test]
    fn strings_symbols_and_equal_expressions_match() {
        let like = RawBson::RegularExpression(bson::Regex {
            pattern: bson::cstr!("^a").into(),
            options: bson::cstr!("i").into(),
        });
        let docs = [
            rawdoc! { "a": "Abc" },
            rawdoc! { "a": RawBson::Symbol("abc".into()) },
            rawdoc! { "a": like.clone() },
            rawdoc! { "a": ["x", "ax"] },
            rawdoc! { "a": RawBson::JavaScriptCode("abc".into()) },
            rawdoc! { "a": [["abc"]] },
            rawdoc! {},
        ];
        for wanted in [
            rawdoc! { "a": like.clone() },
            rawdoc! { "a": { "$regex": "^a", "$options": "i" } },
            rawdoc! { "a": { "$options": "i", "$regex": "^a" } },
            rawdoc! { "a": { "$in": [like.clone(), 7] } },
            rawdoc! { "a": { "$not": { "$not": like } } },
        ] {
            assert_eq!(hits(&docs, wanted.clone()), [0, 1, 2, 3], "{wanted:?}");
        }
    }

    #[test]
    fn malformed_expressions_are_refused_with_the_servers_code() {
        let code =
            |doc: RawDocumentBuf| Filter::parse(Doc::parse(doc.as_bytes()).unwrap(), &globals()).unwrap_err().code;
        let like = |options: &str| {
            let options = bson::raw::CString::try_from(options).unwrap();
            RawBson::RegularExpression(bson::Regex { pattern: bson::cstr!("a").into(), options })
        };
        assert_eq!(code(rawdoc! { "a": { "$regex": "(" } }), ErrorCode::Location51091);
        assert_eq!(code(rawdoc! { "a": { "$regex": "a", "$options": "q" } }), ErrorCode::Location51108);
        assert_eq!(code(rawdoc! { "a": { "$regex": 1 } }), ErrorCode::BadValue);
        assert_eq!(code(rawdoc! { "a": { "$options": "i" } }), ErrorCode::BadValue);
        assert_eq!(code(rawdoc! { "a": { "$regex": "a\0b" } }), ErrorCode::BadValue);
        assert_eq!(code(rawdoc! { "a": { "$options": "i", "$regex": like("i") } }), ErrorCode::Location51074);
        assert_eq!(code(rawdoc! { "a": { "$regex": like("i"), "$options": "i" } }), ErrorCode::Location51075);
        assert_eq!(
            filter(&rawdoc! { "a": { "$regex": like(""), "$options": "i" } }),
            filter(&rawdoc! { "a": like("i") })
        );
    }
}
