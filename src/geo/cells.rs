//! Cells of a grid that is halved again and again in both directions, so that everything in a cell has keys in one
//! range.
//!
//! The key of a cell is the path down to it, two bits per level, then a one and zeros. All cells inside it have keys
//! around its own.

use super::bounds::Rect;
use crate::value::sort_by;

/// Levels below the whole grid.
const LEVELS: u32 = 28;
/// Maximum number of cells that cover a rectangle.
const COVER_MAX: u64 = 16;

/// A range of keys, both ends included.
pub type Range = (i64, i64);

/// A grid over a rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid(pub Rect);

impl Grid {
    /// The grid over longitudes and latitudes.
    pub const SPHERE: Grid = Grid(Rect::SPHERE);

    /// The smallest cell that holds all of `rects`.
    pub fn cell(&self, rects: &[Rect]) -> i64 {
        let corners = rects.iter().map(|rect| (self.place([rect.x[0], rect.y[0]]), self.place([rect.x[1], rect.y[1]])));
        let Some((low, high)) = corners.reduce(|(a, b), (c, d)| (least(a, c), most(b, d))) else { return key(0, 0) };
        // A rectangle across the antimeridian is on both sides of the grid.
        if rects.iter().any(|rect| rect.x[0] < self.0.x[0] || rect.x[1] > self.0.x[1]) {
            return key(0, 0);
        }
        let (low, high) = (interleave(low), interleave(high));
        let level = ((low ^ high).leading_zeros() - (u64::BITS - 2 * LEVELS)) / 2;
        key(low >> (2 * (LEVELS - level)), level)
    }

    /// The key ranges of all cells that share a place with one of `rects`, ascending and disjoint.
    pub fn ranges(&self, rects: &[Rect]) -> Vec<Range> {
        let mut ranges = Vec::new();
        for rect in rects {
            let turn = self.0.x[1] - self.0.x[0];
            let [left, right] = rect.x;
            // On the sphere, what leaves the grid on one side comes back on the other. On the plane, nothing lies
            // there.
            for by in [0.0, turn, -turn] {
                let [left, right] = [left + by, right + by];
                if left <= self.0.x[1] && right >= self.0.x[0] && (by == 0.0 || *self == Grid::SPHERE) {
                    self.cover(self.place([left, rect.y[0]]), self.place([right, rect.y[1]]), &mut ranges);
                }
            }
        }
        sort_by(&mut ranges, Ord::cmp);
        let mut apart: Vec<Range> = Vec::new();
        for (low, high) in ranges {
            match apart.last_mut() {
                Some((_, last)) if low <= last.saturating_add(1) => *last = high.max(*last),
                _ => apart.push((low, high)),
            }
        }
        apart
    }

    fn cover(&self, low: [u64; 2], high: [u64; 2], ranges: &mut Vec<Range>) {
        let count = |level: u32| {
            let [[a, b], [c, d]] = [low, high].map(|[x, y]| [x >> (LEVELS - level), y >> (LEVELS - level)]);
            (c - a + 1) * (d - b + 1)
        };
        let level = (0..=LEVELS).rev().find(|level| count(*level) <= COVER_MAX).unwrap_or_default();
        let shift = LEVELS - level;
        for x in low[0] >> shift..=high[0] >> shift {
            for y in low[1] >> shift..=high[1] >> shift {
                let cell = key(interleave([x, y]), level);
                let reach = (cell & -cell) - 1;
                ranges.push((cell - reach, cell + reach));
                // A geometry larger than the cell may contain it, and is stored under a larger cell.
                ranges.extend(
                    (0..level)
                        .map(|above| key(interleave([x, y]) >> (2 * (level - above)), above))
                        .map(|cell| (cell, cell)),
                );
            }
        }
    }

    /// The finest cell of a place, as column and row. Places outside the grid count as on its edge.
    fn place(&self, [x, y]: [f64; 2]) -> [u64; 2] {
        let on = |value: f64, [low, high]: [f64; 2]| {
            let cells = (1_u64 << LEVELS) as f64;
            // Clamped to the grid, so the cast loses nothing but the fraction.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let cell = ((value - low) / (high - low) * cells).clamp(0.0, cells - 1.0) as u64;
            cell
        };
        [on(x, self.0.x), on(y, self.0.y)]
    }
}

fn least([a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
    [a.min(c), b.min(d)]
}

fn most([a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
    [a.max(c), b.max(d)]
}

fn interleave([x, y]: [u64; 2]) -> u64 {
    (0..LEVELS).fold(0, |code, bit| code | (x >> bit & 1) << (2 * bit + 1) | (y >> bit & 1) << (2 * bit))
}

fn key(code: u64, level: u32) -> i64 {
    ((code << 1 | 1) << (2 * (LEVELS - level))).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_rect() -> impl Strategy<Value = Rect> {
        let size = prop_oneof![Just(0.0), 0.0..0.001_f64, 0.0..20.0_f64, 0.0..360.0_f64];
        let lng = prop_oneof![-180.0..180.0_f64, prop::sample::select(vec![-180.0, 0.0, 90.0, 180.0])];
        let lat = prop_oneof![-90.0..90.0_f64, prop::sample::select(vec![-90.0, 0.0, 45.0, 90.0])];
        (lng, size.clone(), lat, size)
            .prop_map(|(x, width, y, height)| Rect { x: [x, x + width], y: [y, (y + height).min(90.0)] })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn cells_of_intersecting_rectangles_overlap(stored in prop::collection::vec(any_rect(), 1..3), asked in prop::collection::vec(any_rect(), 1..3)) {
            let meet = stored.iter().any(|one| asked.iter().any(|other| one.meets(other, false)));
            let cell = Grid::SPHERE.cell(&stored);
            let ranges = Grid::SPHERE.ranges(&asked);
            prop_assert!(!meet || ranges.iter().any(|(low, high)| *low <= cell && cell <= *high));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            prop_assert!(ranges.len() < 200);
        }
    }

    #[test]
    fn the_cells_of_a_small_region_exclude_most_places() {
        let region = Rect { x: [10.0, 10.1], y: [50.0, 50.1] };
        let ranges = Grid::SPHERE.ranges(&[region]);
        let found = |x: f64, y: f64| {
            let cell = Grid::SPHERE.cell(&[Rect { x: [x, x], y: [y, y] }]);
            ranges.iter().any(|(low, high)| *low <= cell && cell <= *high)
        };
        assert!(found(10.05, 50.05) && found(10.0, 50.0) && found(10.1, 50.1));
        assert!(!found(10.5, 50.05) && !found(9.9, 50.05) && !found(10.05, 50.3) && !found(-10.05, -50.05));
    }

    #[test]
    fn places_outside_a_plane_grid_are_in_its_border_cells() {
        let grid = Grid(Rect { x: [0.0, 100.0], y: [0.0, 100.0] });
        let at = |x: f64, y: f64| grid.cell(&[Rect { x: [x, x], y: [y, y] }]);
        let ranges = grid.ranges(&[Rect { x: [-50.0, 20.0], y: [90.0, 400.0] }]);
        let found = |cell: i64| ranges.iter().any(|(low, high)| *low <= cell && cell <= *high);
        assert!(found(at(0.0, 100.0)) && found(at(20.0, 90.0)));
        assert!(!found(at(60.0, 95.0)) && !found(at(10.0, 40.0)));
        assert!(grid.ranges(&[Rect { x: [200.0, 300.0], y: [0.0, 1.0] }]).is_empty());
    }
}
