//! Geospatial values: GeoJSON and legacy pairs, the regions that queries ask about, and how they relate to each other.
//!
//! Edges are great circles on the sphere and straight lines on the plane. The same code computes both: a place on the
//! plane is the vector (x, y, 1), a place on the sphere its unit vector, and each polygon uses the gnomonic projection
//! around its middle, which keeps edges straight.

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
pub use geometry::{Geometry, Polygon, Position};
pub use near::Near;
pub use region::{EARTH_RADIUS_M, Region};
