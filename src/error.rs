//! The one error type: a server code and a message.
//!
//! The contract with users is the code, so an error is a struct with a code and not an enum of sixty cases.

mod codes;
mod enumeration;
mod long_codes;

use std::fmt;
use std::ops::Deref;

pub use codes::ErrorCode;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: the server's code, and a sentence that names the field and the offending value.
///
/// One pointer wide: nearly every function passes errors on, and each pays for their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorContent>);

/// The content of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorContent {
    /// The server's code.
    pub code: ErrorCode,
    /// A sentence in sentence case, without a final stop.
    pub message: String,
}

impl Error {
    /// An error with `code`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error(Box::new(ErrorContent { code, message: message.into() }))
    }

    /// The sentence.
    pub fn into_message(self) -> String {
        self.0.message
    }

    /// A value that is not accepted.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::BadValue, message)
    }

    /// An argument that the command does not have.
    ///
    /// Transaction arguments have a code of their own, because there are no transactions.
    pub fn unknown_field(command: &str, name: &str) -> Self {
        let code = match name {
            "autocommit" | "startTransaction" => ErrorCode::OperationNotSupportedInTransaction,
            _ => ErrorCode::IDLUnknownField,
        };
        Error::new(code, ["BSON field '", command, ".", name, "' is an unknown field"].concat())
    }

    /// An argument of the wrong type.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::TypeMismatch, message)
    }

    /// Options that are not allowed.
    pub fn invalid_options(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InvalidOptions, message)
    }

    /// Stored bytes that break the format.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::DataCorruptionDetected, message)
    }

    /// A broken invariant of this crate.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InternalError, message)
    }

    /// True if the command was ended from outside: by `killOp`, or by its time limit.
    pub fn is_interruption(&self) -> bool {
        matches!(self.code, ErrorCode::Interrupted | ErrorCode::MaxTimeMSExpired)
    }

    /// A guard that failed.
    pub fn write_conflict(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::WriteConflict, message)
    }
}

impl Deref for Error {
    type Target = ErrorContent;

    fn deref(&self) -> &ErrorContent {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code.name(), self.code as i32, self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
