//! The items of a column, parsed from its bytes.

use timepail::value::{Kind, Value};

/// An item of a column.
pub enum Item {
    /// The end of the open section, or else of the column.
    End,
    /// Type byte and value bytes.
    Literal(Vec<u8>),
    /// The high nibble of a control byte and the words that follow, at least one.
    Control { nibble: u8, words: Vec<u64> },
    /// The start byte of a section; its reference follows.
    Section(u8),
}

/// A column and the read position.
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn item(&mut self) -> Result<Item, String> {
        let first = self.take(1)?[0];
        match first {
            0x00 => Ok(Item::End),
            0x01..=0x13 | 0x7F | 0xFF => {
                if self.take(1)? != [0] {
                    return Err("a literal with a name".into());
                }
                self.value(first).map(Item::Literal)
            }
            0x80..=0xDF => {
                let words = (0..=first & 15).map(|_| Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap())));
                let words = words.collect::<Result<Vec<u64>, String>>()?;
                if self.is_at_end() {
                    return Err("no end behind a control".into());
                }
                Ok(Item::Control { nibble: first >> 4, words })
            }
            0xF0..=0xF2 => Ok(Item::Section(first)),
            _ => Err(format!("no item begins with {first:#04x}")),
        }
    }

    /// Type byte and bytes of the next value, which has this type.
    pub fn value(&mut self, kind: u8) -> Result<Vec<u8>, String> {
        let length = value_length(kind, &self.bytes[self.at..])?;
        let element = [&[kind], self.take(length)?].concat();
        check(&element)?;
        Ok(element)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let taken = self.bytes[self.at..].get(..length).ok_or("the column is cut off")?;
        self.at += length;
        Ok(taken)
    }
}

/// Refuses an element that is not valid BSON, texts in UTF-8 included.
pub fn check(element: &[u8]) -> Result<(), String> {
    let kind = Kind::from_byte(element[0]).ok_or("no such type")?;
    Value::parse(kind, &element[1..]).map(|_| ()).map_err(timepail::error::Error::into_message)
}

/// The length of the value at the start of `bytes`; it may exceed their number.
fn value_length(kind: u8, bytes: &[u8]) -> Result<usize, String> {
    let prefix = || -> Result<usize, String> {
        let prefix = bytes.get(..4).ok_or("a length is cut off")?;
        usize::try_from(i32::from_le_bytes(prefix.try_into().unwrap())).map_err(|_| "a negative length".into())
    };
    Ok(match kind {
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        0x08 => 1,
        0x10 => 4,
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x07 => 12,
        0x13 => 16,
        0x02 | 0x0D | 0x0E => 4 + prefix()?,
        0x05 => 5 + prefix()?,
        0x0C => 16 + prefix()?,
        0x03 | 0x04 | 0x0F => prefix()?,
        0x0B => {
            let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
            ends.nth(1).ok_or("a regular expression without end")?.0 + 1
        }
        _ => return Err(format!("no type {kind:#04x}")),
    })
}
