//! Hostile values, rows and filters for the tests of this folder and its neighbours.

use bson::oid::ObjectId;
use bson::raw::CString;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawBson, RawDocumentBuf, Regex, Timestamp, cstr, rawbson, rawdoc};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::Filter;
use crate::block::samples::{column_of, decimals};
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData, TextNumbers};
use crate::env::fixed::FixedEnv;
use crate::error::Error;
pub use crate::query::expr::samples::globals;
use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind, OwnedValue};

/// A value from anything that the `bson` crate can convert.
pub fn owned(value: impl Into<RawBson>) -> OwnedValue {
    let doc = doc_of([("v".to_owned(), value.into())]);
    doc.view().get("v").unwrap().to_owned()
}

/// The same the other way round.
fn raw(value: &OwnedValue) -> RawBson {
    let mut writer = DocWriter::new();
    writer.value("v", value.view());
    let doc = RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap();
    doc.get("v").unwrap().unwrap().into()
}

/// A checked document of fields.
pub fn doc_of(fields: impl IntoIterator<Item = (String, RawBson)>) -> DocBuf {
    DocBuf::parse(raw_doc(fields).into_bytes()).unwrap()
}

/// A document of fields, as the `bson` crate holds it.
pub fn raw_doc(fields: impl IntoIterator<Item = (String, RawBson)>) -> RawDocumentBuf {
    let mut doc = RawDocumentBuf::new();
    fields.into_iter().for_each(|(name, value)| doc.append(CString::try_from(name).unwrap(), value));
    doc
}

/// An array of items.
pub fn raw_array(items: impl IntoIterator<Item = RawBson>) -> RawBson {
    let mut array = RawArrayBuf::new();
    items.into_iter().for_each(|item| array.push(item));
    RawBson::Array(array)
}

/// The filter of a document.
pub fn filter(doc: &RawDocumentBuf) -> Filter {
    filter_by(doc, &Collation::default())
}

/// The filter of a document, with strings compared by a collation.
pub fn filter_by(doc: &RawDocumentBuf, collation: &Collation) -> Filter {
    Filter::parse(Doc::parse(doc.as_bytes()).unwrap(), &globals().with_collation(collation)).unwrap()
}

/// One of a few very different collations.
pub fn any_collation() -> impl Strategy<Value = Collation> {
    thread_local! {
        // Building one takes longer than a case.
        static COLLATIONS: [Collation; 4] = [
            rawdoc! { "locale": "simple" },
            rawdoc! { "locale": "en", "strength": 1 },
            rawdoc! { "locale": "en", "strength": 2 },
            rawdoc! { "locale": "en", "caseFirst": "upper" },
        ]
        .map(|options| Collation::parse(Doc::parse(options.as_bytes()).unwrap(), &FixedEnv::default()).unwrap());
    }
    (0..4_usize).prop_map(|at| COLLATIONS.with(|all| all[at].clone()))
}

/// The error of an invalid filter.
pub fn error(doc: RawDocumentBuf) -> Error {
    Filter::parse(Doc::parse(doc.as_bytes()).unwrap(), &globals()).unwrap_err()
}

/// The positions of the matching `docs`.
pub fn hits(docs: &[RawDocumentBuf], wanted: RawDocumentBuf) -> Vec<usize> {
    let filter = filter(&wanted);
    (0..docs.len()).filter(|i| filter.matches_doc(Doc::parse(docs[*i].as_bytes()).unwrap()).unwrap()).collect()
}

/// Scalars of one type, few enough that equal ones are frequent.
pub fn scalar_of(kind: Kind) -> BoxedStrategy<RawBson> {
    const TWO_TO_53: i64 = 1 << 53;
    let double = select(vec![
        0.0,
        -0.0,
        1.0,
        1.5,
        -1.0,
        2.0,
        9_007_199_254_740_992.0,
        1e300,
        5e-324,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ]);
    let long = select(vec![0, 1, 2, -1, TWO_TO_53, TWO_TO_53 + 1, -TWO_TO_53 - 1, i64::MAX, i64::MIN]);
    let text = || select(vec!["", "a", "ab", "b", "é", "a\0", "A", "E"]).prop_map(str::to_owned);
    match kind {
        Kind::Double => double.prop_map(RawBson::Double).boxed(),
        Kind::Int32 => select(vec![0, 1, 2, -1, i32::MAX, i32::MIN]).prop_map(RawBson::Int32).boxed(),
        Kind::Int64 => long.prop_map(RawBson::Int64).boxed(),
        Kind::Decimal128 => {
            select(vec!["0", "1", "1.5", "0.1", "-4.99", "9007199254740993", "NaN", "-Infinity", "1E+40"])
                .prop_map(|text| RawBson::Decimal128(text.parse().unwrap()))
                .boxed()
        }
        Kind::String => text().prop_map(RawBson::String).boxed(),
        Kind::Symbol => text().prop_map(RawBson::Symbol).boxed(),
        Kind::Bool => any::<bool>().prop_map(RawBson::Boolean).boxed(),
        Kind::Date => select(vec![0, 1, -1, 1_700_000_000_000, i64::MAX, i64::MIN])
            .prop_map(|ms| RawBson::DateTime(DateTime::from_millis(ms)))
            .boxed(),
        Kind::ObjectId => {
            select(vec![0, 1, 255]).prop_map(|b| RawBson::ObjectId(ObjectId::from_bytes([b; 12]))).boxed()
        }
        Kind::Timestamp => {
            (0..2_u32, 0..2_u32).prop_map(|(time, increment)| RawBson::Timestamp(Timestamp { time, increment })).boxed()
        }
        Kind::Null => Just(RawBson::Null).boxed(),
        Kind::Undefined => Just(RawBson::Undefined).boxed(),
        Kind::MinKey => Just(RawBson::MinKey).boxed(),
        Kind::MaxKey => Just(RawBson::MaxKey).boxed(),
        Kind::Binary => select(vec![vec![], vec![1], vec![255, 3]])
            .prop_map(|bytes| RawBson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }))
            .boxed(),
        _ => Just(RawBson::RegularExpression(Regex { pattern: cstr!("^a").into(), options: cstr!("").into() })).boxed(),
    }
}

/// The kinds with a column type of their own.
pub const TYPED: [Kind; 7] =
    [Kind::Double, Kind::Int32, Kind::Int64, Kind::Date, Kind::Bool, Kind::String, Kind::ObjectId];

const OTHER: [Kind; 9] = [
    Kind::Binary,
    Kind::Decimal128,
    Kind::Symbol,
    Kind::Timestamp,
    Kind::Null,
    Kind::Undefined,
    Kind::MinKey,
    Kind::MaxKey,
    Kind::Regex,
];

/// Scalars of any type.
pub fn any_scalar() -> BoxedStrategy<RawBson> {
    prop_oneof![4 => select(TYPED.to_vec()), 2 => select(OTHER.to_vec())].prop_flat_map(scalar_of).boxed()
}

/// Values of any type, nested a few levels, with names that paths often reach.
pub fn any_value() -> BoxedStrategy<RawBson> {
    let nest = |inner: BoxedStrategy<RawBson>| {
        let name = select(vec!["a", "b", "0", "1", "x.y"]).prop_map(str::to_owned);
        let fields = proptest::collection::btree_map(name, inner.clone(), 0..3);
        prop_oneof![fields.prop_map(|fields| RawBson::Document(raw_doc(fields))), vec(inner, 0..3).prop_map(raw_array),]
            .boxed()
    };
    prop_oneof![9 => any_scalar(), 1 => any_place()].prop_recursive(3, 12, 3, move |inner| nest(inner.boxed())).boxed()
}

/// A column: of one type, mixed, or a dictionary; with and without holes.
pub fn any_column(rows: usize) -> BoxedStrategy<Column> {
    let one_type = select(TYPED.to_vec()).prop_flat_map(scalar_of_many(rows));
    let mixed = vec(any_value(), rows);
    let holes = prop_oneof![
        Just(vec![true; rows]).boxed(),
        vec(proptest::bool::weighted(0.7), rows).boxed(),
        Just(vec![false; rows]).boxed(),
    ];
    let element = prop_oneof![Just(scalar_of(Kind::String)), Just(scalar_of(Kind::Double)), Just(any_value())];
    let arrays = element.prop_flat_map(move |of| vec(vec(of, 0..3).prop_map(raw_array), rows));
    let decimals = decimals(rows).prop_map(|all| all.into_iter().map(|value| raw(&value)).collect::<Vec<_>>());
    let values = prop_oneof![6 => one_type.boxed(), 4 => mixed.boxed(), 1 => arrays.boxed(), 1 => decimals.boxed()];
    let plain = (values, holes.clone()).prop_map(|(values, present)| {
        let mut builder = ColumnBuilder::new();
        for (value, present) in values.into_iter().zip(present) {
            if present { builder.push(owned(value).view()) } else { builder.push_absent(1) }
        }
        builder.finish()
    });
    let entries = prop_oneof![
        (select(TYPED.to_vec()), 1..=rows + 2).prop_flat_map(|(kind, n)| vec(scalar_of(kind), n)).boxed(),
        vec(any_value(), 1..=rows + 2).boxed(),
        vec(vec(scalar_of(Kind::String), 0..4).prop_map(raw_array), 1..=rows + 2).boxed(),
    ];
    let dictionary = (entries, vec(any::<prop::sample::Index>(), rows), holes).prop_map(|(values, picks, present)| {
        let mut builder = ColumnBuilder::new();
        values.iter().for_each(|v| builder.push(owned(v.clone()).view()));
        let index =
            picks.iter().zip(&present).map(|(p, present)| if *present { p.index(values.len()) as u32 } else { 0 });
        let presence = Bitmap::from_slice(&present, |p| *p);
        Column::new(ColumnData::Dictionary(index.collect(), Box::new(builder.finish())), Some(presence))
    });
    // Mostly of one shape, so that they become columns of their scalars.
    let field = || prop_oneof![6 => scalar_of(Kind::Double), 1 => any_value()];
    let object = (proptest::option::weighted(0.9, field()), proptest::option::weighted(0.8, field()), field());
    let objects = vec(proptest::option::weighted(0.9, object), rows).prop_map(|rows| {
        let mut builder = ColumnBuilder::new();
        for row in rows {
            let Some((a, b, c)) = row else {
                builder.push_absent(1);
                continue;
            };
            let inner = RawBson::Document(raw_doc([("b".to_owned(), c.clone()), ("x.y".to_owned(), c)]));
            let fields = [("a", a), ("b", b), ("0", Some(inner))];
            let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            builder.push(owned(RawBson::Document(raw_doc(fields))).view());
        }
        crate::column::read_again(&builder.finish())
    });
    prop_oneof![3 => plain, 1 => dictionary, 1 => objects].boxed()
}

fn scalar_of_many(rows: usize) -> impl Fn(Kind) -> proptest::collection::VecStrategy<BoxedStrategy<RawBson>> + Clone {
    move |kind| vec(scalar_of(kind), rows)
}

/// A block with some of the columns a, b, m, t.
pub fn any_block() -> BoxedStrategy<Block> {
    prop_oneof![8 => 0..8_usize, 1 => 60..140_usize]
        .prop_flat_map(|rows| {
            let column = || proptest::option::weighted(0.85, any_column(rows));
            (Just(rows), column(), column(), column(), column())
        })
        .prop_map(|(rows, a, b, m, t)| {
            let mut block = Block::new(rows);
            for (name, column) in [("a", a), ("b", b), ("m", m), ("t", t)] {
                if let Some(column) = column {
                    block.set_column(name, column);
                }
            }
            block
        })
        .boxed()
}

/// Places close together, written in several ways.
pub fn any_place() -> BoxedStrategy<RawBson> {
    let at = || select(vec![0.0, 0.5, 1.0, 2.0, 179.5, -180.0, 89.5, -90.0, f64::NAN]);
    (at(), at(), 0..6)
        .prop_map(|(x, y, form)| match form {
            0..=2 => rawbson!({ "type": "Point", "coordinates": [x, y] }),
            3 => rawbson!([x, y]),
            4 => rawbson!([[x, y], [y, x]]),
            _ => rawbson!({ "lng": x, "lat": y }),
        })
        .boxed()
}

/// A geospatial operator with its operand.
fn any_region() -> BoxedStrategy<(&'static str, RawBson)> {
    let at = || select(vec![0.0, 1.0, 2.0, 60.0, 89.5]);
    (at(), at(), 0..5)
        .prop_map(|(x, y, form)| match form {
            0 => ("$geoWithin", rawbson!({ "$box": [[x, y], [0.5, -1]] })),
            1 => ("$geoWithin", rawbson!({ "$center": [[x, y], 1.5] })),
            2 => ("$geoWithin", rawbson!({ "$centerSphere": [[x, y], 0.02] })),
            3 => ("$geoIntersects", rawbson!({ "$geometry": { "type": "Point", "coordinates": [x, y] } })),
            _ => (
                "$geoWithin",
                rawbson!({ "$geometry": { "type": "Polygon", "coordinates": [[[x, y], [-5, -3], [7, -2], [x, y]]] } }),
            ),
        })
        .boxed()
}

/// The document of a filter on the fields a, b, m, t and what lies below them. `operand` makes constants.
pub fn any_filter_doc(operand: BoxedStrategy<RawBson>) -> BoxedStrategy<RawDocumentBuf> {
    let operand = operand
        .prop_filter("constants of comparisons", |v| !matches!(v, RawBson::Undefined | RawBson::RegularExpression(_)))
        .boxed();
    let one = |name: &str, value: RawBson| raw_doc([(name.to_owned(), value)]);
    let compare = (select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), operand.clone())
        .prop_map(move |(op, value)| one(op, value));
    let whole =
        vec!["$_internalExprEq", "$_internalExprGt", "$_internalExprGte", "$_internalExprLt", "$_internalExprLte"];
    let whole = (select(whole), operand.clone()).prop_map(move |(op, value)| match value {
        RawBson::Array(_) => one("$eq", value),
        value => one(op, value),
    });
    let few = vec((0..4).prop_map(RawBson::Int32).boxed(), 1..3);
    let set = (select(vec!["$in", "$nin"]), prop_oneof![vec(operand.clone(), 0..11), few])
        .prop_map(move |(op, values)| one(op, raw_array(values)));
    let exists = any::<bool>().prop_map(move |yes| one("$exists", RawBson::Boolean(yes)));
    let pattern = select(vec!["^a", "^ab?", "^b$", "b", "^$", "é", "^a.", "(?i)^A", "^\\.|a"]);
    let regex = (pattern, select(vec!["", "i", "m"])).prop_map(move |(pattern, options)| {
        let [pattern, options] = [pattern, options].map(|text| CString::try_from(text).unwrap());
        RawBson::RegularExpression(Regex { pattern, options })
    });
    let like = (regex.clone(), 0..3).prop_map(move |(regex, form)| match form {
        0 => one("$regex", regex),
        1 => one("$in", raw_array([regex, RawBson::Int32(1), RawBson::Null])),
        _ => one("$not", regex),
    });
    let kinds = select(vec!["number", "string", "array", "object", "null", "regex", "minKey", "bool", "int"]);
    let kind = vec(kinds.prop_map(|alias| RawBson::String(alias.into())), 1..3)
        .prop_map(move |aliases| one("$type", raw_array(aliases)));
    let modulo = (select(vec![-1, 2, 3]), -1..2)
        .prop_map(move |(d, r)| one("$mod", raw_array([RawBson::Int32(d), RawBson::Int32(r)])));
    let bits = (select(vec!["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"]), 0..4_i64, 0..66)
        .prop_map(move |(op, mask, at)| one(op, if mask == 0 { raw_array([RawBson::Int32(at)]) } else { mask.into() }));
    let size = (0..3).prop_map(move |n| one("$size", RawBson::Int32(n)));
    let every = vec(operand.clone(), 0..3).prop_map(move |values| one("$all", raw_array(values)));
    let elements = prop_oneof![compare.clone(), kind.clone(), like.clone(), size.clone()]
        .prop_map(move |test| one("$elemMatch", RawBson::Document(test)));
    let objects = (select(vec!["a", "b", "0", "a.b"]), compare.clone())
        .prop_map(move |(path, test)| one("$elemMatch", RawBson::Document(one(path, RawBson::Document(test)))));
    let place = any_region().prop_map(move |(op, region)| one(op, region));
    let test = prop_oneof![
        1 => place, 6 => compare, 1 => whole, 2 => set, 1 => exists, 2 => like, 1 => kind, 1 => modulo, 1 => bits, 1 => size, 1 => every,
        1 => elements, 1 => objects
    ];
    let test = prop_oneof![
        6 => test.clone(),
        1 => (test.clone(), test.clone()).prop_map(|(a, b)| {
            // Options may occur once.
            let known = |name: &str| fields_of(&a).any(|(known, _)| known == name);
            raw_doc(fields_of(&a).chain(fields_of(&b).filter(|(name, _)| !known(name))))
        }),
        1 => test.clone().prop_map(move |t| one("$not", RawBson::Document(t))),
    ]
    .prop_map(RawBson::Document);
    let path = select(vec![
        "a", "b", "t", "m", "a.a", "a.b", "b.a", "m.a", "m.b", "a.0", "a.1", "a.a.b", "a.0.b", "b.b.0", "c", "t.a",
    ]);
    let field = (path, prop_oneof![6 => test.boxed(), 1 => operand.clone()])
        .prop_map(|(path, test)| raw_doc([(path.to_owned(), test)]))
        .boxed();
    let leaf = prop_oneof![8 => field, 2 => any_expression(operand)].boxed();
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            (select(vec!["$and", "$or", "$nor"]), vec(inner.clone(), 1..4)).prop_map(|(op, children)| {
                raw_doc([(op.to_owned(), raw_array(children.into_iter().map(RawBson::Document)))])
            }),
            (inner.clone(), inner).prop_map(|(a, b)| raw_doc(fields_of(&a).chain(fields_of(&b)))),
        ]
    })
    .boxed()
}

/// `{$expr: …}` with comparisons of paths with constants, with each other, and with values derived from them.
fn any_expression(operand: BoxedStrategy<RawBson>) -> BoxedStrategy<RawDocumentBuf> {
    let one = |name: &str, value: RawBson| RawBson::Document(raw_doc([(name.to_owned(), value)]));
    let path = || {
        let paths = vec!["$a", "$b", "$t", "$m", "$a.b", "$m.a", "$m.b", "$a.0", "$b.b.a", "$$ROOT.a", "$c"];
        select(paths).prop_map(|path| RawBson::String(path.to_owned())).boxed()
    };
    let literal = operand.prop_map(move |value| one("$literal", value)).boxed();
    let derived = (select(vec!["$type", "$isArray", "$isNumber"]), path()).prop_map(move |(op, path)| one(op, path));
    let side = prop_oneof![3 => path(), 2 => literal, 1 => derived];
    let op = select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
    let compare = (op, side.clone(), side).prop_map(move |(op, a, b)| one(op, raw_array([a, b])));
    let test = prop_oneof![6 => compare, 1 => path()].boxed();
    let combined =
        (select(vec!["$and", "$or", "$not"]), test.clone(), test.clone()).prop_map(move |(op, a, b)| match op {
            "$not" => one(op, a),
            op => one(op, raw_array([a, b])),
        });
    prop_oneof![3 => test, 1 => combined].prop_map(|expr| raw_doc([("$expr".to_owned(), expr)])).boxed()
}

fn fields_of(doc: &RawDocumentBuf) -> impl Iterator<Item = (String, RawBson)> {
    let fields: Vec<_> = doc.iter().map(|f| f.map(|(k, v)| (k.to_string(), v.into())).unwrap()).collect();
    fields.into_iter()
}

/// All filters, over the values alone and over the same values with numbers, give what they give for each row.
#[track_caller]
pub fn check(values: &[RawBson], filters: &[RawBson]) {
    check_below("v", values, filters);
}

/// The same of a path that begins at the values.
#[track_caller]
pub fn check_below(path: &str, values: &[RawBson], filters: &[RawBson]) {
    let cell = |row: usize| (row % 9 != 4).then(|| owned(values[row * row % values.len()].clone()));
    let column = column_of(&(0..200).map(cell).collect::<Vec<_>>());
    for column in [Some(column.clone()), TextNumbers::of(&column)].into_iter().flatten() {
        let mut block = Block::new(column.len());
        block.set_column("v", column);
        check_all(&block, &[path], filters);
    }
    // In objects that are columns, if they have one shape.
    let object = |row: usize| {
        let mut writer = DocWriter::new();
        writer.int32("n", 1);
        if let Some(value) = cell(row) {
            writer.value("v", value.view());
        }
        Some(OwnedValue::doc(writer.finish().view()))
    };
    let mut block = Block::new(200);
    block.set_column("o", crate::column::read_again(&column_of(&(0..200).map(object).collect::<Vec<_>>())));
    check_all(&block, &[&format!("o.{path}")], filters);
}

/// Filters on these paths select the rows that they match one by one.
#[track_caller]
pub fn check_all(block: &Block, paths: &[&str], tests: &[RawBson]) {
    for test in tests {
        for path in paths {
            let mut doc = RawDocumentBuf::new();
            doc.append(bson::raw::CString::try_from(*path).unwrap(), test.clone());
            let filter = filter(&doc);
            let selected = filter.select(block).unwrap();
            for row in 0..block.rows() {
                let mut writer = DocWriter::new();
                block.write_row(row, &mut writer);
                let matches = filter.matches_doc(writer.finish().view()).unwrap();
                assert_eq!(selected.get(row), matches, "{doc:?} {row}");
            }
        }
    }
}
