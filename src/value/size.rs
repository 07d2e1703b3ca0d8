//! Sizes by which a bucket counts what is put into it.

use super::raw::Value;

/// Bytes of a field in a document: type byte, name, NUL, value bytes.
pub fn element_size(name_len: usize, value: Value<'_>) -> usize {
    1 + name_len + 1 + value.bytes().len()
}

/// Decimal digits of `n`; 0 for zero.
///
/// The name of a cell in a row column is its row number. The server counts it this way, with nothing for row 0.
pub fn digits(n: usize) -> usize {
    n.checked_ilog10().map_or(0, |log| usize::try_from(log).unwrap_or_default() + 1)
}

#[cfg(test)]
mod tests {
    use super::super::OwnedValue;
    use super::*;

    #[test]
    fn zero_has_no_digits_and_other_numbers_have_theirs() {
        let counted: Vec<_> = [0, 1, 9, 10, 99, 100, 999, 1000].into_iter().map(digits).collect();
        assert_eq!(counted, [0, 1, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn an_element_is_its_type_byte_its_name_with_nul_and_its_value() {
        assert_eq!(element_size("t".len(), OwnedValue::date(0).view()), 1 + 1 + 1 + 8);
        assert_eq!(element_size("name".len(), OwnedValue::string("a").view()), 1 + 4 + 1 + 4 + 2);
        assert_eq!(element_size(0, Value::NULL), 2);
        let doc = bson::rawdoc! { "name": "a" };
        assert_eq!(element_size("name".len(), OwnedValue::string("a").view()), doc.as_bytes().len() - 5);
    }
}
