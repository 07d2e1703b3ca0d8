//! The parts of an index key: which bucket values each covers, and how.

use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::INDEX_FIELDS_MAX;
use crate::value::{Doc, Number, OwnedValue, Path, Value};

/// The last component of a wildcard part, which covers everything below its path.
const EVERYTHING: &str = "$**";

/// One part of a bucket index key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// The field in the bucket document, as users of raw buckets name it.
    pub name: Box<str>,
    /// Which part of the bucket the values come from.
    pub source: Source,
    /// The path below `data`, `control.min` or `control.max`; for metadata, it begins with `meta`.
    pub path: Path,
    /// The direction, or the kind as a string, in the bucket key.
    pub direction: OwnedValue,
}

/// Parts of a bucket that can be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The metadata. The path begins with `meta`.
    Meta,
    /// The lowest values.
    Min,
    /// The highest values.
    Max,
    /// All values.
    Data,
}

/// How the part orders or compares its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// By BSON order.
    Order,
    /// By equality only.
    Hashed,
    /// As places on a plane.
    Plane,
    /// As places on the sphere.
    Sphere,
    /// Everything below the path, each value under its own path.
    Wildcard,
}

impl PartKind {
    /// True for geospatial parts.
    pub fn is_geo(self) -> bool {
        matches!(self, PartKind::Plane | PartKind::Sphere)
    }
}

impl KeyPart {
    /// How the part orders or compares its values.
    pub fn kind(&self) -> PartKind {
        match self.direction.view().as_str() {
            Some("hashed") => PartKind::Hashed,
            Some("2d") => PartKind::Plane,
            Some(_) => PartKind::Sphere,
            None if self.name.ends_with(EVERYTHING) => PartKind::Wildcard,
            None => PartKind::Order,
        }
    }
}

/// The bucket parts for the fields of a user's key.
///
/// Errors: `BadValue`; `InvalidOptions` for text; 16800 and 16801 if a `2d` field occurs twice or not first.
pub(super) fn parts_of(key: Doc<'_>, options: &TimeseriesOptions) -> Result<Vec<KeyPart>> {
    let mut parts: Vec<KeyPart> = Vec::new();
    if key.is_empty() {
        return Err(Error::bad_value("an index needs at least one field"));
    }
    for (name, direction) in key {
        let below = options.meta_field.as_deref().and_then(|meta| name.strip_prefix(meta));
        let on_meta = below.filter(|rest| rest.is_empty() || rest.starts_with('.'));
        check_part(name, direction, on_meta, name == options.time_field)?;
        let mut add = |source: Source, prefix: &str, path: &str, direction: OwnedValue| -> Result<()> {
            let name = [prefix, path].concat();
            let above = name.strip_suffix(EVERYTHING).and_then(|path| path.strip_suffix('.')).unwrap_or(&name);
            let path = Path::parse(if source == Source::Meta { above } else { path })?;
            parts.push(KeyPart { name: name.into(), source, path, direction });
            Ok(())
        };
        let owned = direction.to_owned();
        if let Some(rest) = on_meta {
            add(Source::Meta, "meta", rest, owned)?;
            continue;
        }
        if direction.as_str().is_some() {
            add(Source::Data, "data.", name, OwnedValue::string("2dsphere_bucket"))?;
            continue;
        }
        let ascending = Number::of(direction).is_none_or(|number| number.compare(Number::Integer(0)).is_ge());
        let mut sides = [(Source::Min, "control.min."), (Source::Max, "control.max.")];
        if !ascending {
            sides.reverse();
        }
        for (source, prefix) in sides {
            add(source, prefix, name, owned.clone())?;
        }
    }
    let count = |kind: PartKind| parts.iter().filter(|part| part.kind() == kind).count();
    let [hashed, plane, sphere, wildcard] =
        [PartKind::Hashed, PartKind::Plane, PartKind::Sphere, PartKind::Wildcard].map(count);
    if parts.len() > INDEX_FIELDS_MAX
        || hashed > 1
        || [hashed, plane, sphere].iter().filter(|count| **count > 0).count() > 1
    {
        return Err(Error::bad_value(
            "an index key may have at most 32 parts over buckets, one hashed field and one kind of geospatial field",
        ));
    }
    if wildcard > 0 && parts.len() > 1 {
        return Err(Error::bad_value("a wildcard must be the only field of an index key"));
    }
    if plane > 1 {
        return Err(Error::new(ErrorCode::Location16800, "a 2d index must have exactly one 2d field"));
    }
    if plane > 0 && parts.first().is_some_and(|part| part.kind() != PartKind::Plane) {
        return Err(Error::new(ErrorCode::Location16801, "the 2d field must be the first of a 2d index"));
    }
    Ok(parts)
}

/// Checks a field of a user's key; `below_meta` is the rest of its path below the metaField.
fn check_part(name: &str, direction: Value<'_>, below_meta: Option<&str>, is_time: bool) -> Result<()> {
    let refuse =
        |why: &str| Err(Error::bad_value(format!("the key field '{name}: {direction:?}' is not supported: {why}")));
    let on_meta = below_meta.is_some();
    let is_wildcard = name.ends_with(EVERYTHING);
    // The metaField itself may have any name, the empty one included.
    let path = below_meta.unwrap_or(name);
    let path = path.strip_suffix(EVERYTHING).map_or(path, |above| above.strip_suffix('.').unwrap_or(above));
    let mut names = path.split('.').skip(usize::from(on_meta));
    if is_wildcard && !on_meta {
        return refuse("only the metaField can have a wildcard");
    }
    if names.any(|component| component.is_empty() || component.starts_with('$')) {
        return refuse("a name in its path is empty or begins with '$'");
    }
    match (Number::of(direction), direction.as_str()) {
        (Some(number), _) if number.is_nan() || number.compare(Number::Integer(0)).is_eq() => {
            refuse("a direction must not be 0")
        }
        (Some(_), _) => Ok(()),
        (_, Some("text")) => Err(Error::invalid_options("Text indexes are not supported on a time-series collection")),
        (_, Some(_)) if is_wildcard => refuse("a wildcard needs a direction"),
        (_, Some("hashed" | "2d")) if !on_meta => refuse("only the metaField can be hashed or 2d"),
        (_, Some("2dsphere")) if is_time => refuse("the timeField is not geospatial"),
        (_, Some("hashed" | "2d" | "2dsphere")) => Ok(()),
        (_, Some(_)) => refuse("unknown kind of index"),
        _ => refuse("it is neither a direction nor a kind of index"),
    }
}
