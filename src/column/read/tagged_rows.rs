//! Rows of numbers, dates, booleans and null, of several types: a type byte and a word each.

use kernels::tagged;

use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData, VarData};
use crate::value::{Kind, fixed};

/// The rows so far.
pub struct TaggedRows {
    /// Type bytes; 0 where a row has no value.
    kinds: Vec<u8>,
    words: Vec<u64>,
    present: usize,
    /// The last value.
    last: (u8, u64),
}

impl TaggedRows {
    /// Starts with `absent` rows without a value.
    pub fn new(absent: usize) -> TaggedRows {
        TaggedRows { kinds: vec![0; absent], words: vec![0; absent], present: 0, last: (0, 0) }
    }

    /// The word of a value; `None` if values of its type have no word.
    #[inline]
    pub fn word_of(kind: Kind, bytes: &[u8]) -> Option<u64> {
        Some(match kind {
            Kind::Double | Kind::Date | Kind::Int64 => u64::from_le_bytes(fixed(bytes)),
            Kind::Int32 => u32::from_le_bytes(fixed(bytes)).into(),
            Kind::Bool => bytes.first().copied().unwrap_or_default().into(),
            Kind::Null => 0,
            _ => return None,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Appends a row with a value.
    #[inline]
    pub fn push(&mut self, kind: Kind, word: u64) {
        self.last = (kind.byte(), word);
        self.present += 1;
        self.kinds.push(kind.byte());
        self.words.push(word);
    }

    /// Appends rows with the last value, which must exist.
    pub fn push_same(&mut self, count: usize) {
        self.present += count;
        self.kinds.resize(self.kinds.len() + count, self.last.0);
        self.words.resize(self.words.len() + count, self.last.1);
    }

    /// Appends absent rows.
    pub fn push_absent(&mut self, count: usize) {
        self.kinds.resize(self.kinds.len() + count, 0);
        self.words.resize(self.words.len() + count, 0);
    }

    /// The values of all rows with their type bytes; empty for absent ones.
    pub fn values(&self) -> VarData {
        VarData::of_words(&self.kinds, &self.words)
    }

    /// The column, as a dictionary if its values repeat.
    pub fn finish(self) -> Column {
        let rows = self.len();
        if self.present == 0 {
            let mut builder = ColumnBuilder::new();
            builder.push_absent(rows);
            return builder.finish();
        }
        let presence = (self.present < rows).then(|| Bitmap::from_slice(&self.kinds, |kind| *kind != 0));
        if let Some((index, kinds, words)) = tagged::entries(&self.kinds, &self.words, self.present / 2) {
            let values = Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), None);
            return Column::new(ColumnData::Dictionary(index, Box::new(values)), presence);
        }
        Column::new(ColumnData::Bson(self.values()), presence)
    }
}
