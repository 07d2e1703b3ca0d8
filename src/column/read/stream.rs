//! Reads one stream element by element: for the scalars of sections, and for types of variable width.

use kernels::words::{KnownText, read_texts};

use super::super::integer::{Coding, of_bytes, of_object_id, of_text, to_object_id, to_text, unzigzag, unzigzag128};
use super::super::scale::{self, Scale};
use super::super::selector::WordLayout;
use super::typed::{BAD_SCALE, NO_INTEGER, ONLY_REPEATS};
use super::words::{BAD_SELECTOR, Slots, ZERO_WORD, last_slot, run_len};
use crate::value::{Kind, fixed};

/// Maximum bytes of a value made from an integer: a string of sixteen bytes with its length and its NUL.
const MADE_LEN_MAX: usize = 21;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Missing.
    Missing,
    /// The last present element again.
    Same,
    /// A new value, which `StreamReader::value` returns.
    New,
}

/// The state of a stream after an element.
pub struct StreamReader<'a> {
    /// `None` before the first value: all elements are missing.
    kind: Option<Kind>,
    /// The last present element as it stands in the column; if `made` is not empty, that is the element.
    literal: &'a [u8],
    made: [u8; MADE_LEN_MAX],
    made_len: u8,
    scale: Scale,
    /// The integer of the last present element, and its difference from the one before.
    integer: i128,
    slope: i64,
    /// The words of the open control that have not begun.
    words: &'a [u8],
    /// The last word that is not a run, and what is left of it.
    word: u64,
    slots: Option<Slots>,
    /// Elements left in the current run.
    run: usize,
}

impl<'a> StreamReader<'a> {
    /// A stream without a value: elements are missing until one comes.
    pub fn new() -> StreamReader<'a> {
        StreamReader {
            kind: None,
            literal: &[],
            made: [0; MADE_LEN_MAX],
            made_len: 0,
            scale: scale::RAW,
            integer: 0,
            slope: 0,
            words: &[],
            word: ZERO_WORD,
            slots: None,
            run: 0,
        }
    }

    /// A stream that continues after a checked value.
    pub fn behind(kind: Kind, literal: &'a [u8]) -> StreamReader<'a> {
        let integer = match Coding::of(kind) {
            Coding::Delta128 => match kind {
                Kind::String | Kind::Code => of_text(text_of(literal)),
                Kind::Binary => of_bytes(literal.get(5..).unwrap_or_default()),
                _ => of_bytes(literal),
            }
            .unwrap_or_default()
            .cast_signed(),
            Coding::Repeat => 0,
            _ => i128::from(match kind {
                Kind::Int32 => i64::from(i32::from_le_bytes(fixed(literal))),
                Kind::Bool => i64::from(literal == [1]),
                Kind::ObjectId => of_object_id(fixed(literal)),
                _ => i64::from_le_bytes(fixed(literal)),
            }),
        };
        StreamReader { kind: Some(kind), literal, integer, ..StreamReader::new() }
    }

    /// Opens a control. The previous one must be exhausted.
    ///
    /// Errors: `BAD_SCALE`, `NO_INTEGER`.
    pub fn open(&mut self, control: u8, words: &'a [u8]) -> Result<(), &'static str> {
        if self.kind == Some(Kind::Double) {
            self.scale = scale::scale_of(control).ok_or(BAD_SCALE)?;
            let last = f64::from_le_bytes(fixed(self.bytes()));
            self.integer = scale::encode(last, self.scale).ok_or(NO_INTEGER)?.into();
        } else if control & 0xF0 != 0x80 {
            return Err(BAD_SCALE);
        }
        self.words = words;
        Ok(())
    }

    /// True if the next element needs another literal or control.
    pub fn is_exhausted(&self) -> bool {
        self.run == 0 && self.slots.is_none_or(|slots| slots.left() == 0) && self.words.is_empty()
    }

    /// The next elements, if several are alike: returns how many, at most `count_max`, which must be above zero. The
    /// stream must not be exhausted.
    ///
    /// Errors: `BAD_SELECTOR`, a difference that its type cannot have, and a string that is not UTF-8.
    pub fn next(&mut self, count_max: usize) -> Result<(Element, usize), &'static str> {
        let raw = loop {
            if self.run > 0 {
                self.run -= 1;
                break last_slot(self.word);
            }
            if let Some(slot) = self.slots.as_mut().and_then(Iterator::next) {
                break slot;
            }
            let (word, rest) = self.words.split_first_chunk().ok_or("a stream is exhausted")?;
            self.words = rest;
            let word = u64::from_le_bytes(*word);
            match run_len(word) {
                Some(len) => self.run = len,
                None => {
                    self.slots = Some(Slots::new(word, WordLayout::of(word).ok_or(BAD_SELECTOR)?));
                    self.word = word;
                }
            }
        };
        let element = match (raw, self.kind) {
            (Some(raw), Some(kind)) => self.step(kind, raw.narrow(), raw.wide())?,
            _ => Element::Missing,
        };
        let mut count = 1;
        // The rest of the run does the same, unless this was a change of slope that made the slope zero.
        if element == Element::Missing || element == Element::Same && raw.is_some_and(|raw| raw.narrow() == 0) {
            let more = self.run.min(count_max - 1);
            self.run -= more;
            count += more;
        }
        Ok((element, count))
    }

    /// The integer of the last present element, if it is a string that was made of differences: the integer alone says which.
    pub fn text(&self) -> Option<i128> {
        (self.kind == Some(Kind::String)).then_some(self.integer)
    }

    /// Reads whole words of strings that are in `known`, at most `room` of them, and appends their entries. `last` is the
    /// entry of the last present element. `value` does not show these elements.
    pub fn read_texts(&mut self, known: &[KnownText], last: &mut u32, room: usize, entries: &mut Vec<u32>) {
        if self.text().is_none() || self.run > 0 || self.slots.is_some_and(|slots| slots.left() > 0) {
            return;
        }
        let words = self.words.as_chunks().0;
        let read = read_texts(words, known, (&mut self.integer, last), room, entries);
        if let Some((read, rest)) = words.split_at_checked(read)
            && let Some(word) = read.last()
        {
            self.word = u64::from_le_bytes(*word);
            self.words = rest.as_flattened();
        }
    }

    fn step(&mut self, kind: Kind, narrow: u64, wide: u128) -> Result<Element, &'static str> {
        // The low half is the integer of all 64-bit types.
        let low = self.integer as i64;
        self.integer = match Coding::of(kind) {
            Coding::Repeat if narrow == 0 => return Ok(Element::Same),
            Coding::Repeat => return Err(ONLY_REPEATS),
            Coding::Delta | Coding::Double if narrow == 0 => return Ok(Element::Same),
            Coding::Delta | Coding::Double => low.wrapping_add(unzigzag(narrow)).into(),
            Coding::DeltaOfDelta => {
                self.slope = self.slope.wrapping_add(unzigzag(narrow));
                if self.slope == 0 {
                    return Ok(Element::Same);
                }
                low.wrapping_add(self.slope).into()
            }
            Coding::Delta128 if wide == 0 => return Ok(Element::Same),
            Coding::Delta128 => self.integer.wrapping_add(unzigzag128(wide)),
        };
        self.make(kind)?;
        Ok(Element::New)
    }

    /// Builds the value of the integer.
    fn make(&mut self, kind: Kind) -> Result<(), &'static str> {
        let low = self.integer as i64;
        let wide = self.integer.to_le_bytes();
        let mut made = [0; MADE_LEN_MAX];
        let len = match kind {
            Kind::Double => put(&mut made, 0, &scale::decode(low, self.scale).to_le_bytes()),
            Kind::Bool => put(&mut made, 0, &[u8::from(low != 0)]),
            Kind::Int32 => put(&mut made, 0, &(low as i32).to_le_bytes()),
            Kind::ObjectId => put(&mut made, 0, &to_object_id(low, fixed(self.bytes()))),
            Kind::Decimal128 => put(&mut made, 0, &wide),
            Kind::String | Kind::Code => {
                let bytes = self.integer.to_be_bytes();
                let text = to_text(&bytes);
                std::str::from_utf8(text).map_err(|_| "a string is not UTF-8")?;
                put(&mut made, 0, &(text.len() as u32 + 1).to_le_bytes());
                // The NUL at its end is zero already.
                put(&mut made, 4, text) + 1
            }
            Kind::Binary => {
                // Length and subtype stay the same.
                let len = self.bytes().len().saturating_sub(5);
                put(&mut made, 0, self.bytes().get(..5).unwrap_or_default());
                put(&mut made, 5, wide.get(..len).ok_or("a difference between binaries longer than 16 bytes")?)
            }
            _ => put(&mut made, 0, &low.to_le_bytes()),
        };
        self.made = made;
        self.made_len = len as u8;
        Ok(())
    }

    /// The last present element, or the value after which the stream started; `None` before any value.
    pub fn value(&self) -> Option<(Kind, &[u8])> {
        self.kind.map(|kind| (kind, self.bytes()))
    }

    fn bytes(&self) -> &[u8] {
        if self.made_len == 0 { self.literal } else { self.made.get(..usize::from(self.made_len)).unwrap_or_default() }
    }
}

/// Writes `bytes` at `at` and returns where they end.
fn put(made: &mut [u8; MADE_LEN_MAX], at: usize, bytes: &[u8]) -> usize {
    if let Some(place) = made.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
    at + bytes.len()
}

/// The text in the bytes of a string value.
pub fn text_of(string: &[u8]) -> &[u8] {
    string.get(4..string.len().saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::integer::zigzag128;
    use crate::column::read::forge::{Forge, deltas, int, pack, plain, run, string};
    use crate::column::selector::EIGHT_LARGE;
    use crate::value::OwnedValue;

    fn tagged(kind: Kind, bytes: &[u8]) -> OwnedValue {
        OwnedValue::from_tagged_checked([&[kind.byte()][..], bytes].concat())
    }

    fn binary(subtype: u8, bytes: &[u8]) -> OwnedValue {
        tagged(Kind::Binary, &[&(bytes.len() as u32).to_le_bytes()[..], &[subtype], bytes].concat())
    }

    fn cells(forge: Forge) -> Vec<OwnedValue> {
        forge.end().cells().into_iter().flatten().collect()
    }

    #[test]
    fn texts_may_change_their_length_and_become_empty() {
        let a = i64::from(b'a');
        let column = Forge::default().literal(&string("a")).control(0x80, &[deltas(&[a * 256, 0, -a * 257])]);
        assert_eq!(cells(column), ["a", "aa", "aa", ""].map(string));
    }

    #[test]
    fn a_long_string_is_repeated_by_zeros_and_the_next_difference_is_from_zero() {
        let long = string(&"long ".repeat(10));
        let column = Forge::default().literal(&long).control(0x80, &[deltas(&[0, 0, 0x41]), deltas(&[1, 1])]);
        let cells = cells(column);
        assert_eq!(cells[..3], [long.clone(), long.clone(), long]);
        assert_eq!(cells[3..6], ["A", "B", "C"].map(string));
        // The same with a string that begins with a NUL.
        let column = Forge::default().literal(&string("\0a")).control(0x80, &[deltas(&[0, 0x41])]);
        assert_eq!(self::cells(column), ["\0a", "\0a", "A"].map(string));
    }

    #[test]
    fn differences_of_128_bits_change_the_first_byte() {
        let raw = zigzag128(i128::from(b'b' - b'a') << 120);
        assert_eq!(raw, 2 << 120);
        let word = pack(EIGHT_LARGE[5], &[Some(2 << 5 | 30)]);
        let text = |first: char| string(&format!("{first}bcdefghijklmnop"));
        let column = Forge::default().literal(&text('a')).control(0x80, &[word, word]);
        assert_eq!(cells(column), ['a', 'b', 'c'].map(text));
        let column = Forge::default().literal(&tagged(Kind::Decimal128, &[0; 16])).control(0x80, &[word]);
        let mut expected = [0; 16];
        expected[15] = 1;
        assert_eq!(cells(column)[1], tagged(Kind::Decimal128, &expected));
    }

    #[test]
    fn a_text_made_of_differences_that_is_not_utf8_is_refused() {
        let column = Forge::default().literal(&string("a")).control(0x80, &[deltas(&[0x60])]).end();
        assert_eq!(column.refusal(), ("a string is not UTF-8", 8));
    }

    #[test]
    fn binaries_keep_their_length_and_subtype() {
        let column = Forge::default().literal(&binary(7, &[1, 2])).control(0x80, &[deltas(&[0x0100, 0x0100_0001])]);
        // The value loses what exceeds its length; the differences do not.
        assert_eq!(cells(column), [[1, 2], [1, 3], [2, 3]].map(|bytes| binary(7, &bytes)));
    }

    #[test]
    fn long_binaries_and_types_without_deltas_can_only_repeat() {
        let regex = tagged(Kind::Regex, b"a\0i\0");
        let object = crate::column::read::forge::object(&[]);
        for value in [binary(0, &[3; 17]), OwnedValue::null(), regex, object, tagged(Kind::MaxKey, &[])] {
            let column = Forge::default().literal(&value).control(0x80, &[plain(&[Some(0), None, Some(0)])]).end();
            assert_eq!(column.cells(), [Some(value.clone()), Some(value.clone()), None, Some(value.clone())]);
            let column = Forge::default().literal(&value).control(0x80, &[deltas(&[0, 1])]).end();
            assert!(column.refusal().0.starts_with("a difference"), "{value:?}");
            let column = Forge::default().literal(&value).control(0x90, &[deltas(&[0])]).end();
            assert_eq!(column.refusal().0, BAD_SCALE);
        }
    }

    #[test]
    fn timestamps_use_deltas_of_deltas() {
        let at = |increment: u32| tagged(Kind::Timestamp, &[increment.to_le_bytes(), 5_u32.to_le_bytes()].concat());
        let column = Forge::default().literal(&at(1)).control(0x80, &[plain(&[Some(2), None, Some(0)]), deltas(&[-1])]);
        assert_eq!(cells(column), [1, 2, 3, 3].map(at));
    }

    #[test]
    fn a_run_of_equal_elements_is_taken_at_once_up_to_the_limit() {
        let null = Forge::default().control(0x80, &[run(1)]).bytes;
        let mut stream = StreamReader::behind(Kind::Null, &[]);
        stream.open(0x80, &null[1..]).unwrap();
        assert_eq!(stream.next(100), Ok((Element::Same, 100)));
        assert_eq!(stream.next(100), Ok((Element::Same, 20)));
        assert!(stream.is_exhausted());
        let counter = Forge::default().control(0x80, &[deltas(&[1]), run(1)]).bytes;
        let first = int(1);
        let mut stream = StreamReader::behind(Kind::Int32, first.view().bytes());
        stream.open(0x80, &counter[1..]).unwrap();
        for n in 2..=122 {
            assert_eq!(stream.next(100), Ok((Element::New, 1)));
            assert_eq!(stream.value(), Some((Kind::Int32, int(n).view().bytes())));
        }
        assert!(stream.is_exhausted());
    }
}
