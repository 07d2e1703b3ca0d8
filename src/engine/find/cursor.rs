//! Open cursors between commands.

use super::find_cursor::FindCursor;
use super::queries::CursorBatch;
use crate::block::Block;
use crate::engine::Engine;
use crate::engine::store::sorted_map::SortedMap;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CURSOR_AGE_MS_MAX, CURSOR_IDLE_MS_MAX};

/// The open cursors of a database, by id.
#[derive(Default)]
pub struct Cursors {
    open: SortedMap<i64, Slot>,
}

struct Slot {
    /// The namespace that `getMore` must name.
    collection: String,
    opened_ms: i64,
    last_used_ms: i64,
    /// What is left of the time limit of the command that opened it.
    left_ms: f64,
    /// `None` while a `getMore` runs.
    cursor: Option<OpenCursor>,
}

/// What is left to return.
pub(super) enum OpenCursor {
    /// A query.
    Query(Box<FindCursor>),
    /// The rest of a list.
    Rows(Block),
}

impl Slot {
    /// True if it has been idle or open for too long.
    fn is_stale(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.last_used_ms) > CURSOR_IDLE_MS_MAX
            || now_ms.saturating_sub(self.opened_ms) > CURSOR_AGE_MS_MAX
    }
}

/// The outcome of `killCursors`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// Ids of cursors that were killed.
    pub killed: Vec<i64>,
    /// Ids without a cursor.
    pub not_found: Vec<i64>,
}

impl Engine {
    /// Keeps a cursor for `getMore`. Its id is never 0.
    pub(in crate::engine) fn keep_cursor(&self, collection: &str, cursor: FindCursor) -> i64 {
        self.keep_open(collection, OpenCursor::Query(Box::new(cursor)))
    }

    /// The first batch of rows that are all there; keeps a cursor for the others.
    pub fn list(&self, ns: &str, mut rows: Block, batch_size: usize) -> CursorBatch {
        let batch = take_rows(&mut rows, batch_size);
        let cursor_id = if rows.rows() == 0 { 0 } else { self.keep_open(ns, OpenCursor::Rows(rows)) };
        CursorBatch { rows: batch, cursor_id }
    }

    fn keep_open(&self, collection: &str, cursor: OpenCursor) -> i64 {
        let now_ms = self.now_ms();
        let mut cursors = self.cursors.borrow_mut();
        cursors.open.retain(|_, slot| slot.cursor.is_none() || !slot.is_stale(now_ms));
        loop {
            // Exactly representable as a double, so no client can change it by accident.
            let id = i64::try_from(self.env.random_u64() >> 11).unwrap_or_default();
            if id == 0 || cursors.open.contains_key(&id) {
                continue;
            }
            let collection = collection.to_owned();
            let left_ms = self.left_ms();
            let slot = Slot { collection, opened_ms: now_ms, last_used_ms: now_ms, left_ms, cursor: Some(cursor) };
            cursors.open.insert(id, slot);
            return id;
        }
    }

    /// Takes a cursor out for one `getMore`, which has as much time as the cursor has left; call `put_cursor_back` or `drop_cursor` afterwards.
    ///
    /// Errors: `CursorNotFound`; `CursorInUse` while another `getMore` has it.
    pub(super) fn take_cursor(&self, id: i64, collection: &str) -> Result<OpenCursor> {
        let now_ms = self.now_ms();
        let mut cursors = self.cursors.borrow_mut();
        let not_found = || Error::new(ErrorCode::CursorNotFound, format!("Cursor id {id} not found"));
        let slot = cursors.open.get_mut(&id).ok_or_else(not_found)?;
        if slot.collection != collection {
            return Err(Error::new(
                ErrorCode::Unauthorized,
                format!("Cursor id {id} belongs to collection '{}', not '{collection}'", slot.collection),
            ));
        }
        let in_use = || Error::new(ErrorCode::CursorInUse, format!("Cursor id {id} is used by another getMore"));
        let cursor = slot.cursor.take().ok_or_else(in_use)?;
        if slot.is_stale(now_ms) {
            cursors.open.remove(&id);
            return Err(not_found());
        }
        self.limit(slot.left_ms);
        Ok(cursor)
    }

    /// Ends a `getMore` whose cursor has more rows. A cursor killed meanwhile stays dead.
    pub(super) fn put_cursor_back(&self, id: i64, cursor: OpenCursor) {
        let now_ms = self.now_ms();
        if let Some(slot) = self.cursors.borrow_mut().open.get_mut(&id) {
            slot.last_used_ms = now_ms;
            slot.left_ms = self.left_ms();
            slot.cursor = Some(cursor);
        }
    }

    /// Ends a cursor.
    pub(super) fn drop_cursor(&self, id: i64) {
        self.cursors.borrow_mut().open.remove(&id);
    }

    /// Ends cursors by id.
    pub fn kill_cursors(&self, collection: &str, ids: &[i64]) -> Killed {
        let mut cursors = self.cursors.borrow_mut();
        let mut report = Killed::default();
        for id in ids {
            match cursors.open.get(id) {
                Some(slot) if slot.collection == collection => {
                    cursors.open.remove(id);
                    report.killed.push(*id);
                }
                _ => report.not_found.push(*id),
            }
        }
        report
    }
}

/// Takes so many rows from the front.
pub(super) fn take_rows(rows: &mut Block, wanted: usize) -> Block {
    let (taken, all) = (wanted.min(rows.rows()), rows.rows());
    let rest = rows.slice(taken..all);
    std::mem::replace(rows, rest).slice(0..taken)
}
