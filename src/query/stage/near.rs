//! `$geoNear`: rows by their distance from a place.

use std::rc::Rc;

use super::model::Others;
use super::parse::{FindPart, PipelineParser, check_fields};
use super::running::Stage;
use super::spec::Spec;
use crate::block::{Block, Column, ColumnBuilder};
use crate::error::{Error, ErrorCode, Result};
use crate::geo::Near;
use crate::listed::IntoList;
use crate::query::exec::{Flow, join_blocks};
use crate::query::expr::Expr;
use crate::query::filter::{Filter, Geo, Test};
use crate::query::plan::write_set;
use crate::value::{DocWriter, Leaf, Number, OwnedValue, Path, Value, check_path, sort_rows, walk_from_value};

const FIELDS: [&str; 9] = [
    "near",
    "distanceField",
    "key",
    "spherical",
    "minDistance",
    "maxDistance",
    "distanceMultiplier",
    "includeLocs",
    "uniqueDocs",
];

/// The specification of a `$geoNear`.
struct NearSpec {
    near: Near,
    key: Path,
    least: f64,
    most: f64,
    multiplier: f64,
    distance_field: Vec<Box<str>>,
    place_field: Option<Vec<Box<str>>>,
}

impl PipelineParser<'_> {
    /// `$geoNear`. The find before it selects rows that are near enough.
    ///
    /// Errors: 5892921 without a key; 5860206 without `distanceField`; 5860207 with a query; 6330900 for a place that is
    /// invalid or not constant; 7555701 and 7555702 for distances that are not constant, and `BadValue` for those that
    /// are negative or not numbers; 40415 for unknown fields.
    pub fn near(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Error::new(code, message);
        let doc = argument.as_doc();
        let doc =
            doc.ok_or_else(|| refuse(ErrorCode::Location10065, "The $geoNear stage specification must be an object"))?;
        if doc.get("query").is_some() {
            let message = "$geoNear does not support 'query' on a time-series collection; use a $match after it";
            return Err(refuse(ErrorCode::Location5860207, message));
        }
        check_fields("$geoNear", doc, &FIELDS, &[])?;
        let text = |name: &str| doc.get(name).map(|value| value.as_str().filter(|text| !text.is_empty()));
        let Some(Some(key)) = text("key") else {
            let message = "$geoNear needs the field 'key' on a time-series collection";
            return Err(refuse(ErrorCode::Location5892921, message));
        };
        let Some(Some(distance_field)) = text("distanceField") else {
            return Err(refuse(ErrorCode::Location5860206, "$geoNear needs the field 'distanceField'"));
        };
        let spherical = doc.get("spherical").is_some_and(Value::is_true);
        let place = match doc.get("near") {
            None => OwnedValue::null(),
            Some(value) => self.near_constant("near", value, ErrorCode::Location6330900)?,
        };
        let place = place.view();
        let near = Near::parse(place, spherical)
            .map_err(|why| Error::new(ErrorCode::Location6330900, format!("$geoNear from {place:?}: {why}")))?;
        let number = |name: &str, otherwise: f64| match doc.get(name) {
            None => Ok(otherwise),
            Some(value) => {
                let value = match name {
                    "minDistance" => self.near_constant(name, value, ErrorCode::Location7555701)?,
                    "maxDistance" => self.near_constant(name, value, ErrorCode::Location7555702)?,
                    _ => value.to_owned(),
                };
                let value = value.view();
                let number = Number::of(value).map(Number::near_double).filter(|number| *number >= 0.0);
                number.ok_or_else(|| Error::bad_value(format!("{name} must be a non-negative number, not {value:?}")))
            }
        };
        let names = |path: &str| check_path(path).map(|()| path.split('.').map(Into::into).listed());
        let spec = NearSpec {
            key: Path::parse(key)?,
            least: number("minDistance", 0.0)?,
            most: number("maxDistance", f64::INFINITY)?,
            multiplier: number("distanceMultiplier", 1.0)?,
            distance_field: names(distance_field)?,
            place_field: match text("includeLocs") {
                None => None,
                Some(path) => Some(names(path.ok_or_else(|| Error::bad_value("includeLocs must be a path"))?)?),
            },
            near,
        };
        let region = spec.near.region(spec.most);
        let mut operand = DocWriter::new();
        operand.begin_array(if spec.near.on_plane { "$center" } else { "$centerSphere" });
        operand.begin_array("0").double("0", spec.near.from.x).double("1", spec.near.from.y).end();
        operand.double("1", spec.near.radius(spec.most)).end();
        let geo = Geo { region, operand: operand.finish(), operator: "$geoWithin" };
        self.find(FindPart::Filter).filter = Filter::Field(spec.key.clone(), Test::Geo(Rc::new(geo)));
        self.push(spec, "$geoNear", argument);
        Ok(())
    }
}

impl PipelineParser<'_> {
    /// The value of a constant expression, which may contain variables of `let`.
    fn near_constant(&self, name: &str, value: Value<'_>, code: ErrorCode) -> Result<OwnedValue> {
        match self.expr(value)?.expr() {
            Expr::Constant(value) => Ok(value.clone().unwrap_or_else(OwnedValue::null)),
            _ => Err(Error::new(code, ["'", name, "' of $geoNear must be constant"].concat())),
        }
    }
}

impl Spec for NearSpec {
    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Nearest { spec: self, held: Vec::new(), rows: 0, far: Vec::new(), places: Vec::new(), made: None })
    }
}

/// A running `$geoNear`: holds all rows and sorts them at the end.
struct Nearest {
    spec: Rc<NearSpec>,
    held: Vec<Block>,
    rows: u32,
    /// The bits of the distance of each row that is near enough, and its number.
    far: Vec<(u64, u32)>,
    places: Vec<OwnedValue>,
    made: Option<Block>,
}

impl Nearest {
    /// The smallest distance among a row's values, and the nearest place.
    fn nearest(&self, top: Option<Value<'_>>) -> Option<(f64, OwnedValue)> {
        let mut best: Option<(f64, OwnedValue)> = None;
        walk_from_value(top, self.spec.key.rest(), Leaf::Elements, &mut |value| {
            if let Some(value) = value
                && let Some(far) = self.spec.near.distance(value)
                && best.as_ref().is_none_or(|(least, _)| far < *least)
            {
                best = Some((far, value.to_owned()));
            }
            false
        });
        best.filter(|(far, _)| self.spec.least <= *far && *far <= self.spec.most)
    }
}

impl Stage for Nearest {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let mut scratch = Vec::new();
        if let Some(column) = rows.column(self.spec.key.first()) {
            for (row, place) in (0..rows.rows()).zip(self.rows..) {
                if let Some((far, value)) = self.nearest(column.value(row, &mut scratch)) {
                    // The bits of non-negative doubles sort as the doubles.
                    self.far.push(((far + 0.0).to_bits(), place));
                    self.places.push(value);
                }
            }
        }
        self.rows += u32::try_from(rows.rows()).unwrap_or(u32::MAX);
        self.held.push(rows);
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        let found: Vec<u32> = self.far.iter().map(|(_, row)| *row).listed();
        let mut order: Vec<(u64, u32)> = self.far.iter().map(|(far, _)| *far).zip(0..).listed();
        sort_rows(&mut order);
        let at = |place: &u32| *place as usize;
        let rows: Vec<u32> = order.iter().filter_map(|(_, place)| found.get(at(place)).copied()).listed();
        let mut made = join_blocks(std::mem::take(&mut self.held)).gather(&rows);
        let distances = order.iter().map(|(far, _)| OwnedValue::double(f64::from_bits(*far) * self.spec.multiplier));
        set(&mut made, &self.spec.distance_field, &distances.listed());
        if let Some(field) = &self.spec.place_field {
            let places = order.iter().filter_map(|(_, place)| self.places.get(at(place)).cloned());
            set(&mut made, field, &places.listed());
        }
        self.made = Some(made).filter(|made| made.rows() > 0);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}

/// Sets a field, possibly a nested one, to one value per row.
fn set(rows: &mut Block, path: &[Box<str>], values: &[OwnedValue]) {
    let Some((first, below)) = path.split_first() else { return };
    let mut column = ColumnBuilder::new();
    let (before, mut scratch): (Option<&Column>, _) = (rows.column(first), Vec::new());
    for (row, value) in values.iter().enumerate() {
        if below.is_empty() {
            column.push(value.view());
            continue;
        }
        let known = before.and_then(|column| column.value(row, &mut scratch)).and_then(Value::as_doc);
        let mut writer = DocWriter::new();
        write_set(&mut writer, known, below, Some(value.view()));
        column.push(writer.finish().view().as_value());
    }
    rows.set_column(first, column.finish());
}
