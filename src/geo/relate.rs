//! How geometries relate to each other.

use super::geometry::{Geometry, Polygon, Position, edges, on_line};
use super::vector::{Vector3, cross, on_edge};
use crate::listed::IntoList;
use crate::value::sort_by;

impl Geometry {
    /// True if every part of `other` lies in one polygon of this geometry. Edges belong to what they bound.
    pub fn contains(&self, other: &Geometry) -> bool {
        let in_one = |is_in: &dyn Fn(&Polygon) -> bool| self.polygons.iter().any(is_in);
        other.points.iter().all(|point| in_one(&|polygon| polygon.contains(point.at)))
            && other.lines.iter().all(|line| in_one(&|polygon| contains_line(polygon, line)))
            && other.polygons.iter().all(|inner| in_one(&|polygon| contains_polygon(polygon, inner)))
    }

    /// True if the geometries have a place in common.
    pub fn intersects(&self, other: &Geometry) -> bool {
        self.meets_points_of(other)
            || other.meets_points_of(self)
            || self.meets_lines_of(other)
            || self.begins_in(other)
            || other.begins_in(self)
    }

    /// Its lines, and the rings of its polygons.
    pub(super) fn all_lines(&self) -> Vec<&[Position]> {
        let mut lines: Vec<&[Position]> = self.lines.iter().map(Vec::as_slice).listed();
        for polygon in &self.polygons {
            lines.extend(polygon.lines().map(Vec::as_slice));
        }
        lines
    }

    fn meets_lines_of(&self, other: &Geometry) -> bool {
        let others = other.all_lines();
        self.all_lines().iter().any(|line| others.iter().any(|other| lines_meet(line, other)))
    }

    fn meets_points_of(&self, other: &Geometry) -> bool {
        other.points.iter().any(|point| {
            self.points.iter().any(|this| on_edge(this.at, this.at, point.at))
                || self.lines.iter().any(|line| on_line(line, point.at))
                || self.polygons.iter().any(|polygon| polygon.contains(point.at))
        })
    }

    /// True if one of its lines or rings begins in a polygon of the other. If their edges do not meet, that line then
    /// lies inside as a whole.
    fn begins_in(&self, other: &Geometry) -> bool {
        let outer = self.polygons.iter().filter_map(|polygon| polygon.lines().next());
        let mut starts = self.lines.iter().chain(outer).filter_map(|line| line.first());
        starts.any(|start| other.polygons.iter().any(|polygon| polygon.contains(start.at)))
    }
}

fn lines_meet(line: &[Position], other: &[Position]) -> bool {
    edges(line).any(|(a, b)| {
        edges(other).any(|(c, d)| {
            cross(a, b, c, d) || on_edge(a, b, c) || on_edge(a, b, d) || on_edge(c, d, a) || on_edge(c, d, b)
        })
    })
}

fn contains_line(polygon: &Polygon, line: &[Position]) -> bool {
    edges(line).all(|(a, b)| {
        let mut stops = vec![a, b];
        for (c, d) in polygon.lines().flat_map(|ring| edges(ring)) {
            if cross(a, b, c, d) {
                return false;
            }
            // An edge that touches a corner may leave the polygon there.
            if on_edge(a, b, c) {
                stops.push(c);
            }
        }
        sort_by(&mut stops, |c, d| a.angle(*c).total_cmp(&a.angle(*d)));
        polygon.contains(a)
            && polygon.contains(b)
            && stops.windows(2).all(|pair| match pair {
                [from, to] => polygon.contains(from.plus(1.0, *to).normalized()),
                _ => true,
            })
    })
}

fn contains_polygon(polygon: &Polygon, inner: &Polygon) -> bool {
    let fills = |hole: Vector3| inner.has_inside(hole);
    inner.lines().all(|line| contains_line(polygon, line)) && !polygon.insides_of_holes().any(fills)
}
