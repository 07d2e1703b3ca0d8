//! Runs of buckets of few rows, whose joined columns stay in memory: what is written between two queries is never missed.

use std::cell::Cell;
use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::limits::READ_CACHE_BYTES;
use timepail::storage::memory::MemoryStorage;

use crate::support::pipelines::run_in;
use crate::support::{ALWAYS_MS, Db, Random, TestEnv, canonical, raw};

const HOUR_MS: i64 = 3_600_000;
const SERIES: u64 = 9;
const HOURS: u64 = 70;

fn open(storage: &Rc<MemoryStorage>, seed: u64, read_cache_bytes: usize) -> Db {
    let options = CatalogOptions { read_cache_bytes, ..CatalogOptions::default() };
    Db::open_with(BucketFormat::default(), options, Rc::clone(storage) as _, TestEnv::new(seed))
}

fn at(hour: u64, minute: u64) -> DateTime {
    DateTime::from_millis(hour as i64 * HOUR_MS + minute as i64 * 60_000)
}

/// A row of some hour: fields of several types, some of them absent, and not always in the same order.
fn row(random: &Random, hour: u64, series: u64, n: u64) -> RawDocumentBuf {
    let mut row = doc! { "at": at(hour, random.below(60)), "m": { "id": series as i32 }, "n": n as i32 };
    let fields = if random.chance(20) { ["mixed", "v"] } else { ["v", "mixed"] };
    for name in fields {
        match (name, random.below(10)) {
            (_, 0) => {}
            ("v", small) => _ = row.insert("v", small as f64 * 0.25),
            (_, 1) => _ = row.insert("mixed", "text"),
            (_, small) => _ = row.insert("mixed", small as i32),
        }
    }
    if series == 3 {
        row.insert("rare", n as i32 % 5);
    }
    raw(&row)
}

fn pipelines(random: &Random) -> Vec<Vec<Document>> {
    let first = random.below(HOURS);
    let window = doc! { "$match": { "at": { "$gte": at(first, 0), "$lt": at(first + 40, random.below(60)) } } };
    let by_id = doc! { "_id": "$m.id", "v": { "$sum": "$v" }, "low": { "$min": "$mixed" }, "rows": { "$sum": 1 } };
    let in_order = doc! { "$sort": { "_id": 1, "at": 1, "n": 1 } };
    vec![
        vec![doc! { "$group": &by_id }, in_order.clone()],
        vec![doc! { "$group": { "_id": "$m.id", "n": { "$max": "$n" } } }, in_order.clone()],
        vec![doc! { "$group": { "_id": null, "rows": { "$sum": 1 }, "rare": { "$sum": "$rare" } } }],
        vec![window.clone(), doc! { "$group": &by_id }, in_order.clone()],
        vec![doc! { "$match": { "v": { "$gt": 2 } } }, doc! { "$group": by_id }, in_order.clone()],
        vec![
            doc! { "$match": { "rare": 4 } },
            doc! { "$group": { "_id": "$mixed", "rows": { "$sum": 1 } } },
            in_order.clone(),
        ],
        vec![doc! { "$match": { "v": 2.25, "n": { "$gt": 9 } } }, doc! { "$project": { "_id": 0, "n": 1, "m": 1 } }],
        vec![
            window,
            doc! { "$sort": { "at": 1, "n": 1 } },
            doc! { "$project": { "_id": 0, "at": 1, "mixed": 1, "v": 1 } },
        ],
        vec![
            doc! { "$project": { "_id": 0, "v": 1, "mixed": 1, "at": 1 } },
            doc! { "$match": { "mixed": { "$ne": 4 } } },
        ],
        vec![
            doc! { "$match": { "m.id": { "$ne": 2 } } },
            doc! { "$group": { "_id": "$m", "v": { "$avg": "$v" } } },
            in_order,
        ],
    ]
}

/// Pipelines that meet small buckets one by one at first: sorts with a limit or by metadata, counts, filters on metadata.
fn more_pipelines() -> Vec<Vec<Document>> {
    let count = |id: &str| doc! { "$group": { "_id": id, "rows": { "$sum": 1 } } };
    let shown = doc! { "$project": { "_id": 0, "n": 1, "v": 1, "m": 1 } };
    let in_order = doc! { "$sort": { "_id": 1 } };
    let product = doc! { "$gt": [{ "$multiply": ["$v", "$n"] }, 900] };
    let latest = doc! { "last": { "$shift": { "output": "$n", "by": -1 } } };
    vec![
        vec![doc! { "$sort": { "v": -1, "n": 1 } }, doc! { "$limit": 7 }, shown.clone()],
        vec![
            doc! { "$match": { "m.id": { "$gt": 3 } } },
            doc! { "$sort": { "mixed": 1, "n": -1 } },
            doc! { "$skip": 3 },
            doc! { "$limit": 40 },
            doc! { "$project": { "_id": 0, "mixed": 1, "n": 1 } },
        ],
        vec![doc! { "$match": { "$expr": product } }, count("$m.id"), in_order.clone()],
        vec![doc! { "$match": { "m.id": { "$in": [1, 3, 4, 7, 8] } } }, count("$mixed"), in_order.clone()],
        vec![doc! { "$match": { "m.id": { "$mod": [2, 1] }, "rare": { "$ne": 1 } } }, count("$m.id"), in_order.clone()],
        vec![doc! { "$match": { "m.id": { "$gte": 5 }, "v": { "$lt": 1 } } }, shown],
        vec![
            doc! { "$setWindowFields": { "partitionBy": "$m", "sortBy": { "at": 1, "n": 1 }, "output": latest.clone() } },
            doc! { "$group": { "_id": "$m", "last": { "$sum": "$last" } } },
            in_order.clone(),
        ],
        vec![
            doc! { "$setWindowFields": { "partitionBy": "$m.id", "sortBy": { "at": 1 }, "output": { "n": { "$sum": "$n" } } } },
            doc! { "$group": { "_id": "$m.id", "n": { "$max": "$n" } } },
            in_order,
        ],
        vec![doc! { "$sort": { "m.id": 1, "at": 1 } }, doc! { "$project": { "_id": 0, "at": 1, "m": 1 } }],
        // All fields: those of rows that are returned come from their buckets.
        vec![doc! { "$sort": { "v": -1, "n": 1 } }, doc! { "$limit": 9 }],
        vec![doc! { "$sort": { "mixed": 1, "n": -1 } }, doc! { "$skip": 20 }, doc! { "$limit": 100 }],
        vec![
            doc! { "$match": { "m.id": { "$gt": 3 }, "v": { "$lt": 2 } } },
            doc! { "$sort": { "rare": -1, "n": 1 } },
            doc! { "$limit": 30 },
        ],
        vec![
            doc! { "$match": { "n": { "$mod": [7, 3] } } },
            doc! { "$sort": { "m.id": -1, "n": 1 } },
            doc! { "$limit": 5 },
        ],
    ]
}

/// Pipelines that read few rows of many small buckets: the latest ones of each series, those up to a limit.
fn pipelines_of_few() -> Vec<Vec<Document>> {
    let filter = doc! { "$match": { "v": { "$gt": 1 } } };
    let in_order = doc! { "$sort": { "_id": 1 } };
    let latest = doc! { "sortBy": { "at": -1, "n": -1 }, "output": "$mixed" };
    let four = doc! { "n": 4, "sortBy": { "at": -1, "n": 1 }, "output": ["$v", "$n"] };
    let first = doc! { "$group": { "_id": "$m.id", "n": { "$first": "$n" }, "v": { "$first": "$v" } } };
    let running = doc! { "sum": { "$sum": "$v", "window": { "documents": ["unbounded", "current"] } } };
    let window =
        doc! { "$setWindowFields": { "partitionBy": "$m.id", "sortBy": { "at": 1, "n": 1 }, "output": running } };
    let shown = doc! { "$project": { "_id": 0, "n": 1, "mixed": 1, "v": 1, "at": 1, "sum": 1 } };
    let by_time = doc! { "$sort": { "at": 1, "n": 1 } };
    vec![
        vec![filter.clone(), doc! { "$group": { "_id": "$m", "top": { "$top": &latest } } }, in_order.clone()],
        vec![doc! { "$group": { "_id": "$m.id", "top": { "$topN": &four } } }, in_order.clone()],
        vec![filter.clone(), doc! { "$group": { "_id": "$m", "top": { "$topN": four } } }, in_order.clone()],
        vec![filter.clone(), doc! { "$sort": { "at": -1, "n": 1 } }, first, in_order.clone()],
        vec![
            doc! { "$match": { "rare": { "$gte": 2 }, "at": { "$gt": at(20, 0) } } },
            doc! { "$group": { "_id": "$m.id", "last": { "$bottom": latest } } },
            in_order,
        ],
        vec![filter.clone(), window.clone(), by_time.clone(), shown.clone()],
        vec![
            window,
            doc! { "$match": { "sum": { "$gt": 50 } } },
            by_time.clone(),
            doc! { "$limit": 30 },
            shown.clone(),
        ],
        vec![filter, by_time.clone(), doc! { "$skip": 400 }, doc! { "$limit": 30 }, shown.clone()],
        vec![doc! { "$match": { "rare": 4 } }, by_time, doc! { "$limit": 25 }, shown],
    ]
}

/// Pipelines that return or pass on rows with all of their fields.
fn pipelines_of_whole_rows(random: &Random) -> Vec<Vec<Document>> {
    let in_order = doc! { "$sort": { "_id": 1 } };
    let by_n = doc! { "$sort": { "n": 1 } };
    let few = doc! { "$match": { "n": { "$mod": [50, random.below(50) as i32] } } };
    let running = doc! { "sum": { "$sum": "$v", "window": { "documents": [-2, 0] } } };
    let window =
        doc! { "$setWindowFields": { "partitionBy": "$m.id", "sortBy": { "at": 1, "n": 1 }, "output": running } };
    let top = doc! { "$top": { "sortBy": { "v": -1, "n": 1 }, "output": "$$ROOT" } };
    let facets = doc! { "rows": [&by_n, { "$limit": 20 }], "count": [{ "$count": "rows" }] };
    vec![
        vec![doc! { "$match": { "v": { "$gt": 1 } } }],
        vec![doc! { "$match": { "mixed": "text" } }],
        vec![few.clone()],
        vec![few, by_n.clone()],
        vec![doc! { "$match": { "rare": 4 } }, doc! { "$unset": "v" }],
        vec![doc! { "$match": { "m.id": { "$in": [1, 4] }, "v": { "$lt": 2 } } }, by_n.clone()],
        vec![doc! { "$match": { "m.id": { "$gt": 2 } } }],
        vec![doc! { "$match": { "at": { "$gte": at(random.below(HOURS), 30) } } }],
        vec![doc! { "$match": { "$expr": { "$gt": [{ "$multiply": ["$v", "$n"] }, 900] } } }, by_n.clone()],
        vec![doc! { "$sort": { "mixed": 1, "n": -1 } }],
        vec![doc! { "$sort": { "m.id": -1, "n": 1 } }, doc! { "$limit": 300 }],
        vec![window.clone(), doc! { "$sort": { "sum": -1, "n": 1 } }, doc! { "$limit": 10 }],
        vec![doc! { "$match": { "v": { "$lt": 0.5 } } }, window, by_n],
        vec![doc! { "$group": { "_id": "$m.id", "top": top } }, in_order],
        vec![doc! { "$facet": facets }],
        vec![doc! { "$project": { "all": "$$ROOT" } }],
    ]
}

/// Commands that return no rows.
fn commands() -> Vec<RawDocumentBuf> {
    let from = at(20, 30);
    vec![
        rawdoc! { "count": "weather", "query": { "v": { "$gt": 1 } } },
        rawdoc! { "count": "weather", "query": { "m.id": { "$in": [1, 3, 4, 8] }, "mixed": { "$ne": 2 } } },
        rawdoc! { "count": "weather", "query": { "at": { "$gte": from } } },
        rawdoc! { "count": "weather", "query": { "$or": [{ "m.id": 2 }, { "v": 0.5 }] }, "skip": 2 },
        rawdoc! { "distinct": "weather", "key": "mixed", "query": { "n": { "$mod": [3, 1] } } },
        rawdoc! { "distinct": "weather", "key": "rare", "query": { "m.id": { "$gt": 1 } } },
        rawdoc! { "distinct": "weather", "key": "m.id", "query": { "v": 2 } },
    ]
}

/// What a command returns, in any order.
async fn told(db: &Db, command: &RawDocumentBuf) -> Vec<String> {
    let reply = db.ok(command.clone()).await;
    match reply.get_array("values") {
        Ok(values) => {
            let mut values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
            values.sort();
            values
        }
        Err(_) => vec![reply.get("n").unwrap().to_string()],
    }
}

/// True if a pipeline shows all fields. Rows of several buckets that are held together then have one order of fields.
fn shows_all(pipeline: &[Document]) -> bool {
    pipeline.iter().all(|stage| !stage.contains_key("$project") && !stage.contains_key("$group"))
}

/// The rows, and the order of their fields. The order of rows that no sort tells is not compared.
async fn answer(db: &Db, pipeline: &[Document]) -> Vec<Vec<u8>> {
    let rows = run_in(db, pipeline.to_vec(), 100_000).await;
    let in_order = |row: &Document| if shows_all(pipeline) { Vec::new() } else { raw(row).into_bytes() };
    let mut told: Vec<Vec<u8>> = rows.iter().map(|row| [canonical(row), in_order(row)].concat()).collect();
    if pipeline.iter().all(|stage| !stage.contains_key("$sort")) {
        told.sort();
    }
    told
}

/// Changes something: rows in new hours or in old ones, deletes, folds, another context.
async fn change(random: &Random, db: &Db, other: &Db, next: &mut u64, folds: u64) {
    let writer = if random.chance(30) { other } else { db };
    let delete = |filter: Document| rawdoc! { "delete": "weather", "deletes": [{ "q": RawDocumentBuf::try_from(&filter).unwrap(), "limit": 0 }] };
    match random.below(8) {
        0..4 => {
            let hour = random.below(HOURS + *next / 500);
            let rows: Vec<_> = (0..1 + random.below(6))
                .map(|_| {
                    *next += 1;
                    row(random, hour, random.below(SERIES), *next)
                })
                .collect();
            writer.insert("weather", &rows).await;
        }
        4 => {
            _ = writer
                .ok(delete(doc! { "n": { "$in": [random.below(*next) as i32, random.below(*next) as i32] } }))
                .await
        }
        5 => {
            _ = writer
                .ok(delete(doc! { "m.id": random.below(SERIES) as i32, "at": { "$lt": at(random.below(9), 0) } }))
                .await
        }
        6 => {
            let query = rawdoc! { "m.id": random.below(SERIES) as i32 };
            let set = rawdoc! { "$set": { "m.more": random.below(3) as i32 } };
            let update = rawdoc! { "update": "weather", "updates": [{ "q": query, "u": set, "multi": true }] };
            if random.chance(20) {
                writer.ok(update).await;
            }
        }
        _ => {}
    }
    if random.chance(folds) {
        writer.ok(rawdoc! { "flush": 1 }).await;
    }
}

#[test]
fn a_query_over_small_buckets_finds_what_was_written_since_it_was_asked_before() {
    // With the last one, most buckets are evicted before their run is asked again.
    for (seed, read_cache_bytes, folds) in
        [(1, READ_CACHE_BYTES, 60), (2, 900_000, 60), (3, 250_000, 60), (4, READ_CACHE_BYTES, 10), (5, 60_000, 10)]
    {
        let random = Random::new(seed);
        let storage = Rc::new(MemoryStorage::new());
        block_on(async {
            let [db, other] = [1, 2].map(|seed| open(&storage, seed, read_cache_bytes));
            db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
            let mut next = 0;
            for hour in 0..HOURS {
                let mut of = |series| {
                    next += 1;
                    row(&random, hour, series, next)
                };
                let rows: Vec<_> = (0..SERIES).chain(0..SERIES).chain(2..SERIES).map(&mut of).collect();
                db.insert("weather", &rows).await;
            }
            if folds > 50 {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            for step in 0..16 {
                let pipelines = pipelines(&random);
                // Without a cache, there are no runs.
                let plain = open(&storage, 9, 0);
                let some = pipelines.iter().filter(|_| step == 0 || random.chance(40));
                let more = [more_pipelines(), pipelines_of_few(), pipelines_of_whole_rows(&random)].concat();
                for pipeline in some.chain(more.iter().filter(|_| step % 3 == 0)) {
                    let expected = answer(&plain, pipeline).await;
                    for time in 0..if step == 0 { 4 } else { 2 } {
                        assert_eq!(
                            answer(&db, pipeline).await,
                            expected,
                            "{seed}, step {step}, time {time}: {pipeline:?}"
                        );
                    }
                }
                for (at, command) in commands().into_iter().enumerate().filter(|_| step % 4 == 1) {
                    let expected = told(&plain, &command).await;
                    for time in 0..2 {
                        assert_eq!(
                            told(&db, &command).await,
                            expected,
                            "{seed}, step {step}, time {time}: command {at}"
                        );
                    }
                }
                change(&random, &db, &other, &mut next, folds).await;
            }
        });
    }
}

#[test]
fn columns_that_are_made_after_a_turn_are_not_put_beside_those_of_the_rows_before() {
    const BUCKETS: i32 = 2000;
    const FIELDS: i32 = 30;
    let env = TestEnv::new(1);
    let db =
        Db::open_with(BucketFormat::default(), CatalogOptions::default(), Rc::new(MemoryStorage::new()), env.clone());
    block_on(async {
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
        for n in 0..8 {
            let row = |m: i32| {
                let mut row = doc! { "at": at(0, n as u64), "m": m, "n": n, "x": m * 8 + n };
                (0..FIELDS).for_each(|field| _ = row.insert(format!("f{field}"), m * 8 + n + field));
                raw(&row)
            };
            db.insert("weather", &(0..BUCKETS).map(row).collect::<Vec<_>>()).await;
        }
        db.ok(rawdoc! { "flush": 1 }).await;
        let group = |field: i32| {
            let differs = doc! { "$ne": [{ "$subtract": [format!("$f{field}"), "$x"] }, field] };
            let torn = doc! { "$sum": { "$cond": [differs, 1, 0] } };
            vec![doc! { "$group": { "_id": null, "torn": torn, "x": { "$sum": "$x" } } }]
        };
        let sums = vec![doc! { "$group": { "_id": null, "x": { "$sum": "$x" } } }];
        env.look_ms.set(ALWAYS_MS);
        let is_done = Cell::new(false);
        let deletes = async {
            for at in (0..BUCKETS).cycle().step_by(217).take_while(|_| !is_done.get()) {
                let query = rawdoc! { "m": at, "n": at % 8 };
                db.ok(rawdoc! { "delete": "weather", "deletes": [{ "q": query, "limit": 0 }] }).await;
            }
        };
        let queries = async {
            for field in 0..FIELDS {
                // Of `x`, memory has a column of most runs.
                run_in(&db, sums.clone(), 10).await;
                let rows = run_in(&db, group(field), 10).await;
                assert_eq!(rows[0].get_i32("torn").unwrap(), 0, "{field}");
            }
            is_done.set(true);
        };
        join(deletes, queries).await;
    });
}

/// What the rows of `racing` have in the field `f` and a number.
fn shifted(n: i32, field: i32) -> i32 {
    n.wrapping_mul(31) + field
}

/// Queries that read two columns of each row, while rows are replaced by others, as many as before, by a context with a small cache
/// or by another one. A column of one state beside one of another state shows in the sums.
async fn racing(db: &Db, writer: &Db, random: &Random) {
    const BUCKETS: i32 = 1200;
    const ROWS: i32 = 4;
    const FIELDS: i32 = 10;
    let row = |m: i32, x: i32| {
        let mut row = doc! { "at": at(m as u64 % 3, random.below(60)), "m": m, "x": x };
        (0..FIELDS).for_each(|field| _ = row.insert(format!("f{field}"), shifted(x, field)));
        raw(&row)
    };
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
    for n in 0..ROWS {
        db.insert("weather", &(0..BUCKETS).map(|m| row(m, m * ROWS + n)).collect::<Vec<_>>()).await;
    }
    db.ok(rawdoc! { "flush": 1 }).await;
    let is_done = Cell::new(false);
    let writes = async {
        let mut next = BUCKETS * ROWS;
        while !is_done.get() {
            for _ in 0..3 {
                let (m, n) = (random.below(BUCKETS as u64) as i32, random.below(ROWS as u64) as i32);
                let query = rawdoc! { "m": m, "x": { "$mod": [ROWS, n] } };
                writer.ok(rawdoc! { "delete": "weather", "deletes": [{ "q": query, "limit": 0 }] }).await;
                next += ROWS;
                writer.insert("weather", &[row(m, next + n)]).await;
            }
            if random.chance(70) {
                writer.ok(rawdoc! { "flush": 1 }).await;
            }
        }
    };
    let queries = async {
        for round in 0..3 * FIELDS {
            let field = round % FIELDS;
            let expected = doc! { "$add": [{ "$multiply": ["$x", 31] }, field] };
            let torn = doc! { "$sum": { "$cond": [{ "$ne": [format!("$f{field}"), expected] }, 1, 0] } };
            let group = doc! { "$group": { "_id": null, "torn": torn, "rows": { "$sum": 1 } } };
            let filter = doc! { "$match": { "x": { "$gte": 40 * round } } };
            let greatest =
                [doc! { "$match": { "x": { "$mod": [3, 1] } } }, doc! { "$sort": { "x": -1 } }, doc! { "$limit": 20 }];
            for row in run_in(db, greatest.to_vec(), 30).await {
                let x = row.get_i32("x").unwrap();
                assert!(
                    (0..FIELDS).all(|field| row.get_i32(format!("f{field}")).ok() == Some(shifted(x, field))),
                    "{row}"
                );
            }
            for pipeline in [vec![group.clone()], vec![filter, group]] {
                let rows = run_in(db, pipeline.clone(), 10).await;
                assert_eq!(rows[0].get_i32("torn").unwrap(), 0, "{round}: {pipeline:?}");
            }
        }
        is_done.set(true);
    };
    join(writes, queries).await;
    // What memory has afterwards.
    let all = vec![
        doc! { "$group": { "_id": "$m", "f1": { "$sum": "$f1" }, "f2": { "$max": "$f2" } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let found = answer(db, &all).await;
    assert_eq!(answer(db, &all).await, found);
    assert_eq!(answer(writer, &all).await, found);
}

#[test]
fn rows_that_are_replaced_while_queries_run_are_found_as_they_were_or_as_they_are() {
    for (seed, read_cache_bytes, by_other) in
        [(1, READ_CACHE_BYTES, true), (2, 1_000_000, false), (3, 1_000_000, true), (4, 300_000, true)]
    {
        let (storage, env) = (Rc::new(MemoryStorage::new()), TestEnv::new(seed));
        let options = CatalogOptions { read_cache_bytes, ..CatalogOptions::default() };
        let db = Db::open_with(BucketFormat::default(), options, Rc::clone(&storage) as _, env.clone());
        let other = open(&storage, seed + 10, READ_CACHE_BYTES);
        env.look_ms.set(ALWAYS_MS);
        block_on(racing(&db, if by_other { &other } else { &db }, &Random::new(seed)));
    }
}
