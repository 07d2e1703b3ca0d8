//! `insert` and `require`: when they hold, and that a failed guard changes nothing.

use futures::future::{join, join_all};
use timepail::error::ErrorCode;
use timepail::storage::{Changeset, KeyRange, Storage};

use super::{assert_conflict, b, contents, get, listed, put_all};

pub async fn insert_sets_an_absent_key(storage: &dyn Storage, _: &dyn Storage) {
    let mut changes = Changeset::new();
    changes.insert(b("a"), b("1"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "1")]));
}

pub async fn insert_of_a_present_key_changes_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1")]).await;
    let mut changes = Changeset::new();
    changes.put(b("b"), b("2"));
    changes.put(b("c"), b("2"));
    changes.delete(b("a0"));
    changes.insert(b("a"), b("2"));
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "1")]));
}

pub async fn a_failed_insert_takes_the_writes_after_it_with_it(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1"), ("c1", "1")]).await;
    let mut changes = Changeset::new();
    changes.insert(b("a"), b("2"));
    changes.put(b("b"), b("2"));
    changes.delete_range(KeyRange::prefix(b"c"));
    changes.insert(b("d"), b("2"));
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "1"), ("c1", "1")]));
}

pub async fn require_lets_a_present_key_pass(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1")]).await;
    let mut changes = Changeset::new();
    changes.put(b("b"), b("2"));
    changes.require(b("a"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "2")]));
}

pub async fn require_of_an_absent_key_changes_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1"), ("d1", "1")]).await;
    let mut changes = Changeset::new();
    changes.put(b("b"), b("2"));
    changes.require(b("a"));
    changes.require(b("x"));
    changes.delete(b("a"));
    changes.delete_range(KeyRange::prefix(b"d"));
    changes.insert(b("c"), b("2"));
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "1"), ("d1", "1")]));
}

pub async fn what_is_expected_must_exist_and_one_put_need_not_wait_for_it(storage: &dyn Storage, _: &dyn Storage) {
    let commit = |puts: &[&str]| {
        let mut changes = Changeset::new();
        changes.expect(b("a"));
        puts.iter().for_each(|key| changes.put(b(key), b("1")));
        storage.commit(changes)
    };
    for puts in [&["b"][..], &["b", "c"], &[]] {
        assert_conflict(commit(puts).await);
    }
    put_all(storage, [("a", "1")]).await;
    for puts in [&["b"][..], &["b", "c"], &[]] {
        commit(puts).await.unwrap();
    }
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "1"), ("c", "1")]));
}

pub async fn require_alone_is_a_test(storage: &dyn Storage, _: &dyn Storage) {
    let mut changes = Changeset::new();
    changes.require(b("a"));
    assert_conflict(storage.commit(changes.clone()).await);
    put_all(storage, [("a", "1")]).await;
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "1")]));
}

pub async fn guards_see_the_state_before_the_changeset(storage: &dyn Storage, _: &dyn Storage) {
    let mut changes = Changeset::new();
    changes.put(b("a"), b("1"));
    changes.require(b("a"));
    assert_conflict(storage.commit(changes).await);
    let mut changes = Changeset::new();
    changes.put(b("a"), b("1"));
    changes.insert(b("a"), b("2"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "2")]));
}

pub async fn an_insert_behind_a_delete_of_its_key_is_refused(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1")]).await;
    let mut changes = Changeset::new();
    changes.delete(b("a"));
    changes.insert(b("a"), b("2"));
    changes.delete(b("b"));
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("b", "1")]));
}

pub async fn an_insert_behind_a_delete_range_over_its_key_is_refused(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a1", "1"), ("a2", "1")]).await;
    let mut changes = Changeset::new();
    changes.delete_range(KeyRange::prefix(b"a"));
    changes.insert(b("a2"), b("2"));
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a1", "1"), ("a2", "1")]));
}

pub async fn an_insert_of_the_same_key_twice_is_judged_once(storage: &dyn Storage, _: &dyn Storage) {
    let mut changes = Changeset::new();
    changes.insert(b("a"), b("1"));
    changes.insert(b("a"), b("2"));
    storage.commit(changes.clone()).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "2")]));
    assert_conflict(storage.commit(changes).await);
}

pub async fn a_require_behind_a_delete_of_its_key_passes(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1"), ("c", "1")]).await;
    let mut changes = Changeset::new();
    changes.delete(b("a"));
    changes.require(b("a"));
    changes.delete_range(KeyRange::prefix(b"b"));
    changes.require(b("b"));
    changes.require(b("b"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("c", "1")]));
}

pub async fn a_require_does_not_see_an_insert_of_the_same_changeset(storage: &dyn Storage, _: &dyn Storage) {
    let mut changes = Changeset::new();
    changes.insert(b("a"), b("1"));
    changes.require(b("a"));
    assert_conflict(storage.commit(changes.clone()).await);
    // Both cannot hold if the key exists either.
    put_all(storage, [("a", "0")]).await;
    assert_conflict(storage.commit(changes).await);
    assert_eq!(contents(storage).await, listed(&[("a", "0")]));
}

/// Merges two journal records into the next generation of a bucket.
fn fold(generation: u8) -> Changeset {
    let mut changes = Changeset::new();
    for record in ["journal/1", "journal/2"] {
        changes.require(b(record));
        changes.delete(b(record));
    }
    changes.require(b(&format!("bucket/{generation}")));
    changes.delete(b(&format!("bucket/{generation}")));
    changes.insert(b(&format!("bucket/{}", generation + 1)), b("folded"));
    changes
}

pub async fn a_fold_requires_deletes_and_inserts_in_one_changeset(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("bucket/1", "open"), ("journal/1", ""), ("journal/2", ""), ("journal/3", "")]).await;
    storage.commit(fold(1)).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("bucket/2", "folded"), ("journal/3", "")]));
}

pub async fn the_later_of_two_folds_fails_whole(first: &dyn Storage, second: &dyn Storage) {
    put_all(first, [("bucket/1", "open"), ("journal/1", ""), ("journal/2", "")]).await;
    let (one, other) = join(first.commit(fold(1)), second.commit(fold(1))).await;
    assert_eq!([&one, &other].iter().filter(|result| result.is_ok()).count(), 1);
    assert_conflict(if one.is_ok() { other } else { one });
    assert_eq!(contents(first).await, listed(&[("bucket/2", "folded")]));
}

pub async fn of_concurrent_inserts_exactly_one_wins(first: &dyn Storage, second: &dyn Storage) {
    let handles = [first, second];
    let commits = (0..20u8).map(|number| {
        let mut changes = Changeset::new();
        changes.put(vec![b't', number], vec![]);
        changes.insert(b("key"), vec![number]);
        handles[usize::from(number) % 2].commit(changes)
    });
    let results = join_all(commits).await;
    let winners: Vec<usize> = (0..results.len()).filter(|&number| results[number].is_ok()).collect();
    let [winner] = winners[..] else { panic!("{} commits won", winners.len()) };
    for result in results.into_iter().filter(|result| result.is_err()) {
        assert_eq!(result.unwrap_err().code, ErrorCode::WriteConflict);
    }
    assert_eq!(get(first, "key").await, Some(vec![winner as u8]));
    // The losers have left nothing.
    let traces = second.scan(&[KeyRange::prefix(b"t")], super::page(100)).await.unwrap();
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].key, [b't', winner as u8]);
}

pub async fn a_store_goes_on_after_a_conflict(first: &dyn Storage, second: &dyn Storage) {
    put_all(first, [("a", "1")]).await;
    for _ in 0..5 {
        let mut changes = Changeset::new();
        changes.insert(b("a"), b("2"));
        let mut other = Changeset::new();
        other.require(b("x"));
        let (one, two) = join(first.commit(changes), first.commit(other)).await;
        assert_conflict(one);
        assert_conflict(two);
    }
    put_all(first, [("b", "1")]).await;
    assert_eq!(contents(second).await, listed(&[("a", "1"), ("b", "1")]));
}
