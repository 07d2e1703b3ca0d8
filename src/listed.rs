//! Collects items into vectors with half the code of the standard library's `collect`.
//!
//! `collect` contains the work of an iterator twice if it does not know the number of items: once for the first item, which
//! decides whether anything is allocated, and once for all others. Hundreds of places collect, so that is kilobytes.
//! Nor is an iterator asked for the number of its items, which is code, too: the vector grows.

/// Iterators whose items are collected into a vector.
///
/// Where the number of items is known and each item takes nanoseconds, such as for cells, `collect` is faster.
pub trait IntoList: Iterator + Sized {
    /// All items.
    fn listed(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        for item in self {
            items.push(item);
        }
        items
    }

    /// The values of all items, up to the first error.
    ///
    /// Errors: the first one.
    fn try_listed<T, E>(self) -> Result<Vec<T>, E>
    where
        Self: Iterator<Item = Result<T, E>>,
    {
        let mut values = Vec::new();
        for item in self {
            values.push(item?);
        }
        Ok(values)
    }

    /// The values of all items; `None` if one has none.
    fn listed_if_all<T>(self) -> Option<Vec<T>>
    where
        Self: Iterator<Item = Option<T>>,
    {
        let mut values = Vec::new();
        for item in self {
            values.push(item?);
        }
        Some(values)
    }
}

impl<I: Iterator> IntoList for I {}
