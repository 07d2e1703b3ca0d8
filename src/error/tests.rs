//! The codes and what is made of them.

use super::*;

#[test]
fn codes_are_sorted_and_unique() {
    for codes in ErrorCode::all() {
        assert!(codes.windows(2).all(|w| (w[0] as i32) < (w[1] as i32)));
    }
    let [named, numbered] = ErrorCode::all();
    assert!(named.iter().all(|code| !numbered.iter().any(|other| *other as i32 == *code as i32)));
}

#[test]
fn codes_without_a_name_are_named_by_their_number() {
    let [named, numbered] = ErrorCode::all();
    assert!(named.iter().all(|code| !code.name().starts_with("Location")));
    for code in numbered {
        assert_eq!(format!("{code:?}"), code.name());
    }
}
