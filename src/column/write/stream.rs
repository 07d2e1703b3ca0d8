//! Writes one stream: the previous element, the values pending for a word, and the bytes so far.

use super::super::integer::{Coding, of_bytes, of_object_id, of_text, process_of, zigzag, zigzag128};
use super::control::ControlWriter;
use super::double::DoubleWriter;
use super::word::{RawValue, WordWriter};
use crate::block::Bytes12;
use crate::value::{Kind, Value};

/// The high nibble of controls of all types except double.
const PLAIN: u8 = 0x80;

/// Writes each element as the difference from the previous one, or as a literal if there is none or the difference does
/// not fit.
#[derive(Clone, Debug)]
pub struct StreamWriter {
    controls: ControlWriter,
    /// The pending values of 64-bit codings and before the first literal.
    words: WordWriter<u64>,
    /// What follows the last literal: its type, and the state of its coding.
    kind: Option<Kind>,
    state: StreamState,
}

#[derive(Clone, Debug)]
enum StreamState {
    /// Before the first literal: only missing elements.
    Start,
    Delta {
        integer: i64,
    },
    /// Only ObjectIds have an `id`, and only its process is used.
    DeltaOfDelta {
        integer: i64,
        delta: i64,
        id: Bytes12,
    },
    Double(DoubleWriter),
    /// Boxed: such streams are rare and their words are large.
    Delta128(Box<Wide>),
    Repeat {
        previous: Vec<u8>,
    },
}

/// The state of 128-bit types.
#[derive(Clone, Debug)]
struct Wide {
    words: WordWriter<u128>,
    previous: Vec<u8>,
    /// `None` if `previous` has no integer.
    integer: Option<u128>,
}

impl StreamWriter {
    /// A stream without elements.
    pub fn new() -> StreamWriter {
        StreamWriter { controls: ControlWriter::new(), words: WordWriter::new(), kind: None, state: StreamState::Start }
    }

    /// A stream that continues after a literal written elsewhere.
    pub fn after(value: Value<'_>) -> StreamWriter {
        let mut stream = StreamWriter::new();
        stream.reset(value);
        stream
    }

    /// Appends a value that is not an object or array, or that contains no scalars.
    pub fn push(&mut self, value: Value<'_>) {
        if self.kind != Some(value.kind()) || !self.push_difference(value) {
            self.flush();
            self.controls.literal(value.kind().byte(), value.bytes());
            self.reset(value);
        }
    }

    /// Appends `count` missing elements.
    pub fn skip(&mut self, count: usize) {
        match &mut self.state {
            StreamState::Double(double) => {
                // The first words may end before the run, and the scale may change with them.
                for done in 0..count {
                    if self.words.repeats(u64::MISSING) {
                        self.words.repeat(u64::MISSING, count - done, &mut self.controls, double.nibble());
                        return;
                    }
                    double.skip(&mut self.words, &mut self.controls);
                }
            }
            StreamState::Delta128(wide) => wide.words.repeat(u128::MISSING, count, &mut self.controls, PLAIN),
            _ => self.words.repeat(u64::MISSING, count, &mut self.controls, PLAIN),
        }
    }

    /// Appends a value, `count` times.
    pub fn repeat(&mut self, value: Value<'_>, count: usize) {
        // The second repetition brings the delta of deltas to zero.
        for _ in 0..count.min(2) {
            self.push(value);
        }
        let rest = count.saturating_sub(2);
        match &mut self.state {
            StreamState::Double(double) => self.words.repeat(0, rest, &mut self.controls, double.nibble()),
            StreamState::Delta128(wide) => wide.words.repeat(0, rest, &mut self.controls, PLAIN),
            _ => self.words.repeat(0, rest, &mut self.controls, PLAIN),
        }
    }

    /// Appends doubles.
    pub fn push_doubles(&mut self, doubles: &[f64]) {
        for x in doubles {
            let fits = match &mut self.state {
                StreamState::Double(double) => double.push(*x, &mut self.words, &mut self.controls),
                _ => false,
            };
            if !fits {
                self.push_literal(Kind::Double, &x.to_le_bytes());
            }
        }
    }

    /// Appends values of an integer type of at most 64 bits (not ObjectIds).
    pub fn push_integers(&mut self, kind: Kind, integers: &[i64]) {
        let len = match kind {
            Kind::Bool => 1,
            Kind::Int32 => 4,
            _ => 8,
        };
        for integer in integers {
            if self.kind != Some(kind) || !self.push_integer(*integer) {
                self.push_literal(kind, integer.to_le_bytes().get(..len).unwrap_or_default());
            }
        }
    }

    #[inline(never)]
    fn push_literal(&mut self, kind: Kind, bytes: &[u8]) {
        self.flush();
        self.controls.literal(kind.byte(), bytes);
        self.reset(Value::new_checked(kind, bytes));
    }

    /// Appends the difference from the previous element, which has the same type. False if there is none or it does not
    /// fit.
    fn push_difference(&mut self, value: Value<'_>) -> bool {
        match &mut self.state {
            StreamState::Start => false,
            StreamState::DeltaOfDelta { id, .. }
                if value.as_object_id().is_some_and(|new| process_of(&new) != process_of(id)) =>
            {
                false
            }
            StreamState::Delta { .. } | StreamState::DeltaOfDelta { .. } => self.push_integer(integer_of(value)),
            StreamState::Double(double) => {
                double.push(value.as_f64().unwrap_or_default(), &mut self.words, &mut self.controls)
            }
            StreamState::Delta128(wide) => wide.push(value, &mut self.controls),
            StreamState::Repeat { previous } => {
                previous == value.bytes() && self.words.append(0, &mut self.controls, PLAIN)
            }
        }
    }

    #[inline(always)]
    fn push_integer(&mut self, new: i64) -> bool {
        let change = match &mut self.state {
            StreamState::Delta { integer } => new.wrapping_sub(std::mem::replace(integer, new)),
            StreamState::DeltaOfDelta { integer, delta, .. } => {
                let new_delta = new.wrapping_sub(std::mem::replace(integer, new));
                new_delta.wrapping_sub(std::mem::replace(delta, new_delta))
            }
            _ => return false,
        };
        self.words.append(zigzag(change), &mut self.controls, PLAIN)
    }

    /// The state after `value` as a literal, with nothing pending.
    fn reset(&mut self, value: Value<'_>) {
        let kind = value.kind();
        self.kind = Some(kind);
        self.state = match Coding::of(kind) {
            Coding::Delta => StreamState::Delta { integer: integer_of(value) },
            Coding::DeltaOfDelta => StreamState::DeltaOfDelta {
                integer: integer_of(value),
                delta: 0,
                id: value.as_object_id().unwrap_or_default(),
            },
            Coding::Double => StreamState::Double(DoubleWriter::after(value.as_f64().unwrap_or_default())),
            Coding::Delta128 => StreamState::Delta128(Box::new(Wide {
                words: WordWriter::new(),
                previous: value.bytes().to_vec(),
                integer: wide_integer_of(value),
            })),
            Coding::Repeat => StreamState::Repeat { previous: value.bytes().to_vec() },
        };
    }

    /// Writes everything pending.
    pub fn flush(&mut self) {
        match &mut self.state {
            StreamState::Double(double) => self.words.flush(&mut self.controls, double.nibble()),
            StreamState::Delta128(wide) => wide.words.flush(&mut self.controls, PLAIN),
            _ => self.words.flush(&mut self.controls, PLAIN),
        }
    }

    /// Ends the stream and begins another one after it. The caller appends what comes between them to the returned
    /// bytes.
    pub fn interrupt(&mut self) -> &mut Vec<u8> {
        self.flush();
        self.kind = None;
        self.state = StreamState::Start;
        self.controls.bytes_mut()
    }

    /// All items.
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.controls.into_bytes()
    }
}

impl Wide {
    fn push(&mut self, value: Value<'_>, controls: &mut ControlWriter) -> bool {
        if value.bytes() == self.previous {
            return self.words.append(0, controls, PLAIN);
        }
        // A binary's length and subtype come from the previous element.
        if value.kind() == Kind::Binary && value.bytes().get(..5) != self.previous.get(..5) {
            return false;
        }
        let Some(integer) = wide_integer_of(value) else { return false };
        let raw = zigzag128(integer.wrapping_sub(self.integer.unwrap_or_default()).cast_signed());
        // An empty string after a value without an integer has the difference 0, which would read as a repetition.
        if raw == 0 || !self.words.append(raw, controls, PLAIN) {
            return false;
        }
        self.integer = Some(integer);
        self.previous.clear();
        self.previous.extend_from_slice(value.bytes());
        true
    }
}

/// The integer of a value of a 64-bit type.
fn integer_of(value: Value<'_>) -> i64 {
    match value.kind() {
        Kind::Bool => value.as_bool().map(i64::from),
        Kind::Int32 => value.as_i32().map(i64::from),
        Kind::Int64 => value.as_i64(),
        Kind::Date => value.as_date_ms(),
        Kind::Timestamp => value.as_timestamp().map(u64::cast_signed),
        _ => value.as_object_id().map(of_object_id),
    }
    .unwrap_or_default()
}

/// The integer of a value of a 128-bit type, if it has one.
fn wide_integer_of(value: Value<'_>) -> Option<u128> {
    match value.kind() {
        Kind::Binary => value.as_binary().and_then(|(_, bytes)| of_bytes(bytes)),
        Kind::Decimal128 => of_bytes(value.bytes()),
        _ => value.as_text().and_then(|text| of_text(text.as_bytes())),
    }
}
