//! The collation of a query or a collection: what it asks of the host's collator, and how strings compare by it.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

use super::doc::{Doc, DocBuf};
use super::order::compare_with;
use super::raw::{Kind, Value};
use super::writer::DocWriter;
use crate::env::{Collating, Collator, Env};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;

/// How strings compare: by their bytes unless a locale says otherwise.
///
/// Collations are equal if their options are equal, so that values sorted by one can be compared by the other.
#[derive(Clone, Default)]
pub struct Collation(Option<Rc<Rules>>);

/// The rules of a locale.
pub struct Rules {
    collator: Rc<dyn Collator>,
    /// True if strings that the collator considers equal are told apart by their code points.
    identical: bool,
    /// All options, with defaults filled in.
    options: DocBuf,
}

impl Rules {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // Calls to the host's collator are expensive.
        if a == b {
            return Ordering::Equal;
        }
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let order = self.collator.compare(text(a), text(b));
        if self.identical { order.then_with(|| a.cmp(b)) } else { order }
    }
}

/// The order of two strings, given as bytes.
#[inline]
pub(super) fn compare_texts(rules: Option<&Rules>, a: &[u8], b: &[u8]) -> Ordering {
    match rules {
        None => a.cmp(b),
        Some(rules) => rules.compare(a, b),
    }
}

/// The values that an option accepts.
enum OptionValues {
    Text,
    Flag,
    Strength,
    OneOf(&'static [&'static str]),
}

impl OptionValues {
    /// The position of `text` among the accepted names; 0 if any text is accepted.
    fn place_of(&self, text: &str) -> Option<usize> {
        match self {
            OptionValues::OneOf(names) => names.iter().position(|name| *name == text),
            _ => Some(0),
        }
    }
}

static OPTIONS: [(&str, OptionValues); 10] = [
    ("locale", OptionValues::Text),
    ("caseLevel", OptionValues::Flag),
    ("caseFirst", OptionValues::OneOf(&["off", "upper", "lower"])),
    ("strength", OptionValues::Strength),
    ("numericOrdering", OptionValues::Flag),
    ("alternate", OptionValues::OneOf(&["non-ignorable", "shifted"])),
    ("maxVariable", OptionValues::OneOf(&["punct", "space"])),
    ("normalization", OptionValues::Flag),
    ("backwards", OptionValues::Flag),
    // The version of the server's library, which no host has.
    ("version", OptionValues::Text),
];

/// The host's names for the values of `caseFirst`.
const CASES: [&str; 3] = ["false", "upper", "lower"];

/// The server's and the hosts' names for the same variant of a locale.
const VARIANTS: [(&str, &str); 4] =
    [("phonebook", "phonebk"), ("traditional", "trad"), ("dictionary", "dict"), ("gb2312han", "gb2312")];

impl Collation {
    /// The collation in the field `collation` of a command; `None` if the field is missing or an empty document.
    ///
    /// Errors: as `parse`, and `TypeMismatch` if it is not a document.
    pub fn parse_optional(value: Option<Value<'_>>, env: &dyn Env) -> Result<Option<Collation>> {
        match value.filter(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined)) {
            None => Ok(None),
            Some(value) => match value.as_doc() {
                Some(doc) if doc.is_empty() => Ok(None),
                Some(doc) => Collation::parse(doc, env).map(Some),
                None => Err(mismatch("locale", value, "object")),
            },
        }
    }

    /// The collation that `doc` describes.
    ///
    /// Errors: `TypeMismatch`; 40414 without a locale; 40415 for unknown options; `BadValue` for values and
    /// combinations that make no sense, for locales that the host does not know, and for what no host can do;
    /// `FailedToParse` for options together with the simple locale.
    // Loaded later.
    #[inline(never)]
    pub fn parse(doc: Doc<'_>, env: &dyn Env) -> Result<Collation> {
        let (mut locale, mut options) = ("", [None; OPTIONS.len()]);
        for (name, value) in doc {
            let known = OPTIONS.iter().zip(&mut options).find(|((known, _), _)| *known == name);
            let Some(((_, shape), slot)) = known else {
                let message = format!("BSON field 'collation.{name}' is an unknown field");
                return Err(Error::new(ErrorCode::IDLUnknownField, message));
            };
            let (choice, kind) = match shape {
                OptionValues::Text | OptionValues::OneOf(_) => {
                    (value.as_str().map(|text| shape.place_of(text)), "string")
                }
                OptionValues::Flag => (value.as_truthy().map(|flag| Some(usize::from(flag))), "bool"),
                OptionValues::Strength => {
                    (value.as_integer().map(|n| usize::try_from(n).ok().filter(|n| (1..=5).contains(n))), "int")
                }
            };
            let choice = choice.ok_or_else(|| mismatch(name, value, kind))?;
            *slot = Some(choice.ok_or_else(|| {
                Error::bad_value(format!(
                    "Enumeration value {value:?} for field 'collation.{name}' is not a valid value"
                ))
            })?);
            if name == "locale" {
                locale = value.as_str().unwrap_or_default();
            }
        }
        let [known, case_level, case_first, strength, numeric, alternate, max_variable, normalization, backwards, _] =
            options;
        if known.is_none() {
            let message = "BSON field 'collation.locale' is missing but a required field";
            return Err(Error::new(ErrorCode::IDLFailedToParse, message));
        }
        if locale == "simple" {
            return match doc.iter().nth(1) {
                None => Ok(Collation::default()),
                Some(_) => {
                    let message = "If locale=simple, no other fields should be present in a collation";
                    Err(Error::new(ErrorCode::FailedToParse, message))
                }
            };
        }
        let (strength, case_level) = (strength.unwrap_or(3), case_level == Some(1));
        let sensitivity = match (strength, case_level) {
            (1, false) => "base",
            (1, true) => "case",
            (2, false) => "accent",
            _ => "variant",
        };
        let mut rules = Collating {
            locale: &tag_of(locale),
            sensitivity,
            numeric: numeric == Some(1),
            case_first: case_first.and_then(|at| CASES.get(at).copied()),
            ignores_punctuation: alternate.map(|at| at == 1),
        };
        let Some(collator) = env.collator(&mut rules) else {
            return Err(Error::bad_value(format!("Field 'locale' is invalid in: {doc:?}")));
        };
        let shifted = rules.ignores_punctuation == Some(true);
        let is_backwards = locale == "fr_CA";
        let problem = if backwards == Some(1) && strength == 1 {
            "'backwards' is invalid with 'strength' of 1"
        } else if case_first.is_some_and(|at| at > 0) && !case_level && strength < 3 {
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2"
        } else if case_level && strength > 1 {
            "'caseLevel' is not supported with 'strength' above 1"
        } else if shifted && strength > 3 {
            "'alternate' of shifted is not supported with 'strength' above 3"
        } else if shifted && max_variable == Some(1) {
            "'maxVariable' of space is not supported with 'alternate' of shifted"
        } else if backwards.is_some_and(|flag| (flag == 1) != is_backwards) {
            "'backwards' is not supported with this locale"
        } else {
            ""
        };
        if !problem.is_empty() {
            return Err(Error::bad_value(format!("{problem}: {doc:?}")));
        }
        let case_first = CASES.iter().position(|case| Some(*case) == rules.case_first);
        let choices = [
            0,
            usize::from(case_level),
            case_first.unwrap_or(0),
            strength,
            numeric.unwrap_or(0),
            usize::from(shifted),
            max_variable.unwrap_or(0),
            normalization.unwrap_or(0),
            usize::from(is_backwards),
        ];
        let mut options = DocWriter::new();
        for ((name, shape), choice) in OPTIONS.iter().zip(choices) {
            match shape {
                OptionValues::Text => options.string(name, locale),
                OptionValues::Flag => options.bool(name, choice == 1),
                OptionValues::Strength => options.int32(name, i32::try_from(choice).unwrap_or_default()),
                OptionValues::OneOf(names) => options.string(name, names.get(choice).copied().unwrap_or_default()),
            };
        }
        Ok(Collation(Some(Rc::new(Rules { collator, identical: strength == 5, options: options.finish() }))))
    }

    /// All options, with defaults filled in; `None` if strings compare by their bytes.
    pub fn options(&self) -> Option<Doc<'_>> {
        self.0.as_ref().map(|rules| rules.options.view())
    }

    /// True if strings compare by their bytes.
    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }

    /// BSON order of two values, with strings ordered by this collation.
    #[inline(always)]
    pub fn compare(&self, a: Value<'_>, b: Value<'_>) -> Ordering {
        compare_with(self.0.as_deref(), a, b)
    }

    /// The order of two strings, given as bytes.
    #[inline]
    pub fn compare_texts(&self, a: &[u8], b: &[u8]) -> Ordering {
        compare_texts(self.0.as_deref(), a, b)
    }

    /// The same for optional values: a missing value sorts like undefined, which is below null.
    pub fn compare_options(&self, a: Option<Value<'_>>, b: Option<Value<'_>>) -> Ordering {
        self.compare(a.unwrap_or(Value::UNDEFINED), b.unwrap_or(Value::UNDEFINED))
    }

    /// True if neither value sorts before the other.
    pub fn equal(&self, a: Value<'_>, b: Value<'_>) -> bool {
        a == b || self.compare(a, b).is_eq()
    }

    /// True if `value` compares as it does by bytes: it holds no string, or the collation is simple.
    pub fn is_simple_for(&self, value: Value<'_>) -> bool {
        self.is_simple() || holds_no_string(value)
    }

    /// True if `value` compares the same way by both collations.
    pub fn agrees_on(&self, value: Value<'_>, other: &Collation) -> bool {
        self == other || holds_no_string(value)
    }
}

fn holds_no_string(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::String | Kind::Symbol | Kind::CodeWithScope => false,
        _ => value.as_container().is_none_or(|doc| doc.iter().all(|(_, inner)| holds_no_string(inner))),
    }
}

/// The host's tag for a locale; empty if the server does not know the locale.
fn tag_of(locale: &str) -> String {
    let mut parts = locale.split('@');
    let mut tag = parts.next().unwrap_or_default().to_owned();
    let variant = parts.next().map(|part| part.strip_prefix("collation="));
    // The server joins the parts with `_`, which hosts do not accept.
    if tag.bytes().any(|byte| byte == b'-') || variant == Some(None) || parts.next().is_some() {
        return String::new();
    }
    tag = tag.split('_').listed().join("-");
    if let Some(variant) = variant.flatten() {
        let known = VARIANTS.iter().find(|(name, _)| *name == variant);
        tag += "-u-co-";
        tag += known.map_or(variant, |(_, host)| host);
    }
    tag
}

fn mismatch(name: &str, value: Value<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field 'collation.{name}' is the wrong type '{}', expected type '{expected}'",
        value.kind().alias()
    ))
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.options() == other.options()
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{object, owned};
    use super::super::{OwnedValue, compare};
    use super::*;
    use crate::env::fixed::FixedEnv;
    use bson::{RawBson, RawDocumentBuf, rawbson, rawdoc};

    fn collation(options: RawDocumentBuf) -> Collation {
        Collation::parse(Doc::parse(options.as_bytes()).unwrap(), &FixedEnv::default()).unwrap()
    }

    fn base() -> Collation {
        collation(rawdoc! { "locale": "en", "strength": 1 })
    }

    #[test]
    fn locales_are_spelt_as_hosts_spell_them() {
        for (server, host) in [
            ("de", "de"),
            ("en_US", "en-US"),
            ("zh_Hant_HK", "zh-Hant-HK"),
            ("de@collation=phonebook", "de-u-co-phonebk"),
            ("es_ES@collation=traditional", "es-ES-u-co-trad"),
            ("zh@collation=pinyin", "zh-u-co-pinyin"),
            ("en-US", ""),
            ("de@strength=1", ""),
            ("de@collation=phonebook@collation=phonebook", ""),
        ] {
            assert_eq!(tag_of(server), host);
        }
    }

    #[test]
    fn strings_and_symbols_compare_by_the_collation_and_code_does_not() {
        let (upper, lower) = (OwnedValue::string("É"), OwnedValue::string("e"));
        let symbol = owned(RawBson::Symbol("E".into()));
        for (a, b) in [(&upper, &lower), (&symbol, &lower)] {
            assert!(base().equal(a.view(), b.view()));
            assert!(compare(a.view(), b.view()).is_ne());
        }
        let [a, b] = ["a", "A"].map(|code| owned(RawBson::JavaScriptCode(code.into())));
        assert_eq!(base().compare(a.view(), b.view()), Ordering::Greater);
        assert_eq!(base().compare_options(None, Some(Value::NULL)), Ordering::Less);
    }

    #[test]
    fn names_of_fields_compare_by_their_bytes() {
        let same = [rawdoc! { "k": ["A", { "x": "é" }] }, rawdoc! { "k": ["a", { "x": "E" }] }].map(|doc| object(&doc));
        assert!(base().equal(same[0].view(), same[1].view()));
        let other = [rawdoc! { "k": "a" }, rawdoc! { "K": "a" }].map(|doc| object(&doc));
        assert_eq!(base().compare(other[0].view(), other[1].view()), Ordering::Greater);
    }

    #[test]
    fn at_the_highest_strength_ties_are_broken_by_code_points() {
        let compare = |strength: i32, a: &str, b: &str| {
            collation(rawdoc! { "locale": "en", "strength": strength }).compare_texts(a.as_bytes(), b.as_bytes())
        };
        assert_eq!(compare(3, "a\0", "a"), Ordering::Equal);
        assert_eq!(compare(5, "a\0", "a"), Ordering::Greater);
        assert_eq!(compare(5, "a\0", "b"), Ordering::Less);
    }

    #[test]
    fn values_without_strings_compare_alike_under_every_collation() {
        let simple = Collation::default();
        for (value, agree) in [
            (rawbson!(1), true),
            (rawbson!([1, { "a": true }]), true),
            (rawbson!("a"), false),
            (rawbson!([1, { "a": "b" }]), false),
            (RawBson::Symbol("a".into()), false),
        ] {
            let value = owned(value);
            assert_eq!(base().agrees_on(value.view(), &simple), agree, "{value:?}");
            assert_eq!(base().is_simple_for(value.view()), agree, "{value:?}");
            assert!(base().agrees_on(value.view(), &base()) && simple.is_simple_for(value.view()));
        }
        assert_ne!(base(), collation(rawdoc! { "locale": "en", "strength": 2 }));
        assert_eq!(simple, collation(rawdoc! { "locale": "simple" }));
    }
}
