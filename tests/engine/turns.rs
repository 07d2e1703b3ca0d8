//! Turns of the event loop beside a storage that answers by events.

use std::rc::Rc;

use bson::{DateTime, rawdoc};
use futures::executor::block_on;
use timepail::limits::TURN_MS;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, TestEnv};

/// Says that its answers are events.
#[derive(Default)]
struct Eventful(MemoryStorage);

impl Storage for Eventful {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.0.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.0.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.0.commit(changes)
    }
    fn answers_by_event(&self) -> bool {
        true
    }
}

/// How many turns the engine gives during fifty inserts, each awaited.
fn turns_of(storage: Rc<dyn Storage>, options: bson::RawDocumentBuf) -> usize {
    let env = TestEnv::new(7);
    let db = Db::open(storage, Rc::clone(&env));
    block_on(async {
        db.ok(options).await;
        // An insert looks at the clock three times.
        env.look_ms.set(TURN_MS / 4.0);
        for n in 0..50 {
            let row = rawdoc! { "t": DateTime::from_millis(1_700_000_000_000 + n), "m": 1 };
            assert_eq!(db.insert("c", &[row]).await.get_i32("n").unwrap(), 1);
        }
    });
    env.turns.get()
}

#[test]
fn a_commit_that_was_answered_by_an_event_counts_as_a_turn() {
    // Each awaited insert left the event loop to the page, and every eighth millisecond it was given a turn all the same.
    let timeseries = rawdoc! { "timeField": "t", "metaField": "m" };
    let plain = rawdoc! { "create": "c", "timeseries": timeseries.clone() };
    let dedupes = rawdoc! { "create": "c", "timeseries": timeseries, "dedupe": { "keep": "last" } };
    for options in [plain, dedupes] {
        assert!(turns_of(Rc::new(MemoryStorage::new()), options.clone()) > 5);
        assert_eq!(turns_of(Rc::new(Eventful::default()), options), 0);
    }
}
