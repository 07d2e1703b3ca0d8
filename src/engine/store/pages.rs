//! Keys of several ranges, page by page.

use crate::engine::Engine;
use crate::error::Result;
use crate::limits::KEYS_PAGE;
use crate::listed::IntoList;
use crate::storage::{Bytes, Entry, KeyRange, Page};

impl Engine {
    /// Every key of `ranges`, range after range.
    ///
    /// Errors: those of storage.
    pub(in crate::engine) async fn scan_keys(&self, ranges: Vec<KeyRange>) -> Result<Vec<Bytes>> {
        Ok(self.scan_ahead(ranges, None).await?.into_iter().map(|entry| entry.key).listed())
    }

    /// The same, with values of the range at `ahead`, as far as storage brings them.
    pub(in crate::engine) async fn scan_ahead(
        &self,
        mut ranges: Vec<KeyRange>,
        mut ahead: Option<usize>,
    ) -> Result<Vec<Entry>> {
        let page = Page { entries_max: KEYS_PAGE, keys_only: true };
        let mut entries = Vec::new();
        loop {
            let found = match ahead.take() {
                Some(place) => self.storage.scan_ahead(&ranges, page.entries_max, place).await?,
                None => self.storage.scan(&ranges, page).await?,
            };
            let done = found.len() < page.entries_max;
            entries.extend(found);
            let Some(last) = entries.last().filter(|_| !done) else { return Ok(entries) };
            go_on(&mut ranges, &last.key);
        }
    }
}

/// What is left of `ranges` after `last`, the last key of a page: the range that holds it continues after it, and
/// earlier ranges are done.
pub(in crate::engine) fn go_on(ranges: &mut Vec<KeyRange>, last: &[u8]) {
    let at = ranges.iter().position(|range| range.start[..] <= *last && *last < range.end[..]).unwrap_or(ranges.len());
    ranges.drain(..at);
    if let Some(range) = ranges.first_mut() {
        range.start = [last, &[0]].concat();
    }
}
