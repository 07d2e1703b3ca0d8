//! The one error type: a server code, a message, nothing else.
//!
//! The contract with users is the code, so an error is a struct with a code and not an enum of sixty cases.

use std::fmt;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Error codes of the MongoDB server that this engine answers with, sorted by number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name = $number,)*
        }

        impl ErrorCode {
            /// The server's `codeName`: the symbolic name, or `Location<code>` for bare numbers.
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$name => stringify!($name),)*
                }
            }

            /// Every code, in ascending order.
            pub fn all() -> &'static [ErrorCode] {
                &[$(ErrorCode::$name,)*]
            }
        }
    };
}

error_codes! {
    /// A broken invariant of our own.
    InternalError = 1,
    /// A value that cannot be accepted: a missing time, an unknown operator, a malformed block.
    BadValue = 2,
    /// A command or document that does not parse.
    FailedToParse = 9,
    /// A cursor used under another collection's name.
    Unauthorized = 13,
    /// A stored document or an argument of the wrong BSON type.
    TypeMismatch = 14,
    /// A list that is empty or too long.
    InvalidLength = 16,
    /// An operation that the target does not allow.
    IllegalOperation = 20,
    /// Bytes that are not BSON.
    InvalidBSON = 22,
    /// No such collection.
    NamespaceNotFound = 26,
    /// An index that does not exist.
    IndexNotFound = 27,
    /// No such cursor.
    CursorNotFound = 43,
    /// The name is taken, or taken with other options.
    NamespaceExists = 48,
    /// No such command.
    CommandNotFound = 59,
    /// Options that contradict each other or are not allowed here.
    InvalidOptions = 72,
    /// A malformed collection name.
    InvalidNamespace = 73,
    /// A storage operation failed for a reason of its own.
    OperationFailed = 96,
    /// A guard of a storage commit failed: somebody else wrote first. Retried internally.
    WriteConflict = 112,
    /// A malformed bucket document written directly.
    DocumentValidationFailure = 121,
    /// A find option that a time-series collection cannot express.
    InvalidPipelineOperator = 168,
    /// Stored bytes that break the format.
    DataCorruptionDetected = 246,
    /// A document beyond 16 MiB.
    BSONObjectTooLarge = 10334,
    /// A key that must not exist does.
    DuplicateKey = 11000,
    /// The database was closed.
    InterruptedAtShutdown = 11600,
    /// A second getMore while the first one runs.
    CursorInUse = 12051,
    /// The storage has no room left (a browser's quota).
    OutOfDiskSpace = 14031,
    /// A `sort` that is not a document.
    Location15973 = 15973,
    /// A sort direction that is neither 1 nor -1.
    Location15975 = 15975,
    /// A sort without keys.
    Location15976 = 15976,
    /// Two projection paths collide.
    Location31249 = 31249,
    /// A projection names a path twice, once as a prefix.
    Location31250 = 31250,
    /// An inclusion inside an exclusion projection.
    Location31253 = 31253,
    /// An exclusion inside an inclusion projection.
    Location31254 = 31254,
    /// An empty path component.
    Location40352 = 40352,
    /// A required field of a command is missing.
    IDLFailedToParse = 40414,
    /// A command has a field that it does not know.
    IDLUnknownField = 40415,
    /// Negative `limit`, `skip` or `batchSize`.
    Location51024 = 51024,
    /// Options in `$regex` and, before it, in `$options`.
    Location51074 = 51074,
    /// Options in `$regex` and, behind it, in `$options`.
    Location51075 = 51075,
    /// `$regex` pattern that does not compile.
    Location51091 = 51091,
    /// An option that regular expressions do not have.
    Location51108 = 51108,
    /// A `$near` operator on a time-series collection.
    Location5626500 = 5626500,
    /// A bucket id could not be found within the retries.
    Location6130900 = 6130900,
    /// A document names the same top-level field twice.
    Location12602102 = 12602102,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What went wrong: the server's code and a sentence that names the field and the offending value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The server's code.
    pub code: ErrorCode,
    /// A sentence without a final stop.
    pub message: String,
}

impl Error {
    /// An error with `code`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error { code, message: message.into() }
    }

    /// A value that cannot be accepted.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::BadValue, message)
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

    /// A broken invariant of our own.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InternalError, message)
    }

    /// A guard that failed.
    pub fn write_conflict(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::WriteConflict, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code.name(), self.code as i32, self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(ErrorCode::all().windows(2).all(|w| (w[0] as i32) < (w[1] as i32)));
    }

    #[test]
    fn bare_locations_are_named_by_their_number() {
        for code in ErrorCode::all() {
            if let Some(number) = code.name().strip_prefix("Location") {
                assert_eq!(number.parse::<i32>().unwrap(), *code as i32);
            }
        }
    }
}
