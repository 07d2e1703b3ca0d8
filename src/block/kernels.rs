//! Which cells of typed columns a test holds for. All slots are visited; the caller takes presence into account.

use kernels::compare;
use kernels::texts::{self, Texts};

use super::bitmap::Bitmap;
use super::column::VarData;

/// A type whose columns have a loop for ranges.
pub trait Ranged: Copy + PartialOrd {
    /// The cells from `low` to `high`, both included, as words of a bitmap.
    fn words_between(cells: &[Self], low: Self, high: Self) -> Vec<u64>;
}

impl Ranged for f64 {
    fn words_between(cells: &[f64], low: f64, high: f64) -> Vec<u64> {
        compare::doubles_between(cells, low, high)
    }
}

impl Ranged for i32 {
    fn words_between(cells: &[i32], low: i32, high: i32) -> Vec<u64> {
        compare::int32s_between(cells, low, high)
    }
}

impl Ranged for i64 {
    fn words_between(cells: &[i64], low: i64, high: i64) -> Vec<u64> {
        compare::int64s_between(cells, low, high)
    }
}

/// The cells from `low` to `high`, both included. A NaN is never among them.
pub fn between<T: Ranged>(cells: &[T], low: T, high: T) -> Bitmap {
    Bitmap::from_words(T::words_between(cells, low, high), cells.len())
}

/// The cells that are NaN.
pub fn nans(cells: &[f64]) -> Bitmap {
    Bitmap::from_words(compare::nans(cells), cells.len())
}

/// The cells that equal one of `wanted`, which must be in ascending order.
pub fn among<T: Copy + PartialOrd>(cells: &[T], wanted: &[T]) -> Bitmap {
    /// Up to this many constants, comparing with each is faster than searching.
    const LINEAR_MAX: usize = 8;
    match wanted {
        [] => Bitmap::filled(cells.len(), false),
        few if few.len() <= LINEAR_MAX => {
            Bitmap::from_slice(cells, |cell| few.iter().fold(false, |hit, w| hit | (w == cell)))
        }
        many => Bitmap::from_slice(cells, |cell| {
            let at = many.partition_point(|w| w < cell);
            many.get(at) == Some(cell)
        }),
    }
}

/// The cells of varying length for which `f` holds.
pub fn texts(cells: &VarData, mut f: impl FnMut(&[u8]) -> bool) -> Bitmap {
    Bitmap::from_fn(cells.len(), |row| f(cells.get(row)))
}

/// The texts that equal `wanted`.
pub fn equal_texts(cells: &VarData, wanted: &[u8]) -> Bitmap {
    let texts = Texts { offsets: &cells.offsets, bytes: &cells.bytes };
    Bitmap::from_words(texts::equal(texts, wanted), cells.len())
}

/// The rows whose dictionary entry is among `hits`.
pub fn entries(index: &[u32], hits: &Bitmap) -> Bitmap {
    Bitmap::from_slice(index, |entry| hits.get(*entry as usize))
}
