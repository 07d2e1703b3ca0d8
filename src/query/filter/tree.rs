//! The tree of a filter, and the constructors that keep it small.

use super::arrays::ElemMatch;
use super::bits::Bits;
use super::compare::Compare;
use super::kinds::Kinds;
use super::membership::In;
use super::modulo::Modulo;
use super::regex::Regex;
use crate::value::Path;

/// Which measurements a query wants.
///
/// Built by `parse` or by the constructors below, which flatten what is nested and drop what decides nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Every document.
    AlwaysTrue,
    /// No document.
    AlwaysFalse,
    /// Documents that match every child.
    And(Vec<Filter>),
    /// Documents that match at least one child.
    Or(Vec<Filter>),
    /// Documents that match no child.
    Nor(Vec<Filter>),
    /// Documents that do not match the child.
    Not(Box<Filter>),
    /// Documents in which some value at the path passes the test.
    Field(Path, Test),
}

/// What an operator asks of a value at a path; one case an operator file.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `$eq`, `$gt`, `$gte`, `$lt`, `$lte`.
    Compare(Compare),
    /// `$in`.
    In(In),
    /// `$exists: true`.
    Exists,
    /// `$regex`.
    Regex(Regex),
    /// `$type`.
    Type(Kinds),
    /// `$mod`.
    Mod(Modulo),
    /// `$bitsAllSet` and its three siblings.
    Bits(Bits),
    /// `$size`.
    Size(usize),
    /// `$elemMatch`.
    ElemMatch(ElemMatch),
}

impl Filter {
    /// The filter that every document matches.
    pub fn all() -> Filter {
        Filter::AlwaysTrue
    }

    /// True where every document matches, whatever is in it.
    pub fn is_trivial(&self) -> bool {
        matches!(self, Filter::AlwaysTrue)
    }

    /// Every one of `children`; the empty conjunction matches everything.
    pub fn and(children: impl IntoIterator<Item = Filter>) -> Filter {
        let mut kept = Vec::new();
        for child in children {
            match child {
                Filter::AlwaysTrue => {}
                Filter::AlwaysFalse => return Filter::AlwaysFalse,
                Filter::And(inner) => kept.extend(inner),
                child => kept.push(child),
            }
        }
        single(kept, Filter::AlwaysTrue, Filter::And)
    }

    /// At least one of `children`; the empty disjunction matches nothing.
    pub fn or(children: impl IntoIterator<Item = Filter>) -> Filter {
        let mut kept = Vec::new();
        for child in children {
            match child {
                Filter::AlwaysFalse => {}
                Filter::AlwaysTrue => return Filter::AlwaysTrue,
                Filter::Or(inner) => kept.extend(inner),
                child => kept.push(child),
            }
        }
        single(kept, Filter::AlwaysFalse, Filter::Or)
    }

    /// None of `children`.
    pub fn nor(children: impl IntoIterator<Item = Filter>) -> Filter {
        match Filter::or(children) {
            Filter::AlwaysFalse => Filter::AlwaysTrue,
            Filter::AlwaysTrue => Filter::AlwaysFalse,
            Filter::Or(kept) => Filter::Nor(kept),
            one => Filter::Nor(vec![one]),
        }
    }

    /// The complement of `child`.
    pub fn negated(child: Filter) -> Filter {
        match child {
            Filter::AlwaysFalse => Filter::AlwaysTrue,
            Filter::AlwaysTrue => Filter::AlwaysFalse,
            Filter::Not(inner) => *inner,
            child => Filter::Not(Box::new(child)),
        }
    }

    /// The same tree with every leaf replaced by what `f` makes of it.
    pub fn map_fields(self, f: &mut dyn FnMut(Path, Test) -> Filter) -> Filter {
        fn each(children: Vec<Filter>, f: &mut dyn FnMut(Path, Test) -> Filter) -> Vec<Filter> {
            children.into_iter().map(|child| child.map_fields(f)).collect()
        }
        match self {
            Filter::AlwaysTrue | Filter::AlwaysFalse => self,
            Filter::And(children) => Filter::and(each(children, f)),
            Filter::Or(children) => Filter::or(each(children, f)),
            Filter::Nor(children) => Filter::nor(each(children, f)),
            Filter::Not(child) => Filter::negated(child.map_fields(f)),
            Filter::Field(path, test) => f(path, test),
        }
    }

    /// Shows every path of the filter to `visit`, in the order in which they stand; a path may come twice.
    pub fn for_each_path<'a>(&'a self, visit: &mut dyn FnMut(&'a Path)) {
        match self {
            Filter::AlwaysTrue | Filter::AlwaysFalse => {}
            Filter::And(children) | Filter::Or(children) | Filter::Nor(children) => {
                children.iter().for_each(|child| child.for_each_path(visit));
            }
            Filter::Not(child) => child.for_each_path(visit),
            Filter::Field(path, _) => visit(path),
        }
    }
}

fn single(mut kept: Vec<Filter>, none: Filter, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match kept.len() {
        0 => none,
        1 => kept.pop().unwrap_or(none),
        _ => many(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exists(path: &str) -> Filter {
        Filter::Field(Path::parse(path).unwrap(), Test::Exists)
    }

    #[test]
    fn nested_conjunctions_and_disjunctions_are_flattened_and_singletons_unwrapped() {
        let both = Filter::and([exists("a"), exists("b")]);
        assert_eq!(Filter::and([both.clone(), exists("c")]), Filter::And(vec![exists("a"), exists("b"), exists("c")]));
        assert_eq!(Filter::or([Filter::or([exists("a")])]), exists("a"));
        assert_eq!(Filter::or([both.clone(), exists("c")]), Filter::Or(vec![both, exists("c")]));
    }

    #[test]
    fn constants_decide_or_vanish() {
        assert!(Filter::and([]).is_trivial());
        assert_eq!(Filter::or([]), Filter::AlwaysFalse);
        assert_eq!(Filter::and([exists("a"), Filter::AlwaysFalse]), Filter::AlwaysFalse);
        assert_eq!(Filter::or([exists("a"), Filter::AlwaysTrue]), Filter::AlwaysTrue);
        assert_eq!(Filter::nor([Filter::AlwaysFalse]), Filter::AlwaysTrue);
        assert_eq!(Filter::nor([exists("a"), Filter::AlwaysTrue]), Filter::AlwaysFalse);
        assert_eq!(Filter::nor([exists("a")]), Filter::Nor(vec![exists("a")]));
        assert_eq!(Filter::negated(Filter::negated(exists("a"))), exists("a"));
    }
}
