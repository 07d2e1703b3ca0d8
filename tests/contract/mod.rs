//! What every storage backend must do. A new rule of the trait begins here.
//!
//! Adding a backend is one line: `contract::run_all(async |name| handles_on_a_new_store(name)).await`.

// Each test binary uses a part of this module; helpers outside `#[test]` functions may panic, for they are tests.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod commits;
mod faults;
mod guards;
mod reads;

use std::rc::Rc;

use timepail::error::{Error, ErrorCode};
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, Page, Storage};

pub use faults::{Fault, FaultyStorage};

/// Two handles on one store, as two tabs have. A backend with a single handle gives it twice.
pub type Handles = [Rc<dyn Storage>; 2];

macro_rules! cases {
    ($($module:ident: $($case:ident)*;)*) => {
        /// Names of all cases, in the order they run.
        pub const CASES: &[&str] = &[$($(stringify!($case),)*)*];

        /// Runs every case on a store of its own: `make` gets a name that no other case has, and answers two handles on a
        /// new, empty store.
        pub async fn run_all(make: impl AsyncFn(&'static str) -> Handles) {
            $($(
                let [first, second] = make(stringify!($case)).await;
                $module::$case(&*first, &*second).await;
            )*)*
        }
    };
}

cases! {
    reads:
        an_absent_key_has_no_value
        a_value_comes_back_as_it_was_put
        get_many_answers_in_the_order_asked_with_duplicates
        get_many_of_no_keys_answers_nothing
        get_many_of_neighbours_answers_in_the_order_asked
        keys_are_ordered_by_their_bytes
        a_range_holds_its_start_and_not_its_end
        an_empty_range_holds_nothing
        a_prefix_range_holds_exactly_the_keys_with_that_prefix
        a_scan_of_no_ranges_answers_nothing
        ranges_are_answered_in_the_order_given
        a_page_ends_at_its_count_wherever_ranges_meet
        paging_visits_every_entry_once
        ranges_of_very_different_size_fill_one_page
        values_of_any_size_fill_a_page
        keys_only_answers_keys_with_empty_values
        a_scan_ahead_answers_keys_and_brings_values_of_one_range_only
        large_values_come_back_whole
        five_thousand_entries_come_back;
    commits:
        put_replaces_a_value
        delete_removes_a_key_and_forgives_an_absent_one
        delete_range_removes_exactly_its_keys
        the_last_write_on_a_key_wins
        a_put_behind_a_delete_range_stays
        an_empty_changeset_changes_nothing
        an_empty_delete_range_removes_nothing
        an_empty_value_is_not_absence
        one_handle_sees_what_the_other_has_committed
        concurrent_commits_all_take_place
        a_scan_sees_all_of_a_commit_or_nothing_of_it
        get_many_sees_all_of_a_commit_or_nothing_of_it
        several_ranges_are_one_snapshot;
    guards:
        insert_sets_an_absent_key
        insert_of_a_present_key_changes_nothing
        a_failed_insert_takes_the_writes_after_it_with_it
        require_lets_a_present_key_pass
        require_of_an_absent_key_changes_nothing
        what_is_expected_must_exist_and_one_put_need_not_wait_for_it
        require_alone_is_a_test
        guards_see_the_state_before_the_changeset
        an_insert_behind_a_delete_of_its_key_is_refused
        an_insert_behind_a_delete_range_over_its_key_is_refused
        an_insert_of_the_same_key_twice_is_judged_once
        a_require_behind_a_delete_of_its_key_passes
        a_require_does_not_see_an_insert_of_the_same_changeset
        a_fold_requires_deletes_and_inserts_in_one_changeset
        the_later_of_two_folds_fails_whole
        of_concurrent_inserts_exactly_one_wins
        a_store_goes_on_after_a_conflict;
}

/// A key or value from text.
pub fn b(text: &str) -> Bytes {
    text.as_bytes().to_vec()
}

/// The half-open range between two keys.
pub fn range(start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> KeyRange {
    KeyRange { start: start.as_ref().to_vec(), end: end.as_ref().to_vec() }
}

/// A range over every key of these tests.
pub fn everything() -> KeyRange {
    range([], [0xFF; 40])
}

/// Entries and their values, at most `entries_max`.
pub fn page(entries_max: usize) -> Page {
    Page { entries_max, keys_only: false }
}

/// Puts all `pairs` in one commit.
pub async fn put_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(storage: &dyn Storage, pairs: impl IntoIterator<Item = (K, V)>) {
    let mut changes = Changeset::new();
    for (key, value) in pairs {
        changes.put(key.as_ref().to_vec(), value.as_ref().to_vec());
    }
    storage.commit(changes).await.unwrap();
}

/// The value of one key.
pub async fn get(storage: &dyn Storage, key: impl AsRef<[u8]>) -> Option<Bytes> {
    storage.get_many(&[key.as_ref().to_vec()]).await.unwrap().pop().unwrap()
}

/// Every entry, as text.
pub async fn contents(storage: &dyn Storage) -> Vec<(String, String)> {
    let entries = storage.scan(&[everything()], page(100_000)).await.unwrap();
    entries.iter().map(|Entry { key, value }| (text(key), text(value))).collect()
}

/// Every entry, written down.
pub fn listed(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The keys of a scan.
pub async fn keys(storage: &dyn Storage, ranges: &[KeyRange], entries_max: usize) -> Vec<String> {
    let entries = storage.scan(ranges, page(entries_max)).await.unwrap();
    entries.iter().map(|entry| text(&entry.key)).collect()
}

/// Asserts that a guard has failed.
pub fn assert_conflict(result: Result<(), Error>) {
    assert_eq!(result.expect_err("a guard should have failed").code, ErrorCode::WriteConflict);
}
