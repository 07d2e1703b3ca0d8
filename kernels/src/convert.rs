//! Cells as cells of another type.

/// Integers as the bits of doubles: each becomes the double nearest to it, divided by `divisor`.
#[inline(never)]
pub fn quotients(rows: &mut [i64], divisor: f64) {
    /// 1.5 × 2^52: added to a smaller integer, its last digit is worth 1. No instruction converts two integers of 64 bits at once.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    /// Integers nearer to zero than this.
    const NEAR: i64 = 1 << 51;
    let far = rows.iter().fold(0, |far, n| far | (n ^ n >> 63));
    if far < NEAR {
        for row in rows {
            let sum = f64::from_bits(MAGIC.to_bits().wrapping_add(row.cast_unsigned()));
            *row = ((sum - MAGIC) / divisor).to_bits().cast_signed();
        }
    } else {
        for row in rows {
            #[allow(clippy::cast_precision_loss)]
            let double = *row as f64;
            *row = (double / divisor).to_bits().cast_signed();
        }
    }
}

/// The low halves.
#[inline(never)]
pub fn int32s(rows: &[i64]) -> Vec<i32> {
    rows.iter().map(|row| *row as i32).collect()
}

/// 0 for 0, 1 for anything else.
#[inline(never)]
pub fn bools(rows: &[i64]) -> Vec<u8> {
    rows.iter().map(|row| u8::from(*row != 0)).collect()
}

/// The cells as doubles, which hold every int32.
#[inline(never)]
pub fn doubles_of_int32s(cells: &[i32]) -> Vec<f64> {
    cells.iter().map(|n| f64::from(*n)).collect()
}

/// The cells as doubles, rounded to the nearest beyond 2^53.
#[inline(never)]
pub fn doubles_of_int64s(cells: &[i64]) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    cells.iter().map(|n| *n as f64).collect()
}

/// The cells as int64s.
#[inline(never)]
pub fn int64s_of_int32s(cells: &[i32]) -> Vec<i64> {
    cells.iter().map(|n| i64::from(*n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_become_the_nearest_doubles_divided(rows in proptest::collection::vec(any::<i64>(), 0..40), shift in 0..64_u32, divisor in prop_oneof![Just(1.0), Just(10.0), Just(1e8)]) {
            let rows: Vec<i64> = rows.iter().map(|n| n >> shift).collect();
            let mut found = rows.clone();
            quotients(&mut found, divisor);
            let found: Vec<f64> = found.iter().map(|n| f64::from_bits(n.cast_unsigned())).collect();
            prop_assert_eq!(found, rows.iter().map(|n| *n as f64 / divisor).collect::<Vec<_>>());
            prop_assert_eq!(doubles_of_int64s(&rows), rows.iter().map(|n| *n as f64).collect::<Vec<_>>());
        }

        #[test]
        fn narrow_types_are_cut_and_widened_as_one_by_one(rows in proptest::collection::vec(any::<i64>(), 0..40), shift in 0..64_u32) {
            let rows: Vec<i64> = rows.iter().map(|n| n >> shift).collect();
            let narrow = int32s(&rows);
            prop_assert_eq!(&narrow, &rows.iter().map(|n| *n as i32).collect::<Vec<_>>());
            prop_assert_eq!(bools(&rows), rows.iter().map(|n| u8::from(*n != 0)).collect::<Vec<_>>());
            prop_assert_eq!(doubles_of_int32s(&narrow), narrow.iter().map(|n| f64::from(*n)).collect::<Vec<_>>());
            prop_assert_eq!(int64s_of_int32s(&narrow), narrow.iter().map(|n| i64::from(*n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn integers_at_the_edge_of_the_short_way_are_exact() {
        for n in [0, 1, -1, (1 << 51) - 1, -(1 << 51), 1 << 51, -(1 << 51) - 1, 1 << 53, i64::MAX, i64::MIN] {
            let mut rows = [n; 3];
            quotients(&mut rows, 1.0);
            assert_eq!(rows.map(|bits| f64::from_bits(bits.cast_unsigned())), [n as f64; 3]);
        }
    }
}
