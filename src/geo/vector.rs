//! Vectors, and on which side of an edge they lie.

use crate::env::math;

/// How far beside an edge, relative to its length, a place still counts as on it. This covers the rounding of
/// coordinates.
const NEAR: f64 = 1e-12;

/// A direction on the unit sphere, or a place on the plane with 1 as its third coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Vector3(pub [f64; 3]);

impl Vector3 {
    /// The direction of a longitude and a latitude in degrees.
    pub fn on_sphere(lng: f64, lat: f64) -> Vector3 {
        let ((sin_lng, cos_lng), (sin_lat, cos_lat)) = (sin_cos(lng), sin_cos(lat));
        Vector3([cos_lat * cos_lng, cos_lat * sin_lng, sin_lat])
    }

    /// The place on the plane.
    pub fn on_plane(x: f64, y: f64) -> Vector3 {
        Vector3([x, y, 1.0])
    }

    pub(super) fn dot(self, Vector3([a, b, c]): Vector3) -> f64 {
        let Vector3([x, y, z]) = self;
        x * a + y * b + z * c
    }

    pub(super) fn cross(self, Vector3([a, b, c]): Vector3) -> Vector3 {
        let Vector3([x, y, z]) = self;
        Vector3([y * c - z * b, z * a - x * c, x * b - y * a])
    }

    /// `self` plus `by` times `other`.
    pub(super) fn plus(self, by: f64, Vector3([a, b, c]): Vector3) -> Vector3 {
        let Vector3([x, y, z]) = self;
        Vector3([x + by * a, y + by * b, z + by * c])
    }

    /// The same direction with length 1.
    pub(super) fn normalized(self) -> Vector3 {
        self.plus(1.0 / self.length() - 1.0, self)
    }

    pub(super) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// The angle to another direction, in radians. It is as exact for near directions as for far ones.
    pub fn angle(self, other: Vector3) -> f64 {
        math::atan2(self.cross(other).length(), self.dot(other))
    }
}

/// Positive if `p` lies left of the way from `a` to `b`, negative if it lies right of it.
///
/// Computed from differences, because products of near directions would cancel each other out.
pub(super) fn side(a: Vector3, b: Vector3, p: Vector3) -> f64 {
    b.plus(-1.0, a).cross(p.plus(-1.0, a)).dot(a)
}

/// True if the edges `ab` and `cd` cross and no end of one lies on the other.
pub(super) fn cross(a: Vector3, b: Vector3, c: Vector3, d: Vector3) -> bool {
    if on_edge(a, b, c) || on_edge(a, b, d) || on_edge(c, d, a) || on_edge(c, d, b) {
        return false;
    }
    // All four sides must agree; otherwise the circles meet on the far side of the sphere, or beyond the edges.
    let left = side(a, b, d) > 0.0;
    (side(a, b, c) > 0.0) != left && (side(c, d, a) > 0.0) == left && (side(c, d, b) > 0.0) != left
}

/// True if `p` lies on the edge `ab`, its ends included.
pub(super) fn on_edge(a: Vector3, b: Vector3, p: Vector3) -> bool {
    let (to_a, to_b) = (a.plus(-1.0, p), b.plus(-1.0, p));
    // The shorter way from `a` to `b` is the part of their great circle inside the ball over their chord.
    let length = b.plus(-1.0, a).length();
    side(a, b, p).abs() <= NEAR * length && to_a.dot(to_b) <= NEAR * (length + NEAR)
}

/// Sine and cosine of an angle in degrees, at most a full turn. Keys of indexes follow from them, so they are the same
/// on every host. Those of the standard library take any angle, and are ten times as large in WebAssembly.
pub(super) fn sin_cos(degrees: f64) -> (f64, f64) {
    let quarters = (degrees / 90.0).round();
    // The difference is exact, and at most 45 degrees.
    let x = (degrees - quarters * 90.0).to_radians();
    // Their power series. The first term that is left out is less than half the last digit.
    let series = |first: i32, terms: i32| {
        let factors = (0..terms).rev().map(|term| f64::from(first + 2 * term));
        factors.fold(1.0, |sum, n| 1.0 - x * x / (n * (n + 1.0)) * sum)
    };
    let (sin, cos) = (x * series(2, 8), series(1, 9));
    match quarters.rem_euclid(4.0) {
        1.0 => (cos, -sin),
        2.0 => (-sin, -cos),
        3.0 => (-cos, sin),
        _ => (sin, cos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lng: f64, lat: f64) -> Vector3 {
        Vector3::on_sphere(lng, lat)
    }

    #[test]
    fn sines_and_cosines_are_those_of_the_standard_library() {
        for step in -14_400..=14_400_i32 {
            let degrees = f64::from(step) / 40.0 + f64::from(step % 7) / 1e9;
            let ((sin, cos), expected) = (sin_cos(degrees), degrees.to_radians().sin_cos());
            assert!((sin - expected.0).abs() < 1e-15 && (cos - expected.1).abs() < 1e-15, "{degrees}: {sin}, {cos}");
        }
    }

    #[test]
    fn sines_and_cosines_of_quarters_are_exact() {
        for (degrees, expected) in [(0.0, (0.0, 1.0)), (90.0, (1.0, 0.0)), (-90.0, (-1.0, 0.0)), (180.0, (0.0, -1.0))] {
            assert_eq!(sin_cos(degrees), expected, "{degrees}");
        }
    }

    #[test]
    fn the_angle_between_close_directions_is_exact() {
        let tiny = 1e-9_f64;
        let angle = at(10.0, 0.0).angle(at(10.0, tiny.to_degrees()));
        assert!((angle / tiny - 1.0).abs() < 1e-6, "{angle}");
        assert!((at(0.0, 0.0).angle(at(180.0, 0.0)) - std::f64::consts::PI).abs() < 1e-12);
        assert!(at(37.3, 12.9).angle(at(37.3, 12.9)).abs() < f64::EPSILON);
    }

    #[test]
    fn edges_do_not_cross_on_the_far_side_of_the_sphere() {
        assert!(cross(at(-10.0, 0.0), at(10.0, 0.0), at(0.0, -10.0), at(0.0, 10.0)));
        assert!(cross(at(170.0, 0.0), at(-170.0, 0.0), at(180.0, -10.0), at(180.0, 10.0)));
        assert!(!cross(at(-10.0, 0.0), at(10.0, 0.0), at(180.0, -10.0), at(180.0, 10.0)));
        assert!(!cross(at(-10.0, 0.0), at(10.0, 0.0), at(11.0, -10.0), at(11.0, 10.0)));
        // They touch, and share an end.
        assert!(!cross(at(-10.0, 0.0), at(10.0, 0.0), at(0.0, 0.0), at(0.0, 10.0)));
        assert!(!cross(at(-10.0, 0.0), at(10.0, 0.0), at(10.0, 0.0), at(0.0, 10.0)));
    }

    #[test]
    fn a_place_on_an_edge_differs_from_one_beside_or_beyond_it() {
        let (a, b) = (at(10.0, 20.0), at(10.0, 50.0));
        for lat in [20.0, 20.1, 33.333_333, 50.0] {
            assert!(on_edge(a, b, at(10.0, lat)), "{lat}");
        }
        assert!(!on_edge(a, b, at(10.0, 19.999_999)));
        assert!(!on_edge(a, b, at(10.0, 50.000_001)));
        assert!(!on_edge(a, b, at(10.000_001, 30.0)));
        assert!(!on_edge(a, b, at(-170.0, -30.0)));
        let plane = Vector3::on_plane;
        assert!(on_edge(plane(0.0, 0.0), plane(3.0, 1.0), plane(1.5, 0.5)));
        assert!(!on_edge(plane(0.0, 0.0), plane(3.0, 1.0), plane(1.5, 0.500_001)));
    }
}
