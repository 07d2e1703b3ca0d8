//! Rows of several buckets that stay in memory as one block or as few, with their metadata. A pipeline over many series takes the
//! rows of neighbouring buckets together, and joining them costs it as much as what it computes.
//!
//! They are kept when the same buckets are joined for the second time. Where a column of a bucket was kept alone before,
//! the bucket then has a part of the joined one.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use super::kept::{BucketColumns, KeptCells, KeptColumns, size_bytes, size_bytes_of_part};
use super::room::shared;
use crate::block::{Block, Column, ColumnData, TextNumbers};
use crate::column::GrowingObjects;
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::FieldSet;

/// How many blocks that begin with the same bucket are known at a time: those of so many panels of a dashboard.
const JOINED_COUNT_MAX: usize = 16;

/// What joined rows are.
#[derive(Clone, PartialEq)]
pub struct JoinedFields {
    /// Their columns.
    pub columns: Rc<FieldSet>,
    /// Whether they have the metadata.
    pub has_meta: bool,
    /// Whether their fields may stand in any order.
    pub in_any_order: bool,
    /// If they are not all rows of their buckets: whether the last ones by time, and how many.
    pub only: Option<(bool, usize)>,
}

/// Rows that were joined before.
pub(super) struct JoinedRows {
    buckets: Vec<Weak<BucketColumns>>,
    fields: JoinedFields,
    /// `None` if they were joined once.
    blocks: Option<Vec<Block>>,
    /// What the blocks take beside the parts that belong to buckets.
    size_bytes: usize,
    pub(super) used: Cell<u32>,
}

impl JoinedRows {
    fn is_of(&self, parts: &[(Rc<BucketColumns>, usize)], fields: &JoinedFields) -> bool {
        let is_same = |(known, (bucket, _)): (&Weak<_>, &(Rc<_>, _))| std::ptr::eq(known.as_ptr(), Rc::as_ptr(bucket));
        self.buckets.len() == parts.len() && self.fields == *fields && self.buckets.iter().zip(parts).all(is_same)
    }
}

/// The rows of several buckets, one after another, as `make` returns them; no block if it cannot join them. Each bucket
/// comes with the number of its rows, if all are taken. `make` must depend on nothing but the buckets and `fields`.
///
/// Errors: those of `make`.
pub fn joined_rows(
    buckets: &[(&KeptColumns, usize)],
    fields: &JoinedFields,
    make: &mut dyn FnMut() -> Result<Vec<Block>>,
) -> Result<Vec<Block>> {
    let Some(parts) = parts_of(buckets) else { return make() };
    let Some((first, _)) = parts.first() else { return make() };
    let known = |known: &JoinedRows| {
        known.is_of(&parts, fields).then(|| {
            known.used.set(first.room.used());
            known.blocks.clone()
        })
    };
    let known = first.joined.borrow().iter().find_map(known);
    let is_second = match known {
        Some(Some(blocks)) => {
            parts.iter().for_each(|(bucket, _)| bucket.use_parts());
            return Ok(blocks);
        }
        known => known.is_some(),
    };
    let mut made = make()?;
    if is_second {
        made.iter_mut().for_each(compact);
    }
    if !made.is_empty() {
        note(&parts, fields, &made, is_second);
    }
    Ok(made)
}

/// Notes that rows are about to be joined, which are then kept the first time, unless they are known or the room does not `fit` them.
pub fn note_rows(buckets: &[(&KeptColumns, usize)], fields: &JoinedFields, fits: &dyn Fn() -> bool) {
    let Some(parts) = parts_of(buckets) else { return };
    let is_known = |first: &BucketColumns| first.joined.borrow().iter().any(|known| known.is_of(&parts, fields));
    if parts.first().is_some_and(|(first, _)| !is_known(first)) && fits() {
        note(&parts, fields, &[], false);
    }
}

/// The columns of buckets, and their rows; `None` if one has no room for columns, so that it does not stay in memory itself.
fn parts_of(buckets: &[(&KeptColumns, usize)]) -> Option<Vec<(Rc<BucketColumns>, usize)>> {
    let part = |(bucket, rows): &(&KeptColumns, usize)| {
        let room = bucket.room.get()?.memory()?;
        Some((shared(&bucket.columns, || BucketColumns::new(&room))?, *rows))
    };
    buckets.iter().map(part).listed_if_all()
}

/// Puts numbers in place of texts that repeat, and columns of scalars in place of the objects of rows in journals, which takes longer
/// than a query alone is worth.
pub fn compact(block: &mut Block) {
    let of = |(name, column): &(Box<str>, Column)| {
        let objects = || match column.data() {
            ColumnData::Bson(_) => GrowingObjects::default().extend(column).map(Column::of_objects),
            _ => None,
        };
        Some((name.clone(), TextNumbers::of(column).or_else(objects)?))
    };
    for (name, column) in block.columns().iter().filter_map(of).listed() {
        block.set_column(&name, column);
    }
}

/// Notes that blocks were made; the second time, they are kept if there is room.
fn note(parts: &[(Rc<BucketColumns>, usize)], fields: &JoinedFields, blocks: &[Block], is_second: bool) {
    let Some((first, _)) = parts.first() else { return };
    let columns = || blocks.iter().flat_map(Block::columns);
    let size_bytes: usize = columns().map(|(_, column)| size_bytes(column)).sum();
    // May drop what the buckets themselves have kept.
    let keeps = is_second && first.room.takes(first, size_bytes, true);
    let mut in_parts = 0;
    if keeps {
        let columns = columns().filter(|_| fields.only.is_none() && blocks.len() == 1);
        in_parts = columns.map(|(name, column)| give_parts(parts, name, column)).sum::<usize>();
        in_parts = in_parts.min(size_bytes);
        first.give_back(in_parts);
    }
    first.drop_joined(1, &|known| known.is_of(parts, fields) || known.buckets.iter().any(|b| b.strong_count() == 0));
    first.joined.borrow_mut().push(JoinedRows {
        buckets: parts.iter().map(|(bucket, _)| Rc::downgrade(bucket)).listed(),
        fields: fields.clone(),
        blocks: keeps.then(|| blocks.to_vec()),
        size_bytes: if keeps { size_bytes - in_parts } else { 0 },
        used: Cell::new(first.room.used()),
    });
}

/// Replaces what the buckets have kept of a column by parts of the joined column. Returns the bytes of what they had.
fn give_parts(parts: &[(Rc<BucketColumns>, usize)], name: &str, column: &Column) -> usize {
    // A part of other columns would hold what all of their cells refer to.
    let is_plain = match column.data() {
        ColumnData::F64(_) | ColumnData::I32(_) | ColumnData::I64(_) | ColumnData::Date(_) | ColumnData::Bool(_) => {
            column.presence().is_none()
        }
        _ => false,
    };
    let (mut start, mut given) = (0, 0);
    for (bucket, rows) in parts.iter().filter(|_| is_plain) {
        let mut kept = bucket.kept.borrow_mut();
        if let Some(kept) = kept.iter_mut().find(|kept| *kept.name == *name).and_then(|kept| kept.column.as_mut()) {
            given += size_bytes_of_part(column, *rows);
            *kept = KeptCells { column: column.clone(), rows: start..start + rows };
        }
        start += rows;
    }
    given
}

impl BucketColumns {
    /// Notes that a query reads columns of which this bucket has parts. A part that is dropped frees nothing as long as the column is
    /// there.
    fn use_parts(&self) {
        self.kept.borrow().iter().filter(|kept| kept.is_part()).for_each(|kept| _ = kept.used(&self.room));
    }

    /// Drops joined rows that are outdated, and the oldest if there are too many with `more` of them.
    pub(super) fn drop_joined(&self, more: usize, is_outdated: &dyn Fn(&JoinedRows) -> bool) {
        let mut joined = self.joined.borrow_mut();
        let all = |joined: &[JoinedRows]| joined.iter().map(|known| known.size_bytes).sum::<usize>();
        let before = all(&joined);
        joined.retain(|known| !is_outdated(known));
        if joined.len() + more > JOINED_COUNT_MAX {
            joined.remove(0);
        }
        self.give_back(before - all(&joined));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ops::Range;

    use super::super::room::ColumnRoom;
    use super::*;
    use crate::value::OwnedValue;

    const ROWS: usize = 10;
    const SIZE_BYTES_MAX: usize = 24 << 20;

    fn room() -> Rc<ColumnRoom> {
        Rc::new(ColumnRoom::new(SIZE_BYTES_MAX))
    }

    fn doubles(from: usize, rows: usize) -> Column {
        Column::new(ColumnData::F64((from..from + rows).map(|row| row as f64).collect()), None)
    }

    /// Rows of some buckets, of which each has so many.
    fn block(buckets: Range<usize>, rows: usize) -> Block {
        let mut block = Block::new(buckets.len() * rows);
        block.set_column("a", doubles(buckets.start * rows, buckets.len() * rows));
        block.set_column("m", Column::constant(OwnedValue::int32(1).view(), buckets.len() * rows));
        block
    }

    fn buckets(room: &Rc<ColumnRoom>, count: usize) -> Vec<KeptColumns> {
        let bucket = || {
            let kept = KeptColumns::default();
            kept.allow(room);
            kept
        };
        (0..count).map(|_| bucket()).collect()
    }

    fn fields() -> JoinedFields {
        JoinedFields {
            columns: Rc::new(FieldSet::Only(vec!["a".into()])),
            has_meta: true,
            in_any_order: false,
            only: None,
        }
    }

    /// The rows of some buckets; false if they had to be made.
    fn is_kept(all: &[KeptColumns], which: Range<usize>, rows: usize, fields: &JoinedFields) -> bool {
        let made = Cell::new(false);
        let parts: Vec<_> = all[which.clone()].iter().map(|bucket| (bucket, rows)).collect();
        let joined = joined_rows(&parts, fields, &mut || {
            made.set(true);
            Ok(vec![block(which.clone(), rows)])
        });
        assert_eq!(joined.unwrap(), [block(which.clone(), rows)]);
        !made.get()
    }

    fn size_of(room: &ColumnRoom) -> usize {
        room.memory().unwrap().size_bytes()
    }

    #[test]
    fn the_rows_of_the_same_buckets_are_kept_when_they_are_joined_for_the_second_time() {
        let room = room();
        let all = buckets(&room, 5);
        let uses: Vec<bool> = (0..4).map(|_| is_kept(&all, 0..3, ROWS, &fields())).collect();
        assert_eq!(uses, [false, false, true, true]);
        let without_meta = JoinedFields { has_meta: false, ..fields() };
        let in_any_order = JoinedFields { in_any_order: true, ..fields() };
        let last = JoinedFields { only: Some((true, 1)), ..fields() };
        for (which, fields) in [
            (0..2, fields()),
            (1..3, fields()),
            (0..3, without_meta),
            (0..3, in_any_order),
            (0..4, fields()),
            (0..3, last),
        ] {
            assert!(!is_kept(&all, which, ROWS, &fields));
        }
        assert!(is_kept(&all, 0..3, ROWS, &fields()));
    }

    #[test]
    fn rows_of_which_somebody_has_said_that_they_will_be_joined_are_kept_the_first_time() {
        let all = buckets(&room(), 3);
        let parts: Vec<_> = all.iter().map(|bucket| (bucket, ROWS)).collect();
        note_rows(&parts, &fields(), &|| false);
        note_rows(&parts[..2], &fields(), &|| true);
        note_rows(&parts, &fields(), &|| true);
        let uses: Vec<bool> = (0..3).map(|_| is_kept(&all, 0..3, ROWS, &fields())).collect();
        assert_eq!(uses, [false, true, true]);
        assert!(!is_kept(&all, 1..3, ROWS, &fields()));
        // What is kept stays.
        note_rows(&parts, &fields(), &|| true);
        assert!(is_kept(&all, 0..3, ROWS, &fields()));
        note_rows(&[(&KeptColumns::default(), ROWS)], &fields(), &|| true);
    }

    #[test]
    fn a_bucket_that_was_replaced_is_not_taken_for_the_one_before() {
        let room = room();
        let mut all = buckets(&room, 3);
        assert!((0..3).any(|_| is_kept(&all, 0..3, ROWS, &fields())));
        for place in [1, 2, 0] {
            all[place] = buckets(&room, 1).remove(0);
            let uses: Vec<bool> = (0..3).map(|_| is_kept(&all, 0..3, ROWS, &fields())).collect();
            assert_eq!(uses, [false, false, true]);
        }
        drop(all);
        assert_eq!(size_of(&room), 0);
    }

    #[test]
    fn buckets_that_do_not_stay_in_memory_and_rows_that_cannot_be_joined_are_made_each_time() {
        let all: Vec<KeptColumns> = (0..3).map(|_| KeptColumns::default()).collect();
        assert!((0..4).all(|_| !is_kept(&all, 0..3, ROWS, &fields())));
        let all = buckets(&room(), 2);
        let parts: Vec<_> = all.iter().map(|bucket| (bucket, ROWS)).collect();
        let made = Cell::new(0);
        let mut make = || {
            made.set(made.get() + 1);
            Ok(Vec::new())
        };
        assert!((0..3).all(|_| joined_rows(&parts, &fields(), &mut make) == Ok(Vec::new())));
        assert_eq!(made.get(), 3);
    }

    #[test]
    fn the_columns_that_buckets_had_before_become_parts_of_the_joined_one_and_take_no_more_room() {
        let room = room();
        let all = buckets(&room, 3);
        for (number, bucket) in all.iter().enumerate() {
            (0..2).for_each(|_| bucket.keep_if_loaded(7, "a", Some(&doubles(number * ROWS, ROWS)), true));
        }
        let before = size_of(&room);
        (0..2).for_each(|_| _ = is_kept(&all, 0..3, ROWS, &fields()));
        let metadata = size_bytes(block(0..3, ROWS).column("m").unwrap());
        assert!(size_of(&room) <= before + metadata, "{before} {}", size_of(&room));
        for (number, bucket) in all.iter().enumerate() {
            for range in [0..ROWS, 2..5] {
                let mut found = None;
                assert!(bucket.found_if_loaded(7, &range, &mut found));
                assert_eq!(found, Some(doubles(number * ROWS + range.start, range.len())));
            }
        }
        drop(all);
        assert_eq!(size_of(&room), 0);
    }

    #[test]
    fn joined_rows_and_their_parts_make_room_when_queries_read_them_no_more() {
        let room = room();
        let all = buckets(&room, 3);
        let rows = SIZE_BYTES_MAX / 400;
        for (number, bucket) in all.iter().enumerate() {
            (0..2).for_each(|_| bucket.keep_if_loaded(7, "a", Some(&doubles(number * rows, rows)), true));
        }
        (0..2).for_each(|_| _ = is_kept(&all, 0..3, rows, &fields()));
        let others: Vec<KeptColumns> = buckets(&room, 50);
        let query = |other: &KeptColumns, rows| {
            room.begin_query();
            (0..2).for_each(|_| other.keep_if_loaded(0, "b", Some(&doubles(0, rows)), true));
        };
        let part = |bucket: &KeptColumns| bucket.found_if_loaded(7, &(0..rows), &mut None);
        for other in others.iter().take(20) {
            query(other, 1);
            // Who reads all of them uses the parts as well.
            assert!(is_kept(&all, 0..3, rows, &fields()));
        }
        others.iter().take(10).for_each(|other| query(other, SIZE_BYTES_MAX / 8 / 9));
        assert!(all.iter().all(part) && is_kept(&all, 0..3, rows, &fields()));
        others.iter().skip(20).for_each(|other| query(other, 1));
        others.iter().take(10).for_each(|other| query(other, SIZE_BYTES_MAX / 8 / 9));
        assert!(!all.iter().any(part) && !is_kept(&all, 0..3, rows, &fields()));
        assert!(size_of(&room) <= SIZE_BYTES_MAX);
        drop((all, others));
        assert_eq!(size_of(&room), 0);
    }

    #[test]
    fn few_joined_rows_begin_with_the_same_bucket_and_all_stay_within_their_room() {
        let room = room();
        let rows = SIZE_BYTES_MAX / 2000;
        let all = buckets(&room, 40);
        for _ in 0..3 {
            for end in 2..30 {
                (0..3).for_each(|_| _ = is_kept(&all, 0..end, ROWS, &fields()));
            }
        }
        // Whoever looks for what nobody uses drops none of them.
        parts_of(&[(&all[0], ROWS)]).unwrap()[0].0.drop_unused();
        let ends: Vec<usize> = (2..30).rev().filter(|end| is_kept(&all, 0..*end, ROWS, &fields())).collect();
        assert!(ends.iter().copied().eq((2..30).rev().take(JOINED_COUNT_MAX)));
        for _ in 0..3 {
            for start in 0..38 {
                (0..3).for_each(|_| _ = is_kept(&all, start..start + 2, rows, &fields()));
                assert!(size_of(&room) <= SIZE_BYTES_MAX);
            }
        }
        drop(all);
        assert_eq!(size_of(&room), 0);
    }
}
