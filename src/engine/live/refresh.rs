//! Brings the result of a live query up to date.
//!
//! **Invariant I40**: new rows are added to a result only if the collection has all measurements that the result was
//! made of, the new ones, and no others (`Journal::additions_since`). Otherwise the query runs again.

use std::cell::RefCell;
use std::rc::Rc;

use super::new_rows::Additions;
use super::query::{LiveKept, LiveQuery, LiveState};
use crate::block::Block;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::find::planned::Defaults;
use crate::engine::find::queries::{CursorBatch, ns_of};
use crate::engine::journal::JournalMark;
use crate::error::Result;
use crate::limits::{LIVE_QUERY_SIZE_BYTES_MAX, LIVE_SIZE_BYTES_MAX};
use crate::query::{Query, Standing};

/// The first batch of a result, and how it came to be.
pub struct LiveBatch {
    /// The batch; empty if the last result still holds.
    pub batch: CursorBatch,
    /// `nothing`, `newRows` or `fresh`.
    pub how: &'static str,
    /// What the query reads.
    pub ns: String,
}

/// The collection as it is now.
pub(super) type Seen = Option<(Rc<Collection>, JournalMark)>;

/// A batch, and what the next one may be made of.
type LiveAnswer = (CursorBatch, Option<LiveState>);

impl Engine {
    /// Brings a live query up to date.
    ///
    /// Errors: `CursorNotFound`, and those of the query. It then runs again next time.
    pub async fn refresh_live(&self, id: i64) -> Result<LiveBatch> {
        let query = self.live_query(id)?;
        while let Some(running) = query.running() {
            // However it ends, it is this one's turn.
            let _ = running.wait().await;
        }
        let _turn = query.turn();
        let seen = self.live_seen(&query.spec.name, !query.is_volatile).await?;
        // Nothing is awaited between the snapshot and this.
        let known = query.state.borrow_mut().take().filter(|_| !query.is_volatile);
        let added = known.as_ref().and_then(|known| additions(known, &seen));
        let followed = known.zip(added).and_then(|(known, added)| self.follow(&query, known, &seen, &added));
        let (how, (batch, state)) = match followed {
            Some((None, state)) => ("nothing", (CursorBatch { rows: Block::new(0), cursor_id: 0 }, Some(state))),
            Some((Some(batch), state)) => ("newRows", (batch, Some(state))),
            None => {
                self.want(&query, seen.as_ref());
                ("fresh", self.run_again(&query, seen).await?)
            }
        };
        self.want(&query, state.as_ref().and_then(|state| state.seen.as_ref()));
        *query.state.borrow_mut() = state;
        Ok(LiveBatch { batch, how, ns: ns_of(&query.spec.name, query.spec.raw) })
    }

    /// Looks at a collection; `is_logged`: what is added to it from now on is kept for live queries.
    ///
    /// Errors: those of storage; `NamespaceNotFound` if it was dropped meanwhile.
    pub(super) async fn live_seen(&self, name: &str, is_logged: bool) -> Result<Seen> {
        let Some(collection) = self.collection(name).await? else { return Ok(None) };
        if is_logged {
            collection.journal.keep_log(true);
        }
        let mark = self.journal_snapshot(&collection, &[]).await?.mark;
        Ok(Some((collection, mark)))
    }

    /// Goes on from an earlier result, since which these records were added. Without a batch, that result still holds;
    /// `None` if the query must run again.
    pub(super) fn follow(
        &self,
        query: &LiveQuery,
        mut state: LiveState,
        seen: &Seen,
        added: &Additions,
    ) -> Option<(Option<CursorBatch>, LiveState)> {
        let Some((collection, now)) = seen else { return Some((None, state)) };
        let is_moved = state.seen.as_ref().is_none_or(|(_, before)| now.epoch != before.epoch);
        // A bucket that was read late may hold rows that were added since.
        if is_moved && (query.spec.raw || state.is_read && !added.is_empty()) {
            return None;
        }
        (state.seen, state.is_read) = (seen.clone(), false);
        if added.is_empty() {
            return Some((None, state));
        }
        let rows = added.rows(collection);
        // Whatever fails here fails again when the query runs.
        match &mut state.kept {
            LiveKept::Filter(filter) => {
                let filter = filter.as_ref()?;
                let changes_nothing = rows.iter().all(|rows| filter.select(rows).is_ok_and(|found| found.none()));
                changes_nothing.then_some((None, state))
            }
            LiveKept::Standing(standing) => {
                let batch = match standing.add(rows).ok()? {
                    true if !self.may_keep(query, standing) => return None,
                    true => Some(self.first_batch(query, standing.result().ok()?)),
                    false => None,
                };
                Some((batch, state))
            }
        }
    }

    /// True if a query may keep that much. If not, it runs again from now on.
    fn may_keep(&self, query: &LiveQuery, standing: &Standing) -> bool {
        query.size_bytes.set(standing.size_bytes());
        let fits = query.size_bytes.get() <= LIVE_QUERY_SIZE_BYTES_MAX && self.live_size_bytes() <= LIVE_SIZE_BYTES_MAX;
        query.is_too_large.set(!fits);
        fits
    }

    fn first_batch(&self, query: &LiveQuery, rows: Block) -> CursorBatch {
        self.list(&ns_of(&query.spec.name, query.spec.raw), rows, query.batch_size)
    }

    /// Runs a query; `seen` is what it reads.
    async fn run_again(&self, query: &LiveQuery, seen: Seen) -> Result<LiveAnswer> {
        let spec = &query.spec;
        let mut kept = LiveKept::Filter(None);
        if let Some((collection, _)) = &seen {
            let parsed = (spec.parse)(collection.defaults(spec.raw))?;
            if !spec.raw && !collection.dedupes() {
                kept = LiveKept::Filter(Some(parsed.find.filter.clone()));
            }
            if let Ok((read, standing)) = query.standing(parsed, collection)
                && let Some(made) = self.run_standing(query, collection, read, standing).await?
            {
                return Ok(made);
            }
        }
        query.size_bytes.set(0);
        // What comes between the moment that was seen and the scan is looked at once more.
        let batch = self.aggregate(&spec.name, spec.raw, &*spec.parse).await?;
        Ok((batch, Some(LiveState { is_read: false, seen, kept }).filter(|_| !query.is_volatile)))
    }

    /// Runs a query that takes new rows later; `None` if it would keep too much, or if the collection was replaced.
    async fn run_standing(
        &self,
        query: &LiveQuery,
        collection: &Rc<Collection>,
        read: Query,
        mut standing: Standing,
    ) -> Result<Option<LiveAnswer>> {
        let read = RefCell::new(Some(read));
        // It is asked again if the collection was dropped. The command then begins again as well.
        let options = |_: Defaults<'_>| read.take().ok_or_else(|| self.namespace_not_found(&collection.name));
        let opened = self.open_cursor(&query.spec.name, false, &options, Some(usize::MAX)).await?;
        let Some((mut cursor, _)) = opened.filter(|(cursor, _)| Rc::ptr_eq(cursor.scan().collection(), collection))
        else {
            return Ok(None);
        };
        let seen = Some((Rc::clone(collection), cursor.scan().mark()));
        while standing.size_bytes() <= LIVE_QUERY_SIZE_BYTES_MAX {
            let rows = self.next_rows(&mut cursor).await?;
            if rows.rows() == 0 {
                let rows = standing.result()?;
                if !self.may_keep(query, &standing) {
                    break;
                }
                let kept = LiveKept::Standing(Box::new(standing));
                return Ok(Some((self.first_batch(query, rows), Some(LiveState { is_read: true, seen, kept }))));
            }
            standing.take(rows)?;
        }
        query.is_too_large.set(true);
        Ok(None)
    }
}

/// What was added to the collection since a result, as long as nothing else has happened; otherwise `None`. To be asked
/// right after the snapshot, before anything is awaited.
pub(super) fn additions(state: &LiveState, seen: &Seen) -> Option<Additions> {
    match (seen, &state.seen) {
        (None, None) => Some(Additions::new(Vec::new())),
        (Some((there, _)), Some((known, before))) if Rc::ptr_eq(there, known) => {
            there.journal.additions_since(before).map(Additions::new)
        }
        _ => None,
    }
}
