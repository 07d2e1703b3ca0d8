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

#[test]
fn long_lists_go_on_in_several_blocks() {
    let text = "0123456789".repeat(40);
    let rows = (0..400).map(|n| row(n, ["a", "b"][n as usize % 2], doc! { "n": n, "text": &*text }));
    with_rows(rows.collect(), async |db| {
        // 200 rows of each station, more than 80 KB, for 400 rows.
        let lookup = doc! { "from": "weather", "localField": "station", "foreignField": "station", "as": "found" };
        let of_rows = doc! { "$project": { "n": 1, "size": { "$size": "$found" }, "first": { "$min": "$found.n" } } };
        let rows = run(db, vec![doc! { "$sort": { "at": 1 } }, doc! { "$lookup": lookup.clone() }, of_rows]).await;
        assert_eq!(rows.len(), 400);
        for (n, row) in rows.iter().enumerate() {
            assert_eq!(row.get_i64("n").unwrap(), n as i64);
            assert_eq!((row.get_i32("size").unwrap(), row.get_i64("first").unwrap()), (200, n as i64 % 2));
        }
        let counted = doc! { "$group": { "_id": "$station", "n": { "$sum": 1 }, "sum": { "$sum": "$found.n" } } };
        let by_station = doc! { "$sort": { "_id": 1 } };
        let groups = run(db, vec![doc! { "$lookup": lookup }, doc! { "$unwind": "$found" }, counted, by_station]).await;
        let sums = [(0..400).step_by(2).sum::<i64>(), (1..400).step_by(2).sum()];
        for (group, sum) in groups.iter().zip(sums) {
            assert_eq!((group.get_i32("n").unwrap(), group.get_i64("sum").unwrap()), (40_000, 200 * sum));
        }
        assert_eq!(groups.len(), 2);
    });
}
