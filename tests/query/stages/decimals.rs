//! Decimals in windows. The expected values come from another implementation of decimals with 34 digits.

use bson::{Bson, Document, doc};

use super::{code, list, row, run, values, with_rows};
use crate::support::Db;

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

/// Five rows at seconds 0, 1, 3, 4, 7 and one without a value.
fn with_decimals(check: impl AsyncFn(&Db)) {
    let x = ["0.1", "0.4", "1.3", "1.3", "2.9"].map(decimal);
    let y = list![2, 3_i64, 5.5, -1, 4];
    let mut rows: Vec<Document> = x
        .into_iter()
        .zip(y)
        .zip([0, 1, 3, 4, 7])
        .map(|((x, y), second)| row(second, "a", doc! { "x": x, "y": y, "s": decimal(&second.to_string()) }))
        .collect();
    rows.push(row(2, "a", doc! { "z": 1 }));
    with_rows(rows, check);
}

/// The values of a window function over the rows with an `x`, as strings with their types.
async fn of(db: &Db, function: Document) -> Vec<String> {
    let stage = doc! { "$setWindowFields": { "sortBy": { "at": 1 }, "output": { "r": function } } };
    let rows = run(db, vec![doc! { "$match": { "x": { "$exists": true } } }, stage]).await;
    values(&rows, "r").iter().map(shown).collect()
}

/// A decimal without trailing zeros.
fn shown(value: &Bson) -> String {
    let text = value.to_string();
    match value {
        Bson::Decimal128(_) if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => text,
    }
}

#[test]
fn window_functions_of_decimals_are_decimals() {
    let so_far = || doc! { "documents": ["unbounded", "current"] };
    with_decimals(async |db| {
        let all = of(db, doc! { "$covariancePop": ["$x", "$y"], "window": so_far() }).await;
        let near: Vec<f64> = all.iter().map(|text| (text.parse::<f64>().unwrap() * 1e12).round() / 1e12).collect();
        assert_eq!(near, [0.0, 0.075, 0.75, -0.028125, 0.53]);
        // Only the final result is rounded.
        assert_eq!((&*all[0], &*all[1]), ("0", "0.075"), "{all:?}");
        let window = doc! { "documents": [-1, 0] };
        let slope = of(db, doc! { "$derivative": { "input": "$x", "unit": "second" }, "window": window }).await;
        assert_eq!(slope, ["null", "0.3", "0.45", "0", "0.5333333333333333333333333333333333"]);
        let area = of(db, doc! { "$integral": { "input": "$x", "unit": "second" }, "window": so_far() }).await;
        assert_eq!(area[1..], ["0.25", "1.95", "3.25", "9.55"]);
        let means = of(db, doc! { "$expMovingAvg": { "input": "$x", "alpha": 0.3 } }).await;
        assert_eq!(means, ["0.1", "0.19", "0.523", "0.7561", "1.39927"]);
        let means = of(db, doc! { "$expMovingAvg": { "input": "$x", "N": 2 } }).await;
        let last = ["1.188888888888888888888888888888889", "2.329629629629629629629629629629629"];
        assert_eq!(means[3..], last);
        let spread = of(db, doc! { "$minMaxScaler": { "input": "$x" } }).await;
        assert_eq!(spread[1..3], ["0.1071428571428571428571428571428571", "0.4285714285714285714285714285714286"]);
    });
}

#[test]
fn gaps_between_decimals_are_filled_with_decimals() {
    with_decimals(async |db| {
        let stage = doc! { "$fill": { "sortBy": { "at": 1 }, "output": { "x": { "method": "linear" } } } };
        let filled = values(&run(db, vec![stage]).await, "x");
        let filled: Vec<String> = filled.iter().map(shown).collect();
        assert_eq!(filled[..4], ["0.1", "0.4", "0.85", "1.3"]);
    });
}

#[test]
fn window_bounds_and_densify_steps_may_be_decimals() {
    with_decimals(async |db| {
        let rows = doc! { "$match": { "x": { "$exists": true } } };
        let window = doc! { "range": [decimal("-1.5"), decimal("0")] };
        let output = doc! { "count": { "$sum": 1, "window": window } };
        let stage = doc! { "$setWindowFields": { "sortBy": { "s": 1 }, "output": output } };
        assert_eq!(values(&run(db, vec![rows.clone(), stage]).await, "count"), list![1, 2, 1, 2, 1]);
        let grid = doc! { "$densify": { "field": "s", "range": { "step": decimal("2.5"), "bounds": "full" } } };
        let found = values(&run(db, vec![rows, grid]).await, "s");
        let found: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(found, ["0", "1", "2.5", "3", "4", "5", "7"]);
    });
}

#[test]
fn other_values_than_numbers_are_refused_beside_decimals() {
    with_decimals(async |db| {
        let by_s = |output: Document| doc! { "$setWindowFields": { "sortBy": { "s": 1 }, "output": { "r": output } } };
        assert_eq!(code(db, by_s(doc! { "$minMaxScaler": { "input": "$x" } })).await, 14);
        assert_eq!(code(db, by_s(doc! { "$integral": { "input": "$x" } })).await, 5_423_900);
    });
}
