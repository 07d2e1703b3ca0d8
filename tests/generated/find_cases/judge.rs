//! Compares the answers to a query with those of a plain list.

use bson::{Bson, Document, rawdoc};

use crate::plain_list::batches::all_batches;
use crate::plain_list::filter::matching;
use crate::plain_list::order::{NoKey, compare_keys, set_collation, sort_key};
use crate::plain_list::projection::project;
use crate::plain_list::queries::Query;
use crate::support::{Db, canonical, raw};

pub struct Expected {
    /// A match: its number, its projection, and its sort key.
    matching: Vec<(i64, Vec<u8>, Vec<Bson>)>,
    /// The sort keys of the rows between skip and limit.
    page: Vec<Vec<Bson>>,
    refused: bool,
}

impl Expected {
    /// The expected result of a query; `None` if the server's answer is unspecified.
    pub fn of(rows: &[Document], query: &Query) -> Option<Expected> {
        set_collation(&query.collation);
        let mut found = Vec::new();
        let mut refused = false;
        for row in matching(rows, &query.filter)? {
            match sort_key(row, &query.sort) {
                Ok(key) => {
                    let left = canonical(&project(row, &query.projection));
                    found.push((row.get_i64("n").unwrap(), left, key));
                }
                Err(NoKey::ParallelArrays) => refused = true,
                Err(NoKey::Ambiguous) => return None,
            }
        }
        let mut keys: Vec<Vec<Bson>> = found.iter().map(|(.., key)| key.clone()).collect();
        keys.sort_by(|a, b| compare_keys(&query.sort, a, b));
        let limit = if query.limit == 0 { usize::MAX } else { query.limit as usize };
        let page = keys.into_iter().skip(query.skip as usize).take(limit).collect();
        Some(Expected { matching: found, page, refused })
    }

    pub fn is_nonempty(&self) -> bool {
        !self.page.is_empty()
    }
}

/// Errors: how the answer of a collection is wrong.
pub async fn judge(db: &Db, query: &Query, expected: &Expected, batch: i32) -> Result<(), String> {
    let mut command = rawdoc! { "find": "c", "filter": raw(&query.filter), "batchSize": batch };
    let mut more = Document::new();
    for (name, of) in [("sort", &query.sort), ("projection", &query.projection), ("collation", &query.collation)] {
        if !of.is_empty() && (name != "collation" || !query.inherits) {
            more.insert(name, of.clone());
        }
    }
    for (name, of) in [("skip", query.skip), ("limit", query.limit)] {
        if of != 0 {
            more.insert(name, of);
        }
    }
    if let Some(forward) = query.natural {
        more.insert("hint", bson::doc! { "$natural": if forward { 1 } else { -1 } });
    }
    raw(&more).iter().for_each(|field| {
        let (name, value) = field.unwrap();
        command.append(name, value);
    });
    let found = match all_batches(db, command, batch).await {
        Err(message) if expected.refused && message.contains("parallel arrays") => return Ok(()),
        Err(message) => return Err(message),
        Ok(_) if expected.refused => return Err("A sort of parallel arrays was not refused".to_owned()),
        Ok(found) => found,
    };
    same_page(query, expected, &found)?;
    let mut count = rawdoc! { "count": "c", "query": raw(&query.filter), "skip": query.skip };
    if query.limit != 0 {
        count.append(bson::cstr!("limit"), query.limit);
    }
    if !query.inherits {
        count.append(bson::cstr!("collation"), raw(&query.collation));
    }
    let reply = db.command(count).await;
    match reply.get_i32("n").ok() {
        Some(n) if n as usize == expected.page.len() => Ok(()),
        _ => Err(format!("count says {reply}, not {}", expected.page.len())),
    }
}

fn same_page(query: &Query, expected: &Expected, found: &[Document]) -> Result<(), String> {
    if found.len() != expected.page.len() {
        let numbers: Vec<_> = found.iter().map(|row| row.get_i64("n").ok()).collect();
        let wanted: Vec<_> = expected.matching.iter().map(|(n, ..)| *n).collect();
        return Err(format!("{} rows, not {}: {numbers:?} of {wanted:?}", found.len(), expected.page.len()));
    }
    let mut left: Vec<_> = expected.matching.iter().map(|(_, bytes, key)| (bytes, key)).collect();
    for (place, row) in found.iter().enumerate() {
        let bytes = canonical(row);
        let ties = |key: &Vec<Bson>| compare_keys(&query.sort, key, &expected.page[place]).is_eq();
        let Some(at) = left.iter().position(|(other, key)| **other == bytes && ties(key)) else {
            let key = &expected.page[place];
            return Err(format!("Row {place} does not match, is there twice, or is not of the key {key:?}: {row}"));
        };
        left.swap_remove(at);
    }
    Ok(())
}
