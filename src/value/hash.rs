//! A byte hash that gives the same result on every platform.

/// FNV-1a, continued from the state `start`.
pub fn hash(start: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(start ^ 0xCBF2_9CE4_8422_2325, step)
}
