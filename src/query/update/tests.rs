//! Updates of metadata, operator by operator.

use super::{Update, check_query};
use crate::error::{ErrorCode, Result};
use crate::query::filter::Filter;
use crate::query::filter::samples::{globals, owned};
use crate::value::OwnedValue;
use bson::oid::ObjectId;
use bson::{RawBson, RawDocumentBuf, rawbson, rawdoc};

/// The metadata "m" after an update, given the query by which it was found.
fn updated_by(
    query: RawDocumentBuf,
    meta: Option<RawBson>,
    update: impl Into<RawBson>,
    filters: Option<RawBson>,
) -> Result<Option<OwnedValue>> {
    let filters = filters.map(owned);
    let (meta, document) = (meta.map(owned), owned(update));
    let view = meta.as_ref().map(OwnedValue::view);
    let update = Update::parse(document.view(), filters.as_ref().map(OwnedValue::view), "m", &globals())?;
    let query = Filter::parse(owned(query).view().as_doc().unwrap(), &globals())?;
    update.apply(view, &|| query.position(view))
}

fn updated(meta: impl Into<RawBson>, update: RawDocumentBuf) -> Result<Option<OwnedValue>> {
    updated_by(rawdoc! {}, Some(meta.into()), update, None)
}

#[track_caller]
fn becomes(meta: impl Into<RawBson>, update: RawDocumentBuf, expected: impl Into<RawBson>) {
    let found = updated(meta, update.clone());
    assert_eq!(found, Ok(Some(owned(expected))), "{update:?}");
}

#[track_caller]
fn fails(meta: impl Into<RawBson>, update: RawDocumentBuf, code: ErrorCode) {
    assert_eq!(updated(meta, update.clone()).map_err(|error| error.code), Err(code), "{update:?}");
}

#[test]
fn set_replaces_creates_and_goes_into_arrays_by_position() {
    becomes(
        1,
        rawdoc! { "$set": { "m": { "b": 1, "a": [{ "d": 1, "c": 2 }] } } },
        rawdoc! { "a": [{ "c": 2, "d": 1 }], "b": 1 },
    );
    becomes(
        rawdoc! { "a": 1 },
        rawdoc! { "$set": { "m.b.c": "$$x", "m.a": 2 } },
        rawdoc! { "a": 2, "b": { "c": "$$x" } },
    );
    becomes(rawdoc! { "a": [1, 2] }, rawdoc! { "$set": { "m.a.1": 7 } }, rawdoc! { "a": [1, 7] });
    becomes(rawbson!([1]), rawdoc! { "$set": { "m.3": 7 } }, rawbson!([1, null, null, 7]));
    becomes(rawdoc! {}, rawdoc! { "$set": { "m.0.1": 7 } }, rawdoc! { "0": { "1": 7 } });
    let from_nothing = updated_by(rawdoc! {}, None, rawdoc! { "$set": { "m.a": 1 } }, None);
    assert_eq!(from_nothing, Ok(Some(owned(rawdoc! { "a": 1 }))));
    fails(5, rawdoc! { "$set": { "m.a": 1 } }, ErrorCode::PathNotViable);
    fails(rawbson!([1]), rawdoc! { "$set": { "m.a": 1 } }, ErrorCode::PathNotViable);
    fails(rawbson!([1]), rawdoc! { "$set": { "m.9999999": 1 } }, ErrorCode::CannotBackfillArray);
}

#[test]
fn unset_removes_fields_or_all_metadata_and_leaves_null_in_arrays() {
    becomes(rawdoc! { "a": 1, "b": { "c": 1 } }, rawdoc! { "$unset": { "m.a": "", "m.b.c": 1 } }, rawdoc! { "b": {} });
    becomes(rawbson!([1, 2]), rawdoc! { "$unset": { "m.0": "", "m.7": "" } }, rawbson!([null, 2]));
    becomes(5, rawdoc! { "$unset": { "m.a.b": "" } }, 5);
    assert_eq!(updated(5, rawdoc! { "$unset": { "m": "" } }), Ok(None));
    assert_eq!(updated_by(rawdoc! {}, None, rawdoc! { "$unset": { "m.a": "" } }, None), Ok(None));
}

#[test]
fn numbers_keep_the_widest_type_and_do_not_overflow_silently() {
    becomes(1, rawdoc! { "$inc": { "m": 2 } }, 3);
    becomes(i32::MAX, rawdoc! { "$inc": { "m": 1 } }, i64::from(i32::MAX) + 1);
    becomes(1, rawdoc! { "$inc": { "m": 1_i64 } }, 2_i64);
    becomes(1, rawdoc! { "$inc": { "m": 0.5 } }, 1.5);
    becomes(3_i64, rawdoc! { "$mul": { "m": 2 } }, 6_i64);
    becomes(rawdoc! {}, rawdoc! { "$inc": { "m.a": 2.5 } }, rawdoc! { "a": 2.5 });
    becomes(
        rawdoc! {},
        rawdoc! { "$mul": { "m.a": 5_i64, "m.b": 5, "m.c": 1.5 } },
        rawdoc! { "a": 0_i64, "b": 0, "c": 0.0 },
    );
    fails(i64::MAX, rawdoc! { "$inc": { "m": 1 } }, ErrorCode::BadValue);
    fails("x", rawdoc! { "$inc": { "m": 1 } }, ErrorCode::TypeMismatch);
    fails(1, rawdoc! { "$mul": { "m": "x" } }, ErrorCode::TypeMismatch);
}

#[test]
fn extremes_compare_by_the_whole_order() {
    becomes(5, rawdoc! { "$min": { "m": 4 } }, 4);
    becomes(5, rawdoc! { "$min": { "m": 5.0 } }, 5);
    becomes(5, rawdoc! { "$max": { "m": "a" } }, "a");
    becomes(rawdoc! {}, rawdoc! { "$max": { "m.a": 1 }, "$min": { "m.b": 2 } }, rawdoc! { "a": 1, "b": 2 });
}

#[test]
fn bit_operations_apply_in_order_to_a_missing_field_as_zero() {
    becomes(12, rawdoc! { "$bit": { "m": { "and": 10, "or": 1, "xor": 3 } } }, 10);
    becomes(1, rawdoc! { "$bit": { "m": { "or": 4_i64 } } }, 5_i64);
    becomes(rawdoc! {}, rawdoc! { "$bit": { "m.a": { "or": 4 } } }, rawdoc! { "a": 4 });
    for wrong in [rawbson!(1), rawbson!({}), rawbson!({ "nor": 1 }), rawbson!({ "or": 1.0 })] {
        fails(1, rawdoc! { "$bit": { "m": wrong } }, ErrorCode::BadValue);
    }
    fails(1.0, rawdoc! { "$bit": { "m": { "or": 1 } } }, ErrorCode::BadValue);
}

#[test]
fn rename_moves_an_existing_field_only() {
    becomes(rawdoc! { "a": 1, "b": 2 }, rawdoc! { "$rename": { "m.a": "m.b" } }, rawdoc! { "b": 1 });
    becomes(rawdoc! { "a": 1 }, rawdoc! { "$rename": { "m.a": "m.x.y" } }, rawdoc! { "x": { "y": 1 } });
    becomes(rawdoc! { "b": 2 }, rawdoc! { "$rename": { "m.a": "m.b" } }, rawdoc! { "b": 2 });
    becomes(rawdoc! { "b": 2 }, rawdoc! { "$rename": { "m.a": "m.c.d" } }, rawdoc! { "b": 2 });
    fails(rawdoc! { "a": [1] }, rawdoc! { "$rename": { "m.a.0": "m.b" } }, ErrorCode::BadValue);
    fails(rawdoc! { "a": 1, "b": [1] }, rawdoc! { "$rename": { "m.a": "m.b.0" } }, ErrorCode::BadValue);
    for (from, to) in [("m.a", "m.a"), ("m.a", "m.a.b"), ("m", "m.a"), ("m.$[].a", "m.b")] {
        let from = bson::raw::CString::try_from(from).unwrap();
        fails(rawdoc! { "a": 1 }, rawdoc! { "$rename": { from: to } }, ErrorCode::BadValue);
    }
    for to in [rawbson!("x"), rawbson!(5), rawbson!("mm.a")] {
        fails(rawdoc! {}, rawdoc! { "$rename": { "m.a": to } }, ErrorCode::InvalidOptions);
    }
}

#[test]
fn push_inserts_then_sorts_then_slices() {
    let push = |modifiers: RawBson| rawdoc! { "$push": { "m": modifiers } };
    becomes(rawbson!([1]), push(rawbson!(2)), rawbson!([1, 2]));
    becomes(rawbson!([1]), push(rawbson!([2, 3])), rawbson!([1, [2, 3]]));
    becomes(rawbson!([1]), push(rawbson!({ "$each": [3, 2] })), rawbson!([1, 3, 2]));
    becomes(rawbson!([1, 2]), push(rawbson!({ "$each": [9], "$position": 1 })), rawbson!([1, 9, 2]));
    becomes(rawbson!([1, 2]), push(rawbson!({ "$each": [9], "$position": -1 })), rawbson!([1, 9, 2]));
    becomes(rawbson!([1, 2]), push(rawbson!({ "$each": [9], "$position": -7 })), rawbson!([9, 1, 2]));
    becomes(rawbson!([5, 1]), push(rawbson!({ "$each": [3], "$sort": 1, "$slice": 2 })), rawbson!([1, 3]));
    becomes(rawbson!([5, 1]), push(rawbson!({ "$each": [3], "$sort": -1, "$slice": -1 })), rawbson!([1]));
    becomes(rawbson!([5, 1]), push(rawbson!({ "$each": [], "$slice": 0 })), rawbson!([]));
    let by_field = rawbson!({ "$each": [{ "x": 1, "y": 3 }], "$sort": { "x": 1, "y": -1 } });
    becomes(
        rawbson!([{ "x": 2 }, { "x": 1, "y": 2 }]),
        push(by_field),
        rawbson!([{ "x": 1, "y": 3 }, { "x": 1, "y": 2 }, { "x": 2 }]),
    );
    becomes(rawdoc! {}, rawdoc! { "$push": { "m.a": 1 } }, rawdoc! { "a": [1] });
    fails(1, push(rawbson!(1)), ErrorCode::BadValue);
    for wrong in [
        rawbson!({ "$each": 1 }),
        rawbson!({ "$each": [], "$slice": "x" }),
        rawbson!({ "$each": [], "$position": 0.5 }),
        rawbson!({ "$each": [], "$sort": 2 }),
        rawbson!({ "$each": [], "$sort": {} }),
        rawbson!({ "$each": [], "other": 1 }),
    ] {
        fails(rawbson!([]), push(wrong), ErrorCode::BadValue);
    }
}

#[test]
fn add_to_set_adds_values_that_are_not_in_the_set() {
    becomes(rawbson!([1]), rawdoc! { "$addToSet": { "m": 1.0 } }, rawbson!([1]));
    becomes(rawbson!([1]), rawdoc! { "$addToSet": { "m": { "$each": [2, 1, 2] } } }, rawbson!([1, 2]));
    becomes(rawdoc! {}, rawdoc! { "$addToSet": { "m.a": { "b": 1 } } }, rawdoc! { "a": [{ "b": 1 }] });
    fails(1, rawdoc! { "$addToSet": { "m": 1 } }, ErrorCode::BadValue);
    fails(rawbson!([]), rawdoc! { "$addToSet": { "m": { "$each": [1], "$slice": 1 } } }, ErrorCode::BadValue);
}

#[test]
fn pop_removes_an_end_and_refuses_other_types_than_arrays() {
    becomes(rawbson!([1, 2, 3]), rawdoc! { "$pop": { "m": 1 } }, rawbson!([1, 2]));
    becomes(rawbson!([1, 2, 3]), rawdoc! { "$pop": { "m": -1.0 } }, rawbson!([2, 3]));
    becomes(rawbson!([]), rawdoc! { "$pop": { "m": 1 } }, rawbson!([]));
    becomes(rawdoc! {}, rawdoc! { "$pop": { "m.a": 1 } }, rawdoc! {});
    fails(1, rawdoc! { "$pop": { "m": 1 } }, ErrorCode::TypeMismatch);
    fails(rawbson!([]), rawdoc! { "$pop": { "m": 2 } }, ErrorCode::FailedToParse);
}

#[test]
fn pull_removes_equal_or_matching_elements() {
    becomes(rawbson!([1, 2, 1.0]), rawdoc! { "$pull": { "m": 1 } }, rawbson!([2]));
    becomes(rawbson!([1, 5, "x"]), rawdoc! { "$pull": { "m": { "$gte": 5 } } }, rawbson!([1, "x"]));
    becomes(rawbson!([1, 5]), rawdoc! { "$pull": { "m": { "$in": [5, 7] } } }, rawbson!([1]));
    becomes(
        rawbson!([{ "a": 1, "b": 2 }, { "a": 2 }, 1]),
        rawdoc! { "$pull": { "m": { "a": 1 } } },
        rawbson!([{ "a": 2 }, 1]),
    );
    becomes(rawbson!([[1], 1]), rawdoc! { "$pull": { "m": [1] } }, rawbson!([1]));
    becomes(rawbson!([1, 2, 3]), rawdoc! { "$pullAll": { "m": [1, 3, 4] } }, rawbson!([2]));
    becomes(rawdoc! {}, rawdoc! { "$pull": { "m.a": 1 }, "$pullAll": { "m.b": [1] } }, rawdoc! {});
    fails(1, rawdoc! { "$pull": { "m": 1 } }, ErrorCode::BadValue);
    fails(rawbson!([]), rawdoc! { "$pullAll": { "m": 1 } }, ErrorCode::BadValue);
}

#[test]
fn current_date_is_that_of_the_command_and_set_on_insert_does_nothing() {
    let now = globals().now_ms();
    becomes(1, rawdoc! { "$currentDate": { "m": true } }, bson::DateTime::from_millis(now));
    becomes(1, rawdoc! { "$currentDate": { "m": { "$type": "date" } } }, bson::DateTime::from_millis(now));
    let seconds = u32::try_from(now / 1000).unwrap();
    let timestamp = bson::Timestamp { time: seconds, increment: 1 };
    becomes(1, rawdoc! { "$currentDate": { "m": { "$type": "timestamp" } } }, timestamp);
    for wrong in [rawbson!(1), rawbson!({ "$type": "x" }), rawbson!({ "$type": "date", "x": 1 })] {
        fails(1, rawdoc! { "$currentDate": { "m": wrong } }, ErrorCode::BadValue);
    }
    becomes(rawdoc! { "a": 1 }, rawdoc! { "$setOnInsert": { "m.b": 1 } }, rawdoc! { "a": 1 });
    becomes(rawdoc! { "a": 1 }, rawdoc! { "$set": {} }, rawdoc! { "a": 1 });
}

#[test]
fn all_elements_or_those_that_an_array_filter_matches_are_changed() {
    becomes(rawdoc! { "a": [1, 2] }, rawdoc! { "$inc": { "m.a.$[]": 1 } }, rawdoc! { "a": [2, 3] });
    becomes(
        rawbson!([{ "a": [1] }, { "a": [2, 3] }]),
        rawdoc! { "$mul": { "m.$[].a.$[]": 2 } },
        rawbson!([{ "a": [2] }, { "a": [4, 6] }]),
    );
    fails(rawdoc! { "a": 1 }, rawdoc! { "$inc": { "m.a.$[]": 1 } }, ErrorCode::BadValue);
    fails(rawdoc! {}, rawdoc! { "$inc": { "m.a.$[]": 1 } }, ErrorCode::BadValue);
    fails(rawdoc! { "a": { "x": 1 } }, rawdoc! { "$set": { "m.a.$[].y": 1 } }, ErrorCode::BadValue);
    let filtered = |meta: RawBson, update: RawDocumentBuf, filters: RawBson| {
        updated_by(rawdoc! {}, Some(meta), update, Some(filters)).map_err(|error| error.code)
    };
    let expected = |value: RawBson| Ok(Some(owned(value)));
    let high = rawbson!([{ "i": { "$gte": 5 } }]);
    assert_eq!(
        filtered(rawbson!([1, 5, 9]), rawdoc! { "$set": { "m.$[i]": 0 } }, high.clone()),
        expected(rawbson!([1, 0, 0]))
    );
    assert_eq!(
        filtered(rawbson!([1, 5]), rawdoc! { "$unset": { "m.$[i]": 0 } }, high.clone()),
        expected(rawbson!([1, null]))
    );
    // The array filter sees an element as it was before the update.
    let both = rawdoc! { "$set": { "m.$[i].x": 0 }, "$inc": { "m.$[i].y": 1 } };
    let of_x = rawbson!([{ "i.x": 1 }]);
    assert_eq!(
        filtered(rawbson!([{ "x": 1, "y": 1 }, { "x": 2, "y": 1 }]), both, of_x),
        expected(rawbson!([{ "x": 0, "y": 2 }, { "x": 2, "y": 1 }]))
    );
    let two = rawdoc! { "$set": { "m.$[i]": 0, "m.$[j]": 1 } };
    let (low, all) = (rawbson!([{ "i": 1 }, { "j": 2 }]), rawbson!([{ "i": 1 }, { "j": { "$gt": 0 } }]));
    assert_eq!(filtered(rawbson!([1, 2]), two.clone(), low), expected(rawbson!([0, 1])));
    assert_eq!(filtered(rawbson!([1, 2]), two, all), Err(ErrorCode::ConflictingUpdateOperators));
    let set = rawdoc! { "$set": { "m.$[i]": 0 } };
    for (filters, code) in [
        (rawbson!([]), ErrorCode::BadValue),
        (rawbson!([{ "i": 1 }, { "j": 1 }]), ErrorCode::FailedToParse),
        (rawbson!([{ "i": 1 }, { "i": 2 }]), ErrorCode::FailedToParse),
        (rawbson!([{ "i": 1, "j": 2 }]), ErrorCode::FailedToParse),
        (rawbson!([{}]), ErrorCode::FailedToParse),
        (rawbson!([{ "I": 1 }]), ErrorCode::BadValue),
        (rawbson!([1]), ErrorCode::TypeMismatch),
        (rawbson!({ "i": 1 }), ErrorCode::TypeMismatch),
    ] {
        assert_eq!(filtered(rawbson!([1]), set.clone(), filters.clone()), Err(code), "{filters:?}");
    }
}

#[test]
fn the_positional_operator_selects_the_element_that_the_query_matched() {
    let found_by = |query: RawDocumentBuf, meta: RawBson, update: RawDocumentBuf| {
        updated_by(query, Some(meta), update, None).map_err(|error| error.code)
    };
    let set = || rawdoc! { "$set": { "m.$": 0 } };
    let expected = |value: RawBson| Ok(Some(owned(value)));
    assert_eq!(found_by(rawdoc! { "m": 2 }, rawbson!([1, 2, 2]), set()), expected(rawbson!([1, 0, 2])));
    assert_eq!(found_by(rawdoc! { "m": { "$in": [2, 3] } }, rawbson!([1, 3]), set()), expected(rawbson!([1, 0])));
    assert_eq!(found_by(rawdoc! { "m.1": 3 }, rawbson!([1, 3]), set()), expected(rawbson!([1, 0])));
    let two = rawdoc! { "m": { "$elemMatch": { "$gt": 1, "$lt": 3 } } };
    assert_eq!(found_by(two, rawbson!([1, 2]), set()), expected(rawbson!([1, 0])));
    let inner = rawdoc! { "$set": { "m.a.$.c": 0 } };
    assert_eq!(
        found_by(rawdoc! { "m.x": 1, "m.a.b": 2 }, rawbson!({ "x": 1, "a": [{ "b": 1 }, { "b": 2, "c": 3 }] }), inner),
        expected(rawbson!({ "a": [{ "b": 1 }, { "b": 2, "c": 0 }], "x": 1 }))
    );
    for (query, meta) in [
        (rawdoc! {}, rawbson!([1])),
        (rawdoc! { "m": 1 }, rawbson!(1)),
        (rawdoc! { "m": { "$exists": true } }, rawbson!([1])),
    ] {
        assert_eq!(found_by(query, meta, set()), Err(ErrorCode::BadValue));
    }
    let twice = rawdoc! { "$set": { "m.$": 0, "m.1": 1 } };
    assert_eq!(found_by(rawdoc! { "m": 2 }, rawbson!([1, 2]), twice), Err(ErrorCode::ConflictingUpdateOperators));
    fails(rawbson!([1]), rawdoc! { "$set": { "m.$.a.$": 1 } }, ErrorCode::BadValue);
}

#[test]
fn operators_on_the_same_or_nested_paths_conflict() {
    for (one, other) in [("m", "m"), ("m", "m.a"), ("m.a.b", "m.a"), ("m.$[]", "m.0"), ("m.a", "m.a")] {
        let [one, other] = [one, other].map(|path| bson::raw::CString::try_from(path).unwrap());
        let update = rawdoc! { "$set": { one: 1 }, "$inc": { other: 1 } };
        fails(rawdoc! {}, update, ErrorCode::ConflictingUpdateOperators);
    }
    fails(
        rawdoc! {},
        rawdoc! { "$rename": { "m.a": "m.b" }, "$set": { "m.b": 1 } },
        ErrorCode::ConflictingUpdateOperators,
    );
}

#[test]
fn updates_of_other_fields_than_metadata_are_refused_first() {
    let refused = |update: RawBson| updated_by(rawdoc! {}, None, update, None).map_err(|error| error.code);
    for update in [
        rawbson!([{ "$set": { "m": 1 } }]),
        rawbson!({}),
        rawbson!({ "m": 1 }),
        rawbson!({ "$set": { "m.a": 1, "x": 1 } }),
        rawbson!({ "$nonsense": { "mm": 1 } }),
        rawbson!({ "$unset": { "t": "" } }),
    ] {
        assert_eq!(refused(update.clone()), Err(ErrorCode::InvalidOptions), "{update:?}");
    }
    for (update, code) in [
        (rawbson!({ "$nonsense": { "m": 1 } }), ErrorCode::FailedToParse),
        (rawbson!({ "$set": 5 }), ErrorCode::FailedToParse),
        (rawbson!({ "$set": { "m": 1 }, "m": 1 }), ErrorCode::FailedToParse),
        (rawbson!(5), ErrorCode::FailedToParse),
        (rawbson!({ "$set": { "m.": 1 } }), ErrorCode::EmptyFieldName),
        (rawbson!({ "$set": { "m.$x": 1 } }), ErrorCode::DollarPrefixedFieldName),
    ] {
        assert_eq!(refused(update.clone()), Err(code), "{update:?}");
    }
}

#[test]
fn an_update_cannot_nest_metadata_too_deeply() {
    let path = ["m".to_owned(), vec!["a"; 170].join(".")].join(".");
    let path = bson::raw::CString::try_from(path).unwrap();
    assert!(updated(rawdoc! {}, rawdoc! { "$set": { path.clone(): 1 } }).is_ok());
    let deep = (0..12).fold(rawbson!(1), |inner, _| rawbson!([inner]));
    fails(rawdoc! {}, rawdoc! { "$set": { path: deep } }, ErrorCode::Overflow);
    let longer = ["m".to_owned(), vec!["a"; 400].join(".")].join(".");
    fails(rawdoc! {}, rawdoc! { "$set": { bson::raw::CString::try_from(longer).unwrap(): 1 } }, ErrorCode::Overflow);
}

#[test]
fn the_query_of_an_update_may_use_only_the_metadata() {
    let checked =
        |query: RawDocumentBuf| check_query(owned(query).view().as_doc().unwrap(), "m").map_err(|error| error.code);
    for query in [
        rawdoc! {},
        rawdoc! { "m": 1, "m.a": { "$gt": 2 } },
        rawdoc! { "$or": [{ "m.a": 1 }, { "$nor": [{ "m": 2 }] }], "$comment": "x" },
        rawdoc! { "m": { "$in": [{ "a": 1 }] } },
        rawdoc! { "$jsonSchema": { "required": ["m"], "properties": { "m": { "bsonType": "string" } } } },
    ] {
        assert_eq!(checked(query.clone()), Ok(()), "{query:?}");
    }
    for query in [
        rawdoc! { "x": 1 },
        rawdoc! { "mm": 1 },
        rawdoc! { "_id": ObjectId::from_bytes([1; 12]) },
        rawdoc! { "$and": [{ "m": 1 }, { "$or": [{ "t": 1 }] }] },
        rawdoc! { "$expr": true },
        rawdoc! { "$nor": [{ "$where": "1" }] },
        rawdoc! { "$jsonSchema": { "required": ["m.a"] } },
        rawdoc! { "$jsonSchema": { "properties": { "x": {} } } },
        rawdoc! { "$jsonSchema": { "minProperties": 1 } },
    ] {
        assert_eq!(checked(query.clone()), Err(ErrorCode::InvalidOptions), "{query:?}");
    }
}
