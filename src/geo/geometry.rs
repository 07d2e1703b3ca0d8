//! Points, lines and polygons.

use super::vector::{Vector3, cross, on_edge};
use crate::listed::IntoList;

/// A place: its coordinates as written, and its direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// The longitude in degrees, or the first coordinate.
    pub x: f64,
    /// The latitude in degrees, or the second coordinate.
    pub y: f64,
    /// Its direction on the sphere, or its vector on the plane.
    pub at: Vector3,
}

/// A line from place to place with at least one edge. A ring ends at its first place.
pub type Line = Vec<Position>;

/// The area within an outer ring and outside of its holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    /// The outer ring and the holes.
    rings: Vec<Ring>,
    /// A direction less than a right angle away from all of the polygon, and two directions perpendicular to it.
    axes: [Vector3; 3],
}

#[derive(Clone, Debug, PartialEq)]
struct Ring {
    line: Line,
    /// The ring in the polygon's own projection, in which edges are straight.
    seen: Vec<[f64; 2]>,
}

/// A geometry as the union of its parts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Geometry {
    /// Single points.
    pub points: Vec<Position>,
    /// Lines.
    pub lines: Vec<Line>,
    /// Polygons.
    pub polygons: Vec<Polygon>,
}

impl Position {
    /// A place on the sphere, from degrees.
    pub fn on_sphere(lng: f64, lat: f64) -> Position {
        Position { x: lng, y: lat, at: Vector3::on_sphere(lng, lat) }
    }

    /// A place on the plane.
    pub fn on_plane(x: f64, y: f64) -> Position {
        Position { x, y, at: Vector3::on_plane(x, y) }
    }
}

impl Polygon {
    /// The polygon of an outer ring and holes. Each ring has at least four places, and the last equals the first. On
    /// the plane, rings may cross each other and themselves.
    ///
    /// Errors: what is wrong with the rings.
    pub fn new(mut lines: Vec<Line>, on_plane: bool) -> Result<Polygon, &'static str> {
        for line in &mut lines {
            line.dedup_by(|a, b| a.at == b.at);
            if line.len() < 4 {
                return Err("a ring has fewer than three distinct points");
            }
        }
        if !on_plane && lines.iter().any(|line| touches_itself(line)) {
            return Err("a ring crosses or touches itself");
        }
        let axes = if on_plane { axes_of(Vector3([0.0, 0.0, 1.0])) } else { axes_of(middle(&lines)?) };
        let rings = lines.into_iter().map(|line| {
            let seen = line.iter().map(|place| see(&axes, place.at)).listed();
            Ring { line, seen }
        });
        let polygon = Polygon { rings: rings.listed(), axes };
        let mut rings = polygon.rings.iter();
        let outer = rings.next().ok_or("it has no ring")?;
        let holes_are_within = |hole: &Ring| hole.line.iter().all(|place| polygon.is_within(outer, place.at));
        if !rings.all(holes_are_within) {
            return Err("a hole does not lie within the outer ring");
        }
        Ok(polygon)
    }

    /// Its rings as lines, the outer one first.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.rings.iter().map(|ring| &ring.line)
    }

    /// The direction less than a right angle away from all of the polygon.
    pub fn middle(&self) -> Vector3 {
        self.axes[0]
    }

    /// True if the place lies in the polygon or on one of its rings.
    pub fn contains(&self, place: Vector3) -> bool {
        self.is_on_ring(place) || self.has_inside(place)
    }

    pub(super) fn is_on_ring(&self, place: Vector3) -> bool {
        self.lines().any(|line| on_line(line, place))
    }

    /// True if the place lies in the polygon. For a place on a ring, either answer is possible.
    pub(super) fn has_inside(&self, place: Vector3) -> bool {
        self.axes[0].dot(place) > 0.0 && {
            let seen = see(&self.axes, place);
            self.rings.iter().filter(|ring| is_around(ring, seen)).count() % 2 == 1
        }
    }

    fn is_within(&self, ring: &Ring, place: Vector3) -> bool {
        on_line(&ring.line, place) || is_around(ring, see(&self.axes, place))
    }

    /// A place inside each of the holes.
    pub(super) fn insides_of_holes(&self) -> impl Iterator<Item = Vector3> {
        self.rings.iter().skip(1).filter_map(|ring| {
            // Some three consecutive corners cut off a triangle that lies inside.
            let ends = ring.line.iter().skip(2).chain(ring.line.get(1));
            edges(&ring.line).zip(ends).find_map(|((first, second), third)| {
                let middle = first.plus(1.0, second).plus(1.0, third.at).normalized();
                (is_around(ring, see(&self.axes, middle)) && !on_line(&ring.line, middle)).then_some(middle)
            })
        })
    }
}

/// True if the place lies on an edge of the line.
pub(super) fn on_line(line: &[Position], place: Vector3) -> bool {
    edges(line).any(|(a, b)| on_edge(a, b, place))
}

/// The edges of a line.
pub(super) fn edges(line: &[Position]) -> impl Iterator<Item = (Vector3, Vector3)> + Clone {
    line.iter().zip(line.iter().skip(1)).map(|(a, b)| (a.at, b.at))
}

fn touches_itself(ring: &[Position]) -> bool {
    let count = ring.len() - 1;
    edges(ring).enumerate().any(|(at, (a, b))| {
        edges(ring).enumerate().skip(at + 1).any(|(other, (c, d))| {
            let are_next = other == at + 1;
            let are_ends = at == 0 && other + 1 == count;
            match (are_next, are_ends) {
                // Consecutive edges share one place and nothing else.
                (true, _) => on_edge(a, b, d) || on_edge(c, d, a),
                (_, true) => on_edge(a, b, c) || on_edge(c, d, b),
                _ => cross(a, b, c, d) || on_edge(a, b, c) || on_edge(c, d, a),
            }
        })
    })
}

/// A direction less than a right angle away from all places.
fn middle(lines: &[Line]) -> Result<Vector3, &'static str> {
    let all = || lines.iter().flatten().map(|place| place.at);
    let mut middle = all().fold(Vector3::default(), |sum, at| sum.plus(1.0, at));
    // Turning it towards whatever is too far away converges if such a direction exists.
    for _ in 0..1000 {
        match all().find(|at| middle.dot(*at) <= 1e-9) {
            Some(far) => middle = middle.plus(1.0, far),
            None => return Ok(middle.normalized()),
        }
    }
    Err("it is larger than half of the sphere")
}

fn axes_of(middle: Vector3) -> [Vector3; 3] {
    let Vector3([_, _, z]) = middle;
    let helper = if z.abs() < 0.9 { Vector3([0.0, 0.0, 1.0]) } else { Vector3([0.0, 1.0, 0.0]) };
    let second = helper.cross(middle);
    [middle, second, middle.cross(second)]
}

/// Projects a place from the centre of the sphere onto the plane that the axes span. Great circles become straight
/// lines.
fn see(axes: &[Vector3; 3], place: Vector3) -> [f64; 2] {
    let [middle, x, y] = axes;
    let far = place.dot(*middle);
    [place.dot(*x) / far, place.dot(*y) / far]
}

/// True if a ray from the place crosses the ring an odd number of times.
fn is_around(ring: &Ring, [x, y]: [f64; 2]) -> bool {
    let mut is_around = false;
    for (&[ax, ay], &[bx, by]) in ring.seen.iter().zip(ring.seen.iter().skip(1)) {
        if (ay > y) != (by > y) && ((bx - ax) * (y - ay) - (x - ax) * (by - ay) > 0.0) == (by > ay) {
            is_around = !is_around;
        }
    }
    is_around
}
