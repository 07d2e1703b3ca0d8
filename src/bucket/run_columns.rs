//! Joined columns of neighbouring buckets of few rows. Each stays in memory by itself, so that queries share them.
//!
//! As with columns of one bucket, a column is kept when it is made for the second time.

// Loaded later.

use super::kept::{BucketColumns, KeptColumns, NAMED};
use crate::block::{Block, Column, ColumnData};
use crate::value::FieldSet;

/// What is kept of some columns of several buckets.
#[derive(Debug, PartialEq)]
pub struct RunColumns {
    /// All rows, with the columns that are kept and have cells.
    pub rows: Block,
    /// The columns that are not kept.
    pub missing: FieldSet,
    /// True if somebody has asked for each of these before.
    pub are_noted: bool,
}

impl KeptColumns {
    /// What is kept of the columns `wanted`, which have so many `rows`.
    pub fn named(&self, rows: usize, wanted: &FieldSet) -> RunColumns {
        let mut found = RunColumns { rows: Block::new(rows), missing: FieldSet::none(), are_noted: true };
        let columns = self.columns.get().and_then(|columns| columns.downcast_ref::<BucketColumns>());
        for name in wanted.names() {
            let kept = columns.map(|columns| columns.kept.borrow());
            let known = kept.as_ref().and_then(|kept| kept.iter().find(|kept| kept.is_named(name)));
            match known.zip(columns).and_then(|(known, columns)| known.used(&columns.room)) {
                Some(cells) if cells.rows.is_empty() => {}
                Some(cells) => found.rows.push_new_column(name, cells.column.clone()),
                None => {
                    found.are_noted &= known.is_some();
                    found.missing.add(name);
                }
            }
        }
        found
    }

    /// Notes that columns which are missing were asked for, and keeps those that were `made` for the second time. Those that it
    /// lacks have no cells.
    pub fn keep_named(&self, missing: &FieldSet, made: Option<&Block>) {
        let without_cells = Column::new(ColumnData::Bool(Vec::new()), None);
        for name in missing.names() {
            let column = made.map(|made| made.column(name).unwrap_or(&without_cells));
            self.keep_if_loaded(NAMED, name, column, true);
        }
    }

    /// True if columns of so many bytes need not replace others.
    pub fn fits(&self, size_bytes: usize) -> bool {
        self.room.get().and_then(|room| room.memory()).is_some_and(|room| room.fits(size_bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::room::ColumnRoom;
    use super::*;

    const ROWS: usize = 10;

    fn doubles(rows: usize) -> Column {
        Column::new(ColumnData::F64((0..rows).map(|row| row as f64).collect()), None)
    }

    fn block(names: &[&str], rows: usize) -> Block {
        let mut block = Block::new(rows);
        names.iter().for_each(|name| block.set_column(name, doubles(rows)));
        block
    }

    fn fields(names: &[&str]) -> FieldSet {
        let mut fields = FieldSet::none();
        names.iter().for_each(|name| fields.add(name));
        fields
    }

    fn found(rows: &[&str], missing: &[&str], are_noted: bool) -> RunColumns {
        RunColumns { rows: block(rows, ROWS), missing: fields(missing), are_noted }
    }

    fn run(room: &Rc<ColumnRoom>) -> KeptColumns {
        let kept = KeptColumns::default();
        kept.allow(room);
        kept
    }

    #[test]
    fn columns_are_kept_when_they_are_made_for_the_second_time_and_found_by_their_names() {
        let kept = run(&Rc::new(ColumnRoom::new(1 << 20)));
        let made = block(&["a", "b"], ROWS);
        let named = |names: &[&str]| kept.named(ROWS, &fields(names));
        assert_eq!(named(&["a", "x"]), found(&[], &["a", "x"], false));
        kept.keep_named(&fields(&["a", "x"]), Some(&made));
        assert_eq!(named(&["a", "x"]), found(&[], &["a", "x"], true));
        assert_eq!(named(&["a", "b", "x"]), found(&[], &["a", "b", "x"], false));
        // To ask is not to make.
        (0..3).for_each(|_| kept.keep_named(&fields(&["b"]), None));
        assert_eq!(named(&["b"]), found(&[], &["b"], true));
        kept.keep_named(&fields(&["a", "b", "x"]), Some(&made));
        // No bucket has the field `x`.
        assert_eq!(named(&["b", "x", "a"]), found(&["a", "b"], &[], true));
        assert_eq!(named(&[]), found(&[], &[], true));
        assert_eq!(named(&["c", "a"]), found(&["a"], &["c"], false));
    }

    #[test]
    fn columns_for_which_there_is_no_room_are_made_again() {
        let room = Rc::new(ColumnRoom::new(1 << 20));
        let kept = run(&room);
        let rows = (1 << 20) / 8;
        assert!(kept.fits(1 << 20) && !kept.fits((1 << 20) + 1) && !KeptColumns::default().fits(1));
        for _ in 0..3 {
            kept.keep_named(&fields(&["a"]), Some(&block(&["a"], rows)));
            assert_eq!(kept.named(rows, &fields(&["a"])).missing, fields(&["a"]));
        }
        drop(kept);
        assert_eq!(room.memory().unwrap().size_bytes(), 0);
    }

    #[test]
    fn a_run_that_gives_up_its_room_forgets_its_columns() {
        let room = Rc::new(ColumnRoom::new(1 << 20));
        let runs: Vec<KeptColumns> = (0..200).map(|_| run(&room)).collect();
        let lacks = |kept: &&KeptColumns| !kept.named(2000, &fields(&["a"])).missing.is_empty();
        for _ in 0..30 {
            for kept in runs.iter().filter(lacks) {
                kept.keep_named(&fields(&["a"]), Some(&block(&["a"], 2000)));
                assert!(room.memory().unwrap().size_bytes() <= 1 << 20);
            }
        }
        let left = runs.len() - runs.iter().filter(lacks).count();
        assert!((40..=65).contains(&left), "{left}");
    }
}
