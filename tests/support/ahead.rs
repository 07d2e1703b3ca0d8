//! Read-ahead for a storage without its own.

use timepail::error::Result;
use timepail::storage::{Entry, KeyRange, Page, Storage};

/// Keys of `ranges`, and the values of the first two entries of the range at `place`: a part, so that the rest must be requested.
pub async fn two_ahead(
    storage: &dyn Storage,
    ranges: &[KeyRange],
    entries_max: usize,
    place: usize,
) -> Result<Vec<Entry>> {
    let mut entries = storage.scan(ranges, Page { entries_max, keys_only: false }).await?;
    let is_ahead = |entry: &Entry| ranges[place].start <= entry.key && entry.key < ranges[place].end;
    let (ahead, others): (Vec<_>, Vec<_>) = entries.iter_mut().partition(|entry| is_ahead(entry));
    ahead.into_iter().skip(2).chain(others).for_each(|entry| entry.value.clear());
    Ok(entries)
}
