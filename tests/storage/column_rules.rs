//! Rules of BSON columns that the output of encoders does not show, one column each. Engine and reference must both follow them.

use timepail::column;

use crate::column_cases::elements_of;
use crate::column_reference::Element;

const ROWS_MAX: usize = 1 << 20;

/// Words with one slot of 60 bits: raw values 0, 1 (a delta of -1) and 2 (of 1), and a missing element.
const ZERO: u64 = 0x0E;
const MINUS_ONE: u64 = 0x1E;
const ONE: u64 = 0x2E;
const SKIP: u64 = !0x0F | 0x0E;
/// A run of 120 elements.
const RUN: u64 = 0x0F;

/// An element with this value.
fn element(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind], value].concat()
}

fn int32(value: i32) -> Vec<u8> {
    element(0x10, &value.to_le_bytes())
}

fn double(value: f64) -> Vec<u8> {
    element(0x01, &value.to_le_bytes())
}

fn date(value: i64) -> Vec<u8> {
    element(0x09, &value.to_le_bytes())
}

fn string(text: &[u8]) -> Vec<u8> {
    element(0x02, &[&(text.len() as i32 + 1).to_le_bytes()[..], text, &[0]].concat())
}

fn binary(subtype: u8, bytes: &[u8]) -> Vec<u8> {
    element(0x05, &[&(bytes.len() as i32).to_le_bytes()[..], &[subtype], bytes].concat())
}

fn document(kind: u8, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let fields = fields.iter().map(|(name, field)| [&field[..1], name.as_bytes(), &[0], &field[1..]].concat());
    let body = fields.collect::<Vec<_>>().concat();
    element(kind, &[&(body.len() as i32 + 5).to_le_bytes()[..], &body, &[0]].concat())
}

fn object(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    document(0x03, fields)
}

fn literal(element: &[u8]) -> Vec<u8> {
    [&element[..1], &[0], &element[1..]].concat()
}

/// Words without a scale.
fn words(words: &[u64]) -> Vec<u8> {
    scaled(0x80, words)
}

fn scaled(nibble: u8, words: &[u64]) -> Vec<u8> {
    let head = vec![nibble | (words.len() as u8 - 1)];
    words.iter().fold(head, |bytes, word| [bytes, word.to_le_bytes().to_vec()].concat())
}

/// A section: start byte, reference, items, end.
fn section(start: u8, reference: &[u8], items: &[Vec<u8>]) -> Vec<u8> {
    [&[start], &reference[1..], &items.concat(), &[0]].concat()
}

fn decoded(items: &[Vec<u8>]) -> Result<Vec<Element>, String> {
    let bytes = [items.concat(), vec![0]].concat();
    let reference = crate::column_reference::decode(&bytes, ROWS_MAX);
    let engine = column::decode(&bytes, ROWS_MAX).map(|column| elements_of(&column)).map_err(|error| error.to_string());
    match (&engine, &reference) {
        (Ok(engine), Ok(reference)) => assert!(engine == reference, "{engine:?} is not {reference:?}"),
        (Err(_), Err(_)) => {}
        _ => {
            let [engine, reference] = [&engine, &reference].map(|rows| rows.as_ref().map(Vec::len));
            panic!("engine {engine:?}, reference {reference:?}")
        }
    }
    engine
}

#[track_caller]
fn accepted(items: &[Vec<u8>], expected: &[Element]) {
    assert_eq!(decoded(items).unwrap(), expected);
}

#[track_caller]
fn refused(items: &[Vec<u8>]) {
    decoded(items).unwrap_err();
}

#[test]
fn numbers_before_any_literal_are_missing_elements_and_have_no_scale() {
    accepted(&[words(&[ZERO, ONE, SKIP])], &[None, None, None]);
    accepted(&[words(&[RUN])], &vec![None; 120]);
    refused(&[scaled(0x90, &[SKIP])]);
    refused(&[words(&[0x00])]);
    refused(&[words(&[0xE8])]);
    refused(&[words(&[0xA7])]);
}

#[test]
fn after_a_section_only_its_last_object_can_be_repeated() {
    let one = object(&[("a", int32(1))]);
    let whole = section(0xF1, &one, &[words(&[ZERO])]);
    accepted(&[whole.clone(), words(&[ZERO, SKIP])], &[Some(one.clone()), Some(one.clone()), None]);
    accepted(&[whole.clone(), words(&[RUN])], &vec![Some(one.clone()); 121]);
    refused(&[whole.clone(), words(&[ONE])]);
    refused(&[whole, scaled(0x90, &[ZERO])]);
    // The section ended with a missing element: there is nothing to repeat, so every slot is missing.
    let missing = section(0xF1, &one, &[words(&[ZERO, SKIP])]);
    accepted(&[missing.clone(), words(&[ZERO, ONE])], &[Some(one), None, None, None]);
    refused(&[missing, scaled(0x90, &[ZERO])]);
}

#[test]
fn a_run_repeats_the_last_slot_across_controls_but_not_across_literals() {
    let counted = |from: i32, to: i32| (from..=to).map(|n| Some(int32(n))).collect::<Vec<_>>();
    accepted(&[literal(&int32(1)), words(&[ONE]), words(&[RUN])], &counted(1, 122));
    let again = [literal(&int32(1)), words(&[ONE]), literal(&int32(7)), words(&[RUN])];
    let expected = [counted(1, 2), vec![Some(int32(7)); 121]].concat();
    accepted(&again, &expected);
    accepted(&[literal(&int32(1)), words(&[ONE, SKIP, RUN])], &[counted(1, 2), vec![None; 121]].concat());
    // A run repeats the raw slot: in another scale it is another delta.
    let rescaled = [literal(&double(1.0)), scaled(0x90, &[ONE]), scaled(0xA0, &[RUN])];
    let list = decoded(&rescaled).unwrap();
    assert_eq!(list[1..3], [Some(double(2.0)), Some(double(2.1))]);
    assert_eq!(list[121], Some(double(14.0)));
}

#[test]
fn zeros_and_missing_elements_keep_the_delta_of_dates() {
    let items =
        [literal(&date(10)), words(&[ZERO, ONE, SKIP, ZERO, MINUS_ONE, ZERO]), literal(&date(5)), words(&[ZERO])];
    let expected = [10, 10, 11, -1, 12, 12, 12, 5, 5].map(|ms| (ms >= 0).then(|| date(ms)));
    accepted(&items, &expected);
}

// A regression: the rest of a run was taken for repetitions as soon as the delta became zero.
#[test]
fn a_run_continues_when_the_delta_of_dates_becomes_zero() {
    let timestamp = |n: i64| element(0x11, &n.to_le_bytes());
    let parabola = |start: i64, slope: i64| {
        let mut list = vec![start, start + slope];
        (1..=121).for_each(|i| list.push(list[list.len() - 1] + slope + i));
        list
    };
    // Raw values 3 and 2 are deltas of -2 and 1: the first element of the run makes the delta zero.
    let items = |first: Vec<u8>| [literal(&first), words(&[0x3E, ONE, RUN])];
    let expected: Vec<_> = parabola(9_000, -2).into_iter().map(|n| Some(timestamp(n))).collect();
    accepted(&items(timestamp(9_000)), &expected);
    let expected: Vec<_> = parabola(9_000, -2).into_iter().map(|ms| Some(date(ms))).collect();
    accepted(&items(date(9_000)), &expected);
    let mixed: Vec<_> = [Some(int32(1))].into_iter().chain(expected).collect();
    accepted(&[&[literal(&int32(1))], &items(date(9_000))[..]].concat(), &mixed);
}

#[test]
fn the_last_double_must_have_an_integer_in_the_scale_of_every_control() {
    accepted(&[literal(&double(0.5)), scaled(0xA0, &[ONE])], &[0.5, 0.6].map(|x| Some(double(x))));
    accepted(
        &[literal(&double(0.5)), scaled(0xA0, &[ONE]), scaled(0xD0, &[ZERO])],
        &[0.5, 0.6, 0.6].map(|x| Some(double(x))),
    );
    refused(&[literal(&double(0.5)), scaled(0x90, &[ZERO])]);
    refused(&[literal(&double(0.5)), scaled(0xA0, &[ONE]), scaled(0x90, &[SKIP])]);
    refused(&[literal(&double(-0.0)), scaled(0x90, &[ZERO])]);
    refused(&[literal(&double(f64::NAN)), scaled(0xD0, &[ZERO])]);
    refused(&[literal(&double(2_f64.powi(54))), scaled(0x90, &[ZERO])]);
}

#[test]
fn a_boolean_is_a_sum_of_deltas_and_true_unless_zero() {
    let [no, yes] = [0, 1].map(|flag| Some(element(0x08, &[flag])));
    let items = [literal(&element(0x08, &[1])), words(&[ONE, MINUS_ONE, MINUS_ONE, ZERO, MINUS_ONE])];
    accepted(&items, &[yes.clone(), yes.clone(), yes.clone(), no.clone(), no, yes]);
    refused(&[literal(&element(0x08, &[2]))]);
}

#[test]
fn integers_wrap_within_their_width() {
    accepted(&[literal(&int32(i32::MAX)), words(&[ONE])], &[Some(int32(i32::MAX)), Some(int32(i32::MIN))]);
    let largest = element(0x13, &[0xFF; 16]);
    accepted(&[literal(&largest), words(&[ONE])], &[Some(largest), Some(element(0x13, &[0; 16]))]);
}

#[test]
fn shifts_of_an_extended_slot_wrap_at_64_bits_but_not_at_128() {
    // Selector 8, extension 13: a value of 2 with a count of 16 is shifted by 64.
    let word = 8 | 13 << 4 | (2 << 5 | 16) << 8;
    accepted(&[literal(&int32(1)), words(&[word])], &[Some(int32(1)), Some(int32(2))]);
    let decimal = |n: u128| Some(element(0x13, &n.to_le_bytes()));
    let zero = decimal(0).unwrap();
    accepted(&[literal(&zero), words(&[word])], &[decimal(0), decimal(1 << 64)]);
}

#[test]
fn strings_are_decoded_from_integers_and_must_be_utf8() {
    accepted(&[literal(&string(b"a")), words(&[ONE])], &[Some(string(b"a")), Some(string(b"b"))]);
    accepted(&[literal(&string(b"\x01")), words(&[MINUS_ONE])], &[Some(string(b"\x01")), Some(string(b""))]);
    // Longer than sixteen bytes, or with a leading NUL: deltas are relative to zero.
    let long = string(&[b'x'; 17]);
    accepted(&[literal(&long), words(&[ZERO, ONE])], &[Some(long.clone()), Some(long), Some(string(b"\x01"))]);
    refused(&[literal(&string(b"\x7F")), words(&[ONE])]);
    refused(&[literal(&string(b"\xFF"))]);
    refused(&[literal(&string(b"")), words(&[MINUS_ONE])]);
}

#[test]
fn a_binary_keeps_length_and_subtype_and_repeats_only_where_it_is_long() {
    accepted(&[literal(&binary(5, &[255])), words(&[ONE])], &[Some(binary(5, &[255])), Some(binary(5, &[0]))]);
    let long = binary(0, &[1; 17]);
    accepted(&[literal(&long), words(&[ZERO])], &[Some(long.clone()), Some(long.clone())]);
    refused(&[literal(&long), words(&[ONE])]);
    refused(&[literal(&binary(0, b"x")), scaled(0x90, &[ZERO])]);
}

#[test]
fn types_without_deltas_can_only_repeat() {
    for kind in [0x06, 0x0A, 0x7F, 0xFF] {
        let value = element(kind, &[]);
        accepted(&[literal(&value), words(&[ZERO])], &[Some(value.clone()), Some(value.clone())]);
        refused(&[literal(&value), words(&[ONE])]);
        refused(&[literal(&value), scaled(0x90, &[ZERO])]);
    }
    let one = object(&[("a", int32(1))]);
    accepted(&[literal(&one), words(&[ZERO])], &[Some(one.clone()), Some(one.clone())]);
    refused(&[literal(&one), words(&[ONE])]);
}

#[test]
fn the_shape_of_an_object_is_that_of_the_reference_without_what_is_missing() {
    let empty = object(&[]);
    let reference =
        object(&[("a", object(&[("x", int32(1)), ("e", empty.clone())])), ("b", object(&[("y", int32(2))]))]);
    let nothing = object(&[("a", object(&[("e", empty.clone())]))]);
    let items = [words(&[ZERO, SKIP]), words(&[ONE, SKIP])];
    let first = object(&[("a", object(&[("x", int32(1)), ("e", empty)])), ("b", object(&[("y", int32(3))]))]);
    accepted(&[section(0xF1, &reference, &items)], &[Some(first), Some(nothing)]);
    // The reference has no empty object, so the second one is missing.
    let plain = object(&[("a", object(&[("x", int32(1))])), ("y", int32(2))]);
    let first = object(&[("a", object(&[("x", int32(1))])), ("y", int32(3))]);
    accepted(&[section(0xF1, &plain, &items)], &[Some(first), None]);
}

#[test]
fn a_field_has_the_type_of_its_value_and_not_of_the_reference() {
    let reference = object(&[("a", int32(1))]);
    let inner = object(&[("z", int32(9))]);
    let items = [literal(&double(0.5)), scaled(0xA0, &[ONE]), literal(&inner), words(&[ZERO])];
    let expected = [double(0.5), double(0.6), inner.clone(), inner].map(|value| Some(object(&[("a", value)])));
    accepted(&[section(0xF1, &reference, &items)], &expected);
}

#[test]
fn arrays_are_split_into_streams_except_in_legacy_sections() {
    let array = document(0x04, &[("0", int32(1)), ("1", int32(2))]);
    let reference = object(&[("a", array.clone())]);
    let last = document(0x04, &[("1", int32(3))]);
    accepted(&[section(0xF1, &reference, &[words(&[SKIP]), words(&[ONE])])], &[Some(object(&[("a", last.clone())]))]);
    accepted(&[section(0xF2, &array, &[words(&[SKIP]), words(&[ONE])])], &[Some(last)]);
    accepted(&[section(0xF0, &reference, &[words(&[ZERO])])], &[Some(reference.clone())]);
    refused(&[section(0xF0, &reference, &[words(&[ONE])])]);
    // An empty array is a scalar as well.
    let empty = object(&[("a", document(0x04, &[]))]);
    accepted(&[section(0xF0, &empty, &[words(&[ZERO])])], &[Some(empty.clone())]);
    refused(&[section(0xF1, &empty, &[words(&[ZERO])])]);
}

#[test]
fn all_streams_of_a_section_end_together() {
    let two = object(&[("a", int32(1)), ("b", int32(2))]);
    accepted(&[section(0xF1, &two, &[words(&[ZERO]), words(&[ZERO])])], &[Some(two.clone())]);
    refused(&[section(0xF1, &two, &[])]);
    refused(&[section(0xF1, &two, &[words(&[ZERO])])]);
    refused(&[section(0xF1, &two, &[words(&[ZERO, ZERO]), words(&[ZERO])])]);
    refused(&[section(0xF1, &two, &[words(&[ZERO]), words(&[ZERO, ZERO])])]);
    refused(&[section(0xF1, &two, &[section(0xF1, &two, &[words(&[ZERO])])])]);
    refused(&[section(0xF1, &two, &[scaled(0x90, &[ZERO]), words(&[ZERO])])]);
}

#[test]
fn unknown_types_and_element_names_are_refused() {
    for first in (0x14..=0x7E).chain([0xE0, 0xEF, 0xF3, 0xFE]) {
        refused(&[vec![first, 0, 0, 0, 0, 0, 0, 0, 0]]);
    }
    refused(&[vec![0x0A, b'a', 0]]);
    refused(&[vec![0]]);
    assert!(column::decode(&[], ROWS_MAX).is_err());
    assert!(crate::column_reference::decode(&[], ROWS_MAX).is_err());
}

#[test]
fn an_object_that_is_nested_too_deeply_by_its_fields_is_refused() {
    let nested = |depth: usize, inside: Vec<u8>| (0..depth).fold(inside, |value, _| object(&[("a", value)]));
    let reference = nested(100, int32(1));
    let value = |depth| literal(&nested(depth, int32(1)));
    assert!(decoded(&[section(0xF1, &reference, &[value(70)])]).is_ok());
    refused(&[section(0xF1, &reference, &[value(100)])]);
}

#[test]
fn decoded_objects_have_a_size_limit() {
    let text = string(&[b'x'; 8192]);
    let runs = words(&[0xFF; 16]);
    let counted = object(&[("text", text.clone()), ("n", int32(1))]);
    // Sixteen runs of 1920 objects of 8 KiB, each different from the previous one: a quarter of a GiB.
    refused(&[section(0xF1, &counted, &[runs.clone(), words(&[ONE; 1]), words(&[0xFF; 16])])]);
    // Equal objects share their bytes.
    let same = [section(0xF1, &object(&[("text", text)]), std::slice::from_ref(&runs)), vec![0]].concat();
    assert_eq!(column::decode(&same, ROWS_MAX).unwrap().len(), 16 * 1920);
    let bytes = [literal(&string(&[b'x'; 8192])), words(&[0xFF; 16]), vec![0]].concat();
    assert_eq!(column::count(&bytes, ROWS_MAX), Ok(1 + 16 * 1920));
    assert!(column::decode(&bytes, 16 * 1920).is_err());
    assert_eq!(column::decode(&bytes, ROWS_MAX).unwrap().len(), 1 + 16 * 1920);
}
