//! One stream: its literal, and the elements that words derive from it.

use std::collections::VecDeque;

use super::Element;
use super::input::check;
use super::words::{Slot, slots};

/// The factors of scales 0 to 4; scale 5 is the bit pattern.
const POWERS: [f64; 5] = [1.0, 10.0, 100.0, 10_000.0, 100_000_000.0];
const RAW: usize = 5;

/// How elements of a type are derived from deltas.
#[derive(Clone, Copy, PartialEq)]
enum Coding {
    /// Without a literal, everything is missing.
    Nothing,
    /// Only zero deltas.
    Same,
    Delta,
    DeltaOfDelta,
    Double,
    Wide,
}

/// The running state of a stream.
pub struct Stream {
    coding: Coding,
    /// The last present element.
    previous: Vec<u8>,
    /// The base of the next delta. Streams of 64 bits wrap there and keep it sign-extended.
    integer: i128,
    /// The last delta, for `DeltaOfDelta`.
    delta: i64,
    /// The scale of the current control, for `Double`.
    scale: usize,
    /// The last slot of the last word other than a run.
    last: Slot,
    /// Slots that were read but not consumed yet.
    waiting: VecDeque<Slot>,
}

impl Stream {
    /// A stream right after a literal, or without one.
    pub fn after(literal: Element) -> Stream {
        let previous = literal.unwrap_or_default();
        let coding = match previous.first() {
            None => Coding::Nothing,
            Some(0x01) => Coding::Double,
            Some(0x02 | 0x05 | 0x0D | 0x13) => Coding::Wide,
            Some(0x07 | 0x09 | 0x11) => Coding::DeltaOfDelta,
            Some(0x08 | 0x10 | 0x12) => Coding::Delta,
            Some(_) => Coding::Same,
        };
        let integer = integer_of(&previous);
        Stream { coding, previous, integer, delta: 0, scale: RAW, last: Some(0), waiting: VecDeque::new() }
    }

    /// Loads a control. All elements of the previous one must have been consumed.
    pub fn load(&mut self, nibble: u8, words: &[u64]) -> Result<(), String> {
        assert!(self.waiting.is_empty());
        self.scale = match nibble {
            8 => RAW,
            9..=13 if self.coding == Coding::Double => usize::from(nibble) - 9,
            _ => return Err("a scale where there are no doubles".into()),
        };
        if self.coding == Coding::Double {
            let x = f64::from_le_bytes(self.previous[1..].try_into().unwrap());
            self.integer = i128::from(scaled(x, self.scale).ok_or("the last double has no integer in that scale")?);
        }
        for word in words {
            let slots = slots(*word, self.coding == Coding::Wide, self.last)?;
            self.last = *slots.last().unwrap();
            self.waiting.extend(slots);
        }
        Ok(())
    }

    pub fn has_elements(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next element of the loaded control.
    pub fn next(&mut self) -> Result<Element, String> {
        let Some(raw) = self.waiting.pop_front().expect("a slot is left") else { return Ok(None) };
        // By the format, a number without a preceding literal is a missing element.
        if self.coding == Coding::Nothing {
            return Ok(None);
        }
        // A zero delta repeats the element byte for byte; a zero delta of deltas does not.
        if raw != 0 || self.coding == Coding::DeltaOfDelta {
            self.add(raw)?;
            check(&self.previous)?;
        }
        Ok(Some(self.previous.clone()))
    }

    fn add(&mut self, raw: u128) -> Result<(), String> {
        let step = unzigzag64(raw as u64);
        match self.coding {
            Coding::Nothing | Coding::Same => return Err("a difference of what has none".into()),
            Coding::Delta | Coding::Double => self.integer = i128::from((self.integer as i64).wrapping_add(step)),
            Coding::DeltaOfDelta => {
                self.delta = self.delta.wrapping_add(step);
                self.integer = i128::from((self.integer as i64).wrapping_add(self.delta));
            }
            Coding::Wide => self.integer = self.integer.wrapping_add(unzigzag128(raw)),
        }
        let low = self.integer as i64;
        let value = match self.previous[0] {
            0x01 => unscaled(low, self.scale).to_le_bytes().to_vec(),
            0x02 | 0x0D => text(self.integer),
            0x05 => {
                let length = self.previous.len() - 6;
                if length > 16 {
                    return Err("a difference of a binary that is too long".into());
                }
                [&self.previous[1..6], &self.integer.to_le_bytes()[..length]].concat()
            }
            0x07 => {
                let [c11, t3, c10, t2, c9, t1, t0, _] = low.to_le_bytes();
                [&[t0, t1, t2, t3], &self.previous[5..10], &[c9, c10, c11]].concat()
            }
            0x08 => vec![u8::from(low != 0)],
            0x10 => (low as i32).to_le_bytes().to_vec(),
            0x09 | 0x11 | 0x12 => low.to_le_bytes().to_vec(),
            0x13 => self.integer.to_le_bytes().to_vec(),
            _ => unreachable!(),
        };
        self.previous.truncate(1);
        self.previous.extend(value);
        Ok(())
    }
}

/// The base of the first delta after a literal. For doubles it is set at every control.
fn integer_of(literal: &[u8]) -> i128 {
    let Some((kind, value)) = literal.split_first() else { return 0 };
    match kind {
        0x08 => i128::from(value[0]),
        0x10 => i128::from(i32::from_le_bytes(value.try_into().unwrap())),
        0x09 | 0x11 | 0x12 => i128::from(i64::from_le_bytes(value.try_into().unwrap())),
        0x07 => {
            let bytes = [value[11], value[3], value[10], value[2], value[9], value[1], value[0], 0];
            i128::from(i64::from_le_bytes(bytes))
        }
        0x13 => i128::from_le_bytes(value.try_into().unwrap()),
        0x05 if value.len() <= 5 + 16 => {
            let mut bytes = [0; 16];
            bytes[..value.len() - 5].copy_from_slice(&value[5..]);
            i128::from_le_bytes(bytes)
        }
        0x02 | 0x0D => {
            let text = &value[4..value.len() - 1];
            if text.len() > 16 || text.first() == Some(&0) {
                return 0;
            }
            let mut bytes = [0; 16];
            bytes[16 - text.len()..].copy_from_slice(text);
            i128::from_be_bytes(bytes)
        }
        _ => 0,
    }
}

/// The value bytes of the string or code encoded by an integer.
fn text(integer: i128) -> Vec<u8> {
    let text: Vec<u8> = integer.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    [&(text.len() as i32 + 1).to_le_bytes()[..], &text, &[0]].concat()
}

fn scaled(x: f64, scale: usize) -> Option<i64> {
    let Some(power) = POWERS.get(scale) else { return Some(x.to_bits() as i64) };
    let limit = 2_f64.powi(53);
    let product = x * power;
    if !(-limit..=limit).contains(&product) {
        return None;
    }
    // `round` takes halves away from zero.
    let integer = product.round() as i64;
    (unscaled(integer, scale).to_bits() == x.to_bits()).then_some(integer)
}

fn unscaled(integer: i64, scale: usize) -> f64 {
    POWERS.get(scale).map_or_else(|| f64::from_bits(integer as u64), |power| integer as f64 / power)
}

fn unzigzag64(raw: u64) -> i64 {
    let half = (raw >> 1) as i64;
    if raw & 1 == 1 { !half } else { half }
}

fn unzigzag128(raw: u128) -> i128 {
    let half = (raw >> 1) as i128;
    if raw & 1 == 1 { !half } else { half }
}
