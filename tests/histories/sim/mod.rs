//! Random histories of several contexts on one storage, compared with a plain list: what was acknowledged is found exactly once,
//! regardless of folds, restarts, deletes, interleaving and lost answers.
//!
//! `SIM_SEEDS=16000 cargo test --profile soak --test histories sim` runs 16 000 seeds, a sixteenth of them for each kind of history; `SIM_SEED=17` runs seed 17 of each kind.

mod live;
mod live_queries;
mod live_together;
mod places;
mod resends;
mod resends_together;
mod seeds;
mod sequence;
mod together;

use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bson::{Bson, Document, rawdoc};
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::storage::Storage;

use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{ALWAYS_MS, Db, Random, TestEnv, checks};

/// The start of the clock of every history, and the age at which measurements expire: those of the epoch expire at once, except for the span
/// of a bucket.
const FIRST_NOW_MS: i64 = 1_800_000_000_000;

/// Seeds of each kind that once failed; they are always run.
const KEPT: [&[u64]; 16] = [
    &[206],
    &[6, 11],
    &[153],
    &[9, 334, 657, 1304],
    &[],
    &[608],
    &[680],
    &[680],
    &[],
    &[],
    &[4339],
    &[],
    &[],
    &[2087],
    &[],
    &[6403],
];

/// The faults of storage in a history.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    /// Commits and reads fail, and answers are lost.
    Faults,
    /// Sometimes it is full.
    NoRoom,
}

impl Trouble {
    /// Whether a command may fail with this reply.
    fn excuses(self, reply: &Document) -> bool {
        let error = match reply.get_array("writeErrors").map(|errors| errors.first()) {
            Ok(Some(Bson::Document(error))) => error,
            _ => reply,
        };
        match self {
            Trouble::None => false,
            Trouble::Faults => true,
            Trouble::NoRoom => error.get_i32("code").ok() == Some(14031),
        }
    }
}

/// True if each `n` is one measurement in the history; then buckets lie in windows. Derived from the seed alone, as below.
fn is_once(seed: u64) -> bool {
    seed.is_multiple_of(5)
}

/// The number of rows that no bucket of a history may exceed; none for most seeds, whose contexts may differ in it. Derived from the seed
/// alone, so that the seeds above stay the histories that they were.
fn bucket_rows_max(seed: u64) -> Option<usize> {
    // Buckets in windows take late rows beyond that.
    (seed % 7 < 2 && !is_once(seed)).then_some(2 + (seed / 7 % 11) as usize)
}

/// A clock and random numbers for tasks at once. In half of the histories the engine gives turns, wherever it may or at every third
/// place. Derived from the seed in such a way that the seeds above stay the histories that they were.
fn env_of(seed: u64) -> Rc<TestEnv> {
    let env = TestEnv::new(seed);
    env.look_ms.set(match seed / 3 % 4 {
        0 => ALWAYS_MS,
        1 => ALWAYS_MS / 3.0,
        _ => 0.0,
    });
    env
}

/// Asserts that no bucket has more rows than that. All must be folded.
async fn check_bucket_rows(db: &Db, rows_max: Option<usize>) {
    let Some(rows_max) = rows_max else { return };
    let options = checks::options_of(db, "c").await;
    for bucket in checks::buckets(db, "c").await {
        let rows = measurements_of_valid(&bucket, &options, Writers::Several).unwrap().len();
        assert!(rows <= rows_max, "a bucket has {rows} rows instead of at most {rows_max}: {bucket}");
    }
}

/// True if a command did all that it was asked.
fn ok(reply: &Document) -> bool {
    reply.get_f64("ok").ok() == Some(1.0) && !reply.contains_key("writeErrors")
}

/// Drops the collection, which must leave nothing behind.
async fn check_dropped(db: &Db, storage: &dyn Storage) {
    db.ok(rawdoc! { "drop": "c" }).await;
    let left = checks::left_behind(storage, |storage| open(&storage, &TestEnv::new(1), &Random::new(1), None)).await;
    assert!(left.is_empty(), "a dropped collection leaves behind {left:?}");
}

/// Polls `what` a number of times; `None` if that was not enough.
async fn at_most<T>(polls: u64, what: impl Future<Output = T>) -> Option<T> {
    let mut what = pin!(what);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        what.as_mut().poll(context).map(Some)
    })
    .await
}

/// A context with a random bucket format, since a database may hold all formats. Many have little memory for open buckets, and
/// small ones.
fn open(storage: &Rc<dyn Storage>, env: &Rc<TestEnv>, random: &Random, rows_max: Option<usize>) -> Db {
    let format = if random.chance(25) { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
    let mut options = CatalogOptions::default();
    if random.chance(50) {
        options.memory_bytes_max = 500 << random.below(6);
        options.expiry_count_max = random.below(4) as usize;
    }
    if random.chance(50) {
        options.bucket_count_max = 10 + random.below(90) as usize;
        options.bucket_size_bytes_max = 2000 + random.below(20_000) as usize;
    }
    options.bucket_count_max = rows_max.unwrap_or(options.bucket_count_max);
    Db::open_with(format, options, Rc::clone(storage), Rc::clone(env))
}

#[test]
fn random_histories_of_several_contexts_agree_with_a_plain_list() {
    seeds::run("sequence", 20, KEPT[0], &|seed| sequence::history(seed, Trouble::None));
}

#[test]
fn random_histories_agree_with_a_plain_list_where_storage_fails() {
    seeds::run("sequence with faults", 20, KEPT[1], &|seed| sequence::history(seed, Trouble::Faults));
}

#[test]
fn contexts_that_write_fold_delete_and_read_at_once_lose_and_double_nothing() {
    seeds::run("together", 20, KEPT[2], &|seed| together::history(seed, Trouble::None));
}

#[test]
fn contexts_at_once_lose_and_double_nothing_where_storage_fails_and_contexts_vanish() {
    seeds::run("together with faults", 20, KEPT[3], &|seed| together::history(seed, Trouble::Faults));
}

#[test]
fn random_histories_agree_with_a_plain_list_where_storage_has_no_room_now_and_then() {
    seeds::run("sequence without room", 20, KEPT[4], &|seed| sequence::history(seed, Trouble::NoRoom));
}

#[test]
fn contexts_at_once_lose_and_double_nothing_where_storage_has_no_room_now_and_then() {
    seeds::run("together without room", 20, KEPT[5], &|seed| together::history(seed, Trouble::NoRoom));
}

#[test]
fn a_measurement_that_is_sent_again_is_found_once() {
    seeds::run("resends", 20, KEPT[6], &|seed| resends::history(seed, Trouble::None));
}

#[test]
fn a_measurement_that_is_sent_again_because_storage_failed_is_found_once() {
    seeds::run("resends with faults", 20, KEPT[7], &|seed| resends::history(seed, Trouble::Faults));
}

#[test]
fn contexts_that_send_the_same_measurements_at_once_agree_on_them() {
    seeds::run("resends together", 20, KEPT[8], &|seed| resends_together::history(seed, Trouble::None, false));
}

#[test]
fn contexts_that_send_the_same_measurements_agree_on_them_where_storage_fails_and_contexts_vanish() {
    seeds::run("resends together with faults", 20, KEPT[9], &|seed| {
        resends_together::history(seed, Trouble::Faults, false)
    });
}

#[test]
fn measurements_are_found_once_after_dedupe_was_turned_on_while_contexts_insert_and_fold() {
    seeds::run("dedupe changed", 20, KEPT[10], &|seed| resends_together::history(seed, Trouble::None, true));
}

#[test]
fn measurements_are_found_once_after_dedupe_was_turned_on_where_storage_fails_and_contexts_vanish() {
    seeds::run("dedupe changed with faults", 20, KEPT[11], &|seed| {
        resends_together::history(seed, Trouble::Faults, true);
    });
}

#[test]
fn the_results_of_live_queries_are_those_of_fresh_ones() {
    seeds::run("live queries", 5, KEPT[12], &|seed| live::history(seed, Trouble::None));
}

#[test]
fn the_results_of_live_queries_are_those_of_fresh_ones_where_storage_fails() {
    seeds::run("live queries with faults", 5, KEPT[13], &|seed| live::history(seed, Trouble::Faults));
}

#[test]
fn live_queries_of_contexts_that_write_at_once_have_results_of_the_present() {
    seeds::run("live queries together", 20, KEPT[14], &|seed| live_together::history(seed, Trouble::None));
}

#[test]
fn live_queries_of_contexts_that_write_at_once_have_results_of_the_present_where_storage_fails() {
    seeds::run("live queries together with faults", 20, KEPT[15], &|seed| {
        live_together::history(seed, Trouble::Faults)
    });
}
