//! Memory storage: the contract, a comparison with a plain map, and the fault storage.

use std::collections::BTreeMap;
use std::rc::Rc;

use futures::executor::block_on;
use futures::future::join;
use proptest::prelude::*;
use timepail::error::ErrorCode;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, Page, Storage};

use crate::contract::{Fault, FaultyStorage, Handles, b, contents, listed};

fn two_handles() -> Handles {
    let storage = MemoryStorage::new();
    [Rc::new(storage.clone()), Rc::new(storage)]
}

#[test]
fn keeps_the_contract() {
    block_on(crate::contract::run_all(async |_| two_handles()));
}

#[test]
fn the_counting_storage_keeps_the_contract() {
    block_on(crate::contract::run_all(async |_| {
        two_handles().map(|inner| FaultyStorage::new(inner) as Rc<dyn Storage>)
    }));
}

#[test]
fn a_memory_store_is_dropped_with_its_last_handle() {
    let first = MemoryStorage::new();
    let second = first.clone();
    block_on(crate::contract::put_all(&first, [("a", "1")]));
    drop(first);
    assert_eq!(block_on(contents(&second)), listed(&[("a", "1")]));
}

#[test]
fn two_new_memory_stores_share_nothing() {
    let (first, second) = (MemoryStorage::new(), MemoryStorage::new());
    block_on(crate::contract::put_all(&first, [("a", "1")]));
    assert!(block_on(contents(&second)).is_empty());
}

#[test]
fn counts_commits_requests_and_bytes() {
    let storage = FaultyStorage::new(Rc::new(MemoryStorage::new()));
    let mut changes = Changeset::new();
    changes.put(b("ab"), b("123"));
    changes.delete(b("x"));
    block_on(storage.commit(changes)).unwrap();
    block_on(storage.get_many(&[b("ab"), b("x")])).unwrap();
    block_on(storage.scan(&[KeyRange::prefix(b"a")], crate::contract::page(9))).unwrap();
    let counts = storage.counts();
    assert_eq!((counts.commits, counts.changes, counts.bytes_written), (1, 2, 5));
    assert_eq!((counts.reads, counts.requests, counts.bytes_read), (2, 3, 3 + 5));
}

#[test]
fn a_chosen_commit_fails_before_or_after_its_effect() {
    let storage = FaultyStorage::new(Rc::new(MemoryStorage::new()));
    storage.inject(1, Fault::Refuse(ErrorCode::OutOfDiskSpace));
    storage.inject(2, Fault::Lose(ErrorCode::OperationFailed));
    let put = |key| {
        let mut changes = Changeset::new();
        changes.put(b(key), b(""));
        block_on(storage.commit(changes)).map_err(|error| error.code)
    };
    let results = ["a", "b", "c", "d"].map(put);
    assert_eq!(results, [Ok(()), Err(ErrorCode::OutOfDiskSpace), Err(ErrorCode::OperationFailed), Ok(())]);
    assert_eq!(block_on(contents(&*storage)), listed(&[("a", ""), ("c", ""), ("d", "")]));
}

#[test]
fn a_delayed_commit_is_overtaken() {
    let storage = FaultyStorage::new(Rc::new(MemoryStorage::new()));
    storage.inject(0, Fault::Delay(3));
    let insert = |value| {
        let mut changes = Changeset::new();
        changes.insert(b("a"), b(value));
        storage.commit(changes)
    };
    let (delayed, other) = block_on(join(insert("delayed"), insert("other")));
    crate::contract::assert_conflict(delayed);
    other.unwrap();
    assert_eq!(block_on(contents(&*storage)), listed(&[("a", "other")]));
}

/// Keys of few letters, so that changes collide; also the empty key, prefixes, and the lowest and highest bytes.
fn any_key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0x00, 0x01, 0x61, 0xFF]), 0..3)
}

fn any_range() -> impl Strategy<Value = KeyRange> {
    (any_key(), any_key()).prop_map(|(start, end)| KeyRange { start, end })
}

fn any_change() -> impl Strategy<Value = Change> {
    let value = || prop::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        4 => (any_key(), value()).prop_map(|(key, value)| Change::Put(key, value)),
        2 => any_key().prop_map(Change::Delete),
        1 => any_range().prop_map(Change::DeleteRange),
        2 => (any_key(), value()).prop_map(|(key, value)| Change::Insert(key, value)),
        1 => any_key().prop_map(Change::Require),
        1 => any_key().prop_map(Change::Expect),
    ]
}

fn changeset(changes: &[Change]) -> Changeset {
    let mut changeset = Changeset::new();
    for change in changes.iter().cloned() {
        match change {
            Change::Put(key, value) => changeset.put(key, value),
            Change::Delete(key) => changeset.delete(key),
            Change::DeleteRange(range) => changeset.delete_range(range),
            Change::Insert(key, value) => changeset.insert(key, value),
            Change::Require(key) => changeset.require(key),
            Change::Expect(key) => changeset.expect(key),
        }
    }
    changeset
}

/// A model of the trait's rule: guards are checked against the old map, then each change applies to a copy.
fn model_commit(map: &mut BTreeMap<Bytes, Bytes>, changes: &[Change]) -> bool {
    let holds = |change: &Change| match change {
        Change::Insert(key, _) => map.get(key).is_none(),
        Change::Require(key) | Change::Expect(key) => map.get(key).is_some(),
        _ => true,
    };
    if !changes.iter().all(holds) {
        return false;
    }
    for change in changes {
        match change {
            Change::Put(key, value) | Change::Insert(key, value) => drop(map.insert(key.clone(), value.clone())),
            Change::Delete(key) => drop(map.remove(key)),
            Change::DeleteRange(range) => map.retain(|key, _| *key < range.start || *key >= range.end),
            Change::Require(_) | Change::Expect(_) => {}
        }
    }
    true
}

fn model_scan(map: &BTreeMap<Bytes, Bytes>, ranges: &[KeyRange], page: Page) -> Vec<Entry> {
    let mut entries = Vec::new();
    for range in ranges {
        for (key, value) in map.iter().filter(|(key, _)| **key >= range.start && **key < range.end) {
            let value = if page.keys_only { Bytes::new() } else { value.clone() };
            entries.push(Entry { key: key.clone(), value });
        }
    }
    entries.truncate(page.entries_max);
    entries
}

proptest! {
    #[test]
    fn behaves_like_a_plain_map(
        commits in prop::collection::vec(prop::collection::vec(any_change(), 0..8), 1..12),
        ranges in prop::collection::vec(any_range(), 0..5),
        asked in prop::collection::vec(any_key(), 0..6),
        entries_max in 1..12_usize,
        keys_only: bool,
    ) {
        let storage = MemoryStorage::new();
        let mut map = BTreeMap::new();
        for changes in &commits {
            let result = block_on(storage.commit(changeset(changes)));
            let expected = model_commit(&mut map, changes);
            prop_assert_eq!(result.map_err(|error| error.code), expected.then_some(()).ok_or(ErrorCode::WriteConflict));
        }
        let everything = KeyRange { start: vec![], end: vec![0xFF; 4] };
        let all = Page { entries_max: usize::MAX, keys_only: false };
        let stored = block_on(storage.scan(std::slice::from_ref(&everything), all)).unwrap();
        prop_assert_eq!(stored, model_scan(&map, &[everything], all));
        let page = Page { entries_max, keys_only };
        prop_assert_eq!(block_on(storage.scan(&ranges, page)).unwrap(), model_scan(&map, &ranges, page));
        let found = block_on(storage.get_many(&asked)).unwrap();
        prop_assert!(found.iter().eq(asked.iter().map(|key| map.get(key).cloned()).collect::<Vec<_>>().iter()));
    }
}
