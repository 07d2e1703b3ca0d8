//! Which expressions run over columns: no operator of theirs is called for rows one by one, and none is evaluated on documents. Rows that a
//! step leaves out are not counted.

use bson::{Bson, Document};

use super::general;
use super::samples::column;
use super::tests::bound;
use crate::block::Block;
use crate::query::expr::operators::names_of_all;
use crate::value::OwnedValue;

fn of_json(value: &serde_json::Value) -> Bson {
    use serde_json::Value as Json;
    match value {
        Json::Null => Bson::Null,
        Json::Bool(is) => Bson::Boolean(*is),
        Json::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap().into(), |n| Bson::Int32(n as i32)),
        Json::String(text) => text.clone().into(),
        Json::Array(items) => items.iter().map(of_json).collect::<Vec<_>>().into(),
        Json::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), of_json(field))).collect::<Document>().into()
        }
    }
}

/// Operators without a form for columns, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("$rand", "differs in each row by chance"),
    ("$regexMatch", "a text is matched step by step; equal texts once"),
    ("$regexFind", "as $regexMatch"),
    ("$regexFindAll", "as $regexMatch"),
    ("$bsonSize", "the objects must be written"),
    ("$dateFromParts", "each of its eleven arguments may be a column, or omitted"),
    ("$toObjectId", "no typed column holds what programs compute with ids"),
    ("$toUUID", "as $toObjectId"),
    ("$tsSecond", "timestamps have no typed column"),
    ("$tsIncrement", "as $tsSecond"),
];

/// Functions of one double.
const OF_DOUBLES: &[&str] = &[
    "$acos",
    "$acosh",
    "$asin",
    "$asinh",
    "$atan",
    "$atanh",
    "$cos",
    "$cosh",
    "$tan",
    "$tanh",
    "$sinh",
    "$radiansToDegrees",
];

/// Expressions with a form for columns.
const CASES: &[&str] = &[
    r#"{"$add":["$a","$b"]}"#,
    r#"{"$subtract":["$a","$i"]}"#,
    r#"{"$multiply":["$a",2,"$b"]}"#,
    r#"{"$divide":["$a","$i"]}"#,
    r#"{"$mod":["$a",7]}"#,
    r#"{"$mod":["$i",7]}"#,
    r#"{"$abs":"$a"}"#,
    r#"{"$ceil":"$a"}"#,
    r#"{"$floor":"$a"}"#,
    r#"{"$sqrt":"$a"}"#,
    r#"{"$trunc":"$a"}"#,
    r#"{"$trunc":["$a",1]}"#,
    r#"{"$round":["$a",1]}"#,
    r#"{"$round":"$a"}"#,
    r#"{"$exp":"$b"}"#,
    r#"{"$ln":"$a"}"#,
    r#"{"$log10":"$a"}"#,
    r#"{"$log":["$a",2]}"#,
    r#"{"$pow":["$a",2]}"#,
    r#"{"$pow":["$a","$b"]}"#,
    r#"{"$sin":"$a"}"#,
    r#"{"$degreesToRadians":"$a"}"#,
    r#"{"$sigmoid":"$a"}"#,
    r#"{"$bitAnd":["$i",7]}"#,
    r#"{"$bitOr":["$i","$l"]}"#,
    r#"{"$eq":["$a","$b"]}"#,
    r#"{"$gt":["$a",5]}"#,
    r#"{"$cmp":["$a","$b"]}"#,
    r#"{"$eq":["$s","text 7 of many"]}"#,
    r#"{"$gt":["$s","$t"]}"#,
    r#"{"$cmp":["$s","$t"]}"#,
    r#"{"$in":["$i",[1,2,3]]}"#,
    r#"{"$in":["$s",["a","b"]]}"#,
    r#"{"$type":"$a"}"#,
    r#"{"$isNumber":"$a"}"#,
    r#"{"$isArray":"$a"}"#,
    r#"{"$ne":["$a","$b"]}"#,
    r#"{"$gte":["$a","$i"]}"#,
    r#"{"$lt":["$d","$e"]}"#,
    r#"{"$lte":["$i",5]}"#,
    r#"{"$and":[{"$gt":["$a",5]},"$i"]}"#,
    r#"{"$or":[{"$gt":["$a",5]},"$i"]}"#,
    r#"{"$bitXor":["$i",7]}"#,
    r#"{"$dayOfMonth":"$d"}"#,
    r#"{"$dayOfYear":"$d"}"#,
    r#"{"$second":"$d"}"#,
    r#"{"$millisecond":"$d"}"#,
    r#"{"$isoWeekYear":"$d"}"#,
    r#"{"$isoDayOfWeek":"$d"}"#,
    r#"{"$substr":["$s",1,2]}"#,
    r#"{"$stdDevSamp":["$a","$b","$i"]}"#,
    r#"{"$map":{"input":["$a","$b"],"in":{"$add":["$$this",1]}}}"#,
    r#"{"$filter":{"input":["$a","$b"],"cond":{"$gt":["$$this",1]}}}"#,
    r#"{"$reduce":{"input":["$a","$b"],"initialValue":0,"in":{"$add":["$$this","$$value"]}}}"#,
    r#"{"$anyElementTrue":[["$a","$b"]]}"#,
    r#"{"$allElementsTrue":[["$a","$b"]]}"#,
    r#"{"$first":[["$a","$b"]]}"#,
    r#"{"$last":[["$a","$b"]]}"#,
    r#"{"$firstN":{"input":["$a","$b"],"n":1}}"#,
    r#"{"$lastN":{"input":["$a","$b"],"n":1}}"#,
    r#"{"$minN":{"input":["$a","$b"],"n":1}}"#,
    r#"{"$setDifference":[["$a","$b"],["$b"]]}"#,
    r#"{"$setEquals":[["$a","$b"],["$b"]]}"#,
    r#"{"$setIsSubset":[["$a","$b"],["$b"]]}"#,
    r#"{"$setField":{"field":"x","input":{"x":"$a"},"value":"$b"}}"#,
    r#"{"$median":{"input":["$a","$b"],"method":"approximate"}}"#,
    r#"{"$percentile":{"input":["$a","$b"],"p":[0.5],"method":"approximate"}}"#,
    r#"{"$not":["$a"]}"#,
    r#"{"$ifNull":["$a",1]}"#,
    r#"{"$cond":[{"$gt":["$a",5]},"$a","$b"]}"#,
    r#"{"$switch":{"branches":[{"case":{"$gt":["$a",5]},"then":1}],"default":2}}"#,
    r#"{"$toInt":"$a"}"#,
    r#"{"$toLong":"$a"}"#,
    r#"{"$toDouble":"$i"}"#,
    r#"{"$toString":"$a"}"#,
    r#"{"$toString":"$d"}"#,
    r#"{"$toString":"$i"}"#,
    r#"{"$toDecimal":"$a"}"#,
    r#"{"$toDecimal":"$i"}"#,
    r#"{"$toDate":"$l"}"#,
    r#"{"$toBool":"$a"}"#,
    r#"{"$convert":{"input":"$a","to":"int"}}"#,
    r#"{"$convert":{"input":"$a","to":"int","onError":0,"onNull":0}}"#,
    r#"{"$year":"$d"}"#,
    r#"{"$month":"$d"}"#,
    r#"{"$dayOfWeek":"$d"}"#,
    r#"{"$hour":"$d"}"#,
    r#"{"$hour":{"date":"$d","timezone":"Europe/London"}}"#,
    r#"{"$minute":"$d"}"#,
    r#"{"$isoWeek":"$d"}"#,
    r#"{"$week":"$d"}"#,
    r#"{"$dateTrunc":{"date":"$d","unit":"hour"}}"#,
    r#"{"$dateTrunc":{"date":"$d","unit":"week","startOfWeek":"monday"}}"#,
    r#"{"$dateDiff":{"startDate":"$d","endDate":"$e","unit":"hour"}}"#,
    r#"{"$dateDiff":{"startDate":"$d","endDate":"$e","unit":"month"}}"#,
    r#"{"$dateAdd":{"startDate":"$d","unit":"hour","amount":3}}"#,
    r#"{"$dateAdd":{"startDate":"$d","unit":"month","amount":3}}"#,
    r#"{"$dateAdd":{"startDate":"$d","unit":"minute","amount":"$i"}}"#,
    r#"{"$dateSubtract":{"startDate":"$d","unit":"day","amount":1}}"#,
    r#"{"$dateToString":{"date":"$d","format":"%Y-%m-%d"}}"#,
    r#"{"$dateToString":{"date":"$d"}}"#,
    r#"{"$dateFromString":{"dateString":"$u","onError":null}}"#,
    r#"{"$subtract":["$e","$d"]}"#,
    r#"{"$add":["$d",1000]}"#,
    r#"{"$concat":["$s","-","$t"]}"#,
    r#"{"$strLenCP":"$s"}"#,
    r#"{"$strLenBytes":"$s"}"#,
    r#"{"$toUpper":"$s"}"#,
    r#"{"$toLower":"$s"}"#,
    r#"{"$substrCP":["$s",0,3]}"#,
    r#"{"$substrBytes":["$s",1,2]}"#,
    r#"{"$indexOfCP":["$s","of"]}"#,
    r#"{"$indexOfBytes":["$s","of"]}"#,
    r#"{"$indexOfCP":["$s","of",3]}"#,
    r#"{"$indexOfBytes":["$s","of",3,9]}"#,
    r#"{"$trim":{"input":"$s"}}"#,
    r#"{"$ltrim":{"input":"$s","chars":"te"}}"#,
    r#"{"$rtrim":{"input":"$s"}}"#,
    r#"{"$replaceOne":{"input":"$s","find":"of","replacement":"-"}}"#,
    r#"{"$replaceAll":{"input":"$s","find":" ","replacement":""}}"#,
    r#"{"$split":["$s"," "]}"#,
    r#"{"$strcasecmp":["$s","$t"]}"#,
    r#"{"$toInt":"$t"}"#,
    r#"{"$toDouble":"$t"}"#,
    r#"{"$toLong":"$t"}"#,
    r#"{"$toDate":"$u"}"#,
    r#"{"$dateFromString":{"dateString":"$u","format":"%Y-%m-%d %H:%M:%S"}}"#,
    r#"{"$arrayElemAt":[{"$split":["$s"," "]},1]}"#,
    r#"{"$max":["$a","$b"]}"#,
    r#"{"$min":["$a","$i"]}"#,
    r#"{"$sum":["$a","$b","$i"]}"#,
    r#"{"$avg":["$a","$b"]}"#,
    r#"{"$stdDevPop":["$a","$b","$i"]}"#,
    r#"{"$max":["$d","$e"]}"#,
    r#"{"$let":{"vars":{"x":"$a"},"in":{"$add":["$$x",1]}}}"#,
    r#"{"$mergeObjects":[{"x":"$a"},{"y":"$b"}]}"#,
    r#"{"$getField":{"field":"x","input":{"x":"$a"}}}"#,
    r#"{"$objectToArray":{"x":"$a"}}"#,
    r#"{"$size":[["$a","$b"]]}"#,
    r#"{"$slice":[["$a","$b"],1]}"#,
    r#"{"$sortArray":{"input":["$a","$b"],"sortBy":1}}"#,
    r#"{"$reverseArray":[["$a","$b"]]}"#,
    r#"{"$concatArrays":[["$a"],["$b"]]}"#,
    r#"{"$setUnion":[["$a"],["$b"]]}"#,
    r#"{"$setIntersection":[["$a","$b"],["$b"]]}"#,
    r#"{"$zip":{"inputs":[["$a","$b"],["$i","$l"]]}}"#,
    r#"{"$arrayToObject":{"$objectToArray":{"x":"$a","y":"$i"}}}"#,
    r#"{"$unsetField":{"field":"x","input":{"x":"$a","y":"$b"}}}"#,
    r#"{"$mergeObjects":[{"x":"$a"},{"y":1}]}"#,
    r#"{"$dateToParts":{"date":"$d","timezone":"Europe/London"}}"#,
    r#"{"$atan2":["$a","$b"]}"#,
    r#"{"$bitNot":"$i"}"#,
    r#"{"$in":["$i",["$l","$a",3]]}"#,
    r#"{"$binarySize":"$s"}"#,
    r#"{"$type":{"x":"$a"}}"#,
    r#"{"$range":[0,"$i"]}"#,
    r#"{"$maxN":{"input":["$a","$b"],"n":1}}"#,
    r#"{"$indexOfArray":[["$a","$b"],1]}"#,
];

#[test]
fn expressions_of_typed_columns_call_no_operator_for_rows() {
    let rows = || 0..1000_i32;
    let mut block = Block::new(1000);
    let mut set = |name: &str, cell: &dyn Fn(i32) -> OwnedValue| {
        block.set_column(name, column(&rows().map(|row| Some(cell(row))).collect::<Vec<_>>()));
    };
    set("a", &|row| OwnedValue::double(f64::from(row) * 0.7 + 0.01));
    set("b", &|row| OwnedValue::double(f64::from(row * 37 % 1000) / 1000.0));
    set("i", &|row| OwnedValue::int32(row * 7919 % 1000 + 1));
    set("l", &|row| OwnedValue::int64(i64::from(row) << 20));
    set("d", &|row| OwnedValue::date(1_700_000_000_000 + i64::from(row) * 3_600_001));
    set("e", &|row| OwnedValue::date(1_700_000_000_000 + i64::from(row) * 7_200_007));
    set("s", &|row| OwnedValue::string(&format!("text {row} of many")));
    set("u", &|row| OwnedValue::string(&format!("2024-03-{:02} 01:02:03", 1 + row % 31)));
    set("t", &|row| OwnedValue::string(&format!("{row}")));
    let of_doubles = OF_DOUBLES.iter().map(|name| {
        let field = if *name == "$acosh" { "i" } else { "b" };
        format!(r#"{{"{name}":"${field}"}}"#)
    });
    for case in CASES.iter().map(|case| (*case).to_owned()).chain(of_doubles) {
        let case = of_json(&serde_json::from_str(&case).unwrap());
        let expr = bound(&case).unwrap();
        general::CALLS.set(0);
        expr.column(&block).unwrap();
        assert_eq!(general::CALLS.get(), 0, "{case}");
    }
}

#[test]
fn every_operator_has_a_form_for_columns_or_a_reason_why_not() {
    for name in names_of_all() {
        let quoted = format!("\"{name}\"");
        let has_form = OF_DOUBLES.contains(&name) || CASES.iter().any(|case| case.contains(&quoted));
        let reason = WITHOUT.iter().find(|(known, _)| *known == name);
        assert!(has_form != reason.is_some(), "{name}: {reason:?}");
    }
}
