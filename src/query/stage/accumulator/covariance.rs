//! `$covariancePop` and `$covarianceSamp`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/window_function/window_function_covariance.cpp.

use std::ops::Range;

use super::model::{Accumulator, Inputs, Times, each_cell};
use crate::error::Result;
use crate::value::decimal::{minus, over, plus, result, times};
use crate::value::{Number, OwnedValue, Value};

const ZERO: Number = Number::Integer(0);

/// Covariances of groups by Welford's method; as decimals if one of the numbers is a decimal. Values other than pairs
/// of numbers do not count.
pub(super) struct Covariances {
    /// True for `$covarianceSamp`.
    is_sample: bool,
    groups: Vec<JointMoments>,
}

#[derive(Clone, Copy)]
struct JointMoments {
    count: i64,
    /// The means of the first and the second of each pair.
    means: [Number; 2],
    /// Sum of the products of deviations from the means.
    products: Number,
}

impl Covariances {
    pub fn new(is_sample: bool) -> Covariances {
        Covariances { is_sample, groups: Vec::new() }
    }
}

impl Accumulator for Covariances {
    fn grow(&mut self, _: usize) {
        self.groups.push(JointMoments { count: 0, means: [ZERO; 2], products: ZERO });
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(moments) = self.groups.get_mut(group) else { return Ok(()) };
        each_cell(&inputs.cells, rows, &mut |_, value| {
            let mut pair = value.elements().map(|(_, value)| Number::of(value));
            if let (Some(Some(x)), Some(Some(y))) = (pair.next(), pair.next()) {
                moments.count += 1;
                let (count, [mean, other]) = (Number::Integer(moments.count), moments.means);
                let delta = minus(x, mean);
                let other = plus(other, over(minus(y, other), count));
                moments.means = [plus(mean, over(delta, count)), other];
                moments.products = plus(moments.products, times(delta, minus(y, other)));
            }
            Ok(())
        })
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let from = self.groups.get(from).copied();
        if let (Some(moments), Some(from)) = (self.groups.get_mut(into), from.filter(|from| from.count > 0)) {
            let count = moments.count + from.count;
            let [before, more, all] = [moments.count, from.count, count].map(Number::Integer);
            let ([mean, other], [from_mean, from_other]) = (moments.means, from.means);
            let (delta, distance) = (minus(from_mean, mean), minus(from_other, other));
            let moved = |mean, delta| plus(mean, over(times(delta, more), all));
            let apart = over(times(times(times(delta, distance), before), more), all);
            let products = plus(moments.products, plus(from.products, apart));
            *moments = JointMoments { count, means: [moved(mean, delta), moved(other, distance)], products };
        }
        true
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let found = self.groups.get(group).and_then(|JointMoments { count, products, .. }| {
            let divisor = if self.is_sample { count - 1 } else { *count };
            (divisor > 0).then(|| result(over(*products, Number::Integer(divisor))))
        });
        see(found.as_ref().map_or(Value::NULL, OwnedValue::view));
    }
}
