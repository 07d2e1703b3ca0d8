//! Writes the items of a stream: literals, and controls that grow word by word.

/// Maximum words of a control.
const WORDS_MAX: u8 = 16;
/// No control is open.
const CLOSED: usize = usize::MAX;

/// The bytes of a stream. A control byte counts its words, so it is updated in place while its control is open.
#[derive(Clone, Debug)]
pub struct ControlWriter {
    bytes: Vec<u8>,
    /// Position of the open control's byte.
    open: usize,
}

impl ControlWriter {
    /// A writer without items.
    pub fn new() -> ControlWriter {
        ControlWriter { bytes: Vec::new(), open: CLOSED }
    }

    /// Bytes so far. They grow with every item and every word, and only then.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a word to the open control. Opens a new control if none is open or `nibble` differs.
    pub fn word(&mut self, nibble: u8, word: u64) {
        match self.bytes.get_mut(self.open) {
            Some(control) if *control & 0xF0 == nibble => {
                *control += 1;
                if *control & 0x0F == WORDS_MAX - 1 {
                    self.open = CLOSED;
                }
            }
            _ => {
                self.open = self.bytes.len();
                self.bytes.push(nibble);
            }
        }
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Appends a whole value as an element without a name. Closes the control.
    pub fn literal(&mut self, kind: u8, value: &[u8]) {
        self.close();
        self.bytes.extend_from_slice(&[kind, 0]);
        self.bytes.extend_from_slice(value);
    }

    /// The next word begins a new control.
    pub fn close(&mut self) {
        self.open = CLOSED;
    }

    /// The bytes of the items, for reading, or for appending something that is not an item.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        self.close();
        &mut self.bytes
    }

    /// The bytes of the items.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_takes_sixteen_words_of_one_nibble_and_ends_at_a_literal() {
        let mut controls = ControlWriter::new();
        (0..17).for_each(|_| controls.word(0x80, 0x0E));
        controls.word(0x90, 0x1E);
        controls.literal(8, &[1]);
        controls.word(0x90, 0x2E);
        let word = |low: u8| [low, 0, 0, 0, 0, 0, 0, 0];
        let expected = [&[0x8F][..], &word(0x0E).repeat(16), &[0x80], &word(0x0E), &[0x90], &word(0x1E)].concat();
        let expected = [&expected[..], &[8, 0, 1, 0x90], &word(0x2E)].concat();
        assert_eq!(controls.into_bytes(), expected);
    }
}
