//! Geometries and regions.

use bson::{RawBson, RawDocumentBuf, rawbson, rawdoc};
use proptest::prelude::*;

use super::vector::Vector3;
use super::{EARTH_RADIUS_M, Geometry, Polygon, Position, Rect, Region};
use crate::value::{Doc, DocBuf, OwnedValue};

fn value(value: RawBson) -> OwnedValue {
    let doc = DocBuf::parse(rawdoc! { "v": value }.into_bytes()).unwrap();
    doc.view().get("v").unwrap().to_owned()
}

fn parse(given: RawBson) -> Result<Geometry, &'static str> {
    Geometry::parse(value(given).view())
}

fn point(lng: f64, lat: f64) -> RawBson {
    rawbson!({ "type": "Point", "coordinates": [lng, lat] })
}

fn of(kind: &str, coordinates: RawBson) -> RawBson {
    rawbson!({ "type": kind, "coordinates": coordinates })
}

/// The ring of a rectangle of coordinates.
fn ring(left: f64, bottom: f64, right: f64, top: f64) -> RawBson {
    rawbson!([[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]])
}

fn square(left: f64, bottom: f64, right: f64, top: f64) -> RawBson {
    of("Polygon", rawbson!([ring(left, bottom, right, top)]))
}

/// A square of ten degrees with a hole of two in its middle.
fn holed() -> RawBson {
    of("Polygon", rawbson!([ring(0.0, 0.0, 10.0, 10.0), ring(4.0, 4.0, 6.0, 6.0)]))
}

fn region(operand: RawDocumentBuf, touching: bool) -> Region {
    Region::parse(Doc::parse(operand.as_bytes()).unwrap(), touching).unwrap()
}

fn is_within(region_operand: RawDocumentBuf, stored: RawBson) -> bool {
    region(region_operand, false).has(value(stored).view())
}

fn lies_in(geometry: RawBson, stored: RawBson) -> bool {
    is_within(rawdoc! { "$geometry": geometry }, stored)
}

fn touches(geometry: RawBson, stored: RawBson) -> bool {
    let one = region(rawdoc! { "$geometry": geometry.clone() }, true).has(value(stored.clone()).view());
    let other = region(rawdoc! { "$geometry": stored }, true).has(value(geometry).view());
    assert_eq!(one, other, "touching is mutual");
    one
}

// ---- values ---------------------------------------------------------------------------------------------------------

#[test]
fn every_kind_of_geojson_and_legacy_pairs_are_parsed() {
    let line = rawbson!([[0, 0], [1, 1]]);
    for (given, [points, lines, polygons]) in [
        (point(1.0, 2.0), [1, 0, 0]),
        (rawbson!([1, 2]), [1, 0, 0]),
        (rawbson!([1, 2, 3, "x"]), [1, 0, 0]),
        (rawbson!({ "lng": 1, "lat": 2_i64 }), [1, 0, 0]),
        (of("MultiPoint", line.clone()), [2, 0, 0]),
        (of("LineString", line.clone()), [0, 1, 0]),
        (of("MultiLineString", rawbson!([line.clone(), line])), [0, 2, 0]),
        (holed(), [0, 0, 1]),
        (of("MultiPolygon", rawbson!([[ring(0.0, 0.0, 1.0, 1.0)], [ring(2.0, 2.0, 3.0, 3.0)]])), [0, 0, 2]),
        (rawbson!({ "type": "GeometryCollection", "geometries": [point(1.0, 2.0), holed()] }), [1, 0, 1]),
        (rawbson!({ "name": "x", "type": "Point", "coordinates": [1, 2, 300], "more": 1 }), [1, 0, 0]),
    ] {
        let read = parse(given.clone()).unwrap();
        assert_eq!([read.points.len(), read.lines.len(), read.polygons.len()], [points, lines, polygons], "{given:?}");
    }
}

#[test]
fn invalid_geometries_are_refused() {
    for given in [
        rawbson!(3),
        rawbson!("Point"),
        rawbson!(null),
        rawbson!([]),
        rawbson!([1]),
        rawbson!([1, "2"]),
        rawbson!({ "a": "x", "b": 1 }),
        rawbson!({ "type": "Point" }),
        rawbson!({ "type": "Point", "coordinates": { "x": 1, "y": 2 } }),
        rawbson!({ "type": "Circle", "coordinates": [1, 2] }),
        rawbson!({ "coordinates": [[1, 2]] }),
        point(180.5, 0.0),
        point(0.0, 90.5),
        rawbson!([0, -91]),
        of("LineString", rawbson!([[0, 0]])),
        of("LineString", rawbson!([[0, 0], [0, 0]])),
        of("Polygon", rawbson!([])),
        of("Polygon", rawbson!([[0, 0], [1, 0], [1, 1], [0, 0]])),
        of("Polygon", rawbson!([[[0, 0], [1, 0], [0, 0]]])),
        of("Polygon", rawbson!([[[0, 0], [1, 0], [1, 1], [0, 1]]])),
        rawbson!({ "type": "GeometryCollection", "geometries": [] }),
        rawbson!({ "type": "GeometryCollection", "geometries": [{ "type": "GeometryCollection", "geometries": [point(0.0, 0.0)] }] }),
    ] {
        assert!(parse(given.clone()).is_err(), "{given:?}");
    }
}

#[test]
fn a_polygon_has_rings_that_do_not_touch_themselves_and_holes_within_the_outer_one() {
    for rings in [
        rawbson!([[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]),
        rawbson!([[[0, 0], [4, 0], [2, 0], [2, 2], [0, 0]]]),
        rawbson!([[[0, 0], [1, 0], [2, 0], [0, 0]]]),
        rawbson!([[[0, 0], [4, 0], [2, 2], [4, 4], [0, 4], [2, 2], [0, 0]]]),
        rawbson!([ring(0.0, 0.0, 4.0, 4.0), ring(3.0, 3.0, 5.0, 5.0)]),
        rawbson!([ring(0.0, 0.0, 4.0, 4.0), ring(13.0, 3.0, 15.0, 5.0)]),
    ] {
        assert!(parse(of("Polygon", rings.clone())).is_err(), "{rings:?}");
    }
    assert!(parse(of("Polygon", rawbson!([[[0, 0], [0, 0], [4, 0], [4, 4], [4, 4], [0, 0]]]))).is_ok());
    // A ring around the whole globe.
    assert!(parse(of("Polygon", rawbson!([[[0, 0], [120, 0], [-120, 0], [0, 0]]]))).is_err());
}

#[test]
fn only_the_wgs_84_reference_system_is_accepted() {
    let with = |crs: RawBson| parse(rawbson!({ "type": "Point", "coordinates": [1, 2], "crs": crs }));
    for name in ["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84"] {
        assert!(with(rawbson!({ "type": "name", "properties": { "name": name } })).is_ok());
    }
    for other in [
        rawbson!({ "type": "name", "properties": { "name": "EPSG:3857" } }),
        rawbson!({ "type": "name", "properties": { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" } }),
        rawbson!({ "type": "link" }),
        rawbson!(1),
    ] {
        assert!(with(other).is_err());
    }
}

// ---- within ---------------------------------------------------------------------------------------------------------

#[test]
fn a_polygon_contains_its_inside_and_its_rings_but_not_its_holes() {
    for (lng, lat, inside) in [
        (1.0, 1.0, true),
        (5.0, 5.0, false),
        (4.0, 5.0, true),
        (6.0, 6.0, true),
        (0.0, 0.0, true),
        (0.0, 7.3, true),
        (5.0, 0.0, true),
        (-0.000_001, 5.0, false),
        (11.0, 5.0, false),
        (-175.0, -5.0, false),
    ] {
        assert_eq!(lies_in(holed(), point(lng, lat)), inside, "{lng} {lat}");
        assert_eq!(lies_in(holed(), rawbson!([lng, lat])), inside, "{lng} {lat}");
        assert_eq!(touches(holed(), point(lng, lat)), inside, "{lng} {lat}");
    }
}

#[test]
fn edges_are_great_circles() {
    // The northern edge, between two places of equal latitude, bulges towards the pole.
    let wide = square(-40.0, 10.0, 40.0, 50.0);
    assert!(lies_in(wide.clone(), point(0.0, 55.0)));
    assert!(!lies_in(wide, point(0.0, 12.0)));
    assert!(is_within(rawdoc! { "$polygon": [[-40, 10], [40, 10], [40, 50], [-40, 50]] }, point(0.0, 12.0)));
}

#[test]
fn polygons_may_cross_the_antimeridian_and_surround_a_pole() {
    let across = of("Polygon", rawbson!([[[170, -10], [-170, -10], [-170, 10], [170, 10], [170, -10]]]));
    for (lng, inside) in [(179.0, true), (-179.0, true), (180.0, true), (-180.0, true), (160.0, false), (0.0, false)] {
        assert_eq!(lies_in(across.clone(), point(lng, 1.0)), inside, "{lng}");
    }
    let arctic = of("Polygon", rawbson!([[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]));
    for (lng, lat, inside) in
        [(0.0, 90.0, true), (77.0, 90.0, true), (45.0, 85.0, true), (45.0, 79.0, false), (0.0, -90.0, false)]
    {
        assert_eq!(lies_in(arctic.clone(), point(lng, lat)), inside, "{lng} {lat}");
    }
}

#[test]
fn all_parts_of_a_value_must_be_in_one_polygon() {
    let two = of("MultiPolygon", rawbson!([[ring(0.0, 0.0, 4.0, 4.0)], [ring(6.0, 0.0, 10.0, 4.0)]]));
    assert!(lies_in(two.clone(), of("MultiPoint", rawbson!([[1, 1], [7, 1]]))));
    assert!(!lies_in(two.clone(), of("MultiPoint", rawbson!([[1, 1], [5, 1]]))));
    assert!(lies_in(two.clone(), of("LineString", rawbson!([[1, 1], [3, 3]]))));
    assert!(!lies_in(two.clone(), of("LineString", rawbson!([[1, 1], [7, 1]]))));
    assert!(lies_in(two.clone(), square(1.0, 1.0, 2.0, 2.0)));
    assert!(!lies_in(two, square(1.0, 1.0, 7.0, 2.0)));
}

#[test]
fn a_line_within_a_polygon_may_touch_its_rings_but_not_leave_it() {
    let line = |coordinates: RawBson| lies_in(holed(), of("LineString", coordinates));
    assert!(line(rawbson!([[1, 1], [9, 1]])));
    assert!(line(rawbson!([[0, 0], [0, 10]])));
    assert!(line(rawbson!([[4, 4], [4, 6]])));
    assert!(!line(rawbson!([[1, 5], [9, 5]])));
    assert!(!line(rawbson!([[4, 4], [6, 6]])));
    assert!(!line(rawbson!([[1, 1], [11, 1]])));
    // From corner to corner, across a concave part of the polygon.
    let bay = of("Polygon", rawbson!([[[0, 0], [10, 0], [10, 10], [5, 2], [0, 10], [0, 0]]]));
    assert!(!lies_in(bay.clone(), of("LineString", rawbson!([[0, 10], [10, 10]]))));
    assert!(lies_in(bay, of("LineString", rawbson!([[0, 10], [5, 2], [10, 10]]))));
}

#[test]
fn a_polygon_within_another_does_not_fill_its_holes() {
    assert!(lies_in(holed(), holed()));
    assert!(lies_in(holed(), square(1.0, 1.0, 3.0, 3.0)));
    assert!(!lies_in(holed(), square(0.0, 0.0, 10.0, 10.0)));
    assert!(!lies_in(holed(), square(4.0, 4.0, 6.0, 6.0)));
    assert!(!lies_in(holed(), square(3.0, 3.0, 7.0, 7.0)));
    assert!(!lies_in(holed(), square(4.5, 4.5, 5.5, 5.5)));
    assert!(lies_in(square(0.0, 0.0, 10.0, 10.0), holed()));
    let larger_hole = of("Polygon", rawbson!([ring(1.0, 1.0, 9.0, 9.0), ring(3.0, 3.0, 7.0, 7.0)]));
    assert!(lies_in(holed(), larger_hole));
}

#[test]
fn circles_on_the_sphere_contain_places_within_the_radius() {
    let circle = |radius: f64| rawdoc! { "$centerSphere": [[10, 50], radius] };
    let near = 100_000.0 / EARTH_RADIUS_M;
    assert!(is_within(circle(near), rawbson!([10.0, 50.89])));
    assert!(!is_within(circle(near), rawbson!([10.0, 50.9])));
    assert!(is_within(circle(0.0), point(10.0, 50.0)));
    assert!(is_within(circle(near), of("LineString", rawbson!([[10, 50], [10.5, 50.5]]))));
    assert!(!is_within(circle(near), of("LineString", rawbson!([[10, 50], [12, 50.5]]))));
    assert!(is_within(circle(near), square(9.9, 49.9, 10.1, 50.1)));
    assert!(!is_within(circle(near), square(9.0, 49.0, 10.1, 50.1)));
    // Around a pole, and the whole sphere.
    assert!(is_within(rawdoc! { "$centerSphere": [[0, 89], 0.04] }, point(180.0, 89.0)));
    assert!(is_within(circle(4.0), point(-170.0, -50.0)));
}

#[test]
fn plane_shapes_contain_only_points_including_those_on_their_edges() {
    for (shape, inside, outside) in [
        (rawdoc! { "$box": [[0, 0], [3, 2]] }, [[0.0, 0.0], [3.0, 2.0], [1.0, 2.0]], [3.000_001, 1.0]),
        (rawdoc! { "$box": [[3, 0], [0, 2]] }, [[0.0, 0.0], [3.0, 2.0], [1.0, 2.0]], [1.0, -0.000_001]),
        (
            rawdoc! { "$polygon": [[0, 0], [4, 0], { "x": 0, "y": 4 }] },
            [[0.0, 0.0], [2.0, 2.0], [1.0, 0.5]],
            [2.1, 2.0],
        ),
        (rawdoc! { "$center": [[200, 0], 5] }, [[205.0, 0.0], [203.0, 4.0], [200.0, -5.0]], [204.0, 4.0]),
        (rawdoc! { "$center": [[0, 0], 0] , "$uniqueDocs": true }, [[0.0, 0.0], [-0.0, 0.0], [0.0, 0.0]], [0.1, 0.0]),
    ] {
        for [x, y] in inside {
            assert!(is_within(shape.clone(), rawbson!([x, y])), "{shape:?} {x} {y}");
        }
        assert!(!is_within(shape.clone(), rawbson!([outside[0], outside[1]])), "{shape:?}");
    }
    let box_of = || rawdoc! { "$box": [[-10, -10], [10, 10]] };
    assert!(is_within(box_of(), point(1.0, 1.0)));
    assert!(is_within(box_of(), rawbson!({ "x": 1, "y": 2, "z": "more" })));
    for other in [
        of("LineString", rawbson!([[0, 0], [1, 1]])),
        square(0.0, 0.0, 1.0, 1.0),
        rawbson!([f64::NAN, 1.0]),
        rawbson!(1),
    ] {
        assert!(!is_within(box_of(), other.clone()), "{other:?}");
    }
    // Two triangles that cross.
    let bow = || rawdoc! { "$polygon": [[0, 0], [4, 4], [4, 0], [0, 4]] };
    assert!(is_within(bow(), rawbson!([1, 2])) && !is_within(bow(), rawbson!([2, 1])));
}

#[test]
fn invalid_regions_are_refused() {
    for operand in [
        rawdoc! {},
        rawdoc! { "$geometry": point(1.0, 1.0) },
        rawdoc! { "$geometry": { "type": "GeometryCollection", "geometries": [holed(), point(1.0, 1.0)] } },
        rawdoc! { "$geometry": [1, 1] },
        rawdoc! { "$geometry": holed(), "$box": [[0, 0], [1, 1]] },
        rawdoc! { "$box": [[0, 0]] },
        rawdoc! { "$box": [[0, 0], [1, "1"]] },
        rawdoc! { "$polygon": [[0, 0], [1, 1]] },
        rawdoc! { "$polygon": 1 },
        rawdoc! { "$center": [[0, 0], -1] },
        rawdoc! { "$center": [[0, 0], f64::NAN] },
        rawdoc! { "$centerSphere": [[0, 91], 1] },
        rawdoc! { "$centerSphere": [0, 1] },
        rawdoc! { "$sphere": [[0, 1], 1] },
    ] {
        assert!(Region::parse(Doc::parse(operand.as_bytes()).unwrap(), false).is_err(), "{operand:?}");
    }
    let flat = rawdoc! { "$box": [[0, 0], [1, 1]] };
    assert!(Region::parse(Doc::parse(flat.as_bytes()).unwrap(), true).is_err());
}

// ---- touching -------------------------------------------------------------------------------------------------------

#[test]
fn geometries_intersect_if_they_share_a_place() {
    let line = |coordinates: RawBson| of("LineString", coordinates);
    assert!(touches(point(1.0, 1.0), point(1.0, 1.0)));
    assert!(!touches(point(1.0, 1.0), point(1.0, 1.000_001)));
    assert!(touches(line(rawbson!([[0, 0], [0, 4]])), point(0.0, 3.0)));
    assert!(!touches(line(rawbson!([[0, 0], [0, 4]])), point(0.0, 5.0)));
    assert!(touches(line(rawbson!([[0, 0], [4, 4]])), line(rawbson!([[0, 4], [4, 0]]))));
    assert!(touches(line(rawbson!([[0, 0], [0, 4]])), line(rawbson!([[0, 2], [4, 2]]))));
    assert!(!touches(line(rawbson!([[0, 0], [0, 4]])), line(rawbson!([[1, 2], [4, 2]]))));
    assert!(touches(holed(), line(rawbson!([[-1, 5], [11, 5]]))));
    assert!(touches(holed(), line(rawbson!([[1, 1], [2, 2]]))));
    assert!(!touches(holed(), line(rawbson!([[4.5, 4.5], [5.5, 5.5]]))));
    assert!(touches(holed(), square(1.0, 1.0, 2.0, 2.0)));
    assert!(touches(holed(), square(-5.0, -5.0, 15.0, 15.0)));
    assert!(touches(holed(), square(10.0, 0.0, 20.0, 10.0)));
    assert!(!touches(holed(), square(4.5, 4.5, 5.5, 5.5)));
    assert!(!touches(holed(), square(10.1, 0.0, 20.0, 10.0)));
    assert!(touches(of("MultiPoint", rawbson!([[50, 50], [1, 1]])), holed()));
    assert!(touches(
        rawbson!({ "type": "GeometryCollection", "geometries": [point(50.0, 50.0), holed()] }),
        point(1.0, 1.0)
    ));
}

// ---- rectangles -----------------------------------------------------------------------------------------------------

#[test]
fn bounding_rectangles_are_tight_at_poles_and_the_antimeridian() {
    let rect = |given: RawBson| Rect::of(&parse(given).unwrap())[0];
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let small = rect(square(10.0, 20.0, 11.0, 21.0));
    assert!(near(small.x[0], 10.0) && near(small.x[1], 11.0) && near(small.y[0], 20.0));
    assert!(small.y[1] > 21.0 && small.y[1] < 21.002);
    let across = rect(of("LineString", rawbson!([[170, 0], [-170, 5]])));
    assert!(near(across.x[0], 170.0) && near(across.x[1], 190.0));
    let arctic = rect(of("Polygon", rawbson!([[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]])));
    assert!(
        near(arctic.x[0], -180.0) && near(arctic.x[1], 180.0) && near(arctic.y[1], 90.0) && near(arctic.y[0], 80.0)
    );
    // The great circle between these passes nearer to the pole than either.
    let long = rect(of("LineString", rawbson!([[-60, 60], [60, 60]])));
    assert!(near(long.y[1], 73.897_886), "{long:?}");
}

#[test]
fn a_summary_bounds_points_only_if_all_are_written_in_the_same_form() {
    let between = |low: RawBson, high: RawBson| Rect::between(value(low).view(), value(high).view());
    let rect = Some(Rect { x: [1.0, 3.0], y: [2.0, 4.0] });
    assert_eq!(between(rawbson!([1, 2]), rawbson!([3, 4])), rect);
    assert_eq!(between(point(1.0, 2.0), point(3.0, 4.0)), rect);
    let tagged = |x: i32, y: i32, tag: &str| rawbson!({ "type": "Point", "coordinates": [x, y], "tag": tag });
    assert_eq!(between(tagged(1, 2, "a"), tagged(3, 4, "b")), rect);
    assert_eq!(between(rawbson!([f64::NAN, 2]), rawbson!([3, 4])).map(|rect| rect.x), Some([f64::NEG_INFINITY, 3.0]));
    for (low, high) in [
        (rawbson!([1, 2, 3]), rawbson!([3, 4, [5, 6]])),
        (rawbson!([1]), rawbson!([3])),
        (rawbson!([[1, 2]]), rawbson!([[3, 4]])),
        (rawbson!({ "lat": 1, "lng": 2 }), rawbson!({ "lat": 3, "lng": 4 })),
        (
            rawbson!({ "x": 1, "type": "Point", "coordinates": [1, 2] }),
            rawbson!({ "x": 1, "type": "Point", "coordinates": [1, 2] }),
        ),
        (of("LineString", rawbson!([[1, 2]])), point(1.0, 2.0)),
        (rawbson!({ "coordinates": [1, 2] }), rawbson!({ "coordinates": [1, 2] })),
    ] {
        assert_eq!(between(low.clone(), high.clone()), None, "{low:?} {high:?}");
    }
}

/// Any place, often on an axis, at a pole or next to the antimeridian.
fn any_place() -> impl Strategy<Value = (f64, f64)> {
    let lng = prop_oneof![-180.0..180.0_f64, prop::sample::select(vec![-180.0, -179.9, -90.0, 0.0, 90.0, 180.0])];
    let lat = prop_oneof![-90.0..90.0_f64, prop::sample::select(vec![-90.0, -89.9, 0.0, 45.0, 89.999, 90.0])];
    (lng, lat)
}

/// A star-shaped ring around a place: a few corners at varying distances.
fn any_star() -> impl Strategy<Value = Vec<Position>> {
    (any_place(), prop::collection::vec(0.01..1.2_f64, 3..7)).prop_map(|((lng, lat), distances)| {
        let center = Vector3::on_sphere(lng, lat);
        let helper = if center.0[2].abs() < 0.9 { Vector3([0.0, 0.0, 1.0]) } else { Vector3([1.0, 0.0, 0.0]) };
        let east = helper.cross(center).normalized();
        let north = center.cross(east);
        let count = distances.len() as f64;
        let mut ring: Vec<Position> = distances
            .iter()
            .enumerate()
            .map(|(at, distance)| {
                let turn = at as f64 / count * std::f64::consts::TAU;
                let Vector3([x, y, z]) = center
                    .plus(distance.tan() * turn.cos(), east)
                    .plus(distance.tan() * turn.sin(), north)
                    .normalized();
                Position::on_sphere(y.atan2(x).to_degrees(), z.asin().to_degrees())
            })
            .collect();
        ring.push(ring[0]);
        ring
    })
}

/// The winding number of the ring around the place: the sum of the angles between the directions to its corners.
fn turns(ring: &[Position], place: Vector3) -> f64 {
    let seen: Vec<Vector3> = ring.iter().map(|corner| corner.at.plus(-corner.at.dot(place), place)).collect();
    let angle = |a: Vector3, b: Vector3| a.cross(b).dot(place).atan2(a.dot(b));
    seen.windows(2).map(|pair| angle(pair[0], pair[1])).sum::<f64>() / std::f64::consts::TAU
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_polygon_contains_the_places_with_a_winding_number(ring in any_star(), (lng, lat) in any_place()) {
        let Ok(polygon) = Polygon::new(vec![ring.clone()], false) else { return Ok(()) };
        let place = Vector3::on_sphere(lng, lat);
        if polygon.is_on_ring(place) {
            return Ok(());
        }
        // The ring also winds around the far side of the sphere.
        let inside = polygon.middle().dot(place) > 0.0 && turns(&ring, place).abs() > 0.5;
        prop_assert_eq!(polygon.contains(place), inside);
    }

    #[test]
    fn bounding_rectangles_contain_their_geometry(ring in any_star(), (lng, lat) in any_place(), radius in 0.0..3.5_f64) {
        let place = Position::on_sphere(lng, lat);
        let center = ring[0];
        if center.at.angle(place.at) <= radius {
            prop_assert!(Rect::around(&center, radius).has(lng, lat, false));
        }
        if let Ok(polygon) = Polygon::new(vec![ring.clone()], false) {
            let inside = polygon.contains(place.at);
            let geometry = Geometry { polygons: vec![polygon], ..Geometry::default() };
            prop_assert!(!inside || Rect::of(&geometry)[0].has(lng, lat, false));
        }
        // All along the edges.
        let line = Geometry { lines: vec![ring.clone()], ..Geometry::default() };
        let rect = Rect::of(&line)[0];
        for pair in ring.windows(2) {
            for part in 0..=10 {
                let part = f64::from(part) / 10.0;
                let at = pair[0].at.plus(part / (1.0 - part).max(1e-12), pair[1].at).normalized();
                let Vector3([x, y, z]) = if part == 1.0 { pair[1].at } else { at };
                let (lng, lat) = (y.atan2(x).to_degrees(), z.clamp(-1.0, 1.0).asin().to_degrees());
                prop_assert!(rect.has(lng, lat, false), "{rect:?} {lng} {lat}");
            }
        }
    }

    #[test]
    fn geometries_inside_a_polygon_intersect_it(ring in any_star(), other in any_star(), places in prop::collection::vec(any_place(), 4)) {
        let (Ok(polygon), Ok(inner)) = (Polygon::new(vec![ring], false), Polygon::new(vec![other], false)) else { return Ok(()) };
        let one = Geometry { polygons: vec![polygon.clone()], ..Geometry::default() };
        let other = Geometry { polygons: vec![inner.clone()], ..Geometry::default() };
        let (within, touching) = (one.contains(&other), one.intersects(&other));
        prop_assert!(!within || touching);
        for (lng, lat) in places {
            let at = Vector3::on_sphere(lng, lat);
            let (in_one, in_other) = (polygon.contains(at), inner.contains(at));
            prop_assert!(touching || !(in_one && in_other));
            prop_assert!(!within || !in_other || in_one);
        }
    }
}
