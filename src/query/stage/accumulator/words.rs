//! Values as words that compare as they do, as far as a word can tell.

use crate::query::sort::{key_of_double, key_of_int};
use crate::value::{Kind, Number, Value, canonical_class};

/// How many bits of a word are left behind the class of its value.
const PAYLOAD_BITS: u32 = 56;

/// A word for a value: smaller than the word of another one only if the value sorts first. Values with equal words may
/// differ. Strings count only if their bytes compare.
pub fn word_of(value: Value<'_>, bytes_compare: bool) -> u64 {
    let payload = match value.kind() {
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            return word_of_double(Number::of(value).map_or(f64::NAN, Number::near_double));
        }
        Kind::Date => return word_of_date(value.as_date_ms().unwrap_or_default()),
        Kind::String | Kind::Symbol if bytes_compare => return word_of_text(value.text_bytes()),
        Kind::ObjectId => leading(value.bytes()),
        Kind::Bool => u64::from(value.is_true()),
        _ => 0,
    };
    class(value.kind()) | payload
}

/// The word of a string whose bytes compare.
pub(super) fn word_of_text(text: &[u8]) -> u64 {
    class(Kind::String) | leading(text)
}

/// Appends the words of doubles, all with the bits of `flip` turned around.
pub(super) fn words_of_doubles(cells: &[f64], flip: u64, words: &mut Vec<u64>) {
    words.extend(cells.iter().map(|x| word_of_double(*x) ^ flip));
}

/// The same for integers, which compare with doubles.
pub(super) fn words_of_int32s(cells: &[i32], flip: u64, words: &mut Vec<u64>) {
    words.extend(cells.iter().map(|n| word_of_double(f64::from(*n)) ^ flip));
}

/// The same for dates.
pub(super) fn words_of_dates(cells: &[i64], flip: u64, words: &mut Vec<u64>) {
    words.extend(cells.iter().map(|ms| word_of_date(*ms) ^ flip));
}

#[inline]
fn word_of_double(x: f64) -> u64 {
    class(Kind::Double) | key_of_double(x) >> (u64::BITS - PAYLOAD_BITS)
}

#[inline]
fn word_of_date(ms: i64) -> u64 {
    // Dates that lie further out than a payload reaches share its ends.
    const MAX: i64 = (1 << (PAYLOAD_BITS - 1)) - 1;
    let shifted = key_of_int(ms.clamp(-MAX, MAX)) - key_of_int(-MAX);
    class(Kind::Date) | shifted
}

/// The lowest class is -1, and the highest one is 127, which becomes 128.
fn class(kind: Kind) -> u64 {
    u64::from(canonical_class(kind).wrapping_add(1).cast_unsigned()) << PAYLOAD_BITS
}

fn leading(bytes: &[u8]) -> u64 {
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte));
    (0..7).fold(0, |word, at| word << 8 | byte(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::exec::samples::any_column;
    use crate::value::compare;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_smaller_word_means_a_value_that_sorts_first(
            a in any_column(20), b in any_column(20), numbers in prop::collection::vec((any::<f64>(), any::<i64>()), 2)
        ) {
            let mut values: Vec<_> = [&a, &b]
                .iter()
                .flat_map(|column| (0..20).map(|row| column.value(row, &mut Vec::new()).map(Value::to_owned)))
                .flatten()
                .collect();
            for (x, n) in numbers {
                values.extend([x, x * 1e-300, n as f64].map(crate::value::OwnedValue::double));
                values.extend([n, n >> 20, n >> 40].map(crate::value::OwnedValue::int64));
                values.extend([n, n >> 20, n >> 40].map(crate::value::OwnedValue::date));
            }
            values.extend([Kind::MinKey, Kind::MaxKey].map(|kind| Value::new_checked(kind, &[]).to_owned()));
            for a in &values {
                for b in &values {
                    let words = word_of(a.view(), true).cmp(&word_of(b.view(), true));
                    prop_assert!(words.is_eq() || words == compare(a.view(), b.view()), "{:?} {:?}", a, b);
                }
            }
        }
    }
}
