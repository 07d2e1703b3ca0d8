//! What a DOMException means for an operation: the error for the caller, and what is known of its effect.

use wasm_bindgen::JsValue;
use web_sys::DomException;

use crate::error::{Error, ErrorCode};
use crate::storage::thrown::{self, describe};

/// Why an operation did not succeed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// A definite answer: nothing was written, and asking again would give the same.
    Refused(Error),
    /// The connection was dead before the transaction could begin: nothing was written.
    Unsent(Error),
    /// The transaction ended for a reason that is neither ours nor definite: a commit may have taken place or not.
    Unknown(Error),
}

impl Failure {
    /// From what a call into IndexedDB has thrown, before its transaction could commit.
    pub(super) fn thrown(thrown: &JsValue) -> Failure {
        let (name, message) = describe(thrown);
        let error = error(&name, &message);
        if is_transient(&name) { Failure::Unsent(error) } else { Failure::Refused(error) }
    }

    /// From what reading the answer to a request has thrown: its transaction may have committed.
    pub(super) fn unread(thrown: &JsValue) -> Failure {
        let (name, message) = describe(thrown);
        Failure::Unknown(error(&name, &message))
    }

    /// From the error of a request, or of a transaction that was aborted; `None` if it gives no reason.
    pub(super) fn aborted(reason: Option<DomException>) -> Failure {
        let (name, message) = match reason {
            Some(reason) => (reason.name(), reason.message()),
            None => ("AbortError".to_owned(), "the transaction was aborted without a reason".to_owned()),
        };
        let error = error(&name, &message);
        if is_transient(&name) { Failure::Unknown(error) } else { Failure::Refused(error) }
    }

    pub(super) fn is_worth_another_connection(&self) -> bool {
        !matches!(self, Failure::Refused(_))
    }

    pub(super) fn may_have_committed(&self) -> bool {
        matches!(self, Failure::Unknown(_))
    }

    pub(super) fn into_error(self) -> Error {
        match self {
            Failure::Refused(error) | Failure::Unsent(error) | Failure::Unknown(error) => error,
        }
    }
}

/// From what `idb` answers about a connection.
pub(super) fn connection_error(error: ::idb::Error) -> Error {
    match error {
        ::idb::Error::IndexedDbNotFound(_) => Error::new(
            ErrorCode::IllegalOperation,
            "This runtime has no IndexedDB; open the database with another storage, for instance memory",
        ),
        ::idb::Error::DomException(exception) => self::error(&exception.name(), &exception.message()),
        ::idb::Error::IndexedDbOpenFailed(thrown) | ::idb::Error::IndexedDbDeleteFailed(thrown) => {
            let (name, message) = describe(&thrown);
            self::error(&name, &message)
        }
        // Nothing that a page could act on, and nothing that an opening is known to give: the texts of `idb` for its sixty kinds
        // of errors would be five kilobytes of the module.
        _ => Error::new(ErrorCode::OperationFailed, "IndexedDB gave an answer that it should not give"),
    }
}

/// An error that says what IndexedDB said.
fn error(name: &str, message: &str) -> Error {
    thrown::named("IndexedDB", name, message)
}

/// What a dying connection gives for a reason; browsers differ, and none of these names says that nothing was written.
fn is_transient(name: &str) -> bool {
    matches!(name, "AbortError" | "InvalidStateError" | "TransactionInactiveError" | "UnknownError")
}
