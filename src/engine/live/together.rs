//! Brings many live queries up to date at once, as far as that takes nothing but new rows: those of one collection share
//! one look at storage, and the new rows are made into columns once.
//!
//! What has to run again, or fails, is left to `refresh_live`, so that no query waits for another one that takes long.

use std::rc::Rc;

use super::new_rows::Additions;
use super::query::{LiveQuery, LiveState};
use super::refresh::{Seen, additions};
use crate::engine::Engine;
use crate::engine::find::queries::{CursorBatch, ns_of};
use crate::engine::journal::JournalMark;
use crate::limits::{BATCH_SIZE_BYTES_MAX, LIVE_QUERY_WORK};
use crate::listed::IntoList;

/// What there is to say of a live query among others. Of one that is not named, the last result still holds.
pub struct LiveNews {
    /// Its number.
    pub id: i64,
    /// The first batch of a result that new rows were added to, and what the query reads. `None`: it has to be brought
    /// up to date by itself.
    pub batch: Option<(CursorBatch, String)>,
}

impl Engine {
    /// Brings live queries up to date from new rows, and says of which there is news.
    ///
    /// Once it has begun, it is not ended: the news of a query that was brought up to date are told once.
    pub async fn refresh_live_together(&self, ids: &[i64]) -> Vec<LiveNews> {
        let mut news = Vec::new();
        let mut left: Vec<Rc<LiveQuery>> = Vec::new();
        for id in ids {
            match self.live_query(*id) {
                // Of one that is named twice, the second would meet the first.
                Ok(query) if !query.is_volatile && !left.iter().any(|other| Rc::ptr_eq(other, &query)) => {
                    left.push(query);
                }
                _ => news.push(LiveNews { id: *id, batch: None }),
            }
        }
        let mut size_bytes = 0;
        while let Some(first) = left.first() {
            let name = first.spec.name.clone();
            let (queries, others): (Vec<_>, _) = left.into_iter().partition(|query| query.spec.name == name);
            left = others;
            // Whoever is being refreshed comes by itself.
            let begun: Vec<_> = queries.iter().map(|query| query.running().is_none().then(|| query.turn())).listed();
            let seen = self.live_seen(&name, true).await;
            // Nothing is awaited between the snapshot and this. Whatever happens later, it is known what there was to add.
            let mut last = None;
            let part = |(query, turn): (&Rc<LiveQuery>, &Option<_>)| match (&seen, turn) {
                (Ok(seen), Some(_)) => part_of(query, seen, &mut last),
                _ => None,
            };
            let parts: Vec<_> = queries.iter().zip(&begun).map(part).listed();
            for ((query, turn), part) in queries.iter().zip(begun).zip(parts) {
                let mut work = LIVE_QUERY_WORK;
                let mut told = Some(None);
                if let (Ok(seen), Some((state, added))) = (&seen, part) {
                    // What does not fit into one reply runs again.
                    let fits = size_bytes < BATCH_SIZE_BYTES_MAX;
                    if let Some((batch, state)) = fits.then(|| self.follow(query, state, seen, &added)).flatten() {
                        told = batch.map(|batch| {
                            work += batch.rows.rows();
                            size_bytes += batch.rows.size_bytes();
                            Some((batch, ns_of(&name, query.spec.raw)))
                        });
                        *query.wants.borrow_mut() = state.seen.as_ref().map(|(of, mark)| (Rc::clone(of), mark.added));
                        *query.state.borrow_mut() = Some(state);
                    }
                }
                drop(turn);
                news.extend(told.map(|batch| LiveNews { id: query.id.into(), batch }));
                if let Some(turn) = self.pause(work) {
                    let _ = turn.await;
                }
            }
            if let Ok(Some((collection, _))) = &seen {
                self.forget_unwanted(collection);
            }
        }
        news
    }
}

/// What was added since a moment; `None` if that is not all that has happened.
type AddedSince = (JournalMark, Option<Rc<Additions>>);

/// The last result of a query and what to add to it; `None` if it must run again. Most queries have seen the same moment
/// last, of which it is asked once what was added since.
fn part_of(query: &LiveQuery, seen: &Seen, last: &mut Option<AddedSince>) -> Option<(LiveState, Rc<Additions>)> {
    let state = query.state.borrow_mut().take()?;
    let moment = match (seen, &state.seen) {
        (Some((there, _)), Some((before, mark))) if Rc::ptr_eq(there, before) => Some(*mark),
        _ => None,
    };
    let added = match &last {
        Some((mark, added)) if Some(*mark) == moment => added.clone(),
        _ => additions(&state, seen).map(Rc::new),
    };
    *last = moment.map(|mark| (mark, added.clone()));
    Some((state, added?))
}
