//! `$lookup` of values that are columns, whose lists become a column.

use bson::{Bson, Document, doc};

use super::{list, row, run, with_rows};

#[test]
fn lists_that_become_a_column_are_those_of_rows_one_by_one() {
    let kinds = list![1, 1.0, 2_i64, "1", "a", "b", Bson::Null, 2.5, true, doc! { "x": 1 }];
    let rows = (0..300).map(|n: usize| {
        let text = ["p", "q", "r", "s"][n * n % 4];
        let mut more = doc! { "n": n as i64, "t": text, "o": { "k": kinds[n % 7].clone() } };
        if !n.is_multiple_of(11) {
            more.insert("m", kinds[n % kinds.len()].clone());
        }
        if n == 250 {
            more.insert("late", list![1, "a"]);
        }
        row(n as i64, ["a", "b", "c"][n % 3], more)
    });
    with_rows(rows.collect(), async |db| {
        let found = async |spec: &Document, to: &str, among: &Document| {
            let mut spec = spec.clone();
            spec.extend(doc! { "from": "weather", "as": to });
            let shown = doc! { "$project": { "_id": 0, "n": 1, "found": { "$ifNull": ["$found.n", "$in.found.n"] } } };
            run(db, vec![among.clone(), doc! { "$sort": { "at": 1 } }, doc! { "$lookup": spec }, shown]).await
        };
        let pipeline = || list![doc! { "$match": { "n": { "$lt": 40 }, "$expr": { "$eq": ["$m", "$$k"] } } }];
        let mut specs = Vec::new();
        for local in ["station", "t", "m", "o", "o.k", "none", "m.x", "o.0"] {
            specs.push(doc! { "localField": local, "foreignField": "m" });
            specs.push(doc! { "localField": local, "foreignField": "o.k", "pipeline": [{ "$limit": 3 }] });
            specs.push(doc! { "let": { "k": format!("${local}") }, "pipeline": pipeline() });
            specs.push(doc! { "localField": "t", "foreignField": "t", "let": { "k": format!("${local}") }, "pipeline": pipeline() });
        }
        specs.push(doc! { "localField": "late", "foreignField": "m" });
        for spec in specs {
            // With an array among the values, and without one.
            for among in [doc! { "$match": { "n": { "$gte": 200 } } }, doc! { "$match": { "n": { "$lt": 100 } } }] {
                let (columns, rows) = (found(&spec, "found", &among).await, found(&spec, "in.found", &among).await);
                assert_eq!(columns.len(), 100);
                assert_eq!(columns, rows, "{spec}");
            }
        }
    });
}
