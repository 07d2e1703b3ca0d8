//! `$stdDevPop` and `$stdDevSamp`; of pairs `$covariancePop` and `$covarianceSamp`.

use std::ops::Range;

use super::{Accumulator, each_cell, number};
use crate::block::Column;
use crate::error::Result;
use crate::value::OwnedValue;

/// Standard deviations of groups, or covariances, by Welford's sums. Anything but a number, or a pair of numbers, counts as nothing.
pub(super) struct Deviations {
    /// True for that of a sample.
    is_sample: bool,
    /// True where values are pairs.
    is_covariance: bool,
    groups: Vec<Moments>,
}

#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    /// The mean of the second of each pair, which of a number is itself.
    other: f64,
    /// Sum of the products of the distances from the means.
    products: f64,
}

impl Deviations {
    pub fn new(is_sample: bool, is_covariance: bool) -> Deviations {
        Deviations { is_sample, is_covariance, groups: Vec::new() }
    }
}

impl Accumulator for Deviations {
    fn grow(&mut self, _: usize) {
        self.groups.push(Moments::default());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let is_covariance = self.is_covariance;
        let Some(moments) = self.groups.get_mut(group) else { return Ok(()) };
        each_cell(cells, rows, &mut |value| {
            let (x, y) = match value.as_array().filter(|_| is_covariance) {
                Some(pair) => {
                    let mut both = pair.iter().map(|(_, value)| number(value));
                    (both.next().transpose()?.flatten(), both.next().transpose()?.flatten())
                }
                None => (number(value)?, number(value)?),
            };
            if let (Some(x), Some(y)) = (x, y) {
                moments.count += 1.0;
                let delta = x - moments.mean;
                moments.mean += delta / moments.count;
                moments.other += (y - moments.other) / moments.count;
                moments.products += delta * (y - moments.other);
            }
            Ok(())
        })
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let from = self.groups.get(from).copied().unwrap_or_default();
        if let Some(moments) = self.groups.get_mut(into).filter(|_| from.count > 0.0) {
            let count = moments.count + from.count;
            let (delta, other) = (from.mean - moments.mean, from.other - moments.other);
            moments.mean += delta * from.count / count;
            moments.other += other * from.count / count;
            moments.products += from.products + delta * other * moments.count * from.count / count;
            moments.count = count;
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        let Moments { count, products, .. } = self.groups.get(group).copied().unwrap_or_default();
        let divisor = if self.is_sample { count - 1.0 } else { count };
        let variance = products / divisor;
        match divisor < 0.5 {
            true => OwnedValue::null(),
            false => OwnedValue::double(if self.is_covariance { variance } else { variance.sqrt() }),
        }
    }
}
