//! Bounding rectangles of geometries.

use super::geometry::{Geometry, Polygon, Position, edges};
use super::parse::pair;
use super::vector::{Vector3, sin_cos};
use crate::env::math;
use crate::listed::IntoList;
use crate::value::{Kind, Value};

/// Margin around a rectangle on the sphere, in degrees. It is wider than the tolerance within which a place counts as
/// on an edge.
const MARGIN: f64 = 1e-9;
/// From this latitude on, in degrees, all longitudes count as the same place.
const NEAR_POLE: f64 = 90.0 - 1e-6;

/// A rectangle of coordinates, its sides included.
///
/// On the sphere, a rectangle that crosses the antimeridian has longitudes outside -180 to 180. It never spans more
/// than 360 degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// The least and the greatest first coordinate.
    pub x: [f64; 2],
    /// The least and the greatest second coordinate.
    pub y: [f64; 2],
}

impl Rect {
    /// Everything on the sphere.
    pub const SPHERE: Rect = Rect { x: [-180.0, 180.0], y: [-90.0, 90.0] };

    /// The bounding rectangle of places on the plane.
    pub fn on_plane(places: &[Position]) -> Rect {
        let [x, y] = [|place: &Position| place.x, |place: &Position| place.y].map(|of| {
            let values = places.iter().map(of);
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
        });
        Rect { x, y }
    }

    /// A rectangle that holds all places at most `radius` radians from `center`.
    pub fn around(center: &Position, radius: f64) -> Rect {
        let reach = radius.to_degrees();
        let y = [center.y - reach, center.y + reach];
        let half = math::asin(math::sin(radius) / math::cos(center.y.to_radians())).to_degrees();
        // NaN near a pole.
        let half = if half.is_nan() || reach >= 90.0 { 180.0 } else { half };
        Rect { x: [center.x - half, center.x + half], y }.widened()
    }

    /// Rectangles that hold all of a geometry on the sphere, and everything that touches it.
    pub fn of(geometry: &Geometry) -> Vec<Rect> {
        Rect::of_stored(geometry).into_iter().map(Rect::widened).listed()
    }

    /// The same without a margin around points, for stored values: the margin of the region asked for is enough.
    pub fn of_stored(geometry: &Geometry) -> Vec<Rect> {
        let points = geometry.points.iter().map(|at| Rect { x: [at.x, at.x], y: [at.y, at.y] });
        let lines = geometry.lines.iter().map(|line| Rect::of_line(line).widened());
        points.chain(lines).chain(geometry.polygons.iter().map(Rect::of_polygon)).listed()
    }

    fn of_polygon(polygon: &Polygon) -> Rect {
        let mut rect = polygon.lines().next().map_or(Rect::SPHERE, |ring| Rect::of_line(ring));
        if polygon.contains(Vector3([0.0, 0.0, -1.0])) {
            rect.y[0] = -90.0;
        }
        if polygon.contains(Vector3([0.0, 0.0, 1.0])) {
            rect.y[1] = 90.0;
        }
        rect.widened()
    }

    fn of_line(line: &[Position]) -> Rect {
        let mut rect = Rect::on_plane(line.get(..1).unwrap_or_default());
        let mut last = rect.x[0];
        for place in line {
            // The short way around.
            last += (place.x - last + 540.0).rem_euclid(360.0) - 180.0;
            rect.x = [rect.x[0].min(last), rect.x[1].max(last)];
            rect.y = [rect.y[0].min(place.y), rect.y[1].max(place.y)];
        }
        for (a, b) in edges(line) {
            let normal = a.cross(b).normalized();
            let Vector3([x, y, z]) = normal;
            // The point of the edge's great circle that is nearest to a pole.
            let top = Vector3([-x * z, -y * z, x * x + y * y]);
            let highest = top.0[2].sqrt().atan2(z.abs()).to_degrees();
            let is_on = |top: Vector3| a.cross(top).dot(normal) >= 0.0 && top.cross(b).dot(normal) >= 0.0;
            if is_on(top) {
                rect.y[1] = rect.y[1].max(highest);
            }
            if is_on(top.plus(-2.0, top)) {
                rect.y[0] = rect.y[0].min(-highest);
            }
        }
        rect
    }

    fn widened(self) -> Rect {
        let Rect { x: [left, right], y: [low, high] } = self;
        let y = [(low - MARGIN).max(-90.0), (high + MARGIN).min(90.0)];
        let farthest = low.abs().max(high.abs());
        let margin = MARGIN / sin_cos(farthest).1;
        let x = [left - margin, right + margin];
        if farthest >= NEAR_POLE || x[1] - x[0] >= 360.0 { Rect { x: Rect::SPHERE.x, y } } else { Rect { x, y } }
    }

    /// The bounding rectangle of all points whose member-by-member extremes are `low` and `high`. `None` if there may
    /// be a geometry other than a point, or a pair with named members.
    pub fn between(low: Value<'_>, high: Value<'_>) -> Option<Rect> {
        if low.kind() == Kind::Array {
            let are_numbers = |value: Value<'_>| value.elements().all(|(_, item)| item.kind().is_number());
            let ((left, bottom), (right, top)) = (pair(low)?, pair(high)?);
            // Non-numbers sort below all numbers.
            let least = |x: f64| if x.is_nan() { f64::NEG_INFINITY } else { x };
            let rect = Rect { x: [least(left), right], y: [least(bottom), top] };
            return (are_numbers(low) && are_numbers(high)).then_some(rect);
        }
        let (least, most) = (low.as_doc()?, high.as_doc()?);
        let mut members = least.iter();
        let is_plain = members.all(|(name, value)| {
            let other = most.get(name);
            match name {
                "type" => value.as_str() == Some("Point") && other.and_then(Value::as_str) == Some("Point"),
                "coordinates" => value.kind() == Kind::Array && other.is_some_and(|other| other.kind() == Kind::Array),
                // A number may be the first of a pair.
                _ => !value.kind().is_number() && other.map(Value::kind) == Some(value.kind()),
            }
        });
        if !is_plain || least.iter().count() != most.iter().count() || least.get("type").is_none() {
            return None;
        }
        Rect::between(least.get("coordinates")?, most.get("coordinates")?)
    }

    /// True if the coordinate pair lies in the rectangle.
    pub fn has(&self, x: f64, y: f64, on_plane: bool) -> bool {
        self.meets(&Rect { x: [x, x], y: [y, y] }, on_plane)
    }

    /// False if the rectangles certainly have no place in common. NaN lies in no rectangle.
    pub fn meets(&self, other: &Rect, on_plane: bool) -> bool {
        let overlap = |[a, b]: [f64; 2], [c, d]: [f64; 2]| a <= d && c <= b;
        let turned = |by: f64| [self.x[0] + by, self.x[1] + by];
        overlap(self.y, other.y)
            && (overlap(self.x, other.x)
                || !on_plane && (overlap(turned(360.0), other.x) || overlap(turned(-360.0), other.x)))
    }
}
