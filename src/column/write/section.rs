//! Writes a section: objects of one shape, with one stream for each scalar.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::selector::{RLE_SELECTOR, RUN_UNIT, WordLayout};
use super::reference;
use super::stream::StreamWriter;
use crate::listed::IntoList;
use crate::value::{Doc, DocBuf, Kind, value_len};

/// First byte of a section of objects.
const OBJECTS: u8 = 0xF1;
/// First byte of a section of arrays.
const ARRAYS: u8 = 0xF2;

/// Collects objects or arrays. The first ones wait, because they may still widen the reference.
#[derive(Clone, Debug)]
pub struct SectionWriter {
    /// Object or array.
    kind: Kind,
    reference: DocBuf,
    has_empty: bool,
    /// Waiting objects, each with the number of missing elements after it.
    waiting: Vec<(DocBuf, usize)>,
    /// How many elements these are.
    waiting_count: usize,
    /// One stream for each scalar of the reference. Empty until the reference is fixed.
    streams: Vec<StreamWriter>,
}

impl SectionWriter {
    /// A section that begins with `object`, which must contain a scalar. All its elements are of `kind`.
    pub fn new(kind: Kind, object: Doc<'_>) -> SectionWriter {
        let object = object.to_owned();
        SectionWriter {
            kind,
            has_empty: reference::has_empty(object.view()),
            reference: object.clone(),
            waiting: vec![(object, 0)],
            waiting_count: 1,
            streams: Vec::new(),
        }
    }

    /// Appends an object. False if it does not fit; then the section must end.
    pub fn push(&mut self, kind: Kind, object: Doc<'_>) -> bool {
        if kind != self.kind {
            return false;
        }
        let mut visited = 0_usize;
        let follows = reference::walk(self.reference.view(), object, &mut |_| visited += 1);
        if !self.streams.is_empty() {
            if follows {
                self.feed(object);
            }
            return follows;
        }
        if !follows {
            let Some(merged) = reference::merge(self.reference.view(), object) else { return false };
            self.reference = merged;
        }
        // The format counts every scalar that the walk visits, even if the walk fails.
        if 2 * visited >= self.waiting_count {
            self.waiting.push((object.to_owned(), 0));
            self.waiting_count += 1;
        } else {
            self.fix();
            self.feed(object);
        }
        true
    }

    /// Appends missing elements. False if they would read back as objects of empty objects; then the section must end.
    pub fn skip(&mut self, count: usize) -> bool {
        if self.has_empty {
            return false;
        }
        if self.streams.is_empty() {
            if let Some(last) = self.waiting.last_mut() {
                last.1 += count;
            }
            self.waiting_count += count;
        } else {
            self.streams.iter_mut().for_each(|stream| stream.skip(count));
        }
        true
    }

    /// Fixes the reference and begins the streams.
    fn fix(&mut self) {
        begin_streams(self.reference.view(), &mut self.streams);
        for (object, missing) in std::mem::take(&mut self.waiting) {
            self.feed(object.view());
            self.streams.iter_mut().for_each(|stream| stream.skip(missing));
        }
    }

    fn feed(&mut self, object: Doc<'_>) {
        let mut streams = self.streams.iter_mut();
        let follows = reference::walk(self.reference.view(), object, &mut |value| {
            if let Some(stream) = streams.next() {
                match value {
                    Some(value) => stream.push(value),
                    None => stream.skip(1),
                }
            }
        });
        debug_assert!(follows, "collected objects follow the reference");
    }

    /// Appends the whole section.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if self.streams.is_empty() {
            self.fix();
        }
        out.push(if self.kind == Kind::Array { ARRAYS } else { OBJECTS });
        out.extend_from_slice(self.reference.view().as_bytes());
        let streams: Vec<Vec<u8>> = self.streams.into_iter().map(StreamWriter::finish).listed();
        // A reader that decodes object by object needs the next item of the stream with the fewest elements so far.
        let mut heap: BinaryHeap<_> = (0..streams.len()).map(|index| Reverse((0_usize, index, 0_usize))).collect();
        while let Some(Reverse((elements, index, at))) = heap.pop() {
            let rest = streams.get(index).and_then(|bytes| bytes.get(at..)).unwrap_or_default();
            if let Some((len, count)) = item(rest) {
                out.extend_from_slice(rest.get(..len).unwrap_or_default());
                heap.push(Reverse((elements + count, index, at + len)));
            }
        }
        out.push(0);
    }
}

/// One stream for each scalar of the reference, starting after that scalar.
fn begin_streams(reference: Doc<'_>, streams: &mut Vec<StreamWriter>) {
    for (_, value) in reference {
        match value.as_container() {
            Some(inner) => begin_streams(inner, streams),
            None => streams.push(StreamWriter::after(value)),
        }
    }
}

/// Length and element count of the item at the start of `bytes`, which this crate has written. `None` at the end.
fn item(bytes: &[u8]) -> Option<(usize, usize)> {
    let (first, rest) = bytes.split_first()?;
    if let Some(kind) = Kind::from_byte(*first) {
        return Some((2 + value_len(kind, rest.get(1..)?).ok()?, 1));
    }
    let words = usize::from(first & 0x0F) + 1;
    let count = rest.chunks_exact(8).take(words).map(elements_of).sum();
    Some((1 + 8 * words, count))
}

fn elements_of(word: &[u8]) -> usize {
    let word = word.try_into().map_or(0, u64::from_le_bytes);
    if word & 15 == RLE_SELECTOR {
        return ((word >> 4 & 15) as usize + 1) * RUN_UNIT;
    }
    WordLayout::of(word).map_or(0, |layout| usize::from(layout.slots))
}
