//! Reads rows of numbers, dates, booleans, ObjectIds and null, control by control, into a vector of integers.

use kernels::convert;
use kernels::items::{self, Place};
use kernels::words::{self as loops, Position, Slot};

use super::super::integer::{Coding, of_object_id, to_object_id, unzigzag};
use super::super::scale::{self, Scale};
use super::super::selector::WordLayout;
use super::presence::Presence;
use super::tagged_rows;
use super::words::{BAD_SELECTOR, Slots, ZERO_WORD, last_slot, run_len};
use crate::block::{Bytes12, Column, ColumnData};
use crate::value::{Kind, fixed};

/// The column has more elements than allowed.
pub const TOO_MANY: &str = "the column has more elements than its bucket has rows";
/// A control has a decimal scale after a value that is not a double.
pub const BAD_SCALE: &str = "a control has a decimal scale after a value that is not a double";
/// A control changes a value whose type has no differences.
pub const ONLY_REPEATS: &str = "a difference for a type that can only repeat its value";
/// A double that the scale of the following control cannot represent.
pub const NO_INTEGER: &str = "the last double has no integer in the scale of a control";

/// The rows so far and the state after the last one.
///
/// Each row is 64 bits in one vector, whatever its type (for a double, its bits), so that one routine serves all types.
pub struct TypedRows {
    /// The type of the last value.
    kind: Kind,
    /// The type bytes of rows, if there are several: of those before the last change of type.
    kinds: Vec<u8>,
    slot: Slot,
    /// The first row whose value matters.
    from: usize,
    rows: Vec<i64>,
    presence: Presence,
    /// The integer of the last present element, and its difference from the one before, which is not used for types without a slope.
    at: Position,
    /// The last present double.
    double: f64,
    /// The word whose last slot a run repeats.
    word: u64,
    /// ObjectIds whose process is known; `rows` continues after them, with the process of `like`.
    ids: Vec<Bytes12>,
    like: Bytes12,
}

impl TypedRows {
    /// True for the types that this reader handles.
    pub fn takes(kind: Kind) -> bool {
        kind == Kind::ObjectId || tagged_rows::takes(kind)
    }

    /// True if a value of this type may follow. ObjectIds stand alone.
    #[inline]
    pub fn takes_next(&self, kind: Kind) -> bool {
        self.kind == kind || tagged_rows::takes(self.kind) && tagged_rows::takes(kind)
    }

    /// Starts with `absent` rows without a value. About `capacity` rows are expected; values before row `from` do not
    /// matter.
    pub fn new(kind: Kind, absent: usize, capacity: usize, from: usize) -> TypedRows {
        let mut rows = Vec::with_capacity(capacity + loops::FEW);
        rows.resize(absent, 0);
        let mut presence = Presence::default();
        if absent > 0 {
            presence.push_absent(0, absent);
        }
        TypedRows {
            kind,
            kinds: Vec::new(),
            slot: slot_of(kind),
            from,
            rows,
            presence,
            at: Position::default(),
            double: 0.0,
            word: ZERO_WORD,
            ids: Vec::new(),
            like: [0; 12],
        }
    }

    /// Starts behind a value that is not among the rows.
    pub fn behind(kind: Kind, bytes: &[u8], capacity: usize) -> TypedRows {
        let mut rows = TypedRows::new(kind, 0, capacity, 0);
        rows.literal(kind, bytes);
        rows.rows.clear();
        rows
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ids.len() + self.rows.len()
    }

    /// Appends a value; `takes_next` must be true of its type.
    #[inline]
    pub fn literal(&mut self, kind: Kind, bytes: &[u8]) {
        if kind != self.kind {
            // Values of another type follow.
            self.kinds.resize(self.rows.len(), self.kind.byte());
            self.kind = kind;
            self.slot = slot_of(kind);
        }
        let value = match kind {
            Kind::Int32 => i64::from(i32::from_le_bytes(fixed(bytes))),
            Kind::Null => 0,
            Kind::Bool => i64::from(bytes == [1]),
            Kind::ObjectId => {
                self.seal_ids();
                self.like = fixed(bytes);
                of_object_id(self.like)
            }
            _ => i64::from_le_bytes(fixed(bytes)),
        };
        self.rows.push(value);
        self.begin(value);
    }

    /// Appends the values of the items at the start of `bytes` that stand for few rows each, at most `rows_max` rows in total. Returns how many bytes it has
    /// read. In a column of several types, and in one of doubles with all their digits, most items are such.
    pub fn items(&mut self, bytes: &[u8], rows_max: usize) -> usize {
        if self.kind == Kind::ObjectId {
            return 0;
        }
        let room = rows_max.saturating_sub(self.len());
        let mut place = Place { kind: self.kind.byte(), at: self.at, double: self.double, word: self.word };
        let read = items::read(bytes, room, ZERO_WORD, &mut place, &mut self.kinds, &mut self.rows);
        self.kind = Kind::from_byte(place.kind).unwrap_or(self.kind);
        self.slot = slot_of(self.kind);
        (self.at, self.double, self.word) = (place.at, place.double, place.word);
        read
    }

    /// The state after a literal.
    #[inline]
    fn begin(&mut self, value: i64) {
        self.double = f64::from_bits(value.cast_unsigned());
        self.at = Position { value, slope: 0 };
        self.word = ZERO_WORD;
    }

    /// Appends the elements of a control, up to `rows_max` rows in total.
    ///
    /// Errors: `TOO_MANY`, `BAD_SCALE`, `NO_INTEGER`, `BAD_SELECTOR`, `ONLY_REPEATS`.
    pub fn control(&mut self, control: u8, bytes: &[u8], rows_max: usize) -> Result<(), &'static str> {
        let mut scale = scale::RAW;
        if self.kind == Kind::Double {
            scale = scale::scale_of(control).ok_or(BAD_SCALE)?;
            self.at.value = scale::encode(self.double, scale).ok_or(NO_INTEGER)?;
        } else if control & 0xF0 != 0x80 {
            return Err(BAD_SCALE);
        }
        let begin = self.rows.len();
        // The first row that is still an integer in `scale`.
        let mut first = begin;
        let mut words = bytes.as_chunks().0;
        loop {
            let room = rows_max.saturating_sub(self.len());
            let full = loops::read_full(words, self.slot, &mut self.at, room, &mut self.rows);
            if let Some(last) = words.get(..full).and_then(<[_]>::last) {
                self.word = u64::from_le_bytes(*last);
            }
            let Some((word, rest)) = words.get(full..).and_then(<[_]>::split_first) else { break };
            words = rest;
            let word = u64::from_le_bytes(*word);
            let room = rows_max.saturating_sub(self.len());
            if let Some(count) = run_len(word) {
                if count > room {
                    return Err(TOO_MANY);
                }
                if self.repeats() {
                    self.unscale(first, scale);
                    let value = self.at.value;
                    let same = if scale == scale::RAW { value } else { bits(scale::decode(value, scale)) };
                    self.rows.resize(self.rows.len() + count, same);
                    first = self.rows.len();
                } else {
                    self.run(count);
                }
            } else {
                let layout = WordLayout::of(word).ok_or(BAD_SELECTOR)?;
                if usize::from(layout.slots) > room {
                    return Err(TOO_MANY);
                }
                self.word = word;
                self.word_of_any_kind(word, layout);
            }
        }
        self.unscale(first, scale);
        self.double = scale::decode(self.at.value, scale);
        if self.kind == Kind::Null && self.rows.iter().skip(begin).any(|row| *row != 0) {
            return Err(ONLY_REPEATS);
        }
        Ok(())
    }

    /// True if a run repeats the last value.
    fn repeats(&self) -> bool {
        self.slot == Slot::Difference && last_slot(self.word).is_some_and(|raw| raw.narrow() == 0)
    }

    /// A run of anything else: missing elements, or a repeated difference.
    fn run(&mut self, count: usize) {
        let Some(raw) = last_slot(self.word) else {
            self.presence.push_absent(self.len(), count);
            self.rows.resize(self.rows.len() + count, 0);
            return;
        };
        let delta = unzigzag(raw.narrow());
        let bend = if self.slot == Slot::Change {
            delta
        } else {
            self.at.slope = delta;
            0
        };
        loops::run(count, bend, &mut self.at, &mut self.rows);
    }

    fn word_of_any_kind(&mut self, word: u64, layout: WordLayout) {
        let rows = self.len();
        let (Position { mut value, mut slope }, by_slope) = (self.at, self.slot == Slot::Change);
        let (mut present, mut bit) = (0_u64, 1_u64);
        let slots = Slots::new(word, layout);
        let count = slots.left();
        self.rows.extend(slots.map(|slot| {
            let here = bit;
            bit <<= 1;
            let Some(raw) = slot else { return 0 };
            present |= here;
            let delta = unzigzag(raw.narrow());
            slope = if by_slope { slope.wrapping_add(delta) } else { delta };
            value = value.wrapping_add(slope);
            value
        }));
        self.at = Position { value, slope };
        if present != bit.wrapping_sub(1) {
            self.presence.push_bits(rows, present, count);
        }
    }

    /// Converts the integers from row `first` on to doubles.
    fn unscale(&mut self, first: usize, scale: Scale) {
        if scale == scale::RAW {
            return;
        }
        // Integers beyond 2^53 come from damaged columns only, for which any double will do.
        let rows = self.rows.get_mut(first.max(self.from)..).unwrap_or_default();
        convert::quotients(rows, scale::multiplier(scale));
    }

    /// Completes the ObjectIds that are still integers with their process, before a different process comes.
    fn seal_ids(&mut self) {
        let like = self.like;
        self.ids.extend(self.rows.drain(..).map(|row| to_object_id(row, like)));
    }

    /// The column.
    pub fn finish(mut self) -> Column {
        let presence = std::mem::take(&mut self.presence).finish(self.len());
        let rows = std::mem::take(&mut self.rows);
        if self.kind == Kind::Null || !self.kinds.is_empty() {
            self.kinds.resize(rows.len(), self.kind.byte());
            return tagged_rows::column(self.kinds, bytemuck::cast_vec(rows), presence);
        }
        let data = match self.kind {
            Kind::Double => ColumnData::F64(bytemuck::cast_vec(rows)),
            Kind::Date => ColumnData::Date(rows),
            // The low half: the format lets int32 wrap around.
            Kind::Int32 => ColumnData::I32(convert::int32s(&rows)),
            Kind::Bool => ColumnData::Bool(convert::bools(&rows)),
            Kind::ObjectId => {
                self.rows = rows;
                self.seal_ids();
                if let Some(presence) = &presence {
                    self.ids
                        .iter_mut()
                        .enumerate()
                        .filter(|(row, _)| !presence.get(*row))
                        .for_each(|(_, id)| *id = [0; 12]);
                }
                ColumnData::ObjectId(self.ids)
            }
            _ => ColumnData::I64(rows),
        };
        Column::new(data, presence)
    }
}

#[inline]
fn slot_of(kind: Kind) -> Slot {
    if Coding::of(kind) == Coding::DeltaOfDelta { Slot::Change } else { Slot::Difference }
}

#[inline]
fn bits(x: f64) -> i64 {
    x.to_bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::read::forge::{Forge, deltas, double, int, plain, run};
    use crate::column::selector::{BASE, EIGHT_LARGE, EIGHT_SMALL, SEVEN};
    use crate::value::OwnedValue;

    fn doubles(forge: &Forge) -> Vec<f64> {
        let column = forge.read().unwrap();
        let ColumnData::F64(cells) = column.data() else { panic!("{column:?}") };
        cells.clone()
    }

    fn integers(forge: &Forge) -> Vec<i64> {
        let column = forge.read().unwrap();
        match column.data() {
            ColumnData::I64(cells) | ColumnData::Date(cells) => cells.clone(),
            data => panic!("{data:?}"),
        }
    }

    fn long(n: i64) -> Forge {
        Forge::default().literal(&OwnedValue::int64(n))
    }

    fn date(ms: i64) -> Forge {
        Forge::default().literal(&OwnedValue::date(ms))
    }

    #[test]
    fn doubles_continue_in_the_scale_of_hundredths() {
        // One word of four slots, as in a real bucket.
        let words = 0x00B6_021C_0018_04FB;
        let column = Forge::default().literal(&double(254.03)).control(0xB0, &[words]).end();
        assert_eq!(doubles(&column), [254.03, 253.63, 253.61, 252.93, 252.47]);
    }

    #[test]
    fn dates_keep_their_delta_over_zeros_and_runs() {
        let column = date(1_639_842_900_000).control(0x80, &[0x1D4C0C, 0x0E]).end();
        let expected: Vec<i64> = (0..5).map(|i| 1_639_842_900_000 + i * 60_000).collect();
        assert_eq!(integers(&column), expected);
        // A run repeats the delta of deltas, not the slope.
        let column = date(0).control(0x80, &[deltas(&[5]), run(1)]).end();
        let expected: Vec<i64> = (0..=121).map(|i| 5 * i * (i + 1) / 2).collect();
        assert_eq!(integers(&column), expected);
        // A literal resets the slope.
        let column =
            date(0).control(0x80, &[deltas(&[7])]).literal(&OwnedValue::date(100)).control(0x80, &[0x0E]).end();
        assert_eq!(integers(&column), [0, 7, 100, 100]);
    }

    #[test]
    fn a_thousand_dates_a_second_apart_take_forty_four_bytes() {
        let words = [deltas(&[1000, 0, 0, 0, 0]), run(8), deltas(&[0; 30]), plain(&[Some(0); 4])];
        let column = date(0).control(0x80, &words).end();
        assert_eq!(column.bytes.len(), 44);
        assert_eq!(integers(&column), (0..1000).map(|i| i * 1000).collect::<Vec<i64>>());
    }

    #[test]
    fn a_run_repeats_the_last_slot_across_controls_but_not_across_literals() {
        let column = long(0).control(0x80, &[deltas(&[0, 3])]).control(0x80, &[run(1), run(1)]).end();
        let mut expected = vec![0, 0];
        expected.extend((0..241).map(|i| 3 + 3 * i));
        assert_eq!(integers(&column), expected);
        let column = long(0).control(0x80, &[deltas(&[3])]).literal(&OwnedValue::int64(9));
        let column = column.control(0x80, &[run(1)]).end();
        assert_eq!(integers(&column), [vec![0, 3], vec![9; 121]].concat());
    }

    #[test]
    fn a_run_may_repeat_a_missing_element_and_the_next_delta_is_from_the_last_present_one() {
        let column = long(5).control(0x80, &[plain(&[Some(2), None]), run(2), deltas(&[1])]).end().read().unwrap();
        assert_eq!(column.len(), 1 + 2 + 240 + 1);
        assert_eq!(column.present_count(), 3);
        let ColumnData::I64(cells) = column.data() else { panic!("{column:?}") };
        assert_eq!((cells[1], cells[2], cells[242], cells[243]), (6, 0, 0, 7));
    }

    #[test]
    fn leading_skips_are_absent_rows_of_the_typed_column() {
        let skips = plain(&[None; 3]);
        let column = Forge::default().control(0x80, &[skips]).literal(&OwnedValue::int64(10));
        let column = column.control(0x80, &[deltas(&[1, 1])]).end().read().unwrap();
        assert_eq!(column.data(), &ColumnData::I64(vec![0, 0, 0, 10, 11, 12]));
        assert_eq!(
            (0..6).map(|row| column.is_present(row)).collect::<Vec<_>>(),
            [false, false, false, true, true, true]
        );
    }

    #[test]
    fn each_control_rescales_the_last_double() {
        let column = Forge::default()
            .literal(&double(1.0))
            .control(0xA0, &[deltas(&[15])])
            .control(0xC0, &[deltas(&[5, 0])])
            .control(0x80, &[deltas(&[1])])
            .end();
        assert_eq!(doubles(&column), [1.0, 2.5, 2.5005, 2.5005, f64::from_bits(2.5005_f64.to_bits() + 1)]);
        // A run after a change of scale repeats its raw value in the new scale.
        let column =
            Forge::default().literal(&double(0.0)).control(0x90, &[deltas(&[1])]).control(0xA0, &[run(1)]).end();
        assert_eq!(doubles(&column)[..4], [0.0, 1.0, 1.1, 1.2]);
        // Constant runs are doubles too, whatever comes before and after them.
        let words = [deltas(&[5, 0]), run(1), deltas(&[1])];
        let cells = doubles(&Forge::default().literal(&double(0.5)).control(0xA0, &words).end());
        assert_eq!((cells.len(), cells[1], cells[122], cells[123]), (124, 1.0, 1.0, 1.1));
    }

    #[test]
    fn a_double_without_an_integer_in_the_scale_is_refused() {
        let column = Forge::default().literal(&double(1.1)).control(0x90, &[0x0E]).end();
        assert_eq!(column.refusal(), (NO_INTEGER, 10));
        let column = Forge::default().literal(&double(f64::NAN)).control(0xD0, &[0x0E]).end();
        assert_eq!(column.refusal(), (NO_INTEGER, 10));
    }

    #[test]
    fn only_doubles_have_scales() {
        let column = Forge::default().literal(&int(1)).control(0x90, &[0x0E]).end();
        assert_eq!(column.refusal(), (BAD_SCALE, 6));
    }

    #[test]
    fn integers_wrap_and_a_boolean_is_true_unless_zero() {
        assert_eq!(integers(&long(i64::MAX).control(0x80, &[deltas(&[1])]).end()), [i64::MAX, i64::MIN]);
        let column = Forge::default().literal(&int(i32::MAX)).control(0x80, &[deltas(&[1])]).end().read().unwrap();
        assert_eq!(column.data(), &ColumnData::I32(vec![i32::MAX, i32::MIN]));
        let words = [deltas(&[-1, 7, 0, -7])];
        let column = Forge::default().literal(&OwnedValue::bool(true)).control(0x80, &words).end().read().unwrap();
        assert_eq!(column.data(), &ColumnData::Bool(vec![1, 0, 1, 1, 0]));
    }

    #[test]
    fn object_ids_keep_the_process_of_their_literal() {
        let id = |last: u8, process: u8| [0, 0, 0, 1, process, 0, 0, 0, 0, 0, 0, last];
        let column = Forge::default()
            .literal(&OwnedValue::object_id(id(1, 7)))
            .control(0x80, &[plain(&[Some(2), None, Some(0)])])
            .literal(&OwnedValue::object_id(id(1, 8)))
            .control(0x80, &[deltas(&[4])])
            .end()
            .read()
            .unwrap();
        let expected = vec![id(1, 7), id(2, 7), [0; 12], id(3, 7), id(1, 8), id(5, 8)];
        assert_eq!(column.data(), &ColumnData::ObjectId(expected));
        assert!(!column.is_present(2));
    }

    #[test]
    fn words_of_every_layout_give_their_differences() {
        for layout in [&BASE[..], &SEVEN, &EIGHT_SMALL, &EIGHT_LARGE].concat() {
            // All ones except in the lowest bit, and one more zero than none.
            let count = u64::from(layout.count_bits > 0);
            let slot = (((1 << layout.value_bits) - 2) << layout.count_bits) | count;
            let raw = ((1_u64 << layout.value_bits) - 2) << (count as u32 * layout.unit());
            let word = crate::column::read::forge::pack(layout, &vec![Some(slot); layout.slots.into()]);
            let cells = integers(&long(0).control(0x80, &[word]).end());
            let expected: Vec<i64> = (0..=i64::from(layout.slots)).map(|i| i.wrapping_mul(unzigzag(raw))).collect();
            assert_eq!(cells, expected, "{layout:?}");
        }
    }

    #[test]
    fn rows_are_counted_before_a_run_is_written() {
        let column = long(0).control(0x80, &[run(16); 16]).end();
        let offset = 10;
        let error = crate::column::decode(&column.bytes, 30_720).unwrap_err();
        assert_eq!((error.reason, error.offset), (TOO_MANY, offset));
        assert_eq!(crate::column::decode(&column.bytes, 30_721).unwrap().len(), 30_721);
        let column = long(0).control(0x80, &[deltas(&[0; 30])]).end();
        assert!(crate::column::decode(&column.bytes, 30).is_err());
    }
}
