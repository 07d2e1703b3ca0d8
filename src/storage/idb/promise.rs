//! Converts a future to a promise.

use std::future::Future;
use std::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

/// The future behind a promise. Boxed: `future_to_promise` is compiled again for every type of future, at five
/// kilobytes each.
pub type Task = Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>>;

/// Runs `task` and resolves to its result.
#[inline(never)]
pub fn promise(task: Task) -> Promise {
    future_to_promise(task)
}
