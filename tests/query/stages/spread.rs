//! Windows: `$covariancePop`, `$covarianceSamp`, `$minMaxScaler`, `$concatArrays`, `$setUnion`.

use bson::{Bson, Decimal128, Document, doc};

use super::{code, list, row, run, values, with_rows};
use crate::support::{Db, Random};

fn stage(function: Document) -> Document {
    doc! { "$setWindowFields": { "sortBy": { "at": 1 }, "output": { "r": function } } }
}

async fn of(db: &Db, function: Document) -> Vec<Bson> {
    values(&run(db, vec![stage(function)]).await, "r")
}

fn pairs(of: &[(Bson, Bson)]) -> Vec<Document> {
    (0..).zip(of).map(|(second, (x, y))| row(second, "a", doc! { "x": x.clone(), "y": y.clone() })).collect()
}

#[test]
fn covariances_use_only_pairs_of_numbers() {
    let rows = pairs(&[
        (1.into(), 2.5.into()),
        (2_i64.into(), 5.into()),
        (Bson::Null, 7.into()),
        (4.0.into(), "x".into()),
        (6.into(), 1.into()),
    ]);
    with_rows(rows, async |db| {
        let covariance = |operator: &str, window: Document| doc! { operator: ["$x", "$y"], "window": window };
        let so_far = doc! { "documents": ["unbounded", "current"] };
        let population = of(db, covariance("$covariancePop", so_far.clone())).await;
        assert_eq!(population[..4], list![0.0, 0.625, 0.625, 0.625]);
        // Means 3 and 17 / 6: (-2 * -1/3 - 1 * 13/6 + 3 * -11/6) / 3.
        assert!((population[4].as_f64().unwrap() + 7.0 / 3.0).abs() < 1e-12, "{population:?}");
        let sample = of(db, covariance("$covarianceSamp", so_far)).await;
        assert_eq!(sample[..3], [Bson::Null, 1.25.into(), 1.25.into()]);
        assert!((sample[4].as_f64().unwrap() + 3.5).abs() < 1e-12, "{sample:?}");
        let one = covariance("$covariancePop", doc! { "documents": [0, 0] });
        assert_eq!(of(db, one).await, list![0.0, 0.0, Bson::Null, Bson::Null, 0.0]);
    });
}

#[test]
fn sliding_covariances_equal_those_of_each_window() {
    let random = Random::new(5);
    let number = || random.below(2000) as f64 / 8.0 - 100.0;
    let numbers: Vec<(f64, f64)> = (0..60).map(|_| (number(), number())).collect();
    let rows = pairs(&numbers.iter().map(|(x, y)| (Bson::from(*x), Bson::from(*y))).collect::<Vec<_>>());
    with_rows(rows, async |db| {
        let found = of(db, doc! { "$covarianceSamp": ["$x", "$y"], "window": { "documents": [-6, 2] } }).await;
        for (at, found) in found.iter().enumerate() {
            let window = &numbers[at.saturating_sub(6)..(at + 3).min(60)];
            let n = window.len() as f64;
            let (mx, my) = window.iter().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
            let wanted = window.iter().map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / (n - 1.0);
            assert!((found.as_f64().unwrap() - wanted).abs() < 1e-6, "{at}: {found} and not {wanted}");
        }
    });
}

#[test]
fn min_max_scaler_scales_between_the_extremes_of_the_window() {
    let rows = pairs(&[2, 4, 3, 8, 8].map(|x| (Bson::from(x), Bson::Null)));
    with_rows(rows, async |db| {
        let spread = |more: Document| {
            let mut arguments = doc! { "input": "$x" };
            arguments.extend(more);
            doc! { "$minMaxScaler": arguments }
        };
        let sixth = 1.0 / 6.0;
        assert_eq!(of(db, spread(doc! {})).await, list![0.0, 2.0 * sixth, sixth, 1.0, 1.0]);
        assert_eq!(of(db, spread(doc! { "min": 10, "max": 22.0 })).await, list![10.0, 14.0, 12.0, 22.0, 22.0]);
        let mut near = spread(doc! {});
        near.insert("window", doc! { "documents": [-1, 0] });
        assert_eq!(of(db, near).await, list![0.0, 1.0, 0.0, 1.0, 0.0], "of equal ones it is the least");
    });
}

#[test]
fn concat_arrays_and_set_union_work_in_groups_and_windows() {
    let rows = pairs(&[
        (list![1, 2].into(), Bson::Null),
        (list![2, Bson::Null, list![1]].into(), Bson::Null),
        (Bson::Array(Vec::new()), Bson::Null),
        (list![1.0, 3].into(), Bson::Null),
    ]);
    with_rows(rows, async |db| {
        let group = doc! { "$group": { "_id": 1, "all": { "$concatArrays": "$x" }, "set": { "$setUnion": "$x" }, "none": { "$setUnion": "$gone" } } };
        let rows = run(db, vec![doc! { "$sort": { "at": 1 } }, group]).await;
        let all = list![1, 2, 2, Bson::Null, list![1], 1.0, 3];
        assert_eq!(rows, [doc! { "_id": 1, "all": all, "set": list![1, 2, Bson::Null, list![1], 3], "none": [] }]);
        let window = doc! { "documents": [-1, 0] };
        let found = of(db, doc! { "$concatArrays": "$x", "window": window }).await;
        assert_eq!(found[2..], [list![2, Bson::Null, list![1]], list![1.0, 3]].map(Bson::from));
    });
}

#[test]
fn invalid_inputs_of_these_operators_are_refused_with_their_codes() {
    let rows = pairs(&[(1.into(), "x".into()), (2.into(), Bson::Decimal128("1".parse::<Decimal128>().unwrap()))]);
    with_rows(rows, async |db| {
        for (function, wanted) in [
            (doc! { "$covariancePop": "$x" }, 9),
            (doc! { "$covariancePop": ["$x"] }, 9),
            (doc! { "$covarianceSamp": ["$x", "$x", "$x"] }, 9),
            (doc! { "$minMaxScaler": "$x" }, 9),
            (doc! { "$minMaxScaler": {} }, 9),
            (doc! { "$minMaxScaler": { "input": "$x", "min": 1 } }, 9),
            (doc! { "$minMaxScaler": { "input": "$x", "min": 1, "max": 1 } }, 9),
            (doc! { "$minMaxScaler": { "input": "$x", "min": "$x", "max": 1 } }, 9),
            (doc! { "$minMaxScaler": { "input": "$x", "other": 1 } }, 9),
            (doc! { "$minMaxScaler": { "input": "$x" }, "window": { "documents": [1, 2] } }, 9),
            (doc! { "$minMaxScaler": { "input": "$x" }, "window": { "documents": ["unbounded", -1] } }, 9),
            (doc! { "$minMaxScalar": { "input": "$y" } }, 14),
            (doc! { "$concatArrays": "$x" }, 14),
            (doc! { "$setUnion": "$x" }, 14),
            (doc! { "$concatArrays": ["$x", "$y"] }, 40237),
        ] {
            assert_eq!(code(db, stage(function.clone())).await, wanted, "{function}");
        }
    });
}
