//! Converts a filter back to its document.

use super::arrays::ElemMatch;
use super::tree::{Filter, Test};
use crate::listed::IntoList;
use crate::value::{DocWriter, Kind, OwnedValue};

impl Filter {
    /// Writes fields that parse to this filter.
    pub fn write(&self, writer: &mut DocWriter) {
        match self {
            Filter::AlwaysTrue => {}
            Filter::AlwaysFalse => {
                writer.int32("$alwaysFalse", 1);
            }
            Filter::And(children) => write_list("$and", children, writer),
            Filter::Or(children) => write_list("$or", children, writer),
            Filter::Nor(children) => write_list("$nor", children, writer),
            Filter::Not(child) => match &**child {
                Filter::Field(path, _) => self.write_operators(path.as_str(), writer),
                child => write_list("$nor", std::slice::from_ref(child), writer),
            },
            Filter::Field(path, _) => self.write_operators(path.as_str(), writer),
            Filter::Expr(condition) => condition.expr().write("$expr", writer),
            Filter::Schema(schema) => {
                writer.doc("$jsonSchema", schema.doc.view());
            }
            Filter::Bucket(bucket) => {
                writer.begin_doc("$_internalBucketGeoWithin").doc("withinRegion", bucket.geo.operand.view());
                writer.string("field", bucket.path.as_str()).end();
            }
        }
    }

    /// Writes a field with the operators for tests on one path.
    fn write_operators(&self, name: &str, writer: &mut DocWriter) {
        writer.begin_doc(name);
        self.write_each_operator(writer);
        writer.end();
    }

    fn write_each_operator(&self, writer: &mut DocWriter) {
        match self {
            Filter::And(children) => children.iter().for_each(|child| child.write_each_operator(writer)),
            Filter::Not(child) => child.write_operators("$not", writer),
            Filter::Field(_, test) => test.write(writer),
            // Only `$in` with patterns among its values becomes a disjunction.
            Filter::Or(arms) => {
                let mut values = Vec::new();
                for arm in arms {
                    match arm {
                        Filter::Field(_, Test::In(set)) => values.extend_from_slice(set.values()),
                        Filter::Field(_, Test::Regex(regex)) => values.push(regex.to_value()),
                        _ => {}
                    }
                }
                write_values("$in", &values, writer);
            }
            Filter::AlwaysFalse => write_values("$in", &[], writer),
            _ => write_values("$nin", &[], writer),
        }
    }
}

impl Test {
    fn write(&self, writer: &mut DocWriter) {
        match self {
            Test::Compare(compare) => {
                writer.value(compare.op().names().0, compare.value());
            }
            Test::Whole(compare) => {
                writer.value(compare.op().names().1, compare.value());
            }
            Test::In(set) => write_values("$in", set.values(), writer),
            Test::Exists => {
                writer.bool("$exists", true);
            }
            Test::Regex(regex) => {
                writer.value("$regex", regex.to_value().view());
            }
            Test::Type(kinds) => {
                let all = (0..=u8::MAX).filter_map(Kind::from_byte).filter(|kind| kinds.contains(*kind));
                write_integers("$type", &mut all.map(|kind| kind.code()), writer);
            }
            Test::Mod(modulo) => write_integers("$mod", &mut [modulo.divisor, modulo.remainder].into_iter(), writer),
            Test::Bits(bits) => {
                write_integers(bits.name(), &mut bits.positions.iter().map(|at| i64::from(*at)), writer);
            }
            Test::Size(size) => {
                writer.int64("$size", i64::try_from(*size).unwrap_or(i64::MAX));
            }
            Test::Geo(geo) => {
                writer.doc(geo.operator, geo.operand.view());
            }
            Test::ElemMatch(ElemMatch::Object(filter)) => {
                writer.begin_doc("$elemMatch");
                filter.write(writer);
                writer.end();
            }
            Test::ElemMatch(ElemMatch::Value(tests)) => tests.write_operators("$elemMatch", writer),
        }
    }
}

fn write_list(name: &str, children: &[Filter], writer: &mut DocWriter) {
    writer.begin_array(name);
    for (at, child) in children.iter().enumerate() {
        writer.begin_doc(&at.to_string());
        child.write(writer);
        writer.end();
    }
    writer.end();
}

fn write_values(name: &str, values: &[OwnedValue], writer: &mut DocWriter) {
    writer.begin_array(name);
    for (at, value) in values.iter().enumerate() {
        writer.value(&at.to_string(), value.view());
    }
    writer.end();
}

fn write_integers(name: &str, integers: &mut dyn Iterator<Item = i64>, writer: &mut DocWriter) {
    write_values(name, &integers.map(OwnedValue::int64).listed(), writer);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{any_filter_doc, any_value, filter};
    use super::*;
    use crate::value::DocBuf;
    use bson::{RawDocumentBuf, rawdoc};

    fn document(filter: &Filter) -> RawDocumentBuf {
        let mut writer = DocWriter::new();
        filter.write(&mut writer);
        RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
    }

    /// A filter that `$not` and `$nor` can both express is written with `$nor`.
    fn without_not(filter: Filter) -> Filter {
        let each = |children: Vec<Filter>| children.into_iter().map(without_not).collect::<Vec<_>>();
        match filter {
            Filter::And(children) => Filter::And(each(children)),
            Filter::Or(children) => Filter::Or(each(children)),
            Filter::Nor(children) => Filter::nor(each(children)),
            Filter::Not(child) => Filter::nor([without_not(*child)]),
            leaf => leaf,
        }
    }

    fn comes_back(wanted: &RawDocumentBuf) {
        let before = filter(wanted);
        let written = document(&before);
        assert!(DocBuf::parse(written.as_bytes().to_vec()).is_ok());
        assert_eq!(without_not(filter(&written)), without_not(before), "{wanted:?} was written as {written:?}");
    }

    #[test]
    fn every_operator_comes_back() {
        let like = bson::Regex { pattern: bson::cstr!("^a").into(), options: bson::cstr!("i").into() };
        let reduced = rawdoc! { "$reduce": { "input": "$a", "initialValue": 0, "in": { "$map": {
        "input": "$$this", "as": "x", "in": { "$add": ["$$value", "$$x", "$$this.b"] } } } } };
        let branches = bson::rawbson!([{ "case": "$a", "then": "$$ROOT" }, { "case": "$b", "then": "$$REMOVE" }]);
        for wanted in [
            rawdoc! {},
            rawdoc! { "a": { "$in": [] } },
            rawdoc! { "a": { "$in": [1, like.clone(), "x"] }, "b": { "$not": like.clone() } },
            rawdoc! { "a": { "$not": { "$gt": 1, "$lt": 5 } }, "b.0": { "$exists": false } },
            rawdoc! { "a": { "$_internalExprEq": 1, "$_internalExprGt": 1 }, "b": { "$_internalExprGte": "x" },
            "c.d": { "$_internalExprLt": { "x": 1 }, "$_internalExprLte": null } },
            rawdoc! { "a": { "$elemMatch": { "$gt": 1, "$nin": [like.clone(), 3], "$regex": "x" } } },
            rawdoc! { "a": { "$elemMatch": { "$in": [], "$not": { "$type": ["number", -1, 127] } } } },
            rawdoc! { "a": { "$elemMatch": { "$nin": [] } } },
            rawdoc! { "a": { "$elemMatch": { "b": 1, "$or": [{ "c": { "$size": 2 } }, { "d": { "$mod": [-3, 1] } }] } } },
            rawdoc! { "a": { "$bitsAllSet": 20 }, "b": { "$bitsAllClear": [70] }, "c": { "$bitsAnySet": 1 },
            "d": { "$bitsAnyClear": [] } },
            rawdoc! { "a": { "$geoWithin": { "$centerSphere": [[1, 2], 0.5] } },
            "b": { "$geoIntersects": { "$geometry": { "type": "Point", "coordinates": [1, 2] } } } },
            rawdoc! { "$jsonSchema": { "required": ["a"], "properties": { "a": { "pattern": "^x" } } } },
            rawdoc! { "$nor": [{ "a": 1, "b": 2 }], "$expr": { "$gt": ["$a.b", { "$literal": { "$x": 1 } }] } },
            rawdoc! { "$expr": { "$getField": "a.b" } },
            rawdoc! { "$expr": { "$dateTrunc": { "date": "$t", "unit": "hour" } } },
            rawdoc! { "$expr": { "$in": [{ "x": "$a", "y": ["$b", "$$REMOVE"] }, "$c"] } },
            rawdoc! { "$expr": { "$let": { "vars": { "v": "$a", "w": 1 }, "in": { "$cond": ["$$v", "$$w", "$$v.c"] } } } },
            rawdoc! { "$expr": { "$filter": { "input": "$a", "as": "one", "cond": reduced } } },
            rawdoc! { "$expr": { "$switch": { "branches": branches.clone(), "default": { "$rand": {} } } } },
            rawdoc! { "$expr": { "$switch": { "branches": branches } } },
        ] {
            comes_back(&wanted);
        }
    }

    #[test]
    fn filters_are_unparsed_as_the_server_shows_them() {
        for (wanted, shown) in [
            (rawdoc! { "a": 1 }, rawdoc! { "a": { "$eq": 1 } }),
            (rawdoc! { "a": { "$ne": 1 } }, rawdoc! { "a": { "$not": { "$eq": 1 } } }),
            (rawdoc! { "a": 1, "b": { "$gt": 2 } }, rawdoc! { "$and": [{ "a": { "$eq": 1 } }, { "b": { "$gt": 2 } }] }),
            (rawdoc! { "$and": [{ "a": 1 }] }, rawdoc! { "a": { "$eq": 1 } }),
            (rawdoc! { "a": { "$in": [] } }, rawdoc! { "$alwaysFalse": 1 }),
            (rawdoc! { "$expr": { "$gt": ["$a", 3] } }, rawdoc! { "$expr": { "$gt": ["$a", { "$const": 3 }] } }),
        ] {
            assert_eq!(document(&filter(&wanted)), shown);
        }
    }

    proptest! {
        #[test]
        fn an_unparsed_filter_parses_to_the_same_filter(wanted in any_filter_doc(any_value())) {
            comes_back(&wanted);
        }
    }
}
