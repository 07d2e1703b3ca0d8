//! The `granularity` of `$bucketAuto`: boundaries are preferred numbers.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/granularity_rounder_preferred_numbers.cpp. The Renard series are those
//! of ISO 3, the E series (for resistors) those of IEC 60063. Shorter series take every second, fourth ... number of
//! the longest.

use crate::env::math;
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::{Number, Value};

/// The series R80, in hundredths.
const RENARD: [u16; 80] = [
    100, 103, 106, 109, 112, 115, 118, 122, 125, 128, 132, 136, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190,
    195, 200, 206, 212, 218, 224, 230, 236, 243, 250, 258, 265, 272, 280, 290, 300, 307, 315, 325, 335, 345, 355, 365,
    375, 387, 400, 412, 425, 437, 450, 462, 475, 487, 500, 515, 530, 545, 560, 580, 600, 615, 630, 650, 670, 690, 710,
    730, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975,
];
/// The series E24, in tenths.
const E24: [u16; 24] = [10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];
const ONE_TWO_FIVE: [u16; 3] = [10, 20, 50];

/// A series of preferred numbers.
#[derive(Clone)]
pub(super) enum PreferredNumbers {
    PowersOfTwo,
    /// The numbers of one decade, which are multiplied by powers of ten.
    Decade(Vec<f64>),
}

fn every<const N: usize>(numbers: &[u16; N], step: usize) -> PreferredNumbers {
    PreferredNumbers::Decade(numbers.iter().step_by(step).map(|number| f64::from(*number)).listed())
}

/// The series E192, or every n-th number of it: rounded powers, with one exception in the standard.
fn resistors(step: u16) -> PreferredNumbers {
    let number = |place: u16| match place {
        185 => 920.0,
        _ => (100.0 * math::pow(10.0, f64::from(place) / 192.0)).round(),
    };
    PreferredNumbers::Decade((0..192).step_by(step.into()).map(number).listed())
}

impl PreferredNumbers {
    /// The series with this name.
    ///
    /// Errors: 40257.
    pub fn named(name: &str) -> Result<PreferredNumbers> {
        Ok(match name {
            "R5" => every(&RENARD, 16),
            "R10" => every(&RENARD, 8),
            "R20" => every(&RENARD, 4),
            "R40" => every(&RENARD, 2),
            "R80" => every(&RENARD, 1),
            "1-2-5" => every(&ONE_TWO_FIVE, 1),
            "E6" => every(&E24, 4),
            "E12" => every(&E24, 2),
            "E24" => every(&E24, 1),
            "E48" => resistors(4),
            "E96" => resistors(2),
            "E192" => resistors(1),
            "POWERSOF2" => PreferredNumbers::PowersOfTwo,
            _ => return Err(Error::new(ErrorCode::Location40257, "Unknown 'granularity' of $bucketAuto")),
        })
    }

    /// The number for which boundaries are looked up.
    ///
    /// Errors: 40258 if it is not a number, 40259 for NaN, 40260 below 0.
    pub fn number(value: Value<'_>) -> Result<f64> {
        let refuse = |code| Error::new(code, "A $bucketAuto with a 'granularity' needs non-negative numbers");
        let number = Number::of(value).ok_or_else(|| refuse(ErrorCode::Location40258))?.near_double();
        match number {
            _ if number.is_nan() => Err(refuse(ErrorCode::Location40259)),
            _ if number < 0.0 => Err(refuse(ErrorCode::Location40260)),
            _ => Ok(number),
        }
    }

    /// The smallest number of the series above a non-negative one; 0 for 0.
    pub fn above(&self, number: f64) -> f64 {
        self.next(number, true)
    }

    /// The largest number of the series below a non-negative one; 0 for 0.
    pub fn below(&self, number: f64) -> f64 {
        self.next(number, false)
    }

    fn next(&self, number: f64, up: bool) -> f64 {
        if number == 0.0 || number.is_infinite() {
            return number;
        }
        let (one, base) = match self {
            PreferredNumbers::PowersOfTwo => (&[1.0][..], 2.0),
            PreferredNumbers::Decade(numbers) => (numbers.as_slice(), 10.0),
        };
        let first = one.first().copied().unwrap_or(1.0);
        // The decade from the logarithm may be off by one, so its neighbours are tried as well.
        let decade = (math::ln(number / first) / math::ln(base)).floor();
        let mut best: Option<f64> = None;
        for step in [-1.0, 0.0, 1.0] {
            let power: f64 = decade + step;
            for member in one {
                // Powers of ten are exact above 1, but not below.
                let member =
                    if power < 0.0 { member / math::pow(base, -power) } else { member * math::pow(base, power) };
                let (fits, better) = match up {
                    true => (member > number, best.is_none_or(|best| member < best)),
                    false => (member < number, best.is_none_or(|best| member > best)),
                };
                if fits && better {
                    best = Some(member);
                }
            }
        }
        best.unwrap_or(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbours_of_a_preferred_number_exclude_itself() {
        let both = |name: &str, number: f64| {
            let series = PreferredNumbers::named(name).unwrap();
            (series.below(number), series.above(number))
        };
        assert_eq!(both("R5", 39.0), (25.0, 40.0));
        assert_eq!(both("R5", 63.0), (40.0, 100.0));
        assert_eq!(both("R5", 100.0), (63.0, 160.0));
        assert_eq!(both("R20", 59.0), (56.0, 63.0));
        assert_eq!(both("R80", 0.0976), (0.0975, 0.1));
        assert_eq!(both("E24", 82.0), (75.0, 91.0));
        assert_eq!(both("E192", 9.2), (9.09, 9.31));
        assert_eq!(both("E96", 5.0), (4.99, 5.11));
        assert_eq!(both("1-2-5", 1e9), (5e8, 2e9));
        assert_eq!(both("POWERSOF2", 32.0), (16.0, 64.0));
        assert_eq!(both("POWERSOF2", 0.3), (0.25, 0.5));
        assert_eq!(both("E6", 0.0), (0.0, 0.0));
    }

    #[test]
    fn a_series_of_preferred_numbers_has_the_named_length_and_ascends() {
        for name in ["R5", "R10", "R20", "R40", "R80", "E6", "E12", "E24", "E48", "E96", "E192"] {
            let Ok(PreferredNumbers::Decade(numbers)) = PreferredNumbers::named(name) else { panic!("{name}") };
            assert_eq!(numbers.len(), name[1..].parse::<usize>().unwrap());
            assert!(numbers.windows(2).all(|two| two[0] < two[1]) && numbers[numbers.len() - 1] < 10.0 * numbers[0]);
        }
        assert!(PreferredNumbers::named("R7").is_err());
    }
}
