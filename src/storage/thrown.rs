//! What JavaScript has thrown, as an error of ours.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::DomException;

use crate::error::{Error, ErrorCode};

/// An error that says what `who` said.
pub(super) fn error(who: &str, thrown: &JsValue) -> Error {
    let (name, message) = describe(thrown);
    named(who, &name, &message)
}

/// The same of an error whose name and message are known.
pub(super) fn named(who: &str, name: &str, message: &str) -> Error {
    let code = match name {
        "QuotaExceededError" => ErrorCode::OutOfDiskSpace,
        "ConstraintError" => ErrorCode::WriteConflict,
        _ => ErrorCode::OperationFailed,
    };
    Error::new(code, [who, " answered ", name, ": ", message.trim_end_matches('.')].concat())
}

/// Name and message of what was thrown.
pub(super) fn describe(thrown: &JsValue) -> (String, String) {
    if let Some(exception) = thrown.dyn_ref::<DomException>() {
        return (exception.name(), exception.message());
    }
    if let Some(error) = thrown.dyn_ref::<js_sys::Error>() {
        return (error.name().into(), error.message().into());
    }
    // Not in the notation of `Debug`: that brings a kilobyte of JavaScript along.
    ("Error".to_owned(), thrown.as_string().unwrap_or_else(|| "something was thrown that is no error".to_owned()))
}
