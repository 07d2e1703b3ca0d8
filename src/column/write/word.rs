//! Packs raw values into Simple-8b words: as many per word as fit, and repetitions as counts.

use super::super::selector::{
    BASE, EIGHT_LARGE, EIGHT_SMALL, RLE_SELECTOR, RUN_STEPS_MAX, RUN_UNIT, SEVEN, WordLayout,
};
use super::control::ControlWriter;

/// A raw value: 64 bits, or 128 bits for types with wider integers. All ones is not a value; it stands for a missing
/// element.
pub trait RawValue: Copy + PartialEq {
    /// The raw value 0.
    const ZERO: Self;
    /// A missing element.
    const MISSING: Self;
    /// Bits that a slot needs for it, including trailing zeros. 0 for a missing element: any slot can be all ones.
    fn bits(self) -> u32;
    /// The number of trailing zero bits; 0 for the value 0.
    fn zeros(self) -> u32;
    /// The value shifted right by `count` bits.
    fn without(self, count: u32) -> Self;
    /// The lowest 64 bits.
    fn low(self) -> u64;
}

impl RawValue for u64 {
    const ZERO: u64 = 0;
    const MISSING: u64 = u64::MAX;
    #[inline]
    fn bits(self) -> u32 {
        // One more than its length if it is all ones; a missing element wraps to 0.
        64 - self.wrapping_add(1).leading_zeros()
    }
    #[inline]
    fn zeros(self) -> u32 {
        if self == 0 { 0 } else { self.trailing_zeros() }
    }
    #[inline]
    fn without(self, count: u32) -> u64 {
        self >> count
    }
    #[inline]
    fn low(self) -> u64 {
        self
    }
}

impl RawValue for u128 {
    const ZERO: u128 = 0;
    const MISSING: u128 = u128::MAX;
    fn bits(self) -> u32 {
        // Above 64 bits the format does not add one for all ones: no slot is wide enough to need it.
        let counted = if self >> 64 == 0 || self == u128::MAX { self.wrapping_add(1) } else { self };
        128 - counted.leading_zeros()
    }
    fn zeros(self) -> u32 {
        if self == 0 { 0 } else { self.trailing_zeros() }
    }
    fn without(self, count: u32) -> u128 {
        self >> count
    }
    #[allow(clippy::cast_possible_truncation)]
    fn low(self) -> u64 {
        self as u64
    }
}

/// A family of layouts that store trailing zeros in the same way.
struct Class {
    layouts: &'static [WordLayout],
    /// Bits of a word that slots may use.
    data_bits: u32,
    /// Bits of the narrowest slot.
    slot_bits_min: u32,
    count_bits: u32,
    /// Trailing zeros are stored in steps of this many …
    unit: u32,
    /// … and at most this many.
    zeros_max: u32,
}

/// In the order in which they are tried.
const CLASSES: [Class; 4] = [
    Class { layouts: &BASE, data_bits: 60, slot_bits_min: 1, count_bits: 0, unit: 1, zeros_max: 0 },
    Class { layouts: &SEVEN, data_bits: 56, slot_bits_min: 6, count_bits: 4, unit: 1, zeros_max: 15 },
    Class { layouts: &EIGHT_SMALL, data_bits: 56, slot_bits_min: 8, count_bits: 4, unit: 4, zeros_max: 60 },
    Class { layouts: &EIGHT_LARGE, data_bits: 56, slot_bits_min: 9, count_bits: 5, unit: 4, zeros_max: 124 },
];

impl Class {
    /// The number of trailing zeros of `raw` that are counted instead of stored.
    #[inline(always)]
    fn stored_zeros<R: RawValue>(&self, raw: R) -> u32 {
        let zeros = raw.zeros().min(self.zeros_max);
        zeros - zeros % self.unit
    }

    /// Width of a slot that can hold `raw`.
    #[inline(always)]
    fn slot_bits<R: RawValue>(&self, raw: R) -> u32 {
        if raw == R::MISSING {
            return self.slot_bits_min;
        }
        let zeros = self.stored_zeros(raw);
        // A count of all ones must not stand beside a value of all ones. Such values need one more bit, which `bits`
        // sees in the remaining value.
        let value_bits =
            if zeros > 0 && zeros == self.zeros_max { raw.without(zeros).bits() } else { raw.bits() - zeros };
        (value_bits + self.count_bits).max(self.slot_bits_min)
    }

    /// The slot of `raw`, `slot_bits` wide.
    #[inline]
    fn slot<R: RawValue>(&self, raw: R, slot_bits: u32) -> u64 {
        if raw == R::MISSING {
            return (1 << slot_bits) - 1;
        }
        let zeros = self.stored_zeros(raw);
        raw.without(zeros).low() << self.count_bits | u64::from(zeros / self.unit)
    }
}

/// The values of a stream that are pending for a word.
///
/// A word is written when a value comes that does not fit beside the pending ones. From then on, values equal to the
/// last one written are only counted, until a different one comes.
#[derive(Clone, Debug)]
pub struct WordWriter<R> {
    /// In order. Empty during a run; at most 60.
    pending: Vec<R>,
    /// Index of the first class that fits `pending`. Adding values never makes an earlier class fit.
    class: usize,
    /// Width of slots in that class that can hold every pending value.
    slot_bits: u32,
    /// The value that a run repeats.
    last: R,
    /// Elements of the run so far.
    run: usize,
}

impl<R: RawValue> WordWriter<R> {
    /// The state after a literal: a run can only repeat 0.
    pub fn new() -> WordWriter<R> {
        WordWriter { pending: Vec::new(), class: 0, slot_bits: 1, last: R::ZERO, run: 0 }
    }

    /// Nothing pending; keeps the value that a run may repeat, if it is known.
    pub fn like(other: &WordWriter<R>) -> WordWriter<R> {
        let last = if other.pending.is_empty() { other.last } else { R::ZERO };
        WordWriter { last, ..WordWriter::new() }
    }

    /// Appends a value. False if no slot can hold it; then pending values must be flushed.
    #[inline(always)]
    pub fn append(&mut self, raw: R, controls: &mut ControlWriter, nibble: u8) -> bool {
        raw != R::MISSING && self.add(raw, controls, nibble)
    }

    /// Appends a missing element.
    pub fn skip(&mut self, controls: &mut ControlWriter, nibble: u8) {
        self.repeat(R::MISSING, 1, controls, nibble);
    }

    /// Appends the same value `count` times; it must be missing or fit a slot.
    pub fn repeat(&mut self, raw: R, count: usize, controls: &mut ControlWriter, nibble: u8) {
        for done in 0..count {
            if self.repeats(raw) {
                self.run += count - done;
                return;
            }
            self.add(raw, controls, nibble);
        }
    }

    #[inline(always)]
    fn add(&mut self, raw: R, controls: &mut ControlWriter, nibble: u8) -> bool {
        if self.pending.is_empty() {
            if self.last == raw {
                self.run += 1;
                return true;
            }
            self.end_run(controls, nibble);
        }
        self.push_base(raw) || self.add_to_next(raw, controls, nibble)
    }

    /// Appends a value that does not fit a base word together with the pending values, to the next word if necessary.
    #[inline(never)]
    fn add_to_next(&mut self, raw: R, controls: &mut ControlWriter, nibble: u8) -> bool {
        if self.push_counted(raw) {
            return true;
        }
        if raw.bits() > 60 && CLASSES.iter().all(|class| class.slot_bits(raw) > class.data_bits) {
            return false;
        }
        let before = self.pending.last().copied();
        loop {
            self.emit(controls, nibble);
            if self.pending.is_empty() && before == Some(raw) {
                self.last = raw;
                self.run = 1;
                return true;
            }
            if self.try_push(raw) {
                return true;
            }
        }
    }

    /// Adds a value to the pending ones if all fit a base word together.
    #[inline(always)]
    fn push_base(&mut self, raw: R) -> bool {
        let slot_bits = self.slot_bits.max(raw.bits());
        let fits = self.class == 0 && slot_bits as usize * (self.pending.len() + 1) <= 60;
        if fits {
            self.slot_bits = slot_bits;
            self.pending.push(raw);
        }
        fits
    }

    /// Adds a value to the pending ones if all fit any word together.
    fn try_push(&mut self, raw: R) -> bool {
        self.push_base(raw) || self.push_counted(raw)
    }

    /// Adds a value to the pending ones if all fit a word that counts trailing zeros.
    fn push_counted(&mut self, raw: R) -> bool {
        let count = u32::try_from(self.pending.len() + 1).unwrap_or(u32::MAX);
        let mut index = self.class.max(1) - 1;
        while let Some(class) = CLASSES.get(index + 1) {
            index += 1;
            // A quick check for most values: this many do not fit a word of this class, whatever they are.
            if class.slot_bits_min * count > class.data_bits {
                continue;
            }
            let mut slot_bits = class.slot_bits(raw);
            if index == self.class {
                slot_bits = slot_bits.max(self.slot_bits);
            } else if slot_bits * count <= class.data_bits {
                slot_bits = self.pending.iter().fold(slot_bits, |widest, raw| widest.max(class.slot_bits(*raw)));
            }
            if slot_bits * count <= class.data_bits {
                (self.class, self.slot_bits) = (index, slot_bits);
                self.pending.push(raw);
                return true;
            }
        }
        false
    }

    /// Writes a word of as many pending values as fit without leaving slots empty.
    fn emit(&mut self, controls: &mut ControlWriter, nibble: u8) {
        let Some(class) = CLASSES.get(self.class) else { return };
        let count = self.pending.len();
        let Some(layout) = class.layouts.iter().find(|layout| usize::from(layout.slots) <= count) else { return };
        let slots = usize::from(layout.slots);
        let slot_bits = layout.slot_bits();
        let (mut word, mut bit) = (layout.head(), layout.first_bit());
        for raw in self.pending.get(..slots).unwrap_or_default() {
            word |= class.slot(*raw, slot_bits) << bit;
            bit += slot_bits;
        }
        controls.word(nibble, word);
        if slots == count {
            self.pending.clear();
            (self.class, self.slot_bits) = (0, 1);
        } else {
            // Only base words: the other classes have a layout for every count.
            self.pending.drain(..slots);
            self.slot_bits = self.pending.iter().fold(1, |widest, raw| widest.max(raw.bits()));
        }
    }

    /// Writes as much of a run as run words can express; the rest stays pending as single values.
    fn end_run(&mut self, controls: &mut ControlWriter, nibble: u8) {
        let (run, last) = (self.run, self.last);
        (self.run, self.last) = (0, R::ZERO);
        let mut steps = run / RUN_UNIT;
        while steps > 0 {
            let taken = steps.min(RUN_STEPS_MAX);
            controls.word(nibble, (taken as u64 - 1) << 4 | RLE_SELECTOR);
            steps -= taken;
        }
        for _ in 0..run % RUN_UNIT {
            while !self.try_push(last) {
                self.emit(controls, nibble);
            }
        }
    }

    /// Writes everything pending. After that, a run can only repeat 0.
    pub fn flush(&mut self, controls: &mut ControlWriter, nibble: u8) {
        self.end_run(controls, nibble);
        while !self.pending.is_empty() {
            self.emit(controls, nibble);
        }
    }

    /// True if one more `raw` would only be counted.
    pub fn repeats(&self, raw: R) -> bool {
        self.pending.is_empty() && self.last == raw
    }

    /// The number of pending elements, including those of a run.
    pub fn waiting(&self) -> usize {
        self.pending.len() + self.run
    }

    /// One of the pending values. During a run, all are the same.
    pub fn waiting_at(&self, index: usize) -> R {
        self.pending.get(index).copied().unwrap_or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: u64 = u64::MAX;

    fn words(raws: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let (mut controls, mut writer) = (ControlWriter::new(), WordWriter::<u64>::new());
        for raw in raws {
            assert!(raw == MISSING || writer.append(raw, &mut controls, 0x80));
            if raw == MISSING {
                writer.skip(&mut controls, 0x80);
            }
        }
        writer.flush(&mut controls, 0x80);
        let bytes = controls.into_bytes();
        bytes
            .chunks(1 + 16 * 8)
            .flat_map(|c| c[1..].chunks(8))
            .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
            .collect()
    }

    fn word(bytes: [u8; 8]) -> u64 {
        u64::from_le_bytes(bytes)
    }

    fn many(raw: u64, count: usize) -> impl Iterator<Item = u64> {
        std::iter::repeat_n(raw, count)
    }

    #[test]
    fn leading_zeros_are_a_run_and_other_leading_values_are_not() {
        assert_eq!(words(many(0, 120)), [RLE_SELECTOR]);
        assert_eq!(words(many(0, 1920)), [0xFF]);
        assert_eq!(words(many(0, 2040)), [0xFF, 0x0F]);
        // One or two values that are left over use the widest words.
        assert_eq!(words(many(0, 121)), [0x0F, 0x0E]);
        assert_eq!(words(many(0, 34)), [2, 11]);
        assert_eq!(words(many(2, 180)).len(), 3);
    }

    #[test]
    fn missing_elements_become_a_run_only_after_a_word() {
        let sixty = u64::MAX << 4 | 1;
        assert_eq!(words(many(MISSING, 240)), [sixty, 0x0F, sixty]);
        assert_eq!(words(many(MISSING, 121)), [sixty, sixty, u64::MAX << 4 | 14]);
        assert_eq!(words(many(MISSING, 180)), [sixty, 0x0F]);
    }

    #[test]
    fn a_run_repeats_the_last_slot_in_full_steps() {
        let two = (0..30).fold(2, |word, slot| word | 2_u64 << (4 + 2 * slot));
        assert_eq!(words(many(2, 180)), [two, 0x0F, two]);
    }

    #[test]
    fn trailing_zeros_are_counted_if_that_takes_fewer_words() {
        assert_eq!(words(many(30, 12)), [word([0xE5, 0xBD, 0xF7, 0xDE, 0x7B, 0xEF, 0xBD, 0xF7])]);
        assert_eq!(words(many(229_376, 7)), [word([0x37, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F])]);
        assert_eq!(words(many(0x50_0000, 7)), [word([0x18, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55])]);
        assert_eq!(words([11, 11, 12_615_680, 12_615_680]), [word([0x67, 0xB0, 0x00, 0x2C, 0xF0, 0x81, 0x7D, 0x60])]);
        let skips = (0..7).map(|i| if i % 2 == 0 { 7_340_032 } else { MISSING });
        assert_eq!(words(skips), [word([0x18, 0x75, 0xFF, 0x75, 0xFF, 0x75, 0xFF, 0x75])]);
        let high = (0..6).map(|i| if i % 2 == 0 { 15 << 60 } else { MISSING });
        assert_eq!(words(high), [word([0x28, 0xFF, 0xFE, 0xFF, 0xFB, 0xFF, 0xEF, 0x3F])]);
        assert_eq!(words(many(549_789_368_320, 2)), [word([0x68, 0x26, 0x00, 0x08, 0x60, 0x02, 0x80, 0x00])]);
    }

    #[test]
    fn wide_values_count_more_zeros() {
        let words = |raws: &[u128]| {
            let (mut controls, mut writer) = (ControlWriter::new(), WordWriter::<u128>::new());
            assert!(raws.iter().all(|raw| writer.append(*raw, &mut controls, 0x80)));
            writer.flush(&mut controls, 0x80);
            controls.into_bytes()
        };
        assert_eq!(words(&[7 << 80; 6]), [0x80, 0x88, 0xF4, 0xE8, 0xD1, 0xA3, 0x47, 0x8F, 0x1E]);
        assert_eq!(words(&[7 << 80, 0, 0, 0, 0]), [0x80, 0x98, 0xF4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(words(&[15 << 124; 5]), [0x80, 0x98, 0xFF, 0xF9, 0xCF, 0x7F, 0xFE, 0xF3, 0x1F]);
    }

    #[test]
    fn a_value_that_fits_no_slot_is_refused() {
        let (mut controls, mut writer) = (ControlWriter::new(), WordWriter::<u64>::new());
        for raw in [u64::MAX, u64::MAX - 1, (1 << 60) - 1, 1 << 60 | 1] {
            assert!(!writer.append(raw, &mut controls, 0x80), "{raw:#x}");
        }
        for raw in [(1 << 60) - 2, 1 << 60, 1 << 63, ((1 << 51) - 1) << 12] {
            assert!(writer.append(raw, &mut controls, 0x80), "{raw:#x}");
        }
    }

    #[test]
    fn repeating_equals_appending_one_by_one() {
        for raw in [0, 1, 5, 1 << 20, MISSING] {
            for count in [1, 59, 60, 61, 119, 120, 121, 180, 1919, 1921, 4000] {
                let (mut controls, mut writer) = (ControlWriter::new(), WordWriter::<u64>::new());
                writer.append(3, &mut controls, 0x80);
                writer.repeat(raw, count, &mut controls, 0x80);
                writer.append(4, &mut controls, 0x80);
                writer.flush(&mut controls, 0x80);
                let mut expected = ControlWriter::new();
                let mut single = WordWriter::<u64>::new();
                for raw in [3].into_iter().chain(many(raw, count)).chain([4]) {
                    single.add(raw, &mut expected, 0x80);
                }
                single.flush(&mut expected, 0x80);
                assert_eq!(controls.into_bytes(), expected.into_bytes(), "{raw} {count}");
            }
        }
    }
}
