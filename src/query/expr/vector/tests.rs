//! Random expressions over random columns: the results are those of the expression row by row.

use bson::{Bson, Document, RawDocumentBuf, doc};
use proptest::prelude::*;

use super::compile_if_loaded;
use super::samples::{ROWS, block, column, date, int32, int64, number, text};
use crate::block::{Bitmap, Block, Column, ColumnData};
use crate::query::expr::samples::globals;
use crate::query::expr::{BoundExpr, Expr, bucket_of};
use crate::value::{Doc, DocWriter, Kind, OwnedValue, Value};

pub fn bound(expr: &Bson) -> Option<BoundExpr> {
    let expr = RawDocumentBuf::try_from(&doc! { "": expr }).unwrap();
    // Constants that fail do so when parsed.
    let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().get("").unwrap(), &globals()).ok()?;
    Some(BoundExpr::new(expr, globals()))
}

/// Arrays that are made for their elements alone.
#[test]
fn elements_of_made_arrays_are_those_of_the_arrays() {
    let texts = [Some("a"), None, Some("b")].map(|text| text.map(OwnedValue::string));
    let mixed = [Some(OwnedValue::double(0.1)), Some(OwnedValue::null()), Some(OwnedValue::int32(3))];
    let numbers = [0.2, 4.0, -1.0].map(|x| Some(OwnedValue::double(x)));
    let mut block = Block::new(3);
    for (name, values) in [("s", &texts), ("v", &mixed), ("a", &numbers)] {
        block.set_column(name, column(values));
    }
    let array = || Bson::from(vec!["$a", "$v", "$s"]);
    let failing = || bson::bson!(["$a", { "$divide": ["$a", { "$add": ["$a", 1] }] }, "$v"]);
    let map = |input: Bson| bson::bson!({ "$map": { "input": input, "in": { "$multiply": ["$$this", "$a", 2] } } });
    let mut cases = vec![
        bson::bson!({ "$map": { "input": [map(Bson::from(vec!["$a", "$v"])), "$s"], "in": { "$isArray": "$$this" } } }),
        bson::bson!({ "$let": { "vars": { "x": "$v" }, "in": { "$map": { "input": ["$a", "$$x"], "in": ["$$x", "$$this"] } } } }),
        bson::bson!({ "$reduce": { "input": ["$a", "$v", "$a"], "initialValue": 1, "in": { "$add": ["$$value", "$$this"] } } }),
        bson::bson!({ "$reduce": { "input": failing(), "initialValue": "$s", "in": "$$this" } }),
        bson::bson!({ "$reduce": { "input": ["$s", "$none"], "initialValue": "$none", "in": { "$ifNull": ["$$value", "$$this"] } } }),
        map(failing()),
        map(bson::bson!(["$v"])),
    ];
    for name in ["$sum", "$avg", "$max", "$min"] {
        cases.extend([array(), failing(), map(Bson::from(vec!["$a", "$v", "$a"])), bson::bson!([["$v"]])].map(|of| {
            let of = Bson::from(vec![of]);
            bson::bson!({ name: of })
        }));
        cases.push(bson::bson!({ name: { "$map": { "input": array(), "in": "$$this" } } }));
    }
    for place in [-4, -3, -1, 0, 1, 2, 3] {
        cases.extend([array(), failing(), map(array())].map(|of| bson::bson!({ "$arrayElemAt": [of, place] })));
    }
    for case in cases {
        let whole = bound(&case).unwrap();
        let by_rows: Vec<_> = (0..3).map(|row| whole.uncompiled().column(&block.slice(row..row + 1))).collect();
        match whole.column(&block) {
            Ok(found) => {
                for (row, expected) in by_rows.into_iter().enumerate() {
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    assert_eq!(found.value(row, &mut a), expected.unwrap().value(0, &mut b), "{case}");
                }
            }
            Err(_) => assert!(by_rows.iter().any(Result::is_err), "{case}"),
        }
    }
}

fn constant() -> impl Strategy<Value = Bson> {
    prop_oneof![
        number().prop_map(Bson::from),
        int32().prop_map(Bson::from),
        text().prop_map(Bson::from),
        Just(Bson::Null),
        int64().prop_map(Bson::from),
        prop::sample::select(vec![Bson::MinKey, Bson::MaxKey, Bson::Undefined, Bson::Boolean(true)]),
    ]
}

fn call(name: &str, argument: impl Into<Bson>) -> Bson {
    Bson::Document(Document::from_iter([(name.to_owned(), argument.into())]))
}

fn expression() -> impl Strategy<Value = Bson> {
    let field = [
        "$a", "$b", "$c", "$e", "$i", "$l", "$w", "$d", "$t", "$s", "$v", "$m", "$m.x", "$m.y", "$m.x.z", "$none",
        "$v.x", "$o", "$o.x", "$o.y", "$o.y.z", "$o.y.x", "$o.s", "$o.x.z", "$o.none", "$p.x", "$p.y.z", "$p.y.x",
        "$p.s", "$p.x.z",
    ];
    let leaf = prop_oneof![
        6 => prop::sample::select(field.to_vec()).prop_map(Bson::from),
        1 => number().prop_map(Bson::from),
        1 => int32().prop_map(Bson::from),
        1 => int64().prop_map(Bson::from),
        1 => date().prop_map(|ms| Bson::DateTime(bson::DateTime::from_millis(ms))),
        1 => Just(Bson::Null),
        1 => prop::sample::select(vec!["0.19", "-2", "0.00", "-0", "1E+3"]).prop_map(|text| Bson::Decimal128(text.parse().unwrap())),
        1 => any::<bool>().prop_map(Bson::from),
        1 => prop::sample::select(vec!["a", "b", "7"]).prop_map(|text| call("$literal", text)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let unary = vec![
            "$abs", "$ceil", "$floor", "$sqrt", "$not", "$type", "$isNumber", "$toDouble", "$toInt", "$toString", "$toLong", "$toDate",
            "$toBool", "$toDecimal", "$exp", "$ln", "$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond", "$isoWeek",
            "$isoWeekYear", "$dayOfWeek", "$week", "$toUpper", "$toLower", "$strLenCP", "$strLenBytes", "$sin", "$acosh", "$log10", "$sigmoid", "$bitNot", "$add", "$multiply", "$isArray", "$binarySize", "$objectToArray", "$round", "$trunc",
        ];
        let binary = vec![
            "$subtract", "$divide", "$mod", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp", "$add", "$multiply", "$ifNull", "$and",
            "$or", "$concat", "$pow", "$max", "$min", "$sum", "$avg", "$bitAnd", "$bitXor", "$log", "$stdDevPop", "$stdDevSamp", "$atan2",
        ];
        let zone = prop::sample::select(vec!["UTC", "Europe/London", "+05:30", "Nowhere"]);
        let unit = prop::sample::select(vec!["hour", "day", "week", "month", "minute", "second", "year", "never"]);
        let parts = (prop::sample::select(vec!["year", "day", "hour", "millisecond", "isoWeek", "isoWeekYear", "none"]), any::<bool>());
        let format = prop::sample::select(vec!["%Y-%m-%d", "%H:%M", "%Y-%m-%dT%H:%M:%S.%LZ", "%z", "%G-W%V", "%q"]);
        prop_oneof![
            3 => (prop::sample::select(unary), inner.clone()).prop_map(|(name, a)| call(name, vec![a])),
            6 => (prop::sample::select(binary.clone()), inner.clone(), inner.clone()).prop_map(|(name, a, b)| call(name, vec![a, b])),
            1 => (prop::sample::select(vec!["$add", "$multiply", "$and", "$or", "$ifNull", "$concat", "$sum", "$max", "$stdDevPop"]), prop::collection::vec(inner.clone(), 3))
                .prop_map(|(name, all)| call(name, all)),
            1 => (prop::sample::select(vec!["$substrCP", "$substrBytes", "$substr"]), prop_oneof![Just(Bson::from("$s")), inner.clone()], [-1..4_i32, -1..4], any::<bool>())
                .prop_map(|(name, text, [start, count], is_int32)| {
                    let n = |n: i32| if is_int32 { Bson::from(n) } else { Bson::from(f64::from(n) * 1.5) };
                    let field = |n: i32| if n == 2 { Bson::from("$i") } else { Bson::from("$a") };
                    call(name, vec![text, if start > 1 { field(count) } else { n(start) }, if count > 1 { field(start) } else { n(count) }])
                }),
            1 => (inner.clone(), prop::sample::select(vec!["missing", "null", "double", "int", "long", "string", "date", "bool", "object", "array"]), any::<bool>())
                .prop_map(|(x, name, is)| call(if is { "$eq" } else { "$ne" }, vec![call("$type", x), name.into()])),
            1 => (prop_oneof![Just(Bson::from("$s")), inner.clone()], prop::sample::select(vec!["a", "", "01", "ä"]), any::<bool>())
                .prop_map(|(text, wanted, is_bytes)| call(if is_bytes { "$indexOfBytes" } else { "$indexOfCP" }, vec![text, wanted.into()])),
            1 => (inner.clone(), 0..5).prop_map(|(x, form)| {
                let pairs = call("$objectToArray", Bson::from("$$ROOT"));
                match form {
                    0 => Bson::from("$$ROOT"),
                    1 => pairs,
                    2 => call("$size", pairs),
                    3 => call("$setField", doc! { "field": "new", "input": "$$ROOT", "value": x }),
                    _ => call("$objectToArray", doc! { "x": x, "all": "$$ROOT", "n": 1 }),
                }
            }),
            1 => (prop_oneof![Just(Bson::from("$s")), inner.clone()], prop::sample::select(vec!["a", "-", "01", "ä"]), -3..3_i32).prop_map(|(text, by, at)| {
                let parts = call("$split", vec![text, by.into()]);
                match at {
                    0 => call("$first", vec![parts]),
                    -1 => call("$last", vec![parts]),
                    at => call("$arrayElemAt", vec![parts, at.into()]),
                }
            }),
            2 => [inner.clone(), inner.clone(), inner.clone()].prop_map(|[test, then, other]| call("$cond", vec![test, then, other])),
            1 => ([inner.clone(), inner.clone(), inner.clone(), inner.clone()], prop::option::of(inner.clone())).prop_map(|([a, b, c, d], default)| {
                let branches = vec![doc! { "case": a, "then": b }, doc! { "case": c, "then": d }];
                let mut switch = doc! { "branches": branches };
                if let Some(default) = default {
                    switch.insert("default", default);
                }
                call("$switch", switch)
            }),
            1 => [inner.clone(), inner.clone()].prop_map(|[x, y]| {
                call("$let", doc! { "vars": { "x": x, "y": y }, "in": { "$add": ["$$x", { "$multiply": ["$$x", "$$y"] }] } })
            }),
            1 => inner.clone().prop_map(|x| call("$let", doc! { "vars": { "x": x }, "in": { "$map": { "input": [1, "$$x"], "in": { "$add": ["$$this", "$$x"] } } } })),
            1 => inner.clone().prop_map(|x| call("$map", doc! { "input": [x, "$i"], "in": { "$type": "$$this" } })),
            3 => ([inner.clone(), inner.clone(), inner.clone()], 0..6, prop::sample::select(binary)).prop_map(|([x, y, z], form, of_two)| {
                let array = doc! { "$cond": [z, [x, "$i", "$v"], { "$slice": [["$a", y.clone()], 1] }] };
                let each = |one: &str, other: Bson| call(of_two, vec![one.into(), other]);
                match form {
                    0 => call("$map", doc! { "input": array, "in": each("$$this", y) }),
                    1 => call("$map", doc! { "input": array, "as": "e", "in": { "$map": { "input": ["$$e", y], "in": ["$$this", "$$e", "$i"] } } }),
                    2 => call("$filter", doc! { "input": array, "cond": each("$$this", y) }),
                    3 => call("$filter", doc! { "input": y, "cond": each("$$this", "$a".into()) }),
                    4 => call("$reduce", doc! { "input": array, "initialValue": y, "in": each("$$value", "$$this".into()) }),
                    _ => call("$reduce", doc! { "input": [array, y.clone()], "initialValue": "$b", "in": { "$cond": [y, ["$$value"], "$$this"] } }),
                }
            }),
            1 => [inner.clone(), inner.clone()].prop_map(|[x, y]| Bson::from(doc! { "p": x, "q": y })),
            1 => [inner.clone(), inner.clone()].prop_map(|[x, y]| Bson::from(vec![x, y])),
            1 => ([inner.clone(), inner.clone()], prop::sample::select(vec!["$$o.p", "$$o.q", "$$o.q.r", "$$o.q.hour", "$$o.none"]))
                .prop_map(|([x, y], path)| call("$let", doc! { "vars": { "o": { "p": x, "q": y } }, "in": path })),
            1 => (inner.clone(), inner.clone(), prop::sample::select(vec!["p", "q", "r"]))
                .prop_map(|(x, y, field)| call("$getField", doc! { "field": field, "input": { "p": x, "q": { "r": y } } })),
            1 => (prop_oneof![1 => Just(Bson::from("$d")), 1 => inner.clone()], zone.clone(), any::<bool>(), parts).prop_map(|(date, zone, by_week, (field, by_path))| {
                let all = call("$dateToParts", doc! { "date": date, "timezone": zone, "iso8601": by_week });
                match by_path {
                    true => call("$let", doc! { "vars": { "o": { "q": all } }, "in": format!("$$o.q.{field}") }),
                    false => call("$getField", doc! { "field": field, "input": all }),
                }
            }),
            1 => (prop_oneof![Just(Bson::from("$d")), inner.clone()], zone.clone(), 0..3).prop_map(|(date, zone, form)| match form {
                0 => call("$dateToParts", doc! { "date": date }),
                _ => call("$dateToParts", doc! { "date": date, "timezone": zone, "iso8601": form == 1 }),
            }),
            1 => (prop::sample::select(vec!["$o", "$p", "$m"]), prop::sample::select(vec!["x", "y", "none"]))
                .prop_map(|(object, field)| call("$unsetField", doc! { "field": field, "input": object })),
            1 => prop::sample::select(vec!["$o", "$p", "$m"]).prop_map(|object| call("$mergeObjects", vec![Bson::from(object), doc! { "n": 1, "x": "t" }.into()])),
            1 => [inner.clone(), inner.clone(), inner.clone()].prop_map(|[x, y, z]| call("$in", vec![x, vec![y, z].into()])),
            1 => [inner.clone(), inner.clone()].prop_map(|[x, y]| call("$median", doc! { "input": [x, y, "$a"], "method": "approximate" })),
            1 => (inner.clone(), prop::collection::vec(constant(), 0..5)).prop_map(|(x, list)| call("$in", vec![x, list.into()])),
            1 => (inner.clone(), unit.clone(), 1..3_i32, zone.clone()).prop_map(|(date, unit, size, zone)| {
                call("$dateTrunc", doc! { "date": date, "unit": unit, "binSize": size, "timezone": zone })
            }),
            1 => [inner.clone(), inner.clone()].prop_map(|[x, y]| call("$mergeObjects", vec![Bson::from("$o"), doc! { "x": x, "t": y }.into()])),
            1 => (inner.clone(), prop::sample::select(vec!["$o", "$p"]), prop::sample::select(vec!["x", "y", "t"])).prop_map(|(x, object, name)| {
                call("$setField", doc! { "field": name, "input": { "$mergeObjects": [object, { "s": x.clone() }] }, "value": x })
            }),
            1 => (prop_oneof![Just(Bson::from("$d")), inner.clone()], unit, prop_oneof![(-2..3_i32).prop_map(Bson::from), Just("$i".into()), Just("$l".into()), inner.clone()], zone.clone(), any::<bool>()).prop_map(|(date, unit, amount, zone, adds)| {
                call(if adds { "$dateAdd" } else { "$dateSubtract" }, doc! { "startDate": date, "unit": unit, "amount": amount, "timezone": zone })
            }),
            1 => (inner.clone(), inner.clone(), prop::sample::select(vec!["second", "minute", "hour", "day", "week", "month", "quarter", "year", "never"]), prop::option::of(zone.clone()))
                .prop_map(|(start, end, unit, zone)| {
                    let mut arguments = doc! { "startDate": start, "endDate": end, "unit": unit };
                    if let Some(zone) = zone {
                        arguments.insert("timezone", zone);
                    }
                    call("$dateDiff", arguments)
                }),
            1 => (inner.clone(), format, zone.clone(), prop::option::of(inner.clone())).prop_map(|(date, format, zone, instead)| {
                let mut arguments = doc! { "date": date, "format": format, "timezone": zone };
                if let Some(instead) = instead {
                    arguments.insert("onNull", instead);
                }
                call("$dateToString", arguments)
            }),
            1 => (
                inner.clone(),
                prop::sample::select(vec![Bson::from("double"), "int".into(), "long".into(), "bool".into(), "date".into(), "string".into(), 16.into(), 99.into(), Bson::Null]),
                prop::option::of(inner.clone()),
                prop::option::of(inner.clone()),
            )
                .prop_map(|(input, to, on_error, on_null)| {
                    let mut arguments = doc! { "input": input, "to": to };
                    for (name, given) in [("onError", on_error), ("onNull", on_null)] {
                        if let Some(given) = given {
                            arguments.insert(name, given);
                        }
                    }
                    call("$convert", arguments)
                }),
            1 => [inner.clone(), inner.clone()].prop_map(|[year, day]| call("$dateFromParts", doc! { "year": year, "month": "$i", "day": day })),
            1 => (prop::sample::select(vec!["$hour", "$year", "$dayOfYear"]), inner.clone(), zone)
                .prop_map(|(name, date, zone)| call(name, doc! { "date": date, "timezone": zone })),
            1 => (prop::sample::select(vec!["$round", "$trunc"]), inner, -2..3_i32).prop_map(|(name, x, places)| call(name, vec![x, places.into()])),
        ]
    })
}

/// The boundary below a field, with and without a default.
fn bucket() -> impl Strategy<Value = BoundExpr> {
    let boundaries = prop_oneof![
        prop::collection::vec(number(), 2..6)
            .prop_map(|all| all.into_iter().map(OwnedValue::double).collect::<Vec<_>>()),
        prop::collection::vec(int64(), 2..6).prop_map(|all| all.into_iter().map(OwnedValue::int64).collect()),
        prop::collection::vec(date(), 2..6).prop_map(|all| all.into_iter().map(OwnedValue::date).collect()),
        prop::collection::vec(text(), 2..6).prop_map(|all| all.iter().map(|text| OwnedValue::string(text)).collect()),
    ];
    let field = prop::sample::select(vec!["$a", "$b", "$i", "$l", "$d", "$t", "$s", "$v", "$m", "$m.x", "$none"]);
    (field, boundaries, prop::option::of(int32())).prop_map(|(field, mut boundaries, default)| {
        boundaries.sort_by(|a, b| globals().collation().compare(a.view(), b.view()));
        let by = bound(&field.into()).unwrap().expr().clone();
        BoundExpr::new(bucket_of(by, boundaries, default.map(OwnedValue::int32)), globals())
    })
}

/// Type and bytes; all NaN are one.
fn shown(value: Option<Value<'_>>) -> (Option<Kind>, Vec<u8>) {
    match value {
        Some(value) if value.as_f64().is_some_and(f64::is_nan) => (Some(Kind::Double), b"NaN".to_vec()),
        other => (other.map(Value::kind), other.map(|value| value.bytes().to_vec()).unwrap_or_default()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]
    #[test]
    fn vectorised_expressions_equal_those_evaluated_by_row(
        expr in prop_oneof![20 => expression().prop_map(|expr| bound(&expr)), 1 => bucket().prop_map(Some)],
        block in block(),
        among in 1..64_u8,
    ) {
        let Some(expr) = expr else { return Ok(()) };
        let mut compiled = None;
        if !compile_if_loaded(&expr, &mut compiled) {
            return Ok(());
        }
        let compiled = compiled.unwrap();
        let mut expected = Vec::new();
        let one_by_one = expr.for_each_row(&block, &mut (0..ROWS), &mut |_, value| expected.push(shown(value)));
        match compiled.column(&block, true) {
            Ok(column) => {
                prop_assert!(one_by_one.is_ok());
                let found: Vec<_> = (0..ROWS).map(|row| shown(column.value(row, &mut Vec::new()))).collect();
                prop_assert_eq!(&found, &expected);
                // Null may be missing instead.
                let column = compiled.column(&block, false).unwrap();
                let found: Vec<_> = (0..ROWS).map(|row| shown(column.value(row, &mut Vec::new()))).collect();
                let without = |values: Vec<(Option<Kind>, Vec<u8>)>| -> Vec<_> {
                    values.into_iter().map(|(kind, bytes)| (kind.filter(|kind| *kind != Kind::Null), bytes)).collect()
                };
                prop_assert_eq!(without(found), without(expected));
            }
            Err(error) => prop_assert_eq!(error.code, one_by_one.unwrap_err().code),
        }
        // The rows that pass, of all and of some.
        for chosen in [u8::MAX, among] {
            let wanted = Bitmap::from_fn(ROWS, |row| chosen >> row & 1 == 1);
            let mut passing = Bitmap::filled(ROWS, false);
            let one_by_one = expr.for_each_row(&block, &mut wanted.iter(), &mut |row, value| {
                passing.set(row, value.is_some_and(Value::is_true));
            });
            let mut rows = wanted.clone();
            match compiled.narrow(&block, &mut rows) {
                Ok(()) => {
                    prop_assert!(one_by_one.is_ok());
                    prop_assert_eq!(&rows, &passing);
                }
                Err(error) => prop_assert_eq!(error.code, one_by_one.unwrap_err().code),
            }
            let mut rows = wanted;
            if expr.narrow(&block, &mut rows).is_ok() {
                prop_assert_eq!(rows, passing);
            }
        }
    }
}

#[test]
fn rows_are_alike_only_if_all_their_values_have_the_same_bytes() {
    // Mixed numbers and strings, two zeros, more distinct values and longer ones than are compared.
    let few = |row: usize| match row % 7 {
        0 => Some(OwnedValue::string("a")),
        1 => Some(OwnedValue::string("b")),
        2 => Some(OwnedValue::int32(1)),
        3 => Some(OwnedValue::double(1.0)),
        4 => Some(OwnedValue::double(-0.0)),
        5 => Some(OwnedValue::null()),
        _ => None,
    };
    let mut block = Block::new(400);
    block.set_column("few", column(&(0..400).map(few).collect::<Vec<_>>()));
    let many = |row: usize| Some(OwnedValue::string(&row.to_string()));
    block.set_column("many", column(&(0..400).map(many).collect::<Vec<_>>()));
    // Entries of which most rows have one of their own, or none.
    let most = column(&(0..400).map(|row| Some(OwnedValue::string(&format!("{}", row * row)))).collect::<Vec<_>>());
    let presence = Bitmap::from_fn(400, |row| row % 9 > 0);
    let most = Column::new(
        ColumnData::Dictionary((0..400).map(|row| row * 3 % 300).collect(), Box::new(most)),
        Some(presence),
    );
    block.set_column("most", most);
    let text = |row: usize| Some(OwnedValue::string(["on", "off", "error"][row % 3]));
    block.set_column("text", column(&(0..400).map(text).collect::<Vec<_>>()));
    let long = |row: usize| Some(OwnedValue::string(&"on".repeat(if row % 3 == 1 { 600 } else { row % 2 })));
    block.set_column("long", column(&(0..400).map(long).collect::<Vec<_>>()));
    let matches = |input: &str| Bson::from(doc! { "$regexMatch": { "input": input, "regex": "^o|1" } });
    let bytes = || DocWriter::new().binary("", 0, &[1, 2, 3]).clone().finish().view().get("").map(Value::to_owned);
    block.set_column("bytes", column(&(0..400).map(|row| bytes().filter(|_| row % 3 > 0)).collect::<Vec<_>>()));
    let converted = |input: Bson| Bson::from(doc! { "$convert": { "input": input, "to": "string", "onNull": "none" } });
    let to = |to: &str| Bson::from(doc! { "$convert": { "input": "$bytes", "to": to, "onError": "none" } });
    let expressions = [
        // Without a format, they are no string, and that is an error.
        to("string"),
        to("int"),
        to("bool"),
        converted("$few".into()),
        matches("$many"),
        matches("$text"),
        matches("$long"),
        call("$concat", vec![converted("$few".into()), "$text".into()]),
        call("$strLenCP", vec![call("$toString", "$few")]),
        call("$cmp", vec!["$text", "$many"]),
        call("$lte", vec!["$many", "$text"]),
        call("$ne", vec!["$long", "$text"]),
        call("$concat", vec!["$most", "$text"]),
        call("$lt", vec!["$most", "$text"]),
        call("$replaceAll", doc! { "input": "$most", "find": "$text", "replacement": "-" }),
        call("$ifNull", vec![call("$toString", vec!["$few"]), "$many".into()]),
        call("$cond", vec![matches("$text"), call("$type", "$few"), call("$concat", vec!["$many", "$text"])]),
    ];
    for expression in expressions {
        let bound = bound(&expression).unwrap();
        let values = |column: crate::error::Result<Column>| {
            column.map(|column| (0..400).map(|row| shown(column.value(row, &mut Vec::new()))).collect::<Vec<_>>()).ok()
        };
        assert_eq!(values(bound.column(&block)), values(bound.one_by_one(&block)), "{expression}");
    }
}
