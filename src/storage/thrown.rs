//! Converts JavaScript exceptions to errors.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::DomException;

use crate::error::{Error, ErrorCode};

/// An error with the words of `who`.
pub(super) fn error(who: &str, thrown: &JsValue) -> Error {
    let (name, message) = describe(thrown);
    named(who, &name, &message)
}

/// The same for an error whose name and message are known.
pub(super) fn named(who: &str, name: &str, message: &str) -> Error {
    let code = match name {
        "QuotaExceededError" => ErrorCode::OutOfDiskSpace,
        "ConstraintError" => ErrorCode::WriteConflict,
        _ => ErrorCode::OperationFailed,
    };
    Error::new(code, [who, " answered ", name, ": ", message.trim_end_matches('.')].concat())
}

/// Name and message of an exception.
pub(super) fn describe(thrown: &JsValue) -> (String, String) {
    if let Some(exception) = thrown.dyn_ref::<DomException>() {
        return (exception.name(), exception.message());
    }
    if let Some(error) = thrown.dyn_ref::<js_sys::Error>() {
        return (error.name().into(), error.message().into());
    }
    // `Debug` is avoided, because it pulls in a kilobyte of JavaScript.
    ("Error".to_owned(), thrown.as_string().unwrap_or_else(|| "an exception that is not an Error".to_owned()))
}
