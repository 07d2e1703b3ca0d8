//! The array element by which a filter has matched: what `$` stands for in an update.

use super::tree::{Filter, Test};
use crate::value::{Component, Kind, Leaf, Value};

impl Filter {
    /// The position of the element by which a document matches whose top-level fields are all `value`; `None` if no
    /// array decides. Of several parts of a conjunction the last one counts.
    pub fn position(&self, value: Option<Value<'_>>) -> Option<usize> {
        match self {
            Filter::And(children) => children.iter().rev().find_map(|child| child.position(value)),
            Filter::Or(children) => {
                children.iter().find(|child| child.matches_value(value) == Ok(true))?.position(value)
            }
            Filter::Field(path, test) => test.position(value?, path.rest()),
            _ => None,
        }
    }
}

impl Test {
    fn position(&self, value: Value<'_>, rest: &[Component]) -> Option<usize> {
        if value.kind() != Kind::Array {
            let (next, below) = rest.split_first()?;
            return self.position(value.as_doc()?.get(next.name())?, below);
        }
        value.as_array()?.iter().enumerate().position(|(at, (_, element))| match rest.split_first() {
            None => match self {
                Test::ElemMatch(elem_match) => elem_match.passes(element),
                _ => self.leaf() == Leaf::Elements && self.matches(Some(element)),
            },
            Some((next, below)) => {
                (element.kind() == Kind::Object && self.matches_below(Some(element), rest))
                    || (next.index() == Some(at) && self.matches_below(Some(element), below))
            }
        })
    }
}
