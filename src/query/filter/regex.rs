//! `$regex` with its `$options`.

use std::rc::Rc;

use super::parse::{bad, wrong};
use super::tree::{Filter, Test};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{Globals, Regex};
use crate::value::{Doc, Path};

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
                    let text = operand.as_str().ok_or_else(|| wrong(name, "has to be a string", operand))?;
                    pattern = Some(text);
                }
            },
            "$options" => {
                let flags = operand.as_str().ok_or_else(|| wrong(name, "has to be a string", operand))?;
                if !options.is_empty() {
                    return Err(twice(ErrorCode::Location51075));
                }
                options = flags;
            }
            _ => {}
        }
    }
    let pattern = pattern.ok_or_else(|| bad("$options", "needs a $regex"))?;
    Ok(Filter::Field(path.clone(), Test::Regex(Rc::new(Regex::new(pattern, options, globals)?))))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{filter, globals, hits};
    use super::*;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

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
