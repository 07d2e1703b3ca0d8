//! Writes doubles: scaled to integers, with the smallest scale that can represent all of a word.

use super::super::integer::{unzigzag, zigzag};
use super::super::scale::{self, Scale};
use super::control::ControlWriter;
use super::word::{RawValue, WordWriter};

/// The last double of a stream and its integer. Pending differences are in the scale of that integer.
#[derive(Clone, Debug)]
pub struct DoubleWriter {
    previous: f64,
    integer: i64,
    scale: Scale,
}

type Words = WordWriter<u64>;

impl DoubleWriter {
    /// The state after the literal `x`.
    pub fn after(x: f64) -> DoubleWriter {
        let (integer, scale) = scale::best(x, 0);
        DoubleWriter { previous: x, integer, scale }
    }

    /// The high nibble of the controls of pending values.
    #[inline]
    pub fn nibble(&self) -> u8 {
        scale::nibble_of(self.scale)
    }

    /// Appends a double. False if it must be written as a literal.
    #[inline(always)]
    pub fn push(&mut self, x: f64, words: &mut Words, controls: &mut ControlWriter) -> bool {
        let previous = self.previous;
        if x.to_bits() == previous.to_bits() {
            return words.append(0, controls, self.nibble());
        }
        self.previous = x;
        self.append(x, previous, words, controls)
    }

    /// Appends a missing element.
    pub fn skip(&mut self, words: &mut Words, controls: &mut ControlWriter) {
        let size = controls.len();
        words.skip(controls, self.nibble());
        if controls.len() > size && (0..words.waiting()).all(|index| words.waiting_at(index) == u64::MISSING) {
            // No double is pending any more, so the next one may use the scale that suits it.
            (self.integer, self.scale) = scale::best(self.previous, 0);
        }
    }

    /// Appends `x`, which follows `previous`.
    fn append(&mut self, x: f64, previous: f64, words: &mut Words, controls: &mut ControlWriter) -> bool {
        let integer = match scale::encode(x, self.scale) {
            Some(integer) => integer,
            None => match self.raise(x, previous, words, controls) {
                Some(integer) => integer,
                None => return true,
            },
        };
        let size = controls.len();
        let raw = zigzag(integer.wrapping_sub(self.integer));
        if !words.append(raw, controls, self.nibble()) {
            return false;
        }
        self.integer = integer;
        if controls.len() > size {
            self.lower(raw, words, controls);
        }
        true
    }

    /// Finds a scale for `x` when it has no integer in the present one. `None` if the pending values have that scale
    /// too; `x` is then appended. Otherwise all pending values are written, and the caller must append the returned
    /// integer of `x`.
    #[inline(never)]
    fn raise(&mut self, x: f64, previous: f64, words: &mut Words, controls: &mut ControlWriter) -> Option<i64> {
        let (mut integer, mut scale) = scale::best(x, self.scale);
        if let Some(rescaled) = self.rescaled(integer, scale, words) {
            *words = rescaled;
            (self.integer, self.scale) = (integer, scale);
            return None;
        }
        words.flush(controls, self.nibble());
        controls.close();
        let of_previous = scale::best(previous, scale);
        self.integer = of_previous.0;
        if of_previous.1 != scale {
            (integer, scale) = scale::best(x, of_previous.1);
            self.integer = scale::best(previous, scale).0;
        }
        self.scale = scale;
        Some(integer)
    }

    /// The pending values and then `integer`, in `scale`; `None` if a double has no integer there or a word became
    /// full.
    fn rescaled(&self, integer: i64, scale: Scale, words: &Words) -> Option<Words> {
        let mut old = self.integer_before(words);
        let mut new = scale::encode(scale::decode(old, self.scale), scale)?;
        let mut rescaled = Words::like(words);
        // Used only to find out whether a word was written.
        let mut probe = ControlWriter::new();
        for index in 0..words.waiting() {
            let raw = words.waiting_at(index);
            if raw == u64::MISSING {
                rescaled.skip(&mut probe, 0);
            } else {
                old = old.wrapping_add(unzigzag(raw));
                let next = scale::encode(scale::decode(old, self.scale), scale)?;
                if !rescaled.append(zigzag(next.wrapping_sub(new)), &mut probe, 0) {
                    return None;
                }
                new = next;
            }
            if probe.len() > 0 {
                return None;
            }
        }
        (rescaled.append(zigzag(integer.wrapping_sub(new)), &mut probe, 0) && probe.len() == 0).then_some(rescaled)
    }

    /// After a word was written and `newest` is the last pending value: rescales the pending values to a lower scale,
    /// if the double before them has an integer there.
    #[inline(never)]
    fn lower(&mut self, newest: u64, words: &mut Words, controls: &mut ControlWriter) {
        let old_scale = self.scale;
        let mut integer = self.integer_before(words);
        if newest != 0 && scale::is_least(integer, old_scale) {
            return;
        }
        let mut previous = scale::decode(integer, old_scale);
        let lowest = scale::best(previous, 0);
        if lowest.1 == old_scale && newest != 0 {
            // Rescaling would change nothing.
            return;
        }
        let fresh = Words::like(words);
        let old = std::mem::replace(words, fresh);
        (self.integer, self.scale) = lowest;
        for index in 0..old.waiting() {
            let raw = old.waiting_at(index);
            if raw == u64::MISSING {
                words.skip(controls, self.nibble());
            } else {
                integer = integer.wrapping_add(unzigzag(raw));
                let x = scale::decode(integer, old_scale);
                let appended = self.append(x, previous, words, controls);
                debug_assert!(appended, "a pending difference fits");
                previous = x;
            }
        }
    }

    /// The integer of the double before all pending values.
    fn integer_before(&self, words: &Words) -> i64 {
        let waiting = (0..words.waiting()).map(|index| words.waiting_at(index)).filter(|raw| *raw != u64::MISSING);
        waiting.fold(self.integer, |integer, raw| integer.wrapping_sub(unzigzag(raw)))
    }
}
