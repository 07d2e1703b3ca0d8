//! A small random generator that is seeded by one byte.

/// An xorshift generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u8) -> Random {
        let mut random = Random((u64::from(seed) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `n`, which is above zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A signed integer of at most this many bits.
    pub fn signed(&mut self, bits: u32) -> i64 {
        let size = if bits == 0 { 0 } else { self.next() >> (64 - bits.min(64)) };
        let size = size as i64;
        if self.chance(50) { size.wrapping_neg() } else { size }
    }
}
