//! Distances from a place.

use super::geometry::{Geometry, Position, edges};
use super::parse::{is_on_sphere, pair, point};
use super::region::{EARTH_RADIUS_M, Region};
use super::vector::Vector3;
use crate::env::math;
use crate::value::Value;

/// A place from which distances are measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// The place.
    pub from: Position,
    /// True if distances are measured on the plane.
    pub on_plane: bool,
    /// The length of a radian: metres for GeoJSON, 1 for a pair.
    unit: f64,
}

impl Near {
    /// Reads the operand of `$near` and its like. Distances from a GeoJSON point are in metres; from a pair, in radians
    /// if `spherical`, otherwise in the units of its coordinates.
    ///
    /// Errors: why `value` is not a place.
    pub fn parse(value: Value<'_>, spherical: bool) -> Result<Near, &'static str> {
        let (x, y) = point(value).ok_or("it is neither a GeoJSON point nor a pair of numbers")?;
        let is_pair = pair(value).is_some();
        if is_pair && !spherical {
            return Ok(Near { from: Position::on_plane(x, y), on_plane: true, unit: 1.0 });
        }
        if !is_on_sphere(x, y) {
            return Err("longitude or latitude is out of bounds");
        }
        Ok(Near { from: Position::on_sphere(x, y), on_plane: false, unit: if is_pair { 1.0 } else { EARTH_RADIUS_M } })
    }

    /// The distance to the nearest part of a value. `None` if it is not a geometry, and on the plane for everything but
    /// points.
    pub fn distance(&self, value: Value<'_>) -> Option<f64> {
        match point(value) {
            Some((x, y)) if self.on_plane => {
                Some(math::hypot(x - self.from.x, y - self.from.y)).filter(|far| !far.is_nan())
            }
            Some((x, y)) => is_on_sphere(x, y).then(|| self.from.at.angle(Vector3::on_sphere(x, y)) * self.unit),
            None if self.on_plane => None,
            None => Geometry::parse(value).ok().map(|geometry| geometry.angle(self.from.at) * self.unit),
        }
    }

    /// Converts a distance to radians; on the plane it stays as it is.
    pub fn radius(&self, distance: f64) -> f64 {
        distance / self.unit
    }

    /// The region of everything at most this far away. It is a little wider, so that rounding does not decide.
    pub fn region(&self, distance: f64) -> Region {
        let radius = self.radius(distance);
        Region::near(self.from, radius + radius * 1e-12 + 1e-15, self.on_plane)
    }
}

impl Geometry {
    /// The angle to the nearest place of the geometry, in radians; 0 if the geometry contains the direction.
    pub(super) fn angle(&self, from: Vector3) -> f64 {
        if self.polygons.iter().any(|polygon| polygon.contains(from)) {
            return 0.0;
        }
        let points = self.points.iter().map(|point| from.angle(point.at));
        let mut nearest = points.fold(f64::INFINITY, f64::min);
        for line in self.all_lines() {
            for (a, b) in edges(line) {
                nearest = nearest.min(edge_angle(a, b, from));
            }
        }
        nearest
    }
}

/// The angle between a direction and the nearest place of an edge.
fn edge_angle(a: Vector3, b: Vector3, from: Vector3) -> f64 {
    let normal = a.cross(b).normalized();
    let height = from.dot(normal);
    let foot = from.plus(-height, normal);
    if a.cross(foot).dot(normal) >= 0.0 && foot.cross(b).dot(normal) >= 0.0 {
        math::atan2(height.abs(), foot.length())
    } else {
        from.angle(a).min(from.angle(b))
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, rawbson, rawdoc};

    use super::*;
    use crate::value::{DocBuf, OwnedValue};

    fn value(value: RawBson) -> OwnedValue {
        let doc = DocBuf::parse(rawdoc! { "v": value }.into_bytes()).unwrap();
        doc.view().get("v").unwrap().to_owned()
    }

    fn metres(to: RawBson) -> Option<f64> {
        let from = rawbson!({ "type": "Point", "coordinates": [0, 10] });
        Near::parse(value(from).view(), false).unwrap().distance(value(to).view())
    }

    const DEGREE_M: f64 = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;

    fn is_near(found: Option<f64>, degrees: f64) {
        let found = found.unwrap() / DEGREE_M;
        assert!((found - degrees).abs() < 1e-9, "{found} {degrees}");
    }

    #[test]
    fn the_distance_to_a_geometry_is_that_to_its_nearest_part() {
        is_near(metres(rawbson!({ "type": "Point", "coordinates": [0, 13] })), 3.0);
        is_near(metres(rawbson!([0, 8])), 2.0);
        is_near(metres(rawbson!({ "type": "MultiPoint", "coordinates": [[0, 50], [0, 11]] })), 1.0);
        // Beside the middle of an edge, and beyond its end.
        is_near(metres(rawbson!({ "type": "LineString", "coordinates": [[-20, 0], [20, 0]] })), 10.0);
        is_near(metres(rawbson!({ "type": "LineString", "coordinates": [[0, 20], [0, 30]] })), 10.0);
        let square = |low: i32| rawbson!({ "type": "Polygon", "coordinates": [[[-5, low], [5, low], [5, 30], [-5, 30], [-5, low]]] });
        is_near(metres(square(5)), 0.0);
        assert!(metres(square(15)).unwrap() / DEGREE_M > 4.9);
        assert_eq!(metres(rawbson!("here")), None);
        assert_eq!(metres(rawbson!([200, 0])), None);
    }

    #[test]
    fn the_distance_to_a_pair_is_in_radians_or_on_the_plane() {
        let from = value(rawbson!([180, 0]));
        let flat = Near::parse(from.view(), false).unwrap();
        assert_eq!(flat.distance(value(rawbson!([0, 9])).view()), Some(180.0_f64.hypot(9.0)));
        let sphere = Near::parse(from.view(), true).unwrap();
        let found = sphere.distance(value(rawbson!([-180, 90])).view()).unwrap();
        assert!((found - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert!(Near::parse(value(rawbson!([200, 0])).view(), true).is_err());
        assert!(Near::parse(value(rawbson!("x")).view(), false).is_err());
    }

    #[test]
    fn the_region_contains_every_place_within_the_distance() {
        for (near, spherical) in [
            (rawbson!({ "type": "Point", "coordinates": [10, 50] }), false),
            (rawbson!([10, 50]), true),
            (rawbson!([10, 50]), false),
        ] {
            let near = Near::parse(value(near).view(), spherical).unwrap();
            for to in [[10.0, 50.0], [10.1, 50.1], [-170.0, -50.0], [11.0, 49.3], [10.0, 90.0]] {
                let to = value(rawbson!([to[0], to[1]]));
                let far = near.distance(to.view()).unwrap();
                assert!(near.region(far).has(to.view()), "{far}");
                assert!(far == 0.0 || !near.region(far * 0.999).has(to.view()), "{far}");
            }
        }
        let near = Near::parse(value(rawbson!({ "type": "Point", "coordinates": [0, 10] })).view(), false).unwrap();
        let line = value(rawbson!({ "type": "LineString", "coordinates": [[-20, 0], [20, 0]] }));
        assert!(near.region(10.01 * DEGREE_M).has(line.view()) && !near.region(9.9 * DEGREE_M).has(line.view()));
    }
}
