//! What paths reach in BSON objects.

use super::elements::element;
use super::kinds::{ARRAY, BOOL, DATE, DOUBLE, INT32, INT64, NULL, OBJECT};

/// Bytes of a word.
const WORD: usize = 8;

/// What a path of names reaches in each value: its type byte, 0 if it is missing, and its bytes as a word, filled up with zeros. Values are a type byte and the bytes
/// of the value, back to back; a missing one has no bytes. `None` if the path leads into an array, or to a value that has other than at most eight bytes of a fixed number.
#[inline(never)]
pub fn words(offsets: &[u32], bytes: &[u8], path: &[&[u8]]) -> Option<(Vec<u8>, Vec<u64>)> {
    let ends = offsets.get(1..).unwrap_or_default();
    let (mut kinds, mut words) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
    for (start, end) in offsets.iter().zip(ends) {
        let tagged = bytes.get(*start as usize..*end as usize).unwrap_or_default();
        let (mut kind, mut value) = tagged.split_first().map_or((0, &[][..]), |(kind, value)| (*kind, value));
        for name in path {
            (kind, value) = match kind {
                OBJECT => field(value, name),
                ARRAY => return None,
                _ => (0, &[][..]),
            };
        }
        let word = match kind {
            DOUBLE | DATE | INT64 => *value.first_chunk::<WORD>()?,
            INT32 => u64::from(u32::from_le_bytes(*value.first_chunk()?)).to_le_bytes(),
            BOOL => u64::from(*value.first()?).to_le_bytes(),
            0 | NULL => [0; WORD],
            _ => return None,
        };
        kinds.push(kind);
        words.push(u64::from_le_bytes(word));
    }
    Some((kinds, words))
}

/// The type byte and the bytes of the first field with that name; 0 and none if there is none.
#[inline(always)]
fn field<'a>(object: &'a [u8], name: &[u8]) -> (u8, &'a [u8]) {
    let mut rest = object.get(4..).unwrap_or_default();
    while let Some((name_end, end)) = element(rest) {
        if rest.get(1..name_end) == Some(name) {
            let kind = rest.first().copied().unwrap_or_default();
            return (kind, rest.get(name_end + 1..end).unwrap_or_default());
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    (0, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elements::push_named;

    fn object(fields: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut out = vec![0; 4];
        fields.iter().for_each(|(name, kind, value)| push_named(&mut out, *kind, name.as_bytes(), value));
        out.push(0);
        let len = out.len() as u32;
        out[..4].copy_from_slice(&len.to_le_bytes());
        out
    }

    /// The words in these values, each with its type byte.
    fn found(values: &[(u8, Vec<u8>)], path: &str) -> Option<Vec<(u8, u64)>> {
        let (mut offsets, mut bytes) = (vec![0], Vec::new());
        for (kind, value) in values {
            if *kind > 0 {
                bytes.push(*kind);
                bytes.extend_from_slice(value);
            }
            offsets.push(bytes.len() as u32);
        }
        let path: Vec<&[u8]> = path.split('.').map(str::as_bytes).collect();
        words(&offsets, &bytes, &path).map(|(kinds, words)| kinds.into_iter().zip(words).collect())
    }

    #[test]
    fn fields_are_found_by_their_first_name_and_missing_where_there_is_none() {
        let (one, two) = (1.5_f64.to_le_bytes(), (-2_i32).to_le_bytes());
        let inner = object(&[("z", 16, &two), ("y", 10, &[])]);
        let values = [
            (3, object(&[("x", 1, &one), ("y", 3, &inner), ("b", 8, &[1])])),
            (3, object(&[("text", 2, b"\x02\0\0\0x\0"), ("x", 16, &two), ("x", 1, &one)])),
            (0, vec![]),
            (1, one.to_vec()),
            (3, object(&[])),
        ];
        let (double, int) = ((1, 1.5_f64.to_bits()), (16, u64::from((-2_i32).cast_unsigned())));
        let none = (0, 0);
        assert_eq!(found(&values, "x"), Some(vec![double, int, none, none, none]));
        assert_eq!(found(&values, "y.z"), Some(vec![int, none, none, none, none]));
        assert_eq!(found(&values, "y.y"), Some(vec![(10, 0), none, none, none, none]));
        assert_eq!(found(&values, "b"), Some(vec![(8, 1), none, none, none, none]));
        assert_eq!(found(&values, "x.z"), Some(vec![none; 5]));
        // A text, an object and what is in an array are no words.
        assert_eq!((found(&values, "text"), found(&values, "y")), (None, None));
        assert_eq!(found(&[(4, object(&[("0", 1, &one)]))], "0"), None);
        assert_eq!(found(&[(3, object(&[("x", 4, &object(&[]))]))], "x.y"), None);
    }
}
