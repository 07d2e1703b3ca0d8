//! What a filter demands to be equal: its rows can then be found by their values.

use super::tree::{Filter, Test};
use crate::query::expr::{CompareOp, Expr};
use crate::value::{OwnedValue, Path};

impl Filter {
    /// Paths, each with values of which one must equal the value there, an element of an array there, or null if the
    /// path is missing; with the current values of enclosing pipelines' variables. The list ends in front of what may
    /// fail, because that must see the rows that later parts drop.
    pub fn equalities(&self) -> Vec<(Path, Vec<OwnedValue>)> {
        let mut found = Vec::new();
        for conjunct in self.conjuncts() {
            match conjunct {
                // A path that meets an array passes this test.
                Filter::Field(_, Test::Whole(_)) => {}
                Filter::Field(path, test) => found.extend(test.wanted().map(|values| (path.clone(), values))),
                Filter::Expr(condition) => {
                    let Ok(resolved) = condition.resolved() else { break };
                    let condition = resolved.as_ref().unwrap_or(condition);
                    match condition.twin() {
                        Some((path, test)) => found.extend(test.wanted().map(|values| (path.clone(), values))),
                        // What reads only variables is a constant by now.
                        None if matches!(condition.expr(), Expr::Constant(_)) => {}
                        None => break,
                    }
                }
                _ => break,
            }
        }
        found
    }
}

impl Test {
    /// The values of which one must be equal, by their bytes in the case of strings; `None` for other tests.
    fn wanted(&self) -> Option<Vec<OwnedValue>> {
        let (values, collation) = match self {
            Test::Compare(compare) | Test::Whole(compare) if compare.op() == CompareOp::Eq => {
                (vec![compare.value().to_owned()], compare.collation())
            }
            Test::In(set) => (set.values().to_vec(), set.collation()),
            _ => return None,
        };
        Some(values).filter(|_| collation.is_simple())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::filter;
    use bson::rawdoc;

    fn paths(doc: bson::RawDocumentBuf) -> Vec<String> {
        filter(&doc).equalities().iter().map(|(path, _)| path.to_string()).collect()
    }

    #[test]
    fn constants_that_a_field_must_equal_are_found_beside_other_tests() {
        assert_eq!(paths(rawdoc! { "a": 1, "b.c": { "$in": [1, 2] }, "d": { "$gt": 3 } }), ["a", "b.c"]);
        assert_eq!(paths(rawdoc! { "$expr": { "$and": [{ "$gt": ["$d", 3] }, { "$eq": [4, "$e"] }] } }), ["e"]);
        assert_eq!(paths(rawdoc! { "$or": [{ "a": 1 }, { "b": 1 }] }), [""; 0]);
    }

    #[test]
    fn nothing_is_found_behind_an_expression_that_may_fail() {
        let fails = rawdoc! { "$expr": { "$gt": [{ "$divide": [1, "$x"] }, 3] } };
        assert_eq!(paths(rawdoc! { "$and": [{ "a": 1 }, fails, { "b": 1 }] }), ["a"]);
    }
}
