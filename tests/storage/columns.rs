//! BSON columns: compares the engine's encoder and decoder with vectors, with properties of the format, and with a second decoder.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use timepail::column::{self, ColumnWriter};

use crate::column_cases::{assembled, column_of, damaged, elements, elements_of, push_all};
use crate::column_reference::{Element, decode as reference};
use crate::column_vectors::vectors;

/// The cases of a property if nobody says otherwise.
const USUAL_CASES: u64 = 256;

/// More rows than any test has.
const ROWS_MAX: usize = 100_000;

/// The same cases every time; `PROPTEST_RNG_SEED` selects others. `PROPTEST_CASES` changes their number in proportion.
fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x7_1E9A11),
        fixed => fixed,
    };
    let scaled = u64::from(count) * u64::from(default.cases) / USUAL_CASES;
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { u32::try_from(scaled).unwrap() } else { count };
    ProptestConfig { rng_seed, cases, failure_persistence: None, ..default }
}

fn encode(elements: &[Element]) -> Vec<u8> {
    column::encode(&column_of(elements))
}

fn decode(bytes: &[u8], rows_max: usize) -> Result<Vec<Element>, String> {
    column::decode(bytes, rows_max).map(|column| elements_of(&column)).map_err(|error| error.to_string())
}

/// Asserts that two lists of elements are equal, without printing thousands of equal ones.
fn same(left: &[Element], right: &[Element]) -> Result<(), TestCaseError> {
    let differ = left.iter().zip(right).position(|(left, right)| left != right);
    if let Some(row) = differ {
        prop_assert_eq!(&left[row], &right[row], "row {}", row);
    }
    prop_assert_eq!(left.len(), right.len());
    Ok(())
}

/// Asserts that engine and reference agree on `bytes`, and that accepted elements survive another round trip.
fn agreed(bytes: &[u8], rows_max: usize) -> Result<(), TestCaseError> {
    match (decode(bytes, rows_max), reference(bytes, rows_max)) {
        (Ok(engine), Ok(reference)) => {
            same(&engine, &reference)?;
            prop_assert_eq!(column::count(bytes, rows_max), Ok(engine.len()));
            same(&decode(&encode(&engine), ROWS_MAX).unwrap(), &engine)
        }
        (Err(_), Err(_)) => Ok(()),
        (engine, reference) => {
            let (engine, reference) = (engine.map(|rows| rows.len()), reference.map(|rows| rows.len()));
            Err(TestCaseError::fail(format!("engine {engine:?}, reference {reference:?} of {bytes:02x?}")))
        }
    }
}

/// Bytes from which `elements` generates elements.
fn steps(count_max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..6 * count_max)
}

#[test]
fn the_reference_decodes_what_every_vector_says() {
    for vector in vectors() {
        let decoded = reference(&vector.bytes, ROWS_MAX);
        match vector.elements {
            Some(elements) => assert_eq!(decoded.as_ref(), Ok(&elements), "{}", vector.name),
            None => assert!(decoded.is_err(), "{}", vector.name),
        }
    }
}

#[test]
fn the_engine_decodes_what_every_vector_says() {
    for vector in vectors() {
        let decoded = decode(&vector.bytes, ROWS_MAX);
        match vector.elements {
            Some(elements) => {
                assert_eq!(decoded.as_ref(), Ok(&elements), "{}", vector.name);
                assert_eq!(column::count(&vector.bytes, ROWS_MAX), Ok(elements.len()), "{}", vector.name);
            }
            None => assert!(decoded.is_err(), "{}", vector.name),
        }
    }
}

#[test]
fn the_engine_encodes_every_vector_byte_for_byte() {
    for vector in vectors().iter().filter(|vector| !vector.decode_only) {
        let Some(elements) = &vector.elements else { continue };
        assert_eq!(encode(elements), vector.bytes, "{}", vector.name);
        let mut writer = ColumnWriter::new();
        push_all(&mut writer, elements);
        assert_eq!(writer.finish(), vector.bytes, "{}", vector.name);
    }
}

#[test]
fn both_decoders_agree_on_truncated_and_damaged_vectors() {
    for vector in vectors() {
        for length in 0..vector.bytes.len() {
            agreed(&vector.bytes[..length], ROWS_MAX).unwrap();
        }
        for bit in 0..8 * vector.bytes.len() {
            let mut bytes = vector.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            agreed(&bytes, ROWS_MAX).unwrap();
        }
    }
}

#[test]
fn a_column_of_more_rows_than_asked_for_is_refused() {
    for vector in vectors() {
        let Some(rows) = vector.elements.map(|elements| elements.len()).filter(|rows| *rows > 0) else { continue };
        assert!(decode(&vector.bytes, rows).is_ok(), "{}", vector.name);
        assert!(decode(&vector.bytes, rows - 1).is_err(), "{}", vector.name);
        assert!(column::count(&vector.bytes, rows - 1).is_err(), "{}", vector.name);
        assert!(reference(&vector.bytes, rows - 1).is_err(), "{}", vector.name);
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn what_is_encoded_decodes_to_the_same_elements(steps in steps(40)) {
        let rows = elements(&steps, 8_000);
        let bytes = encode(&rows);
        let column = column::decode(&bytes, rows.len()).unwrap();
        same(&elements_of(&column), &rows)?;
        same(&reference(&bytes, rows.len()).unwrap(), &rows)?;
        prop_assert_eq!(column::count(&bytes, rows.len()), Ok(rows.len()));
        prop_assert_eq!(&column::encode(&column), &bytes);
        if let Some(fewer) = rows.len().checked_sub(1) {
            prop_assert!(column::decode(&bytes, fewer).is_err());
            prop_assert!(column::count(&bytes, fewer).is_err());
        }
    }

    #[test]
    fn a_column_written_in_parts_equals_the_one_written_at_once(
        steps in steps(20), cuts in vec(any::<prop::sample::Index>(), 0..6), reopened in any::<prop::sample::Index>(),
    ) {
        let rows = elements(&steps, 5_000);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(rows.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(rows.len());
        let reopened = reopened.index(cuts.len());
        let column = column_of(&rows);
        let mut writer = ColumnWriter::new();
        let mut extended = ColumnWriter::new();
        let mut from = 0;
        for (number, cut) in cuts.into_iter().enumerate() {
            push_all(&mut writer, &rows[from..cut]);
            extended.extend(&column, from..cut);
            from = cut;
            prop_assert_eq!((writer.len(), extended.len()), (cut, cut));
            let bytes = writer.to_bytes();
            prop_assert_eq!(&bytes, &encode(&rows[..cut]));
            prop_assert_eq!(&extended.to_bytes(), &bytes);
            if number == reopened {
                let stored = decode(&bytes, cut).unwrap();
                writer = ColumnWriter::new();
                push_all(&mut writer, &stored);
            }
        }
        let whole = encode(&rows);
        prop_assert_eq!(writer.clone().finish(), whole.clone());
        prop_assert_eq!(writer.finish(), whole.clone());
        prop_assert_eq!(extended.finish(), whole);
    }

    #[test]
    fn runs_of_any_two_lengths_with_holes_survive_the_round_trip(
        first in any::<[u8; 6]>(), second in any::<[u8; 6]>(), holes in 0_usize..200, between in any::<bool>(),
    ) {
        let mut rows = elements(&first, 4_100);
        if between {
            rows.extend(vec![None; holes]);
        } else {
            rows.splice(0..0, vec![None; holes]);
        }
        rows.extend(elements(&second, 4_100));
        let bytes = encode(&rows);
        same(&decode(&bytes, ROWS_MAX).unwrap(), &rows)?;
        same(&reference(&bytes, ROWS_MAX).unwrap(), &rows)?;
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn both_decoders_agree_on_damaged_columns(
        steps in steps(4), edits in vec(any::<u8>(), 4..16), rows_max in select_rows_max(),
    ) {
        agreed(&damaged(&encode(&elements(&steps, 400)), &edits), rows_max)?;
    }

    #[test]
    fn both_decoders_agree_on_columns_that_no_encoder_writes(items in vec(any::<u8>(), 1..88), rows_max in select_rows_max()) {
        agreed(&assembled(&items), rows_max)?;
    }

    #[test]
    fn both_decoders_agree_on_arbitrary_bytes(bytes in vec(any::<u8>(), 0..80), rows_max in select_rows_max()) {
        agreed(&bytes, rows_max)?;
    }
}

fn select_rows_max() -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0_usize..500, 3 => Just(10_000)]
}
