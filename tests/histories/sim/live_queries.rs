//! Random live queries, and whether a result is that of a fresh query.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};

use super::ok;
use crate::support::{Db, Random, multiset, raw, rows_of, take_rows};

const HOUR_MS: i64 = 3_600_000;

/// What a query defines of its result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defined {
    /// The rows and their order.
    List,
    /// The rows.
    Rows,
    /// Only how many rows there are; they are some of those that match.
    Number,
}

/// A live query, and its last result.
pub struct LiveQuery {
    pub db: Db,
    id: i32,
    pub command: Document,
    defined: Defined,
    pub rows: Option<Vec<Document>>,
}

/// A measurement with the number `n`, whose time no other one has.
pub fn measurement(random: &Random, n: i64) -> Document {
    let mut row = crate::support::rows::measurement(random, n);
    let minutes = random.below(16 * 60) as i64;
    row.insert("t", DateTime::from_millis(minutes * 60_000 + n % 60_000));
    row
}

fn filter(random: &Random) -> Document {
    match random.below(4) {
        0 => doc! {},
        _ => crate::support::rows::a_filter(random),
    }
}

fn a_find(random: &Random) -> (Document, Defined) {
    let mut find = doc! { "find": "c", "filter": filter(random), "batchSize": random.below(30) as i32 };
    match random.below(4) {
        0 => find.extend(doc! { "projection": { "n": 1, "x": 1, "_id": 0 } }),
        1 => find.extend(doc! { "projection": { "m": 1, "t": 1, "twice": { "$multiply": ["$n", 2] } } }),
        _ => {}
    }
    let ascending = if random.chance(50) { 1 } else { -1 };
    let defined = match random.below(4) {
        0 => Defined::Rows,
        1 => {
            find.insert("sort", doc! { "x": ascending, "n": 1 });
            Defined::List
        }
        _ => {
            find.insert("sort", doc! { "t": ascending });
            Defined::List
        }
    };
    if random.chance(50) {
        find.insert("limit", 1 + random.below(40) as i32);
        if random.chance(30) {
            find.insert("skip", random.below(10) as i32);
        }
        return (find, if defined == Defined::List { defined } else { Defined::Number });
    }
    (find, defined)
}

fn a_group(random: &Random) -> Document {
    let bin = |unit: &str| doc! { "$dateTrunc": { "date": "$t", "unit": unit } };
    let id: Bson = match random.below(5) {
        0 => Bson::Null,
        1 => "$m".into(),
        2 => doc! { "s": "$m", "at": bin("hour") }.into(),
        3 => bin("hour").into(),
        _ => "$m.id".into(),
    };
    let mut group = doc! { "_id": id };
    let fields = [
        doc! { "sum": { "$sum": "$x" } },
        doc! { "avg": { "$avg": "$x" } },
        doc! { "min": { "$min": "$x" } },
        doc! { "max": { "$max": "$n" } },
        doc! { "newest": { "$max": "$t" } },
        doc! { "count": { "$count": {} } },
        doc! { "one": { "$sum": 1 } },
        doc! { "dev": { "$stdDevSamp": "$x" } },
        doc! { "top": { "$top": { "sortBy": { "t": -1 }, "output": "$x" } } },
        doc! { "low": { "$bottomN": { "n": 2, "sortBy": { "x": 1, "n": 1 }, "output": "$n" } } },
        doc! { "least": { "$minN": { "n": 2, "input": "$n" } } },
    ];
    (0..1 + random.below(3)).for_each(|_| group.extend(fields[random.below(fields.len() as u64) as usize].clone()));
    group
}

fn a_pipeline(random: &Random) -> (Document, Defined) {
    let mut stages = Vec::new();
    if random.chance(60) {
        stages.push(doc! { "$match": filter(random) });
    }
    let mut defined = Defined::Rows;
    match random.below(8) {
        0 => {
            let ascending = if random.chance(50) { 1 } else { -1 };
            stages.push(doc! { "$sort": { "t": ascending } });
            let ends =
                doc! { "_id": "$m", "first": { "$first": "$n" }, "last": { "$last": "$x" }, "sum": { "$sum": "$n" } };
            stages.push(doc! { "$group": ends });
        }
        1 => {
            stages.push(doc! { "$sort": { "t": -1 } });
            stages.push(doc! { "$group": { "_id": "$m", "newest": { "$first": "$$ROOT" } } });
        }
        2 => {
            stages.extend([doc! { "$sort": { "t": -1 } }, doc! { "$limit": 1 + random.below(20) as i32 }]);
            stages.push(doc! { "$group": a_group(random) });
        }
        // What runs again.
        3 => match random.below(4) {
            0 => stages
                .extend([doc! { "$sort": { "t": 1 } }, doc! { "$group": { "_id": "$m", "all": { "$push": "$n" } } }]),
            1 => {
                let lookup =
                    doc! { "from": "c", "pipeline": [{ "$match": { "m": "s1" } }, { "$count": "n" }], "as": "n" };
                stages.extend([doc! { "$sort": { "t": 1 } }, doc! { "$limit": 1 }, doc! { "$lookup": lookup }]);
            }
            2 => stages.push(doc! { "$unwind": "$x" }),
            _ => {
                let sum = doc! { "s": { "$sum": "$n", "window": { "documents": [-1, 0] } } };
                stages.push(doc! { "$setWindowFields": { "partitionBy": "$m", "sortBy": { "t": 1 }, "output": sum } });
            }
        },
        4 => stages.push(doc! { "$count": "rows" }),
        _ => {
            stages.push(doc! { "$group": a_group(random) });
            match random.below(4) {
                0 => {
                    stages.extend([doc! { "$sort": { "_id": 1 } }, doc! { "$limit": 5 }]);
                    defined = Defined::List;
                }
                1 => stages.push(doc! { "$project": { "_id": 1, "sum": 1, "count": 1 } }),
                2 => stages.push(doc! { "$group": { "_id": null, "groups": { "$sum": 1 } } }),
                _ => {}
            }
        }
    }
    (doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }, defined)
}

impl LiveQuery {
    /// Opens a random live query; `None` if storage failed.
    pub async fn open(db: &Db, random: &Random) -> Option<LiveQuery> {
        let (command, defined) = if random.chance(45) { a_find(random) } else { a_pipeline(random) };
        LiveQuery::open_as(db, command, defined).await
    }

    /// Opens a find with this filter.
    pub async fn of_filter(db: &Db, filter: &Document) -> Option<LiveQuery> {
        LiveQuery::open_as(db, doc! { "find": "c", "filter": filter }, Defined::Rows).await
    }

    async fn open_as(db: &Db, command: Document, defined: Defined) -> Option<LiveQuery> {
        let reply = db.command(rawdoc! { "liveQuery": 1, "query": raw(&command) }).await;
        let id = ok(&reply).then(|| reply.get_i32("id").unwrap())?;
        Some(LiveQuery { db: db.clone(), id, command, defined, rows: None })
    }

    /// Brings it up to date and says how; `None` if storage failed.
    pub async fn refresh(&mut self) -> Option<String> {
        let reply = self.db.command(rawdoc! { "liveRefresh": self.id }).await;
        if !ok(&reply) {
            assert!(reply.get_i32("code").unwrap() != 43, "{reply}");
            return None;
        }
        let live = reply.get_document("live").unwrap().clone();
        if live.get_bool("changed").unwrap() {
            // What a cursor has not brought is no result.
            self.rows = None;
            self.rows = Some(all_batches(&self.db, reply).await?);
        } else {
            // A result whose batches got lost does not come again.
            let rows = take_rows(reply.clone().get_document_mut("cursor").unwrap(), "firstBatch");
            assert!(rows.is_empty());
        }
        Some(live.get_str("how").unwrap().to_owned())
    }

    /// Brings queries of one context up to date with one command, and by themselves those that this leaves alone. Says how;
    /// `None` where storage failed.
    pub async fn refresh_together(queries: &mut [&mut LiveQuery]) -> Vec<Option<String>> {
        let Some(first) = queries.first() else { return Vec::new() };
        let db = first.db.clone();
        let ids: Vec<Bson> = queries.iter().map(|query| query.id.into()).collect();
        let reply = db.command(raw(&doc! { "liveRefresh": ids })).await;
        assert!(ok(&reply), "where storage fails, each query is left for itself: {reply}");
        let news: Vec<&Document> = reply.get_array("live").unwrap().iter().filter_map(Bson::as_document).collect();
        let mut ways = Vec::new();
        for query in queries {
            let Some(told) = news.iter().find(|told| told.get_i64("id").unwrap() == i64::from(query.id)) else {
                ways.push(Some("nothing".to_owned()));
                continue;
            };
            ways.push(match told.get_document("cursor") {
                Ok(cursor) => {
                    let block = timepail::block::decode(told.get_binary_generic("block").unwrap()).unwrap();
                    let rows: Vec<Bson> = rows_of(&block).into_iter().map(Bson::Document).collect();
                    let mut cursor = cursor.clone();
                    cursor.insert("firstBatch", rows);
                    query.rows = None;
                    query.rows = all_batches(&db, doc! { "ok": 1.0, "cursor": cursor }).await;
                    query.rows.as_ref().map(|_| "newRows".to_owned())
                }
                Err(_) => query.refresh().await,
            });
        }
        ways
    }

    pub async fn close(self) {
        self.db.ok(rawdoc! { "liveClose": self.id }).await;
    }

    /// Asserts that the last result equals that of a fresh query. There must be no writes meanwhile.
    pub async fn check(&self) {
        let Some(rows) = &self.rows else { return };
        let fresh = all_batches(&self.db, self.db.ok(raw(&self.command)).await).await.unwrap();
        let (known, fresh) = (rounded(rows), rounded(&fresh));
        let wrong = || format!("{} gives\n{known:?}\ninstead of\n{fresh:?}", self.command);
        match self.defined {
            Defined::List => assert!(known == fresh, "{}", wrong()),
            Defined::Rows => assert!(multiset(&known) == multiset(&fresh), "{}", wrong()),
            Defined::Number => {
                let mut all = self.command.clone();
                all.remove("limit");
                all.remove("skip");
                let all = rounded(&all_batches(&self.db, self.db.ok(raw(&all)).await).await.unwrap());
                let mut left = multiset(&all);
                let found = multiset(&known).iter().all(|row| {
                    let place = left.iter().position(|other| other == row);
                    place.map(|place| left.swap_remove(place)).is_some()
                });
                assert!(found && known.len() == fresh.len(), "{}", wrong());
            }
        }
    }
}

/// Doubles to nine digits, since the order in which they are added shows in the last ones, and without the sign of zeros. Fields by
/// their names: in whole measurements, their order depends on what else is in the bucket.
fn rounded(rows: &[Document]) -> Vec<Document> {
    fn round(value: &mut Bson) {
        match value {
            Bson::Double(x) if x.abs() < 1e-9 => *value = Bson::String("0".to_owned()),
            Bson::Double(x) => *value = Bson::String(format!("{x:.8e}")),
            Bson::Document(of) => {
                of.iter_mut().for_each(|(_, value)| round(value));
                let mut fields: Vec<_> = std::mem::take(of).into_iter().collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                *of = fields.into_iter().collect();
            }
            Bson::Array(of) => of.iter_mut().for_each(round),
            _ => {}
        }
    }
    let mut rows: Vec<Bson> = rows.iter().cloned().map(Bson::Document).collect();
    rows.iter_mut().for_each(round);
    rows.into_iter().map(|row| row.as_document().unwrap().clone()).collect()
}

/// All rows of a cursor; `None` if a command has failed.
async fn all_batches(db: &Db, mut reply: Document) -> Option<Vec<Document>> {
    let (mut rows, mut key) = (Vec::new(), "firstBatch");
    loop {
        if !ok(&reply) {
            return None;
        }
        let cursor = reply.get_document_mut("cursor").unwrap();
        rows.extend(take_rows(cursor, key));
        let id = cursor.get_i64("id").unwrap();
        if id == 0 {
            return Some(rows);
        }
        key = "nextBatch";
        let more: RawDocumentBuf = rawdoc! { "getMore": id, "collection": "c", "batchSize": 50 };
        reply = db.command(more).await;
    }
}

/// The clock moves on by at most so much between two passes of retention.
pub const EXPIRY_STEP_MS: i64 = 3 * HOUR_MS;
