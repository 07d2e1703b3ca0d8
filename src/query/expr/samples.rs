//! Shared by unit tests of expressions and filters.

use std::rc::Rc;

use super::Globals;
use crate::env::Env;
use crate::env::fixed::FixedEnv;

/// Globals for unit tests.
pub fn globals() -> Globals {
    Globals::new(&(Rc::new(FixedEnv::default()) as Rc<dyn Env>))
}
