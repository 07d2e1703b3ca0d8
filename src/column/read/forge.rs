//! Builds columns by hand, for tests.

use super::super::error::ColumnError;
use super::super::selector::{BASE, WordLayout};
use super::decode;
use crate::block::Column;
use crate::value::{DocWriter, OwnedValue};

/// A word of `layout` with these slots; `None` is a slot of all ones.
pub fn pack(layout: WordLayout, slots: &[Option<u64>]) -> u64 {
    slots.iter().enumerate().fold(layout.head(), |word, (i, slot)| {
        let bits = layout.slot_bits();
        word | slot.unwrap_or((1 << bits) - 1) << (layout.first_bit() + i as u32 * bits)
    })
}

/// A word of as many plain slots as there are raw values; a layout with that many slots must exist.
pub fn plain(raws: &[Option<u64>]) -> u64 {
    let layout = BASE.iter().find(|layout| usize::from(layout.slots) == raws.len()).unwrap();
    assert!(raws.iter().flatten().all(|raw| *raw < (1 << layout.value_bits) - 1), "{raws:?} does not fit");
    pack(*layout, raws)
}

/// A word of these differences.
pub fn deltas(deltas: &[i64]) -> u64 {
    plain(&deltas.iter().map(|delta| Some(super::super::integer::zigzag(*delta))).collect::<Vec<_>>())
}

/// A run of `steps` times 120 elements.
pub fn run(steps: u64) -> u64 {
    15 | (steps - 1) << 4
}

/// A column, item by item.
#[derive(Clone, Default)]
pub struct Forge {
    pub bytes: Vec<u8>,
}

impl Forge {
    pub fn literal(mut self, value: &OwnedValue) -> Forge {
        let value = value.view();
        self.bytes.extend([value.kind().byte(), 0]);
        self.bytes.extend_from_slice(value.bytes());
        self
    }

    /// A control; the number of words is added to its byte.
    pub fn control(mut self, nibble: u8, words: &[u64]) -> Forge {
        self.bytes.push(nibble | (words.len() as u8 - 1));
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self
    }

    pub fn raw(mut self, bytes: &[u8]) -> Forge {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The start of a section.
    pub fn section(self, start: u8, reference: &OwnedValue) -> Forge {
        self.raw(&[start]).raw(reference.view().bytes())
    }

    /// The end of a section, or of the column.
    pub fn end(self) -> Forge {
        self.raw(&[0])
    }

    pub fn read(&self) -> Result<Column, ColumnError> {
        decode(&self.bytes, 10_000)
    }

    /// The reason and offset with which the column is refused.
    pub fn refusal(&self) -> (&'static str, usize) {
        let error = self.read().unwrap_err();
        (error.reason, error.offset)
    }

    /// Its cells; `None` means absent.
    pub fn cells(&self) -> Vec<Option<OwnedValue>> {
        super::vectors::cells(&self.read().unwrap())
    }
}

/// An object with these fields.
pub fn object(fields: &[(&str, OwnedValue)]) -> OwnedValue {
    let mut writer = DocWriter::new();
    fields.iter().for_each(|(name, value)| {
        writer.value(name, value.view());
    });
    OwnedValue::doc(writer.finish().view())
}

/// An array with the values of an object's fields.
pub fn array(of: &OwnedValue) -> OwnedValue {
    OwnedValue::from_tagged_checked([&[crate::value::Kind::Array.byte()][..], of.view().bytes()].concat())
}

pub fn double(x: f64) -> OwnedValue {
    OwnedValue::double(x)
}

pub fn int(n: i32) -> OwnedValue {
    OwnedValue::int32(n)
}

pub fn string(text: &str) -> OwnedValue {
    OwnedValue::string(text)
}
