//! Writes predicates on buckets as filters on bucket documents.

use super::control::{BucketTest, Side};
use super::predicate::{LooseBucketPredicate, TightBucketPredicate, bounds, join};
use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::value::{DocWriter, Path};

impl LooseBucketPredicate {
    /// Writes a filter that buckets pass if they may hold a match.
    pub fn write(&self, writer: &mut DocWriter) {
        self.0.iter().for_each(|test| test.write(false, writer));
    }
}

impl TightBucketPredicate {
    /// Writes a filter that only buckets pass in which all measurements match; `plain` as if it did not come from an
    /// expression.
    pub fn write(&self, plain: bool, writer: &mut DocWriter) {
        self.0.iter().for_each(|test| test.write(plain, writer));
    }
}

impl BucketTest {
    fn write(&self, plain: bool, writer: &mut DocWriter) {
        match self {
            BucketTest::Always(true) => {}
            BucketTest::Always(false) => {
                writer.int32("$alwaysFalse", 1);
            }
            BucketTest::And(children) => write_list("$and", children, plain, writer),
            BucketTest::Or(children) => write_list("$or", children, plain, writer),
            BucketTest::Bound { side, path, op, value, .. } => {
                let name = summary(*side, path.as_str());
                let op = if plain { op.names().0 } else { op.names().1 };
                writer.begin_doc(&name).value(op, value.view()).end();
            }
            BucketTest::Encloses { path, set } => {
                let equal = set.values().iter().map(|value| bounds(path, CompareOp::Eq, value.view(), set.collation()));
                join(equal.listed(), BucketTest::Or).write(plain, writer);
            }
            BucketTest::Exists(path) => {
                for side in [Side::Min, Side::Max] {
                    writer.begin_doc(&summary(side, path.as_str())).bool("$exists", true).end();
                }
            }
            BucketTest::TypesDiffer(_) => write_list("$or", std::slice::from_ref(self), plain, writer),
            BucketTest::Near(path, geo) => {
                writer.begin_doc("$_internalBucketGeoWithin").doc("withinRegion", geo.operand.view());
                writer.string("field", path.as_str()).end();
            }
            BucketTest::Meta(filter) => filter.write(writer),
        }
    }
}

fn write_list(name: &str, tests: &[BucketTest], plain: bool, writer: &mut DocWriter) {
    writer.begin_array(name);
    for (at, test) in tests.iter().enumerate() {
        if let BucketTest::TypesDiffer(path) = test {
            write_types_differ(at, path, writer);
            continue;
        }
        writer.begin_doc(&at.to_string());
        test.write(plain, writer);
        writer.end();
    }
    writer.end();
}

/// The branches of a disjunction from one position on: an expression for each prefix of the path.
fn write_types_differ(start: usize, path: &Path, writer: &mut DocWriter) {
    let mut prefix = String::new();
    for (at, component) in path.components().iter().enumerate() {
        if at > 0 {
            prefix.push('.');
        }
        prefix.push_str(component.name());
        writer.begin_doc(&(start + at).to_string()).begin_doc("$expr").begin_array("$ne");
        for (at, root) in [("0", "$control.min."), ("1", "$control.max.")] {
            writer.begin_doc(at).string("$type", &[root, &prefix].concat()).end();
        }
        writer.end().end().end();
    }
}

/// A path into a summary, as in a bucket document.
fn summary(side: Side, path: &str) -> String {
    let root = match side {
        Side::Min => "control.min.",
        Side::Max => "control.max.",
    };
    [root, path].concat()
}
