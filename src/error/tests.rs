//! The codes and what is made of them.

use super::*;

#[test]
fn codes_are_sorted_and_unique() {
    for codes in ErrorCode::all() {
        assert!(codes.windows(2).all(|w| (w[0] as i32) < (w[1] as i32)));
    }
    let all: Vec<i32> = ErrorCode::all().concat().into_iter().map(|code| code as i32).collect();
    assert!(all.iter().enumerate().all(|(at, code)| !all[..at].contains(code)));
}

#[test]
fn bare_locations_are_named_by_their_number() {
    let (named, numbered) = ErrorCode::all().split_first().unwrap();
    assert!(named.iter().all(|code| !code.name().starts_with("Location")));
    for code in numbered.concat() {
        assert_eq!(format!("{code:?}"), code.name());
    }
}
