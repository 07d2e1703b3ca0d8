//! `$median` and `$percentile`.

use std::ops::Range;

use super::model::{Accumulator, Inputs, Settings, Times, each_number, list_is_full, show_array, show_double};
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::expr::quantile;
use crate::value::{OwnedValue, Value, sort_by};

/// The numbers of groups, from which percentiles are computed.
pub(super) struct Percentiles {
    /// From 0 to 1; empty for `$median`.
    wanted: Vec<f64>,
    /// True to interpolate between two numbers.
    is_continuous: bool,
    groups: Vec<Vec<f64>>,
    size_bytes: usize,
}

impl Percentiles {
    pub fn new(settings: &Settings) -> Percentiles {
        let Settings { percentiles, is_continuous, .. } = settings.clone();
        Percentiles { wanted: percentiles, is_continuous, groups: Vec::new(), size_bytes: 0 }
    }

    /// The percentile at `share`.
    fn at(&self, numbers: &[f64], share: f64) -> Option<f64> {
        quantile(numbers.len(), &|place| at_place(numbers, place), share, self.is_continuous)
    }
}

/// Fewer numbers are simply sorted.
const SORTED_MAX: usize = 32;

/// The number at a place of these numbers when they are in order, that of `f64::total_cmp`.
///
/// From the highest byte on, only the numbers are kept that have the same byte as the one at the place.
fn at_place(numbers: &[f64], mut place: usize) -> Option<f64> {
    // As unsigned integers they have the same order.
    let turn = |bits: u64| bits ^ (bits.cast_signed() >> 63).cast_unsigned() >> 1;
    let mut keys: Vec<u64> = numbers.iter().map(|x| turn(x.to_bits()) ^ 1 << 63).collect();
    let mut shift = u64::BITS;
    while keys.len() > SORTED_MAX && shift > 0 {
        shift -= 8;
        let byte = |key: u64| usize::from((key >> shift) as u8);
        let mut counts = [0_usize; 256];
        for key in &keys {
            if let Some(count) = counts.get_mut(byte(*key)) {
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
        keys.retain(|key| byte(*key) == wanted);
    }
    if shift > 0 {
        sort_by(&mut keys, Ord::cmp);
    }
    keys.get(place).map(|key| f64::from_bits(turn(key ^ 1 << 63)))
}

impl Percentiles {
    fn check_size(&self) -> Result<()> {
        if self.size_bytes > STAGE_SIZE_BYTES_MAX { Err(list_is_full()) } else { Ok(()) }
    }
}

impl Accumulator for Percentiles {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(numbers) = self.groups.get_mut(group) else { return Ok(()) };
        self.size_bytes += 8 * rows.len();
        each_number(&inputs.cells, rows, &mut |_, x| numbers.extend(Some(x).filter(|x| !x.is_nan())));
        self.check_size()
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        self.size_bytes += 8 * rows.len();
        let start = rows.start;
        each_number(&inputs.cells, rows, &mut |row, x| {
            let numbers = groups.get(row - start).and_then(|group| self.groups.get_mut(*group as usize));
            if let Some(numbers) = numbers.filter(|_| !x.is_nan()) {
                numbers.push(x);
            }
        });
        self.check_size()
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let numbers = self.groups.get(group).map(Vec::as_slice).unwrap_or_default();
        if self.wanted.is_empty() {
            return match self.at(numbers, 0.5) {
                Some(median) => show_double(median, see),
                None => see(Value::NULL),
            };
        }
        let value = |p: &f64| self.at(numbers, *p).map_or_else(OwnedValue::null, OwnedValue::double);
        let found: Vec<OwnedValue> = self.wanted.iter().map(value).collect();
        show_array(&mut found.iter().map(OwnedValue::view), see);
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                let found = at_place(&numbers, place).map(f64::to_bits);
                prop_assert_eq!(found, sorted.get(place).copied().map(f64::to_bits));
            }
        }
    }

    #[test]
    fn equal_numbers_are_found_at_all_their_places() {
        let numbers = [-7.5; 1000];
        assert_eq!([0, 999, 1000].map(|place| at_place(&numbers, place)), [Some(-7.5), Some(-7.5), None]);
    }
}
