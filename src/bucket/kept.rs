//! Decoded columns that stay in memory with their bucket. A dashboard asks the same queries again and again, and
//! decoding takes up to half of their time.
//!
//! A column is kept when it is decoded for the second time, so a query that runs once keeps nothing. Without room for
//! it, columns go that none of the last queries has read. If there are none, most new columns are not kept: a scan of more than
//! fits would otherwise evict each column before it reads it again. One in `REFUSED_COUNT` of them replaces the oldest, so that
//! what is kept follows what is read.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::mem;
use std::ops::Range;
use std::rc::Rc;

use super::joined::JoinedRows;
use super::room::{ColumnRoom, MemoryRoom, shared};
use crate::block::{Column, ColumnData};

/// The place of the time column. Other columns have their position among the columns of the bucket.
pub(super) const TIMES: u32 = u32::MAX;
/// The place of columns of several buckets, which are told apart by their names.
pub(super) const NAMED: u32 = u32::MAX - 1;

/// Bytes of a column without cells.
const COLUMN_BYTES: usize = 100;

/// The decoded columns of one bucket. It keeps none until it may.
#[derive(Default)]
pub struct KeptColumns {
    pub(super) room: OnceCell<Rc<ColumnRoom>>,
    /// The `BucketColumns` of the bucket, hidden like its room.
    pub(super) columns: OnceCell<Rc<dyn Any>>,
}

impl Clone for KeptColumns {
    /// A copy of a bucket keeps nothing at first.
    fn clone(&self) -> KeptColumns {
        KeptColumns::default()
    }
}

impl fmt::Debug for KeptColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptColumns")
    }
}

impl KeptColumns {
    /// Finds rows `range` of the column at `place`; false if it is not kept, or if the second half of the module is not
    /// loaded.
    // Loaded later.
    #[inline(never)]
    pub(super) fn found_if_loaded(&self, place: u32, range: &Range<usize>, found: &mut Option<Column>) -> bool {
        let Some(columns) = self.columns.get().and_then(|columns| columns.downcast_ref::<BucketColumns>()) else {
            return false;
        };
        let kept = columns.kept.borrow();
        let cells = kept.iter().find(|kept| kept.place == place).and_then(|kept| kept.used(&columns.room));
        *found = cells.map(|KeptCells { column, rows }| column.slice(rows.start + range.start..rows.start + range.end));
        found.is_some()
    }

    /// Keeps the column `name` at `place`, which was not found, if it was decoded before, there is room, and the second
    /// half of the module is loaded. Without the column, this is only noted. `may_evict`: older columns may make room.
    // Loaded later.
    #[inline(never)]
    pub(super) fn keep_if_loaded(&self, place: u32, name: &str, column: Option<&Column>, may_evict: bool) {
        let Some(room) = self.room.get().and_then(|room| room.memory()) else { return };
        let Some(columns) = shared(&self.columns, || BucketColumns::new(&room)) else { return };
        let is_it = |kept: &KeptColumn| kept.place == place && (place != NAMED || kept.is_named(name));
        let is_second = columns.kept.borrow().iter().any(|kept| is_it(kept) && kept.column.is_none());
        // May drop what this bucket itself has kept.
        let taken = column.filter(|_| is_second).map(|column| (column, size_bytes(column)));
        let taken = taken.filter(|(_, size_bytes)| room.takes(&columns, *size_bytes, may_evict));
        let cells = |column: &Column| KeptCells { column: column.clone(), rows: 0..column.len() };
        let (column, size_bytes) = taken.map(|(column, size_bytes)| (cells(column), size_bytes)).unzip();
        let new = KeptColumn {
            place,
            name: name.into(),
            column,
            size_bytes: size_bytes.unwrap_or_default(),
            used: Cell::new(room.used()),
        };
        let mut kept = columns.kept.borrow_mut();
        match kept.iter_mut().find(|kept| is_it(kept)) {
            Some(kept) => *kept = new,
            None => kept.push(new),
        }
    }

    /// Lets it keep columns, in `room`.
    pub fn allow(&self, room: &Rc<ColumnRoom>) {
        self.room.get_or_init(|| Rc::clone(room));
    }
}

/// About the bytes that a column takes in memory, with the values of dictionaries and the bits of absent cells.
pub(super) fn size_bytes(column: &Column) -> usize {
    let within = match column.data() {
        ColumnData::Dictionary(index, values) => 4 * index.len() + size_bytes(values),
        ColumnData::Objects(objects) => objects.scalars().iter().map(size_bytes).sum(),
        // Their elements are remembered beside arrays.
        _ => column.size_bytes() * if column.begins_with_array() { 2 } else { 1 },
    };
    within + column.presence().map_or(0, |presence| presence.len() / 8) + COLUMN_BYTES
}

/// What `size_bytes` says of so many rows of a column whose cells have a fixed width.
pub(super) fn size_bytes_of_part(column: &Column, rows: usize) -> usize {
    column.size_bytes().checked_div(column.len()).unwrap_or_default() * rows + COLUMN_BYTES
}

/// A column that was decoded before.
pub(super) struct KeptColumn {
    place: u32,
    pub(super) name: Box<str>,
    pub(super) column: Option<KeptCells>,
    /// What it has taken of its room.
    size_bytes: usize,
    used: Cell<u32>,
}

impl KeptColumn {
    /// True if it is the column of several buckets with this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.place == NAMED && *self.name == *name
    }

    /// True if it is a part of the column of several buckets.
    pub(super) fn is_part(&self) -> bool {
        self.column.as_ref().is_some_and(|cells| cells.rows.len() < cells.column.len())
    }

    /// Its cells, for a query that reads them.
    pub(super) fn used(&self, room: &MemoryRoom) -> Option<&KeptCells> {
        self.used.set(room.used());
        self.column.as_ref()
    }
}

/// The cells of a column: all of its own, or a part of those of several buckets.
pub(super) struct KeptCells {
    pub(super) column: Column,
    pub(super) rows: Range<usize>,
}

/// What stays in memory of a bucket.
pub(super) struct BucketColumns {
    pub(super) room: Rc<MemoryRoom>,
    pub(super) kept: RefCell<Vec<KeptColumn>>,
    /// Rows of several buckets, of which this is the first.
    pub(super) joined: RefCell<Vec<JoinedRows>>,
    pub(super) size_bytes: Cell<usize>,
}

impl BucketColumns {
    pub(super) fn new(room: &Rc<MemoryRoom>) -> BucketColumns {
        let size_bytes = Cell::default();
        BucketColumns { room: Rc::clone(room), kept: RefCell::default(), joined: RefCell::default(), size_bytes }
    }

    /// Gives back some of the bytes that it took.
    pub(super) fn give_back(&self, size_bytes: usize) {
        self.size_bytes.set(self.size_bytes.get() - size_bytes);
        self.room.size_bytes.set(self.room.size_bytes.get() - size_bytes);
    }

    /// Drops the columns that no query has in use.
    pub(super) fn drop_unused(&self) {
        let mut unused = 0;
        for kept in self.kept.borrow_mut().iter_mut() {
            if !self.room.is_in_use(kept.used.get()) {
                unused += mem::take(&mut kept.size_bytes);
                kept.column = None;
            }
        }
        self.give_back(unused);
        self.drop_joined(0, &|known| !self.room.is_in_use(known.used.get()));
    }

    pub(super) fn clear(&self) {
        self.give_back(self.size_bytes.get());
        self.kept.take();
        self.joined.take();
    }
}

impl Drop for BucketColumns {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::QUERIES_IN_USE;
    use super::*;
    use crate::block::ColumnBuilder;
    use crate::value::{DocWriter, Kind, OwnedValue, Value};

    const SIZE_BYTES_MAX: usize = 24 << 20;

    fn room() -> Rc<ColumnRoom> {
        Rc::new(ColumnRoom::new(SIZE_BYTES_MAX))
    }

    fn doubles(rows: usize) -> Column {
        Column::new(ColumnData::F64((0..rows).map(|row| row as f64).collect()), None)
    }

    fn bucket(room: &Rc<ColumnRoom>) -> KeptColumns {
        let kept = KeptColumns::default();
        kept.allow(room);
        kept
    }

    /// As if the column had been decoded; true if it is kept now.
    fn decoded(kept: &KeptColumns, place: u32, column: &Column) -> bool {
        kept.keep_if_loaded(place, "a", Some(column), true);
        found(kept, place, 0..column.len()).is_some()
    }

    fn size_of(room: &ColumnRoom) -> usize {
        room.memory().unwrap().size_bytes()
    }

    fn found(kept: &KeptColumns, place: u32, range: Range<usize>) -> Option<Column> {
        let mut found = None;
        assert_eq!(kept.found_if_loaded(place, &range, &mut found), found.is_some());
        found
    }

    #[test]
    fn a_column_is_kept_when_it_is_decoded_for_the_second_time() {
        let kept = bucket(&room());
        assert!(!decoded(&kept, 3, &doubles(10)));
        assert!(!decoded(&kept, TIMES, &doubles(5)) && decoded(&kept, 3, &doubles(10)));
        assert_eq!(found(&kept, 3, 0..10), Some(doubles(10)));
        assert_eq!(found(&kept, 3, 4..6), Some(doubles(10).slice(4..6)));
        assert!(found(&kept, TIMES, 0..5).is_none() && decoded(&kept, TIMES, &doubles(5)));
        assert_eq!(found(&kept, TIMES, 0..5), Some(doubles(5)));
    }

    #[test]
    fn a_bucket_that_does_not_stay_in_memory_keeps_no_column() {
        let kept = KeptColumns::default();
        assert!((0..3).all(|_| !decoded(&kept, 0, &doubles(10))));
        assert!(found(&kept, 0, 0..10).is_none());
        let stays = bucket(&room());
        assert!((0..2).any(|_| decoded(&stays, 0, &doubles(10))));
        assert!(found(&stays.clone(), 0, 0..10).is_none());
    }

    #[test]
    fn kept_columns_take_no_more_than_their_room_and_give_it_back() {
        let room = room();
        let count = 2 * SIZE_BYTES_MAX / size_bytes(&doubles(1000));
        let buckets: Vec<KeptColumns> = (0..count).map(|_| bucket(&room)).collect();
        buckets.iter().for_each(|kept| kept.keep_if_loaded(0, "a", Some(&doubles(1000)), true));
        for _ in 0..3 {
            for kept in &buckets {
                if found(kept, 0, 0..1000).is_none() {
                    kept.keep_if_loaded(0, "a", Some(&doubles(1000)), true);
                }
            }
            let in_all: usize = buckets.iter().filter_map(|kept| found(kept, 0, 0..1000)).map(|c| size_bytes(&c)).sum();
            assert!(in_all == size_of(&room) && in_all <= SIZE_BYTES_MAX);
            assert!(in_all > SIZE_BYTES_MAX / 10 * 9);
        }
        drop(buckets);
        assert_eq!(size_of(&room), 0);
    }

    #[test]
    fn a_scan_of_more_than_fits_finds_most_of_what_was_kept_and_what_is_read_no_more_goes_in_time() {
        let room = room();
        let count = SIZE_BYTES_MAX / size_bytes(&doubles(1000)) * 5 / 4;
        let scan = |buckets: &[KeptColumns]| {
            let read = |kept: &KeptColumns| {
                let known = found(kept, 0, 0..1000).is_some();
                if !known {
                    kept.keep_if_loaded(0, "a", Some(&doubles(1000)), true);
                }
                known
            };
            buckets.iter().filter(|kept| read(kept)).count()
        };
        let [old, new]: [Vec<KeptColumns>; 2] = [0, 1].map(|_| (0..count).map(|_| bucket(&room)).collect());
        scan(&old);
        scan(&old);
        assert!((0..5).all(|_| scan(&old) > count / 2));
        let scans = (0..).position(|_| scan(&new) > count / 2);
        assert!(scans.is_some_and(|scans| scans < 20), "{scans:?}");
        assert!(scan(&old) < count / 2);
    }

    #[test]
    fn a_column_that_may_not_evict_others_is_kept_only_while_there_is_room() {
        let room = room();
        let count = SIZE_BYTES_MAX / size_bytes(&doubles(1000));
        let buckets: Vec<KeptColumns> = (0..2 * count).map(|_| bucket(&room)).collect();
        let is_found = |kept: &&KeptColumns| found(kept, 0, 0..1000).is_some();
        for _ in 0..20 {
            let unknown = buckets.iter().filter(|kept| !is_found(kept));
            unknown.for_each(|kept| kept.keep_if_loaded(0, "a", Some(&doubles(1000)), false));
        }
        assert_eq!(
            (buckets.iter().take_while(is_found).count(), buckets.iter().filter(is_found).count()),
            (count, count)
        );
    }

    /// As if a query read these columns; how many of them it found.
    fn query(room: &ColumnRoom, buckets: &[KeptColumns]) -> usize {
        room.begin_query();
        let is_found = |kept: &&KeptColumns| {
            let is_found = found(kept, 0, 0..1000).is_some();
            // Runs note what they look for, and make it afterwards.
            (0..2).filter(|_| !is_found).for_each(|_| kept.keep_if_loaded(0, "a", Some(&doubles(1000)), true));
            is_found
        };
        buckets.iter().filter(is_found).count()
    }

    #[test]
    fn columns_that_the_last_queries_have_not_read_make_room_at_once() {
        let room = room();
        let count = SIZE_BYTES_MAX / size_bytes(&doubles(1000)) * 3 / 4;
        let [old, used, new]: [Vec<KeptColumns>; 3] =
            [count / 2; 3].map(|count| (0..count).map(|_| bucket(&room)).collect());
        assert_eq!((query(&room, &old), query(&room, &used)), (0, 0));
        // Each keeps something.
        for _ in 1..QUERIES_IN_USE {
            assert_eq!(query(&room, &used), used.len());
            assert_eq!(query(&room, &[bucket(&room)]), 0);
        }
        let left = |of: &[KeptColumns]| of.iter().filter(|kept| found(kept, 0, 0..1000).is_some()).count();
        assert_eq!(query(&room, &new), 0);
        assert_eq!((left(&used), left(&new)), (used.len(), new.len()));
        let of_old = left(&old);
        assert!(of_old > 0 && of_old < old.len(), "{of_old}");
        drop((old, used, new));
        assert_eq!(size_of(&room), 0);
    }

    #[test]
    fn queries_that_take_turns_find_most_of_their_columns_though_all_do_not_fit() {
        let room = room();
        let count = SIZE_BYTES_MAX / size_bytes(&doubles(1000)) / 8;
        let all: Vec<Vec<KeptColumns>> = (0..10).map(|_| (0..count).map(|_| bucket(&room)).collect()).collect();
        let mut asked = (0..10).map(|_| all.iter().map(|buckets| query(&room, buckets)).sum::<usize>());
        assert_eq!(asked.next(), Some(0));
        assert!(asked.all(|found| found > 6 * count));
    }

    #[test]
    fn a_column_of_much_of_the_room_is_not_kept() {
        let kept = bucket(&room());
        assert!((0..3).all(|_| !decoded(&kept, 0, &doubles(SIZE_BYTES_MAX / 32))));
    }

    #[test]
    fn replaced_buckets_leave_nothing_behind() {
        let room = room();
        for _ in 0..1000 {
            let kept = bucket(&room);
            assert!((0..2).any(|_| decoded(&kept, 0, &doubles(10))));
        }
        assert!(size_of(&room) == 0 && room.memory().unwrap().owners.borrow().len() < 20);
    }

    #[test]
    fn values_of_dictionaries_take_room() {
        let text = OwnedValue::string(&"x".repeat(SIZE_BYTES_MAX / 20));
        let kept = bucket(&room());
        let keeps = |place: u32| (0..2).any(|_| decoded(&kept, place, &Column::constant(text.view(), 3)));
        assert_eq!((0..20).filter(|place| keeps(*place)).count(), 19);
    }

    #[test]
    fn a_bucket_that_is_the_oldest_may_give_up_its_own_columns_for_another() {
        let room = room();
        let kept = bucket(&room);
        let column = doubles(SIZE_BYTES_MAX / 100);
        for round in 0..3 {
            (0..50).for_each(|place| _ = decoded(&kept, place, &column));
            assert!(size_of(&room) <= SIZE_BYTES_MAX, "{round}");
        }
        let of_places = (0..50).filter_map(|place| found(&kept, place, 0..column.len()));
        assert_eq!(of_places.map(|column| size_bytes(&column)).sum::<usize>(), size_of(&room));
        assert!(size_of(&room) > 0);
    }

    #[test]
    fn arrays_take_room_for_their_elements_as_well() {
        let mut builder = ColumnBuilder::new();
        for row in 0..50 {
            let mut array = DocWriter::new();
            ["0", "1", "2"].into_iter().for_each(|place| _ = array.double(place, f64::from(row)));
            builder.push(Value::new_checked(Kind::Array, array.finish().view().as_bytes()));
        }
        let arrays = builder.finish();
        let without = size_bytes(&arrays);
        let elements = arrays.elements().unwrap();
        assert!(without >= arrays.size_bytes() + elements.values.size_bytes() + 4 * elements.ends.len());
        assert!(without < 2 * arrays.size_bytes() + 1000);
    }
}
