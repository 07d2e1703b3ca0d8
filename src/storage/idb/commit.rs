//! Commits a changeset as one transaction: guards first, then the writes, all requested in one turn (I32).

use std::collections::BinaryHeap;

use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbDatabase, IdbObjectStore, IdbRequest};

use super::failure::IdbFailure;
use super::read::{js_bytes, js_range};
use super::transaction::{Running, WriteWay};
use crate::listed::IntoList;
use crate::storage::{Bytes, Change, Changeset, KeyRange, guard};

/// Commits all of `changes` or none of them.
pub(super) async fn commit(database: &IdbDatabase, changes: &Changeset, way: &WriteWay) -> Result<(), IdbFailure> {
    let plan = CommitPlan::new(changes.changes());
    let running = Running::write(database, way)?;
    let asked = plan.ask_guards(&running.store).map_err(|thrown| IdbFailure::thrown(&thrown))?;
    plan.ask_writes(&running.store).map_err(|thrown| IdbFailure::thrown(&thrown))?;
    if plan.may_be_sealed() {
        running.seal();
        running.committed().await?;
        // Judged now and not when each answer comes: it is too late to abort, and a callback costs time.
        let judged = plan.guards.iter().zip(&asked).find_map(|(guard, request)| guard.verdict(request));
        return judged.map_or(Ok(()), Err);
    }
    let judge = plan.judge(&running, &asked);
    let result = running.committed().await;
    // The callback of the guards must outlive their answers.
    drop(judge);
    result
}

/// The callback that receives the answers to guards.
type Judge = Closure<dyn FnMut(Event)>;

/// A guard that must be looked up, because no write judges it.
#[derive(Clone)]
enum Guard {
    Present(Bytes),
    Absent(Bytes),
}

impl Guard {
    fn ask(&self, store: &IdbObjectStore) -> Result<IdbRequest, JsValue> {
        match self {
            Guard::Present(key) | Guard::Absent(key) => store.get_key(&js_bytes(key)),
        }
    }

    /// Why the changeset fails, if it does. An unreadable answer is an error and not an absent key: a caller who
    /// believes the key absent may delete what belongs to it.
    fn verdict(&self, request: &IdbRequest) -> Option<IdbFailure> {
        let answer = match request.result() {
            Ok(answer) => answer,
            Err(thrown) => return Some(IdbFailure::unread(&thrown)),
        };
        let error = match self {
            Guard::Present(key) => answer.is_undefined().then(|| guard::is_gone(key)),
            Guard::Absent(key) => (!answer.is_undefined()).then(|| guard::exists_already(key)),
        };
        error.map(IdbFailure::Refused)
    }
}

/// A changeset with its guards separated.
///
/// Guards refer to the state before the changeset, while each request sees the effects of earlier requests. So lookups
/// come first. `add` judges an insert at no cost, unless the same changeset also writes or deletes its key; then the
/// key is looked up, and written with `put`.
struct CommitPlan<'a> {
    changes: &'a [Change],
    guards: Vec<Guard>,
    /// Keys of inserts that are looked up, ascending.
    put_keys: Vec<&'a [u8]>,
}

impl<'a> CommitPlan<'a> {
    fn new(changes: &'a [Change]) -> CommitPlan<'a> {
        let put_keys = inserts_touched_elsewhere(changes);
        let required = changes.iter().filter_map(|change| match change {
            Change::Require(key) | Change::Expect(key) => Some(Guard::Present(key.clone())),
            _ => None,
        });
        let absent = put_keys.iter().map(|key| Guard::Absent(key.to_vec()));
        let guards = required.chain(absent).collect();
        CommitPlan { changes, guards, put_keys }
    }

    /// True for a single write with no guards but expectations. Its request is the last one, so if it fails, nothing is
    /// written.
    fn may_be_sealed(&self) -> bool {
        let mut writes = self.changes.iter().filter(|change| !matches!(change, Change::Expect(_)));
        let first = writes.next();
        self.put_keys.is_empty() && !matches!(first, Some(Change::Require(_))) && writes.next().is_none()
    }

    /// Requests the key of every guard.
    fn ask_guards(&self, store: &IdbObjectStore) -> Result<Vec<IdbRequest>, JsValue> {
        self.guards.iter().map(|guard| guard.ask(store)).try_listed()
    }

    /// Aborts the transaction at the first failed guard. Must live until the transaction has settled.
    fn judge(&self, running: &Running, asked: &[IdbRequest]) -> Option<Judge> {
        if asked.is_empty() {
            return None;
        }
        let veto = running.veto();
        // Answers come in the order of the requests.
        let mut awaited = self.guards.clone().into_iter().zip(asked.to_vec());
        let judge = Closure::new(move |_: Event| {
            if let Some(failure) = awaited.next().and_then(|(guard, request)| guard.verdict(&request)) {
                veto.abort(failure);
            }
        });
        asked.iter().for_each(|request| request.set_onsuccess(Some(judge.as_ref().unchecked_ref())));
        Some(judge)
    }

    fn ask_writes(&self, store: &IdbObjectStore) -> Result<(), JsValue> {
        for change in self.changes {
            match change {
                Change::Insert(key, value) if self.put_keys.binary_search(&key.as_slice()).is_err() => {
                    store.add_with_key(&js_bytes(value), &js_bytes(key))?;
                }
                Change::Put(key, value) | Change::Insert(key, value) => {
                    store.put_with_key(&js_bytes(value), &js_bytes(key))?;
                }
                Change::Delete(key) => {
                    store.delete(&js_bytes(key))?;
                }
                Change::DeleteRange(range) if !range.is_empty() => {
                    store.delete(&js_range(&range.start, &range.end)?.into())?;
                }
                Change::DeleteRange(_) | Change::Require(_) | Change::Expect(_) => {}
            }
        }
        Ok(())
    }
}

/// Keys that are inserted and also written or deleted by another change. Ascending, each once.
fn inserts_touched_elsewhere(changes: &[Change]) -> Vec<&[u8]> {
    let mut written: BinaryHeap<&[u8]> = BinaryHeap::new();
    let mut deleted: Vec<&KeyRange> = Vec::new();
    for change in changes {
        match change {
            Change::Put(key, _) | Change::Insert(key, _) | Change::Delete(key) => written.push(key),
            Change::DeleteRange(range) => deleted.push(range),
            Change::Require(_) | Change::Expect(_) => {}
        }
    }
    let written = written.into_sorted_vec();
    let is_touched = |key: &&[u8]| {
        let first = written.partition_point(|known| known < key);
        written.get(first + 1) == Some(key) || deleted.iter().any(|range| contains(range, key))
    };
    let touched: BinaryHeap<&[u8]> = changes.iter().filter_map(Change::inserted_key).filter(is_touched).collect();
    let mut touched = touched.into_sorted_vec();
    touched.dedup();
    touched
}

fn contains(range: &KeyRange, key: &[u8]) -> bool {
    range.start.as_slice() <= key && key < range.end.as_slice()
}
