//! One stream, element by element: for the scalars of sections, and for types without a width.

use super::integer::{Coding, of_bytes, of_object_id, of_text, to_object_id, to_text, unzigzag, unzigzag128};
use super::scale::{self, Scale};
use super::selector::Layout;
use super::typed::{BAD_SCALE, NO_INTEGER};
use super::words::{BAD_SELECTOR, Slots, ZERO_WORD, last_slot, run_len};
use crate::value::{Kind, fixed};

/// The most bytes that a value made from an integer has: a text of sixteen with its length and its end.
const MADE_LEN_MAX: usize = 21;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Missing.
    Missing,
    /// The last present element again.
    Same,
    /// What `Stream::value` gives now.
    New,
}

/// The state behind an element.
pub struct Stream<'a> {
    /// `None` before any value: all elements are missing.
    kind: Option<Kind>,
    /// The last present element: as it stands in the column, or `made` if that has bytes.
    literal: &'a [u8],
    made: [u8; MADE_LEN_MAX],
    made_len: u8,
    scale: Scale,
    /// The integer of the last present element, and its difference to the one before.
    integer: i128,
    slope: i64,
    /// The words of the open control that were not begun.
    words: &'a [u8],
    /// The last word that is no run, and what is left of it.
    word: u64,
    slots: Option<Slots>,
    /// What is left of a run.
    run: usize,
}

impl<'a> Stream<'a> {
    /// A stream without a value: elements are missing until there is one.
    pub fn new() -> Stream<'a> {
        Stream {
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

    /// A stream behind a value, which is checked.
    pub fn behind(kind: Kind, literal: &'a [u8]) -> Stream<'a> {
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
        Stream { kind: Some(kind), literal, integer, ..Stream::new() }
    }

    /// Opens a control; the one before must be exhausted.
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

    /// True where the next element needs another literal or control.
    pub fn is_exhausted(&self) -> bool {
        self.run == 0 && self.slots.is_none_or(|slots| slots.left() == 0) && self.words.is_empty()
    }

    /// The next elements, if they are alike: how many, but not more than `count_max`, which is above zero. The stream must not
    /// be exhausted.
    ///
    /// Errors: `BAD_SELECTOR`, a difference that its type cannot have, and a text that is not UTF-8.
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
                    self.slots = Some(Slots::new(word, Layout::of(word).ok_or(BAD_SELECTOR)?));
                    self.word = word;
                }
            }
        };
        let element = match (raw, self.kind) {
            (Some(raw), Some(kind)) => self.step(kind, raw.narrow(), raw.wide())?,
            _ => Element::Missing,
        };
        let mut count = 1;
        // The rest of a run does the same, unless it was a change of slope that made the slope zero.
        if element == Element::Missing || element == Element::Same && raw.is_some_and(|raw| raw.narrow() == 0) {
            let more = self.run.min(count_max - 1);
            self.run -= more;
            count += more;
        }
        Ok((element, count))
    }

    fn step(&mut self, kind: Kind, narrow: u64, wide: u128) -> Result<Element, &'static str> {
        // The low half is the integer of all types of 64 bits.
        let low = self.integer as i64;
        self.integer = match Coding::of(kind) {
            Coding::Repeat if narrow == 0 => return Ok(Element::Same),
            Coding::Repeat => return Err("a difference where there can only be the same value"),
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

    /// Makes the value of the integer.
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
                std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
                put(&mut made, 0, &(text.len() as u32 + 1).to_le_bytes());
                // Its end is zero already.
                put(&mut made, 4, text) + 1
            }
            Kind::Binary => {
                // Length and subtype stay.
                let len = self.bytes().len().saturating_sub(5);
                put(&mut made, 0, self.bytes().get(..5).unwrap_or_default());
                put(&mut made, 5, wide.get(..len).ok_or("a difference of binaries that are too long for one")?)
            }
            _ => put(&mut made, 0, &low.to_le_bytes()),
        };
        self.made = made;
        self.made_len = len as u8;
        Ok(())
    }

    /// The last present element, or what the stream began behind; `None` before any value.
    pub fn value(&self) -> Option<(Kind, &[u8])> {
        self.kind.map(|kind| (kind, self.bytes()))
    }

    fn bytes(&self) -> &[u8] {
        if self.made_len == 0 { self.literal } else { self.made.get(..usize::from(self.made_len)).unwrap_or_default() }
    }
}

/// Writes `bytes` at `at` and gives the end of them.
fn put(made: &mut [u8; MADE_LEN_MAX], at: usize, bytes: &[u8]) -> usize {
    if let Some(place) = made.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
    at + bytes.len()
}

/// The text in a string.
pub fn text_of(string: &[u8]) -> &[u8] {
    string.get(4..string.len().saturating_sub(1)).unwrap_or_default()
}
