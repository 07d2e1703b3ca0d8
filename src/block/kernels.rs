//! Tight loops over the cells of typed columns. They visit every slot; the caller takes presence into account.

use super::bitmap::Bitmap;
use super::column::VarData;

/// The cells from `low` to `high`, both included. A NaN is never among them.
#[inline]
pub fn between<T: Copy + PartialOrd>(cells: &[T], low: T, high: T) -> Bitmap {
    // `&` instead of `&&`: a branch per cell would keep the compiler from vectorising the loop.
    Bitmap::from_slice(cells, |cell| (low <= *cell) & (*cell <= high))
}

/// The int64s from `low` to `high`, both included; `low` is not above `high`.
pub fn between_int64s(cells: &[i64], low: i64, high: i64) -> Bitmap {
    debug_assert!(low <= high);
    // One comparison instead of two: values below `low` wrap around to far above the span.
    let span = high.wrapping_sub(low).cast_unsigned();
    Bitmap::from_slice(cells, |cell| cell.wrapping_sub(low).cast_unsigned() <= span)
}

/// The cells that are NaN.
pub fn nans(cells: &[f64]) -> Bitmap {
    Bitmap::from_slice(cells, |cell| cell.is_nan())
}

/// The cells that equal one of `wanted`, which must be in ascending order.
pub fn among<T: Copy + PartialOrd>(cells: &[T], wanted: &[T]) -> Bitmap {
    /// Up to this many constants, comparing with each is faster than searching.
    const LINEAR_MAX: usize = 8;
    match wanted {
        [] => Bitmap::filled(cells.len(), false),
        [one] => between(cells, *one, *one),
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

/// The rows whose dictionary entry is among `hits`.
pub fn entries(index: &[u32], hits: &Bitmap) -> Bitmap {
    Bitmap::from_slice(index, |entry| hits.get(*entry as usize))
}
