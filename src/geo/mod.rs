//! Places: GeoJSON and legacy pairs, the regions that queries ask about, and how they lie to each other.
//!
//! Edges are great circles on the sphere and straight lines on the plane. Both are computed alike: a place on the plane is the vector
//! (x, y, 1), one on the sphere its unit vector, and a polygon is seen in the projection around its middle that keeps its edges straight.

// Loaded later.

mod bounds;
mod cells;
mod geometry;
mod near;
mod parse;
mod region;
mod relate;
#[cfg(test)]
mod tests;
mod vector;

pub use bounds::Rect;
pub use cells::Grid;
pub use geometry::{Geometry, Place, Polygon};
pub use near::Near;
pub use region::{EARTH_RADIUS_M, Region};
