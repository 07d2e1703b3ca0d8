//! Texts that are trimmed, replaced or split.

use crate::texts::{NewTexts, Texts, begun, find, push};

/// Characters that are trimmed.
#[derive(Clone, Debug)]
pub struct Trimmed<'c> {
    /// The characters.
    pub chars: &'c str,
    /// Whether the start of a text is trimmed.
    pub start: bool,
    /// Whether its end is trimmed.
    pub end: bool,
}

impl Trimmed<'_> {
    #[inline(always)]
    fn of<'t>(&self, text: &'t [u8], ascii: u128, others: &[char]) -> &'t [u8] {
        let goes = |letter: char| match u32::from(letter) {
            code @ ..128 => ascii >> code & 1 == 1,
            _ => others.contains(&letter),
        };
        let mut rest = std::str::from_utf8(text).unwrap_or_default();
        if self.start {
            rest = rest.trim_start_matches(goes);
        }
        if self.end {
            rest = rest.trim_end_matches(goes);
        }
        rest.as_bytes()
    }
}

/// The texts without the characters at their starts or ends.
#[inline(never)]
pub fn trimmed(texts: Texts<'_>, what: &Trimmed<'_>) -> NewTexts {
    let (mut ascii, mut others) = (0_u128, Vec::new());
    for letter in what.chars.chars() {
        match u32::from(letter) {
            code @ ..128 => ascii |= 1 << code,
            _ => others.push(letter),
        }
    }
    let mut out = begun(texts.offsets.len(), texts.bytes.len());
    texts.iter().for_each(|text| push(&mut out, what.of(text, ascii, &others)));
    out
}

/// The texts with `new` in place of `wanted`: everywhere, or only where it is found first. The empty text is found between any two characters.
#[inline(never)]
pub fn replaced(texts: Texts<'_>, wanted: &[u8], new: &[u8], everywhere: bool) -> NewTexts {
    let mut out = begun(texts.offsets.len(), texts.bytes.len());
    for text in texts.iter() {
        let (mut start, mut from) = (0, 0);
        while let Some(at) = find(text, wanted, from, false) {
            from = at + wanted.len().max(1);
            // Inside of a character, only the empty text is found.
            if text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                continue;
            }
            out.1.extend_from_slice(text.get(start..at).unwrap_or_default());
            out.1.extend_from_slice(new);
            start = at + wanted.len();
            if !everywhere {
                break;
            }
        }
        push(&mut out, text.get(start..).unwrap_or_default());
    }
    out
}

/// The parts of all texts between separators, which are not empty, and the number of parts up to the end of each text.
#[inline(never)]
pub fn split(texts: Texts<'_>, separator: &[u8]) -> (NewTexts, Vec<u32>) {
    let mut out = begun(2 * texts.offsets.len(), texts.bytes.len());
    let mut ends = Vec::with_capacity(texts.offsets.len());
    for text in texts.iter() {
        let mut start = 0;
        while let Some(at) = find(text, separator, start, false) {
            push(&mut out, text.get(start..at).unwrap_or_default());
            start = at + separator.len();
        }
        push(&mut out, text.get(start..).unwrap_or_default());
        ends.push((out.0.len() - 1) as u32);
    }
    (out, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts_of<T: AsRef<str>>(texts: &[T]) -> NewTexts {
        let mut out = begun(texts.len(), 0);
        texts.iter().for_each(|text| push(&mut out, text.as_ref().as_bytes()));
        out
    }

    proptest! {
        #[test]
        fn texts_are_edited_as_by_the_standard_library(
            texts in proptest::collection::vec("[-ab ]{0,12}|[ ä€\u{a0}\u{2003}a]{0,6}", 0..40),
            wanted in "[-ab]{0,2}|ä", new in "[a-c]{0,3}|€", chars in "[ab ]{0,2}|[ä\u{a0} ]{0,3}", start in any::<bool>(), end in any::<bool>(),
        ) {
            let (offsets, bytes) = texts_of(&texts);
            let cells = Texts { offsets: &offsets, bytes: &bytes };
            let expect = |of: &dyn Fn(&str) -> String| texts_of(&texts.iter().map(|text| of(text)).collect::<Vec<_>>());
            let goes = |letter: char| chars.contains(letter);
            let trim = |text: &str| {
                let text = if start { text.trim_start_matches(goes) } else { text };
                if end { text.trim_end_matches(goes) } else { text }.to_owned()
            };
            prop_assert_eq!(trimmed(cells, &Trimmed { chars: &chars, start, end }), expect(&trim));
            let (find, new_bytes) = (wanted.as_bytes(), new.as_bytes());
            prop_assert_eq!(replaced(cells, find, new_bytes, true), expect(&|text| text.replace(&wanted, &new)));
            prop_assert_eq!(replaced(cells, find, new_bytes, false), expect(&|text| text.replacen(&wanted, &new, 1)));
            if wanted.is_empty() {
                return Ok(());
            }
            let parts: Vec<&str> = texts.iter().flat_map(|text| text.split(&wanted)).collect();
            let ends = texts.iter().scan(0, |end, text| {
                *end += text.split(&wanted).count() as u32;
                Some(*end)
            });
            prop_assert_eq!(split(cells, find), (texts_of(&parts), ends.collect()));
        }
    }
}
