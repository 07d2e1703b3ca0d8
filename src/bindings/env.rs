//! The host's clock and random source.

use crate::env::Env;

/// `Date.now` and `crypto.getRandomValues`.
pub struct HostEnv;

impl Env for HostEnv {
    fn now_ms(&self) -> i64 {
        // Whole milliseconds, far below 2^53.
        #[allow(clippy::cast_possible_truncation)]
        let now = js_sys::Date::now() as i64;
        now
    }

    fn random_u64(&self) -> u64 {
        // Every host that this module runs in has a random source; without one, ids still differ by time.
        #[allow(clippy::cast_sign_loss)]
        getrandom::u64().unwrap_or_else(|_| self.now_ms() as u64 ^ js_sys::Math::random().to_bits())
    }
}
