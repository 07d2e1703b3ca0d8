//! A future as a promise.

use std::future::Future;
use std::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

/// What a promise is made of. Boxed: `future_to_promise` writes all that it does, and the whole of the future in it, out once
/// more for every type of future, five kilobytes each.
pub type Task = Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>>;

/// Runs `task` and resolves to what it gives.
#[inline(never)]
pub fn promise(task: Task) -> Promise {
    future_to_promise(task)
}
