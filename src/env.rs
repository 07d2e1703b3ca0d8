//! Time and randomness, given from outside: a run with a seed repeats exactly.

/// What the engine asks of the world it runs in.
pub trait Env {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// Sixty-four random bits.
    fn random_u64(&self) -> u64;
}
