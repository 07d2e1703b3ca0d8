//! Evaluates a test on the elements of arrays, which are a column of their own.

// Loaded later.

use kernels::parts;

use super::arrays::ElemMatch;
use super::geo::Geo;
use super::tree::{Filter, Test};
use crate::block::{ArrayElements, Bitmap, Column, ColumnData, Objects, kernels as columns};
use crate::listed::IntoList;
use crate::value::{Component, Doc, Kind, OwnedValue, Value};

impl Test {
    /// Leaves the rows in which a path leads to an array in objects that passes, or to an element by its number. False if it leads elsewhere,
    /// or if rows must be tested one by one.
    #[inline(never)]
    pub(super) fn narrow_arrays(&self, objects: &Objects, rest: &[Component], rows: &mut Bitmap) -> bool {
        let names = rest.iter().map(Component::name).listed();
        if self.takes_positions()
            && let Some((last, (_, path))) = rest.last().zip(names.split_last())
            && let Some(element) = last.index().and_then(|number| objects.element(path, number))
        {
            self.narrow_column(element, &[], rows);
            return true;
        }
        let found = (1..=names.len()).rev().find_map(|len| Some((len, objects.arrays(names.get(..len)?)?)));
        let Some((len, (list, present))) = found else { return false };
        let passing = match rest.get(len..) {
            Some(below @ [_, ..]) => self.select_in(&list, below),
            _ => self.select_lists(&list),
        };
        let Some(mut passing) = passing else { return false };
        passing.and(&present);
        if self.matches(None) {
            let mut absent = present;
            absent.invert();
            passing.or(&absent);
        }
        rows.and(&passing);
        true
    }

    /// False for comparisons of expressions, whose paths lead to no position, and for tests that a missing value passes: a position behind
    /// the end of an array is no missing value.
    pub(super) fn takes_positions(&self) -> bool {
        !matches!(self, Test::Whole(_)) && !self.matches(None)
    }

    /// The arrays that pass, if all values are arrays, and if these pass only by one of their elements.
    pub(super) fn select_arrays(&self, column: &Column) -> Option<Bitmap> {
        column.elements().and_then(|list| self.select_lists(&list))
    }

    /// The rows in which a path leads through the objects of an array to a value that passes, if all values are arrays. `None` if rows must be
    /// tested one by one, as where the path may lead to a position.
    pub(super) fn select_below(&self, column: &Column, rest: &[Component]) -> Option<Bitmap> {
        if !column.begins_with_array() {
            return None;
        }
        self.select_in(&*column.elements()?, rest)
    }

    /// The same for lists.
    fn select_in(&self, list: &ArrayElements, rest: &[Component]) -> Option<Bitmap> {
        if rest.first()?.index().is_some() || matches!(self, Test::Whole(_)) {
            return None;
        }
        // No other element is on the path, not even as a missing value.
        let mut passing = of_kind(&list.values, Kind::Object);
        self.narrow_column(&list.values, rest, &mut passing);
        Some(list.with_any(&passing))
    }

    fn select_lists(&self, list: &ArrayElements) -> Option<Bitmap> {
        if let Test::ElemMatch(ElemMatch::Object(filter)) = self {
            let mut passing = of_kind(&list.values, Kind::Object);
            // An array in an array counts as an object.
            let are_plain = of_kind(&list.values, Kind::Array).none();
            passing.and(&are_plain.then(|| filter.select_elements(&list.values, true))??);
            return Some(list.with_any(&passing));
        }
        if let Test::Size(size) = self {
            return Some(Bitmap::from_fn(list.ends.len(), |row| list.range(row).len() == *size));
        }
        if let (Test::Geo(geo), ColumnData::F64(cells)) = (self, list.values.data()) {
            let is_within = |pair: &[f64]| matches!(pair, [x, y, ..] if geo.region.has_pair(*x, *y));
            return Some(Bitmap::from_fn(list.ends.len(), |row| cells.get(list.range(row)).is_some_and(is_within)));
        }
        let is_array = |value: Value<'_>| value.kind() == Kind::Array;
        let tests = match self {
            Test::ElemMatch(ElemMatch::Value(tests)) => Some(&**tests),
            _ => None,
        };
        let may_be = match self {
            Test::Compare(compare) => !is_array(compare.value()),
            Test::In(set) => !set.values().iter().map(OwnedValue::view).any(is_array),
            // A place may be an array of two numbers.
            _ => tests.is_some() || matches!(self, Test::Regex(_) | Test::Mod(_)),
        };
        if !may_be || self.matches(Some(Value::new_checked(Kind::Array, Doc::EMPTY.as_bytes()))) {
            return None;
        }
        let (index, values) = match list.values.data() {
            ColumnData::Dictionary(index, values) => (Some(index), &**values),
            _ => (None, &list.values),
        };
        let selected = match tests {
            Some(tests) => tests.select_elements(values, false),
            None => self.select(values),
        };
        let mut scratch = Vec::new();
        let mut passing = selected.unwrap_or_else(|| {
            // An array in an array is one of its elements, as it is.
            Bitmap::from_fn(values.len(), |row| {
                let value = values.value(row, &mut scratch);
                tests.map_or_else(|| self.matches(value), |tests| value.is_some_and(|value| tests.passes(value)))
            })
        });
        if let Some(index) = index {
            passing = columns::entries(index, &passing);
        }
        Some(list.with_any(&passing))
    }
}

/// The GeoJSON points that lie in a region, if objects that are columns are all points. `None` if they are not.
#[inline(never)]
pub(super) fn select_points(geo: &Geo, column: &Column) -> Option<Bitmap> {
    let ColumnData::Objects(objects) = column.data() else { return None };
    // A type and two coordinates.
    let [_, _, _] = objects.scalars() else { return None };
    let (types, list) = (objects.reach(&["type"])??, objects.arrays(&["coordinates"])?.0);
    let mut scratch = Vec::new();
    let mut is_point = |row: usize| types.value(row, &mut scratch).and_then(Value::as_str) == Some("Point");
    let ColumnData::F64(cells) = list.values.data() else { return None };
    let (places, rest) = cells.as_chunks::<2>();
    let are_points = rest.is_empty() && places.len() == column.len() && (0..column.len()).all(&mut is_point);
    are_points.then(|| Bitmap::from_slice(places, |[x, y]| geo.region.has_point(*x, *y)))
}

impl Filter {
    /// The elements that pass tests of one path, as in `Filter::passes`; or, as documents, a filter. `None` if a test has no kernel for them.
    fn select_elements(&self, elements: &Column, as_documents: bool) -> Option<Bitmap> {
        let any = |children: &[Filter]| {
            let mut passing = Bitmap::filled(elements.len(), false);
            for child in children {
                passing.or(&child.select_elements(elements, as_documents)?);
            }
            Some(passing)
        };
        match self {
            Filter::And(children) => {
                let mut passing = Bitmap::filled(elements.len(), true);
                for child in children {
                    passing.and(&child.select_elements(elements, as_documents)?);
                }
                Some(passing)
            }
            Filter::Or(children) => any(children),
            Filter::Nor(children) => any(children).map(inverted),
            Filter::Not(child) => child.select_elements(elements, as_documents).map(inverted),
            Filter::Field(path, test) if as_documents => {
                let mut passing = Bitmap::filled(elements.len(), true);
                test.narrow_column(elements, path.components(), &mut passing);
                Some(passing)
            }
            Filter::Field(_, test) => test.select(elements),
            _ => None,
        }
    }
}

/// The values of a type, if that is objects or arrays.
fn of_kind(values: &Column, kind: Kind) -> Bitmap {
    match values.data() {
        ColumnData::Bson(cells) => Bitmap::from_fn(values.len(), |at| cells.get(at).first() == Some(&kind.byte())),
        ColumnData::Dictionary(index, entries) => columns::entries(index, &of_kind(entries, kind)),
        ColumnData::Objects(_) => Bitmap::filled(values.len(), kind == Kind::Object),
        _ => Bitmap::filled(values.len(), false),
    }
}

fn inverted(mut rows: Bitmap) -> Bitmap {
    rows.invert();
    rows
}

/// The element with a number in each array. `None` if there may be objects among the elements, to whose fields it may lead as well.
pub(super) fn element(column: &Column, number: &Component) -> Option<Column> {
    let number = number.index().filter(|_| column.begins_with_array())?;
    let list = column.elements()?;
    list.values.kind()?;
    list.at(&parts::places(&list.ends, i64::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{check, check_all, check_below, owned};
    use crate::block::samples::column_of;
    use crate::block::{Block, Column, Objects, ShapePart};
    use crate::value::Kind;
    use bson::{RawBson, rawbson};

    #[test]
    fn arrays_in_objects_that_are_columns_pass_as_they_do_row_by_row() {
        let scalar = |values: [Option<RawBson>; 6]| column_of(&values.map(|value| value.map(owned)));
        let double = |x: f64| Some(RawBson::Double(x));
        let xs = scalar([double(1.0), double(2.0), double(0.5), None, double(1.0), double(9.0)]);
        let ys = scalar([double(4.0), None, double(1.0), None, Some(rawbson!(3)), double(2.0)]);
        let names = scalar([0, 1, 2, 3, 4, 5].map(|n| Some(rawbson!(["a", "b"][n % 2]))));
        let parts = [
            ShapePart::Scalar("n".into()),
            ShapePart::Open(Kind::Array, "p".into()),
            ShapePart::Scalar("0".into()),
            ShapePart::Scalar("1".into()),
            ShapePart::Close(false),
        ];
        let typed = scalar([double(4.0), None, double(1.0), None, double(3.0), double(2.0)]);
        for ys in [ys, typed] {
            let mut block = Block::new(6);
            let scalars = vec![names.clone(), xs.clone(), ys];
            block.set_column("o", Column::of_objects(Objects::new(parts.clone().into(), scalars)));
            check_all(
                &block,
                &["o.p", "o.p.0", "o.p.1", "o.p.2", "o.p.x", "o.p.1.0", "o.n.0"],
                &[
                    rawbson!(1.0),
                    rawbson!({ "$gt": 1 }),
                    rawbson!({ "$gt": 1, "$lt": 3 }),
                    rawbson!({ "$not": { "$gt": 1 } }),
                    rawbson!({ "$in": [9, null] }),
                    rawbson!({ "$elemMatch": { "$gt": 1, "$lt": 3 } }),
                    rawbson!({ "$elemMatch": { "$not": { "$gte": 2 } } }),
                    rawbson!({ "$elemMatch": { "$nin": [1, 4] } }),
                    rawbson!({ "$elemMatch": { "x": 1 } }),
                    rawbson!({ "$size": 2 }),
                    rawbson!({ "$size": 0 }),
                    rawbson!({ "$exists": false }),
                    rawbson!({ "$type": "array" }),
                    rawbson!({ "$type": "int" }),
                    rawbson!(null),
                    rawbson!([1.0, 4.0]),
                    rawbson!({ "$geoWithin": { "$box": [[0, 0], [2, 2]] } }),
                    rawbson!({ "$mod": [2, 0] }),
                    rawbson!({ "$_internalExprGt": 1.5 }),
                    rawbson!({ "$_internalExprEq": 1.0 }),
                ],
            );
        }
    }

    #[test]
    fn elements_are_found_by_their_position() {
        let arrays = [rawbson!([1.0, 4.0]), rawbson!([2.0]), rawbson!([]), rawbson!([9.0, 0.5, 1.0])];
        let texts = [rawbson!(["a", "b"]), rawbson!(["b"])];
        let others = [rawbson!([1.0, "a"]), rawbson!({ "0": 1.0 }), rawbson!([{ "0": 4.0 }]), rawbson!(null)];
        let tests = [
            rawbson!(1.0),
            rawbson!("b"),
            rawbson!(null),
            rawbson!({ "$gt": 1 }),
            rawbson!({ "$exists": false }),
            rawbson!({ "$size": 1 }),
            rawbson!({ "$_internalExprGt": 1.5 }),
            rawbson!({ "$_internalExprEq": 1.0 }),
        ];
        for values in [&arrays[..], &texts, &[&arrays[..], &others].concat()] {
            ["v.0", "v.1", "v.7", "v.0.0"].into_iter().for_each(|path| check_below(path, values, &tests));
        }
    }

    #[test]
    fn paths_lead_through_arrays_to_the_fields_of_their_objects() {
        let objects = [
            rawbson!([{ "x": 1.0, "y": { "z": "a" } }, { "x": 4.0, "y": { "z": "b" } }]),
            rawbson!([{ "x": 2.5, "y": { "z": "b" } }]),
            rawbson!([]),
        ];
        let unlike = [
            rawbson!([{ "x": 1.0 }, { "y": [{ "z": "a" }, 3] }, {}]),
            rawbson!([{ "x": null, "0": 1.0 }, { "x": [1.0, 9.0] }]),
            rawbson!([{ "x": { "z": 4.0 } }]),
        ];
        let others = [rawbson!([1.0, { "x": 4.0 }, "a", null]), rawbson!([3.0])];
        let nested = [rawbson!([[{ "x": 1.0 }], { "x": 2.0 }]), rawbson!([[1.0, 4.0]])];
        let tests = [
            rawbson!(1.0),
            rawbson!("b"),
            rawbson!(null),
            rawbson!({ "$gt": 1 }),
            rawbson!({ "$ne": 4.0 }),
            rawbson!({ "$nin": [null, "a"] }),
            rawbson!({ "$exists": true }),
            rawbson!({ "$exists": false }),
            rawbson!({ "$size": 2 }),
            rawbson!({ "$type": "object" }),
            rawbson!({ "$in": [9.0, "a", null] }),
            rawbson!({ "$elemMatch": { "$gt": 1 } }),
            rawbson!({ "$elemMatch": { "x": 1.0 } }),
            rawbson!({ "$elemMatch": { "x": { "$gt": 1 }, "y.z": "b" } }),
            rawbson!({ "$elemMatch": { "x": null } }),
            rawbson!({ "$elemMatch": { "$or": [{ "x": { "$gte": 4 } }, { "y": { "$exists": false } }] } }),
            rawbson!({ "$elemMatch": { "$nor": [{ "x": 1.0 }, { "y.z": { "$ne": "a" } }] } }),
            rawbson!({ "$elemMatch": { "0": { "$gte": 1 } } }),
            rawbson!({ "$not": { "$elemMatch": { "x": { "$not": { "$gt": 1 } } } } }),
            rawbson!({ "$elemMatch": {} }),
            rawbson!({ "$_internalExprGt": 1.5 }),
            rawbson!({ "$_internalExprEq": 1.0 }),
        ];
        let all = [&objects[..], &unlike, &others, &nested].concat();
        for values in [&objects[..], &all[..6], &all[..8], &all, &[&all[..], &[rawbson!({ "x": 1.0 })]].concat()] {
            let paths = ["v", "v.x", "v.y", "v.y.z", "v.x.z", "v.0", "v.0.x", "v.x.0"];
            paths.into_iter().for_each(|path| check_below(path, values, &tests));
        }
    }

    #[test]
    fn points_that_are_columns_lie_in_a_region_as_they_do_row_by_row() {
        let regions = [
            rawbson!({ "$geoWithin": { "$box": [[0, 0], [2, 2]] } }),
            rawbson!({ "$geoWithin": { "$center": [[1, 1], 1.5] } }),
            rawbson!({ "$geoWithin": { "$centerSphere": [[1, 1], 0.02] } }),
            rawbson!({ "$geoIntersects": { "$geometry": { "type": "Point", "coordinates": [1.0, 1.0] } } }),
            rawbson!({ "$not": { "$geoWithin": { "$polygon": [[0, 0], [0, 3], [3, 0]] } } }),
        ];
        let places = [[1.0, 1.0], [3.0, 1.0], [-1.0, 0.5], [400.0, 1.0], [2.0, 2.0], [1.5, 0.0]];
        let column = |at: usize| column_of(&places.map(|place| Some(owned(RawBson::Double(place[at])))));
        for types in [["Point"; 6], ["Point", "Point", "LineString", "Point", "point", "Point"]] {
            for (name, count) in [("coordinates", 2), ("coordinate", 2), ("coordinates", 1)] {
                let mut scalars = vec![column_of(&types.map(|name| Some(owned(rawbson!(name)))))];
                scalars.extend((0..count).map(column));
                let mut parts = vec![ShapePart::Scalar("type".into()), ShapePart::Open(Kind::Array, name.into())];
                parts.extend((0..count).map(|at| ShapePart::Scalar(at.to_string().into())));
                parts.push(ShapePart::Close(false));
                let mut block = Block::new(6);
                block.set_column("o", Column::of_objects(Objects::new(parts.into(), scalars)));
                check_all(&block, &["o", "o.coordinates"], &regions);
            }
        }
        let pairs: Vec<_> = places.iter().map(|[x, y]| rawbson!([*x, *y])).collect();
        check(&pairs, &regions);
        check(&[&pairs[..], &[rawbson!([1.0]), rawbson!([]), rawbson!([1.0, 1.0, 7.0])]].concat(), &regions);
    }
}
