//! Sorts the rows of blocks by their keys.

use kernels::sortable;

use super::keys::{first_keys, keys_of_rows};
use super::spec::SortSpec;
use crate::block::Block;
use crate::error::{Error, Result};
use crate::value::sort_rows;

/// Of so many rows, the first few are found by sorting all of them: counts of bytes take longer.
const COUNTED_ROWS_MIN: usize = 200;

/// The rows of `blocks`, counted over all of them, in the order of `spec`; stable.
///
/// With `keep`, only the first `keep` rows.
///
/// Errors: `BadValue` if two parts of the sort meet different arrays in one row, or if there are 2^32 rows or more.
pub fn sorted_rows(spec: &SortSpec, blocks: &[Block], keep: Option<usize>) -> Result<Vec<u32>> {
    rows_in_order(&keys_of_rows(spec, blocks)?, keep)
}

/// The rows of the second block that come before the only row of the first one.
///
/// Errors: as `sorted_rows`.
pub fn rows_before(spec: &SortSpec, pair: &[Block; 2]) -> Result<Vec<u32>> {
    let [last, rows] = pair;
    let Some(first) = first_keys(spec, pair) else { return all_before(spec, pair) };
    let Some((least, first)) = first.split_first() else { return Ok(Vec::new()) };
    let [_, others @ ..] = spec.parts() else { return Ok(Vec::new()) };
    // Most rows sort behind by their first key, so that the others are made for few.
    let Some(limit) = (if others.is_empty() { least.checked_sub(1) } else { Some(*least) }) else {
        return Ok(Vec::new());
    };
    let near = sortable::up_to(first, limit);
    if others.is_empty() || near.is_empty() {
        return Ok(near);
    }
    if near.len() > rows.rows() / 4 {
        return all_before(spec, pair);
    }
    let before = all_before(spec, &[last.clone(), rows.gather(&near)])?;
    Ok(before.iter().filter_map(|at| near.get(*at as usize)).copied().collect())
}

fn all_before(spec: &SortSpec, pair: &[Block; 2]) -> Result<Vec<u32>> {
    let keys = keys_of_rows(spec, pair)?;
    let Some((first, others)) = keys.split_first() else { return Ok(Vec::new()) };
    let Some((last, first)) = first.split_first() else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (row, key) in (1..).zip(first).filter(|(_, key)| *key <= last) {
        let key_of = |keys: &Vec<u64>, row: usize| keys.get(row).copied().unwrap_or_default();
        let mut pairs = others.iter().map(|keys| (key_of(keys, row), key_of(keys, 0)));
        if key < last || pairs.find(|(key, last)| key != last).is_some_and(|(key, last)| key < last) {
            rows.push(row as u32 - 1);
        }
    }
    Ok(rows)
}

/// The rows of `block` in the order of `spec`, each with whether it is the first of those that tie.
///
/// Errors: as `sorted_rows`.
pub fn sorted_groups(spec: &SortSpec, block: &Block) -> Result<Vec<(u32, bool)>> {
    let keys = keys_of_rows(spec, std::slice::from_ref(block))?;
    let mut before = None;
    let starts = |row: u32| {
        let differs = |before: u32| keys.iter().any(|keys| keys.get(before as usize) != keys.get(row as usize));
        (row, before.replace(row).is_none_or(differs))
    };
    Ok(rows_in_order(&keys, None)?.into_iter().map(starts).collect())
}

fn rows_in_order(keys: &[Vec<u64>], keep: Option<usize>) -> Result<Vec<u32>> {
    let Some((first, rest)) = keys.split_first() else {
        return Err(Error::internal("A sort needs at least one key"));
    };
    let count =
        u32::try_from(first.len()).map_err(|_| Error::bad_value("A sort can hold at most 2^32 measurements"))?;
    let mut rows: Vec<(u64, u32)> = first.iter().copied().zip(0..count).collect();
    let keep = keep.unwrap_or(rows.len()).min(rows.len());
    if keep == 0 {
        return Ok(Vec::new());
    }
    if !rows.is_sorted() {
        if keep < rows.len() && rows.len() > COUNTED_ROWS_MIN {
            // Rows that tie with the last kept key may be ordered by further parts, so all of them stay until those
            // were compared.
            let last = nth_key(&rows, keep - 1);
            rows.retain(|row| row.0 <= last);
        }
        sort_rows(&mut rows);
    }
    sort_ties(&mut rows, rest);
    rows.truncate(keep);
    Ok(rows.into_iter().map(|row| row.1).collect())
}

/// The key at position `nth` after a sort. From the first byte in which keys differ, counts per byte value tell the
/// next byte.
fn nth_key(rows: &[(u64, u32)], mut nth: usize) -> u64 {
    let first = rows.first().map_or(0, |row| row.0);
    let differing = rows.iter().fold(0, |bits, row| bits | (row.0 ^ first));
    let bytes = 8 - differing.leading_zeros() / 8;
    // The known bytes of the key; the others are unknown.
    let mut known = first.checked_shr(8 * bytes).unwrap_or(0);
    for shift in (0..bytes).rev().map(|byte| 8 * byte) {
        let mut counts = [0_usize; 256];
        for row in rows {
            let leading = row.0 >> shift;
            if leading >> 8 == known
                && let Some(count) = counts.get_mut((leading & 0xFF) as usize)
            {
                *count += 1;
            }
        }
        let mut byte = 0;
        for count in &counts {
            if nth < *count {
                break;
            }
            nth -= count;
            byte += 1;
        }
        known = known << 8 | byte;
    }
    known
}

/// Sorts every group of equal keys by the next part, and its ties by the one after it.
fn sort_ties(rows: &mut [(u64, u32)], parts: &[Vec<u64>]) {
    let Some((keys, rest)) = parts.split_first() else { return };
    for ties in rows.chunk_by_mut(|a, b| a.0 == b.0).filter(|ties| ties.len() > 1) {
        for row in ties.iter_mut() {
            row.0 = keys.get(row.1 as usize).copied().unwrap_or_default();
        }
        sort_rows(ties);
        sort_ties(ties, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::block::samples::decimals;
    use crate::value::{Collation, Doc, DocBuf, DocWriter, OwnedValue, Value, compare_sort_keys, sort_key};
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn spec(doc: &RawDocumentBuf) -> SortSpec {
        SortSpec::parse(Doc::parse(doc.as_bytes()).unwrap().as_value(), &Collation::default()).unwrap()
    }

    fn block(docs: &[RawDocumentBuf]) -> Block {
        pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap()
    }

    proptest! {
        #[test]
        fn the_nth_key_equals_that_of_a_full_sort(
            mut keys in proptest::collection::vec(prop_oneof![any::<u64>(), 0..3_u64, 250..520_u64], 1..80),
            nth in any::<proptest::sample::Index>(),
        ) {
            let nth = nth.index(keys.len());
            let rows: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
            keys.sort();
            prop_assert_eq!(nth_key(&rows, nth), keys[nth]);
        }
    }

    #[test]
    fn rows_are_sorted_over_all_blocks_and_ties_keep_their_order() {
        let blocks = [
            block(&[rawdoc! { "t": 3.0, "n": 1 }, rawdoc! { "t": 1.0 }]),
            block(&[rawdoc! { "x": 1 }, rawdoc! { "t": 2, "n": 5 }, rawdoc! { "t": 1, "n": -1 }]),
        ];
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": 1 }), &blocks, None).unwrap(), [2, 1, 4, 3, 0]);
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": -1 }), &blocks, None).unwrap(), [0, 3, 1, 4, 2]);
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": 1, "n": -1 }), &blocks, None).unwrap(), [2, 4, 1, 3, 0]);
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": 1, "n": 1 }), &blocks, Some(2)).unwrap(), [2, 1]);
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": 1 }), &blocks, Some(0)).unwrap(), [0_u32; 0]);
    }

    #[test]
    fn the_least_date_does_not_tie_with_a_missing_one() {
        let date = bson::DateTime::from_millis(i64::MIN);
        let blocks = [block(&[rawdoc! { "t": date }, rawdoc! { "a": 1 }])];
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": 1 }), &blocks, None).unwrap(), [1, 0]);
        assert_eq!(sorted_rows(&spec(&rawdoc! { "t": -1 }), &blocks, None).unwrap(), [0, 1]);
    }

    #[test]
    fn parallel_arrays_are_refused_and_shared_ones_are_not() {
        let docs = [rawdoc! { "a": [1], "b": [2] }, rawdoc! { "a": 1, "b": "x" }];
        assert!(sorted_rows(&spec(&rawdoc! { "a": 1, "b": 1 }), &[block(&docs)], None).is_err());
        assert!(sorted_rows(&spec(&rawdoc! { "a": 1 }), &[block(&docs)], None).is_ok());
        let docs = [rawdoc! { "a": [{ "b": 2, "c": 1 }] }, rawdoc! { "a": [{ "b": 1, "c": 5 }, { "b": 4, "c": 0 }] }];
        assert_eq!(sorted_rows(&spec(&rawdoc! { "a.b": 1, "a.c": 1 }), &[block(&docs)], None).unwrap(), [1, 0]);
    }

    /// Values that collide, tie, and lie at every limit of the fixed keys; type 7 mixes all of them.
    fn value_of(which: u8) -> BoxedStrategy<OwnedValue> {
        let edges = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, 9_007_199_254_740_992.0];
        match which {
            0 => prop_oneof![proptest::sample::select(edges.to_vec()), -3.0..3.0_f64]
                .prop_map(OwnedValue::double)
                .boxed(),
            1 => (-3..3_i32).prop_map(OwnedValue::int32).boxed(),
            2 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(9_007_199_254_740_993), -3..3_i64]
                .prop_map(OwnedValue::int64)
                .boxed(),
            3 => prop_oneof![Just(i64::MIN), -3..3_i64].prop_map(OwnedValue::date).boxed(),
            4 => any::<bool>().prop_map(OwnedValue::bool).boxed(),
            5 => "[ab\0]{0,9}".prop_map(|s| OwnedValue::string(&s)).boxed(),
            6 => prop_oneof![
                Just(OwnedValue::null()),
                (0..3_i32)
                    .prop_map(|n| { OwnedValue::doc(Doc::parse(rawdoc! { "x": n, "y": [n, 1] }.as_bytes()).unwrap()) }),
            ]
            .boxed(),
            _ => (0..7_u8).prop_flat_map(value_of).boxed(),
        }
    }

    /// Cells of one type, or of any.
    fn cells() -> impl Strategy<Value = Vec<Option<OwnedValue>>> {
        let of = |which| proptest::collection::vec(proptest::option::weighted(0.8, value_of(which)), 40);
        let decimals = decimals(40).prop_flat_map(|all| {
            let has = proptest::collection::vec(proptest::bool::weighted(0.9), all.len());
            has.prop_map(move |has| all.iter().cloned().zip(has).map(|(value, has)| has.then_some(value)).collect())
        });
        prop_oneof![9 => (0..9_u8).prop_flat_map(of), 2 => decimals]
    }

    fn rows() -> impl Strategy<Value = Vec<[Option<OwnedValue>; 2]>> {
        (cells(), cells(), 0..40_usize)
            .prop_map(|(a, b, n)| a.into_iter().zip(b).take(n).map(|(a, b)| [a, b]).collect())
    }

    fn doc(row: &[Option<OwnedValue>; 2]) -> DocBuf {
        let mut writer = DocWriter::new();
        for (name, value) in ["a", "b"].iter().zip(row) {
            if let Some(value) = value {
                writer.value(name, value.view());
            }
        }
        writer.finish()
    }

    proptest! {
        #[test]
        fn the_order_equals_that_of_a_stable_sort_of_documents(
            rows in rows(), split in any::<prop::sample::Index>(), keep in proptest::option::of(0..40_usize), which in 0..6_usize,
            up in any::<[bool; 2]>(),
            // With repetitions, there are enough rows to count bytes.
            times in prop::sample::select(vec![1, 1, 1, 9_usize]),
        ) {
            let docs: Vec<DocBuf> = rows.iter().cycle().take(rows.len() * times).map(doc).collect();
            let paths = [vec!["a"], vec!["b"], vec!["a", "b"], vec!["b", "a"], vec!["a.x", "b"], vec!["a.x", "b.x"]];
            let mut sort = DocWriter::new();
            for (path, up) in paths[which].iter().zip(up) {
                sort.double(path, if up { 1.0 } else { -1.0 });
            }
            let spec = SortSpec::parse(sort.finish().view().as_value(), &Collation::default()).unwrap();
            let (left, right) = docs.split_at(split.index(docs.len() + 1));
            let blocks = [left, right].map(|part| pivot_docs(part.iter().map(DocBuf::view)).unwrap());
            let got = sorted_rows(&spec, &blocks, keep).unwrap();

            fn key<'a>(doc: &'a DocBuf, part: &super::super::SortPart) -> Option<Value<'a>> {
                sort_key(doc.view().get(part.path.first()), part.path.rest(), part.ascending, &part.collation)
            }
            let mut expected: Vec<u32> = (0..docs.len() as u32).collect();
            expected.sort_by(|x, y| {
                spec.parts().iter().fold(Ordering::Equal, |order, part| order.then_with(|| {
                    let order = compare_sort_keys(key(&docs[*x as usize], part), key(&docs[*y as usize], part), &part.collation);
                    if part.ascending { order } else { order.reverse() }
                }))
            });
            expected.truncate(keep.unwrap_or(usize::MAX));
            prop_assert_eq!(&got, &expected);
            let [first, second] = &blocks;
            if let Some(at) = first.rows().checked_sub(1) {
                let before = rows_before(&spec, &[first.slice(at..at + 1), second.clone()]).unwrap();
                let all = sorted_rows(&spec, &blocks, None).unwrap();
                let in_front = all.iter().take_while(|row| **row as usize != at);
                let mut expected: Vec<u32> = in_front.filter_map(|row| row.checked_sub(at as u32 + 1)).collect();
                expected.sort();
                prop_assert_eq!(before, expected);
            }
        }
    }
}
