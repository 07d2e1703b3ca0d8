//! Point reads, ranges and pages.

use timepail::storage::{Bytes, Changeset, Entry, KeyRange, Page, Storage};

use super::{b, everything, get, keys, page, put_all, range};

pub async fn an_absent_key_has_no_value(storage: &dyn Storage, _: &dyn Storage) {
    assert_eq!(get(storage, "k").await, None);
    put_all(storage, [("k", "v"), ("kk", "v")]).await;
    assert_eq!(get(storage, "j").await, None);
    assert_eq!(get(storage, "kkk").await, None);
}

pub async fn a_value_comes_back_as_it_was_put(storage: &dyn Storage, _: &dyn Storage) {
    let every_byte: Bytes = (0..=255).collect();
    put_all(storage, [(&every_byte, &every_byte)]).await;
    assert_eq!(get(storage, &every_byte).await, Some(every_byte));
}

pub async fn get_many_answers_in_the_order_asked_with_duplicates(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1"), ("b", "2"), ("c", "3")]).await;
    let found = storage.get_many(&[b("c"), b("a"), b("x"), b("c"), b("b"), b("x")]).await.unwrap();
    assert_eq!(found, [Some(b("3")), Some(b("1")), None, Some(b("3")), Some(b("2")), None]);
}

pub async fn get_many_of_no_keys_answers_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1")]).await;
    assert!(storage.get_many(&[]).await.unwrap().is_empty());
}

pub async fn get_many_of_neighbours_answers_in_the_order_asked(storage: &dyn Storage, _: &dyn Storage) {
    // Stored keys are even. Some values are empty, and some are large.
    let key = |number: u16| number.to_be_bytes().to_vec();
    let value =
        |number: u16| vec![number as u8; if number.is_multiple_of(62) { 20_000 } else { usize::from(number % 7) }];
    let is_stored = |number: &u16| number.is_multiple_of(2);
    put_all(storage, (0..600).filter(is_stored).map(|number| (key(number), value(number)))).await;
    let ascending: Vec<u16> = (100..400).step_by(2).collect();
    let shuffled = |numbers: &[u16]| (0..numbers.len()).map(|at| numbers[at * 7 % numbers.len()]).collect::<Vec<u16>>();
    for numbers in [
        ascending.clone(),
        ascending.iter().rev().copied().collect(),
        shuffled(&ascending),
        // With keys that are not stored, and twice.
        (100..200).collect(),
        [&ascending[..], &ascending[..20]].concat(),
        // Most of their neighbours are wanted, half of them, few of them, or there is one far away.
        ascending.iter().copied().filter(|number| number % 10 != 0).collect(),
        (100..400).step_by(4).collect(),
        (0..600).step_by(20).collect(),
        [&ascending[..], &[599]].concat(),
        (700..800).collect(),
    ] {
        let keys: Vec<Bytes> = numbers.iter().map(|number| key(*number)).collect();
        let found = storage.get_many(&keys).await.unwrap();
        let stored = |number: &u16| (is_stored(number) && *number < 600).then(|| value(*number));
        assert!(found == numbers.iter().map(stored).collect::<Vec<_>>(), "{numbers:?}");
    }
}

pub async fn keys_are_ordered_by_their_bytes(storage: &dyn Storage, _: &dyn Storage) {
    let sorted: [&[u8]; 12] = [
        &[],
        &[0x00],
        &[0x00, 0x00],
        &[0x00, 0xFF],
        &[0x01],
        b"a",
        &[b'a', 0x00],
        &[b'a', 0x00, 0x00],
        b"ab",
        &[0x7F],
        &[0x80],
        &[0xFF, 0xFF],
    ];
    // The result is neither in the order of writing nor in its reverse.
    let mut shuffled = sorted.to_vec();
    shuffled.rotate_left(5);
    shuffled.swap(0, 7);
    put_all(storage, shuffled.iter().map(|key| (key, [key.len() as u8]))).await;
    let entries = storage.scan(&[everything()], page(100)).await.unwrap();
    assert!(entries.iter().map(|entry| entry.key.as_slice()).eq(sorted));
    assert!(entries.iter().all(|entry| entry.value == [entry.key.len() as u8]));
    for key in sorted {
        assert_eq!(get(storage, key).await, Some(vec![key.len() as u8]));
    }
}

pub async fn a_range_holds_its_start_and_not_its_end(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, ["a", "b", "ba", "c"].map(|key| (key, ""))).await;
    assert_eq!(keys(storage, &[range("b", "c")], 10).await, ["b", "ba"]);
    assert_eq!(keys(storage, &[range("b", "ba")], 10).await, ["b"]);
    assert_eq!(keys(storage, &[range("aa", "bz")], 10).await, ["b", "ba"]);
    assert_eq!(keys(storage, &[range("b", b"b\0")], 10).await, ["b"]);
}

pub async fn an_empty_range_holds_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, ["a", "b", "c"].map(|key| (key, ""))).await;
    assert!(keys(storage, &[range("b", "b")], 10).await.is_empty());
    assert!(keys(storage, &[range("c", "a")], 10).await.is_empty());
    assert!(keys(storage, &[range("", "")], 10).await.is_empty());
    // An empty range beside others changes nothing.
    let ranges = [range("a", "a"), range("c", "d"), range("z", "a"), range("a", "b"), range("b", "b")];
    assert_eq!(keys(storage, &ranges, 10).await, ["c", "a"]);
}

pub async fn a_prefix_range_holds_exactly_the_keys_with_that_prefix(storage: &dyn Storage, _: &dyn Storage) {
    let outside: [&[u8]; 4] = [&[0x00], &[0x01, 0xFE, 0xFF, 0xFF], &[0x02], &[0x02, 0x00]];
    let inside: [&[u8]; 5] =
        [&[0x01, 0xFF], &[0x01, 0xFF, 0x00], &[0x01, 0xFF, 0x01], &[0x01, 0xFF, 0xFF], &[0x01, 0xFF, 0xFF, 0xFF]];
    put_all(storage, outside.iter().chain(&inside).map(|key| (key, ""))).await;
    // The end of this range needs a carry: 0x01 0xFF is followed by 0x02.
    let entries = storage.scan(&[KeyRange::prefix(&[0x01, 0xFF])], page(100)).await.unwrap();
    assert!(entries.iter().map(|entry| entry.key.as_slice()).eq(inside));
}

pub async fn a_scan_of_no_ranges_answers_nothing(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a", "1")]).await;
    assert!(keys(storage, &[], 10).await.is_empty());
}

pub async fn ranges_are_answered_in_the_order_given(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, ["a1", "a2", "b1", "c1", "c2", "d1"].map(|key| (key, key))).await;
    let ranges = ["c", "x", "a", "d"].map(|prefix| KeyRange::prefix(prefix.as_bytes()));
    assert_eq!(keys(storage, &ranges, 100).await, ["c1", "c2", "a1", "a2", "d1"]);
    // Overlapping ranges are answered one after the other as well.
    let ranges = [range("a2", "c1"), range("a", "c")];
    assert_eq!(keys(storage, &ranges, 100).await, ["a2", "b1", "a1", "a2", "b1"]);
}

pub async fn a_page_ends_at_its_count_wherever_ranges_meet(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, ["a1", "a2", "b1", "b2", "b3", "c1"].map(|key| (key, key))).await;
    let ranges = ["a", "x", "b", "c"].map(|prefix| KeyRange::prefix(prefix.as_bytes()));
    let all = ["a1", "a2", "b1", "b2", "b3", "c1"];
    for entries_max in 1..=7 {
        let entries = storage.scan(&ranges, page(entries_max)).await.unwrap();
        let expected = &all[..entries_max.min(all.len())];
        assert_eq!(entries.len(), expected.len());
        for (entry, key) in entries.iter().zip(expected) {
            assert_eq!((entry.key.as_slice(), entry.value.as_slice()), (key.as_bytes(), key.as_bytes()));
        }
    }
}

pub async fn paging_visits_every_entry_once(storage: &dyn Storage, _: &dyn Storage) {
    let all: Vec<Bytes> = (0..100u32).map(|number| number.to_be_bytes().to_vec()).collect();
    put_all(storage, all.iter().map(|key| (key, key))).await;
    for entries_max in [1, 7, 10, 33, 99, 100, 101] {
        let mut visited = Vec::new();
        let mut rest = everything();
        loop {
            let entries = storage.scan(&[rest.clone()], page(entries_max)).await.unwrap();
            assert!(entries.len() <= entries_max);
            let is_last = entries.len() < entries_max;
            visited.extend(entries.into_iter().map(|entry| entry.key));
            if is_last {
                break;
            }
            // The first key after the last one seen.
            rest.start = visited.last().unwrap().clone();
            rest.start.push(0);
        }
        assert_eq!(visited, all);
    }
}

pub async fn ranges_of_very_different_size_fill_one_page(storage: &dyn Storage, _: &dyn Storage) {
    // Range 3 holds 40 entries, range 7 holds 9, every other one of 20 ranges a single one, but range 5 none.
    let count = |range: u8| match range {
        3 => 40,
        5 => 0,
        7 => 9,
        _ => 1,
    };
    let all: Vec<Bytes> = (0..20).flat_map(|range| (0..count(range)).map(move |n| vec![range, n])).collect();
    put_all(storage, all.iter().map(|key| (key, key.repeat(3)))).await;
    let ranges: Vec<KeyRange> = (0..20).map(|range| KeyRange::prefix(&[range])).collect();
    for entries_max in [1, 3, 4, 20, 42, 43, 44, 52, 53, all.len(), 1000] {
        let entries = storage.scan(&ranges, page(entries_max)).await.unwrap();
        let expected: Vec<Entry> =
            all.iter().take(entries_max).map(|key| Entry { key: key.clone(), value: key.repeat(3) }).collect();
        assert_eq!(entries, expected, "a page of {entries_max}");
    }
}

pub async fn values_of_any_size_fill_a_page(storage: &dyn Storage, _: &dyn Storage) {
    // Two ranges of thirty entries, alternately small and large: an adapter may fetch values in portions by size.
    let value = |number: u8| vec![number; if number.is_multiple_of(3) { 40_000 } else { usize::from(number) }];
    let mut changes = Changeset::new();
    for number in 0..60 {
        changes.put(vec![number / 30, number], value(number));
    }
    storage.commit(changes).await.unwrap();
    let ranges = [KeyRange::prefix(&[0]), KeyRange::prefix(&[1])];
    for entries_max in [8, 9, 31, 37, 38, 60, 61] {
        let entries = storage.scan(&ranges, page(entries_max)).await.unwrap();
        assert_eq!(entries.len(), entries_max.min(60));
        for (number, entry) in (0..).zip(&entries) {
            assert!(entry.key == [number / 30, number] && entry.value == value(number), "entry {number}");
        }
    }
}

pub async fn keys_only_answers_keys_with_empty_values(storage: &dyn Storage, _: &dyn Storage) {
    put_all(storage, [("a1", "v"), ("a2", "v"), ("b1", "v"), ("c1", "v")]).await;
    let ranges = [range("a", "b"), range("b", "z")];
    let entries = storage.scan(&ranges, Page { entries_max: 3, keys_only: true }).await.unwrap();
    let expected = ["a1", "a2", "b1"].map(|key| Entry { key: b(key), value: Bytes::new() });
    assert_eq!(entries, expected);
}

pub async fn large_values_come_back_whole(storage: &dyn Storage, _: &dyn Storage) {
    // Browsers store values above about 64 KiB in another way.
    let sizes = [0, 1, 65_535, 65_536, 65_537, 200_000];
    let value = |size: usize| -> Bytes { (0..size).map(|i| (i * 7 + size) as u8).collect() };
    let mut changes = Changeset::new();
    for (key, size) in sizes.iter().enumerate() {
        changes.put(vec![key as u8], value(*size));
    }
    storage.commit(changes).await.unwrap();
    let entries = storage.scan(&[everything()], page(100)).await.unwrap();
    assert!(entries.iter().map(|entry| &entry.value).eq(&sizes.map(value)));
    assert_eq!(get(storage, [5]).await, Some(value(200_000)));
}

pub async fn five_thousand_entries_come_back(storage: &dyn Storage, _: &dyn Storage) {
    let all: Vec<Bytes> = (0..5000u32).map(|number| number.to_be_bytes().to_vec()).collect();
    put_all(storage, all.iter().map(|key| (key, key))).await;
    let entries = storage.scan(&[everything()], page(10_000)).await.unwrap();
    assert!(entries.iter().map(|entry| &entry.key).eq(&all));
    assert!(entries.iter().all(|entry| entry.key == entry.value));
    let found = storage.get_many(&all).await.unwrap();
    assert!(found.iter().flatten().eq(&all));
    let single: Vec<KeyRange> = all.iter().step_by(5).map(|key| KeyRange::prefix(key)).collect();
    assert_eq!(storage.scan(&single, page(10_000)).await.unwrap().len(), 1000);
}

pub async fn a_scan_ahead_answers_keys_and_brings_values_of_one_range_only(storage: &dyn Storage, _: &dyn Storage) {
    // More values, of several sizes, than a backend returns with the keys, so that it returns only some of them.
    let value = |number: u16| vec![1; usize::from(number % 300) + 1];
    let mut changes = Changeset::new();
    for number in 0..1500_u16 {
        changes.put([&[(number % 3) as u8][..], &number.to_be_bytes()].concat(), value(number));
    }
    storage.commit(changes).await.unwrap();
    let ranges = [2, 0, 9, 1].map(|prefix| KeyRange::prefix(&[prefix]));
    for entries_max in [1, 499, 500, 501, 1000, 5000] {
        let listed = storage.scan(&ranges, Page { entries_max, keys_only: true }).await.unwrap();
        for place in 0..ranges.len() {
            let entries = storage.scan_ahead(&ranges, entries_max, place).await.unwrap();
            assert!(entries.iter().map(|entry| &entry.key).eq(listed.iter().map(|entry| &entry.key)));
            for Entry { key, value: brought } in &entries {
                let number = u16::from_be_bytes([key[1], key[2]]);
                assert!(brought.is_empty() || (ranges[place].start[0] == key[0] && *brought == value(number)));
            }
        }
    }
}
