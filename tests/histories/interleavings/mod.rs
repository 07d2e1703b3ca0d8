//! Every interleaving of small histories: in any order of their storage calls, nothing acknowledged is lost or duplicated.

mod explore;
mod footprint;
mod history;
mod scheduler;
mod verdict;

use bson::{DateTime, Document, doc};
use explore::{Schedules, VANISHING_RUNS_MAX, explore, explore_within, replay};
use history::*;

/// The maximum number of runs of histories with updates or index operations, which make more calls.
const INDEX_RUNS_MAX: usize = 200;

/// A filter for times before a minute.
fn before(minute: i64) -> Document {
    doc! { "t": { "$lt": DateTime::from_millis(minute * 60_000) } }
}

/// A measurement that does not expire.
fn fresh(n: i64, series: &str, minute: i64) -> Document {
    let mut row = row(n, series, minute);
    row.insert("t", DateTime::from_millis(FRESH_MS + minute * 60_000));
    row
}

/// Runs a history once for each call of a task after which it vanishes; returns the number of schedules in which it did.
fn explore_vanishing(history: &History, task: usize) -> usize {
    let mut vanished = 0;
    for calls in 1.. {
        let Schedules { vanished: now, .. } =
            explore_within(&History { vanishes: Some((task, calls)), ..history.clone() }, VANISHING_RUNS_MAX);
        if now == 0 {
            break;
        }
        vanished += now;
    }
    vanished
}

/// A measurement of each of `count` series.
fn of_many_series(first: i64, count: i64, minute: i64) -> Vec<Document> {
    (0..count).map(|at| row(first + at, &format!("s{at}"), minute)).collect()
}

fn two_inserts_into_one_series() -> History {
    History::new("insert | insert")
        .task(0, [Insert(vec![row(1, "a", 1)]), Insert(vec![row(2, "a", 3)])])
        .task(1, [Insert(vec![row(3, "a", 2), row(4, "b", 2)]), Find(doc! {})])
}

#[test]
fn two_contexts_insert_into_one_series() {
    explore(&two_inserts_into_one_series());
}

#[test]
fn inserts_of_one_context_share_a_commit() {
    let history = History::new("insert | insert | find, one context")
        .task(0, [Insert(vec![row(1, "a", 1)]), Insert(vec![row(2, "a", 2)])])
        .task(0, [Insert(vec![row(3, "a", 3)])])
        .task(0, [Find(doc! {})])
        .shared();
    explore(&history);
}

#[test]
fn one_context_reads_what_it_inserts_while_it_folds() {
    let history = History::new("insert | flush | find, one context")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 2)]))
        .task(0, [Insert(vec![row(3, "a", 3)])])
        .task(0, [Flush])
        .task(0, [Find(doc! {})])
        .shared();
    explore(&history);
}

fn one_context_after_a_delete() -> History {
    History::new("find | flush | insert, find, one context, after a delete")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "a", 2)]))
        .before(1, Delete(before(30)))
        .task(0, [Find(doc! {})])
        .task(0, [Flush])
        .task(0, [Insert(vec![row(3, "a", 3)]), Find(doc! {})])
        .shared()
}

#[test]
fn tasks_of_one_context_refresh_while_another_folds_and_deletes() {
    explore(&one_context_after_a_delete());
}

#[test]
fn whoever_runs_while_the_engine_gives_a_turn_finds_everything_in_order() {
    let turning = |name, others: [Operation; 2]| {
        let [one, other] = others;
        let history = History::new(name)
            .before(0, Insert(vec![row(1, "a", 1), row(2, "a", 70), row(3, "b", 2)]))
            .before(0, Flush)
            .before(0, Insert(vec![row(4, "a", 2)]))
            .task(0, [one, Find(doc! {})])
            .task(0, [other])
            .shared();
        explore_within(&history.with_turns(), VANISHING_RUNS_MAX);
    };
    turning("find, turns | delete", [Find(doc! {}), Delete(before(30))]);
    turning("count, turns | flush", [Count(doc! { "x": { "$gt": 0.0 } }), Flush]);
    turning("insert, turns | flush", [Insert(vec![row(5, "a", 3), row(6, "c", 3)]), Flush]);
    turning("delete, turns | insert", [Delete(doc! { "m": "a" }), Insert(vec![row(5, "a", 3)])]);
    turning("create an index, turns | insert", [CreateIndex("i", "x"), Insert(vec![row(5, "a", 3)])]);
    explore_within(&one_context_after_a_delete().with_turns(), INDEX_RUNS_MAX);
}

#[test]
fn one_context_folds_what_another_inserts_while_a_third_reads() {
    let history = History::new("insert | fold | find")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 2)]))
        .task(0, [Insert(vec![row(3, "a", 3)])])
        .task(1, [FoldJournals])
        .task(2, [Find(doc! {})]);
    explore(&history);
}

fn fold_and_read_by_the_index() -> History {
    History::new("insert, flush | find by series, count")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "a", 70)]))
        .before(0, Flush)
        .before(0, Insert(vec![row(3, "a", 2)]))
        .task(0, [Insert(vec![row(4, "a", 71), row(5, "b", 1)]), Flush])
        .task(1, [Find(doc! { "m": "a" }), Count(doc! { "m": "a", "x": { "$gt": 0.0 } })])
}

#[test]
fn a_reader_of_one_series_uses_the_index_during_a_fold() {
    explore(&fold_and_read_by_the_index());
}

#[test]
fn bucket_documents_are_valid_during_folds() {
    let history = History::new("insert, flush | buckets | fold")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 2)]))
        .task(0, [Insert(vec![row(3, "a", 3), row(4, "b", 1)]), Flush])
        .task(1, [Buckets])
        .task(2, [FoldJournals]);
    explore(&history);
}

#[test]
fn two_contexts_insert_and_fold_the_same_hours() {
    let history = History::new("insert, flush | insert, flush")
        .task(0, [Insert(vec![row(1, "a", 1), row(2, "a", 3)]), Flush])
        .task(1, [Insert(vec![row(3, "a", 2), row(4, "a", 4)]), Flush]);
    explore(&history);
}

#[test]
fn contexts_fold_the_journals_of_each_other() {
    let history = History::new("fold | fold | flush")
        .before(0, Insert(vec![row(1, "a", 1)]))
        .before(1, Insert(vec![row(2, "a", 2), row(3, "b", 2)]))
        .before(0, Insert(vec![row(4, "a", 3)]))
        .task(0, [Flush])
        .task(1, [FoldJournals])
        .task(2, [FoldJournals]);
    explore(&history);
}

fn insert_delete_by_time_fold() -> History {
    History::new("insert | delete by time | fold")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "a", 40), row(3, "b", 70)]))
        .task(0, [Insert(vec![row(4, "a", 20), row(5, "a", 50)])])
        .task(1, [Delete(before(30))])
        .task(2, [FoldJournals])
}

#[test]
fn a_delete_by_time_beside_an_insert_and_a_fold() {
    explore(&insert_delete_by_time_fold());
}

#[test]
fn a_delete_by_metadata_beside_a_fold_and_a_reader_with_batches_of_one() {
    let history = History::new("delete by meta | flush | find")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "b", 10)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(3, "a", 11), row(4, "b", 11)]))
        .task(0, [Delete(doc! { "m": "a" })])
        .task(1, [Flush])
        .task(2, [Find(doc! {})]);
    explore(&history);
}

#[test]
fn two_deletes_and_a_fold_delete_every_measurement_once() {
    let history = History::new("delete one | delete | fold")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "a", 40)]))
        .before(1, Insert(vec![row(3, "a", 20), row(4, "b", 10)]))
        .task(0, [DeleteOne(doc! { "m": "a" })])
        .task(1, [Delete(before(30))])
        .task(2, [FoldJournals]);
    explore(&history);
}

#[test]
fn expiry_beside_an_insert_and_a_fold() {
    let history = History::new("expire | insert | fold")
        .before(0, Insert(vec![row(1, "a", 1), fresh(2, "a", 1)]))
        .task(0, [Expire])
        .task(1, [Insert(vec![row(3, "a", 2), fresh(4, "b", 2)])])
        .task(2, [FoldJournals]);
    explore(&history);
}

#[test]
fn late_measurements_reopen_a_bucket_that_others_fold_and_delete_from() {
    let history = History::new("reopen | flush | delete")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "a", 50)]))
        .before(0, Insert(vec![row(3, "a", 90)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(4, "a", 95)]))
        .task(2, [Insert(vec![row(5, "a", 15)])])
        .task(1, [Flush])
        .task(0, [Delete(before(30))]);
    explore(&history);
}

#[test]
fn a_reopened_bucket_is_folded_by_its_context_while_another_deletes_from_it() {
    let history = History::new("reopen, flush | delete")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "a", 50)]))
        .before(0, Flush)
        .task(1, [Insert(vec![row(3, "a", 15), row(4, "a", 45)]), Flush, Find(doc! {})])
        .task(0, [Delete(before(30)), Insert(vec![row(5, "a", 20)])]);
    explore(&history);
}

#[test]
fn a_collection_is_recreated_while_another_context_inserts() {
    let history = History::new("drop, create | insert, flush")
        .before(0, Insert(vec![row(1, "a", 1)]))
        .before(1, Insert(vec![row(2, "a", 2)]))
        .task(0, [Drop, Create, Insert(vec![row(3, "a", 3)])])
        .task(1, [Insert(vec![row(4, "a", 4)]), Flush, Insert(vec![row(5, "a", 5)])]);
    explore(&history);
}

#[test]
fn a_context_with_a_dropped_collection_finds_the_recreated_one() {
    let history = History::new("drop, create, insert | find | insert, delete")
        .before(1, Insert(vec![row(1, "a", 1)]))
        .before(2, Find(doc! {}))
        .task(0, [Drop, Create, Insert(vec![row(2, "a", 10), row(3, "a", 40)])])
        .task(1, [Find(doc! {}), Find(doc! {})])
        .task(2, [Insert(vec![row(4, "b", 1)]), Delete(before(30))]);
    explore(&history);
}

#[test]
fn an_interrupted_fold_of_several_steps_is_finished_by_another_context() {
    // More buckets than one step of a fold writes, and than one page of a scan reads.
    let history = History::new("flush of many, vanish | delete, count")
        .before(0, Insert(of_many_series(100, 66, 1)))
        .before(1, Insert(vec![row(1, "s3", 40)]))
        .task(0, [Flush])
        .task(1, [Count(doc! {}), Delete(before(30)), Count(doc! {})]);
    assert!(explore_vanishing(&history, 0) > 0);
}

#[test]
fn a_context_that_vanishes_in_an_insert_or_a_fold_loses_nothing() {
    let history = History::new("insert, flush, vanish | insert, fold")
        .before(0, Insert(vec![row(1, "a", 1)]))
        .task(0, [Insert(vec![row(2, "a", 2), row(3, "b", 2)]), Flush])
        .task(1, [Insert(vec![row(4, "a", 3)]), FoldJournals]);
    assert!(explore_vanishing(&history, 0) > 0);
}

#[test]
fn a_context_that_vanishes_in_a_delete_leaves_a_usable_state() {
    let history = History::new("delete, vanish | insert | fold")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "a", 40)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(3, "a", 2)]))
        .task(0, [Delete(before(30))])
        .task(1, [Insert(vec![row(4, "a", 3)])])
        .task(2, [FoldJournals, Find(doc! {})]);
    assert!(explore_vanishing(&history, 0) > 0);
}

fn update_insert_fold() -> History {
    History::new("update | insert, find | fold")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 1)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(3, "a", 2)]))
        .task(0, [Update("a", "z"), Find(doc! {})])
        .task(1, [Insert(vec![row(4, "a", 3)]), Find(doc! {})])
        .task(2, [FoldJournals])
}

#[test]
fn an_update_beside_an_insert_into_its_bucket_and_a_fold() {
    explore_within(&update_insert_fold(), INDEX_RUNS_MAX);
}

#[test]
fn an_update_beside_a_delete_and_a_reader_with_batches_of_one() {
    let history = History::new("update | delete by time | find")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "a", 40), row(3, "b", 10)]))
        .before(1, Flush)
        .task(0, [Update("a", "z")])
        .task(1, [Delete(before(30))])
        .task(2, [Find(doc! {})]);
    explore_within(&history, INDEX_RUNS_MAX);
}

#[test]
fn two_updates_of_different_series_and_an_insert() {
    let history = History::new("update | update | insert, flush")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 1)]))
        .before(0, Flush)
        .task(0, [Update("a", "z")])
        .task(1, [Update("b", "y")])
        .task(2, [Insert(vec![row(3, "a", 2), row(4, "b", 2)]), Flush]);
    explore_within(&history, INDEX_RUNS_MAX);
}

#[test]
fn a_context_that_vanishes_in_an_update_leaves_a_usable_state() {
    let history = History::new("update, vanish | insert | fold")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "a", 70)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(3, "a", 2)]))
        .task(0, [Update("a", "z")])
        .task(1, [Insert(vec![row(4, "a", 3)])])
        .task(2, [FoldJournals, Find(doc! {})]);
    assert!(explore_vanishing(&history, 0) > 0);
}

fn index_insert_fold() -> History {
    History::new("create index | insert, flush | find by it")
        .before(1, Insert(vec![row(1, "a", 1), row(2, "b", 1)]))
        .before(1, Flush)
        .before(1, Insert(vec![row(3, "a", 2)]))
        .task(0, [CreateIndex("x", "x"), FindBy("x")])
        .task(1, [Insert(vec![row(4, "a", 3)]), Flush])
        .task(2, [FindBy("x"), FindBy("x")])
}

#[test]
fn an_index_is_created_while_others_insert_fold_and_use_it() {
    explore_within(&index_insert_fold(), INDEX_RUNS_MAX);
}

#[test]
fn an_index_is_created_while_others_delete_and_update() {
    let history = History::new("create index | delete by time, find by it | update")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "b", 40), row(3, "b", 10)]))
        .before(0, Flush)
        .task(0, [CreateIndex("m", "m")])
        .task(1, [Delete(before(30)), FindBy("m")])
        .task(2, [Update("b", "z")]);
    explore_within(&history, INDEX_RUNS_MAX);
}

fn index_made_twice() -> History {
    History::new("create index | create index | drop index")
        .before(0, Insert(vec![row(1, "a", 1)]))
        .before(0, Flush)
        .task(0, [CreateIndex("x", "x"), FindBy("x")])
        .task(1, [CreateIndex("x", "x")])
        .task(2, [DropIndex("x")])
}

#[test]
fn an_index_is_created_by_two_contexts_at_once_and_dropped() {
    explore_within(&index_made_twice(), INDEX_RUNS_MAX);
}

#[test]
fn an_index_is_hidden_and_dropped_while_others_use_it_and_fold() {
    let history = History::new("hide, show, drop index | find by it | insert, flush")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 1)]))
        .before(0, CreateIndex("x", "x"))
        .before(1, FindBy("x"))
        .task(0, [HideIndex("x", true), HideIndex("x", false), DropIndex("x")])
        .task(1, [FindBy("x"), FindBy("x")])
        .task(2, [Insert(vec![row(3, "a", 2)]), Flush]);
    explore_within(&history, INDEX_RUNS_MAX);
}

#[test]
fn the_default_index_is_recreated_while_others_insert_and_reopen() {
    let history = History::new("drop index, create index | insert, flush, find by series")
        .before(1, Insert(vec![row(1, "a", 10)]))
        .before(1, Insert(vec![row(2, "a", 90)]))
        .before(1, Flush)
        .task(0, [DropIndex("m_1_t_1"), CreateIndex("m_1_t_1", "m")])
        .task(2, [Insert(vec![row(3, "a", 15)]), Flush, Find(doc! { "m": "a" })]);
    explore_within(&history, INDEX_RUNS_MAX);
}

#[test]
fn a_context_that_vanishes_during_an_index_build_leaves_a_usable_state() {
    let history = History::new("create index, vanish | insert, flush, find by it | create index")
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 1)]))
        .before(0, Flush)
        .task(0, [CreateIndex("x", "x")])
        .task(1, [Insert(vec![row(3, "a", 2)]), Flush, FindBy("x")])
        .task(2, [CreateIndex("x", "x")]);
    assert!(explore_vanishing(&history, 0) > 0);
}

/// Schedules that once failed.
#[test]
fn schedules_that_once_failed_succeed() {
    // A record was folded between listing its key and fetching it, and the bucket that holds it came from the cache.
    replay(&fold_and_read_by_the_index(), "0111100001001");
    // The rows that a delete left in a bucket of version 3 were sorted.
    replay(&insert_delete_by_time_fold(), "011111111111222");
    // One task noticed that others had changed buckets, and another took the records in memory for the remaining ones.
    replay(&one_context_after_a_delete(), "0001111110002222222");
    // A record was forgotten whose commit had begun before the keys were listed and ended afterwards.
    replay(&one_context_after_a_delete(), "21112222222210000");
    // Without requiring the epoch, a delete wrote a bucket that was folded meanwhile.
    replay(&insert_delete_by_time_fold(), "0111112222211112");
    // A plan used an index as of one moment with the entries of another.
    replay(&index_made_twice(), "0000000111111111000001000022220");
}

fn resends_and_folds() -> History {
    History::new("insert, flush | insert, find | fold, with dedupe")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "b", 20)]))
        .task(0, [Insert(vec![row(3, "a", 30)]), Flush])
        .task(1, [Insert(vec![row(4, "a", 5), row(5, "a", 10)]), Find(doc! {})])
        .task(2, [FoldJournals])
        .once()
}

#[test]
fn contexts_insert_fold_and_read_in_windows() {
    explore(&resends_and_folds());
}

#[test]
fn histories_in_windows_end_as_in_buckets() {
    explore(&two_inserts_into_one_series().once());
    explore(&fold_and_read_by_the_index().once());
    explore_within(&one_context_after_a_delete().once(), INDEX_RUNS_MAX);
    explore_within(&insert_delete_by_time_fold().once(), INDEX_RUNS_MAX);
    explore_within(&index_insert_fold().once(), INDEX_RUNS_MAX);
    explore_within(
        &without_room("delete without room | fold").task(1, [FoldJournals, Flush, Find(doc! {})]).once(),
        INDEX_RUNS_MAX,
    );
}

#[test]
fn dedupe_is_turned_on_while_others_insert_and_fold() {
    let history = History::new("dedupe | insert | flush")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "b", 20)]))
        .before(1, Insert(vec![row(3, "a", 5)]))
        .task(0, [TurnOn])
        .task(1, [Insert(vec![row(4, "a", 30)])])
        .task(2, [Flush, FoldJournals]);
    explore_within(&history, INDEX_RUNS_MAX);
}

#[test]
fn a_context_that_vanishes_in_a_window_or_while_dedupe_is_turned_on_loses_nothing() {
    assert!(explore_vanishing(&resends_and_folds(), 2) > 0);
    let history = History::new("dedupe | insert, flush")
        .before(0, Insert(vec![row(1, "a", 10), row(2, "b", 20)]))
        .task(0, [TurnOn])
        .task(1, [Insert(vec![row(4, "a", 30)]), Flush]);
    assert!(explore_vanishing(&history, 0) > 0);
}

/// A delete without room of a series with rows in a bucket and in a record.
fn without_room(name: &'static str) -> History {
    History::new(name)
        .before(0, Insert(vec![row(1, "a", 1), row(2, "b", 2)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(3, "a", 3)]))
        .before(0, Insert(vec![row(4, "a", 4)]))
        .task(0, [Delete(doc! { "m": "a" })])
        .full(0)
}

#[test]
fn a_delete_without_room_beside_inserts_and_finds_of_another() {
    explore(&without_room("delete without room | insert, find").task(1, [Insert(vec![row(5, "a", 5)]), Find(doc! {})]));
}

#[test]
fn a_delete_without_room_beside_a_fold_of_another() {
    explore(&without_room("delete without room | fold").task(1, [FoldJournals, Flush, Find(doc! {})]));
}

#[test]
fn a_delete_without_room_beside_a_delete_of_another() {
    explore(&without_room("delete without room | delete").task(1, [Delete(before(4)), Count(doc! {})]));
}

#[test]
fn a_delete_without_room_beside_inserts_and_a_fold_of_its_context() {
    let history = without_room("delete without room | insert, flush, one context");
    explore_within(&history.task(0, [Insert(vec![row(5, "a", 5)]), Flush]).shared(), VANISHING_RUNS_MAX);
}

#[test]
fn a_delete_without_room_that_vanishes_hides_and_doubles_nothing() {
    let history = without_room("delete without room, vanishing | find").task(1, [Find(doc! {})]);
    assert!(explore_vanishing(&history, 0) > 0);
}

#[test]
fn retention_without_room_beside_inserts_and_a_fold_of_another() {
    let history = History::new("expire without room | insert, fold")
        .before(0, Insert(vec![row(1, "a", 1)]))
        .before(0, Flush)
        .before(1, Insert(vec![row(2, "a", 2)]))
        .task(0, [Expire])
        .task(1, [Insert(vec![row(3, "a", 3)]), Insert(vec![fresh(4, "a", 4)]), Flush, Find(doc! {})])
        .full(0);
    explore(&history);
}
