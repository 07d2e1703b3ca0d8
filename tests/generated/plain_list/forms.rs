//! The same measurements in every stored form of a collection.

use std::rc::Rc;

use bson::{Document, doc, rawdoc};
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::data::{any_collation, pick};
use crate::support::{Db, Random, TestEnv, checks, raw};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Folded {
    /// All rows are in the journal.
    Never,
    /// All rows are in buckets.
    AtTheEnd,
    /// Some rows are in buckets, the rest is in the journal.
    Midway,
    /// A fold after each insert, each by a new context.
    Always,
}

#[derive(Clone, Debug)]
pub struct Form {
    pub folded: Folded,
    /// True if the first and the last inserts write buckets of version 1.
    pub uncompressed: [bool; 2],
    pub bucket_count_max: usize,
    /// What stays in memory: nothing, some, all.
    pub read_cache_bytes: usize,
    pub insert_rows: usize,
    /// True if two contexts with their own journals insert alternately.
    pub shared: bool,
    /// True if the reader is another context than the writers.
    pub reopened: bool,
    /// True if there are indexes: on metadata from the start or from halfway on, on measurement fields at the end.
    pub indexed: Option<bool>,
    /// True if each `n` is one measurement, and some are sent several times, the last time as they should be.
    pub once: bool,
    pub seed: u64,
}

/// Every form, with random sizes of inserts and other settings.
pub fn forms(random: &Random) -> Vec<Form> {
    let settings = |(folded, uncompressed)| Form {
        folded,
        uncompressed,
        bucket_count_max: *pick(random, &[2, 3, 5, 10, 20, 1000]),
        read_cache_bytes: 40 << 20,
        insert_rows: 1 + random.below(30) as usize,
        shared: random.chance(25),
        reopened: random.chance(40),
        indexed: random.chance(50).then(|| random.chance(50)),
        once: random.chance(25),
        seed: random.next(),
    };
    let form = |kind| {
        let form = settings(kind);
        // Not a random number of its own, so that cases stay the same.
        let read_cache_bytes = *pick(&Random::new(form.seed), &[0, 1 << 12, 1 << 16, form.read_cache_bytes]);
        Form { read_cache_bytes, ..form }
    };
    let kinds = [
        (Folded::Never, [false, false]),
        (Folded::AtTheEnd, [false, false]),
        (Folded::Midway, [false, false]),
        (Folded::AtTheEnd, [true, true]),
        (Folded::Midway, [random.chance(50), random.chance(50)]),
        (Folded::Always, [random.chance(50), random.chance(50)]),
    ];
    kinds.into_iter().map(form).collect()
}

/// The options of `create`, including the collation.
pub fn layout(random: &Random) -> Document {
    let collation = if random.chance(70) {
        doc! { "locale": "simple" }
    } else {
        any_collation(random)
    };
    let mut layout = doc! { "timeField": "t", "collation": collation };
    if random.chance(85) {
        layout.insert("metaField", "m");
    }
    match random.below(5) {
        0 | 1 => {}
        2 => drop(layout.insert("granularity", "minutes")),
        3 => drop(layout.insert("granularity", "hours")),
        _ => layout.extend(doc! { "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60 }),
    }
    layout
}

/// A collection `c` with the rows in this form.
pub async fn stored(rows: &[Document], layout: &Document, form: &Form) -> Db {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(form.seed);
    let open = |uncompressed| {
        let format = if uncompressed { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let Form { bucket_count_max, read_cache_bytes, .. } = *form;
        let options = CatalogOptions { bucket_count_max, read_cache_bytes, ..CatalogOptions::default() };
        Db::open_with(format, options, Rc::clone(&storage), Rc::clone(&env))
    };
    let mut db = open(form.uncompressed[0]);
    let mut timeseries = layout.clone();
    let collation = timeseries.remove("collation").unwrap();
    let mut create = doc! { "create": "c", "timeseries": timeseries, "collation": collation };
    if form.once {
        create.insert("dedupe", doc! { "by": ["n"] });
    }
    db.ok(raw(&create)).await;
    let second = form.shared.then(|| open(form.uncompressed[1]));
    let on_series = layout.contains_key("metaField").then(on_series).unwrap_or_default();
    if form.indexed == Some(true) {
        create_indexes(&db, &on_series).await;
    }
    let random = Random::new(form.seed);
    let inserts: Vec<&[Document]> = rows.chunks(form.insert_rows.min(rows.len().div_ceil(2)).max(1)).collect();
    for (at, insert) in inserts.iter().enumerate() {
        let mut sent: Vec<_> = insert.iter().map(raw).collect();
        if form.once {
            send_some_before(&db, &random, insert).await;
            // Commits of different contexts are ordered by the clock.
            env.now_ms.set(env.now_ms.get() + 1);
            sent.extend(insert.iter().filter(|_| random.chance(20)).map(raw));
        }
        let writer = second.as_ref().filter(|_| at % 2 == 1).unwrap_or(&db);
        let reply = writer.insert("c", &sent).await;
        assert!(!reply.contains_key("writeErrors") && reply.get_i32("n").ok() == Some(sent.len() as i32), "{reply}");
        let midway = at + 1 == inserts.len().div_ceil(2);
        if midway && form.indexed == Some(false) {
            create_indexes(&db, &on_series).await;
        }
        if form.folded == Folded::Always || form.folded == Folded::Midway && midway {
            db.ok(rawdoc! { "flush": 1 }).await;
            db.engine.close().await;
            db = open(form.uncompressed[usize::from(midway)]);
        }
    }
    if form.indexed.is_some() {
        let has_meta = layout.contains_key("metaField");
        let takes =
            |spec: &Document| has_meta || !spec.get_document("key").unwrap().keys().any(|key| key.starts_with('m'));
        create_indexes(&db, &on_some().into_iter().filter(takes).collect::<Vec<_>>()).await;
        if form.seed.is_multiple_of(3) && has_meta {
            db.ok(rawdoc! { "dropIndexes": "c", "index": "m_1_t_1" }).await;
        }
    }
    if matches!(form.folded, Folded::AtTheEnd | Folded::Always) {
        db.ok(rawdoc! { "flush": 1 }).await;
        db.ok(rawdoc! { "foldJournals": 1 }).await;
    }
    if form.reopened { open(false) } else { db }
}

/// Sends some of the measurements ahead, often with other values.
async fn send_some_before(db: &Db, random: &Random, rows: &[Document]) {
    let mut sent = Vec::new();
    for row in rows.iter().filter(|_| random.chance(20)) {
        let mut row = row.clone();
        if random.chance(70) {
            row.insert("a", 77);
            row.insert("x", "replaced");
        }
        sent.push(raw(&row));
    }
    if !sent.is_empty() {
        let reply = db.insert("c", &sent).await;
        assert!(!reply.contains_key("writeErrors"), "{reply}");
    }
    if random.chance(20) {
        db.ok(rawdoc! { "flush": 1 }).await;
    }
}

/// Indexes that accept every measurement.
fn on_series() -> Vec<Document> {
    vec![
        doc! { "key": { "m": -1 } },
        doc! { "key": { "m.a": 1 } },
        doc! { "key": { "t": -1, "m.a": 1 } },
        doc! { "key": { "m.$**": 1 } },
        doc! { "key": { "m.a": 1, "t": 1 }, "partialFilterExpression": { "m.b": { "$gte": 0 } } },
    ]
}

/// Indexes that cannot be created if there are arrays or invalid places.
fn on_some() -> Vec<Document> {
    vec![
        doc! { "key": { "a": 1 } },
        doc! { "key": { "b": -1, "m.a": 1 } },
        doc! { "key": { "a.b": 1, "t": 1 } },
        doc! { "key": { "n": 1 }, "partialFilterExpression": { "a": { "$gt": 0 } } },
        doc! { "key": { "b.a": -1 }, "partialFilterExpression": { "$or": [{ "b": 1 }, { "m.a": { "$exists": true } }] } },
        doc! { "key": { "m.b": -1, "t": 1, "m.a": 1 } },
        doc! { "key": { "m": "hashed" } },
        doc! { "key": { "m.c.b": 1, "m.a": 1 }, "sparse": true },
        doc! { "key": { "c": "2dsphere" } },
        doc! { "key": { "o": "2dsphere", "t": 1 } },
        doc! { "key": { "c.a": "2dsphere" } },
        doc! { "key": { "m.a": "2dsphere" } },
        doc! { "key": { "t": 1, "m": "2dsphere" } },
        doc! { "key": { "m": "2d" } },
    ]
}

/// Error codes of values that an index refuses.
const NOT_TAKEN: [i32; 10] = [5_930_501, 16_766, 171, 16_755, 183_493, 183_934, 13_026, 13_027, 13_068, 16_804];

async fn create_indexes(db: &Db, specs: &[Document]) {
    for (place, spec) in specs.iter().enumerate() {
        let mut spec = spec.clone();
        spec.insert("name", format!("{place} of {}", specs.len()));
        let reply = db.command(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await;
        let is_made = reply.get_f64("ok").ok() == Some(1.0);
        assert!(is_made || NOT_TAKEN.contains(&reply.get_i32("code").unwrap()), "{reply}");
    }
}

/// The number of buckets of each version.
pub async fn versions(db: &Db) -> [usize; 3] {
    let mut counts = [0; 3];
    for bucket in checks::buckets(db, "c").await {
        let version = bucket.get_document("control").unwrap().get_i32("version").unwrap();
        counts[version as usize - 1] += 1;
    }
    counts
}
