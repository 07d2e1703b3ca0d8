//! Point reads and scans: one transaction each, with requests in as few turns as possible.

use js_sys::{Array, ArrayBuffer, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{IdbDatabase, IdbKeyRange, IdbRequest};

use super::failure::IdbFailure;
use super::transaction::Running;
use crate::error::Error;
use crate::listed::IntoList;
use crate::storage::{Bytes, Entry, KeyRange, Page};

/// Values of a range that are requested together with its keys, before their size is known.
const SHARE_MAX: usize = 8;
/// Target size of the answer to one request. Chromium takes three times as long for 3 MB in one answer as in answers of
/// 128 KiB; for small values, fewer requests are better.
const ANSWER_SIZE_BYTES: usize = 128 * 1024;
/// Minimum number of values per request, however large they are.
const ANSWER_VALUES_MIN: usize = 4;
/// Values of the range ahead that come in the first turn, whatever their size.
const AHEAD_VALUES: usize = 64;
/// From so many keys on, a look at the keys between them costs little.
const NEAR_KEYS_MIN: usize = 16;
/// Maximum number of keys in one turn over several ranges; it bounds the memory besides the page itself.
const TURN_KEYS_MAX: usize = 1 << 16;

/// Values of `keys` in the order asked.
///
/// A request costs as much as several small values. So the keys between the least and the greatest are listed first, and
/// if most of them are wanted, they are read as a range.
pub(super) async fn get_many(database: &IdbDatabase, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, IdbFailure> {
    let (Some(first), Some(last)) = (keys.iter().min(), keys.iter().max()) else { return Ok(Vec::new()) };
    let page = Page { entries_max: keys.len() + keys.len() / 4, keys_only: true };
    let mut scan = RangeScan { running: Running::read(database)?, page, ahead: None, entries: Vec::new() };
    if keys.len() >= NEAR_KEYS_MIN {
        let range = KeyRange { start: first.clone(), end: [&last[..], &[0]].concat() };
        for keys_only in [true, false] {
            (scan.page.keys_only, scan.entries) = (keys_only, Vec::new());
            scan.turn(&[&range], !keys_only).await?;
            if scan.room() == 0 {
                break;
            }
        }
        if scan.room() > 0 {
            let place = |key: &Bytes| scan.entries.binary_search_by(|entry| entry.key.cmp(key)).ok();
            let value = |key: &Bytes| scan.entries.get(place(key)?).map(|entry| entry.value.clone());
            return Ok(keys.iter().map(value).collect());
        }
    }
    let running = scan.running;
    let requests = keys.iter().map(|key| running.store.get(&js_bytes(key))).try_listed().map_err(thrown)?;
    running.seal();
    if let Some(last) = requests.last() {
        running.answered(last).await?;
    }
    requests
        .iter()
        .map(|request| {
            let value = result_of(request)?;
            if value.is_undefined() { Ok(None) } else { bytes(&value).map(Some) }
        })
        .try_listed()
}

/// Reads a page of `ranges`.
///
/// A turn asks several ranges at once, each for the keys of the whole page and for its share of the values. A second
/// turn fetches what a range has beyond its share, by exact counts. So a range of few entries takes one turn, and so do
/// many ranges with an entry or two each; and what is read in vain is never more than a page. All values of `ahead`
/// come with the keys, even if the page is for keys only.
pub(super) async fn scan(
    database: &IdbDatabase,
    ranges: &[KeyRange],
    page: Page,
    ahead: Option<&KeyRange>,
) -> Result<Vec<Entry>, IdbFailure> {
    let ranges: Vec<&KeyRange> = ranges.iter().filter(|range| !range.is_empty()).collect();
    if ranges.is_empty() || page.entries_max == 0 {
        return Ok(Vec::new());
    }
    let mut scan = RangeScan { running: Running::read(database)?, page, ahead, entries: Vec::new() };
    let mut rest = ranges.as_slice();
    while !rest.is_empty() && scan.room() > 0 {
        let ranges_max = scan.room().min((TURN_KEYS_MAX / scan.room()).max(1));
        let (turn, later) = rest.split_at(rest.len().min(ranges_max));
        scan.turn(turn, later.is_empty()).await?;
        rest = later;
    }
    Ok(scan.entries)
}

/// A scan under way.
struct RangeScan<'a> {
    running: Running,
    page: Page,
    ahead: Option<&'a KeyRange>,
    entries: Vec<Entry>,
}

/// The requests of a turn to one range.
struct RangeRequests<'a> {
    range: &'a KeyRange,
    keys: IdbRequest,
    /// The maximum number of values, and their request. Absent if only keys are wanted.
    values: Option<(usize, IdbRequest)>,
}

/// Entries of one range whose values did not come with a share.
struct Missing<'a> {
    range: &'a KeyRange,
    first: usize,
    end: usize,
    /// Number of entries before them whose values have come.
    share: usize,
}

impl RangeScan<'_> {
    fn room(&self) -> usize {
        self.page.entries_max - self.entries.len()
    }

    /// Appends the entries of `ranges`, of which there must be at least one, as far as there is room.
    async fn turn(&mut self, ranges: &[&KeyRange], is_last: bool) -> Result<(), IdbFailure> {
        let share = (2 * self.room() / ranges.len()).clamp(1, SHARE_MAX.min(self.room()));
        let asked = ranges.iter().map(|range| self.ask(range, share)).try_listed().map_err(thrown)?;
        let Some(last) = asked.last() else { return Ok(()) };
        let is_all = |asked: &RangeRequests<'_>| asked.values.as_ref().is_none_or(|(share, _)| *share == self.room());
        if is_last && asked.iter().all(is_all) {
            self.running.seal();
        }
        self.running.answered(last.values.as_ref().map_or(&last.keys, |(_, values)| values)).await?;
        let missing = self.take(&asked)?;
        self.fetch(&missing, is_last || self.room() == 0).await
    }

    fn ask<'a>(&self, range: &'a KeyRange, share: usize) -> Result<RangeRequests<'a>, JsValue> {
        let store = &self.running.store;
        let query = JsValue::from(js_range(&range.start, &range.end)?);
        let keys = store.get_all_keys_with_key_and_limit(&query, limit(self.room()))?;
        let share = match self.page.keys_only {
            false => Some(share),
            true => self.ahead.filter(|ahead| *ahead == range).map(|_| AHEAD_VALUES.min(self.room())),
        };
        let values = match share {
            Some(share) => Some((share, store.get_all_with_key_and_limit(&query, limit(share))?)),
            None => None,
        };
        Ok(RangeRequests { range, keys, values })
    }

    /// Appends the keys of an answer, up to the page, with the values that came with them.
    fn take<'a>(&mut self, asked: &[RangeRequests<'a>]) -> Result<Vec<Missing<'a>>, IdbFailure> {
        let mut missing = Vec::new();
        for RangeRequests { range, keys, values } in asked {
            let first = self.entries.len();
            let keys: Array = result_of(keys)?.unchecked_into();
            for key in keys.iter().take(self.room()) {
                self.entries.push(Entry { key: bytes(&key)?, value: Bytes::new() });
            }
            if let Some((share, values)) = values {
                self.fill(first, values)?;
                if first + share < self.entries.len() {
                    missing.push(Missing { range, first: first + share, end: self.entries.len(), share: *share });
                }
            }
            if self.room() == 0 {
                break;
            }
        }
        Ok(missing)
    }

    /// Fetches the missing values, in answers of the target size.
    async fn fetch(&mut self, missing: &[Missing<'_>], is_last: bool) -> Result<(), IdbFailure> {
        if missing.is_empty() {
            return Ok(());
        }
        let count = self.answer_values(missing);
        let mut requests = Vec::new();
        for Missing { range, first, end, .. } in missing {
            for begin in (*first..*end).step_by(count) {
                let Some(entry) = self.entries.get(begin) else { break };
                let query = js_range(&entry.key, &range.end).map_err(thrown)?;
                let count = limit(count.min(end - begin));
                let request = self.running.store.get_all_with_key_and_limit(&query, count).map_err(thrown)?;
                requests.push((begin, request));
            }
        }
        if is_last {
            self.running.seal();
        }
        let Some((_, last)) = requests.last() else { return Ok(()) };
        self.running.answered(last).await?;
        requests.iter().try_for_each(|(first, values)| self.fill(*first, values))
    }

    /// How many values make an answer of the target size, judging by the shares that have come.
    fn answer_values(&self, missing: &[Missing<'_>]) -> usize {
        let before = |missing: &Missing<'_>| self.entries.get(missing.first - missing.share..missing.first);
        let seen = missing.iter().filter_map(before).flatten();
        let (count, size_bytes) = seen.fold((0, 0), |(count, size), entry| (count + 1, size + entry.value.len()));
        (ANSWER_SIZE_BYTES * count / size_bytes.max(1)).max(ANSWER_VALUES_MIN)
    }

    /// Fills in the values of the entries from `first` on.
    fn fill(&mut self, first: usize, values: &IdbRequest) -> Result<(), IdbFailure> {
        let values: Array = result_of(values)?.unchecked_into();
        for (entry, value) in self.entries.iter_mut().skip(first).zip(values.iter()) {
            entry.value = bytes(&value)?;
        }
        Ok(())
    }
}

fn thrown(thrown: JsValue) -> IdbFailure {
    IdbFailure::thrown(&thrown)
}

fn result_of(request: &IdbRequest) -> Result<JsValue, IdbFailure> {
    request.result().map_err(thrown)
}

/// Counts are 32 bits wide, and zero would mean no limit.
pub(super) fn limit(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// A copy for JavaScript. With a view, IndexedDB would clone the whole memory of the module. An `ArrayBuffer` is read
/// and written about a tenth faster than a typed array.
pub(super) fn js_bytes(bytes: &[u8]) -> JsValue {
    Uint8Array::from(bytes).buffer().into()
}

/// The range `[start, end)`; throws if it is empty.
pub(super) fn js_range(start: &[u8], end: &[u8]) -> Result<IdbKeyRange, JsValue> {
    IdbKeyRange::bound_with_lower_open_and_upper_open(&js_bytes(start), &js_bytes(end), false, true)
}

/// The bytes of a key or a value, copied once.
pub(super) fn bytes(value: &JsValue) -> Result<Bytes, IdbFailure> {
    if value.is_instance_of::<ArrayBuffer>() {
        return Ok(Uint8Array::new(value).to_vec());
    }
    Err(IdbFailure::Refused(Error::corrupt("An entry of the IndexedDB database is not an ArrayBuffer")))
}
