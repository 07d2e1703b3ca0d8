//! The `_id` of a bucket: its start in seconds, then a counter.

use std::cmp::Ordering;
use std::fmt;

/// Twelve bytes that sort by the bucket's start, as long as all starts lie in the standard range.
///
/// Bytes 0 to 3 are the low 32 bits of the start in whole seconds, bytes 4 to 11 a counter; both big-endian. If the
/// seconds do not fit 32 bits, the highest bit is set, so that such buckets sort last.
#[derive(Clone, Copy)]
pub struct BucketId([u8; 12]);

impl BucketId {
    /// The smallest id.
    pub const MIN: BucketId = BucketId([0; 12]);
    /// The largest id.
    pub const MAX: BucketId = BucketId([0xFF; 12]);

    /// The id of the bucket that starts at `min_time_ms`.
    pub fn new(min_time_ms: i64, counter: u64) -> BucketId {
        let seconds = min_time_ms.div_euclid(1000).to_be_bytes();
        let [high @ .., a, b, c, d] = seconds;
        let extended = if high == [0; 4] { 0 } else { 0x80 };
        BucketId::from_parts([a | extended, b, c, d], counter)
    }

    /// The smallest id of a bucket that starts in the second of `ms`. Times outside 32 bits count as the nearer end of
    /// the range.
    pub fn lowest_at(ms: i64) -> BucketId {
        BucketId::from_parts(clamped_seconds(ms), 0)
    }

    /// The largest id of a bucket that starts in the second of `ms`. Times outside 32 bits count as the nearer end of
    /// the range.
    pub fn highest_at(ms: i64) -> BucketId {
        BucketId::from_parts(clamped_seconds(ms), u64::MAX)
    }

    fn from_parts(time: [u8; 4], counter: u64) -> BucketId {
        let mut bytes = [0; 12];
        let (front, back) = bytes.split_at_mut(4);
        front.copy_from_slice(&time);
        back.copy_from_slice(&counter.to_be_bytes());
        BucketId(bytes)
    }

    /// The smallest and the largest id of the same second.
    pub fn second(&self) -> (BucketId, BucketId) {
        let time = self.time_seconds().to_be_bytes();
        (BucketId::from_parts(time, 0), BucketId::from_parts(time, u64::MAX))
    }

    /// The id with these parts.
    pub fn from_seconds(seconds: u32, counter: u64) -> BucketId {
        BucketId::from_parts(seconds.to_be_bytes(), counter)
    }

    /// An id from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 12]) -> BucketId {
        BucketId(bytes)
    }

    /// The stored bytes.
    pub fn as_bytes(&self) -> &[u8; 12] {
        &self.0
    }

    /// The low 32 bits of the bucket's start in seconds.
    pub fn time_seconds(&self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }

    /// Tells buckets of one second apart.
    pub fn counter(&self) -> u64 {
        self.0.last_chunk().copied().map(u64::from_be_bytes).unwrap_or_default()
    }

    /// True if the start lies outside the standard range.
    pub fn is_extended(&self) -> bool {
        self.time_seconds() > i32::MAX.unsigned_abs()
    }
}

// Two numbers: WebAssembly compares bytes one by one.
impl Ord for BucketId {
    fn cmp(&self, other: &BucketId) -> Ordering {
        match self.time_seconds().cmp(&other.time_seconds()) {
            Ordering::Equal => self.counter().cmp(&other.counter()),
            unequal => unequal,
        }
    }
}

impl PartialOrd for BucketId {
    fn partial_cmp(&self, other: &BucketId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for BucketId {
    fn eq(&self, other: &BucketId) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BucketId {}

fn clamped_seconds(ms: i64) -> [u8; 4] {
    let seconds = ms.div_euclid(1000).clamp(0, i64::from(u32::MAX));
    u32::try_from(seconds).unwrap_or_default().to_be_bytes()
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Generates distinct ids. They differ from those of other contexts with the probability that a random seed gives.
#[derive(Clone, Debug)]
pub struct IdGenerator {
    counter: u64,
}

impl IdGenerator {
    /// A generator whose counter starts at random bits.
    pub fn new(seed: u64) -> IdGenerator {
        IdGenerator { counter: seed }
    }

    /// An id for the bucket that starts at `min_time_ms`.
    pub fn next(&mut self, min_time_ms: i64) -> BucketId {
        self.counter = self.counter.wrapping_add(1);
        BucketId::new(min_time_ms, self.counter)
    }

    /// Restarts the counter at other random bits, after an id turned out to be taken.
    pub fn reseed(&mut self, seed: u64) {
        self.counter = seed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::time::bucket_start_ms;

    #[test]
    fn the_time_bytes_are_the_rounded_seconds_with_a_flag_for_dates_beyond_32_bits() {
        for (seconds, rounded, bytes, extended) in [
            (0, 0, 0x0000_0000, false),
            (0x5FEE_6600, 0x5FEE_6600, 0x5FEE_6600, false),
            (0x7FFF_FFCB, 0x7FFF_FFBC, 0x7FFF_FFBC, false),
            (0x7FFF_FFFF, 0x7FFF_FFF8, 0x7FFF_FFF8, false),
            (-0x3C, -60, 0xFFFF_FFC4, true),
            (-0x167F_0934, -0x167F_0934, 0xE980_F6CC, true),
            (0x8000_0044, 0x8000_0034, 0x8000_0034, true),
            (0x1_0000_002C, 0x1_0000_002C, 0x8000_002C, true),
            (0x1_8000_0024, 0x1_8000_0024, 0x8000_0024, true),
            (0x2_0000_001C, 0x2_0000_001C, 0x8000_001C, true),
        ] {
            let start = bucket_start_ms(seconds * 1000, 60);
            assert_eq!(start, rounded * 1000);
            let id = BucketId::new(start, 7);
            assert_eq!(id.time_seconds(), bytes, "{seconds:#x}");
            assert_eq!(id.is_extended(), extended, "{seconds:#x}");
        }
        assert_eq!(bucket_start_ms(0x7FFF_FFFF * 1000 + 1, 60), 0x7FFF_FFF8 * 1000);
    }

    #[test]
    fn the_counter_is_incremented_before_use_and_stands_after_the_time() {
        let mut ids = IdGenerator::new(0x0102_0304_0506_0707);
        assert_eq!(format!("{}", ids.next(60_000)), "0000003c0102030405060708");
        assert_eq!(format!("{:?}", ids.next(60_000)), "0000003c0102030405060709");
        ids.reseed(u64::MAX);
        assert_eq!(format!("{}", ids.next(-1_000)), "ffffffff0000000000000000");
    }

    #[test]
    fn the_bounds_of_a_second_enclose_every_id_in_it() {
        for ms in [0, 999, 60_000, 2_147_483_647_000] {
            for counter in [0, 1, u64::MAX] {
                let id = BucketId::new(ms, counter);
                assert!(BucketId::lowest_at(ms) <= id && id <= BucketId::highest_at(ms));
                assert!(BucketId::highest_at(ms - 1000) < id || ms < 1000);
                assert_eq!(id.second(), (BucketId::lowest_at(ms), BucketId::highest_at(ms)));
            }
        }
        assert_eq!(BucketId::lowest_at(-1), BucketId::lowest_at(0));
        assert_eq!(BucketId::highest_at(i64::MAX).as_bytes(), &[0xFF; 12]);
    }
}
