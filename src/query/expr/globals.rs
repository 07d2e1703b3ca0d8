//! What filters and expressions may refer to besides the document.

use std::rc::Rc;

use crate::env::Env;

/// The world outside, and the moment of the command.
#[derive(Clone)]
pub struct Globals {
    env: Rc<dyn Env>,
    now_ms: i64,
}

impl Globals {
    /// Those of a command that begins now.
    pub fn new(env: &Rc<dyn Env>) -> Globals {
        Globals { env: Rc::clone(env), now_ms: env.now_ms() }
    }

    /// The world outside.
    pub fn env(&self) -> &Rc<dyn Env> {
        &self.env
    }

    /// When the command began: the same moment for every document.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }
}
