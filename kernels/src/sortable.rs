//! Doubles as words that sort as they do, and numbers at a place of an order.

/// The word of a double, never 0: 1 for NaN, and equal ones for both zeros.
#[inline(always)]
pub(crate) fn of_double(x: f64) -> u64 {
    // The sum turns -0.0 into 0.0.
    let bits = (x + 0.0).to_bits();
    let word = if x < 0.0 { !bits } else { bits | 1 << 63 };
    if x.is_nan() { 1 } else { word }
}

/// The word of a double, never 0: 1 for NaN, and equal ones for both zeros.
#[inline(never)]
pub fn double(x: f64) -> u64 {
    of_double(x)
}

/// Appends the words of doubles.
#[inline(never)]
pub fn push_doubles(words: &mut Vec<u64>, cells: &[f64]) {
    words.extend(cells.iter().map(|x| of_double(*x)));
}

/// The places of the words that are at most `most`.
#[inline(never)]
pub fn up_to(words: &[u64], most: u64) -> Vec<u32> {
    words.iter().zip(0..).filter(|(word, _)| **word <= most).map(|(_, place)| place).collect()
}

/// Of fewer words, the one at a place is found by counting those that are less.
const FEW: usize = 32;

/// The number at a place of these numbers when they are in order, that of `f64::total_cmp`; `None` if there are not so many.
///
/// From the highest byte on, only the numbers are kept that have the same byte as the one at the place.
#[inline(never)]
pub fn nth(numbers: &[f64], mut place: usize) -> Option<f64> {
    // As unsigned integers they have the same order.
    let turn = |bits: u64| bits ^ (bits.cast_signed() >> 63).cast_unsigned() >> 1;
    let mut words: Vec<u64> = numbers.iter().map(|x| turn(x.to_bits()) ^ 1 << 63).collect();
    let mut shift = u64::BITS;
    while words.len() > FEW && shift > 0 {
        shift -= 8;
        let byte = |word: u64| usize::from((word >> shift) as u8);
        let mut counts = [0_usize; 256];
        for word in &words {
            if let Some(count) = counts.get_mut(byte(*word)) {
                *count += 1;
            }
        }
        let mut wanted = 0;
        for count in counts {
            if count > place {
                break;
            }
            place -= count;
            wanted += 1;
        }
        words.retain(|word| byte(*word) == wanted);
    }
    let is_at_place = |word: &&u64| {
        let count = |passes: &dyn Fn(&u64) -> bool| words.iter().filter(|other| passes(other)).count();
        (count(&|other| other < *word)..count(&|other| other <= *word)).contains(&place)
    };
    words.iter().find(is_at_place).map(|word| f64::from_bits(turn(word ^ 1 << 63)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_have_the_order_of_doubles(
            doubles in proptest::collection::vec(prop_oneof![any::<f64>(), Just(-0.0), Just(f64::NAN), (-2..3).prop_map(f64::from)], 2),
        ) {
            let mut words = Vec::new();
            push_doubles(&mut words, &doubles);
            let by_nan = || doubles[1].is_nan().cmp(&doubles[0].is_nan());
            prop_assert_eq!(words[0].cmp(&words[1]), doubles[0].partial_cmp(&doubles[1]).unwrap_or_else(by_nan));
            prop_assert!(words.iter().all(|word| *word > 0));
        }

        #[test]
        fn words_up_to_the_greatest_keep_their_order(words in proptest::collection::vec(prop_oneof![9 => 50..99_u64, 1 => 0..9_u64], 0..300), most in 0..60_u64) {
            let expected: Vec<u32> = (0..words.len() as u32).filter(|at| words[*at as usize] <= most).collect();
            prop_assert_eq!(up_to(&words, most), expected);
        }
    }

    proptest! {
        #[test]
        fn the_number_at_a_place_is_that_of_the_sorted_numbers(
            few in proptest::collection::vec(prop_oneof![Just(0.0), Just(-0.0), -3.0..3.0_f64, any::<f64>()], 0..100),
            times in 1..4_usize,
        ) {
            let numbers = few.repeat(times);
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            for place in 0..sorted.len() + 2 {
                let found = nth(&numbers, place).map(f64::to_bits);
                prop_assert_eq!(found, sorted.get(place).copied().map(f64::to_bits));
            }
        }
    }

    #[test]
    fn equal_numbers_are_found_at_all_their_places() {
        let numbers = [-7.5; 1000];
        assert_eq!([0, 999, 1000].map(|place| nth(&numbers, place)), [Some(-7.5), Some(-7.5), None]);
    }
}
