//! Columns of decimals that have one exponent, as columns of integers.

use super::kinds::DECIMAL;

/// The bits of the upper word of a decimal: its sign, and the upper bits of its coefficient.
const SIGN: u64 = 1 << 63;
const COEFFICIENT: u64 = (1 << 49) - 1;
/// The place of the exponent in it, and what is added to it.
const EXPONENT_AT: u32 = 49;
const BIAS: i32 = 6176;
const EXPONENT_MAX: i32 = 6111;

/// A type byte and two words.
const CELL_LEN: usize = 17;

/// The coefficients of decimals and the exponent that all of them have. Values are a type byte and the bytes of the value; a missing one has no bytes, and gets a 0.
/// `None` if there are other values, other exponents, coefficients of more than 63 bits, negative zeros, or none at all.
#[inline(never)]
pub fn coefficients(offsets: &[u32], bytes: &[u8]) -> Option<(Vec<i64>, i32)> {
    let ends = offsets.get(1..)?;
    let mut coefficients = Vec::with_capacity(ends.len());
    let (mut head, mut others) = (None, 0);
    for (start, end) in offsets.iter().zip(ends) {
        let cell = bytes.get(*start as usize..*end as usize)?;
        let Some(cell) = cell.first_chunk::<CELL_LEN>() else {
            if cell.is_empty() {
                coefficients.push(0);
                continue;
            }
            return None;
        };
        let (low, high) = words(cell);
        let known = *head.get_or_insert(high & !SIGN);
        let is_negative = high >> 63;
        others |= u64::from(cell[0] ^ DECIMAL) | (high & !SIGN ^ known) | low >> 63 | is_negative & u64::from(low == 0);
        // Of the first cell, it shows whether there may be a result at all.
        if others != 0 {
            return None;
        }
        let low = low.cast_signed();
        coefficients.push(if is_negative == 1 { -low } else { low });
    }
    let head = head.filter(|head| head & COEFFICIENT == 0 && head >> 61 != 0b11)?;
    Some((coefficients, (head >> EXPONENT_AT) as i32 - BIAS))
}

#[inline(always)]
fn words(cell: &[u8; CELL_LEN]) -> (u64, u64) {
    let word = |at: usize| cell.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word));
    (word(1), word(9))
}

/// Decimals of these coefficients and this exponent, each behind its type byte, back to back. `None` if decimals have no such exponent.
#[inline(never)]
pub fn cells(coefficients: &[i64], exponent: i32) -> Option<Vec<u8>> {
    if !(-BIAS..=EXPONENT_MAX).contains(&exponent) {
        return None;
    }
    let head = u64::from((exponent + BIAS).cast_unsigned()) << EXPONENT_AT;
    let mut out = Vec::with_capacity(coefficients.len() * CELL_LEN);
    for n in coefficients {
        let sign = if *n < 0 { SIGN } else { 0 };
        let mut cell = [DECIMAL; CELL_LEN];
        cell[1..9].copy_from_slice(&n.unsigned_abs().to_le_bytes());
        cell[9..].copy_from_slice(&(head | sign).to_le_bytes());
        out.extend_from_slice(&cell);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(coefficient: u128, exponent: i32, is_negative: bool) -> Vec<u8> {
        let bits = coefficient | u128::from((exponent + BIAS) as u32) << 113 | u128::from(is_negative) << 127;
        [&[DECIMAL][..], &bits.to_le_bytes()].concat()
    }

    fn found(cells: &[Vec<u8>]) -> Option<(Vec<i64>, i32)> {
        let mut offsets = vec![0];
        cells.iter().for_each(|cell| offsets.push(offsets.last().unwrap() + cell.len() as u32));
        coefficients(&offsets, &cells.concat())
    }

    #[test]
    fn decimals_of_one_exponent_are_integers_and_these_are_the_decimals() {
        let max = i64::MAX as u128;
        for exponent in [-6176, -2, 0, 6111] {
            let given = [cell(0, exponent, false), cell(7, exponent, true), vec![], cell(max, exponent, false)];
            let numbers = vec![0, -7, 0, i64::MAX];
            assert_eq!(found(&given), Some((numbers.clone(), exponent)));
            let given = [&given[..2], &[cell(0, exponent, false)], &given[3..]].concat();
            assert_eq!(cells(&numbers, exponent), Some(given.concat()));
        }
    }

    #[test]
    fn other_columns_have_no_coefficients() {
        let one = cell(1, -2, false);
        let mut nan = cell(0, 0, false);
        nan[16] = 0x7C;
        let mut long = cell(5, 0, false);
        long[16] = 0x60;
        let double = [&[1][..], &[0; 8]].concat();
        // Other exponents, a negative zero, long coefficients, NaN, another form, another type of the same and of another length.
        let mut other = one.clone();
        other[0] = 5;
        for wrong in [
            cell(1, -1, false),
            cell(0, -2, true),
            cell(1 << 63, -2, false),
            cell(1 << 64, -2, false),
            nan,
            long,
            double,
            other,
        ] {
            assert_eq!(found(&[one.clone(), wrong.clone()]), None);
            assert_eq!(found(std::slice::from_ref(&wrong)).is_some(), wrong == cell(1, -1, false));
        }
        assert_eq!((cells(&[1], -6177), cells(&[1], 6112)), (None, None));
        assert_eq!((found(&[]), found(&[vec![], vec![]])), (None, None));
    }
}
