//! Raw buckets: copied from one database to another, refused if invalid, deleted as a whole.

use std::rc::Rc;

use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::rows::{a_filter, measurement};
use crate::support::valid_bucket::Writers;
use crate::support::{Db, Random, TestEnv, checks, multiset, raw};

const FORMATS: [BucketFormat; 2] = [BucketFormat::Uncompressed, BucketFormat::Compressed];

struct Disk {
    storage: MemoryStorage,
    env: Rc<TestEnv>,
}

impl Disk {
    fn new() -> Disk {
        Disk { storage: MemoryStorage::new(), env: TestEnv::new(7) }
    }

    fn open(&self, format: BucketFormat) -> Db {
        Db::open_as(format, Rc::new(self.storage.clone()), Rc::clone(&self.env))
    }
}

async fn create(db: &Db, with_meta: bool) {
    let timeseries = if with_meta {
        rawdoc! { "timeField": "t", "metaField": "m" }
    } else {
        rawdoc! { "timeField": "t" }
    };
    db.ok(rawdoc! { "create": "c", "timeseries": timeseries }).await;
}

fn row(second: i64, series: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(60_000 + second * 1000), "m": series, "x": second as f64 }
}

fn insert_of<'a>(buckets: impl IntoIterator<Item = &'a Document>, ordered: bool) -> RawDocumentBuf {
    let list: bson::RawArrayBuf = buckets.into_iter().map(raw).collect();
    rawdoc! { "insert": "system.buckets.c", "documents": list, "ordered": ordered, "unsafeBucketWrites": true }
}

fn delete_of(filter: Document, limit: i32) -> RawDocumentBuf {
    let deletes = [raw(&doc! { "q": filter, "limit": limit })];
    let deletes: bson::RawArrayBuf = deletes.into_iter().collect();
    rawdoc! { "delete": "system.buckets.c", "deletes": deletes, "unsafeBucketWrites": true }
}

/// Code and index of each write error.
fn errors(reply: &Document) -> Vec<(i32, i32)> {
    let error = |error: &Bson| {
        let error = error.as_document().unwrap();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    reply.get_array("writeErrors").map(|errors| errors.iter().map(error).collect()).unwrap_or_default()
}

fn n(reply: &Document) -> i32 {
    assert!(reply.get_f64("ok").unwrap() == 1.0, "{reply}");
    reply.get_i32("n").unwrap()
}

fn versions(buckets: &[Document]) -> Vec<i32> {
    let version = |bucket: &Document| bucket.get_document("control").unwrap().get_i32("version").unwrap();
    let mut all: Vec<i32> = buckets.iter().map(version).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The buckets of a folded collection of two series, all of one version.
async fn buckets_of(version: i32) -> Vec<Document> {
    let db = Disk::new().open(FORMATS[usize::from(version > 1)]);
    create(&db, true).await;
    for second in if version == 3 { [3, 1, 2] } else { [1, 2, 3] } {
        db.insert("c", &[row(second, "a"), row(second, "b")]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
    }
    let buckets = checks::buckets(&db, "c").await;
    assert_eq!((buckets.len(), versions(&buckets)), (2, vec![version]));
    buckets
}

#[test]
fn exported_and_imported_buckets_answer_every_query_alike() {
    block_on(async {
        let mut seen = Vec::new();
        for seed in 0..12 {
            let random = Random::new(seed);
            let (with_meta, early) = (random.chance(80), random.chance(30));
            let from = Disk::new().open(FORMATS[random.below(2) as usize]);
            create(&from, with_meta).await;
            let mut number = 0;
            for _ in 0..8 {
                let rows: Vec<_> = (0..1 + random.below(40))
                    .map(|_| {
                        number += 1;
                        let mut row = measurement(&random, number);
                        if early && random.chance(20) {
                            row.insert("t", DateTime::from_millis(-1_000 * random.below(100_000) as i64));
                        }
                        raw(&row)
                    })
                    .collect();
                from.insert("c", &rows).await;
                if random.chance(60) {
                    from.ok(rawdoc! { "flush": 1 }).await;
                }
            }
            // Rows in journals are exported too.
            let exported = checks::buckets(&from, "c").await;
            seen.extend(versions(&exported));

            let disk = Disk::new();
            let to = disk.open(FORMATS[random.below(2) as usize]);
            // A context that has read the collection while it was empty.
            let other = disk.open(BucketFormat::Compressed);
            create(&to, with_meta).await;
            assert!(other.find(rawdoc! { "find": "c" }).await.is_empty());
            for part in exported.chunks(1 + random.below(9) as usize) {
                let reply = to.ok(insert_of(part, true)).await;
                assert_eq!((n(&reply), errors(&reply)), (part.len() as i32, Vec::new()), "{reply}");
            }
            assert_eq!(multiset(&checks::buckets(&to, "c").await), multiset(&exported));
            for db in [&to, &other, &disk.open(BucketFormat::Compressed)] {
                for _ in 0..20 {
                    let find = rawdoc! { "find": "c", "filter": raw(&a_filter(&random)) };
                    assert_eq!(multiset(&db.find(find.clone()).await), multiset(&from.find(find.clone()).await));
                    let filter = raw(&a_filter(&random));
                    let count = rawdoc! { "count": "c", "query": filter };
                    assert_eq!(n(&db.ok(count.clone()).await), n(&from.ok(count).await));
                }
                let sorted = rawdoc! { "find": "c", "sort": { "t": -1, "n": 1 } };
                assert_eq!(db.find(sorted.clone()).await, from.find(sorted).await);
            }
            checks::sound_when_folded(&disk.storage, &to, "c", Writers::Several).await;
            // They behave like any other buckets.
            to.insert("c", &[raw(&measurement(&random, 0))]).await;
            to.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "n": { "$lt": 50 } }, "limit": 0 }] }).await;
            assert_eq!(to.find(rawdoc! { "find": "c" }).await.len(), number as usize - 49);
            checks::sound_when_folded(&disk.storage, &to, "c", Writers::Several).await;
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn raw_buckets_are_written_only_by_raw_commands() {
    block_on(async {
        let db = Disk::new().open(BucketFormat::Compressed);
        create(&db, true).await;
        let refused = (20, "IllegalOperation".to_owned());
        assert_eq!(db.fails(rawdoc! { "insert": "system.buckets.c", "documents": [{}] }).await, refused);
        let off = rawdoc! { "insert": "system.buckets.c", "documents": [{}], "unsafeBucketWrites": false };
        assert_eq!(db.fails(off).await, refused);
        let delete = rawdoc! { "delete": "system.buckets.c", "deletes": [{ "q": {}, "limit": 0 }] };
        assert_eq!(db.fails(delete).await, refused);
        let update = rawdoc! { "q": {}, "u": { "$set": { "m": 1 } }, "multi": true };
        for other in [
            rawdoc! { "update": "system.buckets.c", "updates": [update] },
            rawdoc! { "findAndModify": "system.buckets.c", "query": {}, "remove": true },
        ] {
            assert_eq!(db.fails(other).await, refused);
        }
        let absent = rawdoc! { "insert": "system.buckets.d", "documents": [{}], "unsafeBucketWrites": true };
        assert_eq!(db.fails(absent).await.0, 26);
        let none: [&Document; 0] = [];
        assert_eq!(db.fails(insert_of(none, true)).await.0, 16);
        let number = rawdoc! { "insert": "system.buckets.c", "documents": [1], "unsafeBucketWrites": true };
        assert_eq!(db.fails(number).await.0, 14);
    });
}

#[test]
fn an_invalid_bucket_is_refused_and_the_others_are_stored() {
    block_on(async {
        for version in 1..=3 {
            let good = buckets_of(version).await;
            let other_id = |bucket: &Document, last: u8| {
                let mut bytes = bucket.get_object_id("_id").unwrap().bytes();
                bytes[11] = last;
                Bson::ObjectId(ObjectId::from_bytes(bytes))
            };
            let changed = |change: &dyn Fn(&mut Document)| {
                let mut bucket = good[0].clone();
                bucket.insert("_id", other_id(&bucket, 77));
                change(&mut bucket);
                bucket
            };
            let control =
                |change: fn(&mut Document)| changed(&|bucket| change(bucket.get_document_mut("control").unwrap()));
            let bad = [
                changed(&|bucket| drop(bucket.remove("_id"))),
                changed(&|bucket| drop(bucket.insert("extra", 1))),
                changed(&|bucket| drop(bucket.insert("_id", ObjectId::from_bytes([1; 12])))),
                control(|control| drop(control.insert("version", 4))),
                control(|control| drop(control.get_document_mut("min").unwrap().insert("x", 2.0))),
                control(|control| {
                    drop(control.get_document_mut("max").unwrap().insert("t", DateTime::from_millis(99_000)))
                }),
            ];
            for bad in &bad {
                let db = Disk::new().open(BucketFormat::Compressed);
                create(&db, true).await;
                let ordered = db.ok(insert_of([&good[0], bad, &good[1]], true)).await;
                assert_eq!((n(&ordered), errors(&ordered)), (1, vec![(1, 121)]), "{bad}");
                let unordered = db.ok(insert_of([bad, &good[1]], false)).await;
                assert_eq!((n(&unordered), errors(&unordered)), (1, vec![(0, 121)]), "{bad}");
                assert_eq!(multiset(&checks::buckets(&db, "c").await), multiset(&good));
            }
        }
    });
}

#[test]
fn a_bucket_with_mixed_types_is_refused_with_its_own_code() {
    block_on(async {
        let db = Disk::new().open(BucketFormat::Compressed);
        create(&db, true).await;
        let mut mixed = buckets_of(1).await.remove(0);
        mixed.get_document_mut("data").unwrap().insert("x", doc! { "0": 1.0, "1": "text" });
        for (side, value) in [("min", Bson::from(1.0)), ("max", Bson::from("text"))] {
            mixed.get_document_mut("control").unwrap().get_document_mut(side).unwrap().insert("x", value);
        }
        let reply = db.ok(insert_of([&mixed], true)).await;
        assert_eq!((n(&reply), errors(&reply)), (0, vec![(0, 408)]));
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
        assert_eq!(error.get_str("codeName").unwrap(), "CannotInsertTimeseriesBucketsWithMixedSchema");
    });
}

#[test]
fn a_bucket_id_in_use_is_a_duplicate_key() {
    block_on(async {
        for version in 1..=3 {
            let buckets = buckets_of(version).await;
            let disk = Disk::new();
            let db = disk.open(BucketFormat::Compressed);
            create(&db, true).await;
            let reply = db.ok(insert_of([&buckets[0], &buckets[0], &buckets[1]], false)).await;
            assert_eq!((n(&reply), errors(&reply)), (2, vec![(1, 11000)]));
            let reply = disk.open(BucketFormat::Compressed).ok(insert_of(&buckets, false)).await;
            assert_eq!((n(&reply), errors(&reply)), (0, vec![(0, 11000), (1, 11000)]));

            db.insert("c", &[row(9000, "j")]).await;
            let open = db.find(rawdoc! { "find": "system.buckets.c", "filter": { "meta": "j" } }).await;
            assert_eq!(open.len(), 1);
            let reply = disk.open(BucketFormat::Compressed).ok(insert_of(&open, true)).await;
            assert_eq!((n(&reply), errors(&reply)), (0, vec![(0, 11000)]));
            assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 7);
        }
    });
}

#[test]
fn imported_buckets_are_indexed_and_checked_by_every_index() {
    block_on(async {
        for version in 1..=3 {
            let disk = Disk::new();
            let db = disk.open(BucketFormat::Compressed);
            create(&db, true).await;
            db.ok(rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "by_x" }] }).await;
            let mut buckets = buckets_of(version).await;
            if version == 1 {
                let mut arrays = buckets[1].clone();
                arrays.get_document_mut("data").unwrap().insert("x", doc! { "0": [1] });
                for side in ["min", "max"] {
                    arrays.get_document_mut("control").unwrap().get_document_mut(side).unwrap().insert("x", vec![1]);
                }
                buckets.insert(0, arrays);
                let reply = db.ok(insert_of(&buckets, false)).await;
                assert_eq!((n(&reply), errors(&reply)), (2, vec![(0, 5_930_501)]), "{reply}");
            } else {
                assert_eq!(n(&db.ok(insert_of(&buckets, true)).await), 2);
            }
            let by_index = rawdoc! { "find": "c", "filter": { "x": { "$gte": 2 } }, "hint": "by_x" };
            assert_eq!(disk.open(BucketFormat::Compressed).find(by_index).await.len(), 4);
            let reply = db.ok(rawdoc! { "validate": "c", "full": true }).await;
            assert!(reply.get_bool("valid").unwrap(), "{reply}");
        }
    });
}

#[test]
fn imported_extended_dates_are_known_to_other_contexts_at_once() {
    block_on(async {
        let from = Disk::new().open(BucketFormat::Compressed);
        create(&from, true).await;
        from.insert("c", &[row(-3600 * 24, "a"), row(3600 * 24, "a")]).await;
        let disk = Disk::new();
        let (db, other) = (disk.open(BucketFormat::Compressed), disk.open(BucketFormat::Compressed));
        create(&db, true).await;
        other.insert("c", &[row(1, "b")]).await;
        assert_eq!(n(&db.ok(insert_of(&checks::buckets(&from, "c").await, true)).await), 2);
        let early = rawdoc! { "find": "c", "filter": { "t": { "$lt": DateTime::from_millis(0) } } };
        for db in [&db, &other, &disk.open(BucketFormat::Compressed)] {
            assert_eq!(db.find(early.clone()).await.len(), 1);
            assert_eq!(db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await.len(), 3);
        }
        checks::sound_when_folded(&disk.storage, &db, "c", Writers::One).await;
    });
}

#[test]
fn an_imported_bucket_takes_further_measurements() {
    block_on(async {
        for version in 1..=3 {
            let disk = Disk::new();
            let db = disk.open(FORMATS[usize::from(version > 1)]);
            create(&db, true).await;
            db.ok(insert_of(&buckets_of(version).await, true)).await;
            db.insert("c", &[row(5, "a")]).await;
            let found = checks::sound_when_folded(&disk.storage, &db, "c", Writers::One).await;
            assert_eq!((found.len(), checks::buckets(&db, "c").await.len()), (7, 2));
        }
    });
}

#[test]
fn raw_deletes_remove_buckets_by_their_documents_in_every_form() {
    block_on(async {
        for version in 1..=3 {
            for state in 0..3 {
                let disk = Disk::new();
                let db = disk.open(FORMATS[usize::from(version > 1)]);
                create(&db, true).await;
                let seconds = if version == 3 { [3, 1, 2] } else { [1, 2, 3] };
                for (at, second) in seconds.into_iter().enumerate() {
                    db.insert("c", &[row(second, "a"), row(second, "b"), row(7200 + second, "a")]).await;
                    // The rows are in buckets, in the journal, or in both.
                    if state == 0 || state == 2 && at == 1 {
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                }
                let other = disk.open(BucketFormat::Compressed);
                assert_eq!(n(&other.ok(delete_of(doc! { "meta": "c" }, 0)).await), 0);
                assert_eq!(n(&other.ok(delete_of(doc! { "meta": "b", "control.max.x": 3.0 }, 0)).await), 1);
                let of_a = |rows: &[Document]| rows.iter().all(|row| row.get_str("m").unwrap() == "a");
                for db in [&db, &other] {
                    let left = db.find(rawdoc! { "find": "c" }).await;
                    assert!(left.len() == 6 && of_a(&left), "{left:?}");
                }
                assert_eq!(n(&db.ok(delete_of(doc! {}, 1)).await), 1);
                assert_eq!(other.find(rawdoc! { "find": "c" }).await.len(), 3);
                checks::sound_when_folded(&disk.storage, &db, "c", Writers::Several).await;
                assert_eq!(n(&db.ok(delete_of(doc! {}, 0)).await), 1);
                assert!(checks::keys(&disk.storage, b"B").await.is_empty());
                assert!(checks::keys(&disk.storage, b"I").await.is_empty());
            }
        }
    });
}
