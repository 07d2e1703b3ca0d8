//! Values as words that compare as they do, as far as a word can tell.

use crate::query::sort::{key_of_double, key_of_int};
use crate::value::{Kind, Number, Value, canonical_class};

/// How many bits of a word are left behind the class of its value.
const PAYLOAD_BITS: u32 = 56;

/// A word for a value: smaller than the word of another one only if the value sorts first. Values with equal words may
/// differ. Strings count only if their bytes compare.
pub(super) fn word_of(value: Value<'_>, bytes_compare: bool) -> u64 {
    let payload = match value.kind() {
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            return word_of_double(Number::of(value).map_or(f64::NAN, Number::near_double));
        }
        Kind::Date => return word_of_date(value.as_date_ms().unwrap_or_default()),
        Kind::String | Kind::Symbol if bytes_compare => value.as_text().map_or(0, |text| leading(text.as_bytes())),
        Kind::ObjectId => leading(value.bytes()),
        Kind::Bool => u64::from(value.is_true()),
        _ => 0,
    };
    class(value.kind()) | payload
}

/// The word of a double.
pub(super) fn word_of_double(x: f64) -> u64 {
    class(Kind::Double) | key_of_double(x) >> (u64::BITS - PAYLOAD_BITS)
}

/// The word of a date.
pub(super) fn word_of_date(ms: i64) -> u64 {
    // Dates that lie further out than a payload reaches share its ends.
    const MAX: i64 = (1 << (PAYLOAD_BITS - 1)) - 1;
    let shifted = key_of_int(ms.clamp(-MAX, MAX)) - key_of_int(-MAX);
    class(Kind::Date) | shifted
}

/// The lowest class is -1.
fn class(kind: Kind) -> u64 {
    u64::from((canonical_class(kind) + 1).cast_unsigned()) << PAYLOAD_BITS
}

fn leading(bytes: &[u8]) -> u64 {
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte));
    (0..7).fold(0, |word, at| word << 8 | byte(at))
}
