//! Column errors: what is wrong, and at which offset.

use std::fmt;

/// A column that breaks its format (I1). Callers who know the bucket and the field add their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnError {
    /// Which rule is broken.
    pub reason: &'static str,
    /// Offset of the offending item in the column's bytes.
    pub offset: usize,
}

impl ColumnError {
    /// An error at `offset`.
    pub fn new(reason: &'static str, offset: usize) -> ColumnError {
        ColumnError { reason, offset }
    }
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for ColumnError {}
