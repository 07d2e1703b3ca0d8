//! Fetches stored journal records in few requests, because a context that has just been opened needs hundreds of them.

use crate::engine::Engine;
use crate::engine::journal::RecordKey;
use crate::engine::store::keyspace::{self, CollectionId};
use crate::engine::store::pages::go_on;
use crate::error::Result;
use crate::listed::IntoList;
use crate::storage::{Bytes, KeyRange, Page};

/// Shorter runs of records are fetched one by one.
const RUN_MIN: usize = 8;

impl Engine {
    /// The values of `wanted`, in that order; `None` for records that are gone. Both lists ascend. `listed` are the
    /// records in storage, and `brought` holds the values that came with their keys: those that are not empty.
    ///
    /// Errors: those of storage.
    pub(in crate::engine) async fn journal_values(
        &self,
        id: &CollectionId,
        wanted: &[RecordKey],
        listed: &[RecordKey],
        mut brought: Vec<Bytes>,
    ) -> Result<Vec<Option<Bytes>>> {
        // A record is never rewritten, so its value is still the same.
        let known = |record: &RecordKey| {
            let value = brought.get_mut(listed.binary_search(record).ok()?)?;
            (!value.is_empty()).then(|| std::mem::take(value))
        };
        let mut values: Vec<Option<Bytes>> = wanted.iter().map(known).listed();
        let absent = |(record, value): (&RecordKey, &Option<Bytes>)| value.is_none().then_some(*record);
        let left: Vec<RecordKey> = wanted.iter().zip(&values).filter_map(absent).listed();
        if !left.is_empty() {
            let mut fetched = self.fetched(id, &left, listed).await?.into_iter();
            values.iter_mut().filter(|value| value.is_none()).for_each(|value| *value = fetched.next().flatten());
        }
        Ok(values)
    }

    async fn fetched(
        &self,
        id: &CollectionId,
        wanted: &[RecordKey],
        listed: &[RecordKey],
    ) -> Result<Vec<Option<Bytes>>> {
        let key = |(context, seq): &RecordKey| keyspace::journal(id, context, *seq);
        let keys: Vec<Bytes> = wanted.iter().map(key).listed();
        let runs = runs_of(wanted, listed);
        if wanted.len() < RUN_MIN * runs.len() {
            return self.storage.get_many(&keys).await;
        }
        let end = |last: &RecordKey| [&key(last)[..], &[0]].concat();
        let mut ranges: Vec<_> =
            runs.iter().map(|(first, last)| KeyRange { start: key(first), end: end(last) }).listed();
        // One more entry than expected shows whether that was all.
        let page = Page { entries_max: wanted.len() + 1, keys_only: false };
        let mut entries = Vec::with_capacity(page.entries_max);
        loop {
            let found = self.storage.scan(&ranges, page).await?;
            let done = found.len() < page.entries_max;
            entries.extend(found);
            match entries.last().filter(|_| !done) {
                Some(last) => go_on(&mut ranges, &last.key),
                None => break,
            }
        }
        let mut entries = entries.into_iter().peekable();
        let value = |key: &Bytes| {
            while entries.next_if(|entry| entry.key < *key).is_some() {}
            entries.next_if(|entry| entry.key == *key).map(|entry| entry.value)
        };
        Ok(keys.iter().map(value).listed())
    }
}

/// The first and the last record of each run in `wanted` that is also a run in `listed`, within one context.
fn runs_of(wanted: &[RecordKey], listed: &[RecordKey]) -> Vec<(RecordKey, RecordKey)> {
    let mut runs: Vec<(RecordKey, RecordKey)> = Vec::new();
    let mut next = None;
    for record in wanted {
        let at = listed.partition_point(|known| known < record);
        match runs.last_mut().filter(|(first, _)| next == Some(record) && first.0 == record.0) {
            Some((_, last)) => *last = *record,
            None => runs.push((*record, *record)),
        }
        next = listed.get(at + 1);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_records_are_fetched_together() {
        let [a, b] = [[1; 8], [2; 8]];
        let listed = [(a, 1), (a, 2), (a, 5), (a, 6), (b, 0), (b, 1)];
        assert_eq!(runs_of(&listed, &listed), [((a, 1), (a, 6)), ((b, 0), (b, 1))]);
        assert_eq!(
            runs_of(&[(a, 1), (a, 5), (a, 6), (b, 1)], &listed),
            [((a, 1), (a, 1)), ((a, 5), (a, 6)), ((b, 1), (b, 1))]
        );
        assert_eq!(runs_of(&[], &listed), []);
    }
}
