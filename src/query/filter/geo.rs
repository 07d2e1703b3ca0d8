//! `$geoWithin` and `$geoIntersects`: values by their location.

// Loaded later.

use std::rc::Rc;

use super::parse::{bad, wrong};
use super::tree::{Filter, Test};
use crate::error::Result;
use crate::geo::Region;
use crate::value::{Doc, DocBuf, Kind, Path, Value};

/// Matches values that lie in a region, or touch it.
#[derive(Clone, Debug, PartialEq)]
pub struct Geo {
    /// The region.
    pub region: Region,
    /// The operand as it was written.
    pub operand: DocBuf,
    /// `$geoWithin` or `$geoIntersects`.
    pub operator: &'static str,
}

/// The filter of `{path: {$geoWithin: operand}}`, or of `$geoIntersects`.
#[inline(never)]
pub(super) fn parse(path: &Path, operator: &'static str, operand: Value<'_>) -> Result<Filter> {
    let shape = operand.as_doc().ok_or_else(|| wrong(operator, "needs a document", operand))?;
    let region = Region::parse(shape, operator == "$geoIntersects").map_err(|why| bad(operator, why))?;
    let geo = Geo { region, operand: shape.to_owned(), operator };
    Ok(Filter::Field(path.clone(), Test::Geo(Rc::new(geo))))
}

/// A bucket in which some measurement may lie in a region: what `$_internalBucketGeoWithin` asks of bucket documents.
#[derive(Clone, Debug, PartialEq)]
pub struct GeoBucket {
    /// The region.
    pub geo: Geo,
    /// The field of measurements.
    pub path: Path,
}

impl GeoBucket {
    /// False for a document that is no bucket.
    #[inline(never)]
    pub fn holds(&self, bucket: Doc<'_>) -> bool {
        let side = |side: &str| bucket.get("control")?.as_doc()?.get(side)?.as_doc();
        side("min").zip(side("max")).is_some_and(|(min, max)| may_lie(min, max, &self.path, &self.geo))
    }
}

/// The filter of `{$_internalBucketGeoWithin: {withinRegion: ..., field: ...}}`.
#[inline(never)]
pub(super) fn parse_bucket(operand: Value<'_>) -> Result<Filter> {
    let operator = "$_internalBucketGeoWithin";
    let fields = operand.as_doc().ok_or_else(|| wrong(operator, "needs a document", operand))?;
    let (region, field) = (fields.get("withinRegion").and_then(Value::as_doc), fields.get("field"));
    let (Some(shape), Some(field), 2) = (region, field.and_then(Value::as_str), fields.iter().count()) else {
        return Err(wrong(operator, "needs 'withinRegion' and 'field'", operand));
    };
    let region = Region::parse(shape, false).map_err(|why| bad(operator, why))?;
    let geo = Geo { region, operand: shape.to_owned(), operator: "$geoWithin" };
    Ok(Filter::Bucket(Rc::new(GeoBucket { geo, path: Path::parse(field)? })))
}

/// Whether a value at a path may lie in a region, given the summaries of a bucket.
///
/// Decides only for buckets in which all values are points written alike. Pairs given as objects may name their
/// coordinates in any order, so they are not decided.
pub fn may_lie(min: Doc<'_>, max: Doc<'_>, path: &Path, geo: &Geo) -> bool {
    let (mut low, mut high) = (Some(min.as_value()), Some(max.as_value()));
    for component in path.components() {
        if low.map(Value::kind) != high.map(Value::kind) {
            return true;
        }
        if low.is_some_and(|value| value.kind() == Kind::Array) {
            return true;
        }
        (low, high) = (below(low, component.name()), below(high, component.name()));
    }
    match (low, high) {
        (Some(low), Some(high)) if low.kind() == high.kind() => geo.region.may_lie_between(low, high),
        (None, None) => false,
        _ => true,
    }
}

fn below<'a>(value: Option<Value<'a>>, name: &str) -> Option<Value<'a>> {
    value?.as_doc()?.get(name)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, filter, hits};
    use crate::error::ErrorCode;
    use bson::{rawbson, rawdoc};

    #[test]
    fn points_match_alone_and_among_the_elements_of_arrays() {
        let docs = [
            rawdoc! { "a": { "type": "Point", "coordinates": [1, 1] } },
            rawdoc! { "a": [1, 1] },
            rawdoc! { "a": [{ "type": "Point", "coordinates": [50, 50] }, { "type": "Point", "coordinates": [1, 1] }] },
            rawdoc! { "a": [[50, 50], [1, 1]] },
            rawdoc! { "a": { "lng": 1, "lat": 1 } },
            rawdoc! { "a": [50, 50] },
            rawdoc! { "a": "here" },
            rawdoc! { "a": null },
            rawdoc! {},
        ];
        for wanted in [
            rawbson!({ "$geoWithin": { "$box": [[0, 0], [2, 2]] } }),
            rawbson!({ "$within": { "$center": [[1, 1], 1] } }),
            rawbson!({ "$geoWithin": { "$centerSphere": [[1, 1], 0.1] } }),
            rawbson!({ "$geoIntersects": { "$geometry": { "type": "Point", "coordinates": [1, 1] } } }),
        ] {
            assert_eq!(hits(&docs, rawdoc! { "a": wanted.clone() }), [0, 1, 2, 3, 4], "{wanted:?}");
            assert_eq!(hits(&docs, rawdoc! { "a": { "$not": wanted } }), [5, 6, 7, 8]);
        }
        let deep = [
            rawdoc! { "a": [{ "b": [1, 1] }, { "b": 3 }] },
            rawdoc! { "a": { "b": [9, 9] } },
            rawdoc! { "a": [0, [1, 1]] },
        ];
        assert_eq!(hits(&deep, rawdoc! { "a.b": { "$geoWithin": { "$box": [[0, 0], [2, 2]] } } }), [0]);
        assert_eq!(hits(&deep, rawdoc! { "a.1": { "$geoWithin": { "$box": [[0, 0], [2, 2]] } } }), [2]);
        assert_eq!(
            hits(&docs, rawdoc! { "a": { "$elemMatch": { "$geoWithin": { "$box": [[0, 0], [2, 2]] } } } }),
            [2, 3]
        );
    }

    #[test]
    fn invalid_regions_are_refused_with_the_reason() {
        let wrong = |operator: bson::RawDocumentBuf| {
            let error = error(rawdoc! { "a": operator });
            assert_eq!(error.code, ErrorCode::BadValue);
            error.message.clone()
        };
        assert_eq!(
            wrong(rawdoc! { "$geoWithin": { "$geometry": { "type": "Point", "coordinates": [1, 2] } } }),
            "$geoWithin needs a Polygon or a MultiPolygon"
        );
        assert_eq!(
            wrong(rawdoc! { "$geoIntersects": { "$box": [[0, 0], [1, 1]] } }),
            "$geoIntersects needs a $geometry"
        );
        assert!(wrong(rawdoc! { "$geoWithin": 3 }).starts_with("$geoWithin needs a document"));
        assert_eq!(
            wrong(
                rawdoc! { "$geoWithin": { "$geometry": { "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]] } } }
            ),
            "$geoWithin a ring must have at least four points, and the last must equal the first"
        );
    }

    #[test]
    fn all_spellings_of_a_region_give_the_same_filter() {
        let operand = || rawbson!({ "$box": [[0, 0], [1, 1]] });
        assert_eq!(
            filter(&rawdoc! { "a": { "$within": operand() } }),
            filter(&rawdoc! { "a": { "$geoWithin": operand() } })
        );
    }
}
