//! Which bucket of a window takes which measurements, when journal rows are folded in a collection with `dedupe`.
//!
//! Rows that are stored never move to another bucket: a cursor that has read their bucket must not meet them again. A
//! new measurement goes to the bucket in whose times it lies, or behind the rows of the bucket before it. Once that
//! bucket is full, another one begins. So the buckets of a series do not overlap, unless late rows have filled a bucket
//! many times over.

// Loaded later.

use super::time::bucket_start_ms;
use crate::listed::IntoList;
use crate::value::sort_by;

/// A stored bucket near the new measurements, or a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedBucket {
    /// Its start. No row of it is earlier.
    pub start_ms: i64,
    /// Its last row.
    pub last_ms: i64,
    /// Number of its rows.
    pub rows: usize,
    /// True if its rows may lie between those of other buckets.
    pub is_between: bool,
    /// True if it is stored.
    pub is_stored: bool,
}

/// How many measurements a bucket takes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// If they come in order.
    pub in_order: usize,
    /// If they are late.
    pub late: usize,
}

/// The buckets of a window while new measurements are placed, in order of their times.
pub struct Placing {
    /// The stored buckets in the order given, then the new ones.
    pub slots: Vec<PlacedBucket>,
    /// Positions of the slots that are not between others, ascending by start.
    in_order: Vec<usize>,
    /// The start of the window, if no stored bucket begins before the slots.
    window_start_ms: Option<i64>,
    room: Room,
}

impl Placing {
    /// A placing over the stored buckets of a series. `window_start_ms` is where the first bucket of the window begins;
    /// `None` if there is one already.
    pub fn new(slots: Vec<PlacedBucket>, window_start_ms: Option<i64>, room: Room) -> Placing {
        let mut in_order: Vec<usize> =
            (0..).zip(&slots).filter(|(_, slot)| !slot.is_between).map(|(at, _)| at).listed();
        let start = |at: &usize| slots.get(*at).map(|slot| slot.start_ms);
        sort_by(&mut in_order, |a, b| start(a).cmp(&start(b)));
        Placing { slots, in_order, window_start_ms, room }
    }

    /// The slot that takes a new measurement, by position.
    pub fn place(&mut self, time_ms: i64) -> usize {
        let start = |at: &usize| self.slots.get(*at).map_or(i64::MIN, |slot| slot.start_ms);
        let before = self.in_order.partition_point(|at| start(at) <= time_ms);
        let Some(owner) = before.checked_sub(1).and_then(|at| self.in_order.get(at)).copied() else {
            let start_ms = self.window_start_ms.take().unwrap_or(second_of(time_ms));
            return self.begin(start_ms, time_ms, false);
        };
        if let Some(slot) = self.slots.get_mut(owner) {
            // A bucket starts with a whole second, which may be the last one of the bucket before.
            let is_late = second_of(time_ms) <= slot.last_ms;
            if slot.rows < if is_late { self.room.late } else { self.room.in_order } {
                slot.rows += 1;
                slot.last_ms = slot.last_ms.max(time_ms);
                return owner;
            }
            if !is_late {
                return self.begin(second_of(time_ms), time_ms, false);
            }
        }
        let takes = |slot: &PlacedBucket| slot.is_between && slot.start_ms <= time_ms && slot.rows < self.room.in_order;
        match self.slots.iter().rposition(takes) {
            Some(at) => {
                if let Some(slot) = self.slots.get_mut(at) {
                    slot.rows += 1;
                    slot.last_ms = slot.last_ms.max(time_ms);
                }
                at
            }
            None => self.begin(second_of(time_ms), time_ms, true),
        }
    }

    fn begin(&mut self, start_ms: i64, time_ms: i64, is_between: bool) -> usize {
        let at = self.slots.len();
        self.slots.push(PlacedBucket { start_ms, last_ms: time_ms, rows: 1, is_between, is_stored: false });
        if !is_between {
            let start = |at: &usize| self.slots.get(*at).map_or(i64::MIN, |slot| slot.start_ms);
            let place = self.in_order.partition_point(|at| start(at) <= start_ms);
            self.in_order.insert(place, at);
        }
        at
    }
}

/// The second in which a time lies.
fn second_of(time_ms: i64) -> i64 {
    bucket_start_ms(time_ms, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: Room = Room { in_order: 3, late: 5 };

    /// A stored bucket; times are in seconds.
    fn stored(start: i64, last: i64, rows: usize) -> PlacedBucket {
        PlacedBucket { start_ms: 1000 * start, last_ms: 1000 * last, rows, is_between: false, is_stored: true }
    }

    /// The slots that take these times, and the starts of the new ones, in seconds.
    fn placed(slots: &[PlacedBucket], window: Option<i64>, times: &[i64]) -> (Vec<usize>, Vec<i64>) {
        let mut placing = Placing::new(slots.to_vec(), window, ROOM);
        let taken = times.iter().map(|time| placing.place(1000 * time)).collect();
        let new = placing.slots.iter().filter(|slot| !slot.is_stored).map(|slot| slot.start_ms / 1000).collect();
        (taken, new)
    }

    #[test]
    fn the_first_bucket_begins_with_its_window_and_a_full_one_is_followed_by_another() {
        assert_eq!(placed(&[], Some(0), &[5, 6, 7, 8, 9, 10, 11]), (vec![0, 0, 0, 1, 1, 1, 2], vec![0, 8, 11]));
        assert_eq!(placed(&[stored(0, 4, 2)], None, &[5, 6, 7]), (vec![0, 1, 1], vec![6]));
    }

    #[test]
    fn late_rows_go_to_the_bucket_in_which_they_lie_even_if_it_is_full() {
        let slots = [stored(0, 9, 3), stored(20, 29, 3)];
        assert_eq!(placed(&slots, None, &[4, 5, 12, 24]), (vec![0, 0, 2, 1], vec![12]));
        // Until it has taken far too many.
        assert_eq!(placed(&slots, None, &[4, 5, 6, 7, 21]), (vec![0, 0, 2, 2, 1], vec![6]));
    }

    #[test]
    fn a_row_before_all_buckets_of_its_window_begins_the_first_one() {
        assert_eq!(placed(&[stored(20, 29, 3)], Some(0), &[4, 5]), (vec![1, 1], vec![0]));
        assert_eq!(placed(&[], None, &[4, 5]), (vec![0, 0], vec![4]));
    }

    #[test]
    fn a_bucket_takes_all_rows_of_its_last_second() {
        let mut placing = Placing::new(Vec::new(), Some(0), ROOM);
        let times = [1000, 1001, 1002, 1003, 2000, 2001, 2002, 2003, 2004, 2005, 2006];
        assert_eq!(times.map(|ms| placing.place(ms)), [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(
            placing.slots.iter().map(|slot| (slot.start_ms, slot.is_between)).collect::<Vec<_>>(),
            [(0, false), (2000, false), (2000, true)]
        );
    }

    proptest! {
        #[test]
        fn buckets_stay_apart_unless_they_are_marked(mut batches in prop::collection::vec(prop::collection::vec(0_i64..20_000, 1..30), 1..8)) {
            let mut slots: Vec<PlacedBucket> = Vec::new();
            for times in &mut batches {
                times.sort_unstable();
                let window = slots.iter().all(|slot| slot.start_ms > 0).then_some(0);
                let mut placing = Placing::new(slots, window, Room { in_order: 4, late: 9 });
                times.iter().for_each(|time| { placing.place(*time); });
                slots = placing.slots;
                slots.iter_mut().for_each(|slot| slot.is_stored = true);
                let mut apart: Vec<&PlacedBucket> = slots.iter().filter(|slot| !slot.is_between).collect();
                apart.sort_by_key(|slot| slot.start_ms);
                for pair in apart.windows(2) {
                    prop_assert!(pair[0].last_ms < pair[1].start_ms && pair[1].start_ms % 1000 == 0, "{pair:?}");
                }
                prop_assert!(slots.iter().all(|slot| slot.rows <= 9 && slot.start_ms <= slot.last_ms));
            }
        }
    }
}
