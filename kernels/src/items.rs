//! Reads the items of a column that stand for few rows each: literals, and controls of one word. A column in which types take turns consists of them.

use std::iter::repeat_n;

use crate::kinds::{BOOL, DATE, DOUBLE, INT32, INT64, NULL};
use crate::scale::{MULTIPLIERS, to_integer};
use crate::words::{Position, Slot, literals, slots_of, take_apart};

/// Where a column stands behind its last value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The type byte of the value: of a double, a boolean, a date, null, or an integer.
    pub kind: u8,
    /// The integer of the value.
    pub at: Position,
    /// The value, if it is a double.
    pub double: f64,
    /// The word in whose last slot it was.
    pub word: u64,
}

/// Appends the values of the items at the start of `bytes` to `rows`, at most `room` of them, and their type bytes to `kinds` when another type follows. Returns
/// how many bytes it has read. It stops at the first item that is neither a literal of these types nor a control of one word, that is wrong, or whose word is a
/// run, has a missing slot or an unknown layout. A literal sets the word to `zero`.
#[inline(never)]
pub fn read(
    bytes: &[u8],
    room: usize,
    zero: u64,
    place: &mut Place,
    kinds: &mut Vec<u8>,
    rows: &mut Vec<i64>,
) -> usize {
    let (mut here, mut read, end) = (*place, 0, rows.len() + room);
    while let Some((tag, rest)) = bytes.get(read..).and_then(<[u8]>::split_first) {
        let room = end.saturating_sub(rows.len());
        if tag & 0x8F == 0x80 && *tag < 0xE0 {
            // At least the end of the column must follow.
            let Some(word) = rest.first_chunk().filter(|word| rest.len() > word.len()) else { break };
            if !control(*tag, u64::from_le_bytes(*word), room, &mut here, rows) {
                break;
            }
            read += 1 + word.len();
            continue;
        }
        // Shorter values at the end of the column are left, too.
        let Some([0, b0, b1, b2, b3, b4, b5, b6, b7]) = rest.first_chunk().filter(|_| room > 0) else { break };
        let word = i64::from_le_bytes([*b0, *b1, *b2, *b3, *b4, *b5, *b6, *b7]);
        let (value, len) = match *tag {
            DOUBLE | DATE | INT64 => (word, 8),
            INT32 => ((word as i32).into(), 4),
            BOOL if *b0 < 2 => ((*b0).into(), 1),
            NULL => (0, 0),
            _ => break,
        };
        if *tag != here.kind {
            kinds.extend(repeat_n(here.kind, rows.len().saturating_sub(kinds.len())));
        }
        rows.push(value);
        read += 2 + len;
        let mut last = value;
        if len == 8 && rest.get(9) == Some(tag) {
            read += 10 * literals(bytes.get(read..).unwrap_or_default(), *tag, room - 1, rows);
            last = rows.last().copied().unwrap_or(last);
        }
        here = Place {
            kind: *tag,
            at: Position { value: last, slope: 0 },
            double: f64::from_bits(last.cast_unsigned()),
            word: zero,
        };
    }
    *place = here;
    read
}

/// Appends the values of a control of one word, or returns false.
#[inline(always)]
fn control(control: u8, word: u64, room: usize, here: &mut Place, rows: &mut Vec<i64>) -> bool {
    let slots = slots_of(word);
    if slots == 0 || slots > room {
        return false;
    }
    let scale = match (here.kind, control >> 4) {
        (DOUBLE | BOOL | INT32 | INT64 | DATE, 8) => None,
        (DOUBLE, nibble) => MULTIPLIERS.get(usize::from(nibble).wrapping_sub(9)).copied(),
        _ => return false,
    };
    let mut at = here.at;
    if here.kind == DOUBLE {
        at.value = match scale {
            None => here.double.to_bits().cast_signed(),
            Some(multiplier) => match to_integer(here.double, multiplier) {
                Some(integer) => integer,
                None => return false,
            },
        };
    }
    let slot = if here.kind == DATE { Slot::Change } else { Slot::Difference };
    let mut double = here.double;
    take_apart(word, slot, &mut at, |value| {
        let cell = match scale {
            // Integers beyond 2^53 come from damaged columns only, for which any double will do.
            #[allow(clippy::cast_precision_loss)]
            Some(multiplier) => (value as f64 / multiplier).to_bits().cast_signed(),
            None => value,
        };
        double = f64::from_bits(cell.cast_unsigned());
        rows.push(cell);
    });
    *here = Place { at, double, word, ..*here };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: u64 = 0xE;

    fn literal(kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind, 0], value].concat()
    }

    /// A control of one word, whose slots are these differences.
    fn differences(nibble: u8, differences: &[i64]) -> Vec<u8> {
        let (selector, width) = match differences.len() {
            1 => (14, 60),
            2 => (13, 30),
            3 => (12, 20),
            _ => panic!("another layout"),
        };
        let zigzag = |n: &i64| ((n << 1) ^ (n >> 63)).cast_unsigned();
        let slots = differences.iter().rev().fold(0, |slots, n| slots << width | zigzag(n));
        [&[nibble][..], &(slots << 4 | selector).to_le_bytes()].concat()
    }

    fn start() -> Place {
        Place { kind: DOUBLE, at: Position::default(), double: 0.0, word: ZERO }
    }

    fn read_all(bytes: &[u8], room: usize) -> (usize, Place, Vec<u8>, Vec<i64>) {
        let (mut place, mut kinds, mut rows) = (start(), Vec::new(), Vec::new());
        let read = read(bytes, room, ZERO, &mut place, &mut kinds, &mut rows);
        (read, place, kinds, rows)
    }

    fn double(x: f64) -> i64 {
        x.to_bits().cast_signed()
    }

    #[test]
    fn types_may_take_turns() {
        let bytes = [
            literal(DOUBLE, &1.5_f64.to_le_bytes()),
            differences(0xA0, &[10, -5]),
            literal(INT32, &(-7_i32).to_le_bytes()),
            differences(0x80, &[1]),
            literal(NULL, &[]),
            literal(BOOL, &[1]),
            differences(0x80, &[-1]),
            literal(DATE, &1000_i64.to_le_bytes()),
            differences(0x80, &[5, 0, 1]),
            literal(INT64, &9_i64.to_le_bytes()),
            literal(INT64, &8_i64.to_le_bytes()),
            vec![0; 12],
        ]
        .concat();
        let (read, place, kinds, rows) = read_all(&bytes, 100);
        assert_eq!(read, bytes.len() - 12);
        let expected = [double(1.5), double(2.5), double(2.0), -7, -6, 0, 1, 0, 1000, 1005, 1010, 1016, 9, 8];
        assert_eq!(rows, expected);
        assert_eq!(kinds, [[1; 3].as_slice(), &[16; 2], &[10], &[8; 2], &[9; 4]].concat());
        assert_eq!((place.kind, place.at, place.word), (INT64, Position { value: 8, slope: 0 }, ZERO));
    }

    #[test]
    fn it_stops_in_front_of_what_it_does_not_read() {
        let begin = [literal(DOUBLE, &1.5_f64.to_le_bytes()), literal(INT64, &3_i64.to_le_bytes())].concat();
        let int = literal(INT32, &[1, 0, 0, 0]);
        let behind = |item: Vec<u8>| [begin.clone(), item, vec![0; 12]].concat();
        let stops = [
            vec![0],
            // A scale for an integer; another type; a name; no boolean; two words; a run; no layout; a missing slot.
            differences(0x90, &[1]),
            literal(2, &[2, 0, 0, 0, b'a', 0]),
            [vec![INT32, b'a'], vec![0; 5]].concat(),
            literal(BOOL, &[2]),
            [vec![0x81], vec![0; 16]].concat(),
            [vec![0x80], 15_u64.to_le_bytes().to_vec()].concat(),
            [vec![0x80], 0_u64.to_le_bytes().to_vec()].concat(),
            [vec![0x80], u64::MAX.wrapping_sub(1).to_le_bytes().to_vec()].concat(),
        ];
        for stop in stops {
            let (read, place, kinds, rows) = read_all(&behind(stop.clone()), 100);
            assert_eq!((read, rows.len(), kinds.len(), place.kind), (begin.len(), 2, 1, INT64), "{stop:x?}");
        }
        // No room, and no byte behind a control or a value.
        assert_eq!(read_all(&behind(int.clone()), 2).0, begin.len());
        assert_eq!(read_all(&behind(differences(0x80, &[1, 1])), 3).0, begin.len());
        assert_eq!(read_all(&[begin.clone(), differences(0x80, &[1])].concat(), 100).0, begin.len());
        assert_eq!(read_all(&[begin.clone(), int].concat(), 100).0, begin.len());
        // A double that has no integer in the scale, and a control behind null.
        assert_eq!(
            read_all(&[literal(DOUBLE, &1.5_f64.to_le_bytes()), differences(0x90, &[1]), vec![0]].concat(), 9).0,
            10
        );
        assert_eq!(read_all(&[literal(NULL, &[]), differences(0x80, &[0]), vec![0]].concat(), 9).0, 2);
    }
}
