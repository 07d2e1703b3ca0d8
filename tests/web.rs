//! IndexedDB storage in a real browser: the contract, and what only IndexedDB does.
#![cfg(target_arch = "wasm32")]
// Test functions of wasm-bindgen are no `#[test]` functions to clippy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod contract;

use std::rc::Rc;
use std::task::{Context, Waker};

use contract::{Handles, assert_conflict, b, contents, everything, get, listed, page, put_all};
use futures::future::join_all;
use js_sys::Function;
use timepail::error::{ErrorCode, Result};
use timepail::storage::idb::{Durability, IdbStorage};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Storage};
use wasm_bindgen::JsValue;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

async fn new_storage(name: &str) -> Rc<IdbStorage> {
    IdbStorage::destroy(name).await.unwrap();
    reopened(name).await
}

async fn reopened(name: &str) -> Rc<IdbStorage> {
    IdbStorage::open(name, Durability::Relaxed).await.unwrap()
}

async fn two_handles(name: &str) -> Handles {
    [new_storage(name).await, reopened(name).await]
}

fn put(key: &str, value: &str) -> Changeset {
    let mut changes = Changeset::new();
    changes.put(b(key), b(value));
    changes
}

fn insert(key: &str, value: &str) -> Changeset {
    let mut changes = Changeset::new();
    changes.insert(b(key), b(value));
    changes
}

/// Runs `body` as a JavaScript function of `argument`.
fn js(body: &str, argument: &str) -> JsValue {
    Function::new_with_args("argument", body).call1(&JsValue::UNDEFINED, &argument.into()).unwrap()
}

fn watch_for_uncaught() {
    js(
        "globalThis.uncaught = [];
         addEventListener('error', (event) => uncaught.push(String(event.message ?? event.type)));
         addEventListener('unhandledrejection', (event) => uncaught.push(String(event.reason)));",
        "",
    );
}

/// What has surfaced in the page since then.
fn uncaught() -> String {
    js("return uncaught.join()", "").as_string().unwrap()
}

/// Lets JavaScript meddle with the next transaction of any connection: `body` sees `tx` and `db`.
fn meddle_with_next_transaction(body: &str) {
    js(
        "const meddle = new Function('tx', 'db', argument);
         const original = IDBDatabase.prototype.transaction;
         IDBDatabase.prototype.transaction = function (...given) {
             IDBDatabase.prototype.transaction = original;
             const tx = original.apply(this, given);
             meddle(tx, this);
             return tx;
         };",
        body,
    );
}

/// The transaction is durable, but its client hears that it was aborted, for no reason given.
const LOSE_THE_ANSWER: &str = "tx.addEventListener('complete', (event) => {
    event.stopImmediatePropagation();
    tx.dispatchEvent(new Event('abort', { bubbles: true }));
});";

/// The transaction is aborted as soon as its requests are made, for no reason given.
const ABORT: &str = "queueMicrotask(() => tx.abort()); tx.commit = () => {};";

#[wasm_bindgen_test]
async fn keeps_the_contract() {
    contract::run_all(two_handles).await;
}

#[wasm_bindgen_test]
async fn random_changesets_do_what_they_do_in_memory() {
    let (idb, memory) = (new_storage("random").await, MemoryStorage::new());
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut conflicts = 0;
    for round in 0..300 {
        let mut changes = Changeset::new();
        for _ in 0..random(6) {
            let mut key = || (0..random(3)).map(|_| [0, 1, 0x61, 0xFF][random(4) as usize]).collect::<Vec<u8>>();
            let (key, other) = (key(), key());
            let value = vec![round as u8; random(3) as usize];
            match random(9) {
                0..3 => changes.put(key, value),
                3..5 => changes.delete(key),
                5 => changes.delete_range(KeyRange { start: key, end: other }),
                6..8 => changes.insert(key, value),
                _ => changes.require(key),
            }
        }
        let expected = memory.commit(changes.clone()).await.map_err(|error| error.code);
        let result = idb.commit(changes.clone()).await.map_err(|error| error.code);
        assert_eq!(result, expected, "{changes:?}");
        conflicts += usize::from(expected.is_err());
        let stored = idb.scan(&[everything()], page(1000)).await.unwrap();
        assert_eq!(stored, memory.scan(&[everything()], page(1000)).await.unwrap(), "{changes:?}");
    }
    assert!((50..250).contains(&conflicts), "{conflicts} of 300 commits met a guard");
}

#[wasm_bindgen_test]
async fn entries_are_there_after_opening_again() {
    let storage = new_storage("persists").await;
    put_all(&*storage, [("a", "1"), ("b", "2")]).await;
    storage.close();
    let storage = reopened("persists").await;
    assert_eq!(contents(&*storage).await, listed(&[("a", "1"), ("b", "2")]));
}

#[wasm_bindgen_test]
async fn databases_of_other_names_share_nothing() {
    let (one, other) = (new_storage("one").await, new_storage("other").await);
    put_all(&*one, [("a", "1")]).await;
    assert!(contents(&*other).await.is_empty());
}

#[wasm_bindgen_test]
async fn a_deletion_elsewhere_goes_on_and_later_operations_open_again() {
    let storage = new_storage("deleted").await;
    let other = reopened("deleted").await;
    put_all(&*storage, [("a", "1")]).await;
    // Would wait for ever if the two connections did not give way.
    IdbStorage::destroy("deleted").await.unwrap();
    assert!(contents(&*storage).await.is_empty());
    put_all(&*other, [("b", "2")]).await;
    assert_eq!(contents(&*storage).await, listed(&[("b", "2")]));
}

#[wasm_bindgen_test]
async fn a_commit_under_way_finishes_before_a_deletion() {
    let storage = new_storage("deleted while writing").await;
    let commits = (0..10u8).map(|number| storage.commit(put("k", &number.to_string())));
    let (results, deleted) =
        futures::future::join(join_all(commits), IdbStorage::destroy("deleted while writing")).await;
    deleted.unwrap();
    results.into_iter().for_each(|result| result.unwrap());
}

#[wasm_bindgen_test]
async fn everything_after_close_fails() {
    let storage = new_storage("closed").await;
    put_all(&*storage, [("a", "1")]).await;
    storage.close();
    let code = |result: Result<()>| result.unwrap_err().code;
    assert_eq!(code(storage.commit(put("a", "2")).await), ErrorCode::InterruptedAtShutdown);
    assert_eq!(code(storage.commit(Changeset::new()).await), ErrorCode::InterruptedAtShutdown);
    assert_eq!(code(storage.get_many(&[b("a")]).await.map(drop)), ErrorCode::InterruptedAtShutdown);
    assert_eq!(code(storage.scan(&[everything()], page(1)).await.map(drop)), ErrorCode::InterruptedAtShutdown);
    storage.close();
    IdbStorage::destroy("closed").await.unwrap();
}

#[wasm_bindgen_test]
async fn what_is_under_way_at_close_finishes() {
    let storage = new_storage("closing").await;
    let mut commit = storage.commit(put("a", "1"));
    assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    storage.close();
    commit.await.unwrap();
    assert_eq!(get(&*reopened("closing").await, "a").await, Some(b("1")));
}

#[wasm_bindgen_test]
async fn a_commit_that_nobody_waits_for_leaves_nothing_or_everything() {
    watch_for_uncaught();
    let storage = new_storage("dropped").await;
    put_all(&*storage, [("a", "1")]).await;
    for number in 0..20 {
        let mut changes = put("b", &number.to_string());
        changes.put(b("c"), b(&number.to_string()));
        // The guard must not be forgotten with its callback: that commit may never take place.
        changes.require(b("x"));
        let mut commit = storage.commit(changes);
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let ranges = [everything()];
    let mut scan = storage.scan(&ranges, page(9));
    assert!(scan.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(scan);
    assert_eq!(contents(&*storage).await, listed(&[("a", "1")]));
    assert_eq!(uncaught(), "");
}

#[wasm_bindgen_test]
async fn a_conflict_surfaces_nowhere_else() {
    watch_for_uncaught();
    let storage = new_storage("uncaught").await;
    put_all(&*storage, [("a", "1")]).await;
    assert_conflict(storage.commit(insert("a", "2")).await);
    let mut changes = insert("b", "2");
    changes.put(b("b"), b("3"));
    changes.require(b("x"));
    assert_conflict(storage.commit(changes).await);
    put_all(&*storage, [("c", "1")]).await;
    assert_eq!(uncaught(), "");
}

#[wasm_bindgen_test]
async fn the_key_of_a_conflict_is_named_where_a_lookup_has_found_it() {
    let storage = new_storage("named").await;
    let mut changes = Changeset::new();
    changes.require(vec![0xAB, 0x01]);
    let error = storage.commit(changes).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::WriteConflict, "Key ab01 does not exist"));
}

#[wasm_bindgen_test]
async fn an_abort_for_want_of_room_says_so_and_leaves_nothing() {
    let storage = new_storage("full").await;
    put_all(&*storage, [("a", "1")]).await;
    meddle_with_next_transaction(&format!(
        "Object.defineProperty(tx, 'error', {{ value: new DOMException('No room.', 'QuotaExceededError') }}); {ABORT}"
    ));
    let error = storage.commit(put("b", "2")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::OutOfDiskSpace);
    assert_eq!(error.message, "IndexedDB answered QuotaExceededError: No room");
    assert_eq!(contents(&*storage).await, listed(&[("a", "1")]));
}

#[wasm_bindgen_test]
async fn an_abort_for_another_definite_reason_gives_its_name() {
    let storage = new_storage("aborted").await;
    meddle_with_next_transaction(&format!(
        "Object.defineProperty(tx, 'error', {{ value: new DOMException('Odd', 'DataError') }}); {ABORT}"
    ));
    let error = storage.commit(put("b", "2")).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::OperationFailed, "IndexedDB answered DataError: Odd"));
    assert!(contents(&*storage).await.is_empty());
}

#[wasm_bindgen_test]
async fn an_abort_without_a_reason_is_tried_once_more() {
    let storage = new_storage("aborted once").await;
    meddle_with_next_transaction(ABORT);
    storage.commit(insert("a", "1")).await.unwrap();
    meddle_with_next_transaction(ABORT);
    assert_eq!(contents(&*storage).await, listed(&[("a", "1")]));
}

#[wasm_bindgen_test]
async fn an_abort_without_a_reason_that_comes_twice_is_reported() {
    let storage = new_storage("aborted twice").await;
    meddle_with_next_transaction(&format!(
        "{ABORT}
         const original = IDBDatabase.prototype.transaction;
         IDBDatabase.prototype.transaction = function (...given) {{
             IDBDatabase.prototype.transaction = original;
             const tx = original.apply(this, given);
             {ABORT}
             return tx;
         }};"
    ));
    let error = storage.commit(insert("a", "1")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::OperationFailed);
    assert!(error.message.contains("AbortError"), "{error}");
    assert!(contents(&*storage).await.is_empty());
}

#[wasm_bindgen_test]
async fn a_commit_whose_answer_got_lost_takes_place_once() {
    let storage = new_storage("lost").await;
    put_all(&*storage, [("journal", "1")]).await;
    let mut fold = insert("bucket", "1");
    fold.require(b("journal"));
    fold.delete(b("journal"));
    meddle_with_next_transaction(LOSE_THE_ANSWER);
    // The second attempt finds neither the journal nor room for the bucket, and sees its own writes there.
    storage.commit(fold).await.unwrap();
    assert_eq!(contents(&*storage).await, listed(&[("bucket", "1")]));
    meddle_with_next_transaction(LOSE_THE_ANSWER);
    storage.commit(insert("b", "1")).await.unwrap();
    assert_eq!(get(&*storage, "b").await, Some(b("1")));
}

#[wasm_bindgen_test]
async fn a_lost_answer_does_not_hide_the_insert_of_somebody_else() {
    let storage = new_storage("lost to another").await;
    // While the first attempt is aborted, another context takes the key.
    meddle_with_next_transaction(
        "queueMicrotask(() => {
             tx.abort();
             const other = db.transaction('entries', 'readwrite');
             other.objectStore('entries').put(new Uint8Array([57]).buffer, new Uint8Array([97]));
         });
         tx.commit = () => {};",
    );
    assert_conflict(storage.commit(insert("a", "1")).await);
    assert_eq!(contents(&*storage).await, listed(&[("a", "9")]));
}

#[wasm_bindgen_test]
async fn a_connection_that_died_unnoticed_is_opened_again() {
    let storage = new_storage("dead").await;
    // Closed behind our back: the next transaction throws InvalidStateError.
    let kill = || meddle_with_next_transaction("db.close();");
    kill();
    put_all(&*storage, [("a", "1")]).await;
    put_all(&*storage, [("b", "2")]).await;
    kill();
    assert_eq!(contents(&*storage).await, listed(&[("a", "1"), ("b", "2")]));
    assert_eq!(get(&*storage, "b").await, Some(b("2")));
    kill();
    assert_eq!(get(&*storage, "b").await, Some(b("2")));
    let commits = (0..9u8).map(|number| storage.commit(insert(&number.to_string(), "")));
    join_all(commits).await.into_iter().for_each(|result| result.unwrap());
}

#[wasm_bindgen_test]
async fn a_connection_that_the_browser_cut_is_opened_again_once() {
    let storage = new_storage("cut").await;
    meddle_with_next_transaction("tx.oncomplete = null; globalThis.cut = db;");
    put_all(&*storage, [("a", "1")]).await;
    js(
        "cut.close();
         cut.dispatchEvent(new Event('close'));
         globalThis.opened = 0;
         const original = IDBFactory.prototype.open;
         globalThis.restore = () => { IDBFactory.prototype.open = original; };
         IDBFactory.prototype.open = function (...given) {
             globalThis.opened += 1;
             return original.apply(this, given);
         };",
        "",
    );
    let commits = (0..9u8).map(|number| storage.commit(insert(&number.to_string(), "")));
    let results = join_all(commits).await;
    assert_eq!(js("restore(); return opened;", "").as_f64(), Some(1.0));
    results.into_iter().for_each(|result| result.unwrap());
    assert_eq!(contents(&*storage).await.len(), 10);
}

#[wasm_bindgen_test]
async fn durability_reaches_the_transaction() {
    for durability in [Durability::Relaxed, Durability::Strict] {
        IdbStorage::destroy("durable").await.unwrap();
        let storage = IdbStorage::open("durable", durability).await.unwrap();
        meddle_with_next_transaction("globalThis.seen = tx.durability;");
        storage.commit(put("a", "1")).await.unwrap();
        assert_eq!(js("return seen;", "").as_string().as_deref(), Some(durability.name()));
        assert_eq!(contents(&*storage).await, listed(&[("a", "1")]));
    }
}

#[wasm_bindgen_test]
async fn a_runtime_without_indexeddb_is_told_apart() {
    js(
        "globalThis.kept = Object.getOwnPropertyDescriptor(globalThis, 'indexedDB');
         Object.defineProperty(globalThis, 'indexedDB', { value: undefined, configurable: true });",
        "",
    );
    let opened = IdbStorage::open("nowhere", Durability::Relaxed).await;
    let destroyed = IdbStorage::destroy("nowhere").await;
    // In a worker it is inherited.
    js("if (kept) Object.defineProperty(globalThis, 'indexedDB', kept); else delete globalThis.indexedDB;", "");
    assert_eq!(opened.map(drop).unwrap_err().code, ErrorCode::IllegalOperation);
    assert_eq!(destroyed.unwrap_err().code, ErrorCode::IllegalOperation);
    new_storage("somewhere").await;
}

#[wasm_bindgen_test]
async fn a_database_of_a_later_version_is_refused() {
    let made = js(
        "return new Promise((resolve, reject) => {
             const request = indexedDB.open('timepail:later', 2);
             request.onsuccess = () => { request.result.close(); resolve(); };
             request.onerror = () => reject(request.error);
         });",
        "",
    );
    wasm_bindgen_futures::JsFuture::from(js_sys::Promise::from(made)).await.unwrap();
    let error = IdbStorage::open("later", Durability::Relaxed).await.map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::OperationFailed);
    assert!(error.message.contains("VersionError"), "{error}");
    IdbStorage::destroy("later").await.unwrap();
}

#[wasm_bindgen_test]
async fn a_database_that_is_not_ours_is_refused() {
    let made = js(
        "return new Promise((resolve, reject) => {
             const request = indexedDB.open('timepail:foreign', 1);
             request.onsuccess = () => { request.result.close(); resolve(); };
             request.onerror = () => reject(request.error);
         });",
        "",
    );
    wasm_bindgen_futures::JsFuture::from(js_sys::Promise::from(made)).await.unwrap();
    let error = IdbStorage::open("foreign", Durability::Relaxed).await.map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
    IdbStorage::destroy("foreign").await.unwrap();
}

#[wasm_bindgen_test]
async fn an_entry_that_is_not_bytes_is_damage() {
    let storage = new_storage("damaged").await;
    meddle_with_next_transaction("tx.objectStore('entries').put('text', new Uint8Array([97]));");
    storage.commit(put("b", "1")).await.unwrap();
    let error = storage.get_many(&[b("a")]).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
    let error = storage.scan(&[everything()], page(9)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DataCorruptionDetected);
    assert_eq!(get(&*storage, "b").await, Some(b("1")));
}

#[wasm_bindgen_test]
async fn a_storage_that_is_dropped_lets_its_database_go() {
    let storage = new_storage("let go").await;
    storage.commit(put("a", "1")).await.unwrap();
    drop(storage);
    let deleted = js(
        "return new Promise((resolve, reject) => {
             const request = indexedDB.deleteDatabase('timepail:let go');
             request.onblocked = () => reject('blocked');
             request.onsuccess = () => resolve();
         });",
        "",
    );
    wasm_bindgen_futures::JsFuture::from(js_sys::Promise::from(deleted)).await.unwrap();
}
