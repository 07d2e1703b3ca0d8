//! The regions that queries ask about.

use super::bounds::Rect;
use super::geometry::{Geometry, Polygon, Position};
use super::parse::{is_on_sphere, pair, point};
use crate::env::math;
use crate::listed::IntoList;
use crate::value::{Doc, Number, Value};

/// The radius of the earth, by which radians become metres.
pub const EARTH_RADIUS_M: f64 = 6_378_100.0;

/// A region, and whether values must lie in it or only touch it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    shape: RegionShape,
    /// True if coordinates are those of a plane, not of the sphere.
    pub on_plane: bool,
    /// Rectangles that together hold all of the region.
    pub bounds: Vec<Rect>,
}

#[derive(Clone, Debug, PartialEq)]
enum RegionShape {
    /// On the plane, the whole rectangle.
    Rect,
    /// Everything at most this far from a place; on the sphere, the distance is in radians.
    Circle(Position, f64),
    /// Everything of which some part is at most this far from a place, in radians.
    Near(Position, f64),
    /// Everything that lies in the polygons.
    Within(Geometry),
    /// Everything that touches the geometry.
    Touching(Geometry),
}

impl Region {
    /// Reads the operand of `$geoWithin`, or of `$geoIntersects` if `touching`.
    ///
    /// Errors: what is wrong with the operand.
    pub fn parse(operand: Doc<'_>, touching: bool) -> Result<Region, &'static str> {
        let mut shapes = operand.iter().filter(|(name, _)| *name != "$uniqueDocs");
        let (Some((name, value)), None) = (shapes.next(), shapes.next()) else {
            return Err("needs exactly one shape");
        };
        if touching && name != "$geometry" {
            return Err("needs a $geometry");
        }
        let members: Vec<Value<'_>> =
            value.as_container().unwrap_or(Doc::EMPTY).iter().map(|(_, member)| member).listed();
        let on_plane = matches!(name, "$box" | "$polygon" | "$center");
        let (shape, bounds) = match (name, members.as_slice()) {
            ("$geometry", _) => {
                let geometry = Geometry::parse(value)?;
                if !touching
                    && (geometry.polygons.is_empty() || !(geometry.points.is_empty() && geometry.lines.is_empty()))
                {
                    return Err("needs a Polygon or a MultiPolygon");
                }
                let bounds = Rect::of(&geometry);
                (if touching { RegionShape::Touching(geometry) } else { RegionShape::Within(geometry) }, bounds)
            }
            ("$box", [one, other]) => (RegionShape::Rect, vec![Rect::on_plane(&places(&[*one, *other])?)]),
            ("$polygon", corners) => {
                let mut ring = places(corners)?;
                ring.extend(ring.first().copied());
                let bounds = vec![Rect::on_plane(&ring)];
                let polygons = vec![Polygon::new(vec![ring], true)?];
                (RegionShape::Within(Geometry { polygons, ..Geometry::default() }), bounds)
            }
            ("$center" | "$centerSphere", [center, radius]) => {
                let (x, y) = pair(*center).ok_or("needs a center of two numbers")?;
                let radius = Number::of(*radius).map(Number::near_double).filter(|radius| *radius >= 0.0);
                let radius = radius.ok_or("needs a non-negative radius")?;
                if on_plane {
                    let bounds = Rect { x: [x - radius, x + radius], y: [y - radius, y + radius] };
                    (RegionShape::Circle(Position::on_plane(x, y), radius), vec![bounds])
                } else if is_on_sphere(x, y) {
                    let center = Position::on_sphere(x, y);
                    (RegionShape::Circle(center, radius), vec![Rect::around(&center, radius)])
                } else {
                    return Err("needs a center whose longitude and latitude are within bounds");
                }
            }
            ("$box" | "$center" | "$centerSphere", _) => return Err("needs an array of two members"),
            _ => return Err("needs $geometry, $box, $polygon, $center or $centerSphere"),
        };
        Ok(Region { shape, on_plane, bounds })
    }

    /// False if no value between two extremes, taken member by member, lies in the region or touches it.
    #[inline(never)]
    pub fn may_lie_between(&self, low: Value<'_>, high: Value<'_>) -> bool {
        let between = Rect::between(low, high);
        between.is_none_or(|rect| self.bounds.iter().any(|bounds| bounds.meets(&rect, self.on_plane)))
    }

    /// Everything at most this far from a place; on the sphere, the distance is in radians.
    pub(super) fn near(from: Position, radius: f64, on_plane: bool) -> Region {
        if on_plane {
            let bounds = Rect { x: [from.x - radius, from.x + radius], y: [from.y - radius, from.y + radius] };
            return Region { shape: RegionShape::Circle(from, radius), on_plane, bounds: vec![bounds] };
        }
        Region { shape: RegionShape::Near(from, radius), on_plane, bounds: vec![Rect::around(&from, radius)] }
    }

    /// True if everything in `other` lies in this region. False if that cannot be told.
    #[inline(never)]
    pub fn contains(&self, other: &Region) -> bool {
        match (&self.shape, &other.shape) {
            (RegionShape::Within(wide), RegionShape::Within(narrow)) => {
                self.on_plane == other.on_plane && !self.on_plane && wide.contains(narrow)
            }
            _ => self == other,
        }
    }

    /// True if a stored value lies in the region, or touches it if that is enough. Values that are not geometries do
    /// not.
    #[inline(never)]
    pub fn has(&self, value: Value<'_>) -> bool {
        match point(value) {
            Some((x, y)) => self.has_pair(x, y),
            None => !self.on_plane && Geometry::parse(value).is_ok_and(|geometry| self.has_geometry(&geometry)),
        }
    }

    /// The same for a GeoJSON point with these coordinates.
    #[inline(never)]
    pub fn has_point(&self, x: f64, y: f64) -> bool {
        is_on_sphere(x, y) && self.has_pair(x, y)
    }

    /// The same for a pair of numbers.
    #[inline(never)]
    pub fn has_pair(&self, x: f64, y: f64) -> bool {
        // Most places are far away, and this check needs no sine.
        if !self.bounds.iter().any(|bounds| bounds.has(x, y, self.on_plane)) {
            return false;
        }
        match (&self.shape, self.on_plane) {
            (RegionShape::Rect, _) => true,
            (RegionShape::Circle(center, radius), true) => math::hypot(x - center.x, y - center.y) <= *radius,
            (RegionShape::Within(geometry), true) => {
                let at = Position::on_plane(x, y).at;
                geometry.polygons.iter().any(|polygon| polygon.contains(at))
            }
            _ => is_on_sphere(x, y) && self.has_geometry(&place(x, y)),
        }
    }

    fn has_geometry(&self, geometry: &Geometry) -> bool {
        match &self.shape {
            RegionShape::Rect => false,
            RegionShape::Circle(center, radius) => {
                let is_near = |place: &Position| center.at.angle(place.at) <= *radius;
                geometry.points.iter().all(is_near) && geometry.all_lines().iter().all(|line| line.iter().all(is_near))
            }
            RegionShape::Near(from, radius) => geometry.angle(from.at) <= *radius,
            RegionShape::Within(region) => region.contains(geometry),
            RegionShape::Touching(region) => region.intersects(geometry),
        }
    }
}

fn place(lng: f64, lat: f64) -> Geometry {
    Geometry { points: vec![Position::on_sphere(lng, lat)], ..Geometry::default() }
}

fn places(values: &[Value<'_>]) -> Result<Vec<Position>, &'static str> {
    let places = values.iter().map(|value| pair(*value).map(|(x, y)| Position::on_plane(x, y)));
    places.listed_if_all().ok_or("needs points of two numbers")
}
