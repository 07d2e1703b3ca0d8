//! Presence of the rows of a column being read. It is not stored while all rows are present.

use crate::block::Bitmap;

/// Presence so far, which is updated only when rows are absent; rows in between are present.
#[derive(Debug, Default)]
pub struct Presence {
    bits: Option<Bitmap>,
}

impl Presence {
    /// Appends `count` absent rows after `rows` rows.
    pub fn push_absent(&mut self, rows: usize, count: usize) {
        self.up_to(rows).push_many(false, count);
    }

    /// Appends `count` rows after `rows` rows; each is present if its bit is set.
    pub fn push_bits(&mut self, rows: usize, bits: u64, count: usize) {
        self.up_to(rows).push_bits(bits, count);
    }

    /// The presence of `rows` rows.
    pub fn finish(mut self, rows: usize) -> Option<Bitmap> {
        self.bits.take().map(|mut bits| {
            bits.push_many(true, rows.saturating_sub(bits.len()));
            bits
        })
    }

    fn up_to(&mut self, rows: usize) -> &mut Bitmap {
        let bits = self.bits.get_or_insert_with(|| Bitmap::filled(0, true));
        bits.push_many(true, rows.saturating_sub(bits.len()));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_not_marked_absent_are_present() {
        let mut presence = Presence::default();
        presence.push_absent(2, 1);
        presence.push_bits(4, 0b01, 2);
        let bits = presence.finish(7).unwrap();
        let rows: Vec<bool> = (0..7).map(|row| bits.get(row)).collect();
        assert_eq!(rows, [true, true, false, true, true, false, true]);
        assert_eq!(Presence::default().finish(7), None);
    }
}
