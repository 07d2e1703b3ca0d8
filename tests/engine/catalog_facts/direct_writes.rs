//! Direct writes: buckets that are changed without the catalog.

use timepail::bucket::BucketId;
use timepail::catalog::{Catalog, Counter, Offer, ReopenFailure, Staging};
use timepail::error::ErrorCode;

use super::harness::*;

fn id(n: u8) -> BucketId {
    BucketId::from_bytes([n; 12])
}

#[test]
fn a_direct_write_to_a_bucket_being_committed_conflicts_without_affecting_the_commit() {
    let mut catalog = catalog();
    let bucket = stage(&mut catalog, &[at(0)])[0].bucket;
    let error = catalog.direct_write_start(&[id(1), bucket]).unwrap_err();
    assert_eq!(error.code, ErrorCode::WriteConflict);
    catalog.finish(0);
    assert_eq!(catalog.stats()[Counter::MeasurementsCommitted], 1);
    // The batch is unaffected and the bucket stays open; the refused write leaves nothing behind.
    assert_eq!(insert(&mut catalog, &[at(1)])[0].bucket, bucket);
    assert_eq!(catalog.managed(), 1);
    assert_eq!(catalog.direct_write_start(&[id(1), bucket]), Ok(()));
}

#[test]
fn a_bucket_cleared_during_its_commit_is_committed_and_takes_no_more_rows() {
    let mut catalog = catalog();
    let first = stage(&mut catalog, &[at(0)])[0].bucket;
    catalog.clear_bucket(first);
    catalog.finish(0);
    assert_eq!(catalog.stats()[Counter::Commits], 1);
    let second = insert(&mut catalog, &[at(1)])[0].bucket;
    assert_ne!(second, first);
    assert_eq!(insert(&mut catalog, &[at(2)])[0].bucket, second);
}

#[test]
fn clearing_a_collection_does_not_fail_its_running_commits() {
    let mut catalog = catalog();
    let first = stage(&mut catalog, &[at(0)])[0].bucket;
    catalog.clear();
    catalog.finish(0);
    assert_eq!((catalog.stats()[Counter::Commits], catalog.stats().active), (1, 0));
    assert_ne!(insert(&mut catalog, &[at(1)])[0].bucket, first);
}

/// Stages rows of a series with an open bucket and of a new one, which asks for stored buckets first; `meanwhile` is then called
/// with the open bucket, before the rows are prepared. Answers both buckets that the rows of the first series had.
fn interrupted(meanwhile: &mut dyn FnMut(&mut Catalog, BucketId)) -> (Catalog, BucketId, BucketId) {
    let mut catalog = catalog();
    let open = insert(&mut catalog, &[of(0, "b")])[0].bucket;
    let mut asked = 0;
    let sections = stage_answering(&mut catalog, &[of(1, "b"), of(0, "a")], &mut |catalog, _| {
        if std::mem::replace(&mut asked, 1) == 0 {
            meanwhile(catalog, open);
        }
        Offer::NotFound
    });
    let of_series = sections.iter().find(|section| section.meta == Some(timepail::value::OwnedValue::string("b")));
    let bucket = of_series.unwrap().bucket;
    catalog.finish(0);
    (catalog, open, bucket)
}

#[test]
fn rows_staged_for_a_bucket_under_a_direct_write_move_to_another() {
    let (_, open, bucket) = interrupted(&mut |_, _| {});
    assert_eq!(open, bucket);
    let (catalog, open, bucket) = interrupted(&mut |catalog, open| {
        catalog.direct_write_start(&[open]).unwrap();
        catalog.direct_write_finish(&[open]);
    });
    assert_ne!(open, bucket);
    assert_eq!((catalog.stats().active, catalog.stats()[Counter::MeasurementsCommitted]), (2, 3));
    let (_, open, bucket) = interrupted(&mut |catalog, _| catalog.clear());
    assert_ne!(open, bucket);
}

#[test]
fn direct_writes_nest_and_block_inserts_until_the_last_has_ended() {
    let mut catalog = catalog();
    let bucket = insert(&mut catalog, &[at(HOUR)])[0].bucket;
    catalog.direct_write_start(&[bucket]).unwrap();
    catalog.direct_write_start(&[bucket]).unwrap();
    catalog.direct_write_finish(&[bucket]);
    let mut conflicts = 0;
    let found = &mut |_: &mut Catalog, _: &_| {
        conflicts += 1;
        Offer::Found(stored(bucket, HOUR))
    };
    let other = stage_answering(&mut catalog, &[at(HOUR)], found)[0].bucket;
    catalog.finish(0);
    assert_ne!(other, bucket);
    let stats = catalog.stats();
    assert_eq!((conflicts, stats[ReopenFailure::WriteConflict], stats[Counter::Reopened]), (16, 16, 0));
    catalog.direct_write_finish(&[bucket]);
    catalog.clear_bucket(other);
    let again = stage_answering(&mut catalog, &[at(HOUR)], &mut |_, _| Offer::Found(stored(bucket, HOUR)));
    assert_eq!((again[0].bucket, catalog.stats()[Counter::Reopened]), (bucket, 1));
}

#[test]
fn a_direct_write_clear_or_freeze_closes_the_open_bucket() {
    let ways: [fn(&mut Catalog, BucketId); 3] = [
        |catalog, bucket| catalog.direct_write_start(&[bucket]).unwrap(),
        |catalog, bucket| catalog.clear_bucket(bucket),
        |catalog, bucket| catalog.freeze(bucket),
    ];
    for way in ways {
        let mut catalog = catalog();
        let bucket = insert(&mut catalog, &[at(0)])[0].bucket;
        let other = insert(&mut catalog, &[of(0, "b")])[0].bucket;
        way(&mut catalog, bucket);
        let stats = catalog.stats();
        assert_eq!((stats.active, stats.open_series, stats.idle), (1, 1, 1));
        let found = insert(&mut catalog, &[at(1), of(1, "b")]);
        assert!(found[0].bucket != bucket && found[1].bucket == other);
    }
}

#[test]
fn a_document_fetched_before_a_direct_write_is_fetched_again() {
    for finished in [false, true] {
        let mut catalog = catalog();
        let mut asked = 0;
        let sections = stage_answering(&mut catalog, &[at(0)], &mut |catalog, _| {
            asked += 1;
            if asked == 1 {
                catalog.direct_write_start(&[id(9)]).unwrap();
                if finished {
                    catalog.direct_write_finish(&[id(9)]);
                }
            }
            Offer::Found(stored(id(1), 0))
        });
        let stats = catalog.stats();
        assert_eq!((asked, sections[0].bucket, stats[ReopenFailure::EraMismatch]), (2, id(1), 1));
    }
}

#[test]
fn reopening_a_bucket_under_a_direct_write_is_a_conflict() {
    let mut catalog = catalog();
    catalog.direct_write_start(&[id(1)]).unwrap();
    let mut asked = 0;
    let sections = stage_answering(&mut catalog, &[at(0)], &mut |catalog, _| {
        asked += 1;
        if asked == 3 {
            catalog.direct_write_finish(&[id(1)]);
        }
        Offer::Found(stored(id(1), 0))
    });
    let stats = catalog.stats();
    // Two conflicts with the direct write, and one fetch that became stale when it ended.
    assert_eq!((stats[ReopenFailure::WriteConflict], stats[ReopenFailure::EraMismatch], asked), (2, 1, 4));
    assert_eq!((sections[0].bucket, stats[Counter::Reopened]), (id(1), 1));
}

#[test]
fn freezing_removes_a_bucket_from_the_archive_and_allows_direct_writes() {
    let mut catalog = catalog();
    let bucket = insert(&mut catalog, &[at(1000 * HOUR)])[0].bucket;
    insert(&mut catalog, &[at(0)]);
    assert_eq!((catalog.stats()[Counter::ArchivedDueToTimeBackward], catalog.stats().active), (1, 2));
    catalog.freeze(bucket);
    assert_eq!((catalog.is_frozen(bucket), catalog.stats().active, catalog.managed()), (true, 1, 2));
    assert_eq!(catalog.direct_write_start(&[bucket]), Ok(()));
    catalog.direct_write_finish(&[bucket]);
    assert!(catalog.is_frozen(bucket));
    let mut asked = Vec::new();
    stage_answering(&mut catalog, &[at(1000 * HOUR)], &mut |_, request| {
        asked.push(request.archived);
        Offer::NotFound
    });
    // Time moves forward from the bucket at 0, and no archived bucket is left to request.
    assert_eq!(asked, []);
}

#[test]
fn an_aborted_batch_frees_its_buckets_for_direct_writes() {
    let mut catalog = catalog();
    let bucket = stage(&mut catalog, &[at(0)])[0].bucket;
    assert!(catalog.direct_write_start(&[bucket]).is_err());
    catalog.abort();
    assert!(catalog.direct_write_start(&[bucket]).is_ok());
    assert_eq!(catalog.stats().active, 0);
}

#[test]
fn rows_waiting_for_a_reopen_request_do_not_block_direct_writes() {
    let mut catalog = catalog();
    let open = insert(&mut catalog, &[of(0, "b")])[0].bucket;
    let docs = [of(1, "b"), of(0, "a")];
    let docs = docs.iter().map(|doc| timepail::value::Doc::parse(doc.as_bytes()).unwrap());
    let mut batch = catalog.batch(timepail::block::pivot_docs(docs).unwrap());
    assert!(matches!(catalog.stage(&mut batch).unwrap(), Staging::Reopen(_)));
    assert!(catalog.direct_write_start(&[open]).is_ok());
}
