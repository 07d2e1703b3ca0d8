//! What a DOMException means for an operation: the error for the caller, and what is known of the effect.

use wasm_bindgen::JsValue;
use web_sys::DomException;

use crate::error::{Error, ErrorCode};
use crate::storage::thrown::{self, describe};

/// Why an operation failed.
#[derive(Clone, Debug)]
pub(super) enum IdbFailure {
    /// A definite answer: nothing was written, and repeating the operation would give the same.
    Refused(Error),
    /// The connection was dead before the transaction began: nothing was written.
    Unsent(Error),
    /// The transaction ended for an external and indefinite reason: a commit may or may not have taken place.
    Unknown(Error),
}

impl IdbFailure {
    /// For an exception from a call into IndexedDB, before its transaction could commit.
    pub(super) fn thrown(thrown: &JsValue) -> IdbFailure {
        let (name, message) = describe(thrown);
        let error = error(&name, &message);
        if is_transient(&name) { IdbFailure::Unsent(error) } else { IdbFailure::Refused(error) }
    }

    /// For an exception while reading the answer to a request: its transaction may have committed.
    pub(super) fn unread(thrown: &JsValue) -> IdbFailure {
        let (name, message) = describe(thrown);
        IdbFailure::Unknown(error(&name, &message))
    }

    /// For the error of a request or of an aborted transaction; `None` if it gives no reason.
    pub(super) fn aborted(reason: Option<DomException>) -> IdbFailure {
        let (name, message) = match reason {
            Some(reason) => (reason.name(), reason.message()),
            None => ("AbortError".to_owned(), "the transaction was aborted without a reason".to_owned()),
        };
        let error = error(&name, &message);
        if is_transient(&name) { IdbFailure::Unknown(error) } else { IdbFailure::Refused(error) }
    }

    pub(super) fn is_worth_another_connection(&self) -> bool {
        !matches!(self, IdbFailure::Refused(_))
    }

    pub(super) fn may_have_committed(&self) -> bool {
        matches!(self, IdbFailure::Unknown(_))
    }

    pub(super) fn into_error(self) -> Error {
        match self {
            IdbFailure::Refused(error) | IdbFailure::Unsent(error) | IdbFailure::Unknown(error) => error,
        }
    }
}

/// For an error of `idb` about a connection.
pub(super) fn connection_error(error: ::idb::Error) -> Error {
    match error {
        ::idb::Error::IndexedDbNotFound(_) => Error::new(
            ErrorCode::IllegalOperation,
            "This runtime has no IndexedDB; open the database with another storage, such as memory",
        ),
        ::idb::Error::DomException(exception) => self::error(&exception.name(), &exception.message()),
        ::idb::Error::IndexedDbOpenFailed(thrown) | ::idb::Error::IndexedDbDeleteFailed(thrown) => {
            let (name, message) = describe(&thrown);
            self::error(&name, &message)
        }
        // Not known to occur when a database is opened, and nothing that a page could act on. The texts of `idb` for
        // its sixty kinds of errors would add five kilobytes to the module.
        _ => Error::new(ErrorCode::OperationFailed, "Unexpected answer from IndexedDB"),
    }
}

/// An error with IndexedDB's own words.
fn error(name: &str, message: &str) -> Error {
    thrown::named("IndexedDB", name, message)
}

/// Reasons that dying connections give. Browsers differ, and none of these names says that nothing was written.
fn is_transient(name: &str) -> bool {
    matches!(name, "AbortError" | "InvalidStateError" | "TransactionInactiveError" | "UnknownError")
}
