use proptest::prelude::*;

use super::samples::{any_column, cell, column_of, owned, without_case};
use super::{Coder, MissingAs, NOTHING};
use crate::block::{Column, ColumnData};
use crate::value::{Collation, OwnedValue, Value};

fn numbers(coder: &mut Coder, column: &Column) -> Vec<u32> {
    coder.numbers(column, 0..column.len()).into_each(column.len())
}

fn coder(missing: MissingAs) -> Coder {
    Coder::new(Collation::default(), missing)
}

#[test]
fn numbers_that_compare_equal_have_one_number_whatever_their_type() {
    let mut coder = coder(MissingAs::Null);
    let doubles = Column::new(ColumnData::F64(vec![1.0, 0.0, -0.0, f64::NAN, 1.0]), None);
    assert_eq!(numbers(&mut coder, &Column::new(ColumnData::I32(vec![1, 2, 2]), None)), [0, 1, 1]);
    assert!(!coder.has_aliases());
    assert_eq!(numbers(&mut coder, &doubles), [0, 2, 2, 3, 0]);
    assert!(coder.has_aliases());
    assert_eq!(numbers(&mut coder, &Column::new(ColumnData::I64(vec![2, 0, 1]), None)), [1, 2, 0]);
    let decimal = owned("2.00".parse::<bson::Decimal128>().unwrap());
    assert_eq!(numbers(&mut coder, &column_of(&[Some(decimal), Some(OwnedValue::date(1))])), [1, 4]);
    // The first form of each value is kept.
    let first: Vec<_> = coder.into_values();
    assert_eq!(first[..3], [OwnedValue::int32(1), OwnedValue::int32(2), OwnedValue::double(0.0)]);
}

#[test]
fn values_in_one_form_have_no_aliases() {
    let mut coder = coder(MissingAs::Undefined);
    for _ in 0..2 {
        for column in [
            Column::new(ColumnData::F64(vec![1.0, f64::NAN]), None),
            Column::new(ColumnData::Bool(vec![0, 1]), None),
            Column::new(ColumnData::ObjectId(vec![[1; 12], [2; 12]]), None),
            column_of(&[Some(OwnedValue::string("a")), None, Some(OwnedValue::string("a\0"))]),
            column_of(&[Some(OwnedValue::null()), Some(owned(bson::rawdoc! { "a": 1 }))]),
        ] {
            numbers(&mut coder, &column);
        }
    }
    assert_eq!((coder.has_aliases(), coder.count()), (false, 11));
    numbers(&mut coder, &column_of(&[Some(Value::UNDEFINED.to_owned())]));
    assert_eq!((coder.has_aliases(), coder.count()), (true, 11));
}

#[test]
fn a_missing_value_counts_as_null_or_as_itself_or_as_nothing() {
    let column = column_of(&[Some(OwnedValue::null()), None, Some(OwnedValue::int32(7)), None]);
    assert_eq!(numbers(&mut coder(MissingAs::Null), &column), [0, 0, 1, 0]);
    assert_eq!(numbers(&mut coder(MissingAs::Undefined), &column), [0, 1, 2, 1]);
    let mut coder = coder(MissingAs::Nothing);
    assert_eq!(numbers(&mut coder, &column), [0, NOTHING, 1, NOTHING]);
    assert_eq!(coder.count(), 2);
}

#[test]
fn null_and_missing_cells_among_those_of_one_type_are_numbered_where_they_come_first() {
    let x = |x: f64| Some(OwnedValue::double(x));
    let null = || Some(OwnedValue::null());
    let column = column_of(&[x(1.0), null(), x(2.0), None, x(1.0), null(), None, x(3.0)]);
    let more = column_of(&[None, x(4.0), null(), x(1.0)]);
    let mut apart = coder(MissingAs::Undefined);
    assert_eq!(numbers(&mut apart, &column), [0, 1, 2, 3, 0, 1, 3, 4]);
    assert_eq!(numbers(&mut apart, &more), [3, 5, 1, 0]);
    let mut together = coder(MissingAs::Null);
    assert_eq!(numbers(&mut together, &column), [0, 1, 2, 1, 0, 1, 1, 3]);
    assert_eq!(numbers(&mut together, &more), [1, 4, 1, 0]);
    assert_eq!(together.numbers(&column, 2..7), super::Numbers::Each(vec![2, 1, 0, 1, 1]));
    assert_eq!(numbers(&mut coder(MissingAs::Null), &column_of(&[null(), null()])), [0, 0]);
}

#[test]
fn strings_that_a_collation_takes_for_equal_have_one_number() {
    let text = |text: &str| Some(OwnedValue::string(text));
    let column = column_of(&[text("b"), text("a"), text("B"), text("A"), text("a"), text("c")]);
    let mut coder = Coder::new(without_case(), MissingAs::Null);
    assert_eq!(numbers(&mut coder, &column), [0, 1, 0, 1, 1, 2]);
    let entries = column_of(&[text("C"), text("A"), text("b")]);
    let dictionary = Column::new(ColumnData::Dictionary(vec![1, 2, 0, 1], Box::new(entries)), None);
    assert_eq!(numbers(&mut coder, &dictionary), [1, 0, 2, 1]);
    assert!(coder.has_aliases());
}

#[test]
fn values_of_one_type_get_keys_when_one_of_another_type_comes() {
    let text = |n: u32| OwnedValue::string(&format!("text{n}"));
    let texts = |range: std::ops::Range<u32>| column_of(&range.map(|n| Some(text(n))).collect::<Vec<_>>());
    let others = column_of(&[Some(OwnedValue::string("a\0")), Some(OwnedValue::int32(7)), Some(text(9)), None]);
    let mut coder = coder(MissingAs::Undefined);
    assert_eq!(numbers(&mut coder, &texts(0..300)), (0..300).collect::<Vec<u32>>());
    assert_eq!((coder.count(), coder.key_lens(&[0, 10])), (300, 5 + 3 + 6 + 3));
    assert_eq!(numbers(&mut coder, &others), [300, 301, 9, 302]);
    assert_eq!(numbers(&mut coder, &texts(290..305)), (290..300).chain(303..308).collect::<Vec<u32>>());
    assert!(!coder.has_aliases());
    let large = Column::new(ColumnData::I64(vec![1, 1 << 60, 1]), None);
    let mut coder = Coder::new(Collation::default(), MissingAs::Null);
    assert_eq!(numbers(&mut coder, &large), [0, 1, 0]);
    assert_eq!(numbers(&mut coder, &Column::new(ColumnData::F64(vec![1.0, -0.0, 0.0, 2.5]), None)), [0, 2, 2, 3]);
    assert_eq!(coder.into_values().len(), 4);
}

#[test]
fn ids_and_binary_data_are_numbered_by_their_bytes_and_not_taken_for_texts() {
    let id = |n: u8| OwnedValue::object_id([n; 12]);
    let text = |n: u8| OwnedValue::string(&char::from(n).to_string().repeat(12));
    let data = |n: u8| owned(bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![n; 16] });
    for kinds in [[id, text, data], [text, data, id], [data, id, text]] {
        let mut coder = coder(MissingAs::Null);
        let column =
            |make: fn(u8) -> OwnedValue| column_of(&(0..90).map(|n| Some(make(n % 30 + 1))).collect::<Vec<_>>());
        let all = |from: u32| (0..90).map(|n| from + n % 30).collect::<Vec<u32>>();
        assert_eq!(numbers(&mut coder, &column(kinds[0])), all(0));
        let key = |value: OwnedValue| {
            let mut key = Vec::new();
            crate::value::append_key(&mut key, value.view());
            key.len()
        };
        assert_eq!(coder.key_lens(&[2, 7]), key(kinds[0](3)) + key(kinds[0](8)));
        for _ in 0..2 {
            let found = [1, 0, 2].map(|at| numbers(&mut coder, &column(kinds[at])));
            assert_eq!(found, [30, 0, 60].map(all));
        }
        assert_eq!((coder.has_aliases(), coder.count()), (false, 90));
        assert_eq!(coder.into_values()[30..60], (1..31).map(kinds[1]).collect::<Vec<_>>()[..]);
    }
}

#[test]
fn an_entry_of_a_dictionary_that_no_row_has_gets_no_number() {
    let entries = column_of(&[0, 1, 2, 1].map(|n| Some(OwnedValue::int32(n))));
    for index in [vec![3, 1, 3, 0], vec![3, 1]] {
        let column = Column::new(ColumnData::Dictionary(index.clone(), Box::new(entries.clone())), None);
        let mut coder = coder(MissingAs::Null);
        assert_eq!(numbers(&mut coder, &column), [0, 0, 0, 1][..index.len()]);
        assert_eq!(coder.count(), if index.len() > 2 { 2 } else { 1 });
    }
}

/// A scalar of few different values.
fn scalar() -> impl Strategy<Value = Vec<Option<OwnedValue>>> {
    let few = prop_oneof![
        Just([Some(OwnedValue::int32(1)), Some(OwnedValue::int32(2)), None]),
        Just([Some(OwnedValue::string("a")), Some(OwnedValue::string("b")), Some(OwnedValue::null())]),
        Just([Some(OwnedValue::int32(1)), Some(OwnedValue::double(1.0)), Some(Value::UNDEFINED.to_owned())]),
        Just([Some(OwnedValue::double(0.5)), Some(OwnedValue::string("a")), None]),
    ];
    (few, prop::collection::vec(0..3_usize, 100))
        .prop_map(|(few, rows)| rows.iter().map(|row| few[*row].clone()).collect())
}

proptest! {
    #[test]
    fn objects_have_the_numbers_of_the_same_values(fields in prop::collection::vec(scalar(), 1..4), from in 0..50_usize, is_collated in any::<bool>()) {
        let names = ["x", "y", "z"];
        let fields = names.iter().zip(&fields).map(|(name, values)| (*name, column_of(values))).collect();
        // One of the fields must always be there.
        let Some(objects) = Column::of_fields(fields) else { return Ok(()) };
        let collation = if is_collated { without_case() } else { Collation::default() };
        let [mut by_scalars, mut by_values] = [0; 2].map(|_| Coder::new(collation.clone(), MissingAs::Undefined));
        for rows in [from..100, 0..100] {
            let expected = by_values.numbers(&objects.clone().into_values(), rows.clone()).into_each(rows.len());
            prop_assert_eq!(by_scalars.numbers(&objects, rows.clone()).into_each(rows.len()), expected);
        }
        prop_assert_eq!(by_scalars.has_aliases(), by_values.has_aliases());
        prop_assert_eq!(by_scalars.into_values(), by_values.into_values());
    }

    #[test]
    fn numbers_are_those_of_a_list_of_all_values_seen(
        columns in prop::collection::vec(any_column(50), 1..6), cuts in (0..50_usize, 0..50_usize),
        is_collated in any::<bool>(),
    ) {
        let collation = if is_collated { without_case() } else { Collation::default() };
        for missing in [MissingAs::Null, MissingAs::Undefined, MissingAs::Nothing] {
            let mut coder = Coder::new(collation.clone(), missing);
            let mut known: Vec<OwnedValue> = Vec::new();
            for column in &columns {
                let rows = cuts.0.min(cuts.1)..50;
                let found = coder.numbers(column, rows.clone()).into_each(rows.len());
                for (row, number) in rows.zip(found) {
                    let value = match (cell(column, row), missing) {
                        (Some(value), _) => value,
                        (None, MissingAs::Null) => OwnedValue::null(),
                        (None, MissingAs::Undefined) => Value::UNDEFINED.to_owned(),
                        (None, MissingAs::Nothing) => {
                            prop_assert_eq!(number, NOTHING);
                            continue;
                        }
                    };
                    let at = known.iter().position(|known| collation.equal(known.view(), value.view()));
                    prop_assert_eq!(number as usize, at.unwrap_or(known.len()), "{:?}", value);
                    if at.is_none() {
                        known.push(value.clone());
                    }
                    let differs = known[number as usize] != value;
                    prop_assert!(!differs || coder.has_aliases());
                }
            }
            prop_assert_eq!(coder.count(), known.len());
            prop_assert_eq!(coder.into_values(), known);
        }
    }
}
