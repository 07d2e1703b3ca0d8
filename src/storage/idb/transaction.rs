//! One transaction: begun, filled with requests in one turn, then awaited.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{Function, Object, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbDatabase, IdbObjectStore, IdbRequest, IdbTransaction};

use super::connection::STORE_NAME;
use super::failure::IdbFailure;

/// What a commit waits for before it counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Handed over to the operating system: survives a crash of the browser.
    #[default]
    Relaxed,
    /// Flushed to disk: survives a power failure.
    Strict,
}

impl Durability {
    /// The name that IndexedDB and the option `durability` have for it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Relaxed => "relaxed",
            Durability::Strict => "strict",
        }
    }
}

/// A transaction under way. Dropping it before it has settled aborts it, so no transaction is left half done.
pub(super) struct Running {
    /// The store for requests.
    pub(super) store: IdbObjectStore,
    transaction: IdbTransaction,
    progress: Rc<RefCell<Progress>>,
    /// Receives all events of the transaction. Lives as long as events may come.
    listener: Closure<dyn FnMut(Event)>,
}

#[wasm_bindgen]
extern "C" {
    /// `IDBTransaction`, whose method takes a string that JavaScript already has.
    type Stores;
    #[wasm_bindgen(method, catch, js_name = objectStore)]
    fn object_store(this: &Stores, name: &JsValue) -> Result<IdbObjectStore, JsValue>;
}

/// What the listener has received.
#[derive(Default)]
struct Progress {
    /// Why it fails: the first failure. Later ones are only its consequences.
    reason: Option<IdbFailure>,
    settled: Option<Result<(), IdbFailure>>,
    /// True if an event is still to come that settles the transaction.
    is_pending: bool,
    /// True if the transaction has ended and no more events come.
    is_over: bool,
    waker: Option<Waker>,
}

impl Running {
    /// Begins a transaction that reads.
    pub(super) fn read(database: &IdbDatabase) -> Result<Running, IdbFailure> {
        let transaction = database.transaction_with_str(STORE_NAME).map_err(|thrown| IdbFailure::thrown(&thrown))?;
        Running::begin(transaction, &STORE_NAME.into())
    }

    /// Begins a transaction that writes.
    pub(super) fn write(database: &IdbDatabase, way: &WriteWay) -> Result<Running, IdbFailure> {
        let transaction = way.begin(database).map_err(|thrown| IdbFailure::thrown(&thrown))?;
        let running = Running::begin(transaction, &way.store)?;
        running.transaction.set_oncomplete(Some(running.listener()));
        Ok(running)
    }

    fn begin(transaction: IdbTransaction, store: &JsValue) -> Result<Running, IdbFailure> {
        let stores: &Stores = transaction.unchecked_ref();
        let store = stores.object_store(store).map_err(|thrown| IdbFailure::thrown(&thrown))?;
        let progress = Rc::new(RefCell::new(Progress { is_pending: true, ..Progress::default() }));
        let listener = {
            let (transaction, progress) = (transaction.clone(), Rc::clone(&progress));
            Closure::new(move |event: Event| hear(&transaction, &progress, &event))
        };
        let running = Running { store, transaction, progress, listener };
        running.transaction.set_onabort(Some(running.listener()));
        running.transaction.set_onerror(Some(running.listener()));
        Ok(running)
    }

    fn listener(&self) -> &Function {
        self.listener.as_ref().unchecked_ref()
    }

    /// Says that no request will follow, which saves a quarter of the time of a small commit.
    ///
    /// Only for reads, and for writes with a single request: if a request fails in a sealed transaction, Firefox (153)
    /// aborts it only if that was the last request, and otherwise commits all others. Nor can we abort any more. In
    /// browsers without the method, the transaction ends by itself.
    pub(super) fn seal(&self) {
        #[allow(deprecated)] // Removed from one edition of the standard, back in the next, and in every browser.
        let _ = self.transaction.commit();
    }

    /// Waits until `request` has succeeded, and with it all requests before it, because they are served in order.
    ///
    /// The transaction is still active when this returns: more requests may follow in the same turn.
    pub(super) async fn answered(&self, request: &IdbRequest) -> Result<(), IdbFailure> {
        self.progress.borrow_mut().is_pending = true;
        request.set_onsuccess(Some(self.listener()));
        self.settled().await
    }

    /// Waits until everything is durable, or nothing was written.
    pub(super) async fn committed(&self) -> Result<(), IdbFailure> {
        let result = self.settled().await;
        // If no request is waited for, only the end of the transaction settles it.
        self.progress.borrow_mut().is_over = true;
        result
    }

    async fn settled(&self) -> Result<(), IdbFailure> {
        poll_fn(|context| {
            let mut progress = self.progress.borrow_mut();
            match progress.settled.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    progress.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Lets a callback abort the transaction.
    pub(super) fn veto(&self) -> Veto {
        Veto { transaction: self.transaction.clone(), progress: Rc::clone(&self.progress) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.progress.borrow().is_over {
            return;
        }
        self.transaction.set_onabort(None);
        self.transaction.set_onerror(None);
        self.transaction.set_oncomplete(None);
        if self.progress.borrow().is_pending {
            // Callbacks of requests are dropped after this line; an aborted transaction calls none of them.
            let _ = self.transaction.abort();
        }
    }
}

/// The right to abort a transaction from the callback of one of its requests.
pub(super) struct Veto {
    transaction: IdbTransaction,
    progress: Rc<RefCell<Progress>>,
}

impl Veto {
    /// Aborts because of `failure`, which becomes the result.
    pub(super) fn abort(&self, failure: IdbFailure) {
        self.progress.borrow_mut().reason.get_or_insert(failure);
        // Fails only if it is aborted already.
        let _ = self.transaction.abort();
    }
}

/// Events are told apart by their flags, because names would have to be copied: `error` bubbles and is cancelable,
/// `abort` bubbles, and `complete` and `success` do neither.
fn hear(transaction: &IdbTransaction, progress: &RefCell<Progress>, event: &Event) {
    if event.cancelable() {
        // The event need not reach the database, nor, in some browsers, `window.onerror`.
        event.stop_propagation();
        let request = event.target().and_then(|target| target.dyn_into::<IdbRequest>().ok());
        let reason = request.and_then(|request| request.error().ok().flatten());
        // A request fails with AbortError if its transaction was already aborted, for a reason known there.
        if let Some(reason) = reason.filter(|reason| reason.name() != "AbortError") {
            progress.borrow_mut().reason.get_or_insert_with(|| IdbFailure::aborted(Some(reason)));
        }
        // A handled error no longer aborts the transaction, so it is marked as handled only after we have aborted it.
        if transaction.abort().is_ok() {
            event.prevent_default();
        }
        return;
    }
    let reason = progress.borrow_mut().reason.take();
    if event.bubbles() {
        settle(progress, Err(reason.unwrap_or_else(|| IdbFailure::aborted(transaction.error()))));
    } else {
        // `complete` of the transaction, or `success` of the request that `answered` waits for. A request that failed
        // earlier in a sealed transaction must not pass for an absent value.
        settle(progress, reason.map_or(Ok(()), Err));
    }
}

fn settle(progress: &RefCell<Progress>, result: Result<(), IdbFailure>) {
    let waker = {
        let mut progress = progress.borrow_mut();
        progress.settled = Some(result);
        progress.is_pending = false;
        progress.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Begins write transactions: `database.transaction(store, "readwrite", { durability })`. `idb` lacks the third
/// argument, and `web-sys` has it only behind a compiler flag. Built once, because each string that goes to JavaScript
/// is copied.
pub(super) struct WriteWay {
    /// The name of the method. It is looked up each time, because tools that instrument a page may replace the method
    /// at any time.
    transaction: JsValue,
    store: JsValue,
    mode: JsValue,
    options: JsValue,
}

impl WriteWay {
    /// Shared by all connections.
    pub(super) fn new(durability: Durability) -> Result<WriteWay, JsValue> {
        let options = Object::new();
        Reflect::set(&options, &"durability".into(), &durability.name().into())?;
        let [transaction, store, mode] = ["transaction", STORE_NAME, "readwrite"].map(JsValue::from);
        Ok(WriteWay { transaction, store, mode, options: options.into() })
    }

    fn begin(&self, database: &IdbDatabase) -> Result<IdbTransaction, JsValue> {
        let begin: Function = Reflect::get(database, &self.transaction)?.unchecked_into();
        Ok(begin.call3(database, &self.store, &self.mode, &self.options)?.unchecked_into())
    }
}
