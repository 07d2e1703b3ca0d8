//! The same measurements in the forms that a collection can have them in.

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
    /// Everything is in the journal.
    Never,
    /// Everything is in buckets.
    AtTheEnd,
    /// The rest is in the journal.
    Midway,
    /// After each insert, each by a context of its own.
    Always,
}

#[derive(Clone, Debug)]
pub struct Form {
    pub folded: Folded,
    /// Whether the first and the last inserts write buckets of version 1.
    pub uncompressed: [bool; 2],
    pub bucket_count_max: usize,
    pub insert_rows: usize,
    /// Whether two contexts insert by turns, each with a journal of its own.
    pub shared: bool,
    /// Whether the reader has not written.
    pub reopened: bool,
    pub seed: u64,
}

/// Every form of a collection whose inserts, counts and so on are random.
pub fn forms(random: &Random) -> Vec<Form> {
    let form = |(folded, uncompressed)| Form {
        folded,
        uncompressed,
        bucket_count_max: *pick(random, &[2, 3, 5, 10, 20, 1000]),
        insert_rows: 1 + random.below(30) as usize,
        shared: random.chance(25),
        reopened: random.chance(40),
        seed: random.next(),
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

/// The options of a collection but its name, its collation among those of its series.
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

/// A collection `c` that holds the rows in some form.
pub async fn stored(rows: &[Document], layout: &Document, form: &Form) -> Db {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(form.seed);
    let open = |uncompressed| {
        let format = if uncompressed { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let options = CatalogOptions { bucket_count_max: form.bucket_count_max, ..CatalogOptions::default() };
        Db::open_with(format, options, Rc::clone(&storage), Rc::clone(&env))
    };
    let mut db = open(form.uncompressed[0]);
    let mut timeseries = layout.clone();
    let collation = timeseries.remove("collation").unwrap();
    db.ok(raw(&doc! { "create": "c", "timeseries": timeseries, "collation": collation })).await;
    let second = form.shared.then(|| open(form.uncompressed[1]));
    let inserts: Vec<&[Document]> = rows.chunks(form.insert_rows.min(rows.len().div_ceil(2)).max(1)).collect();
    for (at, insert) in inserts.iter().enumerate() {
        let sent: Vec<_> = insert.iter().map(raw).collect();
        let writer = second.as_ref().filter(|_| at % 2 == 1).unwrap_or(&db);
        let reply = writer.insert("c", &sent).await;
        assert!(!reply.contains_key("writeErrors") && reply.get_i32("n").ok() == Some(insert.len() as i32), "{reply}");
        let midway = at + 1 == inserts.len().div_ceil(2);
        if form.folded == Folded::Always || form.folded == Folded::Midway && midway {
            db.ok(rawdoc! { "flush": 1 }).await;
            db.engine.close().await;
            db = open(form.uncompressed[usize::from(midway)]);
        }
    }
    if matches!(form.folded, Folded::AtTheEnd | Folded::Always) {
        db.ok(rawdoc! { "flush": 1 }).await;
        db.ok(rawdoc! { "foldJournals": 1 }).await;
    }
    if form.reopened { open(false) } else { db }
}

/// How many buckets of each version there are.
pub async fn versions(db: &Db) -> [usize; 3] {
    let mut counts = [0; 3];
    for bucket in checks::buckets(db, "c").await {
        let version = bucket.get_document("control").unwrap().get_i32("version").unwrap();
        counts[version as usize - 1] += 1;
    }
    counts
}
