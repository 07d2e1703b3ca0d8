//! Reads geometries from BSON values.

use super::geometry::{Geometry, Line, Polygon, Position};
use crate::listed::IntoList;
use crate::value::{Doc, Kind, Number, Value};

type Parsed<T> = Result<T, &'static str>;

impl Geometry {
    /// The geometry on the sphere that a value holds: GeoJSON, or a pair of numbers that are a longitude and a
    /// latitude.
    ///
    /// Errors: why the value is not one.
    pub fn parse(value: Value<'_>) -> Parsed<Geometry> {
        let mut geometry = Geometry::default();
        match pair(value) {
            Some((x, y)) => geometry.points.push(on_sphere(x, y)?),
            None => geometry.add(value.as_doc().ok_or("it is neither GeoJSON nor a pair of numbers")?, true)?,
        }
        Ok(geometry)
    }

    /// The first two members of an array or an object, if they are numbers.
    pub fn pair(value: Value<'_>) -> Option<(f64, f64)> {
        pair(value)
    }

    /// True if the geometry is a single point, given as GeoJSON or as a pair.
    pub fn is_point(value: Value<'_>) -> bool {
        point(value).is_some()
    }

    fn add(&mut self, doc: Doc<'_>, outermost: bool) -> Parsed<()> {
        check_crs(doc)?;
        let kind = doc.get("type").and_then(Value::as_str).ok_or("it has no GeoJSON 'type'")?;
        if kind == "GeometryCollection" && outermost {
            for part in items(doc.get("geometries"))? {
                self.add(part.as_doc().ok_or("a part of it is not GeoJSON")?, false)?;
            }
            return Ok(());
        }
        let coordinates = doc.get("coordinates");
        match kind {
            "Point" => self.points.push(place(coordinates)?),
            "MultiPoint" => self.points.extend(line(coordinates)?),
            "LineString" => self.lines.push(line_string(coordinates)?),
            "MultiLineString" => {
                for one in items(coordinates)? {
                    self.lines.push(line_string(Some(one))?);
                }
            }
            "Polygon" => self.polygons.push(polygon(coordinates)?),
            "MultiPolygon" => {
                for one in items(coordinates)? {
                    self.polygons.push(polygon(Some(one))?);
                }
            }
            _ => return Err("its GeoJSON 'type' is unknown"),
        }
        Ok(())
    }
}

/// The coordinates of a GeoJSON point or of a pair, without a check of their range.
pub fn point(value: Value<'_>) -> Option<(f64, f64)> {
    pair(value).or_else(|| {
        let doc = value.as_doc()?;
        let is_point = doc.get("type").and_then(Value::as_str) == Some("Point") && check_crs(doc).is_ok();
        let (x, y) = pair(doc.get("coordinates").filter(|_| is_point)?)?;
        is_on_sphere(x, y).then_some((x, y))
    })
}

/// The first two members of an array or an object, if they are numbers.
pub fn pair(value: Value<'_>) -> Option<(f64, f64)> {
    let mut members = value.as_container()?.iter();
    let mut next = || members.next().and_then(|(_, member)| Number::of(member)).map(Number::near_double);
    Some((next()?, next()?))
}

/// True if the numbers are a valid longitude and latitude.
pub fn is_on_sphere(lng: f64, lat: f64) -> bool {
    (-180.0..=180.0).contains(&lng) && (-90.0..=90.0).contains(&lat)
}

fn on_sphere(lng: f64, lat: f64) -> Parsed<Position> {
    if is_on_sphere(lng, lat) {
        Ok(Position::on_sphere(lng, lat))
    } else {
        Err("longitude or latitude is out of bounds")
    }
}

fn place(value: Option<Value<'_>>) -> Parsed<Position> {
    let array = value.filter(|value| value.kind() == Kind::Array);
    let (lng, lat) = array.and_then(pair).ok_or("a point must be an array of two numbers")?;
    on_sphere(lng, lat)
}

fn items<'a>(value: Option<Value<'a>>) -> Parsed<impl Iterator<Item = Value<'a>>> {
    let array = value.and_then(Value::as_array).filter(|array| !array.is_empty());
    Ok(array.ok_or("a non-empty array of coordinates is missing")?.iter().map(|(_, item)| item))
}

fn line(value: Option<Value<'_>>) -> Parsed<Line> {
    items(value)?.map(|item| place(Some(item))).try_listed()
}

fn line_string(value: Option<Value<'_>>) -> Parsed<Line> {
    let mut line = line(value)?;
    line.dedup_by(|a, b| a.at == b.at);
    if line.len() < 2 { Err("a line has fewer than two distinct points") } else { Ok(line) }
}

fn polygon(value: Option<Value<'_>>) -> Parsed<Polygon> {
    let mut rings = Vec::new();
    for item in items(value)? {
        let ring = line(Some(item))?;
        if ring.len() < 4 || ring.first().map(|place| (place.x, place.y)) != ring.last().map(|place| (place.x, place.y))
        {
            return Err("a ring must have at least four points, and the last must equal the first");
        }
        rings.push(ring);
    }
    Polygon::new(rings, false)
}

/// All coordinates are WGS 84, so other reference systems are refused.
fn check_crs(doc: Doc<'_>) -> Parsed<()> {
    let Some(crs) = doc.get("crs") else { return Ok(()) };
    let name = crs.as_doc().filter(|crs| crs.get("type").and_then(Value::as_str) == Some("name"));
    let name = name.and_then(|crs| crs.get("properties")?.as_doc()?.get("name")?.as_str());
    match name {
        Some("EPSG:4326" | "urn:ogc:def:crs:OGC:1.3:CRS84") => Ok(()),
        _ => Err("its coordinate reference system is not EPSG:4326 or CRS84"),
    }
}
