//! What unit tests of expressions and filters share.

use std::rc::Rc;

use super::Globals;
use crate::env::Env;
use crate::env::fixed::FixedEnv;

/// The world of unit tests.
pub fn globals() -> Globals {
    Globals::new(&(Rc::new(FixedEnv::default()) as Rc<dyn Env>))
}
