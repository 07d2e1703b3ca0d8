//! Moves filters in front of a step.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_match.cpp, which moves only what keeps its meaning. Here a
//! filter may also move in a weaker form: what it lets pass, the weaker one lets pass as well, and it stays where it is.

use crate::listed::IntoList;
use crate::query::expr::{Expr, Variable};
use crate::query::filter::{Filter, Test};
use crate::query::plan::Origin;
use crate::query::stage::group::Key;
use crate::query::stage::spec::Step;
use crate::value::{Component, Doc, DocWriter, Kind, Path, Value};

/// What a filter has to cross.
pub enum Crossing<'a> {
    /// Nothing that changes rows.
    Order,
    /// A step that makes one row of each, or several; `true` if it also drops rows.
    Fields(Box<dyn Fn(&str) -> Origin<'a> + 'a>, bool),
    /// A `$group` by this key.
    Group(&'a Key),
}

/// What a path reads, in terms of the rows before the step.
enum Definition<'a> {
    Origin(Origin<'a>),
    /// The value of an expression, which the leading components of the path stand for.
    Value(&'a Expr, usize),
}

impl<'a> Crossing<'a> {
    /// `None` if no filter can cross the step.
    pub fn of(step: &'a Step) -> Option<Crossing<'a>> {
        match step {
            Step::Find(find) if find.skip > 0 || find.limit.is_some() => None,
            Step::Find(find) if find.projection.is_all() => Some(Crossing::Order),
            Step::Find(find) => Some(Crossing::Fields(Box::new(|name| find.projection.origin(name)), false)),
            Step::Group(group) => Some(Crossing::Group(&group.key)),
            Step::Unpack(_) => None,
            Step::Other(spec) => {
                let drops_rows = spec.passes_filters()?;
                Some(Crossing::Fields(Box::new(|name| spec.origin(name)), drops_rows))
            }
        }
    }

    /// What of a filter moves in front of the step, and what stays behind it.
    pub fn divide(&self, filter: &Filter) -> (Filter, Filter) {
        let (mut moved, mut kept) = (Vec::new(), Vec::new());
        for part in filter.conjuncts() {
            // It must not fail for rows that do not reach it.
            let is_held = part.can_fail() && (!kept.is_empty() || matches!(self, Crossing::Fields(_, true)));
            if part.is_random() || is_held {
                kept.push(part.clone());
            } else if let Some(exact) = self.exact(part) {
                moved.push(exact);
            } else {
                kept.push(part.clone());
                if !part.can_fail() {
                    moved.push(self.weaker(part));
                }
            }
        }
        (Filter::and(moved), Filter::and(kept))
    }

    /// The filter that rows pass if and only if what the step makes of them passes `filter`. Of a `$group`: if and only if
    /// their group passes.
    fn exact(&self, filter: &Filter) -> Option<Filter> {
        let each = |children: &[Filter]| children.iter().map(|child| self.exact(child)).listed_if_all();
        Some(match (filter, self) {
            (_, Crossing::Order) => filter.clone(),
            (Filter::AlwaysTrue | Filter::AlwaysFalse, _) => filter.clone(),
            (Filter::And(children), _) => Filter::and(each(children)?),
            (Filter::Or(children), _) => Filter::or(each(children)?),
            (Filter::Nor(children), _) => Filter::nor(each(children)?),
            (Filter::Not(child), _) => Filter::negated(self.exact(child)?),
            (Filter::Field(path, test), _) => self.exact_test(filter, path, test)?,
            (Filter::Expr(condition), _) => {
                if matches!(self, Crossing::Group(_)) {
                    // Of values that are equal, any may be that of the group; and null may be that of a missing one.
                    let (_, Test::Whole(compare)) = condition.twin()? else { return None };
                    if !is_ordinary(compare.value()) {
                        return None;
                    }
                }
                condition.translated(&|path| self.translated(path))?
            }
            (Filter::Schema(_) | Filter::Bucket(_), _) => return None,
        })
    }

    fn exact_test(&self, leaf: &Filter, path: &Path, test: &Test) -> Option<Filter> {
        let is_group = matches!(self, Crossing::Group(_));
        if is_group && !takes_equal(test) {
            return None;
        }
        let holds = |doc: Doc<'_>| {
            let holds = leaf.matches_doc(doc).ok()?;
            Some(if holds { Filter::AlwaysTrue } else { Filter::AlwaysFalse })
        };
        match self.definition(&names(path)) {
            Definition::Origin(Origin::Same) => Some(leaf.clone()),
            Definition::Origin(Origin::Missing) => holds(Doc::EMPTY),
            Definition::Value(Expr::Constant(Some(value)), 1) if !is_group => {
                let mut writer = DocWriter::new();
                writer.value(path.first(), value.view());
                holds(writer.finish().view())
            }
            Definition::Value(Expr::Field(Variable::Root, read), used) if read.len() == 1 => {
                Some(Filter::Field(joined(read, path, used)?, test.clone()))
            }
            _ => None,
        }
    }

    /// A filter that every row passes of which the step makes one that passes `filter`.
    fn weaker(&self, filter: &Filter) -> Filter {
        let each = |children: &[Filter]| children.iter().map(|child| self.weaker(child)).listed();
        match filter {
            Filter::And(children) => Filter::and(each(children)),
            Filter::Or(children) => Filter::or(each(children)),
            Filter::Field(path, test) => {
                let exact = self.exact_test(filter, path, test);
                exact.or_else(|| self.weaker_test(path, test)).unwrap_or(Filter::AlwaysTrue)
            }
            other => self.exact(other).unwrap_or(Filter::AlwaysTrue),
        }
    }

    /// Expressions and filters differ in arrays of arrays. But what an expression reaches in arrays of objects, a filter
    /// reaches as well, except by position.
    fn weaker_test(&self, path: &Path, test: &Test) -> Option<Filter> {
        if !is_of_values(test) || matches!(self, Crossing::Group(_)) && !takes_equal(test) {
            return None;
        }
        let has_position = |path: &Path| path.rest().iter().any(|component| component.index().is_some());
        let moved = match self.definition(&names(path)) {
            // An object that has lost fields may equal what it did not before.
            Definition::Origin(Origin::Part) if !takes_objects(test) => path.clone(),
            Definition::Value(Expr::Field(Variable::Root, read), used) => joined(read, path, used)?,
            _ => return None,
        };
        (!has_position(path) && !has_position(&moved)).then(|| Filter::Field(moved, test.clone()))
    }

    /// The expression whose value a path into the result of the step has.
    fn translated(&self, path: &[Box<str>]) -> Option<Expr> {
        let names: Vec<&str> = path.iter().map(|name| &**name).listed();
        match self.definition(&names) {
            Definition::Origin(Origin::Same) => Some(Expr::Field(Variable::Root, path.to_vec())),
            Definition::Value(expr, used) => read_below(expr, path.get(used..)?),
            Definition::Origin(_) => None,
        }
    }

    fn definition(&self, path: &[&str]) -> Definition<'a> {
        match (self, path) {
            (Crossing::Order, _) => Definition::Origin(Origin::Same),
            (Crossing::Fields(origin, _), [name, ..]) => match origin(name) {
                Origin::Computed(expr) => Definition::Value(expr, 1),
                origin => Definition::Origin(origin),
            },
            (Crossing::Group(Key::One(expr)), ["_id", ..]) => Definition::Value(expr.expr(), 1),
            (Crossing::Group(Key::Object(fields)), ["_id", name, ..]) => {
                let mut parts = fields.iter().filter(|(part, _)| **part == **name);
                match (parts.next(), parts.next()) {
                    (Some((_, expr)), None) => Definition::Value(expr.expr(), 2),
                    _ => Definition::Origin(Origin::Unknown),
                }
            }
            _ => Definition::Origin(Origin::Unknown),
        }
    }
}

/// The expression of what lies at `below` in the value of `expr`, if that is a field or a constant. Below a path of
/// several fields, one way leads through arrays of arrays and the other does not.
pub fn read_below(expr: &Expr, below: &[Box<str>]) -> Option<Expr> {
    match expr {
        Expr::Constant(Some(_)) | Expr::Field(Variable::Root, _) if below.is_empty() => Some(expr.clone()),
        Expr::Field(Variable::Root, read) if read.len() == 1 => {
            Some(Expr::Field(Variable::Root, read.iter().chain(below).cloned().listed()))
        }
        _ => None,
    }
}

fn names(path: &Path) -> Vec<&str> {
    path.components().iter().map(Component::name).listed()
}

/// The path of fields that an expression reads, and behind it what is left of `path` after its first `used` components.
fn joined(read: &[Box<str>], path: &Path, used: usize) -> Option<Path> {
    let behind = path.components().iter().skip(used).map(Component::name);
    Path::parse(&read.iter().map(|name| &**name).chain(behind).listed().join(".")).ok()
}

/// True if a value passes whenever an equal one passes, and null and a missing value do not pass.
fn takes_equal(test: &Test) -> bool {
    matches!(test, Test::Compare(_) | Test::In(_)) && is_of_values(test)
}

/// True if the test asks for a value other than null and arrays, so that of an array an element has to pass.
fn is_of_values(test: &Test) -> bool {
    match test {
        Test::Compare(compare) => is_ordinary(compare.value()),
        Test::In(set) => set.values().iter().all(|value| is_ordinary(value.view())),
        Test::Regex(_) | Test::Mod(_) | Test::Bits(_) => true,
        _ => false,
    }
}

fn takes_objects(test: &Test) -> bool {
    let is_object = |value: Value<'_>| value.kind() == Kind::Object;
    match test {
        Test::Compare(compare) => is_object(compare.value()),
        Test::In(set) => set.values().iter().any(|value| is_object(value.view())),
        _ => false,
    }
}

fn is_ordinary(value: Value<'_>) -> bool {
    !matches!(value.kind(), Kind::Array | Kind::Null | Kind::Undefined | Kind::MinKey | Kind::MaxKey)
}
