//! Geospatial indexes: which values they accept, and the cell that holds a bucket's places.

// Loaded later.

use super::entries::BucketSummary;
use super::part::{KeyPart, PartKind, Source};
use super::spec::IndexSpec;
use crate::error::{Error, ErrorCode, Result};
use crate::geo::{Geometry, Grid, Rect};
use crate::value::{Component, DisplayDouble, Kind, Leaf, Number, Path, Value, walk_from_value};

/// What a geospatial index knows of a bucket's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// There are none.
    Nothing,
    /// They may be anywhere.
    Anywhere,
    /// They are all in this cell.
    Cell(i64),
}

impl IndexSpec {
    /// The grid of a geospatial part.
    pub fn grid(&self, part: &KeyPart) -> Grid {
        if part.kind() == PartKind::Sphere {
            return Grid::SPHERE;
        }
        let side = [self.option("min").unwrap_or(-180.0), self.option("max").unwrap_or(180.0)];
        Grid(Rect { x: side, y: side })
    }

    /// Where a bucket's places at a part's path are.
    #[inline(never)]
    pub fn held(&self, part: &KeyPart, bucket: &BucketSummary<'_>) -> Held {
        let grid = self.grid(part);
        if part.source == Source::Data {
            return match bucket.extremes(&part.path) {
                None => Held::Anywhere,
                Some([low, high]) => match (low.filter(is_given), high.filter(is_given)) {
                    (Some(low), Some(high)) => {
                        Rect::between(low, high).map_or(Held::Anywhere, |rect| Held::Cell(grid.cell(&[rect])))
                    }
                    _ => Held::Nothing,
                },
            };
        }
        let mut value = bucket.meta;
        for component in part.path.rest() {
            if value.is_some_and(|value| value.kind() == Kind::Array) {
                return Held::Anywhere;
            }
            value = value.and_then(|value| value.as_doc()?.get(component.name()));
        }
        let Some(value) = value.filter(is_given) else { return Held::Nothing };
        match (part.kind(), Geometry::pair(value)) {
            (PartKind::Plane, Some((x, y))) => Held::Cell(grid.cell(&[Rect { x: [x, x], y: [y, y] }])),
            (PartKind::Plane, None) if value.as_container().is_none() => Held::Nothing,
            (PartKind::Plane, None) => Held::Anywhere,
            _ => Geometry::parse(value).map_or(Held::Anywhere, |found| Held::Cell(grid.cell(&Rect::of_stored(&found)))),
        }
    }

    /// Refuses metadata with values that the index does not accept.
    ///
    /// Errors: 16755 if a value is not a geometry on the sphere; 13026, 13027, 13068 and 16804 if it is not a place on
    /// the plane.
    #[inline(never)]
    pub fn check_places(&self, meta: Value<'_>) -> Result<()> {
        let parts = self.parts.iter().filter(|part| part.source == Source::Meta && part.kind().is_geo());
        for part in parts {
            let Rect { x: [min, max], .. } = self.grid(part).0;
            each_given(Some(meta), part.path.rest(), &mut |value| match part.kind() {
                PartKind::Plane => check_on_plane(value, min, max),
                _ => match Geometry::parse(value) {
                    Ok(_) => Ok(()),
                    Err(why) => Err(refused(ErrorCode::Location16755, &part.path, why, value)),
                },
            })?;
        }
        Ok(())
    }
}

/// Refuses a measurement whose value at `path` an index on points cannot hold. `top` is the path's top-level field.
///
/// Errors: 183934 if the value is not a geometry; 183493 if it is not a point.
#[inline(never)]
pub fn check_points(top: Option<Value<'_>>, path: &Path) -> Result<()> {
    each_given(top, path.rest(), &mut |value| match Geometry::parse(value) {
        Err(why) => Err(refused(ErrorCode::Location183934, path, why, value)),
        Ok(_) if !Geometry::is_point(value) => {
            Err(refused(ErrorCode::Location183493, path, "a time-series index can only contain points", value))
        }
        Ok(_) => Ok(()),
    })
}

fn refused(code: ErrorCode, path: &Path, why: &str, value: Value<'_>) -> Error {
    Error::new(code, format!("The value of '{path}' cannot be indexed, because {why}: {value:?}"))
}

/// Neither missing nor empty.
fn is_given(value: &Value<'_>) -> bool {
    !matches!(value.kind(), Kind::Null | Kind::Undefined)
        && value.as_container().is_none_or(|members| !members.is_empty())
}

fn each_given(
    top: Option<Value<'_>>,
    rest: &[Component],
    check: &mut dyn FnMut(Value<'_>) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    walk_from_value(top, rest, Leaf::Whole, &mut |value| {
        if let Some(value) = value.filter(is_given) {
            outcome = check(value);
        }
        outcome.is_err()
    });
    outcome
}

/// Refuses values that are neither a pair within bounds nor a list of such pairs. Values other than objects and arrays
/// hold no place.
fn check_on_plane(value: Value<'_>, min: f64, max: f64) -> Result<()> {
    let Some(members) = value.as_container() else { return Ok(()) };
    let is_pair = members.iter().next().is_some_and(|(_, first)| Number::of(first).is_some());
    let refuse = |code, why: &str| Err(Error::new(code, format!("A 2d index cannot contain {value:?}: {why}")));
    if !is_pair {
        for (_, member) in members {
            if member.as_container().is_none() {
                return refuse(ErrorCode::Location16804, "a member of the list is not a point");
            }
            if member.as_container().is_some_and(|member| !member.is_empty()) && Geometry::pair(member).is_none() {
                return refuse(ErrorCode::Location13026, "a point needs two numbers");
            }
            check_within(member, min, max)?;
        }
        return Ok(());
    }
    if Geometry::pair(value).is_none() {
        return refuse(ErrorCode::Location13068, "a point needs two numbers");
    }
    check_within(value, min, max)
}

fn check_within(value: Value<'_>, min: f64, max: f64) -> Result<()> {
    let Some((x, y)) = Geometry::pair(value) else { return Ok(()) };
    if x.is_nan() || y.is_nan() {
        return Err(Error::new(ErrorCode::Location13026, "A point of a 2d index needs two numbers"));
    }
    if [x, y].iter().any(|at| !(min..=max).contains(at)) {
        let [min, max, x, y] = [min, max, x, y].map(DisplayDouble);
        let message = format!("A point of this 2d index must lie between {min} and {max}, not at [{x}, {y}]");
        return Err(Error::new(ErrorCode::Location13027, message));
    }
    Ok(())
}
