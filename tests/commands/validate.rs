//! `validate` of whole collections: findings, repairs, and what is kept of damaged buckets.

use std::rc::Rc;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::bucket::BucketFormat;
use timepail::engine::stored_bucket::StoredBucket;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, Entry, KeyRange, Page, Storage};
use timepail::value::DocBuf;

use crate::support::faults::Faulty;
use crate::support::rows::measurement;
use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{Db, Random, TestEnv, checks, multiset, raw};

struct Disk {
    storage: MemoryStorage,
    env: Rc<TestEnv>,
    format: BucketFormat,
}

impl Disk {
    fn open(&self) -> Db {
        Db::open_as(self.format, Rc::new(self.storage.clone()), Rc::clone(&self.env))
    }

    /// A collection `c` of two series with three measurements each; for version 3, later ones are inserted first.
    async fn of(version: i32) -> (Disk, Db) {
        let format = if version == 1 { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
        let disk = Disk { storage: MemoryStorage::new(), env: TestEnv::new(1), format };
        let db = disk.open();
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let seconds = if version == 3 { [3, 1, 2] } else { [1, 2, 3] };
        for second in seconds {
            db.insert("c", &[row(second, "a"), row(second, "b")]).await;
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        let versions = checks::buckets(&db, "c").await;
        let is_right =
            |bucket: &Document| bucket.get_document("control").unwrap().get_i32("version").unwrap() == version;
        assert!(versions.len() == 2 && versions.iter().all(is_right));
        (disk, db)
    }

    async fn entries(&self, prefix: &[u8]) -> Vec<Entry> {
        let page = Page { entries_max: 10_000, keys_only: false };
        self.storage.scan(&[KeyRange::prefix(prefix)], page).await.unwrap()
    }

    async fn put(&self, key: Vec<u8>, value: Vec<u8>) {
        let mut changes = Changeset::new();
        changes.put(key, value);
        self.storage.commit(changes).await.unwrap();
    }

    async fn delete(&self, key: Vec<u8>) {
        let mut changes = Changeset::new();
        changes.delete(key);
        self.storage.commit(changes).await.unwrap();
    }

    /// Changes the stored bucket of series a. Returns the bucket before and after.
    async fn change(&self, change: impl Fn(&mut Document)) -> [Entry; 2] {
        for entry in self.entries(b"B").await {
            let stored = StoredBucket::decode(entry.value.clone()).unwrap();
            let mut document = Document::from_reader(stored.document.view().as_bytes()).unwrap();
            if document.get_str("meta").ok() == Some("a") {
                change(&mut document);
                let changed = DocBuf::parse(raw(&document).into_bytes()).unwrap();
                let value = StoredBucket::encode(&stored.coverage, changed.view());
                self.put(entry.key.clone(), value.clone()).await;
                return [entry.clone(), Entry { key: entry.key, value }];
            }
        }
        panic!("there is no bucket of series a");
    }
}

fn row(second: i64, series: &str) -> RawDocumentBuf {
    let n = second as f64;
    rawdoc! { "t": DateTime::from_millis(60_000 + second * 1000), "m": series, "x": n, "y": { "z": n } }
}

async fn check(db: &Db) -> Document {
    db.ok(rawdoc! { "validate": "c", "full": true }).await
}

async fn repair(db: &Db) -> Document {
    db.ok(rawdoc! { "validate": "c", "repair": true }).await
}

async fn all(db: &Db) -> Vec<Document> {
    db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await
}

fn rules(reply: &Document) -> Vec<&str> {
    let findings = reply.get_array("findings").unwrap().iter();
    findings.map(|finding| finding.as_document().unwrap().get_str("rule").unwrap()).collect()
}

fn list<'a>(reply: &'a Document, name: &str) -> &'a Vec<Bson> {
    reply.get_array(name).unwrap()
}

/// For each repaired finding, the number of measurements that were kept.
fn kept(reply: &Document) -> Vec<i32> {
    let of = |finding: &Bson| {
        let finding = finding.as_document().unwrap();
        assert!(!finding.get_str("message").unwrap().is_empty());
        assert_eq!(finding.get_bool("repaired").unwrap(), finding.contains_key("measurementsKept"));
        finding.get_i32("measurementsKept").ok()
    };
    list(reply, "findings").iter().filter_map(of).collect()
}

/// The codes of the findings.
fn fields(reply: &Document) -> Vec<&str> {
    list(reply, "findings").iter().map(|of| of.as_document().unwrap().get_str("field").unwrap()).collect()
}

fn is_valid(reply: &Document) -> bool {
    reply.get_bool("valid").unwrap()
}

#[test]
fn a_good_collection_has_the_reply_of_the_server_and_no_findings() {
    block_on(async {
        for version in 1..=3 {
            let (_disk, db) = Disk::of(version).await;
            let expected = doc! {
                "ns": "test.system.buckets.c",
                "nInvalidDocuments": 0_i64,
                "nNonCompliantDocuments": 0_i64,
                "nrecords": 2_i64,
                "nQuarantined": 0_i64,
                "nIndexes": 1,
                "keysPerIndex": { "m_1_t_1": 2_i64 },
                "indexDetails": { "m_1_t_1": { "valid": true } },
                "valid": true,
                "repaired": false,
                "corruptRecords": [], "warnings": [], "errors": [], "missingIndexEntries": [], "extraIndexEntries": [],
                "findings": [],
                "ok": 1.0,
            };
            assert_eq!(check(&db).await, expected);
            assert_eq!(repair(&db).await, expected);
            assert_eq!(db.ok(rawdoc! { "validate": "system.buckets.c" }).await, expected);
        }
    });
}

#[test]
fn validate_refuses_invalid_arguments() {
    block_on(async {
        let (_disk, db) = Disk::of(2).await;
        assert_eq!(db.fails(rawdoc! { "validate": "d" }).await, (26, "NamespaceNotFound".to_owned()));
        for other in ["metadata", "background"] {
            let mut command = rawdoc! { "validate": "c", "repair": true };
            command.append(bson::raw::CString::try_from(other).unwrap(), true);
            assert_eq!(db.fails(command).await.0, 72);
        }
        assert_eq!(db.fails(rawdoc! { "validate": "c", "deep": true }).await.0, 40415);
    });
}

#[test]
fn validate_takes_what_drivers_send() {
    block_on(async {
        let (_, db) = Disk::of(2).await;
        let asked = rawdoc! { "validate": "c", "scandata": false, "full": false, "background": true };
        assert!(is_valid(&db.ok(asked).await));
    });
}

#[test]
fn both_checkers_accept_random_valid_buckets() {
    block_on(async {
        for seed in 0..30 {
            let random = Random::new(seed);
            let format = if seed % 3 == 0 { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
            let disk = Disk { storage: MemoryStorage::new(), env: TestEnv::new(seed), format };
            let (db, other) = (disk.open(), disk.open());
            db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            for _ in 0..6 {
                let who = if random.chance(50) { &db } else { &other };
                let rows: Vec<_> = (0..random.below(40) as i64).map(|n| raw(&measurement(&random, n))).collect();
                if !rows.is_empty() {
                    who.insert("c", &rows).await;
                }
                if random.chance(40) {
                    who.ok(rawdoc! { "flush": 1 }).await;
                }
                let options = checks::options_of(&db, "c").await;
                let buckets = checks::buckets(&db, "c").await;
                for bucket in &buckets {
                    measurements_of_valid(bucket, &options, Writers::Several).unwrap();
                }
                let reply = check(&db).await;
                assert!(is_valid(&reply) && reply.get_i64("nrecords").unwrap() == buckets.len() as i64, "{reply}");
                // Two contexts that fill one bucket may mix types.
                assert!(rules(&reply).iter().all(|rule| *rule == "B22"), "{reply}");
            }
        }
    });
}

#[test]
fn missing_and_dangling_index_entries_are_found_and_repaired() {
    block_on(async {
        for version in 1..=3 {
            let (disk, _) = Disk::of(version).await;
            let entries = disk.entries(b"I").await;
            let mut nowhere = entries[1].key.clone();
            *nowhere.last_mut().unwrap() ^= 1;
            disk.delete(entries[0].key.clone()).await;
            disk.put(nowhere, Vec::new()).await;
            let db = disk.open();
            let by_meta = rawdoc! { "find": "c", "filter": { "m": "a" }, "hint": "m_1_t_1" };
            assert_eq!(db.find(by_meta.clone()).await.len(), 0);
            let reply = check(&db).await;
            let counts =
                |reply: &Document| (list(reply, "missingIndexEntries").len(), list(reply, "extraIndexEntries").len());
            assert_eq!((is_valid(&reply), counts(&reply), rules(&reply).len()), (false, (1, 1), 0), "{reply}");
            let reply = repair(&db).await;
            assert_eq!((is_valid(&reply), counts(&reply)), (true, (1, 1)), "{reply}");
            assert!(reply.get_bool("repaired").unwrap());
            assert_eq!(counts(&check(&db).await), (0, 0));
            assert_eq!(disk.entries(b"I").await, entries);
            assert_eq!(db.find(by_meta).await.len(), 3);
            assert!(disk.entries(b"Q").await.is_empty());
        }
    });
}

#[test]
fn entries_of_measurement_indexes_are_checked_and_repaired() {
    block_on(async {
        for version in 1..=3 {
            let (disk, db) = Disk::of(version).await;
            let index = rawdoc! { "key": { "x": 1 }, "name": "by_x" };
            let partial = rawdoc! { "key": { "x": -1 }, "name": "of_b", "partialFilterExpression": { "m": "b" } };
            db.ok(rawdoc! { "createIndexes": "c", "indexes": [index, partial] }).await;
            let counts = |reply: &Document| reply.get_document("keysPerIndex").unwrap().clone();
            let reply = check(&db).await;
            assert!(is_valid(&reply) && rules(&reply).is_empty(), "{reply}");
            assert_eq!(counts(&reply), doc! { "m_1_t_1": 2_i64, "by_x": 2_i64, "of_b": 1_i64 });
            let entries = disk.entries(b"I").await;
            disk.delete(entries[2].key.clone()).await;
            let db = disk.open();
            let reply = check(&db).await;
            assert!(!is_valid(&reply));
            let details = reply.get_document("indexDetails").unwrap();
            let valid = |name: &str| details.get_document(name).unwrap().get_bool("valid").unwrap();
            assert_eq!([valid("m_1_t_1"), valid("by_x"), valid("of_b")], [true, false, true], "{reply}");
            // A quarantined bucket loses its index entries; a repaired one gets those of its new content.
            disk.change(|document| cut(document, "x")).await;
            assert!(is_valid(&repair(&db).await));
            let reply = check(&db).await;
            assert!(is_valid(&reply) && rules(&reply).is_empty(), "{reply}");
            assert_eq!(counts(&reply), doc! { "m_1_t_1": 2_i64, "by_x": 2_i64, "of_b": 1_i64 });
        }
    });
}

#[test]
fn an_array_on_an_indexed_path_is_found() {
    block_on(async {
        let (disk, db) = Disk::of(1).await;
        db.ok(rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "by_x" }] }).await;
        disk.change(|document| {
            document.get_document_mut("data").unwrap().insert("x", doc! { "0": [1] });
            for side in ["min", "max"] {
                document.get_document_mut("control").unwrap().get_document_mut(side).unwrap().insert("x", vec![1]);
            }
        })
        .await;
        let db = disk.open();
        for reply in [check(&db).await, repair(&db).await] {
            assert_eq!((is_valid(&reply), rules(&reply)), (false, vec!["ARRAY"]), "{reply}");
            assert!(kept(&reply).is_empty());
        }
    });
}

/// Truncates a column.
fn cut(document: &mut Document, name: &str) {
    let data = document.get_document_mut("data").unwrap();
    let damaged = match &data[name] {
        Bson::Binary(binary) => {
            let bytes = binary.bytes[..binary.bytes.len() - 1].to_vec();
            Bson::Binary(Binary { subtype: BinarySubtype::Column, bytes })
        }
        Bson::Document(cells) => {
            let mut cells = cells.clone();
            cells.insert("99", 1);
            Bson::Document(cells)
        }
        other => panic!("{other}"),
    };
    data.insert(name, damaged);
}

#[test]
fn an_unreadable_column_is_dropped_and_the_others_are_kept() {
    block_on(async {
        for version in 1..=3 {
            let (disk, writer) = Disk::of(version).await;
            let before = all(&writer).await;
            let [_, damaged] = disk.change(|document| cut(document, "x")).await;
            let db = disk.open();
            assert_eq!(db.fails(rawdoc! { "find": "c" }).await.0, 246);
            let reply = check(&db).await;
            let rule = if version == 1 { "B10" } else { "B15" };
            assert_eq!((is_valid(&reply), rules(&reply)), (false, vec![rule]), "{reply}");
            assert_eq!(reply.get_i64("nNonCompliantDocuments").unwrap(), 1);
            assert_eq!(list(&reply, "errors").len(), 1);
            assert!(disk.entries(b"Q").await.is_empty(), "a check changes nothing");

            let reply = repair(&db).await;
            assert!(is_valid(&reply) && reply.get_bool("repaired").unwrap(), "{reply}");
            assert_eq!((kept(&reply), fields(&reply)), (vec![3], vec!["data.x"]));
            assert_eq!(reply.get_i64("nQuarantined").unwrap(), 1);
            // The bytes are unchanged.
            let kept = disk.entries(b"Q").await;
            assert_eq!(kept.len(), 1);
            assert!(kept[0].value == damaged.value && kept[0].key.ends_with(&damaged.key));
            let without = |row: &Document| {
                let mut row = row.clone();
                if row.get_str("m").unwrap() == "a" {
                    row.remove("x");
                }
                row
            };
            let expected: Vec<Document> = before.iter().map(without).collect();
            // The context that wrote it has it in memory.
            for db in [&db, &writer, &disk.open()] {
                assert_eq!(multiset(&all(db).await), multiset(&expected));
                assert_eq!(db.ok(rawdoc! { "count": "c" }).await.get_i32("n").unwrap(), 6);
            }
            let reply = check(&db).await;
            assert!(is_valid(&reply) && rules(&reply).is_empty(), "{reply}");
            assert_eq!(reply.get_i64("nQuarantined").unwrap(), 1);
            // It takes measurements again.
            writer.insert("c", &[row(4, "a")]).await;
            checks::sound_when_folded(&disk.storage, &writer, "c", Writers::One).await;
            writer.ok(rawdoc! { "drop": "c" }).await;
            let left = checks::left_behind(&disk.storage, |storage| Db::open(storage, TestEnv::new(1))).await;
            assert!(left.is_empty(), "{left:?}");
        }
    });
}

#[test]
fn a_bucket_with_unreadable_times_or_bytes_is_quarantined() {
    block_on(async {
        for version in 1..=3 {
            for damage in 0..3 {
                let (disk, writer) = Disk::of(version).await;
                let [stored, _] = disk
                    .change(|document| {
                        if damage == 0 {
                            cut(document, "t")
                        }
                    })
                    .await;
                let mut value = disk.entries(&stored.key).await.remove(0).value;
                match damage {
                    1 => value.truncate(value.len() / 2),
                    2 => value[0] ^= 0xFF,
                    _ => {}
                }
                disk.put(stored.key.clone(), value.clone()).await;
                let db = disk.open();
                assert_eq!(db.fails(rawdoc! { "find": "c" }).await.0, 246);
                let reply = check(&db).await;
                assert!(!is_valid(&reply));
                assert_eq!(reply.get_i64("nInvalidDocuments").unwrap(), i64::from(damage > 0));
                assert_eq!(
                    list(&reply, "extraIndexEntries").len(),
                    0,
                    "entries of a bucket that is there are left alone"
                );
                let reply = repair(&db).await;
                assert_eq!((is_valid(&reply), kept(&reply)), (true, vec![0]));
                assert_eq!(disk.entries(b"Q").await[0].value, value);
                for db in [&db, &writer, &disk.open()] {
                    let found = all(db).await;
                    assert!(found.len() == 3 && found.iter().all(|row| row.get_str("m").unwrap() == "b"));
                    db.ok(rawdoc! { "collStats": "c" }).await;
                }
                // Quarantining the same bucket again overwrites nothing.
                writer.insert("c", &[row(1, "a")]).await;
                checks::sound_when_folded(&disk.storage, &writer, "c", Writers::One).await;
                disk.put(stored.key, vec![9]).await;
                repair(&db).await;
                assert_eq!(disk.entries(b"Q").await.len(), 2);
            }
        }
    });
}

#[test]
fn a_malformed_bucket_is_rebuilt_if_its_id_has_its_start() {
    block_on(async {
        for version in 1..=3 {
            let (disk, writer) = Disk::of(version).await;
            let before = all(&writer).await;
            disk.change(|document| {
                document.insert("extra", 1);
                document.get_document_mut("control").unwrap().remove("min");
            })
            .await;
            let db = disk.open();
            assert_eq!(rules(&check(&db).await), ["B1"]);
            assert_eq!(kept(&repair(&db).await), [3]);
            assert_eq!(multiset(&all(&db).await), multiset(&before));
            checks::sound_when_folded(&disk.storage, &db, "c", Writers::One).await;
        }
    });
}

#[test]
fn wrong_summaries_are_recomputed_and_misplaced_rows_are_left_alone() {
    block_on(async {
        for version in 1..=3 {
            let (disk, writer) = Disk::of(version).await;
            let before = all(&writer).await;
            disk.change(|document| {
                document.get_document_mut("control").unwrap().get_document_mut("max").unwrap().insert("x", 1.0);
            })
            .await;
            let db = disk.open();
            let search = rawdoc! { "find": "c", "filter": { "x": { "$gt": 2 } } };
            assert_eq!(db.find(search.clone()).await.len(), 1, "the bucket is not looked into");
            let reply = repair(&db).await;
            assert_eq!((rules(&reply), kept(&reply)), (vec!["B17"], vec![3]));
            assert_eq!(db.find(search).await.len(), 2);
            assert_eq!(multiset(&all(&db).await), multiset(&before));

            // The bucket spans too long: no valid bucket can hold these rows, but each can be read.
            let (disk, _) = Disk::of(1).await;
            let late = DateTime::from_millis(3 * 3_600_000);
            let [_, changed] = disk
                .change(|document| {
                    document.get_document_mut("data").unwrap().get_document_mut("t").unwrap().insert("2", late);
                    let control = document.get_document_mut("control").unwrap();
                    control.get_document_mut("max").unwrap().insert("t", late);
                })
                .await;
            let db = disk.open();
            let reply = repair(&db).await;
            assert_eq!((is_valid(&reply), rules(&reply), kept(&reply)), (false, vec!["B4"], Vec::new()));
            assert_eq!(disk.entries(&changed.key).await[0], changed);
        }
    });
}

#[test]
fn a_bucket_stored_under_a_wrong_key_is_found() {
    block_on(async {
        let (disk, _) = Disk::of(2).await;
        disk.change(|document| {
            let id = document.get_object_id("_id").unwrap();
            let mut bytes = id.bytes();
            bytes[11] ^= 1;
            document.insert("_id", bson::oid::ObjectId::from_bytes(bytes));
        })
        .await;
        let db = disk.open();
        assert_eq!(rules(&check(&db).await), ["B20"]);
        assert!(is_valid(&repair(&db).await));
        assert!(rules(&check(&db).await).is_empty());
        checks::sound_when_folded(&disk.storage, &db, "c", Writers::One).await;
    });
}

#[test]
fn a_damaged_journal_record_is_quarantined_and_the_collection_works_again() {
    block_on(async {
        for version in 1..=3 {
            let (disk, db) = Disk::of(version).await;
            db.insert("c", &[row(4, "a"), row(4, "b")]).await;
            db.insert("c", &[row(5, "a")]).await;
            let records = disk.entries(b"J").await;
            let mut value = records[0].value.clone();
            let at = value.len() - 3;
            value.truncate(at);
            disk.put(records[0].key.clone(), value.clone()).await;
            let db = disk.open();
            assert_eq!(db.fails(rawdoc! { "find": "c" }).await.0, 246);
            let reply = check(&db).await;
            assert_eq!((is_valid(&reply), rules(&reply)), (false, vec!["J1"]), "{reply}");
            let reply = repair(&db).await;
            assert_eq!((is_valid(&reply), kept(&reply)), (true, vec![0]));
            assert_eq!(disk.entries(b"Q").await[0].value, value);
            assert_eq!(all(&db).await.len(), 7);
            db.insert("c", &[row(6, "a")]).await;
            checks::sound_when_folded(&disk.storage, &db, "c", Writers::Several).await;
        }
    });
}

#[test]
fn unmarked_extended_dates_are_found_and_marked() {
    block_on(async {
        for folded in [false, true] {
            let (disk, db) = Disk::of(2).await;
            db.insert("c", &[row(-100, "a")]).await;
            if folded {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            let marker = disk.entries(b"M").await.remove(1);
            assert_eq!(marker.key.last(), Some(&1));
            disk.delete(marker.key.clone()).await;
            let db = disk.open();
            let early = rawdoc! { "find": "c", "filter": { "t": { "$lt": DateTime::from_millis(0) } } };
            let reply = check(&db).await;
            assert_eq!((is_valid(&reply), rules(&reply)), (false, vec!["RANGE"]), "{reply}");
            assert!(is_valid(&repair(&db).await));
            assert!(disk.entries(b"M").await.iter().any(|entry| entry.key == marker.key));
            assert!(rules(&check(&db).await).is_empty());
            assert_eq!(db.find(early).await.len(), 1);
        }
    });
}

#[test]
fn a_writer_loses_nothing_if_another_context_repairs_its_open_bucket() {
    block_on(async {
        for version in 1..=3 {
            let (disk, writer) = Disk::of(version).await;
            writer.insert("c", &[row(4, "a")]).await;
            disk.change(|document| cut(document, "x")).await;
            let other = disk.open();
            let reply = repair(&other).await;
            assert_eq!((is_valid(&reply), kept(&reply)), (true, vec![3]));
            writer.insert("c", &[row(5, "a")]).await;
            writer.ok(rawdoc! { "flush": 1 }).await;
            let found = all(&other).await;
            assert_eq!(found.len(), 8, "{found:?}");
            checks::sound_when_folded(&disk.storage, &other, "c", Writers::Several).await;
        }
    });
}

#[test]
fn a_repaired_bucket_still_covers_its_records() {
    block_on(async {
        for version in 1..=3 {
            let (disk, writer) = Disk::of(version).await;
            writer.insert("c", &[row(4, "a")]).await;
            let records = disk.entries(b"J").await;
            writer.ok(rawdoc! { "flush": 1 }).await;
            disk.change(|document| cut(document, "x")).await;
            // The state after a fold that was interrupted after its first step.
            for record in records {
                disk.put(record.key, record.value).await;
            }
            let db = disk.open();
            assert_eq!(kept(&repair(&db).await), [4]);
            assert_eq!(all(&db).await.len(), 7);
            checks::sound_when_folded(&disk.storage, &db, "c", Writers::Several).await;
        }
    });
}

#[test]
fn a_repair_beside_inserts_and_folds_of_others_keeps_every_measurement() {
    for seed in 0..60 {
        block_on(async {
            let (disk, writer) = Disk::of(1 + (seed % 3) as i32).await;
            disk.change(|document| cut(document, "x")).await;
            let env = Rc::clone(&disk.env);
            let slow = |seed| Faulty::new(Rc::new(disk.storage.clone()), Random::new(seed), true) as Rc<dyn Storage>;
            let (one, other) = (Db::open(slow(seed), Rc::clone(&env)), Db::open(slow(seed + 99), env));
            let writes = async {
                for second in 4..10 {
                    let db = if second % 2 == 0 { &writer } else { &other };
                    db.insert("c", &[row(second, "a"), row(second, "b")]).await;
                    // A fold fails as long as the damaged bucket exists.
                    db.command(rawdoc! { "flush": 1 }).await;
                }
            };
            let (reply, ()) = join(repair(&one), writes).await;
            assert!(is_valid(&reply), "{reply}");
            for db in [&one, &other, &writer] {
                assert_eq!(all(db).await.len(), 18);
            }
            checks::sound_when_folded(&disk.storage, &other, "c", Writers::Several).await;
        });
    }
}

#[test]
fn validate_reads_buckets_from_storage_and_not_from_the_cache() {
    block_on(async {
        let (disk, db) = Disk::of(2).await;
        all(&db).await;
        disk.change(|document| cut(document, "x")).await;
        // Memory still has the undamaged bucket.
        assert_eq!(all(&db).await.len(), 6);
        assert_eq!(rules(&check(&db).await), ["B15"]);
        // Without `full` no compressed column is decoded.
        assert!(rules(&db.ok(rawdoc! { "validate": "c" }).await).is_empty());
    });
}
