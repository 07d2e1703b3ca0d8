//! Normalises metadata, so that series can be identified by bytes.

use super::raw::{Kind, OwnedValue, Value};
use super::sort::sort_by;

/// The metadata that `value` becomes: normalised, and null if it is undefined, which no bucket can contain.
pub fn as_metadata(value: Value<'_>) -> OwnedValue {
    if value.kind() == Kind::Undefined { OwnedValue::null() } else { normalize(value) }
}

/// `value` with the fields of every object in it sorted by the bytes of their names.
///
/// Arrays keep their order; objects inside them are normalised too. Everything else stays as it is, and fields of the
/// same name keep their order. Two measurements belong to one series if their results are `==`, which is byte identity:
/// 1 and 1.0 are two series.
pub fn normalize(value: Value<'_>) -> OwnedValue {
    if is_normalized(value) {
        return value.to_owned();
    }
    let mut tagged = Vec::with_capacity(value.bytes().len() + 1);
    tagged.push(value.kind().byte());
    push_normalized(&mut tagged, value);
    OwnedValue::from_tagged_checked(tagged)
}

/// True if `normalize` would change nothing. Does not allocate.
pub fn is_normalized(value: Value<'_>) -> bool {
    let Some(container) = value.as_container() else { return true };
    let sorted = value.kind() == Kind::Array || container.iter().is_sorted_by_key(|(name, _)| name);
    sorted && container.iter().all(|(_, inner)| is_normalized(inner))
}

fn push_normalized(out: &mut Vec<u8>, value: Value<'_>) {
    let Some(container) = value.as_container() else {
        out.extend_from_slice(value.bytes());
        return;
    };
    let mut fields: Vec<_> = container.iter().collect();
    if value.kind() == Kind::Object {
        sort_by(&mut fields, |(a, _), (b, _)| a.cmp(b));
    }
    // Sorting only moves elements, so the length stays the same.
    out.extend_from_slice(container.as_bytes().get(..4).unwrap_or_default());
    for (name, inner) in fields {
        out.push(inner.kind().byte());
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        push_normalized(out, inner);
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::super::samples::{decimal, object, owned};
    use super::super::{DocBuf, DocWriter};
    use super::*;
    use bson::rawdoc;

    #[test]
    fn fields_are_sorted_bytewise_by_name_at_every_depth() {
        let given = object(&rawdoc! { "b": 1, "a": { "z": 1, "": 2, "Z": 3 }, "é": 4, "ab": 5 });
        let wanted = object(&rawdoc! { "a": { "": 2, "Z": 3, "z": 1 }, "ab": 5, "b": 1, "é": 4 });
        assert!(!is_normalized(given.view()));
        assert_eq!(normalize(given.view()), wanted);
        assert!(is_normalized(wanted.view()));
        assert_eq!(normalize(wanted.view()), wanted);
    }

    #[test]
    fn arrays_keep_their_order_and_their_objects_are_sorted() {
        let given = object(&rawdoc! { "a": [3, { "y": 1, "x": [{ "b": 1, "a": 2 }] }, 1] });
        let wanted = object(&rawdoc! { "a": [3, { "x": [{ "a": 2, "b": 1 }], "y": 1 }, 1] });
        assert!(!is_normalized(given.view()));
        assert_eq!(normalize(given.view()), wanted);
    }

    #[test]
    fn an_array_of_more_than_ten_elements_is_not_sorted_by_its_names() {
        let given = owned(bson::rawbson!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
        assert!(is_normalized(given.view()));
        assert_eq!(normalize(given.view()), given);
    }

    #[test]
    fn scalars_stay_as_they_are_and_binary_identity_tells_number_types_apart() {
        let ones = [OwnedValue::int32(1), OwnedValue::int64(1), OwnedValue::double(1.0), decimal("1")];
        for (i, a) in ones.iter().enumerate() {
            for (j, b) in ones.iter().enumerate() {
                assert_eq!(normalize(a.view()) == normalize(b.view()), i == j);
            }
        }
        assert_ne!(normalize(OwnedValue::double(0.0).view()), normalize(OwnedValue::double(-0.0).view()));
    }

    #[test]
    fn fields_of_the_same_name_keep_their_order() {
        let doc = |fields: &mut dyn Iterator<Item = (&'static str, i32)>| {
            let mut writer = DocWriter::new();
            fields.for_each(|(name, n)| {
                writer.int32(name, n);
            });
            OwnedValue::doc(writer.finish().view())
        };
        // Enough fields for an unstable sort to show.
        let given = doc(&mut (0..100).map(|n| (["b", "a", "c"][n as usize % 3], n)));
        let of = |name, first| (first..100).step_by(3).map(move |n| (name, n));
        let wanted = doc(&mut of("a", 1).chain(of("b", 0)).chain(of("c", 2)));
        assert_eq!(normalize(given.view()), wanted);
    }

    #[test]
    fn the_scope_of_code_is_not_touched() {
        let code = bson::rawdoc! { "c": bson::RawJavaScriptCodeWithScope { code: "f".into(), scope: rawdoc! { "b": 1, "a": 2 } } };
        let doc = DocBuf::parse(code.into_bytes()).unwrap();
        let value = doc.view().get("c").unwrap();
        assert!(is_normalized(value));
        assert_eq!(normalize(value).view(), value);
    }
}
