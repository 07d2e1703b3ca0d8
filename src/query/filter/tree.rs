//! The tree of a filter, and constructors that keep it small.

use std::rc::Rc;

use super::arrays::ElemMatch;
use super::bits::Bits;
use super::compare::Compare;
use super::expression::Condition;
use super::geo::{Geo, GeoBucket};
use super::kinds::Kinds;
use super::membership::In;
use super::modulo::Modulo;
use super::schema::JsonSchema;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::{CompareOp, Regex};
use crate::value::{Collation, FieldSet, OwnedValue, Path, Value};

/// Selects measurements.
///
/// Built by `parse` or by the constructors below, which flatten nested filters and drop those that decide nothing.
// Loaded by now: `filter::geo` has made the regions, and `filter::schema` the schemas.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Filter {
    /// Every document.
    #[default]
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
    /// Documents for which an expression is true.
    Expr(Rc<Condition>),
    /// Documents that conform to a schema.
    Schema(Rc<JsonSchema>),
    /// Documents that are buckets in which a value may lie in a region.
    Bucket(Rc<GeoBucket>),
}

/// A test of a value at a path; one variant per operator file.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `$eq`, `$gt`, `$gte`, `$lt`, `$lte`.
    Compare(Compare),
    /// `$in`.
    In(In),
    /// `$exists: true`.
    Exists,
    /// `$regex`.
    Regex(Rc<Regex>),
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
    /// `$geoWithin`, `$geoIntersects`.
    Geo(Rc<Geo>),
    /// A comparison from an expression. Paths do not look into arrays here, and a path that meets an array passes.
    Whole(Compare),
}

impl Filter {
    /// The filter that matches every document.
    pub fn all() -> Filter {
        Filter::AlwaysTrue
    }

    /// True if it matches every document.
    pub fn is_trivial(&self) -> bool {
        matches!(self, Filter::AlwaysTrue)
    }

    /// Documents whose field equals a value by its bytes.
    ///
    /// Errors: `BadValue` for undefined.
    pub fn equality(field: &str, value: Value<'_>) -> Result<Filter> {
        let path = Path::parse(field)?;
        let compare = Compare::new(&path, CompareOp::Eq, value, &Collation::default())?;
        Ok(Filter::Field(path, Test::Compare(compare)))
    }

    /// Documents in which some value at the path equals one of `values`, which are constants whatever they look like: a
    /// regular expression is no pattern, and an object no list of operators.
    pub fn equal_to_any(path: &Path, values: Vec<OwnedValue>, collation: &Collation) -> Filter {
        Filter::Field(path.clone(), Test::In(In::new(values, collation)))
    }

    /// The filters that must all match; a filter other than a conjunction is its only part.
    pub fn conjuncts(&self) -> &[Filter] {
        match self {
            Filter::And(children) => children,
            other => std::slice::from_ref(other),
        }
    }

    /// All of `children` must match; the empty conjunction matches everything.
    pub fn and(children: impl Into<Vec<Filter>>) -> Filter {
        Filter::joined(children.into(), true)
    }

    /// At least one of `children` must match; the empty disjunction matches nothing.
    pub fn or(children: impl Into<Vec<Filter>>) -> Filter {
        Filter::joined(children.into(), false)
    }

    fn joined(children: Vec<Filter>, all: bool) -> Filter {
        let mut kept = Vec::new();
        for child in children {
            match child {
                Filter::AlwaysTrue if !all => return child,
                Filter::AlwaysFalse if all => return child,
                Filter::AlwaysTrue | Filter::AlwaysFalse => {}
                Filter::And(inner) if all => kept.extend(inner),
                Filter::Or(inner) if !all => kept.extend(inner),
                child => kept.push(child),
            }
        }
        match kept.len() {
            0 if all => Filter::AlwaysTrue,
            0 => Filter::AlwaysFalse,
            1 => kept.remove(0),
            _ if all => Filter::And(kept),
            _ => Filter::Or(kept),
        }
    }

    /// None of `children` may match.
    pub fn nor(children: impl Into<Vec<Filter>>) -> Filter {
        match Filter::or(children) {
            Filter::AlwaysFalse => Filter::AlwaysTrue,
            Filter::AlwaysTrue => Filter::AlwaysFalse,
            Filter::Or(kept) => Filter::Nor(kept),
            one => Filter::Nor(vec![one]),
        }
    }

    /// The negation of `child`.
    pub fn negated(child: Filter) -> Filter {
        match child {
            Filter::AlwaysFalse => Filter::AlwaysTrue,
            Filter::AlwaysTrue => Filter::AlwaysFalse,
            Filter::Not(inner) => *inner,
            child => Filter::Not(Box::new(child)),
        }
    }

    /// The same tree with every leaf replaced by `f(leaf)`.
    pub fn map_leaves(self, f: &mut dyn FnMut(Filter) -> Filter) -> Filter {
        fn each(children: Vec<Filter>, f: &mut dyn FnMut(Filter) -> Filter) -> Vec<Filter> {
            children.into_iter().map(|child| child.map_leaves(f)).listed()
        }
        match self {
            Filter::And(children) => Filter::and(each(children, f)),
            Filter::Or(children) => Filter::or(each(children, f)),
            Filter::Nor(children) => Filter::nor(each(children, f)),
            Filter::Not(child) => Filter::negated(child.map_leaves(f)),
            leaf => f(leaf),
        }
    }

    /// Calls `visit` with every leaf, in order.
    pub(super) fn for_each_leaf<'a>(&'a self, visit: &mut dyn FnMut(&'a Filter)) {
        match self {
            Filter::And(children) | Filter::Or(children) | Filter::Nor(children) => {
                children.iter().for_each(|child| child.for_each_leaf(visit));
            }
            Filter::Not(child) => child.for_each_leaf(visit),
            leaf => visit(leaf),
        }
    }

    /// The top-level fields that it reads.
    pub fn fields(&self) -> FieldSet {
        let mut fields = FieldSet::none();
        self.for_each_leaf(&mut |leaf| match leaf {
            Filter::Field(path, _) => fields.add(path.first()),
            Filter::Expr(condition) => fields.add_all(condition.fields()),
            Filter::Schema(_) => fields = FieldSet::All,
            Filter::Bucket(_) => fields.add("control"),
            _ => {}
        });
        fields
    }

    /// True if it differs from call to call.
    pub fn is_random(&self) -> bool {
        let mut is_random = false;
        self.for_each_leaf(&mut |leaf| is_random |= matches!(leaf, Filter::Expr(condition) if condition.is_random()));
        is_random
    }

    /// True if it may take long for a row that has little in it.
    pub fn may_take_long(&self) -> bool {
        let mut takes_long = false;
        self.for_each_leaf(&mut |leaf| {
            takes_long |= matches!(leaf, Filter::Expr(condition) if condition.expr().may_take_long());
        });
        takes_long
    }

    /// True if an expression is in it.
    pub fn has_expressions(&self) -> bool {
        self.can_fail()
    }

    /// True if it reads a variable of an enclosing pipeline.
    pub fn reads_outer(&self) -> bool {
        let mut reads = false;
        self.for_each_leaf(&mut |leaf| {
            reads |= matches!(leaf, Filter::Expr(condition) if condition.expr().reads_outer());
        });
        reads
    }

    /// True if evaluating the filter can fail.
    pub fn can_fail(&self) -> bool {
        let mut can_fail = false;
        self.for_each_leaf(&mut |leaf| can_fail |= matches!(leaf, Filter::Expr(_)));
        can_fail
    }

    /// True if it cannot distinguish values that compare equal, such as 1 and 1.0.
    pub fn takes_equal_for_same(&self) -> bool {
        let mut takes = true;
        self.for_each_leaf(&mut |leaf| {
            takes &= match leaf {
                Filter::Field(_, test) => {
                    matches!(test, Test::Compare(_) | Test::In(_) | Test::Exists | Test::Regex(_))
                }
                Filter::Expr(condition) => condition.takes_equal_for_same(),
                leaf => !matches!(leaf, Filter::Schema(_) | Filter::Bucket(_)),
            }
        });
        takes
    }

    /// The same filter with all paths starting at `root`.
    pub fn with_root(self, root: &str) -> Filter {
        self.map_leaves(&mut |leaf| match leaf {
            Filter::Field(path, test) => {
                let below = path.as_str().get(path.first().len()..).unwrap_or_default();
                // Part of a valid path is a valid path.
                Filter::Field(Path::parse(&format!("{root}{below}")).unwrap_or(path), test)
            }
            Filter::Expr(condition) => Filter::Expr(Rc::new(condition.with_root(root))),
            other => other,
        })
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
    fn constant_filters_are_evaluated() {
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
