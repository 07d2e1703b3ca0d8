//! Rows of one type that has a width: decoded control by control into a vector of integers.

use super::integer::{Coding, of_object_id, to_object_id, unzigzag};
use super::presence::Presence;
use super::scale::{self, Scale};
use super::selector::Layout;
use super::words::{BAD_SELECTOR, Slots, ZERO_WORD, is_plain, last_slot, ones, run_len, words};
use crate::block::{Bytes12, Column, ColumnData};
use crate::value::{Kind, fixed};

/// More elements than the column may have.
pub const TOO_MANY: &str = "the column has more elements than its bucket has rows";
/// A control of a scale where there can be none.
pub const BAD_SCALE: &str = "a control has the scale of a double behind a value that is none";
/// A double that its control cannot go on from.
pub const NO_INTEGER: &str = "the last double is no integer in the scale of a control";

/// The rows so far and the state behind the last of them.
///
/// Whatever the type, a row is 64 bits in one vector (of a double, its bits), so that one routine does for all types.
pub struct TypedRows {
    kind: Kind,
    by_slope: bool,
    rows: Vec<i64>,
    presence: Presence,
    /// The integer of the last present element, and its difference to the one before.
    value: i64,
    slope: i64,
    /// The last present double.
    double: f64,
    /// What a run repeats the last slot of.
    word: u64,
    /// ObjectIds whose process is known; `rows` goes on behind them, with the process of `like`.
    ids: Vec<Bytes12>,
    like: Bytes12,
}

impl TypedRows {
    /// True for the types this is made for.
    pub fn takes(kind: Kind) -> bool {
        matches!(kind, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Date | Kind::Bool | Kind::ObjectId)
    }

    /// `absent` rows without a value; there will be no more than about `capacity`.
    pub fn new(kind: Kind, absent: usize, capacity: usize) -> TypedRows {
        let mut rows = Vec::with_capacity(capacity);
        rows.resize(absent, 0);
        let mut presence = Presence::default();
        if absent > 0 {
            presence.push_absent(0, absent);
        }
        TypedRows {
            kind,
            by_slope: Coding::of(kind) == Coding::DeltaOfDelta,
            rows,
            presence,
            value: 0,
            slope: 0,
            double: 0.0,
            word: ZERO_WORD,
            ids: Vec::new(),
            like: [0; 12],
        }
    }

    /// The type of the rows.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.ids.len() + self.rows.len()
    }

    /// Appends a value of the type.
    #[inline]
    pub fn literal(&mut self, bytes: &[u8]) {
        self.value = match self.kind {
            Kind::Int32 => i64::from(i32::from_le_bytes(fixed(bytes))),
            Kind::Bool => i64::from(bytes == [1]),
            Kind::ObjectId => {
                self.seal_ids();
                self.like = fixed(bytes);
                of_object_id(self.like)
            }
            _ => i64::from_le_bytes(fixed(bytes)),
        };
        self.double = f64::from_bits(self.value.cast_unsigned());
        self.slope = 0;
        self.word = ZERO_WORD;
        self.rows.push(self.value);
    }

    /// Appends the elements of a control, as long as there are no more than `rows_max` rows.
    ///
    /// Errors: `TOO_MANY`, `BAD_SCALE`, `NO_INTEGER`, `BAD_SELECTOR`.
    pub fn control(&mut self, control: u8, bytes: &[u8], rows_max: usize) -> Result<(), &'static str> {
        let mut scale = scale::RAW;
        if self.kind == Kind::Double {
            scale = scale::scale_of(control).ok_or(BAD_SCALE)?;
            self.value = scale::encode(self.double, scale).ok_or(NO_INTEGER)?;
        } else if control & 0xF0 != 0x80 {
            return Err(BAD_SCALE);
        }
        // The first row that still is an integer in `scale`.
        let mut first = self.rows.len();
        // How many more rows there may be, counted apart from `rows`, so that a loop over words need not ask for their number.
        let mut room = rows_max.saturating_sub(self.len());
        for word in words(bytes) {
            if let Some(count) = run_len(word) {
                room = room.checked_sub(count).ok_or(TOO_MANY)?;
                if self.repeats() {
                    self.unscale(first, scale);
                    let same = if scale == scale::RAW { self.value } else { bits(scale::decode(self.value, scale)) };
                    self.rows.resize(self.rows.len() + count, same);
                    first = self.rows.len();
                } else {
                    self.run(count);
                }
            } else {
                let layout = Layout::of(word).ok_or(BAD_SELECTOR)?;
                room = room.checked_sub(usize::from(layout.slots)).ok_or(TOO_MANY)?;
                self.word = word;
                if is_plain(word, layout) {
                    self.plain_word(word, layout);
                } else {
                    self.word_of_any_kind(word, layout);
                }
            }
        }
        self.unscale(first, scale);
        self.double = scale::decode(self.value, scale);
        Ok(())
    }

    /// True where a run is the last value again and again.
    fn repeats(&self) -> bool {
        !self.by_slope && last_slot(self.word).is_some_and(|raw| raw.narrow() == 0)
    }

    /// A run of anything else: of missing elements, or of a difference.
    fn run(&mut self, count: usize) {
        let Some(raw) = last_slot(self.word) else {
            self.presence.push_absent(self.len(), count);
            self.rows.resize(self.rows.len() + count, 0);
            return;
        };
        let delta = unzigzag(raw.narrow());
        let (mut value, mut slope) = (self.value, self.slope);
        let bend = if self.by_slope {
            delta
        } else {
            slope = delta;
            0
        };
        self.rows.extend((0..count).map(|_| {
            slope = slope.wrapping_add(bend);
            value = value.wrapping_add(slope);
            value
        }));
        // Without slopes nobody reads it.
        (self.value, self.slope) = (value, slope);
    }

    /// A word of `is_plain`: the loop that most values go through.
    #[inline]
    fn plain_word(&mut self, word: u64, layout: Layout) {
        let width = layout.slot_bits();
        let ones = ones(width);
        let mut rest = word >> layout.first_bit();
        let (mut value, mut slope) = (self.value, self.slope);
        let deltas = (0..layout.slots).map(|_| {
            let delta = unzigzag(rest & ones);
            rest >>= width;
            delta
        });
        if self.by_slope {
            self.rows.extend(deltas.map(|delta| {
                slope = slope.wrapping_add(delta);
                value = value.wrapping_add(slope);
                value
            }));
        } else {
            self.rows.extend(deltas.map(|delta| {
                value = value.wrapping_add(delta);
                value
            }));
        }
        (self.value, self.slope) = (value, slope);
    }

    fn word_of_any_kind(&mut self, word: u64, layout: Layout) {
        let rows = self.len();
        let (mut value, mut slope, by_slope) = (self.value, self.slope, self.by_slope);
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
        (self.value, self.slope) = (value, slope);
        if present != bit.wrapping_sub(1) {
            self.presence.push_bits(rows, present, count);
        }
    }

    /// Makes doubles of the integers from row `first` on.
    fn unscale(&mut self, first: usize, scale: Scale) {
        if scale == scale::RAW {
            return;
        }
        let multiplier = scale::multiplier(scale);
        for row in self.rows.get_mut(first..).unwrap_or_default() {
            // Integers beyond 2^53 come from damaged columns only; any double will do for them.
            *row = bits(*row as f64 / multiplier);
        }
    }

    /// Gives the ObjectIds that are still integers their process, before another one comes.
    fn seal_ids(&mut self) {
        let like = self.like;
        self.ids.extend(self.rows.drain(..).map(|row| to_object_id(row, like)));
    }

    /// The column.
    pub fn finish(mut self) -> Column {
        let presence = std::mem::take(&mut self.presence).finish(self.len());
        let rows = std::mem::take(&mut self.rows);
        let data = match self.kind {
            Kind::Double => ColumnData::F64(bytemuck::cast_vec(rows)),
            Kind::Date => ColumnData::Date(rows),
            // Its low half: the format lets them wrap.
            Kind::Int32 => ColumnData::I32(rows.into_iter().map(|row| row as i32).collect()),
            Kind::Bool => ColumnData::Bool(rows.into_iter().map(|row| u8::from(row != 0)).collect()),
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
fn bits(x: f64) -> i64 {
    x.to_bits().cast_signed()
}
