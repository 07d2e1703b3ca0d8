//! Texts back to back: text `i` is `bytes[offsets[i]..offsets[i + 1]]`.

/// Texts of rows.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// One more than there are texts. They never decrease.
    pub offsets: &'a [u32],
    /// The texts.
    pub bytes: &'a [u8],
}

/// Offsets and bytes of new texts.
pub type NewTexts = (Vec<u32>, Vec<u8>);

impl<'a> Texts<'a> {
    #[inline(always)]
    pub(crate) fn get(self, row: usize) -> &'a [u8] {
        match (self.offsets.get(row), self.offsets.get(row + 1)) {
            (Some(start), Some(end)) => self.bytes.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The texts.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let ends = self.offsets.iter().skip(1);
        self.offsets
            .iter()
            .zip(ends)
            .map(|(start, end)| self.bytes.get(*start as usize..*end as usize).unwrap_or_default())
    }
}

/// A part of joined texts.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// That of each row.
    Each(Texts<'a>),
    /// The same for all rows.
    Same(&'a [u8]),
}

/// Less than eight bytes, the first one lowest.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u32;
    // Of both halves, which overlap.
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes.first_chunk::<2>(), bytes.last()) {
        (Some(low), Some(high), ..) => {
            u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (8 * (len - 4))
        }
        (_, _, Some(low), Some(last)) => u64::from(u16::from_le_bytes(*low)) | u64::from(*last) << (8 * (len - 1)),
        (.., last) => last.map_or(0, |last| u64::from(*last)),
    }
}

/// Which texts equal `wanted`, as words (see `bits`).
#[inline(never)]
pub fn equal(texts: Texts<'_>, wanted: &[u8]) -> Vec<u64> {
    // Ids of one length mostly differ at their ends.
    let has_end: (Option<&[u8; 8]>, u64) = (wanted.last_chunk(), word(wanted.get(..7).unwrap_or(wanted)));
    let mut words = vec![0; texts.offsets.len().saturating_sub(1).div_ceil(64)];
    for (row, text) in texts.iter().enumerate().filter(|(_, text)| text.len() == wanted.len()) {
        let is_equal = match has_end {
            (Some(end), _) => text.last_chunk() == Some(end) && text == wanted,
            (None, word_of_wanted) => word(text) == word_of_wanted,
        };
        if let Some(word) = words.get_mut(row / 64) {
            *word |= u64::from(is_equal) << (row % 64);
        }
    }
    words
}

/// Appends a text. Most are short, and copies of a fixed length are faster than a copy of any length. Not inlined: it is long.
#[inline(never)]
fn append(out: &mut Vec<u8>, text: &[u8]) {
    let end = out.len() + text.len();
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(low), Some(high)) if text.len() <= 16 => {
            out.extend_from_slice(low);
            out.truncate(end - 8);
            out.extend_from_slice(high);
        }
        (Some(_), _) => out.extend_from_slice(text),
        _ => {
            out.extend_from_slice(&word(text).to_le_bytes());
            out.truncate(end);
        }
    }
}

#[inline(always)]
pub(crate) fn begun(rows: usize, bytes: usize) -> NewTexts {
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    (offsets, Vec::with_capacity(bytes))
}

/// Ends a text with this part.
#[inline(always)]
pub(crate) fn push(out: &mut NewTexts, text: &[u8]) {
    append(&mut out.1, text);
    out.0.push(u32::try_from(out.1.len()).unwrap_or(u32::MAX));
}

/// The parts of each row, one behind the other.
#[inline(never)]
pub fn joined(parts: &[Part<'_>], rows: usize) -> NewTexts {
    let len = |part: &Part<'_>| match part {
        Part::Each(texts) => texts.bytes.len(),
        Part::Same(text) => text.len() * rows,
    };
    let mut out = begun(rows, parts.iter().map(len).sum());
    for row in 0..rows {
        for part in parts {
            let text = match part {
                Part::Each(texts) => texts.get(row),
                Part::Same(text) => text,
            };
            append(&mut out.1, text);
        }
        push(&mut out, &[]);
    }
    out
}

/// The texts of the rows `rows`; empty ones for rows that are not there.
#[inline(never)]
pub fn gathered(texts: Texts<'_>, rows: &[u32]) -> NewTexts {
    let mut out = begun(rows.len(), 0);
    for row in rows {
        push(&mut out, texts.get(*row as usize));
    }
    out
}

/// Where a character begins; the end if there are fewer. A byte that begins a character continues none.
#[inline(always)]
fn place(text: &[u8], character: usize) -> usize {
    let mut begins = text.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
    begins.nth(character).map_or(text.len(), |(at, _)| at)
}

/// Of each text, so many characters of `counts` from the one with its number in `starts` on; all of them if their number is negative, unless it rounds to 0.
#[inline(never)]
pub fn characters(texts: Texts<'_>, starts: &[f64], counts: &[f64]) -> NewTexts {
    let mut out = begun(texts.offsets.len(), 0);
    let is_ascii = is_ascii(texts.bytes);
    for ((text, start), count) in texts.iter().zip(starts).zip(counts) {
        let place =
            |text: &[u8], character: usize| if is_ascii { character.min(text.len()) } else { place(text, character) };
        let count = if *count <= -1.0 { usize::MAX } else { *count as usize };
        let rest = text.get(place(text, *start as usize)..).unwrap_or_default();
        push(&mut out, rest.get(..place(rest, count)).unwrap_or_default());
    }
    out
}

/// How many bytes each text has.
#[inline(never)]
pub fn lengths(texts: Texts<'_>) -> Vec<f64> {
    texts.offsets.iter().zip(texts.offsets.iter().skip(1)).map(|(start, end)| f64::from(end - start)).collect()
}

/// Where a byte is first found. Eight bytes are tested at once.
#[inline(always)]
fn place_of_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    const LOW_BITS: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ (LOW_BITS * u64::from(wanted));
        // The lowest of these bits belongs to the first one that is found; higher ones may not.
        let found = word.wrapping_sub(LOW_BITS) & !word & (LOW_BITS << 7);
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == wanted).map(|at| bytes.len() - rest.len() + at)
}

/// Where a text first contains another one, from a place on. That one is in lower case if the case of ASCII letters is ignored.
#[inline(never)]
pub fn find(text: &[u8], wanted: &[u8], from: usize, ignores_case: bool) -> Option<usize> {
    let Some(first) = wanted.first() else { return Some(from).filter(|from| *from <= text.len()) };
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        if !ignores_case {
            at += place_of_byte(rest, *first)?;
        }
        let part = text.get(at..at + wanted.len())?;
        let is = |(byte, wanted): (&u8, &u8)| byte == wanted || ignores_case && byte.to_ascii_lowercase() == *wanted;
        if part.iter().zip(wanted).all(is) {
            return Some(at);
        }
        at += 1;
    }
}

/// Of a text with separators, the part with this number; from the end if it is negative.
#[inline(never)]
pub fn part<'a>(text: &'a [u8], separator: &[u8], number: i32) -> Option<&'a [u8]> {
    let next = |from: usize| find(text, separator, from, false).map(|at| (at, at + separator.len()));
    let mut number = i64::from(number);
    if number < 0 {
        let mut start = 0;
        number += 1;
        while let Some((_, end)) = next(start) {
            start = end;
            number += 1;
        }
    }
    let mut start = 0;
    for _ in 0..usize::try_from(number).ok()? {
        start = next(start)?.1;
    }
    text.get(start..next(start).map_or(text.len(), |(at, _)| at))
}

/// The part of each text with this number, and the rows that have one, as words (see `bits`).
#[inline(never)]
pub fn parts(texts: Texts<'_>, separator: &[u8], number: i32) -> (NewTexts, Vec<u64>) {
    let rows = texts.offsets.len().saturating_sub(1);
    let (mut out, mut words) = (begun(rows, 0), vec![0; rows.div_ceil(64)]);
    for (row, text) in texts.iter().enumerate() {
        let part = part(text, separator, number);
        if let (Some(_), Some(word)) = (part, words.get_mut(row / 64)) {
            *word |= 1 << (row % 64);
        }
        push(&mut out, part.unwrap_or_default());
    }
    (out, words)
}

/// True if all characters are single bytes.
#[inline(never)]
pub fn is_ascii(bytes: &[u8]) -> bool {
    bytes.is_ascii()
}

/// The bytes with lower-case ASCII letters, or with upper-case ones.
#[inline(never)]
pub fn in_case(bytes: &[u8], is_upper: bool) -> Vec<u8> {
    let first = if is_upper { b'a' } else { b'A' };
    bytes.iter().map(|byte| byte ^ u8::from(byte.wrapping_sub(first) < 26) << 5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts_of(texts: &[String]) -> NewTexts {
        let mut out = begun(texts.len(), 0);
        for text in texts {
            out.1.extend_from_slice(text.as_bytes());
            out.0.push(out.1.len() as u32);
        }
        out
    }

    fn view((offsets, bytes): &NewTexts) -> Texts<'_> {
        Texts { offsets, bytes }
    }

    proptest! {
        #[test]
        fn equal_texts_are_found_at_all_lengths(
            texts in proptest::collection::vec((0..30_usize, 0..30_usize, prop_oneof![Just('a'), Just('b')]), 0..200), len in 0..30_usize,
        ) {
            let text = |(len, place, other): &(usize, usize, char)| (0..*len).map(|at| if at == *place { *other } else { 'a' }).collect();
            let texts: Vec<String> = texts.iter().map(text).collect();
            let wanted = "a".repeat(len);
            let words = equal(view(&texts_of(&texts)), wanted.as_bytes());
            let expected: Vec<u32> = (0..).zip(&texts).filter(|(_, text)| **text == wanted).map(|(row, _)| row).collect();
            prop_assert_eq!(crate::bits::rows(&words), expected);
            prop_assert_eq!(words.len(), texts.len().div_ceil(64));
        }

        #[test]
        fn texts_are_those_of_the_standard_library(
            mut texts in proptest::collection::vec("[a-zA-Z]{0,40}|[aÄ€😀]{0,9}", 0..40), is_ascii in any::<bool>(), same in "[a-z]{0,9}",
            start in 0..12_usize, count in -3..12_i32, rows in proptest::collection::vec(0..50_u32, 0..60),
        ) {
            if is_ascii {
                texts.retain(|text| text.is_ascii());
            }
            let cells = texts_of(&texts);
            let expect = |of: &dyn Fn(&String) -> String| texts_of(&texts.iter().map(of).collect::<Vec<_>>());
            let part = |text: &String| text.chars().skip(start).take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
            let [starts, counts] = [start as f64, f64::from(count)].map(|n| vec![n; texts.len()]);
            prop_assert_eq!(characters(view(&cells), &starts, &counts), expect(&part));
            prop_assert_eq!(lengths(view(&cells)), texts.iter().map(|text| text.len() as f64).collect::<Vec<_>>());
            let parts = [Part::Each(view(&cells)), Part::Same(same.as_bytes()), Part::Each(view(&cells))];
            prop_assert_eq!(joined(&parts, texts.len()), expect(&|text| format!("{text}{same}{text}")));
            let picked: Vec<String> = rows.iter().map(|row| texts.get(*row as usize).cloned().unwrap_or_default()).collect();
            prop_assert_eq!(gathered(view(&cells), &rows), texts_of(&picked));
            for text in &texts {
                for wanted in [same.as_str(), text.get(1..2).unwrap_or("é"), &text.to_lowercase()] {
                    let bytes = text.as_bytes();
                    prop_assert_eq!(find(bytes, wanted.as_bytes(), 0, false), text.find(wanted));
                    if wanted.is_ascii() && text.is_ascii() {
                        let (text, wanted) = (text.to_ascii_lowercase(), wanted.to_ascii_lowercase());
                        let expected = text.get(start..).and_then(|rest| Some(start + rest.find(&wanted)?));
                        prop_assert_eq!(find(bytes, wanted.as_bytes(), start, true), expected);
                    }
                }
            }
            prop_assert_eq!(in_case(&cells.1, true), expect(&|text| text.to_ascii_uppercase()).1);
            prop_assert_eq!(in_case(&cells.1, false), expect(&|text| text.to_ascii_lowercase()).1);
        }
    }

    proptest! {
        #[test]
        fn parts_of_texts_are_those_between_separators(
            texts in proptest::collection::vec("[-a]{0,9}|[-ab]{0,40}", 0..70), separator in "-{1,2}|a-", number in -6..6_i32,
        ) {
            let part = |text: &String| {
                let parts: Vec<&str> = text.split(&separator).collect();
                let at = if number < 0 { parts.len().checked_sub(number.unsigned_abs() as usize)? } else { number as usize };
                parts.get(at).map(|part| (*part).to_owned())
            };
            let expected: Vec<Option<String>> = texts.iter().map(part).collect();
            let cells = texts_of(&texts);
            let (found, words) = parts(view(&cells), separator.as_bytes(), number);
            prop_assert_eq!(found, texts_of(&expected.iter().map(|part| part.clone().unwrap_or_default()).collect::<Vec<_>>()));
            prop_assert!(expected.iter().enumerate().all(|(row, part)| part.is_some() == (words[row / 64] >> (row % 64) & 1 == 1)));
        }
    }
}
