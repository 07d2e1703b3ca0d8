//! The host's clock, random source and regular expressions.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use crate::env::{Env, Regex};

/// `Date.now`, `crypto.getRandomValues` and `RegExp`.
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

    fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn Regex>, String> {
        let (unicode, plain) = if ignores_case { ("iu", "i") } else { ("u", "") };
        // With `u` a pattern sees characters, not halves of them, and some old liberties are errors.
        match RegExp::new(pattern, unicode).or_else(|_| RegExp::new(pattern, plain)) {
            Ok(regex) => Ok(Rc::new(regex)),
            Err(error) => Err(js_sys::Error::from(error).message().into()),
        }
    }
}

#[wasm_bindgen]
extern "C" {
    /// `RegExp`, whose constructor throws what would leave the caller's promise open.
    type RegExp;
    #[wasm_bindgen(constructor, catch)]
    fn new(pattern: &str, flags: &str) -> Result<RegExp, JsValue>;
    #[wasm_bindgen(method)]
    fn test(this: &RegExp, text: &str) -> bool;
}

impl Regex for RegExp {
    fn is_match(&self, text: &str) -> bool {
        self.test(text)
    }
}
