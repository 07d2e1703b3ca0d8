//! Writes, their order inside a changeset, and what others see of them.

use futures::future::{join, join_all};
use timepail::storage::{Changeset, KeyRange, Storage};

use super::{b, contents, get, keys, listed, page, put_all, range};

pub async fn put_replaces_a_value(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1")]).await;
    put_all(storage, [("a", "2")]).await;
    assert_eq!(contents(storage).await, listed(&[("a", "2"), ("b", "1")]));
}

pub async fn delete_removes_a_key_and_forgives_an_absent_one(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("aa", "2")]).await;
    let mut changes = Changeset::new();
    changes.delete(b("a"));
    changes.delete(b("x"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("aa", "2")]));
}

pub async fn delete_range_removes_exactly_its_keys(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, ["a", "b", "b1", "b2", "c", "d"].map(|key| (key, ""))).await;
    let mut changes = Changeset::new();
    changes.delete_range(range("b", "c"));
    changes.delete_range(range("x", "z"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", ""), ("c", ""), ("d", "")]));
}

pub async fn the_last_write_on_a_key_wins(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("old", "1")]).await;
    let mut changes = Changeset::new();
    changes.put(b("put-put"), b("1"));
    changes.put(b("put-put"), b("2"));
    changes.put(b("put-delete"), b("1"));
    changes.delete(b("put-delete"));
    changes.delete(b("old"));
    changes.put(b("old"), b("2"));
    changes.insert(b("insert-put"), b("1"));
    changes.put(b("insert-put"), b("2"));
    changes.put(b("put-insert"), b("1"));
    changes.insert(b("put-insert"), b("2"));
    changes.insert(b("insert-delete"), b("1"));
    changes.delete(b("insert-delete"));
    storage.commit(changes).await.unwrap();
    let expected = listed(&[("insert-put", "2"), ("old", "2"), ("put-insert", "2"), ("put-put", "2")]);
    assert_eq!(contents(storage).await, expected);
}

pub async fn a_put_behind_a_delete_range_stays(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a1", "1"), ("a2", "1")]).await;
    let mut changes = Changeset::new();
    changes.put(b("a3"), b("2"));
    changes.insert(b("a4"), b("2"));
    changes.delete_range(KeyRange::prefix(b"a"));
    changes.put(b("a2"), b("3"));
    changes.insert(b("a5"), b("3"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a2", "3"), ("a5", "3")]));
}

pub async fn an_empty_changeset_changes_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1")]).await;
    storage.commit(Changeset::new()).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "1")]));
}

pub async fn an_empty_delete_range_removes_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "1")]).await;
    let mut changes = Changeset::new();
    changes.delete_range(range("a", "a"));
    changes.delete_range(range("b", "a"));
    changes.insert(b("aa"), b("1"));
    storage.commit(changes).await.unwrap();
    assert_eq!(contents(storage).await, listed(&[("a", "1"), ("aa", "1"), ("b", "1")]));
}

pub async fn an_empty_value_is_not_absence(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "")]).await;
    assert_eq!(get(storage, "a").await, Some(b("")));
    let mut changes = Changeset::new();
    changes.require(b("a"));
    storage.commit(changes).await.unwrap();
}

pub async fn one_handle_sees_what_the_other_has_committed(first: &dyn Storage, second: &dyn Storage) {
    put_all(first, [("a", "1")]).await;
    assert_eq!(get(second, "a").await, Some(b("1")));
    put_all(second, [("a", "2"), ("b", "2")]).await;
    assert_eq!(contents(first).await, listed(&[("a", "2"), ("b", "2")]));
}

pub async fn concurrent_commits_all_take_place(first: &dyn Storage, second: &dyn Storage) {
    let handles = [first, second];
    let commits = (0..40u8).map(|number| {
        let mut changes = Changeset::new();
        changes.insert(vec![b'k', number], vec![number]);
        changes.put(b("last"), vec![number]);
        handles[usize::from(number) % 2].commit(changes)
    });
    for result in join_all(commits).await {
        result.unwrap();
    }
    let entries = first.scan(&[KeyRange::prefix(b"k")], page(100)).await.unwrap();
    assert!(entries.iter().map(|entry| entry.value[0]).eq(0..40));
    assert!(get(second, "last").await.unwrap()[0] < 40);
}

pub async fn a_scan_sees_all_of_a_commit_or_nothing_of_it(first: &dyn Storage, second: &dyn Storage) {
    put_all(first, [("a", "0"), ("z", "0")]).await;
    for number in 1..=10 {
        let value = number.to_string();
        let mut changes = Changeset::new();
        changes.put(b("a"), b(&value));
        changes.put(b(&format!("m{number:02}")), b(&value));
        changes.put(b("z"), b(&value));
        let ranges = [range("", "zz")];
        let (before, during, done) =
            futures::future::join3(first.scan(&ranges, page(100)), second.scan(&ranges, page(100)), async {
                // Polled last: the scans have begun.
                first.commit(changes).await
            })
            .await;
        done.unwrap();
        for entries in [before.unwrap(), during.unwrap()] {
            let (low, high) = (&entries.first().unwrap().value, &entries.last().unwrap().value);
            assert_eq!(low, high);
            assert_eq!(entries.len(), 2 + super::text(low).parse::<usize>().unwrap());
        }
    }
}

pub async fn get_many_sees_all_of_a_commit_or_nothing_of_it(first: &dyn Storage, second: &dyn Storage) {
    put_all(first, [("a", "0"), ("b", "0")]).await;
    let asked = [b("a"), b("b")];
    for number in 1..=10 {
        let mut changes = Changeset::new();
        changes.put(b("b"), vec![number]);
        changes.put(b("a"), vec![number]);
        let (done, found) = join(first.commit(changes), second.get_many(&asked)).await;
        done.unwrap();
        let found = found.unwrap();
        assert_eq!(found[0], found[1]);
    }
}

pub async fn several_ranges_are_one_snapshot(first: &dyn Storage, second: &dyn Storage) {
    // A token moves between two ranges; no scan may see it twice or miss it.
    put_all(first, [("a/token", ""), ("b/other", "")]).await;
    let ranges = [KeyRange::prefix(b"a/"), KeyRange::prefix(b"b/")];
    for round in 0..10 {
        let (from, to) = if round % 2 == 0 { ("a/token", "b/token") } else { ("b/token", "a/token") };
        let mut changes = Changeset::new();
        changes.delete(b(from));
        changes.put(b(to), b(""));
        let (seen, done) = join(keys(second, &ranges, 100), first.commit(changes)).await;
        done.unwrap();
        assert_eq!(seen.iter().filter(|key| key.ends_with("token")).count(), 1);
    }
}
