//! Random arrays: what is computed of a column of arrays equals what is computed row by row.

use bson::{Bson, RawDocumentBuf, bson, doc};
use proptest::prelude::*;

use crate::block::{Block, Column, ColumnBuilder, Objects, ShapePart};
use crate::query::expr::samples::globals;
use crate::query::expr::{BoundExpr, Expr};
use crate::value::{Doc, Kind, Value};

/// Arrays with elements of one kind, or of several; some arrays are missing.
fn arrays() -> impl Strategy<Value = Vec<Option<Vec<Bson>>>> {
    let number = || prop_oneof![3 => (-9..9_i32).prop_map(|n| f64::from(n) / 4.0), 1 => any::<f64>()];
    let object = |x: Option<f64>, y: i32| match x {
        Some(x) => bson!({ "x": x, "y": { "z": y } }),
        None => bson!({ "y": [y] }),
    };
    let elements = vec![
        number().prop_map(Bson::Double).boxed(),
        any::<i32>().prop_map(Bson::Int32).boxed(),
        (-3..4_i32).prop_map(Bson::Int32).boxed(),
        prop::sample::select(vec!["a", "b", "c"]).prop_map(Bson::from).boxed(),
        prop_oneof![number().prop_map(Bson::Double), any::<i32>().prop_map(Bson::Int32), Just(Bson::Null)].boxed(),
        (prop::option::of(number()), any::<i32>()).prop_map(move |(x, y)| object(x, y)).boxed(),
        prop_oneof![
            (prop::option::of(number()), any::<i32>()).prop_map(move |(x, y)| object(x, y)),
            any::<i32>().prop_map(|n| bson!([{ "x": n }])),
            Just(Bson::from("text")),
        ]
        .boxed(),
    ];
    prop::sample::select(elements).prop_flat_map(|element| {
        let rows = prop::collection::vec(prop::option::weighted(0.9, prop::collection::vec(element, 0..4)), 1..7);
        // Elements that repeat often enough have numbers.
        (rows, prop::sample::select(vec![1, 70])).prop_map(|(rows, times)| vec![rows; times].concat())
    })
}

fn expressions() -> Vec<Bson> {
    let mut all = vec![
        bson!({ "$size": "$l" }),
        bson!({ "$size": { "$ifNull": ["$l", []] } }),
        bson!({ "$first": "$l" }),
        bson!({ "$last": "$l" }),
        bson!("$l.x"),
        bson!("$l.y.z"),
        bson!({ "$size": { "$filter": { "input": "$l", "cond": { "$gt": ["$$this", 0.5] } } } }),
        bson!({ "$filter": { "input": "$l", "cond": { "$gt": ["$$this.x", { "$size": "$l" }] } } }),
        bson!({ "$map": { "input": "$l", "in": { "$ifNull": ["$$this.x", "$$this"] } } }),
    ];
    for place in [-3, -1, 0, 1, 2] {
        all.push(bson!({ "$arrayElemAt": ["$l", place] }));
    }
    let len = || bson!({ "$size": { "$ifNull": ["$l", []] } });
    for place in [
        bson!({ "$subtract": [len(), 2] }),
        bson!({ "$multiply": [len(), 0.5] }),
        bson!({ "$multiply": [len(), 1e9] }),
        bson!({ "$cond": [{ "$eq": [len(), 2] }, null, len()] }),
    ] {
        all.push(bson!({ "$arrayElemAt": ["$l", place] }));
    }
    for array in [bson!("$l"), bson!({ "$ifNull": ["$l", []] }), bson!({ "$slice": ["$l", 2] })] {
        let next = bson!({ "$arrayElemAt": [array.clone(), { "$add": ["$$this", 1] }] });
        let pair = bson!({ "$lt": [{ "$arrayElemAt": [array, "$$this"] }, next.clone()] });
        for each in [next, pair] {
            all.push(bson!({ "$map": { "input": { "$range": [-3, 3] }, "in": each.clone() } }));
            all.push(bson!({ "$filter": { "input": { "$range": [0, len()] }, "cond": each } }));
        }
    }
    let sum = |of: &str| bson!({ "$add": ["$$value", { "$cond": [{ "$isNumber": of }, of, 1] }] });
    for (initial, next) in [
        (bson!(0), sum("$$this")),
        (bson!(0.5), sum("$$this.x")),
        (bson!({ "$size": "$l" }), sum("$$this.y.z")),
        (bson!("$none"), bson!({ "$ifNull": ["$$value", "$$this"] })),
        (bson!({ "$first": "$l" }), bson!({ "$max": ["$$value", "$$this", len()] })),
        (bson!(""), bson!({ "$concat": ["$$value", ">", { "$toString": { "$ifNull": ["$$this.x", ""] } }] })),
        (bson!([]), bson!({ "$concatArrays": [["$$this"], "$$value"] })),
        (bson!({}), bson!({ "last": "$$this", "before": "$$value.last", "n": "$_" })),
        (bson!(0), bson!({ "$add": ["$$value", "$$this"] })),
        (bson!(1), bson!({ "$reduce": { "input": "$l", "initialValue": "$$value", "in": sum("$$value") } })),
    ] {
        let reduce =
            |input| bson!({ "$reduce": { "input": input, "initialValue": initial.clone(), "in": next.clone() } });
        all.extend([reduce(bson!("$l")), reduce(bson!({ "$slice": [{ "$ifNull": ["$l", []] }, 1, 9] }))]);
        all.push(reduce(bson!({ "$range": [0, { "$size": { "$ifNull": ["$l", []] } }] })));
    }
    // Variables from outside.
    for outer in [bson!("$l"), len(), bson!({ "$first": "$l" }), bson!("$none"), bson!({ "$abs": { "$first": "$l" } })]
    {
        for each in [
            bson!({ "$cond": [{ "$lt": ["$$this", "$$x"] }, "$$this", "$$x"] }),
            bson!({ "$ifNull": ["$$x", "$$y"] }),
            bson!([{ "$type": "$$x" }, "$$y", "$_"]),
            bson!({ "$map": { "input": [1, "$$y"], "as": "z", "in": ["$$z", "$$this", "$$x"] } }),
            bson!({ "$reduce": { "input": { "$range": [0, "$$y"] }, "initialValue": "$$x", "in": ["$$value", "$$this", "$$y"] } }),
        ] {
            let map = bson!({ "$map": { "input": "$l", "in": each } });
            all.push(bson!({ "$let": { "vars": { "x": outer.clone(), "y": { "$size": [["$l"]] } }, "in": map } }));
        }
    }
    let or_empty = || bson!({ "$ifNull": ["$l", []] });
    for n in [-7, -2, 0, 1, 2, 9] {
        all.push(bson!({ "$slice": ["$l", n] }));
        for count in [-1, 0, 1, 2] {
            all.push(bson!({ "$slice": ["$l", n, count] }));
        }
        for name in ["$firstN", "$lastN", "$minN", "$maxN"] {
            all.extend([bson!({ name: { "input": "$l", "n": n } }), bson!({ name: { "input": or_empty(), "n": n } })]);
        }
    }
    for made in [
        bson!({ "$reverseArray": "$l" }),
        bson!({ "$sortArray": { "input": "$l", "sortBy": 1 } }),
        bson!({ "$sortArray": { "input": "$l", "sortBy": -1 } }),
        bson!({ "$sortArray": { "input": "$l", "sortBy": { "x": 1 } } }),
        bson!({ "$sortArray": { "input": "$l", "sortBy": { "x": -1 } } }),
        bson!({ "$sortArray": { "input": "$l", "sortBy": { "y": 1, "x": -1 } } }),
        bson!({ "$concatArrays": ["$l", [1, "x"], { "$slice": ["$l", -1] }] }),
        bson!({ "$concatArrays": ["$l"] }),
        bson!({ "$range": [0, len()] }),
        bson!({ "$range": [len(), -2, -2] }),
        bson!({ "$range": [0, len(), { "$subtract": [len(), 1] }] }),
        bson!({ "$map": { "input": "$l", "in": "$$this.x" } }),
        bson!("$l.x"),
        bson!({ "$slice": ["$l.x", 2] }),
    ] {
        all.extend([
            bson!({ "$size": made.clone() }),
            bson!({ "$first": made.clone() }),
            bson!({ "$type": { "$last": made.clone() } }),
            bson!({ "$type": made.clone() }),
            bson!({ "$sum": made.clone() }),
            bson!([made.clone(), { "a": made.clone() }]),
            bson!({ "$cond": [{ "$gt": [len(), 1] }, made.clone(), "$l"] }),
            bson!({ "$eq": [made.clone(), "$l"] }),
            bson!({ "$gt": [made.clone(), 1] }),
            bson!({ "$not": [made.clone()] }),
            bson!({ "$ifNull": [made.clone(), len()] }),
            bson!({ "$setUnion": [made.clone(), "$l"] }),
            bson!({ "$concatArrays": [made.clone(), "$l"] }),
            bson!({ "$map": { "input": made.clone(), "in": [{ "$size": made.clone() }, "$$this"] } }),
            bson!({ "$filter": { "input": made.clone(), "cond": "$$this" } }),
            bson!({ "$arrayElemAt": [made.clone(), { "$subtract": [len(), 1] }] }),
        ]);
        all.push(made);
    }
    let of = |name: &str, key: Bson, value: Bson| bson!({ "$arrayToObject": { "$map": { "input": name, "in": { "k": key, "v": value } } } });
    let key = || bson!({ "$toString": { "$ifNull": ["$$this.y.z", 0] } });
    let range = bson!({ "$range": [0, len()] });
    let named =
        |array: Bson| bson!({ "$arrayToObject": { "$map": { "input": array, "in": { "k": "f", "v": "$$this" } } } });
    for array in [bson!([{ "$first": "$l" }]), bson!([{ "x": len() }]), bson!([["$l"]])] {
        let inner = bson!({ "$let": { "vars": { "o": named(array.clone()) }, "in": ["$$o.f.x", "$$o.f.y", "$$o.f"] } });
        all.extend([inner, named(array)]);
    }
    let numbered = bson!({ "$map": { "input": range, "in": { "k": { "$toString": "$$this" }, "v": { "$add": ["$$this", len()] } } } });
    let object = || bson!({ "x": len(), "y": { "$first": "$l" }, "z": 0.5 });
    let pairs = || bson!({ "$objectToArray": object() });
    all.extend([
        of("$l", key(), bson!("$$this.x")),
        of("$l", key(), len()),
        of("$l.x", bson!("same"), bson!("$$this")),
        bson!({ "$arrayToObject": numbered }),
        bson!({ "$arrayToObject": [[["a", len()], ["b", { "$first": "$l" }]]] }),
        bson!({ "$arrayToObject": pairs() }),
        bson!({ "$arrayToObject": { "$map": { "input": pairs(), "in": { "k": "$$this.k", "v": { "$type": "$$this.v" } } } } }),
        bson!({ "$filter": { "input": pairs(), "cond": { "$gt": ["$$this.v", 1] } } }),
        bson!({ "$mergeObjects": [object(), { "w": 1, "x": "text" }] }),
        bson!({ "$mergeObjects": [{ "w": 1 }, object(), { "v": [1] }] }),
        bson!({ "$unsetField": { "field": "x", "input": object() } }),
        bson!({ "$unsetField": { "field": "none", "input": object() } }),
        bson!({ "$unsetField": { "field": "x", "input": { "x": len() } } }),
        bson!([len(), { "$first": "$l" }, "$none", 0.5]),
        bson!({ "$map": { "input": [len(), { "$last": "$l" }, "$l"], "in": { "$isArray": "$$this" } } }),
    ]);
    for wanted in [bson!({ "$first": "$l" }), len(), bson!("$none"), bson!(null)] {
        all.push(bson!({ "$in": [wanted, [len(), { "$last": "$l" }, 0.5, "$none"]] }));
    }
    for number in [
        len(),
        bson!({ "$subtract": [1, len()] }),
        bson!({ "$cond": [{ "$gt": [len(), 1] }, 2, null] }),
        bson!({ "$add": [len(), 0.5] }),
    ] {
        all.extend([
            bson!({ "$slice": ["$l", number.clone()] }),
            bson!({ "$slice": [or_empty(), number.clone(), 2] }),
            bson!({ "$slice": ["$l", -2, number] }),
        ]);
    }
    for each in [
        bson!({ "$slice": ["$l", "$$this"] }),
        bson!({ "$slice": [or_empty(), "$$this", 2] }),
        bson!({ "$in": ["$$this", or_empty()] }),
        bson!({ "$in": [{ "$arrayElemAt": [or_empty(), "$$this"] }, or_empty()] }),
        bson!({ "$indexOfArray": ["$l", "$$this"] }),
        bson!({ "$indexOfArray": ["$l", { "$arrayElemAt": [or_empty(), "$$this"] }] }),
    ] {
        all.push(bson!({ "$map": { "input": { "$range": [-2, 3] }, "in": each } }));
    }
    for wanted in
        [bson!({ "$last": "$l" }), len(), bson!({ "$ifNull": [{ "$first": "$l.x" }, "text"] }), bson!({ "$max": "$l" })]
    {
        all.push(bson!({ "$in": [wanted.clone(), or_empty()] }));
        all.push(bson!({ "$indexOfArray": ["$l", wanted] }));
    }
    let joined = |input: Bson| bson!({ "$reduce": { "input": input, "initialValue": [], "in": { "$concatArrays": ["$$value", "$$this"] } } });
    for input in [
        bson!("$l"),
        bson!({ "$map": { "input": "$l", "in": ["$$this", 1] } }),
        bson!({ "$map": { "input": or_empty(), "in": { "$ifNull": ["$$this.y", []] } } }),
        bson!(["$l", "$l"]),
    ] {
        all.push(joined(input));
    }
    for [a, b] in [["$l", "$l"], ["$l", "$l.x"]] {
        let inputs = bson!([a, { "$slice": [b, 2] }]);
        all.extend([
            bson!({ "$zip": { "inputs": inputs.clone() } }),
            bson!({ "$zip": { "inputs": [a, [1, 2.5, "x"], b] } }),
            bson!({ "$zip": { "inputs": inputs.clone(), "useLongestLength": true } }),
            bson!({ "$zip": { "inputs": inputs.clone(), "useLongestLength": true, "defaults": [0, 1] } }),
            bson!({ "$map": { "input": { "$zip": { "inputs": inputs } }, "in": { "$ifNull": [{ "$last": "$$this" }, "$$this"] } } }),
        ]);
    }
    for input in [
        bson!("$l"),
        or_empty(),
        bson!([len(), { "$first": "$l" }, 2.5]),
        bson!({ "$map": { "input": or_empty(), "in": 3 } }),
    ] {
        for method in ["approximate", "continuous"] {
            all.push(bson!({ "$median": { "input": input.clone(), "method": method } }));
            all.push(bson!({ "$percentile": { "input": input.clone(), "p": [0.0, 0.3, 1], "method": method } }));
        }
    }
    for list in [bson!("$l"), or_empty(), bson!({ "$map": { "input": or_empty(), "in": "$$this.x" } })] {
        for wanted in
            [bson!(0.5), bson!(1), bson!(f64::NAN), bson!(null), bson!("text"), bson!({ "y": [1] }), bson!("$none")]
        {
            all.push(bson!({ "$in": [wanted.clone(), list.clone()] }));
            all.push(bson!({ "$indexOfArray": [list.clone(), wanted] }));
        }
        all.extend([bson!({ "$anyElementTrue": [list.clone()] }), bson!({ "$allElementsTrue": [list] })]);
    }
    for list in [bson!("$l"), or_empty(), bson!({ "$slice": [or_empty(), 2] })] {
        let others = [bson!([1, 0.5, "a", null]), bson!([1]), bson!(["b", "a"]), bson!([]), len(), bson!("$none")];
        for other in others.into_iter().chain([bson!({ "$slice": [or_empty(), -2] })]) {
            for name in ["$setUnion", "$setIntersection", "$setDifference", "$setEquals", "$setIsSubset"] {
                all.push(bson!({ name: [list.clone(), other.clone()] }));
                all.push(bson!({ name: [other.clone(), list.clone()] }));
            }
            for name in ["$setUnion", "$setIntersection", "$setEquals"] {
                all.push(bson!({ name: [list.clone(), or_empty(), other.clone()] }));
            }
            all.push(bson!({ "$size": { "$setIntersection": [list.clone(), other.clone()] } }));
        }
        all.extend([bson!({ "$setUnion": [list.clone()] }), bson!({ "$setIntersection": [list] })]);
    }
    for name in ["$sum", "$avg", "$max", "$min", "$stdDevPop", "$stdDevSamp"] {
        all.extend([bson!({ name: "$l" }), bson!({ name: "$l.x" }), bson!({ name: ["$l"] })]);
        all.push(bson!({ name: { "$map": { "input": "$l", "in": { "$ifNull": ["$$this.x", 1] } } } }));
    }
    all
}

/// The same expression of the arrays in objects.
fn within(case: &Bson, object: &str) -> Bson {
    match case {
        Bson::String(path) if path.starts_with("$l") => path.replacen("$l", &format!("${object}.l"), 1).into(),
        Bson::Array(items) => items.iter().map(|item| within(item, object)).collect::<Vec<_>>().into(),
        Bson::Document(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), within(field, object)));
            fields.collect::<bson::Document>().into()
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn operators_on_arrays_of_many_rows_find_what_they_find_for_each_row(rows in arrays(), some in 0..16_usize) {
        let mut column = ColumnBuilder::new();
        for row in &rows {
            match row {
                Some(list) => {
                    let list = RawDocumentBuf::try_from(&doc! { "l": list.clone() }).unwrap();
                    column.push(Doc::parse(list.as_bytes()).unwrap().get("l").unwrap());
                }
                None => column.push_absent(1),
            }
        }
        let mut block = Block::new(rows.len());
        block.set_column("l", column.finish());
        // The same arrays, but empty ones, in objects.
        let items = (0..3_usize).map(|place| {
            let mut item = ColumnBuilder::new();
            for row in &rows {
                match row.as_ref().and_then(|list| list.get(place)) {
                    Some(value) => {
                        let value = RawDocumentBuf::try_from(&doc! { "x": value.clone() }).unwrap();
                        item.push(Doc::parse(value.as_bytes()).unwrap().get("x").unwrap());
                    }
                    None => item.push_absent(1),
                }
            }
            item.finish()
        });
        let names = ["0", "1", "2"].map(|name| ShapePart::Scalar(name.into()));
        let parts = [&[ShapePart::Open(Kind::Array, "l".into())], names.as_slice(), &[ShapePart::Close(false)]].concat();
        block.set_column("o", Column::of_objects(Objects::new(parts.into(), items.collect())));
        // And as they are read from storage: objects in arrays are columns as well.
        let mut stored = ColumnBuilder::new();
        for row in &rows {
            let mut object = doc! { "n": 1 };
            row.iter().for_each(|list| _ = object.insert("l", list.clone()));
            let object = RawDocumentBuf::try_from(&doc! { "o": object }).unwrap();
            stored.push(Doc::parse(object.as_bytes()).unwrap().get("o").unwrap());
        }
        block.set_column("q", crate::column::read_again(&stored.finish()));
        let cases = expressions().into_iter().skip(some).step_by(16);
        for case in cases.flat_map(|case| [within(&case, "o"), within(&case, "q"), case]) {
            let expression = RawDocumentBuf::try_from(&doc! { "": case.clone() }).unwrap();
            let expr = Expr::parse(Doc::parse(expression.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap();
            let expr = BoundExpr::new(expr, globals());
            let (found, expected) = match (expr.column(&block), expr.one_by_one(&block)) {
                (Ok(found), Ok(expected)) => (found, expected),
                (Err(found), Err(expected)) => {
                    prop_assert_eq!(found.code, expected.code);
                    continue;
                }
                (found, expected) => panic!("{case}: {found:?} {expected:?}"),
            };
            for (row, list) in rows.iter().enumerate() {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let values = [found.value(row, &mut a), expected.value(row, &mut b)];
                // Null may be missing instead.
                let shown = |value: Option<Value<'_>>| {
                    value.filter(|value| value.kind() != Kind::Null).map(|value| (value.kind(), value.bytes().to_vec()))
                };
                let is_nan = values.iter().all(|x| x.and_then(Value::as_f64).is_some_and(f64::is_nan));
                prop_assert!(is_nan || shown(values[0]) == shown(values[1]), "{} {:?} {:?}", case, values, list);
            }
        }
    }
}
